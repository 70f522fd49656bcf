//! Tests of the bytes of edits.

use super::apply_tests::parse_change;
use super::*;
use crate::ErrorKind;
use crate::base::SEQUENCE_MAX;
use crate::codec::{CodecId, Compression, DictionaryHash, Encoder};
use crate::format::golden;
use crate::format::{put_bytes, put_varint};
use crate::retention::WriteTimes;
use crate::wal::SegmentEnd;

pub(super) fn metadata() -> FileMetadata {
    FileMetadata {
        number: 300,
        table_id: *b"sixteen bytes id",
        size_bytes: 1 << 40,
        raw_bytes: u64::MAX,
        range: KeyRange {
            smallest: b"\0a".as_slice().into(),
            largest: vec![0xff; 300].into(),
            largest_exclusive: true,
        },
        smallest_sequence: 1,
        largest_sequence: SEQUENCE_MAX,
        entries: 1000,
        tombstones: 100,
        range_tombstones: 10,
        compression: Compression { codec: CodecId::Zstd, effort: -5, encoder: Encoder::Fast },
        block_size_bytes: 0,
        dictionary: None,
        codec_debt: true,
        ingested: false,
        newest_obsolete_sequence: 77,
        write_times: None,
    }
}

/// One of each change, small numbers and large ones.
fn every_change() -> VersionEdit {
    let lines = [
        "create id=4294967294 name=sandstone levels=32 log=18446744073709551615",
        "create id=0 name=x levels=1 log=0",
        "drop id=300",
        "add family=1 level=31 number=1 keys=a..=a",
        "remove family=1 level=0 number=18446744073709551615",
        "move family=1 number=2 from=0 to=31 debt=1",
        "move family=1 number=2 from=3 to=4 debt=0",
        "flushed family=1 sequence=72057594037927935 log=128",
        "next_file number=127",
        "last_sequence sequence=128",
        "next_family id=4294967295",
        "features bits=1",
        "clean_close log=9 end=18446744073709551615 sequence=3",
        "cursor family=1 level=2 key=k",
        "cursor family=1 level=2 key=",
    ];
    let mut changes: Vec<_> = lines.into_iter().map(parse_change).collect();
    changes.push(Change::AddFile { family: 2, level: 1, metadata: metadata() });
    let write_times = Some(WriteTimes { oldest_s: 1, newest_s: u32::MAX });
    let metadata = FileMetadata { number: 78, write_times, ..metadata() };
    changes.push(Change::AddFile { family: 2, level: 1, metadata });
    changes.into()
}

#[test]
fn every_change_round_trips() {
    let edit = every_change();
    assert_eq!(VersionEdit::decode(&edit.encode()).unwrap(), edit);
    assert_eq!(VersionEdit::decode(&[]).unwrap(), VersionEdit::default());
}

/// An ingested table: what the flag promises is demanded, and the sample is what is written.
#[test]
fn an_ingested_table_has_one_sequence_number() {
    let range = KeyRange::inclusive(b"gneiss", b"slate");
    let ingested = FileMetadata {
        range,
        raw_bytes: 300,
        size_bytes: 200,
        block_size_bytes: 0,
        dictionary: None,
        codec_debt: false,
        ingested: true,
        smallest_sequence: 77,
        largest_sequence: 77,
        tombstones: 0,
        range_tombstones: 0,
        newest_obsolete_sequence: 0,
        write_times: None,
        ..metadata()
    };
    let add = |metadata: FileMetadata| {
        VersionEdit::from(vec![Change::AddFile { family: 0, level: 6, metadata }])
    };
    let fields = [
        (2, "add file, length of the body"),
        (2, "family 0, level 6"),
        (2, "number 300"),
        (16, "table_id"),
        (2, "size_bytes 200"),
        (2, "raw_bytes 300"),
        (7, "smallest: gneiss"),
        (6, "largest: slate"),
        (1, "flags: ingested"),
        (1, "smallest_sequence 77"),
        (1, "largest_sequence 77"),
        (2, "entries 1000"),
        (1, "tombstones 0"),
        (1, "range_tombstones 0"),
        (1, "codec: zstd"),
        (4, "effort -5"),
        (1, "encoder: fast"),
        (1, "newest_obsolete_sequence 0"),
    ];
    let edit = add(ingested.clone());
    let sample = golden::check("manifest-ingested-v1.hex", &edit.encode(), &fields);
    assert_eq!(VersionEdit::decode(&sample).unwrap(), edit);
    assert!(edit.changes[0].to_string().ends_with(" obsolete=0 ingested=true"));
    let two_sequences = FileMetadata { smallest_sequence: 76, ..ingested.clone() };
    let tombstones = FileMetadata { range_tombstones: 1, ..ingested };
    for metadata in [two_sequences, tombstones] {
        let error = VersionEdit::decode(&add(metadata).encode()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
    }
}

/// Size of blocks and dictionary are there or not by flags; a dictionary alone is refused.
#[test]
fn a_table_has_the_format_of_its_blocks() {
    let add = |metadata: FileMetadata| {
        VersionEdit::from(vec![Change::AddFile { family: 0, level: 6, metadata }])
    };
    let name = DictionaryHash(*b"a dictionary's..");
    let sized = FileMetadata { block_size_bytes: 8192, ..metadata() };
    let with_dictionary = FileMetadata { dictionary: Some(name), ..sized.clone() };
    for metadata in [sized.clone(), with_dictionary.clone()] {
        let edit = add(metadata);
        assert_eq!(VersionEdit::decode(&edit.encode()).unwrap(), edit);
    }
    assert_eq!(metadata().stored_format().block_size_bytes, None);
    assert_eq!(metadata().stored_format().dictionary, None);
    assert_eq!(sized.stored_format().dictionary, Some(None));
    assert_eq!(with_dictionary.stored_format().dictionary, Some(Some(name)));
    let shown = add(with_dictionary.clone()).changes[0].to_string();
    assert!(shown.ends_with(&format!(" blocks=8192 dictionary={name}")), "{shown}");

    let mut bytes = add(with_dictionary).encode();
    let largest = vec![0xff; 300];
    let flags = bytes.windows(300).position(|window| window == largest).unwrap() + 300;
    bytes[flags] &= !super::edit::FORMAT;
    let error = VersionEdit::decode(&bytes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    // One of no size would not be written again, and its dictionary with it.
    let small = FileMetadata { block_size_bytes: 77, dictionary: Some(name), ..metadata() };
    let mut bytes = add(small).encode();
    let in_front = bytes.windows(16).position(|window| window == name.0).unwrap() - 1;
    assert_eq!(std::mem::take(&mut bytes[in_front]), 77);
    let error = VersionEdit::decode(&bytes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
}

/// A newer version's bits say `Unsupported`, not damage, and name what is unknown.
#[test]
fn unknown_features_are_unsupported() {
    let edit = VersionEdit::from(vec![Change::Features(KNOWN_FEATURES)]);
    assert_eq!(VersionEdit::decode(&edit.encode()).unwrap(), edit);
    let unknown = VersionEdit::from(vec![Change::Features(0x40 | KNOWN_FEATURES)]);
    let error = VersionEdit::decode(&unknown.encode()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("64"), "{error}");
}

#[test]
fn every_cut_and_every_damaged_byte_is_decoded_or_refused() {
    for change in every_change().changes {
        let edit = VersionEdit::from(vec![change]);
        let bytes = edit.encode();
        for length in 1..bytes.len() {
            let error = VersionEdit::decode(&bytes[..length]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption);
        }
        for offset in 0..bytes.len() {
            for mask in [0x01, 0x02, 0x10, 0x7f, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[offset] ^= mask;
                match VersionEdit::decode(&damaged) {
                    // What is decoded is decoded in full, and written the same way again.
                    Ok(decoded) => assert_eq!(
                        VersionEdit::decode(&decoded.encode()).unwrap(),
                        decoded,
                        "{edit:?}"
                    ),
                    Err(error) => assert!(
                        [ErrorKind::Corruption, ErrorKind::Unsupported].contains(&error.kind())
                    ),
                }
            }
        }
    }
}

/// An edit with one change of that tag and body.
fn raw(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    put_bytes(&mut bytes, body);
    bytes
}

fn varints(values: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    values.iter().for_each(|value| put_varint(&mut bytes, *value));
    bytes
}

#[test]
fn unknown_changes_are_skipped_only_if_they_say_so() {
    let error = VersionEdit::decode(&raw(60, b"body")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let mut bytes = raw(60 | 0x80, b"body");
    bytes.extend(raw(7, &varints(&[9])));
    let edit = VersionEdit::decode(&bytes).unwrap();
    assert_eq!(edit.changes, [Change::NextFileNumber(9)]);
}

#[test]
fn values_out_of_range_are_refused() {
    let long_name = [&varints(&[1, 256])[..], &[b'n'; 256], &varints(&[1, 1, 0])].concat();
    let not_utf8 = [&varints(&[1, 1])[..], &[0xff], &varints(&[1, 1, 0])].concat();
    let corrupt = [
        raw(7, &[varints(&[9]), vec![0]].concat()),
        raw(2, &varints(&[1 << 32])),
        raw(8, &varints(&[SEQUENCE_MAX + 1])),
        raw(4, &varints(&[1, 32, 5])),
        raw(5, &[varints(&[1, 5, 0, 1]), vec![2]].concat()),
        raw(1, &long_name),
        raw(1, &not_utf8),
        raw(1, &[varints(&[1, 1]), b"n".to_vec(), varints(&[33, 1, 0])].concat()),
        raw(1, &[varints(&[1, 1]), b"n".to_vec(), varints(&[0, 1, 0])].concat()),
        raw(1, &[varints(&[1, 1]), b"n".to_vec(), varints(&[1, 1, (1 << 20) + 1])].concat()),
        raw(11, &varints(&[1, 1, 65_536])),
        vec![7, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
    ];
    for bytes in corrupt {
        let error = VersionEdit::decode(&bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{bytes:?}");
    }
    let empty_range = FileMetadata {
        range: KeyRange { largest: b"\0a".as_slice().into(), ..metadata().range },
        ..metadata()
    };
    let backwards = FileMetadata { smallest_sequence: 9, largest_sequence: 8, ..metadata() };
    let write_times = Some(WriteTimes { oldest_s: 9, newest_s: 8 });
    let old_and_new = FileMetadata { write_times, ..metadata() };
    let unnumbered = FileMetadata { number: 0, ..metadata() };
    for metadata in [empty_range, backwards, old_and_new, unnumbered] {
        let edit = VersionEdit::from(vec![Change::AddFile { family: 0, level: 0, metadata }]);
        let error = VersionEdit::decode(&edit.encode()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        let state = ManifestState::default();
        assert_eq!(state.apply(&edit).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
}

#[test]
fn changes_print_what_they_do() {
    let text =
        every_change().changes.iter().map(|change| format!("{change}\n")).collect::<String>();
    let expected = "\
create family=4294967294 name=sandstone levels=32 log=18446744073709551615 options_bytes=7
create family=0 name=x levels=1 log=0 options_bytes=7
drop family=300
add family=1 level=31 number=1 bytes=1001 raw_bytes=2001 keys=a..=a sequences=1..1 entries=10 \
tombstones=1 range_tombstones=0 codec=lz4:1 codec_debt=false obsolete=0
remove family=1 level=0 number=18446744073709551615
";
    assert!(text.starts_with(expected), "{text}");
    assert_eq!(text.lines().count(), 17);
    assert!(text.contains(" written=1..4294967295"), "{text}");
    let end = SegmentEnd { log_number: 9, end_offset: u64::MAX };
    assert!(text.contains(&format!("clean_close log=9 end={} sequence=3", end.end_offset)));
}
