//! Every setting of the engine, each once: one row has its field, type, default, unit, range and
//! meaning.
//!
//! Settings only, and no handles; a merge operator is a setting by its name. The one callback, the event
//! listener, stands apart from the rows: it has no text form. A setting is either per database ([`Options`]) or per
//! column family ([`CfOptions`]); nothing can be set twice. What contradicts itself is refused
//! with both names. From the rows come the structs, their defaults, the check of ranges, the text
//! form that is printed, parsed and kept in the manifest, and the tables [`DATABASE_OPTIONS`] and
//! [`FAMILY_OPTIONS`], from which a test makes those of `docs/options.md`.
//!
//! A new setting is a row here, a line in that page's table of changes, and the code that obeys it.

use crate::base::parse_bytes;
use crate::compaction::{CompressionPolicy, Deciding, FormatPolicy, LevelFormats};
use crate::events::{EventListener, OptionChange};
use crate::manifest::{FamilyState, ROTATE_SIZE_BYTES};
use crate::operator::MergeOperator;
use crate::wal::PAYLOAD_SIZE_MAX;
use crate::{Error, Result};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
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

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Durability::Sync => f.write_str("sync"),
            Durability::Buffered => f.write_str("buffered"),
            Durability::Interval { milliseconds } => write!(f, "interval({milliseconds})"),
            Durability::None => f.write_str("none"),
        }
    }
}

impl FromStr for Durability {
    type Err = Error;

    /// Parses what `Display` writes. Every failure is [`crate::ErrorKind::InvalidArgument`].
    fn from_str(text: &str) -> Result<Self> {
        let interval = |text: &str| {
            let milliseconds = text.strip_prefix("interval(")?.strip_suffix(')')?.parse().ok()?;
            Some(Durability::Interval { milliseconds })
        };
        match text {
            "sync" => Ok(Durability::Sync),
            "buffered" => Ok(Durability::Buffered),
            "none" => Ok(Durability::None),
            _ => interval(text).ok_or_else(|| {
                Error::invalid("durability").expected("sync, buffered, interval(ms) or none", text)
            }),
        }
    }
}

/// One row of the table of settings.
#[derive(Clone, Copy, Debug)]
pub struct OptionInfo {
    /// The field's name.
    pub name: &'static str,
    /// The default, as text.
    pub default: fn() -> String,
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

/// The size of blocks where none is given.
const BLOCK_SIZE_BYTES: usize = 16 << 10;

/// The longest time to live, in seconds: 68 years.
const TIME_TO_LIVE_S_MAX: u64 = (1 << 31) - 1;

/// The smallest size of blocks that can be given.
const BLOCK_SIZE_BYTES_MIN: usize = 512;

/// The type of a setting: how its value is read from text, and its number if it has a range.
trait OptionValue: fmt::Display + Sized {
    /// The value; `None` if the text is no value of this type. Words give their own error. Numbers of
    /// bytes may have a unit behind them: `8k`, `16MiB`.
    fn from_text(text: &str, unit: &str) -> Result<Option<Self>>;

    /// What is compared with the range; `None` if every value of the type is allowed.
    fn number(&self) -> Option<u64>;
}

macro_rules! number_values {
    ($($number:ty),+) => {$(
        impl OptionValue for $number {
            fn from_text(text: &str, unit: &str) -> Result<Option<Self>> {
                match unit {
                    "bytes" => Ok(parse_bytes(text).and_then(|bytes| bytes.try_into().ok())),
                    _ => Ok(text.parse().ok()),
                }
            }

            fn number(&self) -> Option<u64> {
                Some(*self as u64)
            }
        }
    )+};
}

number_values!(u32, u64, usize);

impl OptionValue for bool {
    fn from_text(text: &str, _unit: &str) -> Result<Option<Self>> {
        Ok(text.parse().ok())
    }

    fn number(&self) -> Option<u64> {
        None
    }
}

macro_rules! word_values {
    ($($word:ty),+) => {$(
        impl OptionValue for $word {
            fn from_text(text: &str, _unit: &str) -> Result<Option<Self>> {
                text.parse().map(Some)
            }

            fn number(&self) -> Option<u64> {
                None
            }
        }
    )+};
}

word_values!(Durability, CompressionPolicy, MergeOperator);

/// Why `name=text` sets none of the options in `table`.
fn unreadable(table: &[OptionInfo], name: &str, text: &str) -> Error {
    let Some(option) = table.iter().find(|option| option.name == name) else {
        return Error::invalid(format!(
            "there is no option {name:?} here: docs/options.md has all"
        ));
    };
    let expected = match (option.default)().as_str() {
        "true" | "false" => "true or false".to_string(),
        _ => {
            let example = if option.unit == "bytes" { ", such as 64KiB" } else { "" };
            format!("a number from {} to {}{example}", option.minimum, option.maximum)
        }
    };
    Error::invalid(format!("the option {name}")).expected(expected, format_args!("{text:?}"))
}

/// Settings from one list. A row is a doc comment, which is the meaning on the page too, then
/// `field: type = default, unit, range;`. Values that are no numbers have the range `0..=0`. What has no
/// text form follows behind `with`.
macro_rules! settings {
    ($(#[$attribute:meta])* $settings:ident, $(#[$table_attribute:meta])* $table:ident {
        $($(#[doc = $doc:literal])+
        $field:ident: $value:ty = $default:expr, $unit:literal, $range:expr;)+
    } with {
        $($(#[doc = $other_doc:literal])+ $other:ident: $other_value:ty;)*
    }) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $settings {
            $($(#[doc = $doc])+ pub $field: $value,)+
            $($(#[doc = $other_doc])+ pub $other: $other_value,)*
        }

        $(#[$table_attribute])*
        pub const $table: &[OptionInfo] = &[$(OptionInfo {
            name: stringify!($field),
            default: || $settings::default().$field.to_string(),
            unit: $unit,
            minimum: *($range).start(),
            maximum: *($range).end(),
            meaning: concat!($($doc),+).trim_ascii(),
        },)+];

        impl Default for $settings {
            fn default() -> Self {
                $settings { $($field: $default,)+ $($other: Default::default(),)* }
            }
        }

        /// One line: `name=value` for every option.
        impl fmt::Display for $settings {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let pairs: &[(&str, &dyn fmt::Display)] =
                    &[$((stringify!($field), &self.$field),)+];
                for (index, (name, value)) in pairs.iter().enumerate() {
                    let separator = if index == 0 { "" } else { " " };
                    write!(f, "{separator}{name}={value}")?;
                }
                Ok(())
            }
        }

        impl FromStr for $settings {
            type Err = Error;

            /// Reads pairs of `name=value`; what is not named has its default. Bytes may have a unit:
            /// `8k`, `16MiB`. Every failure is [`crate::ErrorKind::InvalidArgument`].
            fn from_str(text: &str) -> Result<Self> {
                $settings::read(text, |pair| match pair.split_once('=') {
                    Some((name, value)) => unreadable($table, name, value),
                    None => Error::invalid("options are pairs of name=value")
                        .expected("name=value", format_args!("{pair:?}")),
                })
            }
        }

        impl $settings {
            fn read(text: &str, unreadable: fn(&str) -> Error) -> Result<Self> {
                let mut options = $settings::default();
                for pair in text.split_ascii_whitespace() {
                    let is_read = match pair.split_once('=') {
                        Some((name, value)) => options.assign(name, value)?,
                        None => false,
                    };
                    if !is_read {
                        return Err(unreadable(pair));
                    }
                }
                options.validate()?;
                Ok(options)
            }

            /// Sets one option by its name, to a value as text: `8k`, `true`, `sync`. Whether options
            /// are in range and agree is checked by [`Self::validate`], and where they are used.
            ///
            /// # Errors
            /// [`crate::ErrorKind::InvalidArgument`] if there is none of that name, or the text is no
            /// value of it; nothing is changed then.
            pub fn set(&mut self, name: &str, text: &str) -> Result<()> {
                match self.assign(name, text)? {
                    true => Ok(()),
                    false => Err(unreadable($table, name, text)),
                }
            }

            /// Sets one option; false if there is none of that name, or the text is no value of it.
            fn assign(&mut self, name: &str, text: &str) -> Result<bool> {
                match name {
                    $(stringify!($field) => {
                        let Some(value) = OptionValue::from_text(text, $unit)? else {
                            return Ok(false);
                        };
                        self.$field = value;
                    })+
                    _ => return Ok(false),
                }
                Ok(true)
            }

            fn check_ranges(&self) -> Result<()> {
                $(if let Some(number) = self.$field.number() {
                    check_range(stringify!($field), number, $range, $unit)?;
                })+
                Ok(())
            }
        }
    };
}

settings! {
    /// The settings of a database. [`DATABASE_OPTIONS`] has units and ranges.
    ///
    /// ```
    /// use lithify::{Durability, Options};
    /// let options = Options { memory_budget_bytes: 64 << 20, ..Options::default() };
    /// assert_eq!(options.durability, Durability::Buffered);
    /// let parsed: Options = "memory_budget_bytes=67108864".parse()?;
    /// assert_eq!(parsed, options);
    /// # Ok::<(), lithify::Error>(())
    /// ```
    Options,
    /// The settings of a database.
    DATABASE_OPTIONS {
        /// Make a new database if there is none.
        create_if_missing: bool = true, "boolean", 0..=1;
        /// One budget for block cache, memtables, filters, codec contexts, compaction buffers and
        /// read-ahead; the cache gets what the others leave.
        memory_budget_bytes: usize = 256 << 20, "bytes", MIB..=1 << 46;
        /// A memtable of this size is flushed.
        memtable_bytes: usize = 16 << 20, "bytes", 65_536..=1 << 32;
        /// More log than this makes the column families that pin the oldest segment flush. Those that hold
        /// little are flushed earlier.
        wal_bytes_max: u64 = 256 << 20, "bytes", 65_536..=1 << 46;
        /// A manifest longer than this, and than twice what the present state takes, is replaced by
        /// one that holds nothing else.
        manifest_bytes_max: u64 = ROTATE_SIZE_BYTES, "bytes", 1024..=1 << 32;
        /// Threads that flush and compact. With 0, a caller that has to wait does the work, step by
        /// step.
        background_threads: usize = 2, "threads", 0..=64;
        /// Background threads run so many nice levels behind the thread that opened the database: they
        /// give way to the program's own. Linux has such levels per thread; elsewhere nothing changes.
        background_nice: u32 = 5, "levels", 0..=19;
        /// When a write is acknowledged: sync, buffered, interval(ms) or none; see durability.md.
        durability: Durability = Durability::Buffered, "mode", 0..=0;
        /// How long a transaction or a plain write waits for a row lock.
        row_lock_timeout_ms: u64 = 1000, "milliseconds", 0..=3_600_000;
        /// Refuse at once a wait for a row lock that would close a circle of waiting writers;
        /// otherwise they wait out row_lock_timeout_ms.
        deadlock_detection: bool = true, "boolean", 0..=1;
        /// Read tables past the system's page cache, for users and compactions alike. Opening fails
        /// where the file system cannot.
        direct_reads: bool = false, "boolean", 0..=1;
        /// Obsolete entries may take this part of the settled size: on the way there writers are
        /// slowed until compaction keeps up. More is faster and larger.
        space_slack_percent: u32 = 30, "percent", 5..=10_000;
    } with {
        /// Hears of flushes, compactions, slowed writers, changed options and failures.
        event_listener: EventListener;
    }
}

settings! {
    /// The settings of a column family. They are stored in the database; opening a family with other
    /// ones changes them for what is written from then on. [`FAMILY_OPTIONS`] has units and ranges.
    CfOptions,
    /// The settings of a column family.
    FAMILY_OPTIONS {
        /// Codec by distance from the bottom: small levels and L0, middle (one above the bottom),
        /// bottom; a fourth one in front of them is for L0 alone. Or decided by measured costs: auto,
        /// auto:space, auto:throughput, auto:endurance, prices:cpu=…,write=…,month=…,read=….
        compression: CompressionPolicy = CompressionPolicy::default(), "policy", 0..=0;
        /// Target size of a data block before compression, at least 512. 0: 16 KiB, or decided with the
        /// compression where that is decided by cost. If rows are larger than a tenth of it, a
        /// block ends at the row boundary nearest to the target.
        block_size_bytes: usize = 0, "bytes", 0..=4 * MIB;
        /// Tables written by compactions are cut at about this size.
        table_bytes: u64 = 16 << 20, "bytes", 65_536..=1 << 34;
        /// The first level below L0 is kept at or below this size; targets are derived from the
        /// bottom up.
        base_level_bytes_max: u64 = 64 << 20, "bytes", 65_536..=1 << 40;
        /// A level's target is this many times that of the level above.
        fanout: u32 = 8, "factor", 2..=64;
        /// Bits of the Bloom filter per key; 0 for none.
        filter_bits_per_key: u32 = 10, "bits", 0..=64;
        /// Keys' first bytes that the filter also holds, so that scans of a prefix skip tables; 0
        /// for none.
        prefix_length_bytes: usize = 0, "bytes", 0..=1024;
        /// What makes values of merge operands: none, add (integers of 8 bytes, little-endian), append,
        /// max, or the name of a program's own. It cannot be changed once it is set.
        merge_operator: MergeOperator = MergeOperator::none(), "operator", 0..=0;
        /// Rows expire so long after they were written, at most a second later: nobody sees them any
        /// more, and their space comes back. 0: never. A family is made with it or without; how long it is may change.
        time_to_live_s: u64 = 0, "seconds", 0..=TIME_TO_LIVE_S_MAX;
    } with {
    }
}

fn check_range(name: &str, value: u64, range: RangeInclusive<u64>, unit: &str) -> Result<()> {
    if range.contains(&value) {
        return Ok(());
    }
    let (first, last) = range.into_inner();
    let expected = match unit {
        "factor" | "boolean" => format!("a {unit} of {first} to {last}"),
        _ => format!("{first} to {last} {unit}"),
    };
    Err(Error::invalid(format!("the option {name} is out of its range")).expected(expected, value))
}

impl Options {
    /// Checks ranges and contradictions.
    ///
    /// # Errors
    /// `InvalidArgument` that names the option and its range, or the two options that contradict.
    pub fn validate(&self) -> Result<()> {
        self.check_ranges()?;
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

    /// The most that is noted of what an optimistic transaction has read, in bytes: an eighth of the
    /// memory budget, and little enough for a check during which nobody else commits.
    pub(crate) fn reads_bytes_max(&self) -> usize {
        (self.memory_budget_bytes / 8).min(8 << 20)
    }
}

impl CfOptions {
    /// Checks ranges and contradictions.
    ///
    /// # Errors
    /// As [`Options::validate`].
    pub fn validate(&self) -> Result<()> {
        self.check_ranges()?;
        if self.prefix_length_bytes > 0 && self.filter_bits_per_key == 0 {
            return Err(Error::invalid(
                "prefix_length_bytes contradicts filter_bits_per_key 0: prefixes live in the filter",
            ));
        }
        self.merge_operator.validate()?;
        if self.time_to_live_s > 0 && !self.merge_operator.is_none() {
            return Err(Error::invalid(
                "time_to_live_s contradicts merge_operator: what an operand adds to may expire before it",
            ));
        }
        if (1..BLOCK_SIZE_BYTES_MIN).contains(&self.block_size_bytes) {
            return Err(Error::invalid("the option block_size_bytes is out of its range")
                .expected(
                    format_args!("0, or {BLOCK_SIZE_BYTES_MIN} to {} bytes", 4 * MIB),
                    self.block_size_bytes,
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
        let given = (self.block_size_bytes > 0).then_some(self.block_size_bytes);
        match self.compression {
            CompressionPolicy::Levels(codecs) => {
                let block_size_bytes = given.unwrap_or(BLOCK_SIZE_BYTES);
                Arc::new(LevelFormats { codecs, block_size_bytes })
            }
            CompressionPolicy::Decided(objective) => {
                Arc::new(Deciding::new(objective, given, BLOCK_SIZE_BYTES))
            }
        }
    }

    /// With what is left open filled in, as far as it is not decided by cost: what the manifest keeps,
    /// and older versions can read.
    pub(crate) fn resolved(mut self) -> Self {
        if self.block_size_bytes == 0 && matches!(self.compression, CompressionPolicy::Levels(_)) {
            self.block_size_bytes = BLOCK_SIZE_BYTES;
        }
        self
    }

    /// The text that the manifest keeps: all options, but none that came later and has its default, for
    /// versions that do not know it.
    pub(crate) fn stored_text(&self) -> String {
        let text = self.to_string();
        text.replace(" merge_operator=none", "").replace(" time_to_live_s=0", "")
    }

    /// What is another value than that of `old`. No value has a space in its text.
    pub(crate) fn changes_from(&self, old: &CfOptions) -> Vec<OptionChange> {
        let value_of = |pair: &str| pair.split_once('=').map_or("", |(_, value)| value).to_owned();
        let (old, new) = (old.to_string(), self.to_string());
        let pairs = FAMILY_OPTIONS.iter().zip(old.split(' ').zip(new.split(' ')));
        let changed = pairs.filter(|(_, (old, new))| old != new);
        changed
            .map(|(option, (old, new))| OptionChange {
                name: option.name,
                old: value_of(old),
                new: value_of(new),
            })
            .collect()
    }

    /// Whether a value is of those that came with decisions by cost.
    pub(crate) fn needs_decisions(&self) -> bool {
        matches!(self.compression, CompressionPolicy::Decided(_)) || self.block_size_bytes == 0
    }

    /// What a family that has the options `stored` has when it is opened with these.
    ///
    /// # Errors
    /// `InvalidArgument` for what cannot be changed: another merge operator; a time to live where the
    /// rows that are there have no write times.
    pub(crate) fn over(mut self, stored: &CfOptions) -> Result<Self> {
        match (stored.time_to_live_s, self.time_to_live_s) {
            (0, wanted) if wanted > 0 => {
                let what = "the column family was made without a time to live: its rows do not know \
                            when they were written";
                return Err(Error::invalid(what).expected("time_to_live_s=0", wanted));
            }
            (kept, 0) => self.time_to_live_s = kept,
            _ => {}
        }
        self.merge_operator = self.merge_operator.over(&stored.merge_operator)?;
        self.validate()?;
        Ok(self)
    }

    /// The options that the manifest keeps of a column family.
    pub(crate) fn of_family(stored: &FamilyState) -> Result<Self> {
        let text = std::str::from_utf8(&stored.options).map_err(|error| {
            let what = format!("the options of column family {:?} are no text", stored.name);
            Error::corruption(what).because(error)
        })?;
        CfOptions::from_text(text)
    }

    /// Reads what the manifest keeps. A name that this version does not know is an error: the
    /// family's data were written under a setting whose meaning is unknown.
    pub(crate) fn from_text(text: &str) -> Result<Self> {
        CfOptions::read(text, bad_stored_option)
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
        assert_eq!(CfOptions::from_text(&options.to_string()).unwrap(), options);
        assert!(CfOptions::from_text("fanout=eight").is_err());
        assert!(CfOptions::from_text("colour=red").is_err());
        let sized: CfOptions = "block_size_bytes=8k table_bytes=32MiB".parse().unwrap();
        assert_eq!((sized.block_size_bytes, sized.table_bytes), (8 << 10, 32 << 20));
        assert!("fanout=8k".parse::<CfOptions>().is_err(), "no bytes");
        assert!("block_size_bytes=8q".parse::<CfOptions>().is_err());
    }

    /// What is left open is kept as it is only where it is decided by cost: older versions can read the
    /// rest.
    #[test]
    fn a_size_of_blocks_left_open_is_kept_where_it_is_decided() {
        let ladder = CfOptions::default();
        assert_eq!((ladder.block_size_bytes, ladder.needs_decisions()), (0, true));
        let kept = ladder.resolved();
        assert_eq!((kept.block_size_bytes, kept.needs_decisions()), (16 << 10, false));
        let text = "compression=prices:cpu=11,write=150,month=3300,read=5.5";
        let decided: CfOptions = text.parse().unwrap();
        assert_eq!(
            (decided.clone().resolved(), decided.needs_decisions()),
            (decided.clone(), true)
        );
        assert_eq!(CfOptions::from_text(&decided.to_string()).unwrap(), decided);
        let balanced: CfOptions = "compression=auto:balanced".parse().unwrap();
        assert_eq!(balanced, "compression=auto".parse().unwrap());
        for (text, expected) in [
            ("compression=auto:cheap", "auto:throughput"),
            ("compression=AUTO", "auto:throughput"),
            ("compression=Prices:cpu=1", "auto:throughput"),
            ("compression=prices:cpu=1", "prices"),
            ("compression=best", "one of none"),
            ("block_size_bytes=100", "512"),
        ] {
            let error = text.parse::<CfOptions>().unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::InvalidArgument, "{error}");
            assert!(error.to_string().contains(expected), "{text}: {error}");
        }
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
    fn the_text_form_names_every_option() {
        let options = Options {
            durability: Durability::Interval { milliseconds: 7 },
            direct_reads: true,
            ..Options::default()
        };
        let text = options.to_string();
        assert_eq!(text.parse::<Options>().unwrap(), options);
        let names: Vec<_> =
            text.split(' ').filter_map(|pair| Some(pair.split_once('=')?.0)).collect();
        assert_eq!(names, DATABASE_OPTIONS.iter().map(|row| row.name).collect::<Vec<_>>());
        for text in ["durability=often", "direct_reads=maybe", "wal_bytes_max", "colour=red"] {
            let error = text.parse::<Options>().unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::InvalidArgument, "{text}");
        }
        assert_eq!(
            CfOptions::default().resolved().stored_text(),
            "compression=none,lz4,zstd-1 block_size_bytes=16384 table_bytes=16777216 \
             base_level_bytes_max=67108864 fanout=8 filter_bits_per_key=10 prefix_length_bytes=0",
            "the manifest keeps this text"
        );
    }
}
