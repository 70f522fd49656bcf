//! The figures as comma-separated values, nothing rounded away: one line per cell.

use lithify_report::csv::{Columns, Fixed};

use super::figures::MeanAndDeviation;
use super::plan::ChunkPlan;
use super::spec::ChunkOutcome;
use crate::run::cells::Run;

/// One line per measured cell; void ones too.
pub fn render(run: &Run<ChunkPlan>) -> String {
    let outcomes: Vec<&ChunkOutcome> = run.entries.measured().collect();
    columns(run).csv(&outcomes)
}

fn columns(run: &Run<ChunkPlan>) -> Columns<'_, &ChunkOutcome> {
    let mean = |repeats: &[f64]| Fixed(MeanAndDeviation::of(repeats).mean, 6);
    let deviation = |repeats: &[f64]| Fixed(MeanAndDeviation::of(repeats).deviation, 6);
    Columns::new()
        .with("experiment", |_: &&ChunkOutcome| run.plan.experiment.name.clone())
        .with("scale", |_| run.plan.scale.clone())
        .with("engine", |row| row.cell.engine.to_string())
        .with("chunk_kib", |row| row.cell.chunk_kib)
        .with("codec", |row| row.cell.codec.to_string())
        .with("repeat", |row| row.cell.repeat)
        .with("valid", |row| row.faults.is_empty())
        .with("text_bytes", |row| row.text_bytes)
        .with("rows", |row| row.rows)
        .with("stored_bytes", |row| row.stored_bytes())
        .with("directory_bytes", |row| row.directory.allocated_bytes)
        .with("ratio", |row| Fixed(row.text_bytes as f64 / row.stored_bytes().max(1) as f64, 6))
        .with("flush_ms", move |row| mean(&row.flush_ms))
        .with("flush_sd_ms", move |row| deviation(&row.flush_ms))
        .with("flush_codec_us", |row| row.flush_codec_us)
        .with("cold_scan_ms", move |row| mean(&row.cold_scan_ms))
        .with("cold_scan_sd_ms", move |row| deviation(&row.cold_scan_ms))
        .with("cold_read_device_bytes", |row| row.cold_read_device_bytes)
        .with("warm_scan_ms", move |row| mean(&row.warm_scan_ms))
        .with("warm_scan_sd_ms", move |row| deviation(&row.warm_scan_ms))
        .with("row_reads", |row| row.row_reads.reads)
        .with("row_p50_us", |row| Fixed(row.row_reads.p50_us, 3))
        .with("row_p99_us", |row| Fixed(row.row_reads.p99_us, 3))
        .with("row_mean_us", |row| Fixed(row.row_reads.mean_us, 3))
        .with("rows_hash", |row| format!("{:016x}", row.rows_hash))
        .with("calls", |row| row.calls.calls)
        .with("longest_call_us", |row| row.calls.longest_us)
        .with("long_calls", |row| row.calls.long_calls)
        .with("long_sum_us", |row| row.calls.long_sum_us)
        .with("calls_sum_us", |row| row.calls.sum_us)
        .with("unit_longest_us", |row| row.held_thread.map(|held| held.longest_us))
        .with("units", |row| row.held_thread.map(|held| held.units))
        .with("foreign_percent", |row| Fixed(row.foreign_percent, 3))
}
