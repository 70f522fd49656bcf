//! Least squares for the curve: a grid to start from, then damped steps inside the bounds.

use super::{Curve, Point};

/// Sigma stays below 1.
const SIGMA_MAX: f64 = 0.999_999;

/// Values of sigma and kappa in the grid beside 0: four in each power of ten from 10^-5 on.
const GRID: i32 = 20;

const STEPS_MAX: usize = 200;

/// A step that improves less than this part of the error is the last one.
const GAIN_MIN: f64 = 1e-13;

/// Damping at which no step improves any more.
const DAMPING_MAX: f64 = 1e14;

/// The best curve.
pub(super) fn best(points: &[Point]) -> Curve {
    let values =
        || std::iter::once(0.0).chain((0..GRID).map(|i| 10f64.powf(f64::from(i - GRID) / 4.0)));
    let candidates = values().flat_map(|sigma| values().map(move |kappa| (sigma, kappa)));
    let start = candidates
        .map(|(sigma, kappa)| with_lambda(points, sigma, kappa))
        .min_by(|a, b| error(points, a).total_cmp(&error(points, b)));
    from(start.unwrap_or(Curve { lambda: 1.0, sigma: 0.0, kappa: 0.0 }), points)
}

/// The curve with these two and the lambda that fits best, in closed form.
fn with_lambda(points: &[Point], sigma: f64, kappa: f64) -> Curve {
    let unit = Curve { lambda: 1.0, sigma, kappa };
    let (mut products, mut squares) = (0.0, 0.0);
    for (clients, rate) in points {
        let gain = unit.gain(*clients as f64);
        products += rate * gain;
        squares += gain * gain;
    }
    Curve { lambda: products / squares, ..unit }
}

/// Sum of the squares of what the curve misses.
fn error(points: &[Point], curve: &Curve) -> f64 {
    points.iter().map(|(clients, rate)| (rate - curve.rate(*clients as f64)).powi(2)).sum()
}

/// Steps from a curve to one that fits better, as far as that goes.
pub(super) fn from(start: Curve, points: &[Point]) -> Curve {
    let (mut curve, mut least, mut damping) = (start, error(points, &start), 1e-3);
    for _ in 0..STEPS_MAX {
        let next = step(points, &curve, damping);
        let reached = error(points, &next);
        if next.lambda > 0.0 && reached < least {
            let gain = (least - reached) / least;
            (curve, least) = (next, reached);
            damping /= 3.0;
            if gain < GAIN_MIN {
                break;
            }
        } else {
            damping *= 4.0;
            if damping > DAMPING_MAX {
                break;
            }
        }
    }
    curve
}

/// One damped step. A parameter at its bound that would leave it stays.
fn step(points: &[Point], curve: &Curve, damping: f64) -> Curve {
    let (mut normal, mut gradient) = ([[0.0; 3]; 3], [0.0; 3]);
    for (clients, rate) in points {
        let n = *clients as f64;
        let (gain, expected) = (curve.gain(n), curve.rate(n));
        let falls = expected * gain / n;
        let slopes = [gain, -falls * (n - 1.0), -falls * n * (n - 1.0)];
        for (row, slope) in slopes.iter().enumerate() {
            gradient[row] += slope * (rate - expected);
            for (column, other) in slopes.iter().enumerate() {
                normal[row][column] += slope * other;
            }
        }
    }
    let values = [curve.lambda, curve.sigma, curve.kappa];
    for index in 1..3 {
        if values[index] <= 0.0 && gradient[index] <= 0.0 {
            gradient[index] = 0.0;
            for other in 0..3 {
                normal[index][other] = 0.0;
                normal[other][index] = 0.0;
            }
            normal[index][index] = 1.0;
        }
    }
    for (index, row) in normal.iter_mut().enumerate() {
        row[index] *= 1.0 + damping;
    }
    let change = solved(normal, gradient);
    Curve {
        lambda: values[0] + change[0],
        sigma: (values[1] + change[1]).clamp(0.0, SIGMA_MAX),
        kappa: (values[2] + change[2]).max(0.0),
    }
}

/// Solves three linear equations by elimination; the matrix has a diagonal above 0.
fn solved(mut matrix: [[f64; 3]; 3], mut right: [f64; 3]) -> [f64; 3] {
    for pivot in 0..3 {
        for row in pivot + 1..3 {
            let factor = matrix[row][pivot] / matrix[pivot][pivot];
            for column in pivot..3 {
                matrix[row][column] -= factor * matrix[pivot][column];
            }
            right[row] -= factor * right[pivot];
        }
    }
    let mut solution = [0.0; 3];
    for row in (0..3).rev() {
        let known: f64 = (row + 1..3).map(|column| matrix[row][column] * solution[column]).sum();
        solution[row] = (right[row] - known) / matrix[row][row];
    }
    solution
}
