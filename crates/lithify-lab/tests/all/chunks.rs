//! Text in chunks on a real engine, in this process.

use lithify_lab::adapter::EngineName;
use lithify_lab::chunks::measure;
use lithify_lab::chunks::plan::{ChunkChoice, ChunkPlan};
use lithify_lab::chunks::spec::{ChunkCell, ChunkOutcome};
use lithify_lab::datasets::TextData;
use lithify_lab::experiment::{BUILT_IN, ChunkExperiment};

/// A cell of the smoke plan.
fn cell(arm: &str, text: TextData) -> ChunkCell {
    let found = BUILT_IN.iter().find(|(name, _)| *name == "chunk-length");
    let (name, toml) = found.expect("is built in");
    let experiment = ChunkExperiment::parse(name, toml).expect("parses");
    let choice = ChunkChoice {
        engine: Some(EngineName::lithify()),
        arms: Some(vec![arm.to_owned()]),
        text: Some(text),
        ..ChunkChoice::default()
    };
    let plan = ChunkPlan::expand(&experiment, &choice, "test").expect("expands");
    plan.cells[0].clone()
}

fn measured(cell: &ChunkCell) -> ChunkOutcome {
    let place = tempfile::tempdir().expect("a directory");
    measure::measure(cell, place.path(), &|_| {}).expect("measures")
}

#[test]
fn larger_chunks_are_smaller_and_every_scan_finds_the_text() {
    let of = |arm| {
        let cell = ChunkCell { text_bytes: 300_000, flushes: 2, ..cell(arm, TextData::Actors) };
        measured(&cell)
    };
    let [none, small, large] = ["none-4k", "zstd-3-4k", "zstd-3-64k"].map(of);
    for outcome in [&none, &small, &large] {
        assert_eq!(outcome.faults, [""; 0]);
        assert_eq!((outcome.flush_ms.len(), outcome.cold_scan_ms.len()), (2, 2));
        assert!((300_000..300_100).contains(&outcome.text_bytes), "{}", outcome.text_bytes);
        assert!(outcome.held_thread.is_some());
        assert!(outcome.row_reads.reads > 500, "{:?}", outcome.row_reads);
        assert_eq!(outcome.rows_hash, none.rows_hash);
    }
    assert_eq!(small.table_codec, "zstd-3");
    assert!(none.stored_bytes() > 300_000);
    assert!(large.stored_bytes() < small.stored_bytes(), "in larger chunks");
    assert!(small.stored_bytes() < none.stored_bytes() * 2 / 3);
    assert!(small.calls.calls > 4 * large.calls.calls, "{:?}, {:?}", small.calls, large.calls);
    // The codec alone sees about what the engine's does.
    let share = small.calls.stored_bytes as f64 / small.stored_bytes() as f64;
    assert!((0.8..1.2).contains(&share), "{share}");
}

#[test]
fn a_flush_that_came_too_early_voids_the_row() {
    let mut cell = cell("lz4-16k", TextData::Actors);
    cell.settings.memtable_bytes = 256 << 10;
    let faults = measured(&cell).faults;
    assert_eq!(faults.len(), 3, "one per flush: {faults:?}");
    assert!(faults[0].contains("memtable_kib is too small for the text"), "{faults:?}");
}

#[test]
fn any_file_will_do() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("text");
    let bytes: Vec<u8> =
        (0..200_000_u32).map(|number| (number.wrapping_mul(number) >> 8) as u8).collect();
    std::fs::write(&path, &bytes).expect("writes");
    let outcome = measured(&cell("snappy-16k", TextData::File(path)));
    assert_eq!((outcome.text_bytes, outcome.faults.len()), (200_000, 0));
}
