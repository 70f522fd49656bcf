//! Embedded stores behind the adapter of the laboratory: LMDB, SQLite, fjall and redb.
//!
//! Owns: the adapters, one per file, and the one provider that opens them by name (`provider`).
//! Their engines are built with this crate, from the sources that their crates carry; a program
//! that wants them links it and calls [`register`] once, before it asks for engines by name. [`stores`] gives
//! the rows of a database of fjall to whoever imports or measures them.
//!
//! Promises: nothing of Lithify depends on this crate. None of these engines has row locks: where
//! a workload begins transactions they run under the lab's external lock. What is matched with
//! Lithify and what is not stands in `docs/engines/`.

pub mod fjall;
mod fjall_error;
pub mod lmdb;
mod provider;
pub mod redb;
pub mod sqlite;
pub mod stores;

use lithify_lab::adapter::settings::DurabilityMode;

use provider::{Embedded, Opens};

/// Adds all engines of this crate to those that the lab opens by name.
pub fn register() {
    register_one::<lmdb::LmdbEngine>();
    register_one::<sqlite::SqliteEngine>();
    register_one::<fjall::FjallEngine>();
    register_one::<redb::RedbEngine>();
}

fn register_one<E: Embedded>() {
    lithify_lab::engines::registry::register(const { &Opens::<E>::new() });
}

/// The names of durability modes, for capabilities.
fn names_of(modes: &[DurabilityMode]) -> Vec<String> {
    modes.iter().map(|mode| mode.name().to_owned()).collect()
}
