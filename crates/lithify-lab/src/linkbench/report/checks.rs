//! What speaks for the figures and what against them: failures, the oracle, the ledger.

use std::collections::BTreeMap;

use crate::adapter::EngineStatistics;
use crate::adapter::cross_count::{self, CrossCounts};
use crate::experiment::Phase;
use crate::linkbench::cell::{CellResult, PhaseResult, Purpose};
use crate::linkbench::record::LinkBenchRecord;
use crate::linkbench::report::figures::{Figures, cpu_us_per_operation};
use crate::linkbench::report::workload;
use crate::report::cross_counts;
use crate::report::figures::{Spread, figure};

/// Failures line by line, the rest by arm.
pub fn lines(record: &LinkBenchRecord, figures: &Figures<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for cell in &record.cells {
        let id = &cell.spec.id;
        if let Some(failure) = &cell.failure {
            lines.push(format!("{id}: FAILED: {failure}"));
        }
        let Some(result) = &cell.result else { continue };
        if result.spec.purpose == Purpose::Calibrate {
            lines.push(calibration(result));
        }
        for check in result.oracle.iter().filter(|check| !check.passed) {
            let (phase, summary) = (check.phase, &check.summary);
            lines.push(format!("{id}: ORACLE FAILED, row void after the {phase}: {summary}"));
        }
    }
    for arm in &record.plan.arms {
        let results = figures.results(arm);
        lines.extend(oracle(arm, results));
        for phase in [Phase::Load, Phase::Query] {
            lines.extend(ledger(arm, figures, phase));
            lines.extend(counted_by_both(arm, results, phase));
        }
    }
    lines.extend(workload::lines(record));
    if record.interrupted {
        lines.push("the run was stopped before its last cell".to_owned());
    }
    lines
}

fn calibration(result: &CellResult) -> String {
    format!(
        "{}: the driver alone costs {} us per insert and {} us per operation ({} per second), \
         and has {} MB resident",
        result.spec.id,
        figure(cpu_us_per_operation(&result.load)),
        figure(cpu_us_per_operation(&result.query)),
        figure(result.query.rate()),
        figure(result.query.usage.memory.resident_max_bytes as f64 / 1e6)
    )
}

/// How often an arm's oracle passed, and what it read the last time.
fn oracle(arm: &str, results: &[&CellResult]) -> Option<String> {
    let passed: usize = results.iter().map(|result| result.oracle.len()).sum();
    let last = results.last()?.oracle.last()?;
    Some(format!("{arm}: oracle passed {passed} times, at last over {}", last.summary))
}

/// What an arm's engine booked against what the operating system counted, in percent.
fn ledger(arm: &str, figures: &Figures<'_>, phase: Phase) -> Option<String> {
    let driver_us = figures.driver_us(phase);
    let written = figures.spread(arm, |result| written_percent(result.phase(phase)));
    let cpu = figures.spread(arm, |result| cpu_percent(result.phase(phase), driver_us));
    if written.is_none() && cpu.is_none() {
        return None;
    }
    let percent = |spread: Option<Spread>| match spread {
        Some(spread) => {
            let [median, min, max] = [spread.median, spread.min, spread.max].map(figure);
            format!("{median} % [{min}, {max}]")
        }
        None => "nothing".to_owned(),
    };
    Some(format!(
        "{arm}: ledger of the {phase}: booked {} of the bytes written; with the driver's share, \
         {} of the process's CPU",
        percent(written),
        percent(cpu)
    ))
}

/// What an arm's engine counted of what it was asked for, over all repeats.
fn counted_by_both(arm: &str, results: &[&CellResult], phase: Phase) -> Option<String> {
    let mut sum = CrossCounts::new();
    for result in results {
        let phase = result.phase(phase);
        let (before, after) = (&phase.statistics_before, &phase.statistics);
        cross_count::add(
            &mut sum,
            &cross_count::between(&before.cross_counts, &after.cross_counts),
        );
    }
    let line = cross_counts::line(&sum)?;
    Some(format!("{arm}: the engine's own counters of the {phase}: {line}"))
}

/// Booked between the beginning and the end of a phase; `None` for an engine that books nothing.
fn booked(
    phase: &PhaseResult,
    causes: fn(&EngineStatistics) -> &BTreeMap<String, u64>,
) -> Option<f64> {
    let sum = |statistics| causes(statistics).values().sum::<u64>();
    let (before, after) = (sum(&phase.statistics_before), sum(&phase.statistics));
    (after > 0).then(|| after.saturating_sub(before) as f64)
}

fn written_percent(phase: &PhaseResult) -> Option<f64> {
    let counted = phase.usage.process_io.written_syscall_bytes as f64;
    Some(100.0 * booked(phase, |statistics| &statistics.written_bytes_by_cause)? / counted)
}

fn cpu_percent(phase: &PhaseResult, driver_us: f64) -> Option<f64> {
    let booked_us = booked(phase, |statistics| &statistics.cpu_us_by_cause)?;
    let process_us = phase.usage.process_cpu.total_us() as f64;
    Some(100.0 * (booked_us + driver_us * phase.operations as f64) / process_us)
}
