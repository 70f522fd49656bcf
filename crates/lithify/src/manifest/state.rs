//! The state that a manifest's edits add up to.
//!
//! [`ManifestState::apply`] checks an edit against the state and gives the next one; the old state
//! and its versions stay as they were for whoever holds them.

use super::edit::{
    Change, CleanClose, FAMILY_NAME_SIZE_MAX, FAMILY_OPTIONS_SIZE_MAX, VersionEdit, check_metadata,
};
use super::version::{TableFile, Version};
use crate::base::{
    ColumnFamilyId, FileNumber, LEVEL_COUNT_MAX, Level, SEQUENCE_MAX, SequenceNumber,
};
use crate::{Error, ErrorKind, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is known of one column family.
#[derive(Clone, Debug)]
pub struct FamilyState {
    /// Its name.
    pub name: Arc<str>,
    /// Its options, as the database encoded them.
    pub options: Arc<[u8]>,
    /// Its live tables.
    pub version: Arc<Version>,
    /// Everything of it up to this sequence number is in tables.
    pub flushed_through: SequenceNumber,
    /// Log segments with smaller numbers hold nothing of it that is not in tables.
    pub log_number: FileNumber,
    /// Where the next compaction of each level goes on; empty is the start.
    pub compaction_cursors: Vec<Box<[u8]>>,
}

/// Everything that a manifest says.
#[derive(Clone, Debug)]
pub struct ManifestState {
    /// The column families by id.
    pub families: BTreeMap<ColumnFamilyId, FamilyState>,
    /// File numbers below this one have been given out.
    pub next_file_number: FileNumber,
    /// The largest sequence number that was recorded; the log may hold larger ones.
    pub last_sequence: SequenceNumber,
    /// Family ids below this one have been given out.
    pub next_family_id: ColumnFamilyId,
    /// The last clean close. Segments after it are of a later run.
    pub clean_close: Option<CleanClose>,
    /// What a reader has to know: the bits of [`Change::Features`].
    pub features: u32,
}

impl Default for ManifestState {
    fn default() -> Self {
        ManifestState {
            families: BTreeMap::new(),
            next_file_number: 1,
            last_sequence: 0,
            next_family_id: 0,
            clean_close: None,
            features: 0,
        }
    }
}

/// What applying an edit gives.
#[derive(Debug)]
pub struct Applied {
    /// The next state.
    pub state: ManifestState,
    /// Tables that were live and are no longer.
    pub removed: Vec<Arc<TableFile>>,
}

impl ManifestState {
    /// The state after `edit`. On an error nothing has changed:
    /// [`ErrorKind::NotFound`] for a family, level or table that is not there,
    /// [`ErrorKind::AlreadyExists`] for an id, name or number in use or used before,
    /// [`ErrorKind::InvalidArgument`] for tables that overlap and for counters that go back,
    /// [`ErrorKind::LimitExceeded`] for names and options that are too long.
    pub fn apply(&self, edit: &VersionEdit) -> Result<Applied> {
        let mut next = NextState {
            state: self.clone(),
            levels: BTreeMap::new(),
            numbers: None,
            removed: Vec::new(),
        };
        for change in &edit.changes {
            next.apply(change)?;
        }
        next.finish()
    }

    /// The column family with that name.
    pub fn family_by_name(&self, name: &str) -> Option<(ColumnFamilyId, &FamilyState)> {
        let mut families = self.families.iter();
        families.find(|(_, family)| &*family.name == name).map(|(id, family)| (*id, family))
    }

    /// The smallest log segment that some column family needs; without families none is needed.
    pub fn oldest_log_needed(&self) -> FileNumber {
        self.families.values().map(|family| family.log_number).min().unwrap_or(FileNumber::MAX)
    }

    /// The numbers of all live tables.
    pub fn table_numbers(&self) -> impl Iterator<Item = FileNumber> {
        self.families
            .values()
            .flat_map(|family| family.version.tables().map(|(_, table)| table.metadata.number))
    }

    /// The edit that builds this state from nothing.
    pub fn snapshot(&self) -> VersionEdit {
        let mut changes = vec![Change::NextFileNumber(self.next_file_number)];
        // The close before the last sequence, which may have moved on since.
        changes.extend(self.clean_close.map(Change::CleanClose));
        changes.push(Change::LastSequence(self.last_sequence));
        if self.features != 0 {
            changes.push(Change::Features(self.features));
        }
        for (id, family) in &self.families {
            changes.push(Change::CreateFamily {
                id: *id,
                name: family.name.to_string(),
                level_count: family.version.level_count(),
                log_number: family.log_number,
                options: family.options.to_vec(),
            });
            changes.push(Change::FlushedThrough {
                family: *id,
                sequence: family.flushed_through,
                log_number: family.log_number,
            });
            for (level, key) in family.compaction_cursors.iter().enumerate() {
                if !key.is_empty() {
                    changes.push(Change::CompactionCursor { family: *id, level, key: key.clone() });
                }
            }
            changes.extend(family.version.tables().map(|(level, table)| Change::AddFile {
                family: *id,
                level,
                metadata: table.metadata.clone(),
            }));
        }
        changes.push(Change::NextFamilyId(self.next_family_id));
        changes.into()
    }
}

/// A state while an edit is applied to it.
struct NextState {
    state: ManifestState,
    /// The levels of families whose tables change.
    levels: BTreeMap<ColumnFamilyId, Vec<Vec<Arc<TableFile>>>>,
    /// The numbers of all live tables, once a table is added.
    numbers: Option<BTreeSet<FileNumber>>,
    removed: Vec<Arc<TableFile>>,
}

impl NextState {
    fn apply(&mut self, change: &Change) -> Result<()> {
        match change {
            Change::CreateFamily { id, name, level_count, log_number, options } => {
                self.create_family(*id, name, *level_count, *log_number, options)
            }
            Change::DropFamily { id } => self.drop_family(*id),
            Change::AddFile { family, level, metadata } => {
                check_metadata(metadata).map_err(Error::invalid)?;
                self.claim_number(metadata.number)?;
                self.level(*family, *level)?.push(TableFile::new(metadata.clone()));
                Ok(())
            }
            Change::RemoveFile { family, level, number } => {
                let table = self.take_table(*family, *level, *number)?;
                self.removed.push(table);
                Ok(())
            }
            Change::MoveFile { family, number, from, to, codec_debt } => {
                let table = self.take_table(*family, *from, *number)?;
                self.level(*family, *to)?.push(table.with_codec_debt(*codec_debt));
                Ok(())
            }
            Change::FlushedThrough { family, sequence, log_number } => {
                let family = self.family(*family)?;
                advance("flushed-through sequence", &mut family.flushed_through, *sequence)?;
                advance("log number", &mut family.log_number, *log_number)
            }
            Change::SetOptions { id, options } => {
                check_length(
                    "the length of a column family's options",
                    options,
                    FAMILY_OPTIONS_SIZE_MAX,
                )?;
                self.family(*id)?.options = options.as_slice().into();
                Ok(())
            }
            Change::CompactionCursor { family, level, key } => {
                let cursors = &mut self.family(*family)?.compaction_cursors;
                let cursor = cursors.get_mut(*level).ok_or_else(|| no_level(*level))?;
                cursor.clone_from(key);
                Ok(())
            }
            Change::NextFileNumber(number) => {
                advance("next file number", &mut self.state.next_file_number, *number)
            }
            Change::LastSequence(sequence) => self.advance_sequence(*sequence),
            Change::NextFamilyId(id) => {
                advance("next family id", &mut self.state.next_family_id, *id)
            }
            Change::Features(bits) => {
                self.state.features |= bits;
                Ok(())
            }
            Change::CleanClose(close) => {
                self.state.clean_close = Some(*close);
                self.advance_sequence(close.last_sequence)
            }
        }
    }

    fn create_family(
        &mut self,
        id: ColumnFamilyId,
        name: &str,
        level_count: usize,
        log_number: FileNumber,
        options: &[u8],
    ) -> Result<()> {
        if name.is_empty() || level_count == 0 || level_count > LEVEL_COUNT_MAX {
            return Err(Error::invalid(format!(
                "a column family needs a name and 1 to {LEVEL_COUNT_MAX} levels"
            )));
        }
        check_length(
            "the length of a column family's name",
            name.as_bytes(),
            FAMILY_NAME_SIZE_MAX,
        )?;
        check_length("the length of a column family's options", options, FAMILY_OPTIONS_SIZE_MAX)?;
        if id < self.state.next_family_id {
            return Err(exists(format!("column family id {id} was used before")));
        }
        if self.state.family_by_name(name).is_some() {
            return Err(exists(format!("there is a column family {name:?} already")));
        }
        self.state.next_family_id = id
            .checked_add(1)
            .ok_or_else(|| Error::limit("all ids of column families have been used"))?;
        let family = FamilyState {
            name: name.into(),
            options: options.into(),
            version: Arc::new(Version::empty(level_count)),
            flushed_through: 0,
            log_number,
            compaction_cursors: vec![Box::default(); level_count],
        };
        self.state.families.insert(id, family);
        Ok(())
    }

    fn drop_family(&mut self, id: ColumnFamilyId) -> Result<()> {
        let family = self.state.families.remove(&id).ok_or_else(|| no_family(id))?;
        let levels = self.levels.remove(&id).unwrap_or_else(|| family.version.to_levels());
        self.removed.extend(levels.into_iter().flatten());
        Ok(())
    }

    fn family(&mut self, id: ColumnFamilyId) -> Result<&mut FamilyState> {
        self.state.families.get_mut(&id).ok_or_else(|| no_family(id))
    }

    fn level(&mut self, id: ColumnFamilyId, level: Level) -> Result<&mut Vec<Arc<TableFile>>> {
        let family = self.state.families.get(&id).ok_or_else(|| no_family(id))?;
        let levels = self.levels.entry(id).or_insert_with(|| family.version.to_levels());
        levels.get_mut(level).ok_or_else(|| no_level(level))
    }

    fn take_table(
        &mut self,
        family: ColumnFamilyId,
        level: Level,
        number: FileNumber,
    ) -> Result<Arc<TableFile>> {
        let tables = self.level(family, level)?;
        let index = tables.iter().position(|table| table.metadata.number == number);
        index.map(|index| tables.remove(index)).ok_or_else(|| {
            Error::new(
                ErrorKind::NotFound,
                format!("no table {number} in level {level} of column family {family}"),
            )
        })
    }

    fn claim_number(&mut self, number: FileNumber) -> Result<()> {
        let state = &self.state;
        let numbers = self.numbers.get_or_insert_with(|| state.table_numbers().collect());
        // A table that this edit removed has not lost its number: its file is still there.
        let removed = self.removed.iter().any(|table| table.metadata.number == number);
        if removed || !numbers.insert(number) {
            return Err(exists(format!("table number {number} is in use")));
        }
        Ok(())
    }

    fn advance_sequence(&mut self, sequence: SequenceNumber) -> Result<()> {
        if sequence > SEQUENCE_MAX {
            return Err(Error::invalid("sequence number over 56 bits"));
        }
        advance("last sequence", &mut self.state.last_sequence, sequence)
    }

    fn finish(mut self) -> Result<Applied> {
        for (id, levels) in std::mem::take(&mut self.levels) {
            let numbers = levels.iter().flatten().map(|table| table.metadata.number);
            if let Some(number) = numbers.max().filter(|max| *max >= self.state.next_file_number) {
                return Err(Error::invalid(format!("table number {number} was never given out"))
                    .expected(format_args!("below {}", self.state.next_file_number), number));
            }
            let version = Version::new(levels);
            check_disjoint(id, &version)?;
            self.family(id)?.version = Arc::new(version);
        }
        Ok(Applied { state: self.state, removed: self.removed })
    }
}

/// Below level 0 no two tables share a user key.
fn check_disjoint(id: ColumnFamilyId, version: &Version) -> Result<()> {
    for level in 1..version.level_count() {
        for (left, right) in version.level(level).iter().zip(version.level(level).iter().skip(1)) {
            let (left, right) = (&left.metadata, &right.metadata);
            if left.range.overlaps(&right.range) {
                return Err(Error::invalid(format!(
                    "tables {} and {} overlap in level {level} of column family {id}",
                    left.number, right.number
                )));
            }
        }
    }
    Ok(())
}

fn advance<N: Copy + Ord + std::fmt::Display>(what: &str, value: &mut N, to: N) -> Result<()> {
    if to < *value {
        let expected = format!("at least {value}");
        return Err(Error::invalid(format!("{what} goes back")).expected(expected, to));
    }
    *value = to;
    Ok(())
}

fn no_family(id: ColumnFamilyId) -> Error {
    Error::new(ErrorKind::NotFound, format!("no column family {id}"))
}

fn no_level(level: Level) -> Error {
    Error::new(ErrorKind::NotFound, format!("no level {level}"))
}

fn check_length(what: &str, found: &[u8], bytes_max: usize) -> Result<()> {
    match found.len() <= bytes_max {
        true => Ok(()),
        false => Err(Error::limit(format!("{what} is over its limit"))
            .expected(format_args!("at most {bytes_max} bytes"), found.len())),
    }
}

fn exists(what: String) -> Error {
    Error::new(ErrorKind::AlreadyExists, what)
}
