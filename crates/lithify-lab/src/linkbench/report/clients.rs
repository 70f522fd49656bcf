//! What changes with the number of clients: rates and their ratios, what an operation costs,
//! latencies, and the curves through the rates.
//!
//! Pure. The tables are there only where a run has several numbers of clients.

use std::collections::BTreeSet;

use crate::experiment::Phase;
use crate::linkbench::Operation;
use crate::linkbench::cell::{CellResult, PhaseResult, Purpose};
use crate::linkbench::record::LinkBenchRecord;
use crate::linkbench::report::figures::{Figures, pairs_with_results};
use crate::linkbench::report::gates;
use crate::linkbench::report::headlines::published_name;
use crate::report::figures::{Spread, figure, figure_or_dash};
use crate::report::paired;
use crate::report::tables::{Align, Grid};
use crate::scalability::report::Series;

/// What stands over the costs by clients.
pub(crate) const EFFICIENCY_HEADING: &str =
    "efficiency by clients: the machine's context switches, CPU % and device (medians)";

/// What stands over the curves.
pub(crate) const SCALABILITY_HEADING: &str = "scalability: X(N) = lambda N / (1 + sigma (N-1) + \
    kappa N (N-1)); an operation's X is clients by its mean latency";

/// The numbers of clients of a run's phases, ascending.
fn counts(record: &LinkBenchRecord, phase: Phase) -> Vec<u64> {
    let cells = record.plan.cells.iter().filter(|cell| cell.purpose != Purpose::Calibrate);
    let counts: BTreeSet<u64> = match phase {
        Phase::Load => cells.map(|cell| cell.loaders).collect(),
        Phase::Query => cells.flat_map(|cell| cell.client_counts()).copied().collect(),
    };
    counts.into_iter().collect()
}

fn cpus(record: &LinkBenchRecord) -> Option<usize> {
    record.cells.iter().find_map(|cell| Some(cell.result.as_ref()?.machine.cpus))
}

/// A run with several numbers of clients.
pub(crate) struct Sweep<'a> {
    record: &'a LinkBenchRecord,
    figures: &'a Figures<'a>,
    /// CPUs of the machine, where they are known.
    pub cpus: Option<usize>,
    /// Numbers of clients of the loads, ascending.
    pub loads: Vec<u64>,
    /// Of the queries.
    pub queries: Vec<u64>,
}

impl<'a> Sweep<'a> {
    /// Of a run; `None` for one with one number of clients.
    pub(crate) fn of(record: &'a LinkBenchRecord, figures: &'a Figures<'a>) -> Option<Sweep<'a>> {
        let [loads, queries] = [Phase::Load, Phase::Query].map(|phase| counts(record, phase));
        let is_sweep = loads.len().max(queries.len()) > 1;
        is_sweep.then(|| Sweep { record, figures, cpus: cpus(record), loads, queries })
    }

    /// The numbers of clients of a phase, ascending.
    pub(crate) fn counts(&self, phase: Phase) -> &[u64] {
        match phase {
            Phase::Load => &self.loads,
            Phase::Query => &self.queries,
        }
    }

    /// What stands over the rates of a phase.
    pub(crate) fn heading(&self, phase: Phase) -> String {
        let repeats = crate::report::repeats(self.record.plan.repeats);
        let what = match phase {
            Phase::Load => "load by clients: IPS",
            Phase::Query => "queries by clients: QPS",
        };
        format!("{what}, medians of {repeats}")
    }

    /// True with more than two clients for each CPU.
    fn over_subscribed(&self, clients: u64) -> bool {
        self.cpus.is_some_and(|cpus| clients > 2 * cpus as u64)
    }

    /// Rates of the arms, ratios of the pairs, and what was published of both; under them what the
    /// marks mean.
    pub(crate) fn rates(&self, phase: Phase) -> (Grid, Vec<String>) {
        let counts = self.counts(phase);
        let heads: Vec<String> = counts
            .iter()
            .map(|clients| {
                format!("{clients}{}", if self.over_subscribed(*clients) { " over" } else { "" })
            })
            .collect();
        let mut columns: Vec<(&str, Align)> = vec![("figure", Align::Left)];
        columns.extend(heads.iter().map(|head| (head.as_str(), Align::Right)));
        columns.push(("engine", Align::Left));
        let mut rows = Vec::new();
        for arm in &self.record.plan.arms {
            rows.push(row("rate", arm, counts, |clients| self.rate(arm, phase, clients)));
            rows.extend(self.published_row(phase, arm, counts));
        }
        for arm in self.record.plan.arms.iter().filter(|_| phase == Phase::Query) {
            rows.push(row("T", arm, counts, |clients| self.turnover(arm, clients)));
        }
        rows.extend(self.ratio_rows(phase, counts));
        let mut notes = Vec::new();
        if heads.iter().any(|head| head.ends_with("over")) {
            notes.push(
                "over: more than two clients for each CPU, which they share with the engine"
                    .to_owned(),
            );
        }
        if phase == Phase::Query {
            notes.push("T: write operations per loaded node until the end of the phase".to_owned());
        }
        if let Some(claim) = self.record.plan.claims().filter(|_| phase == Phase::Query) {
            notes.push(format!("*: NOT {} in a repeat", claim.name()));
        }
        (Grid::new(&columns, rows), notes)
    }

    /// The rate of an arm, marked where a repeat is not what the scale claims.
    fn rate(&self, arm: &str, phase: Phase, clients: u64) -> String {
        let rate = self.figures.spread_at(arm, phase, clients, |phase| Some(phase.rate()));
        let mut text = figure_or_dash(rate.map(|rate| rate.median));
        let failed = |(result, query): &(&CellResult, &PhaseResult)| {
            !gates::passed(self.record, result, query)
        };
        if phase == Phase::Query && self.figures.phases(arm, phase, clients).iter().any(failed) {
            text.push('*');
        }
        text
    }

    fn turnover(&self, arm: &str, clients: u64) -> String {
        let phases = self.figures.phases(arm, Phase::Query, clients).into_iter();
        let turnovers = phases.map(|(result, phase)| result.turnover(phase)).collect();
        figure_or_dash(Spread::of(turnovers).map(|turnover| turnover.median))
    }

    /// The published rates of an arm, where there are any.
    fn published_row(&self, phase: Phase, arm: &str, counts: &[u64]) -> Option<Vec<String>> {
        let series = self.published(phase, arm)?;
        let name = published_name(&self.record.plan.experiment, arm);
        Some(row("published", &name, counts, |clients| {
            let value = series.iter().find(|(count, _)| *count == clients);
            figure_or_dash(value.map(|(_, rate)| *rate))
        }))
    }

    fn published(&self, phase: Phase, arm: &str) -> Option<Vec<(u64, f64)>> {
        self.record.plan.experiment.published_series(phase, arm, self.record.plan.claims())
    }

    /// Each pair's ratio of rates, and under it the published one.
    fn ratio_rows(&self, phase: Phase, counts: &[u64]) -> Vec<Vec<String>> {
        let mut rows = Vec::new();
        for pair in pairs_with_results(self.record, self.figures) {
            let name = format!("{} : {}", pair.arm, pair.base);
            rows.push(row("ratio", &name, counts, |clients| {
                let rates =
                    |arm| self.figures.by_repeat(arm, phase, clients, |phase| Some(phase.rate()));
                let ratios = paired::ratios(&rates(&pair.arm), &rates(&pair.base));
                Spread::of(ratios).map_or_else(|| "-".to_owned(), |ratio| ratio.with_range())
            }));
            let published = self.published(phase, &pair.arm).zip(self.published(phase, &pair.base));
            if let Some((arm, base)) = published {
                rows.push(row("published", &name, counts, |clients| {
                    let at = |series: &[(u64, f64)]| {
                        series.iter().find(|(count, _)| *count == clients).map(|(_, rate)| *rate)
                    };
                    figure_or_dash(at(&arm).zip(at(&base)).map(|(arm, base)| arm / base))
                }));
            }
        }
        rows
    }

    /// The published block of what an operation costs, in its order.
    pub(crate) fn efficiency(&self) -> Grid {
        let mut columns = vec![("phase", Align::Left), ("clients", Align::Right)];
        columns.extend(EFFICIENCY.map(|(name, _)| (name, Align::Right)));
        columns.push(("engine", Align::Left));
        let mut rows = Vec::new();
        for phase in [Phase::Load, Phase::Query] {
            for arm in &self.record.plan.arms {
                for clients in self.counts(phase) {
                    if self.figures.phases(arm, phase, *clients).is_empty() {
                        continue;
                    }
                    let median = |value: Figure| {
                        let spread = self.figures.spread_at(arm, phase, *clients, value);
                        figure_or_dash(spread.map(|spread| spread.median))
                    };
                    let mut row = vec![phase.to_string(), clients.to_string()];
                    row.extend(EFFICIENCY.map(|(_, value)| median(value)));
                    row.push(arm.clone());
                    rows.push(row);
                }
            }
        }
        Grid::new(&columns, rows)
    }

    /// Each operation's latencies, arm by arm.
    pub(crate) fn latencies(&self, clients: u64) -> Grid {
        let columns = [
            ("operation", Align::Left),
            ("count", Align::Right),
            ("p50", Align::Right),
            ("p99", Align::Right),
            ("max", Align::Right),
            ("mean", Align::Right),
            ("engine", Align::Left),
        ];
        let mut rows = Vec::new();
        for operation in Operation::REPORTED {
            for arm in &self.record.plan.arms {
                let median = |value: fn(&crate::latency::LatencySummary) -> f64| {
                    self.figures.spread_at(arm, Phase::Query, clients, |phase| {
                        let mut summaries = phase.latencies.iter();
                        summaries.find(|summary| summary.op == operation.name()).map(value)
                    })
                };
                let Some(count) = median(|summary| summary.count as f64) else { continue };
                let values: [fn(&crate::latency::LatencySummary) -> f64; 4] = [
                    |summary| summary.p50_us / 1e3,
                    |summary| summary.p99_us / 1e3,
                    |summary| summary.max_ms,
                    |summary| summary.mean_ms,
                ];
                let mut row = vec![operation.name().to_owned(), figure(count.median)];
                row.extend(values.map(|value| figure_or_dash(median(value).map(|s| s.median))));
                row.push(arm.clone());
                rows.push(row);
            }
        }
        Grid::new(&columns, rows)
    }

    /// The rates that curves go through: of loads, of queries, of each operation of them, and the
    /// published ones.
    pub(crate) fn series(&self) -> Vec<Series> {
        let mut all = Vec::new();
        for arm in &self.record.plan.arms {
            let series = |what: &str, phase, counts: &[u64], rate: &Rate<'_>| {
                let points = counts.iter().flat_map(|clients| {
                    let rates =
                        self.figures.by_repeat(arm, phase, *clients, |phase| rate(*clients, phase));
                    rates.into_iter().map(|(_, rate)| (*clients, rate))
                });
                Series {
                    name: arm.clone(),
                    what: what.to_owned(),
                    points: points.collect(),
                    cpus: self.cpus,
                }
            };
            let whole: &Rate<'_> = &|_, phase| Some(phase.rate());
            all.push(series("load", Phase::Load, &self.loads, whole));
            all.push(series("query", Phase::Query, &self.queries, whole));
            for operation in Operation::REPORTED {
                all.push(series(
                    operation.name(),
                    Phase::Query,
                    &self.queries,
                    &|clients, phase| {
                        let mut summaries = phase.latencies.iter();
                        let summary = summaries.find(|summary| summary.op == operation.name())?;
                        Some(clients as f64 / (summary.mean_ms / 1e3))
                    },
                ));
            }
            for phase in [Phase::Load, Phase::Query] {
                let points = self.published(phase, arm).unwrap_or_default();
                let name = published_name(&self.record.plan.experiment, arm);
                let what = format!("{phase}, published");
                all.push(Series { name, what, points, cpus: None });
            }
        }
        all
    }
}

/// A row of rates: what, a value per number of clients, whose.
fn row(what: &str, name: &str, counts: &[u64], value: impl Fn(u64) -> String) -> Vec<String> {
    let mut row = vec![what.to_owned()];
    row.extend(counts.iter().map(|clients| value(*clients)));
    row.push(name.to_owned());
    row
}

/// A rate of a phase with a number of clients.
type Rate<'a> = dyn Fn(u64, &PhaseResult) -> Option<f64> + 'a;

/// A figure of a phase; `None` where it was not counted.
type Figure = fn(&PhaseResult) -> Option<f64>;

/// The published block: averages per second, then each by the rate of operations.
const EFFICIENCY: [(&str, Figure); 10] = [
    ("cs.sec", |phase| per_second(phase, phase.usage.machine.switches as f64)),
    ("cpu.sec", |phase| Some(phase.usage.busy_percent())),
    ("cs.op", |phase| per_operation(phase, phase.usage.machine.switches as f64)),
    ("cpu.Kop", |phase| Some(phase.usage.busy_percent() / phase.rate() * 1e3)),
    ("r.sec", |phase| per_second(phase, phase.usage.device?.reads as f64)),
    ("rkb.sec", |phase| per_second(phase, phase.usage.device?.read_bytes as f64 / 1024.0)),
    ("wkb.sec", |phase| per_second(phase, phase.usage.device?.written_bytes as f64 / 1024.0)),
    ("r.op", |phase| per_operation(phase, phase.usage.device?.reads as f64)),
    ("rkb.op", |phase| per_operation(phase, phase.usage.device?.read_bytes as f64 / 1024.0)),
    ("wkb.op", |phase| per_operation(phase, phase.usage.device?.written_bytes as f64 / 1024.0)),
];

fn per_second(phase: &PhaseResult, amount: f64) -> Option<f64> {
    (phase.seconds > 0.0).then(|| amount / phase.seconds)
}

fn per_operation(phase: &PhaseResult, amount: f64) -> Option<f64> {
    (phase.operations > 0).then(|| amount / phase.operations as f64)
}
