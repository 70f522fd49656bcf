//! Bootstrap intervals: how far a median, or a ratio of two medians, could be elsewhere by the luck
//! of the repeats alone.
//!
//! The repeats are drawn again with replacement, `RESAMPLES` times, and the middle 95 % of the
//! results are the interval (percentile method). With three repeats that is their whole range:
//! few repeats know little, and the interval says so.

use super::median;
use crate::linkbench::random::Random;

/// Times that the repeats are drawn again. The bounds of an interval move by less than the width
/// of a printed digit from there on.
const RESAMPLES: usize = 2_000;

/// Share of the results beyond each bound of a 95 % interval.
const TAIL: f64 = 0.025;

/// The seed of all drawing: the same repeats always give the same interval.
const SEED: u64 = 0x1173_0515;

/// A 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// The interval of the median of `values`, for example of ratios of runs that were measured in
/// turn. `None` without any; a point with one.
pub fn of_median(values: &[f64]) -> Option<Interval> {
    let mut random = Random::new(SEED, values.len() as u64);
    let mut drawn = Vec::with_capacity(values.len());
    resampled(|| median_of_draw(values, &mut random, &mut drawn))
}

/// The interval of the ratio of two medians whose runs have nothing to do with each other. `None`
/// when a side has none, or a divisor is 0.
pub fn of_ratio_of_medians(dividends: &[f64], divisors: &[f64]) -> Option<Interval> {
    if divisors.contains(&0.0) {
        return None;
    }
    let mut random = Random::new(SEED, (dividends.len() * 1_000 + divisors.len()) as u64);
    let mut drawn = Vec::new();
    resampled(|| {
        let dividend = median_of_draw(dividends, &mut random, &mut drawn)?;
        Some(dividend / median_of_draw(divisors, &mut random, &mut drawn)?)
    })
}

fn median_of_draw(values: &[f64], random: &mut Random, drawn: &mut Vec<f64>) -> Option<f64> {
    drawn.clear();
    drawn.extend(values.iter().map(|_| values[random.below(values.len() as u64) as usize]));
    drawn.sort_by(f64::total_cmp);
    median(drawn)
}

/// The middle 95 % of what `draw` gives.
fn resampled(mut draw: impl FnMut() -> Option<f64>) -> Option<Interval> {
    let mut results = (0..RESAMPLES).map(|_| draw()).collect::<Option<Vec<f64>>>()?;
    results.sort_by(f64::total_cmp);
    let beyond = (RESAMPLES as f64 * TAIL) as usize;
    Some(Interval { low: results[beyond], high: results[RESAMPLES - 1 - beyond] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_are_known_by_their_range() {
        assert_eq!(of_median(&[]), None);
        assert_eq!(of_median(&[2.0]), Some(Interval { low: 2.0, high: 2.0 }));
        // The smallest of three is the median of a draw in 7 of 27.
        assert_eq!(of_median(&[3.0, 1.0, 2.0]), Some(Interval { low: 1.0, high: 3.0 }));
        assert_eq!(of_median(&[5.0; 9]), Some(Interval { low: 5.0, high: 5.0 }));
    }

    #[test]
    fn many_values_leave_their_tails_out() {
        // The median of a draw of 1 to 101: binomial, its 2.5 % point is the 41st value.
        let values: Vec<f64> = (1..=101).map(f64::from).collect();
        let Interval { low, high } = of_median(&values).expect("has values");
        assert!((39.0..=44.0).contains(&low), "{low}");
        assert!((58.0..=63.0).contains(&high), "{high}");
        assert_eq!(of_median(&values), of_median(&values), "the seed is fixed");
    }

    #[test]
    fn ratios_of_medians() {
        let interval = of_ratio_of_medians(&[10.0, 11.0, 12.0], &[5.0, 5.0]);
        assert_eq!(interval, Some(Interval { low: 2.0, high: 2.4 }));
        assert_eq!(of_ratio_of_medians(&[1.0], &[]), None);
        assert_eq!(of_ratio_of_medians(&[1.0], &[0.0]), None);
        assert_eq!(of_ratio_of_medians(&[], &[1.0]), None);
    }
}
