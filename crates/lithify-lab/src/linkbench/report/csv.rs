//! The same figures as comma-separated values: one line per cell and phase, nothing rounded away.

use lithify_report::csv::{Columns, Fixed};

use crate::experiment::{Column, Phase};
use crate::linkbench::cell::{CellResult, PhaseResult};
use crate::linkbench::record::LinkBenchRecord;
use crate::linkbench::report::figures::{column_value, cpu_us_per_operation};

/// A phase of a cell, with so many clients.
struct Row<'a> {
    cell: &'a CellResult,
    name: Phase,
    clients: u64,
    phase: &'a PhaseResult,
}

/// One line per cell, phase and number of clients.
pub fn render(record: &LinkBenchRecord) -> String {
    let cells = record.cells.iter().filter_map(|cell| cell.result.as_ref());
    let rows: Vec<Row<'_>> = cells.flat_map(phases).collect();
    columns(record).csv(&rows)
}

fn phases(cell: &CellResult) -> Vec<Row<'_>> {
    let row = |name, clients, phase| Row { cell, name, clients, phase };
    let load = row(Phase::Load, cell.spec.loaders, &cell.load);
    let queries = cell.queries().map(|(clients, phase)| row(Phase::Query, clients, phase));
    std::iter::once(load).chain(queries).collect()
}

/// The columns of both phases stand under one name each (`x/o` for `x/i` and `x/t`).
fn columns<'a>(record: &'a LinkBenchRecord) -> Columns<'a, Row<'a>> {
    let published =
        |column| move |row: &Row<'_>| column_value(row.phase, column).map(|value| Fixed(value, 6));
    Columns::new()
        .with("experiment", |_: &Row<'a>| record.plan.experiment.name.clone())
        .with("scale", |_| record.plan.scale.clone())
        .with("engine", |row| row.cell.spec.engine.name().to_owned())
        .with("arm", |row| row.cell.spec.arm.clone())
        .with("repeat", |row| row.cell.spec.repeat)
        .with("phase", |row| row.name.to_string())
        .with("valid", |row| row.cell.violation().is_none())
        .with("ops", |row| row.phase.operations)
        .with("seconds", |row| Fixed(row.phase.seconds, 6))
        .with("ops_per_second", |row| Fixed(row.phase.rate(), 3))
        .with("r/o", published(Column::ReadsPerTransaction))
        .with("rKB/o", published(Column::ReadKbPerTransaction))
        .with("wKB/o", published(Column::WriteKbPerTransaction))
        .with("Mcpu/o", published(Column::McpuPerTransaction))
        .with("size_bytes", |row| row.phase.usage.directory.allocated_bytes)
        .with("apparent_bytes", |row| row.phase.usage.directory.apparent_bytes)
        .with("rss_bytes", |row| row.phase.usage.memory.resident_bytes)
        .with("rss_max_bytes", |row| row.phase.usage.memory.resident_max_bytes)
        .with("cpu_us_o", |row| Fixed(cpu_us_per_operation(row.phase), 4))
        .with("un", published(Column::UpdateNode))
        .with("gn", published(Column::GetNode))
        .with("ul", published(Column::UpdateLink))
        .with("gl", published(Column::GetLinksList))
        .with("process_read_bytes", |row| row.phase.usage.process_io.read_device_bytes)
        .with("process_written_bytes", |row| row.phase.usage.process_io.written_device_bytes)
        .with("context_switches", |row| {
            let cpu = &row.phase.usage.process_cpu;
            cpu.voluntary_switches + cpu.involuntary_switches
        })
        .with("foreign_cpu_us", |row| row.phase.usage.foreign_cpu_us)
        .with("steady", |row| row.phase.steady.map(|steady| if steady { "yes" } else { "no" }))
        .with("clients", |row| row.clients)
        .with("write_operations", |row| row.phase.write_operations)
        .with("second_log_bytes", |row| row.phase.second_log.unwrap_or_default().bytes)
        .with("second_log_cpu_us", |row| row.phase.second_log.unwrap_or_default().cpu_us)
        .with("purpose", |row| row.cell.spec.purpose.name())
        .with("file_system_bytes", |row| row.phase.usage.file_system_bytes)
}
