//! Engines that belong to the lab itself: none of them stores anything on disk.
//!
//! [`null`] calibrates the driver, [`model`] is the reference for tests, and [`external_lock`]
//! lends transactions to engines that have none. `slow_files` is a slower device for Lithify.

pub mod external_lock;
pub mod lithify;
pub mod model;
pub mod null;
pub(crate) mod slow_files;
