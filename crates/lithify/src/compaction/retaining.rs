//! Which rows a flush or compaction drops by itself: expired ones, and those that the family's
//! filter removes.
//!
//! It is asked of puts that the rules keep, and of values that operands are folded into. A row that goes
//! becomes a delete, unless nothing lies deeper, so that no older entry of its key shows again. A block
//! that is copied as it is stored would pass by: such merges copy none.

use crate::Result;
use crate::base::{Level, SequenceNumber, VALUE_SIZE_MAX};
use crate::retention::{
    CompactionFilter, Expiry, FilterDecision, FilteredRow, STAMP_BYTES, split, stamped, write_time,
};
use std::sync::Arc;

/// What a merge needs to know to let rows go.
#[derive(Clone)]
pub(crate) struct RetainPlan {
    /// Which rows have expired for all readers; `None` if rows have no write times.
    pub(crate) expiry: Option<Expiry>,
    /// Decides of the others.
    pub(crate) filter: Option<Arc<CompactionFilter>>,
    /// What has this sequence number or a smaller one is seen by a snapshot.
    pub(crate) newest_snapshot: Option<SequenceNumber>,
    /// The present, in seconds since 1970.
    pub(crate) now_s: u64,
}

/// What becomes of a row.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Retained {
    Kept,
    Gone,
    /// It is stored with another value.
    Changed(Vec<u8>),
}

/// See the module.
pub(super) struct Retaining {
    plan: RetainPlan,
    level: Level,
    /// Rows that had expired.
    pub(super) expired: u64,
    /// Rows that the filter let go, or changed.
    pub(super) filtered: u64,
}

impl Retaining {
    pub(super) fn new(plan: RetainPlan, level: Level) -> Self {
        Retaining { plan, level, expired: 0, filtered: 0 }
    }

    /// Judges a put; `from_s` is when its table was written.
    pub(super) fn judge(
        &mut self,
        (key, sequence): (&[u8], SequenceNumber),
        stored: &[u8],
        from_s: impl FnOnce() -> u64,
    ) -> Result<Retained> {
        let (value, mut written_s) = match self.plan.expiry {
            Some(_) => split(stored).map(|(value, written_s)| (value, Some(written_s)))?,
            None => (stored, None),
        };
        if let (Some(expiry), Some(written_s)) = (self.plan.expiry, written_s)
            && expiry.is_expired(written_s)
        {
            self.expired += 1;
            return Ok(Retained::Gone);
        }
        let mut is_seen = self.plan.newest_snapshot.is_some_and(|newest| sequence <= newest);
        if planted!(FilterForgetsSnapshots) {
            is_seen = false;
        }
        let Some(filter) = self.plan.filter.as_ref().filter(|_| !is_seen) else {
            return Ok(Retained::Kept);
        };
        let since_s = written_s.map_or_else(from_s, u64::from);
        let age_s = self.plan.now_s.saturating_sub(since_s);
        let value_bytes_max = VALUE_SIZE_MAX - written_s.map_or(0, |_| STAMP_BYTES);
        let row = FilteredRow { key, value, level: self.level, age_s };
        let mut decision = filter.decide(&row, value_bytes_max);
        if planted!(FilterErrorLosesRow) && decision.is_err() {
            decision = Ok(FilterDecision::Remove);
        }
        let decision = decision?;
        if planted!(FilterRenewsRow) {
            written_s = written_s.map(|_| write_time(self.plan.now_s));
        }
        self.filtered += u64::from(decision != FilterDecision::Keep);
        Ok(match decision {
            FilterDecision::Keep => Retained::Kept,
            FilterDecision::Remove => Retained::Gone,
            FilterDecision::Change(value) => Retained::Changed(match written_s {
                Some(written_s) => stamped(&value, written_s),
                None => value,
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(filter: Option<CompactionFilter>, newest_snapshot: Option<u64>) -> RetainPlan {
        RetainPlan { expiry: None, filter: filter.map(Arc::new), newest_snapshot, now_s: 1000 }
    }

    fn judge(plan: &RetainPlan, sequence: u64, stored: &[u8]) -> Retained {
        let mut retaining = Retaining::new(plan.clone(), 2);
        retaining.judge((b"k", sequence), stored, || 940).unwrap()
    }

    #[test]
    fn what_is_over_goes_and_the_filter_is_not_asked() {
        let filter = CompactionFilter::new("never", |_| Err("asked".into()));
        let plan = RetainPlan { expiry: Some(Expiry::at(1000, 100)), ..plan(Some(filter), None) };
        assert_eq!(judge(&plan, 5, &stamped(b"v", 899)), Retained::Gone);
        let mut retaining = Retaining::new(plan, 2);
        assert!(retaining.judge((b"k", 5), &stamped(b"v", 900), || 0).is_err());
        assert!(retaining.judge((b"k", 5), b"v", || 0).is_err(), "no write time");
    }

    #[test]
    fn a_filter_sees_level_and_age_and_nothing_that_a_snapshot_sees() {
        let filter = CompactionFilter::new("all", |row| {
            assert_eq!((row.key, row.value, row.level), (&b"k"[..], &b"v"[..], 2));
            Ok(FilterDecision::Change(row.age_s.to_string().into_bytes()))
        });
        let plan = plan(Some(filter), Some(7));
        assert_eq!(judge(&plan, 7, b"v"), Retained::Kept);
        assert_eq!(judge(&plan, 8, b"v"), Retained::Changed(b"60".to_vec()));
        let timed = RetainPlan { expiry: Some(Expiry::at(1000, 500)), ..plan };
        assert_eq!(judge(&timed, 8, &stamped(b"v", 990)), Retained::Changed(stamped(b"10", 990)));
    }

    /// What a filter gives has to fit into a table together with the time of its writing.
    #[test]
    fn the_largest_value_of_a_filter_leaves_room_for_the_write_time() {
        let largest = VALUE_SIZE_MAX - STAMP_BYTES;
        for (bytes, is_timed, fits) in [
            (largest, true, true),
            (largest + 1, true, false),
            (VALUE_SIZE_MAX, false, true),
            (VALUE_SIZE_MAX + 1, false, false),
        ] {
            let filter =
                CompactionFilter::new("grows", move |_| Ok(FilterDecision::Change(vec![0; bytes])));
            let expiry = is_timed.then(|| Expiry::at(1000, 500));
            let plan = RetainPlan { expiry, ..plan(Some(filter), None) };
            let judged = Retaining::new(plan, 2).judge((b"k", 8), &stamped(b"v", 990), || 940);
            assert_eq!(judged.is_ok(), fits, "{bytes} bytes, with a write time: {is_timed}");
            if let Err(error) = judged {
                assert_eq!(error.kind(), crate::ErrorKind::CompactionFilter);
                assert!(error.to_string().contains(&(bytes - 1).to_string()), "{error}");
            }
        }
    }
}
