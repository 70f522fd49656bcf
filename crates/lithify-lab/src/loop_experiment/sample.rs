//! A run with known figures, for tests.

use super::LoopRecord;
use super::plan::{LoopChoice, LoopPlan};
use crate::adapter::settings::EngineSettings;
use crate::adapter::{
    Capabilities, EngineName, EngineStatistics, LevelStatistics, StallStatistics,
};
use crate::dbbench::histogram::Distribution;
use crate::dbbench::oracle::Verification;
use crate::dbbench::plan::{DbCellRecord, DbRecord};
use crate::dbbench::spec::{
    DbCell, DbResult, OperationLatency, Role, SCHEMA, Step, StepResult, ThreadCpu,
};
use crate::dbbench::step::StepSpec;
use crate::experiment::{BUILT_IN, LoopExperiment};
use crate::keyvalue::benchmark::Benchmark;
use crate::keyvalue::timeline::Throughput;
use crate::latency::{Latencies, LatencySummary};
use crate::meter::PhaseUsage;
use crate::meter::process::{ProcessCpu, ProcessIo};

/// The built-in experiment.
pub(super) fn experiment() -> LoopExperiment {
    LoopExperiment::parse("e.toml", BUILT_IN[2].1).expect("parses")
}

/// Three of its arms on both of its engines.
pub(crate) fn plan(repeats: u64) -> LoopPlan {
    let arms = ["none-upper", "lz4", "lz4-but-l0"].map(str::to_owned);
    let choice =
        LoopChoice { arms: Some(arms.into()), repeats: Some(repeats), ..LoopChoice::default() };
    let experiment = experiment();
    let engines = experiment.workload.engines.clone();
    LoopPlan::expand(&experiment, &engines, &choice, "build").expect("expands")
}

/// A record of `plan` in which every cell succeeded.
pub(crate) fn record(plan: &LoopPlan) -> LoopRecord {
    let cells = plan.cells.cells.iter().map(|cell| DbCellRecord {
        cell: cell.clone(),
        result: Some(result(cell)),
        failure: None,
    });
    let cells = cells.collect();
    let run = DbRecord { schema: SCHEMA, plan: plan.cells.clone(), interrupted: false, cells };
    LoopRecord { plan: plan.clone(), run }
}

/// A result: RocksDB is half as fast, each repeat 1 % slower than the one before. The codec of
/// level 0 decides about flushes, that of the small levels about the base level and the next one.
fn result(cell: &DbCell) -> DbResult {
    let steps = cell.spec.benchmarks.iter().enumerate();
    let steps = steps.map(|(index, spec)| Step::Loop(Box::new(step(cell, *spec, index as u64))));
    DbResult {
        hash: cell.hash(),
        cell: cell.clone(),
        started_unix_s: 1_700_000_000,
        machine: crate::linkbench::sample::machine(),
        engine_name: format!("{} 1", cell.spec.engine),
        capabilities: Capabilities::default(),
        engine_options: serde_json::Value::Null,
        steps: steps.collect(),
        verification: (cell.role == Role::Measure).then_some(Verification {
            rows: cell.spec.num,
            rows_expected: Some(cell.spec.num),
            keys_sum: 1,
            rows_sum: 2,
            malformed: 0,
            contents: None,
        }),
    }
}

/// Half for a codec that halves, one for none.
fn stored(settings: &EngineSettings, level: u32) -> u64 {
    let codec = match level {
        0 => settings.codec_level0.unwrap_or(settings.codec_small),
        3 | 4 => settings.codec_small,
        _ => settings.codec_bottom,
    };
    if codec.to_string() == "none" { 2 } else { 1 }
}

/// A step of 10 s; the one at `index` began when so many had booked their jobs.
fn step(cell: &DbCell, spec: StepSpec, index: u64) -> StepResult {
    let settings = &cell.spec.settings;
    let slow = if cell.spec.engine.name() == "rocksdb" { 2 } else { 1 };
    let seconds = 10.0 * (1.0 + cell.repeat as f64 / 100.0);
    let operations = 500_000 * stored(settings, 0) / slow;
    let is_reading = spec.benchmark == Benchmark::ReadWhileWriting;
    let writes = if is_reading { 100_000 } else { operations };
    let ingested = writes * cell.spec.entry_bytes();
    let measures = cell.role == Role::Measure;
    let statistics = |steps| match measures {
        true => statistics(settings, cell.repeat, steps, ingested),
        false => EngineStatistics::default(),
    };
    let mut latencies = Latencies::default();
    (1..=100).for_each(|sample: u64| latencies.record(sample * 1_000));
    let throughput = Throughput {
        per_second: vec![writes / 10; 10],
        gap_windows: 1,
        gap_runs: 1,
        windows: 100,
        longest_gap_ms: 150.0,
        longest_gap_at_s: 1.0,
        latency: LatencySummary::new("write", &latencies),
    };
    let settled = statistics(2 * index + 2);
    let usage = |written: u64| PhaseUsage {
        seconds,
        process_cpu: ProcessCpu { user_us: 8_000_000, ..ProcessCpu::default() },
        process_io: ProcessIo { written_syscall_bytes: written, ..ProcessIo::default() },
        foreign_cpu_us: 100_000,
        ..PhaseUsage::default()
    };
    StepResult {
        spec,
        operations,
        found: 0,
        found_expected: None,
        bytes: ingested,
        elapsed_s: seconds,
        client_seconds: seconds,
        background_writes: if is_reading { writes } else { 0 },
        ingested_bytes: ingested,
        latency: OperationLatency {
            summary: LatencySummary::new("write", &latencies),
            distribution: Distribution::default(),
        },
        background_latency: None,
        throughput: Some(throughput),
        intervals: Vec::new(),
        checkpoints: Vec::new(),
        contents: None,
        thread_cpu: ThreadCpu { clients_us: 1_000_000, ..ThreadCpu::default() },
        usage: usage(10 * ingested),
        settle: Some(usage(2 * ingested)),
        settle_sampler_us: 0,
        samples: Vec::new(),
        statistics_before: statistics(2 * index),
        statistics: statistics(2 * index + 1),
        statistics_settled: settled,
    }
}

/// What an engine says after so many half steps, each of which had the same jobs.
fn statistics(
    settings: &EngineSettings,
    repeat: u64,
    steps: u64,
    ingested: u64,
) -> EngineStatistics {
    let level = |level: u32, jobs: u64, wall_ms: u64, share: u64| {
        let written = ingested * stored(settings, level) * share / 20;
        // Compression makes a job longer, and the second repeat too.
        let wall_us = wall_ms * (1_000 + 10 * repeat) * (3 - stored(settings, level));
        LevelStatistics {
            level,
            files: 2,
            stored_bytes: 1_000_000 * stored(settings, level) * share,
            raw_bytes: 2_000_000 * share,
            user_bytes: 2_000_000 * share,
            codec: if stored(settings, level) == 2 { "none" } else { "lz4" }.to_owned(),
            compaction_read_bytes: written * steps,
            compaction_write_bytes: written * steps,
            compaction_cpu_us: wall_us / 2 * jobs * steps,
            compaction_wall_us: wall_us * jobs * steps,
            compactions: jobs * steps,
        }
    };
    let levels = vec![
        level(0, 20, 50, 5),
        level(3, 5, 400, 10),
        level(4, 10, 200, 20),
        level(5, 8, 300, 40),
        level(6, 6, 500, 60),
    ];
    let written = |levels: &[LevelStatistics]| -> u64 {
        levels.iter().map(|level| level.compaction_write_bytes).sum()
    };
    EngineStatistics {
        live_bytes: 1,
        stalls: StallStatistics { delayed_us: 100_000 * steps, ..StallStatistics::default() },
        written_bytes_by_cause: [
            ("wal", ingested / 2 * steps),
            ("flush", written(&levels[..1])),
            ("compaction", written(&levels[1..])),
        ]
        .map(|(cause, bytes)| (cause.to_owned(), bytes))
        .into(),
        levels,
        ..EngineStatistics::default()
    }
}

/// The engine of the first cells of a plan.
pub(super) fn lithify() -> EngineName {
    EngineName::lithify()
}
