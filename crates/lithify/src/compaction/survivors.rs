//! The range tombstones of a merge that are still needed, dealt out to the tables that it writes.
//!
//! A merge has one list of fragments, ascending. Of each the newest delete of every stripe is
//! needed; but the one of the oldest stripe is not where no deeper level holds a key of the
//! fragment. A table takes the fragments that start before its upper end; one that reaches further
//! is cut there. What would be too much for one table goes into tables of range tombstones alone
//! behind it: a table's are read as a whole, and their block has a limit.

use super::rules::{RangeTombstoneSpan, Rules};
use crate::base::SequenceNumber;
use crate::table::FragmentedTombstones;

/// See the module.
pub(crate) struct Survivors {
    /// Of each fragment the newest delete of every stripe.
    fragments: FragmentedTombstones,
    /// By fragment: whether the delete of the oldest stripe, its last one, has done its work.
    oldest_is_done: Vec<bool>,
    /// The first fragment that is not dealt out.
    next: usize,
    /// Where that one begins, if its head is dealt out.
    from: Option<Box<[u8]>>,
    /// Fragments up to this one were counted into `pending_bytes`.
    counted: usize,
    /// Of fragments that the table at hand will take.
    pending_bytes: usize,
    /// What a table takes.
    limit_bytes: usize,
}

impl Survivors {
    /// `fragments` holds no more than one delete of each stripe; `nothing_deeper` says that no level
    /// below the target holds a key of a range.
    pub(crate) fn new(
        rules: &Rules,
        fragments: FragmentedTombstones,
        limit_bytes: usize,
        nothing_deeper: impl Fn(&[u8], &[u8]) -> bool,
    ) -> Self {
        let is_done = |index| {
            let fragment = fragments.fragment(index);
            let oldest = fragment.sequences().last();
            oldest.is_some_and(|oldest| rules.stripe(oldest) == 0)
                && nothing_deeper(fragment.start, fragment.end)
        };
        let oldest_is_done = (0..fragments.len()).map(is_done).collect();
        Survivors {
            fragments,
            oldest_is_done,
            next: 0,
            from: None,
            counted: 0,
            pending_bytes: 0,
            limit_bytes,
        }
    }

    /// What it holds, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.fragments.memory_bytes() + self.oldest_is_done.len() + 2 * self.pending_bytes
    }

    /// Whether the fragments before `key`, the next one of the merge, are half of what a table
    /// takes: the table has to end before it. A single one is not: ending a table makes it no smaller.
    #[inline]
    pub(crate) fn fill_a_table(&mut self, key: &[u8]) -> bool {
        self.counted < self.fragments.len() && self.count_before(key)
    }

    /// Apart from the merge's loop, which mostly has no range tombstones.
    #[inline(never)]
    fn count_before(&mut self, key: &[u8]) -> bool {
        while self.counted < self.fragments.len() && self.start(self.counted) < key {
            self.pending_bytes += self.fragments.fragment_bytes(self.counted);
            self.counted += 1;
        }
        self.counted - self.next > 1 && self.pending_bytes > self.limit_bytes / 2
    }

    /// Where a fragment begins, as far as it is not dealt out.
    fn start(&self, index: usize) -> &[u8] {
        match &self.from {
            Some(from) if index == self.next => from,
            _ => self.fragments.fragment(index).start,
        }
    }

    /// Takes the spans that start before `upper`, all if there is none: those that begin at or
    /// before `last_key`, the last one in the table, and behind it as many as the table takes.
    pub(crate) fn take_before(
        &mut self,
        upper: Option<&[u8]>,
        last_key: Option<&[u8]>,
    ) -> Vec<RangeTombstoneSpan> {
        let (mut spans, mut bytes) = (Vec::new(), 0);
        while self.has_more_before(upper) {
            let fragment = self.fragments.fragment(self.next);
            let start = self.start(self.next);
            let is_within = last_key.is_some_and(|last_key| start <= last_key);
            if bytes >= self.limit_bytes && !is_within {
                break;
            }
            let cut = upper.filter(|upper| *upper < fragment.end);
            let end = cut.unwrap_or(fragment.end);
            for sequence in self.needed(self.next) {
                spans.push(RangeTombstoneSpan { start: start.into(), end: end.into(), sequence });
            }
            bytes += self.fragments.fragment_bytes(self.next);
            self.from = cut.map(Box::from);
            if cut.is_some() {
                break;
            }
            self.next += 1;
        }
        self.counted = self.next;
        self.pending_bytes = 0;
        spans
    }

    /// Whether a fragment that is not dealt out starts before `upper`.
    pub(crate) fn has_more_before(&self, upper: Option<&[u8]>) -> bool {
        if self.next >= self.fragments.len() {
            return false;
        }
        upper.is_none_or(|upper| self.start(self.next) < upper)
    }

    fn needed(&self, index: usize) -> impl Iterator<Item = SequenceNumber> + use<> {
        let sequences: Vec<_> = self.fragments.fragment(index).sequences().collect();
        let done = usize::from(self.oldest_is_done[index]);
        let count = sequences.len() - done;
        sequences.into_iter().take(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::TombstoneFragmenter;

    fn fragments(
        spans: &[(&str, &str, SequenceNumber)],
        snapshots: &[u64],
    ) -> FragmentedTombstones {
        let mut fragmenter = TombstoneFragmenter::new();
        for (start, end, sequence) in spans {
            fragmenter.add(start.as_bytes(), end.as_bytes(), *sequence);
        }
        fragmenter.finish_for(snapshots)
    }

    fn text(spans: &[RangeTombstoneSpan]) -> String {
        let one = |span: &RangeTombstoneSpan| {
            format!("{}-{}@{}", span.start.escape_ascii(), span.end.escape_ascii(), span.sequence)
        };
        spans.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    fn survivors(
        spans: &[(&str, &str, SequenceNumber)],
        snapshots: &[SequenceNumber],
        limit_bytes: usize,
        nothing_deeper: fn(&[u8], &[u8]) -> bool,
    ) -> Survivors {
        let rules = Rules::new(snapshots.to_vec());
        Survivors::new(&rules, fragments(spans, snapshots), limit_bytes, nothing_deeper)
    }

    #[test]
    fn the_newest_of_each_stripe_stays_until_nothing_is_deeper() {
        let spans = [("a", "e", 3), ("a", "c", 8), ("b", "e", 5)];
        let all = |snapshots: &[u64], nothing_deeper| {
            text(&survivors(&spans, snapshots, 1000, nothing_deeper).take_before(None, None))
        };
        assert_eq!(all(&[10], |_, _| false), "a-c@8 c-e@5");
        assert_eq!(all(&[6, 10], |_, _| false), "a-b@8 a-b@3 b-c@8 b-c@5 c-e@5");
        assert_eq!(all(&[6, 10], |_, _| true), "a-b@8 b-c@8");
        assert_eq!(all(&[10], |_, _| true), "");
    }

    #[test]
    fn tables_take_what_starts_before_their_end() {
        let spans = [("a", "c", 5), ("d", "h", 6)];
        let mut survivors = survivors(&spans, &[10], 1000, |_, _| false);
        assert_eq!(text(&survivors.take_before(Some(b"b"), None)), "a-b@5");
        assert!(!survivors.has_more_before(Some(b"b")));
        assert_eq!(text(&survivors.take_before(Some(b"f"), None)), "b-c@5 d-f@6");
        assert!(survivors.has_more_before(None));
        assert_eq!(text(&survivors.take_before(None, None)), "f-h@6");
        assert!(!survivors.has_more_before(None));
    }

    /// A table that ended before each key within would never have an entry.
    #[test]
    fn one_that_fills_a_table_does_not_end_it() {
        let spans = [("a", "x", 5), ("x", "y", 6)];
        let mut survivors = survivors(&spans, &[10], 30, |_, _| false);
        for key in ["b", "c"] {
            assert!(!survivors.fill_a_table(key.as_bytes()));
        }
        assert_eq!(text(&survivors.take_before(Some(b"d"), Some(b"c"))), "a-d@5");
        for key in ["d", "e", "x"] {
            assert!(!survivors.fill_a_table(key.as_bytes()), "{key}");
        }
        assert!(survivors.fill_a_table(b"z"));
        assert_eq!(text(&survivors.take_before(Some(b"z"), Some(b"x"))), "d-x@5 x-y@6");
    }

    #[test]
    fn too_many_for_a_table_go_into_the_next_but_not_those_beside_its_keys() {
        let spans = [("a", "b", 5), ("b", "c", 6), ("c", "d", 7), ("e", "f", 8)];
        let mut survivors = survivors(&spans, &[10], 30, |_, _| false);
        assert!(!survivors.fill_a_table(b"a"));
        assert!(!survivors.fill_a_table(b"b"));
        assert!(survivors.fill_a_table(b"bb"));
        assert_eq!(text(&survivors.take_before(Some(b"z"), Some(b"c"))), "a-b@5 b-c@6 c-d@7");
        assert!(survivors.has_more_before(Some(b"z")));
        assert_eq!(text(&survivors.take_before(Some(b"z"), None)), "e-f@8");
        assert!(!survivors.has_more_before(Some(b"z")));
    }
}
