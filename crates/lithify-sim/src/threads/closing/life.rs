//! The lives of one database: opened, worked with, closed meanwhile, looked at, opened again.

use super::rows::{FAMILIES, Ledger, Rows, SCRATCH, compare_all, number, text};
use super::worker::{Done, Shared, Worker};
use super::{LIVES, WORKERS};
use crate::check::{Tally, panic_text};
use crate::random::Random;
use crate::references::unnamed_files;
use lithify::fs::{
    CrashKeep, FileSystem, MemoryEnvironment, MemoryFileSystem, SystemEnvironment, World,
};
use lithify::manifest::FileName;
use lithify::{CfOptions, Db, Durability, Options};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

const PATH: &str = "/closes";

/// What takes longer hangs.
const HANG: Duration = Duration::from_secs(60);

/// Files that nobody needs go within this time.
const LEFTOVERS_GO: Duration = Duration::from_secs(20);

/// Log segments that may be there: the one being written, the next one, and those kept for reuse.
const SEGMENTS_MAX: usize = 4;

/// Numbers that a worker gives in one life, at most.
const NUMBERS_OF_LIFE: u64 = 1 << 32;

/// The families' options: a little is much.
pub(super) fn family_options() -> CfOptions {
    CfOptions { table_bytes: 64 << 10, base_level_bytes_max: 64 << 10, ..CfOptions::default() }
}

/// See the module.
pub(super) struct Lives {
    files: MemoryFileSystem,
    random: Random,
    options: Options,
    /// Those of the life that ended last.
    closed_options: Options,
    ledgers: Vec<Ledger>,
    /// How often the scratch family was made.
    making: u64,
    life: u64,
    db: Option<Db>,
}

/// Something that is done in a thread of its own, so that a hang is noticed.
struct Awaited<T> {
    what: String,
    result: Receiver<Result<T, String>>,
}

impl<T: Send + 'static> Awaited<T> {
    fn start(what: String, body: impl FnOnce() -> Result<T, String> + Send + 'static) -> Self {
        let (sender, result) = channel();
        std::thread::spawn(move || {
            let done = catch_unwind(AssertUnwindSafe(body));
            let done =
                done.unwrap_or_else(|panic| Err(format!("a panic: {}", panic_text(&*panic))));
            // Nobody waits any more for what came too late.
            let _ = sender.send(done);
        });
        Awaited { what, result }
    }

    fn end(self) -> Result<T, String> {
        match self.result.recv_timeout(HANG) {
            Ok(result) => result.map_err(|wrong| format!("{}: {wrong}", self.what)),
            Err(_) => Err(format!("{} hangs", self.what)),
        }
    }
}

impl Lives {
    pub(super) fn new(files: MemoryFileSystem, random: Random) -> Lives {
        Lives {
            files,
            random,
            options: Options::default(),
            closed_options: Options::default(),
            ledgers: vec![Ledger::default(); WORKERS as usize],
            making: 0,
            life: 0,
            db: None,
        }
    }

    /// How the database was open that was closed last, for people.
    pub(super) fn settings(&self) -> String {
        let Options { durability, background_threads, .. } = self.closed_options;
        format!("durability {durability:?}, {background_threads} background threads")
    }

    fn world(&self) -> World {
        World { files: Arc::new(self.files.clone()), environment: Arc::new(SystemEnvironment) }
    }

    fn open(&mut self) -> Result<Db, String> {
        let random = &mut self.random;
        self.options = Options {
            memory_budget_bytes: 8 << 20,
            memtable_bytes: 64 << 10,
            wal_bytes_max: 256 << 10,
            background_threads: random.between(1, 2) as usize,
            durability: *random.pick(&[
                Durability::None,
                Durability::Buffered,
                Durability::Sync,
                Durability::Interval { milliseconds: 1 },
            ]),
            ..Options::default()
        };
        let db = Db::open_in(PATH, self.options.clone(), self.world());
        let db = db.map_err(|error| format!("it does not open: {error}"))?;
        for name in FAMILIES.into_iter().chain([SCRATCH]) {
            db.column_family(name, family_options()).map_err(text)?;
        }
        Ok(db)
    }

    /// One life, with the opening after it.
    pub(super) fn live(&mut self, tally: &mut Tally) -> Result<(), String> {
        let db = match self.db.take() {
            Some(db) => db,
            None => self.open()?,
        };
        self.closed_options = self.options.clone();
        let family = |name| db.column_family(name, family_options()).map_err(text);
        let families = FAMILIES.into_iter().map(family).collect::<Result<Vec<_>, _>>()?;
        let scratch = RwLock::new((self.making, family(SCRATCH)?));
        let world = self.world();
        let shared = Arc::new(Shared { db: RwLock::new(Some(db)), families, scratch, world });
        let mut workers = self.start_workers(&shared);
        std::thread::sleep(Duration::from_micros(self.random.below(10_000)));
        let closing = Arc::clone(&shared);
        let closed = Awaited::start("the close".to_string(), move || {
            let db = closing.db.write().unwrap_or_else(PoisonError::into_inner).take();
            db.map_or(Ok(()), |db| db.close().map_err(text))
        });
        closed.end()?;
        check_closed(&self.files)?;
        let keep = *self.random.pick(&[CrashKeep::Nothing, CrashKeep::Random]);
        let cut = self.files.crash_clone(self.random.next(), keep);
        let is_opened_first = self.random.one_in(2);
        let opened = if is_opened_first { Some(self.open()?) } else { None };
        let done = workers.drain(..).map(Awaited::end).collect::<Result<Vec<_>, _>>()?;
        self.making = shared.scratch.read().unwrap_or_else(PoisonError::into_inner).0;
        drop(shared);
        let refused: Vec<_> = done.iter().map(|done| done.first_refused).collect();
        self.note(done, tally);
        let told = |wrong: String| format!("{wrong}; first refused of each worker: {refused:?}");
        let after_cut = self.compare_image(cut).map_err(told);
        tally.count("rows compared", after_cut.map_err(|wrong| format!("a power cut: {wrong}"))?);
        let db = match opened {
            Some(db) => db,
            None => self.open()?,
        };
        let found = compare_all(&db, &self.ledgers, self.making).map_err(told);
        tally.count("rows compared", found.map_err(|wrong| format!("opened again: {wrong}"))?);
        check_leftovers(&db, &self.files)?;
        self.db = Some(db);
        self.life += 1;
        Ok(())
    }

    fn start_workers(&mut self, shared: &Arc<Shared>) -> Vec<Awaited<Done>> {
        let ledgers = std::mem::take(&mut self.ledgers);
        let first_number = self.life * NUMBERS_OF_LIFE;
        debug_assert!(self.life < LIVES);
        let start = |(name, ledger): (u64, Ledger)| {
            let random = Random::new(self.random.next());
            let worker = Worker::new(shared, (name, first_number), random, ledger);
            Awaited::start(format!("worker {name}"), move || worker.work())
        };
        (0..).zip(ledgers).map(start).collect()
    }

    fn note(&mut self, done: Vec<Done>, tally: &mut Tally) {
        tally.count("closes", 1);
        for done in done {
            tally.count("done", done.done);
            tally.count("refused", done.refused);
            tally.count("ingests done", done.ingests);
            tally.count("checkpoints compared", done.checkpoints);
            self.ledgers.push(done.ledger);
        }
    }

    /// What a power cut has left, in a world without threads.
    fn compare_image(&self, files: MemoryFileSystem) -> Result<u64, String> {
        let world =
            World { files: Arc::new(files), environment: Arc::new(MemoryEnvironment::new(1)) };
        let options = Options { background_threads: 0, ..self.closed_options.clone() };
        let db = Db::open_in(PATH, options, world);
        let db = db.map_err(|error| format!("it does not open: {error}"))?;
        compare_all(&db, &self.ledgers, self.making)
    }

    /// The last close, beside nobody: everything is there after it, and no file too many.
    pub(super) fn end(&mut self) -> Result<(), String> {
        let Some(db) = self.db.take() else { return Ok(()) };
        Awaited::start("the close".to_string(), move || db.close().map_err(text)).end()?;
        check_closed(&self.files)?;
        let cut = self.files.crash_clone(0, CrashKeep::Nothing);
        self.compare_image(cut).map(drop)
    }
}

/// Compares the rows of a prefix in a checkpoint, and removes it.
pub(super) fn compare_checkpoint<'r>(
    world: &World,
    path: &str,
    prefix: &[u8],
    expected: impl Fn(usize) -> &'r Rows,
) -> Result<(), String> {
    let environment = Arc::new(MemoryEnvironment::new(1));
    let beside = World { files: Arc::clone(&world.files), environment };
    let options = Options { background_threads: 0, ..Options::default() };
    let failed = |error: lithify::Error| format!("a checkpoint: {error}");
    let db = Db::open_in(path, options, beside).map_err(failed)?;
    for (slot, name) in FAMILIES.iter().enumerate() {
        let family = db.existing_column_family(name).map_err(failed)?;
        let family = family.ok_or_else(|| format!("a checkpoint has no family {name:?}"))?;
        let mut cursor = family.prefix_cursor(prefix).map_err(failed)?;
        let mut found = Vec::new();
        while cursor.next().map_err(failed)? {
            found.push((cursor.key().to_vec(), number(cursor.value())));
        }
        let known = expected(slot).iter().map(|(key, known)| (key.clone(), known.number));
        if !known.eq(found.iter().cloned()) {
            return Err(format!("a checkpoint shows other rows of family {name:?}"));
        }
    }
    db.close().map_err(failed)?;
    let directory = Path::new(path);
    for name in world.files.list(directory).map_err(failed)? {
        world.files.remove(&directory.join(name)).map_err(failed)?;
    }
    world.files.remove_directory(directory).map_err(failed)
}

/// A clean close leaves no table that nothing refers to.
fn check_closed(files: &MemoryFileSystem) -> Result<(), String> {
    let mut unnamed = unnamed_files(files, Path::new(PATH))?;
    unnamed.retain(|name| matches!(name, FileName::Table(_)));
    match unnamed.is_empty() {
        true => Ok(()),
        false => Err(format!("the close has left {unnamed:?}")),
    }
}

/// The directory holds what is live, and no more.
fn check_leftovers(db: &Db, files: &MemoryFileSystem) -> Result<(), String> {
    db.flush().map_err(text)?;
    let begun = Instant::now();
    loop {
        db.wait_for_compaction().map_err(text)?;
        let names = files.list(Path::new(PATH)).map_err(text)?;
        let count =
            |end: &str| names.iter().filter(|name| name.to_string_lossy().ends_with(end)).count();
        let live: u64 = db.stats().levels.iter().map(|level| level.files).sum();
        let (tables, segments, temporary) = (count(".sst"), count(".wal"), count(".tmp"));
        if tables as u64 == live && segments <= SEGMENTS_MAX && temporary == 0 {
            return Ok(());
        }
        if begun.elapsed() > LEFTOVERS_GO {
            return Err(format!("{live} tables are live, but there are {names:?}"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
