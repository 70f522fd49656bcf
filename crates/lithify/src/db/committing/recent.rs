//! What was written lately, and what optimistic transactions have read.
//!
//! An optimistic transaction takes no locks. It reads at a snapshot and remembers what it has read, and
//! its commit is refused if any of that was written since.
//!
//! 1. While such a transaction is open, the commit leader notes the keys that it writes, and so does
//!    an ingest ([`Recent`]): all with higher numbers than a floor.
//! 2. The leader compares what a transaction has read with what is noted before it gives the
//!    transaction its sequence numbers. Nobody writes in between. No table is read.
//! 3. What is noted is bounded. Once it is full its older half is forgotten, and the floor rises. A
//!    transaction whose snapshot is below the floor is refused, for nobody can tell.
//!
//! Belongs to the writer: whoever holds it may touch this.

use crate::base::{
    Charge, ColumnFamilyId, MemoryBudget, MemoryUse, SequenceNumber, ValueKind, key_behind,
};
use crate::db::committing::batch::Entry;
use crate::manifest::KeyRange;
use crate::{Error, ErrorKind, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

/// The most bytes that are noted, if the budget is large enough.
const NOTED_BYTES_MAX: usize = 8 << 20;

/// The part of the memory budget that is noted at most.
const BUDGET_PART: usize = 32;

/// What a row takes beside its key, about.
const ROW_BYTES: usize = 64;

/// Keys from one on, up to but without another; the last one may be missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeySpan {
    pub(crate) lower: Box<[u8]>,
    pub(crate) upper: Option<Box<[u8]>>,
}

impl KeySpan {
    fn contains(&self, key: &[u8]) -> bool {
        *self.lower <= *key && self.upper.as_ref().is_none_or(|upper| *key < **upper)
    }

    fn overlaps(&self, other: &KeySpan) -> bool {
        let ends_before =
            |a: &KeySpan, b: &KeySpan| a.upper.as_ref().is_some_and(|upper| **upper <= *b.lower);
        !ends_before(self, other) && !ends_before(other, self)
    }
}

/// What a transaction has read: keys, there or not, and spans that cursors went over.
#[derive(Default)]
pub(crate) struct ReadSet {
    keys: BTreeSet<(ColumnFamilyId, Box<[u8]>)>,
    spans: Vec<(ColumnFamilyId, KeySpan)>,
}

impl ReadSet {
    pub(crate) fn note_key(&mut self, family: ColumnFamilyId, key: &[u8]) {
        self.keys.insert((family, key.into()));
    }

    /// Notes a span; gives its place, to widen it.
    pub(crate) fn note_span(&mut self, family: ColumnFamilyId, span: KeySpan) -> usize {
        self.spans.push((family, span));
        self.spans.len() - 1
    }

    /// The span in a place that [`ReadSet::note_span`] gave.
    pub(crate) fn span(&mut self, place: usize) -> Option<&mut KeySpan> {
        self.spans.get_mut(place).map(|(_, span)| span)
    }
}

/// What has to hold when a transaction commits.
pub(crate) struct Checks {
    pub(crate) snapshot: SequenceNumber,
    pub(crate) reads: ReadSet,
}

/// Rows and ranges that were written, with their last sequence numbers.
#[derive(Default)]
struct Noted {
    rows: BTreeMap<ColumnFamilyId, BTreeMap<Box<[u8]>, SequenceNumber>>,
    spans: Vec<(ColumnFamilyId, KeySpan, SequenceNumber)>,
    bytes: usize,
}

impl Noted {
    fn is_written(&self, family: ColumnFamilyId, key: &[u8], since: SequenceNumber) -> bool {
        let row = self.rows.get(&family).and_then(|rows| rows.get(key));
        let mut spans = self.spans.iter();
        row.is_some_and(|sequence| *sequence > since)
            || spans.any(|(of, span, sequence)| {
                *of == family && *sequence > since && span.contains(key)
            })
    }

    fn is_written_in(&self, family: ColumnFamilyId, span: &KeySpan, since: SequenceNumber) -> bool {
        let lower = Bound::Included(&*span.lower);
        let upper = span.upper.as_ref().map_or(Bound::Unbounded, |upper| Bound::Excluded(&**upper));
        // A map panics at a range that ends before it starts.
        let is_empty = span.upper.as_ref().is_some_and(|upper| **upper <= *span.lower);
        let rows = self.rows.get(&family).filter(|_| !is_empty);
        let mut rows = rows.into_iter().flat_map(|rows| rows.range::<[u8], _>((lower, upper)));
        let mut spans = self.spans.iter();
        rows.any(|(_, sequence)| *sequence > since)
            || spans.any(|(of, written, sequence)| {
                *of == family && *sequence > since && written.overlaps(span)
            })
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct Recent {
    is_on: bool,
    /// Whatever was written with a higher number is in `older` or `newer`.
    floor: SequenceNumber,
    /// And with a number higher than this in `newer`.
    newer_floor: SequenceNumber,
    older: Noted,
    newer: Noted,
    charge: Option<Charge>,
}

impl Recent {
    /// Notes all writes behind `last_sequence`, from now on.
    pub(crate) fn begin(&mut self, last_sequence: SequenceNumber, budget: &Arc<MemoryBudget>) {
        if !self.is_on {
            *self = Recent {
                is_on: true,
                floor: last_sequence,
                newer_floor: last_sequence,
                charge: Some(budget.charge(MemoryUse::Memtable, 0)),
                ..Recent::default()
            };
        }
    }

    /// Forgets all, and notes nothing.
    pub(crate) fn end(&mut self) {
        *self = Recent::default();
    }

    /// Notes a write.
    pub(crate) fn note(&mut self, entry: &Entry<'_>, sequence: SequenceNumber) {
        if entry.kind == ValueKind::RangeDelete {
            let span = KeySpan { lower: entry.key.into(), upper: Some(entry.value.into()) };
            self.note_span(entry.family, span, sequence);
            return;
        }
        let rows = self.newer.rows.entry(entry.family).or_default();
        match rows.get_mut(entry.key) {
            Some(last) => *last = sequence,
            None => {
                rows.insert(entry.key.into(), sequence);
                self.newer.bytes += ROW_BYTES + entry.key.len();
            }
        }
    }

    /// Notes a table that was ingested, if anything is noted: every key of its range counts.
    pub(crate) fn note_table(
        &mut self,
        family: ColumnFamilyId,
        range: &KeyRange,
        sequence: SequenceNumber,
    ) {
        if !self.is_on {
            return;
        }
        let upper = Some(key_behind(&range.largest));
        let span = KeySpan { lower: range.smallest[..].into(), upper };
        self.note_span(family, span, sequence);
    }

    fn note_span(&mut self, family: ColumnFamilyId, span: KeySpan, sequence: SequenceNumber) {
        let upper_bytes = span.upper.as_ref().map_or(0, |upper| upper.len());
        self.newer.bytes += ROW_BYTES + span.lower.len() + upper_bytes;
        self.newer.spans.push((family, span, sequence));
    }

    /// Keeps what is noted within its bound, once all up to `last_sequence` is noted.
    pub(crate) fn trim(&mut self, last_sequence: SequenceNumber, budget: &MemoryBudget) {
        let bytes_max = NOTED_BYTES_MAX.min(budget.limit_bytes() / BUDGET_PART);
        if self.newer.bytes > bytes_max / 2 {
            self.older = std::mem::take(&mut self.newer);
            self.floor = self.newer_floor;
            self.newer_floor = last_sequence;
        }
        if let Some(charge) = &mut self.charge {
            charge.resize(self.older.bytes + self.newer.bytes);
        }
    }

    /// Whether nothing that a transaction has read was written behind its snapshot.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] if something was, or if that is not known any more.
    pub(crate) fn check(&self, checks: &Checks) -> Result<()> {
        if planted!(OptimisticUnchecked) {
            return Ok(());
        }
        let since = checks.snapshot;
        if !self.is_on || since < self.floor {
            return Err(Error::new(
                ErrorKind::Conflict,
                "more was written since the transaction began than is remembered: roll back and \
                 retry, or use a transaction with locks",
            ));
        }
        for noted in [&self.newer, &self.older] {
            for (family, key) in &checks.reads.keys {
                if noted.is_written(*family, key, since) {
                    return Err(conflict("a row", key));
                }
            }
            if planted!(ScansUnchecked) {
                continue;
            }
            for (family, span) in &checks.reads.spans {
                if noted.is_written_in(*family, span, since) {
                    return Err(conflict("a range of rows from", &span.lower));
                }
            }
        }
        Ok(())
    }
}

#[cold]
fn conflict(what: &str, key: &[u8]) -> Error {
    let key = key.escape_ascii();
    Error::new(
        ErrorKind::Conflict,
        format!(
            "{what} \"{key}\" that the transaction has read was written since: roll back and retry"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(key: &str) -> Entry<'_> {
        Entry { kind: ValueKind::Put, family: 1, key: key.as_bytes(), value: b"" }
    }

    fn checks(snapshot: SequenceNumber, keys: &[&str], span: Option<(&str, &str)>) -> Checks {
        let mut reads = ReadSet::default();
        keys.iter().for_each(|key| reads.note_key(1, key.as_bytes()));
        if let Some((lower, upper)) = span {
            let upper = (upper != "end").then(|| upper.as_bytes().into());
            reads.note_span(1, KeySpan { lower: lower.as_bytes().into(), upper });
        }
        Checks { snapshot, reads }
    }

    #[test]
    fn what_was_read_and_written_since_is_a_conflict() {
        let budget = MemoryBudget::new(64 << 20);
        let mut recent = Recent::default();
        assert!(recent.check(&checks(9, &[], None)).is_err(), "nothing is noted");
        recent.begin(10, &budget);
        recent.note(&put("b"), 11);
        recent.note(&put("d"), 12);
        let deleted = Entry { kind: ValueKind::RangeDelete, value: b"h", ..put("f") };
        recent.note(&deleted, 13);
        let table = KeyRange::inclusive(b"m", b"p");
        recent.note_table(1, &table, 14);
        let conflicts =
            |snapshot, keys: &[&str], span| recent.check(&checks(snapshot, keys, span)).is_err();
        assert!(conflicts(10, &["b"], None) && !conflicts(11, &["b"], None));
        assert!(!conflicts(10, &["a", "c", "h", "q"], None), "others were written");
        assert!(conflicts(12, &["g"], None) && !conflicts(13, &["g"], None));
        assert!(conflicts(13, &["p"], None) && conflicts(13, &["m"], None));
        assert!(conflicts(11, &[], Some(("c", "e"))) && !conflicts(12, &[], Some(("c", "e"))));
        assert!(!conflicts(10, &[], Some(("b\0", "d"))), "between them");
        assert!(conflicts(12, &[], Some(("g", "g1"))) && !conflicts(12, &[], Some(("h", "m"))));
        assert!(conflicts(13, &[], Some(("n", "end"))) && !conflicts(10, &[], Some(("q", "end"))));
        assert!(!conflicts(10, &[], Some(("z", "a"))), "an empty span");
        assert!(conflicts(9, &[], None), "before anything was noted");
    }

    #[test]
    fn what_is_noted_is_bounded_and_what_is_forgotten_is_a_conflict() {
        let budget = MemoryBudget::new(4 << 20);
        let mut recent = Recent::default();
        recent.begin(0, &budget);
        for sequence in 1..20_000 {
            recent.note(&put(&format!("key{sequence}")), sequence);
            recent.trim(sequence, &budget);
        }
        let noted_bytes = budget.used_bytes(MemoryUse::Memtable);
        assert!(noted_bytes > 32 << 10 && noted_bytes <= 132 << 10, "{noted_bytes}");
        assert!(recent.check(&checks(1, &["other"], None)).is_err());
        assert!(recent.check(&checks(19_990, &["other"], None)).is_ok());
        assert!(recent.check(&checks(19_990, &["key19995"], None)).is_err());
        recent.end();
        assert_eq!(budget.used_bytes(MemoryUse::Memtable), 0);
    }
}
