//! Pages with holes as a kind of run.

use super::{PAGE_BYTES, PagesPlan, PagesRecord, Place, measure, page, report};
use crate::comparison::results::ResultSet;
use crate::kind::command::{Line, joined};
use crate::kind::{Kind, incomplete};
use crate::run::RunError;
use crate::run::cells::{Entries, Job};
use crate::run::progress::Listener;
use lithify_report::Report;

/// Pages with holes in files.
pub struct Pages;

impl Kind for Pages {
    const NAME: &'static str = "pages";
    const SCHEMA: u32 = 1;
    type Plan = PagesPlan;
    type Record = PagesRecord;
    type Job = Job<Place>;

    fn measure(job: &Job<Place>, listener: Listener<'_>) -> Result<(), RunError> {
        measure::run_job(job, listener)
    }

    fn record(plan: PagesPlan, entries: Entries<Place>) -> Result<PagesRecord, RunError> {
        Ok(PagesRecord::new(plan, entries))
    }

    fn fault(record: &PagesRecord) -> Option<String> {
        let failed = record.cells.iter().filter(|cell| cell.failure.is_some()).count();
        incomplete::fault(record.cells.len() - failed, record.cells.len())
    }

    fn started_unix_s(record: &PagesRecord) -> Option<u64> {
        record.started_unix_s
    }

    fn csv(record: &PagesRecord) -> Option<String> {
        Some(report::csv(record))
    }

    fn report(record: &PagesRecord) -> Report {
        page::report(record)
    }

    fn results(record: &PagesRecord) -> ResultSet {
        super::compared::results(record)
    }

    fn command(record: &PagesRecord) -> Option<Line> {
        Some(of_pages(record))
    }

    fn name(_record: &PagesRecord) -> String {
        super::NAME.to_owned()
    }
}

fn of_pages(record: &PagesRecord) -> Line {
    let spec = &record.spec;
    Line::new("pages")
        .with("--file-systems", joined(&spec.file_systems))
        .with("--layouts", joined(&spec.layouts))
        .with("--codec", spec.codec)
        .with("--size-mib", (spec.pages * PAGE_BYTES as u64) >> 20)
        .with("--seconds", spec.seconds)
        .with("--repeats", spec.repeats)
}
