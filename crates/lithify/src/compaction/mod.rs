//! Floor 6: keeping the tree in shape while it is written to.
//!
//! Owns: the scheduler that gives steps to background jobs, the targets of the levels and the
//! codecs written at them, the picking of compactions, and the flow control of writers.
//!
//! Picking, targets, policy and flow control are pure: figures in, decision out, no clock of
//! their own. The scheduler is the only part with threads. The room does not know of families,
//! of the log or of users' calls; `db` tells it what there is and installs what jobs produce.

pub mod flow;
pub mod levels;
pub mod picker;
mod policy;
pub mod scheduler;

pub use policy::CodecPolicy;

#[cfg(test)]
mod tests;
