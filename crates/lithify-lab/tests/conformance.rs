//! The engines of the lab itself against the cases that every adapter has to pass.

use std::path::Path;

use lithify_lab::adapter::EngineName;
use lithify_lab::conformance::{SPACES, check};
use lithify_lab::experiment::{Codec, DurabilityMode};
use lithify_lab::run::cell::EngineSettings;
use lithify_lab::run::engine::{Transactions, open_spaces};

fn conforms(engine: &EngineName, durability: DurabilityMode, is_durable: bool) {
    const MIB: u64 = 1 << 20;
    let settings = EngineSettings {
        memory_budget_bytes: 8 * MIB,
        block_cache_bytes: 0,
        memtable_bytes: MIB / 4,
        table_bytes: MIB / 8,
        base_level_bytes: MIB / 8,
        fanout: 4,
        background_threads: 1,
        block_bytes: 4096,
        durability,
        codec_level0: None,
        codec_small: Codec::None,
        codec_middle: Codec::Lz4,
        codec_bottom: Codec::Zstd(1),
    };
    let root = tempfile::tempdir().expect("a directory");
    let open =
        |directory: &Path| open_spaces(engine, directory, &settings, &SPACES, Transactions::Needed);
    let failures = check(&open, root.path(), is_durable);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn lithify_conforms() {
    conforms(&EngineName::lithify(), DurabilityMode::Buffered, true);
    conforms(&EngineName::lithify(), DurabilityMode::None, true);
}

#[test]
fn the_model_conforms() {
    conforms(&EngineName::model(), DurabilityMode::Buffered, false);
}

#[test]
fn an_engine_that_stores_nothing_is_found_out() {
    let engine = EngineName::null();
    let root = tempfile::tempdir().expect("a directory");
    let spec_of = |directory: &Path| {
        let settings = EngineSettings {
            memory_budget_bytes: 0,
            block_cache_bytes: 0,
            memtable_bytes: 0,
            table_bytes: 0,
            base_level_bytes: 0,
            fanout: 2,
            background_threads: 1,
            block_bytes: 0,
            durability: DurabilityMode::None,
            codec_level0: None,
            codec_small: Codec::None,
            codec_middle: Codec::None,
            codec_bottom: Codec::None,
        };
        open_spaces(&engine, directory, &settings, &SPACES, Transactions::Needed)
    };
    let failures = check(&spec_of, root.path(), true);
    assert!(failures.len() >= 10, "{}", failures.join("\n"));
    assert!(failures[0].starts_with("get and multi_get: a row: expected"), "{}", failures[0]);
}
