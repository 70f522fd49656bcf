//! Two arms, figure by figure: what one has in units of the other.
//!
//! A difference is called real only when the ranges over the repeats do not overlap. Where a
//! figure of the base is zero there is no ratio, and both figures stand there alone.

use super::figures::{
    Figures, Spread, cpu_us_per_operation, figure, figure_or_dash, settled_cpu_us_per_operation,
    table_gb,
};
use super::tables::{Align, table};
use crate::experiment::{Pair, Phase};
use crate::run::cell::PhaseResult;

/// A figure of a phase; the driver's own cost is handed in.
type Value = fn(&PhaseResult, f64) -> Option<f64>;

/// The figures with their names, and whether less is better.
const FIGURES: [(&str, bool, Value); 11] = [
    ("operations/s", false, |phase, _| Some(phase.rate())),
    ("CPU us/op", true, |phase, driver_us| Some(cpu_us_per_operation(phase) - driver_us)),
    ("CPU us/op with settling", true, |phase, driver_us| {
        Some(settled_cpu_us_per_operation(phase) - driver_us)
    }),
    ("KB written/op with settling", true, |phase, _| {
        let written = phase.usage.process_io.written_device_bytes
            + phase.settle.process_io.written_device_bytes;
        per_operation(phase, written as f64 / 1024.0)
    }),
    ("KB read/op", true, |phase, _| {
        let read = phase.usage.device.map(|device| device.read_bytes)?;
        per_operation(phase, read as f64 / 1024.0)
    }),
    ("tables settled, GB", true, |phase, _| table_gb(phase)),
    ("directory, GB", true, |phase, _| Some(phase.usage.directory.allocated_bytes as f64 / 1e9)),
    ("resident max, GB", true, |phase, _| Some(phase.usage.memory.resident_max_bytes as f64 / 1e9)),
    ("held back, s", true, |phase, _| Some(held_back_s(phase))),
    ("windows of 100 ms without a write, %", true, |phase, _| {
        let stalls = &phase.observed_stalls;
        let windows = stalls.windows.max(1) as f64;
        Some(stalls.empty_windows as f64 / windows * 100.0)
    }),
    ("longest gap, windows", true, |phase, _| Some(phase.observed_stalls.longest_run as f64)),
];

/// Operations whose latencies are compared.
const OPERATIONS: [&str; 4] = ["UPDATE_NODE", "GET_NODE", "UPDATE_LINK", "GET_LINKS_LIST"];

fn per_operation(phase: &PhaseResult, value: f64) -> Option<f64> {
    (phase.operations > 0).then(|| value / phase.operations as f64)
}

/// Seconds in which the engine slowed or stopped its writers in the phase, by its own account.
fn held_back_s(phase: &PhaseResult) -> f64 {
    let total = |stalls: &crate::adapter::StallStatistics| stalls.delayed_us + stalls.stopped_us;
    let during =
        total(&phase.statistics.stalls).saturating_sub(total(&phase.statistics_before.stalls));
    during as f64 / 1e6
}

/// The table of one pair.
pub fn render(figures: &Figures<'_>, pair: &Pair) -> String {
    let columns = [
        ("phase", Align::Left),
        ("figure", Align::Left),
        (pair.arm.as_str(), Align::Right),
        (pair.base.as_str(), Align::Right),
        ("ratio", Align::Right),
        ("range", Align::Right),
        ("which is better", Align::Left),
    ];
    let mut rows = Vec::new();
    for phase in [Phase::Load, Phase::Query] {
        let driver_us = figures.driver_us(phase);
        for (name, less_is_better, value) in FIGURES {
            let spread =
                |arm: &str| figures.spread(arm, |result| value(result.phase(phase), driver_us));
            let (arm, base) = (spread(&pair.arm), spread(&pair.base));
            rows.push(row(pair, phase, name.to_owned(), less_is_better, arm, base));
        }
        if phase == Phase::Query {
            for operation in OPERATIONS {
                let spread = |arm: &str| {
                    figures.spread(arm, |result| {
                        let mut all = result.phase(phase).latencies.iter();
                        Some(all.find(|summary| summary.op == operation)?.p99_bucket_ms())
                    })
                };
                let (arm, base) = (spread(&pair.arm), spread(&pair.base));
                rows.push(row(pair, phase, format!("p99 {operation}, ms"), true, arm, base));
            }
        }
    }
    table(&columns, &rows)
}

fn row(
    pair: &Pair,
    phase: Phase,
    name: String,
    less_is_better: bool,
    arm: Option<Spread>,
    base: Option<Spread>,
) -> Vec<String> {
    let median = |spread: &Option<Spread>| figure_or_dash(spread.map(|spread| spread.median));
    let mut row = vec![phase.to_string(), name, median(&arm), median(&base)];
    let (Some(arm), Some(base)) = (arm, base) else {
        row.extend(["-", "-", "not measured"].map(str::to_owned));
        return row;
    };
    if base.min > 0.0 {
        row.push(format!("{:.3}", arm.median / base.median));
        row.push(format!("[{}, {}]", figure(arm.min / base.max), figure(arm.max / base.min)));
    } else {
        row.extend(["-", "-"].map(str::to_owned));
    }
    let arm_is_better = (arm.median < base.median) == less_is_better;
    row.push(if arm.count < 2 || base.count < 2 {
        "one run".to_owned()
    } else if arm.overlaps(&base) {
        "no difference".to_owned()
    } else if arm_is_better {
        pair.arm.clone()
    } else {
        pair.base.clone()
    });
    row
}
