//! How a database ends and is opened again, and what is checked on the way: that nothing is lost,
//! that every file is whole, that the ledger is that of the files.

use super::disk::{CallRecord, DIRECTORY, Disk};
use super::filtered::Filtering;
use super::heard::Heard;
use super::ledger::Before;
use super::session::{Session, expect_kind};
use super::transactions::Changes;
use crate::check::Tally;
use crate::model::State;
use crate::operation::{Ending, FAMILIES, FAMILY_COUNT, Settings};
use lithify::fs::MemoryFileSystem;
use lithify::inspect::{LevelsOptions, read_levels};
use lithify::stats::{Counter, JobFigure};
use lithify::{Db, ErrorKind};

impl<'t> Session<'t> {
    /// A new database on an empty disk.
    pub(super) fn begin(
        seed: u64,
        settings: &Settings,
        record: Option<CallRecord>,
        tally: &'t mut Tally,
    ) -> Result<Session<'t>, String> {
        let has_threads = settings.database.background_threads > 0;
        let disk = Disk::new(MemoryFileSystem::new(), seed, has_threads, record);
        let before = Before::now(&disk);
        let mut session = Session {
            disk,
            seed,
            filtering: Filtering::new(seed, has_threads),
            heard: Heard::default(),
            settings: settings.clone(),
            db: None,
            handles: Default::default(),
            state: State::default(),
            snapshots: Default::default(),
            cursors: Default::default(),
            transactions: Default::default(),
            changes: Changes::default(),
            backups: Default::default(),
            before,
            rows_compared: 0,
            tally,
            next_number: 0,
        };
        session.open()?;
        Ok(session)
    }

    /// Opens the database with the settings at hand, and compares everything.
    fn open(&mut self) -> Result<(), String> {
        let failed = |error: lithify::Error| format!("opening: {error}");
        self.before = Before::now(&self.disk);
        let options = self.listening(self.settings.database.clone());
        let db = Db::open_in(DIRECTORY, options, self.disk.world()).map_err(failed)?;
        self.changes = Changes::default();
        let mut names = db.column_family_names();
        names.sort();
        let slots = (0..FAMILY_COUNT).filter(|slot| self.state.family(*slot).is_some());
        let expected: Vec<&str> = slots.map(|slot| FAMILIES[slot]).collect();
        if names != expected {
            return Err(format!("there are the families {names:?}, not {expected:?}"));
        }
        let settings = self.settings.families.iter().zip(FAMILIES).enumerate();
        for (slot, (options, name)) in settings {
            self.handles[slot] = match self.state.family(slot) {
                Some(_) => {
                    let family = db.column_family(name, options.clone()).map_err(failed)?;
                    self.supply(&family, slot).map_err(failed)?;
                    Some(family)
                }
                None => None,
            };
        }
        self.db = Some(db);
        self.follow_filter()?;
        self.compare_all(false)?;
        self.reconcile("after opening")
    }

    /// The ledger against the files. With threads both change meanwhile.
    fn reconcile(&mut self, when: &str) -> Result<(), String> {
        if self.settings.database.background_threads > 0 {
            return Ok(());
        }
        self.tally.count("ledgers reconciled", 1);
        self.before.reconcile(&self.disk, self.db()).map_err(|what| format!("{when}: {what}"))
    }

    /// Ends the database and opens it with other settings.
    pub(super) fn reopen(&mut self, ending: Ending, settings: &Settings) -> Result<(), String> {
        self.end(ending)?;
        self.settings = settings.clone();
        self.tally.count("reopenings", 1);
        self.open()
    }

    /// Ends the database and checks what is left of it.
    pub(super) fn end(&mut self, ending: Ending) -> Result<(), String> {
        self.cursors = Default::default();
        self.transactions = Default::default();
        self.snapshots = Default::default();
        self.reconcile("before the end")?;
        self.count_work();
        let handle = self.handles.iter_mut().find_map(Option::take);
        self.handles = Default::default();
        let Some(db) = self.db.take() else { return Ok(()) };
        match ending {
            Ending::Kill if !self.is_logless() => {
                self.next_number += 1;
                let seed = self.next_number.wrapping_add(self.disk.now_us());
                let next = self.disk.after_process_end(seed);
                drop((db, handle));
                self.check_waits()?;
                self.disk = next;
            }
            Ending::Drop => drop((db, handle)),
            Ending::Close | Ending::Kill => {
                db.close().map_err(|error| format!("closing: {error}"))?;
                if let Some(handle) = handle {
                    expect_kind("a get after the close", handle.get(b"k"), ErrorKind::Closed)?;
                }
            }
        }
        self.check_waits()?;
        self.heard.check_end()?;
        self.check_files()
    }

    fn check_waits(&self) -> Result<(), String> {
        match self.disk.endless_waits() {
            0 => Ok(()),
            _ => Err("a wait that would never have ended".to_string()),
        }
    }

    /// Every block of every table: checksum, order, index, filter.
    fn check_files(&mut self) -> Result<(), String> {
        let options = LevelsOptions { check: true };
        let levels = read_levels(&self.disk.files, Self::directory(), &options)
            .map_err(|error| format!("the files: {error}"))?;
        match levels.damage.first() {
            Some(error) => Err(format!("the files: {error}")),
            None => Ok(()),
        }
    }

    /// What the engine did in the background, so that it is known whether a run meant anything.
    fn count_work(&mut self) {
        let stats = self.db().stats();
        let jobs = |level| {
            stats.figures.job(level, JobFigure::Jobs) + stats.figures.job(level, JobFigure::Moves)
        };
        let levels = stats.levels.iter().filter(|level| level.files > 0).count();
        let compactions = (1..stats.levels.len()).map(jobs).sum();
        let misuses = stats.figures.counter(Counter::SingleDeleteMisuses);
        self.tally.count("flushes", jobs(0));
        self.tally.count("compactions and moves", compactions);
        self.tally.count("databases of 3 levels and more", u64::from(levels >= 3));
        self.tally.count("single delete misuses", misuses);
    }
}
