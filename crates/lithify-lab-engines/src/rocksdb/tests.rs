//! Settings for tests.

use lithify_lab::experiment::{Codec, DurabilityMode};
use lithify_lab::run::cell::EngineSettings;

/// Small settings with codecs `small,middle,bottom`.
pub(super) fn settings(codecs: &str) -> EngineSettings {
    let codecs: Vec<Codec> =
        codecs.split(',').map(|codec| codec.parse().expect("a codec")).collect();
    EngineSettings {
        memory_budget_bytes: 8 << 20,
        block_cache_bytes: 0,
        memtable_bytes: 64 << 10,
        table_bytes: 64 << 10,
        base_level_bytes: 64 << 10,
        fanout: 4,
        background_threads: 1,
        block_bytes: 4096,
        durability: DurabilityMode::Buffered,
        codec_level0: None,
        codec_small: codecs[0],
        codec_middle: codecs[1],
        codec_bottom: codecs[2],
    }
}
