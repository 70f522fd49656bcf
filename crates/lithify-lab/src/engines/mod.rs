//! Engines that belong to the lab itself; those of others have adapters in crates of their own.
//!
//! [`lithify`] is the engine of this project, [`null`] calibrates the driver, [`model`] is the
//! reference for tests, [`external_lock`] lends transactions to engines that have none,
//! [`plain_deletes`] takes single deletes from engines that have them, and [`elsewhere`] names
//! those that a program was built without. [`registry`] opens them by name. `slow_files` is a
//! slower device for Lithify. [`stand_in`] is a directory for libraries that write where they read.

pub mod elsewhere;
pub mod external_lock;
pub mod lithify;
pub mod model;
pub mod null;
pub mod plain_deletes;
pub mod registry;
pub(crate) mod slow_files;
pub mod stand_in;
