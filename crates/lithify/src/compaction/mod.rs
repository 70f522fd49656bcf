//! Floor 6: keeping the tree in shape while it is written to.
//!
//! Owns: the scheduler that gives steps to background jobs, the targets of the levels, the policy
//! that decides the format of every table ([`FormatPolicy`]), the picking of compactions, the flow
//! control of writers, and the jobs themselves: merge, the rules for what is still needed, merge
//! operands, and the tables written.
//!
//! Picking, targets, policy, rules and flow control are pure: figures in, decision out, no clock
//! of their own. The scheduler is the only part with threads. The room does not know of families,
//! of the log or of users' calls; `db` tells it what there is and installs what jobs produce.

mod busy;
mod deciding;
pub mod flow;
mod folding;
mod format_policy;
mod job;
pub mod levels;
mod merge;
#[cfg(any(test, feature = "internals"))]
mod others;
mod output;
pub mod picker;
pub mod placement;
mod policy;
pub mod pool;
mod read_heat;
mod retaining;
mod rules;
pub mod scheduler;
mod study;
mod supplied;
mod survivors;

pub use deciding::{Deciding, Deliberation, Turn};
pub use format_policy::{DICTIONARY_RAW_BYTES_MIN, Evidence, FormatPolicy, TablePlace};
pub(crate) use format_policy::{recall_decisions, recorded_in, warm_up};
pub(crate) use job::{
    Deeper, ENTRY_OVERHEAD_BYTES, JobReceiver, MergeJob, MergePlan, PartOutput, clipped_tombstones,
};
pub(crate) use merge::{Input, Merge, TableRun};
#[cfg(any(test, feature = "internals"))]
pub use others::{OfOthers, Rule};
pub(crate) use output::{
    CloseProgress, NewTable, OutputPlan, TableSink, Workshop, metadata_of, remove_tables,
};
pub use policy::{CodecPolicy, CompressionPolicy, LevelFormats};
pub(crate) use read_heat::{MAGIC as HEAT_MAGIC, ReadHeat};
pub(crate) use retaining::RetainPlan;
pub(crate) use supplied::SuppliedDictionaries;

#[cfg(test)]
mod tests;
