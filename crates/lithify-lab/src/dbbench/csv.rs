//! The figures of every step for programs: comma-separated, and tab-separated as the original's
//! script writes them.
//!
//! The tab-separated report has the original's columns in its order, from counters and not from
//! text; what an engine does not count is `NA`. Columns that it lacks follow.

use lithify_report::csv::{Columns, Fixed};

use super::figures::{METRICS, Measured, measured, metric};
use super::plan::DbRecord;
use super::spec::{DbResult, Role, StepResult};
use super::trees;
use crate::adapter::EngineStatistics;
use crate::adapter::settings::DurabilityMode;

const MIB: f64 = (1 << 20) as f64;
const GIB: f64 = (1 << 30) as f64;

/// A step of a run, and which of its steps that is.
struct StepRow<'a> {
    result: &'a DbResult,
    number: usize,
    measured: Measured<'a>,
}

fn step_rows<'a>(record: &'a DbRecord, result: &'a DbResult) -> impl Iterator<Item = StepRow<'a>> {
    let steps = measured(result, record.driver()).enumerate();
    steps.map(move |(index, measured)| StepRow { result, number: index + 1, measured })
}

/// Every figure of every step of every run: one line each.
pub fn csv(record: &DbRecord) -> String {
    let mut columns = Columns::new()
        .with("cell", |row: &StepRow<'_>| row.result.cell.id.clone())
        .with("role", |row| role(row.result.cell.role))
        .with("engine", |row| row.result.cell.spec.engine.to_string())
        .with("codecs", |row| codecs(row.result))
        .with("repeat", |row| row.result.cell.repeat)
        .with("step", |row| row.number)
        .with("benchmark", |row| row.measured.step.spec.to_string())
        .with("operations", |row| row.measured.step.operations)
        .with("found", |row| row.measured.step.found)
        .with("elapsed_s", |row| Fixed(row.measured.step.elapsed_s, 6))
        .with("ingested_bytes", |row| row.measured.step.ingested_bytes)
        .with("found_expected", |row| row.measured.step.found_expected)
        .with("sum", |row| format!("{:016x}", sum(row.measured.step)))
        .with("foreign_cpu_us", |row| row.measured.step.usage.foreign_cpu_us);
    for metric in &METRICS {
        let value = |row: &StepRow<'_>| (metric.value)(&row.measured).map(|v| Fixed(v, 6));
        columns = columns.with(metric.column(), value);
    }
    let rows: Vec<StepRow<'_>> =
        record.results().flat_map(|result| step_rows(record, result)).collect();
    columns
        .with("levels_before", |row| trees::levels(&row.measured.step.statistics_before))
        .with("levels_settled", |row| trees::levels(&row.measured.step.statistics_settled))
        .csv(&rows)
}

/// The checksum of all that a step read.
fn sum(step: &StepResult) -> u64 {
    let last = step.checkpoints.iter().filter_map(|list| list.last());
    last.fold(0, |sum, checkpoint| sum.wrapping_add(checkpoint.sum))
}

/// The ladder without commas; nothing for the driver, which stores nothing.
fn codecs(result: &DbResult) -> String {
    match result.cell.role {
        Role::Driver => String::new(),
        Role::Measure | Role::Control => result.cell.spec.settings.ladder().file_name(),
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Driver => "driver",
        Role::Measure => "measure",
        Role::Control => "control",
    }
}

fn grown(step: &StepResult, figure: impl Fn(&EngineStatistics) -> u64) -> f64 {
    figure(&step.statistics_settled) as f64 - figure(&step.statistics_before) as f64
}

fn written(step: &StepResult, causes: &[&str]) -> f64 {
    grown(step, |statistics| {
        let of = |cause: &&str| statistics.written_bytes_by_cause.get(*cause).copied();
        causes.iter().filter_map(of).sum()
    })
}

/// The report of the original's script, one line per step, tab-separated: its columns in its order,
/// then those that it lacks.
pub fn tsv(record: &DbRecord) -> String {
    let results = record.results().filter(|result| result.cell.role != Role::Driver);
    let rows: Vec<StepRow<'_>> = results.flat_map(|result| step_rows(record, result)).collect();
    more_columns(classic_columns()).tsv(&rows)
}

const NOT_COUNTED: &str = "NA";

fn or_not_counted(value: Option<f64>) -> String {
    value.map_or_else(|| NOT_COUNTED.to_owned(), |value| format!("{value:.3}"))
}

fn metric_text(row: &StepRow<'_>, name: &str) -> String {
    or_not_counted(metric(name).and_then(|metric| (metric.value)(&row.measured)))
}

/// What a step wrote per byte that it ingested.
fn amplification(step: &StepResult, bytes: f64) -> String {
    let ingested = step.ingested_bytes as f64;
    or_not_counted((ingested > 0.0 && bytes > 0.0).then(|| bytes / ingested))
}

fn flushed(row: &StepRow<'_>) -> f64 {
    written(row.measured.step, &["flush"])
}

fn to_tables(row: &StepRow<'_>) -> f64 {
    written(row.measured.step, &["flush", "compaction"])
}

/// An engine that writes a log and does not say how much has no figure of it.
fn to_log(row: &StepRow<'_>) -> f64 {
    let is_logged = row.result.cell.spec.settings.durability != DurabilityMode::None;
    let says = row.measured.step.statistics_settled.written_bytes_by_cause.contains_key("wal");
    if is_logged && !says { f64::NAN } else { written(row.measured.step, &["wal"]) }
}

fn uptime_s(row: &StepRow<'_>) -> f64 {
    let step = row.measured.step;
    step.usage.seconds + step.settle.as_ref().map_or(0.0, |settle| settle.seconds)
}

fn percentile(row: &StepRow<'_>, percent: f64) -> String {
    format!("{:.2}", row.measured.step.latency.distribution.percentile_us(percent))
}

/// The columns of the original's script, in its order.
fn classic_columns<'a>() -> Columns<'a, StepRow<'a>> {
    Columns::new()
        .with("ops_sec", |row: &StepRow<'a>| Fixed(row.measured.step.rate(), 0))
        .with("mb_sec", |row| {
            let step = row.measured.step;
            Fixed(step.bytes as f64 / MIB / step.elapsed_s.max(1e-9), 1)
        })
        .with("lsm_sz", |row| {
            format!("{:.2}GB", row.measured.step.statistics_settled.live_bytes as f64 / GIB)
        })
        .with("blob_sz", |_| NOT_COUNTED)
        .with("c_wgb", |row| Fixed(to_tables(row) / GIB, 3))
        // The original adds the flushes a second time.
        .with("w_amp", |row| amplification(row.measured.step, to_tables(row) + flushed(row)))
        .with("c_mbps", |row| Fixed(to_tables(row) / MIB / uptime_s(row).max(1e-9), 1))
        .with("c_wsecs", |_| NOT_COUNTED)
        .with("c_csecs", |row| {
            let cpu_us =
                |s: &EngineStatistics| s.levels.iter().map(|level| level.compaction_cpu_us).sum();
            Fixed(grown(row.measured.step, cpu_us) / 1e6, 3)
        })
        .with("b_rgb", |_| NOT_COUNTED)
        .with("b_wgb", |_| NOT_COUNTED)
        .with("usec_op", |row| {
            let step = row.measured.step;
            Fixed(step.client_seconds * 1e6 / step.operations.max(1) as f64, 3)
        })
        .with("p50", |row| percentile(row, 50.0))
        .with("p99", |row| percentile(row, 99.0))
        .with("p99.9", |row| percentile(row, 99.9))
        .with("p99.99", |row| percentile(row, 99.99))
        .with("pmax", |row| row.measured.step.latency.distribution.max_us)
        .with("uptime", |row| Fixed(uptime_s(row), 1))
        .with("stall%", |row| metric_text(row, "slowed share"))
        .with("Nstall", |_| NOT_COUNTED)
        .with("u_cpu", |row| Fixed(row.measured.step.usage.process_cpu.user_us as f64 / 1e9, 6))
        .with("s_cpu", |row| Fixed(row.measured.step.usage.process_cpu.system_us as f64 / 1e9, 6))
        .with("rss", |row| Fixed(row.measured.step.usage.memory.resident_max_bytes as f64 / GIB, 3))
        .with("test", |row| format!("{}.t{}", row.measured.step.spec, row.result.cell.spec.threads))
        .with("date", |row| row.result.started_unix_s)
        .with("version", |row| row.result.engine_name.clone())
        .with("job_id", |row| row.result.cell.id.clone())
        .with("githash", |row| row.result.cell.spec.build.chars().take(10).collect::<String>())
}

/// Columns that the original's script lacks.
fn more_columns<'a>(classic: Columns<'a, StepRow<'a>>) -> Columns<'a, StepRow<'a>> {
    classic
        .with("w_amp_flush", |row| amplification(row.measured.step, to_tables(row)))
        .with("w_amp_wal", |row| amplification(row.measured.step, to_tables(row) + to_log(row)))
        .with("w_amp_dev", |row| or_not_counted(row.measured.device_written_per_byte()))
        .with("r_amp_dev", |row| or_not_counted(row.measured.device_read_per_operation()))
        .with("space_amp", |row| {
            let spec = &row.result.cell.spec;
            let database = spec.num as f64 * spec.entry_bytes() as f64;
            let live_bytes = row.measured.step.statistics_settled.live_bytes as f64;
            Fixed(live_bytes / database.max(1.0), 3)
        })
        .with("cpu_us_op", |row| or_not_counted(row.measured.cpu_us_per_operation()))
        .with("worst1s", |row| or_not_counted(row.measured.step.worst_second()))
        .with("cv1s", |row| or_not_counted(row.measured.step.variation()))
        .with("obs_stall%", |row| metric_text(row, "gap share"))
        .with("obs_Nstall", |row| {
            let seen = row.measured.step.throughput.as_ref();
            seen.map_or_else(|| NOT_COUNTED.to_owned(), |seen| seen.gap_runs.to_string())
        })
        .with("longest_gap_ms", |row| metric_text(row, "longest gap"))
}
