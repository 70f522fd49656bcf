//! How long a sync takes where there are threads: other calls get in before it ends.

use crate::random::Random;
use lithify::fs::{MemoryFileSystem, SyncPause};
use std::time::Duration;

/// The longest sync, in microseconds.
const SYNC_US_MAX: u64 = 300;

/// Lets the syncs of a disk last: some are over at once, some as soon as others had their turn.
pub fn let_syncs_last(files: &MemoryFileSystem, seed: u64) {
    let pause: Box<SyncPause> = Box::new(move |number| {
        let mut random = Random::new(seed.wrapping_add(number));
        match random.below(4) {
            0 => {}
            1 => std::thread::yield_now(),
            _ => std::thread::sleep(Duration::from_micros(random.below(SYNC_US_MAX))),
        }
    });
    files.set_sync_pause(pause);
}
