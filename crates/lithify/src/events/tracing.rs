//! Events as those of the crate `tracing`, with fields; target `lithify`. Jobs, and times in which writers are
//! held back, are spans too, and their events are in them.
//!
//! A job is done in steps, by whatever thread is free: its span is open from its first step to its end, and entered
//! for its events alone. A stop of writers is told at its end only, and is an event without a span.

use super::{Event, OptionChange};
use crate::base::lock;
use crate::stats::{JobEnd, JobInfo, JobOutcome};
use ::tracing::field::{Empty, display};
use ::tracing::{Span, error, info, info_span, warn, warn_span};
use std::collections::HashMap;
use std::sync::Mutex;

/// Spans of one database that are open: as many as jobs run, and one more.
#[derive(Default)]
pub(super) struct Spans(Mutex<Open>);

#[derive(Default)]
struct Open {
    jobs: HashMap<u64, Span>,
    held_back: Option<Span>,
}

impl Spans {
    /// Jobs are of level `INFO`; what failed, and writers that are held back, `WARN`; the end of all
    /// writing `ERROR`. An option that has changed is one event of level `INFO`. A subscriber is called with no lock held.
    pub(super) fn trace(&self, event: &Event) {
        match event {
            Event::JobBegan(job) => {
                let span = span_of(job);
                lock(&self.0).jobs.insert(job.number, span.clone());
                span.in_scope(|| began(job));
            }
            Event::JobEnded(end) => {
                let span = lock(&self.0).jobs.remove(&end.job.number).unwrap_or_else(Span::none);
                span.record("bytes_out", end.bytes_out);
                span.record("outcome", display(&end.outcome));
                span.in_scope(|| ended(end));
            }
            Event::WritesSlowed { cause, at_us } => self.held_back().in_scope(|| {
                warn!(target: "lithify", cause = cause.name(), at_us, "writes slowed");
            }),
            Event::WritesStopped { cause, at_us } => self.held_back().in_scope(|| {
                warn!(target: "lithify", cause = cause.name(), at_us, "writes stopped");
            }),
            Event::WritesFree { at_us } => {
                let span = lock(&self.0).held_back.take().unwrap_or_else(Span::none);
                span.in_scope(|| info!(target: "lithify", at_us, "writes free"));
            }
            Event::OptionsChanged { family, changes, at_us } => {
                for OptionChange { name, old, new } in changes {
                    info!(target: "lithify", family, option = name, old, new, at_us, "option changed");
                }
            }
            Event::DatabaseFailed { error, at_us } => {
                error!(target: "lithify", %error, at_us, "database failed");
            }
        }
    }

    /// The span in which writers are held back, begun if it is not there.
    fn held_back(&self) -> Span {
        let begun = lock(&self.0).held_back.clone();
        begun.unwrap_or_else(|| {
            let span = warn_span!(target: "lithify", "writes held back");
            // Another writer may have been as fast.
            lock(&self.0).held_back.get_or_insert_with(|| span.clone()).clone()
        })
    }
}

fn span_of(job: &JobInfo) -> Span {
    info_span!(
        target: "lithify",
        "job",
        job = job.number,
        kind = job.kind.name(),
        reason = job.reason,
        family = job.family,
        source_level = job.source_level,
        target_level = job.target_level,
        bytes_out = Empty,
        outcome = Empty,
    )
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
