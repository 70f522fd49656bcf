//! Latencies of the phases in which requests arrived at fixed rates.

use crate::linkbench::Operation;
use crate::linkbench::cell::OpenLoopResult;
use crate::linkbench::record::LinkBenchRecord;
use crate::linkbench::report::figures::Figures;
use crate::report::figures::{Spread, figure, figure_or_dash};
use crate::report::tables::{Align, Grid};

/// One line per arm, rate and operation; `None` when no arm has such a phase.
pub fn grid(record: &LinkBenchRecord, figures: &Figures<'_>) -> Option<Grid> {
    let columns = [
        ("of max", Align::Right),
        ("due/s", Align::Right),
        ("done/s", Align::Right),
        ("longest queue", Align::Right),
        ("operation", Align::Left),
        ("p50", Align::Right),
        ("p99", Align::Right),
        ("p99.9", Align::Right),
        ("max", Align::Right),
        ("engine", Align::Left),
    ];
    let mut rows = Vec::new();
    for arm in &record.plan.arms {
        for percent in &record.plan.experiment.workload.open_loop_percent {
            let phases: Vec<&OpenLoopResult> = figures
                .results(arm)
                .iter()
                .flat_map(|result| &result.open_loop)
                .filter(|phase| phase.percent == *percent)
                .collect();
            rows.extend(rows_of(arm, *percent, &phases));
        }
    }
    (!rows.is_empty()).then(|| Grid::new(&columns, rows).named_by_last())
}

fn rows_of(arm: &str, percent: u64, phases: &[&OpenLoopResult]) -> Vec<Vec<String>> {
    let median = |value: &dyn Fn(&OpenLoopResult) -> Option<f64>| {
        let spread = Spread::of(phases.iter().filter_map(|phase| value(phase)).collect());
        figure_or_dash(spread.map(|spread| spread.median))
    };
    let missed = phases.iter().filter(|phase| !phase.arrivals.reached()).count();
    let mut name = arm.to_owned();
    if missed > 0 {
        let left = phases.iter().map(|phase| phase.arrivals.queue_at_end).max().unwrap_or(0);
        name.push_str(&format!(
            " (RATE NOT REACHED in {missed} of {}: up to {} left waiting at the end)",
            phases.len(),
            figure(left as f64)
        ));
    }
    let operations = Operation::REPORTED.iter().filter(|operation| {
        phases.iter().any(|phase| phase.latencies.iter().any(|s| s.op == operation.name()))
    });
    operations
        .map(|operation| {
            let latency = |ms: fn(&crate::latency::LatencySummary) -> f64| {
                median(&|phase| phase.latencies.iter().find(|s| s.op == operation.name()).map(ms))
            };
            vec![
                format!("{percent} %"),
                median(&|phase| Some(phase.arrivals.per_second)),
                median(&|phase| Some(phase.arrivals.served as f64 / phase.seconds)),
                median(&|phase| Some(phase.arrivals.queue_max as f64)),
                operation.name().to_owned(),
                latency(|summary| summary.p50_us / 1e3),
                latency(|summary| summary.p99_us / 1e3),
                latency(|summary| summary.p999_us / 1e3),
                latency(|summary| summary.max_ms),
                name.clone(),
            ]
        })
        .collect()
}
