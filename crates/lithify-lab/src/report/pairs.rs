//! Two arms, figure by figure: what one has in units of the other, and which of its floors it
//! misses.
//!
//! Ratios are taken repeat by repeat. Where the pair has a control, the same arm a second time, a
//! difference is real only when it is larger than what the two runs of one arm differ by; without
//! one, when the ranges over the repeats do not overlap.

use super::figures::{
    Figures, Spread, cpu_us_per_operation, figure, resident_max_bytes,
    settled_cpu_us_per_operation, slowed_percent, table_gb,
};
use super::floors::Cell;
use super::paired::{Better, Comparison, Verdict};
use super::tables::{Align, Grid};
use crate::experiment::{Pair, Phase};
use crate::run::cell::{CellResult, EngineSettings, PhaseResult};

const MIB: f64 = (1 << 20) as f64;

/// What an arm of a pair must not be worse than.
#[derive(Clone, Copy)]
enum Floor {
    /// The base.
    Base,
    /// A figure that follows from the settings.
    AtMost(fn(&EngineSettings) -> f64),
    /// Nothing.
    None,
}

/// The driver's own part of a phase.
struct Driver {
    cpu_us: f64,
    resident_bytes: u64,
}

impl Driver {
    fn of(figures: &Figures<'_>, phase: Phase) -> Driver {
        let resident_bytes = figures.driver.resident_bytes;
        Driver { cpu_us: figures.driver_us(phase), resident_bytes }
    }
}

/// A figure of a phase; the driver's own part is handed in.
type Value = fn(&PhaseResult, &Driver) -> Option<f64>;

/// The figures with their names, which direction is good, and what they must not be worse than.
const FIGURES: [(&str, Better, Floor, Value); 12] = [
    ("operations/s", Better::Higher, Floor::Base, |phase, _| Some(phase.rate())),
    ("CPU us/op", Better::Lower, Floor::Base, |phase, driver| {
        Some(cpu_us_per_operation(phase) - driver.cpu_us)
    }),
    ("CPU us/op with settling", Better::Lower, Floor::Base, |phase, driver| {
        Some(settled_cpu_us_per_operation(phase) - driver.cpu_us)
    }),
    ("KB written/op with settling", Better::Lower, Floor::Base, |phase, _| {
        let written = phase.usage.process_io.written_device_bytes
            + phase.settle.process_io.written_device_bytes;
        per_operation(phase, written as f64 / 1024.0)
    }),
    ("KB read/op", Better::Lower, Floor::None, |phase, _| {
        let read = phase.usage.device.map(|device| device.read_bytes)?;
        per_operation(phase, read as f64 / 1024.0)
    }),
    ("tables settled, GB", Better::Lower, Floor::Base, |phase, _| table_gb(phase)),
    ("directory, GB", Better::Lower, Floor::Base, |phase, _| {
        Some(phase.usage.directory.allocated_bytes as f64 / 1e9)
    }),
    ("live peak / settled", Better::Lower, Floor::AtMost(|_| LIVE_PEAK_MAX), |phase, _| {
        let settled = phase.statistics_settled.live_bytes;
        (settled > 0).then(|| phase.peak_live_bytes() as f64 / settled as f64)
    }),
    ("resident less driver's, MiB", Better::Lower, Floor::AtMost(resident_mib_max), |p, driver| {
        Some((resident_max_bytes(p) as f64 - driver.resident_bytes as f64) / MIB)
    }),
    ("slowed share, %", Better::Lower, Floor::Base, |phase, _| Some(slowed_percent(phase))),
    ("windows of 100 ms without a write, %", Better::Lower, Floor::Base, |phase, _| {
        Some(100.0 * phase.observed_stalls.share())
    }),
    ("longest gap, ms", Better::Lower, Floor::AtMost(|_| GAP_MS_MAX), |phase, _| {
        Some(phase.observed_stalls.longest_gap_us? as f64 / 1e3)
    }),
];

/// Most live bytes in units of those that are left when nothing is due.
const LIVE_PEAK_MAX: f64 = 1.2;

/// Longest time in which no write may complete, milliseconds.
const GAP_MS_MAX: f64 = 100.0;

/// Resident memory beyond the budget that an engine may have, MiB.
const RESIDENT_BEYOND_BUDGET_MIB: f64 = 64.0;

fn resident_mib_max(settings: &EngineSettings) -> f64 {
    settings.memory_budget_bytes as f64 / MIB + RESIDENT_BEYOND_BUDGET_MIB
}

/// Fewest samples beyond a percentile: with fewer it is the luck of a few operations.
const SAMPLES_BEYOND_MIN: u64 = 10;

fn per_operation(phase: &PhaseResult, value: f64) -> Option<f64> {
    (phase.operations > 0).then(|| value / phase.operations as f64)
}

/// One line of a pair's table.
pub(crate) struct Line {
    pub(crate) phase: Phase,
    pub(crate) name: String,
    pub(crate) better: Better,
    floor: Floor,
    pub(crate) comparison: Comparison,
}

/// The figures that both arms of a pair have.
pub(crate) fn lines(figures: &Figures<'_>, pair: &Pair) -> Vec<Line> {
    let again = figures.control(&pair.arm);
    let sides = [figures.results(&pair.arm), figures.results(&pair.base), &again];
    let compare = |value: &dyn Fn(&CellResult) -> Option<f64>| {
        let [arm, base, again] = sides.map(|results| {
            let values = results.iter().filter_map(|r| Some((r.spec.repeat, value(r)?)));
            values.collect::<Vec<_>>()
        });
        Comparison::of(&arm, &base, &again)
    };
    let mut lines = Vec::new();
    for phase in [Phase::Load, Phase::Query] {
        let driver = Driver::of(figures, phase);
        for (name, better, floor, value) in FIGURES {
            let comparison = compare(&|result| value(result.phase(phase), &driver));
            let line =
                |comparison| Line { phase, name: name.to_owned(), better, floor, comparison };
            lines.extend(comparison.map(line));
        }
        for (operation, percentile) in percentiles(figures, pair, phase) {
            let comparison = compare(&|result| percentile.of(result.phase(phase), &operation));
            let name = percentile.name_of(&operation);
            let (better, floor) = (Better::Lower, Floor::Base);
            lines.extend(comparison.map(|c| Line { phase, name, better, floor, comparison: c }));
        }
    }
    lines
}

/// A figure of one cell.
pub(crate) struct Measure {
    pub(crate) phase: Phase,
    pub(crate) name: String,
    pub(crate) better: Better,
    pub(crate) value: f64,
}

/// The figures of one cell by which arms are compared, in the order of the tables.
pub(crate) fn measures(figures: &Figures<'_>, result: &CellResult) -> Vec<Measure> {
    let mut measures = Vec::new();
    for phase in [Phase::Load, Phase::Query] {
        let driver = Driver::of(figures, phase);
        let cell = result.phase(phase);
        let measure = |name: String, better, value: Option<f64>| {
            value.map(|value| Measure { phase, name, better, value })
        };
        measures.extend(FIGURES.iter().filter_map(|(name, better, _, value)| {
            measure((*name).to_owned(), *better, value(cell, &driver))
        }));
        measures.extend(cell.latencies.iter().flat_map(|summary| {
            PERCENTILES.iter().filter_map(move |percentile| {
                let value = percentile.of(cell, &summary.op);
                measure(percentile.name_of(&summary.op), Better::Lower, value)
            })
        }));
    }
    measures
}

/// A high percentile of an operation's latencies.
#[derive(Clone, Copy)]
struct Percentile {
    name: &'static str,
    /// One sample in so many lies beyond it.
    one_in: u64,
    value_us: fn(&crate::latency::LatencySummary) -> f64,
}

const PERCENTILES: [Percentile; 2] = [
    Percentile { name: "p99", one_in: 100, value_us: |summary| summary.p99_us },
    Percentile { name: "p99.9", one_in: 1000, value_us: |summary| summary.p999_us },
];

impl Percentile {
    fn name_of(&self, operation: &str) -> String {
        format!("{} {operation}, us", self.name)
    }

    /// `None` where too few samples lie beyond it.
    fn of(&self, phase: &PhaseResult, operation: &str) -> Option<f64> {
        let summary = phase.latencies.iter().find(|summary| summary.op == operation)?;
        let enough = summary.count / self.one_in >= SAMPLES_BEYOND_MIN;
        enough.then(|| (self.value_us)(summary))
    }
}

/// The percentiles of the operations of a phase, in the order in which results name them.
fn percentiles(figures: &Figures<'_>, pair: &Pair, phase: Phase) -> Vec<(String, Percentile)> {
    let first = figures.results(&pair.arm).first();
    let latencies = first.map_or(&[][..], |result| &result.phase(phase).latencies);
    let operations = latencies.iter().map(|summary| &summary.op);
    operations.flat_map(|op| PERCENTILES.map(|percentile| (op.clone(), percentile))).collect()
}

/// The table of one pair.
pub fn grid(figures: &Figures<'_>, pair: &Pair) -> Grid {
    let columns = [
        ("phase", Align::Left),
        ("figure", Align::Left),
        (pair.arm.as_str(), Align::Right),
        (pair.base.as_str(), Align::Right),
        ("ratio", Align::Right),
        ("same arm twice", Align::Right),
        ("which is better", Align::Left),
    ];
    let lines = lines(figures, pair);
    let rows: Vec<Vec<String>> = lines.iter().map(|line| row(pair, line)).collect();
    Grid::new(&columns, rows)
}

fn row(pair: &Pair, line: &Line) -> Vec<String> {
    let Comparison { first, other, ratio, control, .. } = &line.comparison;
    let ranged =
        |spread: &Option<Spread>| spread.map_or_else(|| "-".to_owned(), |s| s.with_range());
    vec![
        line.phase.to_string(),
        line.name.clone(),
        figure(first.median),
        figure(other.median),
        ranged(ratio),
        ranged(control),
        verdict(pair, line).to_owned(),
    ]
}

pub(crate) fn verdict<'a>(pair: &'a Pair, line: &Line) -> &'a str {
    match judged(line) {
        Ok(true) => &pair.arm,
        Ok(false) => &pair.base,
        Err(why) => why,
    }
}

/// Whether the arm of a pair is better than its base; or why that cannot be told.
fn judged(line: &Line) -> Result<bool, &'static str> {
    let Comparison { first, other, .. } = &line.comparison;
    match line.comparison.verdict(line.better) {
        Verdict::Better => Ok(true),
        Verdict::Worse => Ok(false),
        Verdict::WithinBand => Err("within noise"),
        Verdict::None if first.count < 2 || other.count < 2 => Err("one run"),
        Verdict::None if first.overlaps(other) => Err("no difference"),
        Verdict::None => Ok((first.median < other.median) == (line.better == Better::Lower)),
    }
}

/// Whether the two arms can be told apart in a figure.
pub(super) fn is_told(line: &Line) -> bool {
    judged(line).is_ok()
}

/// Every floor of a pair, judged.
pub fn floors(figures: &Figures<'_>, pair: &Pair) -> Vec<Cell> {
    let Some(result) = figures.results(&pair.arm).first() else { return Vec::new() };
    let judged = |line: Line| {
        let place = format!("{} {}", line.phase, pair.arm);
        match line.floor {
            Floor::Base => {
                Some(Cell::against_other(place, line.name, line.better, &line.comparison))
            }
            Floor::AtMost(limit) => {
                let limit = limit(&result.spec.settings);
                Some(Cell::against_limit(place, line.name, limit, &line.comparison.first))
            }
            Floor::None => None,
        }
    };
    lines(figures, pair).into_iter().filter_map(judged).collect()
}
