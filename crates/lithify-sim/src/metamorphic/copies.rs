//! Copies of a database that goes on: checkpoints, backups and what is restored of them, readers
//! beside it. Each has the rows of its moment, is sound, and leaves the database as it was.

use super::cursor::{ModelCursor, scan_range};
use super::disk::Disk;
use super::ledger::Before;
use super::session::{Session, text};
use crate::model::State;
use crate::operation::{CopyWay, FAMILIES, FAMILY_COUNT, Move, Settings, Span, operators};
use crate::random::Random;
use lithify::backup::{BackupId, BackupOptions, BackupStore, RestoreOptions};
use lithify::fs::{CountingFileSystem, FileCounts, World};
use lithify::verify::{VerifyOptions, VerifyReport, verify_in};
use lithify::{CheckpointOptions, Db, Options, TableTransfer};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// Where copies are opened; removed after each.
const COPY: &str = "/copy";

/// Where backups are kept for the whole case.
const STORE: &str = "/backups";

/// So many backups are kept.
const BACKUPS_MAX: usize = 3;

/// The backups of a case, each with what has to be in it.
#[derive(Default)]
pub(super) struct Backups(Vec<(BackupId, State)>);

impl Session<'_> {
    /// Makes a copy, or reads beside the database, and compares. `settings` are those that the copy
    /// is opened with.
    pub(super) fn copy(&mut self, way: CopyWay, settings: &Settings) -> Result<(), String> {
        if let CopyWay::Checkpoint { flush: true, .. } | CopyWay::Backup { flush: true, .. } = way {
            // Else the flush would be among what is taken for the copy's.
            self.db().flush().map_err(text)?;
        }
        // Without a log a copy flushes, and a reader sees what is flushed.
        if self.is_logless() {
            self.db().flush().map_err(text)?;
        }
        self.settle_filter()?;
        let before = Before::now(&self.disk);
        let mut in_store = FileCounts::default();
        let what = match way {
            CopyWay::Checkpoint { flush, is_linked } => {
                self.checkpoint(flush, is_linked)?;
                "checkpoints"
            }
            CopyWay::Backup { flush, check_shared } => {
                in_store = self.back_up(flush, check_shared)?;
                "backups"
            }
            CopyWay::Restore(number) => return self.restore(number, settings),
            CopyWay::Reader => return self.read_beside(settings),
            CopyWay::Verification => {
                let report = self.db().verify(&VerifyOptions::default());
                is_sound(&report.map_err(text)?)?;
                "verifications"
            }
        };
        self.before.set_aside(&self.disk, &before, in_store);
        self.tally.count(what, 1);
        if let CopyWay::Checkpoint { .. } = way {
            let state = self.state.clone();
            self.live_on(settings, &state).map_err(|what| format!("in the checkpoint: {what}"))?;
        }
        Ok(())
    }

    fn checkpoint(&mut self, flush: bool, is_linked: bool) -> Result<(), String> {
        let tables = if is_linked { TableTransfer::Link } else { TableTransfer::Copy };
        let options = CheckpointOptions { flush, tables, ..CheckpointOptions::default() };
        let made = self.db().checkpoint_with(COPY, &options).map_err(text)?;
        match made.link_refusal {
            Some(refusal) => Err(format!("a link was refused: {refusal}")),
            None => Ok(()),
        }
    }

    fn store(&self) -> Result<BackupStore, String> {
        BackupStore::open_in(STORE, self.disk.world_of_others()).map_err(text)
    }

    /// Makes a backup; gives what that took in the store.
    fn back_up(&mut self, flush: bool, check_shared: bool) -> Result<FileCounts, String> {
        let counting = CountingFileSystem::new(Arc::new(self.disk.files.clone()));
        let files = Arc::new(counting.clone());
        let world = World { files, ..self.disk.world_of_others() };
        let mut store = BackupStore::open_in(STORE, world).map_err(text)?;
        let options = BackupOptions { flush, check_shared, ..BackupOptions::default() };
        let opened = counting.total();
        let report = store.create(self.db(), &options).map_err(text)?;
        let in_store = counting.total() - opened;
        if report.mended_files > 0 {
            return Err(format!("{} tables of the store were damaged", report.mended_files));
        }
        self.backups.0.push((report.backup.id, self.state.clone()));
        let gone = store.purge(BACKUPS_MAX).map_err(text)?;
        self.backups.0.retain(|(id, _)| !gone.contains(id));
        let expected: Vec<BackupId> = self.backups.0.iter().map(|(id, _)| *id).collect();
        match store.ids() == expected {
            true => Ok(in_store),
            false => Err(format!("there are the backups {:?}, not {expected:?}", store.ids())),
        }
    }

    fn restore(&mut self, number: usize, settings: &Settings) -> Result<(), String> {
        let count = self.backups.0.len();
        if count == 0 {
            return Ok(());
        }
        let (id, state) = self.backups.0[number % count].clone();
        self.store()?.restore(id, COPY, &RestoreOptions::default()).map_err(text)?;
        self.tally.count("restores", 1);
        let state = state.after_half_lives(self.state.half_lives());
        self.live_on(settings, &state).map_err(|what| format!("in backup {id}, restored: {what}"))
    }

    fn read_beside(&mut self, settings: &Settings) -> Result<(), String> {
        let options = for_copy(settings);
        let directory = Self::directory();
        let reader = Db::open_read_only_in(directory, options, self.disk.world_of_others());
        let reader = reader.map_err(text)?;
        self.tally.count("readers", 1);
        let compared = compare(&reader, &self.state);
        self.rows_compared += compared.map_err(|what| format!("a reader: {what}"))?;
        Ok(())
    }

    /// Verifies, opens, compares, changes and removes the copy.
    fn live_on(&mut self, settings: &Settings, state: &State) -> Result<(), String> {
        let world = self.disk.world_of_others();
        let report = verify_in(COPY, &VerifyOptions::default(), &world, &mut go_on);
        is_sound(&report.map_err(text)?)?;
        let db = Db::open_in(COPY, for_copy(settings), world.clone()).map_err(text)?;
        self.rows_compared += compare(&db, state)?;
        change(&db, settings, state).map_err(text)?;
        db.close().map_err(text)?;
        remove(&self.disk, &world)
    }
}

/// The settings of a database, without threads of its own: they are about what is compared.
fn for_copy(settings: &Settings) -> Options {
    Options { background_threads: 0, ..settings.database.clone() }
}

fn go_on(_: &lithify::verify::Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn is_sound(report: &VerifyReport) -> Result<(), String> {
    match report.damage().next() {
        Some(finding) => Err(format!("not sound: {}", finding.error)),
        None => Ok(()),
    }
}

/// Compares all rows of all families both ways; gives their number.
fn compare(db: &Db, state: &State) -> Result<u64, String> {
    let mut names = db.column_family_names();
    names.sort();
    let slots: Vec<usize> =
        (0..FAMILY_COUNT).filter(|slot| state.family(*slot).is_some()).collect();
    let expected: Vec<&str> = slots.iter().map(|slot| FAMILIES[*slot]).collect();
    if names != expected {
        return Err(format!("there are the families {names:?}, not {expected:?}"));
    }
    let mut compared = 0;
    for (slot, name) in slots.into_iter().zip(expected) {
        let family = db.existing_column_family(name).map_err(text)?;
        let (Some(family), Some(content)) = (family, state.family(slot)) else {
            return Err(format!("the family {name} is not there"));
        };
        if operators::is_merged(slot) {
            let operator = operators::operator(slot, &mut Random::new(compared));
            family.supply_merge_operator(operator).map_err(text)?;
        }
        let mut cursor = family.cursor(scan_range(&Span::All)).map_err(text)?;
        let mut model = ModelCursor::new(content.rows().clone(), Span::All);
        let all = [Move::Next(u32::MAX), Move::Previous(u32::MAX)];
        model
            .check(&mut cursor, &all, &mut compared)
            .map_err(|what| format!("all rows of {name}: {what}"))?;
    }
    Ok(compared)
}

/// Writes and compacts: the database that the copy was made of must not notice.
fn change(db: &Db, settings: &Settings, state: &State) -> lithify::Result<()> {
    for slot in (0..FAMILY_COUNT).filter(|slot| state.family(*slot).is_some()) {
        let family = db.column_family(FAMILIES[slot], settings.families[slot].clone())?;
        family.put(b"key0001", b"of the copy alone")?;
        family.delete(b"key0002")?;
        family.compact_range(..)?;
    }
    db.wait_for_compaction()
}

fn remove(disk: &Disk, world: &World) -> Result<(), String> {
    let (files, directory) = (&world.files, Path::new(COPY));
    for name in files.list(directory).map_err(text)? {
        files.remove(&directory.join(name)).map_err(text)?;
    }
    files.remove_directory(directory).map_err(text)?;
    match disk.endless_waits() {
        0 => Ok(()),
        _ => Err("a wait that would never have ended".to_string()),
    }
}
