//! The overwrite workload over real engines, in this process.

use std::sync::Mutex;

use lithify_lab::adapter::provider::Transactions;
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::{EngineName, ScanRange};
use lithify_lab::engines::registry::open_spaces;
use lithify_lab::keyvalue::{SPACE, SPACES};
use lithify_lab::overwrite::kind::Overwrites;
use lithify_lab::overwrite::{OverwriteRecord, OverwriteSpec, measure, report};

fn spec(engine: EngineName) -> OverwriteSpec {
    OverwriteSpec {
        engine,
        settings: EngineSettings::small(),
        keys: 5_000,
        key_bytes: 20,
        value_bytes: 400,
        clients: 2,
        seconds: 1,
        seed: 7,
        build: "test".to_owned(),
    }
}

#[test]
fn every_key_is_there_and_the_figures_agree() {
    let directory = tempfile::tempdir().expect("a directory");
    let spec = spec(EngineName::lithify());
    let stages = Mutex::new(Vec::new());
    let listener = |line: &lithify_lab::run::progress::ProgressLine| {
        stages.lock().expect("not poisoned").push(line.stage.clone());
    };
    let result = measure::measure(&spec, directory.path(), &listener).expect("measures");

    let seen = &result.throughput;
    let in_seconds: u64 = seen.per_second.iter().sum();
    assert_eq!((seen.per_second.len(), seen.windows), (1, 10));
    assert!(in_seconds > 0 && in_seconds <= seen.latency.count, "{seen:?}");
    // Opened again after the fill, the engine has counted the overwrites and nothing else.
    let puts = result.statistics.raw.pointer("/counters/puts").and_then(|n| n.as_u64());
    assert_eq!(puts, Some(seen.latency.count));
    assert!(result.samples.iter().all(|sample| sample.live_bytes > 0));
    assert!(result.statistics_settled.live_bytes > 0);
    let stages = stages.into_inner().expect("not poisoned");
    assert_eq!(stages.last().map(String::as_str), Some("settle"), "{stages:?}");

    let engine = open_spaces(
        &spec.engine,
        directory.path(),
        &spec.settings,
        &SPACES,
        Transactions::Unneeded,
    )
    .expect("opens");
    let mut session = engine.session().expect("a session");
    let mut rows = 0u64;
    let visited = session.scan(SPACE, &ScanRange::prefix(b""), &mut |key, value| {
        assert_eq!(&key[..8], rows.to_be_bytes());
        assert_eq!((key.len(), value.len()), (20, 400));
        rows += 1;
        std::ops::ControlFlow::Continue(())
    });
    assert_eq!(visited.expect("scans"), spec.keys);
    drop(session);
    engine.close().expect("closes");
}

#[test]
fn the_report_has_its_figures() {
    let directory = tempfile::tempdir().expect("a directory");
    let run =
        |engine| measure::measure(&spec(engine), directory.path(), &|_| {}).expect("measures");
    let driver = run(EngineName::null());
    let record = OverwriteRecord { result: Some(run(EngineName::lithify())), driver };
    let text = crate::text::<Overwrites>(&record);
    for name in [
        "writes per second",
        "longest gap between writes",
        "windows without a write",
        "time per write",
        "writers slowed",
        "live tables and log",
        "data directory",
        "most ever resident",
        "the engine's share",
        "CPU in the ledger",
        "written per byte ingested",
        "Levels when nothing was due",
    ] {
        assert!(text.contains(name), "{name} is missing in:\n{text}");
    }
    let csv = report::csv(record.result.as_ref().expect("a result"));
    assert!(csv.lines().count() >= 2 && csv.starts_with("second,writes,live_bytes"), "{csv}");
    let json = serde_json::to_string(&record).expect("to JSON");
    let again: OverwriteRecord = serde_json::from_str(&json).expect("from JSON");
    assert_eq!(crate::text::<Overwrites>(&again), text);
}
