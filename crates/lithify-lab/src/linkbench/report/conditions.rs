//! What arms are run under beside the settings of their engines: the emulated device, the driver's
//! own log and what it took, the allocator and what became of its memory, file systems of their own,
//! and what a machine is too small for.

use crate::experiment::{DeviceSpeed, Phase};
use crate::linkbench::cell::{CellResult, CellSpec, PhaseResult};
use crate::linkbench::record::LinkBenchRecord;
use crate::linkbench::report::figures::Figures;
use crate::meter::PhaseUsage;
use crate::report::figures::{Spread, figure_or_dash};
use crate::report::tables::{Align, Grid};

/// Multiples of the cache's size that were put into it, at which memory is reported.
const TURNOVERS: [u64; 6] = [1, 2, 5, 10, 20, 40];

/// One line per arm, and how its devices and its log are to be read; `None` when no arm has a
/// condition of its own.
pub fn grid(record: &LinkBenchRecord, figures: &Figures<'_>) -> Option<(Grid, Vec<String>)> {
    let has =
        |spec: &CellSpec| !spec.device.is_fast() || spec.second_log || !spec.allocator.is_system();
    if !record.plan.cells.iter().any(has) {
        return None;
    }
    let columns = [
        ("device", Align::Left),
        ("log KB/i", Align::Right),
        ("log KB/t", Align::Right),
        ("log cpu_us/i", Align::Right),
        ("log cpu_us/t", Align::Right),
        ("allocator in force", Align::Left),
        ("engine", Align::Left),
    ];
    let mut rows = Vec::new();
    for arm in &record.plan.arms {
        let Some(result) = figures.results(arm).first() else { continue };
        let log = |phase: Phase, value: fn(&PhaseResult) -> Option<f64>| {
            let per_operation =
                |r: &CellResult| Some(value(r.phase(phase))? / r.phase(phase).operations as f64);
            figure_or_dash(figures.spread(arm, per_operation).map(|spread| spread.median))
        };
        let kb = |phase: &PhaseResult| Some(phase.second_log?.bytes as f64 / 1024.0);
        let cpu_us = |phase: &PhaseResult| Some(phase.second_log?.cpu_us as f64);
        rows.push(vec![
            result.spec.device.to_string(),
            log(Phase::Load, kb),
            log(Phase::Query, kb),
            log(Phase::Load, cpu_us),
            log(Phase::Query, cpu_us),
            result.machine.allocator.clone(),
            arm.clone(),
        ]);
    }
    let mut notes = limits(figures, record);
    if record.plan.cells.iter().any(|cell| cell.second_log) {
        notes.push(
            "log: bytes and CPU of the driver's own log, in KB and us per operation; they are in \
             the device's and the process's figures, not in the size"
                .to_owned(),
        );
    }
    Some((Grid::new(&columns, rows), notes))
}

/// How each slower device was emulated, once.
fn limits(figures: &Figures<'_>, record: &LinkBenchRecord) -> Vec<String> {
    let mut lines = Vec::new();
    for speed in [DeviceSpeed::SlowSsd, DeviceSpeed::Disk] {
        let results = record.plan.arms.iter().flat_map(|arm| figures.results(arm));
        let mut limits = results.filter_map(|result| result.device_limit.as_ref());
        lines.extend(limits.find(|limit| limit.speed == speed).map(|limit| limit.describe()));
    }
    lines
}

/// What an arm cannot show on a machine with fewer hardware threads than it names.
pub(crate) fn few_threads(
    record: &LinkBenchRecord,
    figures: &Figures<'_>,
    arm: &str,
) -> Option<String> {
    let wanted = record.plan.experiment.arm(arm)?.hardware_threads?;
    let has = figures.results(arm).iter().map(|result| result.machine.cpus as u64).min()?;
    (has < wanted).then(|| format!("concurrency not reproducible: {has} hardware threads"))
}

/// The arms that lie on file systems of their own; `None` without any.
pub fn file_systems(record: &LinkBenchRecord, figures: &Figures<'_>) -> Option<Grid> {
    let mut rows = Vec::new();
    for arm in &record.plan.arms {
        let own = figures.results(arm).iter().find_map(|result| result.file_system.as_ref());
        let Some(own) = own else { continue };
        let mut row = Vec::new();
        for phase in [Phase::Load, Phase::Query] {
            let sizes: [fn(&PhaseUsage) -> Option<u64>; 3] = [
                |usage| Some(usage.directory.apparent_bytes),
                |usage| Some(usage.directory.allocated_bytes),
                |usage| usage.file_system_bytes,
            ];
            row.extend(sizes.map(|size| {
                let spread = figures.spread(arm, |r| Some(size(&r.phase(phase).settle)? as f64));
                figure_or_dash(spread.map(|spread| spread.median / 1e9))
            }));
        }
        row.extend([own.describe(), arm.clone()]);
        rows.push(row);
    }
    let columns = [
        ("load: length", Align::Right),
        ("du", Align::Right),
        ("used", Align::Right),
        ("queries: length", Align::Right),
        ("du", Align::Right),
        ("used", Align::Right),
        ("file system", Align::Left),
        ("engine", Align::Left),
    ];
    (!rows.is_empty()).then(|| Grid::new(&columns, rows).named_by_last())
}

/// Resident memory in units of the cache by what was put into it, and faults; `None` when no arm
/// names an allocator.
pub fn memory(record: &LinkBenchRecord, figures: &Figures<'_>) -> Option<Grid> {
    if record.plan.experiment.arms.iter().all(|arm| arm.allocator.is_none()) {
        return None;
    }
    let heads = TURNOVERS.map(|turnovers| format!("rss/cache at {turnovers}"));
    let mut columns = vec![("cache MB", Align::Right), ("turnovers", Align::Right)];
    columns.extend(heads.iter().map(|head| (head.as_str(), Align::Right)));
    columns.extend([
        ("rss MB", Align::Right),
        ("rss max MB", Align::Right),
        ("vsz MB", Align::Right),
        ("minor faults/t", Align::Right),
        ("major faults/t", Align::Right),
        ("engine", Align::Left),
    ]);
    let mut rows = Vec::new();
    let nexts = TURNOVERS.into_iter().skip(1).chain([u64::MAX]);
    let spans: Vec<(u64, u64)> = TURNOVERS.into_iter().zip(nexts).collect();
    for arm in &record.plan.arms {
        let median = |value: &dyn Fn(&CellResult) -> Option<f64>| {
            let values = figures.results(arm).iter().filter_map(|result| value(result)).collect();
            figure_or_dash(Spread::of(values).map(|spread| spread.median))
        };
        let mega = |bytes: u64| Some(bytes as f64 / 1e6);
        let per_operation =
            |r: &CellResult, count: u64| Some(count as f64 / r.query.operations as f64);
        let mut row = vec![
            median(&|result| mega(result.block_cache_bytes)),
            median(&|result| Some(turnovers(result))),
        ];
        row.extend(spans.iter().map(|span| median(&|r| resident_to_cache(r, *span))));
        row.extend([
            median(&|result| mega(result.query.usage.memory.resident_bytes)),
            median(&|result| mega(result.query.usage.memory.resident_max_bytes)),
            median(&|result| mega(result.query.usage.memory.virtual_bytes)),
            median(&|r| per_operation(r, r.query.usage.process_cpu.minor_faults)),
            median(&|r| per_operation(r, r.query.usage.process_cpu.major_faults)),
            arm.clone(),
        ]);
        rows.push(row);
    }
    Some(Grid::new(&columns, rows).named_by_last())
}

/// How many times the cache's size was put into it since the engine was opened.
fn turnovers(result: &CellResult) -> f64 {
    let samples = result.queries().flat_map(|(_, query)| &query.samples);
    let inserted = samples.map(|sample| sample.cache_inserted_bytes).max().unwrap_or(0);
    inserted as f64 / result.block_cache_bytes.max(1) as f64
}

/// Resident memory in units of the cache when the first of so many times its size had been put into
/// it, and not yet the second; `None` when it was not that often, when that was between two samples
/// (nothing samples while the rows are checked), or when the engine does not tell.
fn resident_to_cache(result: &CellResult, (turnovers, next): (u64, u64)) -> Option<f64> {
    let cache = result.block_cache_bytes;
    let queries = result.queries().flat_map(|(_, query)| &query.samples);
    let mut samples = result.load.samples.iter().chain(queries);
    let reached = samples.find(|sample| sample.cache_inserted_bytes >= turnovers * cache)?;
    let before_next = reached.cache_inserted_bytes < next.saturating_mul(cache);
    before_next.then_some(reached.resident_bytes as f64 / cache as f64)
}
