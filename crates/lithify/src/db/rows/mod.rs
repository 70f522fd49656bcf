//! Row locks, and the transactions that make plain writes take them.
//!
//! Owns: the table of row locks with its notes of who waits, and whether there ever was a
//! transaction. Any thread may call; an owner is used by one thread at a time. Its locks are leaves,
//! taken in the order waits, stripe. A caller that waits for a row holds no other lock.

pub(crate) mod locks;
pub(crate) mod transaction;
pub(crate) mod transaction_use;
mod update;

use crate::db::rows::locks::{Circle, Grant, LockTable, OwnerId, RowId};
use crate::db::rows::transaction_use::TransactionUse;
use crate::fs::{Environment, Event};
use crate::options::Options;
use crate::stats::{Counter, Ledger};
use crate::{Error, ErrorKind, Result};
use std::sync::Arc;

/// Why a row lock was not granted.
enum Refusal {
    Timeout { timeout_us: u64 },
    Deadlock(Circle),
}

impl Refusal {
    fn into_error(self, row: &str) -> Error {
        match self {
            Refusal::Timeout { timeout_us } => Error::new(
                ErrorKind::LockTimeout,
                format!("the lock of {row} was not granted in time: roll back and retry"),
            )
            .expected(format_args!("a lock within {timeout_us} us"), "the row still locked"),
            Refusal::Deadlock(Circle { owners }) => Error::new(
                ErrorKind::Deadlock,
                format!(
                    "waiting for the lock of {row} would close a circle of {owners} writers that \
                     wait for each other: roll back and retry"
                ),
            ),
        }
    }
}

/// See the module.
pub(crate) struct Rows {
    locks: LockTable,
    transactions: TransactionUse,
    detects_deadlocks: bool,
    timeout_us: u64,
    ledger: Arc<Ledger>,
    environment: Arc<dyn Environment>,
}

/// A plain write that needs no locks because there never was a transaction.
pub(crate) struct Unlocked<'a>(&'a Rows);

impl Drop for Unlocked<'_> {
    fn drop(&mut self) {
        self.0.transactions.unlocked_writer_ends();
    }
}

impl Rows {
    /// No locks held, no transaction begun.
    pub(crate) fn new(
        options: &Options,
        ledger: &Arc<Ledger>,
        environment: &Arc<dyn Environment>,
    ) -> Self {
        Rows {
            locks: LockTable::new(&**environment),
            transactions: TransactionUse::new(environment.new_event()),
            detects_deadlocks: options.deadlock_detection,
            timeout_us: options.row_lock_timeout_ms * 1000,
            ledger: Arc::clone(ledger),
            environment: Arc::clone(environment),
        }
    }

    /// How long one waits for a lock that says nothing else.
    pub(crate) fn timeout_us(&self) -> u64 {
        self.timeout_us
    }

    /// A new owner, different from all before.
    pub(crate) fn new_owner(&self) -> OwnerId {
        self.locks.new_owner()
    }

    /// The number of locks held.
    pub(crate) fn held(&self) -> usize {
        self.locks.held()
    }

    /// Takes the lock of a row if nobody else has it.
    pub(crate) fn try_lock(&self, owner: OwnerId, row: RowId) -> Grant {
        self.ledger.count(Counter::LockRequests, 1);
        self.locks.try_acquire(owner, row)
    }

    /// Frees a lock that `owner` holds.
    pub(crate) fn release(&self, owner: OwnerId, row: RowId) {
        self.locks.release(owner, row);
    }

    /// Begins a plain write without locks; `None` if it has to take them.
    pub(crate) fn begin_unlocked(&self) -> Option<Unlocked<'_>> {
        self.transactions.unlocked_writer_begins().then(|| Unlocked(self))
    }

    /// Makes plain writes take row locks from now on, and waits for those under way without.
    pub(crate) fn begin_transactions(
        &self,
        wait: impl FnOnce(&Arc<dyn Event>, &mut dyn FnMut() -> bool),
    ) {
        self.transactions.begin(wait);
    }

    /// Takes the lock of a row, waiting for it at most so long: `wait` waits at an event until a
    /// time of the clock for a condition. `name` says which row it is, for the message of an error.
    pub(crate) fn lock(
        &self,
        owner: OwnerId,
        row: RowId,
        timeout_us: u64,
        wait: impl FnOnce(&Arc<dyn Event>, u64, &mut dyn FnMut() -> bool) -> bool,
        name: impl FnOnce() -> String,
    ) -> Result<Grant> {
        let grant = self.locks.try_acquire(owner, row);
        if grant != Grant::Busy {
            return Ok(grant);
        }
        self.ledger.count(Counter::LockWaits, 1);
        let granted = self.wait_for(owner, row, timeout_us, wait);
        granted.map_err(|refusal| refusal.into_error(&name()))
    }

    fn wait_for(
        &self,
        owner: OwnerId,
        row: RowId,
        timeout_us: u64,
        wait: impl FnOnce(&Arc<dyn Event>, u64, &mut dyn FnMut() -> bool) -> bool,
    ) -> std::result::Result<Grant, Refusal> {
        // An owner that is not waiting cannot be part of a deadlock.
        let detects = self.detects_deadlocks && timeout_us > 0;
        let noted = detects.then(|| self.locks.begin_wait(owner, row)).transpose();
        let _noted = noted.map_err(|circle| {
            self.ledger.count(Counter::Deadlocks, 1);
            Refusal::Deadlock(circle)
        })?;
        let mut grant = Grant::Busy;
        let deadline_us = self.environment.now_us().saturating_add(timeout_us);
        let granted = wait(self.locks.freed_event(row), deadline_us, &mut || {
            grant = self.locks.try_acquire(owner, row);
            grant != Grant::Busy
        });
        if granted {
            return Ok(grant);
        }
        self.ledger.count(Counter::LockTimeouts, 1);
        Err(Refusal::Timeout { timeout_us })
    }
}
