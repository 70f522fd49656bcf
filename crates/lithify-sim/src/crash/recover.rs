//! Opens what a crash left and looks at all of it.

use super::actor::{Actor, DIRECTORY, handles, open};
use super::history::{Found, History};
use crate::digest;
use crate::filtered::all_rows;
use crate::operation::{Change, FAMILY_COUNT, Operation, Value, Write};
use crate::references::check_opened;
use lithify::fs::{FileCallKind, MemoryEnvironment, MemoryFileSystem};
use lithify::{Db, Options};
use std::path::Path;
use std::sync::Arc;

/// More waits than this in one call are a wait without end.
const WAITS_MAX: u64 = 100_000;

/// What a sync of a common disk takes, in microseconds, and any other call.
const SYNC_US: u64 = 1_000;
const CALL_US: u64 = 10;

/// A database that was opened after a crash.
pub struct Recovered {
    /// The database.
    pub db: Db,
    /// What it shows.
    pub found: Found,
    /// Calls to the file system that opening made.
    pub calls: u64,
    /// What these take on a common disk, in microseconds.
    pub disk_us: u64,
}

/// An environment at a time in which a wait without end is a panic instead of a hang.
pub fn watched_environment(seed: u64, now_us: u64) -> MemoryEnvironment {
    let environment = MemoryEnvironment::new(seed);
    environment.advance_us(now_us);
    environment.set_watch(Box::new(|waits| {
        assert!(waits < WAITS_MAX, "a hang: {waits} waits, and nothing that was waited for");
    }));
    environment
}

/// Opens at a time, reads every row of every family, and compares the files with the manifest. No filter is in force,
/// not even in the slot that has one: what is found is what the crash left.
///
/// # Errors
/// What was found to be wrong.
pub fn recover(
    files: &MemoryFileSystem,
    options: &Options,
    filter: Option<usize>,
    now_us: u64,
) -> Result<Recovered, String> {
    let environment = watched_environment(1, now_us);
    let calls_before = files.call_count();
    let db =
        open(files, &environment, options).map_err(|error| format!("it does not open: {error}"))?;
    let calls = files.call_count() - calls_before;
    let syncs = files.calls(FileCallKind::SyncData) + files.calls(FileCallKind::SyncDirectory);
    let found = read_all(&db, filter).map_err(|error| format!("it cannot be read: {error}"))?;
    check_opened(&db, files, Path::new(DIRECTORY))?;
    match environment.endless_waits() {
        0 => Ok(Recovered { db, found, calls, disk_us: calls * CALL_US + syncs * SYNC_US }),
        waits => Err(format!("{waits} waits without an end while it was opened")),
    }
}

/// What a scan of each family finds; of the one with a filter its rows.
///
/// # Errors
/// What reading meets.
pub fn read_all(db: &Db, filter: Option<usize>) -> lithify::Result<Found> {
    let mut found = Found::default();
    for (slot, family) in handles(db)?.into_iter().enumerate() {
        let Some(family) = family else { continue };
        let mut sum = 0_u64;
        if filter == Some(slot) {
            let rows = all_rows(&family)?;
            let digests = rows.iter().map(|(key, value)| digest::of_row(key, value));
            sum = digests.fold(sum, u64::wrapping_add);
            found.filtered = Some((slot, Arc::new(rows)));
        } else {
            let mut rows = family.cursor(..)?;
            while rows.next()? {
                sum = sum.wrapping_add(digest::of_row(rows.key(), rows.value()));
            }
        }
        found.digests[slot] = Some(sum);
    }
    Ok(found)
}

/// Compares all rows with the state that was found and a history goes on from, key by key, and works with the
/// database: it takes writes, flushes, compacts, lets rows expire, closes and opens again.
///
/// # Errors
/// What goes wrong.
pub fn work_on(
    files: &MemoryFileSystem,
    options: &Options,
    db: Db,
    history: History,
) -> Result<(), String> {
    let failed = |error: lithify::Error| format!("it does not go on: {error}");
    let environment = watched_environment(2, history.moment().now_us);
    let (state, filter) = (history.now(), history.filter());
    for (slot, handle) in handles(&db).map_err(failed)?.iter().enumerate() {
        let (Some(handle), Some(content)) = (handle, state.family(slot)) else { continue };
        for (key, value) in content.rows().iter() {
            let found = handle.get(key).map_err(failed)?;
            if found.as_deref() != Some(&value[..]) {
                return Err(format!("a get of {key:?} finds {found:?}"));
            }
        }
    }
    drop(db);
    let mut actor = Actor::new(files, &environment, options, history);
    actor.open().map_err(failed)?;
    let value = Value { seed: 77, length: 100 };
    let put = |family, key: &str| Write { family, change: Change::Put(key.into(), value) };
    let reopening = || {
        Operation::Reopen(
            crate::operation::Ending::Close,
            Box::new(crate::operation::Settings {
                database: options.clone(),
                families: Default::default(),
            }),
        )
    };
    let operations = [
        Operation::CreateFamily(0, Box::default()),
        Operation::Write(put(0, "after the crash")),
        Operation::Batch {
            writes: (0..FAMILY_COUNT).map(|slot| put(slot, "k")).collect(),
            is_synced: true,
        },
        Operation::CompareAll,
        Operation::Flush(None),
        Operation::Write(put(0, "k")),
        Operation::Settle,
        Operation::Age,
        Operation::CompareAll,
        reopening(),
        Operation::CompareAll,
        Operation::Age,
        Operation::CompareAll,
    ];
    operations.iter().try_for_each(|operation| actor.perform(operation)).map_err(failed)?;
    let now_us = actor.witness().history().moment().now_us;
    actor.let_go();
    recover(files, options, filter, now_us).map(drop)
}
