//! Merge operands on their way through a flush or compaction.
//!
//! The operands of a key that all readers see alike are gathered until it is known what they are based
//! on: a put or a removal that all these readers see as well, or nothing at all where no deeper level
//! can hold the key. Then the family's operator makes a put of them. Where that is not known, they are
//! written as they are, or as one if the operator combines any two; and so where it fails.

use crate::base::{Trailer, ValueKind};
use crate::operator::{MergeOperator, Operands};
use std::sync::Arc;

/// What is below the operands of a key.
#[derive(Clone, Copy)]
pub(super) enum Base<'a> {
    Value(&'a [u8]),
    Nothing,
    /// That is further down.
    Unknown,
}

/// The operands of the key at hand that nobody tells apart, newest first.
pub(super) struct Folding {
    operator: Arc<MergeOperator>,
    operands: Operands,
    stripe: usize,
    /// Whether the newest of them is the newest entry of the key.
    is_newest: bool,
    pub(super) folded: u64,
    pub(super) failures: u64,
}

/// What operands have become: entries to be written, newest first.
pub(super) enum Folded {
    Entry(Trailer, Vec<u8>),
    /// They stay, as [`Folding::iter`] gives them.
    Unfolded,
}

impl Folding {
    pub(super) fn new(operator: Arc<MergeOperator>) -> Self {
        Folding {
            operator,
            operands: Operands::default(),
            stripe: 0,
            is_newest: false,
            folded: 0,
            failures: 0,
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.operands.is_empty()
    }

    pub(super) fn stripe(&self) -> usize {
        self.stripe
    }

    pub(super) fn is_newest(&self) -> bool {
        self.is_newest
    }

    /// Takes an operand of that stripe, older than those before.
    pub(super) fn push(
        &mut self,
        (trailer, stripe): (Trailer, usize),
        operand: &[u8],
        is_newest: bool,
    ) {
        if self.operands.is_empty() {
            (self.stripe, self.is_newest) = (stripe, is_newest);
        }
        self.operands.push(trailer, operand);
    }

    /// What the operands become over their base. They are there until [`Folding::clear`].
    pub(super) fn fold(&mut self, key: &[u8], base: Base<'_>) -> Folded {
        let Some(newest) = self.operands.newest() else { return Folded::Unfolded };
        let (base, kind) = match base {
            Base::Value(value) => (Some(value), ValueKind::Put),
            Base::Nothing => (None, ValueKind::Put),
            Base::Unknown => {
                if !self.operator.is_associative() || self.operands.len() == 1 {
                    return Folded::Unfolded;
                }
                (None, ValueKind::Merge)
            }
        };
        if !self.operator.is_given() {
            return Folded::Unfolded;
        }
        match self.operator.fold(key, base, &self.operands) {
            Ok(value) => {
                self.folded += self.operands.len() as u64;
                Folded::Entry(Trailer::new(newest.sequence(), kind), value)
            }
            Err(_) => {
                self.failures += 1;
                Folded::Unfolded
            }
        }
    }

    /// The operands, newest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Trailer, &[u8])> {
        self.operands.iter()
    }

    pub(super) fn clear(&mut self) {
        self.operands.clear();
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.operands.memory_bytes()
    }
}
