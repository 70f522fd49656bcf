//! The databases that are damaged: small, with every kind of file and block.
//!
//! 1. Tables of every codec in families of their own, two of them with dictionaries; in one family a bottom level, above it an
//!    ingested table with an index of two levels, above that two runs of level 0 with deletes,
//!    single deletes and range tombstones.
//! 2. A log of two segments, of which the first was used before. If killed, it has the rest of its
//!    earlier life behind its end. A manifest that replaced others, with edits behind its snapshot. Files
//!    that nothing refers to, as a crash leaves them.
//! 3. The log's end: closed, so that every byte of it is accounted for; or killed, with writes
//!    behind the last sync.

use lithify::fs::{CrashKeep, FileSystem, MemoryEnvironment, MemoryFileSystem, OpenMode, World};
use lithify::table::TableOptions;
use lithify::{
    CfOptions, ColumnFamily, Compression, Db, Options, Result, TableTransfer, TableWriter,
};
use std::collections::BTreeMap;
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Where a sample lies.
pub const PATH: &str = "/db";

/// Rows by key.
pub type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// Rows by column family.
pub type State = BTreeMap<&'static str, Rows>;

/// How the process with the database ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It closed the database.
    Closed,
    /// It was killed: what was written behind the last sync is no promise.
    Killed,
}

/// Families with a table that has a dictionary.
const WITH_DICTIONARY: [(&str, &str); 2] =
    [("lz4-dictionary", "lz4"), ("zstd-dictionary", "zstd-1")];

/// A database at rest.
pub struct Sample {
    /// How it came to rest.
    pub end: End,
    /// Its files.
    pub files: MemoryFileSystem,
    /// What it held after each write to the last segment of its log, the first one being before
    /// all of them. The last one is what it holds undamaged.
    pub history: Vec<State>,
    /// So many of the last writes were not synced, and the states from there on are promised.
    pub unconfirmed: usize,
}

/// The family with several levels.
pub const MIXED: &str = "mixed";

/// Families with a table of one codec each.
const CODECS: [(&str, &str); 7] = [
    ("none", "none"),
    ("snappy", "snappy"),
    ("lz4", "lz4"),
    ("zlib", "zlib-6"),
    ("libdeflate", "libdeflate-6"),
    ("zstd", "zstd-1"),
    // Its reads and lifetimes are kept in `HEAT`.
    ("decided", "auto"),
];

/// The options that a sample is written and opened with.
pub fn options() -> Options {
    Options {
        memory_budget_bytes: 2 << 20,
        memtable_bytes: 64 << 10,
        wal_bytes_max: 64 << 10,
        background_threads: 0,
        ..Options::default()
    }
}

fn family_options(compression: &str) -> Result<CfOptions> {
    Ok(CfOptions {
        compression: compression.parse()?,
        block_size_bytes: 512,
        prefix_length_bytes: 4,
        ..CfOptions::default()
    })
}

/// The world of a file system: no threads, time of its own.
pub fn world(files: &MemoryFileSystem, seed: u64) -> World {
    World { files: Arc::new(files.clone()), environment: Arc::new(MemoryEnvironment::new(seed)) }
}

/// The sample of an end, made once.
pub fn sample(end: End) -> &'static Sample {
    static SAMPLES: OnceLock<[Sample; 2]> = OnceLock::new();
    let samples = SAMPLES.get_or_init(|| [End::Closed, End::Killed].map(|end| made(SEED, end)));
    &samples[usize::from(end == End::Killed)]
}

/// Another database of the same shape, closed: what files are exchanged with.
pub fn stranger() -> &'static Sample {
    static STRANGER: OnceLock<Sample> = OnceLock::new();
    STRANGER.get_or_init(|| made(SEED + 1, End::Closed))
}

fn made(seed: u64, end: End) -> Sample {
    // INVARIANT: nothing is damaged yet, and the engine's own tests cover what is done here.
    Maker::new(seed).make(end).expect("an undamaged database of known content")
}

impl Sample {
    /// What it may hold: everything promised, with the first, the first two, ... of the writes
    /// behind the last sync.
    pub fn states(&self) -> &[State] {
        &self.history[self.history.len() - 1 - self.unconfirmed..]
    }

    /// The names of its files, sorted.
    pub fn names(&self) -> Vec<String> {
        let paths = self.files.list(Path::new(PATH)).unwrap_or_default();
        let name = |path: &PathBuf| Some(path.file_name()?.to_string_lossy().into_owned());
        paths.iter().filter_map(name).collect()
    }

    /// The bytes of a file.
    pub fn content(&self, name: &str) -> Vec<u8> {
        read(&self.files, &Path::new(PATH).join(name)).unwrap_or_default()
    }

    /// The same files in a file system of their own, to be damaged.
    pub fn copy(&self) -> MemoryFileSystem {
        self.files.crash_clone(0, CrashKeep::Everything)
    }
}

/// A file's bytes.
pub fn read(files: &MemoryFileSystem, path: &Path) -> Result<Vec<u8>> {
    let file = files.open(path, OpenMode::Read)?;
    let mut bytes = vec![0; file.length()? as usize];
    let count = file.read_at(&mut bytes, 0)?;
    bytes.truncate(count);
    Ok(bytes)
}

/// Makes the file's bytes these.
pub fn write(files: &MemoryFileSystem, path: &Path, bytes: &[u8]) -> Result<()> {
    let file = files.open(path, OpenMode::CreateOrTruncate)?;
    file.write_at(&[IoSlice::new(bytes)], 0)
}

/// A database being made, and what it has to hold.
struct Maker {
    seed: u64,
    files: MemoryFileSystem,
    state: State,
}

/// The seed of the samples; the stranger has another one.
const SEED: u64 = 7;

/// Whether that value was ever put under that key of a sample, in whatever family.
pub fn was_written(key: &[u8], value: &[u8]) -> bool {
    let number = key.strip_prefix(b"rock").and_then(|digits| {
        std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<u64>().ok())
    });
    match number {
        Some(number) => (0..10).any(|round| value == value_of(SEED, number, round)),
        None => (key, value) == (b"once", b"only"),
    }
}

fn value_of(seed: u64, number: u64, round: u64) -> Vec<u8> {
    format!("{seed} {number} {round} quartz quartz feldspar mica ").into_bytes()
}

fn key(number: u64) -> Vec<u8> {
    format!("rock{number:04}").into_bytes()
}

impl Maker {
    fn new(seed: u64) -> Self {
        Maker { seed, files: MemoryFileSystem::new(), state: State::new() }
    }

    fn open(&self) -> Result<Db> {
        Db::open_in(PATH, options(), world(&self.files, self.seed))
    }

    fn value(&self, number: u64, round: u64) -> Vec<u8> {
        value_of(self.seed, number, round)
    }

    fn family(&mut self, db: &Db, name: &'static str, compression: &str) -> Result<ColumnFamily> {
        self.state.entry(name).or_default();
        db.column_family(name, family_options(compression)?)
    }

    fn put(
        &mut self,
        family: &ColumnFamily,
        name: &'static str,
        number: u64,
        round: u64,
    ) -> Result<()> {
        let value = self.value(number, round);
        family.put(key(number), &value)?;
        self.state.entry(name).or_default().insert(key(number), value);
        Ok(())
    }

    fn make(mut self, end: End) -> Result<Sample> {
        let db = self.open()?;
        for (name, compression) in CODECS {
            let family = self.family(&db, name, compression)?;
            for number in 0..24 {
                self.put(&family, name, number, 0)?;
            }
            family.flush()?;
        }
        for (name, compression) in WITH_DICTIONARY {
            self.dictionary(&db, name, compression)?;
        }
        self.levels(&db)?;
        db.close()?;
        let old_manifest = self.one_named("MANIFEST-")?;

        // A log that will be recycled: its writes are flushed at the next opening.
        let db = self.open()?;
        let family = self.family(&db, MIXED, LEVELS)?;
        for number in 30..60 {
            self.put(&family, MIXED, number, 4)?;
        }
        db.close()?;
        let db = self.open()?;
        db.flush()?;
        let family = self.family(&db, MIXED, LEVELS)?;
        for number in 50..56 {
            self.put(&family, MIXED, number, 5)?;
        }
        // Killed: a close would cut the segment behind its end.
        db.sync()?;
        self.files = self.files.crash_clone(0, CrashKeep::Everything);
        drop((family, db));
        let (history, unconfirmed) = self.last_session(end)?;
        self.leave_orphans(old_manifest)?;
        Ok(Sample { end, files: self.files, history, unconfirmed })
    }

    /// A family with a bottom level, an ingested table above it, and two runs of level 0.
    fn levels(&mut self, db: &Db) -> Result<()> {
        let family = self.family(db, MIXED, LEVELS)?;
        for number in 0..40 {
            self.put(&family, MIXED, number, 1)?;
        }
        family.compact_range(..)?;
        self.ingest(&family)?;
        for number in 20..30 {
            self.put(&family, MIXED, number, 2)?;
        }
        family.delete_range(key(5), key(9))?;
        family.delete_range(key(34), key(36))?;
        family.delete(key(12))?;
        family.put(b"once", b"only")?;
        family.single_delete(b"once")?;
        let rows = self.state.entry(MIXED).or_default();
        rows.retain(|k, _| !(*k >= key(5) && *k < key(9) || *k >= key(34) && *k < key(36)));
        rows.remove(&key(12));
        family.flush()?;
        for number in [7, 22, 35, 41] {
            self.put(&family, MIXED, number, 3)?;
        }
        family.delete_range(key(26), key(28))?;
        let rows = self.state.entry(MIXED).or_default();
        rows.retain(|k, _| !(*k >= key(26) && *k < key(28)));
        family.flush()
    }

    /// A family with a table that has a dictionary.
    fn dictionary(&mut self, db: &Db, name: &'static str, compression: &str) -> Result<()> {
        let family = self.family(db, name, compression)?;
        let path = Path::new("/dictionary.sst");
        let options = family_options(compression)?;
        let mut writer = TableWriter::create_in(path, &options, world(&self.files, self.seed))?;
        writer.use_dictionary(&value_of(self.seed, 1, 8).repeat(3))?;
        for number in 0..24 {
            let value = self.value(number, 8);
            writer.put(key(number), &value)?;
            self.state.entry(name).or_default().insert(key(number), value);
        }
        writer.finish()?;
        family.ingest_tables(&[path], TableTransfer::Copy)?;
        self.files.remove(path)
    }

    fn ingest(&mut self, family: &ColumnFamily) -> Result<()> {
        let rows: Vec<_> = (10..34).map(|n| (key(n), self.value(n, 9))).collect();
        let options = TableOptions { block_size_bytes: 300, ..TableOptions::default() };
        let environment = world(&self.files, self.seed).environment;
        let table_id = (u128::from(self.seed) << 64 | 0xabcd).to_le_bytes();
        let compression: Compression = "lz4".parse()?;
        let encoded = (options, compression);
        let bytes =
            lithify::fuzzing::two_level_table(table_id, &rows, encoded, 200, &*environment)?;
        self.files.create_directory(Path::new("/other"))?;
        let path = Path::new("/other/linked.sst");
        write(&self.files, path, &bytes)?;
        family.ingest_tables(&[path], TableTransfer::Copy)?;
        self.files.remove(path)?;
        self.state.entry(MIXED).or_default().extend(rows);
        Ok(())
    }

    /// Writes that are synced, writes that are not, and the end. Gives the history, and how many
    /// writes of it nothing promises.
    fn last_session(&mut self, end: End) -> Result<(Vec<State>, usize)> {
        let db = self.open()?;
        let late = self.family(&db, "late", "zstd-1")?;
        let family = self.family(&db, MIXED, "none,snappy,zlib-6,zstd-1")?;
        let mut history = vec![self.state.clone()];
        for number in 60..66 {
            self.put(&family, MIXED, number, 6)?;
            history.push(self.state.clone());
        }
        self.put(&late, "late", 1, 6)?;
        history.push(self.state.clone());
        family.delete_range(key(61), key(63))?;
        let rows = self.state.entry(MIXED).or_default();
        rows.retain(|k, _| !(*k >= key(61) && *k < key(63)));
        history.push(self.state.clone());
        db.sync()?;
        for number in 64..69 {
            self.put(&family, MIXED, number, 7)?;
            history.push(self.state.clone());
        }
        if end == End::Closed {
            db.close()?;
            return Ok((history, 0));
        }
        self.files = self.files.crash_clone(0, CrashKeep::Everything);
        Ok((history, 5))
    }

    /// Files as a crash between writing and naming, or between naming and removing, leaves them.
    fn leave_orphans(&self, old_manifest: (PathBuf, Vec<u8>)) -> Result<()> {
        write(&self.files, &old_manifest.0, &old_manifest.1)?;
        let (table, bytes) = self.one_named(".sst")?;
        let free = (1..1000).map(|number| table.with_file_name(format!("{number:06}.sst")));
        let mut paths = free.filter(|path| matches!(self.files.exists(path), Ok(false)));
        match paths.next() {
            Some(path) => write(&self.files, &path, &bytes),
            None => Ok(()),
        }
    }

    /// The first file whose name has this part.
    fn one_named(&self, part: &str) -> Result<(PathBuf, Vec<u8>)> {
        let paths = self.files.list(Path::new(PATH))?;
        let is_meant = |path: &&PathBuf| path.to_string_lossy().contains(part);
        let found = paths.iter().find(is_meant).cloned().unwrap_or_default();
        let path = Path::new(PATH).join(found.file_name().unwrap_or_default());
        let bytes = read(&self.files, &path)?;
        Ok((path, bytes))
    }
}

/// The codecs of the levels of [`MIXED`].
const LEVELS: &str = "none,snappy,lz4,zstd-1";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_every_kind_of_file() {
        for end in [End::Closed, End::Killed] {
            let sample = sample(end);
            let names = sample.names();
            let count = |part: &str| names.iter().filter(|name| name.contains(part)).count();
            assert!(count(".sst") >= 10, "{names:?}");
            assert_eq!((count("MANIFEST-"), count(".wal")), (2, 2), "{names:?}");
            let size: usize = names.iter().map(|name| sample.content(name).len()).sum();
            println!("{end:?}: {} files, {size} bytes, {names:?}", names.len());
            assert!(size < 100 << 10, "{size} bytes are too many for every bit");
        }
    }
}
