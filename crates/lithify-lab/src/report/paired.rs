//! One figure of two sides that were measured in turn, and what the same side twice differs by.
//!
//! Owns: the ratio of two sides repeat by repeat, the control beside it, and whether a difference
//! is larger than what the control differs by. Pure. Which figures there are is not known here.

use super::figures::Spread;
use crate::statistics::band::Band;
use crate::statistics::bootstrap::{self, Interval};

/// Which direction is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

/// A figure of two sides over the repeats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Of the first side.
    pub first: Spread,
    /// Of the other.
    pub other: Spread,
    /// First by other, repeat by repeat; `None` where the other alone is 0 in a repeat.
    pub ratio: Option<Spread>,
    /// The 95 % interval of the median of those ratios.
    pub interval: Option<Interval>,
    /// The first side's second run by its first, repeat by repeat; `None` without a control.
    pub control: Option<Spread>,
}

/// What a comparison says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The first side is better, by more than the control differs.
    Better,
    /// It is worse.
    Worse,
    /// Not told from what the control differs by, or from equal.
    WithinBand,
    /// There is no control, or a side has nothing to compare.
    None,
}

impl Comparison {
    /// Compares values with the repeats that they are of. `again` is the first side a second time,
    /// empty without a control. `None` when a side has no value.
    pub fn of(
        first: &[(u64, f64)],
        other: &[(u64, f64)],
        again: &[(u64, f64)],
    ) -> Option<Comparison> {
        let spread = |values: &[(u64, f64)]| Spread::of(values.iter().map(|v| v.1).collect());
        // A repeat in which the other side is 0 has no ratio: the rest alone would be a choice.
        let ratios =
            if has_no_ratio(first, other) { vec![] } else { ratios_by_repeat(first, other) };
        Some(Comparison {
            first: spread(first)?,
            other: spread(other)?,
            interval: bootstrap::of_median(&ratios),
            ratio: Spread::of(ratios),
            control: Spread::of(ratios_by_repeat(again, first)),
        })
    }

    /// [`Comparison::verdict`]; where there is no control, by whether the ranges of two repeats or
    /// more of both sides lie apart.
    pub fn judged(&self, better: Better) -> Verdict {
        let verdict = self.verdict(better);
        let several = self.first.count >= 2 && self.other.count >= 2;
        if verdict != Verdict::None || !several {
            return verdict;
        }
        match self.first.overlaps(&self.other) {
            true => Verdict::WithinBand,
            false if (self.first.median > self.other.median) == (better == Better::Higher) => {
                Verdict::Better
            }
            false => Verdict::Worse,
        }
    }

    /// The ranges must lie apart: that of the ratios, and that of the control widened to hold 1.
    pub fn verdict(&self, better: Better) -> Verdict {
        let (Some(ratio), Some(control)) = (self.ratio, self.control) else { return Verdict::None };
        let band = Band::of_control(control.min, control.max);
        match better {
            _ if band.touches(ratio.min, ratio.max) => Verdict::WithinBand,
            Better::Higher if ratio.min > band.high => Verdict::Better,
            Better::Lower if ratio.max < band.low => Verdict::Better,
            _ => Verdict::Worse,
        }
    }
}

/// Whether the divisor alone is zero in a repeat.
fn has_no_ratio(dividends: &[(u64, f64)], divisors: &[(u64, f64)]) -> bool {
    let is_zero = |repeat: u64| divisors.contains(&(repeat, 0.0));
    dividends.iter().any(|(repeat, dividend)| *dividend != 0.0 && is_zero(*repeat))
}

/// Ratios of the values of the same repeats; zero by zero is equal.
fn ratios_by_repeat(dividends: &[(u64, f64)], divisors: &[(u64, f64)]) -> Vec<f64> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(min: f64, max: f64) -> Option<Spread> {
        Some(Spread { median: (min + max) / 2.0, min, max, count: 5 })
    }

    fn verdict(better: Better, ratio: Option<Spread>, control: Option<Spread>) -> Verdict {
        let side = spread(1.0, 1.0).unwrap_or(Spread { median: 1.0, min: 1.0, max: 1.0, count: 1 });
        Comparison { first: side, other: side, ratio, interval: None, control }.verdict(better)
    }

    #[test]
    fn no_verdict_inside_what_the_control_differs_by() {
        let band = spread(0.96, 1.02);
        assert_eq!(verdict(Better::Higher, spread(1.2, 1.4), band), Verdict::Better);
        assert_eq!(verdict(Better::Higher, spread(0.7, 0.8), band), Verdict::Worse);
        assert_eq!(verdict(Better::Lower, spread(0.7, 0.8), band), Verdict::Better);
        assert_eq!(verdict(Better::Lower, spread(1.2, 1.4), band), Verdict::Worse);
        // 0.96 one way is 1.042 the other way.
        assert_eq!(verdict(Better::Higher, spread(1.03, 1.2), band), Verdict::WithinBand);
        assert_eq!(verdict(Better::Higher, spread(0.9, 1.2), band), Verdict::WithinBand);
        // A control that differs always to one side does not move the place of equal.
        assert_eq!(
            verdict(Better::Lower, spread(0.98, 1.0), spread(1.05, 1.1)),
            Verdict::WithinBand
        );
        assert_eq!(verdict(Better::Lower, spread(0.5, 0.6), None), Verdict::None);
        assert_eq!(verdict(Better::Lower, None, band), Verdict::None);
    }

    #[test]
    fn ratios_are_of_the_same_repeat() {
        let first = [(0, 10.0), (1, 30.0), (2, 8.0)];
        let second = [(1, 10.0), (0, 5.0)];
        assert_eq!(ratios_by_repeat(&first, &second), [2.0, 3.0]);
        assert_eq!(ratios_by_repeat(&[(0, 0.0)], &[(0, 0.0)]), [1.0]);
        assert!(ratios_by_repeat(&[(0, 1.0)], &[(0, 0.0)]).is_empty());
    }

    #[test]
    fn repeats_without_a_ratio_leave_none() {
        let first = [(0, 0.0), (1, 3.0), (2, 0.0)];
        let other = [(0, 0.0), (1, 0.0), (2, 0.0)];
        let comparison = Comparison::of(&first, &other, &[]).expect("both");
        assert_eq!((comparison.ratio, comparison.interval), (None, None), "3 by 0 is not 1");
        assert_eq!(comparison.judged(Better::Lower), Verdict::WithinBand);
        let zeros = Comparison::of(&other, &other, &[]).expect("both");
        assert_eq!(zeros.ratio.map(|ratio| ratio.median), Some(1.0));
    }

    #[test]
    fn a_control_is_the_first_side_again() {
        let comparison = Comparison::of(&[(0, 10.0)], &[(0, 5.0)], &[(0, 11.0)]).expect("both");
        assert_eq!(comparison.ratio.map(|ratio| ratio.median), Some(2.0));
        assert_eq!(comparison.control.map(|control| control.median), Some(1.1));
        let alone = Comparison::of(&[(0, 10.0)], &[(0, 5.0)], &[]).expect("both");
        assert_eq!(alone.control, None);
        assert_eq!(Comparison::of(&[(0, 10.0)], &[], &[]), None);
    }
}
