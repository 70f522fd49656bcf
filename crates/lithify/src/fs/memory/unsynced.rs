//! What a power cut may take, listed, so that a test can choose instead of drawing by chance.

use std::ops::Range;

/// One change that is not durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsynced {
    /// The file it changes, or the directory: numbers of their own, in the order they were made.
    pub owner: u64,
    /// What it changes.
    pub change: UnsyncedChange,
}

/// What an unsynced change does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnsyncedChange {
    /// Writes so many bytes at an offset; beyond the end they lengthen the file.
    Write {
        /// Where in the file.
        offset: u64,
        /// How many bytes.
        length: u64,
    },
    /// Sets the length of a file, in bytes.
    Length {
        /// The length before.
        from: u64,
        /// The length after.
        to: u64,
    },
    /// Makes, links, renames or removes a name of a directory.
    Name,
}

/// What of one unsynced change reaches the medium. A change of a name or of a length, which has no
/// parts, is there unless it is [`Survives::No`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survives {
    /// Nothing.
    No,
    /// So many bytes from its start, and the length that the file has after it. With 0 it is the
    /// length alone: what was appended reads as zeros.
    Front(u64),
    /// So many bytes up to its end.
    Back(u64),
    /// All of it.
    Whole,
}

impl Survives {
    /// The part of `piece` that survives of a write of the range `whole`.
    pub(super) fn part_of(self, piece: Range<usize>, whole: &Range<usize>) -> Range<usize> {
        let bytes = |count: u64| (count as usize).min(whole.len());
        let kept = match self {
            Survives::No => whole.start..whole.start,
            Survives::Front(count) => whole.start..whole.start + bytes(count),
            Survives::Back(count) => whole.end - bytes(count)..whole.end,
            Survives::Whole => whole.clone(),
        };
        let start = piece.start.max(kept.start).min(piece.end);
        start..piece.end.min(kept.end).max(start)
    }
}
