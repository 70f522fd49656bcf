//! How throughput grows with the number of clients: the universal scalability law, fitted.
//!
//! `X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1))`: lambda is the rate of one client,
//! sigma what they wait for each other (0 to 1), kappa what they cost each other. With kappa the
//! curve has a peak at `N* = sqrt((1 - sigma) / kappa)`; without it is Amdahl's.
//!
//! Owns: the fit ([`fit`]): the best of a grid of sigma and kappa, lambda in closed form for each,
//! then least squares over all three inside their bounds; and the range of what follows from it, by
//! fits to residuals drawn anew ([`Ranges`]). [`report`] is its table.
//!
//! Promises: pure and deterministic. A sigma or kappa of 0 is the bound, not a finding: clients that
//! gain from each other would be below it.

pub mod report;
mod solve;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;

use crate::random::Random;

/// A measured rate: the number of clients, and operations per second.
pub type Point = (u64, f64);

/// Fewest numbers of clients that a curve of three parameters is fitted to.
pub const COUNTS_MIN: usize = 6;

/// Fits to residuals drawn anew.
const RESAMPLES: u64 = 200;

/// The share of those fits inside a range.
const RANGE_SHARE: f64 = 0.95;

/// Seed of the draws.
const SEED: u64 = 20_151_118;

/// A curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Curve {
    /// Rate of one client.
    pub lambda: f64,
    /// Contention.
    pub sigma: f64,
    /// Coherency.
    pub kappa: f64,
}

impl Curve {
    /// The rate of `clients`.
    pub fn rate(&self, clients: f64) -> f64 {
        self.lambda * self.gain(clients)
    }

    /// The rate of `clients` in units of that of one.
    fn gain(&self, clients: f64) -> f64 {
        let others = clients - 1.0;
        clients / (1.0 + self.sigma * others + self.kappa * clients * others)
    }

    /// The number of clients at the peak, N*; `None` for a curve without one.
    pub fn peak_clients(&self) -> Option<f64> {
        (self.kappa > 0.0).then(|| ((1.0 - self.sigma) / self.kappa).sqrt())
    }

    /// The rate at the peak; without one the limit that the curve comes near to, infinite when
    /// there is no contention either.
    pub fn most(&self) -> f64 {
        match self.peak_clients() {
            Some(clients) => self.rate(clients),
            None => self.lambda / self.sigma,
        }
    }
}

/// The middle of what fits to residuals drawn anew gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranges {
    /// Least and most of the numbers of clients at the peak; infinite without a peak.
    pub peak_clients: [f64; 2],
    /// Least and most of the rates there.
    pub most: [f64; 2],
}

/// A fitted curve with how well it fits.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The curve.
    pub curve: Curve,
    /// Part of the variance that it explains.
    pub r_squared: f64,
    /// What was measured less the curve, point by point.
    pub residuals: Vec<(u64, f64)>,
    /// How far what follows from it can be believed.
    pub ranges: Ranges,
}

/// Why there is no fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoFit {
    /// So many numbers of clients are not enough.
    Counts(usize),
    /// A rate is none.
    Rate,
}

impl fmt::Display for NoFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoFit::Counts(counts) => write!(
                f,
                "{counts} numbers of clients are too few for a fit, which needs {COUNTS_MIN}"
            ),
            NoFit::Rate => f.write_str("a rate is not above 0"),
        }
    }
}

impl std::error::Error for NoFit {}

/// Fits a curve to points; a number of clients may occur more than once.
///
/// # Errors
/// Too few numbers of clients, a rate that is none.
pub fn fit(points: &[Point]) -> Result<Fit, NoFit> {
    let counts: BTreeSet<u64> = points.iter().map(|(clients, _)| *clients).collect();
    if counts.len() < COUNTS_MIN {
        return Err(NoFit::Counts(counts.len()));
    }
    if counts.contains(&0) || points.iter().any(|(_, rate)| !(rate.is_finite() && *rate > 0.0)) {
        return Err(NoFit::Rate);
    }
    Ok(fit_any(points))
}

/// Fits without asking whether that makes sense.
fn fit_any(points: &[Point]) -> Fit {
    let curve = solve::best(points);
    let residuals: Vec<(u64, f64)> = points
        .iter()
        .map(|(clients, rate)| (*clients, rate - curve.rate(*clients as f64)))
        .collect();
    let mean = points.iter().map(|(_, rate)| rate).sum::<f64>() / points.len() as f64;
    let variance: f64 = points.iter().map(|(_, rate)| (rate - mean).powi(2)).sum();
    let unexplained: f64 = residuals.iter().map(|(_, residual)| residual.powi(2)).sum();
    let ranges = ranges(&curve, &residuals);
    Fit { curve, r_squared: 1.0 - unexplained / variance, residuals, ranges }
}

/// Fits to the curve with residuals drawn anew, with replacement.
fn ranges(curve: &Curve, residuals: &[(u64, f64)]) -> Ranges {
    let resamples: Vec<Curve> = (0..RESAMPLES)
        .map(|stream| {
            let mut random = Random::new(SEED, stream);
            let mut draw = || residuals[random.below(residuals.len() as u64) as usize].1;
            let drawn = |(clients, _): &(u64, f64)| {
                (*clients, (curve.rate(*clients as f64) + draw()).max(f64::MIN_POSITIVE))
            };
            solve::from(*curve, &residuals.iter().map(drawn).collect::<Vec<_>>())
        })
        .collect();
    let middle = |value: fn(&Curve) -> f64| {
        let mut values: Vec<f64> = resamples.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        let beyond = ((1.0 - RANGE_SHARE) / 2.0 * values.len() as f64) as usize;
        [values[beyond], values[values.len() - 1 - beyond]]
    };
    Ranges {
        peak_clients: middle(|curve| curve.peak_clients().unwrap_or(f64::INFINITY)),
        most: middle(Curve::most),
    }
}
