//! Experiments over the loops of the classic key-value benchmark: arms of codecs, on each of some
//! engines; one load, then tests that write.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::check::{
    Fault, check_arms, check_claims, check_engines, check_id, check_kind, check_name,
    check_plain_arms, check_ratio, check_sizes, check_width, fault, in_range, known_arm,
};
use super::{
    Arm, Caveats, EngineSizes, ExperimentError, PublishedRow, SharedSettings, Source, WorkloadKind,
    parse,
};
use crate::adapter::EngineName;
use crate::keyvalue::benchmark::Benchmark;
use crate::statistics::verdicts::Scale;

/// One experiment: every arm runs on every engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoopExperiment {
    /// Its name on the command line: lower case, digits, dashes.
    pub name: String,
    /// Its number among the published experiments, `E1` and so on; nothing for one of our own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// One line for headings.
    pub title: String,
    /// What is asked.
    pub question: String,
    /// What the published source says the answer is.
    pub hypothesis: String,
    /// Where the published figures come from; nothing for a comparison of our own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// What is run.
    pub workload: LoopWorkload,
    /// The engine settings that all arms share.
    pub engine: SharedSettings,
    /// The sizes it can be run at, by name.
    #[serde(rename = "scale")]
    pub scales: BTreeMap<String, LoopScale>,
    /// What is compared, in the order of the tables.
    #[serde(rename = "arm")]
    pub arms: Vec<Arm>,
    /// The published tables.
    #[serde(default)]
    pub published: Vec<LoopTable>,
    /// The published times of jobs.
    #[serde(default)]
    pub published_jobs: Vec<JobTable>,
    /// The published ratios that ours are held against, on every engine.
    #[serde(default, rename = "headline")]
    pub headlines: Vec<LoopHeadline>,
    /// What a reader must know.
    pub caveats: Caveats,
}

/// What is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoopWorkload {
    /// `dbbench`.
    pub kind: WorkloadKind,
    /// On which engines; one that is missing is left out with a line.
    pub engines: Vec<EngineName>,
    /// What fills the empty database.
    pub load: Benchmark,
    /// What is measured on it, in order; steps in which somebody writes.
    pub tests: Vec<Benchmark>,
    /// Length of a key, bytes.
    pub key_bytes: u64,
    /// Length of a value, bytes.
    pub value_bytes: u64,
    /// Share of a value that is random; the rest repeats it.
    pub compression_ratio: f64,
    /// What the writer beside readers writes, keys and values, MiB/s; other writers have no limit.
    pub writer_mib_per_s: u64,
    /// Repeat `r` (from 0) runs with its own seed; all arms and engines of a repeat share it.
    pub seed: u64,
}

/// One size that an experiment can be run at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoopScale {
    /// What it shows.
    pub about: String,
    /// Keys of the database.
    pub keys: u64,
    /// Clients of the tests; the load has one.
    pub clients: u64,
    /// How long each test runs, seconds.
    pub test_seconds: u64,
    /// Runs of each arm on each engine.
    pub repeats: u64,
    /// Memory of the engine as a whole, MiB.
    pub memory_budget_mib: u64,
    /// The block cache in it, MiB.
    pub block_cache_mib: u64,
    /// Size at which a memtable is flushed, KiB.
    pub memtable_kib: u64,
    /// Target size of a table file, KiB.
    pub table_kib: u64,
    /// Largest target of the first level below level 0, MiB.
    pub base_level_mib: u64,
    /// Size of a level in units of the one above.
    pub fanout: u64,
    /// Threads of flush and compaction.
    pub background_threads: u64,
}

impl LoopScale {
    /// What its engines are told about sizes.
    pub fn sizes(&self) -> EngineSizes {
        EngineSizes {
            memory_budget_mib: self.memory_budget_mib,
            block_cache_mib: self.block_cache_mib,
            memtable_kib: self.memtable_kib,
            table_kib: self.table_kib,
            base_level_mib: self.base_level_mib,
            fanout: self.fanout,
            background_threads: self.background_threads,
        }
    }
}

/// A figure of a test, under its published name. GB are 2^30 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LoopColumn {
    /// Operations of the clients per second: writes, or reads where a writer runs beside them.
    #[serde(rename = "wps")]
    OperationsPerSecond,
    /// Keys and values written by users, GB.
    #[serde(rename = "ingest")]
    Ingest,
    /// Bytes of tables that flushes wrote, GB.
    #[serde(rename = "flush")]
    Flush,
    /// Bytes of tables that flushes and compactions wrote, GB.
    #[serde(rename = "compact")]
    Compact,
    /// (compact + flush) / ingest: flushes count twice.
    #[serde(rename = "w-amp")]
    WriteAmplification,
    /// Wall seconds of all jobs.
    #[serde(rename = "c.wsecs")]
    JobWall,
    /// CPU seconds of all jobs.
    #[serde(rename = "c.csecs")]
    JobCpu,
    /// c.csecs / wps.
    #[serde(rename = "cpu/w")]
    JobCpuPerWrite,
    /// Share of the test in which the engine held writers back, percent.
    #[serde(rename = "stall%")]
    Stall,
    /// flush / ingest.
    #[serde(rename = "flush/ingest")]
    FlushPerIngest,
    /// Wall seconds per job into level 0.
    #[serde(rename = "job L0")]
    JobLevel0,
    /// Wall seconds per job into the base level.
    #[serde(rename = "job base")]
    JobBase,
    /// Wall seconds per job into the level below the base level.
    #[serde(rename = "job next")]
    JobNext,
    /// Wall seconds per job into the levels below that one, together.
    #[serde(rename = "job deeper")]
    JobDeeper,
}

impl LoopColumn {
    /// The columns of the published table, in its order.
    pub const TABLE: [LoopColumn; 9] = [
        LoopColumn::OperationsPerSecond,
        LoopColumn::Ingest,
        LoopColumn::Flush,
        LoopColumn::Compact,
        LoopColumn::WriteAmplification,
        LoopColumn::JobWall,
        LoopColumn::JobCpu,
        LoopColumn::JobCpuPerWrite,
        LoopColumn::Stall,
    ];

    /// How it is compared.
    pub fn scale(self) -> Scale {
        match self {
            LoopColumn::Stall => Scale::PERCENT,
            _ => Scale::Ratio,
        }
    }

    /// Its name in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            LoopColumn::OperationsPerSecond => "wps",
            LoopColumn::Ingest => "ingest",
            LoopColumn::Flush => "flush",
            LoopColumn::Compact => "compact",
            LoopColumn::WriteAmplification => "w-amp",
            LoopColumn::JobWall => "c.wsecs",
            LoopColumn::JobCpu => "c.csecs",
            LoopColumn::JobCpuPerWrite => "cpu/w",
            LoopColumn::Stall => "stall%",
            LoopColumn::FlushPerIngest => "flush/ingest",
            LoopColumn::JobLevel0 => "job L0",
            LoopColumn::JobBase => "job base",
            LoopColumn::JobNext => "job next",
            LoopColumn::JobDeeper => "job deeper",
        }
    }
}

impl fmt::Display for LoopColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The published figures of one test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoopTable {
    /// Which test.
    pub test: Benchmark,
    /// What the values of a row are.
    pub columns: Vec<LoopColumn>,
    /// One row per published arm.
    pub rows: Vec<PublishedRow>,
}

/// The published wall seconds per job of one test, by the level that jobs wrote into.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobTable {
    /// Which test.
    pub test: Benchmark,
    /// The levels: level 0, the base level, and those below it.
    pub levels: Vec<String>,
    /// One row per published arm.
    pub rows: Vec<PublishedRow>,
}

/// A published ratio between two arms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoopHeadline {
    /// In which test.
    pub test: Benchmark,
    /// Of which figure.
    pub column: LoopColumn,
    /// Above the line.
    pub arm: String,
    /// Below the line.
    pub base: String,
    /// The published ratio.
    pub published: f64,
    /// What it says, in words.
    pub claim: String,
}

impl LoopExperiment {
    /// Reads and checks the text of an experiment file; `file` names it in errors.
    ///
    /// # Errors
    /// Bad syntax, an unknown or missing key, an impossible value: with file, line and key.
    pub fn parse(file: &str, text: &str) -> Result<LoopExperiment, ExperimentError> {
        parse::parse(file, text, check)
    }

    /// The published value of `arm` in a test and column, computed from others where it follows
    /// from them.
    pub fn published_value(&self, test: Benchmark, column: LoopColumn, arm: &str) -> Option<f64> {
        let listed = |column: LoopColumn| {
            let table = self.published.iter().find(|table| table.test == test)?;
            let index = table.columns.iter().position(|candidate| *candidate == column)?;
            value(&table.rows, arm, index)
        };
        let job = |index: usize| {
            let table = self.published_jobs.iter().find(|table| table.test == test)?;
            value(&table.rows, arm, index)
        };
        match column {
            LoopColumn::FlushPerIngest => {
                Some(listed(LoopColumn::Flush)? / listed(LoopColumn::Ingest)?)
            }
            LoopColumn::JobLevel0 => job(0),
            LoopColumn::JobBase => job(1),
            LoopColumn::JobNext => job(2),
            listed_one => listed(listed_one),
        }
    }
}

fn value(rows: &[PublishedRow], arm: &str, index: usize) -> Option<f64> {
    rows.iter().find(|row| row.arm == arm)?.values.get(index).copied()
}

/// Refuses what cannot be run.
fn check(experiment: &LoopExperiment) -> Result<(), Fault> {
    check_name("name", &experiment.name)?;
    check_id(experiment.id.as_deref())?;
    check_workload(&experiment.workload)?;
    in_range("engine.block_kib", experiment.engine.block_kib, 1..=1024)?;
    if experiment.scales.is_empty() {
        return Err(fault("scale", "an experiment needs at least one scale"));
    }
    for (name, scale) in &experiment.scales {
        let key = format!("scale.{name}");
        check_name(&key, name)?;
        in_range(&format!("{key}.keys"), scale.keys, 1_000..=10_000_000_000)?;
        in_range(&format!("{key}.clients"), scale.clients, 1..=256)?;
        in_range(&format!("{key}.test_seconds"), scale.test_seconds, 1..=86_400)?;
        in_range(&format!("{key}.repeats"), scale.repeats, 1..=100)?;
        check_sizes(&key, &scale.sizes())?;
    }
    check_arms(&experiment.arms)?;
    check_plain_arms(&experiment.arms)?;
    for (index, arm) in experiment.arms.iter().enumerate() {
        if arm.engine.is_some() {
            let what = "every arm runs on every engine of workload.engines; it has none of its own";
            return Err(fault(format!("arm[{index}].engine"), what));
        }
    }
    check_published(experiment)?;
    for (index, headline) in experiment.headlines.iter().enumerate() {
        let key = format!("headline[{index}]");
        known_test(experiment, &format!("{key}.test"), headline.test)?;
        known_arm(&experiment.arms, &format!("{key}.arm"), &headline.arm)?;
        known_arm(&experiment.arms, &format!("{key}.base"), &headline.base)?;
        let value = |arm| experiment.published_value(headline.test, headline.column, arm);
        check_ratio(&key, headline.published, value(&headline.arm), value(&headline.base))?;
    }
    let repeats = experiment.scales.values().map(|scale| scale.repeats);
    check_claims(experiment.headlines.len(), repeats)
}

fn check_workload(workload: &LoopWorkload) -> Result<(), Fault> {
    check_kind(workload.kind, WorkloadKind::DbBench)?;
    check_engines("workload.engines", &workload.engines)?;
    if !workload.load.is_fill() {
        let what = format!("{} fills nothing; allowed: fillseq, fillrandom", workload.load);
        return Err(fault("workload.load", what));
    }
    if workload.tests.is_empty() {
        return Err(fault("workload.tests", "an experiment needs at least one test"));
    }
    for (index, test) in workload.tests.iter().enumerate() {
        let key = format!("workload.tests[{index}]");
        if !test.changes_database() || test.is_fill() {
            let what = format!("{test} is no test; allowed: overwrite, readwhilewriting");
            return Err(fault(key, what));
        }
        if workload.tests[..index].contains(test) {
            return Err(fault(key, format!("{test} twice: figures are found by its name")));
        }
    }
    in_range("workload.key_bytes", workload.key_bytes, 8..=1024)?;
    in_range("workload.value_bytes", workload.value_bytes, 1..=1_000_000)?;
    in_range("workload.writer_mib_per_s", workload.writer_mib_per_s, 1..=1_000_000)?;
    // TOML integers are signed, and repeats are added to the seed.
    in_range("workload.seed", workload.seed, 0..=i64::MAX as u64 / 2)?;
    if !(0.01..=1.0).contains(&workload.compression_ratio) {
        let what = format!("{} is out of range; allowed: 0.01 to 1", workload.compression_ratio);
        return Err(fault("workload.compression_ratio", what));
    }
    Ok(())
}

fn known_test(experiment: &LoopExperiment, key: &str, test: Benchmark) -> Result<(), Fault> {
    if experiment.workload.tests.contains(&test) {
        return Ok(());
    }
    let names: Vec<&str> = experiment.workload.tests.iter().map(|test| test.name()).collect();
    Err(fault(
        key,
        format!("{test} is no test of this experiment; there are: {}", names.join(", ")),
    ))
}

fn check_published(experiment: &LoopExperiment) -> Result<(), Fault> {
    for (index, table) in experiment.published.iter().enumerate() {
        let key = format!("published[{index}]");
        known_test(experiment, &format!("{key}.test"), table.test)?;
        check_rows(experiment, &key, &table.rows, table.columns.len())?;
    }
    for (index, table) in experiment.published_jobs.iter().enumerate() {
        let key = format!("published_jobs[{index}]");
        known_test(experiment, &format!("{key}.test"), table.test)?;
        check_rows(experiment, &key, &table.rows, table.levels.len())?;
    }
    Ok(())
}

fn check_rows(
    experiment: &LoopExperiment,
    key: &str,
    rows: &[PublishedRow],
    columns: usize,
) -> Result<(), Fault> {
    for (index, row) in rows.iter().enumerate() {
        let key = format!("{key}.rows[{index}]");
        known_arm(&experiment.arms, &format!("{key}.arm"), &row.arm)?;
        check_width(&key, row.values.len(), columns)?;
        if let Some(value) = row.values.iter().find(|value| !value.is_finite()) {
            return Err(fault(format!("{key}.values"), format!("{value} is no figure")));
        }
    }
    Ok(())
}
