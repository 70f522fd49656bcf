//! LevelDB's options, and what they are in the engine.
//!
//! What a caller sets is taken over, in LevelDB's own bounds. What it does not set is as the database has
//! it, or as the engine has it: a program that sets nothing keeps what an administrator chose.

use crate::filter::FilterPolicy;
use crate::order::Order;
use lithify::{CfOptions, CompressionPolicy, Options};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The bounds that LevelDB puts sizes into without a word.
const WRITE_BUFFER_BYTES: (usize, usize) = (64 << 10, 1 << 30);
const TABLE_BYTES: (usize, usize) = (1 << 20, 1 << 30);
const BLOCK_BYTES: (usize, usize) = (1 << 10, 4 << 20);

/// The most bits of a filter per key that the engine takes.
const FILTER_BITS_MAX: i32 = 64;

/// The budget holds so many memtables: active ones may fill a quarter of it.
const MEMTABLES: usize = 4;

/// The largest budget of the engine.
const BUDGET_BYTES_MAX: usize = 1 << 46;

/// A filter policy.
#[derive(Clone)]
pub enum Filter {
    /// The engine's own, with so many bits a key.
    Bloom(i32),
    /// One of the caller.
    Own(Arc<dyn FilterPolicy>),
}

/// What a database is opened with. Sizes that are not set are nothing.
#[derive(Clone, Default)]
pub struct Settings {
    /// A database that is not there is made.
    pub create_if_missing: bool,
    /// A database that is there is refused.
    pub error_if_exists: bool,
    /// A memtable of this size is flushed.
    pub write_buffer_bytes: Option<usize>,
    /// Memory for blocks.
    pub cache_bytes: Option<usize>,
    /// A data block before compression.
    pub block_bytes: Option<usize>,
    /// Tables are cut at this size.
    pub table_bytes: Option<usize>,
    /// Whether tables are compressed.
    pub is_compressed: Option<bool>,
    /// The filter policy.
    pub filter: Option<Filter>,
    /// The comparator.
    pub order: Option<Arc<dyn Order>>,
    /// What was set and has nothing here that it could change, by its name.
    pub without_effect: BTreeMap<&'static str, i64>,
}

fn within(value: usize, (minimum, maximum): (usize, usize)) -> usize {
    value.clamp(minimum, maximum)
}

impl Settings {
    /// The engine's options of a database.
    pub fn database(&self) -> Options {
        let mut options =
            Options { create_if_missing: self.create_if_missing, ..Options::default() };
        if let Some(bytes) = self.write_buffer_bytes {
            options.memtable_bytes = within(bytes, WRITE_BUFFER_BYTES);
        }
        let cache_bytes = self.cache_bytes.unwrap_or(0);
        let others_bytes = options.memory_budget_bytes.max(MEMTABLES * options.memtable_bytes);
        options.memory_budget_bytes =
            others_bytes.saturating_add(cache_bytes).min(BUDGET_BYTES_MAX);
        options.wal_bytes_max = options.wal_bytes_max.max(2 * options.memtable_bytes as u64);
        options
    }

    /// The engine's options of the family that holds the rows. `stored` are those that it has.
    pub fn family(&self, stored: Option<CfOptions>) -> CfOptions {
        let mut options = stored.unwrap_or_default();
        if let Some(bytes) = self.table_bytes {
            options.table_bytes = within(bytes, TABLE_BYTES) as u64;
        }
        if let Some(bytes) = self.block_bytes {
            options.block_size_bytes = within(bytes, BLOCK_BYTES);
            options.table_bytes = options.table_bytes.max(options.block_size_bytes as u64);
        }
        match self.is_compressed {
            Some(false) => options.compression = uncompressed(),
            Some(true) if options.compression == uncompressed() => {
                options.compression = CompressionPolicy::default();
            }
            _ => {}
        }
        if let Some(Filter::Bloom(bits)) = self.filter {
            options.filter_bits_per_key = bits.clamp(0, FILTER_BITS_MAX).unsigned_abs();
            if options.filter_bits_per_key == 0 {
                options.prefix_length_bytes = 0;
            }
        }
        options
    }
}

/// Every level as it is.
fn uncompressed() -> CompressionPolicy {
    CompressionPolicy::Levels(lithify::CodecPolicy::uniform(lithify::Compression::NONE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_set_is_the_engines_own() {
        let settings = Settings { create_if_missing: true, ..Settings::default() };
        assert_eq!(settings.database(), Options::default());
        assert_eq!(settings.family(None), CfOptions::default());
        let stored: CfOptions = "compression=zstd-3 block_size_bytes=32k fanout=5".parse().unwrap();
        assert_eq!(settings.family(Some(stored.clone())), stored);
    }

    #[test]
    fn any_number_gives_options_that_are_valid() {
        let numbers = [0, 1, 1000, 64 << 10, 5 << 20, 3 << 30, usize::MAX];
        for bytes in numbers {
            for cache_bytes in numbers {
                for bits in [i32::MIN, -1, 0, 10, 1000, i32::MAX] {
                    let settings = Settings {
                        write_buffer_bytes: Some(bytes),
                        cache_bytes: Some(cache_bytes),
                        block_bytes: Some(bytes),
                        table_bytes: Some(cache_bytes),
                        filter: Some(Filter::Bloom(bits)),
                        ..Settings::default()
                    };
                    settings.database().validate().unwrap();
                    settings.family(None).validate().unwrap();
                }
            }
        }
    }

    #[test]
    fn compression_is_switched_off_and_on() {
        let with = |is_compressed| Settings { is_compressed, ..Settings::default() };
        let off = with(Some(false)).family(None);
        assert_eq!(off.compression.to_string(), "none,none,none");
        assert_eq!(with(None).family(Some(off.clone())), off);
        assert_eq!(with(Some(true)).family(Some(off)), CfOptions::default());
        let chosen: CfOptions = "compression=zstd-3".parse().unwrap();
        assert_eq!(with(Some(true)).family(Some(chosen.clone())), chosen);
    }
}
