//! The figures of a table experiment: per cell, and per arm over its repeats.

use super::plan::TablePlan;
use super::spec::{ModeUsage, PageWork, StepUsage, TableOutcome};
use crate::adapter::EngineName;
use crate::datasets::TableData;
use crate::experiment::tables::{TableColumn, UpdateMode};
use crate::report::figures::Spread;
use crate::run::cells::Run;

const GB: f64 = 1e9;
const KB: f64 = 1e3;
const THOUSAND: f64 = 1e3;

/// Causes of the columns; a log of changes is called one or the other.
const LOGS: [&str; 2] = ["redo log", "wal"];
const COMPACTION: &str = "compaction";

fn per(dividend: f64, divisor: f64) -> Option<f64> {
    (divisor > 0.0).then(|| dividend / divisor)
}

/// A figure of a cell; `None` where the machine does not have it.
pub fn column_value(outcome: &TableOutcome, column: TableColumn) -> Option<f64> {
    let size = outcome.stored_bytes() as f64;
    let (load, update) = (&outcome.load, outcome.update.as_ref());
    let load_device = || load.written_device_bytes().map(|bytes| bytes as f64);
    let cause = |cause| Some(load.written_for(cause)? as f64 / GB);
    // Real data may have fewer rows than the cell would update.
    let updates = outcome.cell.updates.min(outcome.rows) as f64;
    match column {
        TableColumn::LoadSeconds => Some(outcome.load.seconds),
        TableColumn::LoadWrittenProcess => Some(outcome.load.written_process_bytes() as f64 / GB),
        TableColumn::LoadWrittenDevice => Some(load_device()? / GB),
        TableColumn::Size => Some(size / GB),
        TableColumn::Tables => Some(outcome.table_bytes? as f64 / GB),
        TableColumn::SizePerLogical => per(size, outcome.logical_bytes as f64),
        TableColumn::WrittenPerSize => per(load_device()?, size),
        TableColumn::ScanSeconds => Some(outcome.scan.seconds),
        TableColumn::ScanReadProcess => {
            Some(outcome.scan.usage.process_io.read_syscall_bytes as f64 / GB)
        }
        TableColumn::ScanReadDevice => {
            Some(outcome.scan.usage.process_io.read_device_bytes as f64 / GB)
        }
        TableColumn::UpdateSeconds => Some(update?.seconds),
        TableColumn::UpdateReadDevice => {
            Some(update?.usage.process_io.read_device_bytes as f64 / GB)
        }
        TableColumn::UpdateWrittenProcess => {
            per(update?.written_process_bytes() as f64 / KB, updates)
        }
        TableColumn::UpdateWrittenDevice => {
            per(update?.written_device_bytes()? as f64 / KB, updates)
        }
        TableColumn::LoadPages => cause("pages"),
        TableColumn::LoadDoublewrite => cause("doublewrite"),
        TableColumn::LoadLog => LOGS.into_iter().find_map(cause),
        TableColumn::LoadFlush => cause("flush"),
        TableColumn::LoadCompaction => cause(COMPACTION),
        TableColumn::LoadOther => other_bytes(load).map(|bytes| bytes / GB),
        TableColumn::LoadExtension => Some(load.pages?.extended_bytes as f64 / GB),
        TableColumn::LoadCompressed => compressed(load.pages),
        TableColumn::LoadFailedPercent => failed_percent(load.pages),
        TableColumn::UpdateCompressed => compressed(update?.pages),
        TableColumn::UpdateFailedPercent => failed_percent(update?.pages),
    }
}

/// What the engine's process handed to write calls beyond what the engine counts by cause.
fn other_bytes(step: &StepUsage) -> Option<f64> {
    let counted: u64 = step.written_by_cause.values().sum();
    (counted > 0).then(|| step.written_engine_bytes() as f64 - counted as f64)
}

/// Attempts to compress a page, thousands; none where nothing is compressed.
fn compressed(pages: Option<PageWork>) -> Option<f64> {
    let tried = pages.map(|pages| pages.compressed).filter(|tried| *tried > 0)?;
    Some(tried as f64 / THOUSAND)
}

fn failed_percent(pages: Option<PageWork>) -> Option<f64> {
    let pages = pages?;
    per(100.0 * pages.failed as f64, pages.compressed as f64)
}

/// KB that an update in a mode handed to write calls, maintenance included. Compactions are left
/// out: one that becomes due pays for what was written long before.
pub fn mode_process_kb(mode: &ModeUsage) -> Option<f64> {
    let written = mode.step.written_process_bytes();
    let own = written.saturating_sub(mode.step.written_for(COMPACTION).unwrap_or(0));
    per(own as f64 / KB, mode.updates as f64)
}

/// KB that reached the device per update in a mode, maintenance and compactions included.
pub fn mode_device_kb(mode: &ModeUsage) -> Option<f64> {
    per(mode.step.written_device_bytes()? as f64 / KB, mode.updates as f64)
}

/// Pages written per update in a mode, the second copy against torn writes included.
pub fn mode_pages(mode: &ModeUsage) -> Option<f64> {
    let pages = mode.step.pages.filter(|pages| pages.written > 0)?;
    per((pages.written + pages.doublewritten) as f64, mode.updates as f64)
}

/// Bytes of the log of changes per update in a mode.
pub fn mode_log_bytes(mode: &ModeUsage) -> Option<f64> {
    let bytes = LOGS.into_iter().find_map(|log| mode.step.written_for(log))?;
    per(bytes as f64, mode.updates as f64)
}

/// The valid results of an arm on an engine over a table.
pub fn results<'a>(
    run: &'a Run<TablePlan>,
    table: TableData,
    engine: &EngineName,
    arm: &str,
) -> Vec<&'a TableOutcome> {
    run.entries
        .results()
        .filter(|outcome| {
            let cell = &outcome.cell;
            cell.table == table && cell.engine == *engine && cell.arm == arm
        })
        .collect()
}

/// A figure over the repeats of an arm.
pub fn spread(outcomes: &[&TableOutcome], column: TableColumn) -> Option<Spread> {
    Spread::of(outcomes.iter().filter_map(|outcome| column_value(outcome, column)).collect())
}

/// A figure of a mode over the repeats of an arm.
pub fn mode_spread(
    outcomes: &[&TableOutcome],
    mode: UpdateMode,
    value: fn(&ModeUsage) -> Option<f64>,
) -> Option<Spread> {
    let of_mode =
        |outcome: &&TableOutcome| outcome.modes.iter().find(|m| m.mode == mode).and_then(value);
    Spread::of(outcomes.iter().filter_map(of_mode).collect())
}
