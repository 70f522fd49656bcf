//! Gets and scans of a list of ten, everything cached, from a tree that has come to rest: all rows
//! in tables of the bottom level. `LITHIFY_BENCH_READ_ROWS` is their number: with 10,000,000 of them
//! the memory budget is 3.3 GB, and as much should be free beside it while they are loaded.

use crate::measure::{Budget, Line, Samples, Settings, cpu_ns};
use crate::rows::{KEY_SIZE, LIST_ROWS, PREFIX_SIZE, Random, Rows, VALUE_SIZE, key};
use crate::tables::load;
use lithify::fs::World;
use lithify::{CfOptions, ColumnFamily, Cursor, Db, Error, Options, Result};
use std::hint::black_box;
use std::path::Path;

/// Gets of one repeat, and a tenth of it in scans.
const GETS: usize = 200_000;

/// Raw bytes of a data block.
pub const BLOCK_SIZE: usize = 16 << 10;

/// Rows that are made at once while loading.
const LOAD_ROWS: usize = 1 << 20;

/// One round of reads; it gives the number of rows found.
type Work<'a> = &'a dyn Fn() -> Result<usize>;

pub fn print(settings: &Settings) -> Result<()> {
    let stages = ["cached get", "cached get absent", "prefix scan of 10", "prefix scan of 10 back"];
    if !stages.iter().any(|stage| settings.wants(stage)) {
        return Ok(());
    }
    let directory = settings.scratch()?;
    let db = open(directory.path(), settings.read_rows, World::system())?;
    let family = settle(&db, settings.read_rows, BLOCK_SIZE)?;
    let mut random = Random::new(11);
    let order: Vec<usize> = (0..GETS).map(|_| random.below(settings.read_rows)).collect();
    let keys: Vec<_> = order.iter().map(|index| key(*index)).collect();
    let absent: Vec<_> = keys.iter().copied().map(absent_key).collect();
    let works: [(&str, usize, f64, Work<'_>); 4] = [
        (stages[0], GETS, 2000.0, &|| gets(&family, &keys)),
        (stages[1], 0, 2000.0, &|| gets(&family, &absent)),
        (stages[2], GETS / 10 * LIST_ROWS, 6000.0, &|| scans(&family, &keys[..GETS / 10])),
        (stages[3], GETS / 10 * LIST_ROWS, 6000.0, &|| scans_back(&family, &keys[..GETS / 10])),
    ];
    for (stage, found_expected, budget_ns, work) in works {
        if settings.wants(stage) {
            measure(settings, stage, found_expected, budget_ns, work)?.print();
        }
    }
    let levels = db.stats().levels;
    let shape: Vec<_> = levels.iter().map(|level| level.files.to_string()).collect();
    println!("  {} rows, tables per level: {}", settings.read_rows, shape.join(" "));
    Ok(())
}

fn measure(
    settings: &Settings,
    stage: &str,
    found_expected: usize,
    budget_ns: f64,
    work: Work<'_>,
) -> Result<Line> {
    let calls = if stage.starts_with("prefix") { GETS / 10 } else { GETS };
    let mut total = Samples::default();
    // The first round fills the cache with what the others read.
    for repeat in 0..=settings.repeats {
        let (ns, found) = cpu_ns(work);
        let found = found?;
        if found != found_expected {
            return Err(Error::corruption("rows found").expected(found_expected, found));
        }
        if repeat > 0 {
            total.add(ns, calls);
        }
    }
    Ok(Line {
        stage: stage.to_string(),
        rows: calls,
        total,
        file_ns: None,
        codec: None,
        budget: Budget::Total(budget_ns),
    })
}

/// A database that can hold so many rows in its cache.
pub fn open(path: &Path, rows: usize, world: World) -> Result<Db> {
    let options = Options {
        background_threads: 0,
        memory_budget_bytes: (256 << 20) + rows * (KEY_SIZE + VALUE_SIZE) * 3 / 2,
        ..Options::default()
    };
    Db::open_in(path, options, world)
}

/// Fills a database in random order and lets it come to rest, as one run.
pub fn settle(db: &Db, rows: usize, block_size_bytes: usize) -> Result<ColumnFamily> {
    let options = CfOptions {
        block_size_bytes,
        compression: "lz4".parse()?,
        base_level_bytes_max: 8 << 20,
        table_bytes: 8 << 20,
        prefix_length_bytes: PREFIX_SIZE,
        ..CfOptions::default()
    };
    let family = db.column_family("links", options)?;
    let mut order: Vec<usize> = (0..rows).collect();
    Random::new(5).shuffle(&mut order);
    for part in order.chunks(LOAD_ROWS) {
        load(db, &family, Rows::new(part.to_vec()).iter())?;
    }
    family.flush()?;
    db.wait_for_compaction()?;
    // What is left is not worth a compaction by itself: runs of level 0, and levels above the last.
    family.compact_range(..)?;
    // Once through everything, so that the cache holds it.
    let mut cursor = family.cursor(..)?;
    let mut found = 0;
    while cursor.next()? {
        found += 1;
    }
    if found != rows {
        return Err(Error::corruption("rows after loading").expected(rows, found));
    }
    Ok(family)
}

/// A key that is within the range of all tables and in none of them.
fn absent_key(mut key: [u8; KEY_SIZE]) -> [u8; KEY_SIZE] {
    key[16] = 0x55;
    key
}

/// Gets all keys; the number of those that have a value.
pub fn gets(family: &ColumnFamily, keys: &[[u8; KEY_SIZE]]) -> Result<usize> {
    let mut found = 0;
    for key in keys {
        found += usize::from(black_box(family.get(key)?).is_some());
    }
    Ok(found)
}

/// Scans the lists that the keys are of; the number of rows.
pub fn scans(family: &ColumnFamily, keys: &[[u8; KEY_SIZE]]) -> Result<usize> {
    scans_by(family, keys, Cursor::next)
}

/// Scans the same lists from their ends.
pub fn scans_back(family: &ColumnFamily, keys: &[[u8; KEY_SIZE]]) -> Result<usize> {
    scans_by(family, keys, Cursor::prev)
}

fn scans_by(
    family: &ColumnFamily,
    keys: &[[u8; KEY_SIZE]],
    step: fn(&mut Cursor) -> Result<bool>,
) -> Result<usize> {
    let mut found = 0;
    for key in keys {
        let mut cursor = family.prefix_cursor(&key[..PREFIX_SIZE])?;
        while step(&mut cursor)? {
            black_box((cursor.key(), cursor.value()));
            found += 1;
        }
    }
    Ok(found)
}
