//! From raw results to figures: per cell, and per arm over its repeats.

use lithify_report::Spread;

use crate::experiment::{Column, Pair, Phase};
use crate::linkbench::cell::{CellResult, PhaseResult, Purpose};
use crate::linkbench::record::LinkBenchRecord;
use crate::report::days;
use crate::statistics::verdicts::Rounds;

/// What the driver itself costs, from the calibration; zeros without one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DriverCost {
    /// Microseconds of CPU per inserted link.
    pub load_us: f64,
    /// Microseconds of CPU per operation of the mix.
    pub query_us: f64,
    /// Most resident memory of any phase, bytes.
    pub resident_bytes: u64,
    /// True when there was a calibration.
    pub measured: bool,
}

/// The valid results of a run, by arm.
pub struct Figures<'a> {
    arms: Vec<(&'a str, Vec<&'a CellResult>)>,
    /// The second runs of those arms that have a control.
    controls: Vec<&'a CellResult>,
    /// The loads with other numbers of threads.
    loads: Vec<&'a CellResult>,
    /// What the driver costs.
    pub driver: DriverCost,
}

impl<'a> Figures<'a> {
    /// Sorts out what counts.
    pub fn of(record: &'a LinkBenchRecord) -> Figures<'a> {
        let valid = |purpose: Purpose| {
            record.cells.iter().filter_map(|cell| cell.result.as_ref()).filter(move |result| {
                result.spec.purpose == purpose && result.violation().is_none()
            })
        };
        let arms = record
            .plan
            .arms
            .iter()
            .map(|arm| {
                let mut results: Vec<_> =
                    valid(Purpose::Measure).filter(|result| result.spec.arm == *arm).collect();
                results.sort_by_key(|result| result.spec.repeat);
                (arm.as_str(), results)
            })
            .collect();
        let driver = valid(Purpose::Calibrate).next().map_or_else(DriverCost::default, |result| {
            DriverCost {
                load_us: cpu_us_per_operation(&result.load),
                query_us: cpu_us_per_operation(&result.query),
                resident_bytes: resident_max_bytes(&result.load)
                    .max(resident_max_bytes(&result.query)),
                measured: true,
            }
        });
        let (controls, loads) = (valid(Purpose::Control), valid(Purpose::Load));
        Figures { arms, controls: controls.collect(), loads: loads.collect(), driver }
    }

    /// The phases of an arm with a number of clients, each with its cell, in the order of the
    /// repeats.
    pub fn phases(
        &self,
        arm: &str,
        phase: Phase,
        clients: u64,
    ) -> Vec<(&'a CellResult, &'a PhaseResult)> {
        let results = self.results(arm).iter().copied();
        match phase {
            Phase::Query => {
                let with = |result: &'a CellResult| {
                    let found = result.queries().find(|(count, _)| *count == clients);
                    found.map(|(_, phase)| (result, phase))
                };
                results.filter_map(with).collect()
            }
            Phase::Load => {
                let others = self.loads.iter().copied().filter(|result| result.spec.arm == arm);
                let loaded = results.chain(others).filter(|r| r.spec.loaders == clients);
                loaded.map(|result| (result, &result.load)).collect()
            }
        }
    }

    /// A figure of an arm with a number of clients, repeat by repeat.
    pub fn by_repeat(
        &self,
        arm: &str,
        phase: Phase,
        clients: u64,
        figure: impl Fn(&PhaseResult) -> Option<f64>,
    ) -> Vec<(u64, f64)> {
        let phases = self.phases(arm, phase, clients).into_iter();
        phases.filter_map(|(result, phase)| Some((result.spec.repeat, figure(phase)?))).collect()
    }

    /// The same over the repeats; `None` when no repeat has it.
    pub fn spread_at(
        &self,
        arm: &str,
        phase: Phase,
        clients: u64,
        figure: impl Fn(&PhaseResult) -> Option<f64>,
    ) -> Option<Spread> {
        let values = self.by_repeat(arm, phase, clients, figure);
        Spread::of(values.into_iter().map(|(_, value)| value).collect())
    }

    /// The valid results of an arm, in the order of their repeats.
    pub fn results(&self, arm: &str) -> &[&'a CellResult] {
        self.arms
            .iter()
            .find(|(name, _)| *name == arm)
            .map(|(_, results)| results.as_slice())
            .unwrap_or_default()
    }

    /// The valid second runs of an arm that has a control.
    pub fn control(&self, arm: &str) -> Vec<&'a CellResult> {
        self.controls.iter().copied().filter(|result| result.spec.arm == arm).collect()
    }

    /// A figure of an arm, repeat by repeat.
    pub fn rounds(&self, arm: &str, figure: impl Fn(&CellResult) -> Option<f64>) -> Rounds {
        let results = self.results(arm).iter();
        results.filter_map(|result| Some((result.spec.repeat, figure(result)?))).collect()
    }

    /// The same of the arm's A/A control; empty without one.
    pub fn rounds_again(&self, arm: &str, figure: impl Fn(&CellResult) -> Option<f64>) -> Rounds {
        let results = self.control(arm).into_iter();
        results.filter_map(|result| Some((result.spec.repeat, figure(result)?))).collect()
    }

    /// Whether two arms were measured on different days.
    pub fn apart(&self, arms: [&str; 2]) -> bool {
        let moments = |arm: &str| -> Vec<(u64, u64)> {
            self.results(arm).iter().map(|r| (r.spec.repeat, r.started_unix_s)).collect()
        };
        days::apart(&moments(arms[0]), &moments(arms[1]))
    }

    /// A figure of an arm over its repeats; `None` when no repeat has it.
    pub fn spread(&self, arm: &str, figure: impl Fn(&CellResult) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.results(arm).iter().filter_map(|result| figure(result)).collect())
    }

    /// A published figure of an arm over its repeats.
    pub fn column(&self, arm: &str, phase: Phase, column: Column) -> Option<Spread> {
        self.spread(arm, |result| column_value(result.phase(phase), column))
    }

    /// The driver's CPU per operation of a phase, microseconds.
    pub fn driver_us(&self, phase: Phase) -> f64 {
        match phase {
            Phase::Load => self.driver.load_us,
            Phase::Query => self.driver.query_us,
        }
    }
}

/// The pairs of which both arms have results: others were not chosen or were skipped.
pub(crate) fn pairs_with_results<'a>(
    record: &'a LinkBenchRecord,
    figures: &Figures<'_>,
) -> impl Iterator<Item = &'a Pair> + use<'a> {
    let measured = |arm: &String| !figures.results(arm).is_empty();
    let pairs = record.plan.experiment.pairs.iter();
    let pairs: Vec<_> = pairs.filter(|p| measured(&p.arm) && measured(&p.base)).collect();
    pairs.into_iter()
}

/// CPU of the process per operation, microseconds, the driver's included.
pub fn cpu_us_per_operation(phase: &PhaseResult) -> f64 {
    let process_us = phase.usage.process_cpu.total_us().saturating_sub(phase.sampler_us);
    process_us as f64 / phase.operations as f64
}

/// CPU per operation, the background work that the phase left behind included, microseconds.
pub fn settled_cpu_us_per_operation(phase: &PhaseResult) -> f64 {
    let process_us = phase.settle.process_cpu.total_us();
    let settle_us = process_us.saturating_sub(phase.settle_sampler_us);
    cpu_us_per_operation(phase) + settle_us as f64 / phase.operations as f64
}

/// Most resident memory of a phase and of what it left behind, bytes.
pub fn resident_max_bytes(phase: &PhaseResult) -> u64 {
    phase.usage.memory.resident_max_bytes.max(phase.settle.memory.resident_max_bytes)
}

/// Share of a phase in which the engine held its writers back by its own account, percent; `None`
/// for an engine that does not say.
pub fn slowed_percent(phase: &PhaseResult) -> Option<f64> {
    let us = phase.statistics.slowed_us_since(&phase.statistics_before)?;
    Some((100.0 * us / (phase.seconds * 1e6)).clamp(0.0, 100.0))
}

/// Stored bytes of all tables when nothing was due any more, GB (10^9): the size without the log
/// and without files that wait to be removed. `None` for an engine without levels.
pub fn table_gb(phase: &PhaseResult) -> Option<f64> {
    let levels = &phase.statistics_settled.levels;
    let bytes: u64 = levels.iter().map(|level| level.stored_bytes).sum();
    (bytes > 0).then_some(bytes as f64 / 1e9)
}

/// A published figure of one phase; `None` when the machine or the phase does not have it.
pub fn column_value(phase: &PhaseResult, column: Column) -> Option<f64> {
    let usage = &phase.usage;
    let operations = (phase.operations > 0).then_some(phase.operations as f64)?;
    let p99 = |op: &str| {
        // As recorded: the bucket that the original prints is the same for most arms.
        phase.latencies.iter().find(|summary| summary.op == op).map(|s| s.p99_us / 1e3)
    };
    match column {
        Column::Ips | Column::Tps => Some(phase.rate()),
        Column::ReadsPerInsert | Column::ReadsPerTransaction => {
            usage.device.map(|device| device.reads as f64 / operations)
        }
        Column::ReadKbPerInsert | Column::ReadKbPerTransaction => {
            usage.device.map(|device| device.read_bytes as f64 / 1024.0 / operations)
        }
        Column::WriteKbPerInsert | Column::WriteKbPerTransaction => {
            usage.device.map(|device| device.written_bytes as f64 / 1024.0 / operations)
        }
        Column::McpuPerInsert | Column::McpuPerTransaction => {
            Some(usage.busy_percent() / phase.rate() * 1e6)
        }
        Column::SwitchesPerInsert | Column::SwitchesPerTransaction => {
            Some(usage.machine.switches as f64 / operations)
        }
        Column::Size => Some(usage.directory.allocated_bytes as f64 / 1e9),
        Column::Rss => Some(usage.memory.resident_bytes as f64 / 1e9),
        Column::UpdateNode => p99("UPDATE_NODE"),
        Column::GetNode => p99("GET_NODE"),
        Column::UpdateLink => p99("UPDATE_LINK"),
        Column::GetLinksList => p99("GET_LINKS_LIST"),
    }
}
