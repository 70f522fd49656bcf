//! What one cell alone says: its effect, and the variances that it shows.

use super::pooling::Variance;
use super::{Cell, Interval, Layout, Rounds, Scale};

/// The differences on a scale of the rounds that both sides have; `None` where a value has no
/// place on it.
pub(super) fn differences(scale: Scale, [above, below]: &[Rounds; 2]) -> Option<Vec<f64>> {
    let of_round = |round: u64| below.iter().find(|(other, _)| *other == round);
    let pairs = above.iter().filter_map(|(round, value)| Some((*value, of_round(*round)?.1)));
    pairs.map(|(above, below)| Some(scale.place(above)? - scale.place(below)?)).collect()
}

/// The values of the rounds that both sides have, or all where sides are no pairs.
pub(super) fn compared(cell: &Cell) -> [Vec<f64>; 2] {
    [0, 1].map(|side| {
        let other = &cell.sides[1 - side];
        let is_compared = |round: u64| match cell.layout {
            Layout::Paired => other.iter().any(|(of_other, _)| *of_other == round),
            Layout::Unpaired => true,
        };
        let values = cell.sides[side].iter().filter(|(round, _)| is_compared(*round));
        values.map(|(_, value)| *value).collect()
    })
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// What the cell alone says of its effect and of its variance.
pub(super) struct Estimate {
    /// On the cell's scale: the logarithm of the ratio, or the difference.
    pub(super) effect: f64,
    pub(super) rounds: usize,
    /// The smallest and the largest effect of a round.
    pub(super) range: Option<Interval>,
    /// The variance of the effect in units of the cell's own variance.
    pub(super) share: f64,
    /// Of the rounds and the controls of both sides together; `None` without any.
    pub(super) pooled: Option<Variance>,
    /// The variance is not taken below these.
    pub(super) at_least: Vec<f64>,
    /// What is lent to other cells of the kind.
    pub(super) of_kind: Vec<Variance>,
    /// Degrees of freedom that each round after the first adds, and each round with its controls.
    pub(super) freedom: [f64; 2],
}

impl Estimate {
    pub(super) fn of(cell: &Cell) -> Option<Estimate> {
        match cell.layout {
            Layout::Paired => Estimate::paired(cell),
            Layout::Unpaired => Estimate::unpaired(cell),
        }
    }

    fn paired(cell: &Cell) -> Option<Estimate> {
        let effects = differences(cell.scale, &cell.sides)?;
        let rounds = effects.len();
        if rounds == 0 {
            return None;
        }
        let least = cell.scale.variance_min();
        let own = Variance::about_mean(&effects, least);
        let [first, other] = [0, 1].map(|side| control(cell, side));
        // The controls' variances are each twice that of a side; their mean is that of a ratio.
        let controls = first.zip(other).map(|(first, other)| Variance::mean(first, other));
        // One control says nothing of the other side: it can raise the variance, not lower it.
        let alone = first.xor(other).map(|control| control.value);
        let lent = own
            .into_iter()
            .chain(first.zip(other).map(|_| [first, other]).into_iter().flatten().flatten());
        Some(Estimate {
            effect: mean(&effects),
            rounds,
            range: (rounds > 1).then(|| Interval {
                low: effects.iter().copied().fold(f64::INFINITY, f64::min),
                high: effects.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            }),
            share: 1.0 / rounds as f64,
            pooled: match (own, controls) {
                (Some(own), Some(controls)) => Some(own.with(controls)),
                (own, controls) => own.or(controls),
            },
            at_least: own.map(|own| own.value).into_iter().chain(alone).collect(),
            of_kind: lent.filter(|variance| cell.scale.lends(*variance)).collect(),
            freedom: [1.0, controls.map_or(0.0, |all| all.freedom / rounds as f64)],
        })
    }

    fn unpaired(cell: &Cell) -> Option<Estimate> {
        let places = |side: usize| -> Option<Vec<f64>> {
            cell.sides[side].iter().map(|(_, value)| cell.scale.place(*value)).collect()
        };
        let (first, other) = (places(0)?, places(1)?);
        let rounds = first.len().min(other.len());
        if rounds == 0 {
            return None;
        }
        let least = cell.scale.variance_min();
        let share = 1.0 / first.len() as f64 + 1.0 / other.len() as f64;
        let both = Variance::about_mean(&first, least).zip(Variance::about_mean(&other, least));
        let own = both.map(|(one, two)| {
            Variance::weighted([one, two], [1.0 / first.len() as f64, 1.0 / other.len() as f64])
        });
        // A control's variance is that of two values of one side.
        let controls = [0, 1].into_iter().filter_map(|side| control(cell, side));
        let at_least = controls.map(|control| control.value / 2.0);
        let of_round = own.map_or(2.0, |own| own.freedom / (rounds as f64 - 1.0));
        Some(Estimate {
            effect: mean(&first) - mean(&other),
            rounds,
            range: None,
            share,
            pooled: own,
            at_least: own.map(|own| own.value).into_iter().chain(at_least).collect(),
            of_kind: own.into_iter().filter(|own| cell.scale.lends(*own)).collect(),
            freedom: [of_round, 0.0],
        })
    }
}

/// The variance that a side's A/A control shows: about zero, for one side is compared with itself.
fn control(cell: &Cell, side: usize) -> Option<Variance> {
    let again = &cell.controls[side];
    if again.is_empty() {
        return None;
    }
    let both = [again.clone(), cell.sides[side].clone()];
    Variance::about_zero(&differences(cell.scale, &both)?, cell.scale.variance_min())
}
