//! How many rounds a report needs for a cell to be among its findings.
//!
//! With more rounds every cell of the report is tested with less error, and cells are tested that
//! had too few rounds. So the whole report is projected: the p-value of every cell that could be
//! tested with enough rounds, and the limit of Benjamini and Hochberg over all of them.

use super::{
    FREEDOM_MAX, FREEDOM_MIN, Limit, ROUNDS_MIN, SIGN_ROUNDS_MIN, Test, Why, sign_p, two_sided_p,
};

/// Most rounds that are named as what would decide a cell.
pub(super) const ROUNDS_NAMED_MAX: usize = 30;

/// What decides how a p-value falls with the number of rounds.
#[derive(Clone, Copy)]
pub(super) enum Growth {
    /// An effect with a variance.
    OfEffect {
        effect: f64,
        /// Of the effect with one round.
        variance: f64,
        prior_freedom: f64,
        /// Degrees of freedom that each round after the first adds, and each round with its
        /// controls.
        freedom: [f64; 2],
    },
    /// Signs of so many rounds.
    OfSigns { ups: usize, downs: usize, rounds: usize },
    /// Nothing is known of the noise.
    Unknown,
}

impl Growth {
    /// The p-value with so many rounds, if effect and variance stay as they are.
    fn p(self, rounds: usize) -> f64 {
        match self {
            Growth::OfEffect { effect, variance, prior_freedom, freedom: [later, each] } => {
                let count = rounds as f64;
                let freedom = prior_freedom + later * (count - 1.0) + each * count;
                let error = (variance / count).sqrt();
                match freedom >= FREEDOM_MIN {
                    true => two_sided_p(effect / error, freedom.min(FREEDOM_MAX)),
                    false => 1.0,
                }
            }
            Growth::OfSigns { ups, downs, rounds: of } if of > 0 && rounds >= SIGN_ROUNDS_MIN => {
                let (most, least) = (ups.max(downs), ups.min(downs));
                sign_p(most * rounds / of, (least * rounds).div_ceil(of))
            }
            Growth::OfSigns { .. } | Growth::Unknown => 1.0,
        }
    }
}

impl Test {
    /// The p-value in a report of so many rounds; `None` for what no number of rounds tests.
    fn projected(&self, rounds: usize) -> Option<f64> {
        match self.why {
            Some(Why::OtherDay) => None,
            _ if self.rounds == 0 => None,
            _ if rounds <= self.rounds => Some(self.p.unwrap_or(1.0)),
            _ => Some(self.growth.p(rounds)),
        }
    }
}

/// For each cell that is no finding the fewest rounds with which it would be one.
pub(super) fn rounds_to_decide(tests: &[Test], limit: Limit) -> Vec<Option<usize>> {
    let mut named = vec![None; tests.len()];
    let is_open = |test: &Test| !test.verdict(limit).is_significant();
    if !tests.iter().any(is_open) {
        return named;
    }
    for rounds in ROUNDS_MIN..=ROUNDS_NAMED_MAX {
        let values: Vec<Option<f64>> = tests.iter().map(|test| test.projected(rounds)).collect();
        let found = Limit::of(values.iter().flatten().copied()).found;
        for ((test, value), named) in tests.iter().zip(values).zip(&mut named) {
            let enters = rounds > test.rounds && value.is_some_and(|p| p <= found);
            if named.is_none() && enters && is_open(test) {
                *named = Some(rounds);
            }
        }
    }
    named
}
