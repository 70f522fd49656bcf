//! CRC-32C over bytes and over the identity of the place that they belong to.

/// A running CRC-32C (Castagnoli). Formats mix in what the bytes belong to (a table's id and an
/// offset, a log's number), so that intact bytes in a wrong place do not pass.
///
/// ```
/// use lithify::format::Checksum;
/// assert_eq!(Checksum::of(b"123456789"), 0xe306_9283);
/// assert_eq!(Checksum::new().bytes(b"12345").bytes(b"6789").value(), 0xe306_9283);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Checksum(u32);

impl Checksum {
    /// The checksum of nothing.
    #[must_use]
    pub fn new() -> Self {
        Checksum(0)
    }

    /// The checksum of `bytes`.
    #[inline]
    pub fn of(bytes: &[u8]) -> u32 {
        crc32c::crc32c(bytes)
    }

    /// Goes on with `bytes`.
    #[inline]
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Self {
        Checksum(crc32c::crc32c_append(self.0, bytes))
    }

    /// Goes on with an integer's eight bytes.
    #[inline]
    #[must_use]
    pub fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    /// The checksum so far.
    #[inline]
    pub fn value(self) -> u32 {
        self.0
    }
}
