//! Pages of the standard library's allocator, which decides what becomes of those returned.

#![expect(unsafe_code, reason = "allocates and frees memory")]

use super::HUGE_PAGE_BYTES;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

/// The size that pages are taken for; all systems' pages are a part or a multiple of it.
const PAGE_BYTES: usize = 4096;

fn layout(size_bytes: usize) -> Option<Layout> {
    Layout::from_size_align(size_bytes, PAGE_BYTES).ok().filter(|layout| layout.size() > 0)
}

/// Whole small pages.
pub(super) fn map(size_bytes: usize) -> Option<NonNull<u8>> {
    let layout = layout(size_bytes)?;
    // SAFETY: the layout is not empty.
    NonNull::new(unsafe { alloc_zeroed(layout) })
}

/// The same: whether pages are there before they are touched is the allocator's business.
pub(super) fn map_untouched(size_bytes: usize) -> Option<NonNull<u8>> {
    map(size_bytes)
}

/// As much as a huge page. Allocators take twice as much for one that is aligned to its size, and there
/// is nothing to gain from it.
pub(super) fn map_huge() -> Option<NonNull<u8>> {
    map(HUGE_PAGE_BYTES)
}

/// Returns whole pages.
///
/// # Safety
/// They were mapped here with this size, and nobody refers to them.
pub(super) unsafe fn unmap(start: NonNull<u8>, size_bytes: usize) {
    if let Some(layout) = layout(size_bytes) {
        // SAFETY: the caller's promise; the layout is a function of the size.
        unsafe { dealloc(start.as_ptr(), layout) };
    }
}

pub(super) fn page_size() -> usize {
    PAGE_BYTES
}
