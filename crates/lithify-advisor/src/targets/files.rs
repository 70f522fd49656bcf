//! File systems: btrfs and ZFS. They have the bytes of files in the order in which they are.

use lithify::Compression;
use lithify::codec::CodecId;

use super::{
    Advised, Basis, LZ4, NONE, Setting, Target, any_above, every, no_other_forms, rounded_up, zlib,
    zstd,
};
use crate::measure::Call;
use crate::sample::Order;
use crate::units::Shape;

const SECTOR_BYTES: f64 = 4096.0;

pub(super) const BTRFS: Target = Target {
    name: "btrfs",
    title: "btrfs",
    needs_rows: false,
    order: Order::Input,
    has_levels: false,
    default_upper: [NONE, NONE],
    may_be_above: any_above,
    has_short_calls: false,
    settings: btrfs_settings,
    stored_bytes: btrfs_stored,
    index_entry_bytes: |_| 78.0,
    snippet: btrfs_snippet,
    other_forms: no_other_forms,
    note: "For files that are written at once: random writes of a database are compressed as small as \
           they are. du shows the sizes without compression: measure with compsize.",
    source: "btrfs-progs documentation; lzo is not measured",
};

fn btrfs_settings() -> Vec<Setting> {
    let codecs = [NONE, zlib(3), zlib(9), zstd(1), zstd(3), zstd(6), zstd(9), zstd(15)];
    every(Shape::Bytes, (NONE, 128), &codecs, &[128])
}

/// 128 KiB of a file in whole sectors, if that saves one.
fn btrfs_stored(setting: &Setting, call: &Call, _: &Basis) -> f64 {
    let raw = f64::from(call.unit_bytes);
    match setting.compression {
        NONE => raw,
        _ => rounded_up(f64::from(call.encoded_bytes), SECTOR_BYTES).min(raw),
    }
}

fn btrfs_snippet(advised: &Advised<'_>) -> Vec<String> {
    let Compression { codec, effort, .. } = advised.setting.compression;
    match codec {
        CodecId::None => vec!["no compress option: files are stored as they are".to_owned()],
        codec => vec![format!("mount -o compress={}:{effort}", codec.name())],
    }
}

pub(super) const ZFS: Target = Target {
    name: "zfs",
    title: "ZFS",
    needs_rows: false,
    order: Order::Input,
    has_levels: false,
    default_upper: [NONE, NONE],
    may_be_above: any_above,
    has_short_calls: false,
    settings: zfs_settings,
    stored_bytes: zfs_stored,
    index_entry_bytes: |_| 128.0,
    snippet: zfs_snippet,
    other_forms: no_other_forms,
    note: "For new files. Databases want recordsize as large as their pages, where rounding to sectors \
           eats most of the gain.",
    source: "OpenZFS 2.4: zfsprops, zio_compress.c; not run here",
};

fn zfs_settings() -> Vec<Setting> {
    let codecs = [NONE, LZ4, zlib(6), zstd(1), zstd(3), zstd(6), zstd(9), zstd(15)];
    every(Shape::Bytes, (LZ4, 128), &codecs, &[16, 128])
}

/// A record in whole sectors, if that saves an eighth.
fn zfs_stored(setting: &Setting, call: &Call, _: &Basis) -> f64 {
    let raw = f64::from(call.unit_bytes);
    let rounded = rounded_up(f64::from(call.encoded_bytes), SECTOR_BYTES);
    let shrinks = rounded < raw && f64::from(call.encoded_bytes) <= raw * 7.0 / 8.0;
    match setting.compression {
        NONE => raw,
        _ if shrinks => rounded,
        _ => raw,
    }
}

fn zfs_snippet(advised: &Advised<'_>) -> Vec<String> {
    let Setting { compression: Compression { codec, effort, .. }, size_bytes, .. } =
        advised.setting;
    let value = match codec {
        CodecId::None => "off".to_owned(),
        CodecId::Zlib => format!("gzip-{effort}"),
        CodecId::Zstd => format!("zstd-{effort}"),
        codec => codec.name().to_owned(),
    };
    vec![format!("zfs set compression={value} recordsize={}K pool/dataset", size_bytes >> 10)]
}
