//! What threads wait for each other with, under a concurrency checker that runs every thread's
//! steps in many orders: the queue of commits, row locks with deadlock detection, the first
//! transactions against plain writers, and the event that all of them wait at.
//!
//! How it is run: `base/orders.rs`.

use crate::base::orders::{check, join_all};
use crate::base::sync::{AtomicUsize, Mutex, lock};
use crate::db::committing::group::{GroupQueue, Slot, Turn};
use crate::db::rows::locks::{Grant, LockTable, RowId};
use crate::db::rows::transaction_use::TransactionUse;
use crate::fs::{Environment, Event, SystemEnvironment};
use crate::{Error, ErrorKind};
use ::shuttle::thread;
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn wait_at(event: &Arc<dyn Event>, mut condition: impl FnMut() -> bool) {
    loop {
        let seen = event.generation();
        if condition() {
            return;
        }
        event.wait(seen, None);
    }
}

/// Three writers, two commits each, groups of at most two; odd leaders fail.
fn commits() {
    let queue: Arc<GroupQueue<usize>> = Arc::default();
    let (leaders, committed) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let writer = |writer: usize| {
        let (queue, leaders, committed) = (queue.clone(), leaders.clone(), committed.clone());
        thread::spawn(move || {
            for item in [writer * 2, writer * 2 + 1] {
                commit(&queue, &leaders, &committed, item);
            }
        })
    };
    join_all((0..3).map(writer).collect());
    let mut committed = lock(&committed).clone();
    for writer in 0..3 {
        let own: Vec<_> = committed.iter().filter(|item| **item / 2 == writer).collect();
        assert!(own.is_sorted(), "a writer's commits keep their order");
    }
    committed.sort_unstable();
    assert_eq!(committed, [0, 1, 2, 3, 4, 5], "each is in one group");
    assert!(matches!(queue.join(7, || unreachable!(), |_| ()), Turn::Lead(7)), "nobody leads");
}

fn commit(
    queue: &GroupQueue<usize>,
    leaders: &AtomicUsize,
    committed: &Mutex<Vec<usize>>,
    item: usize,
) {
    let new_slot = || Slot::new(SystemEnvironment.new_event());
    let wait = |slot: &Slot| wait_at(slot.moved(), || slot.has_moved());
    let outcome = |leader: usize| match leader % 2 {
        0 => Ok(()),
        _ => Err(Error::new(ErrorKind::Io, "on purpose")),
    };
    match queue.join(item, new_slot, wait) {
        Turn::Lead(own) => {
            assert_eq!(own, item);
            assert_eq!(leaders.fetch_add(1, Ordering::SeqCst), 0, "one leader at a time");
            let mut room = 1;
            let group = queue.group(own, |_| {
                room -= 1;
                room >= 0
            });
            assert!((1..=2).contains(&group.len()));
            lock(committed).extend(group.items());
            leaders.fetch_sub(1, Ordering::SeqCst);
            assert_eq!(queue.finish(group, outcome(own)).is_ok(), own % 2 == 0);
        }
        // Whose group it was decides; that it is one of the two is all that can be said here.
        Turn::Done(result) => {
            assert!(result.is_ok() || result.is_err_and(|e| e.kind() == ErrorKind::Io))
        }
    }
}

#[test]
fn commits_are_led_one_group_at_a_time_and_nobody_sleeps_on() {
    check(commits);
}

/// Two owners take two rows in opposite orders: one of them may be refused, neither hangs, and
/// each row has one holder at a time.
fn opposite_locks() {
    let locks = Arc::new(LockTable::new(&SystemEnvironment));
    let rows = [RowId::new(0, b"a"), RowId::new(0, b"b")];
    let holders: Arc<[AtomicUsize; 2]> = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let refused = Arc::new(AtomicUsize::new(0));
    let owner = |order: [usize; 2]| {
        let (locks, holders, refused) = (locks.clone(), holders.clone(), refused.clone());
        thread::spawn(move || {
            let owner = locks.new_owner();
            let mut held = Vec::new();
            for place in order {
                let row = rows[place];
                if locks.try_acquire(owner, row) == Grant::Busy {
                    let Ok(_wait) = locks.begin_wait(owner, row) else {
                        refused.fetch_add(1, Ordering::SeqCst);
                        break;
                    };
                    wait_at(locks.freed_event(row), || {
                        locks.try_acquire(owner, row) != Grant::Busy
                    });
                }
                assert_eq!(holders[place].fetch_add(1, Ordering::SeqCst), 0, "one holder");
                held.push(place);
            }
            for place in held {
                holders[place].fetch_sub(1, Ordering::SeqCst);
                locks.release(owner, rows[place]);
            }
        })
    };
    join_all(vec![owner([0, 1]), owner([1, 0]), owner([0, 1])]);
    assert_eq!(locks.held(), 0);
    assert!(refused.load(Ordering::SeqCst) <= 2, "somebody gets through");
}

#[test]
fn locks_in_opposite_orders_never_hang() {
    check(opposite_locks);
}

/// A plain write that takes no locks is over before any transaction begins, or takes them.
fn first_transactions() {
    let transactions = Arc::new(TransactionUse::new(SystemEnvironment.new_event()));
    let unlocked = Arc::new(AtomicUsize::new(0));
    let writer = || {
        let (transactions, unlocked) = (transactions.clone(), unlocked.clone());
        thread::spawn(move || {
            if transactions.unlocked_writer_begins() {
                unlocked.fetch_add(1, Ordering::SeqCst);
                thread::yield_now();
                unlocked.fetch_sub(1, Ordering::SeqCst);
                transactions.unlocked_writer_ends();
            }
        })
    };
    let transaction = || {
        let (transactions, unlocked) = (transactions.clone(), unlocked.clone());
        thread::spawn(move || {
            transactions.begin(|event, drained| wait_at(event, drained));
            assert_eq!(unlocked.load(Ordering::SeqCst), 0, "a write without locks is under way");
        })
    };
    join_all(vec![writer(), transaction(), transaction(), writer()]);
}

#[test]
fn the_first_transactions_wait_for_writes_without_locks() {
    check(first_transactions);
}

/// Waiters of one event: none misses the change that it waits for.
fn event() {
    let event = SystemEnvironment.new_event();
    let state = Arc::new(AtomicUsize::new(0));
    let waiter = |wanted: usize| {
        let (event, state) = (event.clone(), state.clone());
        thread::spawn(move || wait_at(&event, || state.load(Ordering::SeqCst) >= wanted))
    };
    let waiters = vec![waiter(1), waiter(2)];
    for _ in 0..2 {
        state.fetch_add(1, Ordering::SeqCst);
        event.notify_all();
    }
    join_all(waiters);
}

#[test]
fn no_notification_is_lost() {
    check(event);
}

#[cfg(feature = "planted-defects")]
mod defects {
    use super::*;
    use crate::base::orders::orders_until_failure;
    use crate::cache::shuttle::twins;
    use crate::iter::dead_ranges_shuttle::put_beside_scans;
    use crate::planted::{Defect, Harness};

    /// The model that has to notice a defect, of whatever room it is.
    fn model_against(defect: Defect) -> Option<(&'static str, fn())> {
        Some(match defect {
            Defect::FirstTransactionAlone => ("first transactions", first_transactions),
            Defect::WokenBeforeTold | Defect::LeaderUnmarked => ("commits", commits),
            Defect::WaiterCountedLate => ("event", event),
            Defect::WaitNotedLate | Defect::RowFreedSilently => ("opposite locks", opposite_locks),
            Defect::DeadRangeNotedLate => ("a put beside scans", put_beside_scans),
            Defect::BlockCachedTwice => ("two readers of a block", twins),
            _ => return None,
        })
    }

    #[test]
    fn every_defect_in_the_order_of_steps_is_noticed() {
        let mut missed = Vec::new();
        for defect in Defect::of(Harness::Schedules) {
            let model = model_against(defect);
            let caught = model.and_then(|(name, model)| {
                orders_until_failure(defect, model).map(|orders| (name, orders))
            });
            match caught {
                Some((name, orders)) => {
                    let (defect, breaks) = (defect.name(), defect.breaks());
                    println!("| `{defect}` | {breaks} | {name} | {orders} |");
                }
                None => missed.push(defect),
            }
        }
        assert!(missed.is_empty(), "no model fails with {missed:?}");
    }
}
