//! The tree: column families, the versions of their tables, and the edits that change them.
//!
//! Owns: the families that are not dropped, the manifest, the memory that memtables leave to each
//! other, how far all memtables were switched together, and files that readers beside the database
//! may still need. Any thread may read the families, without a lock. They change with the writer and
//! the manifest held; versions with the manifest held. The order of the locks (manifest, then a
//! family's view) stands in `db/mod.rs`; the lock of the departing files is a leaf.

pub(crate) mod departing;
pub(crate) mod families;
pub(crate) mod family;
pub(crate) mod frozen;
pub(crate) mod versions;

use crate::Result;
use crate::base::{ColumnFamilyId, FileNumber, SequenceNumber, lock};
use crate::db::DEFAULT_FAMILY;
use crate::db::committing::commit::Writer;
use crate::iter::Announced;
use crate::manifest::{
    Change, Manifest, ManifestPosition, ManifestState, Version, VersionEdit, WitnessKeeper,
};
use crate::memtable::chunk_pool::ChunkPool;
use crate::options::CfOptions;
use crate::stats::{Cause, Ledger};
use arc_swap::{ArcSwap, ArcSwapOption, Guard};
use departing::Departing;
use family::Family;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The column families that are not dropped, by id.
pub(crate) type Families = BTreeMap<ColumnFamilyId, Arc<Family>>;

/// Messages show no more of a key than this.
const NAMED_KEY_BYTES_MAX: usize = 64;

/// See the module.
pub(crate) struct Tree {
    families: ArcSwap<Families>,
    /// The one of them that is named `default`.
    default_family: ArcSwapOption<Family>,
    manifest: Mutex<Manifest>,
    ledger: Arc<Ledger>,
    /// Manifest bytes that are in the ledger already.
    booked_bytes: AtomicU64,
    witness: Arc<WitnessKeeper>,
    /// The memory that memtables leave to each other.
    chunks: Arc<ChunkPool>,
    /// Which sequence numbers may be in use.
    announced: Arc<Announced>,
    /// The memtables of all families were last switched together at this sequence number.
    switched_through: AtomicU64,
    /// As a writer: files that readers may still need.
    departing: Mutex<Departing>,
}

impl Tree {
    /// No families yet, under this manifest.
    pub(crate) fn new(manifest: Manifest, ledger: &Arc<Ledger>, chunks: Arc<ChunkPool>) -> Self {
        let tree = Tree {
            families: ArcSwap::from_pointee(Families::new()),
            default_family: ArcSwapOption::empty(),
            witness: Arc::clone(manifest.witness()),
            manifest: Mutex::new(manifest),
            ledger: Arc::clone(ledger),
            booked_bytes: AtomicU64::new(0),
            chunks,
            announced: Arc::default(),
            switched_through: AtomicU64::new(0),
            departing: Mutex::default(),
        };
        tree.book_manifest(&tree.manifest());
        tree
    }

    /// Where a writer says which sequence numbers it is about to use.
    #[inline]
    pub(crate) fn announced(&self) -> &Announced {
        &self.announced
    }

    /// The families as they are now.
    pub(crate) fn families(&self) -> Guard<Arc<Families>> {
        self.families.load()
    }

    /// As [`Tree::families`], to be kept.
    pub(crate) fn all_families(&self) -> Vec<Arc<Family>> {
        self.families.load().values().cloned().collect()
    }

    /// The family of that id.
    pub(crate) fn family(&self, id: ColumnFamilyId) -> Option<Arc<Family>> {
        self.families.load().get(&id).cloned()
    }

    /// The family that is named `default`.
    #[inline]
    pub(crate) fn default_family(&self) -> Option<Arc<Family>> {
        self.default_family.load_full()
    }

    /// The family of that name.
    pub(crate) fn family_named(&self, name: &str) -> Option<Arc<Family>> {
        self.families.load().values().find(|family| family.name == name).cloned()
    }

    /// A family, with nothing in memory, that is not in the tree yet.
    pub(crate) fn new_family(
        &self,
        id: ColumnFamilyId,
        name: &str,
        options: CfOptions,
        version: Arc<Version>,
    ) -> Arc<Family> {
        let shared = (&self.chunks, &self.announced, self.ledger.add_family());
        Family::new(id, name, options, version, shared)
    }

    /// Replaces all families, while nobody else uses the tree.
    pub(crate) fn set_families(&self, families: Families) {
        let default = families.values().find(|family| family.name == DEFAULT_FAMILY).cloned();
        self.families.store(Arc::new(families));
        self.default_family.store(default);
    }

    /// The manifest, to make an edit or to read the state that all edits have led to.
    pub(crate) fn manifest(&self) -> MutexGuard<'_, Manifest> {
        lock(&self.manifest)
    }

    /// Behind all edits made so far.
    pub(crate) fn position(&self) -> ManifestPosition {
        self.manifest().position()
    }

    /// The oldest log segment that the state of all edits needs.
    pub(crate) fn oldest_log_needed(&self) -> FileNumber {
        self.manifest().state().oldest_log_needed()
    }

    /// What knows which log segments have begun.
    pub(crate) fn witness(&self) -> &WitnessKeeper {
        &self.witness
    }

    /// Appends an edit and gives the state that it leads to.
    pub(crate) fn append(
        &self,
        manifest: &mut Manifest,
        changes: Vec<Change>,
    ) -> Result<Arc<ManifestState>> {
        let appended = manifest.append(VersionEdit { changes });
        self.book_manifest(manifest);
        appended
    }

    /// Books what the manifest has written since the last call.
    fn book_manifest(&self, manifest: &Manifest) {
        let written_bytes = manifest.written_bytes();
        let booked_bytes = self.booked_bytes.swap(written_bytes, Ordering::AcqRel);
        let bytes = written_bytes.saturating_sub(booked_bytes);
        self.ledger.book_written(Cause::Manifest, 0, 0, bytes);
    }

    /// Makes the active memtable of a family immutable.
    pub(crate) fn switch_memtable(&self, writer: &mut Writer, family: &Family) {
        family.switch_memtable(&self.chunks, writer.last_sequence);
        writer.active.forget(family.id);
    }

    /// Makes the active memtables of all families immutable, at one sequence number.
    pub(crate) fn switch_all_memtables(&self, writer: &mut Writer) {
        for family in self.families.load().values() {
            self.switch_memtable(writer, family);
        }
        self.switched_through.store(writer.last_sequence, Ordering::Release);
    }

    /// The sequence number of the last switch of all memtables.
    pub(crate) fn switched_through(&self) -> SequenceNumber {
        self.switched_through.load(Ordering::Acquire)
    }

    /// Whether some memtable holds a write.
    pub(crate) fn has_writes_in_memory(&self) -> bool {
        let families = self.families.load();
        families
            .values()
            .any(|family| family.view().memories().any(|memory| !memory.table.is_empty()))
    }

    /// A row as a message names it.
    pub(crate) fn row_name(&self, family: ColumnFamilyId, key: &[u8]) -> String {
        let shown = key.get(..NAMED_KEY_BYTES_MAX).unwrap_or(key);
        let rest = match key.len() - shown.len() {
            0 => String::new(),
            rest => format!(" and {rest} bytes more"),
        };
        let key = shown.escape_ascii();
        match self.family(family) {
            Some(family) => format!("row \"{key}\"{rest} of column family {:?}", family.name),
            None => format!("row \"{key}\"{rest} of a dropped column family"),
        }
    }
}
