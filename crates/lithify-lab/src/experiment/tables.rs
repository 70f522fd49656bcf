//! Experiments over tables of rows: load, a large aggregate, updates; arms of codecs and blocks on
//! several engines.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::check::{
    Fault, check_claims, check_engines, check_id, check_kind, check_name, check_ratio, check_sizes,
    fault, in_range,
};
use super::file_system::FileSystemSpec;
use super::{Caveats, EngineSizes, ExperimentError, Source, WorkloadKind, parse};
use crate::adapter::EngineName;
use crate::adapter::codec::Codec;
use crate::adapter::settings::DurabilityMode;
use crate::adapter::table::Access;
use crate::datasets::TableData;

/// One experiment: every arm on every engine, or on the one that it names, over every table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableExperiment {
    /// Its name on the command line: lower case, digits, dashes.
    pub name: String,
    /// Its number among the published ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// One line for headings.
    pub title: String,
    /// What is asked.
    pub question: String,
    /// What the published source says the answer is.
    pub hypothesis: String,
    /// Where the published figures come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// What is run.
    pub workload: TableWorkload,
    /// The sizes it can be run at, by name.
    #[serde(rename = "scale")]
    pub scales: BTreeMap<String, TableScale>,
    /// What is compared, in the order of the tables.
    #[serde(rename = "arm")]
    pub arms: Vec<TableArm>,
    /// The published figures.
    #[serde(default)]
    pub published: Vec<PublishedFigure>,
    /// What was published of an update in each mode.
    #[serde(default)]
    pub published_mode: Vec<PublishedMode>,
    /// The published ratios that ours are held against, on every engine.
    #[serde(default, rename = "headline")]
    pub headlines: Vec<TableHeadline>,
    /// What a reader must know.
    pub caveats: Caveats,
}

/// What is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableWorkload {
    /// `tables`.
    pub kind: WorkloadKind,
    /// On which engines; one that is missing is left out with a line.
    pub engines: Vec<EngineName>,
    /// The tables; one whose data are missing is left out with a line.
    pub tables: Vec<TableData>,
    /// By which way the aggregate finds its rows, where its table has both.
    pub access: Access,
    /// Rows of a statement of the load.
    pub insert_rows: u64,
    /// How long maintenance is waited for at most where an engine does not say that it is done,
    /// seconds.
    pub wait_seconds: u64,
    /// When a write is acknowledged.
    pub durability: DurabilityMode,
    /// Repeat `r` (from 0) runs with seed `seed + r`; all arms and engines of a repeat share it.
    pub seed: u64,
}

/// One size that an experiment can be run at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableScale {
    /// What it shows.
    pub about: String,
    /// Rows by table; a table without rows is not run. Of real data, at most.
    pub rows: BTreeMap<TableData, u64>,
    /// Rows that are updated, each once.
    pub updates: u64,
    /// Rows that are updated in each of the three modes.
    pub mode_updates: u64,
    /// What lies between two of them in the modes with gaps, milliseconds.
    pub mode_gap_ms: u64,
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

impl TableScale {
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

/// One setting that is compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableArm {
    /// Its name in tables and on the command line.
    pub name: String,
    /// The engines that it runs on; all of them when not given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub engines: Vec<EngineName>,
    /// The codec of all data.
    pub codec: Codec,
    /// Raw bytes of a block or page, KiB.
    pub block_kib: u64,
    /// What only its engine knows, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// The file system that its data lie on, made for it; the one that is there when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_system: Option<FileSystemSpec>,
    /// What the publication calls what it stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_as: Option<String>,
}

impl TableArm {
    /// Whether it runs on an engine.
    pub fn is_of(&self, engine: &EngineName) -> bool {
        self.engines.is_empty() || self.engines.contains(engine)
    }
}

/// A figure of an arm and a table. GB are 10^9 bytes, KB 10^3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TableColumn {
    /// Seconds of the load.
    #[serde(rename = "load_s")]
    LoadSeconds,
    /// Bytes that the engine handed to write calls in the load and its maintenance, GB.
    #[serde(rename = "load_w_proc")]
    LoadWrittenProcess,
    /// Bytes that reached the device in them, GB.
    #[serde(rename = "load_w_dev")]
    LoadWrittenDevice,
    /// The directory after the load and its maintenance, as `du` counts it, or as a file system of
    /// its own does, GB.
    #[serde(rename = "size")]
    Size,
    /// The live tables in it, by the engine's account, without logs and what waits to be removed,
    /// GB.
    #[serde(rename = "tables")]
    Tables,
    /// The directory per byte of the columns.
    #[serde(rename = "size/logical")]
    SizePerLogical,
    /// Bytes that reached the device in the load per byte of size.
    #[serde(rename = "w_dev/size")]
    WrittenPerSize,
    /// Seconds of the aggregate.
    #[serde(rename = "scan_s")]
    ScanSeconds,
    /// Bytes that the engine asked for by read calls in it, GB.
    #[serde(rename = "scan_r_proc")]
    ScanReadProcess,
    /// Bytes that came from the device for it, GB.
    #[serde(rename = "scan_r_dev")]
    ScanReadDevice,
    /// Seconds of the updates.
    #[serde(rename = "upd_s")]
    UpdateSeconds,
    /// Bytes that came from the device for them, GB.
    #[serde(rename = "upd_r")]
    UpdateReadDevice,
    /// Bytes handed to write calls per update, maintenance included, KB.
    #[serde(rename = "upd_w_proc/upd")]
    UpdateWrittenProcess,
    /// Bytes that reached the device per update, maintenance included, KB.
    #[serde(rename = "upd_w_dev/upd")]
    UpdateWrittenDevice,
    /// Bytes that the engine wrote to pages in the load and its maintenance, by its own account as
    /// in the columns behind it, GB.
    #[serde(rename = "load_pages")]
    LoadPages,
    /// Pages written a second time against torn writes, GB.
    #[serde(rename = "load_dblwr")]
    LoadDoublewrite,
    /// The log of changes, GB.
    #[serde(rename = "load_log")]
    LoadLog,
    /// Memtables flushed, GB.
    #[serde(rename = "load_flush")]
    LoadFlush,
    /// Compactions, GB.
    #[serde(rename = "load_compact")]
    LoadCompaction,
    /// What the engine's process handed to write calls less all of these; below 0 where the engine
    /// counts bytes that pass by write calls, GB.
    #[serde(rename = "load_other")]
    LoadOther,
    /// Bytes by which the files of tables became longer, GB.
    #[serde(rename = "load_extend")]
    LoadExtension,
    /// Attempts to compress a page in the load, thousands.
    #[serde(rename = "load_cmp")]
    LoadCompressed,
    /// Of them, those after which it was not small enough, percent.
    #[serde(rename = "load_cmp_fail%")]
    LoadFailedPercent,
    /// Attempts to compress a page in the updates, thousands.
    #[serde(rename = "upd_cmp")]
    UpdateCompressed,
    /// Of them, those after which it was not small enough, percent.
    #[serde(rename = "upd_cmp_fail%")]
    UpdateFailedPercent,
}

impl TableColumn {
    /// All: those of the tables of figures in their order, then those of what was written for what.
    pub const ALL: [TableColumn; 25] = [
        TableColumn::LoadSeconds,
        TableColumn::LoadWrittenProcess,
        TableColumn::LoadWrittenDevice,
        TableColumn::Size,
        TableColumn::Tables,
        TableColumn::SizePerLogical,
        TableColumn::WrittenPerSize,
        TableColumn::ScanSeconds,
        TableColumn::ScanReadProcess,
        TableColumn::ScanReadDevice,
        TableColumn::UpdateSeconds,
        TableColumn::UpdateReadDevice,
        TableColumn::UpdateWrittenProcess,
        TableColumn::UpdateWrittenDevice,
        TableColumn::LoadPages,
        TableColumn::LoadDoublewrite,
        TableColumn::LoadLog,
        TableColumn::LoadFlush,
        TableColumn::LoadCompaction,
        TableColumn::LoadOther,
        TableColumn::LoadExtension,
        TableColumn::LoadCompressed,
        TableColumn::LoadFailedPercent,
        TableColumn::UpdateCompressed,
        TableColumn::UpdateFailedPercent,
    ];

    /// Those of the tables of figures.
    pub const MAIN: &'static [TableColumn] = TableColumn::ALL.split_at(14).0;

    /// Those of the tables of what was written for what.
    pub const BY_CAUSE: &'static [TableColumn] = TableColumn::ALL.split_at(14).1;

    /// Its name in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            TableColumn::LoadSeconds => "load_s",
            TableColumn::LoadWrittenProcess => "load_w_proc",
            TableColumn::LoadWrittenDevice => "load_w_dev",
            TableColumn::Size => "size",
            TableColumn::Tables => "tables",
            TableColumn::SizePerLogical => "size/logical",
            TableColumn::WrittenPerSize => "w_dev/size",
            TableColumn::ScanSeconds => "scan_s",
            TableColumn::ScanReadProcess => "scan_r_proc",
            TableColumn::ScanReadDevice => "scan_r_dev",
            TableColumn::UpdateSeconds => "upd_s",
            TableColumn::UpdateReadDevice => "upd_r",
            TableColumn::UpdateWrittenProcess => "upd_w_proc/upd",
            TableColumn::UpdateWrittenDevice => "upd_w_dev/upd",
            TableColumn::LoadPages => "load_pages",
            TableColumn::LoadDoublewrite => "load_dblwr",
            TableColumn::LoadLog => "load_log",
            TableColumn::LoadFlush => "load_flush",
            TableColumn::LoadCompaction => "load_compact",
            TableColumn::LoadOther => "load_other",
            TableColumn::LoadExtension => "load_extend",
            TableColumn::LoadCompressed => "load_cmp",
            TableColumn::LoadFailedPercent => "load_cmp_fail%",
            TableColumn::UpdateCompressed => "upd_cmp",
            TableColumn::UpdateFailedPercent => "upd_cmp_fail%",
        }
    }
}

impl fmt::Display for TableColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A published figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedFigure {
    /// Of which table.
    pub table: TableData,
    /// Of which system, as it was called.
    pub system: String,
    /// Of what.
    pub column: TableColumn,
    /// The figure; of sizes and bytes in GB.
    pub value: f64,
}

/// How rows are updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UpdateMode {
    /// Each in a transaction of its own, with gaps.
    SeparateCommits,
    /// All in one transaction, with gaps.
    OneTransactionWithGaps,
    /// All in one transaction, one right after the other.
    OneTransaction,
}

impl UpdateMode {
    /// All, most expensive first as published.
    pub const ALL: [UpdateMode; 3] = [
        UpdateMode::SeparateCommits,
        UpdateMode::OneTransactionWithGaps,
        UpdateMode::OneTransaction,
    ];

    /// Its name in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            UpdateMode::SeparateCommits => "separate-commits",
            UpdateMode::OneTransactionWithGaps => "one-transaction-with-gaps",
            UpdateMode::OneTransaction => "one-transaction",
        }
    }

    /// Whether something lies between two updates.
    pub fn has_gaps(self) -> bool {
        self != UpdateMode::OneTransaction
    }
}

/// What was published of an update in a mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedMode {
    /// Which mode.
    pub mode: UpdateMode,
    /// Pages written per update, all copies counted.
    pub pages: f64,
    /// Bytes of the log per update.
    pub log_bytes: f64,
}

/// A published ratio between two arms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableHeadline {
    /// Over which table.
    pub table: TableData,
    /// Of which figure.
    pub column: TableColumn,
    /// Above the line.
    pub arm: String,
    /// Below the line.
    pub base: String,
    /// The published ratio.
    pub published: f64,
    /// What it says, in words.
    pub claim: String,
}

impl TableExperiment {
    /// Reads and checks the text of an experiment file; `file` names it in errors.
    ///
    /// # Errors
    /// Bad syntax, an unknown or missing key, an impossible value: with file, line and key.
    pub fn parse(file: &str, text: &str) -> Result<TableExperiment, ExperimentError> {
        parse::parse(file, text, check)
    }

    /// The arm of that name.
    pub fn arm(&self, name: &str) -> Option<&TableArm> {
        self.arms.iter().find(|arm| arm.name == name)
    }
}

/// Refuses what cannot be run.
fn check(experiment: &TableExperiment) -> Result<(), Fault> {
    check_name("name", &experiment.name)?;
    check_id(experiment.id.as_deref())?;
    check_workload(&experiment.workload)?;
    if experiment.scales.is_empty() {
        return Err(fault("scale", "an experiment needs at least one scale"));
    }
    for (name, scale) in &experiment.scales {
        check_scale(&experiment.workload, name, scale)?;
    }
    check_arms(&experiment.arms)?;
    for (index, figure) in experiment.published.iter().enumerate() {
        let key = format!("published[{index}]");
        known_table(&experiment.workload, &format!("{key}.table"), figure.table)?;
        if !(figure.value.is_finite() && figure.value > 0.0) {
            return Err(fault(format!("{key}.value"), format!("{} is no figure", figure.value)));
        }
    }
    for (index, headline) in experiment.headlines.iter().enumerate() {
        let key = format!("headline[{index}]");
        known_table(&experiment.workload, &format!("{key}.table"), headline.table)?;
        known_arm(experiment, &format!("{key}.arm"), &headline.arm)?;
        known_arm(experiment, &format!("{key}.base"), &headline.base)?;
        check_ratio(&key, headline.published, None, None)?;
    }
    let repeats = experiment.scales.values().map(|scale| scale.repeats);
    check_claims(experiment.headlines.len(), repeats)
}

fn check_workload(workload: &TableWorkload) -> Result<(), Fault> {
    check_kind(workload.kind, WorkloadKind::Tables)?;
    check_engines("workload.engines", &workload.engines)?;
    if workload.tables.is_empty() {
        return Err(fault("workload.tables", "an experiment needs at least one table"));
    }
    for (index, table) in workload.tables.iter().enumerate() {
        if workload.tables[..index].contains(table) {
            return Err(fault(format!("workload.tables[{index}]"), format!("{table} twice")));
        }
    }
    in_range("workload.insert_rows", workload.insert_rows, 1..=1_000_000)?;
    in_range("workload.wait_seconds", workload.wait_seconds, 1..=86_400)?;
    // TOML integers are signed, and repeats are added to the seed.
    in_range("workload.seed", workload.seed, 0..=i64::MAX as u64 / 2)
}

fn check_scale(workload: &TableWorkload, name: &str, scale: &TableScale) -> Result<(), Fault> {
    let key = format!("scale.{name}");
    check_name(&key, name)?;
    for (table, rows) in &scale.rows {
        let key = format!("{key}.rows.{table}");
        known_table(workload, &key, *table)?;
        in_range(&key, *rows, 1_000..=4_000_000_000)?;
        if scale.updates.max(scale.mode_updates) > *rows {
            return Err(fault(key, "fewer rows than are updated, each once"));
        }
    }
    let limits = [
        ("updates", scale.updates, 1..=10_000_000),
        ("mode_updates", scale.mode_updates, 1..=1_000_000),
        ("mode_gap_ms", scale.mode_gap_ms, 0..=3_600_000),
        ("repeats", scale.repeats, 1..=100),
    ];
    for (name, value, allowed) in limits {
        in_range(&format!("{key}.{name}"), value, allowed)?;
    }
    check_sizes(&key, &scale.sizes())
}

fn check_arms(arms: &[TableArm]) -> Result<(), Fault> {
    if arms.is_empty() {
        return Err(fault("arm", "an experiment needs at least one arm"));
    }
    let mut names = BTreeSet::new();
    for (index, arm) in arms.iter().enumerate() {
        let key = format!("arm[{index}].name");
        check_name(&key, &arm.name)?;
        if !names.insert(arm.name.as_str()) {
            return Err(fault(key, format!("a second arm is named \"{}\"", arm.name)));
        }
        in_range(&format!("arm[{index}].block_kib"), arm.block_kib, 1..=1024)?;
        if !arm.engines.is_empty() {
            check_engines(&format!("arm[{index}].engines"), &arm.engines)?;
        }
    }
    Ok(())
}

fn known_arm(experiment: &TableExperiment, key: &str, name: &str) -> Result<(), Fault> {
    if experiment.arm(name).is_some() {
        return Ok(());
    }
    let names: Vec<&str> = experiment.arms.iter().map(|arm| arm.name.as_str()).collect();
    Err(fault(key, format!("there is no arm \"{name}\"; there are: {}", names.join(", "))))
}

fn known_table(workload: &TableWorkload, key: &str, table: TableData) -> Result<(), Fault> {
    if workload.tables.contains(&table) {
        return Ok(());
    }
    let names: Vec<&str> = workload.tables.iter().map(|table| table.name()).collect();
    let what = format!("{table} is no table of this experiment; there are: {}", names.join(", "));
    Err(fault(key, what))
}
