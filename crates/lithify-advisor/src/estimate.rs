//! Ratios of sums over evenly spaced places, with the interval that they are known to.
//!
//! Source: W. G. Cochran, "Sampling Techniques", 3rd edition, 6.4 (ratio estimates) and 8.6
//! (variance of a systematic sample by successive differences).

/// A share, and how far from the truth it may be.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The best guess.
    pub value: f64,
    /// Half the width of the interval that holds the truth in 95 of 100 cases.
    pub half_width: f64,
}

/// The quantile of the normal distribution for 95 %.
const Z: f64 = 1.96;

impl Estimate {
    /// The sum of the second figures over the sum of the first. Each pair is a place, in the order of
    /// the data; `measured_share` is the share of the data that the places hold.
    pub fn of_places(places: &[(f64, f64)], measured_share: f64) -> Estimate {
        let sum_of_first: f64 = places.iter().map(|place| place.0).sum();
        let sum_of_second: f64 = places.iter().map(|place| place.1).sum();
        if sum_of_first <= 0.0 {
            return Estimate::default();
        }
        let value = sum_of_second / sum_of_first;
        let unmeasured = (1.0 - measured_share).max(0.0);
        if places.len() < 2 {
            // One place says nothing about others.
            let half_width = if unmeasured > 0.0 { value } else { 0.0 };
            return Estimate { value, half_width };
        }
        let residual = |place: &(f64, f64)| place.1 - value * place.0;
        let squares: f64 =
            places.windows(2).map(|pair| (residual(&pair[1]) - residual(&pair[0])).powi(2)).sum();
        let count = places.len() as f64;
        let variance = squares / (2.0 * (count - 1.0));
        let half_width = Z * (count * variance * unmeasured).sqrt() / sum_of_first;
        Estimate { value, half_width }
    }

    /// The half width as a share of the value.
    pub fn relative(&self) -> f64 {
        if self.value > 0.0 { self.half_width / self.value } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trend_along_the_data_does_not_widen_the_interval() {
        let trend: Vec<(f64, f64)> = (0..64).map(|i| (100.0, 30.0 + f64::from(i) / 4.0)).collect();
        let estimate = Estimate::of_places(&trend, 0.01);
        assert!((estimate.value - 0.37875).abs() < 1e-9, "{estimate:?}");
        assert!(estimate.relative() < 0.002, "{estimate:?}");
        let mixed: Vec<(f64, f64)> =
            (0..64).map(|i| (100.0, if i % 2 == 0 { 20.0 } else { 50.0 })).collect();
        let estimate = Estimate::of_places(&mixed, 0.01);
        assert!(estimate.relative() > 0.1, "{estimate:?}");
        assert_eq!(Estimate::of_places(&mixed, 1.0).half_width, 0.0);
    }

    #[test]
    fn the_interval_holds_the_truth_about_as_often_as_it_says() {
        // A repeatable generator (xorshift64*) stands for data without a trend.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = move || {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
        };
        let held = (0..400).filter(|_| {
            let places: Vec<(f64, f64)> = (0..64).map(|_| (1.0, 0.2 + 0.4 * next())).collect();
            let estimate = Estimate::of_places(&places, 0.0);
            (estimate.value - 0.4).abs() <= estimate.half_width
        });
        let held = held.count();
        assert!((365..=396).contains(&held), "{held} of 400");
    }

    #[test]
    fn nothing_and_one_place_are_no_certainty() {
        assert_eq!(Estimate::of_places(&[], 0.0), Estimate::default());
        let one = Estimate::of_places(&[(10.0, 5.0)], 0.1);
        assert_eq!((one.value, one.half_width), (0.5, 0.5));
    }
}
