//! "Rows in a buffer" of the header: key length, value length, key, value, one row behind the other. A
//! value length of all ones is a removal.

use crate::call::Failure;
use std::mem::MaybeUninit;

/// Bytes before the key.
const HEAD: usize = 8;
const REMOVAL: u32 = u32::MAX;

/// A row of a buffer; without a value it is a removal.
pub(crate) type Row<'a> = (&'a [u8], Option<&'a [u8]>);

/// The rows of a buffer that a caller filled.
pub(crate) struct Rows<'a> {
    all: usize,
    rest: &'a [u8],
}

impl<'a> Rows<'a> {
    pub(crate) fn new(buffer: &'a [u8]) -> Self {
        Rows { all: buffer.len(), rest: buffer }
    }

    fn take(&mut self) -> Option<Row<'a>> {
        let (head, rest) = self.rest.split_at_checked(HEAD)?;
        let number = |at: usize| head[at..at + 4].try_into().map(u32::from_ne_bytes).ok();
        let (key_length, value_length) = (number(0)?, number(4)?);
        let (key, rest) = rest.split_at_checked(key_length as usize)?;
        let (value, rest) = match value_length {
            REMOVAL => (None, rest),
            length => rest.split_at_checked(length as usize).map(|(v, rest)| (Some(v), rest))?,
        };
        self.rest = rest;
        Some((key, value))
    }
}

impl<'a> Iterator for Rows<'a> {
    type Item = Result<Row<'a>, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let offset = self.all - self.rest.len();
        Some(self.take().ok_or_else(|| {
            self.rest = &[];
            let left = self.all - offset;
            Failure::invalid(format!(
                "invalid argument: the row at byte {offset} of the buffer does not fit into the \
                 {left} bytes that are left"
            ))
        }))
    }
}

/// The bytes that a row takes.
pub(crate) fn size(key: &[u8], value: &[u8]) -> usize {
    HEAD + key.len() + value.len()
}

/// Copies a row to the front of a buffer, and gives what is left of it; `None` if it does not fit.
pub(crate) fn write<'b>(
    buffer: &'b mut [MaybeUninit<u8>],
    key: &[u8],
    value: &[u8],
) -> Option<&'b mut [MaybeUninit<u8>]> {
    let lengths = (u32::try_from(key.len()).ok()?, u32::try_from(value.len()).ok()?);
    if buffer.len() < size(key, value) {
        return None;
    }
    let heads = [&lengths.0.to_ne_bytes()[..], &lengths.1.to_ne_bytes()[..]];
    let mut rest = buffer;
    for part in [heads[0], heads[1], key, value] {
        let (place, behind) = rest.split_at_mut(part.len());
        for (place, byte) in place.iter_mut().zip(part) {
            place.write(*byte);
        }
        rest = behind;
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(rows: &[Row<'_>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (key, value) in rows {
            bytes.extend((key.len() as u32).to_ne_bytes());
            bytes.extend(value.map_or(REMOVAL, |value| value.len() as u32).to_ne_bytes());
            bytes.extend_from_slice(key);
            bytes.extend_from_slice(value.unwrap_or_default());
        }
        bytes
    }

    #[test]
    fn rows_come_back_and_a_cut_buffer_is_refused_at_its_row() {
        let rows: [Row<'_>; 4] =
            [(b"a", Some(b"1")), (b"", Some(b"")), (b"bb", None), (b"c", Some(b"333"))];
        let bytes = encode(&rows);
        let read: Vec<_> = Rows::new(&bytes).map(|row| row.ok().unwrap()).collect();
        assert_eq!(read, rows);
        let ends = [0, 10, 18, 28, bytes.len()];
        for cut in 0..bytes.len() {
            let (good, bad): (Vec<_>, Vec<_>) = Rows::new(&bytes[..cut]).partition(Result::is_ok);
            assert_eq!(bad.len(), usize::from(!ends.contains(&cut)), "cut at {cut}");
            assert_eq!(good.len(), ends.iter().filter(|end| **end > 0 && **end <= cut).count());
        }
        assert_eq!(Rows::new(&[0xff; 64]).filter(Result::is_err).count(), 1);
    }

    #[test]
    fn a_row_is_written_whole_or_not_at_all() {
        let mut buffer = [MaybeUninit::new(9); 13];
        assert!(write(&mut buffer, b"basalt", b"").is_none());
        let mut buffer = [MaybeUninit::new(9); 15];
        assert_eq!(write(&mut buffer, b"basalt", b"").map(|rest| rest.len()), Some(1));
    }
}
