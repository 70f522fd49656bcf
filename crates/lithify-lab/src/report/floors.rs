//! Floors: the targets that a figure must not fall behind, whether it does, and the list that begins
//! with those that do.
//!
//! Owns: the judging of one figure against its base ([`against_base`]) or against a limit
//! ([`against_limit`]), and the list ([`grid`]). Pure: comparisons in, verdicts and text out. Which
//! figures have a target is for each report to say.

use std::cmp::Ordering;

use super::figures::{Spread, figure};
use super::paired::{Better, Comparison, DIRECTION_ONLY, NOT_SIGNIFICANT, Outcome};
use super::tables::{Align, Grid};
use crate::statistics::verdicts::Judged;

/// What a target comes to. A factor says how far behind: 1.1 is a tenth, infinite is "the base has
/// none of it".
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Judgement {
    /// As good as asked for, or better.
    Met,
    /// Ahead; there is no verdict.
    Ahead,
    /// Behind by the factor, and not significantly.
    NotSignificant(f64),
    /// Behind by the factor; there is no verdict.
    DirectionOnly(f64),
    /// Behind by the factor, significantly, or over a limit.
    Missed(f64),
}

/// Judges the first side's figure by the base's.
pub fn against_base(better: Better, comparison: &Comparison) -> Judgement {
    let factor = factor_behind(better, comparison);
    match comparison.outcome(better) {
        Outcome::Worse => Judgement::Missed(factor.max(1.0)),
        Outcome::Better => Judgement::Met,
        Outcome::DirectionOnly(_) if factor < 1.0 => Judgement::Ahead,
        _ if factor <= 1.0 => Judgement::Met,
        Outcome::DirectionOnly(_) => Judgement::DirectionOnly(factor),
        Outcome::NotSignificant => Judgement::NotSignificant(factor),
    }
}

/// How far the first side is behind: at most 1 when it is not, infinite when the base has none of
/// what is counted.
fn factor_behind(better: Better, comparison: &Comparison) -> f64 {
    let Judged { ratio, difference, .. } = comparison.judged;
    let quotient = match (ratio, difference) {
        (Some(ratio), _) => ratio,
        // No ratio: one of the sides has none of it, or less.
        (None, Some(difference)) if difference > 0.0 => f64::INFINITY,
        (None, Some(difference)) if difference < 0.0 => 0.0,
        (None, _) => 1.0,
    };
    match better {
        Better::Lower => quotient,
        Better::Higher => 1.0 / quotient,
    }
}

/// Judges a figure by the most that it may be, whatever another side does. It holds in every
/// repeat or is missed.
pub fn against_limit(limit: f64, value: &Spread) -> Judgement {
    if value.max <= limit { Judgement::Met } else { Judgement::Missed(value.max / limit) }
}

/// One figure with a target.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Where it was measured: the loop or phase, and the setting.
    pub place: String,
    /// Name and unit of the figure.
    pub figure: String,
    /// What was measured.
    pub value: String,
    /// What it is judged by: the base with its value, or the limit.
    pub target: String,
    /// The smallest ratio that would have been significant; a dash where that is not known.
    pub could_have_shown: String,
    /// What comes of it.
    pub judgement: Judgement,
}

impl Cell {
    /// A figure that must be as good as that of `base`: an engine or arm.
    pub fn against_base(
        place: String,
        figure: String,
        better: Better,
        base: &str,
        comparison: &Comparison,
    ) -> Cell {
        Cell {
            place,
            figure,
            value: comparison.first.with_range(),
            target: format!("{base}: {}", comparison.other.with_range()),
            could_have_shown: comparison.could_have_shown(),
            judgement: against_base(better, comparison),
        }
    }

    /// A figure that must not be above a limit.
    pub fn against_limit(place: String, name: String, limit: f64, value: &Spread) -> Cell {
        Cell {
            place,
            figure: name,
            value: value.with_range(),
            target: format!("limit: at most {}", figure(limit)),
            could_have_shown: "-".to_owned(),
            judgement: against_limit(limit, value),
        }
    }

    /// Missed before what is behind without a verdict before met, and how far.
    fn urgency(&self) -> (u8, f64) {
        match self.judgement {
            Judgement::Missed(factor) => (3, factor),
            Judgement::DirectionOnly(factor) => (2, factor),
            Judgement::NotSignificant(factor) => (1, factor),
            Judgement::Met | Judgement::Ahead => (0, 0.0),
        }
    }
}

fn most_urgent_first(a: &Cell, b: &Cell) -> Ordering {
    let ((a, by_a), (b, by_b)) = (a.urgency(), b.urgency());
    b.cmp(&a).then(by_b.total_cmp(&by_a))
}

/// The missed cells, farthest behind first, then those behind without a verdict, then those that
/// are behind and not significantly.
pub fn behind(cells: &[Cell]) -> Vec<&Cell> {
    let mut listed: Vec<&Cell> = cells.iter().filter(|cell| cell.urgency().0 > 0).collect();
    listed.sort_by(|a, b| most_urgent_first(a, b));
    listed
}

/// How many targets were missed, how many are behind without being missed, how many were met; and how many
/// figures are ahead without a verdict, which is no target met.
pub fn counts(cells: &[Cell]) -> String {
    let count = |wanted: fn(&Judgement) -> bool| {
        cells.iter().filter(|cell| wanted(&cell.judgement)).count()
    };
    let directions = count(|judgement| matches!(judgement, Judgement::DirectionOnly(_)));
    let mut text = format!(
        "{} of {} targets missed, {} behind ({NOT_SIGNIFICANT})",
        count(|judgement| matches!(judgement, Judgement::Missed(_))),
        cells.len(),
        count(|judgement| matches!(judgement, Judgement::NotSignificant(_))),
    );
    if directions > 0 {
        text.push_str(&format!(", {directions} behind ({DIRECTION_ONLY})"));
    }
    text.push_str(&format!(", {} met", count(|judgement| *judgement == Judgement::Met)));
    let ahead = count(|judgement| *judgement == Judgement::Ahead);
    if ahead > 0 {
        text.push_str(&format!(", {ahead} ahead ({DIRECTION_ONLY})"));
    }
    text
}

/// What is behind its targets, one line each.
pub fn grid(cells: &[Cell]) -> Grid {
    let columns = [
        ("target", Align::Left),
        ("behind", Align::Right),
        ("where", Align::Left),
        ("figure", Align::Left),
        ("measured", Align::Right),
        ("base or limit", Align::Right),
        ("could have shown", Align::Right),
    ];
    Grid::new(&columns, behind(cells).into_iter().map(row).collect())
}

fn row(cell: &Cell) -> Vec<String> {
    let (verdict, factor) = match cell.judgement {
        Judgement::Missed(factor) => ("MISSED", factor),
        Judgement::NotSignificant(factor) => (NOT_SIGNIFICANT, factor),
        Judgement::DirectionOnly(factor) => (DIRECTION_ONLY, factor),
        Judgement::Ahead => ("ahead", 1.0),
        Judgement::Met => ("met", 1.0),
    };
    let behind = match factor.is_finite() {
        true => format!("{factor:.3} x"),
        false => "infinite".to_owned(),
    };
    let texts = [verdict, &behind, &cell.place, &cell.figure, &cell.value, &cell.target];
    texts.into_iter().chain([cell.could_have_shown.as_str()]).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::paired::{Family, Sides};
    use crate::statistics::verdicts::Scale;

    fn repeats(values: &[f64]) -> Vec<(u64, f64)> {
        (0..).zip(values.iter().copied()).collect()
    }

    /// Both sides have a control that differs by about 1 %, or by `noise`.
    fn comparison(first: &[f64], other: &[f64], noise: f64) -> Comparison {
        compared(Scale::Ratio, first, other, noise)
    }

    fn compared(scale: Scale, first: &[f64], other: &[f64], noise: f64) -> Comparison {
        let again = |values: &[f64]| {
            let signs = [1.0, -1.0].into_iter().cycle();
            let noisy = values.iter().zip(signs).map(|(value, sign)| value * (1.0 + sign * noise));
            repeats(&noisy.collect::<Vec<f64>>())
        };
        let mut family = Family::default();
        let place = family.add(Sides {
            kind: "figure".to_owned(),
            scale,
            values: [repeats(first), repeats(other)],
            again: [again(first), again(other)],
            other_day: false,
        });
        family.judge().get(place).cloned().expect("both sides were measured")
    }

    fn judged(better: Better, first: &[f64], other: &[f64], noise: f64) -> Judgement {
        against_base(better, &comparison(first, other, noise))
    }

    fn is(judgement: Judgement, wanted: Judgement) -> bool {
        match (judgement, wanted) {
            (Judgement::Missed(a), Judgement::Missed(b))
            | (Judgement::DirectionOnly(a), Judgement::DirectionOnly(b))
            | (Judgement::NotSignificant(a), Judgement::NotSignificant(b)) => {
                (a - b).abs() < 1e-9 || a == b
            }
            (a, b) => a == b,
        }
    }

    #[test]
    fn significantly_behind_is_missed() {
        let (ten, eight) = ([10.0; 3], [8.0; 3]);
        let (lower, higher) = (Better::Lower, Better::Higher);
        assert_eq!(judged(lower, &ten, &[11.0; 3], 0.01), Judgement::Met);
        assert_eq!(judged(lower, &ten, &ten, 0.01), Judgement::Met);
        assert!(is(judged(lower, &ten, &eight, 0.01), Judgement::Missed(1.25)));
        assert!(is(judged(higher, &eight, &ten, 0.01), Judgement::Missed(1.25)));
        assert_eq!(judged(higher, &eight, &[7.0; 3], 0.01), Judgement::Met);
        // Each side differs from itself by as much.
        assert!(is(judged(lower, &ten, &eight, 0.3), Judgement::NotSignificant(1.25)));
        // Two repeats decide nothing, neither for nor against.
        assert_eq!(judged(lower, &eight[..2], &ten[..2], 0.01), Judgement::Ahead);
        assert!(is(judged(lower, &ten[..2], &eight[..2], 0.01), Judgement::DirectionOnly(1.25)));
    }

    #[test]
    fn a_base_that_has_none_of_it() {
        let lower = Better::Lower;
        assert_eq!(judged(lower, &[0.0; 3], &[0.0; 3], 0.0), Judgement::Met);
        let some = judged(lower, &[0.1, 0.2, 0.1], &[0.0; 3], 0.0);
        assert_eq!(some, Judgement::DirectionOnly(f64::INFINITY), "three repeats are too few");
        let some = judged(lower, &[0.1, 0.2, 0.1, 0.3, 0.1, 0.2], &[0.0; 6], 0.0);
        assert_eq!(some, Judgement::Missed(f64::INFINITY));
        assert_eq!(judged(lower, &[0.0; 3], &[0.1, 0.2, 0.1], 0.0), Judgement::Ahead);
        assert_eq!(judged(Better::Higher, &[5.0], &[0.0], 0.0), Judgement::Ahead);
    }

    /// Shares that were measured: five repeats, and the base has none of it in any.
    #[test]
    fn a_share_is_missed_though_the_base_has_none_of_it() {
        let shares = [31.7, 27.5, 34.9, 30.1, 33.0];
        let of = |first: &[f64], other: &[f64]| {
            against_base(Better::Lower, &compared(Scale::PERCENT, first, other, 0.0))
        };
        assert_eq!(of(&shares, &[0.0; 5]), Judgement::Missed(f64::INFINITY));
        assert_eq!(of(&shares[..3], &[0.0; 3]), Judgement::Missed(f64::INFINITY));
        // None of it in one repeat alone takes nothing out of judgement.
        let one_zero = of(&shares, &[0.0, 1.0, 2.0, 1.0, 1.0]);
        assert!(matches!(one_zero, Judgement::Missed(factor) if factor > 25.0), "{one_zero:?}");
        assert_eq!(of(&[0.0; 3], &[0.0; 3]), Judgement::Met);
        assert_eq!(of(&[0.01; 3], &[0.0; 3]), Judgement::NotSignificant(f64::INFINITY));
        assert_eq!(of(&[0.0; 5], &shares), Judgement::Met);
        // A slowest second without an operation, where more is better.
        let rates = [900.0, 1000.0, 1100.0, 950.0, 1050.0];
        let slowest = compared(Scale::RATE, &[0.0; 5], &rates, 0.0);
        assert_eq!(against_base(Better::Higher, &slowest), Judgement::Missed(f64::INFINITY));
    }

    #[test]
    fn a_limit_holds_in_every_repeat() {
        let value = |values: &[f64]| Spread::of(values.to_vec()).expect("has values");
        assert_eq!(against_limit(100.0, &value(&[50.0, 100.0])), Judgement::Met);
        assert_eq!(against_limit(100.0, &value(&[50.0, 50.0, 120.0])), Judgement::Missed(1.2));
    }

    #[test]
    fn missed_cells_come_first_and_name_their_base() {
        let base = |name: &str, first: &[f64], other: &[f64], noise: f64| {
            let comparison = comparison(first, other, noise);
            let (place, name) = ("fill lz4".to_owned(), name.to_owned());
            Cell::against_base(place, name, Better::Lower, "rocksdb", &comparison)
        };
        let limit = Spread::of(vec![150.0, 90.0]).expect("has values");
        let cells = [
            base("met", &[1.0; 3], &[2.0; 3], 0.01),
            base("noise", &[4.0; 3], &[2.0; 3], 0.9),
            base("a quarter", &[10.0; 3], &[8.0; 3], 0.01),
            Cell::against_limit("fill lz4".into(), "gap, ms".into(), 100.0, &limit),
            base("none", &[1.0; 3], &[0.0; 3], 0.01),
        ];
        let text = format!("{}\n{}", counts(&cells), grid(&cells).text());
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = text.lines().map(words).collect();
        let expected = "2 of 5 targets missed, 1 behind (n.s.), 1 behind (direction only), 1 met";
        assert_eq!(lines[0], expected);
        let limit = "MISSED 1.500 x fill lz4 gap, ms 120 [90.0, 150] limit: at most 100 -";
        assert_eq!(lines[2], limit);
        let base = "MISSED 1.250 x fill lz4 a quarter 10.0 [10.0, 10.0] rocksdb: 8.00 [8.00, 8.00]";
        assert!(lines[3].starts_with(base), "{}", lines[3]);
        assert!(lines[4].starts_with("direction only infinite fill lz4 none 1.00"), "{}", lines[4]);
        assert!(lines[5].starts_with("n.s. 2.000 x fill lz4 noise"), "{}", lines[5]);
        assert_eq!(lines.len(), 6);
        assert!(grid(&cells[..1]).rows.is_empty());
        assert_eq!(counts(&cells[..1]), "0 of 1 targets missed, 0 behind (n.s.), 1 met");
    }
}
