//! The figures as comma-separated values, nothing rounded away: one line per cell.

use std::fmt::Write as _;

use super::figures::MeanAndDeviation;
use super::plan::ChunkPlan;
use crate::run::cells::Run;

/// One line per measured cell; void ones too.
pub fn render(run: &Run<ChunkPlan>) -> String {
    let mut text = "experiment,scale,engine,chunk_kib,codec,repeat,valid,text_bytes,rows,\
        stored_bytes,directory_bytes,ratio,flush_ms,flush_sd_ms,flush_codec_us,cold_scan_ms,\
        cold_scan_sd_ms,cold_read_device_bytes,warm_scan_ms,warm_scan_sd_ms,row_reads,row_p50_us,\
        row_p99_us,row_mean_us,rows_hash,calls,longest_call_us,\
        long_calls,long_sum_us,calls_sum_us,unit_longest_us,units,foreign_percent\n"
        .to_owned();
    for outcome in run.entries.cells.iter().filter_map(|entry| entry.result.as_ref()) {
        let cell = &outcome.cell;
        let flush = MeanAndDeviation::of(&outcome.flush_ms);
        let cold = MeanAndDeviation::of(&outcome.cold_scan_ms);
        let warm = MeanAndDeviation::of(&outcome.warm_scan_ms);
        let number = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
        let calls = &outcome.calls;
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "{},{},{},{},{},{},{},{},{},{},{},{:.6}",
            run.plan.experiment.name,
            run.plan.scale,
            cell.engine,
            cell.chunk_kib,
            cell.codec,
            cell.repeat,
            outcome.faults.is_empty(),
            outcome.text_bytes,
            outcome.rows,
            outcome.stored_bytes(),
            outcome.directory.allocated_bytes,
            outcome.text_bytes as f64 / outcome.stored_bytes().max(1) as f64,
        );
        let _ = write!(
            text,
            ",{:.6},{:.6},{},{:.6},{:.6},{},{:.6},{:.6}",
            flush.mean,
            flush.deviation,
            number(outcome.flush_codec_us),
            cold.mean,
            cold.deviation,
            outcome.cold_read_device_bytes,
            warm.mean,
            warm.deviation,
        );
        let rows = &outcome.row_reads;
        let _ = write!(
            text,
            ",{},{:.3},{:.3},{:.3},{:016x}",
            rows.reads, rows.p50_us, rows.p99_us, rows.mean_us, outcome.rows_hash,
        );
        let _ = writeln!(
            text,
            ",{},{},{},{},{},{},{},{:.3}",
            calls.calls,
            calls.longest_us,
            calls.long_calls,
            calls.long_sum_us,
            calls.sum_us,
            number(outcome.held_thread.map(|held| held.longest_us)),
            number(outcome.held_thread.map(|held| held.units)),
            outcome.foreign_percent,
        );
    }
    text
}
