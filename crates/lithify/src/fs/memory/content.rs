//! The bytes of one file: what is written, and how to get back to what is durable.
//!
//! The live image holds every write. Since the last sync each change is kept with the bytes that
//! it replaced, so a sync only forgets the changes, an append keeps nothing extra, and a power
//! cut rolls back and decides the fate of each change anew. A clean file is shared by reference
//! between a file system and its crash clones.
//!
//! A sync has a begin and an end. It covers the changes that were made before it began; what is
//! written until it ends stays unsynced. Between the two some of what it covers is durable already.

use super::random::Random;
use super::unsynced::{Survives, UnsyncedChange};
use std::io::IoSlice;
use std::ops::Range;
use std::sync::Arc;

/// The unit in which parts of one write survive independently of each other, in bytes.
const SECTOR_BYTES: usize = 512;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// May or may not reach the medium; the next sync makes it durable.
    Unsynced,
    /// A sync failed while it was unsynced: no later sync makes it durable.
    Forfeited,
    /// Durable, but follows a change that is not, and so cannot be forgotten.
    Durable,
}

#[derive(Clone)]
enum Action {
    /// `length` bytes at `offset`; `replaced` is what was there before, up to the old end.
    Write { offset: usize, length: usize, replaced: Vec<u8> },
    /// A new length; `cut` is what was beyond it.
    SetLength { cut: Vec<u8> },
}

#[derive(Clone)]
struct Change {
    action: Action,
    length_before: usize,
    length_after: usize,
    /// The number of changes to the file before this one.
    number: u64,
    state: State,
}

/// The changes that a sync covers: those with smaller numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Covered {
    until: u64,
}

impl Change {
    fn is_unsynced(&self, covered: Covered) -> bool {
        self.number < covered.until && self.state == State::Unsynced
    }
}

/// What becomes of the unsynced changes of one file in a power cut.
enum Fate<'a> {
    /// The first `whole` changes survive, the next one in part, the others not.
    InOrder { whole: usize },
    /// Each sector of each write survives `percent` times in a hundred.
    Scattered { percent: usize },
    /// Of each change what was chosen for it.
    Chosen { kept: &'a [Survives] },
}

/// The bytes of one file and its unsynced changes.
#[derive(Clone, Default)]
pub(super) struct Content {
    bytes: Arc<Vec<u8>>,
    changes: Vec<Change>,
    /// The number of the next change.
    next_change: u64,
    /// Space taken, which is more than the length after a preallocation.
    pub(super) allocated_bytes: usize,
}

impl Content {
    /// A file as it was found on the medium.
    fn durable(bytes: Arc<Vec<u8>>) -> Self {
        Content { allocated_bytes: bytes.len(), bytes, changes: Vec::new(), next_change: 0 }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Writes at `offset`; a gap before it reads as zeros.
    pub(super) fn write(&mut self, buffers: &[IoSlice<'_>], offset: usize, length: usize) {
        if length == 0 {
            return;
        }
        let bytes = Arc::make_mut(&mut self.bytes);
        let length_before = bytes.len();
        let end = offset + length;
        let replaced = bytes[offset.min(length_before)..end.min(length_before)].to_vec();
        if offset > length_before {
            bytes.resize(offset, 0);
        }
        let mut position = offset;
        for buffer in buffers {
            let inside = buffer.len().min(bytes.len() - position);
            bytes[position..position + inside].copy_from_slice(&buffer[..inside]);
            bytes.extend_from_slice(&buffer[inside..]);
            position += buffer.len();
        }
        let action = Action::Write { offset, length, replaced };
        let length_after = bytes.len();
        self.record(action, length_before, length_after);
    }

    pub(super) fn set_length(&mut self, length: usize) {
        let bytes = Arc::make_mut(&mut self.bytes);
        let length_before = bytes.len();
        if length == length_before {
            return;
        }
        let cut = bytes.get(length..).map(<[u8]>::to_vec).unwrap_or_default();
        bytes.resize(length, 0);
        self.record(Action::SetLength { cut }, length_before, length);
    }

    fn record(&mut self, action: Action, length_before: usize, length_after: usize) {
        self.allocated_bytes = self.allocated_bytes.max(length_after);
        let (number, state) = (self.next_change, State::Unsynced);
        self.next_change += 1;
        self.changes.push(Change { action, length_before, length_after, number, state });
    }

    /// A sync begins: what it covers.
    pub(super) fn begin_sync(&self) -> Covered {
        Covered { until: self.next_change }
    }

    /// Whether a sync has anything to do.
    pub(super) fn has_unsynced(&self, covered: Covered) -> bool {
        self.changes.iter().any(|change| change.is_unsynced(covered))
    }

    /// A sync is under way: some of what it covers is durable already.
    pub(super) fn sync_in_part(&mut self, covered: Covered, random: &mut Random) {
        self.resolve(covered, |_| random.percent(50).then_some(State::Durable));
        self.forget_durable();
    }

    /// A sync ends: what it covers is durable, except what an earlier failed sync gave up.
    pub(super) fn end_sync(&mut self, covered: Covered) {
        self.resolve(covered, |_| Some(State::Durable));
        self.forget_durable();
    }

    /// A sync failed: the system forgets that what it covers is not on the medium.
    pub(super) fn forfeit(&mut self, covered: Covered) {
        self.resolve(covered, |_| Some(State::Forfeited));
    }

    /// Gives unsynced changes that a sync covers another state.
    fn resolve(&mut self, covered: Covered, mut state: impl FnMut(&Change) -> Option<State>) {
        for change in self.changes.iter_mut().filter(|change| change.is_unsynced(covered)) {
            change.state = state(change).unwrap_or(State::Unsynced);
        }
    }

    /// A power cut rolls back to the first change that is not durable.
    fn forget_durable(&mut self) {
        let is_open = |change: &Change| change.state != State::Durable;
        let durable = self.changes.iter().position(is_open).unwrap_or(self.changes.len());
        self.changes.drain(..durable);
    }

    /// What a power cut leaves when nothing unsynced survives.
    pub(super) fn after_losing_all(&self) -> Content {
        if self.changes.is_empty() {
            return Content::durable(Arc::clone(&self.bytes));
        }
        self.survivors(&Fate::InOrder { whole: 0 }, self.length_changes_min(), None)
    }

    /// What a power cut leaves of the file, by chance.
    pub(super) fn after_losing_some(&self, random: &mut Random) -> Content {
        if self.changes.is_empty() {
            return Content::durable(Arc::clone(&self.bytes));
        }
        let count = self.changes.len();
        let lengths_min = self.length_changes_min();
        match random.below(8) {
            0 => self.after_losing_all(),
            1 => Content::durable(Arc::clone(&self.bytes)),
            2 | 3 => {
                let whole = random.below(count + 1);
                let lengths = (whole + random.below(2)).clamp(lengths_min, count);
                self.survivors(&Fate::InOrder { whole }, lengths, Some(random))
            }
            _ => {
                let percent = 10 + random.below(81);
                let lengths = lengths_min + random.below(count - lengths_min + 1);
                self.survivors(&Fate::Scattered { percent }, lengths, Some(random))
            }
        }
    }

    /// The changes that a power cut may take, in order.
    pub(super) fn unsynced(&self) -> impl Iterator<Item = UnsyncedChange> {
        let open = self.changes.iter().filter(|change| change.state != State::Durable);
        open.map(|change| match &change.action {
            Action::Write { offset, length, .. } => {
                UnsyncedChange::Write { offset: *offset as u64, length: *length as u64 }
            }
            Action::SetLength { .. } => UnsyncedChange::Length {
                from: change.length_before as u64,
                to: change.length_after as u64,
            },
        })
    }

    /// What a power cut leaves when of each unsynced change survives what was chosen for it. The
    /// length is the one after the last change of which anything survives.
    pub(super) fn after_choosing(&self, chosen: &[Survives]) -> Content {
        if self.changes.is_empty() {
            return Content::durable(Arc::clone(&self.bytes));
        }
        let mut open = chosen.iter().copied();
        let fate_of = |change: &Change| match change.state {
            State::Durable => Survives::Whole,
            _ => open.next().unwrap_or(Survives::No),
        };
        let kept: Vec<Survives> = self.changes.iter().map(fate_of).collect();
        let last = kept.iter().rposition(|survives| *survives != Survives::No);
        let lengths = last.map_or(0, |last| last + 1);
        self.survivors(&Fate::Chosen { kept: &kept }, lengths, None)
    }

    /// The fewest changes whose length is on the medium: all up to the last durable one.
    fn length_changes_min(&self) -> usize {
        self.changes.iter().rposition(|c| c.state == State::Durable).map_or(0, |last| last + 1)
    }

    /// Rolls back to the last sync and repeats what survives; the length is the one after the
    /// first `lengths` changes. Without `random` no change survives in part.
    fn survivors(
        &self,
        fate: &Fate<'_>,
        lengths: usize,
        mut random: Option<&mut Random>,
    ) -> Content {
        let (mut image, written) = self.rolled_back();
        let mut length = image.len();
        for (index, (change, data)) in self.changes.iter().zip(&written).enumerate() {
            if index < lengths {
                length = change.length_after;
            }
            match &change.action {
                Action::SetLength { .. } if index < lengths => image.resize(length, 0),
                Action::SetLength { .. } => {}
                Action::Write { offset, .. } => {
                    let end = offset + data.len();
                    if image.len() < end {
                        image.resize(end, 0);
                    }
                    for piece in sectors(*offset, end) {
                        let whole = *offset..end;
                        let kept = match change.state {
                            State::Durable => piece,
                            _ => surviving_part(piece, whole, index, fate, random.as_deref_mut()),
                        };
                        image[kept.clone()]
                            .copy_from_slice(&data[kept.start - offset..kept.end - offset]);
                    }
                }
            }
        }
        image.resize(length, 0);
        Content::durable(Arc::new(image))
    }

    /// The image at the last sync, and what each change since then wrote.
    fn rolled_back(&self) -> (Vec<u8>, Vec<Vec<u8>>) {
        let mut image = Vec::clone(&self.bytes);
        let mut written = Vec::with_capacity(self.changes.len());
        for change in self.changes.iter().rev() {
            match &change.action {
                Action::Write { offset, length, replaced } => {
                    written.push(image[*offset..offset + length].to_vec());
                    image[*offset..offset + replaced.len()].copy_from_slice(replaced);
                }
                Action::SetLength { cut } => {
                    written.push(Vec::new());
                    image.extend_from_slice(cut);
                }
            }
            image.truncate(change.length_before);
        }
        written.reverse();
        (image, written)
    }
}

/// The pieces of a range that lie in one sector each.
fn sectors(start: usize, end: usize) -> impl Iterator<Item = Range<usize>> {
    let mut position = start;
    std::iter::from_fn(move || {
        let piece = position..((position / SECTOR_BYTES + 1) * SECTOR_BYTES).min(end);
        position = piece.end;
        (!piece.is_empty()).then_some(piece)
    })
}

/// The part of one sector's piece of the unsynced write `whole` that reaches the medium.
fn surviving_part(
    piece: Range<usize>,
    whole: Range<usize>,
    index: usize,
    fate: &Fate<'_>,
    random: Option<&mut Random>,
) -> Range<usize> {
    let lost = piece.start..piece.start;
    let percent = match fate {
        Fate::InOrder { whole } if index < *whole => return piece,
        Fate::InOrder { whole } if index > *whole => return lost,
        Fate::InOrder { .. } => 50,
        Fate::Scattered { percent } => *percent,
        Fate::Chosen { kept } => return kept[index].part_of(piece, &whole),
    };
    let Some(random) = random else {
        return lost;
    };
    if random.percent(15) {
        let cut = piece.start + random.below(piece.len());
        return if random.percent(50) { piece.start..cut } else { cut..piece.end };
    }
    if random.percent(percent) { piece } else { lost }
}
