//! What an event listener hears of jobs: of each one beginning, then one end, and the end once what it wrote is
//! live.
//!
//! With background threads others may replace the tables of a job before its end is told, so there only
//! beginnings and ends are counted.

use super::disk::DIRECTORY;
use super::session::Session;
use lithify::fs::MemoryFileSystem;
use lithify::manifest::LoadedManifest;
use lithify::stats::{JobEnd, JobKind, JobOutcome};
use lithify::{Event, EventListener, Options};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The numbers of the tables that the manifest names, by family.
type Live = BTreeMap<Arc<str>, BTreeSet<u64>>;

#[derive(Default)]
struct Jobs {
    /// What was live when each job that has not ended began.
    begun: BTreeMap<u64, Live>,
    /// Families that were dropped: what their jobs write is removed again, and another one may have the name.
    dropped: BTreeSet<&'static str>,
    /// The first thing that was told wrongly.
    wrong: Option<String>,
}

/// What was heard since the database was opened.
#[derive(Default)]
pub(super) struct Heard(Arc<Mutex<Jobs>>);

fn live(files: &MemoryFileSystem) -> Live {
    let Ok(loaded) = LoadedManifest::read(files, Path::new(DIRECTORY), &mut |_, _| {}) else {
        return Live::new();
    };
    let families = loaded.state.families.values().map(|family| {
        let tables = family.version.tables().map(|(_, table)| table.metadata.number);
        (family.name.clone(), tables.collect())
    });
    families.collect()
}

impl Jobs {
    fn hear(&mut self, event: &Event, live: impl FnOnce() -> Live) {
        let heard = match event {
            Event::JobBegan(job) => match self.begun.insert(job.number, live()) {
                Some(_) => Err(format!("the beginning of job {} was told twice", job.number)),
                None => Ok(()),
            },
            Event::JobEnded(end) => self.hear_end(end, live),
            _ => Ok(()),
        };
        if let Err(wrong) = heard {
            self.wrong.get_or_insert(wrong);
        }
    }

    fn hear_end(&mut self, end: &JobEnd, live: impl FnOnce() -> Live) -> Result<(), String> {
        // An end is all that is told of it.
        if end.job.kind == JobKind::WriteStop {
            return Ok(());
        }
        let Some(before) = self.begun.remove(&end.job.number) else {
            return Err(format!("an end was told of a job that was not under way: {end:?}"));
        };
        let is_written = matches!(end.job.kind, JobKind::Flush | JobKind::Compaction);
        if !is_written || self.dropped.contains(&*end.job.family) {
            return Ok(());
        }
        let now = live();
        let Some(now) = now.get(&*end.job.family) else { return Ok(()) };
        let no_tables = BTreeSet::new();
        let before = before.get(&*end.job.family).unwrap_or(&no_tables);
        let new = now.difference(before).count() as u64;
        match end.outcome {
            JobOutcome::Done if new < end.tables_out => {
                Err(format!("{new} tables were live when this end was told: {end:?}"))
            }
            _ => Ok(()),
        }
    }
}

impl Heard {
    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A family is about to be dropped.
    pub(super) fn note_dropped(&self, family: &'static str) {
        self.jobs().dropped.insert(family);
    }

    /// What was told was right.
    pub(super) fn check(&self) -> Result<(), String> {
        self.jobs().wrong.take().map_or(Ok(()), Err)
    }

    /// The database is closed: all jobs have ended.
    pub(super) fn check_end(&self) -> Result<(), String> {
        self.check()?;
        let jobs = self.jobs();
        match jobs.begun.keys().next() {
            Some(job) => Err(format!("the end of job {job} was never told")),
            None => Ok(()),
        }
    }
}

impl Session<'_> {
    /// Options of an opening, with who hears of its jobs.
    pub(super) fn listening(&mut self, options: Options) -> Options {
        self.heard = Heard::default();
        let (filter, jobs) = (self.filtering.hearer(), Arc::clone(&self.heard.0));
        let files = self.disk.files.clone();
        let is_alone = self.disk.has_virtual_time();
        let event_listener = EventListener::new(move |event| {
            filter(event);
            let live = || if is_alone { live(&files) } else { Live::new() };
            jobs.lock().unwrap_or_else(PoisonError::into_inner).hear(event, live);
        });
        Options { event_listener, ..options }
    }
}
