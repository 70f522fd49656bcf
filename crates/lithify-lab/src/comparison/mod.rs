//! Two result sets side by side: what one has in units of the other, and whether that is more than
//! noise.
//!
//! Owns: the figures of a run in one form whatever was run ([`results`], with the settings of its subjects by [`collect`]),
//! the comparison of two of them ([`compare`]), and its table, CSV and JSON ([`render`]).
//!
//! Promises: pure and deterministic. Runs of different workloads, scales, settings or machines are
//! not compared unless that is asked for, and what differs is named. The rule of verdicts is that of
//! reports ([`verdicts`]), for repeats that are no pairs. Runs of different days get directions
//! only: what a day changes is in no repeat of either. Does not read files.

pub mod collect;
pub mod render;
pub mod results;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::report::figures::Spread;
use crate::report::paired::{Better, Outcome};
use crate::statistics::verdicts::{self, Cell, Judged, Layout};
use results::{ResultSet, Series, Subject};

/// A figure of two runs.
#[derive(Clone, Debug)]
pub struct Line {
    /// What was measured: the arm or engine of the first run.
    pub subject: String,
    /// In which phase, step or test.
    pub test: String,
    /// Name and unit of the figure.
    pub figure: String,
    /// Which direction is good.
    pub better: Better,
    /// Of the first run.
    pub first: Spread,
    /// Of the second run.
    pub second: Spread,
    /// Whether each has an A/A control.
    pub controls: [bool; 2],
    /// Second by first: ratio, interval, verdict.
    pub judged: Judged,
}

impl Line {
    /// What it says of the second run.
    pub fn outcome(&self) -> Outcome {
        Outcome::of(self.judged.verdict, self.better)
    }
}

/// Two runs compared.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Of which two runs: their titles.
    pub titles: [String; 2],
    /// On which days each was measured; empty where that was not kept.
    pub days: [Vec<String>; 2],
    /// True when they were measured on different days.
    pub other_day: bool,
    /// The pairs of subjects, each with the engines' own names.
    pub subjects: Vec<[Subject; 2]>,
    /// Settings that differ though they should not.
    pub differences: Vec<String>,
    /// Codecs and options in which two arms of one name differ, with the name before them.
    pub arm_differences: Vec<String>,
    /// The arms or engines that one run alone has, of each.
    pub unmatched: [Vec<String>; 2],
    /// The figures that both have.
    pub lines: Vec<Line>,
}

/// Why two runs are not compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// They have no arm or engine in common; those of each.
    NothingInCommon([Vec<String>; 2]),
    /// They have engines or arms in common, but none of their tests or figures; the tests of each.
    NoTestInCommon([Vec<String>; 2]),
    /// They were not measured alike.
    Different(Vec<String>),
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::NothingInCommon([first, second]) => write!(
                f,
                "nothing in common: the first has {}; the second has {}",
                first.join(", "),
                second.join(", ")
            ),
            Refusal::NoTestInCommon([first, second]) => write!(
                f,
                "the same engines, and no test or figure in common: the first has {}; the second has \
                 {}",
                first.join(", "),
                second.join(", ")
            ),
            Refusal::Different(what) => write!(
                f,
                "not measured alike: {}; --ignore-settings compares them nevertheless",
                what.join("; ")
            ),
        }
    }
}

impl std::error::Error for Refusal {}

/// Compares two runs, the second in units of the first.
///
/// # Errors
/// They have nothing in common, or differ in what they should not and that is not to be ignored.
pub fn compare(
    first: &ResultSet,
    second: &ResultSet,
    ignore_settings: bool,
) -> Result<Comparison, Refusal> {
    let subjects = matched(first, second);
    let lines = lines(first, second, &subjects);
    if lines.is_empty() {
        return Err(match subjects.is_empty() {
            true => Refusal::NothingInCommon([first, second].map(ResultSet::names)),
            false => Refusal::NoTestInCommon(
                [first, second].map(|set| set.tests().into_iter().map(str::to_owned).collect()),
            ),
        });
    }
    let differences = differences(first, second, &subjects);
    if !differences.is_empty() && !ignore_settings {
        return Err(Refusal::Different(differences));
    }
    let unmatched = [(first, 0), (second, 1)].map(|(set, side)| {
        let is_matched = |name: &String| subjects.iter().any(|pair| pair[side].name == *name);
        set.names().into_iter().filter(|name| !is_matched(name)).collect()
    });
    Ok(Comparison {
        titles: [first, second].map(|set| set.title.clone()),
        days: [first, second].map(ResultSet::days),
        other_day: first.is_apart(second),
        arm_differences: arm_differences(&subjects),
        unmatched,
        subjects: subjects.into_iter().map(|pair| pair.map(Clone::clone)).collect(),
        differences,
        lines,
    })
}

/// Subjects of one name; the only two when each run has one; those of one arm when each run has one
/// engine.
fn matched<'a>(first: &'a ResultSet, second: &'a ResultSet) -> Vec<[&'a Subject; 2]> {
    if let ([one], [other]) = (&first.subjects[..], &second.subjects[..]) {
        return vec![[one, other]];
    }
    let pairs = |same: fn(&Subject, &Subject) -> bool| -> Vec<[&'a Subject; 2]> {
        let twin = |one: &'a Subject| {
            let other = second.subjects.iter().find(|other| same(one, other))?;
            Some([one, other])
        };
        first.subjects.iter().filter_map(twin).collect()
    };
    let of_one_name = pairs(|one, other| one.name == other.name);
    let has_one_engine = |set: &ResultSet| {
        let mut engines = set.subjects.iter().map(|subject| &subject.engine);
        engines.next().is_some_and(|first| engines.all(|engine| engine == first))
    };
    if of_one_name.is_empty() && has_one_engine(first) && has_one_engine(second) {
        return pairs(|one, other| !one.arm.is_empty() && one.arm == other.arm);
    }
    of_one_name
}

/// What differs in machine and settings, each difference once.
fn differences(first: &ResultSet, second: &ResultSet, subjects: &[[&Subject; 2]]) -> Vec<String> {
    let mut found = differing(&first.machine, &second.machine);
    for [one, other] in subjects {
        for difference in differing(&one.settings, &other.settings) {
            if !found.contains(&difference) {
                found.push(difference);
            }
        }
    }
    found
}

/// What differs in the codecs and options of arms of one name; arms of two names differ in them by
/// what they are.
fn arm_differences(subjects: &[[&Subject; 2]]) -> Vec<String> {
    let of_one_name = subjects.iter().filter(|[one, other]| one.name == other.name);
    let said = of_one_name.flat_map(|[one, other]| {
        let found = differing(&one.of_arm, &other.of_arm).into_iter();
        found.map(|difference| format!("{}: {difference}", one.name))
    });
    said.collect()
}

fn differing(first: &BTreeMap<String, String>, second: &BTreeMap<String, String>) -> Vec<String> {
    let mut names: Vec<&String> = first.keys().chain(second.keys()).collect();
    names.sort();
    names.dedup();
    let value = |set: &BTreeMap<String, String>, name: &String| {
        set.get(name).map_or_else(|| "nothing".to_owned(), Clone::clone)
    };
    let differs = names.into_iter().filter(|name| first.get(*name) != second.get(*name));
    differs
        .map(|name| format!("{name} {} and {}", value(first, name), value(second, name)))
        .collect()
}

/// Every figure that both have, judged together.
fn lines(first: &ResultSet, second: &ResultSet, subjects: &[[&Subject; 2]]) -> Vec<Line> {
    let other_day = first.is_apart(second);
    let mut twins = Vec::new();
    for [one, other] in subjects {
        for series in first.series.iter().filter(|series| series.subject == one.name) {
            let twin = second.find(&other.name, &series.test, &series.figure);
            twins.extend(twin.map(|twin| (series, twin)));
        }
    }
    let cell = |(series, twin): &(&Series, &Series)| Cell {
        kind: series.figure.clone(),
        scale: series.scale,
        sides: [twin.values.clone(), series.values.clone()],
        controls: [twin.again.clone(), series.again.clone()],
        layout: Layout::Unpaired,
        other_day,
    };
    let judged = verdicts::judge(&twins.iter().map(cell).collect::<Vec<Cell>>(), &[]);
    let line = |((series, twin), judged)| line(series, twin, judged);
    twins.into_iter().zip(judged).filter_map(line).collect()
}

fn line(series: &Series, twin: &Series, judged: Judged) -> Option<Line> {
    let spread = |series: &Series| Spread::of(series.values.iter().map(|v| v.1).collect());
    let controls = [series, twin].map(|series| !series.again.is_empty());
    Some(Line {
        subject: series.subject.clone(),
        test: series.test.clone(),
        figure: series.figure.clone(),
        better: series.better,
        first: spread(series)?,
        second: spread(twin)?,
        controls,
        judged,
    })
}
