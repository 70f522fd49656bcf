//! Tests of lists of segments: the chain, the clean close, and power cuts at any call.

use super::tests::*;
use super::*;
use crate::ErrorKind;
use crate::fs::{CrashKeep, FileSystem, MemoryFileSystem};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Three finished segments with two records each, numbers 1, 3 and 4.
fn three_segments() -> (MemoryFileSystem, SegmentEnd) {
    let files = new_disk();
    let mut end = None;
    for number in [1, 3, 4] {
        let mut writer = create(&files, number, end);
        put(&mut writer, &[number as u8; 10]);
        put(&mut writer, &[number as u8; 20]);
        end = Some(writer.finish().unwrap());
    }
    (files, end.unwrap())
}

#[test]
fn segments_are_read_in_order_and_their_ends_are_demanded() {
    let (files, end) = three_segments();
    let (found, recovery) = recover(&files, &[1, 3, 4]).unwrap();
    assert_eq!(found.len(), 6);
    assert_eq!(recovery.end, Some(end));
    let reasons: Vec<_> = recovery.reports.iter().map(|report| report.reason).collect();
    assert_eq!(reasons, [StopReason::NamedEnd, StopReason::NamedEnd, StopReason::EndOfFile]);
    let (_, recovery) = recover_with(&files, &[1, 3, 4], 1, Some(end)).unwrap();
    assert_eq!(recovery.reports[2].reason, StopReason::NamedEnd);
    // What is not needed may be gone, what is needed may not.
    assert_eq!(recover_with(&files, &[3, 4], 3, None).unwrap().0.len(), 4);
    assert_eq!(recover_with(&files, &[3, 4], 1, None).unwrap_err().kind(), ErrorKind::Corruption);
    let error = recover(&files, &[1, 4]).unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Corruption, Some(48)));
    let error = recover_with(&files, &[1, 3], 1, Some(end)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    recover_with(&files, &[], 5, Some(end)).unwrap();
}

#[test]
fn a_later_segment_proves_that_an_earlier_one_was_durable() {
    let (files, _) = three_segments();
    let bytes = read(&files, 3);
    for length in 0..bytes.len() - 4 {
        overwrite(&files, 3, &bytes[..length]);
        let error = recover(&files, &[1, 3, 4]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "length {length}");
    }
    // Records behind the end that was named are a dropped tail of an earlier recovery.
    overwrite(&files, 3, &[&bytes[..], &[0xee; 100]].concat());
    assert_eq!(recover(&files, &[1, 3, 4]).unwrap().0.len(), 6);
}

#[test]
fn a_clean_close_that_disagrees_is_corruption() {
    let (files, end) = three_segments();
    for end_offset in [0, 80, end.end_offset - 8, end.end_offset + 8, u64::MAX] {
        let closed = SegmentEnd { end_offset, ..end };
        let error = recover_with(&files, &[1, 3, 4], 1, Some(closed)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        let closed = SegmentEnd { log_number: 3, end_offset };
        if end_offset != end.end_offset {
            recover_with(&files, &[1, 3, 4], 1, Some(closed)).unwrap_err();
        }
    }
}

#[test]
fn an_abandoned_segment_in_between_is_passed_over() {
    let (files, end) = three_segments();
    overwrite(&files, 5, b"LITHWAL\n half a header");
    let mut writer = create(&files, 6, Some(end));
    put(&mut writer, b"after");
    let (found, recovery) = recover(&files, &[1, 3, 4, 5, 6]).unwrap();
    assert_eq!(found.len(), 7);
    assert_eq!(recovery.reports[3].reason, StopReason::NoHeader);
    assert_eq!(recovery.end.unwrap().log_number, 6);
}

/// A generator for the choices of a test (splitmix64).
struct Choices(u64);

impl Choices {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// A log in use, and what must be found after a crash.
struct Model {
    records: Vec<(u64, Vec<u8>)>,
    durable: usize,
    segments: Vec<u64>,
    free: Vec<u64>,
    oldest_needed: u64,
    next_number: u64,
    next_payload: u64,
}

impl Model {
    /// Makes a segment, over an unneeded one if there is one. An error is the crash.
    fn new_segment(
        &mut self,
        files: &MemoryFileSystem,
        end: Option<SegmentEnd>,
    ) -> crate::Result<WalWriter> {
        let number = self.next_number;
        self.next_number += 1;
        let recycled = self.free.pop().map(|number| segment(number).path);
        self.segments.push(number);
        WalWriter::create(files, &segment(number).path, options(number, end), recycled.as_deref())
    }

    fn act(
        &mut self,
        files: &MemoryFileSystem,
        writer: &mut WalWriter,
        choices: &mut Choices,
    ) -> crate::Result<()> {
        match choices.below(10) {
            0..=5 => {
                self.next_payload += 1;
                let mut payload = self.next_payload.to_le_bytes().to_vec();
                payload.resize(8 + choices.below(1500) as usize, self.next_payload as u8);
                writer.append(&[io::IoSlice::new(&payload)])?;
                self.records.push((writer.log_number(), payload));
            }
            6 | 7 => {
                writer.sync()?;
                self.durable = self.records.len();
            }
            8 => {
                let end = writer.finish()?;
                self.durable = self.records.len();
                *writer = self.new_segment(files, Some(end))?;
            }
            _ => {
                // A flush of everything: only the present segment is needed from now on.
                let number = writer.log_number();
                let kept = self.records.partition_point(|(log_number, _)| *log_number < number);
                self.records.drain(..kept);
                self.durable = self.durable.saturating_sub(kept);
                self.oldest_needed = number;
                self.free.extend(self.segments.extract_if(.., |segment| *segment < number));
            }
        }
        Ok(())
    }

    /// Recovers and checks: a prefix, everything durable in it, all of it if only the process died.
    fn recover(&mut self, files: &MemoryFileSystem, keep: CrashKeep, seed: u64) -> Recovery {
        self.segments.retain(|number| files.exists(&segment(*number).path).unwrap());
        self.free.retain(|number| files.exists(&segment(*number).path).unwrap());
        let (found, recovery) = recover_with(files, &self.segments, self.oldest_needed, None)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let expected = self.records.iter().map(|(_, payload)| payload);
        assert!(expected.take(found.len()).eq(&found), "seed {seed}: not a prefix");
        assert!(found.len() <= self.records.len(), "seed {seed}: more than was written");
        let least = if keep == CrashKeep::Everything { self.records.len() } else { self.durable };
        assert!(found.len() >= least, "seed {seed}: {} of {least} durable records", found.len());
        self.records.truncate(found.len());
        self.durable = found.len();
        recovery
    }
}

/// One history of several lives; each ends at a random call, in the middle of whatever it was.
fn live_and_crash(seed: u64) {
    let mut choices = Choices(seed);
    let mut files = new_disk();
    let mut model = Model {
        records: Vec::new(),
        durable: 0,
        segments: Vec::new(),
        free: Vec::new(),
        oldest_needed: 1,
        next_number: 1,
        next_payload: 0,
    };
    let mut end = None;
    for _ in 0..4 {
        let last_call = files.call_count() + choices.below(60);
        files.set_fault(Box::new(move |call| {
            (call.index >= last_call).then(|| io::Error::other("the process is gone"))
        }));
        if let Ok(mut writer) = model.new_segment(&files, end) {
            for _ in 0..40 {
                if model.act(&files, &mut writer, &mut choices).is_err() {
                    break;
                }
            }
        }
        let keep =
            [CrashKeep::Random, CrashKeep::Random, CrashKeep::Nothing, CrashKeep::Everything]
                [choices.below(4) as usize];
        files = files.crash_clone(choices.below(u64::MAX), keep);
        end = model.recover(&files, keep, seed).end;
    }
}

#[test]
fn power_cuts_at_any_call_lose_nothing_durable_and_replay_nothing_stale() {
    for seed in 0..600 {
        live_and_crash(seed);
    }
}

/// The check above must be able to fail: a segment that is used without its sync is caught.
#[test]
fn a_claim_of_durability_without_a_sync_is_caught() {
    let caught = Arc::new(AtomicU64::new(0));
    for seed in 0..20 {
        let files = new_disk();
        let mut writer = create(&files, 1, None);
        put(&mut writer, &[1; 3000]);
        let disk = files.crash_clone(seed, CrashKeep::Random);
        if recover(&disk, &[1]).unwrap().0.is_empty() {
            caught.fetch_add(1, Ordering::Relaxed);
        }
    }
    assert!(caught.load(Ordering::Relaxed) > 0);
}
