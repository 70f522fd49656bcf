//! Settings of an engine in the terms that engines share, and what only one of them knows, by name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Capabilities, EngineError, EngineResult};
use crate::adapter::codec::{Codec, Ladder};

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DurabilityMode {
    /// After it is synced to the device.
    Sync,
    /// After the operating system has it: survives the death of the process.
    Buffered,
    /// Without a log.
    None,
}

impl DurabilityMode {
    /// All modes, the strongest first.
    pub const ALL: [DurabilityMode; 3] =
        [DurabilityMode::Sync, DurabilityMode::Buffered, DurabilityMode::None];

    /// Its name in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            DurabilityMode::Sync => "sync",
            DurabilityMode::Buffered => "buffered",
            DurabilityMode::None => "none",
        }
    }
}

/// Settings of an engine, in the terms that engines share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EngineSettings {
    /// Memory of the engine as a whole, bytes.
    pub memory_budget_bytes: u64,
    /// The block cache in it, bytes.
    pub block_cache_bytes: u64,
    /// Size at which a memtable is flushed, bytes.
    pub memtable_bytes: u64,
    /// Target size of a table file, bytes.
    pub table_bytes: u64,
    /// Largest target of the first level below level 0, bytes.
    pub base_level_bytes: u64,
    /// Size of a level in units of the one above.
    pub fanout: u64,
    /// Threads of flush and compaction.
    pub background_threads: u64,
    /// Raw bytes of a data block.
    pub block_bytes: u64,
    /// When a write is acknowledged.
    pub durability: DurabilityMode,
    /// Codec of level 0, where it is not that of the small levels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub codec_level0: Option<Codec>,
    /// Codec of levels at distance 2 and more from the bottom, and of level 0 unless it has its own.
    pub codec_small: Codec,
    /// Codec of the level above the bottom.
    pub codec_middle: Codec,
    /// Codec of the bottom level.
    pub codec_bottom: Codec,
    /// Tables are read past the page cache, by users and compactions alike.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub direct_reads: bool,
    /// What only this engine knows, by name: pages, partitions, formats. A name or value that the
    /// engine does not know is an error when it is opened.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
}

impl EngineSettings {
    /// Says that the engine takes no option but those of `known`.
    ///
    /// # Errors
    /// There is another; the text lists the known ones.
    pub fn expect_options(&self, engine: &str, known: &[&str]) -> EngineResult<()> {
        let unknown = self.options.keys().find(|name| !known.contains(&name.as_str()));
        let Some(name) = unknown else { return Ok(()) };
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Err(EngineError::fatal(format!("{engine} has no option \"{name}\"; it takes: {known}")))
    }

    /// Says that an engine with these capabilities can follow the durability and the codecs. A list
    /// that is empty excludes nothing.
    ///
    /// # Errors
    /// It cannot; the text lists what it has.
    pub fn expect_within(&self, engine: &str, can: &Capabilities) -> EngineResult<()> {
        let lacks =
            |has: &[String], wanted: &str| !has.is_empty() && has.iter().all(|h| h != wanted);
        let refuse = |what: String, has: &[String]| {
            Err(EngineError::fatal(format!("{engine} has no {what}; it has: {}", has.join(", "))))
        };
        let durability = self.durability.name();
        if lacks(&can.durability, durability) {
            return refuse(format!("durability {durability}"), &can.durability);
        }
        let upper = [self.codec_level0, Some(self.codec_small), Some(self.codec_middle)];
        let codecs = upper.into_iter().flatten().filter(|_| can.codec_per_level);
        for codec in codecs.chain([self.codec_bottom]) {
            if lacks(&can.codecs, codec.kind()) {
                return refuse(format!("codec {codec}"), &can.codecs);
            }
        }
        Ok(())
    }

    /// Says that the engine reads through the page cache only.
    ///
    /// # Errors
    /// The settings want it otherwise.
    pub fn expect_buffered_reads(&self, engine: &str) -> EngineResult<()> {
        match self.direct_reads {
            false => Ok(()),
            true => Err(EngineError::fatal(format!("{engine} has no direct reads"))),
        }
    }

    /// Settings under which a few megabytes make a tree of several levels with a codec each: to
    /// try an engine, not to measure it.
    pub fn small() -> EngineSettings {
        const KIB: u64 = 1 << 10;
        EngineSettings {
            memory_budget_bytes: 8192 * KIB,
            block_cache_bytes: 0,
            memtable_bytes: 256 * KIB,
            table_bytes: 128 * KIB,
            base_level_bytes: 128 * KIB,
            fanout: 4,
            background_threads: 1,
            block_bytes: 4096,
            durability: DurabilityMode::Buffered,
            codec_level0: None,
            codec_small: Codec::NONE,
            codec_middle: Codec::LZ4,
            codec_bottom: Codec::zstd(1),
            direct_reads: false,
            options: BTreeMap::new(),
        }
    }

    /// The codecs by distance from the bottom.
    pub fn ladder(&self) -> Ladder {
        Ladder { small: self.codec_small, middle: self.codec_middle, bottom: self.codec_bottom }
    }

    /// The same settings with the codecs of `ladder`.
    #[must_use]
    pub fn with_ladder(self, ladder: Ladder) -> EngineSettings {
        let Ladder { small, middle, bottom } = ladder;
        EngineSettings { codec_small: small, codec_middle: middle, codec_bottom: bottom, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_beyond_the_capabilities_are_refused() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let settings = EngineSettings::small();
        let refused = |can: &Capabilities| {
            settings.expect_within("e", can).err().map(|error| error.to_string())
        };
        let mut can = Capabilities::default();
        assert_eq!(refused(&can), None, "says nothing");
        can.durability = names(&["sync"]);
        assert_eq!(refused(&can).expect("buffered"), "e has no durability buffered; it has: sync");
        can.durability = names(&["sync", "buffered"]);
        can.codecs = names(&["none", "lz4"]);
        assert_eq!(refused(&can).expect("bottom"), "e has no codec zstd-1; it has: none, lz4");
        can.codecs = names(&["zstd"]);
        assert_eq!(refused(&can), None, "the bottom's codec is that of all data");
        can.codec_per_level = true;
        assert_eq!(refused(&can).expect("small"), "e has no codec none; it has: zstd");
        let settings = EngineSettings { direct_reads: true, ..settings.clone() };
        let error = settings.expect_buffered_reads("e").expect_err("has none").to_string();
        assert_eq!(error, "e has no direct reads");
    }
}
