//! Policies of compression as a kind of run.

use super::{PolicyCell, PolicyPlan, PolicyRecord, measure, page};
use crate::comparison::results::ResultSet;
use crate::kind::command::{Line, joined};
use crate::kind::{Kind, incomplete};
use crate::run::RunError;
use crate::run::cells::{Entries, Job};
use crate::run::progress::Listener;
use lithify_report::Report;

/// Policies of compression.
pub struct Policies;

impl Kind for Policies {
    const NAME: &'static str = "policies";
    const SCHEMA: u32 = 1;
    type Plan = PolicyPlan;
    type Record = PolicyRecord;
    type Job = Job<PolicyCell>;

    fn measure(job: &Job<PolicyCell>, listener: Listener<'_>) -> Result<(), RunError> {
        measure::run_job(job, listener)
    }

    fn record(plan: PolicyPlan, entries: Entries<PolicyCell>) -> Result<PolicyRecord, RunError> {
        PolicyRecord::new(&plan, entries)
    }

    fn fault(record: &PolicyRecord) -> Option<String> {
        let valid = record.entries.results().count();
        let first = |text: String| match record.entries.problems().into_iter().next() {
            Some(problem) => format!("{text}; the first: {problem}"),
            None => text,
        };
        let missing = incomplete::fault(valid, record.planned as usize).map(first);
        missing.or_else(|| record.disagreements.first().cloned())
    }

    fn started_unix_s(record: &PolicyRecord) -> Option<u64> {
        record.entries.measured().map(|result| result.started_unix_s).min()
    }

    fn csv(record: &PolicyRecord) -> Option<String> {
        Some(page::csv(record))
    }

    fn report(record: &PolicyRecord) -> Report {
        page::report(record)
    }

    fn results(record: &PolicyRecord) -> ResultSet {
        super::compared::results(record)
    }

    fn command(record: &PolicyRecord) -> Option<Line> {
        let cells = || record.entries.cells.iter().map(|entry| &entry.cell);
        let mut data: Vec<String> = Vec::new();
        let mut mixes: Vec<String> = Vec::new();
        for cell in cells() {
            let names = [(&mut data, cell.data.to_string()), (&mut mixes, cell.mix.to_string())];
            for (known, name) in names {
                if !known.contains(&name) {
                    known.push(name);
                }
            }
        }
        let first = cells().next()?;
        let repeats = cells().map(|cell| cell.repeat + 1).max().unwrap_or(1);
        Some(
            Line::new("policies")
                .with("--data", joined(&data))
                .with("--mixes", joined(&mixes))
                .with("--mb", first.bytes / 1_000_000)
                .with("--repeats", repeats),
        )
    }

    fn name(_record: &PolicyRecord) -> String {
        "policies".to_owned()
    }
}
