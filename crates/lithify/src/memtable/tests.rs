//! The memtable against a sorted map, and against itself under threads.

use super::arena::Arena;
use super::entry::Entry;
use super::node::Prefix;
use super::{MemCursor, MemTable, RangeTombstone};
use crate::base::{SEQUENCE_MAX, SequenceNumber, Trailer, ValueKind};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A small generator with a seed, so that every run is the same.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn bytes(&mut self, alphabet: &[u8], size_max: u64) -> Vec<u8> {
        let size = self.below(size_max + 1);
        (0..size).map(|_| alphabet[self.below(alphabet.len() as u64) as usize]).collect()
    }
}

type Model = BTreeMap<(Vec<u8>, Reverse<Trailer>), Vec<u8>>;

fn value_of(sequence: SequenceNumber) -> Vec<u8> {
    sequence.to_le_bytes()[..(sequence % 9) as usize].to_vec()
}

/// Inserts the keys in their order with ascending sequence numbers, into both.
fn fill(keys: &[Vec<u8>]) -> (Arc<MemTable>, Model) {
    let (table, mut model) = (MemTable::new(), Model::new());
    for (index, key) in keys.iter().enumerate() {
        let sequence = index as u64 + 1;
        let kind = if sequence.is_multiple_of(7) { ValueKind::Delete } else { ValueKind::Put };
        let trailer = Trailer::new(sequence, kind);
        table.writer().insert(key, trailer, &value_of(sequence));
        model.insert((key.clone(), Reverse(trailer)), value_of(sequence));
    }
    (Arc::new(table), model)
}

fn here(cursor: &MemCursor) -> Option<(&[u8], Trailer, &[u8])> {
    cursor.valid().then(|| (cursor.key(), cursor.trailer(), cursor.value()))
}

type Row<'a> = Option<(&'a (Vec<u8>, Reverse<Trailer>), &'a Vec<u8>)>;

fn row<'a>(row: Row<'a>) -> Option<(&'a [u8], Trailer, &'a [u8])> {
    row.map(|((key, Reverse(trailer)), value)| (&key[..], *trailer, &value[..]))
}

fn check_walks(table: &Arc<MemTable>, model: &Model) {
    let mut cursor = table.cursor();
    assert_eq!(here(&cursor), None, "a new cursor is at no entry");
    cursor.seek_to_first();
    for expected in model {
        assert_eq!(here(&cursor), row(Some(expected)));
        cursor.next();
    }
    assert_eq!(here(&cursor), None);
    cursor.seek_to_last();
    for expected in model.iter().rev() {
        assert_eq!(here(&cursor), row(Some(expected)));
        cursor.prev();
    }
    assert_eq!(here(&cursor), None);
    cursor.prev();
    cursor.next();
    assert_eq!(here(&cursor), None, "from nowhere there is no step");
}

/// Seeks near a random key, then wanders.
fn check_seeks(table: &Arc<MemTable>, model: &Model, keys: &[Vec<u8>], random: &mut Random) {
    let mut cursor = table.cursor();
    for round in 0..2_000 {
        let mut key = keys[random.below(keys.len() as u64) as usize].clone();
        match random.below(4) {
            0 => key.push(random.below(256) as u8),
            1 => drop(key.pop()),
            _ => (),
        }
        let trailer = Trailer::seek(random.below(keys.len() as u64 + 2));
        let place = (key.clone(), Reverse(trailer));
        let mut expected = if round % 2 == 0 {
            cursor.seek(&key, trailer);
            model.range(place..).next()
        } else {
            cursor.seek_for_prev(&key, trailer);
            model.range(..=place).next_back()
        };
        for _ in 0..random.below(8) {
            assert_eq!(here(&cursor), row(expected));
            let Some((at, _)) = expected else { break };
            expected = if random.below(2) == 0 {
                cursor.next();
                model.range((Bound::Excluded(at), Bound::Unbounded)).next()
            } else {
                cursor.prev();
                model.range(..at).next_back()
            };
        }
        assert_eq!(here(&cursor), row(expected));
    }
}

fn check_gets(table: &MemTable, model: &Model, keys: &[Vec<u8>], random: &mut Random) {
    for _ in 0..2_000 {
        let mut key = keys[random.below(keys.len() as u64) as usize].clone();
        if random.below(4) == 0 {
            key.push(0);
        }
        let snapshot = random.below(keys.len() as u64 + 2);
        let place = (key.clone(), Reverse(Trailer::seek(snapshot)));
        let expected = row(model.range(place..).next().filter(|((at, _), _)| *at == key));
        let expected = expected.map(|(_, trailer, value)| (trailer.kind(), trailer, value));
        let found = table.get(&key, snapshot);
        assert_eq!(found.map(|(kind, trailer, value)| (Some(kind), trailer, value)), expected);
    }
}

fn check(keys: &[Vec<u8>]) {
    let mut random = Random(keys.len() as u64);
    let (table, model) = fill(keys);
    assert_eq!(table.entries(), keys.len() as u64);
    assert_eq!(table.first_sequence(), Some(1));
    assert_eq!(table.last_sequence(), Some(keys.len() as u64));
    let data_bytes = model.iter().map(|((key, _), value)| key.len() + value.len()).sum::<usize>();
    assert_eq!(table.data_bytes(), data_bytes);
    check_walks(&table, &model);
    check_seeks(&table, &model, keys, &mut random);
    check_gets(&table, &model, keys, &mut random);
}

#[test]
fn random_keys_agree_with_the_model() {
    let mut random = Random(1);
    let key = |random: &mut Random| (0..3).flat_map(|_| random.next().to_be_bytes()).collect();
    check(&(0..200_000).map(|_| key(&mut random)).collect::<Vec<_>>());
}

#[test]
fn keys_of_few_bytes_and_many_versions_agree_with_the_model() {
    let mut random = Random(2);
    check(&(0..20_000).map(|_| random.bytes(&[0, 0xff, b'a'], 7)).collect::<Vec<_>>());
}

#[test]
fn one_key_of_many_versions_agrees_with_the_model() {
    check(&vec![b"granite".to_vec(); 10_000]);
    check(&vec![Vec::new(); 1_000]);
}

#[test]
fn keys_that_are_prefixes_of_each_other_agree_with_the_model() {
    let mut random = Random(3);
    for fill in [0, b'a', 0xff] {
        let size = |random: &mut Random| random.below(300) as usize;
        check(&(0..5_000).map(|_| vec![fill; size(&mut random)]).collect::<Vec<_>>());
    }
}

#[test]
fn long_shared_prefixes_agree_with_the_model() {
    let mut random = Random(4);
    let groups: Vec<Vec<u8>> =
        (0..6).map(|g| [vec![b'p'; 5 * g], random.bytes(b"xyz", 200)].concat()).collect();
    let mut key = || {
        let group = &groups[random.below(6) as usize];
        let tail = random.below(1 << 20).to_be_bytes();
        [&group[..], &tail, random.bytes(&[0, 1], 2).as_slice()].concat()
    };
    check(&(0..30_000).map(|_| key()).collect::<Vec<_>>());
}

#[test]
fn ordered_loads_agree_with_the_model() {
    let ascending = |head: &str, count: u64| -> Vec<Vec<u8>> {
        (0..count).map(|i| [head.as_bytes(), &i.to_be_bytes()].concat()).collect()
    };
    check(&ascending("", 70_000));
    check(&ascending("a prefix that is longer than what a node keeps inline", 5_000));
    let mut descending = ascending("slate", 20_000);
    descending.reverse();
    check(&descending);
    // Several ascending loads beside each other, then the gaps.
    let mut random = Random(5);
    let mut next = [0_u64; 8];
    let mut key = |step: u64| {
        let group = random.below(8) as usize;
        next[group] += step;
        [&[group as u8][..], &next[group].to_be_bytes()].concat()
    };
    check(&(0..20_000).map(|_| key(2)).collect::<Vec<_>>());
}

#[test]
fn words_never_invert_the_order_of_keys() {
    let mut random = Random(6);
    let mut arena = Arena::new(None);
    for _ in 0..20_000 {
        let mut key = |size_max| random.bytes(&[0, 1, 0xfe, 0xff], size_max);
        let (a, b, sample) = (key(12), key(12), key(60));
        let (a, b) = if a < b { (a, b) } else { (b, a) };
        let head = random.below(40) as usize;
        let tail = |key: &[u8]| [&sample[..sample.len().min(head)], key].concat();
        let size = random.below(60) as usize;
        let entry = Entry::write(&mut arena, &sample, Trailer(0), b"");
        let prefix = Prefix::of(entry, size);
        assert!(prefix.word(&a) <= prefix.word(&b), "{a:?} {b:?} under {size} of {sample:?}");
        assert!(prefix.word(&tail(&a)) <= prefix.word(&tail(&b)));
    }
}

#[test]
fn a_cursor_meets_all_older_entries_while_the_writer_splits_under_it() {
    let table = Arc::new(MemTable::new());
    let mut random = Random(7);
    let mut model = Model::new();
    let mut insert = |model: &mut Model, sequence: SequenceNumber| {
        let (key, trailer) = (random.next().to_be_bytes(), Trailer::new(sequence, ValueKind::Put));
        table.writer().insert(&key, trailer, b"");
        model.insert((key.to_vec(), Reverse(trailer)), Vec::new());
    };
    (1..=2_000).for_each(|sequence| insert(&mut model, sequence));
    let old = model.clone();
    let (mut forward, mut backward) = (table.cursor(), table.cursor());
    forward.seek_to_first();
    backward.seek_to_last();
    let mut sequence = 2_000;
    let mut step = |cursor: &mut MemCursor, expected: Row<'_>, ahead: fn(&mut MemCursor)| {
        while cursor.valid() && cursor.trailer().sequence() > 2_000 {
            ahead(cursor);
        }
        assert_eq!(here(cursor), row(expected));
        ahead(cursor);
        for _ in 0..20 {
            sequence += 1;
            insert(&mut model, sequence);
        }
    };
    for (expected, reverse) in old.iter().zip(old.iter().rev()) {
        step(&mut forward, Some(expected), MemCursor::next);
        step(&mut backward, Some(reverse), MemCursor::prev);
    }
    check_walks(&table, &model);
}

/// The key of a row of the threaded test: every fifth row is one more version of an early key.
fn threaded_key(sequence: SequenceNumber) -> [u8; 8] {
    let of = if sequence.is_multiple_of(5) { sequence / 5 % 100 } else { sequence };
    // Bijective, so that other keys differ.
    of.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// Walks over everything and counts what the snapshot shows; the order must be strict.
fn count_visible(cursor: &mut MemCursor, visible: SequenceNumber, forward: bool) -> u64 {
    let mut count = 0;
    let mut last: Option<(Vec<u8>, Reverse<Trailer>)> = None;
    if forward {
        cursor.seek_to_first()
    } else {
        cursor.seek_to_last()
    }
    while cursor.valid() {
        let place = (cursor.key().to_vec(), Reverse(cursor.trailer()));
        if let Some(last) = last.replace(place.clone()) {
            assert!(if forward { last < place } else { last > place });
        }
        let sequence = cursor.trailer().sequence();
        assert_eq!(cursor.key(), threaded_key(sequence));
        assert_eq!(cursor.value(), value_of(sequence));
        count += u64::from(sequence <= visible);
        if forward { cursor.next() } else { cursor.prev() }
    }
    count
}

fn read_until(table: &Arc<MemTable>, visible: &AtomicU64, rows: u64, seed: u64) {
    let (mut cursor, mut random) = (table.cursor(), Random(seed));
    loop {
        let snapshot = visible.load(Ordering::Acquire);
        let forward = random.below(2) == 0;
        assert_eq!(count_visible(&mut cursor, snapshot, forward), snapshot);
        for _ in 0..200.min(snapshot) {
            let key = threaded_key(1 + random.below(snapshot));
            let found = table.get(&key, snapshot).map(|(_, trailer, _)| trailer.sequence());
            let Some(found) = found else { panic!("a visible row is missing") };
            assert!(found <= snapshot && threaded_key(found) == key);
        }
        if snapshot == rows {
            return;
        }
    }
}

#[test]
fn readers_see_every_row_of_their_snapshot_while_the_writer_goes_on() {
    const ROWS: u64 = 40_000;
    let (table, visible) = (Arc::new(MemTable::new()), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let (table, visible) = (&table, &visible);
            scope.spawn(move || read_until(table, visible, ROWS, seed));
        }
        let mut writer = table.writer();
        for sequence in 1..=ROWS {
            let trailer = Trailer::new(sequence, ValueKind::Put);
            writer.insert(&threaded_key(sequence), trailer, &value_of(sequence));
            visible.store(sequence, Ordering::Release);
        }
    });
}

#[test]
fn memory_is_charged_in_full() {
    let table = MemTable::new();
    assert!(table.is_empty() && table.memory_bytes() <= 12 << 10);
    assert_eq!((table.first_sequence(), table.last_sequence()), (None, None));
    let mut random = Random(8);
    let mut writer = table.writer();
    for sequence in 1..=100_000 {
        let key = [random.next().to_be_bytes(), random.next().to_be_bytes()].concat();
        writer.insert(&key, Trailer::new(sequence, ValueKind::Put), &[0; 84]);
    }
    assert_eq!(table.data_bytes(), 100_000 * 100);
    let overhead = table.memory_bytes() - table.data_bytes();
    assert!((1_600_000..12_000_000).contains(&overhead), "{overhead} bytes of nodes and headers");
    let before = table.memory_bytes();
    writer.insert(b"boulder", Trailer::new(100_001, ValueKind::Put), &vec![1; 5 << 20]);
    let grown = table.memory_bytes() - before;
    assert!((5 << 20..=(5 << 20) + 4096).contains(&grown), "a large value takes {grown} bytes");
    drop(writer);
    assert_eq!(table.get(b"boulder", SEQUENCE_MAX).map(|row| row.2.len()), Some(5 << 20));
}

#[test]
fn values_of_all_sizes_come_back() {
    let table = MemTable::new();
    let sizes = (0..24).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1]);
    for (index, size) in sizes.clone().enumerate() {
        let trailer = Trailer::new(index as u64, ValueKind::Put);
        table.writer().insert(&(index as u32).to_be_bytes(), trailer, &vec![index as u8; size]);
    }
    for (index, size) in sizes.enumerate() {
        let row = table.get(&(index as u32).to_be_bytes(), SEQUENCE_MAX);
        assert!(row.is_some_and(|(_, _, value)| value == vec![index as u8; size]), "{size}");
    }
}

#[test]
fn range_tombstones_come_newest_first() {
    let table = MemTable::new();
    assert!(!table.has_range_tombstones() && table.range_tombstones().next().is_none());
    table.writer().delete_range(b"b", b"d", 9);
    assert!(table.has_range_tombstones() && !table.is_empty());
    assert_eq!((table.entries(), table.data_bytes()), (0, 2));
    assert_eq!((table.first_sequence(), table.last_sequence()), (Some(9), Some(9)));
    table.writer().delete_range(b"", b"zz", 10);
    table.writer().delete_range(b"c", b"cc", 12);
    let expected = [(&b"c"[..], &b"cc"[..], 12), (b"", b"zz", 10), (b"b", b"d", 9)]
        .map(|(start, end, sequence)| RangeTombstone { start, end, sequence });
    assert_eq!(table.range_tombstones().collect::<Vec<_>>(), expected);
    assert_eq!(table.get(b"c", SEQUENCE_MAX), None);
}

#[test]
fn a_cursor_keeps_its_memtable_alive_in_any_thread() {
    let table = Arc::new(MemTable::new());
    for sequence in 1..=1_000_u64 {
        let trailer = Trailer::new(sequence, ValueKind::Put);
        table.writer().insert(&sequence.to_be_bytes(), trailer, b"");
    }
    let mut cursor = table.cursor();
    cursor.seek(&500_u64.to_be_bytes(), Trailer::seek(SEQUENCE_MAX));
    drop(table);
    let walk = std::thread::spawn(move || {
        let mut count = 0;
        while cursor.valid() {
            count += 1;
            cursor.next();
        }
        count
    });
    assert_eq!(walk.join().ok(), Some(501));
}
