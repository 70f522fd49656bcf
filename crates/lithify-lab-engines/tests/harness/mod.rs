//! What the tests of all engines here share: whether the engine is there, rows, and a small run of
//! LinkBench. A test without its engine prints a line and passes, unless `LITHIFY_EXPECT_ENGINES`
//! names the engine.

#![allow(dead_code, reason = "each test takes what it needs")]

use std::path::Path;

use lithify_lab::adapter::provider::Transactions;
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::{Engine, EngineName, SpaceId, SpaceSpec, WriteBatch};
use lithify_lab::conformance::{SPACES, Subject, check, check_engine};
use lithify_lab::engines::registry;
use lithify_lab::engines::registry::open_spaces;
use lithify_lab::experiment::{BUILT_IN, Experiment};
use lithify_lab::linkbench::cell::CellResult;
use lithify_lab::linkbench::measure;
use lithify_lab::linkbench::plan::{Choice, Plan};

/// One space.
pub const ROWS: [SpaceSpec; 1] =
    [SpaceSpec { name: "rows", prefix_bytes: None, single_delete: false }];

/// The engine, if it is there; otherwise a line is printed, or the test fails.
pub fn present(name: &str) -> Option<EngineName> {
    lithify_lab_engines::register();
    let engine = EngineName::new(name);
    let Err(missing) = registry::find(&engine).expect("is known").available() else {
        return Some(engine);
    };
    let expected = std::env::var("LITHIFY_EXPECT_ENGINES").unwrap_or_default();
    assert!(!expected.split(',').any(|expected| expected == name), "{missing}");
    println!("skipped for {name}: {missing}");
    None
}

/// Fails when the engine fails a case with these settings.
pub fn conforms_with(engine: &EngineName, settings: &EngineSettings) {
    let root = tempfile::tempdir().expect("a directory");
    let open =
        |directory: &Path| open_spaces(engine, directory, settings, &SPACES, Transactions::Needed);
    let failures = check(&open, root.path(), true);
    assert!(failures.is_empty(), "{engine}, {settings:?}: {}", failures.join("\n"));
}

/// Fails when the engine fails any of what all adapters have to do: every mode of durability and
/// every codec with it. `child_that_commits` is the test that calls `kill::child`.
pub fn conforms_in_all(engine: &EngineName, settings: &EngineSettings) {
    let root = tempfile::tempdir().expect("a directory");
    let subject = Subject { engine, settings, child_test: "child_that_commits" };
    let failures = check_engine(&subject, root.path());
    assert!(failures.is_empty(), "{engine}: {}", failures.join("\n"));
}

/// Puts `count` keys of a random order, of which half the value shrinks; always the same ones.
pub fn fill(engine: &dyn Engine, count: u64) {
    fill_on(engine, &mut 1, count);
}

/// The same, and others by the next call.
pub fn fill_on(engine: &dyn Engine, random: &mut u64, count: u64) {
    let mut session = engine.session().expect("a session");
    let mut batch = WriteBatch::new();
    for _ in 0..count {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let key = format!("{:016x}", *random >> 8);
        let value = format!("{key}{:0>84}", key);
        batch.clear();
        batch.put(SpaceId(0), key.as_bytes(), value.as_bytes());
        session.write_batch(&batch).expect("is written");
    }
}

/// A small graph and two seconds of queries, with the checks of what must hold afterwards.
pub fn linkbench(engine: &EngineName, change: impl FnOnce(&mut EngineSettings)) -> CellResult {
    let experiment = Experiment::parse("built in", BUILT_IN[0].1).expect("parses");
    let choice = Choice { arms: Some(vec!["zstd-1".into()]), ..Choice::default() };
    let plan = Plan::expand(&experiment, engine, &choice, "test").expect("expands");
    let mut spec = plan.cells[1].clone();
    (spec.nodes, spec.warmup_seconds, spec.query_seconds) = (5_000, 0, 2);
    change(&mut spec.settings);
    let directory = tempfile::tempdir().expect("a directory");
    let result = measure::measure(&spec, directory.path(), measure::Limits::default(), &|_| ())
        .expect("is measured");
    assert_eq!(result.oracle.len(), 2);
    assert!(result.violation().is_none(), "{:?}", result.oracle);
    assert!(result.query.operations > 100 && result.load.operations > 5_000);
    result
}
