//! Operands of one key on their way to be folded, in one buffer that is kept for the next key.

use crate::base::Trailer;

/// Operands of a key, pushed newest first or oldest first, always the same way between two
/// [`Operands::clear`].
#[derive(Default)]
pub(crate) struct Operands {
    bytes: Vec<u8>,
    /// Of each, its trailer and where it ends.
    ends: Vec<(Trailer, usize)>,
}

impl Operands {
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub(crate) fn push(&mut self, trailer: Trailer, operand: &[u8]) {
        self.bytes.extend_from_slice(operand);
        self.ends.push((trailer, self.bytes.len()));
    }

    /// The trailer of the newest one.
    pub(crate) fn newest(&self) -> Option<Trailer> {
        let (first, last) = (self.ends.first()?.0, self.ends.last()?.0);
        Some(first.max(last))
    }

    /// In the order in which they were pushed.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Trailer, &[u8])> {
        (0..self.ends.len()).map(|index| self.at(index))
    }

    /// The operands alone, oldest first.
    pub(crate) fn oldest_first(&self) -> impl Iterator<Item = &[u8]> {
        let trailer = |end: Option<&(Trailer, usize)>| end.map(|(trailer, _)| *trailer);
        let mut is_descending = trailer(self.ends.first()) > trailer(self.ends.last());
        if planted!(OperandsBackwards) {
            is_descending = !is_descending;
        }
        let count = self.ends.len();
        (0..count).map(move |index| {
            let index = if is_descending { count - 1 - index } else { index };
            self.at(index).1
        })
    }

    fn at(&self, index: usize) -> (Trailer, &[u8]) {
        let start = if index == 0 { 0 } else { self.ends[index - 1].1 };
        let (trailer, end) = self.ends[index];
        (trailer, &self.bytes[start..end])
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<(Trailer, usize)>()
    }
}
