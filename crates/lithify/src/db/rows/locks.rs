//! Row locks: who may write which key.
//!
//! A striped table of owners by the 64-bit hash of (column family, key): no key is copied, and
//! two keys of one hash merely wait for each other. Locks are exclusive; taking one that the owner
//! holds already succeeds. A waiter watches the stripe's event and tries again when a lock of the
//! stripe is freed, until its deadline.
//!
//! Deadlocks. Who waits is noted with the row it waits for, before the wait and by nobody else; a
//! lock that is free or held already costs nothing of this. Every owner waits for one row at most
//! and every row has one holder, so the graph of who waits for whom is a set of chains:
//!
//! 1. An owner about to wait follows the chain from the row it wants: holder, the row that one
//!    waits for, its holder. If the chain comes back to the owner, the wait is refused.
//! 2. The list of waits is locked meanwhile, so no owner found on the chain leaves or enters a
//!    wait: each still holds what it held, and what the chain says is true all at once.
//! 3. An owner that is granted a row is not waiting any more, so a circle can only be closed by a
//!    new wait: looking once, at its start, misses none.
//!
//! Only row locks are in the graph: a thread that waits for another in some other way, or two
//! transactions of one thread, still run into the timeout. The order of locks
//! stands in the header of `db`. Any thread may call; an owner is used by one thread at a time.

use crate::base::ColumnFamilyId;
use crate::base::sync::{AtomicU64, Mutex, MutexGuard, lock};
use crate::fs::{Environment, Event};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Who holds a lock: a transaction or one plain write.
pub(crate) type OwnerId = u64;

/// A row, by its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RowId(u64);

impl RowId {
    pub(crate) fn new(family: ColumnFamilyId, key: &[u8]) -> Self {
        let seed = u64::from(family).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        RowId(twox_hash::XxHash3_64::oneshot_with_seed(seed, key))
    }
}

/// The key is a hash already.
#[derive(Default)]
struct PassThrough(u64);

impl Hasher for PassThrough {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

type Owners = HashMap<RowId, OwnerId, BuildHasherDefault<PassThrough>>;

const STRIPE_COUNT: u64 = 64;

struct Stripe {
    owners: Mutex<Owners>,
    freed: Arc<dyn Event>,
}

impl Stripe {
    fn owners(&self) -> MutexGuard<'_, Owners> {
        lock(&self.owners)
    }
}

/// What became of an attempt to take a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grant {
    /// The owner has it now and did not before.
    New,
    /// The owner had it already.
    Held,
    /// Somebody else has it.
    Busy,
}

/// The row locks of a database.
pub(crate) struct LockTable {
    stripes: Vec<Stripe>,
    next_owner: AtomicU64,
    /// The row that each waiting owner waits for.
    waits: Mutex<HashMap<OwnerId, RowId, BuildHasherDefault<PassThrough>>>,
}

/// So many owners, the one asking among them, would wait for each other in a circle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Circle {
    pub(crate) owners: usize,
}

/// An owner that is noted as waiting, until this is dropped.
pub(crate) struct Wait<'a> {
    table: &'a LockTable,
    owner: OwnerId,
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        lock(&self.table.waits).remove(&self.owner);
    }
}

impl LockTable {
    pub(crate) fn new(environment: &dyn Environment) -> Self {
        let stripe = || Stripe { owners: Mutex::default(), freed: environment.new_event() };
        LockTable {
            stripes: (0..STRIPE_COUNT).map(|_| stripe()).collect(),
            next_owner: AtomicU64::new(1),
            waits: Mutex::default(),
        }
    }

    /// A new owner, different from all before.
    pub(crate) fn new_owner(&self) -> OwnerId {
        self.next_owner.fetch_add(1, Ordering::Relaxed)
    }

    fn stripe(&self, row: RowId) -> &Stripe {
        // The upper bits: the map's buckets use the lower ones.
        &self.stripes[(row.0 >> 32) as usize % self.stripes.len()]
    }

    /// Takes the lock if nobody else has it.
    pub(crate) fn try_acquire(&self, owner: OwnerId, row: RowId) -> Grant {
        let mut owners = self.stripe(row).owners();
        match owners.get(&row) {
            Some(holder) if *holder == owner => Grant::Held,
            Some(_) => Grant::Busy,
            None => {
                owners.insert(row, owner);
                Grant::New
            }
        }
    }

    /// Notes that `owner` is about to wait for a row, unless that would close a circle.
    pub(crate) fn begin_wait(&self, owner: OwnerId, row: RowId) -> Result<Wait<'_>, Circle> {
        let mut waits = lock(&self.waits);
        let mut wanted = row;
        // A chain has no more links than there are waits: whatever else happens, the walk ends.
        for owners in 1..=waits.len() + 1 {
            let holder = self.stripe(wanted).owners().get(&wanted).copied();
            match holder {
                Some(holder) if holder == owner => return Err(Circle { owners }),
                Some(holder) => match waits.get(&holder) {
                    Some(next) => wanted = *next,
                    None => break,
                },
                None => break,
            }
        }
        if planted!(WaitNotedLate) {
            drop(waits);
            waits = lock(&self.waits);
        }
        waits.insert(owner, row);
        Ok(Wait { table: self, owner })
    }

    /// The event that is notified when a lock of the row's stripe is freed.
    pub(crate) fn freed_event(&self, row: RowId) -> &Arc<dyn Event> {
        &self.stripe(row).freed
    }

    /// The number of locks held.
    pub(crate) fn held(&self) -> usize {
        self.stripes.iter().map(|stripe| stripe.owners().len()).sum()
    }

    /// Frees a lock that `owner` holds.
    pub(crate) fn release(&self, owner: OwnerId, row: RowId) {
        let stripe = self.stripe(row);
        let removed = {
            let mut owners = stripe.owners();
            match owners.get(&row) {
                Some(holder) if *holder == owner => owners.remove(&row).is_some(),
                _ => false,
            }
        };
        if planted!(RowFreedSilently) {
            return;
        }
        if removed {
            stripe.freed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests;
