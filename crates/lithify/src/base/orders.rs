//! Models of what threads do beside each other, run in many orders of their steps by a
//! concurrency checker. Pieces that are checked take mutexes and atomics from [`super::sync`].
//!
//! `RUSTFLAGS="--cfg shuttle" cargo test -p lithify --lib shuttle:: --release`; so many orders
//! a test: `LITHIFY_ORDERS=1000000`. With `--features planted-defects` each model is also run with
//! the defects that it has to notice.

use crate::planted::models;
use ::shuttle::thread::JoinHandle;

const ORDERS_DEFAULT: usize = 20_000;

/// Preemptions of one run that the second half of the orders has at most.
const PREEMPTIONS: usize = 3;

/// Runs it in random orders, then in orders of few preemptions.
fn in_all_orders(run: impl Fn() + Clone + Send + Sync + 'static) {
    let orders = std::env::var("LITHIFY_ORDERS").ok().and_then(|text| text.parse().ok());
    let orders = orders.unwrap_or(ORDERS_DEFAULT);
    ::shuttle::check_random(run.clone(), orders / 2);
    ::shuttle::check_pct(run, orders / 2, PREEMPTIONS);
}

/// A model that must not fail in any order.
pub(crate) fn check(run: fn()) {
    models::run(|| in_all_orders(run));
}

/// In how many orders a model ran until it failed with a defect; `None` if it never did.
#[cfg(feature = "planted-defects")]
pub(crate) fn orders_until_failure(defect: crate::planted::Defect, run: fn()) -> Option<usize> {
    use std::sync::atomic::{AtomicUsize, Ordering};
    // The checker's own way to report a panic is there before it is put aside.
    ::shuttle::check_random(|| {}, 1);
    let orders = std::sync::Arc::new(AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&orders);
    let counting = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        run();
    };
    let has_failed = models::fails_with(defect, || in_all_orders(counting));
    has_failed.then(|| orders.load(Ordering::SeqCst))
}

/// Waits for threads of a model, which must not panic.
pub(crate) fn join_all(threads: Vec<JoinHandle<()>>) {
    for thread in threads {
        assert!(thread.join().is_ok());
    }
}
