//! WiredTiger behind the adapter, where it is there.

mod harness;

use std::ops::ControlFlow;
use std::path::Path;

use harness::{ROWS, conforms_in_all, conforms_with, fill, linkbench, present};
use lithify_lab::adapter::codec::Codec;
use lithify_lab::adapter::provider::Transactions;
use lithify_lab::adapter::settings::DurabilityMode;
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::{Engine, EngineName, EngineStatistics, ScanRange, Session, SpaceId};
use lithify_lab::adapter::{EngineResult, WriteBatch};
use lithify_lab::conformance::kill;
use lithify_lab::engines::registry::open_spaces;

const SPACE: SpaceId = SpaceId(0);

fn engine() -> Option<EngineName> {
    present("wiredtiger")
}

fn settings(durability: DurabilityMode) -> EngineSettings {
    EngineSettings { durability, ..EngineSettings::small() }
}

fn open(directory: &Path, settings: &EngineSettings) -> EngineResult<Box<dyn Engine>> {
    let engine = EngineName::new("wiredtiger");
    open_spaces(&engine, directory, settings, &ROWS, Transactions::Needed)
}

fn put(session: &mut dyn Session, key: &str) {
    let mut batch = WriteBatch::new();
    batch.put(SPACE, key.as_bytes(), b"v");
    session.write_batch(&batch).expect("is written");
}

/// A figure of the database by its own name.
fn figure(statistics: &EngineStatistics, name: &str) -> u64 {
    statistics.raw["database"][name].as_u64().unwrap_or(0)
}

#[test]
fn conforms() {
    let Some(engine) = engine() else { return };
    for durability in [DurabilityMode::Sync, DurabilityMode::None] {
        conforms_with(&engine, &settings(durability));
    }
    conforms_in_all(&engine, &settings(DurabilityMode::Buffered));
}

/// Is run in processes of its own.
#[test]
fn child_that_commits() {
    lithify_lab_engines::register();
    kill::child();
}

#[test]
fn conforms_with_direct_reads_where_there_are_any() {
    let Some(engine) = engine() else { return };
    let settings = EngineSettings { direct_reads: true, ..settings(DurabilityMode::Buffered) };
    let directory = tempfile::tempdir().expect("a directory");
    match open(directory.path(), &settings) {
        Ok(opened) => {
            opened.close().expect("closes");
            conforms_with(&engine, &settings);
        }
        Err(error) => assert!(error.to_string().contains("Invalid argument"), "{error}"),
    }
}

/// Stored bytes of so many rows under a codec; the codec and the rows are checked.
fn stored_bytes(codec: Codec) -> u64 {
    const ROW_COUNT: u64 = 20_000;
    let directory = tempfile::tempdir().expect("a directory");
    let settings = EngineSettings {
        codec_bottom: codec,
        // All rows stay in the cache until the one checkpoint that writes them.
        memory_budget_bytes: 128 << 20,
        // No multiple of 4 KiB: files grow in units of 512 bytes, which shows small differences.
        block_bytes: 65 * 512,
        ..settings(DurabilityMode::Buffered)
    };
    let opened = open(directory.path(), &settings).expect("opens");
    assert_eq!(opened.name(), "WiredTiger 11.3.1");
    fill(&*opened, ROW_COUNT);
    opened.flush().expect("flushes");
    opened.wait_for_compaction().expect("waits");
    let statistics = opened.statistics().expect("says");
    let [level] = &statistics.levels[..] else { panic!("one level: {:?}", statistics.levels) };
    assert_eq!((level.codec.as_str(), level.files), (codec.to_string().as_str(), 1));
    let compressed = &statistics.raw["tables"]["rows"]["compression: pages written to disk"];
    assert_eq!(compressed.as_u64() > Some(0), codec != Codec::NONE, "{codec}: {compressed}");
    let written = &statistics.written_bytes_by_cause;
    assert!(written["wal"] > 2_000_000 && written["checkpoint"] > 0, "{written:?}");
    assert!(statistics.live_bytes >= level.stored_bytes && level.stored_bytes > 0);
    assert_eq!(statistics.raw["cache"]["capacity_bytes"], settings.memory_budget_bytes);
    opened.close().expect("closes");

    let opened = open(directory.path(), &settings).expect("opens again");
    let mut session = opened.session().expect("a session");
    let rows = session.scan(SPACE, &ScanRange::prefix(b""), &mut |_, _| ControlFlow::Continue(()));
    assert_eq!(rows.expect("scans"), ROW_COUNT);
    level.stored_bytes
}

#[test]
fn every_codec_is_in_the_files_with_its_effort() {
    if engine().is_none() {
        return;
    }
    let none = stored_bytes(Codec::NONE);
    for codec in [Codec::SNAPPY, Codec::LZ4, Codec::zstd(1), Codec::zlib(9)] {
        let stored = stored_bytes(codec);
        assert!(stored < none * 7 / 10, "{codec}: {stored} of {none} bytes");
    }
    let (weak, strong) = (stored_bytes(Codec::zlib(1)), stored_bytes(Codec::zlib(9)));
    assert!(strong < weak, "zlib-9 {strong}, zlib-1 {weak}");
    let (weak, strong) = (stored_bytes(Codec::zstd(-5)), stored_bytes(Codec::zstd(9)));
    assert!(strong < weak, "zstd-9 {strong}, zstd--5 {weak}");
}

/// What the log did for 20 commits.
fn log_work(durability: DurabilityMode) -> (u64, u64) {
    let directory = tempfile::tempdir().expect("a directory");
    let opened = open(directory.path(), &settings(durability)).expect("opens");
    let before = opened.statistics().expect("says");
    let mut session = opened.session().expect("a session");
    (0..20).for_each(|number| put(&mut *session, &number.to_string()));
    let after = opened.statistics().expect("says");
    let grown = |name| figure(&after, name) - figure(&before, name);
    (grown("log: log write operations"), grown("log: log sync operations"))
}

#[test]
fn commits_are_written_and_synced_as_asked() {
    if engine().is_none() {
        return;
    }
    let (writes, syncs) = log_work(DurabilityMode::Sync);
    assert!(writes >= 20 && syncs >= 20, "{writes} writes, {syncs} syncs");
    let (writes, syncs) = log_work(DurabilityMode::Buffered);
    assert!(writes >= 20 && syncs < 5, "{writes} writes, {syncs} syncs");
    assert_eq!(log_work(DurabilityMode::None), (0, 0));
}

#[test]
fn a_buffered_commit_is_found_in_a_copy_of_the_files() {
    if engine().is_none() {
        return;
    }
    let [directory, copy] = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    let settings = settings(DurabilityMode::Buffered);
    let opened = open(directory.path(), &settings).expect("opens");
    let mut session = opened.session().expect("a session");
    put(&mut *session, "acknowledged");
    // The files as they would be if this process were gone now.
    for entry in std::fs::read_dir(directory.path()).expect("is there").flatten() {
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).expect("is copied");
    }
    let recovered = open(copy.path(), &settings).expect("opens");
    let mut session = recovered.session().expect("a session");
    assert!(session.get(SPACE, b"acknowledged", &mut Vec::new()).expect("reads"));
}

#[test]
fn an_absent_row_is_locked_too() {
    if engine().is_none() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let opened = open(directory.path(), &settings(DurabilityMode::Buffered)).expect("opens");
    let (mut one, mut two) = (opened.session().expect("one"), opened.session().expect("two"));
    let mut value = Vec::new();
    one.begin(1).expect("begins");
    assert!(!one.get_for_update(SPACE, b"k", &mut value).expect("locks"));
    one.put(SPACE, b"other", b"v").expect("puts");
    two.begin(2).expect("begins");
    two.put(SPACE, b"k", b"v").expect("puts");
    two.commit().expect("commits");
    let error = one.commit().expect_err("the row is there now");
    assert!(error.is_retryable(), "{error}");
    one.rollback().expect("there is nothing to do");
    assert!(!one.get(SPACE, b"other", &mut value).expect("reads"));
    // Locked and left alone, it stays absent.
    one.begin(1).expect("begins");
    assert!(!one.get_for_update(SPACE, b"none", &mut value).expect("locks"));
    one.commit().expect("commits");
    assert!(!two.get(SPACE, b"none", &mut value).expect("reads"));
}

#[test]
fn what_it_cannot_do_is_refused() {
    if engine().is_none() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let plain = settings(DurabilityMode::Buffered);
    let refused = |settings: &EngineSettings| {
        open(directory.path(), settings).err().expect("is refused").to_string()
    };
    let error = refused(&EngineSettings { codec_bottom: Codec::lz4(9), ..plain.clone() });
    assert!(error.contains("lz4 without efforts"), "{error}");
    let opened = open(directory.path(), &plain).expect("opens");
    let error = refused(&plain);
    assert!(error.starts_with("WiredTiger: ") && error.lines().count() == 1, "{error}");
    let mut session = opened.session().expect("a session");
    let error = session.get(SpaceId(1), b"k", &mut Vec::new()).expect_err("has one space");
    assert!(error.to_string().contains("no space 1"), "{error}");
}

#[test]
fn linkbench_passes_its_oracle() {
    let Some(engine) = engine() else { return };
    let result = linkbench(&engine, |_| ());
    assert!(result.capabilities.transactions);
}
