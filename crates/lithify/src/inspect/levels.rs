//! The tree of a database on disk: what every level holds, should hold, and is compressed with.
//!
//! The manifest says which tables are live. Each of them is then opened, and what its properties
//! and its index say is compared with the manifest: codecs are reported from the tables, not from
//! what was asked for.

use super::table::{NoClock, context_pool};
use crate::base::{ColumnFamilyId, FileNumber, Level, SequenceNumber};
use crate::codec::{CodecId, Compression, ContextPool};
use crate::compaction::levels::LevelTargets;
use crate::compaction::{CompressionPolicy, Evidence, TablePlace};
use crate::db::tree_shape;
use crate::fs::{FileSystem, OpenMode};
use crate::manifest::{
    Change, DirectoryListing, FamilyState, FileMetadata, FileName, LoadedManifest, TableFile,
};
use crate::options::CfOptions;
use crate::table::{FLAG_RAW_FALLBACK, ReadContext, TableParts, TableProperties, TableReader};
use crate::{Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// An open database can replace the manifest, and remove a table, between two looks at it. So
/// often is the tree read again before a missing file counts as missing.
pub(super) const ATTEMPTS: usize = 5;

/// How closely the tables are looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelsOptions {
    /// Read every block of every table and check all of it, instead of only the index.
    pub check: bool,
}

/// The tree of a database.
#[derive(Clone, Debug)]
pub struct Levels {
    /// The identity of the database.
    pub database_id: u128,
    /// The manifest in force.
    pub manifest_number: FileNumber,
    /// The largest sequence number that the manifest knows; the log may hold larger ones.
    pub last_sequence: SequenceNumber,
    /// Whether the manifest ends with a clean close: there is nothing in the log beyond it.
    pub is_closed: bool,
    /// The column families, by id.
    pub families: Vec<FamilyLevels>,
    /// What could not be read, in the order it was met.
    pub damage: Vec<Error>,
    /// The manifest's number and how many edits it had.
    manifest_stamp: (FileNumber, u64),
}

/// The tree of one column family.
#[derive(Clone, Debug)]
pub struct FamilyLevels {
    /// Its id.
    pub id: ColumnFamilyId,
    /// Its name.
    pub name: String,
    /// Its options, as the manifest keeps them.
    pub options: String,
    /// The level that level 0 is compacted into.
    pub base_level: Level,
    /// Every level, empty ones included.
    pub levels: Vec<LevelSum>,
    /// Every live table: by level, level 0 newest first, the others by key.
    pub tables: Vec<TableLine>,
}

/// What one level adds up to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelSum {
    /// The level.
    pub level: Level,
    /// Live tables.
    pub files: u64,
    /// Their length in bytes.
    pub size_bytes: u64,
    /// Bytes of their data blocks before compression.
    pub raw_bytes: u64,
    /// Bytes that the level should have at most; 0 for level 0 and levels above the base level.
    pub target_bytes: u64,
    /// The codec that the policy asks for; `None` where it is decided for each table.
    pub asked: Option<Compression>,
    /// How many tables were written with which codec, as their properties say.
    pub found: BTreeMap<String, u64>,
    /// How many data blocks are stored with which codec, as the tables' indexes say.
    pub blocks: BTreeMap<CodecId, u64>,
    /// Data blocks stored raw because they did not shrink enough.
    pub fallback_blocks: u64,
    /// Tables that the manifest has in codec debt.
    pub debt_files: u64,
    /// Their length in bytes.
    pub debt_bytes: u64,
    /// Point entries.
    pub entries: u64,
    /// Deletes and single deletes among them.
    pub tombstones: u64,
    /// Range tombstones.
    pub range_tombstones: u64,
    /// The smallest sequence number in it; `u64::MAX` without tables.
    pub smallest_sequence: SequenceNumber,
    /// The largest one.
    pub largest_sequence: SequenceNumber,
}

/// One live table.
#[derive(Clone, Debug)]
pub struct TableLine {
    /// The level that it is in.
    pub level: Level,
    /// What the manifest knows of it.
    pub metadata: FileMetadata,
    /// The level that it was written for; `None` if it could not be read.
    pub written_for: Option<u64>,
    /// What it was written with, as its properties say; `None` if it could not be read.
    pub found: Option<String>,
    /// How many of its data blocks are stored with which codec, as its index says.
    pub blocks: BTreeMap<CodecId, u64>,
    /// Data blocks stored raw because they did not shrink enough.
    pub fallback_blocks: u64,
}

impl LevelSum {
    /// An empty level.
    pub(super) fn new(level: Level, target_bytes: u64, asked: Option<Compression>) -> Self {
        LevelSum {
            level,
            files: 0,
            size_bytes: 0,
            raw_bytes: 0,
            target_bytes,
            asked,
            found: BTreeMap::new(),
            blocks: BTreeMap::new(),
            fallback_blocks: 0,
            debt_files: 0,
            debt_bytes: 0,
            entries: 0,
            tombstones: 0,
            range_tombstones: 0,
            smallest_sequence: u64::MAX,
            largest_sequence: 0,
        }
    }

    fn add(&mut self, table: &TableLine) {
        let metadata = &table.metadata;
        self.files += 1;
        self.size_bytes = self.size_bytes.saturating_add(metadata.size_bytes);
        self.raw_bytes = self.raw_bytes.saturating_add(metadata.raw_bytes);
        self.entries = self.entries.saturating_add(metadata.entries);
        self.tombstones = self.tombstones.saturating_add(metadata.tombstones);
        self.range_tombstones = self.range_tombstones.saturating_add(metadata.range_tombstones);
        self.smallest_sequence = self.smallest_sequence.min(metadata.smallest_sequence);
        self.largest_sequence = self.largest_sequence.max(metadata.largest_sequence);
        if metadata.codec_debt {
            self.debt_files += 1;
            self.debt_bytes = self.debt_bytes.saturating_add(metadata.size_bytes);
        }
        let found = table.found.clone().unwrap_or_else(|| "unreadable".to_string());
        *self.found.entry(found).or_default() += 1;
        for (codec, count) in &table.blocks {
            *self.blocks.entry(*codec).or_default() += count;
        }
        self.fallback_blocks += table.fallback_blocks;
    }

    /// Raw bytes per stored byte; `None` without tables.
    pub fn ratio(&self) -> Option<f64> {
        (self.size_bytes > 0).then(|| self.raw_bytes as f64 / self.size_bytes as f64)
    }
}

impl FamilyLevels {
    /// All levels together. Nothing is asked of the whole.
    pub fn total(&self) -> LevelSum {
        let mut total = LevelSum::new(0, 0, None);
        self.tables.iter().for_each(|table| total.add(table));
        total
    }
}

impl Levels {
    /// All column families together. Nothing is asked of the whole.
    pub fn total(&self) -> LevelSum {
        let mut total = LevelSum::new(0, 0, None);
        self.families.iter().flat_map(|family| &family.tables).for_each(|table| total.add(table));
        total
    }
}

/// Reads the tree of the database in a directory. Takes no lock: of an open database it shows a
/// state that was in force while it was read.
///
/// # Errors
/// [`ErrorKind::NotFound`] for no directory or one without a database,
/// [`ErrorKind::InvalidArgument`] for a file. [`ErrorKind::Corruption`] with file and offset for
/// a damaged `CURRENT` or manifest; what is damaged in tables is in [`Levels::damage`].
///
/// ```
/// use lithify::{CfOptions, Db, Options, fs::World, inspect};
/// let world = World::memory(7);
/// let options = Options { background_threads: 0, ..Options::default() };
/// let db = Db::open_in("rocks.db", options, world.clone())?;
/// let rocks = db.column_family("rocks", CfOptions::default())?;
/// rocks.put(b"basalt", b"igneous")?;
/// rocks.flush()?;
/// let levels = inspect::read_levels(&*world.files, "rocks.db".as_ref(), &Default::default())?;
/// let bottom = levels.families[0].levels.last().unwrap();
/// assert_eq!(bottom.entries, 1, "it overlaps nothing, so it went to the bottom");
/// # Ok::<(), lithify::Error>(())
/// ```
pub fn read_levels(
    files: &dyn FileSystem,
    directory: &Path,
    options: &LevelsOptions,
) -> Result<Levels> {
    check_directory(files, directory)?;
    let mut attempt = 1;
    loop {
        let result = read_once(files, directory, options);
        let has_moved_on = match &result {
            Ok(levels) if levels.damage.is_empty() => false,
            // Damage stays as it is; a tree that was changed meanwhile is another one.
            Ok(levels) => LoadedManifest::read(files, directory, &mut |_, _| {})
                .is_ok_and(|now| (now.number, now.edits) != levels.manifest_stamp),
            Err(error) => matches!(error.kind(), ErrorKind::Corruption | ErrorKind::NotFound),
        };
        if !has_moved_on || attempt == ATTEMPTS {
            return result;
        }
        attempt += 1;
    }
}

pub(super) fn check_directory(files: &dyn FileSystem, directory: &Path) -> Result<()> {
    let no_database = |what: &str| Error::new(ErrorKind::NotFound, what).in_file(directory);
    if !files.exists(directory)? {
        return Err(no_database("there is no such directory"));
    }
    if !files.is_directory(directory)? {
        return Err(Error::invalid("a database is a directory, this is a file").in_file(directory));
    }
    let current = FileName::Current.path(directory);
    if files.exists(&current)? {
        return Ok(());
    }
    let listing = DirectoryListing::read(files, directory)?;
    let is_data = |name: &FileName| matches!(name, FileName::Table(_) | FileName::Wal(_));
    if listing.names.iter().any(is_data) {
        let what = "there are tables or log segments, but no CURRENT";
        return Err(Error::corruption(what).in_file(current));
    }
    Err(no_database("there is no database in this directory"))
}

fn read_once(files: &dyn FileSystem, directory: &Path, options: &LevelsOptions) -> Result<Levels> {
    let mut last_is_close = false;
    let loaded = LoadedManifest::read(files, directory, &mut |_, edit| {
        last_is_close = edit.changes.iter().any(|change| matches!(change, Change::CleanClose(_)));
    })?;
    let mut levels = Levels {
        database_id: loaded.database_id,
        manifest_number: loaded.number,
        last_sequence: loaded.state.last_sequence,
        is_closed: last_is_close && loaded.edits > 1,
        families: Vec::new(),
        damage: Vec::new(),
        manifest_stamp: (loaded.number, loaded.edits),
    };
    let mut inspector = Inspector {
        files,
        directory,
        check: options.check,
        pool: context_pool(),
        damage: Vec::new(),
    };
    for (id, state) in &loaded.state.families {
        let options = CfOptions::of_family(state)
            .map_err(|error| error.in_file(FileName::Manifest(loaded.number).path(directory)))?;
        levels.families.push(inspector.family(*id, state, &options));
    }
    levels.damage = inspector.damage;
    Ok(levels)
}

/// Opens tables one after the other and collects what is damaged.
struct Inspector<'a> {
    files: &'a dyn FileSystem,
    directory: &'a Path,
    check: bool,
    pool: Arc<ContextPool>,
    damage: Vec<Error>,
}

impl Inspector<'_> {
    fn family(
        &mut self,
        id: ColumnFamilyId,
        state: &FamilyState,
        options: &CfOptions,
    ) -> FamilyLevels {
        let version = &state.version;
        let level_count = version.level_count();
        let targets = LevelTargets::new(version, &tree_shape(options));
        let formats = options.formats();
        let mut levels: Vec<LevelSum> = (0..level_count)
            .map(|level| {
                let target_bytes = targets.target_bytes.get(level).copied().unwrap_or(0);
                let place = TablePlace { family: Some(id), level, level_count };
                let is_given = matches!(options.compression, CompressionPolicy::Levels(_));
                let asked =
                    is_given.then(|| formats.decide(&place, &Evidence::default()).compression);
                LevelSum::new(level, target_bytes, asked)
            })
            .collect();
        let tables: Vec<TableLine> =
            version.tables().map(|(level, table)| self.table(level, table)).collect();
        for table in &tables {
            if let Some(sum) = levels.get_mut(table.level) {
                sum.add(table);
            }
        }
        FamilyLevels {
            id,
            name: state.name.to_string(),
            options: options.to_string(),
            base_level: targets.base_level,
            levels,
            tables,
        }
    }

    fn table(&mut self, level: Level, table: &TableFile) -> TableLine {
        let mut line = TableLine {
            level,
            metadata: table.metadata.clone(),
            written_for: None,
            found: None,
            blocks: BTreeMap::new(),
            fallback_blocks: 0,
        };
        if let Err(error) = self.read_table(&mut line) {
            self.damage.push(error);
        }
        line
    }

    fn read_table(&self, line: &mut TableLine) -> Result<()> {
        let path = FileName::Table(line.metadata.number).path(self.directory);
        let file = self.files.open(&path, OpenMode::Read).map_err(|error| {
            if error.kind() != ErrorKind::NotFound {
                return error;
            }
            Error::corruption("a live table is missing").in_file(&path).because(error)
        })?;
        let table = TableReader::open(Arc::clone(&file), None, Arc::clone(&self.pool))?;
        let properties = table.properties();
        line.written_for = Some(properties.level);
        line.found = Some(written_with(properties));
        let parts = TableParts::open(file, Arc::clone(&self.pool))?;
        parts.visit_records(&mut |record| {
            *line.blocks.entry(record.codec).or_default() += 1;
            line.fallback_blocks += u64::from(record.flags & FLAG_RAW_FALLBACK != 0);
        })?;
        if let Some(error) = line.metadata.differences(&table).into_iter().next() {
            return Err(error.in_file(&path));
        }
        if self.check {
            table.verify(&mut ReadContext::new(&NoClock))?;
        }
        Ok(())
    }
}

/// What the data blocks of a table were to be encoded with.
fn written_with(properties: &TableProperties) -> String {
    let unknown = |_| format!("unknown codec {}", properties.codec);
    properties.compression().map_or_else(unknown, |compression| compression.to_string())
}
