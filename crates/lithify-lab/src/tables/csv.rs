//! The figures as comma-separated values, nothing rounded away: one line per cell.

use lithify_report::csv::{Columns, Fixed};

use super::figures::{column_value, mode_device_kb, mode_log_bytes, mode_pages, mode_process_kb};
use super::plan::TablePlan;
use super::spec::{ModeUsage, TableOutcome};
use crate::experiment::tables::{TableColumn, UpdateMode};
use crate::run::cells::Run;

type OfMode = fn(&ModeUsage) -> Option<f64>;

/// What a mode of updates cost, with the end of its columns' names.
const MODE_FIGURES: [(&str, OfMode); 4] = [
    ("w_proc", mode_process_kb),
    ("w_dev", mode_device_kb),
    ("pages", mode_pages),
    ("log_bytes", mode_log_bytes),
];

/// One line per measured cell; void ones too.
pub fn render(run: &Run<TablePlan>) -> String {
    let outcomes: Vec<&TableOutcome> = run.entries.measured().collect();
    columns(run).csv(&outcomes)
}

fn columns(run: &Run<TablePlan>) -> Columns<'_, &TableOutcome> {
    let mut columns = Columns::new()
        .with("experiment", |_: &&TableOutcome| run.plan.experiment.name.clone())
        .with("scale", |_| run.plan.scale.clone())
        .with("table", |row| row.cell.table.to_string())
        .with("engine", |row| row.cell.engine.to_string())
        .with("arm", |row| row.cell.arm.clone())
        .with("codec", |row| row.cell.settings.codec_bottom.to_string())
        .with("block_kib", |row| row.cell.settings.block_bytes >> 10)
        .with("repeat", |row| row.cell.repeat)
        .with("valid", |row| row.faults.is_empty())
        .with("rows", |row| row.rows)
        .with("logical_bytes", |row| row.logical_bytes)
        .with("generate_s", |row| Fixed(row.generate_seconds, 6));
    for column in TableColumn::ALL {
        let value =
            move |row: &&TableOutcome| column_value(row, column).map(|value| Fixed(value, 6));
        columns = columns.with(column.to_string(), value);
    }
    for mode in UpdateMode::ALL {
        for (name, figure) in MODE_FIGURES {
            columns = columns.with(format!("{}_{name}", mode.name()), move |row| {
                let usage = row.modes.iter().find(|usage| usage.mode == mode);
                usage.and_then(figure).map(|value| Fixed(value, 6))
            });
        }
    }
    columns
        .with("load_rest_s", |row| Fixed(row.load.maintenance.seconds, 6))
        .with("update_rest_s", |row| {
            row.update.as_ref().map(|update| Fixed(update.maintenance.seconds, 6))
        })
        .with("scan_rows", |row| row.scan_rows)
        .with("scan_checksum", |row| format!("{:016x}", row.scan_checksum))
        .with("foreign_percent", |row| Fixed(row.foreign_percent, 3))
        .with("codec_in_force", |row| row.codec_in_force.clone())
}
