//! Durability as a kind of run.

use super::measure::{self, DurabilityJob};
use super::plan::{DurabilityPlan, ModeCell};
use super::{DurabilityRecord, KIND, page};
use crate::comparison::results::ResultSet;
use crate::kind::Kind;
use crate::kind::command::{Line, joined};
use crate::run::RunError;
use crate::run::cells::Entries;
use crate::run::progress::Listener;
use lithify_report::Report;

/// What crashes take and commits cost.
pub struct Durability;

impl Kind for Durability {
    const NAME: &'static str = KIND;
    const SCHEMA: u32 = 1;
    type Plan = DurabilityPlan;
    type Record = DurabilityRecord;
    type Job = DurabilityJob;

    fn measure(job: &DurabilityJob, listener: Listener<'_>) -> Result<(), RunError> {
        measure::run_job(job, listener)
    }

    fn record(
        plan: DurabilityPlan,
        entries: Entries<ModeCell>,
    ) -> Result<DurabilityRecord, RunError> {
        DurabilityRecord::new(plan, entries)
    }

    fn fault(record: &DurabilityRecord) -> Option<String> {
        match record.violations().len() {
            0 => None,
            broken => Some(format!("{broken} promises were broken; see the report")),
        }
    }

    fn started_unix_s(record: &DurabilityRecord) -> Option<u64> {
        record.started_unix_s
    }

    fn csv(_record: &DurabilityRecord) -> Option<String> {
        None
    }

    fn report(record: &DurabilityRecord) -> Report {
        page::report(record)
    }

    fn results(record: &DurabilityRecord) -> ResultSet {
        super::compared::results(record)
    }

    fn command(record: &DurabilityRecord) -> Option<Line> {
        Some(of_durability(record))
    }

    fn name(_record: &DurabilityRecord) -> String {
        super::NAME.to_owned()
    }
}

fn of_durability(record: &DurabilityRecord) -> Line {
    let spec = &record.spec;
    let line = Line::new("durability")
        .with("--kills", spec.kills)
        .with("--cuts", spec.cuts)
        .with("--seconds", spec.seconds)
        .with("--writers", joined(&spec.writers));
    match spec.memory_limit_mib {
        Some(limit) => line.with("--memory-limit-mib", limit),
        None => line,
    }
}
