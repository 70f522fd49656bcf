//! The memory of one memtable: chunks that are bumped through, never moved, and freed all at once.
//!
//! Chunks start small, because a database may have many families with a few rows each, and grow
//! until they are as large as a huge page. From then on each is one aligned huge page, asked for
//! as such: a memtable is read and written in random order, and with small pages every access
//! costs an address translation on top of the cache miss. All but the small chunks are mapped
//! directly: a memtable is filled by one thread and dropped by another, and its memory is to go
//! to the next memtable or back to the system then, not to an allocator. An allocation that would
//! waste much of a chunk gets one of its own.
//!
//! Called by the single writer only. Values placed here are not dropped.

use super::chunk_pool::ChunkPool;
use crate::fs::{HUGE_PAGE_BYTES, MappedPages};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::Arc;

/// The first chunk: room for the first leaf and a few dozen small rows.
const CHUNK_BYTES_MIN: usize = 8 << 10;

/// The largest chunk.
const CHUNK_BYTES_MAX: usize = HUGE_PAGE_BYTES;

/// Chunks from this size on are mapped.
const MAPPED_BYTES_MIN: usize = 128 << 10;

/// An allocation above this share of the largest chunk gets a chunk of its own.
const LARGE_BYTES: usize = CHUNK_BYTES_MAX / 8;

/// The alignment of chunks, enough for everything the tree allocates. Nodes start at a cache line.
const ALIGN: usize = 64;

/// See the module header.
pub(super) struct Arena {
    next: *mut u8,
    free_bytes: usize,
    allocated_bytes: usize,
    chunks: Vec<Chunk>,
    /// Where mapped chunks come from, if they are there, and go.
    pool: Option<Arc<ChunkPool>>,
}

struct Chunk {
    start: NonNull<u8>,
    size_bytes: usize,
    is_mapped: bool,
    /// What it lies in if it is mapped, until the arena takes that out.
    pages: Option<MappedPages>,
}

// SAFETY: the arena is the only owner of its chunks, and plain memory has no thread affinity.
unsafe impl Send for Arena {}

impl Arena {
    pub(super) fn new(pool: Option<Arc<ChunkPool>>) -> Self {
        let next = std::ptr::without_provenance_mut(ALIGN);
        Arena { next, free_bytes: 0, allocated_bytes: 0, chunks: Vec::new(), pool }
    }

    /// Bytes of all chunks and of the list of them.
    pub(super) fn allocated_bytes(&self) -> usize {
        self.allocated_bytes + self.chunks.capacity() * size_of::<Chunk>()
    }

    /// Uninitialised memory that stays in place until the arena is dropped.
    pub(super) fn allocate(&mut self, layout: Layout) -> NonNull<u8> {
        assert!(layout.align() <= ALIGN && layout.size() <= isize::MAX as usize - ALIGN);
        let padding = self.next.align_offset(layout.align());
        if padding.saturating_add(layout.size()) > self.free_bytes {
            return self.allocate_in_new_chunk(layout);
        }
        // SAFETY: padding and size together fit into what is left of the chunk at `next`.
        let (place, next) = unsafe {
            let place = self.next.add(padding);
            (NonNull::new_unchecked(place), place.add(layout.size()))
        };
        self.free_bytes -= padding + layout.size();
        self.next = next;
        place
    }

    /// Moves `value` into the arena. It is never dropped.
    pub(super) fn place<T>(&mut self, value: T) -> NonNull<T> {
        let place = self.allocate(Layout::new::<T>()).cast::<T>();
        // SAFETY: the memory is fresh, of the right size and alignment.
        unsafe { place.write(value) };
        place
    }

    /// Moves the values of an iterator into one array in the arena. They are never dropped.
    pub(super) fn place_all<T>(
        &mut self,
        values: impl ExactSizeIterator<Item = T>,
    ) -> NonNull<[T]> {
        let expected = values.len();
        let layout = match Layout::array::<T>(expected) {
            Ok(layout) => layout,
            Err(_) => unreachable!("arrays in nodes have a bounded length"),
        };
        let first = self.allocate(layout).cast::<T>();
        let mut count = 0;
        for value in values.take(expected) {
            // SAFETY: `take` keeps `count` below the length the memory was allocated for.
            unsafe { first.add(count).write(value) };
            count += 1;
        }
        NonNull::slice_from_raw_parts(first, count)
    }

    #[cold]
    fn allocate_in_new_chunk(&mut self, layout: Layout) -> NonNull<u8> {
        if layout.size() > LARGE_BYTES.min(self.chunk_size_bytes() / 2) {
            return self.add_chunk(layout.size().next_multiple_of(ALIGN));
        }
        let size_bytes = self.chunk_size_bytes();
        let start = self.add_chunk(size_bytes);
        // SAFETY: the allocation is at most half of the chunk.
        self.next = unsafe { start.add(layout.size()) }.as_ptr();
        self.free_bytes = size_bytes - layout.size();
        start
    }

    /// The next chunk adds at least an eighth to what there is, within the bounds: memtables are
    /// flushed by what is allocated, so a chunk that doubled it would flush them half empty.
    fn chunk_size_bytes(&self) -> usize {
        (self.allocated_bytes / 8)
            .checked_next_power_of_two()
            .unwrap_or(CHUNK_BYTES_MAX)
            .clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX)
    }

    fn add_chunk(&mut self, size_bytes: usize) -> NonNull<u8> {
        let chunk = Chunk::new(size_bytes, self.pool.as_deref());
        let start = chunk.start;
        self.allocated_bytes += chunk.pages.as_ref().map_or(size_bytes, MappedPages::size_bytes);
        self.chunks.push(chunk);
        start
    }
}

impl Chunk {
    /// Mapped, or the allocator's where it is small or the system maps nothing.
    fn new(size_bytes: usize, pool: Option<&ChunkPool>) -> Self {
        let map = || match size_bytes {
            CHUNK_BYTES_MAX => MappedPages::huge(),
            MAPPED_BYTES_MIN.. => MappedPages::of_size(size_bytes),
            _ => None,
        };
        let pages = pool.and_then(|pool| pool.take(size_bytes)).or_else(map);
        let start = match &pages {
            Some(pages) => pages.start(),
            None => Chunk::allocate(size_bytes),
        };
        Chunk { start, size_bytes, is_mapped: pages.is_some(), pages }
    }

    fn allocate(size_bytes: usize) -> NonNull<u8> {
        let layout = Chunk::layout(size_bytes);
        // SAFETY: the layout's size is not zero.
        match NonNull::new(unsafe { alloc(layout) }) {
            Some(start) => start,
            None => handle_alloc_error(layout),
        }
    }

    fn layout(size_bytes: usize) -> Layout {
        match Layout::from_size_align(size_bytes.max(ALIGN), ALIGN) {
            Ok(layout) => layout,
            Err(_) => unreachable!("the size was bounded by the first layout"),
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            let pages = self.chunks.iter_mut().filter_map(|chunk| chunk.pages.take());
            pages.for_each(|pages| pool.give(pages));
        }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if !self.is_mapped {
            // SAFETY: allocated in `new` with the same layout.
            unsafe { dealloc(self.start.as_ptr(), Chunk::layout(self.size_bytes)) };
        }
    }
}
