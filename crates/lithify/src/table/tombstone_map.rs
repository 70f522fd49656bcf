//! The range deletes of a memtable, as fragments that grow with each of them.
//!
//! The map holds fragments of keys that do not overlap, and of each the sequence numbers of the
//! deletes that cover it, newest first: but only those that a reader can tell apart. A delete cuts
//! the fragments at its ends and becomes the newest of all between. Of the older ones a fragment
//! keeps those at which a live snapshot, or the last commit, may look; fragments that come to the
//! same are joined. So a queue that is trimmed by one delete after the other has a few fragments,
//! however many deletes there were. A delete costs a logarithm of the fragments for each that it
//! covers; where snapshots keep them apart these stay many, and [`TombstoneMap::work`] tells when a
//! new memtable is cheaper.
//!
//! *Which readers it answers.* A reader at the last commit or at a live snapshot is always answered.
//! A reader that took its sequence number a while ago, without a snapshot, may find that what it
//! needs was forgotten: [`TombstoneMap::answers`] says so, and it takes a new one.
//!
//! A clone is a pointer: cursors keep the map as it was, and later deletes copy what they change.

use super::tombstones::{FragmentEncoder, FragmentedTombstones};
use crate::base::SequenceNumber;
use rpds::RedBlackTreeMapSync;
use std::ops::Bound;

/// A fragment takes so much beside its keys and sequence numbers: entry, node, counts.
const FRAGMENT_OVERHEAD_BYTES: usize = 160;

/// Between `start`, its place in the map, and `end`.
struct Fragment {
    end: Box<[u8]>,
    /// Newest first, never empty.
    sequences: Box<[SequenceNumber]>,
}

impl Fragment {
    fn bytes(&self, start: &[u8]) -> usize {
        FRAGMENT_OVERHEAD_BYTES + start.len() + self.end.len() + size_of_val(&*self.sequences)
    }
}

/// Keys that a new delete covers, and what covered them before.
struct Piece {
    start: Box<[u8]>,
    end: Box<[u8]>,
    sequences: Vec<SequenceNumber>,
}

/// See the module.
#[derive(Clone)]
pub struct TombstoneMap {
    fragments: RedBlackTreeMapSync<Box<[u8]>, Fragment>,
    /// A reader at a smaller sequence number needs a snapshot to be answered.
    forgotten_below: SequenceNumber,
    bytes: usize,
    work: u64,
}

impl Default for TombstoneMap {
    fn default() -> Self {
        let fragments = RedBlackTreeMapSync::new_sync();
        TombstoneMap { fragments, forgotten_below: 0, bytes: 0, work: 0 }
    }
}

impl TombstoneMap {
    /// Adds the deletion of the keys from `start` to before `end`, newer than all before it; an
    /// empty range is dropped. `readers` are the sequence numbers of live snapshots, ascending, and
    /// the last commit behind them: nothing else may be read at from now on.
    pub fn insert(
        &mut self,
        start: &[u8],
        end: &[u8],
        sequence: SequenceNumber,
        readers: &[SequenceNumber],
    ) {
        if start >= end {
            return;
        }
        let mut pieces = self.take_out(start, end);
        self.work += pieces.len() as u64;
        for piece in &mut pieces {
            self.cover(&mut piece.sequences, sequence, readers);
        }
        let mut joined: Option<Piece> = None;
        for piece in pieces {
            match &mut joined {
                Some(last) if last.sequences == piece.sequences => last.end = piece.end,
                last => {
                    if let Some(done) = last.replace(piece) {
                        self.put(done);
                    }
                }
            }
        }
        if let Some(last) = joined {
            self.put(last);
        }
    }

    /// Takes what covers `start` to `end` out of the map, in pieces without gaps.
    fn take_out(&mut self, start: &[u8], end: &[u8]) -> Vec<Piece> {
        let before = self.last_from_below(start, false).filter(|(_, f)| &*f.end > start);
        let before = before.map(|(key, _)| key.into());
        let within = (Bound::Included(start), Bound::Excluded(end));
        let inside = self.fragments.range::<[u8], _>(within).map(|(key, _)| key.clone());
        let touched: Vec<Box<[u8]>> = before.into_iter().chain(inside).collect();
        let mut pieces = Vec::with_capacity(2 * touched.len() + 1);
        let mut covered_to: Box<[u8]> = start.into();
        for key in touched {
            let Some(old) = self.remove(&key) else { continue };
            let from = if *key < *start { start.into() } else { key.clone() };
            if covered_to < from {
                let gap_end = from.clone();
                pieces.push(Piece {
                    start: covered_to.clone(),
                    end: gap_end,
                    sequences: Vec::new(),
                });
            }
            if *key < *start {
                let sequences = old.sequences.clone();
                self.put(Piece { start: key, end: start.into(), sequences });
            }
            let to = if &*old.end > end { end.into() } else { old.end.clone() };
            if &*old.end > end {
                let sequences = old.sequences.clone();
                self.put(Piece { start: end.into(), end: old.end, sequences });
            }
            covered_to.clone_from(&to);
            pieces.push(Piece { start: from, end: to, sequences: old.sequences });
        }
        if &*covered_to < end {
            pieces.push(Piece { start: covered_to, end: end.into(), sequences: Vec::new() });
        }
        pieces
    }

    /// Puts a delete before the older ones, of which those stay that a reader may look at.
    fn cover(
        &mut self,
        sequences: &mut Vec<SequenceNumber>,
        sequence: SequenceNumber,
        readers: &[SequenceNumber],
    ) {
        let last_commit = readers.last().copied().unwrap_or(0);
        let mut newer = sequence;
        sequences.retain(|older| {
            let first = readers.partition_point(|reader| reader < older);
            let mut is_read = readers.get(first).is_some_and(|reader| *reader < newer);
            if planted!(TombstoneKeptForNobody) {
                is_read = true;
            }
            if is_read {
                newer = *older;
            } else if *older <= last_commit {
                self.forgotten_below = self.forgotten_below.max(newer);
            }
            is_read
        });
        sequences.insert(0, sequence);
    }

    fn put(&mut self, piece: Piece) {
        let sequences = piece.sequences.into_boxed_slice();
        let fragment = Fragment { end: piece.end, sequences };
        self.bytes += fragment.bytes(&piece.start);
        self.fragments.insert_mut(piece.start, fragment);
    }

    /// Takes a fragment out: its end and its sequence numbers.
    fn remove(&mut self, start: &[u8]) -> Option<Taken> {
        let fragment = self.fragments.get(start)?;
        let taken = Taken { end: fragment.end.clone(), sequences: fragment.sequences.to_vec() };
        self.bytes -= fragment.bytes(start);
        self.fragments.remove_mut(start);
        Some(taken)
    }

    /// The last fragment that starts before `key`, or there if `or_at`.
    fn last_from_below(&self, key: &[u8], or_at: bool) -> Option<(&[u8], &Fragment)> {
        let end = if or_at { Bound::Included(key) } else { Bound::Excluded(key) };
        let mut below = self.fragments.range::<[u8], _>((Bound::Unbounded, end));
        below.next_back().map(|(start, fragment)| (&**start, fragment))
    }

    /// Whether there are no deletes.
    pub fn is_empty(&self) -> bool {
        self.fragments.is_empty()
    }

    /// The number of fragments.
    pub fn len(&self) -> usize {
        self.fragments.size()
    }

    /// Fragments that all deletes so far have touched.
    pub fn work(&self) -> u64 {
        self.work
    }

    /// What it takes, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// Whether a reader at this sequence number is answered without a snapshot of its own.
    pub fn answers(&self, sequence: SequenceNumber) -> bool {
        sequence >= self.forgotten_below
    }

    /// The newest delete that covers `key` and is visible at `snapshot`; 0 if there is none.
    pub fn covering_sequence(&self, key: &[u8], snapshot: SequenceNumber) -> SequenceNumber {
        self.covering(key, snapshot).map_or(0, |(sequence, _)| sequence)
    }

    /// The same, with the first key of the fragment that covers `key` and the first one behind it.
    pub fn covering(
        &self,
        key: &[u8],
        snapshot: SequenceNumber,
    ) -> Option<(SequenceNumber, [&[u8]; 2])> {
        let found = self.last_from_below(key, true).filter(|(_, fragment)| key < &*fragment.end);
        let (start, fragment) = found?;
        let sequence = fragment.sequences.iter().copied().find(|sequence| *sequence <= snapshot)?;
        Some((sequence, [start, &fragment.end]))
    }

    /// Whether a delete covers a key from `first` to `last`; `last` itself counts unless it is
    /// `exclusive`.
    pub fn overlaps(&self, first: &[u8], last: &[u8], exclusive: bool) -> bool {
        self.last_from_below(last, !exclusive).is_some_and(|(_, fragment)| &*fragment.end > first)
    }

    /// The newest delete of a key from `start` to before `end`, or of any from `start` on where there is no
    /// end; 0 if there is none.
    pub fn newest_between(&self, start: &[u8], end: Option<&[u8]>) -> SequenceNumber {
        let behind = match end {
            // A map panics at a range that ends before it starts.
            Some(end) if end <= start => return 0,
            end => end.map_or(Bound::Unbounded, Bound::Excluded),
        };
        let at_start = self.last_from_below(start, true).filter(|(_, f)| &*f.end > start);
        let behind_start = self.fragments.range::<[u8], _>((Bound::Excluded(start), behind));
        let met = at_start.map(|(_, fragment)| fragment).into_iter();
        let newest = met.chain(behind_start.map(|(_, fragment)| fragment));
        newest.filter_map(|fragment| fragment.sequences.first().copied()).max().unwrap_or(0)
    }

    /// The first key that is deleted, and the end of the last range.
    pub fn bounds(&self) -> Option<(&[u8], &[u8])> {
        let (first, _) = self.fragments.first()?;
        let (_, last) = self.fragments.last()?;
        Some((first, &last.end))
    }

    /// The same as fragments that do not change.
    pub fn to_fragments(&self) -> FragmentedTombstones {
        let mut encoder = FragmentEncoder::default();
        self.fragments().for_each(|(start, end, sequences)| encoder.add(start, end, sequences));
        encoder.finish()
    }

    /// All fragments, ascending: start, end, and the sequence numbers, newest first.
    pub fn fragments(&self) -> impl Iterator<Item = (&[u8], &[u8], &[SequenceNumber])> {
        self.fragments.iter().map(|(start, f)| (&**start, &*f.end, &*f.sequences))
    }
}

/// A fragment that was taken out of the map.
struct Taken {
    end: Box<[u8]>,
    sequences: Vec<SequenceNumber>,
}

#[cfg(test)]
mod tests {
    use super::*;

    type Delete = (u8, u8, SequenceNumber);

    fn newest(deletes: &[Delete], key: u8, snapshot: SequenceNumber) -> SequenceNumber {
        let covers =
            |(start, end, sequence): &&Delete| *start <= key && key < *end && *sequence <= snapshot;
        deletes.iter().filter(covers).map(|delete| delete.2).max().unwrap_or(0)
    }

    fn random(state: &mut u64, bound: u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state % bound
    }

    /// Commits of one to three deletes, snapshots that come and go, and every reader that may be:
    /// each is answered as by a list of all deletes, or told to take a new number.
    #[test]
    fn every_reader_gets_the_answer_of_a_list_or_none() {
        let mut state = 0x9e37_79b9_7f4a_7c15;
        let mut refused = 0;
        for _ in 0..400 {
            let mut map = TombstoneMap::default();
            let (mut deletes, mut snapshots) = (Vec::<Delete>::new(), Vec::<u64>::new());
            let (mut visible, mut sequence) = (0, 0);
            let mut commits = vec![0];
            for _ in 0..40 {
                let mut readers = snapshots.clone();
                readers.sort_unstable();
                readers.push(visible);
                for _ in 0..=random(&mut state, 3) {
                    sequence += 1 + random(&mut state, 3);
                    let start = random(&mut state, 12) as u8;
                    let end = start + random(&mut state, 6) as u8;
                    map.insert(&[start], &[end], sequence, &readers);
                    deletes.push((start, end, sequence));
                }
                visible = sequence + random(&mut state, 2);
                sequence = visible;
                commits.push(visible);
                match random(&mut state, 4) {
                    0 => snapshots.push(visible),
                    1 if !snapshots.is_empty() => {
                        let gone = random(&mut state, snapshots.len() as u64) as usize;
                        snapshots.swap_remove(gone);
                    }
                    _ => {}
                }
                for key in 0..18 {
                    for snapshot in snapshots.iter().copied().chain([visible, u64::MAX]) {
                        let expected = newest(&deletes, key, snapshot);
                        assert_eq!(map.covering_sequence(&[key], snapshot), expected);
                    }
                    for snapshot in commits.iter().copied() {
                        if map.answers(snapshot) {
                            let expected = newest(&deletes, key, snapshot);
                            assert_eq!(map.covering_sequence(&[key], snapshot), expected);
                        } else {
                            refused += 1;
                        }
                    }
                }
                let counted: usize = map.fragments.iter().map(|(key, f)| f.bytes(key)).sum();
                assert_eq!(map.memory_bytes(), counted);
                let ends: Vec<_> = map.fragments().map(|(start, end, _)| (start, end)).collect();
                assert!(ends.iter().all(|(start, end)| start < end));
                assert!(ends.windows(2).all(|pair| pair[0].1 <= pair[1].0));
            }
        }
        assert!(refused > 0);
    }

    #[test]
    fn a_trimmed_queue_has_a_few_fragments() {
        let mut map = TombstoneMap::default();
        for i in 1..100_000_u64 {
            map.insert(b"", &i.to_be_bytes(), 2 * i, &[2 * i - 1]);
            assert!(map.len() <= 3, "{} after {i}", map.len());
        }
        assert_eq!(map.covering_sequence(&5_u64.to_be_bytes(), u64::MAX), 199_998);
        let mut map = TombstoneMap::default();
        for i in 1..1_000_u64 {
            map.insert(b"", &i.to_be_bytes(), 2 * i, &[500, 1_200, 2 * i - 1]);
            assert!(map.len() <= 5, "with snapshots: {} after {i}", map.len());
        }
        assert_eq!(map.covering_sequence(&5_u64.to_be_bytes(), 1_200), 1_200);
        assert_eq!(map.covering_sequence(&5_u64.to_be_bytes(), 500), 500);
    }

    #[test]
    fn overlaps_and_bounds_are_those_of_the_fragments() {
        let mut map = TombstoneMap::default();
        assert_eq!(map.bounds(), None);
        map.insert(b"c", b"f", 1, &[0]);
        map.insert(b"k", b"m", 2, &[1]);
        map.insert(b"z", b"a", 3, &[2]);
        assert_eq!(map.bounds(), Some((&b"c"[..], &b"m"[..])));
        assert!(map.overlaps(b"a", b"c", false) && !map.overlaps(b"a", b"c", true));
        assert!(!map.overlaps(b"f", b"j", false) && map.overlaps(b"e", b"j", false));
        assert!(map.overlaps(b"a", b"z", true) && !map.overlaps(b"m", b"z", false));
        let newest = |start: &[u8], end| map.newest_between(start, end);
        assert_eq!((newest(b"a", Some(b"c")), newest(b"a", Some(b"d"))), (0, 1));
        assert_eq!((newest(b"e", Some(b"k")), newest(b"f", Some(b"k"))), (1, 0));
        assert_eq!((newest(b"a", None), newest(b"c", Some(b"z")), newest(b"m", None)), (2, 2, 0));
        assert_eq!((newest(b"k", Some(b"k")), newest(b"m", Some(b"c"))), (0, 0));
    }

    #[test]
    fn a_clone_stays_as_it_was() {
        let mut map = TombstoneMap::default();
        map.insert(b"a", b"c", 1, &[0]);
        let before = map.clone();
        map.insert(b"b", b"d", 5, &[4]);
        assert_eq!((before.len(), before.covering_sequence(b"b", u64::MAX)), (1, 1));
        assert_eq!(map.covering_sequence(b"b", u64::MAX), 5);
    }
}
