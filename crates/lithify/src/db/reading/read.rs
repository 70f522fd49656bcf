//! The read path: one view, one sequence number, newest run first.

use crate::Result;
use crate::base::{ColumnFamilyId, SEQUENCE_MAX, SequenceNumber, Slice, ValueKind};
use crate::db::LEVEL_COUNT;
use crate::db::committing::reads::ReadSet;
use crate::db::inner::DbInner;
use crate::db::reading::cursor::{Cursor, ScanRange};
use crate::db::reading::extent::Extent;
use crate::db::reading::snapshot::Moment;
use crate::db::tree::family::{Family, View};
use crate::fs::Environment;
use crate::iter::{
    Bounds, LevelCursor, MergingCursor, OWN_SEQUENCE_MIN, RowCursor, Source, TombstoneSet,
};
use crate::manifest::{TableFile, Version};
use crate::memtable::MemTable;
use crate::retention::Expiry;
use crate::stats::{Cause, Counter, FilterMeter, WorkMeter};
use crate::table::{HashedKey, ReadContext};
use arc_swap::Guard;
use std::sync::{Arc, Mutex, Weak};

/// What one run says of a key.
enum Found {
    /// Nothing: ask the next older run.
    Nothing,
    /// The newest entry is a tombstone.
    Deleted,
    Value(Slice),
    /// The newest entry is a merge operand: what it adds to lies below.
    Operand,
}

/// What a transaction adds to a scan of a family.
pub(crate) struct OwnWrites {
    /// Its writes so far, above all that is committed.
    pub(crate) table: Arc<MemTable>,
    pub(crate) has_puts: bool,
    /// Where an optimistic one notes what it has read.
    pub(crate) reads: Option<Weak<Mutex<ReadSet>>>,
}

impl OwnWrites {
    /// What notes the keys that a cursor over this range comes to.
    fn extent(&self, family: ColumnFamilyId, range: &ScanRange) -> Option<Extent> {
        let reads = Weak::clone(self.reads.as_ref()?);
        Some(Extent::new(reads, family, range.lower.clone(), range.upper.clone()))
    }
}

/// The sequence number that a read reads at, and the range tombstones of memtables that it sees.
type ReadPoint = (SequenceNumber, TombstoneSet);

/// So often a read takes a new sequence number because range deletes have passed its old one by;
/// then it looks at all of them.
const READ_POINT_TRIES: u32 = 64;

impl DbInner {
    pub(crate) fn get(
        &self,
        family: &Family,
        key: &[u8],
        at: Option<&Moment>,
    ) -> Result<Option<Slice>> {
        self.lifecycle.check_open()?;
        family.check_alive()?;
        let clock = &*self.world.environment;
        let book = family.ledger.of_thread();
        let number = book.count(Counter::Gets, 1);
        let sample = self.ledger.sample(number, Cause::UserLookup, clock);
        let mut meter = WorkMeter::default();
        let mut sequence = at.map(|at| at.sequence);
        if planted!(SequenceBeforeView) && sequence.is_none() {
            sequence = Some(self.visibility.last());
            crate::planted::let_a_flush_in();
        }
        let (view, (sequence, tombstones)) = self.read_point(family, sequence);
        let mut found = match get_in(&view, key, sequence, &tombstones, clock, &mut meter) {
            Ok(Found::Value(value)) => Ok(Some(value)),
            Ok(Found::Operand) => {
                self.get_folded(family, &view, key, (sequence, tombstones), &mut meter)
            }
            Ok(_) => Ok(None),
            Err(error) => Err(error),
        };
        if family.rows.have_write_times() {
            found = self.unless_expired(family, found, at);
        }
        if let Ok(value) = &found {
            let filters = &meter.filters;
            book.count_all([
                (Counter::GetHits, u64::from(value.is_some())),
                (Counter::GetValueBytes, value.as_ref().map_or(0, |value| value.len() as u64)),
                (Counter::FilterChecks, filters.checks),
            ]);
            if filters.checks != filters.found {
                book.count_all([
                    (Counter::FilterNegatives, filters.negatives),
                    (Counter::FilterFalsePositives, filters.false_positives()),
                ]);
            }
        }
        self.ledger.end_user_call(sample, Cause::UserLookup, 0, clock, &mut meter);
        found
    }

    /// Which rows of a family have expired, as of a snapshot or of now; `None` if none ever does.
    #[inline]
    fn expiry(&self, family: &Family, at: Option<&Moment>) -> Option<Expiry> {
        family.rows.expiry(|| at.map_or_else(|| self.unix_time_s(), |at| at.unix_time_s))
    }

    fn unix_time_s(&self) -> u64 {
        self.world.environment.unix_time_s()
    }

    /// The user's value of a stored one, unless it has expired.
    #[cold]
    #[inline(never)]
    pub(crate) fn unless_expired(
        &self,
        family: &Family,
        found: Result<Option<Slice>>,
        at: Option<&Moment>,
    ) -> Result<Option<Slice>> {
        match (found?, self.expiry(family, at)) {
            (Some(stored), Some(expiry)) => {
                Ok(expiry.shown(&stored)?.map(|value| stored.first_bytes(value.len())))
            }
            (found, _) => Ok(found),
        }
    }

    /// What a read of a family looks at: its view, the sequence number that it reads at, and the range
    /// tombstones of the memtables that it sees. A number that is given is that of a live snapshot; else
    /// it is the last commit's. View and number are taken again where an ingest came between: the
    /// number sees it, and the view lacks it. A call of its own would cost a cached get 33 instructions.
    #[inline(always)]
    pub(crate) fn read_point(
        &self,
        family: &Family,
        given: Option<SequenceNumber>,
    ) -> (Guard<Arc<View>>, ReadPoint) {
        loop {
            // The view first: what a later view has compacted away is still in this one.
            let view = family.view();
            if planted!(IngestMissed) && given.is_none() {
                crate::planted::let_others_in();
            }
            let read_point = self.read_point_in(&view, given);
            let mut is_whole = given.is_some() || family.has_all_ingests(&view);
            if planted!(IngestMissed) {
                is_whole = true;
            }
            if is_whole {
                return (view, read_point);
            }
        }
    }

    /// A number that sees what was forgotten since it was taken is taken again.
    #[inline]
    fn read_point_in(&self, view: &View, given: Option<SequenceNumber>) -> ReadPoint {
        // The number first: whatever it sees is in the memtables by then.
        let sequence = given.unwrap_or_else(|| self.visibility.last());
        match view.memories().any(|memory| memory.table.has_range_tombstones()) {
            true => self.read_point_of_tombstones(view, given),
            false => (sequence, TombstoneSet::default()),
        }
    }

    #[inline(never)]
    fn read_point_of_tombstones(&self, view: &View, given: Option<SequenceNumber>) -> ReadPoint {
        let mut tries = 0;
        loop {
            let sequence = given.unwrap_or_else(|| self.visibility.last());
            if planted!(StaleReadTrusted) && given.is_none() {
                crate::planted::let_others_in();
            }
            let mut tombstones = TombstoneSet::default();
            let mut is_answered = true;
            for memory in view.memories() {
                let Some(map) = memory.tombstones() else { continue };
                let mut answers = given.is_some() || map.answers(sequence);
                if planted!(StaleReadTrusted) {
                    answers = true;
                }
                match answers {
                    true => tombstones.push_memory(map),
                    false if tries < READ_POINT_TRIES => is_answered = false,
                    false => tombstones.push_memory(memory.tombstones_at(sequence)),
                }
            }
            if is_answered {
                return (sequence, tombstones);
            }
            tries += 1;
        }
    }

    /// A cursor over the keys that begin with `prefix`.
    pub(crate) fn open_prefix_cursor(
        self: &Arc<Self>,
        family: &Family,
        prefix: &[u8],
        at: Option<&Moment>,
    ) -> Result<Cursor> {
        self.open_cursor(family, ScanRange::prefix(prefix), at)
    }

    /// The sequence number of the newest change of a key, be it by an entry or by a range delete;
    /// 0 if there is none. What that takes is metered for the caller, whose it is: no lookup.
    pub(crate) fn newest_sequence(
        &self,
        family: &Family,
        key: &[u8],
        meter: &mut WorkMeter,
    ) -> Result<SequenceNumber> {
        let view = family.view();
        for memory in view.memories() {
            let tombstones = memory.tombstones();
            let covering = tombstones.map_or(0, |map| map.covering_sequence(key, SEQUENCE_MAX));
            let entry = memory.table.get(key, SEQUENCE_MAX);
            let newest = entry.map_or(0, |(_, trailer, _)| trailer.sequence()).max(covering);
            if newest > 0 {
                return Ok(newest);
            }
        }
        let newest = newest_in_tables(&view, key, &*self.world.environment, meter);
        if newest.is_ok() {
            family.ledger.count_filters(&meter.filters);
        }
        newest
    }

    pub(crate) fn open_cursor(
        self: &Arc<Self>,
        family: &Family,
        range: ScanRange,
        at: Option<&Moment>,
    ) -> Result<Cursor> {
        self.open_cursor_under(family, range, at, None)
    }

    /// A cursor over a family, with a transaction's own writes on top.
    pub(crate) fn open_cursor_under(
        self: &Arc<Self>,
        family: &Family,
        range: ScanRange,
        at: Option<&Moment>,
        own: Option<&OwnWrites>,
    ) -> Result<Cursor> {
        let clock = &*self.world.environment;
        let number = family.ledger.count(Counter::Cursors, 1);
        let sample = self.ledger.sample(number, Cause::UserScan, clock);
        let mut cursor = self.cursor_over(family, range, at, own);
        if let (true, Ok(cursor)) = (sample.is_some(), &mut cursor) {
            cursor.book_reads(sample);
        }
        cursor
    }

    /// A cursor over nothing.
    pub(crate) fn empty_cursor(self: &Arc<Self>) -> Cursor {
        let environment = Arc::clone(&self.world.environment);
        let (merge, tombstones) = (MergingCursor::new(Vec::new()), TombstoneSet::default());
        let bounds = Bounds { lower: None, upper: None };
        let rows = RowCursor::new(environment, merge, tombstones, 0, bounds);
        Cursor::new(self, rows, Arc::new(Version::empty(LEVEL_COUNT)))
    }

    fn cursor_over(
        self: &Arc<Self>,
        family: &Family,
        range: ScanRange,
        at: Option<&Moment>,
        own: Option<&OwnWrites>,
    ) -> Result<Cursor> {
        self.lifecycle.check_open()?;
        family.check_alive()?;
        // What is visible before the view is taken is in it.
        let horizon = self.visibility.last();
        let mut sequence = at.map(|at| at.sequence);
        if planted!(CursorSeesLaterWrites) && sequence.is_none() {
            sequence = Some(OWN_SEQUENCE_MIN - 1);
        }
        let (view, (snapshot, tombstones)) = self.read_point(family, sequence);
        let own_rows = own.filter(|own| !own.table.is_empty());
        let source = own_rows.map(|own| Source::Memory(own.table.cursor()));
        let extent = own.and_then(|own| own.extent(family.id, &range));
        let read_point = (snapshot, tombstones);
        let meter = &mut WorkMeter::default();
        let mut rows = self.rows_over(family, &view, range, read_point, source, meter)?;
        let expiry = self.expiry(family, at);
        if let Some(expiry) = expiry {
            rows.hide_expired(expiry);
        }
        // Rows of its own are in no range that the family knows. A range without rows would be one for
        // those alone who judge by the same time.
        if !own.is_some_and(|own| own.has_puts) && expiry.is_none() {
            rows.watch_dead_ranges(horizon.min(snapshot), own_rows.is_none());
        }
        if !self.lifecycle.is_read_only() {
            rows.book_dead_passes();
        }
        let mut cursor = Cursor::new(self, rows, Arc::clone(&view.version));
        cursor.note_extent(extent);
        Ok(cursor)
    }

    /// The rows of a view; what was metered so far is the cursor's. A call of its own would move the
    /// cursor once more, for every scan.
    #[inline(always)]
    fn rows_over(
        &self,
        family: &Family,
        view: &View,
        range: ScanRange,
        (snapshot, tombstones): ReadPoint,
        own: Option<Source>,
        meter: &mut WorkMeter,
    ) -> Result<RowCursor> {
        let bounds = Bounds { lower: range.lower, upper: range.upper };
        let mut sources = Vec::from_iter(own);
        let runs = view.version.level(0).len() + view.version.level_count();
        sources.reserve_exact(1 + view.immutable.len() + runs);
        for memory in view.memories() {
            if !memory.table.is_empty() {
                sources.push(Source::Memory(memory.table.cursor()));
            }
        }
        let environment = &self.world.environment;
        let mut finder = SourceFinder {
            bounds: &bounds,
            prefix: bounds.lower.as_deref().filter(|_| range.is_prefix),
            context: ReadContext { meter: Some(meter), ..ReadContext::new(&**environment) },
            sources,
            tombstones,
            prefixes: FilterMeter::default(),
        };
        finder.add_tables(view)?;
        let SourceFinder { sources, tombstones, prefixes, .. } = finder;
        if prefixes.checks > 0 {
            family.ledger.count(Counter::PrefixFilterChecks, prefixes.checks);
            family.ledger.count(Counter::PrefixFilterNegatives, prefixes.negatives);
        }
        let merge = MergingCursor::new(sources);
        let mut rows = RowCursor::new(Arc::clone(environment), merge, tombstones, snapshot, bounds);
        *rows.meter() = meter.take();
        rows.show_rows_of(Arc::clone(&family.rows));
        Ok(rows)
    }

    /// The value of a key whose newest entry is a merge operand.
    #[cold]
    pub(crate) fn get_folded(
        &self,
        family: &Family,
        view: &View,
        key: &[u8],
        (snapshot, tombstones): ReadPoint,
        meter: &mut WorkMeter,
    ) -> Result<Option<Slice>> {
        let range = ScanRange::from(key..=key);
        let mut rows = self.rows_over(family, view, range, (snapshot, tombstones), None, meter)?;
        let found = rows.next();
        family.ledger.count(Counter::FoldedOperands, rows.take_moved().folded_operands);
        *meter = rows.meter().take();
        family.ledger.count(Counter::ReadAheadBytes, meter.read_ahead_bytes);
        Ok(found?.then(|| Slice::copy_from(rows.value())))
    }
}

/// The value of a key in a view. Every entry of a key in a newer run is newer than those in
/// older runs, so the first run with an entry or a covering range tombstone decides. Its one caller
/// is every get: a call of its own would cost a cached one 36 instructions.
#[inline(always)]
fn get_in(
    view: &View,
    key: &[u8],
    sequence: SequenceNumber,
    tombstones: &TombstoneSet,
    clock: &dyn Environment,
    meter: &mut WorkMeter,
) -> Result<Found> {
    let covering = match tombstones.is_empty() {
        true => 0,
        false => tombstones.covering_sequence(key, sequence),
    };
    for memory in view.memories() {
        if let Some((kind, trailer, value)) = memory.table.get(key, sequence) {
            return Ok(match kind {
                _ if trailer.sequence() < covering => Found::Deleted,
                ValueKind::Put => Found::Value(Slice::copy_from(value)),
                ValueKind::Merge => Found::Operand,
                _ => Found::Deleted,
            });
        }
    }
    if covering > 0 {
        return Ok(Found::Deleted);
    }
    let mut context = ReadContext { clock, meter: Some(meter), fill_cache: true };
    // Every filter is asked by the same hash.
    let key = HashedKey::new(key);
    for table in view.version.level(0) {
        if table.metadata.range.contains(key.bytes) {
            match get_in_table(table, key, sequence, &mut context)? {
                Found::Nothing => {}
                found => return Ok(found),
            }
        }
    }
    let levels = 1..view.version.level_count();
    let mut tables = levels.filter_map(|level| view.version.table_for_key(level, key.bytes));
    let mut table = tables.next();
    while let Some(asked) = table {
        table = tables.next();
        // Where there are many tables a filter is a miss of the processor's caches: that of the next
        // level is under way while this one is asked.
        if let Some(Ok(next)) = table.map(|next| next.reader()) {
            next.prefetch_filter(key.hash);
        }
        match get_in_table(asked, key, sequence, &mut context)? {
            Found::Nothing => {}
            found => return Ok(found),
        }
    }
    Ok(Found::Nothing)
}

fn newest_in_tables(
    view: &View,
    key: &[u8],
    clock: &dyn Environment,
    meter: &mut WorkMeter,
) -> Result<SequenceNumber> {
    let mut context = ReadContext { meter: Some(meter), ..ReadContext::new(clock) };
    let level0 = view.version.level(0).iter();
    let deeper =
        (1..view.version.level_count()).filter_map(|level| view.version.table_for_key(level, key));
    for table in level0.filter(|table| table.metadata.range.contains(key)).chain(deeper) {
        let reader = table.reader()?;
        let covering = match table.metadata.range_tombstones {
            0 => 0,
            _ => reader.range_tombstones(&mut context)?.covering_sequence(key, SEQUENCE_MAX),
        };
        let entry = reader.get(key, SEQUENCE_MAX, &mut context)?;
        if entry.is_some() {
            reader.meter_found(&mut context);
        }
        let newest = entry.map_or(0, |(trailer, _)| trailer.sequence()).max(covering);
        if newest > 0 {
            return Ok(newest);
        }
    }
    Ok(0)
}

fn get_in_table(
    table: &TableFile,
    key: HashedKey<'_>,
    sequence: SequenceNumber,
    context: &mut ReadContext<'_>,
) -> Result<Found> {
    let reader = table.reader()?;
    let covering = if table.metadata.range_tombstones == 0 {
        0
    } else {
        reader.range_tombstones(context)?.covering_sequence(key.bytes, sequence)
    };
    let mut entry = reader.get_hashed(key, sequence, context);
    if planted!(ReadErrorTakenForMiss) && entry.is_err() {
        entry = Ok(None);
    }
    if matches!(entry, Ok(Some(_))) {
        reader.meter_found(context);
    }
    Ok(match entry? {
        Some((trailer, value)) if trailer.sequence() >= covering => match trailer.kind() {
            Some(ValueKind::Put) => Found::Value(value),
            Some(ValueKind::Merge) => Found::Operand,
            _ => Found::Deleted,
        },
        Some(_) => Found::Deleted,
        None if covering > 0 => Found::Deleted,
        None => Found::Nothing,
    })
}

/// Gathers what a cursor reads from tables. Runs whose filter excludes the prefix are left out,
/// but never their range tombstones: those cover keys that the filter does not know.
struct SourceFinder<'a> {
    bounds: &'a Bounds,
    prefix: Option<&'a [u8]>,
    context: ReadContext<'a>,
    sources: Vec<Source>,
    tombstones: TombstoneSet,
    /// What filters said of the prefix.
    prefixes: FilterMeter,
}

impl SourceFinder<'_> {
    fn add_tables(&mut self, view: &View) -> Result<()> {
        for table in view.version.level(0) {
            if !self.bounds.may_overlap(&table.metadata.range) {
                continue;
            }
            let is_excluded = self.is_excluded(table)?;
            if planted!(PrefixHidesTombstones) && is_excluded {
                continue;
            }
            self.push_tombstones(table)?;
            if !is_excluded {
                self.sources.push(Source::Table(table.reader()?.cursor()));
            }
        }
        for level in 1..view.version.level_count() {
            let places = self.bounds.places_in(&view.version, level);
            for table in view.version.with_range_tombstones(level, places.clone()) {
                self.push_tombstones(table)?;
            }
            let tables = view.version.level(level).get(places).unwrap_or_default();
            let nothing_there = match tables {
                [] => true,
                [table] => self.is_excluded(table)?,
                _ => false,
            };
            if !nothing_there {
                let cursor = LevelCursor::new(Arc::clone(&view.version), level);
                self.sources.push(Source::Level(cursor));
            }
        }
        Ok(())
    }

    fn is_excluded(&mut self, table: &TableFile) -> Result<bool> {
        let Some(prefix) = self.prefix else { return Ok(false) };
        let reader = table.reader()?;
        let is_excluded = !reader.prefix_may_match(prefix, &mut self.context)?;
        if reader.filter_knows(prefix) {
            self.prefixes.checks += 1;
            self.prefixes.negatives += u64::from(is_excluded);
        }
        Ok(is_excluded)
    }

    fn push_tombstones(&mut self, table: &TableFile) -> Result<()> {
        if table.metadata.range_tombstones > 0 {
            self.tombstones.push(table.reader()?.range_tombstones(&mut self.context)?);
        }
        Ok(())
    }
}
