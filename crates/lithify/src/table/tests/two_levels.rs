//! Indexes of two levels: when there is one, what is read of it, and what is refused.

use super::super::block::{self, BlockHandle, Encoding, Layout, TRAILER_SIZE};
use super::super::footer::{FOOTER_SIZE, Footer};
use super::super::index::{IndexBlock, IndexRecord};
use super::damage::{parse_hex, read_everything, small_two_level_table, with_footer};
use super::model::{check_gets, check_moves, check_walks};
use super::scan::scan;
use super::*;
use crate::base::MemoryUse;
use crate::format::Features;

pub(super) fn footer_of(bytes: &[u8]) -> Footer {
    Footer::decode(bytes.last_chunk().unwrap(), bytes.len() as u64).unwrap()
}

/// The records of the top index.
fn partitions_of(reader: &Arc<TableReader>) -> Vec<IndexRecord> {
    assert!(reader.has_partitions());
    let clock = TestClock::default();
    let top = reader.index(&mut ReadContext::new(&clock)).unwrap();
    let top = reader.parse_index(&top).unwrap();
    (0..top.block_count()).map(|number| top.record(number).unwrap()).collect()
}

/// Rows of which every one has a block, so that the index is as large as the table.
fn one_row_blocks() -> TableOptions {
    TableOptions { block_size_bytes: 1, filter_bits_per_key: 0, ..TableOptions::default() }
}

#[test]
fn an_index_larger_than_256_kib_has_two_levels() {
    let clock = TestClock::default();
    let context = &mut ReadContext::new(&clock);
    let mut forms = Vec::new();
    for rows in [1, 2, 500].into_iter().chain((3_300..=3_400).step_by(5)) {
        let entries = plain_rows(rows);
        let (bytes, _) = build(&one_row_blocks(), Compression::NONE, &entries);
        let footer = footer_of(&bytes);
        let reader = open(&bytes, true).unwrap();
        check_walks(&reader, &entries);
        forms.push((footer.has_two_level_index(), footer.version, footer.features.incompatible));
        if !footer.has_two_level_index() {
            assert!(reader.index(context).unwrap().len() <= 256 << 10, "{rows} rows");
            continue;
        }
        // Only the last partition is smaller than it could be. A record with its search word and
        // its keys of up to nine bytes takes 78.
        let sizes: Vec<_> = partitions_of(&reader).iter().map(|record| record.raw_size).collect();
        let (last, full) = sizes.split_last().unwrap();
        assert!(*last <= 16 << 10 && full.iter().all(|size| (16 << 10) - size < 78), "{sizes:?}");
        let flat_size: u32 = 16 + sizes.iter().map(|size| size - 16).sum::<u32>();
        assert!(flat_size > 256 << 10, "{rows} rows");
    }
    forms.dedup();
    assert_eq!(forms, [(false, 1, 0), (true, 2, 1)]);
}

#[test]
fn a_record_that_is_larger_than_a_partition_is_alone() {
    let entries: Vec<Entry> = (0..6_u8)
        .map(|number| (vec![number; 60_000], Trailer::new(0, ValueKind::Put), vec![number]))
        .collect();
    let (bytes, _) = build(&one_row_blocks(), Compression::NONE, &entries);
    let reader = open(&bytes, true).unwrap();
    assert_eq!(partitions_of(&reader).len(), 6);
    check_walks(&reader, &entries);
    check_gets(&reader, &entries, &mut Random(3));
}

#[test]
fn reads_fetch_the_partitions_that_they_come_to() {
    let entries = plain_rows(4000);
    let (bytes, _) = build(&one_row_blocks(), zstd(), &entries);
    let budget = MemoryBudget::new(64 << 20);
    let cache = BlockCache::new(Arc::clone(&budget), 0);
    let file = Arc::new(TestFile { bytes, ..TestFile::default() });
    let reader = TableReader::open(file, Some(cache), pool()).unwrap();
    let partitions = partitions_of(&reader);
    let of_top = budget.used_bytes(MemoryUse::Tables);
    assert!(partitions.len() > 15 && of_top < 4 << 10, "{of_top}");
    let (clock, mut meter) = (TestClock::default(), WorkMeter::default());
    let mut context = ReadContext { meter: Some(&mut meter), ..ReadContext::new(&clock) };
    for _ in 0..3 {
        assert!(reader.get(b"row002222", 0, &mut context).unwrap().is_some());
    }
    let of_partition = budget.used_bytes(MemoryUse::Tables) - of_top;
    assert!(((16 << 10)..(20 << 10)).contains(&of_partition), "{of_partition}");
    // The partition and the block.
    assert_eq!(meter.reads, 2);
    let raw_bytes: u64 = partitions.iter().map(|record| u64::from(record.raw_size)).sum();
    let stored_bytes: u64 =
        partitions.iter().map(|record| u64::from(record.handle.stored_size)).sum();
    assert!(stored_bytes < raw_bytes / 2, "partitions are encoded: {stored_bytes} of {raw_bytes}");
}

#[test]
fn small_caches_and_none_change_no_answer() {
    let entries = random_entries(&mut Random(31), 500, 30);
    let options = TableOptions { block_size_bytes: 100, ..TableOptions::default() };
    let (bytes, _) = build_two_levels(&options, Compression::LZ4, &entries, 300);
    for budget_bytes in [0, 4 << 10, 40 << 10] {
        let cache = BlockCache::new(MemoryBudget::new(budget_bytes), 0);
        let file = Arc::new(TestFile { bytes: bytes.clone(), ..TestFile::default() });
        let reader = TableReader::open(file, Some(cache), pool()).unwrap();
        assert!(partitions_of(&reader).len() > 10);
        check_walks(&reader, &entries);
        check_gets(&reader, &entries, &mut Random(32));
        check_moves(&reader, &entries, &mut Random(33));
        reader.verify(&mut ReadContext::new(&TestClock::default())).unwrap();
        assert_eq!(scan(&mut reader.scanner(None, None), None).0, entries);
    }
}

#[test]
fn several_keys_are_found_together() {
    let entries = plain_rows(1000);
    let (bytes, _) = build_two_levels(&one_row_blocks(), Compression::LZ4, &entries, 500);
    let reader = open(&bytes, true).unwrap();
    let clock = TestClock::default();
    let keys: Vec<Vec<u8>> = (0..1100).step_by(3).map(|n| format!("row{n:06}").into()).collect();
    let hashed: Vec<_> = keys.iter().map(|key| HashedKey::new(key)).collect();
    let mut found = Vec::new();
    reader
        .get_many(&hashed, 0, &mut ReadContext::new(&clock), &mut |place, _, value| {
            found.push((keys[place].clone(), value.to_vec()));
        })
        .unwrap();
    let expected: Vec<_> =
        entries.iter().step_by(3).map(|(key, _, value)| (key.clone(), value.clone())).collect();
    assert_eq!(found, expected);
}

#[test]
fn late_partitions_are_waited_for() {
    let entries = plain_rows(5000);
    let (bytes, _) = build(&one_row_blocks(), Compression::NONE, &entries);
    let file = Arc::new(TestFile { bytes, is_late: true, ..TestFile::default() });
    let reader = TableReader::open(file.clone(), Some(test_cache()), pool()).unwrap();
    let (found, _) = scan(&mut reader.scanner(None, None), Some(&file));
    assert_eq!(found, entries);
    // The top index, each partition once, and the chunk below it.
    let partitions = partitions_of(&reader).len() as u64;
    assert_eq!(file.submits.load(Relaxed), 1 + 2 * partitions);
    // A scan of a part reads what it needs.
    let file = Arc::new(TestFile { bytes: file.bytes.clone(), ..TestFile::default() });
    let reader = TableReader::open(file.clone(), Some(test_cache()), pool()).unwrap();
    let (found, _) = scan(&mut reader.scanner(Some(b"row001000"), Some(b"row001010")), None);
    assert_eq!(found, entries[1000..1010]);
    assert!(file.submits.load(Relaxed) <= 5);
}

#[test]
fn blocks_are_copied_out_of_it_and_into_it() {
    let entries = plain_rows(3000);
    let options = TableOptions { block_size_bytes: 300, ..TableOptions::default() };
    let (bytes, summary) = build_two_levels(&options, Compression::LZ4, &entries, 1000);
    let reader = open(&bytes, true).unwrap();
    let mut copy = builder(options, Compression::LZ4);
    copy.cut_index_at(0, 700);
    let (mut meter, clock) = (WorkMeter::default(), TestClock::default());
    let mut scanner = reader.scanner(None, None);
    scanner.offer_blocks();
    let mut copied = 0;
    while let ScanPoll::Ready = scanner.poll(&mut meter, &clock).unwrap() {
        if let Some(block) = scanner.stored_block().unwrap()
            && copy.add_block(&block, &mut meter, &clock).unwrap()
        {
            copied += 1;
            scanner.skip_block();
            continue;
        }
        loop {
            let (key, trailer) = (scanner.key(), scanner.trailer());
            copy.add(key, trailer, scanner.value(), &mut meter, &clock).unwrap();
            if !scanner.advance().unwrap() {
                break;
            }
        }
    }
    assert!(copied + 2 >= summary.properties.data_blocks, "{copied}");
    copy.finish(&mut meter, &clock).unwrap();
    let copy = open(&copy.take_output(), true).unwrap();
    assert!(partitions_of(&copy).len() > partitions_of(&reader).len());
    check_walks(&copy, &entries);
    copy.verify(&mut ReadContext::new(&clock)).unwrap();
}

/// The bytes of a block and its payload put into `bytes`, with a checksum that fits.
pub(super) fn reseal(
    bytes: &mut [u8],
    handle: BlockHandle,
    layout: Layout,
    change: impl FnOnce(&mut [u8]),
) {
    let start = handle.offset as usize;
    let stored = &mut bytes[start..start + handle.stored_size as usize];
    let size = stored.len() - TRAILER_SIZE;
    change(&mut stored[..size]);
    let mut sealed = stored[..size].to_vec();
    let place = (&TABLE_ID, handle.offset);
    let encoding = Encoding { codec: CodecId::None, dictionary: 0, raw_size: size as u32 };
    block::seal(&mut sealed, 0, layout, encoding, place);
    stored.copy_from_slice(&sealed);
}

/// A table with two levels of index and no codec, and where its index blocks are.
fn uncompressed() -> (Vec<u8>, Vec<Entry>, Vec<(BlockHandle, Layout)>) {
    let entries = plain_rows(12);
    let (bytes, _) = build_two_levels(&one_row_blocks(), Compression::NONE, &entries, 250);
    let partitions = partitions_of(&open(&bytes, false).unwrap());
    let mut blocks: Vec<_> =
        partitions.iter().map(|record| (record.handle, Layout::IndexPartition)).collect();
    blocks.push((footer_of(&bytes).index, Layout::TopIndex));
    (bytes, entries, blocks)
}

/// Reads all of it in every way; only errors that name file and place may go wrong.
fn poke(bytes: &[u8], entries: &[Entry]) {
    let (mut meter, clock) = (WorkMeter::default(), TestClock::default());
    let is_named = |error: crate::Error| {
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        assert!(error.path().is_some() && error.offset().is_some(), "{error}");
    };
    let reader = open(bytes, true).unwrap();
    let context = &mut ReadContext::new(&clock);
    for (key, trailer, value) in entries {
        match reader.get(key, SEQUENCE_MAX, context) {
            Ok(found) => {
                assert!(found.is_none_or(|found| found.0 == *trailer && found.1 == value[..]))
            }
            Err(error) => is_named(error),
        }
        let mut cursor = reader.cursor();
        let _ = cursor.seek(key, *trailer, context).map_err(is_named);
        let _ = cursor.prev(context).map_err(is_named);
    }
    let mut cursor = reader.cursor();
    let mut moved = cursor.seek_to_last(context);
    while moved.is_ok() && cursor.valid() {
        moved = cursor.prev(context);
    }
    let _ = moved.map_err(is_named);
    let mut scanner = reader.scanner(Some(b"row000002"), Some(b"row000009"));
    loop {
        match scanner.poll(&mut meter, &clock) {
            Ok(ScanPoll::Ready) => while scanner.advance().unwrap() {},
            Ok(_) => break,
            Err(error) => break is_named(error),
        }
    }
    let _ = reader.verify(context).map_err(is_named);
}

#[test]
fn index_blocks_that_are_whole_but_wrong_do_no_harm() {
    let (bytes, entries, blocks) = uncompressed();
    assert!(blocks.len() > 3);
    for (handle, layout) in blocks {
        for at in 0..handle.stored_size as usize - TRAILER_SIZE {
            for flip in [0x01, 0x80, 0xff] {
                let mut changed = bytes.clone();
                reseal(&mut changed, handle, layout, |payload| payload[at] ^= flip);
                poke(&changed, &entries);
            }
        }
    }
}

#[test]
fn what_top_index_and_partitions_say_of_each_other_is_compared() {
    let (bytes, entries, blocks) = uncompressed();
    let (first, top) = (blocks[0].0, blocks[blocks.len() - 1].0);
    let count = blocks.len() - 1;
    let verify = |bytes: &[u8]| {
        let clock = TestClock::default();
        let error = open(bytes, false).unwrap().verify(&mut ReadContext::new(&clock)).unwrap_err();
        (error.kind(), error.offset(), error.to_string())
    };
    // Size and count of the first partition, as the top index has them.
    for (field, what) in [(12, "top index and partition differ"), (16, "differ")] {
        let mut changed = bytes.clone();
        let place = 16 + 8 * count + field;
        reseal(&mut changed, top, Layout::TopIndex, |payload| payload[place] ^= 1);
        let (kind, offset, text) = verify(&changed);
        assert_eq!((kind, offset), (ErrorKind::Corruption, Some(first.offset)), "{text}");
        assert!(text.contains(what), "{text}");
    }
    // A separator that is no longer the partition's last.
    let mut changed = bytes.clone();
    reseal(&mut changed, top, Layout::TopIndex, |payload| payload[16 + 60 * count] ^= 1);
    let (kind, offset, text) = verify(&changed);
    assert_eq!((kind, offset), (ErrorKind::Corruption, Some(top.offset)), "{text}");
    // A data block or a flat index where a partition should be.
    let mut changed = bytes.clone();
    reseal(&mut changed, first, Layout::FlatIndex, |_| ());
    let (kind, offset, text) = verify(&changed);
    assert_eq!((kind, offset), (ErrorKind::Corruption, Some(first.offset)), "{text}");
    // A top index in a table that says it has none, and the other way round.
    let flat = with_footer(&bytes, |footer| footer[80] = 0);
    assert_eq!(verify(&flat).0, ErrorKind::Corruption);
    let (flat, _) = build(&one_row_blocks(), Compression::NONE, &entries);
    let cut = with_footer(&flat, |footer| footer[80] = 1);
    assert_eq!(verify(&cut).0, ErrorKind::Corruption);
}

#[test]
fn a_partition_may_not_be_large() {
    let (bytes, _, blocks) = uncompressed();
    let mut changed = bytes.clone();
    let (handle, layout) = blocks[0];
    let end = (handle.offset + u64::from(handle.stored_size)) as usize;
    let payload_end = end - TRAILER_SIZE;
    let mut sealed = changed[handle.offset as usize..payload_end].to_vec();
    let place = (&TABLE_ID, handle.offset);
    let encoding = Encoding { codec: CodecId::Lz4, dictionary: 0, raw_size: (1 << 20) + 1 };
    block::seal(&mut sealed, 0, layout, encoding, place);
    changed[handle.offset as usize..end].copy_from_slice(&sealed);
    let clock = TestClock::default();
    let error = open(&changed, false).unwrap().verify(&mut ReadContext::new(&clock)).unwrap_err();
    assert!(error.to_string().contains("over its bound"), "{error}");
}

#[test]
fn a_partition_that_would_be_read_into_much_memory_is_not_read() {
    let mut entries = plain_rows(4);
    entries[0].2 = vec![7; 2 << 20];
    let (bytes, _) = build_two_levels(&one_row_blocks(), Compression::NONE, &entries, 100);
    let footer = footer_of(&bytes);
    let count = partitions_of(&open(&bytes, false).unwrap()).len();
    let mut changed = bytes.clone();
    reseal(&mut changed, footer.index, Layout::TopIndex, |payload| {
        let record = 16 + 8 * count;
        payload[record..record + 8].copy_from_slice(&0_u64.to_le_bytes());
        payload[record + 8..record + 12].copy_from_slice(&(3_u32 << 19).to_le_bytes());
    });
    let (mut meter, clock) = (WorkMeter::default(), TestClock::default());
    let reader = open(&changed, false).unwrap();
    let context = &mut ReadContext::new(&clock);
    let of_get = reader.get(&entries[0].0, 0, context).unwrap_err();
    let of_scan = reader.scanner(None, None).poll(&mut meter, &clock).err().unwrap();
    for error in [of_get, of_scan, reader.verify(context).unwrap_err()] {
        assert_eq!((error.kind(), error.offset()), (ErrorKind::Corruption, Some(0)));
        assert!(error.to_string().contains("stored size"), "{error}");
    }
}

#[test]
fn a_reader_of_version_1_refuses_two_levels() {
    let (bytes, entries) = small_two_level_table();
    read_everything(&bytes, &entries).unwrap();
    let footer = footer_of(&bytes);
    assert_eq!(bytes[bytes.len() - FOOTER_SIZE + 80], 1);
    // What a program did that knew no bits.
    let refused = footer.features.check_readable(Features::NONE, "table", footer.version, 1);
    let error = refused.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let text = error.to_string();
    assert!(text.contains("version 2") && text.contains("version 1"), "{text}");
}

/// The table of the sample: five rows, each in a block, of which two share a partition.
fn sample() -> Vec<u8> {
    let (mut meter, clock) = (WorkMeter::default(), TestClock::default());
    let mut table = builder(one_row_blocks(), Compression::NONE);
    table.cut_index_at(0, 160);
    table.forget_block_size();
    for (number, name) in ["basalt", "gneiss", "marble", "quartz", "shale"].iter().enumerate() {
        let trailer = Trailer::new(number as u64, ValueKind::Put);
        table.add(name.as_bytes(), trailer, b"rock", &mut meter, &clock).unwrap();
    }
    table.finish(&mut meter, &clock).unwrap();
    table.take_output()
}

#[test]
fn golden_sample() {
    let golden = parse_hex(include_str!("../../../../../docs/format/table-v2.hex"));
    let reader = open(&golden, false).unwrap();
    let clock = TestClock::default();
    let context = &mut ReadContext::new(&clock);
    reader.verify(context).unwrap();
    let partitions = partitions_of(&reader);
    let counts: Vec<_> = partitions.iter().map(|record| record.entry_count).collect();
    assert_eq!(counts, [2, 2, 1]);
    for (number, name) in ["basalt", "gneiss", "marble", "quartz", "shale"].iter().enumerate() {
        let (trailer, value) = reader.get(name.as_bytes(), 9, context).unwrap().unwrap();
        assert_eq!((trailer.sequence(), &value[..]), (number as u64, &b"rock"[..]));
    }
    assert!(reader.get(b"pumice", 9, context).unwrap().is_none());
    assert_eq!(sample(), golden, "what is written now is no longer format version 2");
}

#[test]
fn partitions_hold_what_a_flat_index_would() {
    let entries = random_entries(&mut Random(41), 300, 20);
    let options = TableOptions { block_size_bytes: 60, ..TableOptions::default() };
    let (flat, _) = build(&options, Compression::NONE, &entries);
    let (cut, _) = build_two_levels(&options, Compression::NONE, &entries, 500);
    let clock = TestClock::default();
    let context = &mut ReadContext::new(&clock);
    let flat = open(&flat, false).unwrap();
    let bytes = flat.index(context).unwrap();
    let index = flat.parse_index(&bytes).unwrap();
    let of = |index: &IndexBlock<'_>, number: usize| {
        let (separator, trailer) = index.separator(number).unwrap();
        let keys = (index.first_key(number).unwrap().to_vec(), separator.to_vec(), trailer);
        (index.record(number).unwrap(), keys)
    };
    let cut = open(&cut, false).unwrap();
    let mut number = 0;
    for record in partitions_of(&cut) {
        let bytes = cut.verified_partition(&record, context).unwrap();
        let partition = cut.parse_partition(&bytes, &record).unwrap();
        for place in 0..partition.block_count() {
            assert_eq!(of(&partition, place), of(&index, number));
            number += 1;
        }
    }
    assert_eq!(number, index.block_count());
}
