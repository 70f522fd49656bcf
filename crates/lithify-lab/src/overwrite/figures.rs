//! The figures of a run by which engines and versions are compared.

use super::OverwriteResult;
use crate::keyvalue::timeline::Evenness;
use crate::report::paired::{Better, Reading};
use crate::statistics::verdicts::Scale;

/// A figure of a run.
pub struct Figure {
    /// Name and unit.
    pub name: &'static str,
    /// Which direction is good, and how it is compared.
    pub reading: Reading,
    /// Its value.
    pub value: f64,
}

const MIB: f64 = (1 << 20) as f64;

/// The figures of `result`, what the driver costs taken off.
pub fn of(result: &OverwriteResult, driver: &OverwriteResult) -> Vec<Figure> {
    let seen = &result.throughput;
    let even = Evenness::of(&seen.per_second);
    let writes = seen.latency.count as f64;
    let per_write =
        |result: &OverwriteResult, us: u64| us as f64 / result.throughput.latency.count as f64;
    let driver_us = per_write(driver, driver.usage.process_cpu.total_us());
    let during_us = per_write(result, result.usage.process_cpu.total_us());
    let settling_us = per_write(result, result.settle.process_cpu.total_us());
    let written = result.usage.process_io.written_syscall_bytes
        + result.settle.process_io.written_syscall_bytes;
    let ingested = writes * (result.spec.key_bytes + result.spec.value_bytes) as f64;
    let settled = result.statistics_settled.live_bytes as f64;
    let peak = result.samples.iter().map(|sample| sample.live_bytes).max().unwrap_or(0) as f64;
    // An engine that does not say has no such line.
    let slowed_us =
        result.statistics.slowed_us_since(&result.statistics_before).unwrap_or(f64::NAN);
    let resident = |result: &OverwriteResult| result.settle.memory.resident_max_bytes as f64;
    let directory = result.settle.directory.allocated_bytes as f64;
    let higher = [("writes/s", even.mean)];
    let higher_or_none = [("slowest second in 100, writes/s", even.p1 as f64)];
    let lower = [
        ("CPU per write, us", during_us - driver_us),
        ("CPU per write until settled, us", during_us + settling_us - driver_us),
        ("written per byte ingested", written as f64 / ingested),
        ("directory settled, MiB", directory / MIB),
        ("live settled, MiB", settled / MIB),
        ("live peak / settled", peak / settled),
        ("p50, us", seen.latency.p50_us),
        ("p99, us", seen.latency.p99_us),
        ("p99.9, us", seen.latency.p999_us),
        ("p99.99, us", seen.latency.p9999_us),
    ];
    let gap = [("longest gap, ms", seen.longest_gap_ms)];
    let shares = [
        ("windows of 100 ms without a write, %", 100.0 * seen.gap_share()),
        ("slowed share, %", 100.0 * slowed_us / (result.usage.seconds * 1e6)),
    ];
    let resident = [("resident less driver's, MiB", (resident(result) - resident(driver)) / MIB)];
    let figure = |reading: Reading| move |(name, value)| Figure { name, reading, value };
    let lower_by = |scale| figure(Better::Lower.by(scale));
    let all = higher.into_iter().map(figure(Better::Higher.into()));
    let all = all.chain(higher_or_none.into_iter().map(figure(Better::Higher.by(Scale::RATE))));
    let all = all.chain(lower.into_iter().map(figure(Better::Lower.into())));
    let all = all.chain(gap.into_iter().map(lower_by(Scale::GAP_MS)));
    let all = all.chain(shares.into_iter().map(lower_by(Scale::PERCENT)));
    let all = all.chain(resident.into_iter().map(figure(Better::Lower.into())));
    all.filter(|figure| figure.value.is_finite()).collect()
}
