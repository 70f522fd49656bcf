//! A flush, and one pass of a compaction: four runs of level 0 with the table below them.

use crate::codecs::{Blocks, tables_in};
use crate::measure::{Budget, Line, Samples, Settings, cpu_ns};
use crate::rows::Rows;
use lithify::fs::World;
use lithify::stats::{Cause, CpuPart, JobFigure, LEVEL_SLOTS};
use lithify::{CfOptions, ColumnFamily, Compression, Db, Options, Result};
use std::path::Path;

const CODECS: [&str; 4] = ["none", "lz4", "zstd-1", "zlib-6"];

/// The runs of level 0 that make a compaction due.
const RUNS: usize = 4;

pub fn print(settings: &Settings) -> Result<()> {
    for codec in CODECS {
        let stage = format!("flush {codec}");
        if settings.wants(&stage) {
            flush(settings, stage, codec.parse()?)?.print();
        }
    }
    for codec in CODECS {
        let stage = format!("compaction pass {codec}");
        if settings.wants(&stage) {
            compaction(settings, stage, codec.parse()?, due_compaction)?.print();
        }
    }
    for codec in CODECS {
        let stage = format!("compaction skewed {codec}");
        if settings.wants(&stage) {
            compaction(settings, stage, codec.parse()?, due_skewed_compaction)?.print();
        }
    }
    Ok(())
}

/// A database whose work is done by the caller, and which flushes only when told to.
pub fn open(path: &Path) -> Result<Db> {
    open_in(path, World::system())
}

/// The same in a world of the caller's.
pub fn open_in(path: &Path, world: World) -> Result<Db> {
    let options = Options {
        background_threads: 0,
        memory_budget_bytes: 1 << 30,
        memtable_bytes: 256 << 20,
        wal_bytes_max: 1 << 30,
        ..Options::default()
    };
    Db::open_in(path, options, world)
}

pub fn family(db: &Db, compression: Compression) -> Result<ColumnFamily> {
    let options = CfOptions {
        compression: compression.into(),
        // Level 0 goes straight to the last level.
        base_level_bytes_max: 1 << 40,
        ..CfOptions::default()
    };
    db.column_family("links", options)
}

/// Commits rows in batches of a size that keeps loading short.
pub fn load(
    db: &Db,
    family: &ColumnFamily,
    rows: impl Iterator<Item = (impl AsRef<[u8]>, impl AsRef<[u8]>)>,
) -> Result<()> {
    let mut batch = db.batch();
    for (key, value) in rows {
        batch.put(family, key.as_ref(), value.as_ref());
        if batch.len() == 512 {
            std::mem::replace(&mut batch, db.batch()).commit()?;
        }
    }
    batch.commit()
}

/// CPU nanoseconds that the ledger has under a cause for calls of the file system.
fn file_ns(db: &Db, cause: Cause) -> f64 {
    db.stats().figures.cpu_ns_of_part(cause, CpuPart::Io) as f64
}

fn entries_merged(db: &Db) -> usize {
    let figures = db.stats().figures;
    (1..LEVEL_SLOTS).map(|level| figures.job(level, JobFigure::EntriesIn) as usize).sum()
}

fn flush(settings: &Settings, stage: String, compression: Compression) -> Result<Line> {
    let rows = Rows::shuffled(settings.rows, 1);
    let (mut total, mut codec, mut files) =
        (Samples::default(), Samples::default(), Samples::default());
    for _ in 0..settings.repeats {
        let directory = settings.scratch()?;
        let db = open(directory.path())?;
        let family = family(&db, compression)?;
        load(&db, &family, rows.iter())?;
        let file_ns_before = file_ns(&db, Cause::Flush);
        let (ns, result) = cpu_ns(|| family.flush());
        result?;
        total.add(ns, rows.len());
        files.add(file_ns(&db, Cause::Flush) - file_ns_before, rows.len());
        let blocks = Blocks::of_tables(tables_in(directory.path())?.iter())?;
        codec.add(blocks.compress_ns(compression)?, rows.len());
    }
    Ok(Line {
        stage,
        rows: rows.len(),
        total,
        file_ns: Some(files.least()),
        codec: Some(codec),
        budget: Budget::OverCodec(300.0),
    })
}

/// Flushes the rows as so many runs of level 0, which all cover the whole range of keys.
fn load_runs(db: &Db, family: &ColumnFamily, rows: &[(&[u8], &[u8])]) -> Result<()> {
    for run in rows.chunks(rows.len().div_ceil(RUNS)) {
        load(db, family, run.iter().copied())?;
        family.flush()?;
    }
    Ok(())
}

/// A database in which a compaction of level 0 into the last level, of as many rows above as
/// below, is due.
pub fn due_compaction(
    path: &Path,
    rows: &Rows,
    compression: Compression,
    world: World,
) -> Result<Db> {
    let db = open_in(path, world)?;
    let family = family(&db, compression)?;
    let keys: Vec<_> = rows.iter().collect();
    let rows: Vec<(&[u8], &[u8])> = keys.iter().map(|(key, value)| (&key[..], *value)).collect();
    let (below, above) = rows.split_at(rows.len() / 2);
    load_runs(&db, &family, below)?;
    db.wait_for_compaction()?;
    load_runs(&db, &family, above)?;
    Ok(db)
}

/// A database in which a compaction of level 0 into the last level is due, and the rows above lie
/// in a tenth of the keys below: most of the last level's blocks are copied.
fn due_skewed_compaction(
    path: &Path,
    rows: &Rows,
    compression: Compression,
    world: World,
) -> Result<Db> {
    let db = open_in(path, world)?;
    let family = family(&db, compression)?;
    let keys: Vec<_> = rows.iter().collect();
    let rows: Vec<(&[u8], &[u8])> = keys.iter().map(|(key, value)| (&key[..], *value)).collect();
    load_runs(&db, &family, &rows)?;
    db.wait_for_compaction()?;
    let mut sorted: Vec<&[u8]> = rows.iter().map(|(key, _)| *key).collect();
    sorted.sort_unstable();
    let end = sorted[sorted.len() / 10];
    let above: Vec<_> = rows.into_iter().filter(|(key, _)| *key < end).collect();
    load_runs(&db, &family, &above)?;
    Ok(db)
}

/// Makes a database in which a compaction is due.
type Due = fn(&Path, &Rows, Compression, World) -> Result<Db>;

fn compaction(
    settings: &Settings,
    stage: String,
    compression: Compression,
    due: Due,
) -> Result<Line> {
    let rows = Rows::shuffled(settings.rows, 2);
    let (mut total, mut codec, mut files) =
        (Samples::default(), Samples::default(), Samples::default());
    let mut merged = 0;
    for _ in 0..settings.repeats {
        let directory = settings.scratch()?;
        let db = due(directory.path(), &rows, compression, World::system())?;
        let old_tables = tables_in(directory.path())?;
        let inputs = Blocks::of_tables(old_tables.iter())?;
        let before = (entries_merged(&db), file_ns(&db, Cause::Compaction));
        let (ns, result) = cpu_ns(|| db.wait_for_compaction());
        result?;
        merged = entries_merged(&db) - before.0;
        total.add(ns, merged);
        files.add(file_ns(&db, Cause::Compaction) - before.1, merged);
        let decode_ns = inputs.decompress_ns()?;
        drop(inputs);
        // Some of the inputs may still wait for their removal.
        let new_tables = tables_in(directory.path())?;
        let outputs = Blocks::of_tables(new_tables.difference(&old_tables))?;
        codec.add(decode_ns + outputs.compress_ns(compression)?, merged);
    }
    Ok(Line {
        stage,
        rows: merged,
        total,
        file_ns: Some(files.least()),
        codec: Some(codec),
        budget: Budget::OverCodec(400.0),
    })
}
