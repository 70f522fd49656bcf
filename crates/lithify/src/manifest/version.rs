//! The immutable set of live tables of one column family, by level.
//!
//! Level 0 holds whole runs that may overlap, newest first. Every deeper level is one sorted run:
//! its tables are ordered by key and share no user key. A user key never spans two tables of one
//! level, because tables are cut only between user keys.

use crate::base::{FileNumber, KeyWords, Level, SequenceNumber, TableId};
use crate::codec::{Compression, DictionaryHash, StoredFormat};
use crate::retention::WriteTimes;
use crate::table::TableReader;
use crate::{Error, ErrorKind, Result};
use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock, Weak};

/// The user keys that a table covers: from `smallest` to `largest`, both included unless
/// `largest_exclusive`, which is so when a range tombstone reaches further than any entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// The smallest user key.
    pub smallest: Box<[u8]>,
    /// The largest user key, or the first one behind the table.
    pub largest: Box<[u8]>,
    /// Whether `largest` itself is not covered.
    pub largest_exclusive: bool,
}

impl KeyRange {
    /// A range with both ends included.
    pub fn inclusive(smallest: &[u8], largest: &[u8]) -> Self {
        KeyRange { smallest: smallest.into(), largest: largest.into(), largest_exclusive: false }
    }

    /// Whether the whole range lies before `key`.
    pub fn ends_before(&self, key: &[u8]) -> bool {
        match self.largest[..].cmp(key) {
            Ordering::Less => true,
            Ordering::Equal => self.largest_exclusive,
            Ordering::Greater => false,
        }
    }

    /// Whether `key` lies in the range.
    pub fn contains(&self, key: &[u8]) -> bool {
        &self.smallest[..] <= key && !self.ends_before(key)
    }

    /// Whether the two ranges share a user key.
    pub fn overlaps(&self, other: &KeyRange) -> bool {
        !self.ends_before(&other.smallest) && !other.ends_before(&self.smallest)
    }

    /// The smallest range that covers both.
    #[must_use]
    pub fn union(&self, other: &KeyRange) -> KeyRange {
        let smallest = if self.smallest <= other.smallest { self } else { other };
        // Of two equal ends the included one reaches further.
        let largest = match self
            .largest
            .cmp(&other.largest)
            .then(other.largest_exclusive.cmp(&self.largest_exclusive))
        {
            Ordering::Less => other,
            _ => self,
        };
        KeyRange {
            smallest: smallest.smallest.clone(),
            largest: largest.largest.clone(),
            largest_exclusive: largest.largest_exclusive,
        }
    }
}

/// What the manifest knows of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMetadata {
    /// The number in its name.
    pub number: FileNumber,
    /// Its random identity.
    pub table_id: TableId,
    /// Its length in bytes.
    pub size_bytes: u64,
    /// Bytes of its data blocks before compression.
    pub raw_bytes: u64,
    /// The user keys that it covers.
    pub range: KeyRange,
    /// The smallest sequence number of its entries and range tombstones.
    pub smallest_sequence: SequenceNumber,
    /// The largest one.
    pub largest_sequence: SequenceNumber,
    /// Point entries.
    pub entries: u64,
    /// Deletes and single deletes among them.
    pub tombstones: u64,
    /// Range tombstones.
    pub range_tombstones: u64,
    /// The codec and effort that its data blocks were written with.
    pub compression: Compression,
    /// The target size of its data blocks, in bytes; 0 if a version wrote it that did not record it.
    pub block_size_bytes: u64,
    /// The dictionary that its data blocks were to be encoded with. Recorded with the size.
    pub dictionary: Option<DictionaryHash>,
    /// When its puts were written, if they say so.
    pub write_times: Option<WriteTimes>,
    /// Whether its format is not what its level's policy asks for: a trivial move left it so, or
    /// the policy changed its mind.
    pub codec_debt: bool,
    /// Whether its entries have sequence number 0 in the file and count as at `largest_sequence`.
    pub ingested: bool,
    /// The largest sequence number at which one of its entries became obsolete while a snapshot
    /// still needed it; 0 if none. Once no snapshot is older than this, a rewrite frees space.
    pub newest_obsolete_sequence: SequenceNumber,
}

impl FileMetadata {
    /// The format of its data blocks, as far as the manifest records it.
    pub fn stored_format(&self) -> StoredFormat {
        let block_size_bytes = usize::try_from(self.block_size_bytes).ok().filter(|size| *size > 0);
        StoredFormat {
            compression: Some(self.compression),
            block_size_bytes,
            dictionary: block_size_bytes.map(|_| self.dictionary),
        }
    }

    /// What a table says of itself against this: one error for each difference, none if it is the
    /// table that is meant.
    pub fn differences(&self, table: &TableReader) -> Vec<Error> {
        if table.table_id() != self.table_id {
            return vec![Error::corruption("this is another table than the manifest names")];
        }
        let properties = table.properties();
        let sequences = match self.ingested {
            // Its entries have no sequence numbers of their own.
            true => (self.smallest_sequence, self.largest_sequence),
            false => (properties.smallest_sequence, properties.largest_sequence),
        };
        let tombstones = properties.deletes.saturating_add(properties.single_deletes);
        // An older version recorded none.
        let block_size_bytes = match self.block_size_bytes {
            0 => 0,
            _ => properties.block_size_bytes,
        };
        let pairs = [
            ("size", self.size_bytes, table.size_bytes()),
            ("raw size", self.raw_bytes, properties.data_raw_bytes),
            ("entry count", self.entries, properties.entries),
            ("tombstone count", self.tombstones, tombstones),
            ("range tombstone count", self.range_tombstones, properties.range_tombstones),
            ("smallest sequence number", self.smallest_sequence, sequences.0),
            ("largest sequence number", self.largest_sequence, sequences.1),
            ("codec", self.compression.codec as u64, properties.codec),
            ("size of blocks", self.block_size_bytes, block_size_bytes),
        ];
        let differ =
            |what: &str| Error::corruption(format!("manifest and table differ in the {what}"));
        let of_pair = |(what, said, found): (&str, u64, u64)| {
            (said != found).then(|| differ(what).expected(said, found))
        };
        let mut differences: Vec<Error> = pairs.into_iter().filter_map(of_pair).collect();
        let range = &self.range;
        let is_same_range = range.smallest[..] == properties.smallest_key[..]
            && range.largest[..] == properties.largest_key[..]
            && range.largest_exclusive == (properties.largest_key_exclusive != 0);
        if self.write_times != properties.write_times() {
            differences.push(differ("times of writing"));
        }
        if !is_same_range {
            differences.push(differ("range of keys"));
        }
        differences
    }
}

/// A live table: its metadata, shared by all versions that hold it. When the last of them goes,
/// the file can be removed.
#[derive(Debug)]
pub struct TableFile {
    /// What the manifest knows of it.
    pub metadata: FileMetadata,
    /// Held by every object of this file: a move may change the metadata, not the file.
    life: Arc<Life>,
}

/// What all objects of one file share: it lives while one of them does.
#[derive(Default)]
pub(super) struct Life {
    reader: OnceLock<Arc<TableReader>>,
}

impl fmt::Debug for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Life").field("is_open", &self.reader.get().is_some()).finish()
    }
}

impl TableFile {
    /// A table with that metadata.
    pub fn new(metadata: FileMetadata) -> Arc<Self> {
        Arc::new(TableFile { metadata, life: Arc::default() })
    }

    /// The same file with another codec debt.
    pub fn with_codec_debt(self: &Arc<Self>, codec_debt: bool) -> Arc<Self> {
        if self.metadata.codec_debt == codec_debt {
            return Arc::clone(self);
        }
        let metadata = FileMetadata { codec_debt, ..self.metadata.clone() };
        Arc::new(TableFile { metadata, life: Arc::clone(&self.life) })
    }

    /// Dead once no version, cursor or job holds the file any more.
    pub(super) fn life(&self) -> Weak<Life> {
        Arc::downgrade(&self.life)
    }

    /// Gives the table its open file, which nothing was read from yet; the first one stays.
    pub fn set_reader(&self, reader: Arc<TableReader>) {
        if self.metadata.ingested {
            reader.assign_sequence(self.metadata.largest_sequence);
        }
        let _ = self.life.reader.set(reader);
    }

    /// What scans have paid for the dead entries of the table, since it was opened.
    pub(crate) fn dead_passes(&self) -> u64 {
        self.life.reader.get().map_or(0, |reader| reader.dead_passes())
    }

    /// The open file. [`crate::ErrorKind::Closed`] if the table was never opened, as when a
    /// manifest is only looked at.
    pub fn reader(&self) -> Result<&Arc<TableReader>> {
        self.life.reader.get().ok_or_else(|| {
            let number = self.metadata.number;
            Error::new(ErrorKind::Closed, format!("table {number} was not opened"))
        })
    }
}

/// The live tables of one column family.
#[derive(Clone, Debug)]
pub struct Version {
    levels: Vec<Vec<Arc<TableFile>>>,
    /// Of the largest keys of the tables of each level but the first.
    largest_words: Vec<KeyWords>,
    /// The places of the tables with range tombstones, by level.
    deleting: Vec<Box<[usize]>>,
}

impl Version {
    /// No tables, in `level_count` levels.
    pub fn empty(level_count: usize) -> Self {
        Version::new(vec![Vec::new(); level_count])
    }

    /// A version of these tables; sorts level 0 newest first and the others by key.
    pub fn new(mut levels: Vec<Vec<Arc<TableFile>>>) -> Self {
        for (level, tables) in levels.iter_mut().enumerate() {
            if level == 0 {
                tables.sort_by_key(|table| {
                    let metadata = &table.metadata;
                    std::cmp::Reverse((metadata.largest_sequence, metadata.number))
                });
                if planted!(Level0OldestFirst) {
                    tables.reverse();
                }
            } else {
                tables.sort_by(|a, b| a.metadata.range.smallest.cmp(&b.metadata.range.smallest));
            }
        }
        let largest_words = levels.iter().enumerate().map(|(level, tables)| match level {
            0 => KeyWords::default(),
            _ => KeyWords::new(tables.iter().map(|table| &table.metadata.range.largest[..])),
        });
        let deleting = levels.iter().map(|tables| {
            let deletes = |place: &usize| tables[*place].metadata.range_tombstones > 0;
            (0..tables.len()).filter(deletes).collect()
        });
        Version { largest_words: largest_words.collect(), deleting: deleting.collect(), levels }
    }

    /// The tables of all levels, for making the next version.
    pub fn to_levels(&self) -> Vec<Vec<Arc<TableFile>>> {
        self.levels.clone()
    }

    /// The number of levels, empty ones included.
    pub fn level_count(&self) -> usize {
        self.levels.len()
    }

    /// The tables of a level: level 0 newest first, the others by key.
    pub fn level(&self, level: Level) -> &[Arc<TableFile>] {
        &self.levels[level]
    }

    /// All tables with their levels.
    pub fn tables(&self) -> impl Iterator<Item = (Level, &Arc<TableFile>)> {
        self.levels
            .iter()
            .enumerate()
            .flat_map(|(level, tables)| tables.iter().map(move |table| (level, table)))
    }

    /// Stored bytes of a level.
    pub fn level_bytes(&self, level: Level) -> u64 {
        self.levels[level].iter().map(|table| table.metadata.size_bytes).sum()
    }

    /// The tables of a level that share a user key with `range`.
    pub fn overlapping(&self, level: Level, range: &KeyRange) -> Vec<Arc<TableFile>> {
        self.levels[level]
            .iter()
            .filter(|table| table.metadata.range.overlaps(range))
            .cloned()
            .collect()
    }

    /// Whether a table of a level shares a user key with `range`.
    pub fn has_overlap(&self, level: Level, range: &KeyRange) -> bool {
        let tables = &self.levels[level];
        if level == 0 {
            return tables.iter().any(|table| table.metadata.range.overlaps(range));
        }
        let place = self.first_to_reach(level, &range.smallest);
        tables.get(place).is_some_and(|table| table.metadata.range.overlaps(range))
    }

    /// In a level below 0: the place of the first table that does not end before `key`; the number of
    /// tables if all do.
    #[inline]
    pub fn first_to_reach(&self, level: Level, key: &[u8]) -> usize {
        let candidates = self.largest_words[level].candidates(key);
        let same = &self.levels[level][candidates.clone()];
        candidates.start + same.partition_point(|table| table.metadata.range.ends_before(key))
    }

    /// In a level below 0: the places of the tables that may hold keys from `lower` on, up to but
    /// without `upper`.
    pub fn places_between(
        &self,
        level: Level,
        lower: Option<&[u8]>,
        upper: Option<&[u8]>,
    ) -> Range<usize> {
        let tables = &self.levels[level];
        if tables.is_empty() {
            return 0..0;
        }
        let start = lower.map_or(0, |lower| self.first_to_reach(level, lower));
        let Some(upper) = upper else { return start..tables.len() };
        let reaching = match tables.get(start) {
            // The same table, as a rule.
            Some(table) if !table.metadata.range.ends_before(upper) => start,
            _ => self.first_to_reach(level, upper),
        };
        let begins_before =
            |table: &Arc<TableFile>| usize::from(table.metadata.range.smallest[..] < *upper);
        let end = reaching + tables.get(reaching).map_or(0, begins_before);
        start..end.max(start)
    }

    /// The tables at these places of a level that have range tombstones. What it takes does not grow with
    /// the tables: every cursor asks.
    pub fn with_range_tombstones(
        &self,
        level: Level,
        places: Range<usize>,
    ) -> impl Iterator<Item = &Arc<TableFile>> {
        let deleting = &self.deleting[level];
        let start = deleting.partition_point(|place| *place < places.start);
        let deleting = deleting[start..].iter().take_while(move |place| **place < places.end);
        deleting.map(move |place| &self.levels[level][*place])
    }

    /// In a level below 0: the one table that may hold `key`.
    pub fn table_for_key(&self, level: Level, key: &[u8]) -> Option<&Arc<TableFile>> {
        let tables = &self.levels[level];
        if tables.is_empty() {
            return None;
        }
        tables
            .get(self.first_to_reach(level, key))
            .filter(|table| &table.metadata.range.smallest[..] <= key)
    }

    /// The deepest level that holds a table.
    pub fn deepest_level(&self) -> Option<Level> {
        self.levels.iter().rposition(|tables| !tables.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::{KeyRange, TableFile, Version};
    use crate::manifest::edit_tests::metadata;

    fn range(smallest: &str, largest: &str) -> KeyRange {
        KeyRange {
            largest_exclusive: !largest.starts_with('='),
            ..KeyRange::inclusive(smallest.as_bytes(), largest.trim_start_matches('=').as_bytes())
        }
    }

    #[test]
    fn an_exclusive_end_is_not_covered() {
        assert!(range("b", "=d").contains(b"d") && !range("b", "d").contains(b"d"));
        assert!(!range("b", "d").contains(b"a") && range("b", "d").contains(b"cz"));
        assert!(range("b", "=d").overlaps(&range("d", "e")));
        assert!(!range("b", "d").overlaps(&range("d", "e")));
        assert!(!range("d", "e").overlaps(&range("b", "d")));
        assert!(range("a", "z").overlaps(&range("d", "=d")));
    }

    #[test]
    fn a_union_covers_both_and_no_more() {
        assert_eq!(range("b", "d").union(&range("a", "c")), range("a", "d"));
        assert_eq!(range("b", "d").union(&range("c", "=d")), range("b", "=d"));
        assert_eq!(range("c", "=d").union(&range("b", "d")), range("b", "=d"));
    }

    #[test]
    fn tables_are_ordered_and_found() {
        let table = |number, sequence, range: KeyRange| {
            let metadata =
                super::FileMetadata { number, largest_sequence: sequence, range, ..metadata() };
            TableFile::new(metadata)
        };
        let all = range("a", "=z");
        let version = Version::new(vec![
            vec![table(1, 5, all.clone()), table(3, 9, all.clone()), table(2, 9, all.clone())],
            vec![table(5, 1, range("m", "=q")), table(4, 1, range("c", "m"))],
            vec![],
        ]);
        let numbers = |level| {
            let tables: &[_] = version.level(level);
            tables.iter().map(|table| table.metadata.number).collect::<Vec<_>>()
        };
        assert_eq!((numbers(0), numbers(1)), (vec![3, 2, 1], vec![4, 5]));
        let found = |key: &[u8]| version.table_for_key(1, key).map(|table| table.metadata.number);
        let expected = [None, Some(4), Some(4), Some(5), Some(5), None];
        assert_eq!([b"b", b"c", b"l", b"m", b"q", b"r"].map(|key| found(key)), expected);
        assert_eq!(version.overlapping(1, &range("d", "m")).len(), 1);
        assert_eq!(version.overlapping(1, &range("d", "=m")).len(), 2);
        assert_eq!((version.deepest_level(), version.level_count()), (Some(1), 3));
        assert_eq!(version.level_bytes(1), 2 << 40);
    }

    #[test]
    fn searches_find_what_a_look_at_each_table_finds() {
        let table = |number: u64, range_tombstones, range: KeyRange| {
            TableFile::new(super::FileMetadata { number, range_tombstones, range, ..metadata() })
        };
        // Tables that touch, with a gap, of one key, and with keys whose first eight bytes are alike.
        let tables = vec![
            table(1, 0, range("b", "d")),
            table(2, 3, range("d", "=f")),
            table(3, 1, range("k", "=k")),
            table(4, 0, range("keys of rows 1", "=keys of rows 3")),
            table(5, 2, range("keys of rows 4", "keys of rows 5")),
            table(6, 0, range("keys of rows 5", "=x")),
        ];
        let version = Version::new(vec![vec![], tables.clone(), vec![]]);
        let mut keys: Vec<Vec<u8>> = (b'a'..=b'z').map(|letter| vec![letter]).collect();
        keys.extend([vec![], vec![255; 20]]);
        keys.extend((0..7).map(|digit| format!("keys of rows {digit}").into_bytes()));
        let bounds = || keys.iter().map(|key| Some(&key[..])).chain([None]);
        for (lower, upper) in bounds().flat_map(|lower| bounds().map(move |upper| (lower, upper))) {
            let is_within = |table: &&std::sync::Arc<TableFile>| {
                let range = &table.metadata.range;
                lower.is_none_or(|lower| !range.ends_before(lower))
                    && upper.is_none_or(|upper| range.smallest[..] < *upper)
            };
            let numbers = |tables: &mut dyn Iterator<Item = &std::sync::Arc<TableFile>>| {
                tables.map(|table| table.metadata.number).collect::<Vec<_>>()
            };
            let places = version.places_between(1, lower, upper);
            assert!(version.places_between(2, lower, upper).is_empty());
            if lower.zip(upper).is_some_and(|(lower, upper)| lower >= upper) {
                assert!(places.len() <= 1, "no key is within, a table may be around");
                continue;
            }
            let found = &version.level(1)[places.clone()];
            let expected = numbers(&mut tables.iter().filter(is_within));
            assert_eq!(numbers(&mut found.iter()), expected, "{lower:?} {upper:?}");
            let mut deleting = version.with_range_tombstones(1, places);
            let of_expected =
                |number: &u64| tables[*number as usize - 1].metadata.range_tombstones > 0;
            let expected: Vec<u64> = expected.into_iter().filter(of_expected).collect();
            assert_eq!(numbers(&mut deleting), expected, "{lower:?} {upper:?}");
        }
    }
}
