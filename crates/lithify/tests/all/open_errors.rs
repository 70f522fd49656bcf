//! What opening and writing say when the directory, the options, the disk or the files are wrong:
//! a typed error that names what is wrong, and the database as it was.

use crate::support::{Model, PATH, Parts, Random, rows, small_options, watched};
use lithify::format::Checksum;
use lithify::fs::{FileSystem, OpenMode};
use lithify::repair::{RepairOptions, repair};
use lithify::verify::{VerifyOptions, verify};
use lithify::{CfOptions, Db, Durability, Error, ErrorKind, Options};
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn refused(result: lithify::Result<Db>) -> Error {
    match result {
        Ok(_) => panic!("the database was opened"),
        Err(error) => error,
    }
}

fn assert_says(error: &Error, kind: ErrorKind, parts: &[&str]) {
    let text = error.to_string();
    assert_eq!(error.kind(), kind, "{text}");
    for part in parts {
        assert!(text.contains(part), "{text:?} does not say {part:?}");
    }
}

fn names(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_path_that_is_a_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.txt");
    std::fs::write(&path, "my notes").unwrap();
    let error = refused(Db::open(&path, Options::default()));
    assert_says(&error, ErrorKind::InvalidArgument, &["notes.txt"]);
    assert_eq!(std::fs::read(&path).unwrap(), b"my notes");
    let below = refused(Db::open(path.join("db"), Options::default()));
    assert_says(&below, below.kind(), &["notes.txt"]);
    assert_eq!(std::fs::read(&path).unwrap(), b"my notes");
}

#[test]
fn what_cannot_be_read_merged_or_named_says_what_could() {
    let directory = tempfile::tempdir().unwrap();
    for path in [directory.path(), &directory.path().join("missing")] {
        let error = refused(Db::open_read_only(path, Options::default()));
        assert_says(&error, ErrorKind::NotFound, &["no database to read"]);
        assert!(!error.to_string().contains("create_if_missing"), "reading makes none: {error}");
    }
    let options =
        Options { memory_budget_bytes: 8 << 20, memtable_bytes: 1 << 20, ..small_options() };
    let db = Db::open(directory.path(), options).unwrap();
    let error = db.merge("a", "1").unwrap_err();
    assert_says(&error, ErrorKind::InvalidArgument, &["CfOptions::merge_operator"]);
    let error = db.column_family(&"n".repeat(256), CfOptions::default()).unwrap_err();
    assert_says(&error, ErrorKind::LimitExceeded, &["at most 255 bytes", "found 256"]);
    let family = db.column_family("rows", CfOptions::default()).unwrap();
    let mut transaction = db.transaction();
    (0..3).for_each(|number| transaction.put(&family, [number], vec![0; 1 << 20]).unwrap());
    let error = transaction.put(&family, [3], vec![0; 1 << 20]).unwrap_err();
    assert_says(&error, ErrorKind::LimitExceeded, &["transaction", "memory_budget_bytes"]);
    assert_eq!(format!("{error:?}"), error.to_string(), "what a main that returns it shows");
}

#[test]
fn a_missing_database_is_not_made_where_that_is_off() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { create_if_missing: false, ..Options::default() };
    let missing = directory.path().join("missing");
    let error = refused(Db::open(&missing, options.clone()));
    assert_says(&error, ErrorKind::NotFound, &["missing", "create_if_missing"]);
    assert!(!missing.exists());
    let error = refused(Db::open(directory.path(), options));
    assert_says(&error, ErrorKind::NotFound, &["create_if_missing"]);
    assert_eq!(names(directory.path()), Vec::<String>::new(), "nothing may be left behind");
}

#[test]
fn a_directory_of_other_files_is_no_place_for_a_database() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("thesis.tex"), "chapter 1").unwrap();
    let error = refused(Db::open(directory.path(), Options::default()));
    assert_says(&error, ErrorKind::InvalidArgument, &["thesis.tex"]);
    assert_eq!(names(directory.path()), ["thesis.tex"]);
    // A file that comes to a database later does no harm and comes to none.
    std::fs::remove_file(directory.path().join("thesis.tex")).unwrap();
    Db::open(directory.path(), Options::default()).unwrap().close().unwrap();
    std::fs::write(directory.path().join("notes.txt"), "mine").unwrap();
    Db::open(directory.path(), Options::default()).unwrap().close().unwrap();
    assert_eq!(std::fs::read(directory.path().join("notes.txt")).unwrap(), b"mine");
}

#[test]
fn tables_or_logs_without_current_are_damage() {
    for kept in [".sst", ".wal"] {
        let parts = Parts::new(1);
        make(&parts);
        for name in parts.names_ending("") {
            if !name.ends_with(kept) {
                parts.files.remove(&Path::new(PATH).join(name)).unwrap();
            }
        }
        let before = parts.names_ending(kept);
        assert!(!before.is_empty());
        let error = refused(Db::open_in(PATH, small_options(), parts.world()));
        assert_says(&error, ErrorKind::Corruption, &["CURRENT"]);
        assert_eq!(parts.names_ending(kept), before);
    }
}

#[test]
fn a_second_open_in_this_process_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path(), Options::default()).unwrap();
    let error = refused(Db::open(directory.path(), Options::default()));
    assert_says(&error, ErrorKind::Locked, &["this process", "LOCK"]);
    let family = db.column_family("a", CfOptions::default()).unwrap();
    family.put(b"k", b"v").unwrap();
    db.close().unwrap();
    let db = Db::open(directory.path(), Options::default()).unwrap();
    let family = db.existing_column_family("a").unwrap().unwrap();
    assert_eq!(family.get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
}

const CHILD_PATH: &str = "LITHIFY_TEST_OPEN_PATH";

/// What a child process says of its attempt to open a directory: the test of that name, run in it.
fn opened_by_child(test: &str, directory: &Path) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("open_errors::{test}"), "--nocapture"])
        .env(CHILD_PATH, directory)
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    text
}

/// Run again as a child, this test tries to open what its parent has open.
#[test]
fn a_second_process_is_refused_and_told_who_holds_it() {
    if let Ok(path) = std::env::var(CHILD_PATH) {
        let error = refused(Db::open(path, Options::default()));
        println!("child: {:?}: {error}", error.kind());
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let _db = Db::open(directory.path(), Options::default()).unwrap();
    let name = "a_second_process_is_refused_and_told_who_holds_it";
    let text = opened_by_child(name, directory.path());
    assert!(text.contains("child: Locked"), "{text}");
    assert!(text.contains(&format!("process {} ", std::process::id())), "{text}");
}

/// Run again as a child, this test does what the lock is to keep it from, and what it may do.
#[test]
fn a_second_process_is_refused_though_the_lock_file_was_removed() {
    if let Ok(path) = std::env::var(CHILD_PATH) {
        let error = refused(Db::open(&path, Options::default()));
        println!("child: {:?}: {error}", error.kind());
        println!("destroyed: {:?}", Db::destroy(&path).map_err(|error| error.kind()));
        let report = verify(&path, &VerifyOptions::default()).unwrap();
        println!("sound: {}", report.is_sound());
        let saved = Path::new(&path).with_extension("saved");
        let repaired = repair(&path, saved, &RepairOptions::default());
        println!("repaired: {:?}", repaired.map_err(|error| error.kind()).err());
        let reader = Db::open_read_only(&path, Options::default()).unwrap();
        println!("read: {:?}", reader.get("k").unwrap());
        let copy = Path::new(&path).with_extension("copy");
        reader.checkpoint(&copy).unwrap();
        println!("copied: {:?}", Db::open(&copy, Options::default()).unwrap().get("k").unwrap());
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rows");
    let db = Db::open(&path, Options::default()).unwrap();
    db.put("k", "v").unwrap();
    std::fs::remove_file(path.join("LOCK")).unwrap();
    let name = "a_second_process_is_refused_though_the_lock_file_was_removed";
    // Twice: the first attempt leaves a new file.
    for _ in 0..2 {
        let text = opened_by_child(name, &path);
        for words in [
            "child: Locked",
            "has locked the directory",
            "destroyed: Err(Locked)",
            "sound: true",
            "repaired: Some(Locked)",
            "read: Some(",
            "copied: Some(",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        std::fs::remove_dir_all(path.with_extension("copy")).unwrap();
    }
    db.close().unwrap();
    Db::open(&path, Options::default()).unwrap().put("k", "w").unwrap();
}

#[test]
fn impossible_options_name_the_range_or_both_options() {
    let parts = Parts::new(2);
    let good = Options::default();
    let cases: [(Options, &[&str]); 7] = [
        (Options { memory_budget_bytes: 5, ..good.clone() }, &["memory_budget_bytes", "1048576"]),
        (Options { memtable_bytes: 1, ..good.clone() }, &["memtable_bytes", "65536"]),
        (Options { background_threads: 65, ..good.clone() }, &["background_threads", "64"]),
        (Options { row_lock_timeout_ms: u64::MAX, ..good.clone() }, &["row_lock_timeout_ms"]),
        (
            Options { memtable_bytes: 200 << 20, ..good.clone() },
            &["memtable_bytes", "memory_budget_bytes"],
        ),
        (Options { wal_bytes_max: 1 << 20, ..good.clone() }, &["wal_bytes_max", "memtable_bytes"]),
        (
            Options { durability: Durability::Interval { milliseconds: 0 }, ..good.clone() },
            &["durability", "interval"],
        ),
    ];
    for (options, words) in cases {
        let error = refused(Db::open_in(PATH, options, parts.world()));
        assert_says(&error, ErrorKind::InvalidArgument, words);
    }
    assert!(!parts.files.exists(Path::new(PATH)).unwrap(), "a refused open makes nothing");
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let good = CfOptions::default();
    let cases: [(CfOptions, &[&str]); 5] = [
        (CfOptions { block_size_bytes: 100, ..good.clone() }, &["block_size_bytes", "512"]),
        (CfOptions { fanout: 1, ..good.clone() }, &["fanout", "expected a factor of 2 to 64"]),
        (CfOptions { filter_bits_per_key: 65, ..good.clone() }, &["filter_bits_per_key", "64"]),
        (
            CfOptions { prefix_length_bytes: 4, filter_bits_per_key: 0, ..good.clone() },
            &["prefix_length_bytes", "filter_bits_per_key"],
        ),
        (
            CfOptions { block_size_bytes: 1 << 20, table_bytes: 65_536, ..good.clone() },
            &["block_size_bytes", "table_bytes"],
        ),
    ];
    for (options, words) in cases {
        let error = db.column_family("a", options).err().unwrap();
        assert_says(&error, ErrorKind::InvalidArgument, words);
    }
    assert!(db.column_family_names().is_empty());
}

/// A database with rows in tables and in the log, closed; gives the rows.
fn make(parts: &Parts) -> Model {
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let family = db.column_family("rocks", small_family()).unwrap();
    let mut random = Random(7);
    for number in 0..400 {
        let key = format!("rock{:03}", number % 300);
        family.put(key.as_bytes(), random.bytes(200)).unwrap();
        if number == 350 {
            db.flush().unwrap();
        }
    }
    let model = rows(&family);
    db.close().unwrap();
    model
}

fn small_family() -> CfOptions {
    CfOptions {
        block_size_bytes: 1024,
        table_bytes: 64 << 10,
        base_level_bytes_max: 64 << 10,
        ..CfOptions::default()
    }
}

/// The rows after opening the database again.
fn reopened(parts: &Parts) -> Model {
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let model = rows(&db.existing_column_family("rocks").unwrap().unwrap());
    db.close().unwrap();
    assert_eq!(parts.environment.endless_waits(), 0);
    model
}

#[test]
fn a_read_only_disk_refuses_open_and_write() {
    watched("read-only disk", || {
        let parts = Parts::new(3);
        let model = make(&parts);
        parts.files.set_read_only(true);
        let error = refused(Db::open_in(PATH, small_options(), parts.world()));
        assert_says(&error, ErrorKind::ReadOnly, &[PATH]);
        parts.files.set_read_only(false);
        assert_eq!(reopened(&parts), model);
        let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
        let family = db.existing_column_family("rocks").unwrap().unwrap();
        parts.files.set_read_only(true);
        let error = family.put(b"rock000", b"new").unwrap_err();
        assert_eq!(cause_of(&error), ErrorKind::ReadOnly, "{error}");
        assert_eq!(rows(&family), model, "reads go on");
        for _ in 0..3 {
            family.put(b"rock000", b"new").unwrap_err();
            family.flush().unwrap_err();
        }
        assert!(db.close().is_err());
        parts.files.set_read_only(false);
        assert_eq!(reopened(&parts), model);
    });
}

/// The kind of the innermost error of the engine.
fn cause_of(error: &Error) -> ErrorKind {
    let mut kind = error.kind();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<Error>() {
            kind = error.kind();
        }
        source = error.source();
    }
    kind
}

const PLENTY_BYTES: u64 = 1 << 40;

fn used_bytes(parts: &Parts) -> u64 {
    parts.files.set_capacity_bytes(PLENTY_BYTES);
    PLENTY_BYTES - parts.files.free_space(Path::new(PATH)).unwrap()
}

#[test]
fn a_full_disk_at_open_leaves_the_database_as_it_was() {
    watched("full disk at open", || {
        let parts = Parts::new(4);
        let model = make(&parts);
        let used = used_bytes(&parts);
        for spare in (0..400).step_by(40) {
            parts.files.set_capacity_bytes(used + spare);
            match Db::open_in(PATH, small_options(), parts.world()) {
                Ok(db) => drop(db),
                Err(error) => assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}"),
            }
        }
        parts.files.set_capacity_bytes(PLENTY_BYTES);
        assert_eq!(reopened(&parts), model);
    });
}

#[test]
fn a_full_disk_at_a_write_is_an_error_and_space_ends_it_without_a_restart() {
    watched("full disk at write", || {
        let parts = Parts::new(5);
        let mut model = make(&parts);
        let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
        let family = db.existing_column_family("rocks").unwrap().unwrap();
        family.put(b"before", b"full").unwrap();
        model.insert(b"before".to_vec(), b"full".to_vec());
        parts.files.set_capacity_bytes(used_bytes(&parts));
        // The log has reserved some space; what is acknowledged meanwhile is there for good.
        let mut refused = 0;
        for number in 0..2_000u32 {
            let value = [number.to_le_bytes(); 1250].concat();
            match family.put(b"while", &value) {
                Ok(()) => drop(model.insert(b"while".to_vec(), value)),
                Err(error) => {
                    assert_says(&error, ErrorKind::NoSpace, &[".wal"]);
                    refused += 1;
                }
            }
            if refused == 20 {
                break;
            }
        }
        assert_eq!(refused, 20);
        assert_eq!(rows(&family), model);
        parts.files.set_capacity_bytes(PLENTY_BYTES);
        family.put(b"after", b"full").unwrap();
        model.insert(b"after".to_vec(), b"full".to_vec());
        assert_eq!(rows(&family), model);
        db.close().unwrap();
        assert_eq!(reopened(&parts), model);
    });
}

#[test]
fn a_full_disk_where_a_segment_ends_leaves_no_files_behind() {
    watched("full disk at a new segment", || {
        let parts = Parts::new(6);
        make(&parts);
        let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
        let family = db.existing_column_family("rocks").unwrap().unwrap();
        // No segment is open yet: the first write has to make one.
        parts.files.set_capacity_bytes(used_bytes(&parts));
        let before = parts.names_ending("").len();
        for _ in 0..20 {
            let error = family.put(b"k", b"v").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
        }
        assert_eq!(parts.names_ending("").len(), before, "failed attempts leave no files");
        parts.files.set_capacity_bytes(PLENTY_BYTES);
        family.put(b"k", b"v").unwrap();
        db.close().unwrap();
        assert_eq!(reopened(&parts).get(&b"k"[..]).map(Vec::as_slice), Some(&b"v"[..]));
    });
}

#[test]
fn a_full_disk_at_a_flush_is_an_error_and_space_ends_it_without_a_restart() {
    watched("full disk at flush", || {
        let parts = Parts::new(7);
        let mut model = make(&parts);
        let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
        let family = db.existing_column_family("rocks").unwrap().unwrap();
        let mut random = Random(1);
        for number in 0..100 {
            let (key, value) = (format!("new{number}").into_bytes(), random.bytes(300));
            family.put(&key, &value).unwrap();
            model.insert(key, value);
        }
        let tables = parts.names_ending(".sst").len();
        for spare in [0, 1000, 9000] {
            parts.files.set_capacity_bytes(used_bytes(&parts) + spare);
            let error = family.flush().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
            assert_eq!(rows(&family), model);
            assert_eq!(parts.names_ending(".sst").len(), tables, "half a table stayed");
        }
        parts.files.set_capacity_bytes(PLENTY_BYTES);
        family.flush().unwrap();
        assert!(parts.names_ending(".sst").len() > tables);
        db.close().unwrap();
        assert_eq!(reopened(&parts), model);
    });
}

/// Writers that meet a disk too full to flush are stopped with an error, not for ever.
#[test]
fn a_full_disk_behind_a_full_memory_stops_writers_with_an_error() {
    watched("full disk, no log", || {
        let parts = Parts::new(8);
        // Without a log nothing but a flush needs the disk.
        let options = Options { durability: Durability::None, ..small_options() };
        let db = Db::open_in(PATH, options.clone(), parts.world()).unwrap();
        let family = db.column_family("rocks", small_family()).unwrap();
        family.put(b"first", b"row").unwrap();
        db.flush().unwrap();
        parts.files.set_capacity_bytes(used_bytes(&parts));
        let mut random = Random(2);
        let mut written = 0;
        let error = loop {
            let key = format!("row{written:06}").into_bytes();
            match family.put(&key, random.bytes(1000)) {
                Ok(()) => written += 1,
                Err(error) => break error,
            }
            assert!(written < 10_000, "memory grows without bound");
        };
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
        parts.files.set_capacity_bytes(PLENTY_BYTES);
        family.put(b"last", b"row").unwrap();
        assert_eq!(rows(&family).len(), written + 2);
        db.close().unwrap();
        let db = Db::open_in(PATH, options, parts.world()).unwrap();
        let family = db.existing_column_family("rocks").unwrap().unwrap();
        assert_eq!(rows(&family).len(), written + 2);
    });
}

#[test]
fn a_full_disk_at_a_compaction_leaves_the_tables_live() {
    watched("full disk at compaction", || {
        let parts = Parts::new(9);
        let model = make(&parts);
        let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
        let family = db.existing_column_family("rocks").unwrap().unwrap();
        db.flush().unwrap();
        for spare in [0, 2000, 20_000] {
            parts.files.set_capacity_bytes(used_bytes(&parts) + spare);
            let error = family.compact_range(..).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
            assert_eq!(rows(&family), model);
        }
        parts.files.set_capacity_bytes(PLENTY_BYTES);
        family.compact_range(..).unwrap();
        assert_eq!(rows(&family), model);
        family.put(b"and", b"on").unwrap();
        db.close().unwrap();
        assert_eq!(reopened(&parts).len(), model.len() + 1);
    });
}

/// Sets a bit among the incompatible features and makes the checksum right again.
fn set_feature(parts: &Parts, name: &str, feature_offset: usize, covered: std::ops::Range<usize>) {
    let path = Path::new(PATH).join(name);
    let file = parts.files.open(&path, OpenMode::ReadWrite).unwrap();
    let mut bytes = vec![0; file.length().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes[feature_offset] |= 0x10;
    let checksum = Checksum::of(&bytes[covered.clone()]);
    bytes[covered.end..covered.end + 4].copy_from_slice(&checksum.to_le_bytes());
    file.write_at(&[IoSlice::new(&bytes)], 0).unwrap();
}

#[test]
fn unknown_incompatible_features_name_both_versions() {
    for end in [".sst", ".wal", "MANIFEST"] {
        let parts = Parts::new(10);
        make(&parts);
        let name = match end {
            "MANIFEST" => {
                let all = parts.names_ending("");
                all.into_iter().find(|name| name.starts_with(end)).unwrap()
            }
            end => parts.names_ending(end).pop().unwrap(),
        };
        if end == ".sst" {
            let length = parts.files.length(&Path::new(PATH).join(&name)).unwrap() as usize;
            let footer = length - 104;
            // identity 16, four handles of 12, size 8, then the three words of features
            set_feature(&parts, &name, footer + 16 + 48 + 8 + 8, footer..footer + 92);
        } else {
            set_feature(&parts, &name, 8 + 4 + 8, 0..68);
        }
        let error = refused(Db::open_in(PATH, small_options(), parts.world()));
        assert_says(&error, ErrorKind::Unsupported, &["version 1", "0x10", &name]);
        // Both versions are named: the one that wrote it, and the newest that is known here.
        let known = if end == ".sst" { 3 } else { 1 };
        assert_says(
            &error,
            ErrorKind::Unsupported,
            &["of format version 1 uses", &format!("format version {known} does not know")],
        );
    }
}

/// A path to `path` from the working directory of the tests.
fn relative_to_here(path: &Path) -> PathBuf {
    let here = std::env::current_dir().unwrap();
    let up = here.components().skip(1).map(|_| "..").collect::<PathBuf>();
    up.join(path.strip_prefix("/").unwrap())
}

#[test]
#[cfg(unix)]
fn a_relative_path_is_made_absolute() {
    let directory = tempfile::tempdir().unwrap();
    let relative = relative_to_here(directory.path());
    assert!(relative.is_relative());
    let db = Db::open(&relative, Options::default()).unwrap();
    assert!(db.path().is_absolute());
    db.close().unwrap();
    assert!(Db::open_read_only(&relative, Options::default()).unwrap().path().is_absolute());
    assert_eq!(Db::open("", Options::default()).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn a_directory_of_leveldb_is_told_as_such_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let (path, target) = (directory.path().join("levels"), directory.path().join("repaired"));
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("CURRENT"), "MANIFEST-000004\n").unwrap();
    let refused = |error: lithify::Error| {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("LevelDB"), "{error}");
    };
    refused(Db::open_read_only(&path, Options::default()).unwrap_err());
    assert_eq!(std::fs::read_dir(&path).unwrap().count(), 1);
    refused(lithify::repair::repair(&path, &target, &Default::default()).unwrap_err());
    assert!(!target.exists());
    refused(Db::open(&path, Options::default()).unwrap_err());
}

#[test]
fn an_option_that_cannot_be_read_says_what_can() {
    let text = |text: &str| text.parse::<Options>().unwrap_err().to_string();
    assert!(
        text("memtable_bytes=ten").contains("the option memtable_bytes: expected a number from")
    );
    assert!(text("create_if_missing=yes").contains("expected true or false, found \"yes\""));
    assert!(text("fan_out=10").contains("there is no option \"fan_out\""));
    assert!(text("memtable_bytes").contains("expected name=value"));
}
