//! Cassandra behind the adapter, where it is set up. A node takes a gigabyte and up to a minute to
//! start: one at a time, so there is one test.

mod harness;

use std::path::{Path, PathBuf};

use harness::{ROWS, present};
use lithify_lab::adapter::codec::Codec;
use lithify_lab::adapter::provider::Transactions;
use lithify_lab::adapter::settings::DurabilityMode;
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::text::{TextEngine, TextSession};
use lithify_lab::adapter::{EngineName, EngineResult};
use lithify_lab::chunks::measure;
use lithify_lab::chunks::plan::{ChunkChoice, ChunkPlan};
use lithify_lab::chunks::spec::ChunkCell;
use lithify_lab::conformance;
use lithify_lab::engines::registry::{open_spaces, open_text};
use lithify_lab::experiment::{BUILT_IN, ChunkExperiment};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const LINES: u32 = 20_000;

fn settings(codec: Codec) -> EngineSettings {
    EngineSettings {
        codec_bottom: codec,
        block_bytes: 16 << 10,
        // The one mode in which a killed node must have every acknowledged row.
        durability: DurabilityMode::Sync,
        ..EngineSettings::small()
    }
}

fn line(number: u32) -> String {
    format!("\tThe line of number {number} is like that of {} (2001) [Himself]\n", number / 10)
}

fn load(session: &mut dyn TextSession, numbers: std::ops::Range<u32>) {
    for number in numbers {
        session.insert((number / 5_000, number, line(number).as_bytes())).expect("inserts");
    }
    session.finish().expect("writes");
}

fn place_of(pid: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}"))
}

#[test]
fn a_node_holds_a_text() {
    let Some(engine) = present("cassandra") else { return };
    let root = tempfile::tempdir().expect("a directory");
    refuses(&engine, root.path());
    let directory = root.path().join("node");
    std::fs::create_dir(&directory).expect("is made");
    let open = || open_text(&engine, &directory, &settings(Codec::zstd(3)));
    let text = open().expect("opens");
    assert!(text.name().starts_with("Cassandra 5.0."), "{}", text.name());
    assert_eq!(conformance::text::check(&*text), [""; 0]);
    stores(&*text);
    dies(text);
    finds_again(open);
    measures(&engine, root.path());
}

/// What it cannot do is refused before a node is started.
fn refuses(engine: &EngineName, directory: &Path) {
    let refused = |codec| {
        let opened = open_text(engine, directory, &settings(codec));
        opened.err().expect("is refused").to_string()
    };
    let error = refused(Codec::libdeflate(6));
    assert!(error.starts_with("cassandra has no codec libdeflate-6; it has: none"), "{error}");
    let error = refused(Codec::zlib(9));
    assert!(error.starts_with("cassandra has no codec zlib-9; it has: none"), "{error}");
    let keys = open_spaces(engine, directory, &settings(Codec::LZ4), &ROWS, Transactions::Unneeded);
    let error = keys.err().expect("is refused").to_string();
    assert!(error.contains("on text in chunks only"), "{error}");
    assert_eq!(std::fs::read_dir(directory).expect("is there").count(), 0);
}

/// Rows are in memory until they are flushed, then in files with the codec; several become one.
fn stores(text: &dyn TextEngine) {
    let mut session = text.session().expect("a session");
    load(&mut *session, 0..LINES);
    let level = || text.statistics().expect("says").levels.remove(0);
    assert_eq!((level().files, level().stored_bytes), (0, 0));
    text.flush().expect("flushes");
    text.rest().expect("has the codec");
    let flushed = level();
    assert_eq!((flushed.files, flushed.codec.as_str()), (1, "zstd-3"));
    let raw: u64 = (0..LINES).map(|number| line(number).len() as u64).sum();
    assert!(flushed.raw_bytes > raw && flushed.raw_bytes < 2 * raw, "{flushed:?}, {raw}");
    assert!(flushed.stored_bytes < flushed.raw_bytes / 2, "{flushed:?}");
    load(&mut *session, LINES..2 * LINES);
    text.flush().expect("flushes");
    assert_eq!(level().files, 2);
    text.rest().expect("compacts");
    let compacted = level();
    assert_eq!((compacted.files, compacted.codec.as_str()), (1, "zstd-3"));
    assert!(compacted.raw_bytes > 2 * raw, "{compacted:?}");
}

/// A node that is killed while rows are written is an error that says so.
fn dies(text: Box<dyn TextEngine>) {
    let mut session = text.session().expect("a session");
    load(&mut *session, 2 * LINES..2 * LINES + 1);
    let [pid] = text.process_ids()[..] else { panic!("one process") };
    assert!(place_of(pid).exists());
    kill(Pid::from_raw(pid as i32), Signal::SIGKILL).expect("is killed");
    let mut number = 3 * LINES;
    let error = loop {
        let written = session.insert((9, number, &[b'x'; 8_192]));
        match written {
            Ok(()) => number += 1,
            Err(error) => break error.to_string(),
        }
    };
    let expected = "the Cassandra node ended (signal: 9 (SIGKILL)); ";
    assert!(error.starts_with(expected), "{error}");
    let mut line = Vec::new();
    assert!(session.get(0, 0, &mut line).is_err());
    drop(session);
    let error = text.flush().expect_err("is gone").to_string();
    assert!(error.starts_with(expected), "{error}");
    let error = text.close().expect_err("is gone").to_string();
    assert!(error.starts_with(expected), "{error}");
}

/// All that was acknowledged before is there; a node that is closed is gone.
fn finds_again(open: impl Fn() -> EngineResult<Box<dyn TextEngine>>) {
    let text = open().expect("opens again");
    let mut session = text.session().expect("a session");
    let mut rows = 0;
    session.scan(&mut |(partition, _, _)| rows += u64::from(partition < 9)).expect("scans");
    assert_eq!(rows, u64::from(2 * LINES + 1), "the last one was in no table file");
    drop(session);
    let place = place_of(text.process_ids()[0]);
    text.close().expect("closes");
    assert!(!place.exists());
}

/// A cell of the experiment, as a run measures it: one node, emptied between flushes.
fn measures(engine: &EngineName, root: &Path) {
    let found = BUILT_IN.iter().find(|(name, _)| *name == "chunk-length");
    let (name, toml) = found.expect("is built in");
    let experiment = ChunkExperiment::parse(name, toml).expect("parses");
    let choice = ChunkChoice {
        engine: Some(engine.clone()),
        arms: Some(vec!["snappy-64k".to_owned()]),
        ..ChunkChoice::default()
    };
    let plan = ChunkPlan::expand(&experiment, &choice, "test").expect("expands");
    let cell = ChunkCell { text_bytes: 300_000, flushes: 2, scans: 1, ..plan.cells[0].clone() };
    let directory = root.join("cell");
    std::fs::create_dir(&directory).expect("is made");
    let outcome = measure::measure(&cell, &directory, &|_| {}).expect("measures");
    assert_eq!(outcome.faults, [""; 0]);
    assert_eq!((outcome.flush_ms.len(), outcome.table_codec.as_str()), (2, "snappy"));
    assert!(outcome.stored_bytes() < 300_000 * 4 / 5, "{}", outcome.stored_bytes());
    assert!(outcome.codec_library.starts_with("snappy-java-"), "{}", outcome.codec_library);
}
