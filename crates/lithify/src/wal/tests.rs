//! Tests of one segment: round trips, the sample, damage of every byte, recycling, failures.

use super::*;
use crate::format::golden;
use crate::fs::{FileCallKind, FileSystem, MemoryFileSystem, OpenMode};
use crate::{Error, ErrorKind, Result};
use std::io::{self, IoSlice};
use std::path::Path;

pub(super) const DATABASE_ID: u128 = 0x000f_0e0d_0c0b_0a09_0807_0605_0403_0201;

pub(super) fn options(log_number: u64, previous: Option<SegmentEnd>) -> SegmentOptions {
    SegmentOptions {
        kind: LogKind::Wal,
        database_id: DATABASE_ID,
        log_number,
        previous,
        preallocate_bytes: 0,
    }
}

pub(super) fn segment(log_number: u64) -> SegmentFile {
    SegmentFile { log_number, path: format!("db/{log_number:06}.wal").into() }
}

pub(super) fn new_disk() -> MemoryFileSystem {
    let files = MemoryFileSystem::new();
    files.create_directory(Path::new("db")).unwrap();
    files.sync_directory(Path::new("")).unwrap();
    files
}

pub(super) fn create(files: &MemoryFileSystem, number: u64, prev: Option<SegmentEnd>) -> WalWriter {
    WalWriter::create(files, &segment(number).path, options(number, prev), None).unwrap()
}

pub(super) fn put(writer: &mut WalWriter, payload: &[u8]) -> WalPosition {
    writer.append(&[IoSlice::new(payload)]).unwrap()
}

pub(super) type Recovered = (Vec<Vec<u8>>, Recovery);

pub(super) fn recover_with(
    files: &dyn FileSystem,
    numbers: &[u64],
    oldest_needed: u64,
    clean_close: Option<SegmentEnd>,
) -> Result<Recovered> {
    let segments: Vec<_> = numbers.iter().map(|number| segment(*number)).collect();
    let options =
        RecoveryOptions { database_id: DATABASE_ID, oldest_needed, clean_close, read_only: false };
    let mut payloads = Vec::new();
    let recovery = recover_segments(files, &segments, &options, &mut |record| {
        payloads.push(record.payload.to_vec());
        Ok(())
    })?;
    assert_eq!(recovery.reports.len(), segments.len());
    assert_eq!(
        payloads.len() as u64,
        recovery.reports.iter().map(|report| report.records).sum::<u64>()
    );
    Ok((payloads, recovery))
}

pub(super) fn recover(files: &dyn FileSystem, numbers: &[u64]) -> Result<Recovered> {
    recover_with(files, numbers, 1, None)
}

pub(super) fn read(files: &dyn FileSystem, number: u64) -> Vec<u8> {
    let file = files.open(&segment(number).path, OpenMode::Read).unwrap();
    let mut bytes = vec![0; file.length().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}

pub(super) fn overwrite(files: &dyn FileSystem, number: u64, bytes: &[u8]) {
    let file = files.open(&segment(number).path, OpenMode::CreateOrTruncate).unwrap();
    file.write_at(&[IoSlice::new(bytes)], 0).unwrap();
}

#[test]
fn records_of_all_sizes_come_back_in_order() {
    let files = new_disk();
    let mut writer = create(&files, 7, None);
    let sizes = [0, 1, 7, 8, 9, 31, 32, 300 << 10, 5, 256 << 10, 1];
    let payloads: Vec<Vec<u8>> = sizes.iter().map(|size| vec![*size as u8 | 1; *size]).collect();
    for payload in &payloads {
        let (left, right) = payload.split_at(payload.len() / 3);
        let position =
            writer.append(&[IoSlice::new(left), IoSlice::new(b""), IoSlice::new(right)]).unwrap();
        assert_eq!(position.offset % 8, 0);
        assert_eq!(position.end_offset - position.offset, stored_size_bytes(payload.len()));
        assert_eq!(position.end_offset, writer.end_offset());
    }
    let (found, recovery) = recover(&files, &[7]).unwrap();
    assert!(found == payloads);
    let report = &recovery.reports[0];
    assert_eq!(report.reason, StopReason::EndOfFile);
    assert_eq!(report.dropped_bytes, 0);
    assert_eq!(recovery.end, Some(SegmentEnd { log_number: 7, end_offset: writer.end_offset() }));
}

#[test]
fn the_sample_is_what_is_written_and_read() {
    let files = new_disk();
    let previous = SegmentEnd { log_number: 4, end_offset: 0x1234_5678 };
    let mut writer = create(&files, 5, Some(previous));
    put(&mut writer, b"granite");
    writer.sync().unwrap();
    put(&mut writer, b"marble and slate");
    put(&mut writer, b"torn");
    let mut bytes = read(&files, 5);
    bytes.truncate(bytes.len() - 6);
    let fields = [
        (8, "magic"),
        (4, "format_version"),
        (4, "features: compatible"),
        (4, "features: read_only_compatible"),
        (4, "features: incompatible"),
        (16, "database_id"),
        (8, "log_number"),
        (8, "previous_log_number"),
        (8, "previous_end_offset"),
        (4, "reserved"),
        (4, "checksum of bytes 0..68"),
        (4, "record 1: checksum"),
        (4, "payload_length"),
        (8, "log_number"),
        (8, "offset"),
        (8, "synced_through: the header"),
        (7, "payload"),
        (1, "padding"),
        (4, "record 2: checksum"),
        (4, "payload_length"),
        (8, "log_number"),
        (8, "offset"),
        (8, "synced_through: record 1"),
        (16, "payload"),
        (34, "a torn record"),
    ];
    let sample = golden::check("wal-v1.hex", &bytes, &fields);
    overwrite(&files, 5, &sample);
    let header = *WalReader::open(&files, &segment(5).path, LogKind::Wal, DATABASE_ID, 5)
        .unwrap()
        .header()
        .unwrap();
    assert_eq!(header.previous, Some(previous));
    assert_eq!(header.format_version, 1);
    let (found, recovery) = recover_with(&files, &[5], 5, None).unwrap();
    assert_eq!(found, [&b"granite"[..], b"marble and slate"]);
    assert_eq!(recovery.reports[0].reason, StopReason::Torn);
    assert_eq!(recovery.reports[0].stopped_at_offset, 160);
    assert_eq!(recovery.reports[0].dropped_bytes, 34);
    assert_eq!(
        recovery.reports[0].to_string(),
        "db/000005.wal: 2 records replayed, stopped at offset 160 at a record that is not whole \
         and not known to have been synced, 34 bytes dropped"
    );
}

/// Five records; the first three are known as synced by the fourth.
fn small_segment() -> (MemoryFileSystem, Vec<WalPosition>) {
    let files = new_disk();
    let mut writer = create(&files, 1, None);
    let mut positions = Vec::new();
    for (index, payload) in [&b"one"[..], b"two two", b"", b"fourfour", b"five"].iter().enumerate()
    {
        if index == 3 {
            writer.sync().unwrap();
        }
        positions.push(put(&mut writer, payload));
    }
    (files, positions)
}

const PAYLOAD_SIZES: [u64; 5] = [3, 7, 0, 8, 4];

/// The record that holds the byte, not counting padding.
fn record_at(positions: &[WalPosition], offset: u64) -> Option<usize> {
    let holds = |(position, size): (&WalPosition, u64)| {
        (position.offset..position.offset + FRAME_SIZE_BYTES as u64 + size).contains(&offset)
    };
    positions.iter().zip(PAYLOAD_SIZES).position(holds)
}

#[test]
fn every_damaged_byte_is_an_error_or_a_reported_stop() {
    let (files, positions) = small_segment();
    let bytes = read(&files, 1);
    let all = recover(&files, &[1]).unwrap().0;
    let end = SegmentEnd { log_number: 1, end_offset: bytes.len() as u64 };
    for offset in 0..bytes.len() {
        for mask in [0x01, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[offset] ^= mask;
            overwrite(&files, 1, &damaged);
            let open_end = recover(&files, &[1]);
            let closed = recover_with(&files, &[1], 1, Some(end));
            if offset < HEADER_SIZE_BYTES {
                let error = open_end.unwrap_err();
                assert_eq!((error.kind(), error.offset()), (ErrorKind::Corruption, Some(0)));
                assert_eq!(closed.unwrap_err().kind(), ErrorKind::Corruption);
                continue;
            }
            let Some(record) = record_at(&positions, offset as u64) else {
                assert!(open_end.unwrap().0 == all && closed.unwrap().0 == all, "padding");
                continue;
            };
            let error = closed.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption);
            assert_eq!(error.offset(), Some(positions[record].offset));
            if record < 3 {
                let error = open_end.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Corruption);
                assert_eq!(error.offset(), Some(positions[record].offset));
                assert_eq!(error.path(), Some(&*segment(1).path));
            } else {
                let (found, recovery) = open_end.unwrap();
                assert_eq!(found, all[..record]);
                let report = &recovery.reports[0];
                assert_eq!(report.stopped_at_offset, positions[record].offset);
                // A last record that does not even claim to be one is not recognisable.
                let expected = if record == 3 { StopReason::Torn } else { report.reason };
                assert_eq!(report.reason, expected);
                assert!([StopReason::Torn, StopReason::Unrecognised].contains(&report.reason));
            }
        }
    }
}

#[test]
fn a_cut_at_every_length_is_an_error_or_a_reported_stop() {
    let (files, positions) = small_segment();
    let bytes = read(&files, 1);
    let all = recover(&files, &[1]).unwrap().0;
    let end = SegmentEnd { log_number: 1, end_offset: bytes.len() as u64 };
    for length in 0..bytes.len() {
        overwrite(&files, 1, &bytes[..length]);
        let last = positions[4];
        if (length as u64) < last.offset + FRAME_SIZE_BYTES as u64 + PAYLOAD_SIZES[4] {
            let error = recover_with(&files, &[1], 1, Some(end)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption);
        }
        if length < HEADER_SIZE_BYTES {
            let (found, recovery) = recover(&files, &[1]).unwrap();
            assert!(found.is_empty());
            assert_eq!(recovery.reports[0].reason, StopReason::NoHeader);
            assert_eq!(recovery.end, None);
            continue;
        }
        let whole = positions.iter().zip(PAYLOAD_SIZES).take_while(|(position, size)| {
            position.offset + FRAME_SIZE_BYTES as u64 + size <= length as u64
        });
        // Only what is there can say what was synced: the cut tail itself said it.
        let (found, recovery) = recover(&files, &[1]).unwrap();
        assert_eq!(found, all[..whole.count()], "length {length}");
        let report = &recovery.reports[0];
        assert!(report.stopped_at_offset + report.dropped_bytes <= length.max(72) as u64 + 7);
    }
}

#[test]
fn a_hole_above_the_watermark_drops_all_that_follows() {
    let (files, positions) = small_segment();
    let mut bytes = read(&files, 1);
    let hole = positions[3].offset as usize..positions[4].offset as usize;
    bytes[hole].fill(0);
    overwrite(&files, 1, &bytes);
    let (found, recovery) = recover(&files, &[1]).unwrap();
    assert_eq!(found.len(), 3);
    assert_eq!(recovery.reports[0].reason, StopReason::Torn);
    let behind = positions[4].end_offset - positions[3].offset;
    assert_eq!(recovery.reports[0].dropped_bytes, behind);
    assert_eq!(recovery.dropped().count(), 1);
}

#[test]
fn the_scan_finds_a_witness_behind_garbage_and_far_away() {
    let files = new_disk();
    let mut writer = create(&files, 1, None);
    let first = put(&mut writer, &[7; 100]);
    put(&mut writer, &vec![8; 700 << 10]);
    writer.sync().unwrap();
    let witness = put(&mut writer, b"witness");
    let mut bytes = read(&files, 1);
    let zeroed = first.offset as usize..witness.offset as usize;
    bytes[zeroed.clone()].fill(0);
    overwrite(&files, 1, &bytes);
    let error = recover(&files, &[1]).unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Corruption, Some(first.offset)));
    // Not at a multiple of 8, or in another place, it is no witness.
    for shift in [1, 8] {
        let mut moved = bytes.clone();
        moved.splice(first.offset as usize..first.offset as usize, vec![0; shift]);
        overwrite(&files, 1, &moved);
        let (found, recovery) = recover(&files, &[1]).unwrap();
        assert!(found.is_empty());
        assert_eq!(recovery.reports[0].reason, StopReason::Unrecognised);
    }
}

#[test]
fn a_recycled_segment_never_replays_its_earlier_life() {
    let (files, positions) = small_segment();
    // Payloads of the same sizes put the new records exactly over the old ones.
    for count in 0..=positions.len() {
        let disk = files.crash_clone(0, crate::fs::CrashKeep::Everything);
        let mut writer =
            WalWriter::create(&disk, &segment(2).path, options(2, None), Some(&segment(1).path))
                .unwrap();
        assert_eq!(writer.preallocated_bytes(), 0);
        for size in PAYLOAD_SIZES.iter().take(count) {
            put(&mut writer, &vec![0xaa; *size as usize]);
        }
        assert!(!disk.exists(&segment(1).path).unwrap());
        let (found, recovery) = recover_with(&disk, &[2], 2, None).unwrap();
        assert_eq!(found.len(), count);
        assert!(found.iter().flatten().all(|byte| *byte == 0xaa));
        let report = &recovery.reports[0];
        assert_eq!(report.dropped_bytes, 0);
        assert_eq!(report.stopped_at_offset, writer.end_offset());
        let full = count == positions.len();
        let expected = if full { StopReason::EndOfFile } else { StopReason::Unrecognised };
        assert_eq!(report.reason, expected);
    }
}

#[test]
fn a_segment_renamed_but_not_yet_overwritten_is_empty() {
    let (files, _) = small_segment();
    files.rename(&segment(1).path, &segment(2).path).unwrap();
    let (found, recovery) = recover_with(&files, &[2], 2, None).unwrap();
    assert!(found.is_empty());
    assert_eq!(recovery.reports[0].reason, StopReason::NoHeader);
}

/// Two needed segments with each other's names once looked like two that were being created: all
/// of their records went without a word.
#[test]
fn segments_that_changed_names_are_corruption() {
    let files = new_disk();
    let mut first = create(&files, 1, None);
    put(&mut first, b"one");
    let end = first.finish().unwrap();
    put(&mut create(&files, 2, Some(end)), b"two");
    let contents = [read(&files, 1), read(&files, 2)];
    for (number, content) in [(1, &contents[1]), (2, &contents[0])] {
        let disk = files.crash_clone(0, crate::fs::CrashKeep::Everything);
        overwrite(&disk, number, content);
        let error = recover(&disk, &[1, 2]).unwrap_err();
        assert_eq!(error.path(), Some(&*segment(number).path), "{error}");
        assert_eq!(error.offset(), Some(40), "{error}");
    }
    overwrite(&files, 1, &contents[1]);
    overwrite(&files, 2, &contents[0]);
    assert_eq!(recover(&files, &[1, 2]).unwrap_err().kind(), ErrorKind::Corruption);
}

/// Once the segment behind it was named, as if this one were missing.
#[test]
fn a_damaged_header_is_told_of_where_it_is() {
    let files = new_disk();
    let mut first = create(&files, 1, None);
    put(&mut first, b"one");
    let end = first.finish().unwrap();
    let mut second = create(&files, 2, Some(end));
    put(&mut second, b"two");
    let last = second.finish().unwrap();
    for (number, clean_close) in [(1, None), (2, None), (2, Some(last))] {
        let disk = files.crash_clone(0, crate::fs::CrashKeep::Everything);
        let mut bytes = read(&disk, number);
        bytes[50] ^= 4;
        overwrite(&disk, number, &bytes);
        let error = recover_with(&disk, &[1, 2], 1, clean_close).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        assert_eq!(error.path(), Some(&*segment(number).path), "{error}");
        assert_eq!(error.offset(), Some(0), "{error}");
    }
}

#[test]
fn preallocated_space_is_said_and_reads_as_the_end() {
    let files = new_disk();
    let options = SegmentOptions { preallocate_bytes: 4096, ..options(1, None) };
    let mut writer = WalWriter::create(&files, &segment(1).path, options, None).unwrap();
    assert_eq!(writer.preallocated_bytes(), 4096);
    put(&mut writer, b"one");
    let (found, recovery) = recover(&files, &[1]).unwrap();
    assert_eq!(found, [b"one"]);
    assert_eq!(recovery.reports[0].dropped_bytes, 0);
    let mut bytes = read(&files, 1);
    bytes.resize(4096, 0);
    overwrite(&files, 1, &bytes);
    assert_eq!(recover(&files, &[1]).unwrap().1.reports[0].reason, StopReason::Zeros);
}

#[test]
fn of_two_syncs_at_once_both_learn_of_a_failure() {
    let files = new_disk();
    let mut writer = create(&files, 1, None);
    put(&mut writer, b"lost");
    let beside = writer.start_sync().unwrap();
    files.set_fault(Box::new(|call| {
        (call.kind == FileCallKind::SyncData).then(|| io::Error::other("broken disk"))
    }));
    beside.run().unwrap_err();
    // The system has told of the loss once; it would let the next sync pass.
    files.clear_fault();
    assert!(writer.sync().unwrap_err().to_string().contains("broken disk"));
}

#[test]
fn a_failed_write_or_sync_poisons_and_a_full_disk_does_not() {
    for kind in [FileCallKind::Write, FileCallKind::SyncData] {
        let files = new_disk();
        let mut writer = create(&files, 1, None);
        put(&mut writer, b"before");
        files.set_fault(Box::new(move |call| {
            (call.kind == kind).then(|| io::Error::other("broken disk"))
        }));
        let result = writer.append(&[IoSlice::new(b"after")]).map(|_| ());
        let error = result.and_then(|()| writer.sync()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Poisoned);
        assert!(error.to_string().contains("broken disk"), "{error}");
        files.clear_fault();
        assert_eq!(writer.append(&[]).unwrap_err().kind(), ErrorKind::Poisoned);
        assert_eq!(writer.sync().unwrap_err().kind(), ErrorKind::Poisoned);
        assert_eq!(writer.start_sync().map(|_| ()).unwrap_err().kind(), ErrorKind::Poisoned);
        assert_eq!(writer.finish().unwrap_err().kind(), ErrorKind::Poisoned);
    }
    let files = new_disk();
    let mut writer = create(&files, 1, None);
    put(&mut writer, b"before");
    files.set_capacity_bytes(8192);
    let error = writer.append(&[IoSlice::new(&[1; 10_000])]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace);
    put(&mut writer, b"after");
    writer.sync().unwrap();
    assert_eq!(recover(&files, &[1]).unwrap().0, [&b"before"[..], b"after"]);
}

#[test]
fn a_sync_elsewhere_covers_what_was_appended_before_it() {
    let files = new_disk();
    let mut writer = create(&files, 1, None);
    let first = put(&mut writer, b"first");
    let pending = writer.start_sync().unwrap();
    put(&mut writer, b"second");
    writer.finish_sync(&pending, pending.run()).unwrap();
    assert_eq!(writer.synced_through(), first.end_offset);
    let failed = Err(Error::new(ErrorKind::Io, "sync"));
    assert_eq!(writer.finish_sync(&pending, failed).unwrap_err().kind(), ErrorKind::Poisoned);
    assert_eq!(writer.append(&[]).unwrap_err().kind(), ErrorKind::Poisoned);
}

#[test]
fn nothing_is_appended_behind_an_end_that_was_given_out() {
    let files = new_disk();
    let mut writer = create(&files, 1, None);
    put(&mut writer, b"last");
    let end = writer.finish().unwrap();
    assert_eq!(writer.append(&[]).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(writer.finish().unwrap(), end);
    assert_eq!(writer.synced_through(), end.end_offset);
}

fn fail_writes(files: &MemoryFileSystem, kind: io::ErrorKind) {
    files.set_fault(Box::new(move |call| {
        (call.kind == FileCallKind::Write).then(|| io::Error::from(kind))
    }));
}

fn create_reserved(files: &MemoryFileSystem, bytes: u64) -> WalWriter {
    let options = SegmentOptions { preallocate_bytes: bytes, ..options(1, None) };
    WalWriter::create(files, &segment(1).path, options, None).unwrap()
}

#[test]
fn records_take_the_place_of_zeros_that_were_written_ahead() {
    let files = new_disk();
    let mut writer = create_reserved(&files, 64 << 10);
    let first = put(&mut writer, b"first");
    assert_eq!(writer.fill(40_000).unwrap(), 40_000);
    assert_eq!(writer.fill(40_000).unwrap(), 0, "there are zeros left");
    put(&mut writer, b"second");
    writer.sync().unwrap();
    assert_eq!(read(&files, 1).len() as u64, first.end_offset + 40_000, "the file did not grow");
    let (payloads, recovery) = recover(&files, &[1]).unwrap();
    assert_eq!(payloads, [b"first".to_vec(), b"second".to_vec()]);
    assert_eq!(
        (recovery.reports[0].reason, recovery.reports[0].dropped_bytes),
        (StopReason::Zeros, 0)
    );

    // A record that the zeros do not hold; then what is left of the reserve.
    let third = put(&mut writer, &[3; 50_000]);
    assert_eq!(writer.fill(40_000).unwrap(), (64 << 10) - third.end_offset);
    writer.give_back();
    assert_eq!(read(&files, 1).len() as u64, third.end_offset);
    assert_eq!(writer.fill(100).unwrap(), 0, "nothing is reserved");
    assert_eq!(recover(&files, &[1]).unwrap().0.len(), 3);
}

#[test]
fn a_recycled_segment_needs_no_zeros_and_a_full_disk_gets_none() {
    let files = new_disk();
    let mut writer = create_reserved(&files, 64 << 10);
    put(&mut writer, &[1; 10_000]);
    let previous = writer.finish().unwrap();
    let (old, new) = (segment(1).path, segment(2).path);
    let mut writer =
        WalWriter::create(&files, &new, options(2, Some(previous)), Some(&old)).unwrap();
    put(&mut writer, b"row");
    assert_eq!(writer.fill(4096).unwrap(), 0, "the file is longer than that");

    let files = new_disk();
    let mut writer = create_reserved(&files, 64 << 10);
    put(&mut writer, b"row");
    fail_writes(&files, io::ErrorKind::StorageFull);
    assert_eq!(writer.fill(4096).unwrap(), 0);
    files.clear_fault();
    assert_eq!(writer.fill(4096).unwrap(), 0, "not asked again at once");
    put(&mut writer, b"next");
    assert_eq!(recover(&files, &[1]).unwrap().0.len(), 2);
    put(&mut writer, &[2; 5000]);
    fail_writes(&files, io::ErrorKind::Other);
    assert_eq!(writer.fill(4096).unwrap_err().kind(), ErrorKind::Poisoned);
    assert_eq!(writer.append(&[]).unwrap_err().kind(), ErrorKind::Poisoned);
}

#[test]
fn records_and_files_of_others_are_refused() {
    let (files, _) = small_segment();
    let error = WalReader::open(&files, &segment(1).path, LogKind::Wal, DATABASE_ID ^ 1, 1)
        .map(|_| ())
        .unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Corruption, Some(24)));
    let reader =
        WalReader::open(&files, &segment(1).path, LogKind::Manifest, DATABASE_ID, 1).unwrap();
    assert_eq!(reader.header().unwrap_err().kind(), ErrorKind::Corruption);
    let error = WalWriter::create(&files, &segment(1).path, options(1, None), None)
        .map(|_| ())
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
}

#[test]
fn an_unknown_incompatible_feature_is_refused_and_names_both_versions() {
    let files = new_disk();
    let header = LogHeader {
        kind: LogKind::Wal,
        format_version: 9,
        features: crate::format::Features {
            compatible: 1,
            read_only_compatible: 2,
            incompatible: 4,
        },
        database_id: DATABASE_ID,
        log_number: 1,
        previous: None,
    };
    overwrite(&files, 1, &header.encode());
    let error = recover(&files, &[1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let text = error.to_string();
    assert!(text.contains("version 9") && text.contains("version 1"), "{text}");
    let reading = crate::format::Features { incompatible: 0, ..header.features };
    overwrite(&files, 1, &LogHeader { features: reading, ..header }.encode());
    assert_eq!(recover(&files, &[1]).unwrap_err().kind(), ErrorKind::ReadOnly);
    let harmless = crate::format::Features { compatible: 1, ..Default::default() };
    overwrite(&files, 1, &LogHeader { features: harmless, ..header }.encode());
    recover(&files, &[1]).unwrap();
}

#[test]
fn an_error_of_the_receiver_ends_the_recovery() {
    let (files, _) = small_segment();
    let options = RecoveryOptions {
        database_id: DATABASE_ID,
        oldest_needed: 1,
        clean_close: None,
        read_only: true,
    };
    let mut seen = 0;
    let error = recover_segments(&files, &[segment(1)], &options, &mut |_| {
        seen += 1;
        if seen == 2 { Err(Error::limit("enough")) } else { Ok(()) }
    })
    .unwrap_err();
    assert_eq!((error.kind(), seen), (ErrorKind::LimitExceeded, 2));
}

#[test]
fn made_up_records_do_not_keep_the_scan_busy() {
    let files = new_disk();
    drop(create(&files, 1, None));
    let mut bytes = read(&files, 1);
    bytes.resize(64 << 10, 1);
    for offset in (72..bytes.len() - 32).step_by(32) {
        let length = (bytes.len() - offset - 32) as u32;
        bytes[offset + 4..offset + 8].copy_from_slice(&length.to_le_bytes());
        bytes[offset + 8..offset + 16].copy_from_slice(&1_u64.to_le_bytes());
        bytes[offset + 16..offset + 24].copy_from_slice(&(offset as u64).to_le_bytes());
        bytes[offset + 24..offset + 32].fill(0);
    }
    overwrite(&files, 1, &bytes);
    let error = recover(&files, &[1]).unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Corruption, Some(72)));
    assert!(error.to_string().contains("overlapping"), "{error}");
}
