//! All pairs of a run in one table: a row per figure, a column per pair, a ratio in each cell.

use super::figures::{Figures, figure};
use super::pairs::{Line, is_told, lines};
use super::tables::{Align, table};
use crate::experiment::Phase;
use crate::run::RunRecord;

/// Fewer pairs are seen at a glance by themselves.
const PAIRS_MIN: usize = 3;

/// The table; `None` for a run with few pairs.
pub fn render(record: &RunRecord, figures: &Figures<'_>) -> Option<String> {
    let pairs: Vec<_> = super::pairs_with_results(record, figures).collect();
    if pairs.len() < PAIRS_MIN {
        return None;
    }
    let of_pairs: Vec<Vec<Line>> = pairs.iter().map(|pair| lines(figures, pair)).collect();
    let mut names: Vec<(Phase, &str)> = Vec::new();
    for line in of_pairs.iter().flatten() {
        if !names.contains(&(line.phase, line.name.as_str())) {
            names.push((line.phase, &line.name));
        }
    }
    // The figures of a phase stand together, whichever pair was the first to have one.
    names.sort_by_key(|(phase, _)| *phase);
    let heads: Vec<String> =
        pairs.iter().map(|pair| format!("{} : {}", pair.arm, pair.base)).collect();
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
    Some(table(&columns, &rows))
}

fn ratio(line: &Line) -> String {
    let Some(ratio) = line.comparison.ratio else { return "-".to_owned() };
    let doubt = if is_told(line) { "" } else { "?" };
    format!("{}{doubt}", figure(ratio.median))
}
