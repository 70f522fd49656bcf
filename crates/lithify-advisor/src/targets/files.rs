//! File systems: btrfs and ZFS. They have the bytes of files in the order in which they are.

use lithify::Compression;
use lithify::codec::CodecId;

use super::{
    Advised, Basis, LZ4, NONE, Setting, Target, always_fits, any_above, every, no_other_forms,
    rounded_up, zlib, zstd,
};
use crate::measure::Call;
use crate::sample::Order;
use crate::units::{Part, Shape};

const SECTOR_BYTES: f64 = 4096.0;

/// What btrfs keeps beside its metadata of a whole file (`max_inline`), compressed or not.
const INLINE_BYTES_MAX: f64 = 2048.0;
/// What ZFS keeps of a compressed block in the pointer to it (`BPE_PAYLOAD_SIZE`).
const EMBEDDED_BYTES_MAX: f64 = 112.0;
/// ZFS makes the only block of a file as large as the file, in whole of these.
const ZFS_BLOCK_BYTES: f64 = 512.0;

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
    fits: always_fits,
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

/// 128 KiB of a file, or its end, in whole sectors: compressed if that saves one. A file of at most one
/// sector that takes at most [`INLINE_BYTES_MAX`] takes those bytes (`can_cow_file_range_inline`).
fn btrfs_stored(setting: &Setting, call: &Call, _: &Basis) -> f64 {
    let raw = f64::from(call.unit_bytes);
    let least = match setting.compression {
        NONE => raw,
        _ => raw.min(f64::from(call.encoded_bytes)),
    };
    let may_be_inline = call.part == Part::Whole && raw <= SECTOR_BYTES;
    match may_be_inline && least <= INLINE_BYTES_MAX {
        true => least,
        false => rounded_up(least, SECTOR_BYTES),
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
    fits: always_fits,
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

/// A record in whole sectors: compressed if that saves an eighth. The last record of a file that has
/// several is as large as the others, its rest zeros. What fits in a block pointer takes its bytes.
fn zfs_stored(setting: &Setting, call: &Call, _: &Basis) -> f64 {
    let encoded = f64::from(call.encoded_bytes);
    let block = match call.part {
        Part::Inner => f64::from(call.unit_bytes),
        Part::End => setting.size_bytes as f64,
        Part::Whole => rounded_up(f64::from(call.unit_bytes), ZFS_BLOCK_BYTES),
    };
    let raw = rounded_up(block, SECTOR_BYTES);
    match setting.compression {
        NONE => raw,
        _ if encoded <= EMBEDDED_BYTES_MAX && encoded < block => encoded,
        _ if encoded <= block * 7.0 / 8.0 => rounded_up(encoded, SECTOR_BYTES).min(raw),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_take_sectors_and_small_ones_less() {
        let basis = Basis::default();
        let stored = |target: &Target, compression, part, unit_bytes, encoded_bytes| {
            let setting = Setting::new(Shape::Bytes, compression, 128 << 10);
            let call = Call { unit_bytes, encoded_bytes, part, ..Call::default() };
            (target.stored_bytes)(&setting, &call, &basis)
        };
        let cases = [
            // A part of a file, the end of a large one, small files.
            (NONE, Part::Inner, 131_072, 131_072, 131_072.0, 131_072.0),
            (zstd(3), Part::Inner, 131_072, 40_961, 45_056.0, 45_056.0),
            (zstd(3), Part::Inner, 131_072, 130_000, 131_072.0, 131_072.0),
            (NONE, Part::End, 5_000, 5_000, 8_192.0, 131_072.0),
            (zstd(3), Part::End, 5_000, 1_000, 4_096.0, 4_096.0),
            (NONE, Part::Whole, 5_000, 5_000, 8_192.0, 8_192.0),
            (NONE, Part::Whole, 2_048, 2_048, 2_048.0, 4_096.0),
            (NONE, Part::Whole, 3_000, 3_000, 4_096.0, 4_096.0),
            (zstd(3), Part::Whole, 3_000, 1_500, 1_500.0, 4_096.0),
            (zstd(3), Part::Whole, 5_000, 1_500, 4_096.0, 4_096.0),
            (zstd(3), Part::Whole, 128, 90, 90.0, 90.0),
            (zstd(3), Part::Whole, 128, 140, 128.0, 4_096.0),
        ];
        for (compression, part, unit, encoded, btrfs, zfs) in cases {
            let found = [BTRFS, ZFS].map(|one| stored(&one, compression, part, unit, encoded));
            assert_eq!(found, [btrfs, zfs], "{compression} {part:?} {unit} {encoded}");
        }
    }
}
