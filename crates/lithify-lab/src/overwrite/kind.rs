//! Overwrites as a kind of run.

use super::{OverwritePlan, OverwriteRecord, OverwriteSpec, measure, page, report};
use crate::comparison::results::ResultSet;
use crate::kind::Kind;
use crate::kind::command::Line;
use crate::run::RunError;
use crate::run::cells::{Entries, Job};
use crate::run::progress::Listener;
use lithify_report::Report;

/// Overwrites as fast as they go.
pub struct Overwrites;

impl Kind for Overwrites {
    const NAME: &'static str = "overwrite";
    const SCHEMA: u32 = 1;
    type Plan = OverwritePlan;
    type Record = OverwriteRecord;
    type Job = Job<OverwriteSpec>;

    fn measure(job: &Job<OverwriteSpec>, listener: Listener<'_>) -> Result<(), RunError> {
        measure::run_job(job, listener)
    }

    fn record(
        plan: OverwritePlan,
        entries: Entries<OverwriteSpec>,
    ) -> Result<OverwriteRecord, RunError> {
        OverwriteRecord::new(&plan, entries)
    }

    fn fault(_record: &OverwriteRecord) -> Option<String> {
        None
    }

    fn started_unix_s(record: &OverwriteRecord) -> Option<u64> {
        record.driver.started_unix_s
    }

    fn csv(record: &OverwriteRecord) -> Option<String> {
        Some(report::csv(record.result.as_ref().unwrap_or(&record.driver)))
    }

    fn report(record: &OverwriteRecord) -> Report {
        page::report(record)
    }

    fn results(record: &OverwriteRecord) -> ResultSet {
        super::compared::results(record)
    }

    fn command(record: &OverwriteRecord) -> Option<Line> {
        Some(of_overwrite(record))
    }

    fn name(record: &OverwriteRecord) -> String {
        let shown = record.result.as_ref().unwrap_or(&record.driver);
        format!("overwrite-{}", shown.spec.engine.name())
    }
}

fn of_overwrite(record: &OverwriteRecord) -> Line {
    let spec = &record.result.as_ref().unwrap_or(&record.driver).spec;
    Line::new("overwrite")
        .with("--engine", &spec.engine)
        .with("--keys", spec.keys)
        .with("--seconds", spec.seconds)
        .with("--clients", spec.clients)
        .with("--compression", spec.settings.ladder())
}
