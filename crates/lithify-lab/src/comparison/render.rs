//! A comparison as a table for people, as CSV and as JSON.

use std::fmt::Write as _;

use lithify_report::csv::Columns;
use serde_json::json;

use super::{Comparison, Line};
use crate::report::days::ACROSS_DAYS;
use crate::report::paired::{
    DIRECTION_ONLY, NOT_SIGNIFICANT, Outcome, ratio_text, repeats_text, shown_text,
};
use crate::report::tables::{Align, Grid};
use crate::statistics::verdicts::Scale;

/// What a figure says of the second run.
fn words(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Better => "second is better",
        Outcome::Worse => "second is worse",
        Outcome::NotSignificant | Outcome::DirectionOnly(_) => outcome.word(),
    }
}

/// The whole comparison as text.
pub fn text(comparison: &Comparison) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    for (name, side) in [("first ", 0), ("second", 1)] {
        let days = match &comparison.days[side][..] {
            [] => String::new(),
            days => format!(" (measured on {})", days.join(", ")),
        };
        let _ = writeln!(text, "{name}  {}{days}", comparison.titles[side]);
    }
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
    let count = |wanted: fn(Outcome) -> bool| {
        comparison.lines.iter().filter(|line| wanted(line.outcome())).count()
    };
    format!(
        "{} figures: the second is significantly better in {}, worse in {}; {} {NOT_SIGNIFICANT} \
         (not significant), {} {DIRECTION_ONLY}",
        comparison.lines.len(),
        count(|outcome| outcome == Outcome::Better),
        count(|outcome| outcome == Outcome::Worse),
        count(|outcome| outcome == Outcome::NotSignificant),
        count(|outcome| matches!(outcome, Outcome::DirectionOnly(_))),
    )
}

/// On what the verdicts rest.
fn basis(comparison: &Comparison) -> String {
    if comparison.other_day {
        return format!(
            "The two runs are of different days: directions only. {ACROSS_DAYS}; no repeat and no \
             A/A control of either run knows by how much. Measure both in one run."
        );
    }
    let controlled = comparison.lines.iter().filter(|line| line.controls.contains(&true)).count();
    format!(
        "second/first: geometric means, with the 95 % interval of two independent samples. A/A controls in {controlled} \
         of {} figures. The two runs were not measured in turn: what changed between them is in \
         every ratio, and no repeat of either knows of it. So no rate of false findings holds.",
        comparison.lines.len()
    )
}

/// The table.
pub fn grid(comparison: &Comparison) -> Grid {
    let columns = [
        ("test", Align::Left),
        ("figure", Align::Left),
        ("of", Align::Left),
        ("first", Align::Right),
        ("second", Align::Right),
        ("second/first [95 %]", Align::Right),
        ("could have shown", Align::Right),
        ("repeats to decide", Align::Right),
        ("verdict", Align::Left),
    ];
    let row = |line: &Line| {
        vec![
            line.test.clone(),
            line.figure.clone(),
            line.subject.clone(),
            line.first.with_range(),
            line.second.with_range(),
            ratio_text(&line.judged),
            shown_text(&line.judged),
            repeats_text(&line.judged),
            words(line.outcome()).to_owned(),
        ]
    };
    Grid::new(&columns, comparison.lines.iter().map(row).collect())
}

/// One line per figure, nothing rounded.
pub fn csv(comparison: &Comparison) -> String {
    Columns::new()
        .with("test", |line: &Line| line.test.clone())
        .with("figure", |line| line.figure.clone())
        .with("subject", |line| line.subject.clone())
        .with("first", |line| line.first.median)
        .with("first_min", |line| line.first.min)
        .with("first_max", |line| line.first.max)
        .with("first_repeats", |line| line.first.count)
        .with("second", |line| line.second.median)
        .with("second_min", |line| line.second.min)
        .with("second_max", |line| line.second.max)
        .with("second_repeats", |line| line.second.count)
        .with("scale", |line| scale_name(line.judged.scale))
        .with("ratio", |line| line.judged.ratio)
        .with("difference", |line| line.judged.difference)
        .with("interval_low", |line| line.judged.interval.map(|interval| interval.low))
        .with("interval_high", |line| line.judged.interval.map(|interval| interval.high))
        .with("p", |line| line.judged.p)
        .with("could_have_shown", |line| line.judged.could_have_shown)
        .with("repeats_to_decide", |line| line.judged.rounds_to_decide)
        .with("verdict", |line| words(line.outcome()))
        .csv(&comparison.lines)
}

/// What interval and `could_have_shown` are of.
fn scale_name(scale: Scale) -> &'static str {
    if scale.is_difference() { "difference" } else { "ratio" }
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
                "scale": scale_name(line.judged.scale),
                "ratio": line.judged.ratio,
                "difference": line.judged.difference,
                "interval": line.judged.interval.map(|i| bounds(i.low, i.high)),
                "p": line.judged.p,
                "could_have_shown": line.judged.could_have_shown,
                "repeats_to_decide": line.judged.rounds_to_decide,
                "verdict": words(line.outcome()),
            })
        })
        .collect();
    json!({
        "first": comparison.titles[0],
        "second": comparison.titles[1],
        "days": comparison.days,
        "other_day": comparison.other_day,
        "engines": comparison.subjects.iter().map(|pair| {
            json!({"subject": pair[0].name, "first": pair[0].engine, "second": pair[1].engine})
        }).collect::<Vec<_>>(),
        "differences": comparison.differences,
        "arm_differences": comparison.arm_differences,
        "unmatched": comparison.unmatched,
        "lines": lines,
    })
}
