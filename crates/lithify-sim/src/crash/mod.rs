//! Crash states: whatever a power cut or the end of a process leaves, the database opens with what
//! was promised, and with nothing that was never written.
//!
//! 1. A run is recorded: the disk is cloned before each call that changes it, together with how
//!    far the history was then and how much of it was promised ([`record`], [`history`]).
//! 2. At each of these points crashes are tried in many ways ([`choice`]): what was not synced
//!    survives or not, change by change, torn, or by chance.
//! 3. What is left must open. Its rows must be the state after a number of events that may have
//!    survived; its files must be those that the manifest names; a part of the images is worked
//!    on. A second crash comes while it opens, at every call ([`trial`]).
//!
//! [`CrashPoints`] does this at every point of scripted runs, [`Crashes`] at random points of long
//! random histories that go on from what a crash left.

pub mod actor;
mod chain;
pub mod choice;
pub mod figures;
pub mod history;
mod points;
pub mod record;
pub mod recover;
pub mod scripts;
#[cfg(test)]
mod tests;
pub mod trial;
mod workload;

pub use chain::Crashes;
pub use points::CrashPoints;
