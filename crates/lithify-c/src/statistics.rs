//! Statistics: what everything has cost, and why compression is what it is.

#![expect(unsafe_code, reason = "the border to C")]

use crate::call::OK;
use crate::database::Db;
use crate::family::{Family, range};
use crate::handle::{borrow, place};
use libc::{c_char, c_void};
use lithify_ffi::memory;

c_functions! {
    /// The page of statistics.
    fn lithify_stats_text(db: *mut Db, answer: *mut *mut c_char) {
        place(answer)?.set(memory::copy_text(&borrow(db)?.stats().to_string()));
        Ok(OK)
    }

    /// The same as JSON.
    fn lithify_stats_json(db: *mut Db, answer: *mut *mut c_char) {
        place(answer)?.set(memory::copy_text(&borrow(db)?.stats().to_json()));
        Ok(OK)
    }

    /// The same in Prometheus' text format.
    fn lithify_stats_prometheus(db: *mut Db, answer: *mut *mut c_char) {
        place(answer)?.set(memory::copy_text(&borrow(db)?.stats().to_prometheus()));
        Ok(OK)
    }

    /// The same as OpenMetrics.
    fn lithify_stats_open_metrics(db: *mut Db, answer: *mut *mut c_char) {
        place(answer)?.set(memory::copy_text(&borrow(db)?.stats().to_open_metrics()));
        Ok(OK)
    }

    /// Which compression each level has, and why.
    fn lithify_explain_text(family: *mut Family, answer: *mut *mut c_char) {
        place(answer)?.set(memory::copy_text(&borrow(family)?.explain().to_string()));
        Ok(OK)
    }

    /// The same as JSON.
    fn lithify_explain_json(family: *mut Family, answer: *mut *mut c_char) {
        place(answer)?.set(memory::copy_text(&borrow(family)?.explain().to_json()));
        Ok(OK)
    }

    /// About how much a range takes and holds.
    fn lithify_approximate(
        family: *mut Family,
        start: *const c_void,
        start_length: usize,
        end: *const c_void,
        end_length: usize,
        bytes: *mut u64,
        rows: *mut u64,
    ) {
        let range = range(start, start_length, end, end_length, 0)?;
        let found = borrow(family)?.approximate(range)?;
        for (answer, value) in [(bytes, found.bytes), (rows, found.rows)] {
            if !answer.is_null() {
                place(answer)?.set(value);
            }
        }
        Ok(OK)
    }
}
