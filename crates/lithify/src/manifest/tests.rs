//! Tests of the manifest on disk: samples, damage, rotation, failures, power cuts, lifetimes.

use super::apply_tests::{describe, parse_change};
use super::current::Current;
use super::edit_tests::metadata;
use super::*;
use crate::format::golden;
use crate::fs::{CrashKeep, FileCallKind, FileSystem, MemoryFileSystem, OpenMode};
use crate::wal::{SegmentEnd, StopReason};
use crate::{ErrorKind, Result};
use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::Arc;

const DATABASE_ID: u128 = 0x000f_0e0d_0c0b_0a09_0807_0605_0403_0201;

fn directory() -> &'static Path {
    Path::new("db")
}

fn new_disk() -> MemoryFileSystem {
    let files = MemoryFileSystem::new();
    files.create_directory(directory()).unwrap();
    files.sync_directory(Path::new("")).unwrap();
    files
}

fn edit(lines: &[&str]) -> VersionEdit {
    lines.iter().map(|line| parse_change(line)).collect::<Vec<_>>().into()
}

fn create(files: &MemoryFileSystem) -> Manifest {
    Manifest::create(Arc::new(files.clone()), directory(), DATABASE_ID).unwrap()
}

fn open(files: &MemoryFileSystem) -> Result<OpenedManifest> {
    Manifest::open(Arc::new(files.clone()), directory())
}

fn load(files: &MemoryFileSystem) -> Result<LoadedManifest> {
    LoadedManifest::read(files, directory(), &mut |_, _| {})
}

fn read(files: &MemoryFileSystem, name: FileName) -> Vec<u8> {
    let file = files.open(&name.path(directory()), OpenMode::Read).unwrap();
    let mut bytes = vec![0; file.length().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}

fn overwrite(files: &MemoryFileSystem, name: FileName, bytes: &[u8]) {
    let file = files.open(&name.path(directory()), OpenMode::CreateOrTruncate).unwrap();
    file.write_at(&[IoSlice::new(bytes)], 0).unwrap();
}

/// A manifest with two families and three edits after the snapshot.
fn small_database(files: &MemoryFileSystem) -> Manifest {
    let mut manifest = create(files);
    manifest.append(edit(&["create id=0 name=default levels=3 log=2"])).unwrap();
    (0..8).for_each(|_| assert!(manifest.file_numbers().take() > 0));
    manifest
        .append(edit(&[
            "add family=0 level=1 number=5 keys=a..=c sequences=1..4",
            "flushed family=0 sequence=4 log=6",
            "last_sequence sequence=4",
        ]))
        .unwrap();
    manifest.append(edit(&["create id=1 name=links levels=2 log=6"])).unwrap();
    manifest
}

#[test]
fn what_was_appended_is_there_after_opening_again() {
    let files = new_disk();
    let error = open(&files).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let manifest = small_database(&files);
    let before = describe(manifest.state());
    let number_before = manifest.file_numbers().next();
    drop(manifest);
    let error = Manifest::create(Arc::new(files.clone()), directory(), 1).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    let mut offsets = Vec::new();
    let loaded = LoadedManifest::read(&files, directory(), &mut |offset, edit| {
        offsets.push((offset, edit.changes.len()));
    })
    .unwrap();
    assert_eq!(loaded.edits, 4);
    assert_eq!(offsets.iter().map(|(_, changes)| *changes).collect::<Vec<_>>(), [3, 2, 4, 2]);
    assert_eq!(describe(&loaded.state), before);
    let OpenedManifest { mut manifest, loaded, listing } = open(&files).unwrap();
    assert_eq!(loaded.database_id, DATABASE_ID);
    assert!(!loaded.dropped_an_edit());
    assert!(manifest.number() >= number_before);
    let old = FileName::Manifest(loaded.number);
    assert_eq!(listing.names, [old, FileName::Current, FileName::Witness]);
    assert!(listing.orphans(manifest.state(), manifest.number()).contains(&old));
    let family = &manifest.state().families[&0];
    assert_eq!((family.flushed_through, family.log_number), (4, 6));
    assert_eq!(&*family.options, b"options");
    assert_eq!(manifest.state().family_by_name("links").unwrap().0, 1);
    assert_eq!(manifest.state().oldest_log_needed(), 6);
    manifest.append(edit(&["drop id=1"])).unwrap();
    assert!(open(&files).unwrap().manifest.state().family_by_name("links").is_none());
}

#[test]
fn the_sample_of_current_is_what_is_written_and_read() {
    let current = Current { database_id: DATABASE_ID, manifest_number: 42 };
    let fields = [
        (8, "magic"),
        (16, "database_id"),
        (8, "manifest_number"),
        (4, "reserved"),
        (4, "checksum of bytes 0..36"),
    ];
    let sample = golden::check("current-v1.hex", &current.encode(), &fields);
    assert_eq!(Current::decode(sample.first_chunk().unwrap()).unwrap(), current);
}

#[test]
fn the_sample_of_a_manifest_is_what_is_written_and_read() {
    let files = new_disk();
    let mut manifest = create(&files);
    manifest.append(edit(&["create id=0 name=default levels=3 log=2"])).unwrap();
    manifest.file_numbers().take();
    let metadata = FileMetadata {
        number: 2,
        range: KeyRange::inclusive(b"amber", b"jet"),
        raw_bytes: 300,
        ..metadata()
    };
    manifest.append(vec![Change::AddFile { family: 0, level: 1, metadata }].into()).unwrap();
    let fields = [
        (72, "header"),
        (32, "record 1, the snapshot: frame, payload of 9 bytes"),
        (3, "next file number 2"),
        (3, "last sequence 0"),
        (3, "next family id 0"),
        (7, "padding"),
        (32, "record 2: frame, payload of 24 bytes"),
        (3, "next file number 2"),
        (2, "create family, body of 19 bytes"),
        (1, "id 0"),
        (8, "name: default"),
        (1, "level_count 3"),
        (1, "log_number 2"),
        (8, "options: 7 bytes of the database's"),
        (32, "record 3: frame"),
        (3, "next file number 3"),
        (2, "add file, length of the body"),
        (2, "family 0, level 1"),
        (1, "number 2"),
        (16, "table_id"),
        (6, "size_bytes 2^40"),
        (2, "raw_bytes 300"),
        (6, "smallest: amber"),
        (4, "largest: jet"),
        (1, "flags: codec_debt"),
        (1, "smallest_sequence 1"),
        (8, "largest_sequence 2^56 - 1"),
        (2, "entries 1000"),
        (1, "tombstones 100"),
        (1, "range_tombstones 10"),
        (1, "codec: zstd"),
        (4, "effort -5"),
        (1, "encoder: fast"),
        (1, "newest_obsolete_sequence 77"),
        (1, "padding"),
    ];
    let bytes = read(&files, FileName::Manifest(1));
    let sample = golden::check("manifest-v1.hex", &bytes, &fields);
    overwrite(&files, FileName::Manifest(1), &sample);
    let loaded = load(&files).unwrap();
    assert_eq!(loaded.edits, 3);
    assert_eq!(
        describe(&loaded.state),
        "next_file=3 next_family=1 last_sequence=0\n\
         0 default flushed_through=0 log=2\n  L1 2:[amber,jet] zstd debt\n"
    );
}

#[test]
fn every_damaged_byte_is_corruption_or_costs_the_last_edit() {
    let files = new_disk();
    let manifest = small_database(&files);
    // Without what remembers how long it was.
    files.remove(&FileName::Witness.path(directory())).unwrap();
    let name = FileName::Manifest(manifest.number());
    let bytes = read(&files, name);
    let mut offsets = Vec::new();
    LoadedManifest::read(&files, directory(), &mut |offset, _| offsets.push(offset)).unwrap();
    let last = *offsets.last().unwrap();
    for index in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[index] ^= 0x55;
        overwrite(&files, name, &damaged);
        match load(&files) {
            Ok(loaded) if (index as u64) < last => {
                // Padding is not looked at.
                assert_eq!((bytes[index], loaded.edits), (0, 4), "byte {index}");
            }
            Ok(loaded) => assert!(loaded.edits == 4 || loaded.dropped_an_edit()),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corruption, "byte {index}");
                let at = offsets.iter().rfind(|offset| **offset <= index as u64);
                let in_header = [0, 24].contains(&error.offset().unwrap());
                assert!(error.offset() == at.copied() || (index < 72 && in_header), "{error}");
                assert_eq!(error.path(), Some(&*name.path(directory())));
                assert!((index as u64) < last, "damage of the last edit looks like a torn one");
            }
        }
    }
    for length in 0..bytes.len() {
        overwrite(&files, name, &bytes[..length]);
        let whole = offsets.iter().filter(|offset| **offset < length as u64).count() as u64;
        match load(&files) {
            // Only what the machine had not promised yet may be missing at the end.
            Ok(loaded) => assert!(loaded.edits == whole || loaded.edits + 1 == whole),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corruption);
                assert!((length as u64) < offsets[1], "length {length}");
            }
        }
    }
    files.remove(&name.path(directory())).unwrap();
    assert_eq!(load(&files).unwrap_err().kind(), ErrorKind::Corruption);
}

#[test]
fn every_damaged_byte_of_current_is_corruption() {
    let files = new_disk();
    drop(small_database(&files));
    let bytes = read(&files, FileName::Current);
    for index in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[index] ^= 0x01;
        overwrite(&files, FileName::Current, &damaged);
        let error = load(&files).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert_eq!(error.path(), Some(&*FileName::Current.path(directory())));
        overwrite(&files, FileName::Current, &bytes[..index]);
        assert_eq!(load(&files).unwrap_err().kind(), ErrorKind::Corruption);
    }
    overwrite(&files, FileName::Current, &[&bytes[..], &[0]].concat());
    assert_eq!(load(&files).unwrap_err().kind(), ErrorKind::Corruption);
}

#[test]
fn a_manifest_over_its_bound_is_replaced() {
    let files = new_disk();
    let mut manifest = small_database(&files);
    manifest.set_rotate_size_bytes(500);
    let first = manifest.number();
    for step in 0..40_u64 {
        let line = format!("flushed family=0 sequence={} log={}", 10 + step, 10 + step);
        manifest.append(edit(&[&line])).unwrap();
    }
    assert!(manifest.number() > first + 1, "replaced more than once");
    let before = describe(manifest.state());
    let names = DirectoryListing::read(&files, directory()).unwrap().names;
    let manifest_name = FileName::Manifest(manifest.number());
    assert_eq!(names, [manifest_name, FileName::Current, FileName::Witness]);
    assert_eq!(describe(&load(&files).unwrap().state), before);
    assert!(read(&files, FileName::Manifest(manifest.number())).len() < 1000);
}

#[test]
fn a_refused_edit_and_a_full_disk_change_nothing() {
    let files = new_disk();
    let mut manifest = small_database(&files);
    let before = describe(manifest.state());
    let length = read(&files, FileName::Manifest(manifest.number())).len();
    let error = manifest.append(edit(&["drop id=1", "drop id=1"])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(read(&files, FileName::Manifest(manifest.number())).len(), length);
    files.set_capacity_bytes(0);
    assert_eq!(manifest.append(edit(&["drop id=1"])).unwrap_err().kind(), ErrorKind::NoSpace);
    assert_eq!(manifest.rotate().unwrap_err().kind(), ErrorKind::NoSpace);
    assert_eq!(describe(manifest.state()), before);
    assert_eq!(describe(&load(&files).unwrap().state), before);
    files.set_capacity_bytes(1 << 20);
    manifest.append(edit(&["drop id=1"])).unwrap();
    assert_eq!(load(&files).unwrap().state.families.len(), 1);
}

#[test]
fn a_failed_sync_or_rename_poisons() {
    use FileCallKind as K;
    for (kind, rotate) in [(K::SyncData, false), (K::Write, false), (K::Rename, true)] {
        let files = new_disk();
        let mut manifest = small_database(&files);
        files.set_fault(Box::new(move |call| {
            (call.kind == kind).then(|| io::Error::other("broken disk"))
        }));
        let result =
            if rotate { manifest.rotate() } else { manifest.append(edit(&[])).map(|_| ()) };
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Poisoned);
        files.clear_fault();
        assert_eq!(manifest.append(edit(&[])).unwrap_err().kind(), ErrorKind::Poisoned);
        assert_eq!(manifest.rotate().unwrap_err().kind(), ErrorKind::Poisoned);
        open(&files).unwrap().manifest.append(edit(&["drop id=1"])).unwrap();
    }
}

/// Lives of a database that each end at a random call. What is found is the state after the last
/// edit that was acknowledged, or after the one that was being made.
fn live_and_crash(seed: u64) {
    let mut files = new_disk();
    let mut manifest = create(&files);
    manifest.append(edit(&["create id=0 name=default levels=2 log=1"])).unwrap();
    let mut flushed = 0_u64;
    let mut random = seed;
    let mut below = |bound: u64| {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % bound
    };
    for _ in 0..4 {
        manifest.set_rotate_size_bytes(300);
        let last_call = files.call_count() + below(40);
        files.set_fault(Box::new(move |call| {
            (call.index >= last_call).then(|| io::Error::other("the process is gone"))
        }));
        let mut number_max = manifest.number();
        loop {
            let number = manifest.file_numbers().take();
            let table = format!("add family=0 level=0 number={number} keys=a..=b");
            let mark = format!("flushed family=0 sequence={} log=1", flushed + 1);
            match manifest.append(edit(&[&table, &mark])) {
                Ok(_) => (flushed, number_max) = (flushed + 1, number),
                Err(_) => break,
            }
        }
        let keep =
            [CrashKeep::Random, CrashKeep::Nothing, CrashKeep::Everything][below(3) as usize];
        files = files.crash_clone(below(u64::MAX >> 33), keep);
        let opened = open(&files).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let family = &opened.loaded.state.families[&0];
        let found = family.flushed_through;
        assert!(found == flushed || found == flushed + 1, "seed {seed}: {found} of {flushed}");
        assert_eq!(family.version.level(0).len() as u64, found, "edits are whole");
        assert!(opened.manifest.number() > number_max, "numbers are not given out twice");
        flushed = found;
        let state = opened.manifest.state();
        for orphan in opened.listing.orphans(state, opened.manifest.number()) {
            files.remove(&orphan.path(directory())).unwrap();
        }
        manifest = opened.manifest;
    }
}

#[test]
fn power_cuts_at_any_call_leave_the_last_state_or_the_next() {
    for seed in 0..300 {
        live_and_crash(seed);
    }
}

#[test]
fn a_torn_last_edit_is_dropped_and_said() {
    let files = new_disk();
    let manifest = small_database(&files);
    let name = FileName::Manifest(manifest.number());
    let bytes = read(&files, name);
    // As if the last edit had not been synced: nothing says that it was.
    files.remove(&FileName::Witness.path(directory())).unwrap();
    overwrite(&files, name, &bytes[..bytes.len() - 9]);
    let loaded = load(&files).unwrap();
    assert!(loaded.dropped_an_edit());
    assert_eq!((loaded.edits, loaded.stop.reason), (3, StopReason::Torn));
    assert!(loaded.state.family_by_name("links").is_none());
    assert_eq!(loaded.state.families.len(), 1);
}

#[test]
fn a_table_is_collected_when_its_last_holder_is_gone() {
    let files = new_disk();
    let mut manifest = small_database(&files);
    let held = Arc::clone(&manifest.state().families[&0].version);
    // A move that changes the metadata makes another object of the same file.
    manifest.append(edit(&["move family=0 number=5 from=1 to=2 debt=1"])).unwrap();
    assert!(manifest.obsolete().collect().is_empty());
    let moved = Arc::clone(&manifest.state().families[&0].version);
    assert!(moved.level(2)[0].metadata.codec_debt && !held.level(1)[0].metadata.codec_debt);
    manifest.append(edit(&["remove family=0 level=2 number=5"])).unwrap();
    assert!(manifest.obsolete().collect().is_empty());
    assert_eq!(manifest.obsolete().held_bytes(), 1005);
    drop(moved);
    assert!(manifest.obsolete().collect().is_empty(), "the version before the move holds it");
    drop(held);
    // Nobody holds it any more, and it waits: whoever asks after the last look must hear of it.
    assert_eq!(manifest.obsolete().held_bytes(), 0);
    assert!(!manifest.obsolete().is_empty());
    assert_eq!(manifest.obsolete().collect(), [5]);
    assert!(manifest.obsolete().collect().is_empty(), "each only once");
    assert!(manifest.obsolete().is_empty());

    manifest.append(edit(&["add family=1 level=0 number=6 keys=a..=b"])).unwrap();
    manifest.append(edit(&["drop id=1"])).unwrap();
    assert_eq!(manifest.obsolete().collect(), [6]);
}

#[test]
fn a_directory_is_sorted_into_needed_orphaned_and_missing() {
    let files = new_disk();
    let manifest = small_database(&files);
    let strangers = ["notes.txt", "5.sst"];
    let names =
        ["000005.sst", "000004.sst", "000002.wal", "000006.wal", "000009.wal", "CURRENT.tmp"];
    for name in names.iter().chain(&strangers) {
        files.open(&directory().join(name), OpenMode::CreateNew).unwrap();
    }
    let listing = DirectoryListing::read(&files, directory()).unwrap();
    let orphans = listing.orphans(manifest.state(), manifest.number());
    assert_eq!(orphans, [FileName::Table(4), FileName::Wal(2)]);
    assert_eq!(listing.needed_segments(manifest.state()), [6, 9]);
    assert!(listing.missing_tables(manifest.state()).is_empty());
    assert_eq!(listing.largest_number(), 9);
    files.remove(&FileName::Table(5).path(directory())).unwrap();
    let listing = DirectoryListing::read(&files, directory()).unwrap();
    assert_eq!(listing.missing_tables(manifest.state()), [5]);
}

#[test]
fn manifests_of_others_and_of_later_versions_are_refused() {
    use crate::format::Features;
    let files = new_disk();
    let number = small_database(&files).number();
    let name = FileName::Manifest(number);
    let bytes = read(&files, name);
    let header = load(&files).unwrap().header;
    let with_features = |features: Features| {
        let header = crate::wal::LogHeader { features, format_version: 7, ..header };
        overwrite(&files, name, &[&header.encode()[..], &bytes[72..]].concat());
    };
    with_features(Features { compatible: 1, ..Features::NONE });
    assert_eq!(load(&files).unwrap().edits, 4);
    with_features(Features { read_only_compatible: 1, ..Features::NONE });
    assert_eq!(load(&files).unwrap().edits, 4);
    let error = open(&files).map(|_| ()).unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::ReadOnly, Some(16)));
    with_features(Features { incompatible: 1, ..Features::NONE });
    let error = load(&files).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let text = error.to_string();
    assert!(text.contains("version 7") && text.contains("version 1"), "{text}");

    let other = crate::wal::LogHeader { database_id: 1, ..header };
    overwrite(&files, name, &[&other.encode()[..], &bytes[72..]].concat());
    assert_eq!(load(&files).unwrap_err().kind(), ErrorKind::Corruption);
    assert_eq!(DirectoryListing::read(&files, directory()).unwrap().names.len(), 3);
}

#[test]
fn a_snapshot_of_a_state_that_went_on_after_a_clean_close_can_be_read() {
    let log_end = SegmentEnd { log_number: 1, end_offset: 72 };
    let edit = VersionEdit {
        changes: vec![
            Change::CleanClose(CleanClose { log_end, last_sequence: 5 }),
            Change::LastSequence(9),
        ],
    };
    let state = ManifestState::default().apply(&edit).unwrap().state;
    let read = ManifestState::default().apply(&state.snapshot()).unwrap().state;
    assert_eq!((read.last_sequence, read.clean_close), (9, state.clean_close));
}
