//! Row locks and transactions.

pub(crate) mod locks;
pub(crate) mod transaction;
pub(crate) mod transaction_use;
