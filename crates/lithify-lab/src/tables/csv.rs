//! The figures as comma-separated values, nothing rounded away: one line per cell.

use std::fmt::Write as _;

use super::figures::{column_value, mode_device_kb, mode_log_bytes, mode_pages, mode_process_kb};
use super::plan::TablePlan;
use crate::experiment::tables::{TableColumn, UpdateMode};
use crate::run::cells::Run;

/// One line per measured cell; void ones too.
pub fn render(run: &Run<TablePlan>) -> String {
    let mut text = "experiment,scale,table,engine,arm,codec,block_kib,repeat,valid,rows,\
        logical_bytes,generate_s"
        .to_owned();
    // Writing to a String cannot fail.
    for column in TableColumn::ALL {
        let _ = write!(text, ",{column}");
    }
    for mode in UpdateMode::ALL {
        let name = mode.name();
        let _ = write!(text, ",{name}_w_proc,{name}_w_dev,{name}_pages,{name}_log_bytes");
    }
    text.push_str(
        ",load_rest_s,update_rest_s,scan_rows,scan_checksum,foreign_percent,codec_in_force\n",
    );
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.6}"));
    for outcome in run.entries.cells.iter().filter_map(|entry| entry.result.as_ref()) {
        let cell = &outcome.cell;
        let _ = write!(
            text,
            "{},{},{},{},{},{},{},{},{},{},{},{:.6}",
            run.plan.experiment.name,
            run.plan.scale,
            cell.table,
            cell.engine,
            cell.arm,
            cell.settings.codec_bottom,
            cell.settings.block_bytes >> 10,
            cell.repeat,
            outcome.faults.is_empty(),
            outcome.rows,
            outcome.logical_bytes,
            outcome.generate_seconds,
        );
        for column in TableColumn::ALL {
            let _ = write!(text, ",{}", number(column_value(outcome, column)));
        }
        for mode in UpdateMode::ALL {
            let usage = outcome.modes.iter().find(|usage| usage.mode == mode);
            for value in [mode_process_kb, mode_device_kb, mode_pages, mode_log_bytes] {
                let _ = write!(text, ",{}", number(usage.and_then(value)));
            }
        }
        let _ = writeln!(
            text,
            ",{:.6},{},{},{:016x},{:.3},{}",
            outcome.load.maintenance.seconds,
            number(outcome.update.as_ref().map(|update| update.maintenance.seconds)),
            outcome.scan_rows,
            outcome.scan_checksum,
            outcome.foreign_percent,
            outcome.codec_in_force.as_deref().unwrap_or(""),
        );
    }
    text
}
