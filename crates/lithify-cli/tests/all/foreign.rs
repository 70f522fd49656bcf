//! `lithify import` of databases that other engines made. Each engine is asked for as the laboratory asks.

use std::path::{Path, PathBuf};

use lithify_lab::adapter::provider::Transactions;
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::{EngineName, SpaceId, SpaceSpec, WriteBatch};
use lithify_lab::engines::registry::{find, open_spaces};

use super::import::{Rows, expect, rows};

/// The engine, if it is there; otherwise a line is printed, or the test fails where it is expected.
fn present(name: &str) -> Option<EngineName> {
    lithify_lab_engines::register();
    let engine = EngineName::new(name);
    let Err(missing) = find(&engine).expect("is known").available() else { return Some(engine) };
    let expected = std::env::var("LITHIFY_EXPECT_ENGINES").unwrap_or_default();
    assert!(!expected.split(',').any(|expected| expected == name), "{missing}");
    println!("skipped for {name}: {missing}");
    None
}

/// Rows of any bytes.
fn stones() -> Rows {
    let mixed = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    (0..5_000).map(|number| (mixed(number).to_vec(), mixed(number + 1).repeat(20))).collect()
}

/// A database in which every row was written twice, and every row of a second number removed.
fn filled(engine: &EngineName, directory: &Path, stones: &Rows) {
    let spaces = [SpaceSpec { name: "stones", prefix_bytes: None, single_delete: false }];
    let settings = EngineSettings::small();
    let opened = open_spaces(engine, directory, &settings, &spaces, Transactions::Unneeded);
    let opened = opened.expect("opens");
    {
        let mut session = opened.session().expect("a session");
        let all: Vec<_> = stones.iter().collect();
        for some in all.chunks(500) {
            let (mut first, mut second) = (WriteBatch::new(), WriteBatch::new());
            for (key, value) in some {
                let removed = [key, &b"removed"[..]].concat();
                first.put(SpaceId(0), key, b"older");
                first.put(SpaceId(0), &removed, b"older");
                second.put(SpaceId(0), key, value);
                second.delete(SpaceId(0), &removed);
            }
            session.write_batch(&first).expect("is written");
            session.write_batch(&second).expect("is written");
        }
    }
    opened.close().expect("closes");
}

/// All files below a directory, with their sizes.
fn listing(directory: &Path) -> Vec<(PathBuf, u64)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).expect("is there") {
        let path = entry.expect("is there").path();
        match path.is_dir() {
            true => files.extend(listing(&path)),
            false => files.push((path.clone(), path.metadata().expect("has some").len())),
        }
    }
    files.sort();
    files
}

fn imports_all_of(name: &str) {
    let Some(engine) = present(name) else { return };
    let place = tempfile::tempdir().expect("a directory");
    let place = place.path();
    let (old, stones) = (place.join("old"), stones());
    std::fs::create_dir(&old).expect("is made");
    filled(&engine, &old, &stones);
    let before = listing(&old);
    let import = ["import", "new.db", "old", "--table", "stones", "--create"];
    let (out, _) = expect(place, 0, &import);
    assert!(out.starts_with("5000 rows written in the order of keys"), "{out}");
    assert!(rows(&place.join("new.db"), "default") == stones, "{name}");
    let (_, error) = expect(place, 2, &["import", "no.db", "old", "--table", "sands", "--create"]);
    assert!(error.contains("stones"), "{error}");
    assert!(!place.join("no.db").exists());
    assert_eq!(listing(&old), before, "nothing was written");
}

#[test]
fn the_rows_of_a_database_of_rocksdb_are_imported() {
    imports_all_of("rocksdb");
}
