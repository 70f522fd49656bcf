//! What reads load of a file, and what they leave as heat.

use super::*;
use crate::table::heat::Loads;

/// A table of blocks of 1 KiB on a file that is read past the page cache or through it.
fn table(is_direct: bool) -> Arc<TableReader> {
    let options = TableOptions { block_size_bytes: 1024, ..TableOptions::default() };
    let (bytes, _) = build(&options, Compression::NONE, &plain_rows(5_000));
    let file = TestFile { bytes, is_direct, ..TestFile::default() };
    TableReader::open(Arc::new(file), Some(test_cache()), pool()).unwrap()
}

/// Goes over so many rows from a key in the middle, once index and filter are there.
fn scan_rows(reader: &Arc<TableReader>, rows: usize) -> (Loads, u64) {
    let clock = TestClock::default();
    let mut cursor = reader.cursor();
    cursor.seek_to_first(&mut ReadContext::new(&clock)).unwrap();
    reader.take_loads();
    let mut meter = WorkMeter::default();
    let mut context = ReadContext { clock: &clock, meter: Some(&mut meter), fill_cache: true };
    cursor.seek(b"row002500", Trailer::new(SEQUENCE_MAX, ValueKind::Put), &mut context).unwrap();
    for _ in 1..rows {
        cursor.next(&mut context).unwrap();
    }
    (reader.take_loads(), meter.reads)
}

#[test]
fn only_the_block_where_a_cursor_is_placed_is_a_point() {
    for is_direct in [false, true] {
        let (loads, _) = scan_rows(&table(is_direct), 1);
        assert_eq!(loads, Loads { point_loads: 1, scanned_bytes: 0 });
        // Some 25 rows are in a block.
        let (loads, _) = scan_rows(&table(is_direct), 60);
        assert_eq!(loads.point_loads, 1);
        assert!((2_000..4_000).contains(&loads.scanned_bytes), "{loads:?}");
    }
    let reader = table(false);
    let clock = TestClock::default();
    reader.get(b"row000001", SEQUENCE_MAX, &mut ReadContext::new(&clock)).unwrap();
    assert_eq!(reader.take_loads(), Loads { point_loads: 1, scanned_bytes: 0 });
}

/// A step back reads a block that no lookup asked for, just as one forward does.
#[test]
fn steps_back_are_a_scan() {
    let reader = table(false);
    let clock = TestClock::default();
    let mut context = ReadContext::new(&clock);
    let mut cursor = reader.cursor();
    cursor.seek_to_first(&mut context).unwrap();
    reader.take_loads();
    cursor.seek(b"row002500", Trailer::new(SEQUENCE_MAX, ValueKind::Put), &mut context).unwrap();
    for _ in 0..120 {
        cursor.prev(&mut context).unwrap();
    }
    let loads = reader.take_loads();
    assert_eq!(loads.point_loads, 1);
    assert!((2_000..6_000).contains(&loads.scanned_bytes), "{loads:?}");
}

#[test]
fn past_the_page_cache_a_short_scan_takes_two_reads() {
    // Ten blocks, all within 16 KiB.
    assert_eq!(scan_rows(&table(true), 250).1, 2);
    assert_eq!(scan_rows(&table(false), 250).1, 3);
}
