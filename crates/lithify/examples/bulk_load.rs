//! The same rows loaded four ways: puts out of order, puts in key order, an ingest, and table files
//! written beside the database; and how many bytes each way wrote per byte of rows.
//!
//! `cargo run --release -p lithify --example bulk_load`

use lithify::stats::TrafficFigure;
use lithify::{CfOptions, ColumnFamily, Db, Options, Result, TableTransfer, TableWriter};
use std::path::{Path, PathBuf};

const ROWS: u64 = 1_000_000;
const BATCH: u64 = 500;
/// Co-prime to the number of rows, so that all come once.
const STRIDE: u64 = 77_777;

fn row(number: u64) -> ([u8; 8], String) {
    (
        number.to_be_bytes(),
        format!("the value of row {number:>10}, of about a hundred bytes: {number:>44}"),
    )
}

fn put(db: &Db, rows: &ColumnFamily, number_of: fn(u64) -> u64) -> Result<()> {
    for first in (0..ROWS).step_by(BATCH as usize) {
        let mut batch = db.batch();
        for number in (first..first + BATCH).map(number_of) {
            let (key, value) = row(number);
            batch.put(rows, key, value.as_bytes());
        }
        batch.commit()?;
    }
    Ok(())
}

fn ingest(rows: &ColumnFamily) -> Result<()> {
    let mut ingest = rows.ingest()?;
    for number in 0..ROWS {
        let (key, value) = row(number);
        ingest.put(key, value.as_bytes())?;
    }
    ingest.commit().map(|_| ())
}

/// Two files, as two threads or machines would write them.
fn table_files(rows: &ColumnFamily, directory: &Path) -> Result<()> {
    let paths: [PathBuf; 2] = [directory.join("first.table"), directory.join("second.table")];
    for (half, path) in (0..).zip(&paths) {
        let mut writer = TableWriter::create(path, &CfOptions::default())?;
        for number in half * ROWS / 2..(half + 1) * ROWS / 2 {
            let (key, value) = row(number);
            writer.put(key, value.as_bytes())?;
        }
        writer.finish()?;
    }
    rows.ingest_tables(&paths, TableTransfer::Link).map(|_| ())
}

fn main() -> Result<()> {
    let directory = std::env::temp_dir().join(format!("lithify-bulk-load-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a temporary directory");
    let row_bytes: u64 = (0..ROWS).map(|number| (8 + row(number).1.len()) as u64).sum();
    println!("{ROWS} rows of {row_bytes} bytes; the database writes, per byte of them:");
    for way in ["puts out of order", "puts in key order", "ingest", "table files"] {
        let path = directory.join(way.replace(' ', "-"));
        let db = Db::open(&path, Options::default())?;
        let rows = db.column_family("rows", CfOptions::default())?;
        let start = std::time::Instant::now();
        match way {
            "puts out of order" => put(&db, &rows, |number| number * STRIDE % ROWS)?,
            "puts in key order" => put(&db, &rows, |number| number)?,
            "ingest" => ingest(&rows)?,
            _ => table_files(&rows, &directory)?,
        }
        let loaded = start.elapsed();
        db.flush()?;
        db.wait_for_compaction()?;
        let written = db.stats().figures.traffic_total(TrafficFigure::WrittenBytes);
        println!(
            "  {way:<18} {:.2}, in {:.2} s",
            written as f64 / row_bytes as f64,
            loaded.as_secs_f64()
        );
        assert_eq!(rows.get(row(ROWS - 1).0)?.as_deref(), Some(row(ROWS - 1).1.as_bytes()));
        db.close()?;
    }
    std::fs::remove_dir_all(&directory).expect("the directory is ours");
    Ok(())
}
