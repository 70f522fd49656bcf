//! Variances of few repeats, moderated by those of other cells of the same kind.
//!
//! With three rounds a cell's own variance has two degrees of freedom, too few for any verdict.
//! Cells of one kind (the same figure in other steps, phases or arms) have noise of similar size. How
//! similar is estimated from the spread of their variances: the more alike, the more they lend.
//! This is the moderated variance of G. K. Smyth, "Linear models and empirical Bayes methods for
//! assessing differential expression in microarray experiments" (Statistical Applications in
//! Genetics and Molecular Biology 3, 2004), section 6.2: true variances follow a scaled inverse
//! chi-square distribution, whose degrees of freedom come from the spread of log variances.
//!
//! More careful than there:
//! - the spread of the log variances is taken one standard error higher, so that few cells lend
//!   little;
//! - the prior variance is the geometric mean of the kind, which is above Smyth's estimate;
//! - cells of a kind share sides, so they lend at most half of their degrees of freedom.

use std::collections::BTreeMap;

use statrs::function::gamma::digamma;

/// Fewest variances by which a kind lends.
const VARIANCES_MIN: usize = 3;

/// A variance with its degrees of freedom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Variance {
    pub(super) value: f64,
    pub(super) freedom: f64,
}

impl Variance {
    /// Of values whose mean is not known, and not below `least`; `None` with fewer than two.
    pub(super) fn about_mean(values: &[f64], least: f64) -> Option<Variance> {
        let freedom = values.len().checked_sub(1).filter(|freedom| *freedom > 0)? as f64;
        let mean = super::estimate::mean(values);
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Variance { value: (squares / freedom).max(least), freedom })
    }

    /// Of values whose mean is zero, and not below `least`; `None` without any.
    pub(super) fn about_zero(values: &[f64], least: f64) -> Option<Variance> {
        let freedom = Some(values.len()).filter(|freedom| *freedom > 0)? as f64;
        let squares: f64 = values.iter().map(|value| value * value).sum();
        Some(Variance { value: (squares / freedom).max(least), freedom })
    }

    /// The mean of two variances of different size: degrees of freedom by Satterthwaite.
    pub(super) fn mean(one: Variance, other: Variance) -> Variance {
        Variance::weighted([one, other], [1.0, 1.0])
    }

    /// The weighted mean of two variances of different size.
    pub(super) fn weighted(variances: [Variance; 2], weights: [f64; 2]) -> Variance {
        let parts = [0, 1].map(|side| weights[side] * variances[side].value);
        let sum = parts[0] + parts[1];
        let squares =
            parts[0].powi(2) / variances[0].freedom + parts[1].powi(2) / variances[1].freedom;
        Variance { value: sum / (weights[0] + weights[1]), freedom: sum * sum / squares }
    }

    /// Two estimates of one variance together.
    pub(super) fn with(self, other: Variance) -> Variance {
        let freedom = self.freedom + other.freedom;
        let sum = self.value * self.freedom + other.value * other.freedom;
        Variance { value: sum / freedom, freedom }
    }
}

/// What a kind says of the variance of a cell before it is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Prior(Variance);

impl Prior {
    /// The variance of a cell of the kind with its own.
    pub(super) fn moderate(&self, own: Variance) -> Variance {
        self.0.with(own)
    }

    /// That of the kind.
    pub(super) fn variance(&self) -> Variance {
        self.0
    }

    fn of(variances: &[Variance]) -> Option<Prior> {
        let count = variances.len();
        if count < VARIANCES_MIN {
            return None;
        }
        // The expectation of the logarithm of an estimate is below that of the variance.
        let logs: Vec<f64> = variances
            .iter()
            .map(|v| v.value.ln() - (digamma(v.freedom / 2.0) - (v.freedom / 2.0).ln()))
            .collect();
        let middle = super::estimate::mean(&logs);
        let freedom = (count - 1) as f64;
        let spread = logs.iter().map(|log| (log - middle).powi(2)).sum::<f64>() / freedom;
        let spread = spread * (1.0 + (2.0 / freedom).sqrt());
        let of_estimates = variances.iter().map(|v| trigamma(v.freedom / 2.0)).sum::<f64>();
        let of_kind = spread - of_estimates / count as f64;
        let most = variances.iter().map(|v| v.freedom).sum::<f64>() / 2.0;
        let lent = match of_kind {
            excess if excess > 0.0 => 2.0 * trigamma_inverse(excess),
            _ => most,
        };
        Some(Prior(Variance { value: middle.exp(), freedom: lent.min(most) }))
    }
}

/// A kind: the name of a figure, and whether it is judged by differences.
pub(super) type Kind<'a> = (&'a str, bool);

/// The priors of all kinds that have enough variances.
pub(super) fn priors<'a>(
    cells: impl Iterator<Item = (Kind<'a>, Variance)>,
    noise: impl Iterator<Item = (Kind<'a>, Variance)>,
) -> BTreeMap<Kind<'a>, Prior> {
    let mut kinds: BTreeMap<Kind<'a>, Vec<Variance>> = BTreeMap::new();
    for (kind, variance) in cells.chain(noise) {
        kinds.entry(kind).or_default().push(variance);
    }
    kinds.into_iter().filter_map(|(kind, variances)| Some((kind, Prior::of(&variances)?))).collect()
}

/// The second derivative of the logarithm of the gamma function, for positive numbers: by the
/// recurrence up to 10, from there on by its asymptotic series.
fn trigamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < 10.0 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    let series = 1.0 / 6.0 - square * (1.0 / 30.0 - square * (1.0 / 42.0 - square / 30.0));
    sum + 1.0 / x + square / 2.0 + square / x * series
}

/// Where [`trigamma`], which falls, has a value: by halving.
fn trigamma_inverse(value: f64) -> f64 {
    let (mut low, mut high) = (1e-6_f64, 1e6_f64);
    for _ in 0..100 {
        let middle = (low * high).sqrt();
        if trigamma(middle) > value {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low * high).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trigamma_and_its_inverse() {
        let squared = std::f64::consts::PI.powi(2);
        assert!((trigamma(1.0) - squared / 6.0).abs() < 1e-10);
        assert!((trigamma(0.5) - squared / 2.0).abs() < 1e-10);
        for x in [0.2, 0.5, 1.0, 3.7, 50.0] {
            assert!((trigamma_inverse(trigamma(x)) / x - 1.0).abs() < 1e-9, "{x}");
        }
    }

    #[test]
    fn variances_and_their_freedom() {
        let close = |v: Variance, value: f64, freedom: f64| {
            (v.value - value).abs() < 1e-12 && (v.freedom - freedom).abs() < 1e-9
        };
        let about_mean = Variance::about_mean(&[1.0, 2.0, 3.0], 1e-6).expect("three");
        assert!(close(about_mean, 1.0, 2.0));
        assert!(close(Variance::about_zero(&[3.0, 4.0], 1e-6).expect("two"), 12.5, 2.0));
        assert_eq!(
            (Variance::about_mean(&[1.0], 1.0), Variance::about_zero(&[], 1.0)),
            (None, None)
        );
        let same = Variance { value: 2.0, freedom: 3.0 };
        assert!(close(Variance::mean(same, same), 2.0, 6.0));
        // A side that is much noisier decides alone.
        let quiet = Variance { value: 2e-6, freedom: 3.0 };
        assert!(Variance::mean(same, quiet).freedom < 3.001);
        assert!(close(same.with(Variance { value: 5.0, freedom: 1.0 }), 2.75, 4.0));
        // Nothing is known better than to the resolution.
        assert!(close(Variance::about_mean(&[1.0, 1.0], 1e-6).expect("two"), 1e-6, 1.0));
    }

    #[test]
    fn kinds_lend_more_the_more_alike_they_are() {
        let kind = |factor: f64| -> Vec<Variance> {
            (0..20).map(|n| Variance { value: factor.powi(n % 5), freedom: 8.0 }).collect()
        };
        let lent = |variances: &[Variance]| Prior::of(variances).expect("enough").0.freedom;
        assert_eq!(lent(&kind(1.0)), 80.0, "half of all");
        let (alike, unlike) = (lent(&kind(2.0)), lent(&kind(10.0)));
        assert!(alike > unlike && unlike < 1.0, "{alike} {unlike}");
        assert!(lent(&kind(2.0)[..5]) < alike, "few cells lend less");
        assert_eq!(Prior::of(&kind(1.0)[..2]), None);
    }
}
