//! Cursors and snapshots: a scan that sees one moment while others write, forwards, backwards and by
//! prefix.
//!
//! `cargo run --release -p lithify --example snapshots`

use lithify::{CfOptions, Db, Options, Result};

fn main() -> Result<()> {
    let directory = std::env::temp_dir().join(format!("lithify-snapshots-{}", std::process::id()));
    let db = Db::open(&directory, Options::default())?;
    let layers = db.column_family("layers", CfOptions::default())?;
    for (key, value) in [
        ("cretaceous/chalk", "soft"),
        ("cretaceous/flint", "hard"),
        ("jurassic/limestone", "hard"),
        ("jurassic/shale", "soft"),
        ("permian/halite", "soft"),
    ] {
        layers.put(key.as_bytes(), value.as_bytes())?;
    }

    let snapshot = db.snapshot();
    layers.delete(b"jurassic/shale")?;
    layers.put(b"jurassic/ooid", b"round")?;

    // A cursor lends keys and values until it moves.
    let mut now = layers.prefix_cursor(b"jurassic/")?;
    let mut then = layers.prefix_cursor_at(b"jurassic/", &snapshot)?;
    println!("now:");
    while now.next()? {
        println!("  {} is {}", now.key().escape_ascii(), now.value().escape_ascii());
    }
    println!("when the snapshot was taken:");
    let mut seen = Vec::new();
    while then.next()? {
        println!("  {} is {}", then.key().escape_ascii(), then.value().escape_ascii());
        seen.push(then.key().to_vec());
    }
    assert_eq!(seen, [&b"jurassic/limestone"[..], b"jurassic/shale"]);

    // The last rows before a key, backwards.
    let mut back = layers.cursor(..b"jurassic/")?;
    back.seek_to_last()?;
    println!("before the jurassic, from the end:");
    while back.valid() {
        println!("  {}", back.key().escape_ascii());
        back.prev()?;
    }
    drop((now, then, back, snapshot));
    db.close()?;
    std::fs::remove_dir_all(&directory).expect("the directory is ours");
    Ok(())
}
