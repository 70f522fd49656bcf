//! Mapped pages, cut into frames of one size.
//!
//! A frame is taken out as a [`FrameRange`], the only one to its bytes until it is given back, and
//! the pages stay mapped as long as a frame of them is out. This file keeps both, so that all
//! beside it needs no `unsafe`.

#![expect(unsafe_code, reason = "lends parts of mapped pages")]

use super::shard::Key;
use crate::fs::MappedPages;
use std::sync::Arc;

/// Pages in frames of one size, and which of the frames are free.
pub(super) struct Slab {
    pages: Arc<MappedPages>,
    frame_bytes: usize,
    /// The block that each frame was taken for last.
    keys: Vec<Option<Key>>,
    /// Places of free frames; the last one is taken next.
    free: Vec<u32>,
}

/// The bytes of one frame, of which nobody else has any.
pub(super) struct FrameRange {
    pages: Arc<MappedPages>,
    place: u32,
    size_bytes: usize,
}

impl Slab {
    /// A slab of so many free frames; their pages come as they are touched. `None` when the system has
    /// no memory to map.
    pub(super) fn new(frame_bytes: usize, frame_count: u32) -> Option<Self> {
        let size_bytes = frame_bytes.checked_mul(frame_count as usize)?;
        let pages = Arc::new(MappedPages::untouched(size_bytes)?);
        let keys = vec![None; frame_count as usize];
        Some(Slab { pages, frame_bytes, keys, free: (0..frame_count).rev().collect() })
    }

    /// What it takes of memory once all of it was touched.
    pub(super) fn size_bytes(&self) -> usize {
        self.pages.size_bytes()
    }

    pub(super) fn frame_count(&self) -> usize {
        self.keys.len()
    }

    pub(super) fn free_count(&self) -> usize {
        self.free.len()
    }

    /// What free frames take.
    pub(super) fn free_bytes(&self) -> usize {
        self.free.len() * self.frame_bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.keys.len()
    }

    /// The block that has the frame at `place`; `None` for a free one.
    pub(super) fn key_at(&self, place: u32) -> Option<Key> {
        *self.keys.get(place as usize)?
    }

    /// Takes a free frame out for a block.
    pub(super) fn take(&mut self, key: Key) -> Option<FrameRange> {
        let place = self.free.pop()?;
        self.keys[place as usize] = Some(key);
        let (pages, size_bytes) = (Arc::clone(&self.pages), self.frame_bytes);
        Some(FrameRange { pages, place, size_bytes })
    }

    /// Takes a frame back. One of another slab is not taken, and is lost to its own.
    pub(super) fn give(&mut self, range: FrameRange) {
        if Arc::ptr_eq(&range.pages, &self.pages) {
            self.keys[range.place as usize] = None;
            self.free.push(range.place);
        }
    }
}

impl FrameRange {
    pub(super) fn place(&self) -> u32 {
        self.place
    }

    pub(super) fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: the pages hold `size_bytes` for each place, and stay mapped while this range refers
        // to them. Mapped pages are set from the start, to zero. A place leaves `Slab::free` when its
        // range is made and comes back only by giving up that range, which cannot be cloned: so nobody
        // else has these bytes, and they change only under `&mut self`.
        unsafe { std::slice::from_raw_parts(self.start(), self.size_bytes) }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and the borrow is the only one of the only range to these bytes.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.size_bytes) }
    }

    fn start(&self) -> *mut u8 {
        // SAFETY: the slab was made with `size_bytes` for each of its places, and this is one of them:
        // so it lies within the pages.
        unsafe { self.pages.start().as_ptr().add(self.place as usize * self.size_bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(offset: u64) -> Key {
        Key { file_id: 1, offset }
    }

    #[test]
    fn frames_lie_side_by_side_and_come_back() {
        let mut slab = Slab::new(1000, 9).unwrap();
        assert!(slab.size_bytes() >= 9000 && slab.is_empty());
        let mut ranges: Vec<_> = (0..9).map(|offset| slab.take(key(offset)).unwrap()).collect();
        assert!(slab.take(key(9)).is_none());
        for (number, range) in ranges.iter_mut().enumerate() {
            assert_eq!(range.bytes(), [0; 1000]);
            range.bytes_mut().fill(number as u8 + 1);
        }
        for (number, range) in ranges.iter().enumerate() {
            assert_eq!(range.bytes(), [number as u8 + 1; 1000]);
            assert_eq!(slab.key_at(range.place()), Some(key(number as u64)));
        }
        let place = ranges[4].place();
        slab.give(ranges.remove(4));
        assert_eq!((slab.free_count(), slab.key_at(place)), (1, None));
        let again = slab.take(key(77)).unwrap();
        assert_eq!((again.place(), again.bytes()), (place, &[5; 1000][..]));
        ranges.push(again);
        // The pages outlive the slab as long as a frame of them is out.
        drop(slab);
        assert_eq!(ranges[0].bytes(), [1; 1000]);
    }

    #[test]
    fn a_frame_of_another_slab_is_not_taken() {
        let mut slabs = [0, 1].map(|_| Slab::new(512, 4).unwrap());
        let range = slabs[0].take(key(1)).unwrap();
        slabs[1].give(range);
        assert_eq!([slabs[0].free_count(), slabs[1].free_count()], [3, 4]);
        assert!(Slab::new(usize::MAX, 2).is_none());
    }
}
