//! Blocks of sorted keys in table files, as LevelDB has made them and RocksDB has kept them.
//!
//! A block is entries that share the beginning of their key with the one before, and the places
//! where an entry shares nothing; behind it stand one byte for the codec and a checksum. A handle
//! is the offset and size of a block.
//!
//! Promises: no bytes make this panic.

use std::io;

/// Codec and checksum behind every block.
pub const TRAILER_BYTES: u64 = 5;

/// An error about a file that is not as it should be.
pub fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// The next number of seven bits per byte, lowest first.
pub fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// The handle at the beginning of `bytes`.
pub fn handle_of(mut bytes: &[u8]) -> Option<(u64, u64)> {
    Some((varint(&mut bytes)?, varint(&mut bytes)?))
}

/// Keys and values of a block; ends at the first entry that makes no sense.
pub fn entries(block: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    let Some(count) = block.last_chunk::<4>() else { return found };
    // The highest bits of the number of restarts are flags.
    let restarts = (u32::from_le_bytes(*count) & 0x0fff_ffff) as usize;
    let Some(end) = block.len().checked_sub(4 + restarts.saturating_mul(4)) else { return found };
    let mut rest = &block[..end];
    let mut key: Vec<u8> = Vec::new();
    while !rest.is_empty() {
        let Some((shared, own, value)) = (|| {
            let mut length = || usize::try_from(varint(&mut rest)?).ok();
            Some((length()?, length()?, length()?))
        })() else {
            return found;
        };
        let fits = own.checked_add(value).is_some_and(|needed| needed <= rest.len());
        if shared > key.len() || !fits {
            return found;
        }
        let (own, after) = rest.split_at(own);
        let (value, after) = after.split_at(value);
        rest = after;
        key.truncate(shared);
        key.extend_from_slice(own);
        found.push((key.clone(), value.to_vec()));
    }
    found
}
