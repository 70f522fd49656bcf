//! Memory in whole pages, straight from the system and straight back to it.
//!
//! For what is large and comes and goes between threads. A general allocator keeps what is freed
//! with the thread that had asked for it, and in places that something small holds fast; pages
//! that are given back here are gone from the process at once. Threads: any.

#![expect(unsafe_code, reason = "maps and unmaps pages")]

#[cfg(all(target_os = "linux", not(lithify_portable)))]
mod linux;
#[cfg(not(all(target_os = "linux", not(lithify_portable))))]
mod standard;

#[cfg(all(target_os = "linux", not(lithify_portable)))]
use linux as platform;
#[cfg(not(all(target_os = "linux", not(lithify_portable))))]
use standard as platform;

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

// SAFETY: a shared reference tells where the pages are and how large, which never changes.
unsafe impl Sync for MappedPages {}

impl MappedPages {
    /// At least `size_bytes` in small pages that are there already: cheaper than one fault each.
    /// `None` when the system has no such memory to give.
    pub(crate) fn of_size(size_bytes: usize) -> Option<Self> {
        let size_bytes = size_bytes.max(1).checked_next_multiple_of(platform::page_size())?;
        Some(MappedPages { start: platform::map(size_bytes)?, size_bytes })
    }

    /// At least `size_bytes` in pages that come when they are touched.
    pub(crate) fn untouched(size_bytes: usize) -> Option<Self> {
        let size_bytes = size_bytes.max(1).checked_next_multiple_of(platform::page_size())?;
        Some(MappedPages { start: platform::map_untouched(size_bytes)?, size_bytes })
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
        for pages in [pages, MappedPages::untouched(5000).unwrap(), huge] {
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

    #[cfg(all(target_os = "linux", not(lithify_portable)))]
    #[test]
    fn untouched_pages_come_when_they_are_touched() {
        let pages = MappedPages::untouched(20 * page_size()).unwrap();
        let start = pages.start().as_ptr();
        assert_eq!(resident_bytes(start, pages.size_bytes()), 0);
        // SAFETY: the byte lies within the pages, which are this test's alone.
        unsafe { start.add(3 * page_size()).write(7) };
        // One, unless the system gives more at once.
        assert!(resident_bytes(start, pages.size_bytes()) >= page_size());
    }
}
