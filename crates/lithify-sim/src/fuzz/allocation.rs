//! How much memory a piece of work takes at once, on its thread.
//!
//! A binary that wants the figures installs [`CountingAllocator`]; elsewhere they are 0. What C
//! libraries take for themselves is not seen.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, which counts what each thread has.
pub struct CountingAllocator;

thread_local! {
    /// Bytes that this thread has taken more than given back.
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    /// Bytes that this thread has ever taken.
    static TAKEN: Cell<u64> = const { Cell::new(0) };
}

/// What a piece of work took on its thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Taken {
    /// Bytes that it had at once beyond those that the thread had before.
    pub peak_bytes: usize,
    /// Bytes that it asked for in all, given back or not.
    pub asked_bytes: u64,
}

fn note(change: isize) {
    let asked = u64::try_from(change).unwrap_or(0);
    // A thread that ends has no counters any more.
    let _ = TAKEN.try_with(|taken| taken.set(taken.get().wrapping_add(asked)));
    let _ = LIVE.try_with(|live| {
        let now = live.get().wrapping_add(change);
        live.set(now);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(now)));
    });
}

// SAFETY: every call is handed on to the system's allocator as it came.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as isize);
        // SAFETY: by the caller's contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as isize);
        // SAFETY: by the caller's contract, which is the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        note(-(layout.size() as isize));
        // SAFETY: by the caller's contract, which is the same.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size as isize - layout.size() as isize);
        // SAFETY: by the caller's contract, which is the same.
        unsafe { System.realloc(place, layout, size) }
    }
}

/// Runs `work`, and says how many bytes it had at once beyond those that the thread had before.
pub fn peak_of<R>(work: impl FnOnce() -> R) -> (R, usize) {
    let (result, taken) = taken_by(work);
    (result, taken.peak_bytes)
}

/// Runs `work`, and says what it took.
pub fn taken_by<R>(work: impl FnOnce() -> R) -> (R, Taken) {
    let (before, asked_before) = (LIVE.get(), TAKEN.get());
    PEAK.set(before);
    let result = work();
    let peak_bytes = PEAK.get().wrapping_sub(before).max(0) as usize;
    (result, Taken { peak_bytes, asked_bytes: TAKEN.get().wrapping_sub(asked_before) })
}
