//! The engines of the lab itself against the cases that every adapter has to pass.

use std::path::Path;

use lithify_lab::adapter::EngineName;
use lithify_lab::conformance::{SPACES, check};
use lithify_lab::experiment::DurabilityMode;
use lithify_lab::run::cell::EngineSettings;
use lithify_lab::run::engine::{Transactions, open_spaces};

/// The cases that an engine fails with these settings.
fn failures(engine: &EngineName, settings: &EngineSettings, is_durable: bool) -> Vec<String> {
    let root = tempfile::tempdir().expect("a directory");
    let open =
        |directory: &Path| open_spaces(engine, directory, settings, &SPACES, Transactions::Needed);
    check(&open, root.path(), is_durable)
}

#[test]
fn lithify_conforms() {
    for durability in [DurabilityMode::Buffered, DurabilityMode::None] {
        let settings = EngineSettings { durability, ..EngineSettings::small() };
        let failures = failures(&EngineName::lithify(), &settings, true);
        assert!(failures.is_empty(), "{durability:?}: {}", failures.join("\n"));
    }
}

#[test]
fn lithify_conforms_with_direct_reads_or_says_that_there_are_none() {
    let settings = EngineSettings { direct_reads: true, ..EngineSettings::small() };
    let engine = EngineName::lithify();
    let directory = tempfile::tempdir().expect("a directory");
    match open_spaces(&engine, directory.path(), &settings, &SPACES, Transactions::Needed) {
        Ok(opened) => {
            let options = opened.options().to_string();
            assert!(options.contains("direct_reads: true"), "{options}");
            let failures = failures(&engine, &settings, true);
            assert!(failures.is_empty(), "{}", failures.join("\n"));
        }
        Err(error) => assert!(error.to_string().contains("direct_reads"), "{error}"),
    }
}

#[test]
fn the_model_conforms() {
    let failures = failures(&EngineName::model(), &EngineSettings::small(), false);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn an_engine_that_stores_nothing_is_found_out() {
    let failures = failures(&EngineName::null(), &EngineSettings::small(), true);
    assert!(failures.len() >= 10, "{}", failures.join("\n"));
    assert!(failures[0].starts_with("get and multi_get: a row: expected"), "{}", failures[0]);
}
