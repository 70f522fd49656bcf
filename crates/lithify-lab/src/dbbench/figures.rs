//! From the results of a step to figures that engines can be compared by.
//!
//! Everything here is seen from outside the engine (clients, process, directory), but for the
//! share of the time in which writers were slowed and the live bytes: these only the engine knows.

use super::plan::DbRecord;
use super::spec::{DbResult, Role, StepResult};
use crate::adapter::codec::Ladder;
use crate::report::days;
use crate::report::figures::Spread;
use crate::report::paired::{Better, Reading, Sides, ratios};
use crate::statistics::verdicts::Scale;

/// A figure of a step.
pub struct Metric {
    /// Its name in the tables.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Which direction is good.
    pub better: Better,
    /// How it is compared.
    pub scale: Scale,
    /// Its value; `None` where a step does not have it.
    pub value: fn(&Measured<'_>) -> Option<f64>,
}

/// A step with the same step of the driver alone.
#[derive(Clone, Copy)]
pub struct Measured<'a> {
    /// Over the engine.
    pub step: &'a StepResult,
    /// Over the engine that stores nothing.
    pub driver: Option<&'a StepResult>,
}

const MIB: f64 = (1 << 20) as f64;

macro_rules! metric {
    ($name:literal, $unit:literal, $better:ident, $value:expr) => {
        metric!($name, $unit, $better by Scale::Ratio, $value)
    };
    ($name:literal, $unit:literal, $better:ident by $scale:expr, $value:expr) => {
        Metric {
            name: $name,
            unit: $unit,
            better: Better::$better,
            scale: $scale,
            value: $value,
        }
    };
}

/// The figures, in the order of the tables.
pub static METRICS: [Metric; 18] = [
    metric!("throughput", "ops/s", Higher, |m| Some(m.step.rate())),
    metric!("CPU per op", "us", Lower, |m| m.cpu_us_per_operation()),
    metric!("CPU per op until settled", "us", Lower, |m| m.settled_cpu_us_per_operation()),
    metric!("written per byte ingested", "", Lower, |m| m.written_per_byte()),
    metric!("directory settled", "MiB", Lower, |m| Some(m.settled_directory_bytes()? / MIB)),
    metric!("directory peak", "MiB", Lower, |m| Some(m.peak_directory_bytes()? / MIB)),
    metric!("live settled", "MiB", Lower, |m| Some(m.settled_live_bytes()? / MIB)),
    metric!("live peak", "MiB", Lower, |m| Some(m.peak_live_bytes()? / MIB)),
    metric!("p50", "us", Lower, |m| Some(m.step.latency.summary.p50_us)),
    metric!("p99", "us", Lower, |m| Some(m.step.latency.summary.p99_us)),
    metric!("p99.9", "us", Lower, |m| Some(m.step.latency.summary.p999_us)),
    metric!("p99.99", "us", Lower, |m| Some(m.step.latency.summary.p9999_us)),
    metric!("max", "ms", Lower, |m| Some(m.step.latency.summary.max_ms)),
    metric!("slowed share", "%", Lower by Scale::PERCENT, |m| m.slowed_percent()),
    metric!("gap share", "%", Lower by Scale::PERCENT, |m| Some(100.0 * m.step.throughput.as_ref()?.gap_share())),
    metric!("longest gap", "ms", Lower by Scale::GAP_MS, |m| Some(m.step.throughput.as_ref()?.longest_gap_ms)),
    metric!("worst second", "ops/s", Higher by Scale::RATE, |m| m.step.worst_second()),
    metric!("resident", "MiB", Lower, |m| Some(m.resident_bytes() / MIB)),
];

/// The most of live tables and log, in units of what they are when nothing is due. In no table:
/// it is held against a bound of its own.
pub static LIVE_PEAK: Metric = metric!("live peak : settled", "", Lower, |m| {
    Some(m.peak_live_bytes()? / m.settled_live_bytes()?)
});

/// The figure of the tables with that name.
pub fn metric(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.name == name)
}

impl Metric {
    /// Name and unit.
    pub fn heading(&self) -> String {
        format!("{} {}", self.name, self.unit).trim_end().to_owned()
    }

    /// Which direction is good, and how it is compared.
    pub fn reading(&self) -> Reading {
        Reading { better: self.better, scale: self.scale }
    }

    /// Its column in files.
    pub fn column(&self) -> String {
        let name = self.name.replace([' ', '.'], "_");
        match self.unit {
            "" => name,
            "%" => format!("{name}_percent"),
            unit => format!("{name}_{}", unit.replace('/', "_per_")),
        }
    }
}

impl StepResult {
    /// Operations per second.
    pub fn rate(&self) -> f64 {
        if self.elapsed_s > 0.0 { self.operations as f64 / self.elapsed_s } else { 0.0 }
    }

    /// Writes by anybody.
    pub fn writes(&self) -> u64 {
        if self.spec.benchmark.is_write() { self.operations } else { self.background_writes }
    }

    /// Operations per second in each second that ended before the clients did.
    pub fn rates(&self) -> Vec<f64> {
        let whole = |interval: &&super::spec::Interval| {
            interval.elapsed_s <= self.elapsed_s + 0.05 && interval.seconds > 0.5
        };
        let intervals = self.intervals.iter().filter(whole);
        intervals.map(|interval| interval.operations as f64 / interval.seconds).collect()
    }

    /// The slowest second.
    pub fn worst_second(&self) -> Option<f64> {
        self.rates().into_iter().min_by(f64::total_cmp)
    }

    /// Standard deviation of the seconds in units of their mean; `None` with fewer than two.
    pub fn variation(&self) -> Option<f64> {
        let rates = self.rates();
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let variance = rates.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / rates.len() as f64;
        (rates.len() >= 2 && mean > 0.0).then(|| variance.sqrt() / mean)
    }
}

fn per(dividend: f64, divisor: u64) -> Option<f64> {
    (divisor > 0).then(|| dividend / divisor as f64)
}

impl Measured<'_> {
    /// CPU of the laboratory's own threads in this step, microseconds: the sampler's, and what
    /// clients and background writer cost over the engine that stores nothing.
    fn driver_us(&self) -> f64 {
        let step = self.step;
        let sampler_us = step.thread_cpu.sampler_us as f64;
        let Some(driver) = self.driver else { return sampler_us };
        let cpu = &driver.thread_cpu;
        let client_us = per(cpu.clients_us as f64, driver.operations).unwrap_or(0.0);
        let write_us = per(cpu.background_us as f64, driver.background_writes).unwrap_or(0.0);
        sampler_us + client_us * step.operations as f64 + write_us * step.background_writes as f64
    }

    /// CPU of the engine per operation of the clients, background work during the step included.
    pub fn cpu_us_per_operation(&self) -> Option<f64> {
        let all_us = self.step.usage.process_cpu.total_us() as f64;
        per(all_us - self.driver_us(), self.step.operations)
    }

    /// The same with the background work that the step left behind.
    pub fn settled_cpu_us_per_operation(&self) -> Option<f64> {
        let settle = self.step.settle.as_ref()?;
        let later_us = settle.process_cpu.total_us() as f64 - self.step.settle_sampler_us as f64;
        let later = per(later_us.max(0.0), self.step.operations)?;
        Some(self.cpu_us_per_operation()? + later)
    }

    /// Bytes handed to write calls until settled, per byte of keys and values written.
    pub fn written_per_byte(&self) -> Option<f64> {
        let later = self.step.settle.as_ref().map_or(0, |s| s.process_io.written_syscall_bytes);
        let all = self.step.usage.process_io.written_syscall_bytes + later;
        per(all as f64, self.step.ingested_bytes)
    }

    /// What the device wrote until settled, for everybody, per byte of keys and values written. The
    /// kernel writes pages back for no process by itself.
    pub fn device_written_per_byte(&self) -> Option<f64> {
        let during = self.step.usage.device?.written_bytes;
        let later = self.step.settle.as_ref().and_then(|s| s.device).map_or(0, |d| d.written_bytes);
        per((during + later) as f64, self.step.ingested_bytes)
    }

    /// What came from the device for this process per operation, bytes: what others read meanwhile is
    /// not in it.
    pub fn device_read_per_operation(&self) -> Option<f64> {
        per(self.step.usage.process_io.read_device_bytes as f64, self.step.operations)
    }

    fn settled_directory_bytes(&self) -> Option<f64> {
        let settle = self.step.settle.as_ref().unwrap_or(&self.step.usage);
        positive(settle.directory.allocated_bytes)
    }

    fn peak_directory_bytes(&self) -> Option<f64> {
        let samples = self.step.samples.iter().map(|sample| sample.directory.allocated_bytes);
        let during = self.step.usage.directory.allocated_bytes;
        positive(samples.max().unwrap_or(0).max(during))
    }

    fn settled_live_bytes(&self) -> Option<f64> {
        positive(self.step.statistics_settled.live_bytes)
    }

    fn peak_live_bytes(&self) -> Option<f64> {
        let samples = self.step.samples.iter().map(|sample| sample.live_bytes);
        positive(samples.max().unwrap_or(0).max(self.step.statistics.live_bytes))
    }

    /// Share of the step in which the engine held its writers back, percent; `None` when nobody
    /// wrote, or the engine does not say.
    pub(crate) fn slowed_percent(&self) -> Option<f64> {
        self.step.throughput.as_ref()?;
        let (after, before) = (&self.step.statistics, &self.step.statistics_before);
        let slowed_us = after.slowed_us_since(before)?;
        let share = slowed_us / (self.step.usage.seconds * 1e6);
        share.is_finite().then(|| 100.0 * share.clamp(0.0, 1.0))
    }

    /// Most resident memory of the step, the driver's taken off, bytes.
    fn resident_bytes(&self) -> f64 {
        let most = |step: &StepResult| {
            let settled = step.settle.as_ref().map_or(0, |s| s.memory.resident_max_bytes);
            step.usage.memory.resident_max_bytes.max(settled)
        };
        most(self.step) as f64 - self.driver.map_or(0, most) as f64
    }
}

fn positive(bytes: u64) -> Option<f64> {
    (bytes > 0).then_some(bytes as f64)
}

/// The steps of a result, each with that of the driver.
pub fn measured<'a>(
    result: &'a DbResult,
    driver: Option<&'a DbResult>,
) -> impl Iterator<Item = Measured<'a>> {
    let mut of_driver = driver.into_iter().flat_map(DbResult::loops);
    result.loops().map(move |step| Measured { step, driver: of_driver.next() })
}

/// The series of one figure of one step over the repeats, with one ladder of codecs.
pub struct Series<'a> {
    record: &'a DbRecord,
    ladder: Ladder,
}

impl<'a> Series<'a> {
    /// Of a run.
    pub fn of(record: &'a DbRecord, ladder: Ladder) -> Series<'a> {
        Series { record, ladder }
    }

    /// A figure of the loop at `index` of the engine at `engine`, with its repeats; nothing where
    /// the step does not have it.
    fn values(&self, engine: usize, role: Role, index: usize, metric: &Metric) -> Vec<(u64, f64)> {
        let Some(engine) = self.record.plan.engines.get(engine) else { return Vec::new() };
        let driver = self.record.driver();
        let of_step = |result: &DbResult| {
            let value = measured(result, driver).nth(index).and_then(|m| (metric.value)(&m))?;
            Some((result.cell.repeat, value))
        };
        self.record.of(engine, self.ladder, role).filter_map(of_step).collect()
    }

    /// A figure of the loop at `index`, the first engine against the one at `other`.
    pub fn sides(&self, other: usize, index: usize, metric: &Metric) -> Sides {
        let of = |role| [0, other].map(|engine| self.values(engine, role, index, metric));
        Sides {
            kind: metric.name.to_owned(),
            scale: metric.scale,
            values: of(Role::Measure),
            again: of(Role::Control),
            other_day: days::apart(&self.began(0), &self.began(other)),
        }
    }

    /// When an engine began its repeats.
    fn began(&self, engine: usize) -> Vec<(u64, u64)> {
        let Some(engine) = self.record.plan.engines.get(engine) else { return Vec::new() };
        let results = self.record.of(engine, self.ladder, Role::Measure);
        results.map(|result| (result.cell.repeat, result.started_unix_s)).collect()
    }

    /// The ratios of a figure of two engines' loop at `index`, one for each repeat of both; `None`
    /// where a repeat has none, for the rest alone would be a choice.
    pub fn ratio(
        &self,
        engine: usize,
        base: usize,
        index: usize,
        metric: &Metric,
    ) -> Option<Spread> {
        let values = self.values(engine, Role::Measure, index, metric);
        let of_base = self.values(base, Role::Measure, index, metric);
        let ratios = ratios(&values, &of_base);
        let is_whole = ratios.len() == values.len().min(of_base.len());
        Spread::of(ratios).filter(|_| is_whole)
    }

    /// A figure of one engine's loop at `index` over its repeats.
    pub fn spread(&self, engine: usize, index: usize, metric: &Metric) -> Option<Spread> {
        let values = self.values(engine, Role::Measure, index, metric);
        Spread::of(values.into_iter().map(|(_, value)| value).collect())
    }
}
