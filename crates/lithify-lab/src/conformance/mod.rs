//! What every adapter has to do alike, as cases that run over any engine.
//!
//! | file | owns |
//! |---|---|
//! | `cases` | what an engine answers: reads, scans, batches, transactions, reopening |
//! | [`flags`] | what an engine says that it can do, against what it does |
//! | [`kill`] | what is left of acknowledged writes when the process is killed, and syncs per commit |
//! | [`graph`] | LinkBench over the engine, judged by its oracle |
//! | [`text`](mod@text) | lines in partitions, of engines of text |
//!
//! A test of an adapter calls [`check_engine`] with a [`Subject`], and wants an empty list back;
//! [`check`] runs the first row alone, over whatever opens, and [`text::check`] the last, over an engine
//! of text. Promises: every case begins on a
//! directory of its own; a case that fails says what was expected; no case waits for longer than a
//! lock of the engine does.
//!
//! Does not: measure, or know any engine.

mod cases;
pub mod flags;
pub mod graph;
pub mod kill;
pub mod text;

use std::ops::ControlFlow;
use std::path::Path;

use crate::adapter::provider::Transactions;
use crate::adapter::settings::EngineSettings;
use crate::adapter::{Engine, EngineError, EngineName, EngineResult, ScanRange, Session};
use crate::adapter::{SpaceId, SpaceSpec, WriteBatch};
use crate::engines::registry;

/// The spaces that an engine under test is opened with.
pub const SPACES: [SpaceSpec; 2] = [
    SpaceSpec { name: "plain", prefix_bytes: None, single_delete: false },
    SpaceSpec { name: "lists", prefix_bytes: Some(4), single_delete: true },
];

/// The space without prefixes.
pub const PLAIN: SpaceId = SpaceId(0);
/// The space whose keys share prefixes of four bytes and are put once.
pub const LISTS: SpaceId = SpaceId(1);

/// Opens the engine on a directory, with [`SPACES`] and for transactions.
pub type Opener<'a> = &'a dyn Fn(&Path) -> EngineResult<Box<dyn Engine>>;

/// What is wrong with a case.
type Verdict = Result<(), String>;

/// An engine by its name.
pub struct Subject<'a> {
    /// The name.
    pub engine: &'a EngineName,
    /// Settings under which a few megabytes make a tree of several levels.
    pub settings: &'a EngineSettings,
    /// A test of this program that registers the engine and calls [`kill::child`]; it is run in
    /// processes of its own.
    pub child_test: &'a str,
}

impl Subject<'_> {
    /// Opens the engine in `directory`, which is made if there is none.
    fn open(&self, directory: &Path, settings: &EngineSettings) -> EngineResult<Box<dyn Engine>> {
        std::fs::create_dir_all(directory)
            .map_err(|error| EngineError::fatal(format!("{}: {error}", directory.display())))?;
        registry::open_spaces(self.engine, directory, settings, &SPACES, Transactions::Needed)
    }
}

/// Runs all cases over an engine that stores what it is given; gives a line for each that failed.
pub fn check_engine(subject: &Subject<'_>, root: &Path) -> Vec<String> {
    let open = |directory: &Path| subject.open(directory, subject.settings);
    let is_durable = registry::uses_disk(subject.engine);
    let mut failures = check(&open, root, is_durable);
    let more = [
        flags::check(subject, &root.join("flags")),
        graph::check(subject, &root.join("graph")),
        if is_durable { kill::check(subject, &root.join("kill")) } else { Vec::new() },
    ];
    failures.extend(more.into_iter().flatten());
    failures
}

/// Runs what needs nothing but an open engine; gives a line for each case that failed. `is_durable`
/// when what was written is found again after the engine was closed.
pub fn check(open: Opener<'_>, root: &Path, is_durable: bool) -> Vec<String> {
    let mut list = Failures::default();
    for (index, (name, case)) in cases::CASES.iter().enumerate() {
        list.note(name, on_fresh(open, &root.join(format!("case-{index}")), *case));
    }
    list.note("flush and compaction", cases::settling(open, &root.join("settling")));
    if is_durable {
        let verdict = cases::reopening(open, &root.join("reopening"));
        list.note("what was written is found again", verdict);
    }
    list.0
}

/// The lines of the cases that failed.
#[derive(Default)]
struct Failures(Vec<String>);

impl Failures {
    fn note(&mut self, name: &str, verdict: Verdict) {
        if let Err(what) = verdict {
            self.0.push(format!("{name}: {what}"));
        }
    }
}

fn text(error: EngineError) -> String {
    error.to_string()
}

fn fresh(open: Opener<'_>, directory: &Path) -> Result<Box<dyn Engine>, String> {
    std::fs::create_dir_all(directory).map_err(|error| error.to_string())?;
    open(directory).map_err(text)
}

fn on_fresh(open: Opener<'_>, directory: &Path, case: fn(&dyn Engine) -> Verdict) -> Verdict {
    let engine = fresh(open, directory)?;
    case(&*engine)?;
    engine.close().map_err(text)
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Verdict {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}: expected {expected:?}, found {found:?}"))
}

fn put(session: &mut dyn Session, space: SpaceId, rows: &[(&str, &str)]) -> Verdict {
    let mut batch = WriteBatch::new();
    for (key, value) in rows {
        batch.put(space, key.as_bytes(), value.as_bytes());
    }
    session.write_batch(&batch).map_err(text)
}

fn value(session: &mut dyn Session, space: SpaceId, key: &str) -> Result<Option<String>, String> {
    let mut value = b"left from before".to_vec();
    let found = session.get(space, key.as_bytes(), &mut value).map_err(text)?;
    same("a missing row's value", !found && !value.is_empty(), false)?;
    Ok(found.then(|| String::from_utf8_lossy(&value).into_owned()))
}

fn keys(
    session: &mut dyn Session,
    space: SpaceId,
    range: &ScanRange<'_>,
) -> Result<String, String> {
    let mut keys = Vec::new();
    let visited = session.scan(space, range, &mut |key, _| {
        keys.push(String::from_utf8_lossy(key).into_owned());
        ControlFlow::Continue(())
    });
    same("rows visited", visited.map_err(text)?, keys.len() as u64)?;
    Ok(keys.join(" "))
}
