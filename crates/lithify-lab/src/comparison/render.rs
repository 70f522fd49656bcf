//! A comparison as a report for people, as CSV and as JSON.

use std::cmp::Ordering;

use lithify_report::csv::Columns;
use lithify_report::{Answer, Block, Finding, Outcome, Report, Section, Table};
use serde_json::json;

use super::{Comparison, Line};
use crate::report::days::ACROSS_DAYS;
use crate::report::paired::{
    DIRECTION_ONLY, NOT_SIGNIFICANT, Outcome as Side, ratio_text, repeats_text, shown_text,
};
use crate::report::tables::{Align, Grid};
use crate::statistics::verdicts::Scale;

/// A column: its name, how it is aligned, what it says of a figure.
type Column = (&'static str, Align, fn(&Line) -> String);

const RATIO: &str = "second/first [95 %]";

/// All columns for people.
const COLUMNS: [Column; 9] = [
    ("test", Align::Left, |line| line.test.clone()),
    ("figure", Align::Left, |line| line.figure.clone()),
    ("of", Align::Left, |line| line.subject.clone()),
    ("first", Align::Right, |line| line.first.with_range()),
    ("second", Align::Right, |line| line.second.with_range()),
    (RATIO, Align::Right, |line| ratio_text(&line.judged)),
    ("could have shown", Align::Right, |line| shown_text(&line.judged)),
    ("repeats to decide", Align::Right, |line| repeats_text(&line.judged)),
    ("verdict", Align::Left, |line| words(line.outcome()).to_owned()),
];

/// What a figure says of the second run.
fn words(outcome: Side) -> &'static str {
    match outcome {
        Side::Better => "second is better",
        Side::Worse => "second is worse",
        Side::NotSignificant | Side::DirectionOnly(_) => outcome.word(),
    }
}

/// The report: how many figures differ and which, then all of them.
pub fn report(comparison: &Comparison) -> Report {
    let conditions = conditions(comparison);
    let notes = comparison.differences.iter().map(|what| format!("Not measured alike: {what}."));
    let arms = comparison.arm_differences.iter().map(|what| format!("The arms differ: {what}."));
    let note = |text| Finding::new(Outcome::Missed, "Differs", text);
    let answer = Answer {
        found: vec![counts(comparison)].into_iter().chain(notes.chain(arms).map(note)).collect(),
        unknown: vec![basis(comparison)],
        next: Vec::new(),
    };
    let all = grid(&comparison.lines, &COLUMNS.iter().collect::<Vec<_>>());
    Report {
        title: format!("{} against {}", comparison.titles[1], comparison.titles[0]),
        question: "What did the second run do better or worse than the first?".to_owned(),
        answer,
        headline: Some(headline(comparison)),
        sections: vec![
            Section::new("What is compared").with(Block::Facts(conditions)),
            Section::new("All figures").with(Table::new("Second by first", all)),
        ],
        ..Report::default()
    }
}

/// The runs, their engines, and what one of them alone has.
fn conditions(comparison: &Comparison) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    for (name, side) in [("first", 0), ("second", 1)] {
        let days = match &comparison.days[side][..] {
            [] => String::new(),
            days => format!(" (measured on {})", days.join(", ")),
        };
        facts.push((name.to_owned(), format!("{}{days}", comparison.titles[side])));
    }
    for [first, second] in &comparison.subjects {
        let (one, other) = (&first.engine, &second.engine);
        facts.push(match first.name == second.name {
            true => (first.name.clone(), format!("{one}, then {other}")),
            false => (first.name.clone(), format!("{one}, against {} ({other})", second.name)),
        });
    }
    for (name, left) in ["first", "second"].iter().zip(&comparison.unmatched) {
        if !left.is_empty() {
            facts.push((format!("in the {name} run alone"), left.join(", ")));
        }
    }
    facts
}

/// What is significant, else what differs most; the farthest from 1 first.
fn headline(comparison: &Comparison) -> Table {
    // A figure that is judged by its difference may have a ratio to almost nothing.
    let ratio = |line: &Line| line.judged.ratio.filter(|_| !line.judged.scale.is_difference());
    let distance = |line: &Line| ratio(line).map_or(0.0, |ratio| ratio.ln().abs());
    let mut lines: Vec<&Line> = comparison.lines.iter().collect();
    lines.sort_by(|a, b| {
        let decided = |line: &Line| line.judged.verdict.is_significant();
        (decided(b), distance(b)).partial_cmp(&(decided(a), distance(a))).unwrap_or(Ordering::Equal)
    });
    let names = ["test", "figure", "of", RATIO, "verdict"];
    let columns: Vec<&Column> = COLUMNS.iter().filter(|(name, ..)| names.contains(name)).collect();
    let grid = grid(lines, &columns);
    Table::new("Significant first, then the farthest from 1", grid).keyed_by(3)
}

/// How many figures came out how.
fn counts(comparison: &Comparison) -> Finding {
    let count = |wanted: fn(Side) -> bool| {
        comparison.lines.iter().filter(|line| wanted(line.outcome())).count()
    };
    let better = count(|outcome| outcome == Side::Better);
    let worse = count(|outcome| outcome == Side::Worse);
    let text = format!(
        "of {} figures the second is significantly better in {better}, worse in {worse}; {} \
         {NOT_SIGNIFICANT} (not significant), {} {DIRECTION_ONLY}.",
        comparison.lines.len(),
        count(|outcome| outcome == Side::NotSignificant),
        count(|outcome| matches!(outcome, Side::DirectionOnly(_))),
    );
    let outcome = match (better, worse) {
        // What is undecided gives way to what is decided where room is short, and this never may.
        (0, 0) => Outcome::Note,
        (_, 0) => Outcome::Met,
        (_, _) => Outcome::Missed,
    };
    Finding::new(outcome, "Figures", text)
}

/// On what the verdicts rest.
pub(super) fn basis(comparison: &Comparison) -> String {
    if comparison.other_day {
        return format!(
            "The two runs are of different days: directions only. {ACROSS_DAYS}; no repeat and no \
             A/A control of either run knows by how much. Measure both in one run."
        );
    }
    let controlled = comparison.lines.iter().filter(|line| line.controls.contains(&true)).count();
    format!(
        "The runs were not measured in turn: what changed between them is in every ratio, and no \
         rate of false findings holds. Intervals are of two independent samples; {controlled} of \
         {} figures have A/A controls.",
        comparison.lines.len()
    )
}

/// Lines under some of the columns.
fn grid<'a>(lines: impl IntoIterator<Item = &'a Line>, columns: &[&Column]) -> Grid {
    let row = |line: &Line| columns.iter().map(|(_, _, of)| of(line)).collect();
    let heads: Vec<(&str, Align)> =
        columns.iter().map(|(name, align, _)| (*name, *align)).collect();
    Grid::new(&heads, lines.into_iter().map(row).collect())
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
