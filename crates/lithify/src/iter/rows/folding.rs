//! Rows of which merge operands are to be folded.
//!
//! A cursor meets the entries of such a row newest first going forward, oldest first going back. It
//! gathers the operands down to what they are based on, and shows what the family's operator makes of
//! them. A cursor without a family leaves that to its caller: [`RowCursor::unfolded`].

use super::{Position, RowCursor, is_same_key};
use crate::Result;
use crate::base::{Trailer, ValueKind};
use crate::operator::Operands;
use crate::table::ReadContext;

/// What a row with operands is made of.
#[derive(Default)]
pub(super) struct Folding {
    operands: Operands,
    /// Whether the cursor's value is that of a put below the operands.
    has_base: bool,
    /// Operands that were folded since the count was last taken.
    pub(super) folded: u64,
}

impl Folding {
    /// Going back: for the first operand of a cursor, which lies over a put of its row if `has_base`.
    #[cold]
    pub(super) fn over(has_base: bool) -> Box<Self> {
        Box::new(Folding { has_base, ..Folding::default() })
    }

    fn restart(&mut self, has_base: bool) {
        self.operands.clear();
        self.has_base = has_base;
    }

    /// How many entries the row is made of.
    pub(super) fn parts(&self) -> u64 {
        self.operands.len() as u64 + u64::from(self.has_base)
    }

    /// Going back: an operand above what there was.
    pub(super) fn push(&mut self, trailer: Trailer, operand: &[u8]) {
        self.operands.push(trailer, operand);
    }
}

impl RowCursor {
    /// Going back: an entry of the row that hides all before it, or the first one met of a row.
    #[inline]
    pub(super) fn restart_folding(&mut self, has_base: bool) {
        if let Some(folding) = &mut self.folding {
            folding.restart(has_base);
        }
    }

    /// On from the newest entry of a row, an operand, to the row's value.
    #[cold]
    pub(super) fn fold_next(&mut self) -> Result<bool> {
        let mut folding = self.folding.take().unwrap_or_default();
        folding.restart(false);
        self.value.clear();
        folding.push(self.merge.trailer(), self.merge.value());
        let mut position = Position::Folded;
        loop {
            self.merge.next(context!(self))?;
            if !self.merge.valid() || !is_same_key(self.merge.key(), &self.key) {
                break;
            }
            let trailer = self.merge.trailer();
            // Below a transaction's own operands may lie what its snapshot does not see.
            if !self.sees(trailer.sequence()) {
                self.moved.skipped_entries += 1;
                continue;
            }
            if self.tombstones.covers(&self.key, trailer.sequence(), self.snapshot) {
                break;
            }
            match trailer.kind() {
                Some(ValueKind::Merge) => folding.push(trailer, self.merge.value()),
                Some(ValueKind::Put) => {
                    folding.has_base = true;
                    self.value.extend_from_slice(self.merge.value());
                    position = Position::Saved;
                    break;
                }
                _ => break,
            }
        }
        if planted!(MergeForgetsBase) {
            folding.has_base = false;
        }
        self.folding = Some(folding);
        self.fold()?;
        self.position = position;
        Ok(true)
    }

    /// Makes the value of a row whose operands have been gathered, if it has any.
    pub(super) fn fold(&mut self) -> Result<()> {
        let (Some(folding), Some(family)) = (&mut self.folding, &self.family) else {
            return Ok(());
        };
        let Folding { operands, has_base, folded } = &mut **folding;
        if operands.is_empty() {
            return Ok(());
        }
        *folded += operands.len() as u64;
        let base = has_base.then_some(&self.value[..]);
        self.value = family.operator().fold(&self.key, base, operands)?;
        Ok(())
    }

    /// The operands of the row, if it has some, and whether [`RowCursor::value`] is what is below
    /// them; for a cursor without a family.
    pub(crate) fn unfolded(&self) -> Option<(&Operands, bool)> {
        let saved = [Position::Folded, Position::Saved, Position::Backward];
        let is_saved = saved.contains(&self.position);
        let folding = self.folding.as_ref().filter(|folding| !folding.operands.is_empty())?;
        let is_left = is_saved && self.family.is_none();
        is_left.then_some((&folding.operands, folding.has_base))
    }
}
