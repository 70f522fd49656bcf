//! Memory in whole pages, straight from the system and straight back to it.
//!
//! For what is large and comes and goes between threads. A general allocator keeps what is freed
//! with the thread that had asked for it, and in places that something small holds fast; pages
//! that are given back here are gone from the process at once. Threads: any.

#![expect(unsafe_code, reason = "maps, unmaps and discards pages")]

#[cfg(all(target_os = "linux", not(lithify_portable)))]
mod linux;
#[cfg(not(all(target_os = "linux", not(lithify_portable))))]
mod standard;

#[cfg(all(target_os = "linux", not(lithify_portable)))]
use linux as platform;
#[cfg(not(all(target_os = "linux", not(lithify_portable))))]
use standard as platform;

use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// One huge page of the common processors.
pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Pages of this process alone, zero at first; unmapped when dropped.
pub(crate) struct MappedPages {
    start: NonNull<u8>,
    size_bytes: usize,
}

// SAFETY: the value is the only owner of its pages, and plain memory has no thread affinity.
unsafe impl Send for MappedPages {}

impl MappedPages {
    /// At least `size_bytes` in small pages that are there already: cheaper than one fault each.
    /// `None` when the system has no such memory to give.
    pub(crate) fn of_size(size_bytes: usize) -> Option<Self> {
        let size_bytes = size_bytes.max(1).checked_next_multiple_of(platform::page_size())?;
        Some(MappedPages { start: platform::map(size_bytes)?, size_bytes })
    }

    /// As much as one huge page. That it is huge, and aligned as such, is a wish, not a condition.
    pub(crate) fn huge() -> Option<Self> {
        Some(MappedPages { start: platform::map_huge()?, size_bytes: HUGE_PAGE_BYTES })
    }

    /// The first byte. Aligned to a page.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// All of it, in bytes.
    pub(crate) fn size_bytes(&self) -> usize {
        self.size_bytes
    }
}

impl Drop for MappedPages {
    fn drop(&mut self) {
        // SAFETY: made by `platform` with this size; whoever drops the owner refers to it no more.
        unsafe { platform::unmap(self.start, self.size_bytes) };
    }
}

/// Gives the whole pages inside of `spare` back to the system, and tells how many bytes these are
/// at least, wherever it lies: addresses differ from run to run, and what is decided by the answer
/// must not. The addresses stay the owner's; the next to touch them gets fresh pages.
pub(crate) fn discard(spare: &mut [MaybeUninit<u8>]) -> usize {
    let page_size = platform::page_size();
    let whole = |bytes: usize| bytes / page_size * page_size;
    let at_least_bytes = whole((spare.len() + 1).saturating_sub(page_size));
    let before = spare.as_ptr().align_offset(page_size).min(spare.len());
    let inner = &mut spare[before..];
    let size_bytes = whole(inner.len());
    if size_bytes > 0 && platform::give_back(&mut inner[..size_bytes]) { at_least_bytes } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::platform::page_size;
    use super::*;

    /// Bytes from `start` on that are resident now.
    #[cfg(all(target_os = "linux", not(lithify_portable)))]
    fn resident_bytes(start: *const u8, size_bytes: usize) -> usize {
        let map = std::fs::File::open("/proc/self/pagemap").unwrap();
        let first = start as u64 / page_size() as u64;
        let count = size_bytes.div_ceil(page_size()) as u64;
        let is_there = |page: &u64| {
            let mut entry = [0; 8];
            std::os::unix::fs::FileExt::read_exact_at(&map, &mut entry, 8 * page).unwrap();
            u64::from_le_bytes(entry) >> 63 == 1
        };
        (first..first + count).filter(is_there).count() * page_size()
    }

    #[test]
    fn pages_are_there_writable_and_aligned() {
        let pages = MappedPages::of_size(100_000).unwrap();
        assert_eq!(pages.size_bytes() % page_size(), 0);
        assert!(pages.size_bytes() >= 100_000);
        #[cfg(all(target_os = "linux", not(lithify_portable)))]
        assert_eq!(resident_bytes(pages.start().as_ptr(), 100_000), pages.size_bytes());
        let huge = MappedPages::huge().unwrap();
        #[cfg(all(target_os = "linux", not(lithify_portable)))]
        assert_eq!(huge.start().as_ptr() as usize % HUGE_PAGE_BYTES, 0);
        assert_eq!(huge.size_bytes(), HUGE_PAGE_BYTES);
        for pages in [pages, huge] {
            // SAFETY: the pages are this test's, for writing, and as long as they say.
            let bytes = unsafe {
                std::slice::from_raw_parts_mut(pages.start().as_ptr(), pages.size_bytes())
            };
            assert!(bytes.iter().all(|byte| *byte == 0));
            bytes.fill(7);
        }
        assert!(MappedPages::of_size(usize::MAX).is_none());
        assert!(MappedPages::of_size(usize::MAX / 2).is_none());
    }

    /// The standard library's allocator gives no pages back.
    #[cfg(not(all(target_os = "linux", not(lithify_portable))))]
    #[test]
    fn nothing_is_discarded_where_the_system_cannot() {
        let mut buffer: Vec<u8> = Vec::with_capacity(20 * page_size());
        assert_eq!(discard(buffer.spare_capacity_mut()), 0);
    }

    #[cfg(all(target_os = "linux", not(lithify_portable)))]
    #[test]
    fn discarded_pages_leave_the_process_and_others_stay() {
        let mut buffer = vec![7_u8; 20 * page_size() + 100];
        let all = resident_bytes(buffer.as_ptr(), buffer.len());
        buffer.truncate(10);
        let capacity = buffer.capacity();
        let discarded = discard(buffer.spare_capacity_mut());
        assert!(discarded + 2 * page_size() >= capacity, "{discarded} of {capacity}");
        assert!(resident_bytes(buffer.as_ptr(), capacity) <= all - discarded);
        assert_eq!(buffer, [7; 10]);
        for start in 0..page_size() {
            let spare = &mut buffer.spare_capacity_mut()[start..start + 3 * page_size() - 1];
            assert_eq!(discard(spare), 2 * page_size(), "the same at every address");
        }
        buffer.resize(capacity, 1);
        assert!(buffer[10..].iter().all(|byte| *byte == 1));
        assert_eq!(discard(&mut [MaybeUninit::uninit(); 100]), 0);
        assert_eq!(discard(&mut []), 0);
    }
}
