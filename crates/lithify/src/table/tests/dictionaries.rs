//! Tables with dictionaries: what they hold, what is carried along with copied blocks, and what a
//! reader refuses.

use super::super::block::{self, Encoding, Layout};
use super::super::footer::{FOOTER_SIZE, Footer};
use super::damage::read_everything;
use super::examine::examine;
use super::*;
use crate::codec::{Dictionary, DictionaryHash, HeldDictionary};
use crate::format::golden;
use std::collections::HashMap;

fn hold(content: &[u8]) -> Arc<HeldDictionary> {
    pool().hold(&Dictionary::new(content).unwrap())
}

/// What plain rows repeat, and something that makes the dictionary another one.
fn content(number: u64) -> Vec<u8> {
    let text = "value of row 17, layer 6value of row 105, layer 0value of row 3, layer 3";
    [&number.to_le_bytes()[..], text.as_bytes()].concat()
}

fn options() -> TableOptions {
    TableOptions { block_size_bytes: 400, ..TableOptions::default() }
}

fn high() -> Compression {
    Compression { effort: 9, ..Compression::LZ4 }
}

fn build_with(
    compression: Compression,
    dictionary: &Arc<HeldDictionary>,
    entries: &[Entry],
) -> (Vec<u8>, TableSummary) {
    let mut table = builder(options(), compression);
    table.use_dictionary(Arc::clone(dictionary)).unwrap();
    add_all(table, entries)
}

/// For damage of any byte: see [`read_everything`].
pub(super) fn small_dictionary_table() -> (Vec<u8>, Vec<Entry>) {
    let (mut meter, clock) = (WorkMeter::default(), TestClock::default());
    let entries = random_entries(&mut Random(2), 30, 30);
    let values: Vec<u8> = entries.iter().flat_map(|entry| entry.2.clone()).collect();
    let mut table =
        builder(TableOptions { block_size_bytes: 200, ..TableOptions::default() }, zstd());
    table.use_dictionary(hold(&values[..values.len().min(300)])).unwrap();
    for (key, trailer, value) in &entries {
        table.add(key, *trailer, value, &mut meter, &clock).unwrap();
    }
    table.add_range_tombstone(b"a", b"c", 77).unwrap();
    let summary = table.finish(&mut meter, &clock).unwrap();
    assert!(!summary.properties.dictionaries.is_empty());
    (table.take_output(), entries)
}

fn footer_of(bytes: &[u8]) -> Footer {
    Footer::parse(bytes.last_chunk::<FOOTER_SIZE>().unwrap()).unwrap()
}

/// Reads the rows in every way that there is.
fn read_in_every_way(bytes: &[u8], entries: &[Entry]) {
    let (mut meter, clock) = (WorkMeter::default(), TestClock::default());
    let context = &mut ReadContext::new(&clock);
    let reader = open(bytes, true).unwrap();
    assert_eq!(reader.verify(context).unwrap().entries, entries.len() as u64);
    let mut scanner = reader.scanner(None, None);
    for (key, _, value) in entries {
        let (_, found) = reader.get(key, SEQUENCE_MAX, context).unwrap().unwrap();
        assert_eq!(&found[..], &value[..]);
        assert!(matches!(scanner.poll(&mut meter, &clock).unwrap(), ScanPoll::Ready));
        assert_eq!((scanner.key(), scanner.value()), (&key[..], &value[..]));
        scanner.advance().unwrap();
    }
    let reader = open(bytes, true).unwrap();
    let mut cursor = reader.cursor();
    cursor.seek_to_first(context).unwrap();
    for (key, _, value) in entries {
        assert_eq!((cursor.key(), cursor.value()), (&key[..], &value[..]));
        cursor.next(context).unwrap();
    }
    let keys: Vec<_> = entries.iter().map(|entry| HashedKey::new(&entry.0)).collect();
    let mut found = 0;
    let reader = open(bytes, false).unwrap();
    reader
        .get_many(&keys, SEQUENCE_MAX, context, &mut |place, _, value| {
            assert_eq!(&value[..], &entries[place].2[..]);
            found += 1;
        })
        .unwrap();
    assert_eq!(found, entries.len());
}

#[test]
fn blocks_use_the_dictionary_of_their_table() {
    let entries = plain_rows(300);
    for compression in [zstd(), Compression::LZ4, high()] {
        let dictionary = hold(&content(1));
        let (without, plain) = build(&options(), compression, &entries);
        let (bytes, summary) = build_with(compression, &dictionary, &entries);
        assert!(summary.properties.data_stored_bytes < plain.properties.data_stored_bytes);
        assert_eq!(footer_of(&without).features.incompatible, 0);
        assert_eq!(plain.properties.stored_format().dictionary, Some(None));
        assert_eq!(footer_of(&bytes).features.incompatible, 2);
        assert_eq!(footer_of(&bytes).version, 3);
        let format = summary.properties.stored_format();
        assert_eq!(format.dictionary, Some(Some(dictionary.hash())));
        let size = dictionary.content().len() as u32;
        let named = [&dictionary.hash().0[..], &size.to_le_bytes()].concat();
        assert_eq!(summary.properties.dictionaries, named);
        read_in_every_way(&bytes, &entries);
        let again = build_with(compression, &dictionary, &entries).0;
        assert_eq!(again, bytes, "the same rows give the same table");
    }
}

#[test]
fn blocks_that_stay_raw_need_no_dictionary() {
    let mut random = Random(3);
    let noise = |_| random.next() as u8;
    let value: Vec<u8> = (0..5_000).map(noise).collect();
    let entries = vec![(b"k".to_vec(), Trailer::new(0, ValueKind::Put), value)];
    let (bytes, summary) = build_with(zstd(), &hold(&content(1)), &entries);
    assert!(summary.properties.dictionaries.is_empty());
    assert!(!summary.properties.dictionary.is_empty(), "it was asked for");
    assert_eq!((footer_of(&bytes).features.incompatible, footer_of(&bytes).version), (0, 1));
    read_in_every_way(&bytes, &entries);
}

#[test]
fn tables_share_one_dictionary_that_is_charged_once() {
    use crate::base::MemoryUse;
    let budget = MemoryBudget::new(64 << 20);
    let pool = ContextPool::new(Arc::clone(&budget));
    let dictionary = hold(&content(77));
    let (bytes, _) = build_with(zstd(), &dictionary, &plain_rows(50));
    let open = || {
        let file = TestFile { bytes: bytes.clone(), ..TestFile::default() };
        TableReader::open(Arc::new(file), None, Arc::clone(&pool)).unwrap()
    };
    let used = || budget.used_bytes(MemoryUse::Codec);
    let (before, first) = (used(), open());
    let one = used() - before;
    assert!(one > 10_000, "a digest takes {one} bytes");
    let more: Vec<_> = (0..10).map(|_| open()).collect();
    assert!(used() - before < 2 * one);
    drop((first, more));
    assert!(used() - before < one);
}

/// Offers all blocks of a table to a builder; the rows of those that it took.
fn copy((bytes, entries): &(Vec<u8>, Vec<Entry>), target: &mut TableBuilder) -> Vec<Entry> {
    let (mut meter, clock) = (WorkMeter::default(), TestClock::default());
    let mut scanner = open(bytes, false).unwrap().scanner(None, None);
    scanner.offer_blocks();
    let (mut copied, mut place) = (Vec::new(), 0);
    while let ScanPoll::Ready = scanner.poll(&mut meter, &clock).unwrap() {
        let block = scanner.stored_block().unwrap().expect("a block of puts is offered");
        let end = place + block.entry_count() as usize;
        if target.add_block(&block, &mut meter, &clock).unwrap() {
            copied.extend_from_slice(&entries[place..end]);
        }
        place = end;
        scanner.skip_block();
    }
    copied
}

/// Tables of rows one behind the other, each with a dictionary of its own.
fn tables_with(contents: &[Vec<u8>]) -> Vec<(Vec<u8>, Vec<Entry>)> {
    let rows = plain_rows(100 * contents.len());
    let with = |(rows, content): (&[Entry], &Vec<u8>)| {
        (build_with(zstd(), &hold(content), rows).0, rows.to_vec())
    };
    rows.chunks(100).zip(contents).map(with).collect()
}

#[test]
fn copied_blocks_carry_their_dictionaries_and_a_fifth_is_refused() {
    let contents: Vec<_> = (0..6).map(content).collect();
    let tables = tables_with(&contents);
    for has_own in [false, true] {
        let mut target = builder(options(), zstd());
        if has_own {
            target.use_dictionary(hold(&contents[5])).unwrap();
        }
        let mut rows = Vec::new();
        for (number, table) in tables.iter().take(5).enumerate() {
            let copied = copy(table, &mut target);
            let is_taken = number < if has_own { 3 } else { 4 };
            assert_eq!(!copied.is_empty(), is_taken, "table {number}");
            rows.extend(copied);
        }
        let (mut meter, clock) = (WorkMeter::default(), TestClock::default());
        let last = Trailer::new(0, ValueKind::Put);
        target.add(b"zzz", last, b"", &mut meter, &clock).unwrap();
        rows.push((b"zzz".to_vec(), last, Vec::new()));
        let summary = target.finish(&mut meter, &clock).unwrap();
        // Its own is among them: the block of the rest is encoded with it.
        assert_eq!(summary.properties.dictionaries.len(), 20 * 4);
        read_in_every_way(&target.take_output(), &rows);
    }
}

/// Two contents whose names begin alike.
fn of_one_id() -> [Vec<u8>; 2] {
    let mut known = HashMap::new();
    for number in 100.. {
        let id = DictionaryHash::of(&content(number)).id();
        if let Some(other) = known.insert(id, number) {
            return [content(other), content(number)];
        }
    }
    unreachable!("ids of 32 bits repeat")
}

#[test]
fn blocks_of_two_dictionaries_of_one_id_do_not_meet_in_a_table() {
    let contents = of_one_id();
    let tables = tables_with(&contents);
    let mut target = builder(options(), zstd());
    assert!(!copy(&tables[0], &mut target).is_empty());
    assert!(copy(&tables[1], &mut target).is_empty());
    let mut target = builder(options(), zstd());
    target.use_dictionary(hold(&contents[0])).unwrap();
    assert!(copy(&tables[1], &mut target).is_empty());
}

#[test]
fn a_codec_that_takes_no_dictionary_refuses_one() {
    for codec in [CodecId::None, CodecId::Snappy, CodecId::Zlib] {
        let effort = if codec == CodecId::Zlib { 6 } else { 0 };
        let mut table = builder(options(), Compression { codec, effort, ..Compression::NONE });
        let error = table.use_dictionary(hold(&content(1))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("lz4, zstd"), "{error}");
    }
}

/// The table with other dictionaries: their ids, names and contents.
fn with_dictionaries(bytes: &[u8], dictionaries: &[(u32, [u8; 16], &[u8])]) -> Vec<u8> {
    let mut footer = footer_of(bytes);
    let start = footer.properties.offset as usize - footer.dictionaries_size as usize;
    let mut changed = bytes[..start].to_vec();
    let mut add = |layout, payload: &[u8], dictionary| {
        let offset = changed.len();
        changed.extend_from_slice(payload);
        let raw_size = payload.len() as u32;
        let encoding = Encoding { codec: CodecId::None, dictionary, raw_size };
        block::seal(&mut changed, offset, layout, encoding, (&TABLE_ID, offset as u64));
        offset as u64
    };
    for (id, name, content) in dictionaries {
        add(Layout::Dictionary, &[&name[..], content].concat(), *id);
    }
    let properties = footer.properties;
    let place = properties.offset as usize;
    let payload = &bytes[place..place + properties.stored_size as usize - 16];
    footer.properties.offset = add(Layout::Properties, payload, 0);
    footer.dictionaries_size = (footer.properties.offset as usize - start) as u32;
    footer.file_size = (changed.len() + FOOTER_SIZE) as u64;
    footer.encode(&mut changed);
    changed
}

#[test]
fn a_table_whose_dictionaries_are_not_what_they_should_be_does_not_open() {
    let entries = plain_rows(40);
    let own = Dictionary::new(&content(1)).unwrap();
    let (bytes, _) = build_with(zstd(), &pool().hold(&own), &entries);
    let right = (own.id(), own.hash().0, own.content());
    assert_eq!(with_dictionaries(&bytes, &[right]), bytes);
    let others: Vec<_> = (2..6).map(|number| Dictionary::new(&content(number)).unwrap()).collect();
    let other = |at: usize| (others[at].id(), others[at].hash().0, others[at].content());
    let [twin_a, twin_b] = of_one_id().map(|content| Dictionary::new(&content).unwrap());
    let twin = |twin: &Dictionary| (twin.id(), twin.hash().0, twin.content().to_vec());
    let (twin_a, twin_b) = (twin(&twin_a), twin(&twin_b));
    let text = |id: u32| format!("{id:08x}");
    let wrong = content(9);
    let cases = [
        (vec![(own.id(), own.hash().0, &wrong[..])], own.id(), "content"),
        (vec![(own.id() ^ 1, own.hash().0, own.content())], own.id() ^ 1, "content"),
        (vec![right, right], own.id(), "one id"),
        (
            vec![right, (twin_a.0, twin_a.1, &twin_a.2), (twin_b.0, twin_b.1, &twin_b.2)],
            twin_a.0,
            "one id",
        ),
        (vec![right, other(0), other(1), other(2), other(3)], own.id(), "more than four"),
        (vec![right, (7, own.hash().0, &b"short"[..])], 7, "content"),
    ];
    for (dictionaries, id, what) in cases {
        let error = open(&with_dictionaries(&bytes, &dictionaries), false).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        assert!(error.offset().is_some() && error.path().is_some(), "{error}");
        let told = format!("{error:?} {error}");
        assert!(told.contains(&text(id)) && told.contains(what), "{told}, not {what}");
    }
    // It opens with another one, and says which one it misses as soon as that is wanted.
    let missing = with_dictionaries(&bytes, &[other(0)]);
    let reader = open(&missing, false).unwrap();
    let clock = TestClock::default();
    let context = &mut ReadContext::new(&clock);
    let error = reader.get(&entries[7].0, 9, context).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.to_string().contains(&text(own.id())), "{error}");
    let (mut meter, clock) = (WorkMeter::default(), TestClock::default());
    let error = reader.scanner(None, None).poll(&mut meter, &clock).err().unwrap();
    assert!(error.to_string().contains(&text(own.id())), "{error}");
    assert!(reader.verify(context).unwrap_err().to_string().contains(&text(own.id())));
}

#[test]
fn damage_of_one_dictionary_takes_its_blocks_alone() {
    let contents: Vec<_> = (0..2).map(content).collect();
    let tables = tables_with(&contents);
    let mut target = builder(options(), zstd());
    copy(&tables[0], &mut target);
    let blocks = target.data_blocks() as usize;
    copy(&tables[1], &mut target);
    let (mut meter, clock) = (WorkMeter::default(), TestClock::default());
    target.finish(&mut meter, &clock).unwrap();
    let mut bytes = target.take_output();
    let footer = footer_of(&bytes);
    let start = footer.properties.offset - u64::from(footer.dictionaries_size);
    bytes[start as usize + 40] ^= 1;
    let list = examine(&bytes).found;
    let of = |part| list.iter().filter(|found| found.0 == part).count();
    assert_eq!((of(TablePart::Dictionary), of(TablePart::DataBlock)), (1, blocks));
    let id = format!("{:08x}", DictionaryHash::of(&contents[0]).id());
    assert!(list.iter().all(|found| found.1.contains(&id)), "{list:?}");
    assert_eq!(list.len(), 1 + blocks);
}

#[test]
fn a_reader_of_version_2_refuses_dictionaries() {
    let (bytes, entries) = small_dictionary_table();
    read_everything(&bytes, &entries).unwrap();
    let footer = footer_of(&bytes);
    assert_eq!(bytes[bytes.len() - FOOTER_SIZE + 80], 2);
    let known = crate::format::Features { incompatible: 1, ..crate::format::Features::NONE };
    let error = footer.features.check_readable(known, "table", footer.version, 2).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let text = error.to_string();
    assert!(text.contains("version 3") && text.contains("version 2"), "{text}");
}

#[test]
fn golden_sample() {
    let entries: Vec<Entry> = ["basalt", "gneiss", "marble", "quartz", "shale"]
        .iter()
        .map(|name| {
            let value = format!("a rock by the name of {name}").into_bytes();
            (name.as_bytes().to_vec(), Trailer::new(0, ValueKind::Put), value)
        })
        .collect();
    let mut table = builder(TableOptions { filter_bits_per_key: 0, ..options() }, Compression::LZ4);
    table.use_dictionary(hold(b"a rock by the name of quartz")).unwrap();
    let (bytes, _) = add_all(table, &entries);
    let footer = footer_of(&bytes);
    let (index, end) = (footer.index.offset as usize, footer.properties.offset as usize);
    let dictionary = end - footer.dictionaries_size as usize;
    let properties = footer.properties.stored_size as usize - 16;
    let fields = [
        (index - 16, "data block, encoded"),
        (1, "layout 1: data"),
        (1, "codec 3: lz4"),
        (2, "reserved"),
        (4, "dictionary_id: the first bytes of the name below"),
        (4, "raw_size"),
        (4, "checksum"),
        (dictionary - index, "index block with its trailer"),
        (16, "name of the dictionary"),
        (28, "its content"),
        (1, "layout 8: dictionary"),
        (1, "codec 0: none"),
        (2, "reserved"),
        (4, "dictionary_id: its own"),
        (4, "raw_size 44"),
        (4, "checksum"),
        (properties, "properties"),
        (16, "their trailer"),
        (16, "table_id"),
        (12, "filter: absent"),
        (12, "tombstones: absent"),
        (12, "index"),
        (12, "properties"),
        (8, "file_size"),
        (4, "compatible"),
        (4, "read_only_compatible"),
        (4, "incompatible: 0x2, dictionaries"),
        (4, "version 3"),
        (4, "dictionaries_size 60"),
        (4, "checksum"),
        (8, "magic"),
    ];
    let sample = golden::check("table-v3.hex", &bytes, &fields);
    read_in_every_way(&sample, &entries);
}
