//! The read path: one view, one sequence number, newest run first.

use super::cursor::{Cursor, ScanRange};
use super::family::{Family, View};
use super::inner::DbInner;
use crate::Result;
use crate::base::{SequenceNumber, Slice, ValueKind};
use crate::iter::{Bounds, LevelCursor, MergingCursor, RowCursor, Source, TombstoneSet};
use crate::manifest::TableFile;
use crate::stats::WorkMeter;
use crate::table::{FragmentedTombstones, ReadContext};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What one run says of a key.
enum Found {
    /// Nothing: ask the next older run.
    Nothing,
    /// The newest entry is a tombstone.
    Deleted,
    Value(Slice),
}

impl DbInner {
    pub(crate) fn get(
        &self,
        family: &Family,
        key: &[u8],
        sequence: Option<SequenceNumber>,
    ) -> Result<Option<Slice>> {
        self.check_open()?;
        family.check_alive()?;
        let sample = self.ledger.sample_read(&*self.world.environment);
        let mut meter = sample.is_some().then(WorkMeter::default);
        let view = family.view();
        // The view first: what a later view has compacted away is still in this one.
        let sequence = sequence.unwrap_or_else(|| self.visible.load(Ordering::Acquire));
        let found = self.get_in(&view, key, sequence, &mut meter)?;
        self.ledger.count_get(found.is_some());
        if let (Some(sample), Some(mut meter)) = (sample, meter) {
            sample.finish(&self.ledger, &*self.world.environment, &mut meter);
        }
        Ok(found)
    }

    pub(crate) fn multi_get<'k>(
        &self,
        family: &Family,
        keys: impl Iterator<Item = &'k [u8]>,
        sequence: Option<SequenceNumber>,
        mut each: impl FnMut(usize, Option<Slice>),
    ) -> Result<()> {
        self.check_open()?;
        family.check_alive()?;
        let view = family.view();
        let sequence = sequence.unwrap_or_else(|| self.visible.load(Ordering::Acquire));
        for (index, key) in keys.enumerate() {
            let found = self.get_in(&view, key, sequence, &mut None)?;
            self.ledger.count_get(found.is_some());
            each(index, found);
        }
        Ok(())
    }

    /// The value of a key in a view. Every entry of a key in a newer run is newer than those in
    /// older runs, so the first run with an entry or a covering range tombstone decides.
    fn get_in(
        &self,
        view: &View,
        key: &[u8],
        sequence: SequenceNumber,
        meter: &mut Option<WorkMeter>,
    ) -> Result<Option<Slice>> {
        for memory in view.memories() {
            let tombstones = memory.table.range_tombstones();
            let covering =
                if tombstones.is_empty() { 0 } else { tombstones.covering_sequence(key, sequence) };
            if let Some((kind, trailer, value)) = memory.table.get(key, sequence) {
                let live = kind == ValueKind::Put && trailer.sequence() >= covering;
                return Ok(live.then(|| Slice::copy_from(value)));
            }
            if covering > 0 {
                return Ok(None);
            }
        }
        let mut context = ReadContext {
            clock: &*self.world.environment,
            meter: meter.as_mut(),
            fill_cache: true,
        };
        for table in view.version.level(0) {
            if table.metadata.range.contains(key) {
                match get_in_table(table, key, sequence, &mut context)? {
                    Found::Nothing => {}
                    Found::Deleted => return Ok(None),
                    Found::Value(value) => return Ok(Some(value)),
                }
            }
        }
        for level in 1..view.version.level_count() {
            if let Some(table) = view.version.table_for_key(level, key) {
                match get_in_table(table, key, sequence, &mut context)? {
                    Found::Nothing => {}
                    Found::Deleted => return Ok(None),
                    Found::Value(value) => return Ok(Some(value)),
                }
            }
        }
        Ok(None)
    }

    pub(crate) fn open_cursor(
        self: &Arc<Self>,
        family: &Family,
        range: ScanRange,
        sequence: Option<SequenceNumber>,
    ) -> Result<Cursor> {
        let rows = self.row_cursor(family, range, sequence, Vec::new())?;
        self.ledger.count_cursor();
        Ok(Cursor { inner: Arc::clone(self), rows, returned: 0 })
    }

    /// The rows of a family; `overlay` are sources newer than all of its own.
    pub(crate) fn row_cursor(
        &self,
        family: &Family,
        range: ScanRange,
        sequence: Option<SequenceNumber>,
        overlay: Vec<Source>,
    ) -> Result<RowCursor> {
        self.check_open()?;
        family.check_alive()?;
        let view = family.view_full();
        let snapshot = sequence.unwrap_or_else(|| self.visible.load(Ordering::Acquire));
        let prefix_length = family.options().prefix_length_bytes;
        let prefix = range.prefix.as_deref().filter(|prefix| {
            prefix_length > 0 && prefix.len() >= prefix_length
        }).map(|prefix| &prefix[..prefix_length]);
        let bounds = Bounds { lower: range.lower, upper: range.upper };
        let mut tombstones = TombstoneSet::default();
        let mut sources = overlay;
        for memory in view.memories() {
            if !memory.table.is_empty() {
                tombstones.push(memory.table.range_tombstones());
                sources.push(Source::Memory(memory.table.cursor()));
            }
        }
        add_table_sources(&view, &bounds, prefix, &mut sources, &mut tombstones)?;
        Ok(RowCursor::new(MergingCursor::new(sources), tombstones, snapshot, bounds))
    }
}

fn get_in_table(
    table: &TableFile,
    key: &[u8],
    sequence: SequenceNumber,
    context: &mut ReadContext<'_>,
) -> Result<Found> {
    let reader = table.reader()?;
    let covering = if table.metadata.range_tombstones == 0 {
        0
    } else {
        reader.range_tombstones()?.covering_sequence(key, sequence)
    };
    Ok(match reader.get(key, sequence, context)? {
        Some((trailer, value))
            if trailer.kind() == Some(ValueKind::Put) && trailer.sequence() >= covering =>
        {
            Found::Value(value)
        }
        Some(_) => Found::Deleted,
        None if covering > 0 => Found::Deleted,
        None => Found::Nothing,
    })
}

/// Adds what the tables of a view hold within the bounds. Runs whose filter excludes the prefix
/// are left out, but never their range tombstones: those cover keys that the filter knows not.
fn add_table_sources(
    view: &View,
    bounds: &Bounds,
    prefix: Option<&[u8]>,
    sources: &mut Vec<Source>,
    tombstones: &mut TombstoneSet,
) -> Result<()> {
    let excluded = |table: &TableFile| -> Result<bool> {
        match prefix {
            Some(prefix) => Ok(!table.reader()?.prefix_may_match(prefix)?),
            None => Ok(false),
        }
    };
    for table in view.version.level(0) {
        if !bounds.may_overlap(&table.metadata.range) {
            continue;
        }
        push_tombstones(table, tombstones)?;
        if !excluded(table)? {
            sources.push(Source::Table(table.reader()?.cursor(true)));
        }
    }
    for level in 1..view.version.level_count() {
        let tables = bounds.clip(view.version.level(level));
        for table in tables {
            push_tombstones(table, tombstones)?;
        }
        let only_excluded = match tables {
            [] => true,
            [table] => excluded(table)?,
            _ => false,
        };
        if !only_excluded {
            sources.push(Source::Level(LevelCursor::new(view.version.clone(), level, true)));
        }
    }
    Ok(())
}

fn push_tombstones(table: &TableFile, tombstones: &mut TombstoneSet) -> Result<()> {
    if table.metadata.range_tombstones > 0 {
        let run: Arc<FragmentedTombstones> = table.reader()?.range_tombstones()?;
        tombstones.push(run);
    }
    Ok(())
}
