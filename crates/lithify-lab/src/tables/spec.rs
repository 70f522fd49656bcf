//! What a cell of a table experiment is told to do, and what it answers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::adapter::cross_count::CrossCounts;
use crate::adapter::settings::EngineSettings;
use crate::adapter::table::{Access, PageAccount, Rest};
use crate::adapter::{Capabilities, EngineName};
use crate::datasets::TableData;
use crate::experiment::tables::UpdateMode;
use crate::meter::PhaseUsage;
use crate::meter::machine::Machine;
use crate::meter::space::DirectorySize;
use crate::run::cells::{Cell, Part};
use crate::run::estimate::Effort;
use crate::run::file_system::{CellFileSystem, FileSystemRequest};

/// Version of the JSON of cells and results.
pub const SCHEMA: u32 = 1;

/// One arm on one engine over one table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableCell {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Its name, unique in its plan; also of its files.
    pub id: String,
    /// On which engine.
    pub engine: EngineName,
    /// The arm.
    pub arm: String,
    /// Over which table.
    pub table: TableData,
    /// Repeat, from 0.
    pub repeat: u64,
    /// What the engine is told.
    pub settings: EngineSettings,
    /// Rows; of real data, at most.
    pub rows: u64,
    /// Rows of a statement of the load.
    pub insert_rows: u64,
    /// By which way the aggregate finds its rows.
    pub access: Access,
    /// Rows that are updated, each once.
    pub updates: u64,
    /// Rows that are updated in each mode; none for a table without modes.
    pub mode_updates: u64,
    /// What lies between two of them in modes with gaps, milliseconds.
    pub mode_gap_ms: u64,
    /// How long maintenance is waited for at most, seconds.
    pub wait_seconds: u64,
    /// Seed of everything random.
    pub seed: u64,
    /// The file system that its data lie on, when it is not the one that is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_system: Option<FileSystemRequest>,
    /// Hash of the program: figures of different builds are not mixed.
    pub build: String,
}

/// What a step cost.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StepUsage {
    /// How long the client waited for the engine, seconds.
    pub seconds: f64,
    /// What was used until the client was done, write-back included.
    pub usage: PhaseUsage,
    /// What maintenance used afterwards, write-back included.
    pub maintenance: PhaseUsage,
    /// How the wait for it ended.
    pub rest: Rest,
    /// Bytes written in it by cause, by the engine's account; none for one that does not tell.
    pub written_by_cause: BTreeMap<String, u64>,
    /// What became of its pages; `None` for an engine that does not count any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<PageWork>,
    /// What was asked of the engine and what it counted of that; empty where only one side counts.
    #[serde(default, skip_serializing_if = "CrossCounts::is_empty")]
    pub cross_counts: CrossCounts,
}

/// What an engine did with pages in a step, maintenance included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageWork {
    /// Pages written to their places.
    pub written: u64,
    /// Pages written a second time beforehand.
    pub doublewritten: u64,
    /// Attempts to compress a page.
    pub compressed: u64,
    /// Of them, those after which it was not small enough.
    pub failed: u64,
    /// Pages decompressed.
    pub decompressed: u64,
    /// Bytes by which the files of tables became longer.
    pub extended_bytes: u64,
}

impl PageWork {
    /// What was done between two accounts.
    pub fn between(before: &PageAccount, after: &PageAccount) -> PageWork {
        let grown = |of: fn(&PageAccount) -> u64| of(after).saturating_sub(of(before));
        PageWork {
            written: grown(|account| account.written),
            doublewritten: grown(|account| account.doublewritten),
            compressed: grown(|account| account.compressed),
            failed: grown(|account| account.failed),
            decompressed: grown(|account| account.decompressed),
            extended_bytes: grown(|account| account.file_bytes),
        }
    }
}

impl StepUsage {
    /// Bytes handed to write calls, maintenance included.
    pub fn written_process_bytes(&self) -> u64 {
        self.usage.process_io.written_syscall_bytes
            + self.maintenance.process_io.written_syscall_bytes
    }

    /// As [`StepUsage::written_process_bytes`], of the engine's own processes where it has some.
    pub fn written_engine_bytes(&self) -> u64 {
        let of = |usage: &PhaseUsage| match &usage.servers {
            Some(servers) => servers.io.written_syscall_bytes,
            None => usage.process_io.written_syscall_bytes,
        };
        of(&self.usage) + of(&self.maintenance)
    }

    /// Bytes that it wrote for a cause, by the engine's account; `None` where it does not tell.
    pub fn written_for(&self, cause: &str) -> Option<u64> {
        self.written_by_cause.get(cause).copied()
    }

    /// Bytes that reached the device, maintenance included; `None` without counters of it.
    pub fn written_device_bytes(&self) -> Option<u64> {
        Some(self.usage.device?.written_bytes + self.maintenance.device?.written_bytes)
    }
}

/// What updates in one mode cost.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ModeUsage {
    /// Which mode.
    pub mode: UpdateMode,
    /// How many rows.
    pub updates: u64,
    /// What they cost.
    pub step: StepUsage,
}

/// What a cell found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TableOutcome {
    /// What was done.
    pub cell: TableCell,
    /// When it began, seconds since 1970.
    pub started_unix_s: u64,
    /// On which machine.
    pub machine: Machine,
    /// Name and version of the engine.
    pub engine_name: String,
    /// What the engine can do by itself.
    pub capabilities: Capabilities,
    /// Name and version of the library behind the codec.
    pub codec_library: String,
    /// Rows of the table.
    pub rows: u64,
    /// Bytes of its columns, without any overhead.
    pub logical_bytes: u64,
    /// The load; the time in which rows were generated is no part of its seconds.
    pub load: StepUsage,
    /// That time, seconds.
    pub generate_seconds: f64,
    /// The directory after the load and its maintenance, the engine closed.
    pub size: DirectorySize,
    /// The file system of its own that the data were on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_system: Option<CellFileSystem>,
    /// What they took then by its account, which sees what it compresses itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_system_bytes: Option<u64>,
    /// Stored bytes of the live tables then; `None` for an engine that does not tell, and on a file
    /// system that may compress what files are made of.
    pub table_bytes: Option<u64>,
    /// By what they were really compressed; `None` for an engine that does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub codec_in_force: Option<String>,
    /// The aggregate.
    pub scan: StepUsage,
    /// Rows that it found.
    pub scan_rows: u64,
    /// Checksum of its answer.
    pub scan_checksum: u64,
    /// The updates; `None` where the engine refuses them or gives them up.
    pub update: Option<StepUsage>,
    /// Why it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updates_refused: Option<String>,
    /// The modes; none for a table without them, and for an engine that refuses updates.
    pub modes: Vec<ModeUsage>,
    /// What other processes took of the machine while steps ran, percent.
    pub foreign_percent: f64,
    /// What keeps the figures from counting.
    pub faults: Vec<String>,
}

impl TableOutcome {
    /// All steps that were taken.
    pub fn steps(&self) -> impl Iterator<Item = &StepUsage> {
        let modes = self.modes.iter().map(|mode| &mode.step);
        [&self.load, &self.scan].into_iter().chain(&self.update).chain(modes)
    }

    /// What the database took on disk after the load, bytes.
    pub fn stored_bytes(&self) -> u64 {
        self.file_system_bytes.unwrap_or(self.size.allocated_bytes)
    }
}

impl Cell for TableCell {
    type Outcome = TableOutcome;

    fn id(&self) -> String {
        self.id.clone()
    }

    fn engine(&self) -> EngineName {
        self.engine.clone()
    }

    fn part(&self) -> Part {
        Part::Row(format!("{} on {}, {}", self.arm, self.engine, self.table))
    }

    fn file_system(&self) -> Option<FileSystemRequest> {
        self.file_system.clone()
    }

    /// The gaps between updates; and work in rows of page counts, of which loading a wide row takes
    /// 2.6 to 4.5, measured on five engines.
    fn effort(&self) -> Effort {
        let gaps_ms = 2 * self.mode_updates * self.mode_gap_ms;
        let work = self.rows as f64 * if self.table.is_wide() { 4.0 } else { 1.0 };
        Effort { work, ..Effort::declared(gaps_ms as f64 / 1e3) }
    }

    fn is_result(&self, outcome: &TableOutcome) -> bool {
        outcome.cell == *self
    }

    fn faults(outcome: &TableOutcome) -> Vec<String> {
        outcome.faults.clone()
    }

    fn summary(outcome: &TableOutcome) -> String {
        let updates = match &outcome.update {
            Some(update) => format!("{} updates {:.2} s", outcome.cell.updates, update.seconds),
            None => "no updates".to_owned(),
        };
        format!(
            "load {:.1} s, {:.1} MB, scan {:.2} s, {updates}",
            outcome.load.seconds,
            outcome.stored_bytes() as f64 / 1e6,
            outcome.scan.seconds,
        )
    }
}
