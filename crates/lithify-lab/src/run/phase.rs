//! Between the phases of a measurement: the engine at rest, and what it says of itself.

use super::{RunError, failed};
use crate::adapter::{Engine, EngineStatistics};

/// Writes the memtables to tables and waits until no compaction is due.
pub(crate) fn settle(engine: &dyn Engine) -> Result<(), RunError> {
    engine.flush().map_err(|error| failed("flush", &error))?;
    engine.wait_for_compaction().map_err(|error| failed("compaction", &error))
}

/// What the engine says of itself.
pub(crate) fn statistics(engine: &dyn Engine) -> Result<EngineStatistics, RunError> {
    engine.statistics().map_err(|error| failed("statistics", &error))
}
