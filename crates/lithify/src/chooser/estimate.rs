//! The mean of a stream of measurements that forgets, and how sure it is.

/// What a measurement still counts when the next one has come: half after 45.
const MEMORY: f64 = 0.985;

/// A sample so many times as large as the mean counts as if it were that: a thread that lost its
/// caches is no property of the codec.
const OUTLIER: f64 = 4.0;

/// A weighted mean, with older samples counting less.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    weight: f64,
    /// The sum of squared weights: `weight² / squared_weight` samples stand behind the mean.
    squared_weight: f64,
    mean: f64,
    /// The weighted sum of squared deviations.
    deviations: f64,
    samples: u64,
}

impl Estimate {
    /// An estimate as it was recorded: of so many samples, with that standard error.
    pub fn recorded(mean: f64, standard_error: f64, samples: u64) -> Self {
        let weight = (samples as f64).min(1.0 / (1.0 - MEMORY));
        let deviations = standard_error * standard_error * weight * (weight - 1.0).max(0.5);
        Estimate { weight, squared_weight: weight, mean, deviations, samples }
    }

    /// Adds a sample.
    pub fn add(&mut self, sample: f64) {
        self.weight = self.weight * MEMORY + 1.0;
        self.squared_weight = self.squared_weight * MEMORY * MEMORY + 1.0;
        self.deviations *= MEMORY;
        let delta = sample - self.mean;
        self.mean += delta / self.weight;
        self.deviations += delta * (sample - self.mean);
        self.samples += 1;
    }

    /// Adds a sample of a time, which is positive and may be spoilt upwards.
    pub fn add_time(&mut self, sample: f64) {
        let is_outlier = self.samples >= 2 && sample > OUTLIER * self.mean;
        self.add(if is_outlier { OUTLIER * self.mean } else { sample });
    }

    /// The mean; `None` without a sample.
    pub fn mean(&self) -> Option<f64> {
        (self.samples > 0).then_some(self.mean)
    }

    /// How many samples there were.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The standard error of the mean; infinite while there are fewer than two samples.
    pub fn standard_error(&self) -> f64 {
        if self.samples < 2 {
            return f64::INFINITY;
        }
        let count = self.weight * self.weight / self.squared_weight;
        let variance = self.deviations / self.weight * count / (count - 1.0).max(0.5);
        (variance / count).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_shrinks_with_samples_and_the_mean_follows_a_change() {
        let mut estimate = Estimate::default();
        assert_eq!((estimate.mean(), estimate.standard_error()), (None, f64::INFINITY));
        for index in 0..100 {
            estimate.add(if index % 2 == 0 { 0.9 } else { 1.1 });
        }
        assert!((estimate.mean().unwrap() - 1.0).abs() < 0.01);
        let error = estimate.standard_error();
        assert!((0.008..0.02).contains(&error), "{error}");
        for _ in 0..150 {
            estimate.add(2.0);
        }
        assert!((estimate.mean().unwrap() - 2.0).abs() < 0.15);
    }

    #[test]
    fn a_spoilt_time_counts_as_four_times_the_mean() {
        let mut estimate = Estimate::default();
        for _ in 0..3 {
            estimate.add_time(10.0);
        }
        estimate.add_time(10_000.0);
        assert!(estimate.mean().unwrap() < 18.0);
    }

    #[test]
    fn what_is_recorded_is_as_sure_as_it_was() {
        let again = Estimate::recorded(0.5, 0.01, 20);
        assert_eq!((again.mean(), again.samples()), (Some(0.5), 20));
        assert!((again.standard_error() - 0.01).abs() < 1e-9, "{}", again.standard_error());
        // However often it is recorded anew.
        let few = (0..10).fold(Estimate::recorded(0.5, 0.01, 3), |few, _| {
            Estimate::recorded(few.mean, few.standard_error(), few.samples)
        });
        assert!((few.standard_error() - 0.01).abs() < 1e-9, "{}", few.standard_error());
    }
}
