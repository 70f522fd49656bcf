//! Transactions.

#![expect(unsafe_code, reason = "the border to C")]

use crate::batch::durability;
use crate::call::{Failure, OK};
use crate::cursor::{CCursor, Cursor};
use crate::database::Db;
use crate::family::{Family, range};
use crate::handle::{Handle, borrow, borrow_mut, free_function, new, place};
use crate::reads::hand_out;
use libc::{c_char, c_int, c_void};
use lithify_ffi::arguments::bytes;

/// A transaction, until it ends.
pub struct Transaction(Option<lithify::Transaction>);

/// `lithify_transaction`.
pub type CTransaction = Handle<Transaction>;

const PESSIMISTIC: c_int = 0;
const OPTIMISTIC: c_int = 1;

impl Transaction {
    fn running(&mut self) -> Result<&mut lithify::Transaction, Failure> {
        self.0.as_mut().ok_or_else(ended)
    }

    fn end(&mut self) -> Result<lithify::Transaction, Failure> {
        self.0.take().ok_or_else(ended)
    }
}

fn ended() -> Failure {
    Failure::closed("closed: the transaction was committed or rolled back: begin another one")
}

free_function!(lithify_transaction_free, Transaction);

c_functions! {
    /// Begins a transaction.
    fn lithify_transaction_begin(
        db: *mut Db,
        kind: c_int,
        transaction: *mut *mut CTransaction,
    ) {
        let (db, transaction) = (borrow(db)?, place(transaction)?);
        let begun = match kind {
            PESSIMISTIC => db.transaction(),
            OPTIMISTIC => db.optimistic_transaction(),
            _ => {
                let text = format!("invalid argument: there is no transaction of kind {kind}");
                return Err(Failure::invalid(text));
            }
        };
        transaction.set(new(Transaction(Some(begun))));
        Ok(OK)
    }

    /// How long it waits for a row.
    fn lithify_transaction_set_lock_timeout_ms(
        transaction: *mut CTransaction,
        milliseconds: u64,
    ) {
        borrow_mut(transaction)?.running()?.set_lock_timeout_ms(milliseconds);
        Ok(OK)
    }

    /// From when on others' changes are conflicts.
    fn lithify_transaction_set_snapshot(transaction: *mut CTransaction) {
        borrow_mut(transaction)?.running()?.set_snapshot();
        Ok(OK)
    }

    /// Reads see the state of this moment.
    fn lithify_transaction_read_at_snapshot(transaction: *mut CTransaction) {
        borrow_mut(transaction)?.running()?.read_at_snapshot();
        Ok(OK)
    }

    /// A value, its own writes on top.
    fn lithify_transaction_get(
        transaction: *mut CTransaction,
        family: *mut Family,
        key: *const c_void,
        key_length: usize,
        value: *mut *mut c_char,
        value_length: *mut usize,
    ) {
        let key = bytes(key, key_length)?;
        let found = borrow_mut(transaction)?.running()?.get(borrow(family)?, key)?;
        hand_out(found, value, value_length)
    }

    /// A value, locked.
    fn lithify_transaction_get_for_update(
        transaction: *mut CTransaction,
        family: *mut Family,
        key: *const c_void,
        key_length: usize,
        value: *mut *mut c_char,
        value_length: *mut usize,
    ) {
        let key = bytes(key, key_length)?;
        let found = borrow_mut(transaction)?.running()?.get_for_update(borrow(family)?, key)?;
        hand_out(found, value, value_length)
    }

    /// Sets the value of a key.
    fn lithify_transaction_put(
        transaction: *mut CTransaction,
        family: *mut Family,
        key: *const c_void,
        key_length: usize,
        value: *const c_void,
        value_length: usize,
    ) {
        let (key, value) = (bytes(key, key_length)?, bytes(value, value_length)?);
        borrow_mut(transaction)?.running()?.put(borrow(family)?, key, value)?;
        Ok(OK)
    }

    /// Removes a key.
    fn lithify_transaction_delete(
        transaction: *mut CTransaction,
        family: *mut Family,
        key: *const c_void,
        key_length: usize,
    ) {
        let key = bytes(key, key_length)?;
        borrow_mut(transaction)?.running()?.delete(borrow(family)?, key)?;
        Ok(OK)
    }

    /// Removes a key that was put once.
    fn lithify_transaction_single_delete(
        transaction: *mut CTransaction,
        family: *mut Family,
        key: *const c_void,
        key_length: usize,
    ) {
        let key = bytes(key, key_length)?;
        borrow_mut(transaction)?.running()?.single_delete(borrow(family)?, key)?;
        Ok(OK)
    }

    /// Adds an operand to a key.
    fn lithify_transaction_merge(
        transaction: *mut CTransaction,
        family: *mut Family,
        key: *const c_void,
        key_length: usize,
        operand: *const c_void,
        operand_length: usize,
    ) {
        let (key, operand) = (bytes(key, key_length)?, bytes(operand, operand_length)?);
        borrow_mut(transaction)?.running()?.merge(borrow(family)?, key, operand)?;
        Ok(OK)
    }

    /// A cursor, its own writes on top.
    fn lithify_transaction_cursor(
        transaction: *mut CTransaction,
        family: *mut Family,
        start: *const c_void,
        start_length: usize,
        end: *const c_void,
        end_length: usize,
        flags: c_int,
        cursor: *mut *mut CCursor,
    ) {
        let range = range(start, start_length, end, end_length, flags)?;
        let (family, cursor) = (borrow(family)?, place(cursor)?);
        let found = borrow_mut(transaction)?.running()?.cursor(family, range)?;
        cursor.set(new(Cursor::new(found)));
        Ok(OK)
    }

    /// A place to come back to.
    fn lithify_transaction_set_savepoint(transaction: *mut CTransaction) {
        borrow_mut(transaction)?.running()?.set_savepoint();
        Ok(OK)
    }

    /// Back to the last place.
    fn lithify_transaction_rollback_to_savepoint(transaction: *mut CTransaction) {
        borrow_mut(transaction)?.running()?.rollback_to_savepoint()?;
        Ok(OK)
    }

    /// Commits; ends it.
    fn lithify_transaction_commit(transaction: *mut CTransaction, durable: c_int) {
        let durability = durability(durable)?;
        let ended = borrow_mut(transaction)?.end()?;
        match durability {
            None => ended.commit()?,
            Some(durability) => ended.commit_with(durability)?,
        }
        Ok(OK)
    }

    /// Rolls back; ends it.
    fn lithify_transaction_rollback(transaction: *mut CTransaction) {
        borrow_mut(transaction)?.end()?.rollback();
        Ok(OK)
    }
}
