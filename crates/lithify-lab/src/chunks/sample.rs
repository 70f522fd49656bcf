//! A plan and made-up outcomes for tests.

use super::codec_calls::CodecCalls;
use super::plan::{ChunkChoice, ChunkPlan};
use super::row_reads::RowReads;
use super::spec::{ChunkCell, ChunkOutcome, HeldThread};
use crate::adapter::codec::Codec;
use crate::adapter::{Capabilities, EngineName};
use crate::experiment::{BUILT_IN, ChunkExperiment};
use crate::linkbench::plan::ChoiceError;
use crate::meter::PhaseUsage;
use crate::meter::machine::Machine;
use crate::meter::process::ProcessCpu;
use crate::meter::space::DirectorySize;
use crate::run::cells::{Entries, Entry, Run};

/// The built-in experiment.
pub(crate) fn experiment() -> ChunkExperiment {
    let found = BUILT_IN.iter().find(|(name, _)| *name == "chunk-length");
    let (name, text) = found.expect("is built in");
    ChunkExperiment::parse(name, text).expect("parses")
}

/// Its plan for Lithify with a choice.
pub(crate) fn expand(choice: ChunkChoice) -> Result<ChunkPlan, ChoiceError> {
    let choice = ChunkChoice { engine: Some(EngineName::lithify()), ..choice };
    ChunkPlan::expand(&experiment(), &choice, "build")
}

/// The plan of some arms.
pub(crate) fn plan(arms: &[&str]) -> ChunkPlan {
    let arms = Some(arms.iter().map(|arm| (*arm).to_owned()).collect());
    expand(ChunkChoice { arms, ..ChunkChoice::default() }).expect("expands")
}

/// Stored share and milliseconds of a flush in chunks of 4 KiB: of larger ones both are smaller.
fn of_codec(codec: Codec) -> (f64, f64) {
    match (codec.kind(), codec.effort()) {
        ("none", _) => (1.0, 10.0),
        ("lz4", 1) => (0.60, 9.0),
        ("snappy", _) => (0.62, 9.5),
        ("zlib", _) => (0.45, 60.0),
        ("zstd", effort) => (0.50 - 0.01 * f64::from(effort), 8.5 + f64::from(effort)),
        _ => (0.5, 20.0),
    }
}

/// What a cell might have found: every published finding holds.
pub(crate) fn outcome(cell: &ChunkCell) -> ChunkOutcome {
    let (share, flush_ms) = of_codec(cell.codec);
    let doublings = (cell.chunk_kib as f64 / 4.0).log2();
    let kind = (cell.codec.kind(), cell.codec.effort());
    let smaller = match kind {
        ("none", _) => 1.0,
        ("zstd", effort) => 1.0 - doublings * (0.04 + 0.002 * f64::from(effort)),
        _ => 1.0 - doublings * 0.04,
    };
    let strong = matches!(kind, ("zlib", _) | ("zstd", 5..)) && cell.chunk_kib >= 64;
    let scan_ms = match kind {
        ("lz4", 1) | ("snappy", _) => 20.0,
        ("zstd", 1) => 60.0,
        _ => 30.0,
    } - doublings;
    // Two flushes, all of their time on a CPU.
    let process_cpu = ProcessCpu { user_us: (2_000.0 * flush_ms) as u64, ..ProcessCpu::default() };
    ChunkOutcome {
        cell: cell.clone(),
        started_unix_s: 0,
        machine: Machine { cpus: 2, ..Machine::default() },
        engine_name: format!("{} 1.0", cell.engine),
        capabilities: Capabilities { block_size: true, ..Capabilities::default() },
        codec_library: "a library".to_owned(),
        rows: 1000,
        text_bytes: 1_000_000,
        rows_hash: cell.seed,
        flush_ms: vec![flush_ms, flush_ms + 0.2],
        flush_usage: PhaseUsage { process_cpu, ..PhaseUsage::default() },
        flush_codec_us: None,
        directory: DirectorySize::default(),
        table_bytes: Some((1e6 * share * smaller) as u64),
        table_codec: cell.codec.to_string(),
        cold_scan_ms: vec![scan_ms],
        cold_read_device_bytes: 900_000,
        warm_scan_ms: vec![scan_ms / 2.0],
        row_reads: RowReads { reads: 100, p50_us: 8.0, p99_us: 9.0, mean_us: 8.5, wrong: 0 },
        calls: CodecCalls {
            calls: 100,
            longest_us: if strong { 1_500 } else { 300 },
            long_calls: if strong { 3 } else { 0 },
            long_sum_us: if strong { 4_000 } else { 0 },
            ..CodecCalls::default()
        },
        held_thread: Some(HeldThread { units: 1, longest_us: 2_000, sum_us: 2_000 }),
        foreign_percent: 1.0,
        faults: Vec::new(),
    }
}

/// A run in which every cell was measured.
pub(crate) fn run(plan: &ChunkPlan) -> Run<ChunkPlan> {
    let entry = |cell: &ChunkCell| Entry::new(cell, Ok(outcome(cell)));
    let cells = plan.cells.iter().map(entry).collect();
    Run::new(plan.clone(), Entries { interrupted: false, cells })
}
