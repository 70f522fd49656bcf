//! All pairs of a run in one table: a row per figure, a column per pair, a ratio in each cell.

use crate::experiment::Phase;
use crate::linkbench::report::judged::Judgements;
use crate::linkbench::report::pairs::Line;
use crate::report::figures::figure;
use crate::report::paired::{Outcome, signed};
use crate::report::tables::{Align, Grid};
use lithify_report::{Cell, Column, Outcome as Mark, Table};

/// Fewer pairs are seen at a glance by themselves.
const PAIRS_MIN: usize = 3;

/// What stands over the table.
pub(crate) const HEADING: &str =
    "All pairs, arm by base: ratios (n.s.: not significant; ~: direction only)";

/// The figures of the first table.
const KEY_FIGURES: [&str; 6] = [
    "operations/s",
    "CPU us/op with settling",
    "KB written/op with settling",
    "KB read/op",
    "tables settled, GB",
    "resident less driver's, MiB",
];

/// The key figures as the first table of a report; `None` for a run without pairs.
pub(super) fn headline(judged: &Judgements<'_>) -> Option<Table> {
    if judged.pairs.is_empty() {
        return None;
    }
    let mut columns = vec![Column::new("phase"), Column::new("figure")];
    columns.extend(judged.pairs.iter().map(|(pair, _)| Column {
        align: Some(Align::Right),
        ..Column::new(format!("{} : {}", pair.arm, pair.base))
    }));
    let caption = "Ratios, arm by base (n.s.: not significant; ~: direction only)";
    let mut table = Table::new(caption, columns).keyed_by(2);
    let shown = figures(judged).into_iter().filter(|(_, name)| KEY_FIGURES.contains(name));
    for (phase, name) in shown {
        let cells = judged.pairs.iter().map(|(_, lines)| match find(lines, phase, name) {
            Some(line) => Cell::Judged(outcome(line), ratio(line)),
            None => Cell::Missing,
        });
        table.push([Cell::from(phase.to_string()), Cell::from(name)].into_iter().chain(cells));
    }
    Some(table)
}

fn outcome(line: &Line) -> Mark {
    match line.comparison.outcome(line.better) {
        Outcome::Better => Mark::Met,
        Outcome::Worse => Mark::Missed,
        Outcome::NotSignificant | Outcome::DirectionOnly(_) => Mark::Undecided,
    }
}

/// The figures of all pairs, each once. Those of a phase stand together, whichever pair was the
/// first to have one.
fn figures<'a>(judged: &'a Judgements<'_>) -> Vec<(Phase, &'a str)> {
    let mut names: Vec<(Phase, &str)> = Vec::new();
    for line in judged.pairs.iter().flat_map(|(_, lines)| lines) {
        if !names.contains(&(line.phase, line.name.as_str())) {
            names.push((line.phase, &line.name));
        }
    }
    names.sort_by_key(|(phase, _)| *phase);
    names
}

fn find<'a>(lines: &'a [Line], phase: Phase, name: &str) -> Option<&'a Line> {
    lines.iter().find(|line| line.phase == phase && line.name == name)
}

/// The table; `None` for a run with few pairs.
pub(crate) fn grid(judged: &Judgements<'_>) -> Option<Grid> {
    if judged.pairs.len() < PAIRS_MIN {
        return None;
    }
    let heads: Vec<String> =
        judged.pairs.iter().map(|(pair, _)| format!("{} : {}", pair.arm, pair.base)).collect();
    let mut columns = vec![("phase", Align::Left), ("figure", Align::Left)];
    columns.extend(heads.iter().map(|head| (head.as_str(), Align::Right)));
    let rows: Vec<Vec<String>> = figures(judged)
        .into_iter()
        .map(|(phase, name)| {
            let cells = judged
                .pairs
                .iter()
                .map(|(_, lines)| find(lines, phase, name).map_or_else(|| "-".to_owned(), ratio));
            [phase.to_string(), name.to_owned()].into_iter().chain(cells).collect()
        })
        .collect();
    Some(Grid::new(&columns, rows))
}

fn ratio(line: &Line) -> String {
    let judged = &line.comparison.judged;
    let effect = match judged.scale.is_difference() {
        true => judged.difference.map(signed),
        false => judged.ratio.map(figure),
    };
    let Some(effect) = effect else { return "-".to_owned() };
    match line.comparison.outcome(line.better) {
        Outcome::Better | Outcome::Worse => effect,
        Outcome::NotSignificant => format!("{effect} n.s."),
        Outcome::DirectionOnly(_) => format!("~{effect}"),
    }
}
