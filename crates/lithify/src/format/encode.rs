//! Appends integers and byte strings to a buffer.

/// The most bytes that a varint takes.
pub const VARINT_SIZE_MAX: usize = 10;

/// Appends two bytes, little-endian.
#[inline]
pub fn put_u16(target: &mut Vec<u8>, value: u16) {
    target.extend_from_slice(&value.to_le_bytes());
}

/// Appends four bytes, little-endian.
#[inline]
pub fn put_u32(target: &mut Vec<u8>, value: u32) {
    target.extend_from_slice(&value.to_le_bytes());
}

/// Appends eight bytes, little-endian.
#[inline]
pub fn put_u64(target: &mut Vec<u8>, value: u64) {
    target.extend_from_slice(&value.to_le_bytes());
}

/// Appends a LEB128 integer: seven bits a byte, lowest first, the top bit says that more follow.
#[inline]
pub fn put_varint(target: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        target.push(value as u8 | 0x80);
        value >>= 7;
    }
    target.push(value as u8);
}

/// The bytes that [`put_varint`] appends.
#[inline]
pub fn varint_size(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// Appends the size as a varint, then the bytes.
#[inline]
pub fn put_bytes(target: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(target, bytes.len() as u64);
    target.extend_from_slice(bytes);
}
