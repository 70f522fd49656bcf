//! Published ratios beside measured ones.
//!
//! A claim is judged as every other difference of the report: it is confirmed where the measured
//! difference is significant and points in the published direction, whatever its size, and
//! contradicted where it is significant and points in the other one. A published ratio near to 1
//! says that the two are about equal: that is confirmed where the interval of ours is near to 1
//! too.

use lithify_report::Claim;

use super::figures::figure;
use super::paired::{self, NOT_SIGNIFICANT};
use super::tables::Align;
use crate::statistics::verdicts::{self, Judged, Scale};

/// The fewest repeats that a claim can rest on: as many as verdicts need.
pub(crate) const REPEATS_WANTED: u64 = verdicts::ROUNDS_MIN as u64;

/// What stands behind a claim that fewer repeats have.
pub(crate) const NO_VERDICT: &str = "a direction, no verdict";

/// Most of the CPUs that other processes may take before the figures are doubted.
pub(crate) const FOREIGN_PERCENT_MAX: f64 = 5.0;

/// A published ratio this near to 1 says that the two are about equal; any other has a direction.
const ABOUT_EQUAL: f64 = 0.02;

/// A measured ratio this near to 1 confirms it.
const ABOUT_EQUAL_HERE: f64 = 0.06;

/// A ratio with less than half of the published one's logarithm is less, one with more than twice
/// is more.
const FAR: f64 = 2.0;

/// How large a confirmed difference is beside the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Of about that size.
    AsPublished,
    /// Larger.
    More,
    /// Smaller.
    Less,
}

/// What the measured ratio says about the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A significant difference in the published direction, or about equal as published.
    Confirmed(Size),
    /// A significant difference in the other direction, or where none was published.
    Contradicted,
    /// The difference is not significant.
    NotSignificant,
    /// There is no verdict; true when the ratio lies on the published side.
    DirectionOnly(bool),
}

impl From<Verdict> for Claim {
    fn from(verdict: Verdict) -> Claim {
        match verdict {
            Verdict::Confirmed(Size::AsPublished) => Claim::Confirmed,
            Verdict::Confirmed(Size::More) => Claim::ConfirmedAndByMore,
            Verdict::Confirmed(Size::Less) => Claim::ConfirmedButByLess,
            Verdict::Contradicted => Claim::Contradicted,
            Verdict::NotSignificant => Claim::NotSignificant,
            Verdict::DirectionOnly(as_published) => Claim::DirectionOnly(as_published),
        }
    }
}

/// What was measured of a claim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The medians of the two sides.
    pub medians: [f64; 2],
    /// What the two come to by themselves. There is no ratio where a figure is zero.
    pub judged: Judged,
    /// What it says of the claim.
    pub verdict: Verdict,
}

/// What a figure of two sides says of a published ratio.
pub fn claim(found: &paired::Comparison, published: f64) -> Comparison {
    let judged = &found.judged;
    let is_above = match judged.ratio {
        Some(ratio) => ratio > 1.0,
        None => judged.difference.is_some_and(|difference| difference > 0.0),
    };
    let direction = is_above == (published > 1.0);
    let verdict = match judged.verdict {
        verdicts::Verdict::DirectionOnly(_) if says_equal(published) => {
            Verdict::DirectionOnly(judged.ratio.is_some_and(is_near_1))
        }
        verdicts::Verdict::DirectionOnly(_) => Verdict::DirectionOnly(direction),
        _ if says_equal(published) => equal_claim(judged),
        verdicts::Verdict::NotSignificant => Verdict::NotSignificant,
        _ if direction => Verdict::Confirmed(size(judged.ratio, published)),
        _ => Verdict::Contradicted,
    };
    let medians = [found.first.median, found.other.median];
    Comparison { medians, judged: *judged, verdict }
}

/// What the repeats say of a claim in words, which each of them confirms or not by itself. Too few of
/// them are a direction; where they do not agree it is not significant. `None` without any.
pub fn in_words(holds: &[bool]) -> Option<Verdict> {
    let all = holds.iter().all(|holds| *holds);
    let verdict = match holds.len() {
        0 => return None,
        repeats if (repeats as u64) < REPEATS_WANTED => Verdict::DirectionOnly(all),
        _ if all => Verdict::Confirmed(Size::AsPublished),
        _ if holds.contains(&true) => Verdict::NotSignificant,
        _ => Verdict::Contradicted,
    };
    Some(verdict)
}

/// Whether a measured ratio confirms "about equal".
fn is_near_1(ratio: f64) -> bool {
    let most = 1.0 + ABOUT_EQUAL_HERE;
    (1.0 / most..=most).contains(&ratio)
}

/// What a judged ratio says of "about equal": confirmed where the whole interval is near to 1,
/// contradicted where a significant ratio is not. A significant ratio near to 1 whose interval
/// reaches farther says neither.
fn equal_claim(judged: &Judged) -> Verdict {
    let is_near = judged.ratio.is_some_and(is_near_1);
    let all_near = match judged.scale {
        Scale::Ratio => judged.interval.is_some_and(|i| is_near_1(i.low) && is_near_1(i.high)),
        Scale::Difference { .. } => judged.p == Some(1.0),
    };
    match judged.verdict.is_significant() {
        _ if is_near && all_near => Verdict::Confirmed(Size::AsPublished),
        true if !is_near => Verdict::Contradicted,
        _ => Verdict::NotSignificant,
    }
}

/// Whether a published ratio says that the two are about equal.
fn says_equal(published: f64) -> bool {
    (published - 1.0).abs() < ABOUT_EQUAL
}

/// How large a ratio in the published direction is beside the published one.
fn size(measured: Option<f64>, published: f64) -> Size {
    // Without a ratio one side has none of it, and the other has some.
    let Some(measured) = measured else { return Size::More };
    match measured.ln() / published.ln() {
        times if times < 1.0 / FAR => Size::Less,
        times if times > FAR => Size::More,
        _ => Size::AsPublished,
    }
}

/// The columns of a claim, from the published ratio on.
pub(crate) const CLAIM_COLUMNS: [(&str, Align); 6] = [
    ("published", Align::Right),
    ("measured [95 %]", Align::Right),
    ("measured/published", Align::Right),
    ("could have shown", Align::Right),
    ("repeats to decide", Align::Right),
    ("claim", Align::Left),
];

/// Their cells; `missing` says why there is no ratio.
pub(crate) fn claim_cells(
    published: f64,
    comparison: Option<&Comparison>,
    missing: &str,
) -> [String; 6] {
    let published_text = format!("{published:.3}");
    let Some(Comparison { medians, judged, verdict }) = comparison else {
        return [&published_text, "-", "-", "-", "-", missing].map(str::to_owned);
    };
    let Some(ratio) = judged.ratio.filter(|_| !judged.scale.is_difference()) else {
        return without_ratio(published_text, medians, judged, *verdict);
    };
    let measured = match (judged.interval, judged.range) {
        (Some(interval), _) => format!("{ratio:.3} [{:.3}, {:.3}]", interval.low, interval.high),
        (None, Some(range)) => format!("{ratio:.3} ({:.3} to {:.3})", range.low, range.high),
        (None, None) => format!("{ratio:.3}"),
    };
    [
        published_text,
        measured,
        format!("{:.3}", ratio / published),
        paired::shown_text(judged),
        repeats(judged, *verdict),
        direction(*verdict).to_owned(),
    ]
}

fn repeats(judged: &Judged, verdict: Verdict) -> String {
    match verdict {
        Verdict::Confirmed(_) | Verdict::Contradicted => "-".to_owned(),
        Verdict::NotSignificant | Verdict::DirectionOnly(_) => paired::repeats_text(judged),
    }
}

/// The cells of a claim whose figures are zero or may be: the medians, and their difference.
fn without_ratio(
    published: String,
    medians: &[f64; 2],
    judged: &Judged,
    verdict: Verdict,
) -> [String; 6] {
    let [first, other] = medians.map(figure);
    let measured = match judged.scale.is_difference() {
        true => format!("{first} / {other}: {}", paired::ratio_text(judged)),
        false => format!("{first} / {other}"),
    };
    [
        published,
        measured,
        "-".to_owned(),
        paired::shown_text(judged),
        repeats(judged, verdict),
        direction(verdict).to_owned(),
    ]
}

/// A verdict on a claim in a table.
pub(crate) fn direction(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Confirmed(Size::AsPublished) => "confirmed",
        Verdict::Confirmed(Size::More) => "confirmed, by more",
        Verdict::Confirmed(Size::Less) => "confirmed, by less",
        Verdict::Contradicted => "CONTRADICTED",
        Verdict::NotSignificant => NOT_SIGNIFICANT,
        Verdict::DirectionOnly(true) => "direction only: as published",
        Verdict::DirectionOnly(false) => "direction only: not as published",
    }
}

/// What a comparison says of a claim about a figure.
pub(crate) fn sentence(
    claim: &str,
    column: &str,
    published: f64,
    comparison: Option<&Comparison>,
) -> String {
    let Some(comparison) = comparison else {
        return format!("\"{claim}\": not measured here.");
    };
    let percent = |ratio: f64| {
        let percent = (ratio - 1.0) * 100.0;
        format!("{}{} %", if percent >= 0.0 { "+" } else { "" }, figure(percent))
    };
    let of_theirs = percent(published);
    let of_ours = match comparison.judged.ratio.filter(|_| !comparison.judged.scale.is_difference())
    {
        Some(ratio) => percent(ratio),
        // A zero has no ratio: the figures themselves.
        None => comparison.medians.map(figure).join(" against "),
    };
    let says = match comparison.verdict {
        Verdict::Confirmed(Size::AsPublished) => "confirmed",
        Verdict::Confirmed(Size::More) => "confirmed, and by more",
        Verdict::Confirmed(Size::Less) => "confirmed, but by less",
        Verdict::Contradicted => "contradicted",
        Verdict::NotSignificant => "not significant here",
        Verdict::DirectionOnly(true) => "direction only, as published",
        Verdict::DirectionOnly(false) => "direction only, not as published",
    };
    let doubt = doubt(comparison);
    format!("\"{claim}\": {says}: {column} {of_ours} here, {of_theirs} published{doubt}.")
}

/// What would decide a claim without a verdict.
fn doubt(comparison: &Comparison) -> String {
    let Comparison { judged, verdict, .. } = comparison;
    let mut text = String::new();
    let what = if judged.scale.is_difference() { "difference" } else { "ratio" };
    if *verdict == Verdict::NotSignificant && judged.could_have_shown.is_some() {
        let shown = paired::shown_text(judged);
        text.push_str(&format!("; this run could have shown a {what} of {shown}"));
    }
    match (verdict, judged.interval, judged.range) {
        (Verdict::DirectionOnly(_), Some(interval), _) => {
            let (low, high) = (figure(interval.low), figure(interval.high));
            text.push_str(&format!("; the {what} may be {low} to {high}"));
        }
        (Verdict::DirectionOnly(_), None, Some(range)) => {
            let (low, high) = (figure(range.low), figure(range.high));
            text.push_str(&format!("; the repeats had {what}s of {low} to {high}"));
        }
        _ => {}
    }
    match (verdict, judged.rounds_to_decide) {
        (Verdict::NotSignificant | Verdict::DirectionOnly(_), Some(rounds)) => {
            text.push_str(&format!("; --repeats {rounds} would decide a {what} of this size"));
        }
        (Verdict::DirectionOnly(_), None) if judged.interval.is_none() => {
            text.push_str(&format!("; {DIRECTION_ONLY_DECIDE}"));
        }
        _ => {}
    }
    text
}

/// Where nothing is known of the noise.
const DIRECTION_ONLY_DECIDE: &str = "nothing is known of the noise: --repeats 5 decides";
