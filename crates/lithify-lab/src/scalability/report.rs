//! Fitted curves as a table, with what they miss point by point.

use super::{Curve, Fit, Point, fit};
use crate::report::figures::figure;
use crate::report::tables::{Align, Grid};

/// Rates of one thing by the number of clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Whose: an arm, or where it was published.
    pub name: String,
    /// Of what: load, query, an operation.
    pub what: String,
    /// The rates.
    pub points: Vec<Point>,
    /// CPUs of the machine, where they are known.
    pub cpus: Option<usize>,
}

/// By how much each curve misses its points, line by line.
pub(crate) fn residuals(fits: &[(&Series, Fit)]) -> Vec<String> {
    let percent = |curve: &Curve, (clients, residual): &(u64, f64)| {
        let percent = 100.0 * residual / curve.rate(*clients as f64);
        format!("{clients}: {percent:+.1}")
    };
    let line = |(Series { name, what, .. }, fit): &(&Series, Fit)| {
        let misses = fit.residuals.iter().map(|residual| percent(&fit.curve, residual));
        format!("{name}, {what}: {}", misses.collect::<Vec<_>>().join(", "))
    };
    fits.iter().map(line).collect()
}

/// The curves of those series that have enough points.
pub(crate) fn fits(series: &[Series]) -> Vec<(&Series, Fit)> {
    series.iter().filter_map(|series| Some((series, fit(&series.points).ok()?))).collect()
}

/// Curves with their parameters, peaks and how far those can be believed.
pub(crate) fn grid(fits: &[(&Series, Fit)]) -> Grid {
    let columns = [
        ("figure", Align::Left),
        ("points", Align::Right),
        ("lambda", Align::Right),
        ("sigma", Align::Right),
        ("kappa", Align::Right),
        ("R2", Align::Right),
        ("N*", Align::Right),
        ("95 % of resamples", Align::Right),
        ("N*/CPUs", Align::Right),
        ("Xmax", Align::Right),
        ("95 % of resamples", Align::Right),
        ("engine", Align::Left),
    ];
    let row = |(Series { name, what, points, cpus }, fit): &(&Series, Fit)| {
        let peak = fit.curve.peak_clients();
        let range = |[low, high]: [f64; 2]| format!("[{}, {}]", unlimited(low), unlimited(high));
        let per_cpu = peak.zip(*cpus).map(|(peak, cpus)| peak / cpus as f64);
        vec![
            what.clone(),
            points.len().to_string(),
            figure(fit.curve.lambda),
            format!("{:.4}", fit.curve.sigma),
            format!("{:.5}", fit.curve.kappa),
            format!("{:.3}", fit.r_squared),
            unlimited(peak.unwrap_or(f64::INFINITY)),
            range(fit.ranges.peak_clients),
            per_cpu.map_or_else(|| "-".to_owned(), figure),
            unlimited(fit.curve.most()),
            range(fit.ranges.most),
            name.clone(),
        ]
    };
    Grid::new(&columns, fits.iter().map(row).collect())
}

/// A figure, or `none` for what has no limit.
pub(crate) fn unlimited(value: f64) -> String {
    if value.is_infinite() { "none".to_owned() } else { figure(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_with_enough_points_have_a_row() {
        let curve = Curve { lambda: 1000.0, sigma: 0.1, kappa: 0.01 };
        let points = |counts: &[u64]| counts.iter().map(|n| (*n, curve.rate(*n as f64))).collect();
        let series = |name: &str, counts: &[u64]| Series {
            name: name.to_owned(),
            what: "query".to_owned(),
            points: points(counts),
            cpus: Some(2),
        };
        let all = [series("a", &[1, 2, 3, 4, 8, 16]), series("b", &[1, 2, 4])];
        let fits = fits(&all);
        assert_eq!(fits.len(), 1, "three points make no curve");
        let row = &grid(&fits).rows[0];
        assert_eq!(row[..7], ["query", "6", "1000", "0.1000", "0.01000", "1.000", "9.49"]);
        assert!(residuals(&fits)[0].starts_with("a, query: 1: "));
    }
}
