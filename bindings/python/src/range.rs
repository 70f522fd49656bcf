//! Ranges of keys as they come from Python: a prefix, two ends, or all of them together.

use std::ops::Bound;

use lithify::ScanRange;

use crate::bytes::BytesLike;

/// The arguments that choose keys.
pub struct Bounds<'a> {
    /// All keys begin with it.
    pub prefix: Option<&'a BytesLike<'a>>,
    /// The first key.
    pub start: Option<&'a BytesLike<'a>>,
    /// The last key.
    pub stop: Option<&'a BytesLike<'a>>,
    /// Whether the first key is one of them.
    pub include_start: bool,
    /// Whether the last key is one of them.
    pub include_stop: bool,
}

impl Bounds<'_> {
    /// The keys that fulfil all of it. Ends that cross leave none.
    pub fn to_range(&self) -> ScanRange {
        let of_ends = self.ends();
        let Some(prefix) = self.prefix else { return of_ends };
        let of_prefix = ScanRange::prefix(prefix);
        if self.start.is_none() && self.stop.is_none() {
            return of_prefix;
        }
        let start = of_prefix.start().max(of_ends.start()).unwrap_or_default();
        let end = match (of_prefix.end(), of_ends.end()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        between(start, end)
    }

    fn ends(&self) -> ScanRange {
        let bound = |key: Option<&BytesLike<'_>>, is_included: bool| match key {
            None => Bound::Unbounded,
            Some(key) if is_included => Bound::Included(key.as_slice().to_vec()),
            Some(key) => Bound::Excluded(key.as_slice().to_vec()),
        };
        let range = ScanRange::from((
            bound(self.start, self.include_start),
            bound(self.stop, self.include_stop),
        ));
        between(range.start().unwrap_or_default(), range.end())
    }
}

fn between(start: &[u8], end: Option<&[u8]>) -> ScanRange {
    match end {
        None => ScanRange::from(start..),
        Some(end) => ScanRange::from(start..end.max(start)),
    }
}
