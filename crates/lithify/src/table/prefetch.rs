//! Asks the processor for what a read is about to look at.

use super::data_block::HEADER_SIZE;

/// A block ends with its keys, trailer words and restarts: of a block of 16 KiB with rows of 200
/// bytes they take about as much.
const END_SIZE: usize = 1024;

const CACHE_LINE_SIZE: usize = 64;

/// Asks for the header and the end of a data block. A search reads the header, the restarts, the
/// keys at some of them, and then entries, each only to learn where the next one is; in a cache
/// larger than the processor's own it would wait for memory every time.
#[inline]
pub(super) fn prefetch_data_block(bytes: &[u8]) {
    let end = bytes.len().saturating_sub(END_SIZE)..bytes.len();
    let header = 0..HEADER_SIZE.min(end.start);
    for offset in header.step_by(CACHE_LINE_SIZE).chain(end.step_by(CACHE_LINE_SIZE)) {
        prefetch_line(bytes, offset);
    }
}

/// Asks for the line at `offset`.
#[inline]
pub(super) fn prefetch_line(bytes: &[u8], offset: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch has no effect but speed, at any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(bytes.as_ptr().wrapping_add(offset).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, offset);
}
