//! Typed cells: what a figure is, so that no renderer reads it back from a text.

use serde::{Deserialize, Serialize};

use super::Outcome;
use crate::figure::{MISSING, Spread, bytes, duration, figure, signed};
use crate::grid::Align;

/// How a number is rounded for people. CSV and JSON have all of its digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rounding {
    /// By its size: [`figure`](crate::figure::figure).
    BySize,
    /// So many decimals.
    Decimals(u8),
}

/// What is known of the place of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Bounds {
    /// Nothing.
    Unknown,
    /// Its 95 % interval.
    Interval(f64, f64),
    /// The range of the repeats.
    Range(f64, f64),
}

/// A ratio or a difference of two sides, with its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// The ratio, or the difference.
    pub value: f64,
    /// True for a difference, which has a sign.
    pub is_difference: bool,
    /// Where it lies.
    pub bounds: Bounds,
}

impl Effect {
    /// For people: `1.17 [1.10, 1.25]`, or `(1.10 to 1.25)` of a range; `+1.50` of a difference.
    pub fn text(&self) -> String {
        let number: fn(f64) -> String = if self.is_difference { signed } else { figure };
        let value = number(self.value);
        match self.bounds {
            Bounds::Unknown => value,
            Bounds::Interval(low, high) => format!("{value} [{}, {}]", number(low), number(high)),
            Bounds::Range(low, high) => format!("{value} ({} to {})", number(low), number(high)),
        }
    }
}

/// How a figure of one side compares with that of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// Significantly better.
    Better,
    /// Significantly worse.
    Worse,
    /// The difference is not significant.
    NotSignificant,
    /// There is no verdict.
    DirectionOnly,
}

impl Verdict {
    /// In a table.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::NotSignificant => "n.s.",
            Verdict::DirectionOnly => "direction only",
        }
    }

    /// How it is coloured and marked.
    pub fn outcome(self) -> Outcome {
        match self {
            Verdict::Better => Outcome::Met,
            Verdict::Worse => Outcome::Missed,
            Verdict::NotSignificant | Verdict::DirectionOnly => Outcome::Undecided,
        }
    }
}

/// How a published claim came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Claim {
    /// Significant, with the published direction and about its size.
    Confirmed,
    /// Confirmed, and by more than published.
    ConfirmedAndByMore,
    /// Confirmed, but by less than published.
    ConfirmedButByLess,
    /// Significant, with the other direction.
    Contradicted,
    /// The difference is not significant.
    NotSignificant,
    /// No verdict; true when the ratio lies on the published side.
    DirectionOnly(bool),
    /// Not measured, or not decided for another reason.
    Undecided,
}

impl Claim {
    /// In a table or a sentence.
    pub fn word(self) -> &'static str {
        match self {
            Claim::Confirmed => "confirmed",
            Claim::ConfirmedAndByMore => "confirmed, and by more",
            Claim::ConfirmedButByLess => "confirmed, but by less",
            Claim::Contradicted => "contradicted",
            Claim::NotSignificant => "n.s.",
            Claim::DirectionOnly(true) => "agrees",
            Claim::DirectionOnly(false) => "disagrees",
            Claim::Undecided => "undecided",
        }
    }

    /// How it is coloured and marked.
    pub fn outcome(self) -> Outcome {
        match self {
            Claim::Confirmed | Claim::ConfirmedAndByMore | Claim::ConfirmedButByLess => {
                Outcome::Met
            }
            Claim::Contradicted => Outcome::Missed,
            Claim::NotSignificant | Claim::DirectionOnly(_) | Claim::Undecided => {
                Outcome::Undecided
            }
        }
    }
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Cell {
    /// Not measured, or not applicable.
    Missing,
    /// Words.
    Text(String),
    /// A count.
    Integer(i64),
    /// A number, finite.
    Number(f64, Rounding),
    /// Bytes, shown in the unit that fits.
    Bytes(u64),
    /// Seconds, shown in the unit that fits.
    Duration(f64),
    /// A figure over its repeats.
    Spread(Spread),
    /// A ratio or a difference with its interval.
    Effect(Effect),
    /// How one side compares with another.
    Verdict(Verdict),
    /// How a published claim came out.
    Claim(Claim),
    /// How something else came out, with the word for it: `passed`, `target missed`.
    Judged(Outcome, String),
}

impl Cell {
    /// A number, rounded by its size; missing when it is not finite.
    pub fn number(value: f64) -> Cell {
        Cell::rounded(value, Rounding::BySize)
    }

    /// A number with so many decimals; missing when it is not finite.
    pub fn decimals(value: f64, decimals: u8) -> Cell {
        Cell::rounded(value, Rounding::Decimals(decimals))
    }

    fn rounded(value: f64, rounding: Rounding) -> Cell {
        if value.is_finite() { Cell::Number(value, rounding) } else { Cell::Missing }
    }

    /// Seconds; missing when they are not finite.
    pub fn duration(seconds: f64) -> Cell {
        if seconds.is_finite() { Cell::Duration(seconds) } else { Cell::Missing }
    }

    /// A ratio with its bounds; missing when it is not finite.
    pub fn ratio(value: f64, bounds: Bounds) -> Cell {
        match value.is_finite() {
            true => Cell::Effect(Effect { value, is_difference: false, bounds }),
            false => Cell::Missing,
        }
    }

    /// For people.
    pub fn text(&self) -> String {
        match self {
            Cell::Missing => MISSING.to_owned(),
            Cell::Text(text) | Cell::Judged(_, text) => text.clone(),
            Cell::Integer(value) => value.to_string(),
            Cell::Number(value, Rounding::BySize) => figure(*value),
            Cell::Number(value, Rounding::Decimals(count)) => {
                format!("{value:.*}", usize::from(*count))
            }
            Cell::Bytes(count) => bytes(*count),
            Cell::Duration(seconds) => duration(*seconds),
            Cell::Spread(spread) => spread.with_range(),
            Cell::Effect(effect) => effect.text(),
            Cell::Verdict(verdict) => verdict.word().to_owned(),
            Cell::Claim(claim) => claim.word().to_owned(),
        }
    }

    /// How it is coloured and marked; nothing for what has no outcome.
    pub fn outcome(&self) -> Option<Outcome> {
        match self {
            Cell::Verdict(verdict) => Some(verdict.outcome()),
            Cell::Claim(claim) => Some(claim.outcome()),
            Cell::Judged(outcome, _) => Some(*outcome),
            _ => None,
        }
    }

    /// How a column of such cells is aligned; nothing for what is missing.
    pub(crate) fn align(&self) -> Option<Align> {
        match self {
            Cell::Missing => None,
            Cell::Text(_) | Cell::Verdict(_) | Cell::Claim(_) | Cell::Judged(..) => {
                Some(Align::Left)
            }
            _ => Some(Align::Right),
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Cell {
        Cell::number(value)
    }
}

impl From<u64> for Cell {
    fn from(count: u64) -> Cell {
        i64::try_from(count).map_or_else(|_| Cell::Text(count.to_string()), Cell::Integer)
    }
}

impl From<usize> for Cell {
    fn from(count: usize) -> Cell {
        Cell::from(count as u64)
    }
}

impl From<Spread> for Cell {
    fn from(spread: Spread) -> Cell {
        Cell::Spread(spread)
    }
}

impl From<Effect> for Cell {
    fn from(effect: Effect) -> Cell {
        Cell::Effect(effect)
    }
}

impl From<Verdict> for Cell {
    fn from(verdict: Verdict) -> Cell {
        Cell::Verdict(verdict)
    }
}

impl From<Claim> for Cell {
    fn from(claim: Claim) -> Cell {
        Cell::Claim(claim)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or(Cell::Missing, Into::into)
    }
}
