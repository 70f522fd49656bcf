//! What the first engine of a run is held to: which figures, in which steps, against what.
//!
//! A cell is a figure of a step with a ladder of codecs. How a cell is judged and listed is for
//! [`crate::report::floors`]; the figures are those of [`super::figures`]. Pure and deterministic.

use super::figures::{LIVE_PEAK, METRICS, Metric, Series, metric};
use super::judged::Judgements;
use super::plan::DbRecord;
use super::spec::{DbSpec, StepResult};
use crate::adapter::EngineName;
use crate::report::floors::Cell;

/// What a figure is held against.
#[derive(Clone, Copy)]
enum Against {
    /// The same figure of the other engine: no worse.
    Other,
    /// At most so much, in the unit of the figure.
    AtMost(fn(&DbSpec) -> f64),
}

/// In which steps a figure is held.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Steps {
    /// In all that have it.
    All,
    /// In those that write and were waited for.
    Settled,
    /// With few clients: with many, latencies of a closed loop are those of the queue for a CPU.
    FewClients,
}

/// Most clients with which latencies of a closed loop are compared.
const CLIENTS_MAX: u64 = 2;

/// The floors on figures of the tables.
const FLOORS: [(&str, Against, Steps); 12] = [
    ("throughput", Against::Other, Steps::All),
    ("CPU per op", Against::Other, Steps::All),
    ("CPU per op until settled", Against::Other, Steps::All),
    ("written per byte ingested", Against::Other, Steps::All),
    ("directory settled", Against::Other, Steps::Settled),
    ("p50", Against::Other, Steps::FewClients),
    ("p99", Against::Other, Steps::FewClients),
    ("p99.9", Against::Other, Steps::FewClients),
    ("slowed share", Against::Other, Steps::All),
    ("gap share", Against::Other, Steps::All),
    ("longest gap", Against::AtMost(|_| 100.0), Steps::All),
    ("resident", Against::AtMost(budget_and_64_mib), Steps::All),
];

fn budget_and_64_mib(spec: &DbSpec) -> f64 {
    (spec.settings.memory_budget_bytes >> 20) as f64 + 64.0
}

/// Most of live tables and log, in units of the settled ones.
const LIVE_PEAK_MAX: f64 = 1.2;

/// All floors with the figures that they are on.
fn floors() -> impl Iterator<Item = (&'static Metric, Against, Steps)> {
    let of_tables =
        FLOORS.iter().filter_map(|(name, against, steps)| Some((metric(name)?, *against, *steps)));
    of_tables.chain([(&LIVE_PEAK, Against::AtMost(|_| LIVE_PEAK_MAX), Steps::Settled)])
}

/// Every cell, in the order of ladders, steps and floors; none for a run of one engine. Against
/// several engines a cell is judged once for each, but against a limit once.
pub fn cells(record: &DbRecord, judged: &Judgements) -> Vec<Cell> {
    let (Some(reference), [_, _, ..]) = (record.reference(), &record.plan.engines[..]) else {
        return Vec::new();
    };
    let ladders = record.plan.ladders();
    let mut cells = Vec::new();
    for (number, ladder) in ladders.iter().enumerate() {
        for (index, step) in reference.loops().enumerate() {
            let mut name = format!("{} (step {})", step.spec, index + 1);
            if ladders.len() > 1 {
                name.push_str(&format!(", {ladder}"));
            }
            let series = Series::of(record, *ladder);
            let others = &record.plan.engines[1..];
            let place = Place { name, series, judged, ladder: number, index, others };
            for (metric, against, steps) in floors() {
                match against {
                    _ if !is_held(steps, step, &reference.cell.spec) => {}
                    Against::AtMost(limit) => {
                        cells.extend(place.against_limit(metric, limit(&reference.cell.spec)));
                    }
                    Against::Other => cells.extend(place.against_others(metric)),
                }
            }
        }
    }
    cells
}

fn is_held(steps: Steps, step: &StepResult, spec: &DbSpec) -> bool {
    match steps {
        Steps::All => true,
        Steps::Settled => step.settle.is_some(),
        Steps::FewClients => spec.threads <= CLIENTS_MAX,
    }
}

/// A step with a ladder.
struct Place<'a> {
    name: String,
    series: Series<'a>,
    judged: &'a Judgements,
    ladder: usize,
    index: usize,
    others: &'a [EngineName],
}

impl Place<'_> {
    fn against_limit(&self, metric: &Metric, limit: f64) -> Option<Cell> {
        let value = self.series.spread(0, self.index, metric)?;
        Some(Cell::against_limit(self.name.clone(), metric.heading(), limit, &value))
    }

    fn against_others(&self, metric: &Metric) -> impl Iterator<Item = Cell> {
        let number = METRICS.iter().position(|known| known.name == metric.name);
        self.others.iter().enumerate().filter_map(move |(other, engine)| {
            let comparison = self.judged.get(self.ladder, other + 1, self.index, number?)?;
            let (name, figure) = (self.name.clone(), metric.heading());
            Some(Cell::against_base(name, figure, metric.better, engine.name(), comparison))
        })
    }
}
