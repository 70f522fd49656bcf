//! Verification finds all that is wrong with a database and nothing with a sound one.

use crate::support::{PATH, Parts, Random, small_options};
use lithify::fs::{File, FileSystem, MemoryFileSystem, OpenMode};
use lithify::verify::{Structure, VerifyOptions, VerifyReport, Weight, verify_in};
use lithify::{CfOptions, Db, Durability, ErrorKind, Options};
use std::io::IoSlice;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn go_on(_: &lithify::verify::Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn verify(parts: &Parts) -> VerifyReport {
    verify_in(PATH, &VerifyOptions::default(), &parts.world(), &mut go_on).unwrap()
}

fn path(name: &str) -> PathBuf {
    Path::new(PATH).join(name)
}

fn open(files: &MemoryFileSystem, name: &str) -> Arc<dyn File> {
    files.open(&path(name), OpenMode::ReadWrite).unwrap()
}

fn flip(files: &MemoryFileSystem, name: &str, offset: u64) {
    let file = open(files, name);
    let mut byte = [0];
    file.read_at(&mut byte, offset).unwrap();
    file.write_at(&[IoSlice::new(&[byte[0] ^ 0x55])], offset).unwrap();
}

fn length(files: &MemoryFileSystem, name: &str) -> u64 {
    files.length(&path(name)).unwrap()
}

/// Two families with several levels, all kinds of entries, and a log that is not flushed; closed.
fn database(parts: &Parts, options: Options) {
    let db = Db::open_in(PATH, options, parts.world()).unwrap();
    let small =
        CfOptions { table_bytes: 64 << 10, block_size_bytes: 1 << 10, ..CfOptions::default() };
    let rocks = db.column_family("rocks", small.clone()).unwrap();
    let prefixes = CfOptions { prefix_length_bytes: 4, ..small };
    let sands = db.column_family("sands", prefixes).unwrap();
    let mut random = Random(11);
    for round in 0..5 {
        for _ in 0..600 {
            let number = random.below(1500);
            let key = format!("rock{number:06}");
            let value = random.bytes(200);
            match random.below(12) {
                0 => rocks.delete(key.as_bytes()).unwrap(),
                1 => sands.delete_range(key.as_bytes(), b"rock001500").unwrap(),
                2 => sands.put(key.as_bytes(), &value).unwrap(),
                _ => rocks.put(key.as_bytes(), &value).unwrap(),
            }
        }
        db.flush().unwrap();
        if round == 1 {
            rocks.compact_range(..).unwrap();
        }
    }
    let mut ingest = sands.ingest().unwrap();
    for number in 0..40 {
        ingest.put(format!("sand{number:06}").as_bytes(), b"fine").unwrap();
    }
    ingest.commit().unwrap();
    db.wait_for_compaction().unwrap();
    rocks.put(b"in the log", b"1").unwrap();
    sands.delete(b"in the log").unwrap();
    db.close().unwrap();
}

fn closed_database() -> Parts {
    let parts = Parts::new(3);
    database(&parts, small_options());
    parts
}

fn damage_in(report: &VerifyReport, name: &str) -> Vec<(Structure, Option<u64>)> {
    let of_file = |error: &lithify::Error| error.path() == Some(&path(name));
    let found = report.damage().filter(|finding| of_file(&finding.error));
    found.map(|finding| (finding.structure, finding.error.offset())).collect()
}

#[test]
fn a_sound_database_is_sound_in_every_mode() {
    for durability in [Durability::Buffered, Durability::Sync, Durability::None] {
        let parts = Parts::new(3);
        database(&parts, Options { durability, ..small_options() });
        let before = parts.files.crash_clone(0, lithify::fs::CrashKeep::Everything);
        let report = verify(&parts);
        assert!(report.is_sound() && report.findings.is_empty(), "{:?}", report.findings);
        let examined = report.examined;
        assert_eq!(examined.families, 2);
        assert_eq!(examined.tables, parts.names_ending(".sst").len() as u64);
        assert_eq!(examined.table_bytes, parts.bytes_ending(".sst"));
        assert!(examined.data_blocks > examined.tables && examined.entries > 1000);
        assert_eq!(examined.log_records > 0, durability != Durability::None);
        // Nothing was written.
        let names = |files: &MemoryFileSystem| files.list(Path::new(PATH)).unwrap();
        assert_eq!(names(&before), names(&parts.files));
    }
}

#[test]
fn every_byte_of_a_table_counts() {
    let parts = Parts::new(3);
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let options = CfOptions { block_size_bytes: 512, ..CfOptions::default() };
    let rocks = db.column_family("rocks", options).unwrap();
    for number in 0..60_u32 {
        rocks.put(format!("rock{number}").as_bytes(), [7; 20]).unwrap();
    }
    rocks.delete_range(b"rock5", b"rock7").unwrap();
    rocks.flush().unwrap();
    db.close().unwrap();
    let [name] = &parts.names_ending(".sst")[..] else { panic!("one table") };
    for offset in 0..length(&parts.files, name) {
        flip(&parts.files, name, offset);
        let report = verify(&parts);
        assert!(!damage_in(&report, name).is_empty(), "byte {offset}: {:?}", report.findings);
        flip(&parts.files, name, offset);
    }
    assert!(verify(&parts).is_sound());
}

#[test]
fn every_byte_of_manifest_and_current_counts() {
    let parts = closed_database();
    let manifest = parts.files.list(Path::new(PATH)).unwrap();
    let manifest = manifest.iter().find(|name| name.to_string_lossy().starts_with("MANIFEST"));
    let manifest = manifest.unwrap().to_string_lossy().into_owned();
    let mut random = Random(5);
    let size = length(&parts.files, &manifest);
    let of_manifest = (0..200).map(|_| (manifest.as_str(), random.below(size)));
    let places: Vec<_> = of_manifest.chain((0..40).map(|offset| ("CURRENT", offset))).collect();
    for (name, offset) in places {
        flip(&parts.files, name, offset);
        let report = verify(&parts);
        // Padding behind an edit is no part of it; the last edit may be one that was not finished.
        let is_found = report.findings.iter().any(|found| found.error.path() == Some(&path(name)));
        assert!(is_found || name == manifest, "{name} {offset}: {:?}", report.findings);
        assert!(report.examined.tables > 0 || name == manifest, "{name} {offset}");
        flip(&parts.files, name, offset);
    }
}

#[test]
fn all_damage_is_listed_not_only_the_first() {
    let parts = closed_database();
    let tables = parts.names_ending(".sst");
    assert!(tables.len() >= 4, "{tables:?}");
    // Two blocks of one table, one of another, a table that is gone, one that is another.
    flip(&parts.files, &tables[0], 10);
    flip(&parts.files, &tables[0], length(&parts.files, &tables[0]) / 2);
    flip(&parts.files, &tables[1], 10);
    parts.files.remove(&path(&tables[2])).unwrap();
    let copy = parts.files.crash_clone(0, lithify::fs::CrashKeep::Everything);
    parts.files.remove(&path(&tables[3])).unwrap();
    parts.files.link(&path(&tables[1]), &path(&tables[3])).unwrap();
    let log = parts.names_ending(".wal").pop().unwrap();
    flip(&parts.files, &log, 80);
    drop(copy);
    let report = verify(&parts);
    assert!(damage_in(&report, &tables[0]).len() >= 2, "{:?}", report.findings);
    assert_eq!(damage_in(&report, &tables[1]), [(Structure::DataBlock, Some(0))]);
    assert_eq!(damage_in(&report, &tables[2]), [(Structure::Table, None)]);
    assert!(damage_in(&report, &tables[3]).contains(&(Structure::Table, None)));
    assert!(damage_in(&report, &log).contains(&(Structure::LogRecord, Some(72))));
    let lost = report.findings.iter().find(|found| found.structure == Structure::DataBlock);
    let (smallest, largest) = lost.unwrap().lost_keys.clone().unwrap();
    assert!(smallest <= largest && smallest.starts_with(b"rock"), "{smallest:?}");
    let json = report.to_json();
    assert!(json.contains("\"structure\":\"data block\"") && json.contains("\"sound\":false"));
}

#[test]
fn what_a_crash_leaves_is_a_notice() {
    let parts = closed_database();
    parts.files.open(&path("999999.sst"), OpenMode::CreateNew).unwrap();
    parts.files.open(&path("CURRENT.tmp"), OpenMode::CreateNew).unwrap();
    let report = verify(&parts);
    assert!(report.is_sound());
    let notices: Vec<_> = report.findings.iter().map(|f| (f.weight, f.structure)).collect();
    assert_eq!(notices, [(Weight::Notice, Structure::Directory); 2]);
    assert!(report.findings[0].to_string().contains("the next opening"));
}

#[test]
fn missing_segments_and_a_missing_current_are_found() {
    let parts = closed_database();
    let logs = parts.names_ending(".wal");
    parts.files.remove(&path(logs.last().unwrap())).unwrap();
    let report = verify(&parts);
    assert!(!damage_in(&report, logs.last().unwrap()).is_empty(), "{:?}", report.findings);

    let parts = closed_database();
    parts.files.remove(&path("CURRENT")).unwrap();
    let report = verify(&parts);
    assert_eq!(damage_in(&report, "CURRENT").len(), 1);
    assert_eq!(report.damage().count(), 1, "{:?}", report.findings);
    // Everything else was examined all the same.
    assert_eq!(report.examined.tables, parts.names_ending(".sst").len() as u64);
}

#[test]
fn a_database_that_is_not_there_or_in_use_is_an_error() {
    let parts = Parts::new(1);
    let world = parts.world();
    let verify = |name: &str, options: &VerifyOptions| {
        verify_in(name, options, &world, &mut go_on).map(|report| report.is_sound())
    };
    let error = verify("nowhere", &VerifyOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    database(&parts, small_options());
    let unknown = VerifyOptions { families: vec!["lava".into()], ..Default::default() };
    assert_eq!(verify(PATH, &unknown).unwrap_err().kind(), ErrorKind::NotFound);
    let file = format!("{PATH}/CURRENT");
    let error = verify(&file, &VerifyOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn one_family_reads_its_tables_only() {
    let parts = closed_database();
    let all = verify(&parts).examined;
    let options = VerifyOptions { families: vec!["sands".into()], ..Default::default() };
    let some = verify_in(PATH, &options, &parts.world(), &mut go_on).unwrap().examined;
    assert!(some.tables > 0 && some.tables < all.tables);
    assert_eq!(some.log_records, all.log_records);
}

#[test]
fn an_open_database_is_verified_while_it_is_written() {
    let parts = Parts::new(3);
    database(&parts, small_options());
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let rocks = db.existing_column_family("rocks").unwrap().unwrap();
    let mut random = Random(2);
    let mut heard = 0;
    let report = db.verify_with(&VerifyOptions::default(), &mut |progress| {
        heard += 1;
        assert!(progress.done_bytes <= progress.total_bytes);
        for _ in 0..2000 {
            let key = format!("rock{:06}", random.below(1500));
            rocks.put(key.as_bytes(), random.bytes(60)).unwrap();
        }
        rocks.compact_range(..).unwrap();
        db.wait_for_compaction().unwrap();
        ControlFlow::Continue(())
    });
    let report = report.unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert!(heard > 0 && report.examined.tables > 0 && report.examined.log_records > 0);
    // Damage under an open database is found past its caches.
    let before = rocks.get(b"rock000001").unwrap();
    for table in parts.names_ending(".sst") {
        flip(&parts.files, &table, 10);
    }
    let report = db.verify(&VerifyOptions::default()).unwrap();
    assert!(!report.is_sound());
    drop(before);
}

#[test]
fn a_close_ends_a_verification() {
    let parts = Parts::new(3);
    database(&parts, small_options());
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let mut again = None;
    let verified = db.verify_with(&VerifyOptions::default(), &mut |_| {
        again.get_or_insert_with(|| {
            db.clone().close().unwrap();
            let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
            db.flush().unwrap();
            let rocks = db.existing_column_family("rocks").unwrap().unwrap();
            (0..1500_u64).for_each(|row| rocks.put(row.to_be_bytes(), [7; 100]).unwrap());
            db
        });
        ControlFlow::Continue(())
    });
    assert_eq!(verified.unwrap_err().kind(), ErrorKind::Closed);
    let report = again.unwrap().verify(&VerifyOptions::default()).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[test]
fn the_caller_ends_it_and_bounds_its_rate() {
    let parts = closed_database();
    let stop = &mut |_: &_| ControlFlow::Break(());
    let report = verify_in(PATH, &VerifyOptions::default(), &parts.world(), stop).unwrap();
    assert!(report.is_cancelled);
    assert_eq!(report.examined.log_segments, 0);

    let world = parts.world();
    let started_us = world.environment.now_us();
    let options = VerifyOptions { rate_bytes_per_s: 100_000, ..Default::default() };
    let mut total = 0;
    verify_in(PATH, &options, &world, &mut |progress| {
        total = progress.done_bytes;
        ControlFlow::Continue(())
    })
    .unwrap();
    let spent_us = world.environment.now_us() - started_us;
    assert!(total > 100_000 && spent_us >= total * 10, "{total} bytes in {spent_us} us");
}
