//! Figures of two sides that were measured in turn, judged together.
//!
//! Owns: what a report shows of one figure of two sides ([`Comparison`]), the set of all that a
//! report judges ([`Family`]), and what is said under the tables ([`Basis`]). The rule is in
//! [`verdicts`]. Pure. Which figures there are is not known here.

pub(crate) use lithify_report::figure::signed;
use lithify_report::{Bounds, Effect};

use super::figures::{Spread, figure};
use crate::statistics::Interval;
use crate::statistics::verdicts::{
    self, Cell, FALSE_DISCOVERY_RATE, Judged, Layout, Noise, ROUNDS_MIN, Rounds, Scale, Verdict,
    Why,
};

/// Which direction is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

/// How a figure is read: which direction is good, and how it is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// Which direction is good.
    pub better: Better,
    /// How it is compared.
    pub scale: Scale,
}

impl Better {
    /// Of a figure that is compared so.
    pub fn by(self, scale: Scale) -> Reading {
        Reading { better: self, scale }
    }
}

/// Of a figure that is not zero.
impl From<Better> for Reading {
    fn from(better: Better) -> Reading {
        better.by(Scale::Ratio)
    }
}

/// What a comparison says of the first side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Significantly better.
    Better,
    /// Significantly worse.
    Worse,
    /// The difference is not significant.
    NotSignificant,
    /// There is no verdict.
    DirectionOnly(Why),
}

impl Outcome {
    /// Of a verdict, where that direction is good.
    pub fn of(verdict: Verdict, better: Better) -> Outcome {
        match (verdict, better) {
            (Verdict::Greater, Better::Higher) | (Verdict::Smaller, Better::Lower) => {
                Outcome::Better
            }
            (Verdict::Greater | Verdict::Smaller, _) => Outcome::Worse,
            (Verdict::NotSignificant, _) => Outcome::NotSignificant,
            (Verdict::DirectionOnly(why), _) => Outcome::DirectionOnly(why),
        }
    }

    /// In a table.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Better => "better",
            Outcome::Worse => "worse",
            Outcome::NotSignificant => NOT_SIGNIFICANT,
            Outcome::DirectionOnly(_) => DIRECTION_ONLY,
        }
    }
}

/// Not significant.
pub const NOT_SIGNIFICANT: &str = "n.s.";

/// No verdict.
pub const DIRECTION_ONLY: &str = "direction only";

/// A figure of two sides over the repeats.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Of the first side.
    pub first: Spread,
    /// Of the other.
    pub other: Spread,
    /// The A/A control of each side: its second run by its first, repeat by repeat; `None` without.
    pub controls: [Option<Spread>; 2],
    /// First by other: ratio, interval, verdict.
    pub judged: Judged,
}

impl Comparison {
    /// What it says of the first side.
    pub fn outcome(&self, better: Better) -> Outcome {
        Outcome::of(self.judged.verdict, better)
    }

    /// The ratio with its interval, for people.
    pub fn ratio(&self) -> String {
        ratio_text(&self.judged)
    }

    /// The control of a side, for people.
    pub fn control(&self, side: usize) -> String {
        self.controls[side].map_or_else(|| "-".to_owned(), |control| control.with_range())
    }

    /// The smallest ratio that would have been significant, for people.
    pub fn could_have_shown(&self) -> String {
        shown_text(&self.judged)
    }

    /// How many repeats would decide, for people.
    pub fn repeats_to_decide(&self) -> String {
        repeats_text(&self.judged)
    }
}

impl From<&Judged> for lithify_report::Cell {
    fn from(judged: &Judged) -> lithify_report::Cell {
        let is_difference = judged.scale.is_difference();
        let value = if is_difference { judged.difference } else { judged.ratio };
        let Some(value) = value else { return lithify_report::Cell::Missing };
        let bounds = match (judged.interval, judged.range) {
            (Some(Interval { low, high }), _) => Bounds::Interval(low, high),
            (None, Some(Interval { low, high })) => Bounds::Range(low, high),
            (None, None) => Bounds::Unknown,
        };
        lithify_report::Cell::Effect(Effect { value, is_difference, bounds })
    }
}

impl From<Better> for lithify_report::Better {
    fn from(better: Better) -> lithify_report::Better {
        match better {
            Better::Higher => lithify_report::Better::Higher,
            Better::Lower => lithify_report::Better::Lower,
        }
    }
}

impl From<Outcome> for lithify_report::Verdict {
    fn from(outcome: Outcome) -> lithify_report::Verdict {
        match outcome {
            Outcome::Better => lithify_report::Verdict::Better,
            Outcome::Worse => lithify_report::Verdict::Worse,
            Outcome::NotSignificant => lithify_report::Verdict::NotSignificant,
            Outcome::DirectionOnly(_) => lithify_report::Verdict::DirectionOnly,
        }
    }
}

/// A ratio or a difference with its interval.
pub(crate) fn ratio_text(judged: &Judged) -> String {
    lithify_report::Cell::from(judged).text()
}

pub(crate) fn shown_text(judged: &Judged) -> String {
    match judged.could_have_shown {
        None => "-".to_owned(),
        Some(shown) if judged.scale.is_difference() => signed(shown),
        Some(shown) if shown < 1.1 => format!("{shown:.3}"),
        Some(shown) => figure(shown),
    }
}

pub(crate) fn repeats_text(judged: &Judged) -> String {
    match (judged.rounds_to_decide, judged.verdict) {
        (Some(rounds), _) => rounds.to_string(),
        // Nothing on either side: no number of repeats makes a difference of it.
        _ if judged.scale.is_difference() && judged.difference == Some(0.0) => "-".to_owned(),
        (None, Verdict::NotSignificant) if judged.interval.is_some() => "> 30".to_owned(),
        (None, Verdict::DirectionOnly(Why::FewRounds | Why::NoVariance))
            if judged.interval.is_some() =>
        {
            "> 30".to_owned()
        }
        _ => "-".to_owned(),
    }
}

/// What a family judges: one figure of two sides.
#[derive(Clone, Debug, Default)]
pub struct Sides {
    /// Name of the figure: cells of one kind have noise of one size, more or less.
    pub kind: String,
    /// How it is compared.
    pub scale: Scale,
    /// The values of the two sides with their repeats.
    pub values: [Rounds; 2],
    /// The same sides measured again; empty without an A/A control.
    pub again: [Rounds; 2],
    /// True when the two sides were measured on different days.
    pub other_day: bool,
}

/// All that one report judges.
#[derive(Clone, Debug, Default)]
pub struct Family {
    cells: Vec<Cell>,
    noise: Vec<Noise>,
}

impl Family {
    /// Adds a figure of two sides; its place among the results.
    pub fn add(&mut self, sides: Sides) -> usize {
        let Sides { kind, scale, values, again, other_day } = sides;
        let finite = |mut rounds: Rounds| {
            rounds.retain(|(_, value)| value.is_finite());
            rounds
        };
        self.cells.push(Cell {
            kind,
            scale,
            sides: values.map(finite),
            controls: again.map(finite),
            layout: Layout::Paired,
            other_day,
        });
        self.cells.len() - 1
    }

    /// Adds two sides that say something of the noise of a kind, and are not judged.
    pub fn add_noise(&mut self, kind: &str, scale: Scale, sides: [Rounds; 2]) {
        self.noise.push(Noise { kind: kind.to_owned(), scale, sides });
    }

    /// Judges all of them together.
    pub fn judge(&self) -> Findings {
        let judged = verdicts::judge(&self.cells, &self.noise);
        let comparisons: Vec<Option<Comparison>> =
            self.cells.iter().zip(judged).map(|(cell, judged)| comparison(cell, judged)).collect();
        let basis = Basis::of(comparisons.iter().flatten());
        Findings { comparisons, basis }
    }
}

fn comparison(cell: &Cell, judged: Judged) -> Option<Comparison> {
    let spread = |values: &Rounds| Spread::of(values.iter().map(|(_, value)| *value).collect());
    let control = |side: usize| Spread::of(ratios(&cell.controls[side], &cell.sides[side]));
    Some(Comparison {
        first: spread(&cell.sides[0])?,
        other: spread(&cell.sides[1])?,
        controls: [control(0), control(1)],
        judged,
    })
}

/// Ratios of the values of the same repeats; zero by zero is equal.
pub(crate) fn ratios(dividends: &Rounds, divisors: &Rounds) -> Vec<f64> {
    let of_repeat = |repeat: u64| divisors.iter().find(|(other, _)| *other == repeat);
    let ratio = |(repeat, dividend): &(u64, f64)| {
        let (_, divisor) = of_repeat(*repeat)?;
        match (*dividend, *divisor) {
            (0.0, 0.0) => Some(1.0),
            (_, 0.0) => None,
            (dividend, divisor) => Some(dividend / divisor),
        }
    };
    dividends.iter().filter_map(ratio).collect()
}

/// A judged family.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// In the order in which they were added; `None` where a side has no value.
    comparisons: Vec<Option<Comparison>>,
    /// On what the verdicts rest.
    pub basis: Basis,
}

impl Findings {
    /// The comparison at a place.
    pub fn get(&self, place: usize) -> Option<&Comparison> {
        self.comparisons.get(place)?.as_ref()
    }
}

/// On what the verdicts of a report rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Basis {
    /// Figures of two sides.
    pub cells: usize,
    /// Those that were tested.
    pub tested: usize,
    /// Those that are significant.
    pub significant: usize,
    /// How many have no verdict, by reason.
    few_rounds: usize,
    no_variance: usize,
    zeros: usize,
    other_day: usize,
    /// Those with a control of both sides, and of one.
    controlled: [usize; 2],
    /// Those that are compared by their difference.
    differences: usize,
    /// How many repeats would decide the middle one of those that have too few, and of those with
    /// a zero.
    repeats_to_decide: [Option<usize>; 2],
}

impl Basis {
    fn of<'a>(comparisons: impl Iterator<Item = &'a Comparison>) -> Basis {
        let mut basis = Basis::default();
        let mut repeats = [Vec::new(), Vec::new()];
        for Comparison { judged, controls, .. } in comparisons {
            basis.cells += 1;
            basis.differences += usize::from(judged.scale.is_difference());
            basis.tested += usize::from(judged.p.is_some());
            basis.significant += usize::from(judged.verdict.is_significant());
            match controls.iter().flatten().count() {
                2 => basis.controlled[0] += 1,
                1 => basis.controlled[1] += 1,
                _ => {}
            }
            let Verdict::DirectionOnly(why) = judged.verdict else { continue };
            match why {
                Why::FewRounds => basis.few_rounds += 1,
                Why::NoVariance => basis.no_variance += 1,
                Why::Zeros => basis.zeros += 1,
                Why::OtherDay => basis.other_day += 1,
            }
            let of_why = match why {
                Why::FewRounds => &mut repeats[0],
                Why::Zeros => &mut repeats[1],
                Why::NoVariance | Why::OtherDay => continue,
            };
            of_why.push(judged.rounds_to_decide.unwrap_or(usize::MAX));
        }
        basis.repeats_to_decide = repeats.map(|mut rounds| {
            rounds.sort_unstable();
            rounds.get(rounds.len() / 2).copied().filter(|rounds| *rounds < usize::MAX)
        });
        basis
    }

    /// What a reader of the tables has to know, point by point; nothing where nothing was compared.
    pub fn lines(&self) -> Vec<String> {
        if self.cells == 0 {
            return Vec::new();
        }
        let mut lines = vec![
            "ratio: geometric mean over the repeats with its 95 % interval [a, b]; where nothing is \
             known of the noise, with the range of the repeats (a to b)"
                .to_owned(),
        ];
        if self.differences > 0 {
            lines.push(
                "a value with a sign, as +1.50: the mean difference in the figure's unit with its \
                 interval, of figures that may well be zero"
                    .to_owned(),
            );
        }
        if self.tested > 0 {
            lines.push(format!(
                "{} of {} tested differences are significant; of those at most {} % are expected to \
                 be false. n.s.: not significant. could have shown: the smallest ratio, or its \
                 inverse, or difference that would have been significant",
                self.significant,
                self.tested,
                100.0 * FALSE_DISCOVERY_RATE
            ));
        }
        lines.push(self.control_line());
        lines.extend(self.direction_lines());
        lines
    }

    fn control_line(&self) -> String {
        let Basis { cells, controlled: [both, one], .. } = self;
        match (both, one) {
            (0, 0) => "no A/A control: the noise is that of the repeats alone".to_owned(),
            (0, one) => format!(
                "A/A control of one side only, in {one} of {cells}: it can raise the noise, not \
                 lower it"
            ),
            (both, 0) => format!("A/A control of both sides in {both} of {cells}"),
            (both, one) => format!(
                "A/A control of both sides in {both} of {cells}, of one side in {one}: that can \
                 raise the noise, not lower it"
            ),
        }
    }

    /// Why figures have no verdict, and what would decide them.
    fn direction_lines(&self) -> Vec<String> {
        let [few, zeros] = self.repeats_to_decide;
        let decides = match few {
            Some(repeats) => format!("--repeats {repeats} would decide half of them"),
            None => format!(
                "--repeats {ROUNDS_MIN} is the least that can decide, {} decide more",
                ROUNDS_MIN + 2
            ),
        };
        let decides_zeros = match zeros {
            Some(repeats) => format!("--repeats {repeats} would decide half of them"),
            None => "no usual number of repeats decides them".to_owned(),
        };
        let reasons = [
            (
                self.few_rounds,
                format!(
                    "fewer than {ROUNDS_MIN} repeats. {decides}; add an A/A control if there is none"
                ),
            ),
            (
                self.no_variance,
                format!(
                    "too few repeats to know the noise. An A/A control or --repeats {} gives verdicts",
                    ROUNDS_MIN + 2
                ),
            ),
            (
                self.zeros,
                format!(
                    "a value is zero, which has no ratio. An exact test of the signs is left: \
                     {decides_zeros}"
                ),
            ),
            (
                self.other_day,
                "the two sides were measured on different days. Measure both in one run".to_owned(),
            ),
        ];
        let line = |(count, why): (usize, String)| {
            (count > 0).then(|| format!("direction only: {count} of {}: {why}", self.cells))
        };
        reasons.into_iter().filter_map(line).collect()
    }

    /// The same as an indented block of text.
    pub fn text(&self) -> String {
        self.lines().iter().map(|line| format!("  - {line}.\n")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::compare::REPEATS_WANTED;

    fn rounds(values: &[f64]) -> Rounds {
        (0..).zip(values.iter().copied()).collect()
    }

    fn sides(first: &[f64], other: &[f64], again: [&[f64]; 2]) -> Sides {
        Sides {
            kind: "rate".to_owned(),
            scale: Scale::Ratio,
            values: [rounds(first), rounds(other)],
            again: again.map(rounds),
            other_day: false,
        }
    }

    const FIRST: &[f64] = &[10.0, 10.1, 9.9];
    const OTHER: &[f64] = &[20.0, 20.2, 19.8];

    fn findings(all: Vec<Sides>) -> Findings {
        let mut family = Family::default();
        for sides in all {
            family.add(sides);
        }
        family.judge()
    }

    #[test]
    fn a_verdict_is_of_the_first_side() {
        let again: [&[f64]; 2] = [&[10.1, 10.0, 10.0], &[20.1, 20.0, 20.0]];
        let found =
            findings(vec![sides(FIRST, OTHER, again), sides(OTHER, FIRST, [again[1], again[0]])]);
        let comparison = found.get(0).expect("both");
        assert_eq!(comparison.outcome(Better::Lower), Outcome::Better);
        assert_eq!(comparison.outcome(Better::Higher), Outcome::Worse);
        assert!(comparison.ratio().starts_with("0.500 [0.4"), "{}", comparison.ratio());
        assert_eq!(comparison.repeats_to_decide(), "-");
        assert!(comparison.control(1).starts_with("1.01 [0.990, "), "{}", comparison.control(1));
        let text = found.basis.text();
        assert!(text.contains("2 of 2 tested differences are significant"), "{text}");
        assert!(text.contains("A/A control of both sides in 2 of 2"), "{text}");
        assert!(!text.contains("direction only"), "{text}");
    }

    #[test]
    fn few_repeats_have_directions_and_what_would_decide() {
        let again: [&[f64]; 2] = [&[10.3, 10.0], &[19.5, 20.3]];
        let found = findings(vec![sides(&FIRST[..2], &OTHER[..2], again)]);
        let comparison = found.get(0).expect("both");
        assert_eq!(comparison.outcome(Better::Lower).word(), "direction only");
        assert_eq!(
            (comparison.could_have_shown(), comparison.repeats_to_decide()),
            ("-".into(), "3".into())
        );
        let text = found.basis.text();
        assert!(text.contains("1 of 1: fewer than 3 repeats. --repeats 3 would decide"), "{text}");
    }

    /// As the first lines of a report say it.
    #[test]
    fn the_least_that_can_decide_is_one_number() {
        let found = findings(vec![sides(&FIRST[..1], &OTHER[..1], [&[], &[]])]);
        let text = found.basis.text();
        let least =
            format!("--repeats {REPEATS_WANTED} is the least that can decide, 5 decide more");
        assert!(text.contains(&format!("fewer than {REPEATS_WANTED} repeats. {least}")), "{text}");
    }

    #[test]
    fn one_control_is_said_to_be_one() {
        let found = findings(vec![sides(FIRST, OTHER, [&[10.3, 10.0, 9.9], &[]])]);
        let text = found.basis.text();
        assert!(text.contains("A/A control of one side only, in 1 of 1"), "{text}");
        assert!(text.contains("direction only: 1 of 1: too few repeats"), "{text}");
    }

    #[test]
    fn zeros_and_missing_values() {
        let found = findings(vec![
            sides(&[0.0; 3], &[1.0, 0.0, 2.0], [&[], &[]]),
            sides(&[f64::NAN], &[1.0], [&[], &[]]),
            sides(&[0.0; 3], &[0.0; 3], [&[], &[]]),
        ]);
        let zeros = found.get(0).expect("both");
        assert_eq!(zeros.outcome(Better::Lower), Outcome::DirectionOnly(Why::Zeros));
        assert_eq!(zeros.ratio(), "-");
        assert_eq!(found.get(1), None);
        assert_eq!(found.get(2).expect("both").ratio(), "1.00");
        assert_eq!(ratios(&rounds(&[0.0, 3.0]), &rounds(&[0.0, 0.0])), [1.0]);
        let turned = vec![(1, 10.0), (0, 5.0)];
        assert_eq!(ratios(&vec![(0, 10.0), (1, 30.0), (2, 8.0)], &turned), [2.0, 3.0]);
    }

    #[test]
    fn nothing_compared_says_nothing() {
        assert_eq!(Family::default().judge().basis.text(), "");
    }
}
