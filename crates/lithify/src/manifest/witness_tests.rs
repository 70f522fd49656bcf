//! Tests of what remembers how far manifest and log were durable.

use super::apply_tests::parse_change;
use super::witness::Witness;
use super::*;
use crate::fs::{FileSystem, MemoryFileSystem, OpenMode};
use crate::{ErrorKind, Result};
use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;

const DIRECTORY: &str = "db";

fn read(files: &MemoryFileSystem, name: FileName) -> Vec<u8> {
    let file = files.open(&name.path(Path::new(DIRECTORY)), OpenMode::Read).unwrap();
    let mut bytes = vec![0; file.length().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}

fn overwrite(files: &MemoryFileSystem, name: FileName, bytes: &[u8]) {
    let path = name.path(Path::new(DIRECTORY));
    let file = files.open(&path, OpenMode::CreateOrTruncate).unwrap();
    file.write_at(&[IoSlice::new(bytes)], 0).unwrap();
}

fn load(files: &MemoryFileSystem) -> Result<LoadedManifest> {
    LoadedManifest::read(files, Path::new(DIRECTORY), &mut |_, _| {})
}

/// A manifest with two edits behind its snapshot.
fn small_manifest() -> (MemoryFileSystem, Manifest) {
    let files = MemoryFileSystem::new();
    files.create_directory(Path::new(DIRECTORY)).unwrap();
    let shared = Arc::new(files.clone());
    let mut manifest = Manifest::create(shared, Path::new(DIRECTORY), 7).unwrap();
    for line in ["create id=0 name=a levels=2 log=2", "create id=1 name=b levels=2 log=2"] {
        manifest.append(vec![parse_change(line)].into()).unwrap();
    }
    (files, manifest)
}

#[test]
fn a_manifest_that_lost_its_durable_end_is_corruption_wherever_it_was_cut() {
    let (files, manifest) = small_manifest();
    let name = FileName::Manifest(manifest.number());
    let bytes = read(&files, name);
    assert_eq!(load(&files).unwrap().edits, 3);
    // The last bytes are padding, which need not be there.
    for length in 0..bytes.len() - 8 {
        overwrite(&files, name, &bytes[..length]);
        let error = load(&files).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{length}: {error}");
        assert_eq!(error.path(), Some(&*name.path(Path::new(DIRECTORY))), "{length}: {error}");
        let end = length.next_multiple_of(8).max(72) as u64;
        assert!(error.offset().is_some_and(|offset| offset <= end), "{error}");
    }
}

#[test]
fn one_torn_slot_leaves_the_other_and_two_leave_nothing() {
    let (files, manifest) = small_manifest();
    let name = FileName::Manifest(manifest.number());
    let (bytes, witness) = (read(&files, name), read(&files, FileName::Witness));
    let ends: Vec<u64> =
        [0, 512].map(|at| Witness::decode(&witness[at..]).unwrap().1.manifest_end_offset).to_vec();
    let older = ends[0].min(ends[1]);
    let newest_at = if ends[0] == older { 512 } else { 0 };
    let mut torn = witness.clone();
    torn[newest_at + 40] ^= 1;
    overwrite(&files, FileName::Witness, &torn);
    overwrite(&files, name, &bytes[..older as usize]);
    assert_eq!(load(&files).unwrap().edits, 2, "the older slot asks for no more");
    overwrite(&files, name, &bytes[..older as usize - 16]);
    assert_eq!(load(&files).unwrap_err().kind(), ErrorKind::Corruption);
    torn[512 - newest_at + 40] ^= 1;
    overwrite(&files, FileName::Witness, &torn);
    assert_eq!(load(&files).unwrap().edits, 1);
}

#[test]
fn a_witness_of_another_database_or_manifest_says_nothing() {
    let (files, manifest) = small_manifest();
    let ahead =
        Witness { manifest_number: manifest.number(), manifest_end_offset: 1 << 20, log_number: 9 };
    overwrite(&files, FileName::Witness, &ahead.encode(7));
    assert_eq!(load(&files).unwrap_err().kind(), ErrorKind::Corruption);
    overwrite(&files, FileName::Witness, &ahead.encode(8));
    assert_eq!(load(&files).unwrap().log_number, 0);
    let other = Witness { manifest_number: manifest.number() + 1, ..ahead };
    overwrite(&files, FileName::Witness, &other.encode(7));
    assert_eq!(load(&files).unwrap().log_number, 0);
}

#[test]
fn what_is_known_of_the_log_outlives_a_replaced_manifest() {
    let (files, manifest) = small_manifest();
    manifest.witness().log_has_begun(5);
    drop(manifest);
    let shared = Arc::new(files.clone());
    let opened = Manifest::open(shared, Path::new(DIRECTORY)).unwrap();
    assert_eq!(opened.loaded.log_number, 5);
    assert_eq!(opened.manifest.witness().log_number(), 5);
    drop(opened);
    assert_eq!(load(&files).unwrap().log_number, 5);
}

/// A file with the largest number that a name can have once made the next numbers begin at 0:
/// the manifest said so, and could never be read again.
#[test]
fn a_file_with_an_absurd_number_is_refused_and_does_no_harm() {
    let (files, manifest) = small_manifest();
    drop(manifest);
    let stray = Path::new(DIRECTORY).join("18446744073709551615.sst");
    files.open(&stray, OpenMode::CreateNew).unwrap();
    let open = || Manifest::open(Arc::new(files.clone()), Path::new(DIRECTORY));
    assert_eq!(open().err().map(|error| error.kind()), Some(ErrorKind::LimitExceeded));
    files.remove(&stray).unwrap();
    assert_eq!(open().unwrap().loaded.edits, 3);
    let bytes = VersionEdit::from(vec![Change::NextFileNumber(u64::MAX)]).encode();
    assert_eq!(VersionEdit::decode(&bytes).unwrap_err().kind(), ErrorKind::Corruption);
}
