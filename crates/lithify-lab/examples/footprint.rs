//! What a database costs before it does anything: bytes on disk, threads, and the time of an opening.
//!
//! `cargo run --release -p lithify-lab --example footprint -- [TABLES]`
//!
//! Sizes are those of blocks that the file system has given, after a clean close and while the database is at
//! rest. A database of TABLES tables (1,000) is opened and closed eleven times in turn; its files are in the
//! page cache. Threads are counted in `/proc/self/task`.

use std::error::Error;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use lithify::{CfOptions, Db, Options, Resources};

type Outcome<T> = Result<T, Box<dyn Error>>;

const DATABASES: usize = 20;
const OPENINGS: usize = 11;
/// The smallest there is, so that many tables are written soon.
const TABLE_BYTES: u64 = 64 << 10;
/// Longer than the log waits before it gives back what it reserved.
const REST: Duration = Duration::from_millis(2_500);

fn disk_bytes(directory: &Path) -> Outcome<u64> {
    let sizes = std::fs::read_dir(directory)?.map(|entry| Ok(entry?.metadata()?.blocks() * 512));
    sizes.sum::<std::io::Result<u64>>().map_err(Into::into)
}

fn threads() -> Outcome<usize> {
    Ok(std::fs::read_dir("/proc/self/task")?.count())
}

/// Rows of 100 bytes that shrink to a half.
fn fill(db: &Db, rows: u64) -> Outcome<()> {
    let mut random = 1_u64;
    for row in 0..rows {
        let mut value = [b'.'; 84];
        for piece in value[..40].chunks_exact_mut(8) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            piece.copy_from_slice(&random.to_le_bytes());
        }
        db.put(format!("{row:016}"), value)?;
    }
    Ok(())
}

fn sizes(directory: &Path) -> Outcome<()> {
    for (name, rows) in [("empty", 0), ("one row", 1), ("1 MB of rows", 10_000)] {
        let path = directory.join(format!("{rows}"));
        let db = Db::open(&path, Options::default())?;
        fill(&db, rows)?;
        std::thread::sleep(REST);
        let at_rest = disk_bytes(&path)?;
        db.close()?;
        println!("{name}: {at_rest} bytes at rest, {} closed", disk_bytes(&path)?);
    }
    Ok(())
}

fn many(directory: &Path) -> Outcome<()> {
    let before = threads()?;
    let open = |number| Db::open(directory.join(format!("own-{number}")), Options::default());
    let own = (0..DATABASES).map(open).collect::<lithify::Result<Vec<_>>>()?;
    println!("{DATABASES} databases: {} threads", threads()? - before);
    drop(own);
    let before = threads()?;
    let resources = Resources::new(64 << 20, 2)?;
    let open = |number| {
        let path = directory.join(format!("shared-{number}"));
        Db::open_shared(path, Options::default(), &resources)
    };
    let shared = (0..DATABASES).map(open).collect::<lithify::Result<Vec<_>>>()?;
    println!("{DATABASES} databases with shared resources: {} threads", threads()? - before);
    drop(shared);
    Ok(())
}

fn openings(directory: &Path, tables: u64) -> Outcome<()> {
    let path = directory.join("tables");
    let options = CfOptions { table_bytes: TABLE_BYTES, ..CfOptions::default() };
    let open = || -> Outcome<Db> {
        let db = Db::open(&path, Options::default())?;
        db.column_family("default", options.clone())?;
        Ok(db)
    };
    let db = open()?;
    // A little more than two bytes of rows for one of a table.
    fill(&db, tables * TABLE_BYTES * 9 / 4 / 100)?;
    db.column_family("default", options.clone())?.compact_range(..)?;
    db.close()?;
    let mut times = Vec::new();
    for _ in 0..OPENINGS {
        let started = Instant::now();
        let db = open()?;
        times.push(started.elapsed());
        db.close()?;
    }
    let is_table = |path: &Path| path.extension().is_some_and(|kind| kind == "sst");
    let entries = std::fs::read_dir(&path)?.collect::<std::io::Result<Vec<_>>>()?;
    let found = entries.iter().filter(|entry| is_table(&entry.path())).count();
    times.sort_unstable();
    let (least, median, most) = (times[0], times[OPENINGS / 2], times[OPENINGS - 1]);
    println!("{found} tables: opened in {median:.1?} ({least:.1?} to {most:.1?})");
    Ok(())
}

fn main() -> Outcome<()> {
    let tables = match std::env::args().nth(1) {
        None => 1_000,
        Some(text) => text.parse().map_err(|_| format!("TABLES is a number, not {text:?}"))?,
    };
    let directory = std::env::temp_dir().join(format!("footprint-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let ended = sizes(&directory)
        .and_then(|()| many(&directory))
        .and_then(|()| openings(&directory, tables));
    std::fs::remove_dir_all(&directory)?;
    ended
}
