//! Losing it, on paper and in fact: what a crash takes in each mode of durability, and what the
//! mode costs those who commit.
//!
//! Two questions, after the post "Losing it?" (Small Datum, 2015-10-11): can a write be lost after
//! another caller has *seen* it, and after its own caller was told that it is *done*? They are
//! asked of two crashes:
//!
//! - the end of the process: a child that writes on the real file system is killed by SIGKILL at a
//!   random moment, again and again, and its database is opened and counted ([`kills`]);
//! - a power cut: writers run over the file system in memory, which loses what was not synced
//!   ([`cuts`]).
//!
//! [`commits`] measures rate and latency of commits on the real file system, by mode and number of
//! writers. [`measure`] does all of it in one mode, which is a cell. [`writers`] is the workload of all
//! three, [`report`] the tables.
//!
//! Promises: what was acknowledged or seen is counted before the crash, never after it; a hole in
//! the order of a writer's commits, and a loss that the mode forbids, is a violation.

pub mod commits;
pub mod compared;
pub mod cuts;
pub mod kills;
pub mod kind;
pub mod measure;
pub mod page;
pub mod plan;
pub mod report;
pub mod writers;

use std::path::Path;

use lithify::fs::World;
use lithify::{CfOptions, ColumnFamily, Db, Durability, Options};
use serde::{Deserialize, Serialize};

use crate::latency::LatencySummary;
use crate::meter::machine::Machine;
use crate::run::RunError;

/// Time between two syncs of [`Mode::Interval`], milliseconds.
pub const INTERVAL_MS: u32 = 50;

/// A power cut in [`Mode::Interval`] may take what is so many intervals old: the thread that syncs
/// needs a processor, and the sync its time.
const LATE_INTERVALS_MAX: f64 = 10.0;

/// When a commit returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// After the memtables: there is no log.
    None,
    /// After the log is written.
    Buffered,
    /// The same, and the log is synced every [`INTERVAL_MS`].
    Interval,
    /// After the log is synced; only then others see it.
    Sync,
}

impl Mode {
    /// All modes, the least durable first.
    pub const ALL: [Mode; 4] = [Mode::None, Mode::Buffered, Mode::Interval, Mode::Sync];

    /// Its name, as the options have it.
    pub fn name(self) -> &'static str {
        match self {
            Mode::None => "none",
            Mode::Buffered => "buffered",
            Mode::Interval => "interval",
            Mode::Sync => "sync",
        }
    }

    /// The engine's setting.
    pub fn durability(self) -> Durability {
        match self {
            Mode::None => Durability::None,
            Mode::Buffered => Durability::Buffered,
            Mode::Interval => Durability::Interval { milliseconds: INTERVAL_MS },
            Mode::Sync => Durability::Sync,
        }
    }
}

/// What ends the writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Crash {
    /// The process is killed.
    ProcessEnd,
    /// The machine loses what was not synced.
    PowerCut,
}

/// What is done. Everything that can change a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DurabilitySpec {
    /// Numbers of threads that commit at once, for rates and latencies.
    pub writers: Vec<u64>,
    /// How long each of them commits, seconds.
    pub seconds: f64,
    /// Kills in each mode.
    pub kills: u64,
    /// Memory of a process to be killed and of its page cache, MiB; not limited when not given.
    pub memory_limit_mib: Option<u64>,
    /// Power cuts in each mode.
    pub cuts: u64,
    /// Length of a value, bytes; keys have 9.
    pub value_bytes: u64,
    /// Seed of the moments of the crashes.
    pub seed: u64,
    /// Hash of the program.
    pub build: String,
}

/// Rate and latency of commits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CommitFigures {
    /// When a commit returned.
    pub mode: Mode,
    /// Threads that committed.
    pub writers: u64,
    /// How long, seconds.
    pub seconds: f64,
    /// Commits, each of one row.
    pub commits: u64,
    /// Groups in which they were logged.
    pub groups: u64,
    /// Syncs of the log.
    pub syncs: u64,
    /// CPU of the whole process, microseconds.
    pub cpu_us: u64,
    /// Time from the call to its return.
    pub latency: LatencySummary,
}

/// How much crashes took of something.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Loss {
    /// Crashes that took any.
    pub crashes: u64,
    /// Commits lost in all.
    pub commits: u64,
    /// In one crash, at most.
    pub commits_max: u64,
}

impl Loss {
    fn add(&mut self, commits: u64) {
        self.crashes += u64::from(commits > 0);
        self.commits += commits;
        self.commits_max = self.commits_max.max(commits);
    }
}

/// What the crashes of one kind took in one mode.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LossFigures {
    /// When commits returned.
    pub mode: Mode,
    /// What ended the writers.
    pub crash: Crash,
    /// How often.
    pub crashes: u64,
    /// Commits that had returned, in all.
    pub acknowledged: u64,
    /// Of them lost.
    pub acknowledged_lost: Loss,
    /// Lost of those that the reader had seen.
    pub visible_lost: Loss,
    /// How long before the crash the oldest lost commit had returned, milliseconds, at most.
    pub oldest_lost_ms: f64,
    /// Time to open the database after a crash, milliseconds: median and longest.
    pub recovery_ms: [f64; 2],
    /// Crashes after which an older commit of a writer was missing and a newer one there.
    pub holes: u64,
}

impl LossFigures {
    fn new(mode: Mode, crash: Crash) -> LossFigures {
        LossFigures {
            mode,
            crash,
            crashes: 0,
            acknowledged: 0,
            acknowledged_lost: Loss::default(),
            visible_lost: Loss::default(),
            oldest_lost_ms: 0.0,
            recovery_ms: [0.0; 2],
            holes: 0,
        }
    }

    /// What `docs/durability.md` forbids and was found.
    pub fn violation(&self) -> Option<String> {
        let place = || format!("{}, {}", self.mode.name(), crash_name(self.crash));
        if self.holes > 0 {
            return Some(format!("{}: holes after {} crashes", place(), self.holes));
        }
        let lost = self.acknowledged_lost.commits.max(self.visible_lost.commits);
        let late_ms = f64::from(INTERVAL_MS) * LATE_INTERVALS_MAX;
        let is_allowed = match (self.mode, self.crash) {
            (Mode::None, _) | (Mode::Buffered, Crash::PowerCut) => true,
            (Mode::Interval, Crash::PowerCut) => self.oldest_lost_ms <= late_ms,
            _ => lost == 0,
        };
        (!is_allowed).then(|| {
            format!("{}: {lost} commits lost, up to {:.0} ms old", place(), self.oldest_lost_ms)
        })
    }
}

/// Everything that was found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DurabilityRecord {
    /// What was done.
    pub spec: DurabilitySpec,
    /// When it began, seconds since 1970; `None` where that was not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_unix_s: Option<u64>,
    /// On which machine.
    pub machine: Machine,
    /// Name and version of the engine.
    pub engine_name: String,
    /// By mode and number of writers.
    pub commits: Vec<CommitFigures>,
    /// By mode and crash.
    pub losses: Vec<LossFigures>,
}

/// What a crash is called.
pub fn crash_name(crash: Crash) -> &'static str {
    match crash {
        Crash::ProcessEnd => "process killed",
        Crash::PowerCut => "power cut",
    }
}

impl DurabilityRecord {
    /// Promises that were broken.
    pub fn violations(&self) -> Vec<String> {
        self.losses.iter().filter_map(LossFigures::violation).collect()
    }
}

/// A database with a memtable so small that crashes meet flushes and new log segments.
pub(crate) fn open(
    directory: &Path,
    world: World,
    mode: Mode,
    background_threads: usize,
) -> Result<(Db, ColumnFamily), RunError> {
    let options = Options {
        durability: mode.durability(),
        background_threads,
        memory_budget_bytes: 32 << 20,
        memtable_bytes: 1 << 20,
        ..Options::default()
    };
    let failed = |error: lithify::Error| RunError::new(format!("{}: {error}", directory.display()));
    let db = Db::open_in(directory, options, world).map_err(failed)?;
    let family = db.column_family("rows", CfOptions::default()).map_err(failed)?;
    Ok((db, family))
}

/// The name of this kind of run, which the processes to be killed are told too.
const KIND: &str = "durability";

/// Name of the run, and of its files.
pub const NAME: &str = "durability-lithify";
