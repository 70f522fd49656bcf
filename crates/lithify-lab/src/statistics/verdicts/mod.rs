//! Verdicts: which differences between two sides are significant, with one rule for all reports.
//!
//! The unit is a [`Cell`]: one figure of two sides over the rounds in which both were measured in
//! turn. All cells of a report are judged together ([`judge`]):
//!
//! 1. The effect is the mean of the logarithms of the rounds' ratios: the geometric mean ratio.
//! 2. Its variance is that of the rounds and of the A/A controls of both sides, moderated by the
//!    variances of all cells of the same kind (`pooling`: Smyth 2004, with fewer degrees of
//!    freedom than there). It is never below what the cell's own rounds or one control show.
//! 3. The two-sided p-value is that of the t distribution with the degrees of freedom of that
//!    variance.
//! 4. Cells are significant by the procedure of Benjamini and Hochberg (1995) over all cells that
//!    could be tested: at most [`FALSE_DISCOVERY_RATE`] of the findings are expected to be false.
//!
//! A ratio of zeros has no logarithm. Such cells are judged by an exact sign test of the rounds'
//! differences, which needs [`SIGN_ROUNDS_MIN`] rounds; with fewer they have a direction only.
//! `simulation` measures how often the rule is wrong and what it finds.
//!
//! Pure and deterministic. Which direction is good is not known here.

mod estimate;
mod pooling;
#[cfg(test)]
mod simulation;

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::function::beta::beta_reg;

use super::Interval;
use estimate::{Estimate, log_ratios};
use pooling::{Prior, Variance};

/// The expected share of false findings among the findings of a report.
pub const FALSE_DISCOVERY_RATE: f64 = 0.05;

/// Fewest rounds after which there is a verdict.
pub const ROUNDS_MIN: usize = 3;

/// Fewest rounds after which a sign test can be significant: two of 2^6 outcomes are as extreme.
pub const SIGN_ROUNDS_MIN: usize = 6;

/// Fewest degrees of freedom of a variance that verdicts may rest on.
const FREEDOM_MIN: f64 = 4.0;

/// Fewest degrees of freedom of a variance that gives an interval.
const INTERVAL_FREEDOM_MIN: f64 = 2.0;

/// Most degrees of freedom: the tails of measured noise are heavier than those of the normal
/// distribution.
const FREEDOM_MAX: f64 = 30.0;

/// Most rounds that are named as what would decide a cell.
const ROUNDS_NAMED_MAX: usize = 30;

/// Values with the rounds that they are of.
pub type Rounds = Vec<(u64, f64)>;

/// How the two sides were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// In turn: values of one round are a pair.
    Paired,
    /// In two sessions: rounds of one number have nothing in common.
    Unpaired,
}

/// Why the layout of a cell allows no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// Fewer than [`ROUNDS_MIN`] rounds.
    FewRounds,
    /// The variance has too few degrees of freedom.
    NoVariance,
    /// A value is zero or less, and there are fewer than [`SIGN_ROUNDS_MIN`] rounds.
    Zeros,
    /// The sides were measured on different days.
    OtherDay,
}

/// One figure of two sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Cells of one kind have noise of one size, more or less: the name of the figure.
    pub kind: String,
    /// The side above the line, and the one below it.
    pub sides: [Rounds; 2],
    /// The same sides measured again, in the same rounds; empty without an A/A control.
    pub controls: [Rounds; 2],
    /// How they were measured.
    pub layout: Layout,
    /// True when the sides were measured on different days: no verdict.
    pub other_day: bool,
}

/// A ratio whose variance says something of its kind, and that is judged by nobody.
#[derive(Clone, Debug, PartialEq)]
pub struct Noise {
    /// The name of the figure.
    pub kind: String,
    /// Two sides that were measured in turn.
    pub sides: [Rounds; 2],
}

/// What a cell says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The first side is significantly above the other.
    Greater,
    /// It is significantly below.
    Smaller,
    /// The difference is not significant.
    NotSignificant,
    /// There is no verdict; the direction is that of the ratio.
    DirectionOnly(Why),
}

/// A judged cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// Geometric mean of the rounds' ratios; `None` where a value is zero or less.
    pub ratio: Option<f64>,
    /// Its 95 % interval, by itself: not widened for the number of cells. `None` without a usable
    /// variance.
    pub interval: Option<Interval>,
    /// The smallest and the largest of the rounds' ratios; `None` with one, or where sides are no
    /// pairs.
    pub range: Option<Interval>,
    /// What it says.
    pub verdict: Verdict,
    /// Two-sided; `None` without a test.
    pub p: Option<f64>,
    /// The smallest ratio above 1 (or its inverse) that would have been significant here.
    pub could_have_shown: Option<f64>,
    /// Fewest rounds with which a ratio as large as this one would be significant, if there is no
    /// verdict and it is at most thirty.
    pub rounds_to_decide: Option<usize>,
}

impl Verdict {
    /// True for a finding.
    pub fn is_significant(self) -> bool {
        matches!(self, Verdict::Greater | Verdict::Smaller)
    }
}

/// Judges all cells of a report together.
pub fn judge(cells: &[Cell], noise: &[Noise]) -> Vec<Judged> {
    let estimates: Vec<Option<Estimate>> = cells.iter().map(Estimate::of).collect();
    let priors = pooling::priors(
        cells.iter().zip(&estimates).flat_map(|(cell, estimate)| {
            let variances = estimate.iter().flat_map(|estimate| &estimate.of_kind);
            variances.map(|variance| (cell.kind.as_str(), *variance))
        }),
        noise.iter().filter_map(|noise| {
            Some((noise.kind.as_str(), Variance::about_mean(&log_ratios(&noise.sides)?)?))
        }),
    );
    let tests: Vec<Test> = cells
        .iter()
        .zip(&estimates)
        .map(|(cell, estimate)| Test::of(cell, estimate.as_ref(), priors.get(cell.kind.as_str())))
        .collect();
    let limit = Limit::of(&tests);
    tests.iter().map(|test| test.judged(limit)).collect()
}

/// A cell on its way to a verdict.
struct Test {
    /// Logarithm of the ratio.
    effect: Option<f64>,
    range: Option<Interval>,
    /// Standard error of the effect, and its degrees of freedom.
    error: Option<(f64, f64)>,
    /// How the error shrinks with rounds: variance of a round, prior degrees of freedom, rounds,
    /// whether both sides have a control.
    growth: Option<Growth>,
    p: Option<f64>,
    /// Whether the first side is above the other.
    is_above: bool,
    why: Option<Why>,
}

/// What decides how many rounds are enough.
#[derive(Clone, Copy)]
struct Growth {
    variance: f64,
    prior_freedom: f64,
    freedom_per_round: f64,
    sides: f64,
}

impl Test {
    fn of(cell: &Cell, estimate: Option<&Estimate>, prior: Option<&Prior>) -> Test {
        match estimate {
            Some(estimate) => Test::of_ratios(cell, estimate, prior),
            None => Test::of_signs(cell),
        }
    }

    fn of_ratios(cell: &Cell, estimate: &Estimate, prior: Option<&Prior>) -> Test {
        let moderated = match (estimate.pooled, prior) {
            (Some(own), Some(prior)) => Some(prior.moderate(own)),
            (None, Some(prior)) => Some(prior.variance()),
            (own, None) => own,
        };
        let usable = moderated.filter(|variance| variance.freedom >= INTERVAL_FREEDOM_MIN);
        let error = usable.map(|variance| {
            let value = estimate.at_least.iter().copied().fold(variance.value, f64::max);
            (value, variance.freedom.min(FREEDOM_MAX))
        });
        let effect = estimate.effect;
        let why = match error {
            _ if cell.other_day => Some(Why::OtherDay),
            _ if estimate.rounds < ROUNDS_MIN => Some(Why::FewRounds),
            Some((_, freedom)) if freedom >= FREEDOM_MIN => None,
            _ => Some(Why::NoVariance),
        };
        let growth = error.map(|(variance, _)| Growth {
            variance,
            prior_freedom: prior.map_or(0.0, |prior| prior.variance().freedom),
            freedom_per_round: estimate.pooled.map_or(1.0, |pooled| {
                pooled.freedom / estimate.rounds.saturating_sub(1).max(1) as f64
            }),
            sides: estimate.scale * estimate.rounds as f64,
        });
        let error = error.map(|(variance, freedom)| ((variance * estimate.scale).sqrt(), freedom));
        let tested = error.filter(|_| why.is_none());
        Test {
            effect: Some(effect),
            range: estimate.range,
            p: tested.map(|(error, freedom)| two_sided_p(effect / error, freedom)),
            error,
            growth,
            is_above: effect > 0.0,
            why,
        }
    }

    /// Zeros: an exact test of the signs of the rounds' differences.
    fn of_signs(cell: &Cell) -> Test {
        let [above, below] = &cell.sides;
        let differences: Vec<f64> = match cell.layout {
            Layout::Unpaired => Vec::new(),
            Layout::Paired => above
                .iter()
                .filter_map(|(round, value)| {
                    let of_round = below.iter().find(|(other, _)| other == round)?;
                    Some(value - of_round.1)
                })
                .collect(),
        };
        let rounds = differences.len();
        let ups = differences.iter().filter(|difference| **difference > 0.0).count();
        let downs = differences.iter().filter(|difference| **difference < 0.0).count();
        let is_equal = rounds > 0 && ups + downs == 0;
        let why = match rounds {
            _ if cell.other_day => Some(Why::OtherDay),
            _ if is_equal && rounds >= ROUNDS_MIN => None,
            rounds if rounds < ROUNDS_MIN => Some(Why::FewRounds),
            rounds if rounds < SIGN_ROUNDS_MIN => Some(Why::Zeros),
            _ => None,
        };
        let p = if is_equal { 1.0 } else { sign_p(ups, downs) };
        Test {
            effect: is_equal.then_some(0.0),
            range: None,
            error: None,
            growth: None,
            p: why.is_none().then_some(p),
            is_above: ups > downs,
            why,
        }
    }

    fn judged(&self, limit: Limit) -> Judged {
        let verdict = match (self.why, self.p) {
            (Some(why), _) => Verdict::DirectionOnly(why),
            (None, Some(p)) if p <= limit.found && self.is_above => Verdict::Greater,
            (None, Some(p)) if p <= limit.found => Verdict::Smaller,
            _ => Verdict::NotSignificant,
        };
        let interval = self.effect.zip(self.error).map(|(effect, (error, freedom))| {
            let reach = t_quantile(0.05, freedom) * error;
            Interval { low: (effect - reach).exp(), high: (effect + reach).exp() }
        });
        let tested = self.error.filter(|_| self.why.is_none());
        let shown = tested.map(|(error, freedom)| (t_quantile(limit.next, freedom) * error).exp());
        let undecided = !verdict.is_significant() && self.why != Some(Why::OtherDay);
        Judged {
            ratio: self.effect.map(f64::exp),
            interval,
            range: self.range,
            verdict,
            p: self.p,
            could_have_shown: shown,
            rounds_to_decide: self
                .effect
                .zip(self.growth)
                .filter(|_| undecided)
                .and_then(|(effect, growth)| growth.rounds_to_decide(effect, limit.next)),
        }
    }
}

impl Growth {
    /// Fewest rounds with which an effect of that size would be significant.
    fn rounds_to_decide(self, effect: f64, p: f64) -> Option<usize> {
        let is_enough = |rounds: usize| {
            let rounds = rounds as f64;
            let freedom = self.prior_freedom + self.freedom_per_round * (rounds - 1.0);
            let error = (self.variance * self.sides / rounds).sqrt();
            freedom >= FREEDOM_MIN
                && effect.abs() >= t_quantile(p, freedom.min(FREEDOM_MAX)) * error
        };
        // More rounds are never worse: halving.
        let (mut low, mut high) = (ROUNDS_MIN, ROUNDS_NAMED_MAX + 1);
        while low < high {
            let middle = (low + high) / 2;
            if is_enough(middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        (low <= ROUNDS_NAMED_MAX).then_some(low)
    }
}

/// By which p-value cells are significant.
#[derive(Clone, Copy)]
struct Limit {
    /// The largest p-value of a finding; negative without any.
    found: f64,
    /// The p-value that one more finding would need.
    next: f64,
}

impl Limit {
    /// Benjamini and Hochberg's: the largest p(k) that is at most k/m of the rate.
    fn of(tests: &[Test]) -> Limit {
        let mut values: Vec<f64> = tests.iter().filter_map(|test| test.p).collect();
        values.sort_by(f64::total_cmp);
        let all = values.len().max(1) as f64;
        let threshold = |count: usize| FALSE_DISCOVERY_RATE * count as f64 / all;
        let last = (1..=values.len()).rev().find(|count| values[count - 1] <= threshold(*count));
        let found = last.unwrap_or(0);
        Limit {
            found: last.map_or(-1.0, |count| values[count - 1]),
            next: threshold((found + 1).min(values.len().max(1))),
        }
    }
}

/// The two-sided p-value of a t statistic.
fn two_sided_p(t: f64, freedom: f64) -> f64 {
    match t * t {
        square if square.is_finite() => {
            beta_reg(freedom / 2.0, 0.5, (freedom / (freedom + square)).clamp(0.0, 1.0))
        }
        _ => 0.0,
    }
}

/// What the t statistic has to reach for a two-sided p-value.
fn t_quantile(p: f64, freedom: f64) -> f64 {
    match StudentsT::new(0.0, 1.0, freedom) {
        Ok(distribution) => distribution.inverse_cdf(1.0 - p / 2.0),
        // A distribution without degrees of freedom reaches nothing.
        Err(_) => f64::INFINITY,
    }
}

/// Two-sided p-value of so many differences up and down, when each is as likely.
fn sign_p(ups: usize, downs: usize) -> f64 {
    let (all, most) = ((ups + downs) as u64, ups.max(downs) as u64);
    let tail: f64 =
        (most..=all).map(|count| statrs::function::factorial::binomial(all, count)).sum();
    (2.0 * tail / 2f64.powi(all as i32)).min(1.0)
}

#[cfg(test)]
mod tests;
