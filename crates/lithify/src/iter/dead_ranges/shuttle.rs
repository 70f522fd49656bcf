//! A writer beside scans that note and prove a range, under a concurrency checker; how it is run:
//! `base/orders.rs`.

use super::*;
use crate::base::orders::{check, join_all};
use ::shuttle::thread;

/// What stands for a database: the sequence numbers of its rows, all of one key.
#[derive(Default)]
struct Rows {
    put_at: Mutex<Vec<SequenceNumber>>,
    visible: AtomicU64,
}

impl Rows {
    fn are_empty_at(&self, sequence: SequenceNumber) -> bool {
        lock(&self.put_at).iter().all(|put_at| *put_at > sequence)
    }
}

const RANGE: (&[u8], &[u8]) = (b"a", b"m");

/// A put into a range that two readers scan until it is proven: none of them believes in the range
/// once the row is visible to it.
pub(crate) fn put_beside_scans() {
    let announced = Arc::default();
    let ranges = Arc::new(DeadRanges::new(&announced));
    let rows = Arc::new(Rows::default());
    let writer = {
        let (ranges, rows, announced) = (ranges.clone(), rows.clone(), announced.clone());
        thread::spawn(move || {
            announced.announce(1);
            if ranges.is_watched() {
                ranges.cut(b"f", b"f");
            }
            lock(&rows.put_at).push(1);
            rows.visible.store(1, Ordering::Release);
        })
    };
    let reader = || {
        let (ranges, rows) = (ranges.clone(), rows.clone());
        thread::spawn(move || {
            for _ in 0..3 {
                let horizon = rows.visible.load(Ordering::Acquire);
                if ranges.end_behind(b"a", horizon).is_some_and(|end| *end > b"f"[..]) {
                    assert!(rows.are_empty_at(horizon), "a row is passed over");
                } else if rows.are_empty_at(horizon) {
                    ranges.note(RANGE, (horizon, horizon));
                }
            }
        })
    };
    join_all(vec![writer, reader(), reader()]);
}

#[test]
fn no_scan_jumps_over_a_row_that_is_visible_to_it() {
    check(put_beside_scans);
}
