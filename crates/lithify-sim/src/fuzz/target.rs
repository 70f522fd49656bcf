//! What is fuzzed: every decoder of bytes from disk by itself, and files and databases as a whole.

use super::seal;
use crate::damage::sample::{End, PATH, Sample, options, read, sample, write};
use lithify::base::{MemoryBudget, SEQUENCE_MAX, Trailer};
use lithify::codec::ContextPool;
use lithify::fs::{FileSystem, MemoryEnvironment, MemoryFileSystem, OpenMode, World};
use lithify::inspect::{DumpOptions, dump};
use lithify::manifest::{FileName, LoadedManifest};
use lithify::table::{ReadContext, ScanPoll, TableReader};
use lithify::wal::{RecoveryOptions, SegmentFile, recover_segments};
use lithify::{Db, Error, Result};
use std::path::Path;
use std::sync::Arc;

/// A decoder, or a part of the engine that reads files.
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// The name of its counter.
    pub counter: &'static str,
    /// Inputs in one case.
    pub inputs: u64,
    /// Whether inputs keep their length, because they point into themselves.
    pub keeps_size: bool,
    /// Puts right checksums over changed bytes.
    pub seal: seal::Seal,
    /// Decodes. An error is fine if it is of a kind that damage may have.
    pub run: fn(&[u8]) -> Result<()>,
    /// Whether it decompresses: then it may take what the format says that codecs make.
    pub decompresses: bool,
}

/// Bytes that any target may take at once.
const ALLOCATED_BYTES_MAX: usize = 64 << 20;

/// The most that a codec makes of a byte, and the largest block, by the format.
const EXPANSION_MAX: usize = 32_768;
const BLOCK_BYTES_MAX: usize = 256 << 20;

impl Target {
    /// The most memory that it may take at once for an input of so many bytes.
    pub fn allocated_bytes_max(&self, input_bytes: usize) -> usize {
        match self.decompresses {
            true => {
                ALLOCATED_BYTES_MAX + (2 * input_bytes * EXPANSION_MAX).min(2 * BLOCK_BYTES_MAX)
            }
            false => ALLOCATED_BYTES_MAX,
        }
    }
}

/// Longest script, in bytes: one is one operation.
const OPERATIONS_MAX: usize = 600;

fn unsealed(_: &mut [u8]) {}

/// A private decoder of the engine, by its name there.
macro_rules! entry {
    ($name:literal, $seal:expr, $decompresses:literal) => {
        Target {
            name: $name,
            counter: concat!("executions: ", $name),
            inputs: 2000,
            keeps_size: false,
            seal: $seal,
            run: |bytes| {
                let entry = lithify::fuzzing::ENTRIES.iter().find(|entry| entry.name == $name);
                // INVARIANT: a test compares the names.
                (entry.expect("an entry of the engine").run)(bytes)
            },
            decompresses: $decompresses,
        }
    };
}

macro_rules! whole {
    ($name:literal, $inputs:literal, $keeps_size:literal, $seal:expr, $run:expr) => {
        Target {
            name: $name,
            counter: concat!("executions: ", $name),
            inputs: $inputs,
            keeps_size: $keeps_size,
            seal: $seal,
            run: $run,
            decompresses: true,
        }
    };
}

/// All targets.
pub static TARGETS: [Target; 20] = [
    entry!("current", seal::current, false),
    entry!("witness", seal::witness, false),
    entry!("heat", seal::heat, false),
    entry!("group", unsealed, false),
    entry!("edit", unsealed, false),
    entry!("options", unsealed, false),
    entry!("footer", seal::footer, false),
    entry!("properties", unsealed, false),
    entry!("index", unsealed, false),
    entry!("filter", unsealed, false),
    entry!("data_block", unsealed, false),
    entry!("tombstones", unsealed, false),
    entry!("stored_block", seal::stored_block, true),
    entry!("codec", unsealed, true),
    whole!("log", 500, false, seal::log, log),
    whole!("manifest", 500, false, seal::manifest, manifest),
    whole!("table", 200, true, seal::table, table),
    whole!("dump", 200, true, seal_by_magic, dump_any),
    whole!("database", 40, true, seal_in_database, database),
    whole!("operations", 4, false, unsealed, operations),
];

/// The target of that name.
pub fn by_name(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Who a log says that it is: database and number.
fn identity(bytes: &[u8]) -> Result<(u128, u64)> {
    let id = bytes.get(24..).and_then(<[u8]>::first_chunk);
    let number = bytes.get(40..).and_then(<[u8]>::first_chunk);
    match (id, number) {
        (Some(id), Some(number)) => Ok((u128::from_le_bytes(*id), u64::from_le_bytes(*number))),
        _ => Err(Error::corruption("no header")),
    }
}

fn log(bytes: &[u8]) -> Result<()> {
    let (database_id, log_number) = identity(bytes)?;
    let files = MemoryFileSystem::new();
    let path = Path::new("/segment.wal");
    write(&files, path, bytes)?;
    let options = RecoveryOptions {
        database_id,
        oldest_needed: log_number,
        clean_close: None,
        read_only: false,
    };
    let segment = SegmentFile { log_number, path: path.to_path_buf() };
    let mut payload_bytes = 0;
    recover_segments(&files, &[segment], &options, &mut |record| {
        payload_bytes += record.payload.len();
        Ok(())
    })?;
    assert!(payload_bytes <= bytes.len());
    Ok(())
}

fn manifest(bytes: &[u8]) -> Result<()> {
    let (database_id, number) = identity(bytes)?;
    let files = MemoryFileSystem::new();
    let directory = Path::new(PATH);
    files.create_directory(directory)?;
    let mut current = [&[0; 8][..], &database_id.to_le_bytes(), &number.to_le_bytes()].concat();
    current.resize(40, 0);
    seal::current(&mut current);
    write(&files, &FileName::Current.path(directory), &current)?;
    write(&files, &FileName::Manifest(number).path(directory), bytes)?;
    LoadedManifest::read(&files, directory, &mut |_, _| {}).map(drop)
}

fn table(bytes: &[u8]) -> Result<()> {
    let files = MemoryFileSystem::new();
    let path = Path::new("/000007.sst");
    write(&files, path, bytes)?;
    let file = files.open(path, OpenMode::Read)?;
    let table = TableReader::open(file, None, ContextPool::new(MemoryBudget::new(16 << 20)))?;
    let clock = MemoryEnvironment::new(1);
    let context = &mut ReadContext::new(&clock);
    let verified = table.verify(context).map(drop);
    let walked = walk(&table, context);
    let scanned = scan(&table);
    let mut found = table.range_tombstones(context).map(drop);
    for key in [&b"rock0007"[..], b"", b"zircon"] {
        found = found.and(table.get(key, SEQUENCE_MAX, context).map(drop));
        found = found.and(table.prefix_may_match(key, context).map(drop));
    }
    verified.and(walked).and(scanned).and(found)
}

fn walk(table: &Arc<TableReader>, context: &mut ReadContext<'_>) -> Result<()> {
    let mut cursor = table.cursor();
    cursor.seek_to_first(context)?;
    while cursor.valid() {
        cursor.next(context)?;
    }
    cursor.seek_for_prev(b"rock0012", Trailer::seek(SEQUENCE_MAX), context)?;
    cursor.seek_to_last(context)?;
    while cursor.valid() {
        cursor.prev(context)?;
    }
    Ok(())
}

/// As a compaction reads it.
fn scan(table: &Arc<TableReader>) -> Result<()> {
    let clock = MemoryEnvironment::new(1);
    let mut meter = lithify::stats::WorkMeter::default();
    let mut scanner = table.scanner(Some(b"rock0003"), Some(b"rock0020"));
    // In memory no read is ever under way.
    while let ScanPoll::Ready = scanner.poll(&mut meter, &clock)? {
        while scanner.advance()? {}
    }
    Ok(())
}

/// Names that decide where the magic does not.
const NAMES: [&str; 5] = ["000007.sst", "000007.wal", "MANIFEST-000007", "CURRENT", "LOCK"];

fn dump_any(bytes: &[u8]) -> Result<()> {
    let files = MemoryFileSystem::new();
    let path = Path::new("/").join(NAMES[bytes.len() % NAMES.len()]);
    write(&files, &path, bytes)?;
    let options = DumpOptions { blocks: true, entries: true, limit: 1000, full: false };
    let mut text_bytes = 0;
    dump(&files, &path, &options, &mut |item| {
        text_bytes += item.to_string().len() + item.to_json().len();
        Ok(())
    })
}

fn seal_by_magic(bytes: &mut [u8]) {
    match bytes.first_chunk::<8>() {
        Some(b"LITHWAL\n") => seal::log(bytes),
        Some(b"LITHMAN\n") => seal::manifest(bytes),
        Some(b"LITHCUR\n") => seal::current(bytes),
        Some(b"LITHWIT\n") => seal::witness_file(bytes),
        Some(b"LITHEA2\n") => seal::heat(bytes),
        _ if bytes.ends_with(b"lithtabl") => seal::table(bytes),
        _ => {}
    }
}

fn seal_in_database(bytes: &mut [u8]) {
    if let Some((_, file)) = bytes.split_first_mut() {
        seal_by_magic(file);
    }
}

/// A database in which the file with the number in the first byte is the rest of the bytes: read
/// both ways, flushed, compacted.
fn database(bytes: &[u8]) -> Result<()> {
    let Some((number, content)) = bytes.split_first() else { return Ok(()) };
    let sample: &Sample = sample(End::Killed);
    let names = sample.names();
    let files = sample.copy();
    let path = Path::new(PATH).join(&names[usize::from(*number) % names.len()]);
    if read(&files, &path)? == content {
        return Ok(());
    }
    write(&files, &path, content)?;
    let environment = MemoryEnvironment::new(1);
    let world = World { files: Arc::new(files), environment: Arc::new(environment.clone()) };
    let result = Db::open_in(PATH, options(), world).and_then(|db| use_all(&db));
    assert_eq!(environment.endless_waits(), 0, "a wait without an end");
    result
}

fn use_all(db: &Db) -> Result<()> {
    let mut result = Ok(());
    for name in sample(End::Killed).states().iter().rev().take(1).flat_map(|state| state.keys()) {
        let Some(family) = db.existing_column_family(name)? else { continue };
        let mut cursor = family.cursor(..)?;
        while result.is_ok() && cursor.next()? {}
        let mut cursor = family.cursor(..)?;
        while result.is_ok() && cursor.prev()? {}
        drop(cursor);
        family.put(b"rock0003", b"new")?;
        result = result.and(family.compact_range(..));
    }
    result
}

/// Operations against the model.
fn operations(bytes: &[u8]) -> Result<()> {
    let bytes = &bytes[..bytes.len().min(OPERATIONS_MAX)];
    if let Err(what) = crate::metamorphic::run_bytes(bytes) {
        panic!("{what}");
    }
    Ok(())
}
