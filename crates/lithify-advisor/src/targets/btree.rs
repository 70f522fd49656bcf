//! Trees of pages: InnoDB in its two ways, WiredTiger, MongoDB.

use lithify::Compression;
use lithify::codec::CodecId;

use super::{
    Advised, Basis, LZ4, NONE, SNAPPY, Setting, Target, always_fits, any_above, every,
    no_other_forms, rounded_up, zlib, zstd,
};
use crate::measure::{Call, Cell};
use crate::sample::Order;
use crate::units::Shape;

/// What file systems and devices are written in.
const DISK_BLOCK_BYTES: f64 = 4096.0;

/// What pages that were split for their size take beyond what they would.
const SPLIT_PAGES: f64 = 1.44;

/// Inner pages of a tree, and pages of the file that have no rows.
const INNER_PAGES: f64 = 1.01;

pub(super) const INNODB: Target = Target {
    name: "innodb",
    title: "InnoDB, pages with holes",
    needs_rows: true,
    order: Order::Key,
    has_levels: false,
    default_upper: [NONE, NONE],
    may_be_above: any_above,
    has_short_calls: false,
    settings: innodb_settings,
    stored_bytes: innodb_stored,
    fits: always_fits,
    index_entry_bytes: |basis| basis.key_bytes + 9.0,
    snippet: innodb_snippet,
    other_forms: no_other_forms,
    note: "Loaded in key order; random inserts leave pages 69 % full. The file has up to 8 MiB more, \
           which InnoDB keeps free. Sizes are those of st_blocks: \
           ls shows the file without its holes. MySQL: COMPRESSION='zlib' or 'lz4'.",
    source: "MariaDB 10.11: fil0pagecompress.cc; taken by a server of that version",
};

fn innodb_settings() -> Vec<Setting> {
    let codecs = [NONE, zlib(1), zlib(6), zlib(9), LZ4, SNAPPY];
    every(Shape::InnoDb, (NONE, 16), &codecs, &[16])
}

/// Pages of a unit: a row that is longer than a page lies on pages of its own.
fn page_bytes(setting: &Setting, call: &Call) -> f64 {
    let page = setting.size_bytes as f64;
    rounded_up(f64::from(call.unit_bytes), page)
}

/// A page in whole blocks of the file system, if that saves one.
fn innodb_stored(setting: &Setting, call: &Call, _: &Basis) -> f64 {
    let page = page_bytes(setting, call);
    let stored = match setting.compression {
        NONE => page,
        _ => rounded_up(f64::from(call.encoded_bytes) + 40.0, DISK_BLOCK_BYTES).min(page),
    };
    stored * INNER_PAGES
}

fn innodb_snippet(advised: &Advised<'_>) -> Vec<String> {
    let compression = advised.setting.compression;
    match compression.codec {
        CodecId::None => vec!["ROW_FORMAT=DYNAMIC".to_owned()],
        CodecId::Zlib => {
            let level = compression.effort;
            vec![format!("ROW_FORMAT=DYNAMIC PAGE_COMPRESSED=1 PAGE_COMPRESSION_LEVEL={level}")]
        }
        codec => vec![
            "ROW_FORMAT=DYNAMIC PAGE_COMPRESSED=1".to_owned(),
            format!("my.cnf: innodb_compression_algorithm={}", codec.name()),
            format!("my.cnf: plugin_load_add=provider_{}", codec.name()),
        ],
    }
}

pub(super) const INNODB_COMPRESSED: Target = Target {
    name: "innodb-compressed",
    title: "InnoDB, ROW_FORMAT=COMPRESSED",
    needs_rows: true,
    order: Order::Key,
    has_levels: false,
    default_upper: [NONE, NONE],
    may_be_above: any_above,
    has_short_calls: false,
    settings: innodb_compressed_settings,
    stored_bytes: innodb_compressed_stored,
    fits: innodb_compressed_fits,
    index_entry_bytes: |basis| basis.key_bytes + 9.0,
    snippet: innodb_compressed_snippet,
    other_forms: no_other_forms,
    note: "A page that does not fit is split and tried again, which costs time as well: watch \
           INFORMATION_SCHEMA.INNODB_CMP. \"±\" is what the sample leaves open: the model of slots was off by 5 % in \
           the median, at worst by 31 %.",
    source: "MariaDB 10.11: page0zip.cc; taken by a server of that version",
};

fn innodb_compressed_settings() -> Vec<Setting> {
    let mut settings = vec![Setting::new(Shape::InnoDb, NONE, 16 << 10)];
    for slot_kib in [8, 4, 2, 1] {
        let setting = Setting::new(Shape::InnoDb, zlib(6), 16 << 10);
        settings.push(Setting { slot_bytes: slot_kib << 10, ..setting });
    }
    settings
}

/// A compressed page leaves room for the log of changes and the directory, about an eighth.
fn slot_bytes_needed(call: &Call) -> f64 {
    f64::from(call.encoded_bytes) * 1.14
}

/// Whether a row is longer than a page: it is a stream of its own, in as many slots as that takes.
fn is_stream(setting: &Setting, call: &Call) -> bool {
    call.unit_bytes as usize > setting.size_bytes
}

/// Half of a page fits: split once, it is stored.
fn innodb_compressed_fits(setting: &Setting, call: &Call) -> bool {
    let slot = setting.slot_bytes as f64;
    setting.compression == NONE || is_stream(setting, call) || slot_bytes_needed(call) <= 2.0 * slot
}

/// A page that does not fit is split: its parts are emptier, as 29.3 MB in slots of 4 KiB showed where
/// pages took 5.6 KiB.
fn innodb_compressed_stored(setting: &Setting, call: &Call, _: &Basis) -> f64 {
    if setting.compression == NONE {
        return page_bytes(setting, call) * INNER_PAGES;
    }
    let slot = setting.slot_bytes as f64;
    if is_stream(setting, call) {
        return rounded_up(f64::from(call.encoded_bytes), slot) * INNER_PAGES;
    }
    let needed = slot_bytes_needed(call);
    let slots = if needed <= slot { 1.0 } else { (needed * SPLIT_PAGES / slot).max(1.5) };
    // More than twice the page it began with is worth nothing: the next slot is smaller.
    (slots * slot).min(2.0 * page_bytes(setting, call)) * INNER_PAGES
}

fn innodb_compressed_snippet(advised: &Advised<'_>) -> Vec<String> {
    vec![match advised.setting.slot_bytes {
        0 => "ROW_FORMAT=DYNAMIC".to_owned(),
        bytes => format!("ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE={}", bytes >> 10),
    }]
}

pub(super) const WIREDTIGER: Target = Target {
    name: "wiredtiger",
    title: "WiredTiger",
    needs_rows: true,
    order: Order::Key,
    has_levels: false,
    default_upper: [NONE, NONE],
    may_be_above: any_above,
    has_short_calls: false,
    settings: wiredtiger_settings,
    stored_bytes: wiredtiger_stored,
    fits: always_fits,
    index_entry_bytes: |basis| basis.key_bytes + 10.0,
    snippet: wiredtiger_snippet,
    other_forms: no_other_forms,
    note: "The effort of zstd is the connection's. With the codec in a library of its own it is \
           extensions=[PATH={config=[compression_level=N]}]. Loaded in key order; random inserts leave \
           pages emptier.",
    source: "WiredTiger 12: src/reconcile/rec_write.c, bt_handle.c",
};

/// Pages of 16 KiB and more are sizes after compression: the engine gathers up to four times as much.
fn wiredtiger_every(
    default: (Compression, usize),
    codecs: &[Compression],
    sizes_kib: &[usize],
) -> Vec<Setting> {
    let mut settings = every(Shape::WiredTiger, default, codecs, sizes_kib);
    for setting in &mut settings {
        if setting.compression == NONE {
            continue;
        }
        let Setting { size_bytes, compression, .. } = *setting;
        let sizes = [size_bytes, 2 * size_bytes, 4 * size_bytes];
        let within = sizes.into_iter().filter(|size| *size <= CELL_BYTES_MAX);
        let cell = |size_bytes| Cell {
            shape: Shape::WiredTiger,
            size_bytes,
            compression,
            dictionary_bytes: 0,
        };
        setting.cells = within.map(cell).collect();
    }
    settings
}

/// The largest unit that a place has room for.
const CELL_BYTES_MAX: usize = 256 << 10;

fn wiredtiger_settings() -> Vec<Setting> {
    let codecs = [NONE, SNAPPY, LZ4, zlib(6), zstd(1), zstd(3), zstd(6), zstd(9)];
    wiredtiger_every((NONE, 32), &codecs, &[16, 32, 64])
}

/// A page of its size after compression, in whole units of allocation; less where four pages' worth
/// of rows shrink to less. Kept raw only if it does not shrink at all.
fn wiredtiger_stored(setting: &Setting, call: &Call, _: &Basis) -> f64 {
    let (raw, encoded) = (f64::from(call.unit_bytes), f64::from(call.encoded_bytes));
    let page = setting.size_bytes as f64;
    let encoded = (encoded + 64.0).min(raw);
    let stored = match encoded > page {
        // Cut smaller until it is a page: the share of the unit that a whole page takes.
        true => encoded * page / (page - DISK_BLOCK_BYTES / 2.0),
        false => rounded_up(encoded, DISK_BLOCK_BYTES),
    };
    // A split leaves pages nine tenths full on their way through memory.
    stored * INNER_PAGES
}

fn wiredtiger_snippet(advised: &Advised<'_>) -> Vec<String> {
    let setting = advised.setting;
    let codec = setting.compression.codec.name();
    let mut lines =
        vec![format!("block_compressor={codec},leaf_page_max={}KB", setting.size_bytes >> 10)];
    // Not an option of the table. Versions differ in what it is without this.
    if setting.compression.codec == CodecId::Zstd {
        let effort = setting.compression.effort;
        let builtin = "builtin_extension_config={zstd={compression_level=";
        lines.push(format!("wiredtiger_open: {builtin}{effort}}}}}"));
    }
    lines
}

pub(super) const MONGODB: Target = Target {
    name: "mongodb",
    title: "MongoDB",
    needs_rows: true,
    // By record numbers, which ascend as documents arrive.
    order: Order::Input,
    has_levels: false,
    default_upper: [NONE, NONE],
    may_be_above: any_above,
    has_short_calls: false,
    settings: mongodb_settings,
    stored_bytes: wiredtiger_stored,
    fits: always_fits,
    index_entry_bytes: |_| 18.0,
    snippet: mongodb_snippet,
    other_forms: no_other_forms,
    note: "For new collections. The effort of zstd is the server's: \
           storage.wiredTiger.engineConfig.zstdCompressionLevel, 6 without it. Rows are taken for \
           documents as they are; BSON is somewhat longer than JSON.",
    source: "mongo: wiredtiger_global_options.idl; not run here",
};

fn mongodb_settings() -> Vec<Setting> {
    let codecs = [NONE, SNAPPY, zlib(6), zstd(1), zstd(3), zstd(6), zstd(9)];
    wiredtiger_every((SNAPPY, 32), &codecs, &[32, 64])
}

fn mongodb_snippet(advised: &Advised<'_>) -> Vec<String> {
    let Setting { compression, size_bytes, .. } = advised.setting;
    let (codec, kib) = (compression.codec.name(), size_bytes >> 10);
    let mut lines = vec![format!(
        "db.createCollection(\"c\", {{storageEngine: {{wiredTiger: {{configString: \
         \"block_compressor={codec},leaf_page_max={kib}KB\"}}}}}})"
    )];
    if compression.codec == CodecId::Zstd && compression.effort != 6 {
        let option = format!("{{zstdCompressionLevel: {}}}", compression.effort);
        lines.push(format!("mongod.conf: storage: {{wiredTiger: {{engineConfig: {option}}}}}"));
    }
    lines
}
