//! The report: a table per engine in the order of the publication, and its findings, each held
//! against the figures.

use std::collections::BTreeSet;

use super::figures::{ArmFigures, MeanAndDeviation, of_repeat};
use super::findings::judge;
use super::plan::ChunkPlan;
use super::spec::ChunkOutcome;
use crate::adapter::EngineName;
use crate::experiment::chunks::Finding;
use crate::report::card::machine_lines;
use crate::report::compare::{self, FOREIGN_PERCENT_MAX};
use crate::report::figures::{figure, figure_or_dash};
use crate::report::repeats;
use crate::report::tables::{Align, Grid};
use crate::run::cells::{Run, RunPlan};

const MIB: f64 = (1u64 << 20) as f64;

/// The first outcome of an engine, whether or not it counts.
fn any_of<'a>(run: &'a Run<ChunkPlan>, engine: &EngineName) -> Option<&'a ChunkOutcome> {
    let mut outcomes = run.entries.measured();
    outcomes.find(|outcome| outcome.cell.engine == *engine)
}

/// What stands over the table of an engine.
pub(crate) fn heading(run: &Run<ChunkPlan>, engine: &EngineName) -> String {
    format!(
        "{} ({}; MB are 10^6 bytes, ± one standard deviation)",
        engine_name(run, engine),
        repeats(run.plan.sizes.repeats)
    )
}

/// Name and version of an engine, as it says.
pub(crate) fn engine_name(run: &Run<ChunkPlan>, engine: &EngineName) -> String {
    any_of(run, engine).map_or_else(|| engine.to_string(), |outcome| outcome.engine_name.clone())
}

/// What the figures were taken on, and what all arms had in common.
pub(crate) fn card(run: &Run<ChunkPlan>) -> Vec<(&'static str, String)> {
    let Some(outcome) = run.entries.measured().next() else {
        return Vec::new();
    };
    let (cell, sizes) = (&outcome.cell, &run.plan.sizes);
    let mut lines = machine_lines(&outcome.machine);
    lines.push((
        "text",
        format!(
            "{}: {} lines, {} MiB, in {} partitions",
            run.plan.text,
            outcome.rows,
            figure(outcome.text_bytes as f64 / MIB),
            cell.partitions
        ),
    ));
    lines.push((
        "memory budget",
        format!(
            "{} MiB, memtable {} MiB: one flush writes all of it",
            sizes.memory_budget_mib,
            figure(cell.settings.memtable_bytes as f64 / MIB)
        ),
    ));
    lines.push(("durability", cell.settings.durability.name().to_owned()));
    lines.push((
        "each arm",
        format!(
            "{} flushes, each of an empty database; {} scans with empty caches and {} with files \
             in the page cache, the database opened anew before each unless its engine has no \
             cache; {} rows read one by one; {} background threads",
            sizes.flushes,
            sizes.scans,
            sizes.scans,
            outcome.row_reads.reads,
            sizes.background_threads
        ),
    ));
    for engine in &run.plan.engines {
        let Some(outcome) = any_of(run, engine) else { continue };
        if !outcome.capabilities.block_size {
            lines.push((
                "not followed",
                format!("{engine} does not say that it follows chunk sizes"),
            ));
        }
    }
    lines
}

fn spread(of: MeanAndDeviation) -> String {
    format!("{} ± {}", figure(of.mean), figure(of.deviation))
}

/// The table of an engine.
pub(crate) fn arms(run: &Run<ChunkPlan>, figures: &[ArmFigures]) -> Grid {
    let columns: Vec<(&str, Align)> = [
        "chunk KiB",
        "codec",
        "size MB",
        "ratio",
        "flush ms",
        "flush MB/s",
        "cold scan ms",
        "warm scan ms",
        "row p50 us",
        "row p99 us",
        "calls >= 1 ms",
        "sum ms",
        "longest call ms",
        "longest step ms",
        "remark",
    ]
    .into_iter()
    .map(|name| (name, if matches!(name, "codec" | "remark") { Align::Left } else { Align::Right }))
    .collect();
    let row = |of: &ArmFigures| {
        let wanted = run.plan.sizes.repeats as usize;
        let remark = match of.repeats == wanted {
            true => String::new(),
            false => format!("{} of {wanted} repeats", of.repeats),
        };
        let step = match of.longest_unit_ms {
            Some(0.0) => "< 1".to_owned(),
            other => figure_or_dash(other),
        };
        vec![
            of.arm.chunk_kib.to_string(),
            of.arm.codec.to_string(),
            figure(of.stored_bytes / 1e6),
            figure(of.ratio),
            spread(of.flush_ms),
            figure(of.flush_mb_per_s),
            spread(of.cold_ms),
            spread(of.warm_ms),
            figure(of.row_p50_us),
            figure(of.row_p99_us),
            figure(of.long_calls),
            figure(of.long_sum_ms),
            figure(of.longest_call_ms),
            step,
            remark,
        ]
    };
    Grid::new(&columns, figures.iter().map(row).collect())
}

/// The largest share of the CPUs that other processes took while flushes and scans ran, percent.
pub(crate) fn foreign_percent(run: &Run<ChunkPlan>) -> f64 {
    run.entries.results().map(|outcome| outcome.foreign_percent).fold(0.0, f64::max)
}

/// What is wrong with the cells, and what others took of the machine.
pub(crate) fn checks(run: &Run<ChunkPlan>) -> Vec<String> {
    let counted = run.valid_cells();
    let mut lines = vec![format!(
        "{counted} of {} cells count: what every scan read is what was loaded",
        run.plan.cells.len()
    )];
    if ChunkPlan::disagreements(&run.entries).is_empty() {
        let engines: BTreeSet<_> = run.entries.results().map(|of| &of.cell.engine).collect();
        lines
            .push(format!("all rows as read have one hash per seed, on {} engines", engines.len()));
    }
    lines.extend(run.plan.skipped.iter().cloned());
    lines.extend(run.problems());
    let cold: u64 = run.entries.results().map(|outcome| outcome.cold_read_device_bytes).sum();
    let wanted: u64 = run
        .entries
        .results()
        .map(|outcome| outcome.stored_bytes() * outcome.cold_scan_ms.len() as u64)
        .sum();
    if wanted > 0 {
        lines.push(format!(
            "scans with empty caches read {} % of the stored bytes from the device",
            figure(100.0 * cold as f64 / wanted as f64)
        ));
    }
    let foreign = foreign_percent(run);
    let doubt = if foreign > FOREIGN_PERCENT_MAX { ": THE MACHINE WAS NOT QUIET" } else { "" };
    lines.push(format!("other processes took at most {} % of the CPUs{doubt}", figure(foreign)));
    lines
}

/// Every finding with what the repeats of an engine say about it, if they do, and in words.
pub(crate) fn findings(
    run: &Run<ChunkPlan>,
    engine: &EngineName,
    figures: &[ArmFigures],
) -> Vec<(Option<compare::Verdict>, String)> {
    let repeats = (0..run.plan.sizes.repeats).map(|repeat| of_repeat(run, engine, repeat));
    let repeats: Vec<Vec<ArmFigures>> = repeats.collect();
    let tell = |finding: &Finding| {
        let found = |figures: &Vec<ArmFigures>| judge(finding.check, figures);
        let holds: Vec<bool> = repeats.iter().filter_map(found).map(|found| found.held).collect();
        let (claim, verdict) = (&finding.claim, compare::in_words(&holds));
        let told = match judge(finding.check, figures) {
            None => format!("\"{claim}\": not measured here"),
            Some(found) if found.held => format!("\"{claim}\": held ({})", found.figures),
            Some(found) => format!("\"{claim}\": did not, because {}", found.figures),
        };
        let told = match verdict {
            Some(compare::Verdict::NotSignificant) => {
                let held = holds.iter().filter(|held| **held).count();
                format!("{told}; it held in {held} of {} repeats", holds.len())
            }
            Some(compare::Verdict::DirectionOnly(_)) => {
                format!("{told}: {}", compare::NO_VERDICT)
            }
            _ => told,
        };
        (verdict, told)
    };
    run.plan.experiment.findings.iter().map(tell).collect()
}
