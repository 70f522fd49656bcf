//! The graph of waits against a model: random owners over a few rows, with real threads.

use super::{Circle, Grant, LockTable, OwnerId, RowId};
use crate::fs::SystemEnvironment;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// A stripe's lock is freed thousands of times in this time.
const HANG_US: u64 = 300_000_000;

/// What everybody can know: noted before a wait and after a grant by who waits, and struck out
/// before a release. A circle of real waits therefore stands in it in full.
#[derive(Default)]
struct Model {
    holders: HashMap<RowId, OwnerId>,
    wanted: HashMap<OwnerId, RowId>,
}

impl Model {
    /// The owners of the circle that `owner` would close, if there is one.
    fn circle(&self, owner: OwnerId) -> Option<usize> {
        let mut at = owner;
        for owners in 1..=self.wanted.len() {
            at = *self.holders.get(self.wanted.get(&at)?)?;
            if at == owner {
                return Some(owners);
            }
        }
        None
    }
}

/// One thread of the long run.
struct Life<'a> {
    table: &'a LockTable,
    model: &'a Mutex<Model>,
    random: u64,
    circles: &'a AtomicU64,
    /// Reported circles that are none. No panic in a thread: the others would wait for it.
    unreal: &'a AtomicU64,
}

impl Life<'_> {
    fn below(&mut self, limit: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 33) % limit
    }

    /// Takes up to five random rows of eight, in any order, then gives them back.
    fn live(&mut self) {
        let owner = self.table.new_owner();
        let mut rows = Vec::new();
        for _ in 0..1 + self.below(5) {
            let row = RowId::new(0, &[self.below(8) as u8]);
            self.model.lock().unwrap().wanted.insert(owner, row);
            // Others run between any two rows, on however few cores.
            std::thread::yield_now();
            let granted = self.take(owner, row);
            let mut model = self.model.lock().unwrap();
            match granted {
                Ok(Grant::New) => {
                    model.holders.insert(row, owner);
                    rows.push(row);
                }
                Ok(_) => {}
                Err(Circle { owners }) => {
                    // Nobody in a circle can leave it but by us, who have not given back a row.
                    if model.circle(owner) != Some(owners) {
                        self.unreal.fetch_add(1, Ordering::Relaxed);
                    }
                    self.circles.fetch_add(1, Ordering::Relaxed);
                    model.wanted.remove(&owner);
                    break;
                }
            }
            model.wanted.remove(&owner);
        }
        for row in rows {
            self.model.lock().unwrap().holders.remove(&row);
            self.table.release(owner, row);
        }
    }

    /// As a writer takes a row lock; a wait as long as no machine needs is a circle missed.
    fn take(&self, owner: OwnerId, row: RowId) -> Result<Grant, Circle> {
        let grant = self.table.try_acquire(owner, row);
        if grant != Grant::Busy {
            return Ok(grant);
        }
        let _wait = self.table.begin_wait(owner, row)?;
        let freed = self.table.freed_event(row);
        loop {
            let seen = freed.generation();
            let grant = self.table.try_acquire(owner, row);
            if grant != Grant::Busy {
                return Ok(grant);
            }
            if !freed.wait(seen, Some(HANG_US)) {
                eprintln!("a circle was missed: owner {owner} waits for ever");
                std::process::abort();
            }
        }
    }
}

#[test]
fn every_circle_is_found_and_every_found_circle_is_real() {
    let table = LockTable::new(&SystemEnvironment);
    let (model, circles, unreal) = (Mutex::default(), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let (table, model) = (&table, &model);
            let random = thread + 1;
            let mut life = Life { table, model, random, circles: &circles, unreal: &unreal };
            scope.spawn(move || {
                let mut lives = 0;
                while lives < 2_000 || life.circles.load(Ordering::Relaxed) < 100 {
                    life.live();
                    lives += 1;
                }
            });
        }
    });
    assert_eq!(unreal.into_inner(), 0, "circles were reported that are none");
    assert_eq!(table.held(), 0);
    assert!(table.waits.lock().unwrap().is_empty(), "somebody is still noted as waiting");
}

/// A granted owner that is still noted as waiting for its own row is the end of a chain.
#[test]
fn a_row_that_changed_hands_closes_no_circle() {
    let table = LockTable::new(&SystemEnvironment);
    let row = |number: u8| RowId::new(0, &[number]);
    let [first, second, third] = [(); 3].map(|()| table.new_owner());
    assert_eq!(table.try_acquire(first, row(1)), Grant::New);
    let wait = table.begin_wait(second, row(1)).ok().unwrap();
    table.release(first, row(1));
    assert_eq!(table.try_acquire(second, row(1)), Grant::New);
    let _third = table.begin_wait(third, row(1)).ok().unwrap();
    assert_eq!(table.try_acquire(third, row(2)), Grant::New);
    drop(wait);
    assert_eq!(table.begin_wait(second, row(2)).err(), Some(Circle { owners: 2 }));
}

#[test]
fn chains_without_a_circle_are_granted_a_wait() {
    let table = LockTable::new(&SystemEnvironment);
    let row = |number: u8| RowId::new(0, &[number]);
    let owners: Vec<_> = (0..100).map(|_| table.new_owner()).collect();
    for (number, owner) in owners.iter().enumerate() {
        assert_eq!(table.try_acquire(*owner, row(number as u8)), Grant::New);
    }
    let waits: Vec<_> = (1..100u8)
        .map(|number| table.begin_wait(owners[usize::from(number)], row(number - 1)).ok().unwrap())
        .collect();
    let closing = table.begin_wait(owners[0], row(99)).err();
    assert_eq!(closing, Some(Circle { owners: 100 }));
    drop(waits);
    assert!(table.begin_wait(owners[0], row(99)).is_ok());
}
