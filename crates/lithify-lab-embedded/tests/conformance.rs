//! Every engine of this crate against what all adapters have to do, and LinkBench as a cell.

use std::path::Path;

use lithify_lab::adapter::codec::{Codec, Ladder};
use lithify_lab::adapter::provider::Transactions;
use lithify_lab::adapter::settings::DurabilityMode;
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::{EngineName, SpaceId, SpaceSpec, WriteBatch};
use lithify_lab::conformance::{Subject, check_engine, kill};
use lithify_lab::engines::registry;
use lithify_lab::engines::registry::open_spaces;
use lithify_lab::experiment::{AnyExperiment, Arm, BUILT_IN, Experiment};
use lithify_lab::linkbench::measure;
use lithify_lab::linkbench::plan::{Choice, Plan, leave_out_missing};

/// Is run in processes of its own.
#[test]
fn child_that_commits() {
    lithify_lab_embedded::register();
    kill::child();
}

fn name(engine: &str) -> EngineName {
    lithify_lab_embedded::register();
    EngineName::new(engine)
}

fn settings(bottom: Codec) -> EngineSettings {
    EngineSettings::small().with_ladder(Ladder { small: Codec::NONE, middle: bottom, bottom })
}

/// Engines that were seen to stand still for ever (`docs/engines/fjall.md`, `redb.md`) are tried only
/// where `LITHIFY_EXPECT_ENGINES` names them.
const HANGING: [&str; 2] = ["fjall", "redb"];

fn is_tried(engine: &str) -> bool {
    let expected = std::env::var("LITHIFY_EXPECT_ENGINES").unwrap_or_default();
    let is_tried = !HANGING.contains(&engine) || expected.split(',').any(|name| name == engine);
    if !is_tried {
        println!("{engine} is not tried: LITHIFY_EXPECT_ENGINES does not name it");
    }
    is_tried
}

fn conforms(engine: &str, settings: &EngineSettings) {
    if !is_tried(engine) {
        return;
    }
    let engine = &name(engine);
    let root = tempfile::tempdir().expect("a directory");
    let subject = Subject { engine, settings, child_test: "child_that_commits" };
    let failures = check_engine(&subject, root.path());
    assert!(failures.is_empty(), "{engine}: {}", failures.join("\n"));
}

#[test]
fn lmdb_conforms() {
    conforms("lmdb", &settings(Codec::NONE));
}

#[test]
fn sqlite_conforms() {
    conforms("sqlite", &settings(Codec::NONE));
}

#[test]
fn fjall_conforms() {
    conforms("fjall", &settings(Codec::LZ4));
}

#[test]
fn redb_conforms() {
    conforms("redb", &settings(Codec::NONE));
}

const ENGINES: [(&str, Codec); 4] =
    [("lmdb", Codec::NONE), ("sqlite", Codec::NONE), ("fjall", Codec::LZ4), ("redb", Codec::NONE)];

const ROWS: [SpaceSpec; 1] = [SpaceSpec { name: "rows", prefix_bytes: None, single_delete: false }];

fn refusal(engine: &str, settings: &EngineSettings) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    let opened =
        open_spaces(&name(engine), directory.path(), settings, &ROWS, Transactions::Unneeded);
    let error = opened.err().expect("is refused").to_string();
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}

#[test]
fn experiments_ask_of_them_what_they_can_follow() {
    lithify_lab_embedded::register();
    let is_ours = |arm: &&Arm| {
        arm.engine.as_ref().is_some_and(|own| ENGINES.iter().any(|(name, _)| own.name() == *name))
    };
    let mut tried = 0;
    for (name, text) in BUILT_IN {
        let Ok(AnyExperiment::LinkBench(experiment)) = AnyExperiment::parse(name, text) else {
            continue;
        };
        let arms: Vec<String> =
            experiment.arms.iter().filter(is_ours).map(|arm| arm.name.clone()).collect();
        for scale in experiment.scales.keys().filter(|_| !arms.is_empty()) {
            let scale = Some(scale.clone());
            let mut choice = Choice { scale, arms: Some(arms.clone()), ..Choice::default() };
            let skipped = leave_out_missing(&experiment, &EngineName::lithify(), &mut choice);
            assert_eq!(skipped, Ok(Vec::new()), "{name}");
            tried += 1;
        }
    }
    assert!(tried > 0, "no experiment has an arm on one of them");
}

#[test]
fn what_they_cannot_do_is_refused() {
    for (engine, codec) in ENGINES.into_iter().filter(|(engine, ..)| is_tried(engine)) {
        let zstd = refusal(engine, &settings(Codec::zstd(1)));
        assert!(zstd.starts_with(&format!("{engine} has no codec zstd-1; it has: none")), "{zstd}");
        let direct = EngineSettings { direct_reads: true, ..settings(codec) };
        assert_eq!(refusal(engine, &direct), format!("{engine} has no direct reads"));
        let mut unknown = settings(codec);
        unknown.options.insert("pages".to_owned(), "many".to_owned());
        let error = refusal(engine, &unknown);
        assert!(error.starts_with(&format!("{engine} has no option \"pages\"")), "{error}");
    }
    let unsynced = EngineSettings { durability: DurabilityMode::None, ..settings(Codec::NONE) };
    assert_eq!(refusal("lmdb", &unsynced), "lmdb has no durability none; it has: sync, buffered");
    let mut option = settings(Codec::NONE);
    for (key, value, allowed) in
        [("map_mib", "0", "1 to"), ("map_mib", "x", "1 to"), ("read_ahead", "yes", "on, off")]
    {
        option.options = [(key.to_owned(), value.to_owned())].into();
        let error = refusal("lmdb", &option);
        assert!(error.contains(key) && error.contains(allowed), "{error}");
    }
    let mut pages = EngineSettings { block_bytes: 5000, ..settings(Codec::NONE) };
    assert!(refusal("sqlite", &pages).contains("a page of 5000 bytes is impossible"));
    pages.options = [("page_kib".to_owned(), "5".to_owned())].into();
    assert!(refusal("sqlite", &pages).contains("options.page_kib is \"5\"; allowed: powers"));
    let ladder = Ladder { small: Codec::NONE, middle: Codec::NONE, bottom: Codec::LZ4 };
    let error = refusal("fjall", &settings(Codec::NONE).with_ladder(ladder));
    assert!(error.contains("from the top"), "{error}");
    let mut workers = settings(Codec::LZ4);
    workers.options = [("workers".to_owned(), "0".to_owned())].into();
    assert_eq!(refusal("fjall", &workers), "fjall: options.workers is \"0\"; allowed: 1 to 64");
    let effort = refusal("fjall", &settings(Codec::lz4(9)));
    assert_eq!(effort, "fjall has no codec lz4-9; it has: none, lz4");
}

#[test]
fn a_full_map_says_which_option_makes_it_larger() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut settings = settings(Codec::NONE);
    settings.options = [("map_mib".to_owned(), "8".to_owned())].into();
    let engine = name("lmdb");
    let opened = open_spaces(&engine, directory.path(), &settings, &ROWS, Transactions::Unneeded);
    let opened = opened.expect("opens");
    let mut session = opened.session().expect("a session");
    let mut batch = WriteBatch::new();
    batch.put(SpaceId(0), b"kept", b"1");
    session.write_batch(&batch).expect("is written");
    batch.clear();
    // Nothing of it reaches the file: the map is too small for the whole.
    let value = vec![0; 1 << 20];
    for number in 0..9u8 {
        batch.put(SpaceId(0), &[number], &value);
    }
    let error = session.write_batch(&batch).expect_err("does not fit").to_string();
    assert!(error.contains("options.map_mib"), "{error}");
    let mut found = Vec::new();
    assert!(session.get(SpaceId(0), b"kept", &mut found).expect("reads"));
    assert!(!session.get(SpaceId(0), &[0], &mut found).expect("reads"));
    drop(session);
    opened.close().expect("closes");
}

#[test]
fn versions_are_those_of_the_crates() {
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    let lock = std::fs::read_to_string(lock).expect("the lock file");
    let is_locked = |package: &str, version: &str| {
        let entry = format!("name = \"{package}\"\nversion = \"{version}\"\n");
        assert!(lock.contains(&entry), "{package} is not {version}");
    };
    let provider = |engine: &str| registry::find(&name(engine)).expect("is known");
    is_locked("fjall", &provider("fjall").version());
    is_locked("redb", &provider("redb").version());
    let library = provider("fjall").codec_library(Codec::LZ4).expect("is known");
    let (package, version) = library.split_once(' ').expect("name and version");
    is_locked(package, version);
    assert!(provider("sqlite").version().starts_with("3."));
    assert!(provider("lmdb").version().starts_with("0.9."));
}

#[test]
fn a_cell_of_linkbench_is_measured_and_passes_its_oracle() {
    let experiment = Experiment::parse("built in", BUILT_IN[0].1).expect("parses");
    let choice = Choice { arms: Some(vec!["zstd-1".into()]), ..Choice::default() };
    for (engine, codec) in ENGINES.into_iter().filter(|(engine, ..)| is_tried(engine)) {
        let plan = Plan::expand(&experiment, &name(engine), &choice, "test").expect("expands");
        let mut spec = plan.cells[1].clone();
        (spec.nodes, spec.warmup_seconds, spec.query_seconds) = (3_000, 0, 1);
        spec.settings.codec_small = Codec::NONE;
        (spec.settings.codec_middle, spec.settings.codec_bottom) = (codec, codec);
        let directory = tempfile::tempdir().expect("a directory");
        let result = measure::measure(&spec, directory.path(), measure::Limits::default(), &|_| ())
            .expect(engine);
        assert_eq!(result.oracle.len(), 2);
        assert!(result.violation().is_none(), "{engine}: {:?}", result.oracle);
        assert!(result.capabilities.labels.iter().any(|label| label == "external lock"));
        assert!(result.query.operations > 100 && result.load.operations > 3_000, "{engine}");
    }
}
