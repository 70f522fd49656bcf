//! Every setting of the engine, with default, unit and range, in one place.
//!
//! Settings only: no handles, no callbacks. A setting is either per database ([`Options`]) or per
//! column family ([`CfOptions`]); nothing can be set twice. What contradicts itself is refused
//! with both names. The tables [`DATABASE_OPTIONS`] and [`FAMILY_OPTIONS`] are what the checks,
//! `docs/options.md` and its test are made from.

use crate::compaction::{CodecPolicy, FormatPolicy, LevelFormats};
use crate::manifest::{FamilyState, ROTATE_SIZE_BYTES};
use crate::wal::PAYLOAD_SIZE_MAX;
use crate::{Error, Result};
use std::sync::Arc;

/// When a write is acknowledged, and what can be lost afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The log is synced before a write is visible or acknowledged: nothing is ever lost. A sync
    /// makes all earlier logged writes durable too.
    Sync,
    /// The log is written, not synced: a crash of the process loses nothing, a power cut loses
    /// what the system had not written back.
    Buffered,
    /// As `Buffered`, and the log is synced in the background every so many milliseconds: a
    /// power cut loses at most about that much. Per database only.
    Interval {
        /// Milliseconds between syncs.
        milliseconds: u32,
    },
    /// No log: a crash loses everything since the last flush, and a flush is atomic across all
    /// column families. Per database only.
    None,
}

/// One row of the table of settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionInfo {
    /// The field's name.
    pub name: &'static str,
    /// The default, as text.
    pub default: &'static str,
    /// The unit.
    pub unit: &'static str,
    /// The smallest value, for numbers.
    pub minimum: u64,
    /// The largest value, for numbers.
    pub maximum: u64,
    /// What it does.
    pub meaning: &'static str,
}

const MIB: u64 = 1 << 20;

macro_rules! option {
    ($name:literal, $default:literal, $unit:literal, $minimum:expr, $maximum:expr, $meaning:literal) => {
        OptionInfo {
            name: $name,
            default: $default,
            unit: $unit,
            minimum: $minimum,
            maximum: $maximum,
            meaning: $meaning,
        }
    };
}

/// The settings of a database.
pub const DATABASE_OPTIONS: &[OptionInfo] = &[
    option!("create_if_missing", "true", "boolean", 0, 1, "Make a new database if there is none."),
    option!(
        "memory_budget_bytes",
        "268435456",
        "bytes",
        MIB,
        1 << 46,
        "One budget for block cache, memtables, filters, codec contexts, compaction buffers and read-ahead; the cache gets what the others leave."
    ),
    option!(
        "memtable_bytes",
        "16777216",
        "bytes",
        65_536,
        1 << 32,
        "A memtable of this size is flushed."
    ),
    option!(
        "wal_bytes_max",
        "268435456",
        "bytes",
        65_536,
        1 << 46,
        "More log than this makes the column family that pins the oldest segment flush."
    ),
    option!(
        "manifest_bytes_max",
        "4194304",
        "bytes",
        1024,
        1 << 32,
        "A manifest longer than this, and than twice what the present state takes, is replaced by one that holds nothing else."
    ),
    option!(
        "background_threads",
        "2",
        "threads",
        0,
        64,
        "Threads that flush and compact. With 0, a caller that has to wait does the work, step by step."
    ),
    option!(
        "durability",
        "buffered",
        "mode",
        0,
        0,
        "When a write is acknowledged: sync, buffered, interval(ms) or none; see durability.md."
    ),
    option!(
        "row_lock_timeout_ms",
        "1000",
        "milliseconds",
        0,
        3_600_000,
        "How long a transaction or a plain write waits for a row lock."
    ),
    option!(
        "deadlock_detection",
        "true",
        "boolean",
        0,
        1,
        "Refuse at once a wait for a row lock that would close a circle of waiting writers; otherwise they wait out row_lock_timeout_ms."
    ),
    option!(
        "direct_reads",
        "false",
        "boolean",
        0,
        1,
        "Read tables past the system's page cache, for users and compactions alike. Opening fails where the file system cannot."
    ),
    option!(
        "space_slack_percent",
        "30",
        "percent",
        5,
        10_000,
        "Obsolete entries may take this part of the settled size: on the way there writers are slowed until compaction keeps up. More is faster and larger."
    ),
];

/// The settings of a column family.
pub const FAMILY_OPTIONS: &[OptionInfo] = &[
    option!(
        "compression",
        "none,lz4,zstd-1",
        "policy",
        0,
        0,
        "Codec by distance from the bottom: small levels and L0, middle (one above the bottom), bottom; a fourth one in front of them is for L0 alone."
    ),
    option!(
        "block_size_bytes",
        "16384",
        "bytes",
        512,
        4 * MIB,
        "Data blocks are cut at this size before compression; those of rows larger than a tenth of it where they are nearest to it."
    ),
    option!(
        "table_bytes",
        "16777216",
        "bytes",
        65_536,
        1 << 34,
        "Tables written by compactions are cut at about this size."
    ),
    option!(
        "base_level_bytes_max",
        "67108864",
        "bytes",
        65_536,
        1 << 40,
        "The first level below L0 is kept at or below this size; targets are derived from the bottom up."
    ),
    option!(
        "fanout",
        "8",
        "factor",
        2,
        64,
        "A level's target is this many times that of the level above."
    ),
    option!(
        "filter_bits_per_key",
        "10",
        "bits",
        0,
        64,
        "Bits of the Bloom filter per key; 0 for none."
    ),
    option!(
        "prefix_length_bytes",
        "0",
        "bytes",
        0,
        1024,
        "Keys' first bytes that the filter also holds, so that scans of a prefix skip tables; 0 for none."
    ),
];

/// The settings of a database. Read them all with `Debug`; [`DATABASE_OPTIONS`] has units and
/// ranges.
///
/// ```
/// use lithify::{Durability, Options};
/// let options = Options { memory_budget_bytes: 64 << 20, ..Options::default() };
/// assert_eq!(options.durability, Durability::Buffered);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Make a new database if there is none.
    pub create_if_missing: bool,
    /// One budget for block cache, memtables, filters, codec contexts, compaction buffers and
    /// read-ahead.
    pub memory_budget_bytes: usize,
    /// A memtable of this size is flushed.
    pub memtable_bytes: usize,
    /// More log than this makes the family that pins the oldest segment flush.
    pub wal_bytes_max: u64,
    /// A manifest longer than this, and than twice what the present state takes, is replaced.
    pub manifest_bytes_max: u64,
    /// Threads that flush and compact; with 0 a waiting caller does the work.
    pub background_threads: usize,
    /// When a write is acknowledged.
    pub durability: Durability,
    /// How long a writer waits for a row lock.
    pub row_lock_timeout_ms: u64,
    /// Refuse at once a wait for a row lock that would close a circle of waiting writers.
    pub deadlock_detection: bool,
    /// Read tables past the system's page cache, so that the block cache is the only one.
    pub direct_reads: bool,
    /// Obsolete entries may take this part of the settled size, in percent. A database that is
    /// overwritten without a pause comes to rest near half of it.
    pub space_slack_percent: u32,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            create_if_missing: true,
            memory_budget_bytes: 256 << 20,
            memtable_bytes: 16 << 20,
            wal_bytes_max: 256 << 20,
            manifest_bytes_max: ROTATE_SIZE_BYTES,
            background_threads: 2,
            durability: Durability::Buffered,
            row_lock_timeout_ms: 1000,
            deadlock_detection: true,
            direct_reads: false,
            space_slack_percent: 30,
        }
    }
}

/// The settings of a column family. They are stored in the database; opening a family with other
/// ones changes them for what is written from then on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CfOptions {
    /// Codec by distance from the bottom.
    pub compression: CodecPolicy,
    /// Data blocks are cut at this size before compression; those of rows larger than a tenth of it
    /// where they are nearest to it.
    pub block_size_bytes: usize,
    /// Tables written by compactions are cut at about this size.
    pub table_bytes: u64,
    /// The first level below L0 is kept at or below this size.
    pub base_level_bytes_max: u64,
    /// A level's target is this many times that of the level above.
    pub fanout: u32,
    /// Bits of the Bloom filter per key; 0 for none.
    pub filter_bits_per_key: u32,
    /// Keys' first bytes that the filter also holds; 0 for none.
    pub prefix_length_bytes: usize,
}

impl Default for CfOptions {
    fn default() -> Self {
        CfOptions {
            compression: CodecPolicy::default(),
            block_size_bytes: 16 << 10,
            table_bytes: 16 << 20,
            base_level_bytes_max: 64 << 20,
            fanout: 8,
            filter_bits_per_key: 10,
            prefix_length_bytes: 0,
        }
    }
}

fn check_range(table: &[OptionInfo], name: &str, value: u64) -> Result<()> {
    let row = table.iter().find(|row| row.name == name);
    match row {
        Some(row) if (row.minimum..=row.maximum).contains(&value) => Ok(()),
        Some(row) => Err(Error::invalid(format!("the option {name} is out of its range"))
            .expected(format_args!("{} to {} {}", row.minimum, row.maximum, row.unit), value)),
        None => Err(Error::invalid(format!("there is no option {name}"))),
    }
}

impl Options {
    /// Checks ranges and contradictions.
    ///
    /// # Errors
    /// `InvalidArgument` that names the option and its range, or the two options that contradict.
    pub fn validate(&self) -> Result<()> {
        let check = |name, value| check_range(DATABASE_OPTIONS, name, value);
        check("memory_budget_bytes", self.memory_budget_bytes as u64)?;
        check("memtable_bytes", self.memtable_bytes as u64)?;
        check("wal_bytes_max", self.wal_bytes_max)?;
        check("manifest_bytes_max", self.manifest_bytes_max)?;
        check("background_threads", self.background_threads as u64)?;
        check("row_lock_timeout_ms", self.row_lock_timeout_ms)?;
        check("space_slack_percent", u64::from(self.space_slack_percent))?;
        if self.memtable_bytes > self.memory_budget_bytes / 2 {
            return Err(Error::invalid(
                "memtable_bytes contradicts memory_budget_bytes: it must be at most half of it",
            )
            .expected(self.memory_budget_bytes / 2, self.memtable_bytes));
        }
        if let Durability::Interval { milliseconds: 0 } = self.durability {
            return Err(Error::invalid(
                "durability interval(0) contradicts itself: use sync, or at least 1 ms",
            ));
        }
        if self.durability != Durability::None && self.wal_bytes_max < self.memtable_bytes as u64 {
            return Err(Error::invalid(
                "wal_bytes_max contradicts memtable_bytes: it must be at least as large",
            )
            .expected(self.memtable_bytes, self.wal_bytes_max));
        }
        Ok(())
    }

    /// The largest batch, in bytes as logged: half of the memory budget, and what one record of
    /// the log can hold with a group's head before it.
    pub(crate) fn batch_bytes_max(&self) -> usize {
        (self.memory_budget_bytes / 2).min(PAYLOAD_SIZE_MAX - 4096)
    }
}

impl CfOptions {
    /// Checks ranges and contradictions.
    ///
    /// # Errors
    /// As [`Options::validate`].
    pub fn validate(&self) -> Result<()> {
        let check = |name, value| check_range(FAMILY_OPTIONS, name, value);
        check("block_size_bytes", self.block_size_bytes as u64)?;
        check("table_bytes", self.table_bytes)?;
        check("base_level_bytes_max", self.base_level_bytes_max)?;
        check("fanout", u64::from(self.fanout))?;
        check("filter_bits_per_key", u64::from(self.filter_bits_per_key))?;
        check("prefix_length_bytes", self.prefix_length_bytes as u64)?;
        if self.prefix_length_bytes > 0 && self.filter_bits_per_key == 0 {
            return Err(Error::invalid(
                "prefix_length_bytes contradicts filter_bits_per_key 0: prefixes live in the filter",
            ));
        }
        if self.block_size_bytes as u64 > self.table_bytes {
            return Err(Error::invalid(
                "block_size_bytes contradicts table_bytes: a table holds at least one block",
            )
            .expected(format_args!("at most {}", self.table_bytes), self.block_size_bytes));
        }
        Ok(())
    }

    /// The policy that decides the format of the family's tables. Every policy is made here.
    pub(crate) fn formats(&self) -> Arc<dyn FormatPolicy> {
        let (codecs, block_size_bytes) = (self.compression, self.block_size_bytes);
        Arc::new(LevelFormats { codecs, block_size_bytes })
    }

    /// The options as one line of text, as the manifest keeps them.
    pub(crate) fn to_text(&self) -> String {
        format!(
            "compression={} block_size_bytes={} table_bytes={} base_level_bytes_max={} fanout={} \
             filter_bits_per_key={} prefix_length_bytes={}",
            self.compression,
            self.block_size_bytes,
            self.table_bytes,
            self.base_level_bytes_max,
            self.fanout,
            self.filter_bits_per_key,
            self.prefix_length_bytes
        )
    }

    /// The options that the manifest keeps of a column family.
    pub(crate) fn of_family(stored: &FamilyState) -> Result<Self> {
        let text = std::str::from_utf8(&stored.options).map_err(|error| {
            let what = format!("the options of column family {:?} are no text", stored.name);
            Error::corruption(what).because(error)
        })?;
        CfOptions::from_text(text)
    }

    /// Reads what [`CfOptions::to_text`] wrote. A name that this version does not know is an
    /// error: the family's data were written under a setting whose meaning is unknown.
    pub(crate) fn from_text(text: &str) -> Result<Self> {
        let mut options = CfOptions::default();
        for pair in text.split_ascii_whitespace() {
            let (name, value) = pair.split_once('=').ok_or_else(|| bad_stored_option(pair))?;
            let number = || value.parse::<u64>().map_err(|_| bad_stored_option(pair));
            match name {
                "compression" => options.compression = value.parse()?,
                "block_size_bytes" => options.block_size_bytes = number()? as usize,
                "table_bytes" => options.table_bytes = number()?,
                "base_level_bytes_max" => options.base_level_bytes_max = number()?,
                "fanout" => options.fanout = number()? as u32,
                "filter_bits_per_key" => options.filter_bits_per_key = number()? as u32,
                "prefix_length_bytes" => options.prefix_length_bytes = number()? as usize,
                _ => return Err(bad_stored_option(pair)),
            }
        }
        options.validate()?;
        Ok(options)
    }
}

fn bad_stored_option(pair: &str) -> Error {
    Error::corruption(format!("the stored column family option {pair:?} cannot be read"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_survive_text() {
        Options::default().validate().unwrap();
        let options = CfOptions { prefix_length_bytes: 20, fanout: 5, ..CfOptions::default() };
        assert_eq!(CfOptions::from_text(&options.to_text()).unwrap(), options);
        assert!(CfOptions::from_text("fanout=eight").is_err());
        assert!(CfOptions::from_text("colour=red").is_err());
    }

    #[test]
    fn contradictions_name_both_options() {
        let options = Options { memtable_bytes: 200 << 20, ..Options::default() };
        let text = options.validate().unwrap_err().to_string();
        assert!(text.contains("memtable_bytes") && text.contains("memory_budget_bytes"), "{text}");
        let options =
            CfOptions { prefix_length_bytes: 8, filter_bits_per_key: 0, ..CfOptions::default() };
        let text = options.validate().unwrap_err().to_string();
        assert!(text.contains("prefix_length_bytes") && text.contains("filter_bits_per_key"));
        let options = CfOptions { fanout: 1, ..CfOptions::default() };
        let text = options.validate().unwrap_err().to_string();
        assert!(text.contains("fanout") && text.contains("2 to 64"), "{text}");
    }

    #[test]
    fn the_table_of_options_lists_every_field() {
        let fields = |debug: String| -> Vec<String> {
            debug
                .split(['{', ','])
                .filter_map(|part| part.split_once(": "))
                .map(|(name, _)| name.trim().to_string())
                .collect()
        };
        let stored = fields(format!("{:?}", Options::default()));
        for row in DATABASE_OPTIONS {
            assert!(stored.iter().any(|field| field == row.name), "{} is no field", row.name);
        }
        assert_eq!(DATABASE_OPTIONS.len(), 11);
        assert_eq!(FAMILY_OPTIONS.len(), 7);
    }
}
