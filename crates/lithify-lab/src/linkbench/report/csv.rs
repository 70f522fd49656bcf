//! The same figures as comma-separated values: one line per cell and phase, nothing rounded away.

use std::fmt::Write as _;

use crate::experiment::{Column, Phase};
use crate::linkbench::cell::{CellResult, PhaseResult};
use crate::linkbench::record::LinkBenchRecord;
use crate::linkbench::report::figures::{column_value, cpu_us_per_operation};

/// The columns: those of both phases under one name each (`x/o` for `x/i` and `x/t`).
const HEADER: &str = "experiment,scale,engine,arm,repeat,phase,valid,ops,seconds,ops_per_second,\
    r/o,rKB/o,wKB/o,Mcpu/o,size_bytes,apparent_bytes,rss_bytes,rss_max_bytes,cpu_us_o,un,gn,ul,gl,\
    process_read_bytes,process_written_bytes,context_switches,foreign_cpu_us,steady,clients,\
    write_operations,second_log_bytes,second_log_cpu_us,purpose,file_system_bytes";

/// One line per cell, phase and number of clients.
pub fn render(record: &LinkBenchRecord) -> String {
    let mut text = format!("{HEADER}\n");
    for cell in &record.cells {
        let Some(result) = &cell.result else { continue };
        let load = (Phase::Load, result.spec.loaders, &result.load);
        let queries = result.queries().map(|(clients, query)| (Phase::Query, clients, query));
        for (phase, clients, figures) in std::iter::once(load).chain(queries) {
            text.push_str(&line(record, result, (phase, clients), figures));
            text.push('\n');
        }
    }
    text
}

fn line(
    record: &LinkBenchRecord,
    result: &CellResult,
    (phase, clients): (Phase, u64),
    figures: &PhaseResult,
) -> String {
    let usage = &figures.usage;
    let value = |column| column_value(figures, column);
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.6}"));
    let mut line = format!(
        "{},{},{},{},{},{phase},{},{},{:.6},{:.3}",
        record.plan.experiment.name,
        record.plan.scale,
        result.spec.engine.name(),
        result.spec.arm,
        result.spec.repeat,
        result.violation().is_none(),
        figures.operations,
        figures.seconds,
        figures.rate(),
    );
    for column in [
        Column::ReadsPerTransaction,
        Column::ReadKbPerTransaction,
        Column::WriteKbPerTransaction,
        Column::McpuPerTransaction,
    ] {
        let _ = write!(line, ",{}", number(value(column)));
    }
    let _ = write!(
        line,
        ",{},{},{},{},{:.4}",
        usage.directory.allocated_bytes,
        usage.directory.apparent_bytes,
        usage.memory.resident_bytes,
        usage.memory.resident_max_bytes,
        cpu_us_per_operation(figures),
    );
    for column in [Column::UpdateNode, Column::GetNode, Column::UpdateLink, Column::GetLinksList] {
        let _ = write!(line, ",{}", number(value(column)));
    }
    let cpu = &usage.process_cpu;
    let steady = match figures.steady {
        Some(true) => "yes",
        Some(false) => "no",
        None => "",
    };
    let log = figures.second_log.unwrap_or_default();
    let _ = write!(
        line,
        ",{},{},{},{},{steady},{clients},{},{},{},{},{}",
        usage.process_io.read_device_bytes,
        usage.process_io.written_device_bytes,
        cpu.voluntary_switches + cpu.involuntary_switches,
        usage.foreign_cpu_us,
        figures.write_operations,
        log.bytes,
        log.cpu_us,
        result.spec.purpose.name(),
        usage.file_system_bytes.map_or_else(String::new, |bytes| bytes.to_string()),
    );
    line
}
