//! The seam for the decision in which format a table is written.
//!
//! Every table that is written asks one [`FormatPolicy`] first: those of flushes, compactions and
//! ingests when they are begun, each by itself. The answer is one [`BlockFormat`]. Whether a table
//! that is there owes a rewrite is the same policy's word. Nothing else compares codecs: the sink
//! asks the format of its open table whether a stored block fits, and the picker goes by the mark
//! that the manifest keeps of [`FormatPolicy::debt`].
//!
//! # A second policy
//!
//! The first one, [`LevelFormats`](super::LevelFormats), goes by level alone. Another one, such as a
//! chooser by measured costs, needs:
//!
//! 1. An implementation of [`FormatPolicy`]. `decide` has to be cheap, is called from several
//!    threads, and gives the same answer until the policy's knowledge changes.
//! 2. One line where policies are made: `CfOptions::formats`.
//! 3. What it knows beside the place: new fields of [`Evidence`], filled where plans of outputs are
//!    made (`OutputPlan`), such as samples of blocks and the expected lifetime of the table.
//! 4. `Family::debt_changes` when it changes its mind: the edit that marks the tables which owe a
//!    rewrite from then on. The picker rewrites them when nothing else runs.
//!
//! A policy that answers with a dictionary has it at hand ([`FormatPolicy::dictionary`]). Tables are
//! written without one if the evidence is of less than [`DICTIONARY_RAW_BYTES_MIN`], or of nothing.
//!
//! A policy that weighs the gain of a rewrite against its cost also implements `debt`; without that,
//! every table that would be written otherwise today owes one.

use super::deciding::Deciding;
use super::read_heat::ReadHeat;
use crate::base::{ColumnFamilyId, Level};
use crate::codec::{BlockFormat, Dictionary, DictionaryHash, FormatMismatch, StoredFormat};
use crate::manifest::{FileMetadata, TableFile, Version};
use std::sync::Arc;

/// Tables of fewer raw bytes use no dictionary: each would have a copy of it.
pub const DICTIONARY_RAW_BYTES_MIN: u64 = 1 << 20;

/// So many tables of a level, the newest first, are asked for the record of a decision.
const RECALLED_TABLES_MAX: usize = 16;

/// Where a table is, or is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TablePlace {
    /// Whose it is; `None` for a table that no family has asked for yet.
    pub family: Option<ColumnFamilyId>,
    /// Its level.
    pub level: Level,
    /// Levels of the tree, level 0 among them.
    pub level_count: usize,
}

impl TablePlace {
    /// How many levels lie below; 0 in the last level.
    pub fn distance_from_bottom(&self) -> usize {
        self.level_count.saturating_sub(1).saturating_sub(self.level)
    }

    /// The levels of a family that have tables.
    pub(crate) fn in_use(family: ColumnFamilyId, version: &Version) -> Vec<TablePlace> {
        let level_count = version.level_count();
        let levels = (0..level_count).filter(|level| !version.level(*level).is_empty());
        levels.map(|level| TablePlace { family: Some(family), level, level_count }).collect()
    }
}

/// What is known of the rows of a table: of the table itself if it exists, of all inputs of the job
/// if it is to be written. Zeros mean that nothing is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Point entries.
    pub entries: u64,
    /// Bytes of data blocks before compression.
    pub raw_bytes: u64,
    /// Bytes of files.
    pub stored_bytes: u64,
}

impl Evidence {
    /// Of the tables together.
    pub fn of_tables<'a>(tables: impl IntoIterator<Item = &'a FileMetadata>) -> Self {
        tables.into_iter().fold(Evidence::default(), |sum, table| Evidence {
            entries: sum.entries.saturating_add(table.entries),
            raw_bytes: sum.raw_bytes.saturating_add(table.raw_bytes),
            stored_bytes: sum.stored_bytes.saturating_add(table.size_bytes),
        })
    }
}

/// Decides in which format tables are written. See the module.
pub trait FormatPolicy: Send + Sync {
    /// The format of a table that is about to be written.
    fn decide(&self, place: &TablePlace, evidence: &Evidence) -> BlockFormat;

    /// The format of tables that will be written, for whoever only looks: it changes no decision.
    fn peek(&self, place: &TablePlace) -> BlockFormat {
        self.decide(place, &Evidence::default())
    }

    /// Whether a table that is there owes a rewrite, and why.
    fn debt(&self, place: &TablePlace, table: &FileMetadata) -> Option<FormatMismatch> {
        let wanted = self.decide(place, &Evidence::of_tables([table]));
        wanted.mismatch(&table.stored_format())
    }

    /// Whether blocks of that format may be copied, as they are stored, into a table that is written
    /// in the `wanted` one. A copied block brings its dictionary along.
    fn takes_blocks(&self, wanted: &BlockFormat, stored: &StoredFormat) -> bool {
        wanted.mismatch(stored).is_none()
    }

    /// The policy that wants to know what tables are measured to be, if this is one or leans on one.
    fn deciding(&self) -> Option<&Deciding> {
        None
    }

    /// Tables of fewer raw bytes are written without a dictionary.
    fn dictionary_raw_bytes_min(&self) -> u64 {
        DICTIONARY_RAW_BYTES_MIN
    }

    /// The dictionary of that name, which [`FormatPolicy::decide`] has answered with. Without it
    /// the table is written without a dictionary.
    fn dictionary(&self, _name: DictionaryHash) -> Option<Arc<Dictionary>> {
        None
    }
}

/// What an open table records of its decision, with its dictionary.
pub(crate) fn recorded_in(table: &TableFile) -> Option<(Vec<u8>, Option<Arc<Dictionary>>)> {
    let reader = table.reader().ok()?;
    Some((reader.properties().decision.clone(), reader.own_dictionary()))
}

/// Tells a policy that decides what the newest table of each level records of its decision.
pub(crate) fn recall_decisions(
    formats: &dyn FormatPolicy,
    version: &Version,
    recorded: impl Fn(&TableFile) -> Option<(Vec<u8>, Option<Arc<Dictionary>>)>,
) {
    let Some(deciding) = formats.deciding() else { return };
    let newest_of = |level: Level| {
        let mut tables: Vec<_> = version.level(level).iter().collect();
        tables.sort_by_key(|table| std::cmp::Reverse(table.metadata.number));
        // The newest ones may be too small for a record.
        let mut found = tables.into_iter().take(RECALLED_TABLES_MAX).filter_map(|table| {
            let (text, dictionary) = recorded(table).filter(|(text, _)| !text.is_empty())?;
            Some((table.metadata.number, text, dictionary))
        });
        found.next()
    };
    let mut records: Vec<_> = (0..version.level_count()).filter_map(newest_of).collect();
    records.sort_by_key(|(number, ..)| *number);
    for (_, text, dictionary) in records {
        deciding.recall(&text, dictionary);
    }
}

/// Tells a policy that decides what was observed of its levels before the database was closed.
/// Whether anything was.
pub(crate) fn warm_up(
    formats: &dyn FormatPolicy,
    family: ColumnFamilyId,
    version: &Version,
    heat: &ReadHeat,
    now_us: u64,
) -> bool {
    let (Some(deciding), Some(heat)) = (formats.deciding(), heat.families.get(&family)) else {
        return false;
    };
    deciding.warm(heat, &TablePlace::in_use(family, version), now_us);
    true
}
