//! Other storage engines behind the adapter of the laboratory.
//!
//! Owns: the adapters ([`rocksdb`], [`wiredtiger`], [`leveldb`], [`mariadb`], [`cassandra`]), what
//! they share to call libraries that are loaded while the program runs and to keep servers of their
//! own, where engines are kept and how they get there ([`setup`]), databases of others as data for advice
//! ([`stores`]). A program that links this crate calls [`register`] once; from then on the lab
//! finds the engines by name.
//!
//! Promises: nothing here is needed to build, test or run Lithify itself. An engine is loaded when
//! it is opened and not before; one that is not there is an error of one line that says how to
//! get it.

pub mod cassandra;
pub mod leveldb;
mod library;
pub mod mariadb;
pub mod rocksdb;
mod server_process;
pub mod setup;
mod sorted_blocks;
pub mod stores;
pub mod wiredtiger;

/// Adds all engines of this crate to those that the lab opens by name.
pub fn register() {
    for provider in &rocksdb::PROVIDERS {
        lithify_lab::engines::registry::register(provider);
    }
    for provider in &wiredtiger::PROVIDERS {
        lithify_lab::engines::registry::register(provider);
    }
    lithify_lab::engines::registry::register(&leveldb::PROVIDER);
    for provider in &mariadb::PROVIDERS {
        lithify_lab::engines::registry::register(provider);
    }
    lithify_lab::engines::registry::register(&cassandra::PROVIDER);
}
