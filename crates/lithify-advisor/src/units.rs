//! Rows as a database hands them to its codec: blocks, pages and chunks.
//!
//! Each shape says where its rules come from. What a unit has beside rows is only as exact as it has
//! to be: bytes that are the same in every row leave little behind a codec.

use crate::error::Result;
use crate::rows::{Row, Rows};

/// How a database lays rows out before its codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Shape {
    /// Lithify's data blocks, made by its own builder.
    Lithify,
    /// RocksDB's data blocks (`table/block_based/block_builder.cc`, `flush_block_policy.cc`): shared
    /// prefixes, a restart every 16 rows, 8 bytes behind each key.
    RocksDb,
    /// The same blocks with MyRocks' rows (`rdb_datadic.cc`): the number of the index before the key,
    /// texts in groups of eight bytes with a ninth behind each.
    MyRocks,
    /// InnoDB's pages (`page0page.h`, `rem0rec.h`) after a load in key order: 15/16 full.
    InnoDb,
    /// WiredTiger's leaf pages (`src/reconcile/rec_row.c`): cells of keys and values.
    WiredTiger,
    /// Cassandra's data file (`UnfilteredSerializer.java`), cut without regard to rows.
    Cassandra,
    /// The bytes of the input as they are, cut without regard to rows.
    Bytes,
}

impl Shape {
    /// Whether a unit ends between rows alone, so that a large row makes a large unit.
    pub(crate) fn holds_whole_rows(self) -> bool {
        !matches!(self, Shape::Cassandra | Shape::Bytes)
    }
}

/// What a unit is of its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// Any part of it, or there are no files.
    #[default]
    Inner,
    /// The rest of a file that is larger than a unit.
    End,
    /// All of it.
    Whole,
}

/// What a codec is given at once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Unit {
    /// What it is given.
    pub bytes: Vec<u8>,
    /// What the rows in it take in the input.
    pub data_bytes: f64,
    /// The rows in it; parts of rows count as parts.
    pub rows: f64,
    /// What it is of its file.
    pub part: Part,
}

/// The units of some neighbouring rows, at most so many of them, evenly spaced. A unit that the rows
/// do not fill is left out unless it is the only one, or the end of a file. Where files end there are as
/// many units as there are: few would be those of large files, or of small ones.
///
/// # Errors
/// A row is longer than the engine takes.
pub fn cut(rows: &Rows, shape: Shape, size_bytes: usize, count_max: usize) -> Result<Vec<Unit>> {
    let mut units = match shape {
        Shape::Lithify => lithify_blocks(rows, size_bytes)?,
        Shape::RocksDb => whole_rows(rows, size_bytes, RocksDbBlock::default()),
        Shape::MyRocks => whole_rows(&myrocks_rows(rows), size_bytes, RocksDbBlock::default()),
        Shape::InnoDb => whole_rows(rows, size_bytes, InnoDbPage::default()),
        Shape::WiredTiger => whole_rows(rows, size_bytes, WiredTigerPage::default()),
        Shape::Cassandra => stream(rows.iter(), size_bytes, &mut cassandra_row),
        Shape::Bytes => pieces_of_files(rows, size_bytes),
    };
    if units.len() > count_max && units.iter().all(|unit| unit.part == Part::Inner) {
        let count = units.len();
        let mut kept = (0..count_max).map(|at| (2 * at + 1) * count / (2 * count_max)).peekable();
        let mut at = 0;
        units.retain(|_| {
            at += 1;
            kept.next_if_eq(&(at - 1)).is_some()
        });
    }
    Ok(units)
}

/// Lithify's own cuts: the rows at the bottom of a tree, where sequence numbers are zero.
fn lithify_blocks(rows: &Rows, size_bytes: usize) -> Result<Vec<Unit>> {
    let mut units: Vec<Unit> = Vec::new();
    let mut before = 0;
    let entries: Vec<Row<'_>> = rows.iter().collect();
    let pairs = entries.iter().map(|row| (row.key, row.value));
    for (bytes, count) in lithify::table::cut_rows(pairs, size_bytes)? {
        let held = &entries[before..before + count];
        before += count;
        let data_bytes = held.iter().map(|row| row.data_bytes as f64).sum();
        units.push(Unit { bytes, data_bytes, rows: count as f64, part: Part::Inner });
    }
    Ok(without_rest(units))
}

/// The last unit is what is left over: it counts only where there is no other.
fn without_rest(mut units: Vec<Unit>) -> Vec<Unit> {
    if units.len() > 1 {
        units.pop();
    }
    units
}

/// Units that hold whole rows.
trait Layout: Clone {
    /// Bytes of the unit as it is, its end included.
    fn size(&self) -> usize;
    /// One more row.
    fn add(&mut self, row: &Row<'_>);
    /// Whether a row that makes it so large comes into the next unit.
    fn ends_before(&self, size_with: usize, size_bytes: usize) -> bool;
    /// The unit's bytes.
    fn finish(self, size_bytes: usize) -> Vec<u8>;
}

fn whole_rows<L: Layout>(rows: &Rows, size_bytes: usize, empty: L) -> Vec<Unit> {
    let (mut units, mut layout, mut unit) = (Vec::new(), empty.clone(), Unit::default());
    for row in rows.iter() {
        let size_with = layout.size() + row.key.len() + row.value.len();
        if unit.rows > 0.0 && layout.ends_before(size_with, size_bytes) {
            let full = std::mem::replace(&mut layout, empty.clone());
            units.push(Unit { bytes: full.finish(size_bytes), ..std::mem::take(&mut unit) });
        }
        layout.add(&row);
        unit.rows += 1.0;
        unit.data_bytes += row.data_bytes as f64;
    }
    if unit.rows > 0.0 && units.is_empty() {
        units.push(Unit { bytes: layout.finish(size_bytes), ..unit });
    }
    units
}

fn put_varint(bytes: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[derive(Clone, Default)]
struct RocksDbBlock {
    bytes: Vec<u8>,
    last: Vec<u8>,
    restarts: Vec<u8>,
    rows: usize,
}

impl Layout for RocksDbBlock {
    fn size(&self) -> usize {
        self.bytes.len() + self.restarts.len() + 4
    }

    fn add(&mut self, row: &Row<'_>) {
        // A key is followed by sequence number and kind: number 0, kind 1 at the bottom.
        let key = [row.key, &[1, 0, 0, 0, 0, 0, 0, 0]].concat();
        let shared = match self.rows.is_multiple_of(16) {
            true => {
                self.restarts.extend_from_slice(&(self.bytes.len() as u32).to_le_bytes());
                0
            }
            false => key.iter().zip(&self.last).take_while(|(a, b)| a == b).count(),
        };
        put_varint(&mut self.bytes, shared);
        put_varint(&mut self.bytes, key.len() - shared);
        put_varint(&mut self.bytes, row.value.len());
        self.bytes.extend_from_slice(&key[shared..]);
        self.bytes.extend_from_slice(row.value);
        self.last = key;
        self.rows += 1;
    }

    fn ends_before(&self, size_with: usize, size_bytes: usize) -> bool {
        // A block that is nine tenths full ends before a row that would make it too large.
        let is_full = self.size() >= size_bytes;
        is_full || (size_with + 11 > size_bytes && self.size() * 10 > size_bytes * 9)
    }

    fn finish(mut self, _size_bytes: usize) -> Vec<u8> {
        let count = self.restarts.len() as u32 / 4;
        self.bytes.extend_from_slice(&self.restarts);
        self.bytes.extend_from_slice(&count.to_le_bytes());
        self.bytes
    }
}

/// Rows as MyRocks has them. A key of whole numbers has them side by side.
fn myrocks_rows(rows: &Rows) -> Rows {
    const GROUP: usize = 8;
    let mut encoded = Rows::default();
    let (mut key, mut value) = (Vec::new(), Vec::new());
    for row in rows.iter() {
        key.clear();
        key.extend_from_slice(&[0, 0, 1, 4]);
        let is_numbers = row.partition_bytes == GROUP && row.key.len().is_multiple_of(GROUP);
        for group in row.key.chunks(GROUP) {
            key.extend_from_slice(group);
            if !is_numbers {
                key.resize(key.len() + GROUP - group.len(), 0);
                key.push(group.len() as u8 + 1);
            }
        }
        value.clear();
        value.extend_from_slice(&(row.value.len() as u32).to_le_bytes());
        value.extend_from_slice(row.value);
        encoded.push(Row { key: &key, value: &value, ..row });
    }
    encoded
}

/// Bytes of a page beside records: file header, page header, the two records at its ends, trailer.
const INNODB_PAGE_BYTES: usize = 38 + 56 + 26 + 8;

#[derive(Clone)]
struct InnoDbPage {
    records: Vec<u8>,
    slots: Vec<u8>,
    rows: usize,
}

impl Default for InnoDbPage {
    fn default() -> Self {
        let mut records = vec![0; INNODB_PAGE_BYTES - 8];
        // Counts and places, the index, and the two records at the ends.
        records[38..56]
            .copy_from_slice(&[0, 65, 59, 94, 129, 4, 0, 0, 0, 0, 59, 50, 0, 2, 1, 1, 1, 2]);
        records[71] = 23;
        records[94..].copy_from_slice(b"\x01\x00\x02\x00\x1cinfimum\0\x07\0\x0b\0\0supremum");
        InnoDbPage { records, slots: Vec::new(), rows: 0 }
    }
}

impl Layout for InnoDbPage {
    fn size(&self) -> usize {
        self.records.len() + self.slots.len() + 8
    }

    fn add(&mut self, row: &Row<'_>) {
        // Lengths of the two fields from the last on, of one byte below 128; then the record's header.
        let before = self.records.len();
        for length in [row.value.len(), row.key.len()] {
            match length {
                0..128 => self.records.push(length as u8),
                _ => self.records.extend_from_slice(&(length as u16 | 0x8000).to_be_bytes()),
            }
        }
        let heap_number = (self.rows as u16 + 2) << 3;
        let lengths = self.records.len() - before;
        let next = (row.key.len() + row.value.len() + 18 + lengths) as u16;
        // Every fourth record owns the others of its slot.
        self.records.push(if self.rows % 4 == 3 { 4 } else { 0 });
        self.records.extend_from_slice(&heap_number.to_be_bytes());
        self.records.extend_from_slice(&next.to_be_bytes());
        self.records.extend_from_slice(row.key);
        // Transaction and rollback pointer as pages of 10.11 have them: the pointer's offset goes on by
        // one undo record a row.
        let undo = (self.rows * (row.key.len() + 8)) as u16;
        self.records.extend_from_slice(&[0, 0, 0, 0, 0x07, 0xf7, 0xf6, 0, 0, 0x01, 0x3a]);
        self.records.extend_from_slice(&undo.to_be_bytes());
        self.records.extend_from_slice(row.value);
        self.rows += 1;
        if self.rows.is_multiple_of(4) {
            self.slots.extend_from_slice(&(self.records.len() as u16).to_be_bytes());
        }
    }

    fn ends_before(&self, size_with: usize, size_bytes: usize) -> bool {
        size_with + 20 > size_bytes / 16 * 15
    }

    fn finish(mut self, size_bytes: usize) -> Vec<u8> {
        // The directory grows from the end; between it and the records is nothing.
        let used = self.records.len() + self.slots.len() + 8;
        self.records.resize(self.records.len() + size_bytes.saturating_sub(used), 0);
        self.records.extend(self.slots.iter().rev());
        self.records.extend_from_slice(&[0; 8]);
        self.records
    }
}

#[derive(Clone)]
struct WiredTigerPage {
    cells: Vec<u8>,
}

impl Default for WiredTigerPage {
    fn default() -> Self {
        // Headers of the page and of the block.
        WiredTigerPage { cells: vec![0; 28 + 12] }
    }
}

/// A short cell has its length in the first byte, others less 64 as a packed number behind it.
fn put_cell(cells: &mut Vec<u8>, kind: u8, bytes: &[u8]) {
    match bytes.len() {
        length @ 0..64 => cells.push((length as u8) << 2 | kind),
        length => {
            cells.push(kind << 4 | 0x80);
            match length - 64 {
                small @ 0..64 => cells.push(0x80 | small as u8),
                rest @ 64..8256 => {
                    cells.extend_from_slice(&(0xc000 | (rest - 64) as u16).to_be_bytes());
                }
                large => {
                    cells.push(0xe3);
                    cells.extend_from_slice(&(large as u32).to_be_bytes()[1..]);
                }
            }
        }
    }
    cells.extend_from_slice(bytes);
}

impl Layout for WiredTigerPage {
    fn size(&self) -> usize {
        self.cells.len()
    }

    fn add(&mut self, row: &Row<'_>) {
        put_cell(&mut self.cells, 1, row.key);
        put_cell(&mut self.cells, 3, row.value);
    }

    fn ends_before(&self, size_with: usize, size_bytes: usize) -> bool {
        size_with + 6 > size_bytes
    }

    fn finish(self, _size_bytes: usize) -> Vec<u8> {
        self.cells
    }
}

/// Files one behind the other, each cut at every multiple of the size and at its end. What is left of a
/// file that goes on is left out, unless it is all there is.
fn pieces_of_files(rows: &Rows, size_bytes: usize) -> Vec<Unit> {
    let append = &mut |row: &Row<'_>, bytes: &mut Vec<u8>| {
        bytes.extend_from_slice(row.value);
        let line_end = row.data_bytes.saturating_sub(row.value.len() as u64);
        bytes.extend(b"\r\n".iter().skip(usize::from(line_end == 1)).take(line_end as usize));
    };
    let (mut units, mut of_file): (Vec<Unit>, Vec<Row<'_>>) = (Vec::new(), Vec::new());
    for row in rows.iter() {
        of_file.push(row);
        if row.file_bytes == 0 {
            continue;
        }
        units.extend(stream(of_file.drain(..), size_bytes, append));
        if let Some(last) = units.last_mut() {
            let is_whole = row.file_bytes <= size_bytes as u64;
            last.part = if is_whole { Part::Whole } else { Part::End };
        }
    }
    let is_only = units.is_empty();
    let rest = stream(of_file.into_iter(), size_bytes, append);
    units.extend(rest.into_iter().filter(|unit| is_only || unit.bytes.len() == size_bytes));
    units
}

/// Rows one behind the other, cut at every multiple of the size.
fn stream<'a>(
    rows: impl Iterator<Item = Row<'a>>,
    size_bytes: usize,
    append: &mut dyn FnMut(&Row<'_>, &mut Vec<u8>),
) -> Vec<Unit> {
    let (mut units, mut bytes) = (Vec::new(), Vec::new());
    // What a byte of the stream stands for, in the input.
    let (mut data_bytes, mut written, mut count, mut ends_file) = (0.0, 0.0, 0.0, false);
    for row in rows {
        let before = bytes.len();
        append(&row, &mut bytes);
        written += (bytes.len() - before) as f64;
        data_bytes += row.data_bytes as f64;
        count += 1.0;
        ends_file = row.file_bytes > 0;
        while bytes.len() >= size_bytes {
            let rest = bytes.split_off(size_bytes);
            units.push(std::mem::replace(&mut bytes, rest));
        }
    }
    if (units.is_empty() || ends_file) && !bytes.is_empty() {
        units.push(bytes);
    }
    let share = |unit: Vec<u8>| {
        let part = unit.len() as f64 / written;
        Unit { bytes: unit, data_bytes: part * data_bytes, rows: part * count, part: Part::Inner }
    };
    units.into_iter().map(share).collect()
}

/// A partition with one row of one column: key, no deletion, flags, lengths, time of writing, cell.
fn cassandra_row(row: &Row<'_>, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&(row.key.len() as u16).to_be_bytes());
    bytes.extend_from_slice(row.key);
    bytes.extend_from_slice(&[0x7f, 0xff, 0xff, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0]);
    // The time of writing is a difference to the file's first one: three bytes that vary.
    let time = row.key.iter().fold(7_u32, |sum, byte| sum.wrapping_mul(31) + u32::from(*byte));
    let length = row.value.len();
    bytes.push(0x24);
    bytes.extend_from_slice(&((length + 8) as u16 | 0x8000).to_be_bytes());
    bytes.push(0x12);
    bytes.extend_from_slice(&[0xc0 | (time >> 16) as u8 & 0x1f, (time >> 8) as u8, time as u8]);
    bytes.push(0x08);
    match length {
        0..128 => bytes.push(length as u8),
        _ => bytes.extend_from_slice(&(length as u16 | 0x8000).to_be_bytes()),
    }
    bytes.extend_from_slice(row.value);
    bytes.push(0x01);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(count: usize, value: usize) -> Rows {
        let mut rows = Rows::default();
        for number in 0..count {
            let key = format!("key{number:06}");
            let value = vec![b'v'; value];
            let data_bytes = value.len() as u64 + 1;
            rows.push(Row {
                key: key.as_bytes(),
                partition_bytes: 9,
                value: &value,
                data_bytes,
                file_bytes: 0,
            });
        }
        rows
    }

    const SHAPES: [Shape; 7] = [
        Shape::MyRocks,
        Shape::Lithify,
        Shape::RocksDb,
        Shape::InnoDb,
        Shape::WiredTiger,
        Shape::Cassandra,
        Shape::Bytes,
    ];

    #[test]
    fn units_have_about_their_size_and_name_what_they_hold() {
        let rows = rows(1000, 100);
        for shape in SHAPES {
            let units = cut(&rows, shape, 4096, usize::MAX).expect("is cut");
            assert!(units.len() > 10, "{shape:?}");
            for unit in &units {
                let size = unit.bytes.len();
                assert!((3600..=4400).contains(&size), "{shape:?}: {size}");
                assert!((unit.data_bytes / unit.rows - 101.0).abs() < 1e-6, "{shape:?}: {unit:?}");
            }
            let few = cut(&rows, shape, 4096, 3).expect("is cut");
            assert_eq!(few.len(), 3, "{shape:?}");
            assert!(few.iter().all(|unit| units.contains(unit)));
        }
    }

    #[test]
    fn few_rows_and_large_ones_make_a_unit() {
        for shape in SHAPES {
            assert_eq!(cut(&rows(3, 10), shape, 4096, 9).expect("is cut").len(), 1, "{shape:?}");
            let large = cut(&rows(3, 10_000), shape, 4096, 9).expect("is cut");
            assert!(large.len() >= 2, "{shape:?}");
            assert!(cut(&Rows::default(), shape, 4096, 9).expect("is cut").is_empty(), "{shape:?}");
        }
    }

    #[test]
    fn bytes_are_those_of_the_input() {
        let mut rows = Rows::default();
        for (value, data_bytes) in [("one", 4), ("two", 5), ("three", 5)] {
            rows.push(Row {
                key: b"k",
                partition_bytes: 1,
                value: value.as_bytes(),
                data_bytes,
                file_bytes: 0,
            });
        }
        let units = cut(&rows, Shape::Bytes, 100, 9).expect("is cut");
        assert_eq!(units[0].bytes, b"one\ntwo\r\nthree");
    }

    #[test]
    fn files_are_cut_at_their_ends() {
        let mut rows = Rows::default();
        // A file of two rows, one of a row, and the start of one that goes on.
        for (value, file_bytes) in [(3000, 0), (2000, 5000), (100, 100), (9000, 0)] {
            let (value, data_bytes) = (vec![b'v'; value], value as u64);
            rows.push(Row { key: b"k", partition_bytes: 1, value: &value, data_bytes, file_bytes });
        }
        let units = cut(&rows, Shape::Bytes, 4096, 1).expect("is cut");
        let found: Vec<(usize, Part)> =
            units.iter().map(|unit| (unit.bytes.len(), unit.part)).collect();
        let (inner, end, whole) = (Part::Inner, Part::End, Part::Whole);
        assert_eq!(found, [(4096, inner), (904, end), (100, whole), (4096, inner), (4096, inner)]);
        assert!(units.iter().all(|one| (one.data_bytes - one.bytes.len() as f64).abs() < 1e-6));
        let larger = cut(&rows, Shape::Bytes, 8192, 9).expect("is cut");
        assert_eq!((larger[0].bytes.len(), larger[0].part), (5000, whole));
    }
}
