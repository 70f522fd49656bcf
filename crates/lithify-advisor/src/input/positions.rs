//! Where the rows of a table are found: by their numbers, or among those that were kept of a pass.

use super::size::Range;
use super::spool::Spool;
use crate::rows::Rows;

/// How places of a table are had.
pub(super) enum Positions {
    /// Rows have numbers that are spread evenly.
    Numbers(Range),
    /// All rows were read, and some kept.
    Kept(Spool),
}

/// A place of a table.
pub(super) enum Place {
    /// It is read from this number on.
    From(i64),
    /// It was kept.
    Kept(Rows),
}

impl Positions {
    /// None yet.
    pub(super) fn none() -> Positions {
        Positions::Kept(Spool::default())
    }

    /// How many places there are at most.
    pub(super) fn places_max(&self) -> usize {
        match self {
            Positions::Numbers(_) => usize::MAX,
            Positions::Kept(spool) => spool.len(),
        }
    }

    /// The place at a share of the data.
    pub(super) fn place(&self, share: f64, wanted_bytes: u64) -> Place {
        match self {
            Positions::Numbers(range) => Place::From(range.at(share)),
            Positions::Kept(spool) => Place::Kept(spool.place(share, wanted_bytes)),
        }
    }
}
