//! Opens a database, writes and reads, looks back through a snapshot, and prints what it cost.
//!
//! Run with `cargo run --example quickstart -- [DIRECTORY]`.

use lithify::{CfOptions, Db, Durability, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let temporary = tempfile::tempdir()?;
    let directory = match std::env::args_os().nth(1) {
        Some(directory) => directory.into(),
        None => temporary.path().join("rocks.db"),
    };
    let db = Db::open(&directory, Options::default())?;

    // Codecs are set by distance from the bottom of the tree: small levels, middle, bottom.
    let options = CfOptions { compression: "none,lz4,zstd-3".parse()?, ..CfOptions::default() };
    let rocks = db.column_family("rocks", options)?;
    let counts = db.column_family("counts", CfOptions::default())?;

    rocks.put(b"basalt", b"igneous")?;
    rocks.put(b"chalk", b"sedimentary")?;
    let before = db.snapshot();

    // A batch is all or nothing, over several column families. This one survives a power cut
    // from the moment that the call returns.
    let mut batch = db.batch();
    batch.put(&rocks, b"gneiss", b"metamorphic");
    batch.delete(&rocks, b"chalk");
    batch.put(&counts, b"rocks", b"2");
    batch.commit_with(Durability::Sync)?;

    for rock in [&b"basalt"[..], b"chalk", b"gneiss"] {
        let (then, now) = (rocks.get_at(rock, &before)?, rocks.get(rock)?);
        let text = |value: Option<lithify::Slice>| match value {
            Some(value) => String::from_utf8_lossy(&value).into_owned(),
            None => "-".to_string(),
        };
        println!("{:8} {:12} -> {}", String::from_utf8_lossy(rock), text(then), text(now));
    }
    drop(before);

    rocks.compact_range(None, None)?;
    println!("{}", db.stats());
    db.close()?;
    Ok(())
}
