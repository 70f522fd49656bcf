//! The report of a run: figures with names and units, a line of throughput over time, CSV.

use lithify_report::csv::Columns;
use serde_json::Value;

use super::{OverwriteResult, OverwriteSpec};
use crate::adapter::EngineStatistics;
use crate::keyvalue::samples::Sample;
use crate::keyvalue::timeline::Evenness;
use crate::report::figures::figure;

const MIB: f64 = (1 << 20) as f64;

/// One line per second.
pub fn csv(result: &OverwriteResult) -> String {
    let per_second = &result.throughput.per_second;
    let row = |second: usize| {
        let writes = per_second.get(second).copied().unwrap_or(0);
        (second + 1, writes, result.samples.get(second).cloned().unwrap_or_default())
    };
    let seconds = per_second.len().max(result.samples.len());
    let rows: Vec<(usize, u64, Sample)> = (0..seconds).map(row).collect();
    Columns::new()
        .with("second", |(second, _, _): &(usize, u64, Sample)| *second)
        .with("writes", |(_, writes, _)| *writes)
        .with("live_bytes", |(_, _, sample)| sample.live_bytes)
        .with("wal_bytes", |(_, _, sample)| sample.wal_bytes)
        .with("pending_compaction_bytes", |(_, _, sample)| sample.pending_compaction_bytes)
        .with("level0_files", |(_, _, sample)| sample.level0_files)
        .with("directory_bytes", |(_, _, sample)| sample.directory.allocated_bytes)
        .with("resident_bytes", |(_, _, sample)| sample.resident_bytes)
        .csv(&rows)
}

/// Names and values.
pub(crate) type Lines = Vec<(String, String)>;

fn line(name: &str, value: impl Into<String>) -> (String, String) {
    (name.to_owned(), value.into())
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", figure(bytes as f64 / MIB))
}

fn percent(share: f64) -> String {
    format!("{} %", figure(share * 100.0))
}

fn quotient(dividend: f64, divisor: f64) -> f64 {
    if divisor > 0.0 { dividend / divisor } else { 0.0 }
}

pub(crate) fn run_lines(result: &OverwriteResult) -> Lines {
    let OverwriteSpec { settings, .. } = &result.spec;
    let spec = &result.spec;
    let machine = &result.machine;
    vec![
        line("engine", &*result.engine_name),
        line(
            "keys",
            format!(
                "{} of {} + {} bytes, {} in all",
                spec.keys,
                spec.key_bytes,
                spec.value_bytes,
                mib(spec.logical_bytes())
            ),
        ),
        line("overwrites", format!("{} s, {} clients, unthrottled", spec.seconds, spec.clients)),
        line(
            "settings",
            format!(
                "memory budget {}, memtable {}, tables {}, base level at most {}, fanout {}, {} \
                 background threads, durability {}",
                mib(settings.memory_budget_bytes),
                mib(settings.memtable_bytes),
                mib(settings.table_bytes),
                mib(settings.base_level_bytes),
                settings.fanout,
                settings.background_threads,
                settings.durability.name()
            ),
        ),
        line(
            "codecs",
            format!(
                "small levels {}, middle {}, bottom {}",
                settings.codec_small, settings.codec_middle, settings.codec_bottom
            ),
        ),
        line(
            "machine",
            format!(
                "{}, {} CPUs, {}, {}",
                machine.cpu, machine.cpus, machine.file_system, machine.build
            ),
        ),
        line("other processes", percent(result.usage.foreign_percent(machine.cpus) / 100.0)),
        line("fill, random order", format!("{} keys/s", figure(result.fill_rate))),
    ]
}

pub(crate) fn throughput_lines(result: &OverwriteResult) -> Lines {
    let seen = &result.throughput;
    let even = Evenness::of(&seen.per_second);
    let latency = &seen.latency;
    vec![
        line(
            "writes per second",
            format!(
                "mean {:.0}, min {}, p1 {}, median {}, max {}, variation {}",
                even.mean,
                even.min,
                even.p1,
                even.median,
                even.max,
                percent(even.variation)
            ),
        ),
        line(
            "longest gap between writes",
            format!("{} ms, at {:.1} s", figure(seen.longest_gap_ms), seen.longest_gap_at_s),
        ),
        line(
            "windows without a write",
            format!(
                "{} ({} of {} of 100 ms, in {} runs)",
                percent(seen.gap_share()),
                seen.gap_windows,
                seen.windows,
                seen.gap_runs
            ),
        ),
        line(
            "time per write",
            format!(
                "p50 {} us, p99 {} us, p99.9 {} us, p99.99 {} us, max {} ms",
                figure(latency.p50_us),
                figure(latency.p99_us),
                figure(latency.p999_us),
                figure(latency.p9999_us),
                figure(latency.max_ms)
            ),
        ),
    ]
}

/// A number of the engine's own statistics by its path; 0 where it has none.
fn raw(statistics: &EngineStatistics, path: &str) -> f64 {
    statistics.raw.pointer(path).and_then(Value::as_f64).unwrap_or(0.0)
}

pub(crate) fn stall_lines(result: &OverwriteResult) -> Lines {
    let (before, after) = (&result.statistics_before, &result.statistics);
    let grown = |path: &str| raw(after, path) - raw(before, path);
    let windows = grown("/stalls/windows");
    let mut lines = vec![
        line("writers slowed", percent(quotient(grown("/stalls/slowed_us"), grown("/uptime_us")))),
        line(
            "windows without a write",
            format!(
                "{} ({} of {})",
                percent(quotient(grown("/stalls/gap_windows"), windows)),
                grown("/stalls/gap_windows"),
                windows
            ),
        ),
        line("longest gap", format!("{} ms", figure(raw(after, "/derived/longest-gap") / 1e3))),
    ];
    let stalls = after.raw.get("stalls").and_then(Value::as_object);
    for cause in stalls.into_iter().flatten().map(|(name, _)| name) {
        let of = |kind: &str, what: &str| grown(&format!("/stalls/{cause}/{kind}/{what}"));
        let (delays, stops) = (of("delays", "count"), of("stops", "count"));
        if delays + stops > 0.0 {
            let seconds = |kind| figure(of(kind, "sum_us") / 1e6);
            let (slowed_s, stopped_s) = (seconds("delays"), seconds("stops"));
            lines.push(line(
                &format!("held back by {cause}"),
                format!("{delays} delays of {slowed_s} s, {stops} stops of {stopped_s} s"),
            ));
        }
    }
    let units = after.raw.pointer("/stalls/units").and_then(Value::as_object);
    for cause in units.into_iter().flatten().map(|(name, _)| name) {
        let of = |what: &str| raw(after, &format!("/stalls/units/{cause}/{what}"));
        lines.push(line(
            &format!("units of 1 ms, {cause}"),
            format!(
                "{} of {} s, longest {} ms",
                of("count"),
                figure(of("sum_us") / 1e6),
                figure(of("max_us") / 1e3)
            ),
        ));
    }
    lines
}

pub(crate) fn space_lines(result: &OverwriteResult) -> Lines {
    let live = result.samples.iter().map(|sample| sample.live_bytes).max().unwrap_or(0);
    let allocated = |sample: &Sample| sample.directory.allocated_bytes;
    let directory = result.samples.iter().map(allocated).max().unwrap_or(0);
    let settled_live = result.statistics_settled.live_bytes;
    let settled_directory = result.settle.directory.allocated_bytes;
    let pending = result.samples.iter().map(|s| s.pending_compaction_bytes).max().unwrap_or(0);
    let ratio = |peak: u64, settled: u64| figure(quotient(peak as f64, settled as f64));
    vec![
        line(
            "live tables and log",
            format!(
                "peak {}, settled {}, ratio {}",
                mib(live),
                mib(settled_live),
                ratio(live, settled_live)
            ),
        ),
        line(
            "data directory",
            format!(
                "peak {}, settled {}, ratio {}",
                mib(directory),
                mib(settled_directory),
                ratio(directory, settled_directory)
            ),
        ),
        line("settled to keys and values", ratio(settled_live, result.spec.logical_bytes())),
        line("pending compaction", format!("peak {}", mib(pending))),
        line("settle", format!("{} s", figure(result.settle.seconds))),
    ]
}

pub(crate) fn memory_lines(result: &OverwriteResult, driver: &OverwriteResult) -> Lines {
    let resident = result.settle.memory.resident_max_bytes;
    let of_driver = driver.settle.memory.resident_max_bytes;
    let engine = resident.saturating_sub(of_driver);
    let budget = result.spec.settings.memory_budget_bytes;
    let mut lines = vec![
        line("most ever resident", format!("{}, driver alone {}", mib(resident), mib(of_driver))),
        line(
            "the engine's share",
            format!(
                "{} of a budget of {}: {}",
                mib(engine),
                mib(budget),
                percent(quotient(engine as f64, budget as f64))
            ),
        ),
    ];
    let sums = result.samples.iter().map(|sample| sample.memory.values().sum::<u64>());
    lines.push(line("booked in the budget", format!("peak {}", mib(sums.max().unwrap_or(0)))));
    for name in result.samples.first().iter().flat_map(|sample| sample.memory.keys()) {
        let used = |sample: &Sample| sample.memory.get(name).copied().unwrap_or(0);
        let peak = result.samples.iter().map(used).max().unwrap_or(0);
        lines.push(line(&format!("  {name}"), format!("peak {}", mib(peak))));
    }
    lines
}

/// What grew between two readings of the engine's statistics, summed over causes.
fn grown(
    after: &EngineStatistics,
    before: &EngineStatistics,
    causes: impl Fn(&EngineStatistics) -> Vec<u64>,
) -> f64 {
    let sum = |statistics| causes(statistics).iter().sum::<u64>() as f64;
    sum(after) - sum(before)
}

pub(crate) fn cost_lines(result: &OverwriteResult, driver: &OverwriteResult) -> Lines {
    let operations = |result: &OverwriteResult| result.throughput.latency.count as f64;
    let of_driver = quotient(driver.usage.process_cpu.total_us() as f64, operations(driver));
    let during = result.usage.process_cpu.total_us() as f64;
    let settling = result.settle.process_cpu.total_us() as f64;
    let count = operations(result);
    let (before, settled) = (&result.statistics_before, &result.statistics_settled);
    let ledger = grown(settled, before, |s| s.cpu_us_by_cause.values().copied().collect());
    let of_engine = during + settling - of_driver * count;
    let ingested = count * (result.spec.key_bytes + result.spec.value_bytes) as f64;
    let written = grown(settled, before, |s| s.written_bytes_by_cause.values().copied().collect());
    let handed_over = result.usage.process_io.written_syscall_bytes
        + result.settle.process_io.written_syscall_bytes;
    let dirtied = result.usage.process_io.written_device_bytes
        + result.settle.process_io.written_device_bytes;
    let mut lines = vec![
        line(
            "CPU per write",
            format!(
                "{} us, {} us until settled, of them the driver {} us",
                figure(quotient(during, count)),
                figure(quotient(during + settling, count)),
                figure(of_driver)
            ),
        ),
        line(
            "CPU in the ledger",
            format!(
                "{} s of {} s that the kernel saw, the driver's taken off: {}",
                figure(ledger / 1e6),
                figure(of_engine / 1e6),
                percent(quotient(ledger, of_engine))
            ),
        ),
    ];
    for (cause, us) in &settled.cpu_us_by_cause {
        lines.push(line(&format!("  {cause}"), format!("{} s", figure(*us as f64 / 1e6))));
    }
    lines.push(line(
        "written per byte ingested",
        format!(
            "ledger {}, write calls {}, made dirty {}",
            figure(quotient(written, ingested)),
            figure(quotient(handed_over as f64, ingested)),
            figure(quotient(dirtied as f64, ingested))
        ),
    ));
    for (cause, bytes) in &settled.written_bytes_by_cause {
        lines.push(line(&format!("  {cause}"), mib(*bytes)));
    }
    lines
}
