//! What is wrong with a table is found to its end, also where every checksum is right.

use super::super::block::Layout;
use super::super::footer::FOOTER_SIZE;
use super::two_levels::{footer_of, reseal};
use super::*;

/// The part, the error, and the keys that are lost with it.
pub(super) type Found = (TablePart, String, Option<(Vec<u8>, Vec<u8>)>);

#[derive(Default)]
pub(super) struct List {
    pub(super) found: Vec<Found>,
    bytes: u64,
    blocks: u64,
}

impl TableExaminer for List {
    fn found(&mut self, TableFinding { part, error, lost }: TableFinding) -> Result<()> {
        self.found.push((part, error.to_string(), lost));
        Ok(())
    }

    fn went_through(&mut self, bytes: u64) -> Result<()> {
        self.bytes += bytes;
        Ok(())
    }

    fn block(&mut self, _: &[u8]) -> Result<()> {
        self.blocks += 1;
        Ok(())
    }
}

pub(super) fn examine(bytes: &[u8]) -> List {
    let file = TestFile { bytes: bytes.to_vec(), ..TestFile::default() };
    let (clock, mut list) = (TestClock::default(), List::default());
    let context = &mut ReadContext::new(&clock);
    examine_table(Arc::new(file), pool(), 0, context, &mut list).unwrap();
    list
}

/// A table with a block for every few rows, nothing encoded.
fn table() -> Vec<u8> {
    let options = TableOptions { block_size_bytes: 200, ..TableOptions::default() };
    build(&options, Compression::NONE, &plain_rows(40)).0
}

#[track_caller]
fn expect(bytes: &[u8], expected: &[(TablePart, &str)]) -> List {
    let list = examine(bytes);
    let matches = list.found.len() == expected.len()
        && list.found.iter().zip(expected).all(|(f, e)| f.0 == e.0 && f.1.contains(e.1));
    assert!(matches, "{:?}", list.found);
    list
}

#[test]
fn a_sound_table_is_gone_through_to_its_last_byte() {
    let bytes = table();
    let list = expect(&bytes, &[]);
    assert_eq!(list.bytes, bytes.len() as u64);
    let (two_levels, _) = build_two_levels(
        &TableOptions { block_size_bytes: 100, ..TableOptions::default() },
        zstd(),
        &plain_rows(60),
        300,
    );
    assert_eq!(expect(&two_levels, &[]).bytes, two_levels.len() as u64);
}

#[test]
fn every_bad_block_is_found_with_the_keys_it_held() {
    let mut bytes = table();
    let blocks = expect(&bytes, &[]).blocks;
    assert!(blocks > 6);
    let data_size = footer_of(&bytes).filter.unwrap().offset as usize;
    bytes[5] ^= 1;
    bytes[data_size - 20] ^= 1;
    let bad = (TablePart::DataBlock, "block checksum");
    let list = expect(&bytes, &[bad, bad]);
    assert_eq!(list.blocks, blocks - 2);
    let first = list.found[0].2.clone().unwrap();
    assert_eq!(first.0, b"row000000");
    assert!(first.1 > first.0 && first.1 < b"row000010".to_vec());
    assert!(list.found[1].2.clone().unwrap().1 >= b"row000039".to_vec());
}

#[test]
fn damaged_parts_do_not_hide_each_other() {
    let mut bytes = table();
    let footer = footer_of(&bytes);
    bytes[footer.filter.unwrap().offset as usize] ^= 1;
    bytes[footer.properties.offset as usize] ^= 1;
    bytes[5] ^= 1;
    let found = [
        (TablePart::Properties, "block checksum"),
        (TablePart::Filter, "block checksum"),
        (TablePart::DataBlock, "block checksum"),
    ];
    expect(&bytes, &found);
    let mut bytes = table();
    bytes[footer.index.offset as usize] ^= 1;
    let list = expect(&bytes, &[(TablePart::Index, "block checksum")]);
    let lost = (b"row000000".to_vec(), b"row000039".to_vec());
    assert_eq!((list.blocks, list.found[0].2.clone()), (0, Some(lost)));
    let mut bytes = table();
    let size = bytes.len();
    bytes[size - FOOTER_SIZE] ^= 1;
    expect(&bytes, &[(TablePart::Footer, "footer checksum")]);
}

#[test]
fn parts_that_are_whole_but_say_something_wrong_are_found() {
    let footer = footer_of(&table());
    // A filter without a bit.
    let mut bytes = table();
    reseal(&mut bytes, footer.filter.unwrap(), Layout::BlockedBloom, |payload| {
        let bits = payload.len() - 8;
        payload[..bits].fill(0);
    });
    expect(&bytes, &[(TablePart::Filter, "does not hold")]);
    // Properties: every number that the walk can know.
    for name in [
        "data_blocks",
        "data_raw_bytes",
        "data_stored_bytes",
        "deletes",
        "entries",
        "key_bytes",
        "largest_sequence",
        "single_deletes",
        "smallest_sequence",
        "value_bytes",
    ] {
        let mut bytes = table();
        reseal(&mut bytes, footer.properties, Layout::Properties, |payload| {
            let name = [&[name.len() as u8], name.as_bytes(), &[1]].concat();
            let at = payload.windows(name.len()).position(|part| part == name).unwrap();
            payload[at + name.len()] ^= 1;
        });
        let list = examine(&bytes);
        assert!(list.found.iter().any(|found| found.1.contains(name)), "{name}: {:?}", list.found);
    }
    for (name, wrong) in [("smallest_key", b"row00000a"), ("largest_key", b"row00003a")] {
        let mut bytes = table();
        reseal(&mut bytes, footer.properties, Layout::Properties, |payload| {
            let name = [&[name.len() as u8], name.as_bytes(), &[3, 9]].concat();
            let at = payload.windows(name.len()).position(|part| part == name).unwrap();
            payload[at + name.len()..][..9].copy_from_slice(wrong);
        });
        expect(&bytes, &[(TablePart::Properties, name)]);
    }
}

#[test]
fn an_index_that_is_whole_but_says_something_wrong_is_found() {
    let footer = footer_of(&table());
    let count = expect(&table(), &[]).blocks as usize;
    // In the record of the second block: largest sequence, flags. The first key of a block.
    let record = 16 + 8 * count + 52;
    for (at, change, what) in [
        (record + 24, 1_u8, "largest sequence number of a block"),
        (record + 16, 1, "index and data block differ"),
    ] {
        let mut bytes = table();
        reseal(&mut bytes, footer.index, Layout::FlatIndex, |payload| payload[at] ^= change);
        expect(&bytes, &[(TablePart::DataBlock, what)]);
    }
    let mut bytes = table();
    reseal(&mut bytes, footer.index, Layout::FlatIndex, |payload| {
        let last = payload.len() - 1;
        payload[last] ^= 1;
    });
    expect(&bytes, &[(TablePart::DataBlock, "first key of a block")]);
    // A separator that reaches into the next block, and one that ends too early.
    for (change, what) in [(b'9', "begins before the separator"), (b'!', "separator sorts before")]
    {
        let mut bytes = table();
        reseal(&mut bytes, footer.index, Layout::FlatIndex, |payload| {
            let end = u32::from_le_bytes(*payload[record - 12..].first_chunk().unwrap()) as usize;
            payload[16 + 60 * count + end - 1] = change;
        });
        let list = examine(&bytes);
        assert!(list.found.iter().any(|found| found.1.contains(what)), "{what}: {:?}", list.found);
    }
}
