//! Tables as a whole: what is built is read back, and nothing damaged is believed.

use super::*;
use crate::base::{Clock, MemoryBudget, SEQUENCE_MAX, SequenceNumber, TableId, Trailer, ValueKind};
use crate::cache::BlockCache;
use crate::codec::{CodecId, Compression, ContextPool};
use crate::fs::{Advice, File, IoOutcome, IoRequest, Submission, Ticket, perform};
use crate::stats::WorkMeter;
use crate::{ErrorKind, Result};
use std::collections::BTreeMap;
use std::io::IoSlice;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

mod damage;
mod dictionaries;
mod examine;
mod loads;
mod model;
mod scan;
mod two_levels;

pub(super) const TABLE_ID: TableId = *b"0123456789abcdef";

/// A clock that ticks at every look.
#[derive(Default)]
pub(super) struct TestClock(AtomicU64);

impl Clock for TestClock {
    fn now_us(&self) -> u64 {
        self.0.fetch_add(1, Relaxed)
    }
    fn thread_cpu_ns(&self) -> u64 {
        self.0.fetch_add(1, Relaxed)
    }
    fn ticks(&self) -> u64 {
        self.0.fetch_add(1, Relaxed)
    }
    fn unix_time_s(&self) -> u64 {
        1_700_000_000
    }
}

/// A file of these bytes; submitted reads wait for [`TestFile::complete_one`] if `is_late`.
#[derive(Default)]
pub(super) struct TestFile {
    pub(super) bytes: Vec<u8>,
    /// As if reads went past the page cache.
    pub(super) is_direct: bool,
    pub(super) is_late: bool,
    pub(super) waiting: Mutex<Vec<(IoRequest, Ticket)>>,
    pub(super) submits: AtomicU64,
}

impl TestFile {
    pub(super) fn complete_one(&self) -> bool {
        let next = self.waiting.lock().unwrap().pop();
        let Some((request, ticket)) = next else {
            return false;
        };
        ticket.complete(perform(self, request));
        true
    }
}

impl File for TestFile {
    fn path(&self) -> &Path {
        Path::new("7.sst")
    }
    fn length(&self) -> Result<u64> {
        Ok(self.bytes.len() as u64)
    }
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let rest = self.bytes.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
    fn write_at(&self, _: &[IoSlice<'_>], _: u64) -> Result<()> {
        unreachable!("tables are not written through readers")
    }
    fn append(&self, _: &[IoSlice<'_>]) -> Result<u64> {
        unreachable!("tables are not written through readers")
    }
    fn sync_data(&self) -> Result<()> {
        Ok(())
    }
    fn sync_range(&self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }
    fn preallocate(&self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }
    fn truncate(&self, _: u64) -> Result<()> {
        unreachable!("tables are not cut")
    }
    fn advise(&self, _: u64, _: u64, _: Advice) -> Result<()> {
        Ok(())
    }
    fn direct_io_alignment(&self) -> Option<usize> {
        self.is_direct.then_some(1)
    }
    fn submit(&self, request: IoRequest) -> Submission {
        self.submits.fetch_add(1, Relaxed);
        if !self.is_late {
            return Submission::Done(perform(self, request));
        }
        let ticket = Ticket::new();
        self.waiting.lock().unwrap().push((request, ticket.clone()));
        Submission::Pending(ticket)
    }
}

pub(super) type Entry = (Vec<u8>, Trailer, Vec<u8>);

/// A small generator (splitmix64).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

pub(super) fn pool() -> Arc<ContextPool> {
    ContextPool::new(MemoryBudget::new(64 << 20))
}

pub(super) fn builder(options: TableOptions, compression: Compression) -> TableBuilder {
    TableBuilder::new(options, TABLE_ID, pool().compressor(compression).unwrap())
}

pub(super) fn zstd() -> Compression {
    Compression { codec: CodecId::Zstd, effort: 1, ..Compression::NONE }
}

pub(super) fn build(
    options: &TableOptions,
    compression: Compression,
    entries: &[Entry],
) -> (Vec<u8>, TableSummary) {
    add_all(builder(options.clone(), compression), entries)
}

/// A table whose index is cut into partitions of so many bytes.
pub(super) fn build_two_levels(
    options: &TableOptions,
    compression: Compression,
    entries: &[Entry],
    partition_size: usize,
) -> (Vec<u8>, TableSummary) {
    let mut builder = builder(options.clone(), compression);
    builder.cut_index_at(0, partition_size);
    add_all(builder, entries)
}

pub(super) fn add_all(mut builder: TableBuilder, entries: &[Entry]) -> (Vec<u8>, TableSummary) {
    let (mut meter, clock) = (WorkMeter::default(), TestClock::default());
    let mut file = Vec::new();
    for (index, (key, trailer, value)) in entries.iter().enumerate() {
        builder.add(key, *trailer, value, &mut meter, &clock).unwrap();
        if index % 7 == 0 {
            file.append(&mut builder.take_output());
        }
    }
    let summary = builder.finish(&mut meter, &clock).unwrap();
    file.append(&mut builder.take_output());
    assert_eq!(summary.size_bytes, file.len() as u64);
    (file, summary)
}

pub(super) fn open(bytes: &[u8], cache: bool) -> Result<Arc<TableReader>> {
    let file = TestFile { bytes: bytes.to_vec(), ..TestFile::default() };
    TableReader::open(Arc::new(file), cache.then(test_cache), pool())
}

pub(super) fn test_cache() -> Arc<BlockCache> {
    BlockCache::new(MemoryBudget::new(64 << 20), 0)
}

/// Sorted entries: random keys with few distinct bytes, some of them in many versions.
pub(super) fn random_entries(random: &mut Random, count: usize, value_max: u64) -> Vec<Entry> {
    let mut entries = BTreeMap::new();
    while entries.len() < count {
        let size = random.below(12);
        let key: Vec<u8> = (0..size).map(|_| b"aab\x00\xff"[random.below(5) as usize]).collect();
        let versions = if random.below(10) == 0 { 40 } else { 1 + random.below(2) };
        for _ in 0..versions {
            let kind = match random.below(6) {
                0 => ValueKind::Delete,
                1 => ValueKind::SingleDelete,
                _ => ValueKind::Put,
            };
            let trailer = Trailer::new(random.below(1000) << random.below(40), kind);
            let size = if kind == ValueKind::Put { random.below(value_max + 1) } else { 0 };
            let value = (0..size).map(|_| random.below(4) as u8).collect::<Vec<u8>>();
            entries.insert((key.clone(), std::cmp::Reverse(trailer)), value);
        }
    }
    entries.into_iter().map(|((key, trailer), value)| (key, trailer.0, value)).collect()
}

/// Rows with ascending keys, all puts at sequence zero.
pub(super) fn plain_rows(count: usize) -> Vec<Entry> {
    let row = |index: usize| {
        let value = format!("value of row {index}, layer {}", index % 7).into_bytes();
        (format!("row{index:06}").into_bytes(), Trailer::new(0, ValueKind::Put), value)
    };
    (0..count).map(row).collect()
}

#[test]
fn jobs_may_move_between_threads() {
    fn movable<T: Send>() {}
    fn shared<T: Send + Sync>() {}
    movable::<(TableBuilder, TableScanner, TableCursor)>();
    shared::<TableReader>();
    shared::<FragmentedTombstones>();
}

#[test]
fn blocks_are_about_as_large_as_asked_for() {
    for (block_size_bytes, value) in [(4096, 0), (16 << 10, 20), (16 << 10, 176), (4096, 9000)] {
        let entries: Vec<Entry> = (0..5000_u64)
            .map(|index| {
                let trailer = Trailer::new(1000 + index * 31 % 1009, ValueKind::Put);
                (index.to_be_bytes().to_vec(), trailer, vec![7; value])
            })
            .collect();
        let options = TableOptions { block_size_bytes, ..TableOptions::default() };
        let (_, summary) = build(&options, Compression::NONE, &entries);
        let properties = &summary.properties;
        let mean = properties.data_raw_bytes / properties.data_blocks;
        let expected = (block_size_bytes as u64).max(value as u64);
        assert!((expected * 8 / 10..expected * 105 / 100).contains(&mean), "{mean}, {expected}");
    }
}

/// Entries of each block of a table of values of these sizes.
fn entries_of_blocks(block_size_bytes: usize, values: &[usize]) -> Vec<u64> {
    let entry = |(index, size): (usize, &usize)| {
        let key = (index as u64).to_be_bytes().to_vec();
        (key, Trailer::new(1, ValueKind::Put), vec![7; *size])
    };
    let entries: Vec<Entry> = values.iter().enumerate().map(entry).collect();
    let options = TableOptions { block_size_bytes, ..TableOptions::default() };
    let (mut meter, clock) = (WorkMeter::default(), TestClock::default());
    let mut table = builder(options, Compression::NONE);
    let mut blocks = vec![0];
    for (key, trailer, value) in &entries {
        let before = table.data_blocks();
        table.add(key, *trailer, value, &mut meter, &clock).unwrap();
        if table.data_blocks() > before {
            blocks.push(0);
        }
        *blocks.last_mut().unwrap() += 1;
    }
    blocks
}

#[test]
fn blocks_of_large_rows_end_where_they_are_nearest_to_their_size() {
    assert_eq!(entries_of_blocks(4096, &[2600; 6]), [2, 2, 2], "5.2 KB are nearer than 2.6");
    assert_eq!(entries_of_blocks(4096, &[1800; 6]), [2, 2, 2], "3.6 KB are nearer than 5.4");
    assert_eq!(entries_of_blocks(4096, &[3600; 3]), [1, 1, 1], "7.2 KB are too far");
    assert_eq!(entries_of_blocks(4096, &[3800, 400, 100]), [1, 2], "9/10 are enough");
    // A small row does not share its block with one far over the size.
    assert_eq!(entries_of_blocks(4096, &[10, 100_000, 10]), [1, 1, 1]);
    assert_eq!(entries_of_blocks(1, &[0; 3]), [1, 1, 1]);
}

#[test]
fn entries_must_ascend_and_keep_their_limits() {
    let (mut meter, clock) = (WorkMeter::default(), TestClock::default());
    let mut table = builder(TableOptions::default(), Compression::NONE);
    let put = |sequence| Trailer::new(sequence, ValueKind::Put);
    table.add(b"b", put(5), b"", &mut meter, &clock).unwrap();
    for (key, trailer) in [(&b"b"[..], put(5)), (b"b", put(6)), (b"a", put(1)), (b"", put(1))] {
        let error = table.add(key, trailer, b"", &mut meter, &clock).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
    let range_delete = Trailer::new(3, ValueKind::RangeDelete);
    assert!(table.add(b"c", range_delete, b"", &mut meter, &clock).is_err());
    table.add(b"b", put(4), b"", &mut meter, &clock).unwrap();
    let long = vec![b'z'; 65_536];
    let error = table.add(&long, put(4), b"", &mut meter, &clock).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    let longest = &long[..65_535];
    table.add(longest, put(4), &vec![7; 300_000], &mut meter, &clock).unwrap();
    assert!(table.add_range_tombstone(b"x", b"x", 1).is_err());
    let summary = table.finish(&mut meter, &clock).unwrap();
    assert_eq!((summary.properties.entries, summary.properties.data_blocks), (3, 2));
    assert!(table.finish(&mut meter, &clock).is_err());
    assert!(table.add(b"zzz", put(1), b"", &mut meter, &clock).is_err());

    let reader = open(&table.take_output(), true).unwrap();
    let mut context = ReadContext::new(&clock);
    let (trailer, value) = reader.get(longest, SEQUENCE_MAX, &mut context).unwrap().unwrap();
    assert_eq!((trailer, value.len()), (put(4), 300_000));
    assert_eq!(reader.verify(&mut context).unwrap().entries, 3);
}

#[test]
fn an_empty_table_is_refused() {
    let (mut meter, clock) = (WorkMeter::default(), TestClock::default());
    let mut table = builder(TableOptions::default(), Compression::NONE);
    assert_eq!(table.finish(&mut meter, &clock).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn a_block_that_does_not_shrink_is_stored_raw() {
    let mut random = Random(3);
    let entries: Vec<Entry> = (0..200_u32)
        .map(|index| {
            let value = (0..200).map(|_| random.next() as u8).collect();
            (index.to_be_bytes().to_vec(), Trailer::new(0, ValueKind::Put), value)
        })
        .collect();
    let options = TableOptions { block_size_bytes: 4096, ..TableOptions::default() };
    let (bytes, summary) = build(&options, zstd(), &entries);
    assert_eq!(summary.properties.fallback_blocks, summary.properties.data_blocks);
    assert!(summary.properties.data_stored_bytes > summary.properties.data_raw_bytes);
    let clock = TestClock::default();
    open(&bytes, false).unwrap().verify(&mut ReadContext::new(&clock)).unwrap();

    let (_, summary) = build(&options, zstd(), &plain_rows(2000));
    assert_eq!(summary.properties.fallback_blocks, 0);
    assert!(summary.properties.data_stored_bytes * 2 < summary.properties.data_raw_bytes);
}

#[test]
fn properties_and_meters_say_what_was_written() {
    let (mut meter, clock) = (WorkMeter::default(), TestClock::default());
    let mut table = builder(
        TableOptions { level: 4, prefix_length: Some(2), ..TableOptions::default() },
        Compression::LZ4,
    );
    table.set_newest_obsolete_sequence(17);
    table.set_cpu_ns(99);
    let mut key_bytes = 0;
    for (index, (key, _, value)) in plain_rows(3000).iter().enumerate() {
        let kind = [ValueKind::Put, ValueKind::Delete, ValueKind::SingleDelete][index % 3];
        key_bytes += key.len() as u64;
        table.add(key, Trailer::new(20 + index as u64, kind), value, &mut meter, &clock).unwrap();
    }
    table.add_range_tombstone(b"a", b"c", 9).unwrap();
    table.add_range_tombstone(b"r", b"z", 5000).unwrap();
    assert!(table.estimated_size_bytes() > 10_000);
    let summary = table.finish(&mut meter, &clock).unwrap();
    let properties = &summary.properties;
    assert_eq!(
        (properties.entries, properties.deletes, properties.single_deletes),
        (3000, 1000, 1000)
    );
    assert_eq!((properties.smallest_sequence, properties.largest_sequence), (9, 5000));
    assert_eq!((&properties.smallest_key[..], &properties.largest_key[..]), (&b"a"[..], &b"z"[..]));
    assert_eq!((properties.largest_key_exclusive, properties.range_tombstones), (1, 2));
    assert_eq!((properties.key_bytes, properties.level, properties.cpu_ns), (key_bytes, 4, 99));
    assert_eq!((properties.newest_obsolete_sequence, properties.prefix_length), (17, 2));
    assert_eq!(properties.codec, CodecId::Lz4 as u64);
    let lz4 = CodecId::Lz4 as usize;
    assert!(meter.codecs().compressed_raw_bytes[lz4] > properties.data_raw_bytes);
    assert!(
        meter.codecs().compress_ticks[lz4] > 0
            && meter.ticks.iter().filter(|t| **t > 0).count() >= 3
    );
    let reader = open(&table.take_output(), true).unwrap();
    assert_eq!(reader.properties(), properties);
    reader.verify(&mut ReadContext::new(&clock)).unwrap();
}

#[test]
fn a_table_of_range_tombstones_alone() {
    let (mut meter, clock) = (WorkMeter::default(), TestClock::default());
    let mut table = builder(TableOptions::default(), zstd());
    table.add_range_tombstone(b"d", b"m", 7).unwrap();
    table.add_range_tombstone(b"f", b"p", 9).unwrap();
    let summary = table.finish(&mut meter, &clock).unwrap();
    assert_eq!(summary.properties.smallest_key, b"d");
    assert_eq!(summary.properties.largest_key, b"p");
    let reader = open(&table.take_output(), true).unwrap();
    let mut context = ReadContext::new(&clock);
    assert!(reader.get(b"e", SEQUENCE_MAX, &mut context).unwrap().is_none());
    let mut cursor = reader.cursor();
    cursor.seek_to_first(&mut context).unwrap();
    assert!(!cursor.valid());
    cursor.seek_to_last(&mut context).unwrap();
    assert!(!cursor.valid());
    let mut scanner = reader.scanner(Some(b"a"), Some(b"z"));
    assert!(matches!(scanner.poll(&mut meter, &clock).unwrap(), ScanPoll::End));
    let tombstones = reader.range_tombstones(&mut context).unwrap();
    assert_eq!(tombstones.covering_sequence(b"g", SEQUENCE_MAX), 9);
    assert_eq!(tombstones.covering_sequence(b"g", 8), 7);
    reader.verify(&mut context).unwrap();
}

#[test]
fn tombstone_fragments_answer_as_the_list_does() {
    let mut random = Random(11);
    for round in 0..200 {
        let mut fragmenter = TombstoneFragmenter::new();
        let mut list = Vec::new();
        for _ in 0..1 + random.below(12) {
            let (a, b) = (random.below(30) as u8, random.below(30) as u8);
            let (start, end) = (a.min(b), a.max(b) + 1);
            let sequence = 1 + random.below(8);
            fragmenter.add(vec![start], vec![end], sequence);
            list.push((start, end, sequence));
        }
        let fragments = fragmenter.finish();
        let fragments = FragmentedTombstones::parse(fragments.encoded().to_vec().into()).unwrap();
        for (a, b) in fragments.fragments().zip(fragments.fragments().skip(1)) {
            assert!(a.start < a.end && a.end <= b.start);
            let same = a.sequences().eq(b.sequences());
            assert!(!same || a.end != b.start, "round {round}: two fragments where one would do");
        }
        for key in 0..32 {
            for snapshot in 0..10 {
                let expected = list
                    .iter()
                    .filter(|(start, end, sequence)| {
                        *start <= key && key < *end && *sequence <= snapshot
                    })
                    .map(|tombstone| tombstone.2)
                    .max();
                let found = fragments.covering_sequence(&[key], snapshot);
                assert_eq!(found, expected.unwrap_or(0), "round {round} key {key} at {snapshot}");
            }
        }
    }
}

#[test]
fn filters_hold_keys_and_prefixes() {
    let options =
        TableOptions { prefix_length: Some(6), filter_bits_per_key: 12, ..TableOptions::default() };
    let mut entries = plain_rows(3000);
    entries.insert(0, (b"ab".to_vec(), Trailer::new(0, ValueKind::Put), b"short".to_vec()));
    let (bytes, _) = build(&options, Compression::LZ4, &entries);
    let clock = TestClock::default();
    for cache in [true, false] {
        let reader = open(&bytes, cache).unwrap();
        let context = &mut ReadContext::new(&clock);
        assert!(entries.iter().all(|entry| reader.may_contain(&entry.0, context).unwrap()));
        let absent = |index: usize| format!("row{index:06}x").into_bytes();
        let wrong = (0..3000).filter(|i| reader.may_contain(&absent(*i), context).unwrap()).count();
        assert!(wrong < 90, "{wrong} of 3000");
        for prefix in ["row000", "row001", "row0020", "row002999"] {
            assert!(reader.prefix_may_match(prefix.as_bytes(), context).unwrap(), "{prefix}");
        }
        assert!(reader.prefix_may_match(b"ab", context).unwrap());
        assert!(reader.prefix_may_match(b"nosuc", context).unwrap());
        let wrong = (0..500)
            .filter(|i| {
                let prefix = format!("n{i:05}");
                reader.prefix_may_match(prefix.as_bytes(), context).unwrap()
            })
            .count();
        assert!(wrong < 20, "{wrong} of 500");
    }
    let options = TableOptions { filter_bits_per_key: 0, ..TableOptions::default() };
    let (bytes, _) = build(&options, Compression::LZ4, &entries);
    let reader = open(&bytes, true).unwrap();
    let context = &mut ReadContext::new(&clock);
    assert!(reader.may_contain(b"nothing", context).unwrap());
    assert!(reader.get(b"nothing", SEQUENCE_MAX, context).unwrap().is_none());
    assert!(reader.get(b"ab", SEQUENCE_MAX, context).unwrap().is_some());
}
