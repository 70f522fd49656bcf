//! The seam for formats, with policies that change their mind.

use super::copied_blocks::{Bench, Case, EVERYTHING, rows, zstd};
use crate::codec::{BlockFormat, FormatMismatch, StoredFormat};
use crate::codec::{CodecId, Compression, Dictionary, DictionaryHash, Encoder};
use crate::compaction::{Evidence, FormatPolicy, PartOutput, TablePlace};
use crate::manifest::Version;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const BLOCK_SIZE: usize = 1_000;

/// Gives its formats in turn, one for each table.
struct InTurn {
    formats: Vec<BlockFormat>,
    next: AtomicUsize,
}

impl InTurn {
    fn new(formats: impl IntoIterator<Item = BlockFormat>) -> Arc<Self> {
        Arc::new(InTurn { formats: formats.into_iter().collect(), next: AtomicUsize::new(0) })
    }
}

impl FormatPolicy for InTurn {
    fn decide(&self, _: &TablePlace, _: &Evidence) -> BlockFormat {
        self.formats[self.next.fetch_add(1, Ordering::Relaxed) % self.formats.len()]
    }
}

fn format(compression: Compression) -> BlockFormat {
    BlockFormat::new(compression, BLOCK_SIZE)
}

/// The merge of 4,000 rows in blocks of LZ4 into tables of these formats in turn.
fn merged_into(formats: impl IntoIterator<Item = BlockFormat>) -> crate::Result<PartOutput> {
    let bench = Bench::new(1, Compression::LZ4, BLOCK_SIZE);
    let entries = rows(0..4_000, 0);
    let runs = vec![bench.tables(&entries, &[], 20_000)];
    let bench = bench.with_formats(InTurn::new(formats));
    let deeper = Arc::new(Version::empty(4));
    let case = Case { runs, deeper, snapshots: vec![9], range: EVERYTHING, table_bytes: 10_000 };
    let (output, found) = bench.merge(&case, true)?;
    assert_eq!(found, entries);
    Ok(output)
}

#[test]
fn every_table_of_a_job_is_asked_for_and_takes_only_blocks_that_fit_it() {
    let blocks = |output: &PartOutput, codec: CodecId| -> u64 {
        let tables = output.tables.iter();
        let of_codec = tables.filter(|table| table.metadata.compression.codec == codec);
        of_codec.map(|table| table.reader.properties().data_blocks).sum()
    };
    let same = merged_into([format(Compression::LZ4)]).unwrap();
    let all = blocks(&same, CodecId::Lz4);
    assert!(same.copied.blocks > all / 2, "{:?} of {all}", same.copied);

    let mixed = merged_into([format(Compression::LZ4), format(zstd())]).unwrap();
    let codecs: Vec<_> = mixed.tables.iter().map(|table| table.metadata.compression).collect();
    assert!(codecs.len() > 3, "{codecs:?}");
    let expected = [Compression::LZ4, zstd()].into_iter().cycle();
    assert!(codecs.iter().copied().eq(expected.take(codecs.len())), "{codecs:?}");
    for table in &mixed.tables {
        assert_eq!(table.reader.properties().compression(), Ok(table.metadata.compression));
    }
    // Blocks of LZ4 went into tables of LZ4 alone.
    assert!(mixed.copied.blocks > 20, "{:?}", mixed.copied);
    assert!(mixed.copied.blocks <= blocks(&mixed, CodecId::Lz4), "{:?}", mixed.copied);

    let harder = Compression { effort: 9, ..Compression::LZ4 };
    assert_eq!(merged_into([format(harder)]).unwrap().copied.blocks, 0, "another effort");
    let large = BlockFormat { block_size_bytes: 4 * BLOCK_SIZE, ..format(Compression::LZ4) };
    assert_eq!(merged_into([large]).unwrap().copied.blocks, 0, "blocks are too small");
}

/// Gives dictionaries in turn, one for each table, and takes blocks of all of them.
struct Dictionaries {
    compression: Compression,
    dictionaries: Vec<Arc<Dictionary>>,
    next: AtomicUsize,
}

impl Dictionaries {
    fn new(compression: Compression, count: usize) -> Arc<Self> {
        let dictionary = |number| {
            let text = format!("dictionary {number}: value of a row, value of another row");
            Dictionary::new(text.repeat(20).as_bytes()).unwrap()
        };
        let dictionaries = (0..count).map(dictionary).collect();
        Arc::new(Dictionaries { compression, dictionaries, next: AtomicUsize::new(0) })
    }
}

impl FormatPolicy for Dictionaries {
    fn decide(&self, _: &TablePlace, _: &Evidence) -> BlockFormat {
        let number = self.next.fetch_add(1, Ordering::Relaxed) % self.dictionaries.len();
        let dictionary = Some(self.dictionaries[number].hash());
        BlockFormat { dictionary, ..format(self.compression) }
    }

    fn takes_blocks(&self, wanted: &BlockFormat, stored: &StoredFormat) -> bool {
        matches!(wanted.mismatch(stored), None | Some(FormatMismatch::Dictionary))
    }

    fn dictionary(&self, name: DictionaryHash) -> Option<Arc<Dictionary>> {
        self.dictionaries.iter().find(|dictionary| dictionary.hash() == name).cloned()
    }
}

/// How many dictionaries each table has.
fn counts(output: &PartOutput) -> Vec<usize> {
    output.tables.iter().map(|table| table.reader.properties().dictionaries.len() / 20).collect()
}

fn merged_with(policy: Arc<Dictionaries>, raw_bytes: u64) -> crate::Result<PartOutput> {
    let bench = Bench::new(1, policy.compression, BLOCK_SIZE)
        .with_formats(policy)
        .with_evidence(Evidence { raw_bytes, ..Evidence::default() });
    let entries = rows(0..4_000, 0);
    let runs = vec![bench.tables(&entries, &[], 20_000)];
    let deeper = Arc::new(Version::empty(4));
    let case = Case { runs, deeper, snapshots: vec![9], range: EVERYTHING, table_bytes: 30_000 };
    let (output, found) = bench.merge(&case, true)?;
    assert_eq!(found, entries);
    Ok(output)
}

#[test]
fn tables_get_the_dictionaries_of_the_policy_and_of_blocks_that_are_copied() {
    for compression in [Compression::LZ4, zstd()] {
        let one = merged_with(Dictionaries::new(compression, 1), 1 << 20).unwrap();
        assert!(counts(&one).iter().all(|count| *count == 1), "{:?}", counts(&one));
        assert!(one.copied.blocks > 10, "{:?}", one.copied);
        let many = merged_with(Dictionaries::new(compression, 9), 1 << 20).unwrap();
        assert!(counts(&many).iter().any(|count| *count > 1), "{:?}", counts(&many));
        assert!(counts(&many).iter().all(|count| *count <= 4), "{:?}", counts(&many));
        let small = merged_with(Dictionaries::new(compression, 2), (1 << 20) - 1).unwrap();
        assert!(counts(&small).iter().all(|count| *count == 0), "small tables have none");
    }
}

#[test]
fn a_codec_without_dictionaries_refuses_one() {
    let snappy = Compression { codec: CodecId::Snappy, ..Compression::NONE };
    let policy: Arc<dyn FormatPolicy> = Dictionaries::new(snappy, 1);
    let evidence = Evidence { raw_bytes: 1 << 20, ..Evidence::default() };
    let bench = Bench::new(1, snappy, BLOCK_SIZE);
    let runs = vec![bench.tables(&rows(0..100, 0), &[], 20_000)];
    let bench = bench.with_formats(policy).with_evidence(evidence);
    let deeper = Arc::new(Version::empty(4));
    let case = Case { runs, deeper, snapshots: vec![9], range: EVERYTHING, table_bytes: 10_000 };
    let error = bench.merge(&case, true).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("snappy"), "{error}");
}

#[test]
fn formats_are_compared_whole() {
    let wanted = format(Compression { codec: CodecId::Zlib, effort: 6, ..Compression::NONE });
    let stored = StoredFormat::of_compression(wanted.compression);
    assert_eq!(wanted.mismatch(&stored), None);
    let known_size = |size| StoredFormat { block_size_bytes: Some(size), ..stored };
    assert_eq!(wanted.mismatch(&known_size(BLOCK_SIZE)), None);
    let known_dictionary = |name| StoredFormat { dictionary: Some(name), ..stored };
    assert_eq!(wanted.mismatch(&known_dictionary(None)), None);
    let fast = Compression { encoder: Encoder::Fast, ..wanted.compression };
    let weak = Compression { effort: 1, ..wanted.compression };
    let cases = [
        (StoredFormat { compression: None, ..stored }, FormatMismatch::Codec),
        (StoredFormat::of_compression(zstd()), FormatMismatch::Codec),
        (StoredFormat::of_compression(fast), FormatMismatch::Encoder),
        (StoredFormat::of_compression(weak), FormatMismatch::Effort),
        (known_size(BLOCK_SIZE * 2), FormatMismatch::BlockSize),
        (known_dictionary(Some(DictionaryHash([1; 16]))), FormatMismatch::Dictionary),
    ];
    for (stored, mismatch) in cases {
        assert_eq!(wanted.mismatch(&stored), Some(mismatch), "{stored:?}");
    }
}
