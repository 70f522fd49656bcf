//! Trees of sorted tables, in blocks: Lithify, RocksDB, MyRocks.

use lithify::Compression;
use lithify::codec::CodecId;

use super::{
    Advised, Basis, LZ4, LZ4HC, NONE, OtherForms, SNAPPY, Setting, Target, always_fits, any_above,
    every, no_other_forms, zlib, zstd,
};
use crate::measure::Call;
use crate::sample::Order;
use crate::units::Shape;

const SIZES_KIB: &[usize] = &[4, 8, 16, 32, 64];
const CODECS: &[Compression] =
    &[NONE, SNAPPY, LZ4, LZ4HC, zlib(6), zstd(-3), zstd(1), zstd(3), zstd(6), zstd(12)];
pub(super) const DICTIONARY_BYTES: usize = 16 << 10;

pub(super) const LITHIFY: Target = Target {
    name: "lithify",
    title: "Lithify",
    needs_rows: true,
    order: Order::Key,
    has_levels: true,
    default_upper: [LZ4, NONE],
    may_be_above: any_above,
    has_short_calls: true,
    settings: lithify_settings,
    stored_bytes: lithify_stored,
    fits: always_fits,
    index_entry_bytes: |basis| 60.0 + 2.0 * basis.key_bytes,
    snippet: lithify_snippet,
    other_forms: lithify_rust,
    note: "compression=auto decides by itself, per table, from what it sees.",
    source: "its own block builder (docs/format/table.md)",
};

fn lithify_settings() -> Vec<Setting> {
    // One with a dictionary takes a call of `supply_dictionaries`, so that it stands behind the others.
    let mut settings = every(Shape::Lithify, (zstd(1), 16), CODECS, SIZES_KIB);
    let with_dictionary = [LZ4, zstd(1), zstd(3)].into_iter().flat_map(|codec| {
        [4, 16].map(|kib| {
            Setting::new(Shape::Lithify, codec, kib << 10).with_dictionary(DICTIONARY_BYTES)
        })
    });
    settings.extend(with_dictionary);
    settings
}

/// Blocks that do not shrink by an eighth stay as they are; a trailer of 16 bytes, an entry of 60
/// bytes and two keys in the index, and 10 bits a row in the filter. An index shrinks by half or more.
fn lithify_stored(_: &Setting, call: &Call, basis: &Basis) -> f64 {
    let index = 0.45 * (60.0 + 1.5 * basis.key_bytes);
    seven_eighths(call) + 16.0 + index + call.rows * 10.0 / 8.0
}

fn seven_eighths(call: &Call) -> f64 {
    let (raw, encoded) = (f64::from(call.unit_bytes), f64::from(call.encoded_bytes));
    if encoded <= raw * 7.0 / 8.0 { encoded } else { raw }
}

fn lithify_snippet(advised: &Advised<'_>) -> Vec<String> {
    let (setting, [middle, small]) = (advised.setting, advised.upper);
    let mut lines = vec![format!(
        "compression={small},{middle},{} block_size_bytes={}",
        setting.compression, setting.size_bytes
    )];
    if setting.dictionary_bytes > 0 {
        lines.push("and a dictionary: ColumnFamily::supply_dictionaries".to_owned());
    }
    lines
}

fn lithify_rust(advised: &Advised<'_>) -> OtherForms {
    let (setting, [middle, small]) = (advised.setting, advised.upper);
    let compression = format!("{small},{middle},{}", setting.compression);
    let lines = vec![
        "let options = CfOptions {".to_owned(),
        format!("    compression: \"{compression}\".parse()?,"),
        format!("    block_size_bytes: {},", setting.size_bytes),
        "    ..CfOptions::default()".to_owned(),
        "};".to_owned(),
    ];
    vec![("Rust", lines)]
}

pub(super) const ROCKSDB: Target = Target {
    name: "rocksdb",
    title: "RocksDB",
    needs_rows: true,
    order: Order::Key,
    has_levels: true,
    default_upper: [LZ4, LZ4],
    may_be_above: have_one_effort,
    has_short_calls: false,
    settings: rocksdb_settings,
    stored_bytes: rocksdb_stored,
    fits: always_fits,
    index_entry_bytes: |basis| basis.key_bytes.min(16.0) + 8.0,
    snippet: rocksdb_snippet,
    other_forms: rocksdb_other_forms,
    note: "Changes by SetOptions reach new files; CompactRange rewrites the others.",
    source: "RocksDB 11: block_builder.cc, flush_block_policy.cc; the text was taken by 11.8.1",
};

fn rocksdb_settings() -> Vec<Setting> {
    let mut settings = every(Shape::RocksDb, (LZ4, 4), CODECS, SIZES_KIB);
    let with_dictionary = [4, 16].map(|kib| {
        Setting::new(Shape::RocksDb, zstd(3), kib << 10).with_dictionary(DICTIONARY_BYTES)
    });
    settings.extend(with_dictionary);
    settings
}

/// Blocks over 7/8 stay as they are (`max_compressed_bytes_per_kb` 896); a trailer of 5 bytes, and an
/// entry in the index of a shortened key and the block's place.
fn rocksdb_stored(_: &Setting, call: &Call, basis: &Basis) -> f64 {
    seven_eighths(call) + 5.0 + (ROCKSDB.index_entry_bytes)(basis)
}

/// The names of the option's values.
fn rocksdb_name(compression: Compression) -> &'static str {
    match (compression.codec, compression.effort) {
        (CodecId::Snappy, _) => "kSnappyCompression",
        (CodecId::Zlib, _) => "kZlibCompression",
        (CodecId::Lz4, 2..) => "kLZ4HCCompression",
        (CodecId::Lz4, _) => "kLZ4Compression",
        (CodecId::Zstd, _) => "kZSTD",
        _ => "kNoCompression",
    }
}

/// The effort, where the codec has one that has to be said.
fn rocksdb_effort(compression: Compression) -> Option<i32> {
    let has_effort = matches!(compression.codec, CodecId::Zlib | CodecId::Zstd)
        || (compression.codec == CodecId::Lz4 && compression.effort > 1);
    has_effort.then_some(compression.effort)
}

/// The effort of all levels above the bottom is one option: `compression_opts`.
fn have_one_effort(small: Compression, above: Compression) -> bool {
    match (rocksdb_effort(small), rocksdb_effort(above)) {
        (Some(small), Some(above)) => small == above,
        _ => true,
    }
}

/// That option, if a level has a codec with an effort.
fn upper_effort(advised: &Advised<'_>) -> Option<i32> {
    advised.upper.into_iter().find_map(rocksdb_effort)
}

/// Levels between L0 and the bottom, with 256 MiB in the first and ten times as much in each next.
fn middle_levels(basis: &Basis) -> usize {
    (basis.tenfold_steps() as usize).clamp(1, 5)
}

/// `compression_per_level`: L0, then levels from the first one that has data on.
fn per_level(advised: &Advised<'_>) -> String {
    let [above, small] = advised.upper.map(rocksdb_name);
    let mut names = vec![small; middle_levels(&advised.basis)];
    names.push(above);
    names.join(":")
}

fn rocksdb_options(advised: &Advised<'_>, newest: bool) -> String {
    let setting = advised.setting;
    let mut text = format!(
        "compression_per_level={};bottommost_compression={};",
        per_level(advised),
        rocksdb_name(setting.compression)
    );
    let mut bottom = Vec::new();
    if let Some(effort) = rocksdb_effort(setting.compression) {
        bottom.push(format!("level={effort}"));
    }
    if setting.dictionary_bytes > 0 {
        let dictionary = setting.dictionary_bytes;
        bottom.push(format!("max_dict_bytes={dictionary}"));
        bottom.push(format!("zstd_max_train_bytes={}", dictionary * 100));
    }
    if !bottom.is_empty() {
        bottom.push("enabled=true".to_owned());
        text.push_str(&format!("bottommost_compression_opts={{{};}};", bottom.join(";")));
    }
    if let Some(effort) = upper_effort(advised) {
        text.push_str(&format!("compression_opts={{level={effort};}};"));
    }
    let table = format!("block_based_table_factory={{block_size={};}};", setting.size_bytes);
    text.push_str(&table);
    if newest { text } else { text.trim_end_matches(';').to_owned() }
}

fn rocksdb_snippet(advised: &Advised<'_>) -> Vec<String> {
    vec![rocksdb_options(advised, true)]
}

fn rocksdb_other_forms(advised: &Advised<'_>) -> OtherForms {
    vec![("C++", rocksdb_cpp(advised))]
}

/// Statements on `rocksdb::Options` and `rocksdb::BlockBasedTableOptions`.
fn rocksdb_cpp(advised: &Advised<'_>) -> Vec<String> {
    let setting = advised.setting;
    let names: Vec<String> =
        per_level(advised).split(':').map(|name| format!("rocksdb::{name}")).collect();
    let bottom = rocksdb_name(setting.compression);
    let mut lines = vec![
        format!("options.compression_per_level = {{{}}};", names.join(", ")),
        format!("options.bottommost_compression = rocksdb::{bottom};"),
    ];
    if let Some(effort) = rocksdb_effort(setting.compression) {
        lines.push(format!("options.bottommost_compression_opts.level = {effort};"));
    }
    if setting.dictionary_bytes > 0 {
        let bytes = setting.dictionary_bytes;
        lines.push(format!("options.bottommost_compression_opts.max_dict_bytes = {bytes};"));
        let train = bytes * 100;
        lines.push(format!("options.bottommost_compression_opts.zstd_max_train_bytes = {train};"));
    }
    if lines.len() > 2 {
        lines.push("options.bottommost_compression_opts.enabled = true;".to_owned());
    }
    if let Some(effort) = upper_effort(advised) {
        lines.push(format!("options.compression_opts.level = {effort};"));
    }
    lines.push(format!("table_options.block_size = {};", setting.size_bytes));
    lines
}

pub(super) const MYROCKS: Target = Target {
    name: "myrocks",
    title: "MyRocks",
    needs_rows: true,
    order: Order::Key,
    has_levels: true,
    default_upper: [SNAPPY, SNAPPY],
    may_be_above: have_one_effort,
    has_short_calls: false,
    settings: myrocks_settings,
    stored_bytes: rocksdb_stored,
    fits: always_fits,
    index_entry_bytes: |basis| basis.key_bytes.min(16.0) + 8.0,
    snippet: myrocks_snippet,
    other_forms: no_other_forms,
    note: "Read when the server starts. An override of a column family inherits \
           compression_per_level, so it has to repeat it.",
    source: "MariaDB 10.11 (RocksDB 6.29): taken by a server of that version",
};

/// The codecs of 6.29, whose lz4 has no efforts.
fn myrocks_settings() -> Vec<Setting> {
    let codecs: Vec<Compression> =
        CODECS.iter().copied().filter(|codec| *codec != zstd(-3)).collect();
    every(Shape::MyRocks, (SNAPPY, 4), &codecs, SIZES_KIB)
}

fn myrocks_snippet(advised: &Advised<'_>) -> Vec<String> {
    vec![format!("rocksdb_default_cf_options='{}'", rocksdb_options(advised, false))]
}
