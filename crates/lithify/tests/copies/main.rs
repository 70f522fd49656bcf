//! Checkpoints, backups and what is restored from them: complete, consistent and independent, with
//! a crash or a failure at every single call to the file system.

#[path = "../power_cut/cut.rs"]
#[allow(dead_code, reason = "shared with the power cuts, which use all of it")]
mod cut;
#[path = "../support/mod.rs"]
mod support;

mod backups;
mod checkpoints;
mod every_call;
mod real_files;
mod restores;
mod scene;
