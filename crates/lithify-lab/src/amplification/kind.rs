//! Amplification as a kind of run.

use super::{
    AmplificationPlan, AmplificationRecord, AmplificationSpec, Workload, measure, page, report,
};
use crate::comparison::results::ResultSet;
use crate::kind::command::{Line, joined};
use crate::kind::{Kind, incomplete};
use crate::run::RunError;
use crate::run::cells::{Entries, Job};
use crate::run::progress::Listener;
use lithify_report::Report;

/// Read, write and space amplification.
pub struct Amplification;

impl Kind for Amplification {
    const NAME: &'static str = "amplification";
    const SCHEMA: u32 = 1;
    type Plan = AmplificationPlan;
    type Record = AmplificationRecord;
    type Job = Job<AmplificationSpec>;

    fn measure(job: &Job<AmplificationSpec>, listener: Listener<'_>) -> Result<(), RunError> {
        measure::run_job(job, listener)
    }

    fn record(
        _plan: AmplificationPlan,
        entries: Entries<AmplificationSpec>,
    ) -> Result<AmplificationRecord, RunError> {
        Ok(AmplificationRecord::new(entries))
    }

    fn fault(record: &AmplificationRecord) -> Option<String> {
        let failed = record.cells.iter().filter(|cell| cell.failure.is_some()).count();
        incomplete::fault(record.cells.len() - failed, record.cells.len())
    }

    fn started_unix_s(record: &AmplificationRecord) -> Option<u64> {
        let results = record.cells.iter().filter_map(|cell| cell.result.as_ref());
        results.filter_map(|result| result.started_unix_s).min()
    }

    fn csv(record: &AmplificationRecord) -> Option<String> {
        Some(report::csv(record))
    }

    fn report(record: &AmplificationRecord) -> Report {
        page::report(record)
    }

    fn results(record: &AmplificationRecord) -> ResultSet {
        super::compared::results(record)
    }

    fn command(record: &AmplificationRecord) -> Option<Line> {
        of_amplification(record)
    }

    fn name(_record: &AmplificationRecord) -> String {
        super::NAME.to_owned()
    }
}

fn of_amplification(record: &AmplificationRecord) -> Option<Line> {
    let spec = |wanted: fn(Workload) -> bool| {
        record.cells.iter().map(|cell| &cell.spec).find(|spec| wanted(spec.workload))
    };
    let of_keys = spec(|workload| workload != Workload::LinkBench);
    let first = of_keys.or(spec(|_| true))?;
    let (mut engines, mut workloads) = (Vec::new(), Vec::new());
    for spec in record.cells.iter().map(|cell| &cell.spec) {
        let (engine, workload) = (spec.engine.name(), spec.workload.name());
        if !engines.contains(&engine) {
            engines.push(engine);
        }
        if !workloads.contains(&workload) {
            workloads.push(workload);
        }
    }
    let line = Line::new("amp").with("--engines", joined(&engines)).with_of(
        Workload::ALL.len(),
        "--workloads",
        &workloads,
    );
    let line = match of_keys {
        Some(spec) => line.with("--keys", spec.rows),
        None => line,
    };
    Some(
        line.with("--writes-percent", first.writes_percent)
            .with("--queries", first.queries)
            .with("--memory-budget-mib", first.settings.memory_budget_bytes >> 20)
            .with("--compression", first.settings.ladder()),
    )
}
