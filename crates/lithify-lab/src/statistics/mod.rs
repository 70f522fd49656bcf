//! Statistics of repeated measurements: medians, intervals, noise, steadiness.
//!
//! Owns: the median ([`median`]), which differences are significant ([`verdicts`]), and the tag of a
//! row that says whether its repeats were steady ([`steady_tag`]).
//!
//! Promises: pure and deterministic: the same record gives the same report. Does not know engines,
//! figures or files.

pub mod verdicts;

pub use lithify_report::figure::median;

/// A 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// What is said of repeats of which some were steady ([`crate::meter::steady`]): `yes`,
/// `not steady`, `2 of 3`, or `short` when none was long enough to say.
pub fn steady_tag(repeats: impl IntoIterator<Item = Option<bool>>) -> String {
    let judged: Vec<bool> = repeats.into_iter().flatten().collect();
    let steady = judged.iter().filter(|steady| **steady).count();
    match (judged.len(), steady) {
        (0, _) => "short".to_owned(),
        (all, steady) if all == steady => "yes".to_owned(),
        (_, 0) => "not steady".to_owned(),
        (all, steady) => format!("{steady} of {all}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_repeats() {
        assert_eq!(steady_tag([]), "short");
        assert_eq!(steady_tag([None, None]), "short");
        assert_eq!(steady_tag([Some(true), None]), "yes");
        assert_eq!(steady_tag([Some(false), None]), "not steady");
        assert_eq!(steady_tag([Some(false), Some(true), Some(true)]), "2 of 3");
    }
}
