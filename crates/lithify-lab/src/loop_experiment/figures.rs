//! The published figures of a test, and those that stand beside them.

use super::LoopRecord;
use super::jobs::{Jobs, LevelRole};
use super::plan::{LoopPlan, cell_id};
use crate::adapter::{EngineName, EngineStatistics};
use crate::dbbench::figures::{Measured, measured};
use crate::dbbench::spec::{DbResult, StepResult};
use crate::experiment::loops::LoopColumn;
use crate::keyvalue::benchmark::Benchmark;
use crate::report::days;
use crate::report::figures::Spread;
use crate::statistics::verdicts::Rounds;

/// A GB of the published tables.
pub const GB: f64 = (1u64 << 30) as f64;

/// The valid results of a run, by engine and arm.
pub struct Figures<'a> {
    plan: &'a LoopPlan,
    results: Vec<&'a DbResult>,
    driver: Option<&'a DbResult>,
}

/// A figure of a test.
type Value = fn(&Measured<'_>) -> Option<f64>;

impl<'a> Figures<'a> {
    /// Sorts out what counts.
    pub fn of(record: &'a LoopRecord) -> Figures<'a> {
        Figures {
            plan: &record.plan,
            results: record.run.results().collect(),
            driver: record.run.driver(),
        }
    }

    /// The valid results of an arm on an engine, in the order of their repeats.
    pub fn results(&self, engine: &EngineName, arm: &str) -> Vec<&'a DbResult> {
        let ids = (0..self.plan.sizes.repeats).map(|repeat| cell_id(engine, arm, repeat));
        ids.filter_map(|id| self.results.iter().find(|result| result.cell.id == id).copied())
            .collect()
    }

    /// A test of a result with the same test of the driver.
    pub fn test(&self, result: &'a DbResult, test: Benchmark) -> Option<Measured<'a>> {
        measured(result, self.driver).find(|measured| measured.step.spec.benchmark == test)
    }

    /// A test of an arm on an engine, repeat by repeat.
    pub fn tests(&self, engine: &EngineName, arm: &str, test: Benchmark) -> Vec<Measured<'a>> {
        let results = self.results(engine, arm).into_iter();
        results.filter_map(|result| self.test(result, test)).collect()
    }

    /// A figure over the repeats; `None` when no repeat has it.
    pub fn spread(
        &self,
        engine: &EngineName,
        arm: &str,
        test: Benchmark,
        value: impl Fn(&Measured<'_>) -> Option<f64>,
    ) -> Option<Spread> {
        Spread::of(self.tests(engine, arm, test).iter().filter_map(value).collect())
    }

    /// A published figure of an arm, repeat by repeat.
    pub fn rounds(
        &self,
        engine: &EngineName,
        arm: &str,
        test: Benchmark,
        column: LoopColumn,
    ) -> Rounds {
        let results = self.results(engine, arm).into_iter();
        let of = |result: &'a DbResult| {
            Some((result.cell.repeat, column_value(&self.test(result, test)?, column)?))
        };
        results.filter_map(of).collect()
    }

    /// Whether two arms were measured on different days.
    pub fn apart(&self, engine: &EngineName, arms: [&str; 2]) -> bool {
        let [arm, base] = arms.map(|arm| -> Vec<(u64, u64)> {
            let results = self.results(engine, arm).into_iter();
            results.map(|result| (result.cell.repeat, result.started_unix_s)).collect()
        });
        days::apart(&arm, &base)
    }

    /// A published figure over the repeats.
    pub fn column(
        &self,
        engine: &EngineName,
        arm: &str,
        test: Benchmark,
        column: LoopColumn,
    ) -> Option<Spread> {
        self.spread(engine, arm, test, |measured| column_value(measured, column))
    }
}

/// Bytes of tables that an engine says it wrote since it was opened: by flushes, and by flushes
/// and compactions. `None` for an engine that does not tell.
fn table_bytes(statistics: &EngineStatistics) -> Option<[u64; 2]> {
    let by_cause = &statistics.written_bytes_by_cause;
    let of = |cause: &str| by_cause.get(cause).copied().unwrap_or(0);
    (!by_cause.is_empty()).then(|| [of("flush"), of("flush") + of("compaction")])
}

/// The same from the start of a step until `after`.
fn written(step: &StepResult, after: &EngineStatistics) -> Option<[u64; 2]> {
    let after = table_bytes(after)?;
    let before = table_bytes(&step.statistics_before).unwrap_or([0, 0]);
    Some([after[0].saturating_sub(before[0]), after[1].saturating_sub(before[1])])
}

/// The jobs of a test, those among them that it left behind.
pub fn jobs(step: &StepResult) -> Jobs {
    Jobs::between(&step.statistics_before, &step.statistics_settled)
}

fn per(dividend: f64, divisor: f64) -> Option<f64> {
    (divisor > 0.0).then(|| dividend / divisor)
}

/// A published figure of a test; `None` where the engine or the test does not have it.
pub fn column_value(measured: &Measured<'_>, column: LoopColumn) -> Option<f64> {
    let step = measured.step;
    let settled = || written(step, &step.statistics_settled);
    let ingested = step.ingested_bytes as f64;
    let job = |role| jobs(step).of_role(role)?.wall_s_per_job();
    match column {
        LoopColumn::OperationsPerSecond => Some(step.rate()),
        LoopColumn::Ingest => Some(ingested / GB),
        LoopColumn::Flush => Some(settled()?[0] as f64 / GB),
        LoopColumn::Compact => Some(settled()?[1] as f64 / GB),
        LoopColumn::WriteAmplification => {
            let [flush, tables] = settled()?;
            per((tables + flush) as f64, ingested)
        }
        LoopColumn::JobWall => Some(jobs(step).total().wall_us as f64 / 1e6),
        LoopColumn::JobCpu => Some(jobs(step).total().cpu_us as f64 / 1e6),
        // Beside readers there is no rate of writes that the engine decides.
        LoopColumn::JobCpuPerWrite if !step.spec.benchmark.is_write() => None,
        LoopColumn::JobCpuPerWrite => per(jobs(step).total().cpu_us as f64 / 1e6, step.rate()),
        LoopColumn::Stall => measured.slowed_percent(),
        LoopColumn::FlushPerIngest => per(settled()?[0] as f64, ingested),
        LoopColumn::JobLevel0 => job(LevelRole::Level0),
        LoopColumn::JobBase => job(LevelRole::Base),
        LoopColumn::JobNext => job(LevelRole::Next),
        LoopColumn::JobDeeper => job(LevelRole::Deeper),
    }
}

/// The figures that stand beside the published ones, with their names.
pub const BESIDE: [(&str, Value); 11] = [
    ("writes/s", |m| per(m.step.writes() as f64, m.step.elapsed_s)),
    ("w-amp once", |m| {
        per(written(m.step, &m.step.statistics_settled)?[1] as f64, m.step.ingested_bytes as f64)
    }),
    ("at the end", |m| {
        per(written(m.step, &m.step.statistics)?[1] as f64, m.step.ingested_bytes as f64)
    }),
    ("left GB", |m| {
        let settled = written(m.step, &m.step.statistics_settled)?[1];
        Some(settled.saturating_sub(written(m.step, &m.step.statistics)?[1]) as f64 / GB)
    }),
    ("c.us/w", |m| per(jobs(m.step).total().cpu_us as f64, m.step.writes() as f64)),
    ("cpu us/op", |m| m.cpu_us_per_operation()),
    ("all w/ingest", |m| m.written_per_byte()),
    ("gap %", |m| Some(100.0 * m.step.throughput.as_ref()?.gap_share())),
    ("longest gap ms", |m| Some(m.step.throughput.as_ref()?.longest_gap_ms)),
    ("p99 us", |m| Some(m.step.latency.summary.p99_us)),
    ("p99.9 us", |m| Some(m.step.latency.summary.p999_us)),
];

/// Bytes that the engine booked (log, flushes, compactions) of those that the process handed to
/// write calls, percent.
pub fn booked_percent(measured: &Measured<'_>) -> Option<f64> {
    let step = measured.step;
    let wal = |statistics: &EngineStatistics| {
        statistics.written_bytes_by_cause.get("wal").copied().unwrap_or(0)
    };
    let logged = wal(&step.statistics_settled).saturating_sub(wal(&step.statistics_before));
    let booked = written(step, &step.statistics_settled)?[1] + logged;
    let all = measured.written_per_byte()? * step.ingested_bytes as f64;
    per(100.0 * booked as f64, all)
}

/// Bytes that jobs wrote level by level, of those of all flushes and compactions, percent.
pub fn levels_percent(measured: &Measured<'_>) -> Option<f64> {
    let step = measured.step;
    let tables = written(step, &step.statistics_settled)?[1];
    per(100.0 * jobs(step).total().written_bytes as f64, tables as f64)
}
