//! Streams of rows in chunks: Cassandra and Scylla.

use lithify::codec::CodecId;

use super::{
    Advised, Basis, LZ4, LZ4HC, NONE, SNAPPY, Setting, Target, always_fits, any_above, every,
    no_other_forms, zlib, zstd,
};
use crate::measure::Call;
use crate::sample::Order;
use crate::units::Shape;

pub(super) const CASSANDRA: Target = Target {
    name: "cassandra",
    title: "Cassandra",
    needs_rows: true,
    order: Order::Hash,
    has_levels: false,
    default_upper: [NONE, NONE],
    may_be_above: any_above,
    has_short_calls: false,
    settings: cassandra_settings,
    stored_bytes: chunk_stored,
    fits: always_fits,
    index_entry_bytes: |_| 8.0,
    snippet: cassandra_snippet,
    other_forms: no_other_forms,
    note: "It reaches new files; nodetool upgradesstables -a rewrites the others. Each chunk takes 8 bytes \
           of memory. Flushes use lz4 for zstd, deflate and lz4 high (flush_compression: fast).",
    source: "Cassandra 5.0: CompressedSequentialWriter.java; the map was taken by cassandra-all 5.0.9",
};

/// Before the map of a table.
const ALTER: &str = "ALTER TABLE ks.t WITH compression = ";

fn cassandra_settings() -> Vec<Setting> {
    let codecs = [NONE, SNAPPY, LZ4, LZ4HC, zlib(6), zstd(1), zstd(3), zstd(6), zstd(9)];
    every(Shape::Cassandra, (LZ4, 16), &codecs, &[4, 16, 64])
}

/// Whatever comes out, with a checksum of 4 bytes and the chunk's place in 8. Without a codec the file
/// has neither.
fn chunk_stored(setting: &Setting, call: &Call, _: &Basis) -> f64 {
    match setting.compression {
        NONE => f64::from(call.unit_bytes),
        _ => f64::from(call.encoded_bytes) + 12.0,
    }
}

fn cassandra_snippet(advised: &Advised<'_>) -> Vec<String> {
    let Setting { compression, size_bytes, .. } = advised.setting;
    let chunk = format!("'chunk_length_in_kb': '{}'", size_bytes >> 10);
    let effort = compression.effort;
    let class = match compression.codec {
        CodecId::None => return vec![format!("{ALTER}{{'enabled': 'false'}}")],
        CodecId::Snappy => "'class': 'SnappyCompressor'".to_owned(),
        CodecId::Zlib => "'class': 'DeflateCompressor'".to_owned(),
        CodecId::Zstd => format!("'class': 'ZstdCompressor', 'compression_level': '{effort}'"),
        CodecId::Lz4 if effort > 1 => format!(
            "'class': 'LZ4Compressor', 'lz4_compressor_type': 'high', \
             'lz4_high_compressor_level': '{effort}'"
        ),
        _ => "'class': 'LZ4Compressor'".to_owned(),
    };
    vec![format!("{ALTER}{{{class}, {chunk}}}")]
}

pub(super) const SCYLLA: Target = Target {
    name: "scylla",
    title: "Scylla",
    needs_rows: true,
    order: Order::Hash,
    has_levels: false,
    default_upper: [NONE, NONE],
    may_be_above: any_above,
    has_short_calls: true,
    settings: scylla_settings,
    stored_bytes: chunk_stored,
    fits: always_fits,
    index_entry_bytes: |_| 8.0,
    snippet: scylla_snippet,
    other_forms: no_other_forms,
    note: "The default trains a dictionary once there are enough data. A call of a codec holds the \
           reactor: see the share over 1 ms.",
    source: "Scylla: sstables/compressor.cc; not run here",
};

const DICTIONARY_BYTES: usize = 64 << 10;

fn scylla_settings() -> Vec<Setting> {
    let codecs = [NONE, SNAPPY, LZ4, zlib(6), zstd(1), zstd(3), zstd(6)];
    let mut settings =
        vec![Setting::new(Shape::Cassandra, LZ4, 4 << 10).with_dictionary(DICTIONARY_BYTES)];
    for compression in [zstd(1), zstd(3)] {
        for kib in [4, 16] {
            let setting = Setting::new(Shape::Cassandra, compression, kib << 10);
            settings.push(setting.with_dictionary(DICTIONARY_BYTES));
        }
    }
    settings.extend(every(Shape::Cassandra, (LZ4, 4), &codecs, &[4, 16, 64]));
    settings
}

fn scylla_snippet(advised: &Advised<'_>) -> Vec<String> {
    let Setting { compression, size_bytes, dictionary_bytes, .. } = advised.setting;
    let class = match (compression.codec, *dictionary_bytes > 0) {
        (CodecId::None, _) => return vec![format!("{ALTER}{{'sstable_compression': ''}}")],
        (CodecId::Snappy, _) => "SnappyCompressor",
        (CodecId::Zlib, _) => "DeflateCompressor",
        (CodecId::Zstd, false) => "ZstdCompressor",
        (CodecId::Zstd, true) => "ZstdWithDictsCompressor",
        (_, false) => "LZ4Compressor",
        (_, true) => "LZ4WithDictsCompressor",
    };
    let effort = match compression.codec {
        CodecId::Zstd => format!(", 'compression_level': '{}'", compression.effort),
        _ => String::new(),
    };
    let kib = size_bytes >> 10;
    vec![format!(
        "{ALTER}{{'sstable_compression': '{class}', 'chunk_length_in_kb': '{kib}'{effort}}}"
    )]
}

#[cfg(test)]
mod tests {
    use super::*;
    use lithify::Compression;

    fn text(target: &Target, compression: Compression) -> String {
        let setting = Setting::new(Shape::Cassandra, compression, 16 << 10);
        let advised = Advised { setting: &setting, upper: [NONE; 2], basis: Basis::default() };
        (target.snippet)(&advised).join("\n")
    }

    #[test]
    fn the_two_dialects_stay_apart() {
        let cassandra = text(&CASSANDRA, zstd(3));
        assert_eq!(
            cassandra,
            "ALTER TABLE ks.t WITH compression = {'class': 'ZstdCompressor', \
             'compression_level': '3', 'chunk_length_in_kb': '16'}"
        );
        assert!(!text(&CASSANDRA, LZ4HC).contains("sstable_compression"));
        assert!(!text(&SCYLLA, zstd(3)).contains("'class'"));
        assert_eq!(text(&CASSANDRA, NONE), format!("{ALTER}{{'enabled': 'false'}}"));
        assert_eq!(text(&SCYLLA, NONE), format!("{ALTER}{{'sstable_compression': ''}}"));
    }
}
