//! What nobody needs any more goes: tables that were replaced, those of work that a full disk
//! refused, log segments behind the last flush, old manifests.
//!
//! A case fills a database by rounds, with snapshots and cursors that hold tables, families dropped
//! and made, and table files that the disk refuses. At the end of a round everything is let go and
//! flushed, the disk is well, and the directory must hold what is live, and no more. Some cases have
//! databases with threads of their own; there it must do so after a while.

use crate::check::{Check, Finding, Tally};
use crate::random::Random;
use lithify::fs::{
    Environment, FileCall, FileCallKind, FileSystem, MemoryEnvironment, MemoryFileSystem,
    SystemEnvironment, World,
};
use lithify::{CfOptions, ColumnFamily, Db, Durability, ErrorKind, Options, Result as Answer};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const DIRECTORY: &str = "/base";
const FAMILIES: [&str; 2] = ["a", "b"];
const ROUNDS: u64 = 6;
const KEYS: u64 = 400;

/// The segment being written, the next one, and those that wait to be used again.
const SEGMENTS_MAX: usize = 4;

/// One case of so many has threads.
const THREADED: u64 = 4;

/// With threads files go within this time.
const LEFTOVERS_GO: Duration = Duration::from_secs(20);

/// The check; see the module.
pub struct Leftovers;

struct Case {
    files: MemoryFileSystem,
    environment: MemoryEnvironment,
    random: Random,
    db: Db,
    families: Vec<ColumnFamily>,
}

fn family_options() -> CfOptions {
    CfOptions { table_bytes: 64 << 10, base_level_bytes_max: 64 << 10, ..CfOptions::default() }
}

impl Case {
    fn new(case: u64) -> Answer<Case> {
        let mut random = Random::new(case);
        let (files, environment) = (MemoryFileSystem::new(), MemoryEnvironment::new(case));
        let background_threads =
            if case % THREADED == THREADED - 1 { random.between(1, 2) as usize } else { 0 };
        let options = Options {
            memory_budget_bytes: 4 << 20,
            memtable_bytes: 64 << 10,
            wal_bytes_max: 256 << 10,
            background_threads,
            durability: *random.pick(&[Durability::Buffered, Durability::Sync, Durability::None]),
            ..Options::default()
        };
        let clock: Arc<dyn Environment> = match background_threads {
            0 => Arc::new(environment.clone()),
            _ => Arc::new(SystemEnvironment),
        };
        let world = World { files: Arc::new(files.clone()), environment: clock };
        let db = Db::open_in(DIRECTORY, options, world)?;
        let families = FAMILIES.map(|name| db.column_family(name, family_options()));
        let families = families.into_iter().collect::<Answer<_>>()?;
        Ok(Case { files, environment, random, db, families })
    }

    fn key(&mut self) -> [u8; 8] {
        self.random.below(KEYS).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
    }

    fn write(&mut self) -> Answer<()> {
        let (key, other) = (self.key(), self.key());
        let family = self.random.below(FAMILIES.len() as u64) as usize;
        let family = &self.families[family];
        match self.random.below(40) {
            0 => family.delete_range(key.min(other), key.max(other)),
            1..=6 => family.delete(key),
            7 => family.flush(),
            8 if self.random.one_in(4) => family.compact_range(..),
            _ => {
                let value: Vec<u8> =
                    (0..300).flat_map(|_| self.random.next().to_le_bytes()).collect();
                family.put(key, &value)
            }
        }
    }

    /// Writes, with something held, and now and then with a disk that refuses tables.
    fn round(&mut self) -> Answer<()> {
        if self.random.one_in(3) {
            refuse_tables(&self.files, self.random.between(2, 9));
        }
        let snapshot = self.random.one_in(2).then(|| self.db.snapshot());
        let mut cursor = None;
        for number in 0..self.random.between(50, 300) {
            match self.write() {
                Err(error) if error.kind() == ErrorKind::NoSpace => self.files.clear_fault(),
                written => written?,
            }
            if number == 40 && self.random.one_in(2) {
                cursor = Some(self.families[0].cursor(..)?);
            }
        }
        self.files.clear_fault();
        drop((snapshot, cursor));
        if self.random.one_in(4) {
            self.db.drop_column_family(FAMILIES[1])?;
            self.families[1] = self.db.column_family(FAMILIES[1], family_options())?;
        }
        Ok(())
    }

    /// Compares the directory with what is live; with threads until it is so, or for long enough.
    fn look_until_clean(&self) -> Answer<Result<(), String>> {
        let begun = Instant::now();
        loop {
            let seen = self.look();
            let is_over =
                self.db.options().background_threads == 0 || begun.elapsed() > LEFTOVERS_GO;
            match seen {
                Ok(Err(_)) if !is_over => {}
                // A flush that the full disk had refused may be told of only now.
                Err(error) if error.kind() == ErrorKind::NoSpace && !is_over => {}
                seen => return seen,
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn look(&self) -> Answer<Result<(), String>> {
        self.db.flush()?;
        self.db.wait_for_compaction()?;
        let names = self.files.list(Path::new(DIRECTORY))?;
        let count = |is_one: &dyn Fn(&str) -> bool| {
            names.iter().filter_map(|name| name.to_str()).filter(|name| is_one(name)).count()
        };
        let live_tables: u64 = self.db.stats().levels.iter().map(|level| level.files).sum();
        let tables = count(&|name| name.ends_with(".sst"));
        let segments = count(&|name| name.ends_with(".wal"));
        let manifests = count(&|name| name.starts_with("MANIFEST"));
        let temporary = count(&|name| name.ends_with(".tmp"));
        let expected = format!("{live_tables} tables, at most {SEGMENTS_MAX} segments, 1 manifest");
        Ok(match () {
            () if self.environment.endless_waits() > 0 => Err("a wait without end".to_string()),
            () if tables as u64 == live_tables
                && segments <= SEGMENTS_MAX
                && (manifests, temporary) == (1, 0) =>
            {
                Ok(())
            }
            () => Err(format!(
                "{expected} are in use, but there are {tables} tables, {segments} segments, \
                 {manifests} manifests, {temporary} temporary files: {names:?}"
            )),
        })
    }
}

/// Lets the disk be full for table files after so many writes to them.
fn refuse_tables(files: &MemoryFileSystem, after: u64) {
    let writes = AtomicU64::new(0);
    files.set_fault(Box::new(move |call: &FileCall<'_>| {
        let is_of_table = call.path.extension().is_some_and(|extension| extension == "sst");
        let is_refused = is_of_table
            && call.kind == FileCallKind::Write
            && writes.fetch_add(1, Ordering::SeqCst) >= after;
        is_refused.then(|| io::Error::from(io::ErrorKind::StorageFull))
    }));
}

fn run(number: u64, tally: &mut Tally) -> Answer<Result<(), String>> {
    let mut case = Case::new(number)?;
    for round in 0..ROUNDS {
        case.round()?;
        if let Err(what) = case.look_until_clean()? {
            return Ok(Err(format!("round {round}: {what}")));
        }
        tally.count("directories compared", 1);
    }
    case.db.close()?;
    Ok(Ok(()))
}

impl Check for Leftovers {
    fn name(&self) -> &'static str {
        "leftovers"
    }

    fn about(&self) -> &'static str {
        "files that nobody needs go, those of work that a full disk refused too"
    }

    fn cases(&self) -> Option<u64> {
        None
    }

    fn run_case(&self, case: u64, tally: &mut Tally) -> Result<(), Finding> {
        let outcome = run(case, tally).unwrap_or_else(|error| Err(error.to_string()));
        outcome.map_err(|what| Finding::new(self, case, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::run_case;

    #[test]
    fn directories_hold_what_is_live() {
        let mut tally = Tally::default();
        for case in 0..6 {
            run_case(&Leftovers, case, &mut tally).unwrap();
        }
        assert_eq!(tally.get("directories compared"), 6 * ROUNDS);
    }
}
