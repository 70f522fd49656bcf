//! Row locks: who may write which key.
//!
//! A striped table of owners by the 64-bit hash of (column family, key): no key is copied, and
//! two keys of one hash merely wait for each other. A waiter registers nothing; it watches the
//! stripe's event and tries again when a lock of the stripe is freed, until its deadline. Locks
//! are exclusive; taking one that the owner holds already succeeds.

use super::inner::lock;
use crate::base::ColumnFamilyId;
use crate::fs::{Environment, Event};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

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
}

impl LockTable {
    pub(crate) fn new(environment: &dyn Environment) -> Self {
        let stripe = || Stripe { owners: Mutex::default(), freed: environment.new_event() };
        LockTable {
            stripes: (0..STRIPE_COUNT).map(|_| stripe()).collect(),
            next_owner: AtomicU64::new(1),
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
        if removed {
            stripe.freed.notify_all();
        }
    }
}
