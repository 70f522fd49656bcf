//! Damaged, cut, misplaced and newer tables: an error, never wrong data, never a panic.

use super::super::block::{self, Encoding, Layout, TRAILER_SIZE};
use super::super::data_block::{DataBlock, DataBlockLayout, SteppedTo};
use super::super::footer::{FOOTER_SIZE, Footer};
use super::super::index::IndexBlock;
use super::dictionaries::small_dictionary_table;
use super::*;
use crate::format::Checksum;

/// Every way of reading the whole table; what it says must be the truth or an error.
pub(super) fn read_everything(bytes: &[u8], entries: &[Entry]) -> Result<()> {
    let clock = TestClock::default();
    let mut context = ReadContext::new(&clock);
    let reader = open(bytes, false)?;
    reader.verify(&mut context)?;
    assert_eq!(reader.properties().entries, entries.len() as u64);
    let mut cursor = reader.cursor();
    cursor.seek_to_first(&mut context)?;
    for (key, trailer, value) in entries {
        assert_eq!(
            (cursor.key(), cursor.trailer(), cursor.value()),
            (&key[..], *trailer, &value[..])
        );
        cursor.next(&mut context)?;
    }
    assert!(!cursor.valid());
    let tombstones = reader.range_tombstones(&mut context)?;
    assert_eq!(tombstones.covering_sequence(b"b", SEQUENCE_MAX), 77);
    Ok(())
}

fn small_table() -> (Vec<u8>, Vec<Entry>) {
    small_table_cut_at(usize::MAX, 0)
}

/// With an index of two levels: partitions of one or two records.
pub(super) fn small_two_level_table() -> (Vec<u8>, Vec<Entry>) {
    small_table_cut_at(0, 160)
}

fn small_table_cut_at(flat_size_max: usize, partition_size: usize) -> (Vec<u8>, Vec<Entry>) {
    let (mut meter, clock) = (WorkMeter::default(), TestClock::default());
    let options = TableOptions { block_size_bytes: 200, ..TableOptions::default() };
    let mut table = builder(options, Compression::LZ4);
    table.cut_index_at(flat_size_max, partition_size);
    let entries = random_entries(&mut Random(2), 30, 30);
    for (key, trailer, value) in &entries {
        table.add(key, *trailer, value, &mut meter, &clock).unwrap();
    }
    table.add_range_tombstone(b"a", b"c", 77).unwrap();
    table.finish(&mut meter, &clock).unwrap();
    (table.take_output(), entries)
}

#[test]
fn a_change_of_any_byte_is_found() {
    for (bytes, entries) in [small_table(), small_two_level_table(), small_dictionary_table()] {
        read_everything(&bytes, &entries).unwrap();
        for at in 0..bytes.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                let error = read_everything(&damaged, &entries).expect_err("damage was not found");
                assert_eq!(error.kind(), ErrorKind::Corruption, "byte {at}: {error}");
                assert_eq!(error.path(), Some(Path::new("7.sst")), "byte {at}: {error}");
                assert!(error.offset().is_some(), "byte {at}: {error}");
            }
        }
    }
}

#[test]
fn a_table_cut_anywhere_does_not_open() {
    for (bytes, _) in [small_table(), small_two_level_table(), small_dictionary_table()] {
        for size in 0..bytes.len() {
            let error = open(&bytes[..size], false).err().expect("a cut table was opened");
            assert_eq!(error.kind(), ErrorKind::Corruption);
        }
    }
    let (bytes, _) = small_table();
    let longer = [&bytes[..], &[0]].concat();
    assert!(open(&longer, false).is_err());
    // Not even a whole table in front of another one's end.
    let twice = [&bytes[..], &bytes[..]].concat();
    assert_eq!(open(&twice, false).err().map(|e| e.kind()), Some(ErrorKind::Corruption));
}

#[test]
fn misplaced_blocks_are_found() {
    // Rows of one size, so that blocks have one size too.
    let options = TableOptions { block_size_bytes: 400, ..TableOptions::default() };
    let entries = plain_rows(200);
    let (bytes, _) = build(&options, Compression::NONE, &entries);
    let reader = open(&bytes, false).unwrap();
    let clock = TestClock::default();
    let index = reader.index(&mut ReadContext::new(&clock)).unwrap();
    let index = reader.parse_index(&index).unwrap();
    let handles: Vec<_> =
        (0..index.block_count()).map(|block| index.record(block).unwrap().handle).collect();
    let (a, b) = (0..handles.len())
        .flat_map(|a| (0..a).map(move |b| (a, b)))
        .find(|(a, b)| handles[*a].stored_size == handles[*b].stored_size)
        .unwrap();
    let range = |at: usize| {
        let start = handles[at].offset as usize;
        start..start + handles[at].stored_size as usize
    };
    let mut swapped = bytes.clone();
    swapped[range(a)].copy_from_slice(&bytes[range(b)]);
    swapped[range(b)].copy_from_slice(&bytes[range(a)]);
    let error = open(&swapped, false).unwrap().verify(&mut ReadContext::new(&clock)).unwrap_err();
    assert!(error.to_string().contains("block checksum"), "{error}");

    // The same block at the same place, from a table with another id.
    let (mut meter, clock) = (WorkMeter::default(), TestClock::default());
    let compressor = pool().compressor(Compression::NONE).unwrap();
    let mut other = TableBuilder::new(options, [7; 16], compressor);
    for (key, trailer, value) in &entries {
        other.add(key, *trailer, value, &mut meter, &clock).unwrap();
    }
    other.finish(&mut meter, &clock).unwrap();
    let other = other.take_output();
    let payload = range(a).start..range(a).end - TRAILER_SIZE;
    assert_eq!(other[payload.clone()], bytes[payload]);
    let mut mixed = bytes.clone();
    mixed[range(a)].copy_from_slice(&other[range(a)]);
    let error = open(&mixed, false).unwrap().verify(&mut ReadContext::new(&clock)).unwrap_err();
    assert!(error.to_string().contains("block checksum"), "{error}");
}

/// The table with its footer changed and sealed again.
pub(super) fn with_footer(bytes: &[u8], change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut changed = bytes.to_vec();
    let footer = changed.len() - FOOTER_SIZE;
    change(&mut changed[footer..]);
    let checksum = Checksum::of(&changed[footer..footer + 92]);
    changed[footer + 92..footer + 96].copy_from_slice(&checksum.to_le_bytes());
    changed
}

#[test]
fn features_that_are_not_known_are_refused_by_class() {
    let (bytes, entries) = small_table();
    let newer = with_footer(&bytes, |footer| {
        footer[80] = 4;
        footer[84] = 9;
    });
    let error = open(&newer, false).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let text = error.to_string();
    assert!(text.contains("version 9") && text.contains("version 3"), "{text}");
    // Bits that a reader may not know, and a later version, are fine.
    let newer = with_footer(&bytes, |footer| {
        footer[72] = 1;
        footer[76] = 1;
        footer[84] = 2;
    });
    read_everything(&newer, &entries).unwrap();
}

#[test]
fn a_footer_that_points_outside_is_refused() {
    let (bytes, _) = small_table();
    let footer = Footer::decode(bytes.last_chunk().unwrap(), bytes.len() as u64).unwrap();
    let mut encoded = Vec::new();
    footer.encode(&mut encoded);
    assert_eq!(encoded, bytes[bytes.len() - FOOTER_SIZE..]);
    for handle in [16, 28, 40, 52] {
        let beyond = [u64::MAX, bytes.len() as u64, bytes.len() as u64 - FOOTER_SIZE as u64 - 1];
        for offset in beyond {
            let changed = with_footer(&bytes, |footer| {
                footer[handle..handle + 8].copy_from_slice(&offset.to_le_bytes());
            });
            let error = open(&changed, false).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Corruption);
        }
        let changed = with_footer(&bytes, |footer| {
            footer[handle + 8..handle + 12].copy_from_slice(&3_u32.to_le_bytes());
        });
        assert_eq!(open(&changed, false).err().unwrap().kind(), ErrorKind::Corruption);
    }
}

/// A block with this trailer, its checksum right.
fn sealed(payload: &[u8], trailer: &[u8; 12]) -> Vec<u8> {
    let mut stored = [payload, trailer].concat();
    let checksum = Checksum::new().bytes(&stored).bytes(&TABLE_ID).u64(64).value();
    stored.extend_from_slice(&checksum.to_le_bytes());
    stored
}

#[test]
fn trailers_that_are_whole_but_wrong_are_refused() {
    let check = |stored: &[u8]| block::open(stored, Layout::Data, (&TABLE_ID, 64)).map(|_| ());
    let good = [1, 3, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0];
    check(&sealed(b"payload", &good)).unwrap();
    let with = |at: usize, byte: u8| {
        let mut trailer = good;
        trailer[at] = byte;
        check(&sealed(b"payload", &trailer)).unwrap_err().kind()
    };
    assert_eq!(with(0, 2), ErrorKind::Corruption);
    assert_eq!(with(0, 99), ErrorKind::Unsupported);
    assert_eq!(with(1, 77), ErrorKind::Unsupported);
    assert_eq!(with(2, 1), ErrorKind::Unsupported);
    // A dictionary is for the table to know, but not of a codec or layout that has none.
    let with_dictionary = |layout: Layout, codec: u8| {
        let trailer = [layout as u8, codec, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0];
        let stored = sealed(b"payload", &trailer);
        block::open(&stored, layout, (&TABLE_ID, 64)).map(|block| block.dictionary)
    };
    assert_eq!(with_dictionary(Layout::Data, 3).unwrap(), 1);
    for (layout, codec) in
        [(Layout::Data, 2), (Layout::Data, 0), (Layout::FlatIndex, 3), (Layout::Properties, 0)]
    {
        let error = with_dictionary(layout, codec).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert!(error.to_string().contains("00000001"), "{error}");
    }
    // 4 GiB and more of raw bytes are not allocated.
    assert_eq!(with(11, 0xff), ErrorKind::Corruption);
    // Stored raw, but not of its raw size.
    assert_eq!(with(1, 0), ErrorKind::Corruption);
    for size in 0..TRAILER_SIZE {
        assert!(check(&vec![0; size]).is_err());
    }
}

/// Searches and walks a block from every side; only errors are allowed to go wrong.
fn poke_data_block(bytes: &[u8], key: &[u8]) {
    let Ok(layout) = DataBlockLayout::parse(bytes) else {
        return;
    };
    let data = DataBlock::new(bytes, &layout);
    let mut built = Vec::new();
    let _ = data.seek::<false>(key, Trailer::seek(9), &mut Vec::new());
    if let Ok(Some((place, _))) = data.seek::<true>(key, Trailer::seek(9), &mut built) {
        let _ = data.trailer(place.index());
        assert!(place.value_range().end <= bytes.len());
        let _ = data.previous(&place, &mut built, &mut SteppedTo::default());
    }
    if let Ok(mut place) = data.first(&mut built) {
        while let Ok(Some(next)) = data.next(&place, &mut built) {
            assert!(next.value_range().end <= bytes.len());
            place = next;
        }
    }
    if let Ok(mut place) = data.last(&mut built) {
        let mut stepped = SteppedTo::default();
        while let Ok(Some((previous, _))) = data.previous(&place, &mut built, &mut stepped) {
            assert!(previous.value_range().end <= bytes.len());
            place = previous;
        }
    }
}

#[test]
fn no_bytes_make_a_decoder_panic() {
    let mut random = Random(77);
    let entries = random_entries(&mut random, 60, 20);
    let options = TableOptions { block_size_bytes: 1 << 20, ..TableOptions::default() };
    let (bytes, _) = build(&options, Compression::NONE, &entries);
    let reader = open(&bytes, false).unwrap();
    let clock = TestClock::default();
    let index = reader.index(&mut ReadContext::new(&clock)).unwrap();
    let record = reader.parse_index(&index).unwrap().record(0).unwrap();
    let data = bytes[..record.raw_size as usize].to_vec();
    let mut fragmenter = TombstoneFragmenter::new();
    for index in 0..9_u8 {
        fragmenter.add(vec![index], vec![index * 2 + 1], u64::from(index));
    }
    let tombstones = fragmenter.finish().encoded().to_vec();
    let properties = reader.properties().encode();
    for _ in 0..20_000 {
        let change = |bytes: &[u8], random: &mut Random| {
            let mut changed = bytes.to_vec();
            for _ in 0..1 + random.below(3) {
                let at = random.below(changed.len() as u64) as usize;
                changed[at] =
                    [0, 1, 0x7f, 0x80, 0xff, random.next() as u8][random.below(6) as usize];
            }
            changed.truncate(changed.len() - random.below(20).saturating_sub(17) as usize);
            changed
        };
        poke_data_block(&change(&data, &mut random), &entries[30].0);
        let changed = change(&index, &mut random);
        if let Ok(parsed) = IndexBlock::parse(&changed, 1 << 20) {
            let _ = parsed.find(&entries[30].0, Trailer::seek(9));
            let _ = parsed.record(0).and_then(|_| parsed.first_key(0));
        }
        let changed = change(&tombstones, &mut random);
        if let Ok(parsed) = FragmentedTombstones::parse(changed.into()) {
            let _ = parsed.covering_sequence(&[3], 9);
        }
        let _ = TableProperties::decode(&change(&properties, &mut random));
    }
}

/// The table of the sample: two keys, a delete, a range tombstone.
fn sample() -> Vec<u8> {
    let (mut meter, clock) = (WorkMeter::default(), TestClock::default());
    let options = TableOptions { prefix_length: Some(4), level: 1, ..TableOptions::default() };
    let mut table = builder(options, Compression::NONE);
    table.forget_block_size();
    let entries = [
        (&b"rock/basalt"[..], 7, ValueKind::Put, &b"igneous"[..]),
        (b"rock/basalt", 5, ValueKind::Delete, b""),
        (b"rock/shale", 6, ValueKind::Put, b"sedimentary"),
    ];
    for (key, sequence, kind, value) in entries {
        table.add(key, Trailer::new(sequence, kind), value, &mut meter, &clock).unwrap();
    }
    table.add_range_tombstone(b"rock/c", b"rock/n", 4).unwrap();
    table.finish(&mut meter, &clock).unwrap();
    table.take_output()
}

/// The bytes of an annotated dump: what stands behind `#` is for people.
pub(super) fn parse_hex(text: &str) -> Vec<u8> {
    text.lines()
        .flat_map(|line| line.split('#').next().unwrap_or("").split_whitespace())
        .map(|byte| u8::from_str_radix(byte, 16).expect("two digits"))
        .collect()
}

#[test]
fn golden_sample() {
    let golden = parse_hex(include_str!("../../../../../docs/format/table-v1.hex"));
    let clock = TestClock::default();
    let context = &mut ReadContext::new(&clock);
    let reader = open(&golden, false).unwrap();
    reader.verify(context).unwrap();
    let get = |key: &[u8], snapshot: SequenceNumber, context: &mut ReadContext<'_>| {
        reader
            .get(key, snapshot, context)
            .unwrap()
            .map(|(trailer, value)| (trailer, value.to_vec()))
    };
    let put = |sequence| Trailer::new(sequence, ValueKind::Put);
    assert_eq!(get(b"rock/basalt", 7, context), Some((put(7), b"igneous".to_vec())));
    let deleted = Some((Trailer::new(5, ValueKind::Delete), Vec::new()));
    assert_eq!(get(b"rock/basalt", 6, context), deleted);
    assert_eq!(get(b"rock/basalt", 4, context), None);
    assert_eq!(get(b"rock/shale", 9, context), Some((put(6), b"sedimentary".to_vec())));
    let tombstones = reader.range_tombstones(context).unwrap();
    assert_eq!(tombstones.covering_sequence(b"rock/marble", 9), 4);
    assert!(reader.prefix_may_match(b"rock", context).unwrap());
    assert_eq!(reader.properties().created_unix_s, 1_700_000_000);
    assert_eq!(sample(), golden, "what is written now is no longer format version 1");
}

/// Entries without a byte of their own once let half a megabyte claim four thousand million.
#[test]
fn a_block_with_more_entries_than_bytes_is_refused() {
    let block_of = |entry_count: u32| {
        let mut block = vec![0; 40];
        block[..4].copy_from_slice(&entry_count.to_le_bytes());
        for at in [4, 8, 12] {
            block[at..at + 4].copy_from_slice(&40_u32.to_le_bytes());
        }
        block[16..18].copy_from_slice(&u16::MAX.to_le_bytes());
        let restarts = entry_count.div_ceil(u32::from(u16::MAX)) as usize;
        block.extend([40_u32.to_le_bytes(), 40_u32.to_le_bytes()].concat().repeat(restarts));
        block
    };
    assert!(DataBlockLayout::parse(&block_of(1)).is_ok());
    assert!(DataBlockLayout::parse(&block_of(48)).is_ok());
    assert!(DataBlockLayout::parse(&block_of(49)).is_err());
    assert!(DataBlockLayout::parse(&block_of(u32::MAX)).is_err());
}

/// A few bytes once had memory of the layout's bound taken for them.
#[test]
fn a_raw_size_that_no_payload_can_have_is_refused_before_memory_is_taken() {
    use crate::codec::CodecId;
    for codec in [CodecId::Snappy, CodecId::Zlib, CodecId::Lz4, CodecId::Zstd] {
        let most = codec.raw_size_max(10) as u32;
        for (raw_size, is_possible) in [(most, true), (most + 1, false), (256 << 20, false)] {
            let mut stored = vec![0; 10];
            let place = (&[7; 16], 3);
            let encoding = Encoding { codec, dictionary: 0, raw_size };
            block::seal(&mut stored, 0, Layout::FlatIndex, encoding, place);
            let opened = block::open(&stored, Layout::FlatIndex, place);
            assert_eq!(opened.is_ok(), is_possible, "{codec:?}, {raw_size}");
        }
    }
}
