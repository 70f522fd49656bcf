//! Pages of Linux: mapped and unmapped.

#![expect(unsafe_code, reason = "maps and unmaps pages")]

use super::HUGE_PAGE_BYTES;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use std::ptr::NonNull;
use std::sync::OnceLock;

/// Whole small pages that are there already.
pub(super) fn map(size_bytes: usize) -> Option<NonNull<u8>> {
    map_with(size_bytes, MapFlags::PRIVATE | MapFlags::POPULATE)
}

/// Whole small pages that come when they are touched.
pub(super) fn map_untouched(size_bytes: usize) -> Option<NonNull<u8>> {
    map_with(size_bytes, MapFlags::PRIVATE)
}

/// One huge page, aligned.
pub(super) fn map_huge() -> Option<NonNull<u8>> {
    let mapped = map_with(2 * HUGE_PAGE_BYTES, MapFlags::PRIVATE)?;
    let before = mapped.as_ptr().align_offset(HUGE_PAGE_BYTES);
    // SAFETY: the next aligned address and one huge page behind it lie within the two mapped; what
    // is returned to the system around them is this function's alone.
    let start = unsafe {
        let start = mapped.add(before);
        unmap(mapped, before);
        unmap(start.add(HUGE_PAGE_BYTES), HUGE_PAGE_BYTES - before);
        start
    };
    // SAFETY: advice about a range that was just mapped. A refusal changes speed only.
    let _ = unsafe { madvise(start.as_ptr().cast(), HUGE_PAGE_BYTES, Advice::LinuxHugepage) };
    Some(start)
}

fn map_with(size_bytes: usize, flags: MapFlags) -> Option<NonNull<u8>> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new private mapping at an address of the system's choice touches nothing.
    let mapped = unsafe { mmap_anonymous(std::ptr::null_mut(), size_bytes, protection, flags) };
    NonNull::new(mapped.ok()?.cast::<u8>())
}

/// Returns whole pages.
///
/// # Safety
/// They were mapped here, and nobody refers to them.
pub(super) unsafe fn unmap(start: NonNull<u8>, size_bytes: usize) {
    if size_bytes > 0 {
        // SAFETY: the caller's promise. An error means that the range was not ours, which cannot
        // be mended; the memory stays mapped.
        let _ = unsafe { rustix::mm::munmap(start.as_ptr().cast(), size_bytes) };
    }
}

pub(super) fn page_size() -> usize {
    static PAGE_SIZE: OnceLock<usize> = OnceLock::new();
    // Not rustix's own: it reads the auxiliary vector, and crashes under valgrind.
    // SAFETY: a question about the system; it takes and returns a number.
    *PAGE_SIZE.get_or_init(|| unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(4096) as usize)
}
