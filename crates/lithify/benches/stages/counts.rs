//! One stage, once, for a tool that counts the instructions of [`instructions_counted_here`].
//!
//! Times differ from run to run, counts repeat: the world is in memory, its clock is virtual, no
//! thread runs beside, and every number comes from a seed. What is left to differ is the program
//! that the compiler made and the CPU features by which libraries choose their code; those that
//! the process sees are printed beside the number of operations.
//! `cargo run -p xtask -- counts` runs all stages and compares them with the recorded counts; of a
//! stage `ledger-of:STAGE` it prints the share of that stage instead.

use crate::ledger::{Books, ROWS_PER_STEP, book_get, book_put, book_step};
use crate::reads::{BLOCK_SIZE, gets, scans, scans_back, settle};
use crate::rows::{KEY_SIZE, Random, Rows, key};
use crate::tables::{due_compaction, family, load, open_in};
use crate::writes::{ENTRY_HEAD_SIZE, GROUP, segment};
use lithify::base::{Clock, Trailer, ValueKind};
use lithify::codec::{Compressor, Decompressor};
use lithify::fs::World;
use lithify::memtable::MemTable;
use lithify::stats::Ledger;
use lithify::{ColumnFamily, Compression, Cursor, Db, Error, Options, Result};
use std::hint::black_box;
use std::io::IoSlice;
use std::path::Path;

/// Rows of every stage.
const ROWS: usize = 20_000;
/// Gets; a tenth of it are scans.
const GETS: usize = 10_000;
/// Blocks that a codec gets.
const BLOCKS: usize = 64;
/// Blocks so small that few rows have an index of two levels.
const SMALL_BLOCK_SIZE: usize = 512;
const PLACE: &str = "/counts";

/// A stage: it calls [`instructions_counted_here`] once and gives the number of its operations.
type Stage = fn() -> Result<usize>;

/// Reads by keys; it gives the number of rows found.
type Read = fn(&ColumnFamily, &[[u8; KEY_SIZE]]) -> Result<usize>;

/// A move of a cursor; false at the end.
type Step = fn(&mut Cursor) -> Result<bool>;

const STAGES: &[(&str, Stage)] = &[
    ("memtable-insert", memtable_insert),
    ("wal-record-in-group", wal_record),
    ("commit-of-one-put", commit),
    ("flush-none", || flush("none")),
    ("flush-lz4", || flush("lz4")),
    ("compaction-none", || compaction("none")),
    ("compaction-lz4", || compaction("lz4")),
    ("cached-get", || reads(gets, GETS, BLOCK_SIZE)),
    ("get-two-level-index", || reads(gets, GETS, SMALL_BLOCK_SIZE)),
    ("scan-of-10", || reads(scans, GETS / 10, BLOCK_SIZE)),
    ("scan-of-10-back", || reads(scans_back, GETS / 10, BLOCK_SIZE)),
    ("scan-row", || scan(Cursor::next)),
    ("scan-row-back", || scan(Cursor::prev)),
    ("block-encode-zstd-1", || codec("zstd-1", true)),
    ("block-decode-zstd-1", || codec("zstd-1", false)),
    ("ledger-of:cached-get", || ledger(book_get, 1)),
    ("ledger-of:commit-of-one-put", || ledger(book_put, 1)),
    ("ledger-of:flush-none", || ledger(book_step, ROWS_PER_STEP)),
    ("ledger-of:compaction-none", || ledger(book_step, ROWS_PER_STEP)),
];

/// Runs a stage and prints its operations and the CPU features; with `list`, prints the stages.
pub fn run(name: &str) -> Result<()> {
    if name == "list" {
        STAGES.iter().for_each(|(stage, _)| println!("{stage}"));
        return Ok(());
    }
    let Some((_, stage)) = STAGES.iter().find(|(stage, _)| *stage == name) else {
        return Err(Error::invalid(format!("there is no stage {name:?}; --count list lists them")));
    };
    let operations = stage()?;
    println!("operations {operations}");
    println!("features {}", features());
    Ok(())
}

/// The name by which the tool knows what to count.
#[inline(never)]
fn instructions_counted_here<R>(work: impl FnOnce() -> R) -> R {
    black_box(work())
}

/// The features by which the libraries here choose their code at run time.
#[cfg(target_arch = "x86_64")]
fn features() -> String {
    let mut text = "x86_64".to_string();
    let features = [
        ("sse4.2", is_x86_feature_detected!("sse4.2")),
        ("pclmulqdq", is_x86_feature_detected!("pclmulqdq")),
        ("bmi2", is_x86_feature_detected!("bmi2")),
        ("avx2", is_x86_feature_detected!("avx2")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
    ];
    for (name, _) in features.iter().filter(|(_, is_there)| *is_there) {
        text.push('+');
        text.push_str(name);
    }
    text
}

#[cfg(not(target_arch = "x86_64"))]
fn features() -> String {
    std::env::consts::ARCH.to_string()
}

fn memtable_insert() -> Result<usize> {
    let rows = Rows::shuffled(ROWS, 3);
    let memtable = MemTable::new();
    instructions_counted_here(|| {
        let mut writer = memtable.writer();
        for (index, (key, value)) in rows.iter().enumerate() {
            writer.insert(&key, Trailer::new(1 + index as u64, ValueKind::Put), value);
        }
    });
    Ok(rows.len())
}

fn wal_record() -> Result<usize> {
    let rows = Rows::shuffled(ROWS, 3);
    let head = [0; 12];
    let entries: Vec<Vec<u8>> =
        rows.iter().map(|(key, value)| [&[1; ENTRY_HEAD_SIZE], &key[..], value].concat()).collect();
    let groups: Vec<Vec<IoSlice<'_>>> = entries
        .chunks(GROUP)
        .map(|batches| {
            let batches = batches.iter().map(|entry| IoSlice::new(entry));
            std::iter::once(IoSlice::new(&head)).chain(batches).collect()
        })
        .collect();
    let world = World::memory(1);
    world.files.create_directory(Path::new(PLACE))?;
    let mut log = segment(&*world.files, Path::new(PLACE), 1)?;
    instructions_counted_here(|| groups.iter().try_for_each(|group| log.append(group).map(drop)))?;
    Ok(rows.len())
}

fn commit() -> Result<usize> {
    let rows = Rows::shuffled(ROWS, 3);
    let db = open_in(Path::new(PLACE), World::memory(1))?;
    let family = family(&db, Compression::NONE)?;
    instructions_counted_here(|| rows.iter().try_for_each(|(key, value)| family.put(key, value)))?;
    Ok(rows.len())
}

fn flush(codec: &str) -> Result<usize> {
    let rows = Rows::shuffled(ROWS, 1);
    let db = open_in(Path::new(PLACE), World::memory(1))?;
    let family = family(&db, codec.parse()?)?;
    load(&db, &family, rows.iter())?;
    instructions_counted_here(|| family.flush())?;
    Ok(rows.len())
}

fn compaction(codec: &str) -> Result<usize> {
    let rows = Rows::shuffled(ROWS, 2);
    let world = World::memory(1);
    let db = due_compaction(Path::new(PLACE), &rows, codec.parse()?, world)?;
    instructions_counted_here(|| db.wait_for_compaction())?;
    Ok(rows.len())
}

/// A tree that has come to rest, in memory and in the cache.
fn settled(block_size: usize) -> Result<(Db, ColumnFamily)> {
    let options = Options {
        background_threads: 0,
        memory_budget_bytes: 64 << 20,
        memtable_bytes: 256 << 10,
        ..Options::default()
    };
    let db = Db::open_in(Path::new(PLACE), options, World::memory(1))?;
    let family = settle(&db, ROWS, block_size)?;
    Ok((db, family))
}

fn reads(read: Read, count: usize, block_size: usize) -> Result<usize> {
    let (_db, family) = settled(block_size)?;
    let mut random = Random::new(11);
    let keys: Vec<[u8; KEY_SIZE]> = (0..count).map(|_| key(random.below(ROWS))).collect();
    // Once before, so that what the first read of a block does is over.
    read(&family, &keys)?;
    instructions_counted_here(|| read(&family, &keys))?;
    Ok(keys.len())
}

/// All rows of a tree that is one run, from one end to the other.
fn scan(step: Step) -> Result<usize> {
    let (_db, family) = settled(BLOCK_SIZE)?;
    let mut cursor = family.cursor(..)?;
    instructions_counted_here(|| {
        let mut found = 0;
        while step(&mut cursor)? {
            black_box((cursor.key(), cursor.value()));
            found += 1;
        }
        Ok(found)
    })
}

/// What the ledger costs of another stage: its calls, made alone.
fn ledger(book: fn(Books<'_>, &dyn Clock), rows_per_call: usize) -> Result<usize> {
    let environment = World::memory(1).environment;
    let ledger = Ledger::new(&*environment);
    let family = ledger.add_family();
    let books = (&*ledger, &*family);
    instructions_counted_here(|| (0..GETS).for_each(|_| book(books, &*environment)));
    Ok(GETS * rows_per_call)
}

fn codec(codec: &str, is_encode: bool) -> Result<usize> {
    let compression: Compression = codec.parse()?;
    let rows = Rows::shuffled(ROWS, 4);
    let bytes: Vec<u8> = rows.iter().flat_map(|(_, value)| value.iter().copied()).collect();
    let raw: Vec<&[u8]> = bytes.chunks_exact(BLOCK_SIZE).take(BLOCKS).collect();
    let mut compressor = Compressor::new(compression)?;
    let mut encode = || {
        let mut stored = vec![Vec::with_capacity(BLOCK_SIZE); raw.len()];
        let mut blocks = raw.iter().zip(&mut stored);
        blocks.try_for_each(|(raw, stored)| compressor.compress(raw, stored)).map(|()| stored)
    };
    if is_encode {
        instructions_counted_here(encode)?;
        return Ok(raw.len());
    }
    let stored = encode()?;
    let mut decompressor = Decompressor::new();
    let mut target = vec![0; BLOCK_SIZE];
    instructions_counted_here(|| {
        stored
            .iter()
            .try_for_each(|stored| decompressor.decompress(compression.codec, stored, &mut target))
    })?;
    Ok(raw.len())
}
