//! Ranges of keys that hold no row, so that scans need not pass their dead entries again and again.
//!
//! A queue's scan begins where the dead entries are: everything that was taken before it. The first
//! scan that passes many of them notes where from and where to; once that is proven, scans jump.
//!
//! 1. A scan at sequence number S found no row in a range. The range is noted, unproven.
//! 2. From now on whoever puts a row into it cuts the range before the row becomes visible. A
//!    writer says which numbers it is about to use, then asks whether there are ranges; who notes
//!    one makes it known, then asks which numbers writers may have used without seeing it. So every
//!    put with a higher number than `since` cuts.
//! 3. A second scan at `since` or later that finds no row there proves the range: no row at its own
//!    sequence number, and none since. It holds for all later ones.
//!
//! What a scan reads at is its number, but what it has seen of is its horizon: its view may be older
//! than its number and lack what was written between. Proving and using a range go by the horizon.
//! Reads with an older horizon do not use it. What makes rows visible otherwise than by a commit
//! ([`DeadRanges::cut`]'s other caller: ingest) cuts too. A range nobody has used is dropped when
//! it would have to be cut, and when the memtable is switched, so that writers who gain nothing by
//! it don't pay for it.

use crate::base::sync::{AtomicBool, AtomicU64, Mutex, lock};
use crate::base::{SequenceNumber, key_behind};
use arc_swap::{ArcSwap, Guard};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A range that was cut so often without a scan that jumped over it is not worth more.
const CUTS_MAX: u64 = 8;

/// So many proven ranges are kept at most: a family may hold many queues, and a queue many jobs that
/// workers are at. A put is compared with nine of them.
const PROVEN_MAX: usize = 512;

/// So many noted ranges: every put of the family is compared with each.
const NOTED_MAX: usize = 4;

/// A range that a cursor may not look at, from `lower` up to but without `upper`.
struct DeadRange {
    lower: Box<[u8]>,
    upper: Box<[u8]>,
    /// Every put with a higher number than this has been seen, or will be.
    since: AtomicU64,
    /// Reads at this number and later find no row; `u64::MAX` while that is unproven.
    proven_at: AtomicU64,
    /// The number of the last jump over it; of its making, before the first.
    last_use: AtomicU64,
    /// So often it was cut since.
    cuts: AtomicU64,
}

impl DeadRange {
    fn new(lower: &[u8], upper: &[u8]) -> Self {
        DeadRange {
            lower: lower.into(),
            upper: upper.into(),
            since: AtomicU64::new(u64::MAX),
            proven_at: AtomicU64::new(u64::MAX),
            last_use: AtomicU64::new(0),
            cuts: AtomicU64::new(0),
        }
    }

    /// The part from `lower` to `upper`, with what is known of the whole.
    fn part(&self, lower: &[u8], upper: &[u8]) -> Self {
        DeadRange {
            lower: lower.into(),
            upper: upper.into(),
            since: copy_of(&self.since),
            proven_at: copy_of(&self.proven_at),
            last_use: copy_of(&self.last_use),
            cuts: copy_of(&self.cuts),
        }
    }

    fn is_proven_for(&self, horizon: SequenceNumber) -> bool {
        let mut proven_at = self.proven_at.load(Ordering::Acquire);
        if planted!(DeadRangeForOldSnapshots) && proven_at != u64::MAX {
            proven_at = 0;
        }
        proven_at <= horizon
    }

    fn covers(&self, other: &DeadRange) -> bool {
        self.lower <= other.lower && other.upper <= self.upper
    }

    fn is_hit_by(&self, smallest: &[u8], largest: &[u8]) -> bool {
        *self.lower <= *largest && *smallest < *self.upper
    }
}

fn copy_of(number: &AtomicU64) -> AtomicU64 {
    AtomicU64::new(number.load(Ordering::Relaxed))
}

/// See the module.
#[derive(Clone, Default)]
struct Ranges {
    /// In the order of keys; none touches another.
    proven: Vec<Arc<DeadRange>>,
    /// Oldest first.
    noted: Vec<Arc<DeadRange>>,
}

impl Ranges {
    /// Adds a proven range, as one with those that it overlaps or touches.
    fn join(&mut self, mut proven: DeadRange) {
        let start = self.proven.partition_point(|other| other.upper < proven.lower);
        let end = self.proven.partition_point(|other| other.lower <= proven.upper);
        for other in self.proven.drain(start..end) {
            let lower = (&other.lower).min(&proven.lower);
            let joined = proven.part(lower, (&other.upper).max(&proven.upper));
            joined.proven_at.fetch_max(other.proven_at.load(Ordering::Relaxed), Ordering::Relaxed);
            joined.cuts.store(0, Ordering::Relaxed);
            proven = joined;
        }
        self.proven.insert(start, Arc::new(proven));
    }

    /// Whether rows from `smallest` to `largest` may lie in a range.
    fn are_hit_by(&self, smallest: &[u8], largest: &[u8]) -> bool {
        let next = self.proven.partition_point(|range| *range.upper <= *smallest);
        let is_hit = |range: &Arc<DeadRange>| range.is_hit_by(smallest, largest);
        self.proven.get(next).is_some_and(is_hit) || self.noted.iter().any(is_hit)
    }

    /// Drops what is too many: of the proven any, for scans that use all in turn would find none of those
    /// that were dropped as the longest unused. `uses` changes from call to call.
    fn limit(&mut self, uses: u64) {
        self.noted.drain(..self.noted.len().saturating_sub(NOTED_MAX));
        let mut numbers = uses..;
        while self.proven.len() > PROVEN_MAX {
            let spread = numbers.next().unwrap_or(0).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            self.proven.remove(spread as usize % self.proven.len());
        }
    }
}

/// The ranges that one column family is known to have no rows in. Any thread may call; the lock is
/// a leaf.
pub(crate) struct DeadRanges {
    announced: Arc<Announced>,
    is_watched: AtomicBool,
    ranges: ArcSwap<Ranges>,
    /// Jumps so far.
    uses: AtomicU64,
    /// Jumps until the memtable was last switched.
    uses_before_switch: AtomicU64,
    /// Held while the ranges are replaced.
    changing: Mutex<()>,
}

/// The last sequence number that a writer may be using, with or without having seen a range.
#[derive(Default)]
pub(crate) struct Announced(AtomicU64);

impl Announced {
    /// A writer is about to use numbers up to here; it asks [`DeadRanges::is_watched`] afterwards.
    pub(crate) fn announce(&self, sequence: SequenceNumber) {
        // Sequentially consistent, as are the flag and the loads of both: of a writer and of who
        // notes a range at the same time, one sees the other.
        self.0.store(sequence, Ordering::SeqCst);
    }

    fn last(&self) -> SequenceNumber {
        self.0.load(Ordering::SeqCst)
    }
}

impl DeadRanges {
    /// None known; writers announce their numbers there.
    pub(crate) fn new(announced: &Arc<Announced>) -> Self {
        DeadRanges {
            announced: Arc::clone(announced),
            is_watched: AtomicBool::new(false),
            ranges: ArcSwap::default(),
            uses: AtomicU64::new(0),
            uses_before_switch: AtomicU64::new(0),
            changing: Mutex::default(),
        }
    }

    /// Whether a writer has to ask where its rows go.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::SeqCst)
    }

    /// The end of the range that `key` lies in, for a read with this horizon: there is no row from
    /// `key` up to there.
    pub(crate) fn end_behind(&self, key: &[u8], horizon: SequenceNumber) -> Option<Box<[u8]>> {
        let ranges = self.proven_ranges()?;
        let behind = ranges.proven.partition_point(|range| *range.lower <= *key);
        let range = ranges.proven.get(behind.checked_sub(1)?)?;
        let holds = *key < *range.upper && range.is_proven_for(horizon);
        holds.then(|| self.use_range(range).upper.clone())
    }

    /// The start of the range that ends at `limit` or goes on behind it, for a read with this
    /// horizon: there is no row from there up to before `limit`.
    pub(crate) fn start_before(&self, limit: &[u8], horizon: SequenceNumber) -> Option<Box<[u8]>> {
        let ranges = self.proven_ranges()?;
        let behind = ranges.proven.partition_point(|range| *range.lower < *limit);
        let range = ranges.proven.get(behind.checked_sub(1)?)?;
        let holds = *limit <= *range.upper && range.is_proven_for(horizon);
        holds.then(|| self.use_range(range).lower.clone())
    }

    /// The ranges, if there are any.
    #[inline]
    fn proven_ranges(&self) -> Option<Guard<Arc<Ranges>>> {
        self.is_watched.load(Ordering::Relaxed).then(|| self.ranges.load())
    }

    fn use_range<'r>(&self, range: &'r DeadRange) -> &'r DeadRange {
        range.last_use.store(self.count_use(), Ordering::Relaxed);
        range.cuts.store(0, Ordering::Relaxed);
        range
    }

    fn count_use(&self) -> u64 {
        self.uses.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A scan at `snapshot` with this horizon has found no row from `lower` up to before `upper`,
    /// and has passed many dead entries there.
    pub(crate) fn note(
        &self,
        (lower, upper): (&[u8], &[u8]),
        (snapshot, horizon): (SequenceNumber, SequenceNumber),
    ) {
        if lower >= upper {
            return;
        }
        let _changing = lock(&self.changing);
        let mut ranges = Ranges::clone(&self.ranges.load());
        let range = DeadRange::new(lower, upper);
        let proves = |noted: &Arc<DeadRange>| {
            let overlaps = *noted.lower < *upper && *lower < *noted.upper;
            overlaps && noted.since.load(Ordering::Relaxed) <= horizon
        };
        let (proved, rest): (Vec<_>, Vec<_>) = ranges.noted.into_iter().partition(proves);
        ranges.noted = rest;
        for noted in &proved {
            let part = noted.part(lower.max(&noted.lower), upper.min(&noted.upper));
            part.proven_at.store(snapshot, Ordering::Relaxed);
            part.last_use.store(self.count_use(), Ordering::Relaxed);
            ranges.join(part);
        }
        if !proved.is_empty() {
            self.store(ranges);
            return;
        }
        if planted!(DeadRangeUnproven) {
            range.proven_at.store(snapshot, Ordering::Relaxed);
            ranges.join(range);
            self.store(ranges);
            return;
        }
        ranges.noted.retain(|other| !range.covers(other));
        let range = Arc::new(range);
        ranges.noted.push(Arc::clone(&range));
        let mut early = None;
        if planted!(DeadRangeNotedLate) {
            early = Some(self.announced.last());
        }
        self.store(ranges);
        // Only now: a writer with a higher number has seen the range.
        range.since.store(early.unwrap_or_else(|| self.announced.last()), Ordering::Relaxed);
    }

    fn store(&self, mut ranges: Ranges) {
        ranges.limit(self.uses.load(Ordering::Relaxed));
        let is_watched = !(ranges.proven.is_empty() && ranges.noted.is_empty());
        self.ranges.store(Arc::new(ranges));
        self.is_watched.store(is_watched, Ordering::SeqCst);
    }

    /// Rows from `smallest` to `largest` are about to become visible: ranges end before the first and
    /// go on behind the last.
    pub(crate) fn cut(&self, smallest: &[u8], largest: &[u8]) {
        if !self.ranges.load().are_hit_by(smallest, largest) {
            return;
        }
        let _changing = lock(&self.changing);
        let ranges = self.ranges.load();
        let behind = key_behind(largest);
        let parts = |range: &Arc<DeadRange>| {
            if !range.is_hit_by(smallest, largest) {
                return [Some(Arc::clone(range)), None];
            }
            if range.cuts.fetch_add(1, Ordering::Relaxed) >= CUTS_MAX {
                return [None, None];
            }
            let before = (*range.lower < *smallest).then(|| range.part(&range.lower, smallest));
            let after = (*behind < *range.upper).then(|| range.part(&behind, &range.upper));
            [before.map(Arc::new), after.map(Arc::new)]
        };
        let cut = |ranges: &[Arc<DeadRange>]| ranges.iter().flat_map(parts).flatten().collect();
        let cut = Ranges { proven: cut(&ranges.proven), noted: cut(&ranges.noted) };
        self.store(cut);
    }

    /// Forgets the ranges that no scan has used since this was last called.
    pub(crate) fn forget_unused(&self) {
        if !self.is_watched.load(Ordering::Relaxed) {
            return;
        }
        let _changing = lock(&self.changing);
        let mut ranges = Ranges::clone(&self.ranges.load());
        let uses = self.uses.load(Ordering::Relaxed);
        let before = self.uses_before_switch.swap(uses, Ordering::Relaxed);
        ranges.proven.retain(|range| range.last_use.load(Ordering::Relaxed) > before);
        ranges.noted.clear();
        self.store(ranges);
    }
}

#[cfg(test)]
mod tests;

#[cfg(all(test, shuttle))]
pub(crate) mod shuttle;
