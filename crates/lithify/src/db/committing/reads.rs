//! What an optimistic transaction has read.
//!
//! Owns: keys, there or not, and spans of keys that cursors went over. Spans that meet are one, so a scan
//! is one span however many rows it has, and a check passes each noted write once. What is noted is
//! bounded: a read that has no room is refused, and nothing of it is noted.
//!
//! A transaction shares it with its cursors, under a lock.

use crate::base::ColumnFamilyId;
use crate::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// What a key or a span takes beside its bytes, about.
const NOTE_BYTES: usize = 64;

/// Keys from one on, up to but without another; the last one may be missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeySpan {
    pub(crate) lower: Box<[u8]>,
    pub(crate) upper: Option<Box<[u8]>>,
}

impl KeySpan {
    /// Whether no key is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.upper.as_ref().is_some_and(|upper| *upper <= self.lower)
    }

    /// Its bounds, for a map of keys.
    pub(crate) fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let upper = self.upper.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        (Bound::Included(&self.lower), upper)
    }

    fn bytes(&self) -> usize {
        NOTE_BYTES + self.lower.len() + self.upper.as_ref().map_or(0, |upper| upper.len())
    }
}

/// Spans that neither overlap nor touch, with their ends by their first keys.
type Spans = BTreeMap<Box<[u8]>, Option<Box<[u8]>>>;

/// See the module.
pub(crate) struct ReadSet {
    keys: BTreeSet<(ColumnFamilyId, Box<[u8]>)>,
    spans: BTreeMap<ColumnFamilyId, Spans>,
    bytes: usize,
    bytes_max: usize,
}

impl ReadSet {
    /// Nothing was read, and so many bytes may be noted.
    pub(crate) fn new(bytes_max: usize) -> Self {
        ReadSet { keys: BTreeSet::new(), spans: BTreeMap::new(), bytes: 0, bytes_max }
    }

    /// What was noted; from now on it is empty.
    pub(crate) fn take(&mut self) -> ReadSet {
        let bytes_max = self.bytes_max;
        std::mem::replace(self, ReadSet::new(bytes_max))
    }

    /// Notes a key.
    ///
    /// # Errors
    /// [`crate::ErrorKind::LimitExceeded`] if there is no room for it.
    pub(crate) fn note_key(&mut self, family: ColumnFamilyId, key: &[u8]) -> Result<()> {
        let key = (family, Box::from(key));
        if !self.keys.contains(&key) {
            let bytes = NOTE_BYTES + key.1.len();
            self.check_room(bytes)?;
            self.bytes += bytes;
            self.keys.insert(key);
        }
        Ok(())
    }

    /// Notes a span.
    ///
    /// # Errors
    /// [`crate::ErrorKind::LimitExceeded`] if there is no room for it.
    pub(crate) fn note_span(&mut self, family: ColumnFamilyId, span: &KeySpan) -> Result<()> {
        if span.is_empty() {
            return Ok(());
        }
        self.check_room(span.bytes())?;
        let spans = self.spans.entry(family).or_default();
        let mut joined = span.clone();
        while let Some(met) = last_met(spans, &joined) {
            spans.remove(&met.lower);
            self.bytes -= met.bytes();
            joined.lower = joined.lower.min(met.lower);
            joined.upper = joined.upper.zip(met.upper).map(|(a, b)| a.max(b));
        }
        self.bytes += joined.bytes();
        spans.insert(joined.lower, joined.upper);
        Ok(())
    }

    fn check_room(&self, bytes: usize) -> Result<()> {
        match self.bytes + bytes <= self.bytes_max {
            true => Ok(()),
            false => Err(Error::limit(
                "an optimistic transaction has read too much to be checked: commit it, or use a \
                 transaction with locks",
            )
            .expected(format_args!("at most {} bytes", self.bytes_max), self.bytes + bytes)),
        }
    }

    /// All keys that were noted.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (ColumnFamilyId, &[u8])> {
        self.keys.iter().map(|(family, key)| (*family, &**key))
    }

    /// All spans that were noted, disjoint within a family.
    pub(crate) fn spans(&self) -> impl Iterator<Item = (ColumnFamilyId, KeySpan)> {
        let spans = self.spans.iter();
        spans.flat_map(|(family, spans)| {
            spans.iter().map(|(lower, upper)| {
                (*family, KeySpan { lower: lower.clone(), upper: upper.clone() })
            })
        })
    }
}

/// The last span that overlaps or touches another one.
fn last_met(spans: &Spans, span: &KeySpan) -> Option<KeySpan> {
    let end = span.upper.as_deref().map_or(Bound::Unbounded, Bound::Included);
    let (lower, upper) = spans.range::<[u8], _>((Bound::Unbounded, end)).next_back()?;
    let meets = upper.as_ref().is_none_or(|upper| *upper >= span.lower);
    meets.then(|| KeySpan { lower: lower.clone(), upper: upper.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(lower: &str, upper: &str) -> KeySpan {
        let upper = (upper != "end").then(|| upper.as_bytes().into());
        KeySpan { lower: lower.as_bytes().into(), upper }
    }

    fn noted(spans: &[(&str, &str)]) -> Vec<KeySpan> {
        let mut reads = ReadSet::new(1 << 20);
        spans.iter().for_each(|(lower, upper)| reads.note_span(1, &span(lower, upper)).unwrap());
        let kept: Vec<_> = reads.spans().map(|(_, span)| span).collect();
        assert_eq!(reads.bytes, kept.iter().map(KeySpan::bytes).sum::<usize>());
        kept
    }

    #[test]
    fn spans_that_meet_are_one() {
        assert_eq!(noted(&[("k", "m"), ("c", "e")]), [span("c", "e"), span("k", "m")]);
        assert_eq!(noted(&[("c", "e"), ("e", "g"), ("b", "c")]), [span("b", "g")]);
        assert_eq!(noted(&[("c", "e"), ("k", "m"), ("d", "k")]), [span("c", "m")]);
        assert_eq!(noted(&[("c", "e"), ("k", "m"), ("a", "z")]), [span("a", "z")]);
        assert_eq!(noted(&[("c", "m"), ("d", "e"), ("k", "k")]), [span("c", "m")]);
        assert_eq!(noted(&[("c", "e"), ("k", "end"), ("d", "p")]), [span("c", "end")]);
        assert_eq!(noted(&[("z", "a"), ("b", "b")]), []);
        let ascending: Vec<_> = (0..100).map(|key| format!("{key:02}")).collect();
        let steps: Vec<_> = ascending.windows(2).map(|two| (&*two[0], &*two[1])).collect();
        assert_eq!(noted(&steps), [span("00", "99")]);
    }

    #[test]
    fn what_has_no_room_is_refused_and_not_noted() {
        let mut reads = ReadSet::new(4 << 10);
        let fits = (0..100).take_while(|key: &u32| reads.note_key(1, &key.to_be_bytes()).is_ok());
        assert_eq!(fits.count(), (4 << 10) / (NOTE_BYTES + 4));
        let refused = reads.note_span(1, &span("a", "b")).unwrap_err();
        assert_eq!(refused.kind(), crate::ErrorKind::LimitExceeded);
        assert!(refused.to_string().contains("4096 bytes"), "{refused}");
        reads.note_key(1, &7_u32.to_be_bytes()).unwrap();
        assert_eq!((reads.keys().count(), reads.spans().count()), (60, 0));
        assert_eq!((reads.take().keys().count(), reads.keys().count()), (60, 0));
        reads.note_span(1, &span("a", "b")).unwrap();
    }
}
