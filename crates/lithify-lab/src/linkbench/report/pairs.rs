//! Two arms, figure by figure: what one has in units of the other, and which of its floors it
//! misses.
//!
//! Ratios are taken repeat by repeat; what they come to is judged for all pairs of a report together
//! (`crate::linkbench::report::judged`).

use crate::adapter::settings::EngineSettings;
use crate::experiment::{Pair, Phase};
use crate::linkbench::cell::{CellResult, PhaseResult};
use crate::linkbench::report::figures::{
    Figures, cpu_us_per_operation, resident_max_bytes, settled_cpu_us_per_operation,
    slowed_percent, table_gb,
};
use crate::report::floors::Cell;
use crate::report::paired::{Better, Comparison, Reading, Sides};
use crate::statistics::verdicts::{Rounds, Scale};

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
const FIGURES: [(&str, Reading, Floor, Value); 12] = [
    ("operations/s", by_ratio(Better::Higher), Floor::Base, |phase, _| Some(phase.rate())),
    ("CPU us/op", by_ratio(Better::Lower), Floor::Base, |phase, driver| {
        Some(cpu_us_per_operation(phase) - driver.cpu_us)
    }),
    ("CPU us/op with settling", by_ratio(Better::Lower), Floor::Base, |phase, driver| {
        Some(settled_cpu_us_per_operation(phase) - driver.cpu_us)
    }),
    ("KB written/op with settling", by_ratio(Better::Lower), Floor::Base, |phase, _| {
        let written = phase.usage.process_io.written_device_bytes
            + phase.settle.process_io.written_device_bytes;
        per_operation(phase, written as f64 / 1024.0)
    }),
    ("KB read/op", by_difference(READ_KB), Floor::None, |phase, _| {
        let read = phase.usage.device.map(|device| device.read_bytes)?;
        per_operation(phase, read as f64 / 1024.0)
    }),
    ("tables settled, GB", by_ratio(Better::Lower), Floor::Base, |phase, _| table_gb(phase)),
    ("directory, GB", by_ratio(Better::Lower), Floor::Base, |phase, _| {
        Some(phase.usage.directory.allocated_bytes as f64 / 1e9)
    }),
    (
        "live peak / settled",
        by_ratio(Better::Lower),
        Floor::AtMost(|_| LIVE_PEAK_MAX),
        |phase, _| {
            let settled = phase.statistics_settled.live_bytes;
            (settled > 0).then(|| phase.peak_live_bytes() as f64 / settled as f64)
        },
    ),
    (
        "resident less driver's, MiB",
        by_ratio(Better::Lower),
        Floor::AtMost(resident_mib_max),
        |p, driver| Some((resident_max_bytes(p) as f64 - driver.resident_bytes as f64) / MIB),
    ),
    ("slowed share, %", by_difference(Scale::PERCENT), Floor::Base, |phase, _| {
        slowed_percent(phase)
    }),
    (
        "windows of 100 ms without a write, %",
        by_difference(Scale::PERCENT),
        Floor::Base,
        |phase, _| Some(100.0 * phase.observed_stalls.share()),
    ),
    ("longest gap, ms", by_difference(Scale::GAP_MS), Floor::AtMost(|_| GAP_MS_MAX), |phase, _| {
        Some(phase.observed_stalls.longest_gap_us? as f64 / 1e3)
    }),
];

/// What is read may be nothing at all, where all is cached.
const READ_KB: Scale = Scale::Difference { resolution: 0.01 };

const fn by_ratio(better: Better) -> Reading {
    Reading { better, scale: Scale::Ratio }
}

/// Of what there may be none, and less is better.
const fn by_difference(scale: Scale) -> Reading {
    Reading { better: Better::Lower, scale }
}

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

/// A figure of a pair before it is judged.
pub(crate) struct PairFigure {
    phase: Phase,
    name: String,
    better: Better,
    floor: Floor,
    sides: Sides,
}

impl PairFigure {
    /// What is judged of it.
    pub(crate) fn take_sides(&mut self) -> Sides {
        std::mem::take(&mut self.sides)
    }

    /// With what came of it; `None` where a side has no value.
    pub(crate) fn into_line(self, comparison: Option<&Comparison>) -> Option<Line> {
        let PairFigure { phase, name, better, floor, .. } = self;
        Some(Line { phase, name, better, floor, comparison: comparison?.clone() })
    }
}

/// One line of a pair's table.
pub(crate) struct Line {
    pub(crate) phase: Phase,
    pub(crate) name: String,
    pub(crate) better: Better,
    floor: Floor,
    pub(crate) comparison: Comparison,
}

/// The figures of a pair.
pub(crate) fn figures_of(figures: &Figures<'_>, pair: &Pair) -> Vec<PairFigure> {
    let arms = [pair.arm.as_str(), pair.base.as_str()];
    let other_day = figures.apart(arms);
    let sides = |kind: &str, scale: Scale, value: &dyn Fn(&CellResult) -> Option<f64>| Sides {
        kind: kind.to_owned(),
        scale,
        values: arms.map(|arm| figures.rounds(arm, value)),
        again: arms.map(|arm| figures.rounds_again(arm, value)),
        other_day,
    };
    let mut all = Vec::new();
    for phase in [Phase::Load, Phase::Query] {
        let driver = Driver::of(figures, phase);
        for (name, Reading { better, scale }, floor, value) in FIGURES {
            let sides = sides(name, scale, &|result| value(result.phase(phase), &driver));
            all.push(PairFigure { phase, name: name.to_owned(), better, floor, sides });
        }
        for (operation, percentile) in percentiles(figures, pair, phase) {
            let of = |result: &CellResult| percentile.of(result.phase(phase), &operation);
            let sides = sides(percentile.name, Scale::Ratio, &of);
            let (name, better) = (percentile.name_of(&operation), Better::Lower);
            all.push(PairFigure { phase, name, better, floor: Floor::Base, sides });
        }
    }
    all
}

/// Two arms that are no pair: what they say of the noise of the figures.
pub(crate) fn noise(
    figures: &Figures<'_>,
    arms: [&str; 2],
) -> Vec<(&'static str, Scale, [Rounds; 2])> {
    let mut all = Vec::new();
    for phase in [Phase::Load, Phase::Query] {
        let driver = Driver::of(figures, phase);
        all.extend(FIGURES.iter().map(|(name, reading, _, value)| {
            let of = |result: &CellResult| value(result.phase(phase), &driver);
            (*name, reading.scale, arms.map(|arm| figures.rounds(arm, of)))
        }));
    }
    all
}

/// A figure of one cell.
pub(crate) struct Measure {
    pub(crate) phase: Phase,
    pub(crate) name: String,
    pub(crate) reading: Reading,
    pub(crate) value: f64,
}

/// The figures of one cell by which arms are compared, in the order of the tables.
pub(crate) fn measures(figures: &Figures<'_>, result: &CellResult) -> Vec<Measure> {
    let mut measures = Vec::new();
    for phase in [Phase::Load, Phase::Query] {
        let driver = Driver::of(figures, phase);
        let cell = result.phase(phase);
        let measure = |name: String, reading, value: Option<f64>| {
            value.map(|value| Measure { phase, name, reading, value })
        };
        measures.extend(FIGURES.iter().filter_map(|(name, reading, _, value)| {
            measure((*name).to_owned(), *reading, value(cell, &driver))
        }));
        measures.extend(cell.latencies.iter().flat_map(|summary| {
            PERCENTILES.iter().filter_map(move |percentile| {
                let value = percentile.of(cell, &summary.op);
                measure(percentile.name_of(&summary.op), Better::Lower.into(), value)
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

/// Every floor of a pair, judged.
pub(crate) fn floors(figures: &Figures<'_>, pair: &Pair, lines: &[Line]) -> Vec<Cell> {
    let Some(result) = figures.results(&pair.arm).first() else { return Vec::new() };
    let judged = |line: &Line| {
        let place = format!("{} {}", line.phase, pair.arm);
        let name = line.name.clone();
        match line.floor {
            Floor::Base => {
                Some(Cell::against_base(place, name, line.better, &pair.base, &line.comparison))
            }
            Floor::AtMost(limit) => {
                let limit = limit(&result.spec.settings);
                Some(Cell::against_limit(place, name, limit, &line.comparison.first))
            }
            Floor::None => None,
        }
    };
    lines.iter().filter_map(judged).collect()
}
