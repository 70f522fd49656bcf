//! One row in the arena: a header, the key, the value. Written once, then only read.

use super::arena::Arena;
use crate::base::{KEY_SIZE_MAX, Trailer, VALUE_SIZE_MAX};
use std::alloc::Layout;
use std::cmp::Ordering;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// The fixed part; key and value bytes follow it.
#[repr(C)]
pub(super) struct EntryHeader {
    trailer: Trailer,
    key_size_bytes: u32,
    value_size_bytes: u32,
}

/// Where an entry lies, without saying for how long.
pub(super) type EntryPointer = NonNull<EntryHeader>;

/// An entry that is readable for `'a`.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    pointer: EntryPointer,
    memory: PhantomData<&'a EntryHeader>,
}

/// A place in the order of entries: keys ascending, then newest first.
#[derive(Clone, Copy)]
pub(super) struct Probe<'a> {
    pub(super) key: &'a [u8],
    pub(super) trailer: Trailer,
}

impl<'a> Entry<'a> {
    /// Copies a row into the arena.
    pub(super) fn write(arena: &mut Arena, key: &[u8], trailer: Trailer, value: &[u8]) -> Self {
        assert!(key.len() <= KEY_SIZE_MAX && value.len() <= VALUE_SIZE_MAX);
        let header = EntryHeader {
            trailer,
            key_size_bytes: key.len() as u32,
            value_size_bytes: value.len() as u32,
        };
        let size = size_of::<EntryHeader>() + key.len() + value.len();
        let layout = match Layout::from_size_align(size, align_of::<EntryHeader>()) {
            Ok(layout) => layout,
            Err(_) => unreachable!("sizes were bounded above"),
        };
        let pointer = arena.allocate(layout).cast::<EntryHeader>();
        // SAFETY: the memory is fresh and has room for the header, the key and the value.
        unsafe {
            pointer.write(header);
            let bytes = pointer.add(1).cast::<u8>().as_ptr();
            std::ptr::copy_nonoverlapping(key.as_ptr(), bytes, key.len());
            std::ptr::copy_nonoverlapping(value.as_ptr(), bytes.add(key.len()), value.len());
        }
        Entry { pointer, memory: PhantomData }
    }

    /// The entry at `pointer`.
    ///
    /// # Safety
    /// It was written by [`Entry::write`], which happens before this call, and its arena lives for
    /// `'a` at least.
    pub(super) unsafe fn at(pointer: EntryPointer) -> Self {
        Entry { pointer, memory: PhantomData }
    }

    pub(super) fn pointer(self) -> EntryPointer {
        self.pointer
    }

    fn header(self) -> &'a EntryHeader {
        // SAFETY: `write` and `at` promise an initialised header for `'a`.
        unsafe { self.pointer.as_ref() }
    }

    pub(super) fn trailer(self) -> Trailer {
        self.header().trailer
    }

    pub(super) fn key(self) -> &'a [u8] {
        let size = self.header().key_size_bytes as usize;
        // SAFETY: `write` put that many bytes behind the header, readable for `'a`.
        unsafe { std::slice::from_raw_parts(self.pointer.add(1).cast::<u8>().as_ptr(), size) }
    }

    pub(super) fn value(self) -> &'a [u8] {
        let header = self.header();
        let (skip, size) = (header.key_size_bytes as usize, header.value_size_bytes as usize);
        // SAFETY: `write` put key and value of these sizes behind the header, readable for `'a`.
        unsafe {
            let bytes = self.pointer.add(1).cast::<u8>().as_ptr();
            std::slice::from_raw_parts(bytes.add(skip), size)
        }
    }

    pub(super) fn probe(self) -> Probe<'a> {
        Probe { key: self.key(), trailer: self.trailer() }
    }

    /// How the entry lies to the probe in the order of entries.
    pub(super) fn compare(self, probe: &Probe<'_>) -> Ordering {
        self.key().cmp(probe.key).then_with(|| probe.trailer.cmp(&self.trailer()))
    }
}
