//! What one cell alone says: its effect, and the variances that it shows.

use super::pooling::Variance;
use super::{Cell, Interval, Layout, Rounds};

/// The logarithms of the ratios of the rounds that both sides have; `None` where a value has none.
pub(super) fn log_ratios([above, below]: &[Rounds; 2]) -> Option<Vec<f64>> {
    let of_round = |round: u64| below.iter().find(|(other, _)| *other == round);
    let pairs = above.iter().filter_map(|(round, value)| Some((*value, of_round(*round)?.1)));
    pairs.map(|(above, below)| Some(logarithm(above)? - logarithm(below)?)).collect()
}

fn logarithm(value: f64) -> Option<f64> {
    (value > 0.0 && value.is_finite()).then(|| value.ln())
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// What the cell alone says of its effect and of its variance.
pub(super) struct Estimate {
    /// Logarithm of the ratio.
    pub(super) effect: f64,
    pub(super) rounds: usize,
    /// The smallest and the largest ratio of a round.
    pub(super) range: Option<Interval>,
    /// The variance of the effect in units of the cell's own variance.
    pub(super) scale: f64,
    /// Of the rounds and the controls of both sides together; `None` without any.
    pub(super) pooled: Option<Variance>,
    /// The variance is not taken below these.
    pub(super) at_least: Vec<f64>,
    /// What is lent to other cells of the kind.
    pub(super) of_kind: Vec<Variance>,
}

impl Estimate {
    pub(super) fn of(cell: &Cell) -> Option<Estimate> {
        match cell.layout {
            Layout::Paired => Estimate::paired(cell),
            Layout::Unpaired => Estimate::unpaired(cell),
        }
    }

    fn paired(cell: &Cell) -> Option<Estimate> {
        let ratios = log_ratios(&cell.sides)?;
        let rounds = ratios.len();
        if rounds == 0 {
            return None;
        }
        let own = Variance::about_mean(&ratios);
        let [first, other] = [0, 1].map(|side| control(cell, side));
        // The controls' variances are each twice that of a side; their mean is that of a ratio.
        let controls = first.zip(other).map(|(first, other)| Variance::mean(first, other));
        // One control says nothing of the other side: it can raise the variance, not lower it.
        let alone = first.xor(other).map(|control| control.value);
        Some(Estimate {
            effect: mean(&ratios),
            rounds,
            range: (rounds > 1).then(|| Interval {
                low: ratios.iter().copied().fold(f64::INFINITY, f64::min).exp(),
                high: ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max).exp(),
            }),
            scale: 1.0 / rounds as f64,
            pooled: match (own, controls) {
                (Some(own), Some(controls)) => Some(own.with(controls)),
                (own, controls) => own.or(controls),
            },
            at_least: own.map(|own| own.value).into_iter().chain(alone).collect(),
            of_kind: match first.zip(other) {
                Some((first, other)) => own.into_iter().chain([first, other]).collect(),
                None => own.into_iter().collect(),
            },
        })
    }

    fn unpaired(cell: &Cell) -> Option<Estimate> {
        let logs = |side: usize| -> Option<Vec<f64>> {
            cell.sides[side].iter().map(|(_, value)| logarithm(*value)).collect()
        };
        let (first, other) = (logs(0)?, logs(1)?);
        let rounds = first.len().min(other.len());
        if rounds == 0 {
            return None;
        }
        let scale = 1.0 / first.len() as f64 + 1.0 / other.len() as f64;
        let both = Variance::about_mean(&first).zip(Variance::about_mean(&other));
        let own = both.map(|(one, two)| {
            Variance::weighted([one, two], [1.0 / first.len() as f64, 1.0 / other.len() as f64])
        });
        // A control's variance is that of two values of one side.
        let controls = [0, 1].into_iter().filter_map(|side| control(cell, side));
        let at_least = controls.map(|control| control.value / 2.0);
        Some(Estimate {
            effect: mean(&first) - mean(&other),
            rounds,
            range: None,
            scale,
            pooled: own,
            at_least: own.map(|own| own.value).into_iter().chain(at_least).collect(),
            of_kind: own.into_iter().collect(),
        })
    }
}

/// The variance that a side's A/A control shows: about zero, for one side is compared with itself.
fn control(cell: &Cell, side: usize) -> Option<Variance> {
    let again = &cell.controls[side];
    if again.is_empty() {
        return None;
    }
    Variance::about_zero(&log_ratios(&[again.clone(), cell.sides[side].clone()])?)
}
