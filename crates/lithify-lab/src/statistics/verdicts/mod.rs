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
//! Figures that may well be zero (shares of a time, gaps) are judged by the rounds' differences in
//! their own unit, in the same way. Each figure declares its [`Scale`]; no data decides it.
//!
//! A figure on the ratio scale that is zero after all has no logarithm. Such cells are judged by an
//! exact sign test of the rounds' differences, which needs [`SIGN_ROUNDS_MIN`] rounds or more; with
//! fewer they have a direction only.
//! `simulation` measures how often the rule is wrong and what it finds.
//!
//! Pure and deterministic. Which direction is good is not known here.

mod estimate;
mod pooling;
mod projection;
#[cfg(test)]
mod simulation;

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::function::beta::beta_reg;

use super::Interval;
use estimate::{Estimate, compared, differences};
use pooling::{Prior, Variance};
use projection::Growth;

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

/// No logarithm of a ratio is taken to be known better than that: a thousandth.
const LOG_RESOLUTION: f64 = 0.001;

/// How a figure is compared. It is declared beside the name of the figure.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Scale {
    /// By ratios: for figures that are not zero.
    #[default]
    Ratio,
    /// By differences in the figure's own unit: for figures that may well be zero.
    Difference {
        /// No difference is taken to be known better than that, in the figure's unit.
        resolution: f64,
    },
}

impl Scale {
    /// Of shares in percent.
    pub const PERCENT: Scale = Scale::Difference { resolution: 0.1 };

    /// Of times without an operation, in milliseconds.
    pub const GAP_MS: Scale = Scale::Difference { resolution: 1.0 };

    /// Of rates per second that may fall to nothing.
    pub const RATE: Scale = Scale::Difference { resolution: 1.0 };

    /// True for differences.
    pub fn is_difference(self) -> bool {
        matches!(self, Scale::Difference { .. })
    }

    /// Where a value lies; `None` where it has no place.
    fn place(self, value: f64) -> Option<f64> {
        match self {
            Scale::Ratio => (value > 0.0 && value.is_finite()).then(|| value.ln()),
            Scale::Difference { .. } => value.is_finite().then_some(value),
        }
    }

    /// An effect for people: a ratio, or a difference.
    fn shown(self, effect: f64) -> f64 {
        match self {
            Scale::Ratio => effect.exp(),
            Scale::Difference { .. } => effect,
        }
    }

    fn shown_interval(self, Interval { low, high }: Interval) -> Interval {
        Interval { low: self.shown(low), high: self.shown(high) }
    }

    /// The smallest variance of a round's effect.
    fn variance_min(self) -> f64 {
        match self {
            Scale::Ratio => LOG_RESOLUTION * LOG_RESOLUTION,
            Scale::Difference { resolution } => resolution * resolution,
        }
    }

    /// Whether a variance says something of other cells. Zeros beside zeros do not: they say that
    /// there was none of it, not how it varies where there is some.
    fn lends(self, variance: Variance) -> bool {
        !self.is_difference() || variance.value > self.variance_min()
    }
}

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
    /// How it is compared.
    pub scale: Scale,
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
    /// How it is compared.
    pub scale: Scale,
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
    /// How it was compared. Interval, range and what could have been shown are ratios, or
    /// differences in the figure's unit.
    pub scale: Scale,
    /// Geometric mean of the rounds' ratios, or, for differences, the ratio of the means; `None`
    /// where a value is zero or less, or the mean below the line is.
    pub ratio: Option<f64>,
    /// Mean difference of the rounds, above less below, in the figure's unit; `None` where a side
    /// has no value.
    pub difference: Option<f64>,
    /// The 95 % interval of what is compared, by itself: not widened for the number of cells.
    /// `None` without a usable variance.
    pub interval: Option<Interval>,
    /// The smallest and the largest of the rounds' ratios or differences; `None` with one, or where
    /// sides are no pairs.
    pub range: Option<Interval>,
    /// What it says.
    pub verdict: Verdict,
    /// Two-sided; `None` without a test.
    pub p: Option<f64>,
    /// The smallest ratio above 1 (or its inverse), or the smallest difference either way, that
    /// would have been significant here.
    pub could_have_shown: Option<f64>,
    /// Fewest rounds of the whole report with which this cell would be among its findings, if all
    /// effects and variances stayed as they are; `None` where it is one, or with more than thirty.
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
    let (tests, limit) = tested(cells, noise);
    let advice = projection::rounds_to_decide(&tests, limit);
    tests.iter().zip(advice).map(|(test, rounds)| test.judged(limit, rounds)).collect()
}

/// All cells on their way to verdicts, and the limit of the findings.
fn tested(cells: &[Cell], noise: &[Noise]) -> (Vec<Test>, Limit) {
    let estimates: Vec<Option<Estimate>> = cells.iter().map(Estimate::of).collect();
    let kind_of = |cell: &Cell| cell.scale.is_difference();
    let priors = pooling::priors(
        cells.iter().zip(&estimates).flat_map(|(cell, estimate)| {
            let variances = estimate.iter().flat_map(|estimate| &estimate.of_kind);
            variances.map(move |variance| ((cell.kind.as_str(), kind_of(cell)), *variance))
        }),
        noise.iter().filter_map(|noise| {
            let values = differences(noise.scale, &noise.sides)?;
            let variance = Variance::about_mean(&values, noise.scale.variance_min())?;
            let kind = (noise.kind.as_str(), noise.scale.is_difference());
            noise.scale.lends(variance).then_some((kind, variance))
        }),
    );
    let of_cell = |(cell, estimate): (&Cell, &Option<Estimate>)| {
        let prior = priors.get(&(cell.kind.as_str(), kind_of(cell)));
        match estimate {
            Some(estimate) => Test::of_effect(cell, estimate, prior),
            None => Test::of_signs(cell),
        }
    };
    let tests: Vec<Test> = cells.iter().zip(&estimates).map(of_cell).collect();
    let limit = Limit::of(tests.iter().filter_map(|test| test.p));
    (tests, limit)
}

/// A cell on its way to a verdict.
struct Test {
    scale: Scale,
    /// On the scale: the logarithm of the ratio, or the difference.
    effect: Option<f64>,
    /// The same on the other scale.
    aside: Option<f64>,
    range: Option<Interval>,
    /// Standard error of the effect, and its degrees of freedom.
    error: Option<(f64, f64)>,
    /// What more rounds would say.
    growth: Growth,
    rounds: usize,
    p: Option<f64>,
    /// Whether the first side is above the other.
    is_above: bool,
    why: Option<Why>,
}

impl Test {
    fn of_effect(cell: &Cell, estimate: &Estimate, prior: Option<&Prior>) -> Test {
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
        let least = cell.scale.variance_min();
        // None of it on either side in any round: equal, however little is known of the noise.
        let is_equal = cell.scale.is_difference()
            && effect == 0.0
            && estimate.pooled.is_some_and(|own| own.value <= least);
        let why = match error {
            _ if cell.other_day => Some(Why::OtherDay),
            _ if estimate.rounds < ROUNDS_MIN => Some(Why::FewRounds),
            _ if is_equal => None,
            Some((_, freedom)) if freedom >= FREEDOM_MIN => None,
            _ => Some(Why::NoVariance),
        };
        let growth = error.map_or(Growth::Unknown, |(variance, _)| Growth::OfEffect {
            effect,
            variance: variance * estimate.share * estimate.rounds as f64,
            prior_freedom: prior.map_or(0.0, |prior| prior.variance().freedom),
            freedom: estimate.freedom,
        });
        let error = error.map(|(variance, freedom)| ((variance * estimate.share).sqrt(), freedom));
        let of_error = |(error, freedom): (f64, f64)| two_sided_p(effect / error, freedom);
        let p = if is_equal { Some(1.0) } else { error.map(of_error) };
        Test {
            scale: cell.scale,
            effect: Some(effect),
            aside: aside(cell),
            range: estimate.range,
            p: p.filter(|_| why.is_none()),
            error,
            growth,
            rounds: estimate.rounds,
            is_above: effect > 0.0,
            why,
        }
    }

    /// Zeros where ratios are compared: an exact test of the signs of the rounds' differences.
    fn of_signs(cell: &Cell) -> Test {
        let [above, below] = compared(cell);
        let rounds = above.len().min(below.len());
        let differences: Vec<f64> = match cell.layout {
            Layout::Unpaired => Vec::new(),
            Layout::Paired => differences(Scale::RATE, &cell.sides).unwrap_or_default(),
        };
        let ups = differences.iter().filter(|difference| **difference > 0.0).count();
        let downs = differences.iter().filter(|difference| **difference < 0.0).count();
        let is_equal = !differences.is_empty() && ups + downs == 0;
        let why = match differences.len() {
            _ if cell.other_day => Some(Why::OtherDay),
            _ if rounds < ROUNDS_MIN => Some(Why::FewRounds),
            _ if is_equal => None,
            tested if tested < SIGN_ROUNDS_MIN => Some(Why::Zeros),
            _ => None,
        };
        let p = if is_equal { 1.0 } else { sign_p(ups, downs) };
        Test {
            scale: cell.scale,
            effect: is_equal.then_some(0.0),
            aside: aside(cell),
            range: None,
            error: None,
            growth: Growth::OfSigns { ups, downs, rounds: differences.len() },
            rounds,
            p: why.is_none().then_some(p),
            is_above: ups > downs,
            why,
        }
    }

    fn verdict(&self, limit: Limit) -> Verdict {
        match (self.why, self.p) {
            (Some(why), _) => Verdict::DirectionOnly(why),
            (None, Some(p)) if p <= limit.found && self.is_above => Verdict::Greater,
            (None, Some(p)) if p <= limit.found => Verdict::Smaller,
            _ => Verdict::NotSignificant,
        }
    }

    fn judged(&self, limit: Limit, rounds_to_decide: Option<usize>) -> Judged {
        let scale = self.scale;
        let interval = self.effect.zip(self.error).map(|(effect, (error, freedom))| {
            let reach = t_quantile(0.05, freedom) * error;
            scale.shown_interval(Interval { low: effect - reach, high: effect + reach })
        });
        let tested = self.error.filter(|_| self.why.is_none());
        let shown =
            tested.map(|(error, freedom)| scale.shown(t_quantile(limit.next, freedom) * error));
        let effect = self.effect.map(|effect| scale.shown(effect));
        let (ratio, difference) = match scale {
            Scale::Ratio => (effect, self.aside),
            Scale::Difference { .. } => (self.aside, effect),
        };
        Judged {
            scale,
            ratio,
            difference,
            interval,
            range: self.range.map(|range| scale.shown_interval(range)),
            verdict: self.verdict(limit),
            p: self.p,
            could_have_shown: shown,
            rounds_to_decide,
        }
    }
}

/// What is said beside the effect: the mean difference beside a ratio, the ratio of the means beside
/// a difference.
fn aside(cell: &Cell) -> Option<f64> {
    let [above, below] = compared(cell);
    if above.is_empty() || below.is_empty() {
        return None;
    }
    let [above, below] = [above, below].map(|values| estimate::mean(&values));
    match cell.scale {
        Scale::Ratio => Some(above - below),
        Scale::Difference { .. } if above == below => Some(1.0),
        Scale::Difference { .. } => (below > 0.0 && above >= 0.0).then(|| above / below),
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
    fn of(p_values: impl Iterator<Item = f64>) -> Limit {
        let mut values: Vec<f64> = p_values.collect();
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
