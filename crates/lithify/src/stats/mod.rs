//! Floor 1: the ledger. What is booked, under which cause, and the arithmetic on it.
//!
//! Owns: the `Ledger` (relaxed atomics that every room books into), the clocks of steps and of
//! sampled user calls, the stall figures, the log of the latest jobs, the one list of names, and the snapshot with its page,
//! its JSON and its metrics. Any thread may book. It opens no file, knows codecs by number only, and decides
//! nothing.

mod exposition;
mod family;
mod figures;
mod gauges;
mod jobs;
mod json;
mod ledger;
mod meter;
mod names;
mod page;
mod passes;
mod prometheus;
mod snapshot;
mod stall;
mod striped;
#[cfg(test)]
mod tests;
mod work;

pub use crate::base::MemoryUse;
pub use family::{FamilyFigures, FamilyStatistics};
internal_use!(family::{FamilyLedger, FamilyPart});
pub use figures::{Figures, Tally};
pub use jobs::{JobEnd, JobInfo, JobKind, JobOutcome};
internal_use!(json::JsonWriter);
internal_use!(ledger::{JobRecord, Ledger});
internal_use!(meter::{LONG_PERIOD, SHORT_NS, SHORT_PERIOD, StepClock, StepCost, UserSample});
pub use names::{
    CODEC_NAMES, Cause, CodecFigure, Counter, CpuPart, DelayCause, Derived, JobFigure, LEVEL_SLOTS,
    TrafficFigure,
};
pub use passes::DeadPass;
pub use snapshot::{CacheFigures, LevelShape, MemoryFigure, StatisticsSnapshot};
pub use stall::{StallSummary, Unit};
internal_use!(passes::LongestPass);
internal_use!(stall::{Stalls, UNIT_US_MIN, WINDOW_US});
internal_use!(work::{CodecMeter, FilterMeter, PART_COUNT, Part, WorkMeter});
