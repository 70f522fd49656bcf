//! Floors: what a figure must not fall behind, whether it does, and the list that begins with those
//! that do.
//!
//! Owns: the judging of one figure against the other side's ([`against_other`]) or against a limit
//! ([`against_limit`]), and the list ([`render`]). Pure: spreads in, verdicts and text out. Which
//! figures have a floor is for each report to say.

use std::cmp::Ordering;

use super::figures::{Spread, figure};
use super::paired::{Better, Comparison, Verdict};
use super::tables::{Align, Grid};

/// What a floor comes to. A factor says how far behind: 1.1 is a tenth, infinite is "the other
/// side has none of it".
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Judgement {
    /// As good as asked for, or better.
    Held,
    /// Behind by the factor, and by no more than the same side differs from itself.
    WithinNoise(f64),
    /// Behind by the factor.
    Missed(f64),
}

/// Judges the first side's figure by the other's, repeat by repeat: behind are medians. Noise is
/// what the control differs by; without a control, or where the other side is zero and there are
/// no ratios, that the ranges of two repeats or more overlap.
pub fn against_other(better: Better, comparison: &Comparison) -> Judgement {
    let Comparison { first, other, ratio, control, .. } = comparison;
    let paired = ratio.filter(|ratio| ratio.count == first.count.min(other.count));
    let quotient = match paired {
        Some(ratio) => ratio.median,
        None if first.median == other.median => 1.0,
        None => first.median / other.median,
    };
    let factor = match better {
        Better::Lower => quotient,
        Better::Higher => 1.0 / quotient,
    };
    if factor <= 1.0 {
        return Judgement::Held;
    }
    let is_noise = match (paired, control) {
        (Some(_), Some(_)) => comparison.verdict(better) == Verdict::WithinBand,
        _ => first.count >= 2 && other.count >= 2 && first.overlaps(other),
    };
    if is_noise { Judgement::WithinNoise(factor) } else { Judgement::Missed(factor) }
}

/// Judges a figure by the most that it may be, whatever another side does. It holds in every
/// repeat or is missed.
pub fn against_limit(limit: f64, value: &Spread) -> Judgement {
    if value.max <= limit { Judgement::Held } else { Judgement::Missed(value.max / limit) }
}

/// One figure with a floor.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Where it was measured: the loop or phase, and the setting.
    pub place: String,
    /// Name and unit of the figure.
    pub figure: String,
    /// What was measured.
    pub value: String,
    /// What it is judged by.
    pub floor: String,
    /// What the same side twice differs by; a dash where that does not matter or is not known.
    pub control: String,
    /// What comes of it.
    pub judgement: Judgement,
}

impl Cell {
    /// A figure that must be as good as the other side's.
    pub fn against_other(
        place: String,
        figure: String,
        better: Better,
        comparison: &Comparison,
    ) -> Cell {
        Cell {
            place,
            figure,
            value: comparison.first.with_range(),
            floor: comparison.other.with_range(),
            control: comparison.control.map_or_else(|| "-".to_owned(), |c| c.with_range()),
            judgement: against_other(better, comparison),
        }
    }

    /// A figure that must not be above a limit.
    pub fn against_limit(place: String, name: String, limit: f64, value: &Spread) -> Cell {
        Cell {
            place,
            figure: name,
            value: value.with_range(),
            floor: format!("at most {}", figure(limit)),
            control: "-".to_owned(),
            judgement: against_limit(limit, value),
        }
    }

    /// Missed before noise before held, and how far.
    fn urgency(&self) -> (u8, f64) {
        match self.judgement {
            Judgement::Missed(factor) => (2, factor),
            Judgement::WithinNoise(factor) => (1, factor),
            Judgement::Held => (0, 0.0),
        }
    }
}

fn most_urgent_first(a: &Cell, b: &Cell) -> Ordering {
    let ((a, by_a), (b, by_b)) = (a.urgency(), b.urgency());
    b.cmp(&a).then(by_b.total_cmp(&by_a))
}

/// The missed cells, farthest behind first, and those behind within the noise after them.
pub fn behind(cells: &[Cell]) -> Vec<&Cell> {
    let mut listed: Vec<&Cell> =
        cells.iter().filter(|cell| cell.judgement != Judgement::Held).collect();
    listed.sort_by(|a, b| most_urgent_first(a, b));
    listed
}

/// How many floors were missed, how many are behind within the noise, how many were held.
pub fn counts(cells: &[Cell]) -> String {
    let behind = behind(cells).len();
    let is_missed = |cell: &&Cell| matches!(cell.judgement, Judgement::Missed(_));
    let missed = cells.iter().filter(is_missed).count();
    format!(
        "{missed} of {} floors missed, {} behind within noise, {} held",
        cells.len(),
        behind - missed,
        cells.len() - behind
    )
}

/// The counts, and the table of what is behind. `None` when nothing has a floor.
pub fn render(cells: &[Cell]) -> Option<String> {
    if cells.is_empty() {
        return None;
    }
    let grid = grid(cells);
    if grid.rows.is_empty() {
        return Some(counts(cells));
    }
    Some(format!("{}\n{}", counts(cells), grid.text()))
}

/// What is behind its floors, one line each.
pub fn grid(cells: &[Cell]) -> Grid {
    let columns = [
        ("floor", Align::Left),
        ("behind", Align::Right),
        ("where", Align::Left),
        ("figure", Align::Left),
        ("measured", Align::Right),
        ("must not be worse than", Align::Right),
        ("same engine twice", Align::Right),
    ];
    Grid::new(&columns, behind(cells).into_iter().map(row).collect())
}

fn row(cell: &Cell) -> Vec<String> {
    let (verdict, factor) = match cell.judgement {
        Judgement::Missed(factor) => ("MISSED", factor),
        Judgement::WithinNoise(factor) => ("within noise", factor),
        Judgement::Held => ("held", 1.0),
    };
    let behind = match factor.is_finite() {
        true => format!("{factor:.3} x"),
        false => "infinite".to_owned(),
    };
    let texts = [verdict, &behind, &cell.place, &cell.figure, &cell.value, &cell.floor];
    texts.into_iter().chain([cell.control.as_str()]).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeats(values: &[f64]) -> Vec<(u64, f64)> {
        (0..).zip(values.iter().copied()).collect()
    }

    fn comparison(first: &[f64], other: &[f64], again: &[f64]) -> Comparison {
        let [first, other, again] = [first, other, again].map(repeats);
        Comparison::of(&first, &other, &again).expect("both sides were measured")
    }

    fn judged(better: Better, first: &[f64], other: &[f64], again: &[f64]) -> Judgement {
        against_other(better, &comparison(first, other, again))
    }

    #[test]
    fn behind_by_more_than_the_control_is_missed() {
        let again = [10.2, 10.1];
        assert_eq!(judged(Better::Lower, &[10.0, 10.0], &[11.0, 11.0], &again), Judgement::Held);
        assert_eq!(judged(Better::Lower, &[10.0, 10.0], &[10.0, 10.0], &again), Judgement::Held);
        let missed = judged(Better::Lower, &[10.0, 10.0], &[8.0, 8.0], &again);
        assert_eq!(missed, Judgement::Missed(1.25));
        let missed = judged(Better::Higher, &[8.0, 8.0], &[10.0, 10.0], &[8.1, 8.0]);
        assert_eq!(missed, Judgement::Missed(1.25));
        assert_eq!(judged(Better::Higher, &[8.0, 8.0], &[7.0, 7.0], &[8.1, 8.0]), Judgement::Held);
        // Twice the same engine differs by a quarter too.
        let noise = judged(Better::Lower, &[10.0, 10.0], &[8.0, 8.0], &[12.6, 10.0]);
        assert_eq!(noise, Judgement::WithinNoise(1.25));
    }

    #[test]
    fn without_a_control_ranges_must_lie_apart() {
        let noise = judged(Better::Lower, &[10.0, 10.0, 8.0], &[9.0, 8.0, 8.0], &[]);
        assert!(matches!(noise, Judgement::WithinNoise(_)), "{noise:?}");
        let missed = judged(Better::Lower, &[10.0, 10.0], &[8.0, 8.0], &[]);
        assert_eq!(missed, Judgement::Missed(1.25));
        // One run has no range.
        assert_eq!(judged(Better::Lower, &[10.0], &[8.0], &[]), Judgement::Missed(1.25));
    }

    #[test]
    fn a_side_that_has_none_of_it() {
        let control = [0.1, 0.1];
        assert_eq!(judged(Better::Lower, &[0.0, 0.0], &[0.0, 0.0], &control), Judgement::Held);
        let missed = judged(Better::Lower, &[0.1, 0.2], &[0.0, 0.0], &control);
        assert_eq!(missed, Judgement::Missed(f64::INFINITY));
        // Only the last repeat has a ratio, a good one; it does not stand for all.
        let missed = judged(Better::Lower, &[0.5, 0.6, 0.1], &[0.0, 0.0, 0.2], &[]);
        assert_eq!(missed, Judgement::WithinNoise(f64::INFINITY));
        assert_eq!(judged(Better::Lower, &[0.0, 0.0], &[0.1, 0.2], &control), Judgement::Held);
        assert_eq!(judged(Better::Higher, &[5.0], &[0.0], &[]), Judgement::Held);
    }

    #[test]
    fn a_limit_holds_in_every_repeat() {
        let value = |values: &[f64]| Spread::of(values.to_vec()).expect("has values");
        assert_eq!(against_limit(100.0, &value(&[50.0, 100.0])), Judgement::Held);
        assert_eq!(against_limit(100.0, &value(&[50.0, 50.0, 120.0])), Judgement::Missed(1.2));
    }

    #[test]
    fn missed_cells_come_first() {
        let other = |name: &str, first: &[f64], other: &[f64], again: &[f64]| {
            let comparison = comparison(first, other, again);
            Cell::against_other("fill lz4".into(), name.into(), Better::Lower, &comparison)
        };
        let limit = Spread::of(vec![150.0, 90.0]).expect("has values");
        let cells = [
            other("held", &[1.0], &[2.0], &[1.0]),
            other("noise", &[4.0], &[2.0], &[9.0]),
            other("a quarter", &[10.0], &[8.0], &[10.0]),
            Cell::against_limit("fill lz4".into(), "gap, ms".into(), 100.0, &limit),
            other("none", &[1.0], &[0.0], &[1.0]),
        ];
        let text = render(&cells).expect("has cells");
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = text.lines().map(words).collect();
        assert_eq!(lines[0], "3 of 5 floors missed, 1 behind within noise, 1 held");
        assert_eq!(lines[2], "MISSED infinite fill lz4 none 1.00 0 1.00");
        assert_eq!(lines[3], "MISSED 1.500 x fill lz4 gap, ms 120 [90.0, 150] at most 100 -");
        assert_eq!(lines[4], "MISSED 1.250 x fill lz4 a quarter 10.0 8.00 1.00");
        assert_eq!(lines[5], "within noise 2.000 x fill lz4 noise 4.00 2.00 2.25");
        assert_eq!(lines.len(), 6);
        assert_eq!(render(&[]), None);
        let held = render(&cells[..1]).expect("has cells");
        assert_eq!(held, "0 of 1 floors missed, 0 behind within noise, 1 held");
    }
}
