//! Embedded stores behind the adapter of the laboratory: LMDB, SQLite, fjall and redb.
//!
//! Owns: the adapters, one per file. Their engines are built with this crate, from the sources
//! that their crates carry; a program that wants them links it and calls [`register`] once, before
//! it asks for engines by name.
//!
//! Promises: nothing of Lithify depends on this crate. None of these engines has row locks: where
//! a workload begins transactions they run under the lab's external lock. What is matched with
//! Lithify and what is not stands in `docs/engines/`.

pub mod fjall;
pub mod lmdb;
pub mod redb;
pub mod sqlite;

use lithify_lab::adapter::Engine;
use lithify_lab::engines::external_lock::ExternalLock;
use lithify_lab::experiment::DurabilityMode;
use lithify_lab::run::engine::Transactions;

/// Adds all engines of this crate to those that the lab opens by name.
pub fn register() {
    lithify_lab::run::engine::register(&lmdb::Lmdb);
    lithify_lab::run::engine::register(&sqlite::Sqlite);
    lithify_lab::run::engine::register(&fjall::Fjall);
    lithify_lab::run::engine::register(&redb::Redb);
}

/// The engine as a workload wants it: with transactions under an external lock, or as it is.
fn for_workload<E: Engine + 'static>(engine: E, transactions: Transactions) -> Box<dyn Engine> {
    match transactions {
        Transactions::Needed => Box::new(ExternalLock::new(engine)),
        Transactions::Unneeded => Box::new(engine),
    }
}

/// The names of durability modes, for capabilities.
fn names_of(modes: &[DurabilityMode]) -> Vec<String> {
    modes.iter().map(|mode| mode.name().to_owned()).collect()
}
