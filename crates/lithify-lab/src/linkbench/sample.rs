//! Results with known figures, for tests of the runner and of the reports.

use std::collections::BTreeMap;

use serde_json::json;

use crate::adapter::{
    Capabilities, EngineName, EngineStatistics, LevelStatistics, StallStatistics,
};
use crate::experiment::{BUILT_IN, Experiment, Phase};
use crate::latency::{Latencies, LatencySummary};
use crate::linkbench::cell::{
    CellResult, CellSpec, ClientsResult, OracleResult, PhaseResult, Purpose, SCHEMA,
};
use crate::linkbench::control::ObservedStalls;
use crate::linkbench::plan::{Choice, Plan};
use crate::linkbench::record::{CellRecord, LinkBenchRecord};
use crate::meter::PhaseUsage;
use crate::meter::machine::Machine;
use crate::meter::process::{ProcessCpu, ProcessIo, ProcessMemory};
use crate::meter::space::DirectorySize;
use crate::meter::system::{CpuTicks, DeviceCounters};

/// The built-in experiment with three arms and as many repeats.
pub(crate) fn plan(engine: &EngineName, repeats: u64) -> Plan {
    let experiment = Experiment::parse("e.toml", BUILT_IN[0].1).expect("parses");
    let arms = ["zlib-1", "zlib-6", "zstd-1"].map(str::to_owned);
    let choice = Choice { arms: Some(arms.into()), repeats: Some(repeats), ..Choice::default() };
    Plan::expand(&experiment, engine, &choice, "build").expect("expands")
}

/// A record of `plan` in which every cell succeeded.
pub(crate) fn record(plan: &Plan) -> LinkBenchRecord {
    let cells = plan.cells.iter().map(|spec| CellRecord {
        spec: spec.clone(),
        result: Some(result(spec)),
        failure: None,
    });
    LinkBenchRecord {
        schema: SCHEMA,
        plan: plan.clone(),
        interrupted: false,
        cells: cells.collect(),
    }
}

/// A result: each arm has its own speed and size, each repeat is 1 % slower than the one before.
/// With fewer clients it is slower in proportion.
pub(crate) fn result(spec: &CellSpec) -> CellResult {
    let (cpu, size) = match spec.arm.as_str() {
        "driver" => (0.1, 0.0),
        "zlib-1" => (2.0, 33.0),
        "zlib-6" => (2.2, 31.0),
        _ => (1.0, 32.0),
    };
    let cpu = cpu * (1.0 + spec.repeat as f64 / 100.0);
    let oracle = match spec.purpose {
        Purpose::Calibrate | Purpose::Load => Vec::new(),
        Purpose::Measure | Purpose::Control => [Phase::Load, Phase::Query]
            .map(|phase| OracleResult { phase, passed: true, summary: "all agrees".into() })
            .into(),
    };
    let queries = |clients: u64| {
        let share = clients as f64 / spec.requesters as f64;
        let operations = (200_000.0 * share) as u64;
        let phase = phase(operations, cpu, size, spec.purpose);
        PhaseResult { write_operations: clients * spec.nodes / 10, ..phase }
    };
    let (last, earlier) = match spec.client_counts().split_last() {
        Some((last, earlier)) => (queries(*last), earlier),
        None => (PhaseResult::default(), &[][..]),
    };
    CellResult {
        hash: spec.hash(),
        spec: spec.clone(),
        started_unix_s: 1_700_000_000,
        machine: machine(),
        engine_name: "sample 1".into(),
        capabilities: Capabilities::default(),
        engine_options: json!({}),
        block_cache_bytes: 20 << 20,
        codec_libraries: [("none", "none"), ("lz4", "lz4 1.10")]
            .map(|(codec, library)| (codec.to_owned(), library.to_owned()))
            .into(),
        graph: json!({"links_per_node": 4.27}),
        load: phase(437_000, cpu, size, spec.purpose),
        query: last,
        sweep: earlier
            .iter()
            .map(|clients| ClientsResult { clients: *clients, phase: queries(*clients) })
            .collect(),
        device_limit: None,
        memory_limit: None,
        open_loop: Vec::new(),
        oracle,
        file_system: None,
        dropped: None,
    }
}

/// A machine with two CPUs.
pub(crate) fn machine() -> Machine {
    Machine {
        cpu: "A CPU".into(),
        cpus: 2,
        kernel: "Linux 6".into(),
        memory_bytes: 8 << 30,
        file_system: "ext4".into(),
        device: "sda".into(),
        compiler: "rustc 1".into(),
        build: "release".into(),
        allocator: "glibc".into(),
    }
}

/// A phase of 10 s times `cpu`, whose operations cost 20 µs times `cpu`.
fn phase(operations: u64, cpu: f64, size_mb: f64, purpose: Purpose) -> PhaseResult {
    let seconds = 10.0 * cpu;
    let cpu_us = (operations as f64 * 20.0 * cpu) as u64;
    let size_bytes = (size_mb * 1e6) as u64;
    let usage = PhaseUsage {
        seconds,
        process_cpu: ProcessCpu {
            user_us: cpu_us / 4 * 3,
            system_us: cpu_us / 4,
            ..ProcessCpu::default()
        },
        process_io: ProcessIo {
            written_syscall_bytes: 100_000_000,
            written_device_bytes: 90_000_000,
            ..ProcessIo::default()
        },
        servers: None,
        machine: CpuTicks { busy: 700, idle: 300, ..CpuTicks::default() },
        foreign_cpu_us: 100_000,
        device: Some(DeviceCounters {
            reads: operations / 2,
            read_bytes: operations * 2048,
            writes: 10,
            written_bytes: operations * 1024,
        }),
        memory: ProcessMemory {
            resident_bytes: 50_000_000,
            resident_max_bytes: 60_000_000,
            virtual_bytes: 100_000_000,
        },
        directory: DirectorySize {
            allocated_bytes: size_bytes,
            apparent_bytes: size_bytes,
            files: 9,
        },
        file_system_bytes: None,
        notes: Vec::new(),
    };
    let mut latencies = Latencies::default();
    (1..=100).for_each(|sample: u64| latencies.record(sample * 10_000));
    let names = ["UPDATE_NODE", "GET_NODE", "UPDATE_LINK", "GET_LINKS_LIST"];
    PhaseResult {
        operations,
        seconds,
        rates: BTreeMap::new(),
        settle: PhaseUsage { directory: usage.directory, ..PhaseUsage::default() },
        usage,
        per_second: vec![operations / 10; 9],
        steady: Some(true),
        latencies: names.map(|name| LatencySummary::new(name, &latencies)).into(),
        statistics_before: EngineStatistics::default(),
        statistics: statistics(size_bytes, purpose),
        statistics_settled: statistics(size_bytes, purpose),
        observed_stalls: ObservedStalls {
            windows: 100,
            empty_windows: 2,
            runs: 1,
            longest_run: 2,
            longest_gap_us: Some(250_000),
        },
        second_half: None,
        group: None,
        samples: Vec::new(),
        sampler_us: 0,
        settle_sampler_us: 0,
        write_operations: 0,
        second_log: None,
        ages: Vec::new(),
        driver: serde_json::Value::Null,
    }
}

fn statistics(size_bytes: u64, purpose: Purpose) -> EngineStatistics {
    if purpose == Purpose::Calibrate {
        return EngineStatistics::default();
    }
    let level = |level, files, share, codec: &str| LevelStatistics {
        level,
        files,
        stored_bytes: size_bytes * share / 100,
        raw_bytes: size_bytes * share / 50,
        user_bytes: size_bytes * share / 50,
        codec: codec.to_owned(),
        compaction_read_bytes: 40_000_000,
        compaction_write_bytes: 30_000_000,
        compaction_cpu_us: 2_500_000,
        compaction_wall_us: 3_500_000,
        compactions: 7,
    };
    EngineStatistics {
        live_bytes: size_bytes,
        levels: vec![
            level(0, 1, 1, "none"),
            level(4, 2, 4, "none"),
            level(5, 3, 15, "lz4"),
            level(6, 9, 80, "the arm's"),
        ],
        stalls: StallStatistics { delayed_us: 90_000, stopped_us: 10_000, ..Default::default() },
        written_bytes_by_cause: [("wal", 60_000_000), ("flush", 39_500_000)]
            .map(|(cause, bytes)| (cause.to_owned(), bytes))
            .into(),
        cpu_us_by_cause: [("compaction".to_owned(), 3_000_000)].into(),
        ..EngineStatistics::default()
    }
}
