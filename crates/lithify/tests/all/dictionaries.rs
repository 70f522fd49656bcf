//! Tables with dictionaries are whole by themselves: everything that moves, copies, checks or saves
//! tables goes on as before, without the dictionaries at hand.

use crate::support::{Model, PATH, Parts, Random, names_ending, rows, small_options};
use lithify::backup::{BackupOptions, BackupStore, RestoreOptions};
use lithify::codec::Dictionary;
use lithify::fs::{FileSystem, OpenMode};
use lithify::repair::{RepairOptions, repair_in};
use lithify::verify::{Structure, VerifyOptions, verify_in};
use lithify::{CfOptions, ColumnFamily, Db, ErrorKind, TableTransfer, TableWriter};
use std::io::IoSlice;
use std::ops::ControlFlow;
use std::path::Path;

const WORDS: &str = "granite basalt gneiss quartz feldspar mica hornblende olivine pyroxene";

fn options(compression: &str) -> CfOptions {
    CfOptions {
        compression: compression.parse().unwrap(),
        block_size_bytes: 1 << 10,
        table_bytes: 64 << 10,
        base_level_bytes_max: 64 << 10,
        ..CfOptions::default()
    }
}

fn contents() -> Vec<Vec<u8>> {
    (0..3).map(|number| format!("{number}{WORDS}").repeat(1 + number).into_bytes()).collect()
}

fn vary(family: &ColumnFamily, seed: u64) {
    let contents = contents();
    let contents: Vec<&[u8]> = contents.iter().map(|content| &content[..]).collect();
    family.vary_dictionaries(&contents, seed).unwrap();
}

fn put(family: &ColumnFamily, numbers: std::ops::Range<u64>, seed: u64) {
    let mut random = Random(seed);
    for number in numbers {
        let start = random.below(30) as usize;
        let value = format!("{} {number} {}", &WORDS[start..], random.below(1000));
        family.put(format!("rock{number:05}").as_bytes(), value.as_bytes()).unwrap();
    }
}

/// Bytes of the footer by which a table says that it has dictionaries.
fn has_dictionaries(parts: &Parts, path: &Path) -> bool {
    let file = parts.files.open(path, OpenMode::Read).unwrap();
    let mut byte = [0];
    file.read_at(&mut byte, file.length().unwrap() - 24).unwrap();
    byte[0] & 2 != 0
}

fn tables_with_dictionaries(parts: &Parts) -> Vec<String> {
    let mut names = names_ending(&parts.files, ".sst");
    names.retain(|name| has_dictionaries(parts, &Path::new(PATH).join(name)));
    names
}

/// A database with dictionaries in tables of several levels, and its rows.
fn database() -> (Parts, Model) {
    let parts = Parts::new(7);
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let family = db.column_family("rocks", options("lz4,lz4,zstd-1")).unwrap();
    for seed in 0..6 {
        vary(&family, seed + 40);
        put(&family, seed * 300..seed * 300 + 1_500, seed);
        family.flush().unwrap();
    }
    db.wait_for_compaction().unwrap();
    family.delete_range(b"rock00100", b"rock00130").unwrap();
    family.flush().unwrap();
    let rows = rows(&family);
    db.close().unwrap();
    let with = tables_with_dictionaries(&parts);
    assert!(with.len() > 1, "{with:?} of {:?}", names_ending(&parts.files, ".sst"));
    (parts, rows)
}

fn rows_at(parts: &Parts, path: &str) -> Model {
    let db = Db::open_in(path, small_options(), parts.world()).unwrap();
    let found = rows(&db.existing_column_family("rocks").unwrap().unwrap());
    db.close().unwrap();
    found
}

fn is_sound(parts: &Parts, path: &str) -> bool {
    let go_on = &mut |_: &_| ControlFlow::Continue(());
    verify_in(path, &VerifyOptions::default(), &parts.world(), go_on).unwrap().is_sound()
}

#[test]
fn a_database_is_opened_read_and_compacted_without_its_dictionaries() {
    let (parts, expected) = database();
    assert_eq!(rows_at(&parts, PATH), expected);
    assert!(is_sound(&parts, PATH));
    let reader = Db::open_read_only_in(PATH, small_options(), parts.world()).unwrap();
    assert_eq!(rows(&reader.existing_column_family("rocks").unwrap().unwrap()), expected);
    drop(reader);
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let family = db.existing_column_family("rocks").unwrap().unwrap();
    family.compact_range(..).unwrap();
    db.wait_for_compaction().unwrap();
    assert_eq!(rows(&family), expected);
    db.close().unwrap();
    assert_eq!(tables_with_dictionaries(&parts), [""; 0], "none was at hand for the new tables");
}

#[test]
fn copies_of_a_database_need_no_dictionary() {
    let (parts, expected) = database();
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    db.checkpoint("/checkpoint").unwrap();
    let mut store = BackupStore::open_in("/store", parts.world()).unwrap();
    store.create(&db, &BackupOptions::default()).unwrap();
    store.restore(1, "/restored", &RestoreOptions::default()).unwrap();
    db.close().unwrap();
    for path in ["/checkpoint", "/restored"] {
        assert!(is_sound(&parts, path), "{path}");
        assert_eq!(rows_at(&parts, path), expected, "{path}");
    }
}

#[test]
fn a_repair_saves_the_blocks_of_all_dictionaries_but_a_damaged_one() {
    let (parts, expected) = database();
    let options = RepairOptions { database: small_options(), ..RepairOptions::default() };
    let go_on = &mut |_: &_| ControlFlow::Continue(());
    repair_in(PATH, "/whole", &options, &parts.world(), go_on).unwrap();
    assert_eq!(rows_at(&parts, "/whole"), expected);

    let name = tables_with_dictionaries(&parts).remove(0);
    let path = Path::new(PATH).join(name);
    let file = parts.files.open(&path, OpenMode::ReadWrite).unwrap();
    let mut bytes = vec![0; file.length().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    let size = bytes.len();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    // Of the footer: where the properties are, and what dictionaries take in front of them.
    let inside = word(size - 52) - word(size - 16) + 30;
    file.write_at(&[IoSlice::new(&[bytes[inside] ^ 1])], inside as u64).unwrap();
    let report = verify_in(PATH, &VerifyOptions::default(), &parts.world(), go_on).unwrap();
    let of = |part| report.findings.iter().any(|finding| finding.structure == part);
    assert!(of(Structure::Dictionary) && of(Structure::DataBlock), "{report:?}");
    repair_in(PATH, "/rest", &options, &parts.world(), go_on).unwrap();
    let found = rows_at(&parts, "/rest");
    assert!(!found.is_empty());
}

#[test]
fn supplied_dictionaries_are_used_by_large_tables_and_by_table_writers() {
    let parts = Parts::new(3);
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let family = db.column_family("rocks", options("zstd-1")).unwrap();
    let own = contents().remove(2);
    family.supply_dictionaries(&[&own]).unwrap();
    put(&family, 0..1_000, 1);
    family.flush().unwrap();
    assert_eq!(tables_with_dictionaries(&parts), [""; 0], "a small table has none");
    let error = family.supply_dictionaries(&[b"short"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);

    let mut writer =
        TableWriter::create_in("/rocks.sst", &options("zstd-1"), parts.world()).unwrap();
    writer.use_dictionary(&own).unwrap();
    writer.put(b"rock1", WORDS.as_bytes()).unwrap();
    let error = writer.use_dictionary(&own).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    writer.finish().unwrap();
    assert!(has_dictionaries(&parts, Path::new("/rocks.sst")));
    family.ingest_tables(&[Path::new("/rocks.sst")], TableTransfer::Copy).unwrap();
    assert_eq!(family.get(b"rock1").unwrap().as_deref(), Some(WORDS.as_bytes()));
    let mut writer = TableWriter::create_in("/none.sst", &options("none"), parts.world()).unwrap();
    assert_eq!(writer.use_dictionary(&own).unwrap_err().kind(), ErrorKind::InvalidArgument);
    drop(writer);

    put(&family, 0..20_000, 2);
    family.compact_range(..).unwrap();
    db.wait_for_compaction().unwrap();
    assert!(!tables_with_dictionaries(&parts).is_empty(), "the merge is of more than 1 MiB");
    let name = Dictionary::new(&own).unwrap().hash().to_string();
    assert_eq!(name.len(), 32);
    db.close().unwrap();
    assert!(is_sound(&parts, PATH));
}

/// Dictionaries that were supplied are part of what tables are compared with, whichever option changes.
#[test]
fn a_changed_option_makes_no_debt_of_dictionaries() {
    let parts = Parts::new(41);
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let own = CfOptions { table_bytes: 8 << 20, ..options("zstd-1") };
    let family = db.column_family("rocks", own.clone()).unwrap();
    let contents = contents();
    family.supply_dictionaries(&[&contents[2]]).unwrap();
    put(&family, 0..40_000, 1);
    family.compact_range(..).unwrap();
    db.wait_for_compaction().unwrap();
    assert!(!tables_with_dictionaries(&parts).is_empty());
    let debt = |db: &Db| db.stats().levels.iter().map(|level| level.codec_debt_files).sum::<u64>();
    assert_eq!(debt(&db), 0);
    db.column_family("rocks", CfOptions { filter_bits_per_key: 11, ..own }).unwrap();
    assert_eq!(debt(&db), 0);
}
