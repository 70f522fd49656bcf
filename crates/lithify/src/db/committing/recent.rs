//! What was written lately, to check optimistic transactions against.
//!
//! An optimistic transaction takes no locks. It reads at a snapshot and remembers what it has read
//! ([`ReadSet`]), and its commit is refused if any of that was written since.
//!
//! 1. While such a transaction is open, the commit leader notes the keys that it writes, and so does
//!    an ingest ([`Recent`]): all with higher numbers than a floor.
//! 2. The leader compares what a transaction has read with what is noted before it gives the
//!    transaction its sequence numbers. Nobody writes in between. No table is read. Ranges that were
//!    written are fragments that do not overlap, as in a memtable, and so are the spans that were read:
//!    a check takes a logarithm for each of what was read, and passes what was written once.
//! 3. What is noted is bounded. Once it is full its older half is forgotten, and the floor rises. A
//!    transaction whose snapshot is below the floor is refused, for nobody can tell.
//!
//! Belongs to the writer: whoever holds it may touch this.

use crate::base::{
    Charge, ColumnFamilyId, MemoryBudget, MemoryUse, SEQUENCE_MAX, SequenceNumber, ValueKind,
    key_behind,
};
use crate::db::committing::batch::Entry;
use crate::db::committing::reads::{KeySpan, ReadSet};
use crate::manifest::KeyRange;
use crate::table::TombstoneMap;
use crate::{Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most bytes that are noted, if the budget is large enough.
const NOTED_BYTES_MAX: usize = 8 << 20;

/// The part of the memory budget that is noted at most.
const BUDGET_PART: usize = 32;

/// What a row takes beside its key, about.
const ROW_BYTES: usize = 64;

/// What has to hold when a transaction commits.
pub(crate) struct Checks {
    pub(crate) snapshot: SequenceNumber,
    pub(crate) reads: ReadSet,
}

/// Rows and ranges that were written, with their last sequence numbers.
#[derive(Default)]
struct Noted {
    rows: BTreeMap<ColumnFamilyId, BTreeMap<Box<[u8]>, SequenceNumber>>,
    ranges: BTreeMap<ColumnFamilyId, TombstoneMap>,
    bytes: usize,
}

impl Noted {
    fn note_range(
        &mut self,
        family: ColumnFamilyId,
        (start, end): (&[u8], &[u8]),
        sequence: SequenceNumber,
    ) {
        let ranges = self.ranges.entry(family).or_default();
        let bytes_before = ranges.memory_bytes();
        // Nobody asks for an older one than the newest.
        ranges.insert(start, end, sequence, &[]);
        self.bytes = self.bytes + ranges.memory_bytes() - bytes_before;
    }

    fn is_written(&self, family: ColumnFamilyId, key: &[u8], since: SequenceNumber) -> bool {
        let row = self.rows.get(&family).and_then(|rows| rows.get(key));
        let ranges = self.ranges.get(&family);
        row.is_some_and(|sequence| *sequence > since)
            || ranges.is_some_and(|ranges| ranges.covering_sequence(key, SEQUENCE_MAX) > since)
    }

    /// The span has a key: a map panics at a range that ends before it starts.
    fn is_written_in(&self, family: ColumnFamilyId, span: &KeySpan, since: SequenceNumber) -> bool {
        let rows = self.rows.get(&family);
        let mut rows = rows.into_iter().flat_map(|rows| rows.range::<[u8], _>(span.bounds()));
        let ranges = self.ranges.get(&family);
        rows.any(|(_, sequence)| *sequence > since)
            || ranges.is_some_and(|ranges| {
                ranges.newest_between(&span.lower, span.upper.as_deref()) > since
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
            self.newer.note_range(entry.family, (entry.key, entry.value), sequence);
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
        if self.is_on {
            let end = key_behind(&range.largest);
            self.newer.note_range(family, (&range.smallest, &end), sequence);
        }
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
            for (family, key) in checks.reads.keys() {
                if noted.is_written(family, key, since) {
                    return Err(conflict("a row", key));
                }
            }
            if planted!(ScansUnchecked) {
                continue;
            }
            for (family, span) in checks.reads.spans() {
                if noted.is_written_in(family, &span, since) {
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
    use crate::fs::{Clock, SystemEnvironment};

    fn put(key: &str) -> Entry<'_> {
        Entry { kind: ValueKind::Put, family: 1, key: key.as_bytes(), value: b"" }
    }

    fn checks(snapshot: SequenceNumber, keys: &[&str], span: Option<(&str, &str)>) -> Checks {
        let mut reads = ReadSet::new(1 << 20);
        keys.iter().for_each(|key| reads.note_key(1, key.as_bytes()).unwrap());
        if let Some((lower, upper)) = span {
            let upper = (upper != "end").then(|| upper.as_bytes().into());
            reads.note_span(1, &KeySpan { lower: lower.as_bytes().into(), upper }).unwrap();
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

    /// Nobody commits during a check. By pairs this one would take the processor half a minute.
    #[test]
    fn a_check_does_not_compare_each_read_with_each_write() {
        let budget = MemoryBudget::new(256 << 20);
        let mut recent = Recent::default();
        recent.begin(0, &budget);
        for sequence in 1..=40_000 {
            let start = format!("m{sequence:08}");
            let end = format!("{start}~");
            let (key, value) = (start.as_bytes(), end.as_bytes());
            let kind = ValueKind::RangeDelete;
            recent.note(&Entry { kind, family: 1, key, value }, sequence);
            recent.trim(sequence, &budget);
        }
        let mut reads = ReadSet::new(8 << 20);
        for number in 0..40_000 {
            // Between two of the ranges.
            let lower = format!("m{number:08}~");
            let upper = Some(key_behind(lower.as_bytes()));
            reads.note_key(1, format!("{lower}k").as_bytes()).unwrap();
            reads.note_span(1, &KeySpan { lower: lower.as_bytes().into(), upper }).unwrap();
        }
        let begun_ns = SystemEnvironment.thread_cpu_ns();
        assert!(recent.check(&Checks { snapshot: 0, reads }).is_ok());
        let cpu_ns = SystemEnvironment.thread_cpu_ns() - begun_ns;
        assert!(cpu_ns < 5_000_000_000, "{cpu_ns} ns");
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
