//! What the database has to answer: ordered maps, one per column family, with the engine's
//! semantics. States are cheap to keep: rows are shared until they change, and a snapshot is the
//! state that it was taken at.

use crate::digest;
use crate::operation::{Change, FAMILY_COUNT, Key, Span, Write, lifetimes, operators};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// The rows of a family.
pub type Rows = BTreeMap<Arc<[u8]>, Arc<[u8]>>;

/// One column family.
#[derive(Clone, Debug, Default)]
pub struct Content {
    incarnation: u32,
    rows: Arc<Rows>,
    digest: u64,
    /// How many half-lives have passed.
    half_lives: u32,
    /// In a family with a time to live: how many had when each row was written.
    written: Option<Arc<BTreeMap<Arc<[u8]>, u32>>>,
}

/// A whole database.
#[derive(Clone, Debug, Default)]
pub struct State {
    families: [Option<Content>; FAMILY_COUNT],
    incarnations: u32,
    half_lives: u32,
}

impl Content {
    /// Tells a family from others that had its name before or have it later.
    pub fn incarnation(&self) -> u32 {
        self.incarnation
    }

    /// The rows.
    pub fn rows(&self) -> &Arc<Rows> {
        &self.rows
    }

    /// The sum of [`digest::of_row`] over all rows.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.rows.get(key).map(|value| &value[..])
    }

    /// Sets the value of a key.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        self.set(key, value.into());
    }

    fn set(&mut self, key: &[u8], value: Arc<[u8]>) {
        self.digest = self.digest.wrapping_add(digest::of_row(key, &value));
        self.note_written(key, self.half_lives);
        let rows = Arc::make_mut(&mut self.rows);
        let old = match rows.get_mut(key) {
            Some(place) => Some(std::mem::replace(place, value)),
            None => rows.insert(key.into(), value),
        };
        if let Some(old) = old {
            self.digest = self.digest.wrapping_sub(digest::of_row(key, &old));
        }
    }

    fn note_written(&mut self, key: &[u8], half_lives: u32) {
        if let Some(written) = &mut self.written {
            Arc::make_mut(written).insert(key.into(), half_lives);
        }
    }

    /// Half of the time to live passes: rows expire that were written before the last time.
    fn age(&mut self) {
        self.half_lives += 1;
        let Some(written) = &self.written else { return };
        let is_over = |(_, written): &(_, &u32)| **written + 2 <= self.half_lives;
        let over: Vec<_> = written.iter().filter(is_over).map(|(key, _)| Arc::clone(key)).collect();
        over.iter().for_each(|key| self.remove(key));
    }

    /// Removes a key.
    pub fn remove(&mut self, key: &[u8]) {
        if !self.rows.contains_key(key) {
            return;
        }
        if let Some(written) = &mut self.written {
            Arc::make_mut(written).remove(key);
        }
        if let Some(old) = Arc::make_mut(&mut self.rows).remove(key) {
            self.digest = self.digest.wrapping_sub(digest::of_row(key, &old));
        }
    }

    /// Removes the keys from `start` on, up to but without `end`.
    pub fn remove_range(&mut self, start: &[u8], end: &[u8]) {
        let span = Span::Between(start.to_vec(), end.to_vec());
        let doomed: Vec<_> = rows_in(&self.rows, &span).map(|(key, _)| Arc::clone(key)).collect();
        doomed.iter().for_each(|key| self.remove(key));
    }

    /// Makes a change of a family in a slot. [`Change::Once`] is not one before it is resolved: it does nothing.
    pub fn apply(&mut self, slot: usize, change: &Change) {
        match change {
            Change::Put(key, value) => self.put(key, &value.bytes()),
            Change::Delete(key) | Change::SingleDelete(key) => self.remove(key),
            Change::DeleteRange(start, end) => self.remove_range(start, end),
            Change::Merge(key, operand) => {
                let value = operators::merged(slot, self.get(key), &operand.bytes());
                self.put(key, &value);
            }
            Change::Once(..) => {}
        }
    }
}

/// The rows of a span, in order.
pub fn rows_in<'r>(
    rows: &'r Rows,
    span: &Span,
) -> impl DoubleEndedIterator<Item = (&'r Arc<[u8]>, &'r Arc<[u8]>)> {
    let (lower, upper) = bounds(span);
    // A map panics at a range that ends before it starts.
    let is_empty = match (&lower, &upper) {
        (Bound::Included(lower), Bound::Excluded(upper)) => lower >= upper,
        (Bound::Included(lower), Bound::Included(upper)) => lower > upper,
        _ => false,
    };
    let range = match is_empty {
        true => None,
        false => Some(rows.range::<[u8], _>((
            lower.as_ref().map(|key| &key[..]),
            upper.as_ref().map(|key| &key[..]),
        ))),
    };
    range.into_iter().flatten()
}

/// The ends of a span.
pub fn bounds(span: &Span) -> (Bound<Key>, Bound<Key>) {
    use Bound::{Excluded, Included, Unbounded};
    match span {
        Span::All => (Unbounded, Unbounded),
        Span::From(lower) => (Included(lower.clone()), Unbounded),
        Span::To(upper) => (Unbounded, Excluded(upper.clone())),
        Span::Between(lower, upper) => (Included(lower.clone()), Excluded(upper.clone())),
        Span::Through(lower, upper) => (Included(lower.clone()), Included(upper.clone())),
        Span::Prefix(prefix) => {
            let mut behind = prefix.clone();
            while behind.last() == Some(&0xff) {
                behind.pop();
            }
            match behind.last_mut() {
                Some(last) => {
                    *last += 1;
                    (Included(prefix.clone()), Excluded(behind))
                }
                None => (Included(prefix.clone()), Unbounded),
            }
        }
    }
}

impl State {
    /// The family in a slot.
    pub fn family(&self, slot: usize) -> Option<&Content> {
        self.families.get(slot).and_then(Option::as_ref)
    }

    /// All slots.
    pub fn families(&self) -> &[Option<Content>; FAMILY_COUNT] {
        &self.families
    }

    /// The family of that incarnation, if it is in the slot.
    pub fn same_family(&self, slot: usize, incarnation: u32) -> Option<&Content> {
        self.family(slot).filter(|content| content.incarnation == incarnation)
    }

    /// Makes an empty family, in the place of one that was there.
    pub fn create(&mut self, slot: usize) {
        self.incarnations += 1;
        self.families[slot] = Some(Content {
            incarnation: self.incarnations,
            half_lives: self.half_lives,
            written: (slot == lifetimes::TIMED).then(Default::default),
            ..Content::default()
        });
    }

    /// Half of the time to live passes.
    pub fn age(&mut self) {
        self.half_lives += 1;
        self.families.iter_mut().flatten().for_each(Content::age);
    }

    /// How many half-lives have passed.
    pub fn half_lives(&self) -> u32 {
        self.half_lives
    }

    /// The state as it is once so many half-lives have passed.
    #[must_use]
    pub fn after_half_lives(mut self, half_lives: u32) -> State {
        while self.half_lives < half_lives {
            self.age();
        }
        self
    }

    /// Half of the time to live has passed since this row was written.
    pub fn backdate(&mut self, slot: usize, key: &[u8]) {
        if let Some(content) = self.families[slot].as_mut().filter(|c| c.rows.contains_key(key)) {
            content.note_written(key, content.half_lives.saturating_sub(1));
        }
    }

    /// A compaction filter has made this of a row, whose age stays.
    pub fn refilter(&mut self, slot: usize, key: &[u8], value: Option<&Arc<[u8]>>) {
        let Some(content) = self.families[slot].as_mut() else { return };
        let written = content.written.as_ref().and_then(|written| written.get(key).copied());
        match value {
            Some(value) => content.set(key, Arc::clone(value)),
            None => content.remove(key),
        }
        if let Some(half_lives) = written.filter(|_| value.is_some()) {
            content.note_written(key, half_lives);
        }
    }

    /// Drops a family.
    pub fn drop_family(&mut self, slot: usize) {
        self.families[slot] = None;
    }

    /// Puts what is now in place of a slot's content: what a crash left of it.
    pub fn replace(&mut self, slot: usize, content: Option<Content>) {
        self.families[slot] = content;
    }

    /// Makes a change; one of a family that is not there does nothing.
    pub fn apply(&mut self, write: &Write) {
        if let Some(content) = self.families.get_mut(write.family).and_then(Option::as_mut) {
            content.apply(write.family, &write.change);
        }
    }

    /// The writes of a batch as they can be made, in order: [`Change::Once`] becomes a put or a
    /// single delete, [`Change::Merge`] a put where nothing would fold it, and what is of a family that is not there is left out.
    pub fn resolve(&self, writes: &[Write]) -> Vec<Write> {
        // Where the batch itself has put or removed a key, that decides.
        let mut own: BTreeMap<(usize, &Key), bool> = BTreeMap::new();
        let mut resolved = Vec::with_capacity(writes.len());
        for write in writes {
            let Some(content) = self.family(write.family) else { continue };
            let change = match &write.change {
                Change::Once(key, value) => {
                    let place = own.entry((write.family, key));
                    let is_there = place.or_insert_with(|| content.get(key).is_some());
                    *is_there = !*is_there;
                    match *is_there {
                        true => Change::Put(key.clone(), *value),
                        false => Change::SingleDelete(key.clone()),
                    }
                }
                Change::Merge(key, operand) if !operators::is_merged(write.family) => {
                    Change::Put(key.clone(), *operand)
                }
                other => other.clone(),
            };
            resolved.push(Write { family: write.family, change });
        }
        resolved
    }

    /// A fingerprint of everything: of which families there are, and of their rows.
    pub fn digest(&self) -> u64 {
        self.families.iter().fold(0, |digest, family| match family {
            Some(content) => digest::mix(digest::mix(digest, 1), content.digest),
            None => digest::mix(digest, 0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Value;

    fn write(family: usize, change: Change) -> Write {
        Write { family, change }
    }

    #[test]
    fn digests_follow_the_rows_and_kept_states_stay() {
        let value = Value { seed: 7, length: 30 };
        let mut state = State::default();
        let empty = state.digest();
        state.create(1);
        let made = state.digest();
        assert_ne!(empty, made);
        state.apply(&write(1, Change::Put(b"a".to_vec(), value)));
        state.apply(&write(1, Change::Put(b"b".to_vec(), value)));
        let kept = state.clone();
        state.apply(&write(1, Change::Put(b"a".to_vec(), Value { seed: 8, length: 1 })));
        assert_ne!(kept.digest(), state.digest());
        assert_eq!(kept.family(1).unwrap().get(b"a"), Some(&value.bytes()[..]));
        state.apply(&write(1, Change::DeleteRange(b"a".to_vec(), b"b".to_vec())));
        state.apply(&write(1, Change::Delete(b"b".to_vec())));
        state.apply(&write(0, Change::Delete(b"b".to_vec())));
        assert_eq!(state.digest(), made);
        state.drop_family(1);
        assert_eq!(state.digest(), empty);
    }

    #[test]
    fn a_key_written_once_alternates_within_a_batch() {
        let mut state = State::default();
        state.create(0);
        let once = || write(0, Change::Once(b"s".to_vec(), Value { seed: 1, length: 2 }));
        let resolved = state.resolve(&[once(), once(), once(), write(2, once().change)]);
        let kinds: Vec<bool> =
            resolved.iter().map(|write| matches!(write.change, Change::Put(..))).collect();
        assert_eq!(kinds, [true, false, true]);
        resolved.iter().for_each(|write| state.apply(write));
        assert!(matches!(state.resolve(&[once()])[0].change, Change::SingleDelete(_)));
    }

    #[test]
    fn spans_hold_what_they_say() {
        let mut content = Content::default();
        for key in [&b""[..], b"a", b"ab", b"b", b"\xff", b"\xff\xff"] {
            content.put(key, key);
        }
        let count = |span: Span| rows_in(content.rows(), &span).count();
        let key = |text: &[u8]| text.to_vec();
        assert_eq!(count(Span::All), 6);
        assert_eq!(count(Span::From(key(b"ab"))), 4);
        assert_eq!(count(Span::To(key(b"ab"))), 2);
        assert_eq!(count(Span::Between(key(b"a"), key(b"b"))), 2);
        assert_eq!(count(Span::Through(key(b"a"), key(b"b"))), 3);
        assert_eq!(count(Span::Between(key(b"b"), key(b"a"))), 0);
        assert_eq!(count(Span::Prefix(key(b"a"))), 2);
        assert_eq!(count(Span::Prefix(key(b"\xff"))), 2);
        assert_eq!(count(Span::Prefix(key(b""))), 6);
    }
}
