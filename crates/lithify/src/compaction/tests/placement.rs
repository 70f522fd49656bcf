//! Where tables from outside may go.

use crate::base::Level;
use crate::codec::Compression;
use crate::compaction::picker::BusySet;
use crate::compaction::placement::{deepest_free_level, end_of_gap};
use crate::manifest::{FileMetadata, KeyRange, TableFile, Version};

const LEVELS: usize = 5;

fn range(keys: &str) -> KeyRange {
    let (smallest, largest) = keys.split_once('-').unwrap();
    KeyRange::inclusive(smallest.as_bytes(), largest.as_bytes())
}

/// `(level, "a-c e-g")`.
fn version(levels: &[(Level, &str)]) -> Version {
    let mut tables = vec![Vec::new(); LEVELS];
    let mut number = 0;
    for (level, ranges) in levels {
        for keys in ranges.split_whitespace() {
            number += 1;
            tables[*level].push(TableFile::new(FileMetadata {
                number,
                table_id: [0; 16],
                size_bytes: 1000,
                raw_bytes: 2000,
                range: range(keys),
                smallest_sequence: number,
                largest_sequence: number,
                entries: 10,
                tombstones: 0,
                range_tombstones: 0,
                compression: Compression::NONE,
                block_size_bytes: 0,
                dictionary: None,
                codec_debt: false,
                ingested: false,
                newest_obsolete_sequence: 0,
                write_times: None,
            }));
        }
    }
    Version::new(tables)
}

#[test]
fn tables_go_as_deep_as_nothing_overlaps() {
    let version = version(&[(0, "k-m"), (2, "a-c p-q"), (3, "a-c r-s"), (4, "a-d t-u")]);
    let idle = BusySet::new();
    let place = |keys: &str| deepest_free_level(&version, 2, &idle, &range(keys));
    assert_eq!(place("e-j"), 4, "a gap in all levels");
    assert_eq!(place("v-z"), 4, "behind everything");
    assert_eq!(place("t-t"), 3, "the bottom overlaps");
    assert_eq!(place("r-s"), 2, "the middle overlaps");
    assert_eq!(place("p-p"), 0, "the base level overlaps");
    assert_eq!(place("l-l"), 0, "level 0 overlaps");
    assert_eq!(place("b-z"), 0);
    assert_eq!(deepest_free_level(&version, 3, &idle, &range("r-s")), 0, "above the base level");
}

#[test]
fn a_level_that_is_being_written_is_passed_by() {
    let version = version(&[(4, "a-d")]);
    let mut busy = BusySet::new();
    busy.reserve(4, &range("e-m"));
    let place = |busy: &BusySet, keys: &str| deepest_free_level(&version, 2, busy, &range(keys));
    assert_eq!((place(&busy, "m-z"), place(&busy, "n-z")), (3, 4));
    busy.reserve(3, &range("a-z"));
    busy.reserve(2, &range("a-z"));
    assert_eq!(place(&busy, "m-z"), 0);
    busy.release(4, &range("e-m"));
    assert_eq!((place(&busy, "m-z"), busy.running()), (4, 2));
}

#[test]
fn a_gap_ends_where_the_next_table_begins() {
    let version = version(&[(0, "k-m c-d"), (2, "a-b n-q"), (3, "r-s"), (4, "h-i t-u")]);
    let end = |level, key: &str| {
        let end = end_of_gap(&version, level, key.as_bytes());
        end.map(|key| String::from_utf8_lossy(key).into_owned())
    };
    assert_eq!(end(4, "e").as_deref(), Some("h"));
    assert_eq!(end(3, "e").as_deref(), Some("k"), "of the levels above only");
    assert_eq!(end(4, "bb").as_deref(), Some("c"));
    assert_eq!(end(4, "v"), None);
}
