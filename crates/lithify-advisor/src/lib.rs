//! The advisor: from a user's own data to the compression settings of the database they run.
//!
//! Owns: reading data where it is sampled ([`input`], [`sample`]), laying rows out as a database would
//! ([`units`]), calling codecs by the thread's CPU time ([`measure`]), what databases can be set to and
//! what becomes of a unit there ([`targets`]), the choice at prices ([`answer`], [`tree`]), its renderings
//! ([`screen`], [`page`], [`json`]), advice that was saved ([`profile`]), what came of it ([`check`]),
//! whether it still holds ([`compare`]), and what a ladder that is set costs ([`ladder`]).
//!
//! Promises: data are only read, and nothing of them is kept or printed but figures and the names of
//! columns, unless rows are asked for. Every figure that is no certainty comes with its interval or is called an assumption. The
//! cost equation is the engine's own: [`lithify::chooser::price`].
//!
//! How it works:
//!
//! 1. 64 evenly spaced places of the data are read, and the order of their rows is tested.
//! 2. Where a database has them in another order, one pass over the data collects places of it.
//! 3. Codecs are called on units of all places, a third of them held out.
//!    Targets take turns, so that each gets an answer..
//! 4. Every setting gets a size, CPU times and a cost. The cheapest is the advice.
//! 5. While there is time and an interval is too wide, twice as many places are looked at.
//!
//! ```no_run
//! use lithify_advisor::{Request, Silent, advise, screen};
//! let advice = advise(&Request::new("events.jsonl"), &Silent)?;
//! println!("{}", screen::render(&advice, 100));
//! # Ok::<(), lithify_advisor::AdviseError>(())
//! ```

pub mod answer;
pub mod check;
mod columns;
pub mod compare;
mod error;
pub mod estimate;
mod gather;
pub mod input;
pub mod json;
pub mod ladder;
pub mod measure;
pub mod page;
pub mod profile;
pub mod rows;
pub mod sample;
pub mod screen;
mod study;
pub mod targets;
pub mod tree;
mod turns;
pub mod units;
mod unknown;
mod watch;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use lithify::{Objective, Prices};

pub use answer::{Advice, Expectations};
pub use error::{AdviseError, Result};
pub use input::Format;
pub use watch::{Early, Silent, Watch};

use input::Source;
use study::Study;
use targets::{TARGETS, Target};

/// What advice is wanted for.
#[derive(Clone, Debug)]
pub struct Request {
    /// A file, a directory of files, a Lithify database, or a profile.
    pub path: PathBuf,
    /// The format, where the guess is wrong.
    pub format: Option<Format>,
    /// The column family of a database; the largest without a name.
    pub table: Option<String>,
    /// Columns or fields of the key, in its order.
    pub key: Vec<String>,
    /// The key where none is named and the data have none of their own.
    pub usual_key: Vec<String>,
    /// For whom. Without any: the database that the data are in, else all that can hold such data.
    pub targets: Vec<Target>,
    /// How long it may take.
    pub time: Duration,
    /// What is wanted, as it is called: "balanced".
    pub goal: String,
    /// What resources are worth.
    pub prices: Prices,
    /// What is known of reads and of how long data live.
    pub expectations: Expectations,
    /// Whether the answer quotes some rows.
    pub shows_samples: bool,
}

impl Request {
    /// A request with what is usual.
    pub fn new(path: impl Into<PathBuf>) -> Request {
        Request {
            path: path.into(),
            format: None,
            table: None,
            key: Vec::new(),
            usual_key: Vec::new(),
            targets: Vec::new(),
            time: Duration::from_secs(60),
            goal: "balanced".to_owned(),
            prices: Objective::Balanced.prices(),
            expectations: Expectations::default(),
            shows_samples: false,
        }
    }
}

/// A target by its name.
///
/// # Errors
/// There is none of that name; the error lists them.
pub fn target(name: &str) -> Result<Target> {
    TARGETS.iter().find(|target| target.name == name).copied().ok_or_else(|| {
        let instead = INSTEAD.iter().find(|(names, _)| names.contains(&name));
        let instead = instead.map_or_else(String::new, |(_, what)| format!("; {what}"));
        let names = TARGETS.iter().map(|target| target.name).collect::<Vec<_>>().join(", ");
        AdviseError::usage(format_args!("no target '{name}'{instead}; there are: {names}"))
    })
}

/// What is said of names that people use.
const INSTEAD: &[(&[&str], &str)] = &[
    (
        &["mysql", "mariadb", "percona"],
        "its tables are of innodb, innodb-compressed or myrocks: name the engine",
    ),
    (&["mongo"], "MongoDB is mongodb"),
    (&["scylladb"], "Scylla is scylla"),
    (
        &["postgres", "postgresql", "pg"],
        "PostgreSQL is not among the targets: it compresses values of more than 2 KB, and no pages; \
         btrfs or zfs can hold its files",
    ),
    (
        &["clickhouse", "duckdb", "parquet"],
        "it compresses columns, of which blocks of rows tell nothing",
    ),
    (&["kafka-streams", "flink", "tikv", "tidb"], "its state is in RocksDB: rocksdb"),
    (&["kafka"], "Kafka compresses batches of its producers, which are not among the targets"),
    (&["sqlite", "sqlite3"], "SQLite compresses nothing"),
];

/// Opens the data, measures them and gives advice for every target.
///
/// # Errors
/// The data cannot be read or are not what they seem, the request does not fit them, or `watch` ends
/// it.
pub fn advise(request: &Request, watch: &dyn Watch) -> Result<Advice> {
    if profile::is_profile(&request.path) {
        let is_of_data = request.format.is_some()
            || request.table.is_some()
            || !request.key.is_empty()
            || request.shows_samples;
        if is_of_data {
            let what = "is a profile: --key, --table, --format and --show-samples are of data";
            return Err(AdviseError::usage(format_args!("{} {what}", request.path.display())));
        }
        return profile::read(request);
    }
    let table = request.table.as_deref();
    let open = |key: &[String]| input::open(&request.path, request.format, key, table, watch);
    let mut source = open(&request.key)?;
    if source.facts().key.is_empty() && !request.usual_key.is_empty() {
        source = open(&request.usual_key)?;
    }
    advise_source(&mut *source, request, watch)
}

/// Measures data that somebody else has opened, and gives advice for every target.
///
/// # Errors
/// Those of [`advise`].
pub fn advise_source(
    source: &mut dyn Source,
    request: &Request,
    watch: &dyn Watch,
) -> Result<Advice> {
    let began = Instant::now();
    let targets = fitting(source, request)?;
    source.prepare(watch)?;
    let mut study = Study::begin(source, request, &targets, began, watch)?;
    study.measure(watch)?;
    study.improve(watch)?;
    study.check_unchanged()?;
    Ok(study.into_advice(request, began.elapsed(), watch.is_hurried()))
}

/// The targets that can hold the data.
fn fitting(source: &dyn Source, request: &Request) -> Result<Vec<Target>> {
    let facts = source.facts();
    let fits = |target: &Target| if target.needs_rows { facts.has_rows } else { facts.has_bytes };
    let is_choice = request.targets.len() < TARGETS.len();
    if let Some(target) = request.targets.iter().find(|target| is_choice && !fits(target)) {
        let (title, path) = (target.title, input::shown(&request.path));
        let what = match target.needs_rows {
            true => format!(
                "{title} stores rows, and {path} is read as bytes without any: name one file, or what \
                 its rows are with --format csv, tsv, json or lines"
            ),
            false => format!("{title} stores files, and {path} is read as rows: --format bytes"),
        };
        let notes: String = source.notes().iter().map(|note| format!(". {note}")).collect();
        return Err(AdviseError::usage(format_args!("{what}{notes}")));
    }
    if request.targets.is_empty() && !facts.native.is_empty() {
        return facts.native.iter().map(|name| target(name)).collect();
    }
    // All of them, without those that do not fit.
    let wanted = if request.targets.is_empty() { TARGETS } else { &request.targets };
    Ok(wanted.iter().filter(|target| fits(target)).copied().collect())
}
