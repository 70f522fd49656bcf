//! Reads against a sorted list of the same entries.

use super::*;
use crate::base::compare_internal;
use crate::stats::Part;
use std::cmp::Ordering;

fn compare(entry: &Entry, key: &[u8], trailer: Trailer) -> Ordering {
    compare_internal((&entry.0, entry.1), (key, trailer))
}

fn assert_at(cursor: &TableCursor, expected: Option<&Entry>) {
    match expected {
        None => assert!(!cursor.valid()),
        Some((key, trailer, value)) => {
            assert!(cursor.valid(), "expected {key:?}");
            assert_eq!((cursor.key(), cursor.trailer()), (&key[..], *trailer));
            assert_eq!(cursor.value(), value);
            assert_eq!(cursor.value_slice(), value[..]);
        }
    }
}

pub(super) fn check_gets(reader: &Arc<TableReader>, entries: &[Entry], random: &mut Random) {
    let clock = TestClock::default();
    let mut meter = WorkMeter::default();
    for fill_cache in [false, true] {
        for _ in 0..150 {
            let mut key = entries[random.below(entries.len() as u64) as usize].0.clone();
            if random.below(3) == 0 {
                key.push(random.below(256) as u8);
            }
            let snapshot = match random.below(3) {
                0 => SEQUENCE_MAX,
                1 => random.below(1000),
                _ => entries[random.below(entries.len() as u64) as usize].1.sequence(),
            };
            let expected = entries
                .iter()
                .find(|entry| entry.0 == key && entry.1.sequence() <= snapshot)
                .map(|entry| (entry.1, &entry.2[..]));
            let mut context = ReadContext { clock: &clock, meter: Some(&mut meter), fill_cache };
            let found = reader.get(&key, snapshot, &mut context).unwrap();
            let found = found.as_ref().map(|(trailer, value)| (*trailer, &value[..]));
            assert_eq!(found, expected, "{key:?} at {snapshot}");
        }
    }
}

pub(super) fn check_walks(reader: &Arc<TableReader>, entries: &[Entry]) {
    let clock = TestClock::default();
    let mut context = ReadContext::new(&clock);
    let mut cursor = reader.cursor();
    cursor.seek_to_first(&mut context).unwrap();
    for entry in entries {
        assert_at(&cursor, Some(entry));
        cursor.next(&mut context).unwrap();
    }
    assert!(!cursor.valid());
    cursor.seek_to_last(&mut context).unwrap();
    for entry in entries.iter().rev() {
        assert_at(&cursor, Some(entry));
        cursor.prev(&mut context).unwrap();
    }
    assert!(!cursor.valid());
}

pub(super) fn check_moves(reader: &Arc<TableReader>, entries: &[Entry], random: &mut Random) {
    let clock = TestClock::default();
    let mut context = ReadContext::new(&clock);
    let mut cursor = reader.cursor();
    // The model's place; `None` when at no entry.
    let mut at: Option<usize> = None;
    for _ in 0..600 {
        match random.below(8) {
            0 => {
                cursor.seek_to_first(&mut context).unwrap();
                at = Some(0);
            }
            1 => {
                cursor.seek_to_last(&mut context).unwrap();
                at = Some(entries.len() - 1);
            }
            2 | 3 => {
                let (key, trailer, _) = &entries[random.below(entries.len() as u64) as usize];
                let mut key = key.clone();
                let mut trailer = *trailer;
                match random.below(4) {
                    0 => key.push(random.below(256) as u8),
                    1 => drop(key.pop()),
                    2 => trailer = Trailer::seek(random.below(2000)),
                    _ => {}
                }
                let behind =
                    entries.partition_point(|e| compare(e, &key, trailer) == Ordering::Less);
                if random.below(2) == 0 {
                    cursor.seek(&key, trailer, &mut context).unwrap();
                    at = Some(behind).filter(|at| *at < entries.len());
                } else {
                    cursor.seek_for_prev(&key, trailer, &mut context).unwrap();
                    let upto =
                        entries.partition_point(|e| compare(e, &key, trailer) != Ordering::Greater);
                    at = upto.checked_sub(1);
                }
            }
            4 | 5 => {
                cursor.next(&mut context).unwrap();
                at = at.map(|at| at + 1).filter(|at| *at < entries.len());
            }
            _ => {
                cursor.prev(&mut context).unwrap();
                at = at.and_then(|at| at.checked_sub(1));
            }
        }
        assert_at(&cursor, at.map(|at| &entries[at]));
    }
}

#[test]
fn every_read_agrees_with_the_model() {
    let codecs = CodecId::ALL.map(|codec| Compression {
        codec,
        effort: if matches!(codec, CodecId::None | CodecId::Snappy) { 0 } else { 1 },
        ..Compression::NONE
    });
    let mut random = Random(1);
    for (round, compression) in codecs.into_iter().cycle().take(15).enumerate() {
        let options = TableOptions {
            block_size_bytes: [1, 100, 700, 4096, 1 << 20][random.below(5) as usize],
            restart_interval: [1, 2, 3, 16, 100][random.below(5) as usize],
            filter_bits_per_key: [0, 10][round % 2],
            ..TableOptions::default()
        };
        let value_max = [0, 20, 300][round % 3];
        let entries = random_entries(&mut random, 40 + 100 * (round % 4), value_max);
        let partition_size = [1, 200, 1000][random.below(3) as usize];
        for (bytes, summary) in [
            build(&options, compression, &entries),
            build_two_levels(&options, compression, &entries, partition_size),
        ] {
            assert_eq!(summary.properties.entries, entries.len() as u64);
            let reader = open(&bytes, round % 3 != 0).unwrap();
            check_walks(&reader, &entries);
            check_gets(&reader, &entries, &mut random);
            check_moves(&reader, &entries, &mut random);
            let clock = TestClock::default();
            let verification = reader.verify(&mut ReadContext::new(&clock)).unwrap();
            assert_eq!(verification.entries, entries.len() as u64);
            assert_eq!(verification.data_blocks, summary.properties.data_blocks);
        }
    }
}

#[test]
fn long_lengths_and_wide_words() {
    let mut entries = Vec::new();
    for index in 0..60_u64 {
        let mut key = vec![b'k'; 100 + 200 * (index as usize / 20)];
        key.extend_from_slice(&index.to_be_bytes());
        let sequence = if index % 2 == 0 { SEQUENCE_MAX - index } else { index };
        let value = vec![index as u8; 20_000 * (index as usize % 3)];
        entries.push((key, Trailer::new(sequence, ValueKind::Put), value));
    }
    entries.sort_by(|a, b| compare_internal((&a.0, a.1), (&b.0, b.1)));
    for block_size_bytes in [4096, 1 << 20] {
        let options = TableOptions { block_size_bytes, ..TableOptions::default() };
        let (bytes, _) = build(&options, Compression::LZ4, &entries);
        let reader = open(&bytes, true).unwrap();
        check_walks(&reader, &entries);
        check_gets(&reader, &entries, &mut Random(5));
    }
}

#[test]
fn the_largest_value_and_a_large_encoded_block() {
    let row = |key: &[u8], value| (key.to_vec(), Trailer::new(1, ValueKind::Put), value);
    let mut random = Random(8);
    let noisy = (0..1_000_000).map(|_| random.below(16) as u8 * 16).collect::<Vec<u8>>();
    let entries = [row(b"a", vec![5; 64 << 20]), row(b"b", noisy), row(b"c", b"small".to_vec())];
    for compression in [Compression::NONE, zstd()] {
        let (bytes, _) = build(&TableOptions::default(), compression, &entries);
        let reader = open(&bytes, true).unwrap();
        check_walks(&reader, &entries);
    }
    let (mut meter, clock) = (WorkMeter::default(), TestClock::default());
    let mut table = builder(TableOptions::default(), Compression::NONE);
    let value = vec![0; (64 << 20) + 1];
    let error = table.add(b"a", entries[0].1, &value, &mut meter, &clock).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
}

#[test]
fn a_metered_get_books_its_parts_once() {
    let (bytes, summary) = build(&TableOptions::default(), zstd(), &plain_rows(100));
    let (clock, mut meter) = (TestClock::default(), WorkMeter::default());
    let reader = open(&bytes, true).unwrap();
    for _ in 0..2 {
        let mut context = ReadContext { meter: Some(&mut meter), ..ReadContext::new(&clock) };
        assert!(reader.get(b"row000042", 0, &mut context).unwrap().is_some());
    }
    // The second get found everything in the cache. Filter, index and data block were read once.
    assert_eq!(meter.ticks[Part::Io as usize], 3);
    assert_eq!(meter.ticks[Part::Checksum as usize], 3);
    let decoded = meter.codecs().decompressed_raw_bytes[CodecId::Zstd as usize];
    assert!(decoded >= summary.properties.data_raw_bytes, "{decoded}");
    assert!(meter.codecs().decompress_ticks[CodecId::Zstd as usize] >= 1);
}

#[test]
fn a_value_outlives_reader_and_cache() {
    let (bytes, _) = build(&TableOptions::default(), zstd(), &plain_rows(100));
    let clock = TestClock::default();
    let reader = open(&bytes, true).unwrap();
    let found = reader.get(b"row000042", 0, &mut ReadContext::new(&clock)).unwrap();
    drop(reader);
    assert_eq!(found.unwrap().1, b"value of row 42, layer 0"[..]);
}
