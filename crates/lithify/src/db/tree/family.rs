//! A column family: what is in memory and which tables are live, as one immutable view that
//! readers take without a lock.

use crate::base::{Charge, ColumnFamilyId, Level, MemoryUse, SequenceNumber, Trailer, ValueKind};
use crate::compaction::picker::Cursors;
use crate::compaction::{
    FormatPolicy, RetainPlan, SuppliedDictionaries, TablePlace, recall_decisions, recorded_in,
};
use crate::db::inner::lock;
use crate::db::reading::snapshot::Readers;
use crate::iter::{Announced, FamilyRows};
use crate::manifest::{Change, KeyRange, Version};
use crate::memtable::chunk_pool::ChunkPool;
use crate::memtable::{MemTable, MemTableWriter};
use crate::options::CfOptions;
use crate::retention::CompactionFilter;
use crate::stats::FamilyLedger;
use crate::table::{TableOrigin, TombstoneMap};
use crate::{Error, ErrorKind, Result};
use arc_swap::{ArcSwap, ArcSwapOption, Guard};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// So many fragments all range deletes of a memtable may touch: a few tenths of a second of work.
const TOMBSTONE_WORK_MAX: u64 = 1 << 20;

/// A memtable with what the engine keeps beside it.
pub(crate) struct Memory {
    pub(crate) table: Arc<MemTable>,
    charge: Mutex<Charge>,
    /// The range tombstones as reads and flushes want them.
    tombstones: RwLock<TombstoneMap>,
    /// The WAL segment that holds its first write; `u64::MAX` while it is empty.
    oldest_segment: AtomicU64,
    /// All writes of the family up to here are in this memtable or in older ones. Set when it
    /// becomes immutable.
    complete_through: AtomicU64,
}

impl Memory {
    pub(crate) fn new(chunks: &Arc<ChunkPool>) -> Arc<Self> {
        Arc::new(Memory {
            table: Arc::new(MemTable::in_pool(chunks)),
            charge: Mutex::new(chunks.budget().charge(MemoryUse::Memtable, 0)),
            tombstones: RwLock::default(),
            oldest_segment: AtomicU64::new(u64::MAX),
            complete_through: AtomicU64::new(0),
        })
    }

    /// Brings the charge up to what the memtable holds, and gives it.
    pub(crate) fn recharge(&self) -> usize {
        let bytes = self.memory_bytes();
        lock(&self.charge).resize(bytes);
        bytes
    }

    /// Whether range deletes have become slow here, as snapshots keep many of them apart.
    pub(crate) fn is_worn(&self) -> bool {
        self.table.has_range_tombstones()
            && self.read_tombstones(TombstoneMap::work) >= TOMBSTONE_WORK_MAX
    }

    /// Everything that it takes from the memory budget.
    pub(crate) fn memory_bytes(&self) -> usize {
        let of_tombstones = match self.table.has_range_tombstones() {
            true => self.read_tombstones(TombstoneMap::memory_bytes),
            false => 0,
        };
        self.table.memory_bytes() + of_tombstones
    }

    /// Deletes the older entries from `start` to before `end`. `readers` are the sequence numbers
    /// of live snapshots, ascending, and the last commit.
    pub(crate) fn delete_range(
        &self,
        writer: &mut MemTableWriter<'_>,
        (start, end): (&[u8], &[u8]),
        sequence: SequenceNumber,
        readers: &[SequenceNumber],
    ) {
        writer.delete_range(start, end, sequence);
        let mut tombstones = self.tombstones.write().unwrap_or_else(PoisonError::into_inner);
        tombstones.insert(start, end, sequence, readers);
    }

    fn read_tombstones<R>(&self, read: impl FnOnce(&TombstoneMap) -> R) -> R {
        read(&self.tombstones.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The range tombstones as they are now; `None` if there are none.
    pub(crate) fn tombstones(&self) -> Option<TombstoneMap> {
        self.table.has_range_tombstones().then(|| self.read_tombstones(TombstoneMap::clone))
    }

    /// The range tombstones that a reader at `sequence` sees, whoever it is: made from all of them,
    /// so it takes as long as there are many.
    pub(crate) fn tombstones_at(&self, sequence: SequenceNumber) -> TombstoneMap {
        let mut seen: Vec<_> = self.table.range_tombstones().collect();
        seen.retain(|tombstone| tombstone.sequence <= sequence);
        let mut map = TombstoneMap::default();
        for tombstone in seen.iter().rev() {
            map.insert(tombstone.start, tombstone.end, tombstone.sequence, &[]);
        }
        map
    }

    /// The keys that it holds, and those that it deletes by range.
    pub(crate) fn ranges(&self) -> Vec<KeyRange> {
        let mut ranges = Vec::new();
        let (mut first, mut last) = (self.table.cursor(), self.table.cursor());
        first.seek_to_first();
        last.seek_to_last();
        if first.valid() {
            ranges.push(KeyRange::inclusive(first.key(), last.key()));
        }
        let deleted = |tombstones: &TombstoneMap| {
            let (start, end) = tombstones.bounds()?;
            Some(KeyRange { largest_exclusive: true, ..KeyRange::inclusive(start, end) })
        };
        ranges.extend(self.read_tombstones(deleted));
        ranges
    }

    /// Whether it has an entry, or deletes by range, in `range`.
    pub(crate) fn touches(&self, range: &KeyRange) -> bool {
        let mut cursor = self.table.cursor();
        cursor.seek(&range.smallest, Trailer(u64::MAX));
        let has_entry = cursor.valid() && range.contains(cursor.key());
        let KeyRange { smallest, largest, largest_exclusive } = range;
        has_entry || self.read_tombstones(|t| t.overlaps(smallest, largest, *largest_exclusive))
    }

    pub(crate) fn note_segment(&self, segment: u64) {
        self.oldest_segment.fetch_min(segment, Ordering::AcqRel);
    }

    pub(crate) fn oldest_segment(&self) -> u64 {
        self.oldest_segment.load(Ordering::Acquire)
    }

    pub(crate) fn set_complete_through(&self, sequence: SequenceNumber) {
        self.complete_through.store(sequence, Ordering::Release);
    }

    pub(crate) fn complete_through(&self) -> SequenceNumber {
        self.complete_through.load(Ordering::Acquire)
    }
}

/// Everything that a read of one family looks at.
pub(crate) struct View {
    /// Where writes go.
    pub(crate) active: Arc<Memory>,
    /// Full memtables that wait for their flush, newest first.
    pub(crate) immutable: Vec<Arc<Memory>>,
    /// The live tables.
    pub(crate) version: Arc<Version>,
    /// The sequence number of the last ingest among them since the database was opened.
    last_ingest: SequenceNumber,
}

impl View {
    /// All memtables, newest first.
    pub(crate) fn memories(&self) -> impl Iterator<Item = &Arc<Memory>> {
        std::iter::once(&self.active).chain(&self.immutable)
    }
}

/// A column family inside the engine.
pub(crate) struct Family {
    pub(crate) id: ColumnFamilyId,
    pub(crate) name: String,
    /// Where what concerns it alone is counted.
    pub(crate) ledger: Arc<FamilyLedger>,
    options: ArcSwap<CfOptions>,
    formats: ArcSwap<Arc<dyn FormatPolicy>>,
    /// What is supplied beside the options.
    dictionaries: ArcSwap<SuppliedDictionaries>,
    filter: ArcSwapOption<CompactionFilter>,
    view: ArcSwap<View>,
    /// Where each level was last compacted.
    pub(crate) cursors: Mutex<Cursors>,
    /// What its cursors share.
    pub(crate) rows: Arc<FamilyRows>,
    /// Held while the view is replaced.
    replacing: Mutex<()>,
    dropped: AtomicBool,
    /// The sequence number of the last range delete or ingest: these take no row locks.
    last_range_write: AtomicU64,
    /// The sequence number of the last ingest, which the view shows.
    last_ingest: AtomicU64,
}

impl Family {
    pub(crate) fn new(
        id: ColumnFamilyId,
        name: &str,
        options: CfOptions,
        version: Arc<Version>,
        (chunks, announced, ledger): (&Arc<ChunkPool>, &Arc<Announced>, Arc<FamilyLedger>),
    ) -> Arc<Self> {
        let cursors = Cursors::new(version.level_count());
        let active = Memory::new(chunks);
        let view = View { active, immutable: Vec::new(), version, last_ingest: 0 };
        Arc::new(Family {
            id,
            name: name.to_string(),
            rows: Arc::new(FamilyRows::new(
                Arc::clone(&ledger),
                announced,
                (options.merge_operator.clone(), options.time_to_live_s),
            )),
            filter: ArcSwapOption::empty(),
            ledger,
            formats: ArcSwap::from_pointee(options.formats()),
            dictionaries: ArcSwap::default(),
            options: ArcSwap::from_pointee(options),
            view: ArcSwap::from_pointee(view),
            cursors: Mutex::new(cursors),
            replacing: Mutex::new(()),
            dropped: AtomicBool::new(false),
            last_range_write: AtomicU64::new(0),
            last_ingest: AtomicU64::new(0),
        })
    }

    /// What tables say of where they belong; all writes up to `flushed_through` are in tables.
    pub(crate) fn origin_of_tables(&self, flushed_through: SequenceNumber) -> TableOrigin {
        TableOrigin { family_id: self.id, family_name: self.name.clone(), flushed_through }
    }

    pub(crate) fn options(&self) -> Arc<CfOptions> {
        self.options.load_full()
    }

    /// What the family has when it is opened with these options.
    pub(crate) fn options_with(&self, options: CfOptions) -> Result<CfOptions> {
        let merge_operator = (*self.rows.operator()).clone();
        options.over(&CfOptions { merge_operator, ..(*self.options()).clone() })
    }

    /// The policy that these options ask for, with the dictionaries that were supplied and with what is
    /// known of the family.
    pub(crate) fn formats_under(&self, options: &CfOptions) -> Arc<dyn FormatPolicy> {
        self.taught(self.dictionaries.load().over(options.formats()))
    }

    /// Tells a policy that decides what the one before it knows, or what tables record.
    fn taught(&self, formats: Arc<dyn FormatPolicy>) -> Arc<dyn FormatPolicy> {
        match (formats.deciding(), self.formats().deciding()) {
            (Some(next), Some(before)) => next.adopt(before),
            (Some(_), None) => {
                let version = Arc::clone(&self.view().version);
                recall_decisions(&*formats, &version, recorded_in);
            }
            (None, _) => {}
        }
        formats
    }

    /// Takes options and the policy that they ask for.
    pub(crate) fn set_options(&self, options: CfOptions, formats: Arc<dyn FormatPolicy>) {
        self.formats.store(Arc::new(formats));
        self.rows.set_operator(options.merge_operator.clone());
        self.rows.set_time_to_live(options.time_to_live_s);
        self.options.store(Arc::new(options));
    }

    pub(crate) fn set_dictionaries(&self, dictionaries: SuppliedDictionaries) {
        self.set_formats(dictionaries.over(self.options().formats()));
        self.dictionaries.store(Arc::new(dictionaries));
    }

    /// Which rows go when they are compacted.
    pub(crate) fn filter(&self) -> Option<Arc<CompactionFilter>> {
        self.filter.load_full()
    }

    pub(crate) fn set_filter(&self, filter: Option<CompactionFilter>) {
        self.filter.store(filter.map(Arc::new));
    }

    /// Which rows a merge that keeps these readers may let go; `None` if rows go by deletes alone.
    pub(crate) fn retain_plan(
        &self,
        readers: &Readers,
        filter: Option<Arc<CompactionFilter>>,
    ) -> Option<RetainPlan> {
        let expiry = self.rows.expiry(|| readers.oldest_unix_time_s);
        let &Readers { newest_snapshot, now_s, .. } = readers;
        let is_needed = expiry.is_some() || filter.is_some();
        is_needed.then_some(RetainPlan { expiry, filter, newest_snapshot, now_s })
    }

    /// Decides the format of its tables.
    pub(crate) fn formats(&self) -> Arc<dyn FormatPolicy> {
        Arc::clone(&self.formats.load())
    }

    pub(crate) fn set_formats(&self, formats: Arc<dyn FormatPolicy>) {
        self.formats.store(Arc::new(self.taught(formats)));
    }

    /// A place in its tree.
    pub(crate) fn place(&self, level: Level) -> TablePlace {
        let level_count = self.view().version.level_count();
        TablePlace { family: Some(self.id), level, level_count }
    }

    /// What the manifest has to record so that it has the debts of the live tables under that
    /// policy. The caller holds the manifest.
    pub(crate) fn debt_changes(&self, formats: &dyn FormatPolicy) -> Vec<Change> {
        let version = Arc::clone(&self.view().version);
        let mut changes = Vec::new();
        // Tables of level 0 are short-lived.
        for (level, table) in version.tables().filter(|(level, _)| *level > 0) {
            let codec_debt = formats.debt(&self.place(level), &table.metadata).is_some();
            if codec_debt != table.metadata.codec_debt {
                changes.push(Change::MoveFile {
                    family: self.id,
                    number: table.metadata.number,
                    from: level,
                    to: level,
                    codec_debt,
                });
            }
        }
        changes
    }

    pub(crate) fn view(&self) -> Guard<Arc<View>> {
        self.view.load()
    }

    pub(crate) fn view_full(&self) -> Arc<View> {
        self.view.load_full()
    }

    /// Replaces the view by what `change` makes of it.
    pub(crate) fn replace_view(&self, change: impl FnOnce(&View) -> View) {
        let _replacing = lock(&self.replacing);
        let next = change(&self.view.load());
        self.view.store(Arc::new(next));
    }

    /// Takes the version of an ingest into the view, before its number is visible. The caller holds the
    /// writer.
    pub(crate) fn take_ingest(&self, version: &Arc<Version>, sequence: SequenceNumber) {
        self.replace_view(|view| View {
            version: Arc::clone(version),
            last_ingest: sequence,
            ..copy_of(view)
        });
        self.last_ingest.store(sequence, Ordering::Release);
        self.note_range_write(sequence);
    }

    /// Whether a view has the tables of every ingest that was visible before this call. An ingest is in
    /// tables at once, and a view knows no table that is newer than itself. But what is written behind the
    /// ingest may go into a memtable that the view has.
    #[inline]
    pub(crate) fn has_all_ingests(&self, view: &View) -> bool {
        self.last_ingest.load(Ordering::Acquire) <= view.last_ingest
    }

    /// Makes the active memtable immutable and starts a new one. Only the commit leader calls
    /// this, so nobody writes meanwhile. False if there was nothing in it.
    pub(crate) fn switch_memtable(
        &self,
        chunks: &Arc<ChunkPool>,
        complete_through: SequenceNumber,
    ) -> bool {
        let mut switched = false;
        self.replace_view(|view| {
            if view.active.table.is_empty() {
                return copy_of(view);
            }
            switched = true;
            view.active.recharge();
            view.active.set_complete_through(complete_through);
            let mut immutable = vec![view.active.clone()];
            immutable.extend(view.immutable.iter().cloned());
            View { active: Memory::new(chunks), immutable, ..copy_of(view) }
        });
        self.rows.dead_ranges.forget_unused();
        switched
    }

    /// Lets go of all data of a dropped family; cursors that are open keep what they read.
    pub(crate) fn forget_tables(&self, chunks: &Arc<ChunkPool>) {
        self.replace_view(|view| View {
            active: Memory::new(chunks),
            immutable: Vec::new(),
            version: Arc::new(Version::empty(view.version.level_count())),
            last_ingest: view.last_ingest,
        });
    }

    /// Notes a range delete or an ingest before it is visible. The caller holds the writer.
    pub(crate) fn note_range_write(&self, sequence: SequenceNumber) {
        self.last_range_write.store(sequence, Ordering::Relaxed);
    }

    /// The sequence number of the last range delete or ingest. The caller holds the writer.
    pub(crate) fn last_range_write(&self) -> SequenceNumber {
        self.last_range_write.load(Ordering::Relaxed)
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    pub(crate) fn mark_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
    }

    /// The oldest WAL segment that holds a write which is in no table yet; `u64::MAX` if none.
    pub(crate) fn oldest_segment(&self) -> u64 {
        self.view().memories().map(|memory| memory.oldest_segment()).min().unwrap_or(u64::MAX)
    }

    /// What a removal of a key that was put once becomes. A key that is merged has more than one entry
    /// to remove, and so has one that was put again because its row had expired.
    pub(crate) fn single_delete_kind(&self) -> ValueKind {
        let is_put_once = !self.rows.have_write_times();
        match is_put_once && self.options.load().merge_operator.is_none() {
            true => ValueKind::SingleDelete,
            false => ValueKind::Delete,
        }
    }

    /// Refuses operands where nothing would fold them.
    pub(crate) fn check_merges(&self) -> Result<()> {
        match self.options.load().merge_operator.is_none() {
            false => Ok(()),
            true => Err(Error::invalid(format!(
                "the column family {:?} has no merge operator: name one in \
                 CfOptions::merge_operator",
                self.name
            ))),
        }
    }

    /// Refuses an operand that nothing could fold: a row with one could not be read any more.
    pub(crate) fn check_operand(&self, operand: &[u8]) -> Result<()> {
        self.check_merges()?;
        self.rows.check_operand(operand)
    }

    pub(crate) fn check_alive(&self) -> Result<()> {
        if self.is_dropped() {
            return Err(Error::new(
                ErrorKind::Closed,
                format!("the column family {:?} was dropped", self.name),
            ));
        }
        Ok(())
    }
}

pub(crate) fn copy_of(view: &View) -> View {
    View {
        active: view.active.clone(),
        immutable: view.immutable.clone(),
        version: view.version.clone(),
        last_ingest: view.last_ingest,
    }
}
