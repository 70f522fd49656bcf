//! Databases and file systems: what can be set, what becomes of a unit, how the setting is written.
//!
//! A [`Target`] is a row of facts and functions: which order its rows have, its [`Setting`]s with the
//! one first that it comes with, the bytes that a unit takes, and the text to paste. Files group
//! relatives: `lsm` sorted tables in blocks, `btree` pages, `chunks` streams in chunks,
//! `files` file systems. Each rule names where it comes from.

mod btree;
mod chunks;
mod files;
mod lsm;

use lithify::Compression;
use lithify::codec::CodecId;

use crate::input::Present;
use crate::measure::{Call, Cell};
use crate::sample::Order;
use crate::units::Shape;

/// A way to set a target's compression.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Codec and effort.
    pub compression: Compression,
    /// The size that the target's own option has: block, page, chunk or record.
    pub size_bytes: usize,
    /// Bytes of a dictionary; 0 without one.
    pub dictionary_bytes: usize,
    /// What a unit is stored in, where sizes on disk are fixed; 0 otherwise.
    pub slot_bytes: usize,
    /// What is measured for it, by size. With several it is the largest one whose units take
    /// `size_bytes` when they are encoded.
    pub cells: Vec<Cell>,
}

impl Setting {
    fn new(shape: Shape, compression: Compression, size_bytes: usize) -> Setting {
        let cell = Cell { shape, size_bytes, compression, dictionary_bytes: 0 };
        Setting { compression, size_bytes, dictionary_bytes: 0, slot_bytes: 0, cells: vec![cell] }
    }

    fn with_dictionary(mut self, dictionary_bytes: usize) -> Setting {
        self.dictionary_bytes = dictionary_bytes;
        self.cells.iter_mut().for_each(|cell| cell.dictionary_bytes = dictionary_bytes);
        self
    }

    /// The same codec in blocks as large as another setting's.
    fn with_size_of(&self, other: &Setting) -> Option<Setting> {
        let shape = other.cells.first()?.shape;
        Some(Setting::new(shape, self.compression, other.size_bytes))
    }

    /// "zstd-3 16k", "lz4 4k, dictionary".
    pub fn name(&self) -> String {
        let size = match self.size_bytes % 1024 {
            0 => format!("{}k", self.size_bytes >> 10),
            _ => self.size_bytes.to_string(),
        };
        let dictionary = if self.dictionary_bytes > 0 { ", dictionary" } else { "" };
        let slot = match self.slot_bytes {
            0 => String::new(),
            bytes => format!(" in {}k", bytes >> 10),
        };
        format!("{} {size}{slot}{dictionary}", self.compression)
    }
}

/// What the rows are like, as far as sizes beside the units depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Basis {
    /// Bytes of a key on average.
    pub key_bytes: f64,
    /// Bytes of a row in the input on average.
    pub row_bytes: f64,
    /// Bytes of the data.
    pub data_bytes: f64,
    /// Whether rows are rows, and no pieces of files.
    pub has_rows: bool,
    /// Bytes of the whole database: those of the data where nothing else is said.
    pub database_bytes: f64,
}

/// What the first level below L0 holds, as RocksDB has it.
const FIRST_LEVEL_BYTES: f64 = 268_435_456.0;

impl Basis {
    /// Small rows that are all of their database.
    #[cfg(test)]
    pub(crate) fn of_a_gigabyte() -> Basis {
        Basis {
            key_bytes: 16.0,
            row_bytes: 100.0,
            data_bytes: 1e9,
            has_rows: true,
            database_bytes: 1e9,
        }
    }

    /// How many tenfold steps there are from the first level below L0 to all of the database.
    pub(crate) fn tenfold_steps(&self) -> f64 {
        (self.database_bytes / FIRST_LEVEL_BYTES).max(1.0).log10().ceil()
    }
}

/// What is to be pasted.
#[derive(Clone, Copy, Debug)]
pub struct Advised<'a> {
    /// The setting of most bytes.
    pub setting: &'a Setting,
    /// In a tree with levels: the codec one above the bottom, and of all above that.
    pub upper: [Compression; 2],
    /// The data that it is for.
    pub basis: Basis,
}

/// Names of languages, each with its lines.
pub type OtherForms = Vec<(&'static str, Vec<String>)>;

/// A database or file system.
#[derive(Clone, Copy)]
pub struct Target {
    /// As `--for` takes it.
    pub name: &'static str,
    /// As people write it.
    pub title: &'static str,
    /// Whether it stores rows, or bytes that it knows nothing of.
    pub needs_rows: bool,
    /// The order in which it has them.
    pub order: Order,
    /// Whether upper levels have codecs of their own.
    pub has_levels: bool,
    /// The codecs one above the bottom and further up that it comes with, where there are levels.
    pub default_upper: [Compression; 2],
    /// Whether level 0 and those behind it may have one codec where the level above the bottom has another.
    pub may_be_above: fn(Compression, Compression) -> bool,
    /// Whether a long call of a codec holds up more than its own thread.
    pub has_short_calls: bool,
    /// The settings; the first one is what it comes with.
    pub settings: fn() -> Vec<Setting>,
    /// Bytes on disk for a unit, with what belongs to it: index, checksum, rounding.
    pub stored_bytes: fn(&Setting, &Call, &Basis) -> f64,
    /// Whether a unit fits what it is stored in, at least in two parts.
    pub fits: fn(&Setting, &Call) -> bool,
    /// Bytes of memory for each unit: its entry in an index that is kept there.
    pub index_entry_bytes: fn(&Basis) -> f64,
    /// The text to paste, line by line.
    pub snippet: fn(&Advised<'_>) -> Vec<String>,
    /// The same in other languages, each with its name.
    pub other_forms: fn(&Advised<'_>) -> OtherForms,
    /// What one has to know beside it.
    pub note: &'static str,
    /// Where its rules are from, and who checked the text.
    pub source: &'static str,
}

impl Target {
    /// Its settings. Of data that are set to a ladder there, those of its levels too, and others in blocks of
    /// the same size.
    pub(crate) fn settings_beside(&self, present: Option<&Present>) -> Vec<Setting> {
        let mut settings = (self.settings)();
        let set = self.settings_of(present);
        let of_size = |like: &Setting| -> Vec<Setting> {
            let plain = settings.iter().filter(|one| one.dictionary_bytes == 0);
            plain.filter_map(|one| one.with_size_of(like)).collect()
        };
        let others = set.first().map(of_size).unwrap_or_default();
        for setting in set.into_iter().chain(others) {
            if !settings.contains(&setting) {
                settings.push(setting);
            }
        }
        settings
    }

    /// The settings of the levels of a ladder that the data are set to there.
    pub(crate) fn settings_of(&self, present: Option<&Present>) -> Vec<Setting> {
        let of_target = present.filter(|present| present.target == self.name && present.is_set);
        let bottom = of_target.and_then(|present| present.bottom);
        let (Some(present), Some(bottom)) = (of_target, bottom) else { return Vec::new() };
        let first = (self.settings)().into_iter().next();
        let shape = first.and_then(|first| Some(first.cells.first()?.shape));
        let setting =
            |codec| shape.map(|shape| Setting::new(shape, codec, bottom.block_size_bytes));
        let dictionary_bytes = if bottom.has_dictionary { lsm::DICTIONARY_BYTES } else { 0 };
        let of_bottom =
            setting(bottom.compression).map(|one| one.with_dictionary(dictionary_bytes));
        let upper = present.upper.into_iter().flatten().filter_map(setting);
        of_bottom.into_iter().chain(upper).collect()
    }
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// All of them, in the order in which they are shown.
pub const TARGETS: &[Target] = &[
    lsm::LITHIFY,
    lsm::ROCKSDB,
    lsm::MYROCKS,
    btree::INNODB,
    btree::INNODB_COMPRESSED,
    btree::WIREDTIGER,
    btree::MONGODB,
    chunks::CASSANDRA,
    chunks::SCYLLA,
    files::BTRFS,
    files::ZFS,
];

/// A codec as a setting names it.
const fn codec(codec: CodecId, effort: i32) -> Compression {
    Compression { codec, effort, encoder: lithify::Encoder::Reference }
}

const NONE: Compression = Compression::NONE;
const SNAPPY: Compression = codec(CodecId::Snappy, 0);
const LZ4: Compression = Compression::LZ4;
const LZ4HC: Compression = codec(CodecId::Lz4, 9);

const fn zlib(effort: i32) -> Compression {
    codec(CodecId::Zlib, effort)
}

const fn zstd(effort: i32) -> Compression {
    codec(CodecId::Zstd, effort)
}

/// For targets whose levels have efforts of their own, or that have no levels.
fn any_above(_: Compression, _: Compression) -> bool {
    true
}

/// For targets that store units of any size.
fn always_fits(_: &Setting, _: &Call) -> bool {
    true
}

/// For targets that have one form.
fn no_other_forms(_: &Advised<'_>) -> OtherForms {
    Vec::new()
}

/// Every codec at every size, the default first.
fn every(
    shape: Shape,
    default: (Compression, usize),
    codecs: &[Compression],
    sizes_kib: &[usize],
) -> Vec<Setting> {
    let mut settings = vec![Setting::new(shape, default.0, default.1 << 10)];
    for size_kib in sizes_kib {
        for compression in codecs {
            let setting = Setting::new(shape, *compression, size_kib << 10);
            if setting != settings[0] {
                settings.push(setting);
            }
        }
    }
    settings
}

/// What whole blocks of a file system or device take.
fn rounded_up(bytes: f64, to: f64) -> f64 {
    (bytes / to).ceil() * to
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_valid_and_named_once() {
        for target in TARGETS {
            let settings = (target.settings)();
            let mut names: Vec<String> = settings.iter().map(Setting::name).collect();
            let count = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), count, "{target:?}");
            for setting in settings {
                assert!(setting.compression.validate().is_ok(), "{target:?} {}", setting.name());
                assert!(!setting.cells.is_empty(), "{target:?}");
                let advised =
                    Advised { setting: &setting, upper: [LZ4, NONE], basis: Basis::default() };
                assert!(!(target.snippet)(&advised).is_empty(), "{target:?}");
            }
        }
    }

    #[test]
    fn no_unit_takes_much_more_than_it_holds() {
        let basis = Basis::of_a_gigabyte();
        for target in TARGETS {
            for setting in (target.settings)() {
                let unit = setting.cells[0].size_bytes as u32;
                let call = |encoded_bytes| Call {
                    unit_bytes: unit,
                    encoded_bytes,
                    data_bytes: f64::from(unit),
                    rows: f64::from(unit) / 100.0,
                    ..Call::default()
                };
                let stored = |bytes| (target.stored_bytes)(&setting, &call(bytes), &basis);
                let [half, whole] = [stored(unit / 2), stored(unit + 20)];
                let name = setting.name();
                assert!(half <= whole, "{target:?} {name}");
                // A page that does not fit its slot is split in two.
                let split = if setting.slot_bytes > 0 { 2.0 } else { 1.0 };
                let most = split * f64::from(unit) * 1.1 + 4096.0;
                assert!(whole <= most, "{target:?} {name}: {whole} of {unit}");
            }
        }
    }
}
