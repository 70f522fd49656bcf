//! RocksDB behind the adapter, where it is there.

mod harness;

use std::ops::ControlFlow;
use std::path::Path;

use harness::{ROWS, conforms_with, fill, fill_on, linkbench, present};
use lithify_lab::adapter::allocator::Allocator;
use lithify_lab::adapter::codec::Codec;
use lithify_lab::adapter::provider::Transactions;
use lithify_lab::adapter::settings::DurabilityMode;
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::{
    Engine, EngineName, EngineStatistics, LevelStatistics, ScanRange, SpaceId,
};
use lithify_lab::conformance::{Subject, check_engine, kill};
use lithify_lab::engines::registry::open_spaces;

/// The version that this process tests; the first of [`VERSIONS`] when not set. A process loads one
/// version, so the others are tested by processes of their own.
const VERSION: &str = "LITHIFY_TEST_ROCKSDB";

const VERSIONS: [&str; 6] =
    ["rocksdb", EXPERT, "rocksdb-no-yield", "rocksdb-native", "rocksdb-10.4.2", "rocksdb-system"];

/// The arm that its experts set; its process has jemalloc.
const EXPERT: &str = "rocksdb-expert";

/// The version that has no transactions by its C interface.
const WITHOUT_TRANSACTIONS: &str = "rocksdb-system";

/// The version under test, if it is there.
fn version() -> Option<EngineName> {
    present(&std::env::var(VERSION).unwrap_or_else(|_| VERSIONS[0].to_owned()))
}

#[test]
fn other_versions_in_processes_of_their_own() {
    if std::env::var_os(VERSION).is_some() {
        return;
    }
    for name in VERSIONS[1..].iter().filter(|name| present(name).is_some()) {
        let program = std::env::current_exe().expect("this program");
        let mut process = std::process::Command::new(program);
        if *name == EXPERT {
            process.envs(Allocator::Jemalloc.environment());
        }
        let output = process.env(VERSION, name).output();
        let output = output.expect("is started");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{name}: {}\n{said}", output.status);
    }
}

#[test]
fn a_second_version_in_one_process_is_refused() {
    let (Some(engine), Some(other)) = (present("rocksdb"), present("rocksdb-system")) else {
        return;
    };
    if std::env::var_os(VERSION).is_some() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let settings = settings(DurabilityMode::Buffered);
    let open = |engine, name| {
        let directory = directory.path().join(name);
        std::fs::create_dir(&directory).expect("is made");
        open_spaces(engine, &directory, &settings, &ROWS, Transactions::Unneeded)
    };
    open(&engine, "a").expect("opens").close().expect("closes");
    let error = open(&other, "b").err().expect("is refused").to_string();
    assert!(error.contains("another library of RocksDB"), "{error}");
    open(&engine, "c").expect("opens").close().expect("closes");
}

fn settings(durability: DurabilityMode) -> EngineSettings {
    EngineSettings {
        memtable_bytes: 128 << 10,
        table_bytes: 64 << 10,
        base_level_bytes: 64 << 10,
        durability,
        ..EngineSettings::small()
    }
}

#[test]
fn conforms() {
    let Some(engine) = version() else { return };
    let buffered = settings(DurabilityMode::Buffered);
    let root = tempfile::tempdir().expect("a directory");
    let child_test = "child_that_commits";
    let subject = Subject { engine: &engine, settings: &buffered, child_test };
    let failures = check_engine(&subject, root.path());
    assert!(failures.is_empty(), "{engine}: {}", failures.join("\n"));
    for durability in [DurabilityMode::Sync, DurabilityMode::None] {
        conforms_with(&engine, &settings(durability));
    }
}

/// Is run in processes of its own.
#[test]
fn child_that_commits() {
    lithify_lab_engines::register();
    kill::child();
}

#[test]
fn conforms_with_direct_reads_where_there_are_any() {
    let Some(engine) = version() else { return };
    let settings = EngineSettings { direct_reads: true, ..settings(DurabilityMode::Buffered) };
    let directory = tempfile::tempdir().expect("a directory");
    match open_spaces(&engine, directory.path(), &settings, &ROWS, Transactions::Unneeded) {
        Ok(opened) => {
            let described = opened.options();
            assert_eq!(described["use_direct_reads"], true);
            let yields = engine.name() != "rocksdb-no-yield";
            assert_eq!(described["enable_write_thread_adaptive_yield"], yields);
            let path = newest_options(directory.path());
            let text = std::fs::read_to_string(&path).expect("is there");
            assert!(text.contains("use_direct_reads=true"), "{text}");
            let yields = format!("enable_write_thread_adaptive_yield={yields}");
            assert!(text.contains(&yields), "{text}");
            conforms_with(&engine, &settings);
        }
        Err(error) => assert!(error.to_string().to_lowercase().contains("direct"), "{error}"),
    }
}

/// The file in which a database wrote its options last.
fn newest_options(directory: &Path) -> std::path::PathBuf {
    let files = std::fs::read_dir(directory).expect("is there").flatten();
    let names =
        files.map(|file| file.path()).filter(|path| path.to_string_lossy().contains("OPTIONS-"));
    names.max().expect("has written its options")
}

#[test]
fn an_expert_has_jemalloc_or_is_refused() {
    let (Some(_), None) = (present(EXPERT), std::env::var_os(VERSION)) else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let settings = settings(DurabilityMode::Buffered);
    let expert = EngineName::new(EXPERT);
    let opened = open_spaces(&expert, directory.path(), &settings, &ROWS, Transactions::Unneeded);
    let error = opened.err().expect("this process has another allocator").to_string();
    assert!(error.starts_with("rocksdb-expert is not measured without it"), "{error}");
    assert!(error.contains("jemalloc is not in force"), "{error}");
}

#[test]
fn an_expert_sets_what_it_says() {
    let Some(engine) = version().filter(|engine| engine.name() == EXPERT) else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let settings = settings(DurabilityMode::Buffered);
    let opened = open_spaces(&engine, directory.path(), &settings, &ROWS, Transactions::Unneeded);
    let opened = opened.expect("opens");
    let described = opened.options();
    assert!(described["allocator"].as_str().is_some_and(|it| it.starts_with("jemalloc")));
    assert_eq!(described["statistics"], "off");
    let text = std::fs::read_to_string(newest_options(directory.path())).expect("is there");
    for (option, said) in [
        ("write_buffer_size", "write_buffer_size"),
        ("max_write_buffer_number", "max_write_buffer_number"),
        ("target_file_size_base", "target_file_size_base"),
        ("max_bytes_for_level_base", "max_bytes_for_level_base"),
        ("max_background_jobs", "max_background_jobs"),
        ("max_subcompactions", "max_subcompactions"),
    ] {
        let line = format!("{option}={}", described[said]);
        assert!(text.contains(&line), "{line}: {text}");
    }
    for line in [
        "data_block_index_type=kDataBlockBinaryAndHash",
        "unpartitioned_pinning=kAll",
        "level_compaction_dynamic_level_bytes=true",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    opened.close().expect("closes");
}

#[test]
fn settling_leaves_level_0_empty() {
    let Some(engine) = version() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let settings = settings(DurabilityMode::Buffered);
    let open = || open_spaces(&engine, directory.path(), &settings, &ROWS, Transactions::Unneeded);
    let opened = open().expect("opens");
    fill(&*opened, 20_000);
    let files = || {
        let statistics = opened.statistics().expect("says");
        let count = |level: &LevelStatistics| level.files;
        let level0 = statistics.levels.iter().filter(|level| level.level == 0).map(count).sum();
        let other: u64 = statistics.levels.iter().filter(|l| l.level > 0).map(count).sum();
        (level0, other)
    };
    // Runs until some wait in level 0 above a tree: fewer than start a compaction by themselves.
    let mut before: (u64, u64) = (0, 0);
    for _ in 0..8 {
        fill(&*opened, 100);
        opened.flush().expect("flushes");
        opened.wait_for_compaction().expect("waits");
        before = files();
        if before.0 > 0 && before.1 > 0 {
            break;
        }
    }
    assert!(before.0 > 0 && before.1 > 0, "{before:?}: nothing to settle");
    let done = opened.settle_tree().expect("settles");
    assert!(done.contains("level 0"), "{done}");
    assert_eq!(files().0, 0, "{done}");
    opened.close().expect("closes");
}

#[test]
fn every_level_has_its_codec_in_the_files() {
    let Some(engine) = version() else { return };
    // Where the base level has just moved, a small level may have the codec of the middle one.
    levels_have_their_codecs(&engine, Codec::LZ4, &["none", "lz4"]);
    levels_have_their_codecs(&engine, Codec::NONE, &["none"]);
}

/// Fills a tree with this codec in the middle, nothing above and zstd-1 at the bottom, and looks
/// for codecs in its files; `upper` are those which the levels between 0 and the bottom may have.
fn levels_have_their_codecs(engine: &EngineName, codec_middle: Codec, upper: &[&str]) {
    let directory = tempfile::tempdir().expect("a directory");
    let settings = EngineSettings {
        codec_middle,
        // The expert's write buffers follow from it; with larger ones this data is one level.
        memory_budget_bytes: 4 << 20,
        ..settings(DurabilityMode::Buffered)
    };
    let open = || open_spaces(engine, directory.path(), &settings, &ROWS, Transactions::Unneeded);
    let opened = open().expect("opens");
    let version = opened.name();
    assert!(version.starts_with("RocksDB "), "{version}");
    // Larger memtables make fewer levels.
    let levels_min = if engine.name() == EXPERT { 2 } else { 3 };
    // A busy machine may compact all of level 0 into the bottom: what comes later goes between.
    let (mut random, mut rows) = (1, 40_000);
    fill_on(&*opened, &mut random, rows);
    let mut before = settled(&*opened);
    while before.levels.len() < levels_min && rows < 80_000 {
        fill_on(&*opened, &mut random, 2_000);
        rows += 2_000;
        before = settled(&*opened);
    }
    assert!(before.levels.len() >= levels_min, "{:?}", before.levels);
    for level in before.levels.iter().filter(|level| level.files > 0) {
        let expected: &[&str] = match level.level {
            6 => &["zstd-1"],
            0 => &["none"],
            _ => upper,
        };
        // One codec by its name, or "lz4 in 3, none in 1".
        let mut found = level.codec.split(", ").filter_map(|codec| codec.split(' ').next());
        assert!(found.all(|codec| expected.contains(&codec)), "{version}: {level:?}");
        assert!(level.raw_bytes > 0, "{level:?}");
    }
    let bottom = before.levels.iter().find(|level| level.level == 6).expect("a bottom");
    // Of the bottom only: files may get to the levels above it without being written again.
    assert!(bottom.compactions > 0, "{bottom:?}");
    assert!(bottom.stored_bytes < bottom.raw_bytes * 7 / 10, "{bottom:?}");
    let written = &before.written_bytes_by_cause;
    let is_expert = engine.name() == EXPERT;
    assert!(written["flush"] > 3_000_000, "{written:?}");
    assert_eq!(written.get("wal").is_some_and(|wal| *wal > 4_000_000), !is_expert, "{written:?}");
    assert_eq!(before.slowed_us().is_none(), is_expert, "without counters nobody tells");
    let user: u64 = before.levels.iter().map(|level| level.user_bytes).sum();
    // Keys are random: hardly one is there twice.
    assert!((rows * 116 - 2_000..=rows * 116).contains(&user), "{user}");
    assert!(written["compaction"] > 0 && before.read_bytes_by_cause["compaction"] > 0);
    assert!(before.cpu_us_by_cause["compaction"] > 0);
    assert!(before.live_bytes >= bottom.stored_bytes);
    let wall_us: u64 = before.levels.iter().map(|level| level.compaction_wall_us).sum();
    let cpu_us: u64 = before.levels.iter().map(|level| level.compaction_cpu_us).sum();
    assert!(wall_us > 0 && wall_us >= cpu_us / 2, "{wall_us} us of wall, {cpu_us} us of CPU");
    assert!(before.raw["cache"]["capacity_bytes"].as_u64() > Some(0), "{}", before.raw);
    opened.close().expect("closes");

    let opened = open().expect("opens again");
    let mut session = opened.session().expect("a session");
    let scanned =
        session.scan(SpaceId(0), &ScanRange::prefix(b""), &mut |_, _| ControlFlow::Continue(()));
    assert_eq!(scanned.expect("scans"), rows);
    drop(session);
    opened.close().expect("closes");
}

/// What it says of itself once nothing waits in memory or for a compaction.
fn settled(engine: &dyn Engine) -> EngineStatistics {
    engine.flush().expect("flushes");
    engine.wait_for_compaction().expect("waits");
    engine.statistics().expect("says")
}

#[test]
fn what_it_cannot_do_is_refused() {
    let Some(engine) = version() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let codecs =
        EngineSettings { codec_bottom: Codec::libdeflate(6), ..settings(DurabilityMode::Buffered) };
    let open = |settings, transactions| {
        open_spaces(&engine, directory.path(), settings, &ROWS, transactions)
    };
    let error = open(&codecs, Transactions::Unneeded).err().expect("is refused").to_string();
    assert!(error.contains("no codec libdeflate-6"), "{error}");

    let plain = settings(DurabilityMode::Buffered);
    let opened = open(&plain, Transactions::Unneeded).expect("opens");
    let mut session = opened.session().expect("a session");
    let error = session.begin(1).expect_err("has no locks").to_string();
    assert!(error.contains("without transactions"), "{error}");
    let error = session.get(SpaceId(1), b"k", &mut Vec::new()).expect_err("has one space");
    assert!(error.to_string().contains("no space 1"), "{error}");
    drop(session);
    let error = open(&plain, Transactions::Unneeded).err().expect("is locked").to_string();
    assert!(error.starts_with("RocksDB: IO error") && error.contains("lock"), "{error}");
}

#[test]
fn linkbench_passes_its_oracle() {
    let Some(engine) = version() else { return };
    let result = linkbench(&engine, |_| ());
    let labels: &[&str] = match engine.name() {
        WITHOUT_TRANSACTIONS => &["plain DB", "external lock"],
        _ => &["TransactionDB"],
    };
    assert_eq!(result.capabilities.labels, labels);
}
