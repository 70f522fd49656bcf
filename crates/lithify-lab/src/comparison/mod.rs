//! Two result sets side by side: what one has in units of the other, and whether that is more than
//! noise.
//!
//! Owns: the figures of a run in one form whatever was run ([`results`], filled by [`collect`]),
//! the comparison of two of them ([`compare`]), and its table, CSV and JSON ([`render`]).
//!
//! Promises: pure and deterministic. Runs of different workloads, scales, settings or machines are
//! not compared unless that is asked for, and what differs is named. No winner is named inside the
//! noise that a control in either run showed; without a control, only where all repeats of one
//! side lie beyond all of the other. The runs were not measured in turn, so that a ratio is of
//! medians and its interval is that of two independent samples. Does not read files.

pub mod collect;
pub mod render;
pub mod results;
#[cfg(test)]
mod tests;
mod unpaired;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::report::figures::Spread;
use crate::report::paired::Better;
use crate::statistics::band::Band;
use crate::statistics::bootstrap::{self, Interval};
use results::{ResultSet, Series, Subject};

/// What a figure of two runs says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The second run is better, by more than noise.
    Better,
    /// It is worse.
    Worse,
    /// Not told from what the same side twice differed by.
    WithinNoise,
    /// There is no control, and the ranges of the repeats overlap.
    RangesOverlap,
    /// A side was measured once.
    OneRun,
}

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
    /// Second by first, medians; `None` where the first is 0 and the second is not.
    pub ratio: Option<f64>,
    /// The 95 % interval of the ratio; `None` where a repeat of the first is 0.
    pub interval: Option<Interval>,
    /// What the same side twice differed by; `None` without a control.
    pub band: Option<Band>,
    /// What it says.
    pub verdict: Verdict,
}

/// Two runs compared.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Of which two runs: their titles.
    pub titles: [String; 2],
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

fn lines(first: &ResultSet, second: &ResultSet, subjects: &[[&Subject; 2]]) -> Vec<Line> {
    let mut lines = Vec::new();
    for [one, other] in subjects {
        for series in first.series.iter().filter(|series| series.subject == one.name) {
            let Some(twin) = second.find(&other.name, &series.test, &series.figure) else {
                continue;
            };
            let bands = [first, second].map(|set| set.band(&series.test, &series.figure));
            lines.extend(line(series, twin, bands));
        }
    }
    lines
}

fn line(series: &Series, twin: &Series, bands: [Option<Band>; 2]) -> Option<Line> {
    let [ones, others] = [series, twin].map(|s| s.values.iter().map(|v| v.1).collect::<Vec<_>>());
    let (first, second) = (Spread::of(ones.clone())?, Spread::of(others.clone())?);
    let ratio = match (second.median, first.median) {
        (0.0, 0.0) => Some(1.0),
        (_, 0.0) => None,
        (second, first) => Some(second / first),
    };
    let interval = bootstrap::of_ratio_of_medians(&others, &ones);
    let band = match bands {
        [Some(one), Some(other)] => Some(one.with(other)),
        [one, other] => one.or(other),
    };
    Some(Line {
        subject: series.subject.clone(),
        test: series.test.clone(),
        figure: series.figure.clone(),
        better: series.better,
        verdict: verdict(series.better, [&first, &second], interval, band),
        first,
        second,
        ratio,
        interval,
        band,
    })
}

/// Whether the second side is better than the first by more than noise.
fn verdict(
    better: Better,
    [first, second]: [&Spread; 2],
    interval: Option<Interval>,
    band: Option<Band>,
) -> Verdict {
    if first.count < 2 || second.count < 2 {
        return Verdict::OneRun;
    }
    match (band, interval) {
        (Some(band), Some(interval)) if band.touches(interval.low, interval.high) => {
            return Verdict::WithinNoise;
        }
        (Some(_), Some(_)) => {}
        _ if first.overlaps(second) => return Verdict::RangesOverlap,
        _ => {}
    }
    if (second.median > first.median) == (better == Better::Higher) {
        Verdict::Better
    } else {
        Verdict::Worse
    }
}
