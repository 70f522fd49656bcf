//! Reads integers and byte strings; every read is bounds-checked.

use crate::{Error, Result};

/// Reads from the front of a slice. A read past the end is [`crate::ErrorKind::Corruption`].
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Decoder<'a> {
    /// A decoder at the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Decoder { bytes, position: 0 }
    }

    /// Bytes read so far.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Bytes not read yet.
    pub fn remaining(&self) -> &'a [u8] {
        &self.bytes[self.position..]
    }

    /// Whether everything was read.
    pub fn is_empty(&self) -> bool {
        self.position == self.bytes.len()
    }

    /// The next `size` bytes.
    pub fn bytes(&mut self, size: usize) -> Result<&'a [u8]> {
        let rest = self.remaining();
        let Some(taken) = rest.get(..size) else {
            return Err(ends_early(size, rest.len()));
        };
        self.position += size;
        Ok(taken)
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    /// The next byte.
    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    /// The next two bytes as an integer.
    pub fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// The next four bytes as an integer.
    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// The next eight bytes as an integer.
    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// The next varint.
    pub fn varint(&mut self) -> Result<u64> {
        match read_varint(self.bytes, self.position) {
            Some((value, next)) => {
                self.position = next;
                Ok(value)
            }
            None => Err(Error::corruption("integer ends early or is over 64 bits")),
        }
    }

    /// The next varint, which must fit 32 bits.
    pub fn varint_u32(&mut self) -> Result<u32> {
        let value = self.varint()?;
        u32::try_from(value)
            .map_err(|_| Error::corruption("integer over 32 bits").expected(u32::MAX, value))
    }

    /// The next byte string: its size as a varint, of at most `size_max`, then the bytes.
    pub fn sized_bytes(&mut self, size_max: usize) -> Result<&'a [u8]> {
        let size = self.varint()?;
        if size > size_max as u64 {
            return Err(Error::corruption("byte string is too long")
                .expected(format_args!("at most {size_max} bytes"), size));
        }
        self.bytes(size as usize)
    }

    /// An error unless everything was read.
    pub fn finish(self) -> Result<()> {
        match self.remaining().len() {
            0 => Ok(()),
            rest => Err(Error::corruption("bytes behind the end").expected(0, rest)),
        }
    }
}

#[cold]
fn ends_early(expected: usize, found: usize) -> Error {
    Error::corruption("data ends early")
        .expected(format_args!("{expected} bytes"), format_args!("{found} bytes"))
}

/// Two bytes at `offset`, if they are there.
#[inline]
pub fn read_u16(bytes: &[u8], offset: usize) -> Option<u16> {
    let taken = bytes.get(offset..)?.first_chunk()?;
    Some(u16::from_le_bytes(*taken))
}

/// Four bytes at `offset`, if they are there.
#[inline]
pub fn read_u32(bytes: &[u8], offset: usize) -> Option<u32> {
    let taken = bytes.get(offset..)?.first_chunk()?;
    Some(u32::from_le_bytes(*taken))
}

/// Eight bytes at `offset`, if they are there.
#[inline]
pub fn read_u64(bytes: &[u8], offset: usize) -> Option<u64> {
    let taken = bytes.get(offset..)?.first_chunk()?;
    Some(u64::from_le_bytes(*taken))
}

/// The varint at `offset` and the offset behind it; `None` if it ends early or is over 64 bits.
#[inline]
pub fn read_varint(bytes: &[u8], offset: usize) -> Option<(u64, usize)> {
    let first = *bytes.get(offset)?;
    if first < 0x80 {
        return Some((u64::from(first), offset + 1));
    }
    read_long_varint(bytes, offset)
}

fn read_long_varint(bytes: &[u8], offset: usize) -> Option<(u64, usize)> {
    let mut value = 0_u64;
    for (index, byte) in bytes.get(offset..)?.iter().take(10).enumerate() {
        let bits = u64::from(byte & 0x7f);
        if index == 9 && bits > 1 {
            return None;
        }
        value |= bits << (7 * index);
        if *byte < 0x80 {
            return Some((value, offset + index + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::{VARINT_SIZE_MAX, put_bytes, put_u32, put_varint, varint_size};
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn varints_round_trip_and_have_the_size_that_is_said() {
        let mut values = vec![0, 1, u64::MAX];
        values.extend((0..64).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, (1 << bit) + 1]));
        for value in values {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            assert_eq!(bytes.len(), varint_size(value), "{value}");
            assert!(bytes.len() <= VARINT_SIZE_MAX);
            assert_eq!(read_varint(&bytes, 0), Some((value, bytes.len())));
            for cut in 0..bytes.len() {
                assert_eq!(read_varint(&bytes[..cut], 0), None);
            }
        }
    }

    #[test]
    fn a_varint_over_64_bits_is_refused() {
        let mut bytes = vec![0xff; 9];
        bytes.push(0x02);
        assert_eq!(read_varint(&bytes, 0), None);
        assert_eq!(read_varint(&[0x80; 11], 0), None);
    }

    #[test]
    fn reads_past_the_end_are_corruption() {
        let mut bytes = Vec::new();
        put_u32(&mut bytes, 7);
        put_bytes(&mut bytes, b"shale");
        let mut decoder = Decoder::new(&bytes);
        assert_eq!(decoder.u32().unwrap(), 7);
        assert_eq!(decoder.sized_bytes(5).unwrap(), b"shale");
        assert!(decoder.is_empty());
        assert_eq!(decoder.u8().unwrap_err().kind(), ErrorKind::Corruption);
        decoder.finish().unwrap();

        let mut decoder = Decoder::new(&bytes[4..]);
        assert_eq!(decoder.sized_bytes(4).unwrap_err().kind(), ErrorKind::Corruption);
        let mut decoder = Decoder::new(&bytes[..2]);
        assert!(decoder.u32().is_err());
        assert!(decoder.finish().is_err());
        assert_eq!(read_u64(&bytes, usize::MAX), None);
        assert_eq!(read_u32(&bytes, 1), Some(0x0500_0000));
        assert_eq!(read_u16(&bytes, 3), Some(0x0500));
    }
}
