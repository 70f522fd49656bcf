//! Loads the same sorted rows in three ways and prints what each of them wrote.
//!
//! Run with `cargo run --release --example bulk_load -- [ROWS]`.

use lithify::stats::{Cause, Derived, TrafficFigure};
use lithify::{CfOptions, ColumnFamily, Db, Options, Result, TableTransfer, TableWriter};
use std::path::Path;

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// 200 bytes that compress to about a half.
fn value(number: u64) -> Vec<u8> {
    let mut state = number;
    let word = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        ((state >> 20) as u32 & 0x0f0f_0f0f).to_le_bytes()
    };
    (0..50).flat_map(word).collect()
}

fn by_puts(rows: u64, family: &ColumnFamily, _: &Path) -> Result<()> {
    for number in 0..rows {
        family.put(&key(number), &value(number))?;
    }
    family.flush()
}

fn by_ingest(rows: u64, family: &ColumnFamily, _: &Path) -> Result<()> {
    let mut ingest = family.ingest()?;
    for number in 0..rows {
        ingest.put(&key(number), &value(number))?;
    }
    let ingested = ingest.commit()?;
    assert_eq!(ingested.rows, rows);
    Ok(())
}

/// Four files, as four processes could have written them.
fn by_files(rows: u64, family: &ColumnFamily, directory: &Path) -> Result<()> {
    let mut paths = Vec::new();
    for part in 0..4 {
        let path = directory.join(format!("part{part}.table"));
        let mut writer = TableWriter::create(&path, &family.options())?;
        for number in rows * part / 4..rows * (part + 1) / 4 {
            writer.put(&key(number), &value(number))?;
        }
        paths.push(writer.finish()?.path);
    }
    family.ingest_tables(&paths, TableTransfer::Link)?;
    Ok(())
}

/// A way of loading: rows, the family, and a directory for files of its own.
type Load = fn(u64, &ColumnFamily, &Path) -> Result<()>;

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let rows = std::env::args().nth(1).map_or(Ok(200_000), |text| text.parse())?;
    let ways: [(&str, Load); 3] =
        [("puts", by_puts), ("ingest", by_ingest), ("table files", by_files)];
    println!("{rows} rows of 208 bytes");
    println!("{:12} {:>8} {:>8} {:>10} {:>9}", "way", "log MB", "table MB", "w-amp", "us/row");
    for (name, load) in ways {
        let directory = tempfile::tempdir()?;
        let db = Db::open(directory.path().join("db"), Options::default())?;
        let family = db.column_family("rows", CfOptions::default())?;
        let start = std::time::Instant::now();
        load(rows, &family, directory.path())?;
        db.wait_for_compaction()?;
        let us = start.elapsed().as_secs_f64() * 1e6;
        let stats = db.stats();
        let log = stats.figures.traffic_of_cause(Cause::Wal, TrafficFigure::WrittenBytes);
        println!(
            "{name:12} {:8.1} {:8.1} {:10.2} {:9.2}",
            log as f64 / 1e6,
            stats.table_bytes() as f64 / 1e6,
            stats.derived(Derived::WriteAmplificationTotal).unwrap_or(0.0),
            us / rows as f64,
        );
        let last = rows.saturating_sub(1);
        assert_eq!(family.get(&key(last))?.as_deref(), Some(&value(last)[..]));
        db.close()?;
    }
    Ok(())
}
