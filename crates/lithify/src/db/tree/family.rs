//! A column family: what is in memory and which tables are live, as one immutable view that
//! readers take without a lock; and the public handle.

use crate::base::{
    Charge, ColumnFamilyId, Level, MemoryUse, SequenceNumber, Slice, Trailer, ValueKind,
};
use crate::compaction::picker::Cursors;
use crate::compaction::{
    FormatPolicy, RetainPlan, SuppliedDictionaries, TablePlace, recall_decisions, recorded_in,
};
use crate::db::explain::Explanation;
use crate::db::inner::{DbInner, lock};
use crate::db::reading::cursor::{Cursor, ScanRange};
use crate::db::reading::iter::{Iter, Keys, Values};
use crate::db::reading::snapshot::{Moment, Readers, Snapshot};
use crate::iter::{Announced, FamilyRows};
use crate::manifest::{Change, KeyRange, Version};
use crate::memtable::chunk_pool::ChunkPool;
use crate::memtable::{MemTable, MemTableWriter};
use crate::operator::MergeOperator;
use crate::options::CfOptions;
use crate::retention::CompactionFilter;
use crate::stats::{FamilyLedger, FamilyStatistics};
use crate::table::{TableOrigin, TombstoneMap};
use crate::{Error, ErrorKind, Result};
use arc_swap::{ArcSwap, ArcSwapOption, Guard};
use std::fmt;
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
        let view = View { active: Memory::new(chunks), immutable: Vec::new(), version };
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
                return View { active: view.active.clone(), ..copy_of(view) };
            }
            switched = true;
            view.active.recharge();
            view.active.set_complete_through(complete_through);
            let mut immutable = vec![view.active.clone()];
            immutable.extend(view.immutable.iter().cloned());
            View { active: Memory::new(chunks), immutable, version: view.version.clone() }
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
        });
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

    /// Refuses operands that nothing would fold.
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
    }
}

/// A handle on a column family: an ordered map of its own, with its own options, that shares
/// log, snapshots, cache and memory budget with the others of its database. Cheap to clone, may
/// be used from any thread. After the family is dropped or the database closed every call gives
/// an error of kind [`ErrorKind::Closed`].
#[derive(Clone)]
pub struct ColumnFamily {
    pub(crate) inner: Arc<DbInner>,
    pub(crate) family: Arc<Family>,
}

impl fmt::Debug for ColumnFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("ColumnFamily");
        fields.field("name", &self.name()).field("id", &self.id()).finish_non_exhaustive()
    }
}

/// Handles are equal that are of the same family of the same open database.
impl PartialEq for ColumnFamily {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.family, &other.family)
    }
}

impl Eq for ColumnFamily {}

impl ColumnFamily {
    /// The name.
    pub fn name(&self) -> &str {
        &self.family.name
    }

    /// The id, never reused within the database.
    pub fn id(&self) -> ColumnFamilyId {
        self.family.id
    }

    /// The options in force.
    pub fn options(&self) -> CfOptions {
        (*self.family.options()).clone()
    }

    /// What compression its levels have, why, and what else it would cost.
    ///
    /// ```
    /// # let directory = std::env::temp_dir().join(format!("lithify-explain-{}", std::process::id()));
    /// use lithify::{CfOptions, Db, Objective, Options};
    /// let db = Db::open(&directory, Options::default())?;
    /// let options = CfOptions { compression: Objective::Space.into(), ..CfOptions::default() };
    /// let family = db.column_family("rocks", options)?;
    /// family.put(b"basalt", b"igneous")?;
    /// family.flush()?;
    /// println!("{}", family.explain());
    /// # drop((family, db));
    /// # std::fs::remove_dir_all(&directory)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn explain(&self) -> Explanation {
        self.inner.explain(&self.family)
    }

    /// What the family holds, and what was done with it since the database was opened.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = lithify::Db::open(directory.path(), lithify::Options::default())?;
    /// use lithify::stats::Counter;
    /// let rocks = db.column_family("rocks", lithify::CfOptions::default())?;
    /// rocks.put(b"basalt", b"igneous")?;
    /// rocks.flush()?;
    /// let stats = rocks.stats();
    /// assert_eq!((stats.tables, stats.figures.counter(Counter::Puts)), (1, 1));
    /// # Ok::<(), lithify::Error>(())
    /// ```
    pub fn stats(&self) -> FamilyStatistics {
        self.inner.family_statistics(&self.family)
    }

    /// Supplies compression dictionaries by their content: tables of the family that are written
    /// from now on, of 1 MiB and more in codecs `lz4` or `zstd`, are compressed with the first one.
    /// An empty list takes them back. A table holds a copy of what it uses, so tables stay readable
    /// without them. They are not kept with the options: supply them after each opening.
    ///
    /// The content is best made by a trainer (`zstd --train`) from rows of the family, 16 to 64 KiB.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] if a content has not 8 bytes to 1 MiB.
    pub fn supply_dictionaries(&self, contents: &[&[u8]]) -> Result<()> {
        self.family.set_dictionaries(SuppliedDictionaries::new(contents, None)?);
        Ok(())
    }

    /// Gives the code of the family's merge operator, where it was not opened with it: by
    /// [`crate::Db::existing_column_family`], for one.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] if the family has none, or one of another name.
    pub fn supply_merge_operator(&self, operator: MergeOperator) -> Result<()> {
        self.family.check_merges()?;
        self.family.rows.set_operator(operator.over(&self.family.rows.operator())?);
        Ok(())
    }

    /// Has compactions of the family ask a filter what becomes of rows, from the next one on. It takes the
    /// place of the one before; `None` takes it back. It is not kept with the options: supply it after
    /// each opening. [`ColumnFamily::compact_range`] brings it to all rows.
    pub fn supply_compaction_filter(&self, filter: impl Into<Option<CompactionFilter>>) {
        self.family.filter.store(filter.into().map(Arc::new));
    }

    /// Has the family follow a rule of another engine, until its options are changed or it is opened
    /// again: for harnesses.
    #[cfg(feature = "internals")]
    #[doc(hidden)]
    pub fn follow(&self, rule: crate::compaction::Rule) {
        let block_size_bytes = match self.family.options().block_size_bytes {
            0 => 16 << 10,
            size => size,
        };
        let formats = crate::compaction::OfOthers::new(rule, block_size_bytes);
        self.family.set_formats(Arc::new(formats));
        self.inner.watch_families();
    }

    /// Supplies dictionaries of which each table uses one or none by chance, however small it is:
    /// for harnesses.
    ///
    /// # Errors
    /// As [`ColumnFamily::supply_dictionaries`].
    #[cfg(feature = "internals")]
    #[doc(hidden)]
    pub fn vary_dictionaries(&self, contents: &[&[u8]], seed: u64) -> Result<()> {
        self.family.set_dictionaries(SuppliedDictionaries::new(contents, Some(seed))?);
        Ok(())
    }

    pub(crate) fn check_belongs_to(&self, db: &crate::Db) -> Result<()> {
        if !Arc::ptr_eq(&self.inner, &db.inner) {
            return Err(Error::invalid(format!(
                "the column family {:?} belongs to another database",
                self.family.name
            )));
        }
        Ok(())
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// A key over 65,535 bytes or a value over 64 MiB, with a time to live 4 bytes less
    /// ([`ErrorKind::LimitExceeded`]); a row lock not granted in time; a closed database or dropped
    /// family; what the log refuses.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.inner.write_one(&self.family, ValueKind::Put, key.as_ref(), value.as_ref())
    }

    /// Adds an operand to a key, without reading it: the family's [`crate::MergeOperator`] makes a
    /// value of all operands and what was put before them, when it is read, flushed or compacted.
    ///
    /// # Errors
    /// `InvalidArgument` if the family has no merge operator; as [`ColumnFamily::put`].
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.family.check_merges()?;
        self.inner.write_one(&self.family, ValueKind::Merge, key.as_ref(), operand.as_ref())
    }

    /// Removes a key; no error if it is not there.
    ///
    /// # Errors
    /// As [`ColumnFamily::put`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.inner.write_one(&self.family, ValueKind::Delete, key.as_ref(), &[])
    }

    /// Removes a key that was put **exactly once** since it was last single-deleted, and that is
    /// never removed by [`ColumnFamily::delete`]. The tombstone then vanishes together with that
    /// put at the first merge that sees both, instead of travelling to the bottom.
    ///
    /// In a family with a merge operator or a time to live it is a plain delete, for there a key may have
    /// more entries than were put.
    ///
    /// If the key was put twice, an older value may show again; merges that find a second put
    /// under a settled single delete count it (`single_delete_misuses` in the statistics).
    ///
    /// # Errors
    /// As [`ColumnFamily::put`].
    pub fn single_delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.inner.write_one(&self.family, self.family.single_delete_kind(), key.as_ref(), &[])
    }

    /// Removes all keys from `start` on, up to but without `end`, by one entry. Takes no row
    /// locks.
    ///
    /// # Errors
    /// `InvalidArgument` if `end` lies before `start`; else as [`ColumnFamily::put`].
    pub fn delete_range(&self, start: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        let (start, end) = (start.as_ref(), end.as_ref());
        self.inner.write_one(&self.family, ValueKind::RangeDelete, start, end)
    }

    /// The value of a key. The slice points into a cached block where it can, and keeps that
    /// block in memory while it lives.
    ///
    /// # Errors
    /// [`ErrorKind::Corruption`] with file and offset; [`ErrorKind::Io`]; closed or dropped.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        self.inner.get(&self.family, key.as_ref(), None)
    }

    /// The value that a key had at a snapshot.
    ///
    /// # Errors
    /// As [`ColumnFamily::get`]; `InvalidArgument` for a snapshot of another database.
    pub fn get_at(&self, key: impl AsRef<[u8]>, snapshot: &Snapshot) -> Result<Option<Slice>> {
        self.inner.get(&self.family, key.as_ref(), Some(self.moment_of(snapshot)?))
    }

    /// The values of several keys, in their order, all at one point in time. Faster than a get
    /// of each: every block is fetched once, and those to be read are asked for together.
    ///
    /// # Errors
    /// As [`ColumnFamily::get`]; the first error ends the call.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Slice>>> {
        self.inner.multi_get(&self.family, keys.iter().map(AsRef::as_ref), None)
    }

    /// The values that several keys had at a snapshot, in their order.
    ///
    /// # Errors
    /// As [`ColumnFamily::multi_get`]; `InvalidArgument` for a snapshot of another database.
    pub fn multi_get_at<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        snapshot: &Snapshot,
    ) -> Result<Vec<Option<Slice>>> {
        let at = Some(self.moment_of(snapshot)?);
        self.inner.multi_get(&self.family, keys.iter().map(AsRef::as_ref), at)
    }

    /// Whether a key has a value; reads no value.
    ///
    /// # Errors
    /// As [`ColumnFamily::get`].
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// A cursor over the rows of a range of keys, as of now. It lends keys and values and
    /// allocates nothing per row; [`Cursor::iter`] is there for convenience.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = lithify::Db::open(directory.path(), lithify::Options::default())?;
    /// let rocks = db.column_family("rocks", lithify::CfOptions::default())?;
    /// rocks.put(b"basalt", b"igneous")?;
    /// rocks.put(b"chalk", b"sedimentary")?;
    /// let mut rows = rocks.cursor(b"b"..)?;
    /// while rows.next()? {
    ///     println!("{:?} is {:?}", rows.key(), rows.value());
    /// }
    /// # Ok::<(), lithify::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ColumnFamily::get`].
    pub fn cursor(&self, range: impl Into<ScanRange>) -> Result<Cursor> {
        self.inner.open_cursor(&self.family, range.into(), None)
    }

    /// A cursor over a range of keys at a snapshot.
    ///
    /// # Errors
    /// As [`ColumnFamily::get_at`].
    pub fn cursor_at(&self, range: impl Into<ScanRange>, snapshot: &Snapshot) -> Result<Cursor> {
        let at = self.moment_of(snapshot)?;
        self.inner.open_cursor(&self.family, range.into(), Some(at))
    }

    /// A cursor over the keys that begin with `prefix`. Where the prefix is at least as long as
    /// the family's `prefix_length_bytes`, tables whose filter excludes it are not read.
    ///
    /// # Errors
    /// As [`ColumnFamily::get`].
    pub fn prefix_cursor(&self, prefix: impl AsRef<[u8]>) -> Result<Cursor> {
        self.inner.open_prefix_cursor(&self.family, prefix.as_ref(), None)
    }

    /// [`ColumnFamily::prefix_cursor`] at a snapshot.
    ///
    /// # Errors
    /// As [`ColumnFamily::get_at`].
    pub fn prefix_cursor_at(
        &self,
        prefix: impl AsRef<[u8]>,
        snapshot: &Snapshot,
    ) -> Result<Cursor> {
        let at = self.moment_of(snapshot)?;
        self.inner.open_prefix_cursor(&self.family, prefix.as_ref(), Some(at))
    }

    /// All rows in the order of their keys, as of now, as an iterator that owns what it gives:
    /// from both ends, and for as long as anybody likes. [`ColumnFamily::cursor`] copies nothing.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = lithify::Db::open(directory.path(), lithify::Options::default())?;
    /// let rocks = db.column_family("rocks", lithify::CfOptions::default())?;
    /// rocks.put("basalt", "igneous")?;
    /// rocks.put("chalk", "sedimentary")?;
    /// for row in rocks.iter().rev() {
    ///     let (key, value) = row?;
    ///     println!("{key:?} is {value:?}");
    /// }
    /// # Ok::<(), lithify::Error>(())
    /// ```
    pub fn iter(&self) -> Iter {
        self.range(..)
    }

    /// The rows of a range of keys, as [`ColumnFamily::iter`] gives them.
    pub fn range(&self, range: impl Into<ScanRange>) -> Iter {
        Iter::new(Some(self.clone()), range.into(), self.inner.new_snapshot())
    }

    /// The rows whose keys begin with `prefix`, as [`ColumnFamily::iter`] gives them.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        self.range(ScanRange::prefix(prefix))
    }

    /// The keys of all rows.
    pub fn keys(&self) -> Keys {
        self.iter().keys()
    }

    /// The values of all rows, in the order of their keys.
    pub fn values(&self) -> Values {
        self.iter().values()
    }

    fn moment_of<'a>(&self, snapshot: &'a Snapshot) -> Result<&'a Moment> {
        if !Arc::ptr_eq(&snapshot.inner, &self.inner) {
            return Err(Error::invalid("the snapshot belongs to another database"));
        }
        Ok(&snapshot.moment)
    }

    /// Writes the memtable of this family to a table and waits for it.
    ///
    /// # Errors
    /// What the disk refuses; closed or dropped.
    pub fn flush(&self) -> Result<()> {
        self.inner.flush_family(&self.family)
    }

    /// Compacts the tables that hold keys of a range, level by level down to the bottom, and
    /// waits for it. Memtables are flushed first.
    ///
    /// # Errors
    /// As [`ColumnFamily::flush`].
    pub fn compact_range(&self, start: Option<&[u8]>, end: Option<&[u8]>) -> Result<()> {
        self.inner.compact_range(&self.family, start, end)
    }

    /// Merges the runs of level 0 into the base level and waits for it: afterwards a read meets no
    /// run but the one of each level, unless somebody writes meanwhile. Memtables are flushed first.
    /// Levels below are compacted only where their size asks for it, as always.
    ///
    /// # Errors
    /// As [`ColumnFamily::flush`].
    pub fn compact_level0(&self) -> Result<()> {
        self.inner.compact_level0(&self.family)
    }
}
