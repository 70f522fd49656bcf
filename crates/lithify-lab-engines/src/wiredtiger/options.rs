//! The settings that engines share, as the texts that configure WiredTiger.
//!
//! Owns: everything that is set, each with its reason. What is not set here stays as WiredTiger
//! ships it. `docs/engines/wiredtiger.md` tells a reader the same.

use std::fmt::Write as _;

use lithify_lab::adapter::codec::Codec;
use lithify_lab::adapter::settings::DurabilityMode;
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::{EngineError, EngineResult};

/// The options that only this engine knows.
pub const OPTIONS: [&str; 7] = [
    "allocation_bytes",
    "checkpoint_log_mib",
    "checkpoint_seconds",
    EVICTION,
    "log_compressor",
    "page_kib",
    "prefix_compression",
];

/// Sessions at a time; the library's 100 are fewer than some runs have clients.
const SESSIONS_MAX: u32 = 1024;

/// How many threads evict pages: the library's own number, or as many as other engines have
/// background threads.
pub const EVICTION: &str = "eviction_threads";
const EVICTION_DEFAULT: &str = "default";
pub const EVICTION_MATCHED: &str = "matched";

/// What the library does by itself, for the report.
const EVICTION_OF_LIBRARY: &str = "the library's default, 1 to 8";

/// Bounds of the library for its eviction threads.
const EVICTION_THREADS: std::ops::RangeInclusive<u64> = 1..=20;

/// The smallest cache that the library takes.
const CACHE_BYTES_MIN: u64 = 1 << 20;

/// What the size of a stored page is a multiple of. The library's own 4 KiB round most of what
/// compression saves away where pages are small; blocks of other engines are not rounded at all.
const ALLOCATION_BYTES: u64 = 4096;
const ALLOCATION_BYTES_OF_SMALL_PAGES: u64 = 512;

/// From this size on pages are stored in units of the library's own: the size of its own pages.
const LARGE_PAGE_BYTES: u64 = 32 << 10;

/// How often the database is written out, as the server of MongoDB has it: after so much time, or
/// so much log.
const CHECKPOINT_SECONDS: u64 = 60;
const CHECKPOINT_LOG_MIB: u64 = 2048;

/// Bounds of the size of a log file: a megabyte, and what the library has by itself.
const LOG_FILE_BYTES: std::ops::RangeInclusive<u64> = 1 << 20..=100 << 20;

/// What WiredTiger is configured with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Of the database.
    pub database: String,
    /// Of every table.
    pub table: String,
    /// The block compressor's name.
    pub compressor: &'static str,
    /// Its effort, where it has one.
    pub effort: Option<i32>,
    /// How many threads evict pages, in words.
    pub eviction: String,
}

impl Options {
    /// The texts for `settings`.
    ///
    /// # Errors
    /// A codec, a page size or an option that WiredTiger does not have.
    pub fn new(settings: &EngineSettings) -> EngineResult<Options> {
        settings.expect_options("wiredtiger", &OPTIONS)?;
        let (compressor, effort) = compressor_of(settings.codec_bottom)?;
        Ok(Options {
            database: database(settings, compressor, effort)?,
            table: table(settings, compressor)?,
            compressor,
            effort,
            eviction: match eviction_threads(settings)? {
                Some(threads) => format!("{threads}, as many as background threads"),
                None => EVICTION_OF_LIBRARY.to_owned(),
            },
        })
    }

    /// The codec in the words of the lab, of a file whose metadata name `compressor`.
    pub fn codec_name(&self, compressor: &str) -> String {
        match self.effort {
            Some(effort) if compressor == self.compressor => format!("{compressor}-{effort}"),
            _ if compressor.is_empty() => "none".to_owned(),
            _ => compressor.to_owned(),
        }
    }
}

/// The name of a codec's compressor and its effort.
pub fn compressor_of(codec: Codec) -> EngineResult<(&'static str, Option<i32>)> {
    match (codec.kind(), codec.effort()) {
        (name @ ("none" | "snappy"), _) | (name @ "lz4", 1) => Ok((name, None)),
        (name @ ("zlib" | "zstd"), effort) => Ok((name, Some(effort))),
        ("lz4", _) => Err(EngineError::fatal(format!(
            "WiredTiger has lz4 without efforts; take lz4 instead of {codec}"
        ))),
        ("libdeflate", _) => {
            Err(EngineError::fatal(format!("WiredTiger has no codec {codec}; take zlib-N")))
        }
        _ => Err(EngineError::fatal(format!("WiredTiger has no codec {codec}"))),
    }
}

/// An option's number, within bounds.
fn number(
    settings: &EngineSettings,
    name: &str,
    bounds: std::ops::RangeInclusive<u64>,
    default: u64,
) -> EngineResult<u64> {
    let Some(text) = settings.options.get(name) else { return Ok(default) };
    text.parse().ok().filter(|number| bounds.contains(number)).ok_or_else(|| {
        EngineError::fatal(format!(
            "wiredtiger: option {name} = \"{text}\" is no number from {} to {}",
            bounds.start(),
            bounds.end()
        ))
    })
}

/// One of an option's words.
fn word<'a>(
    settings: &'a EngineSettings,
    name: &str,
    words: &[&'a str],
    default: &'a str,
) -> EngineResult<&'a str> {
    let Some(text) = settings.options.get(name) else { return Ok(default) };
    words.iter().copied().find(|word| word == text).ok_or_else(|| {
        EngineError::fatal(format!(
            "wiredtiger: option {name} = \"{text}\" is none of: {}",
            words.join(", ")
        ))
    })
}

/// The number of eviction threads that is set; `None` for the library's own.
fn eviction_threads(settings: &EngineSettings) -> EngineResult<Option<u64>> {
    let words = [EVICTION_DEFAULT, EVICTION_MATCHED];
    let wanted = word(settings, EVICTION, &words, EVICTION_DEFAULT)?;
    let (least, most) = (*EVICTION_THREADS.start(), *EVICTION_THREADS.end());
    let matched = settings.background_threads.clamp(least, most);
    Ok((wanted == EVICTION_MATCHED).then_some(matched))
}

fn database(
    settings: &EngineSettings,
    compressor: &str,
    effort: Option<i32>,
) -> EngineResult<String> {
    let cache_bytes = settings.memory_budget_bytes.max(CACHE_BYTES_MIN);
    let checkpoint_s = number(settings, "checkpoint_seconds", 1..=100_000, CHECKPOINT_SECONDS)?;
    let checkpoint_log_mib =
        number(settings, "checkpoint_log_mib", 1..=1 << 20, CHECKPOINT_LOG_MIB)?;
    let log_compressors = ["none", "snappy", "lz4", "zlib", "zstd"];
    let log_compressor = word(settings, "log_compressor", &log_compressors, "none")?;
    let mut text =
        format!("create,cache_size={cache_bytes}B,session_max={SESSIONS_MAX},statistics=(fast)");
    if let Some(threads) = eviction_threads(settings)? {
        // Writing to a String cannot fail.
        let _ = write!(text, ",eviction=(threads_min={threads},threads_max={threads})");
    }
    // Writing to a String cannot fail.
    let _ = match settings.durability {
        DurabilityMode::None => {
            write!(text, ",log=(enabled=false),checkpoint=(wait={checkpoint_s})")
        }
        durability => {
            let is_sync = durability == DurabilityMode::Sync;
            // "none" still hands every commit to the operating system before it is acknowledged.
            let method = if is_sync { "fsync" } else { "none" };
            // A flush frees all log files but the one that is written. In engines with memtables
            // that is a log file per memtable.
            let file_bytes =
                settings.memtable_bytes.clamp(*LOG_FILE_BYTES.start(), *LOG_FILE_BYTES.end());
            write!(
                text,
                ",checkpoint=(wait={checkpoint_s},log_size={checkpoint_log_mib}MB),\
                 transaction_sync=(enabled=true,method={method}),\
                 log=(enabled=true,remove=true,file_max={file_bytes}B,compressor={log_compressor},\
                 prealloc={is_sync})"
            )
        }
    };
    if settings.durability == DurabilityMode::Buffered {
        // A log that is not synced gains nothing from room made beforehand, which would count as
        // space of the database.
        text.push_str(",file_extend=(log=0)");
    }
    if settings.direct_reads {
        text.push_str(",direct_io=[data]");
    }
    if let Some(effort) = effort {
        let _ = write!(
            text,
            ",builtin_extension_config={{{compressor}={{compression_level={effort}}}}}"
        );
    }
    Ok(text)
}

fn table(settings: &EngineSettings, compressor: &str) -> EngineResult<String> {
    let page_bytes = match number(settings, "page_kib", 1..=1024, 0)? {
        0 => settings.block_bytes,
        kib => kib << 10,
    };
    let unit = allocation_bytes(settings, page_bytes)?;
    if page_bytes == 0 || !page_bytes.is_multiple_of(unit) {
        return Err(EngineError::fatal(format!(
            "WiredTiger cannot have pages of {page_bytes} bytes here; take a multiple of {unit}"
        )));
    }
    let prefix = word(settings, "prefix_compression", &["true", "false"], "true")?;
    Ok(format!(
        "key_format=u,value_format=u,block_compressor={compressor},leaf_page_max={page_bytes}B,\
         allocation_size={unit}B,prefix_compression={prefix}"
    ))
}

/// What the size of a stored page is a multiple of.
fn allocation_bytes(settings: &EngineSettings, page_bytes: u64) -> EngineResult<u64> {
    let is_large = page_bytes >= LARGE_PAGE_BYTES && page_bytes.is_multiple_of(ALLOCATION_BYTES);
    let default = match settings.direct_reads || is_large {
        true => ALLOCATION_BYTES,
        false => ALLOCATION_BYTES_OF_SMALL_PAGES,
    };
    let unit = number(settings, "allocation_bytes", 512..=1 << 20, default)?;
    if !unit.is_power_of_two() || (settings.direct_reads && unit < ALLOCATION_BYTES) {
        return Err(EngineError::fatal(format!(
            "wiredtiger: option allocation_bytes = \"{unit}\" is no power of two, or too small for \
             direct reads"
        )));
    }
    Ok(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(change: impl FnOnce(&mut EngineSettings)) -> EngineResult<Options> {
        let mut settings = EngineSettings::small();
        change(&mut settings);
        Options::new(&settings)
    }

    fn refused(change: impl FnOnce(&mut EngineSettings)) -> String {
        with(change).expect_err("is refused").to_string()
    }

    fn set(settings: &mut EngineSettings, name: &str, value: &str) {
        settings.options.insert(name.to_owned(), value.to_owned());
    }

    #[test]
    fn settings_as_text() {
        let options = with(|_| ()).expect("is possible");
        assert_eq!(
            options.database,
            "create,cache_size=8388608B,session_max=1024,statistics=(fast),\
             checkpoint=(wait=60,log_size=2048MB),\
             transaction_sync=(enabled=true,method=none),\
             log=(enabled=true,remove=true,file_max=1048576B,compressor=none,prealloc=false),\
             file_extend=(log=0),\
             builtin_extension_config={zstd={compression_level=1}}"
        );
        assert_eq!(
            options.table,
            "key_format=u,value_format=u,block_compressor=zstd,leaf_page_max=4096B,\
             allocation_size=512B,prefix_compression=true"
        );
        assert_eq!(options.eviction, EVICTION_OF_LIBRARY);
        let matched = with(|settings| set(settings, EVICTION, EVICTION_MATCHED));
        let matched = matched.expect("is possible");
        let threads = "eviction=(threads_min=1,threads_max=1)";
        assert!(matched.database.contains(threads), "{}", matched.database);
        assert_eq!(matched.eviction, "1, as many as background threads");
        assert_eq!(options.codec_name("zstd"), "zstd-1");
        assert_eq!(options.codec_name("lz4"), "lz4");
        assert_eq!(options.codec_name(""), "none");
    }

    #[test]
    fn durability_direct_reads_and_own_options() {
        let options = with(|settings| settings.durability = DurabilityMode::Sync).expect("sync");
        assert!(options.database.contains("method=fsync") && !options.database.contains("extend="));
        let options = with(|settings| settings.durability = DurabilityMode::None).expect("none");
        assert!(options.database.contains("log=(enabled=false),checkpoint=(wait=60)"));
        let options = with(|settings| {
            settings.direct_reads = true;
            settings.codec_bottom = Codec::SNAPPY;
            set(settings, "page_kib", "32");
            set(settings, "prefix_compression", "false");
            set(settings, "checkpoint_seconds", "5");
            set(settings, "log_compressor", "snappy");
        });
        let options = options.expect("is possible");
        let pages = "leaf_page_max=32768B,allocation_size=4096B";
        assert!(options.table.contains(pages), "{}", options.table);
        assert!(options.table.ends_with("prefix_compression=false"), "{}", options.table);
        assert!(options.database.contains("checkpoint=(wait=5,"), "{}", options.database);
        assert!(options.database.contains("compressor=snappy"), "{}", options.database);
        assert!(options.database.ends_with("direct_io=[data]"), "{}", options.database);
    }

    #[test]
    fn what_it_cannot_do_is_refused() {
        let error = refused(|settings| settings.codec_bottom = Codec::lz4(9));
        assert!(error.contains("take lz4 instead of lz4-9"), "{error}");
        let error = refused(|settings| settings.codec_bottom = Codec::libdeflate(6));
        assert!(error.contains("no codec libdeflate-6"), "{error}");
        let error = refused(|settings| settings.block_bytes = 5000);
        assert!(error.contains("take a multiple of 512"), "{error}");
        let error = refused(|settings| {
            settings.block_bytes = 512;
            settings.direct_reads = true;
        });
        assert!(error.contains("take a multiple of 4096"), "{error}");
        assert!(refused(|settings| set(settings, "page_kb", "4")).contains("no option"));
        assert!(refused(|settings| set(settings, "page_kib", "0")).contains("from 1 to 1024"));
        let error = refused(|settings| set(settings, "allocation_bytes", "1000"));
        assert!(error.contains("no power of two"), "{error}");
        let error = refused(|settings| set(settings, "prefix_compression", "yes"));
        assert!(error.contains("none of: true, false"), "{error}");
    }
}
