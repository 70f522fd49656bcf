//! Models of what threads do beside each other, run in many orders of their steps by a
//! concurrency checker. Pieces that are checked take mutexes and atomics from [`super::sync`].
//!
//! `RUSTFLAGS="--cfg shuttle" cargo test -p lithify --lib shuttle:: --release`; so many orders
//! a test: `LITHIFY_ORDERS=1000000`.

use ::shuttle::thread::JoinHandle;

const ORDERS_DEFAULT: usize = 20_000;

/// Preemptions of one run that the second half of the orders has at most.
const PREEMPTIONS: usize = 3;

/// Runs it in random orders, then in orders of few preemptions.
pub(crate) fn check(run: fn()) {
    let orders = std::env::var("LITHIFY_ORDERS").ok().and_then(|text| text.parse().ok());
    let orders = orders.unwrap_or(ORDERS_DEFAULT);
    ::shuttle::check_random(run, orders / 2);
    ::shuttle::check_pct(run, orders / 2, PREEMPTIONS);
}

/// Waits for threads of a model, which must not panic.
pub(crate) fn join_all(threads: Vec<JoinHandle<()>>) {
    for thread in threads {
        assert!(thread.join().is_ok());
    }
}
