//! The formats of the store: samples, and what is refused.

use super::meta::{BackupMeta, StoreIdentity, StoredSegment};
use super::names::StoreName;
use crate::ErrorKind;
use crate::base::TableId;
use crate::codec::Compression;
use crate::format::golden;
use crate::format::{Checksum, Features};
use crate::fs::Pieces;
use crate::manifest::{Change, CleanClose, FileMetadata, KeyRange, ManifestState, VersionEdit};
use crate::wal::SegmentEnd;
use std::collections::BTreeMap;
use std::path::Path;

const STORE_ID: u128 = 0x000f_0e0d_0c0b_0a09_0807_0605_0403_0201;
const TABLE_ID: TableId = *b"table identity 1";

fn state() -> ManifestState {
    let metadata = FileMetadata {
        number: 5,
        table_id: TABLE_ID,
        size_bytes: (1 << 20) + 1,
        raw_bytes: 2_000_000,
        range: KeyRange::inclusive(b"a", b"c"),
        smallest_sequence: 1,
        largest_sequence: 4,
        entries: 4,
        tombstones: 0,
        range_tombstones: 0,
        compression: Compression::NONE,
        block_size_bytes: 0,
        dictionary: None,
        codec_debt: false,
        ingested: false,
        newest_obsolete_sequence: 0,
        write_times: None,
    };
    let log_end = SegmentEnd { log_number: 6, end_offset: 200 };
    let edit = VersionEdit::from(vec![
        Change::NextFileNumber(8),
        Change::CleanClose(CleanClose { log_end, last_sequence: 7 }),
        Change::CreateFamily {
            id: 0,
            name: "rocks".to_string(),
            level_count: 2,
            log_number: 6,
            options: Vec::new(),
        },
        Change::AddFile { family: 0, level: 1, metadata },
    ]);
    ManifestState::default().apply(&edit).unwrap().state
}

fn meta() -> BackupMeta {
    let pieces = |size_bytes, checksums: &[u32]| Pieces { size_bytes, checksums: checksums.into() };
    BackupMeta {
        store_id: STORE_ID,
        backup: 3,
        database_id: STORE_ID + 1,
        unix_time_s: 1_577_836_800,
        sequence: 7,
        oldest_sequence: 4,
        copied_bytes: 200,
        note: "rocks on monday".to_string(),
        state: state(),
        tables: BTreeMap::from([(5, pieces((1 << 20) + 1, &[0x0102_0304, 0x0506_0708]))]),
        segments: vec![StoredSegment { number: 6, pieces: pieces(200, &[0x090a_0b0c]) }],
    }
}

#[test]
fn the_samples_are_what_is_written_and_read() {
    let identity = StoreIdentity { store_id: STORE_ID, next_backup: 4, features: Features::NONE };
    let fields = [
        (8, "magic"),
        (4, "format_version"),
        (12, "features"),
        (16, "store_id"),
        (8, "next_backup"),
        (4, "checksum of bytes 0..48"),
    ];
    let sample = golden::check("store-v1.hex", &identity.encode(), &fields);
    assert_eq!(StoreIdentity::decode(&sample).unwrap(), identity);

    let bytes = meta().encode();
    let snapshot_bytes = meta().state.snapshot().encode().len();
    let fields = [
        (8, "magic"),
        (4, "format_version"),
        (12, "features"),
        (16, "store_id"),
        (8, "backup"),
        (16, "database_id"),
        (8, "unix_time_s"),
        (8, "sequence"),
        (8, "oldest_sequence"),
        (8, "copied_bytes"),
        (4, "piece_bytes"),
        (4, "reserved"),
        (1, "note: length"),
        (15, "note"),
        (1, "snapshot: length"),
        (snapshot_bytes, "snapshot: an edit of the manifest"),
        (1, "tables: 1"),
        (1, "table: number 5"),
        (8, "table: checksums of two pieces"),
        (1, "segments: 1"),
        (1, "segment: number 6"),
        (2, "segment: size 200"),
        (4, "segment: checksum of its piece"),
        (4, "checksum of everything before"),
    ];
    let sample = golden::check("backup-v1.hex", &bytes, &fields);
    let decoded = BackupMeta::decode(&sample, STORE_ID, 3).unwrap();
    assert_eq!(decoded.encode(), bytes, "nothing is lost on the way");
    assert_eq!(
        (decoded.sequence, decoded.oldest_sequence, &*decoded.note),
        (7, 4, "rocks on monday")
    );
    assert_eq!((&decoded.tables, &decoded.segments), (&meta().tables, &meta().segments));
    let names: Vec<_> = decoded.files().iter().map(|file| file.name.to_string()).collect();
    let table = "000005-7461626c65206964656e746974792031-1048577.sst";
    assert_eq!(names, ["000003-000006.wal", table]);
}

#[test]
fn every_flipped_bit_and_every_length_is_refused() {
    let bytes = meta().encode();
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(BackupMeta::decode(&damaged, STORE_ID, 3).is_err(), "bit {bit}");
    }
    for length in 0..bytes.len() {
        assert!(BackupMeta::decode(&bytes[..length], STORE_ID, 3).is_err(), "{length} bytes");
    }
    let identity = StoreIdentity { store_id: 1, next_backup: 1, features: Features::NONE }.encode();
    for length in 0..identity.len() {
        assert!(StoreIdentity::decode(&identity[..length]).is_err(), "{length} bytes");
    }
    for bit in 0..identity.len() * 8 {
        let mut damaged = identity.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(StoreIdentity::decode(&damaged).is_err(), "bit {bit}");
    }
}

/// Bytes with another part and a checksum that fits.
fn with(bytes: &[u8], offset: usize, part: &[u8]) -> Vec<u8> {
    let mut changed = bytes.to_vec();
    changed[offset..offset + part.len()].copy_from_slice(part);
    let end = changed.len() - 4;
    let checksum = Checksum::of(&changed[..end]);
    changed[end..].copy_from_slice(&checksum.to_le_bytes());
    changed
}

#[test]
fn what_has_a_right_checksum_and_makes_no_sense_is_refused() {
    let bytes = meta().encode();
    let kind =
        |changed: &[u8]| BackupMeta::decode(changed, STORE_ID, 3).map(drop).unwrap_err().kind();
    assert!(BackupMeta::decode(&with(&bytes, 0, b""), STORE_ID, 3).is_ok());
    for (offset, part, expected) in [
        (8, &[0][..], ErrorKind::Corruption),
        (12, &[1], ErrorKind::Corruption),
        (20, &[1], ErrorKind::Unsupported),
        (24, &[9], ErrorKind::Corruption),
        (40, &[4], ErrorKind::Corruption),
        (79, &[1], ErrorKind::Corruption),
        (80, &[8], ErrorKind::Corruption),
        (96, &[1], ErrorKind::Unsupported),
        (100, &[1], ErrorKind::Corruption),
        (104, &[0xff, 0x7f], ErrorKind::Corruption),
        (105, &[0xff], ErrorKind::Corruption),
    ] {
        let changed = with(&bytes, offset, part);
        if offset == 12 {
            assert!(BackupMeta::decode(&changed, STORE_ID, 3).is_ok(), "a compatible bit");
            continue;
        }
        assert_eq!(kind(&changed), expected, "offset {offset}");
    }
    // Counts and lengths that memory would be taken for: any byte of them as large as it gets.
    for offset in 104..bytes.len() - 4 {
        for value in [0, 0x7f, 0x80, 0xff] {
            let _ = BackupMeta::decode(&with(&bytes, offset, &[value]), STORE_ID, 3);
        }
        let _ = BackupMeta::decode(
            &with(&bytes, offset.min(bytes.len() - 14), &[0xff; 9]),
            STORE_ID,
            3,
        );
    }
}

#[test]
fn names_round_trip_and_strangers_are_left_alone() {
    let names = [
        StoreName::Store,
        StoreName::Lock,
        StoreName::Backup(1),
        StoreName::Backup(1_234_567),
        StoreName::Table { number: 17, table_id: TABLE_ID, size_bytes: 0 },
        StoreName::Table { number: 17, table_id: [0; 16], size_bytes: u64::MAX },
        StoreName::Wal { backup: 3, number: 9 },
    ];
    for name in names {
        let path = name.path(Path::new("store"));
        assert_eq!(StoreName::of_path(&path), Some((name, false)));
        let path = name.temporary_path(Path::new("store"));
        assert_eq!(StoreName::of_path(&path), Some((name, true)));
    }
    for stranger in [
        "",
        ".tmp",
        "store",
        "STORE.txt",
        "1.backup",
        "0000001.backup",
        "000000.backup",
        "+00001.backup",
        "000017.sst",
        "000017-7461626c65206964656e746974792031.sst",
        "000017-7461626C65206964656e746974792031-5.sst",
        "000017-7461626c65206964656e746974792031-5-6.sst",
        "000001-1.wal",
        "000001.backup.tmp.tmp",
    ] {
        assert_eq!(StoreName::of_path(Path::new(stranger)), None, "{stranger}");
    }
}
