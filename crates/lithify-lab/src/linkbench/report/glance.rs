//! All pairs of a run in one table: a row per figure, a column per pair, a ratio in each cell.

use crate::experiment::Phase;
use crate::linkbench::report::judged::Judgements;
use crate::linkbench::report::pairs::Line;
use crate::report::figures::figure;
use crate::report::paired::{Outcome, signed};
use crate::report::tables::{Align, Grid};

/// Fewer pairs are seen at a glance by themselves.
const PAIRS_MIN: usize = 3;

/// What stands over the table.
pub(crate) const HEADING: &str =
    "All pairs, arm by base: ratios (n.s.: not significant; ~: direction only)";

/// The table; `None` for a run with few pairs.
pub(crate) fn grid(judged: &Judgements<'_>) -> Option<Grid> {
    if judged.pairs.len() < PAIRS_MIN {
        return None;
    }
    let of_pairs: Vec<&[Line]> = judged.pairs.iter().map(|(_, lines)| lines.as_slice()).collect();
    let mut names: Vec<(Phase, &str)> = Vec::new();
    for line in of_pairs.iter().copied().flatten() {
        if !names.contains(&(line.phase, line.name.as_str())) {
            names.push((line.phase, &line.name));
        }
    }
    // The figures of a phase stand together, whichever pair was the first to have one.
    names.sort_by_key(|(phase, _)| *phase);
    let heads: Vec<String> =
        judged.pairs.iter().map(|(pair, _)| format!("{} : {}", pair.arm, pair.base)).collect();
    let mut columns = vec![("phase", Align::Left), ("figure", Align::Left)];
    columns.extend(heads.iter().map(|head| (head.as_str(), Align::Right)));
    let rows: Vec<Vec<String>> = names
        .iter()
        .map(|(phase, name)| {
            let cells = of_pairs.iter().map(|lines| {
                let line = lines.iter().find(|line| line.phase == *phase && line.name == *name);
                line.map_or_else(|| "-".to_owned(), ratio)
            });
            [phase.to_string(), (*name).to_owned()].into_iter().chain(cells).collect()
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
