//! Events as those of the crate `tracing`, with fields; target `lithify`.

use super::Event;
use crate::stats::{JobEnd, JobInfo, JobOutcome};
use ::tracing::{error, info, warn};

/// Jobs are of level `INFO`; what failed, and writers that are held back, `WARN`; the end of all
/// writing `ERROR`.
pub(super) fn trace(event: &Event) {
    match event {
        Event::JobBegan(job) => began(job),
        Event::JobEnded(end) => ended(end),
        Event::WritesSlowed { cause, at_us } => {
            warn!(target: "lithify", cause = cause.name(), at_us, "writes slowed");
        }
        Event::WritesStopped { cause, at_us } => {
            warn!(target: "lithify", cause = cause.name(), at_us, "writes stopped");
        }
        Event::WritesFree { at_us } => info!(target: "lithify", at_us, "writes free"),
        Event::DatabaseFailed { error, at_us } => {
            error!(target: "lithify", %error, at_us, "database failed");
        }
    }
}

fn began(job: &JobInfo) {
    info!(
        target: "lithify",
        job = job.number,
        kind = job.kind.name(),
        reason = job.reason,
        family = job.family,
        source_level = job.source_level,
        target_level = job.target_level,
        tables_in = job.tables_in,
        bytes_in = job.bytes_in,
        at_us = job.began_us,
        "job began"
    );
}

fn ended(end: &JobEnd) {
    // The level of a callsite is fixed.
    macro_rules! ended {
        ($level:ident) => {
            $level!(
                target: "lithify",
                job = end.job.number,
                kind = end.job.kind.name(),
                reason = end.job.reason,
                family = end.job.family,
                source_level = end.job.source_level,
                target_level = end.job.target_level,
                wall_us = end.wall_us(),
                cpu_ns = end.cpu_ns,
                tables_in = end.job.tables_in,
                tables_out = end.tables_out,
                bytes_in = end.job.bytes_in,
                bytes_out = end.bytes_out,
                entries_in = end.entries_in,
                entries_dropped = end.entries_dropped,
                outcome = %end.outcome,
                at_us = end.ended_us,
                "job ended"
            )
        };
    }
    match end.outcome {
        JobOutcome::Failed { .. } => ended!(warn),
        _ => ended!(info),
    }
}
