//! Engines that work in processes of their own: what these cost, apart from the driver's process.

use crate::experiment::Phase;
use crate::linkbench::record::LinkBenchRecord;
use crate::linkbench::report::figures::Figures;
use crate::meter::{PhaseUsage, ServerUsage};
use crate::report::figures::figure_or_dash;
use crate::report::tables::{Align, Grid};

/// One line per phase and arm whose engine has a server; `None` when there is none.
pub fn grid(record: &LinkBenchRecord, figures: &Figures<'_>) -> Option<Grid> {
    let columns = [
        ("phase", Align::Left),
        ("client us/o", Align::Right),
        ("server us/o", Align::Right),
        ("client cs/o", Align::Right),
        ("server cs/o", Align::Right),
        ("server rKB/o", Align::Right),
        ("server wKB/o", Align::Right),
        ("server rss MB", Align::Right),
        ("files GB", Align::Right),
        ("their length GB", Align::Right),
        ("engine", Align::Left),
    ];
    let mut rows = Vec::new();
    for phase in [Phase::Load, Phase::Query] {
        for arm in &record.plan.arms {
            let results = figures.results(arm).iter();
            if results.map(|result| result.phase(phase)).all(|phase| phase.usage.servers.is_none())
            {
                continue;
            }
            let median = |value: &dyn Fn(&PhaseUsage, &ServerUsage) -> f64, per_operation: bool| {
                let spread = figures.spread(arm, |result| {
                    let phase = result.phase(phase);
                    let value = value(&phase.usage, phase.usage.servers.as_ref()?);
                    Some(if per_operation { value / phase.operations as f64 } else { value })
                });
                figure_or_dash(spread.map(|spread| spread.median))
            };
            let switches = |cpu: &crate::meter::process::ProcessCpu| {
                (cpu.voluntary_switches + cpu.involuntary_switches) as f64
            };
            rows.push(vec![
                phase.to_string(),
                median(
                    &|all, server| (all.process_cpu.total_us() - server.cpu.total_us()) as f64,
                    true,
                ),
                median(&|_, server| server.cpu.total_us() as f64, true),
                median(&|all, server| switches(&all.process_cpu) - switches(&server.cpu), true),
                median(&|_, server| switches(&server.cpu), true),
                median(&|_, server| server.io.read_device_bytes as f64 / 1024.0, true),
                median(&|_, server| server.io.written_device_bytes as f64 / 1024.0, true),
                median(&|_, server| server.memory.resident_bytes as f64 / 1e6, false),
                median(&|all, _| all.directory.allocated_bytes as f64 / 1e9, false),
                median(&|all, _| all.directory.apparent_bytes as f64 / 1e9, false),
                arm.clone(),
            ]);
        }
    }
    (!rows.is_empty()).then(|| Grid::new(&columns, rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::EngineName;
    use crate::linkbench::sample;
    use crate::meter::process::{ProcessCpu, ProcessMemory};

    #[test]
    fn a_server_is_told_apart_and_no_server_is_no_table() {
        let mut record = sample::record(&sample::plan(&EngineName::lithify(), 1));
        assert_eq!(grid(&record, &Figures::of(&record)), None);
        for result in record.cells.iter_mut().filter_map(|cell| cell.result.as_mut()) {
            if result.spec.arm != "zstd-1" {
                continue;
            }
            let phase = &mut result.query;
            let own_us = phase.operations * 3;
            phase.usage.process_cpu.user_us = own_us;
            phase.usage.process_cpu.system_us = phase.operations * 4;
            phase.usage.servers = Some(ServerUsage {
                cpu: ProcessCpu { system_us: phase.operations * 4, ..ProcessCpu::default() },
                memory: ProcessMemory { resident_bytes: 77_000_000, ..ProcessMemory::default() },
                ..ServerUsage::default()
            });
        }
        let text = grid(&record, &Figures::of(&record)).expect("one arm has a server").text();
        let line = text.lines().find(|line| line.contains("zstd-1")).expect("is there");
        for part in ["query", "3.00", "4.00", "77.0"] {
            assert!(line.contains(part), "{part} in {line}");
        }
        assert!(!text.contains("zlib-1"), "{text}");
    }
}
