//! What the first engine of a run is held to, cell by cell, and where it falls short.
//!
//! A cell is a figure of a step with a ladder of codecs. Owns: the floors, the judgement of every
//! cell, and the summary that stands before the tables, the farthest miss first. Promises: pure
//! and deterministic. Does not: compute figures ([`super::figures`]).
//!
//! A figure that is held against another engine's is judged by the median of its ratios, repeat
//! by repeat; within what the same engine run twice differs by it is no miss. A figure with a
//! bound of its own is judged by the median of all runs of the first engine, the control's too;
//! when only some of them are beyond the bound, that is within the noise.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use super::figures::{Better, LIVE_PEAK, Metric, Series, band, metric, spread};
use super::report::with_range;
use super::runner::DbRecord;
use super::spec::{DbSpec, Role, StepResult};
use crate::adapter::EngineName;
use crate::experiment::Ladder;
use crate::report::figures::{Spread, figure};

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
    /// With few clients: with many, a closed loop's latencies are those of its queue.
    FewClients,
}

/// Most clients with which latencies of a closed loop are compared.
const CLIENTS_MAX: u64 = 2;

/// One floor: a figure, what it is held against, and where.
type Floor = (&'static str, Against, Steps);

/// The floors on figures of the tables.
const FLOORS: [Floor; 12] = [
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
    ("resident", Against::AtMost(resident_mib), Steps::All),
];

/// The memory budget and 64 MiB.
fn resident_mib(spec: &DbSpec) -> f64 {
    (spec.settings.memory_budget_bytes >> 20) as f64 + 64.0
}

/// Most of live tables and log, in units of the settled ones.
const LIVE_PEAK_MOST: f64 = 1.2;

/// All floors with the figures that they are on.
fn floors() -> impl Iterator<Item = (&'static Metric, Against, Steps)> {
    let of_tables =
        FLOORS.iter().filter_map(|(name, against, steps)| Some((metric(name)?, *against, *steps)));
    let peak = (&LIVE_PEAK, Against::AtMost(|_| LIVE_PEAK_MOST), Steps::Settled);
    of_tables.chain([peak])
}

/// How a cell came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The floor is held.
    Held,
    /// It is missed by no more than runs of the same engine differ by.
    WithinNoise,
    /// It is missed.
    Missed,
}

/// The judgement of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The codecs.
    pub ladder: Ladder,
    /// Number of the step among those with clients, from 0.
    pub step: usize,
    /// The step as it is written.
    pub step_name: String,
    /// The figure with its unit.
    pub figure: String,
    /// The figure of the first engine.
    pub first: Spread,
    /// What it is held against, in words and figures.
    pub floor: String,
    /// By how many times the floor is missed: above 1 when it is, infinite against nothing.
    pub times: Spread,
    /// What the first engine's second run differs by from its first; `None` without a control.
    pub control: Option<Spread>,
    /// How it came out.
    pub outcome: Outcome,
}

/// Judges every cell, in the order of ladders, steps and floors. Against several engines a cell is
/// judged once for each, but bounds of its own once.
pub fn judge(record: &DbRecord) -> Vec<Judgement> {
    let mut judgements = Vec::new();
    let Some(reference) = record.reference() else { return judgements };
    let engines = record.plan.engines.iter().enumerate().skip(1);
    for ladder in record.plan.ladders() {
        for (index, step) in reference.loops().enumerate() {
            let cell = Cell { series: Series::of(record, ladder), ladder, index, step };
            for (metric, against, steps) in floors() {
                if !cell.is_held_in(steps, &reference.cell.spec) {
                    continue;
                }
                match against {
                    Against::AtMost(bound) => {
                        judgements.extend(cell.at_most(metric, bound(&reference.cell.spec)));
                    }
                    Against::Other => {
                        let others = engines.clone();
                        judgements.extend(others.filter_map(|(other, name)| {
                            cell.against_other(metric, other, name)
                        }));
                    }
                }
            }
        }
    }
    judgements
}

/// A step with a ladder.
struct Cell<'a> {
    series: Series<'a>,
    ladder: Ladder,
    index: usize,
    step: &'a StepResult,
}

impl Cell<'_> {
    fn is_held_in(&self, steps: Steps, spec: &DbSpec) -> bool {
        match steps {
            Steps::All => true,
            Steps::Settled => self.step.settle.is_some(),
            Steps::FewClients => spec.threads <= CLIENTS_MAX,
        }
    }

    fn against_other(
        &self,
        metric: &Metric,
        other: usize,
        name: &EngineName,
    ) -> Option<Judgement> {
        let values = |engine, role| self.series.values(engine, role, self.index, metric);
        let first = values(0, Role::Measure);
        let second = values(other, Role::Measure);
        let times = times_over(&first, &second, |value, floor| match metric.better {
            Better::Lower => times(value, floor),
            Better::Higher => times(floor, value),
        })?;
        let control = times_over(&values(0, Role::Control), &first, times);
        let outcome = match control {
            _ if times.median <= 1.0 => Outcome::Held,
            Some(control) if times.min <= band(&control).1 => Outcome::WithinNoise,
            _ => Outcome::Missed,
        };
        let floor = format!("{name} {}", with_range(&spread(&second)?));
        Some(self.judgement(metric, spread(&first)?, floor, times, control, outcome))
    }

    fn at_most(&self, metric: &Metric, bound: f64) -> Option<Judgement> {
        let values = |role| self.series.values(0, role, self.index, metric);
        let (first, again) = (values(Role::Measure), values(Role::Control));
        let all = first.iter().chain(&again).map(|(_, value)| times(*value, bound));
        let times = spread_of(all.collect())?;
        let outcome = match times {
            _ if times.max <= 1.0 => Outcome::Held,
            _ if times.median <= 1.0 => Outcome::WithinNoise,
            _ => Outcome::Missed,
        };
        let control = times_over(&again, &first, self::times);
        let floor = format!("at most {}", figure(bound));
        Some(self.judgement(metric, spread(&first)?, floor, times, control, outcome))
    }

    fn judgement(
        &self,
        metric: &Metric,
        first: Spread,
        floor: String,
        times: Spread,
        control: Option<Spread>,
        outcome: Outcome,
    ) -> Judgement {
        Judgement {
            ladder: self.ladder,
            step: self.index,
            step_name: self.step.spec.to_string(),
            figure: metric.heading(),
            first,
            floor,
            times,
            control,
            outcome,
        }
    }
}

/// How many times `floor` goes into `value`; nothing by nothing is equal.
fn times(value: f64, floor: f64) -> f64 {
    match (value > 0.0, floor > 0.0) {
        (_, true) => value / floor,
        (true, false) => f64::INFINITY,
        (false, false) => 1.0,
    }
}

/// [`times`] of the values of the same repeats.
fn times_over(
    values: &[(u64, f64)],
    floors: &[(u64, f64)],
    times: impl Fn(f64, f64) -> f64,
) -> Option<Spread> {
    let of_repeat = |repeat: u64| floors.iter().find(|(other, _)| *other == repeat);
    let pairs = values.iter().filter_map(|(repeat, v)| Some(times(*v, of_repeat(*repeat)?.1)));
    spread_of(pairs.collect())
}

/// As [`Spread::of`], but infinite values count.
fn spread_of(mut values: Vec<f64>) -> Option<Spread> {
    values.retain(|value| !value.is_nan());
    values.sort_by(f64::total_cmp);
    let (first, last) = (*values.first()?, *values.last()?);
    let middle = [values[(values.len() - 1) / 2], values[values.len() / 2]];
    let median = (middle[0] + middle[1]) / 2.0;
    Some(Spread { median, min: first, max: last, count: values.len() })
}

/// The summary: what is missed, the farthest first; what is missed within the noise; what is
/// held, counted. Nothing for a run of one engine.
pub fn render(record: &DbRecord) -> String {
    let engines = &record.plan.engines;
    let judgements = judge(record);
    if engines.len() < 2 || judgements.is_empty() {
        return String::new();
    }
    let of = |outcome: Outcome| {
        let mut found: Vec<&Judgement> =
            judgements.iter().filter(|judged| judged.outcome == outcome).collect();
        // Equal ones stay in the order of ladders, steps and floors.
        found.sort_by(|a, b| b.times.median.total_cmp(&a.times.median));
        found
    };
    let [held, noise, missed] = [Outcome::Held, Outcome::WithinNoise, Outcome::Missed].map(of);
    let mut text = format!("Floors that {} misses: {}", engines[0], missed.len());
    let _ = write!(text, " of {}", judgements.len());
    if !missed.is_empty() {
        text.push_str(", the farthest first");
    }
    if judgements.iter().all(|judged| judged.control.is_none()) {
        text.push_str("; no control was run, so nothing is known of the noise");
    }
    text.push('\n');
    text.push_str(&lines(&missed));
    let _ = writeln!(text, "Within the noise: {}", noise.len());
    text.push_str(&lines(&noise));
    let _ = writeln!(text, "Held: {}{}", held.len(), if held.is_empty() { "" } else { ", of them" });
    text.push_str(&counted(&held, &judgements));
    text.push('\n');
    text
}

/// One line per cell, in columns.
fn lines(judgements: &[&Judgement]) -> String {
    let rows = judgements.iter().map(|judged| {
        let infinite = judged.times.median.is_infinite();
        let times = if infinite { "without end".to_owned() } else { with_range(&judged.times) };
        [
            times,
            judged.ladder.to_string(),
            format!("{} (step {})", judged.step_name, judged.step + 1),
            judged.figure.clone(),
            with_range(&judged.first),
            judged.floor.clone(),
            judged.control.as_ref().map_or_else(|| "-".to_owned(), with_range),
        ]
    });
    let rows: Vec<[String; 7]> = rows.collect();
    if rows.is_empty() {
        return String::new();
    }
    let heading = [
        "times missed",
        "codecs",
        "step",
        "figure",
        "median [min, max]",
        "floor",
        "same engine twice",
    ]
    .map(str::to_owned);
    let mut text = String::new();
    let width = |column: usize| {
        let cells = rows.iter().chain([&heading]).map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    for row in [&heading].into_iter().chain(&rows) {
        let cells = row.iter().enumerate().map(|(i, cell)| format!("{cell:<0$}", width(i)));
        let _ = writeln!(text, "  {}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    text
}

/// How many of the cells of each figure are held, figures in the order of the floors.
fn counted(held: &[&Judgement], all: &[Judgement]) -> String {
    let mut text = String::new();
    for (metric, _, _) in floors() {
        let heading = metric.heading();
        let judged = all.iter().filter(|judged| judged.figure == heading).count();
        let kept = held.iter().filter(|judged| judged.figure == heading).count();
        if judged > 0 {
            let _ = writeln!(text, "  {heading:<30} {kept} of {judged}");
        }
    }
    text
}
