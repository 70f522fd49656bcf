//! Calls of libraries that panic on damaged files.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// Whether a panic of this thread is expected, and told by an error instead.
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// What a call gives, or nothing if it panicked. The panic is not printed.
pub(super) fn guarded<T>(call: impl FnOnce() -> T) -> Option<T> {
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_QUIET.get() {
                before(info);
            }
        }));
    });
    let was_quiet = IS_QUIET.replace(true);
    // What the call has changed is not used after a panic: the file is given up.
    let result = panic::catch_unwind(AssertUnwindSafe(call));
    IS_QUIET.set(was_quiet);
    result.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_nothing() {
        assert_eq!(guarded(|| 7), Some(7));
        let none: [u8; 0] = [];
        assert_eq!(guarded(|| none.to_vec()[3]), None);
        assert!(!IS_QUIET.get());
    }
}
