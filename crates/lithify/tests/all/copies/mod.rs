//! Checkpoints, backups and what is restored from them: complete, consistent and independent, with
//! a crash or a failure at every single call to the file system.

mod cut;

mod backups;
mod checkpoints;
mod every_call;
mod real_files;
mod restores;
mod scene;
