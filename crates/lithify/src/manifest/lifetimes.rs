//! When a file may be deleted.
//!
//! A table that an edit removed lives on while a version, a cursor or a job holds it. At open
//! nothing holds anything, and what the directory has beyond the state is an orphan of a crash.
//! Deleting is the caller's, in steps; forgetting it costs space until the next open, no more.

use super::names::FileName;
use super::state::ManifestState;
use super::version::{Life, TableFile};
use crate::Result;
use crate::base::FileNumber;
use crate::fs::FileSystem;
use std::path::Path;
use std::sync::{Arc, Weak};

struct Retired {
    number: FileNumber,
    size_bytes: u64,
    life: Weak<Life>,
}

/// Tables that are no longer live, until nobody holds them. One thread at a time.
#[derive(Default)]
pub struct ObsoleteTables {
    retired: Vec<Retired>,
}

impl ObsoleteTables {
    /// Takes tables that an edit removed.
    pub fn retire(&mut self, tables: Vec<Arc<TableFile>>) {
        if planted!(BlocksErasedEarly) {
            let readers = tables.iter().filter_map(|table| table.reader().ok());
            readers.for_each(|reader| reader.erase_cached());
        }
        self.retired.extend(tables.into_iter().map(|table| Retired {
            number: table.metadata.number,
            size_bytes: table.metadata.size_bytes,
            life: table.life(),
        }));
    }

    /// The numbers of tables that nobody holds any more, each once; their files are to be deleted.
    pub fn collect(&mut self) -> Vec<FileNumber> {
        if planted!(DeadTablesLeaked) {
            return Vec::new();
        }
        // The last holder is gone for good: only a holder can make another one.
        let dead = self.retired.extract_if(.., |retired| retired.life.strong_count() == 0);
        dead.map(|retired| retired.number).collect()
    }

    /// Whether tables wait to be collected: those too whose last holder went after
    /// [`ObsoleteTables::collect`] had looked at them.
    pub fn is_empty(&self) -> bool {
        self.retired.is_empty()
    }

    /// Bytes of tables that are not live and still held.
    pub fn held_bytes(&self) -> u64 {
        let held = self.retired.iter().filter(|retired| retired.life.strong_count() > 0);
        held.map(|retired| retired.size_bytes).sum()
    }
}

/// What a directory holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectoryListing {
    /// The engine's files, sorted. Others are left alone.
    pub names: Vec<FileName>,
}

impl DirectoryListing {
    /// Lists a directory.
    pub fn read(file_system: &dyn FileSystem, directory: &Path) -> Result<Self> {
        let paths = file_system.list(directory)?;
        let mut names: Vec<_> = paths.iter().filter_map(|path| FileName::of_path(path)).collect();
        names.sort();
        Ok(DirectoryListing { names })
    }

    /// The largest number in a name; 0 without any.
    pub fn largest_number(&self) -> FileNumber {
        self.names.iter().filter_map(|name| name.number()).max().unwrap_or(0)
    }

    /// The numbers of the log segments that some column family still needs, ascending.
    pub fn needed_segments(&self, state: &ManifestState) -> Vec<FileNumber> {
        let oldest = state.oldest_log_needed();
        let segment = |name: &FileName| match name {
            FileName::Wal(number) if *number >= oldest => Some(*number),
            _ => None,
        };
        self.names.iter().filter_map(segment).collect()
    }

    /// Files that no state needs: tables that are not live, segments that every column family
    /// has passed, and manifests other than `manifest_number`. To be asked before anything new is
    /// written.
    pub fn orphans(&self, state: &ManifestState, manifest_number: FileNumber) -> Vec<FileName> {
        let mut live: std::collections::HashSet<FileNumber> = state.table_numbers().collect();
        if planted!(LiveTableTakenForOrphan)
            && let Some(newest) = live.iter().max().copied()
        {
            live.remove(&newest);
        }
        let oldest_log = state.oldest_log_needed();
        let is_orphan = |name: &&FileName| match **name {
            FileName::Table(number) => !live.contains(&number),
            FileName::Wal(number) => number < oldest_log,
            FileName::Manifest(number) => number != manifest_number,
            // Opening for writing has replaced a temporary file by its own.
            FileName::Current
            | FileName::CurrentTemporary
            | FileName::Witness
            | FileName::Heat
            | FileName::Lock => false,
        };
        self.names.iter().filter(is_orphan).copied().collect()
    }

    /// Live tables whose files are not there.
    pub fn missing_tables(&self, state: &ManifestState) -> Vec<FileNumber> {
        let present =
            |number: &FileNumber| self.names.binary_search(&FileName::Table(*number)).is_ok();
        state.table_numbers().filter(|number| !present(number)).collect()
    }
}
