//! A comparison as a table for people, as CSV and as JSON.

use std::fmt::Write as _;

use serde_json::json;

use super::{Comparison, Line, Verdict};
use crate::report::figures::{figure, figure_or_dash};
use crate::report::tables::{Align, Grid};
use crate::statistics::band::Band;
use crate::statistics::bootstrap::Interval;

impl Verdict {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Better => "second is better",
            Verdict::Worse => "second is worse",
            Verdict::WithinNoise => "within noise",
            Verdict::RangesOverlap => "ranges overlap",
            Verdict::OneRun => "one run",
        }
    }
}

/// The whole comparison as text.
pub fn text(comparison: &Comparison) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "first   {}\nsecond  {}", comparison.titles[0], comparison.titles[1]);
    for [first, second] in &comparison.subjects {
        let (one, other) = (&first.engine, &second.engine);
        let _ = match first.name == second.name {
            true => writeln!(text, "{}: {one}, then {other}", first.name),
            false => writeln!(text, "{} ({one}) against {} ({other})", first.name, second.name),
        };
    }
    for difference in &comparison.differences {
        let _ = writeln!(text, "NOT MEASURED ALIKE: {difference}");
    }
    for difference in &comparison.arm_differences {
        let _ = writeln!(text, "ARMS DIFFER, {difference}");
    }
    for (name, left) in ["first", "second"].iter().zip(&comparison.unmatched) {
        if !left.is_empty() {
            let _ = writeln!(text, "in the {name} run alone: {}", left.join(", "));
        }
    }
    let _ = writeln!(
        text,
        "\n{}\n{}\n\n{}",
        counts(comparison),
        basis(comparison),
        grid(comparison).text()
    );
    text
}

/// How many figures came out how.
pub fn counts(comparison: &Comparison) -> String {
    let count = |verdict| comparison.lines.iter().filter(|line| line.verdict == verdict).count();
    let undecided = count(Verdict::RangesOverlap) + count(Verdict::OneRun);
    format!(
        "{} figures: the second is better in {}, worse in {}, within noise in {}; {undecided} undecided",
        comparison.lines.len(),
        count(Verdict::Better),
        count(Verdict::Worse),
        count(Verdict::WithinNoise),
    )
}

/// By what winners were named.
fn basis(comparison: &Comparison) -> String {
    let with = comparison.lines.iter().filter(|line| line.band.is_some()).count();
    let rule =
        "without a control a winner needs two repeats of each and ranges that do not overlap";
    let sessions = "The two runs were not measured in turn: what changed between them is in every \
                    ratio.";
    match with {
        0 => format!("Neither run has a control (the same side twice): {rule}. {sessions}"),
        with if with == comparison.lines.len() => format!(
            "A winner's ratio lies with its whole 95 % interval outside of what the same side \
             twice differed by. {sessions}"
        ),
        with => format!(
            "{with} figures have a control: a winner's 95 % interval lies outside of what the same \
             side twice differed by; {rule}. {sessions}"
        ),
    }
}

fn interval(interval: &Option<Interval>) -> String {
    interval.map_or_else(|| "-".to_owned(), |i| format!("[{}, {}]", figure(i.low), figure(i.high)))
}

fn band(band: &Option<Band>) -> String {
    band.map_or_else(|| "-".to_owned(), |b| format!("[{}, {}]", figure(b.low), figure(b.high)))
}

/// The table.
pub fn grid(comparison: &Comparison) -> Grid {
    let columns = [
        ("test", Align::Left),
        ("figure", Align::Left),
        ("of", Align::Left),
        ("first", Align::Right),
        ("second", Align::Right),
        ("second/first", Align::Right),
        ("95 % interval", Align::Right),
        ("same side twice", Align::Right),
        ("verdict", Align::Left),
    ];
    let row = |line: &Line| {
        vec![
            line.test.clone(),
            line.figure.clone(),
            line.subject.clone(),
            line.first.with_range(),
            line.second.with_range(),
            figure_or_dash(line.ratio),
            interval(&line.interval),
            band(&line.band),
            line.verdict.words().to_owned(),
        ]
    };
    Grid::new(&columns, comparison.lines.iter().map(row).collect())
}

/// One line per figure, nothing rounded.
pub fn csv(comparison: &Comparison) -> String {
    let mut text = "test,figure,subject,first,first_min,first_max,first_repeats,second,second_min,\
        second_max,second_repeats,ratio,interval_low,interval_high,band_low,band_high,verdict\n"
        .to_owned();
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    for line in &comparison.lines {
        let (first, second) = (&line.first, &line.second);
        let _ = writeln!(
            text,
            "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
            quoted(&line.test),
            quoted(&line.figure),
            quoted(&line.subject),
            first.median,
            first.min,
            first.max,
            first.count,
            second.median,
            second.min,
            second.max,
            second.count,
            number(line.ratio),
            number(line.interval.map(|i| i.low)),
            number(line.interval.map(|i| i.high)),
            number(line.band.map(|b| b.low)),
            number(line.band.map(|b| b.high)),
            line.verdict.words(),
        );
    }
    text
}

/// Names of figures have commas in them.
fn quoted(text: &str) -> String {
    match text.contains([',', '"']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

/// Everything, for programs.
pub fn json(comparison: &Comparison) -> serde_json::Value {
    let bounds = |low: f64, high: f64| json!([low, high]);
    let lines: Vec<serde_json::Value> = comparison
        .lines
        .iter()
        .map(|line| {
            let (first, second) = (&line.first, &line.second);
            json!({
                "test": line.test,
                "figure": line.figure,
                "subject": line.subject,
                "first": {"median": first.median, "min": first.min, "max": first.max,
                    "repeats": first.count},
                "second": {"median": second.median, "min": second.min, "max": second.max,
                    "repeats": second.count},
                "ratio": line.ratio,
                "interval": line.interval.map(|i| bounds(i.low, i.high)),
                "same_side_twice": line.band.map(|b| bounds(b.low, b.high)),
                "verdict": line.verdict,
            })
        })
        .collect();
    json!({
        "first": comparison.titles[0],
        "second": comparison.titles[1],
        "engines": comparison.subjects.iter().map(|pair| {
            json!({"subject": pair[0].name, "first": pair[0].engine, "second": pair[1].engine})
        }).collect::<Vec<_>>(),
        "differences": comparison.differences,
        "arm_differences": comparison.arm_differences,
        "unmatched": comparison.unmatched,
        "lines": lines,
    })
}
