//! The engines of the lab itself against the cases that every adapter has to pass.

use std::path::Path;

use lithify_lab::adapter::codec::{Codec, Ladder};
use lithify_lab::adapter::layer::EngineLayer;
use lithify_lab::adapter::provider::{Provider, Transactions};
use lithify_lab::adapter::settings::DurabilityMode;
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::{Capabilities, Engine, EngineName, EngineResult, Session, SpaceSpec};
use lithify_lab::conformance::{SPACES, Subject, check, check_engine, kill};
use lithify_lab::engines::registry;
use lithify_lab::engines::registry::open_spaces;

/// The cases that an engine fails with these settings.
fn failures(engine: &EngineName, settings: &EngineSettings, is_durable: bool) -> Vec<String> {
    let root = tempfile::tempdir().expect("a directory");
    let open =
        |directory: &Path| open_spaces(engine, directory, settings, &SPACES, Transactions::Needed);
    check(&open, root.path(), is_durable)
}

/// Is run in processes of its own.
#[test]
fn child_that_commits() {
    registry::register(&Liar);
    kill::child();
}

/// Fails when the engine fails any case.
fn conforms(engine: &EngineName) {
    let settings = &EngineSettings::small();
    let root = tempfile::tempdir().expect("a directory");
    let subject = Subject { engine, settings, child_test: "conformance::child_that_commits" };
    let failures = check_engine(&subject, root.path());
    assert!(failures.is_empty(), "{engine}: {}", failures.join("\n"));
}

#[test]
fn lithify_conforms() {
    conforms(&EngineName::lithify());
    for durability in [DurabilityMode::Sync, DurabilityMode::None] {
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
    conforms(&EngineName::model());
}

#[test]
fn an_engine_that_stores_nothing_is_found_out() {
    let failures = failures(&EngineName::null(), &EngineSettings::small(), true);
    assert!(failures.len() >= 10, "{}", failures.join("\n"));
    assert!(failures[0].starts_with("get and multi_get: a row: expected"), "{}", failures[0]);
}

/// Lithify without a log and without codecs, whatever it is told; it denies that it counts.
struct Liar;

struct LyingEngine(Box<dyn Engine>);

impl EngineLayer for LyingEngine {
    fn below(&self) -> &dyn Engine {
        &*self.0
    }
    fn into_below(self: Box<Self>) -> Box<dyn Engine> {
        self.0
    }
    fn session_above(&self) -> EngineResult<Box<dyn Session + '_>> {
        self.0.session()
    }
    fn capabilities_above(&self) -> Capabilities {
        Capabilities { own_statistics: false, ordered_scan: false, ..self.0.capabilities() }
    }
}

impl Provider for Liar {
    fn name(&self) -> &'static str {
        "liar"
    }
    fn about(&self) -> &'static str {
        "says one thing and does another"
    }
    fn capabilities(&self) -> Capabilities {
        registry::find(&EngineName::lithify()).expect("is known").capabilities()
    }
    fn open(
        &self,
        directory: &Path,
        settings: &EngineSettings,
        spaces: &[SpaceSpec],
        transactions: Transactions,
    ) -> EngineResult<Box<dyn Engine>> {
        let none = Ladder { small: Codec::NONE, middle: Codec::NONE, bottom: Codec::NONE };
        let settings = EngineSettings { durability: DurabilityMode::None, ..settings.clone() };
        let lithify = EngineName::lithify();
        let below =
            open_spaces(&lithify, directory, &settings.with_ladder(none), spaces, transactions)?;
        Ok(Box::new(LyingEngine(below)))
    }
    fn codec_library(&self, _codec: Codec) -> EngineResult<String> {
        Ok("none".to_owned())
    }
}

#[test]
fn an_engine_that_does_not_do_what_it_says_is_found_out() {
    registry::register(&Liar);
    let (engine, settings) = (&EngineName::new("liar"), &EngineSettings::small());
    let root = tempfile::tempdir().expect("a directory");
    let subject = Subject { engine, settings, child_test: "conformance::child_that_commits" };
    let failures = check_engine(&subject, root.path()).join("\n");
    for expected in [
        "provider and engine agree: capabilities: expected",
        "scans are in order: ordered_scan: expected true, found false",
        "figures only grow: own_statistics: expected",
        "codecs are in force: snappy stores",
        "killed in mode sync: of ",
        "killed in mode buffered: of ",
    ] {
        assert!(failures.contains(expected), "{expected}, not found in:\n{failures}");
    }
    // Where syncs can be counted.
    assert!(!failures.contains("syncs in mode buffered"), "{failures}");
    let traced = failures.contains("syncs in mode sync: 200 commits made ");
    let strace = std::process::Command::new("strace").args(["-o", "/dev/null", "true"]).status();
    assert_eq!(traced, strace.is_ok_and(|status| status.success()), "{failures}");
}
