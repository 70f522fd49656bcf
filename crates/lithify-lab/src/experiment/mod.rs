//! Experiment files: a question, a matrix of scales and arms, and the published figures.
//!
//! Owns: the shape of `experiments/*.toml`, reading and checking it ([`Experiment::parse`]), the
//! columns that figures are published in ([`Column`]), file systems by name ([`file_system`]).
//! Everything is checked when the file is read: an [`Experiment`] that exists is possible to run.
//! Each kind of workload has a shape: LinkBench ([`Experiment`]), the loops of the classic
//! key-value benchmark ([`LoopExperiment`]), tables of rows ([`TableExperiment`]) and text in
//! chunks ([`ChunkExperiment`]); [`AnyExperiment`] is any of them.
//!
//! Promises: an error names file, line and key, and for an impossible value the allowed range.
//! Pure: it reads text that it is given. May be called from any thread. Does not run anything.

mod check;
pub mod chunks;
mod column;
pub mod command;
mod conditions;
pub mod file_system;
pub mod loops;
mod parse;
mod published;
pub mod tables;
#[cfg(test)]
mod tests;

pub use chunks::ChunkExperiment;
pub use column::{Column, Phase};
pub use command::CommandExperiment;
pub use conditions::{DeviceRates, DeviceSpeed};
pub use loops::LoopExperiment;
pub use parse::ExperimentError;
pub(crate) use published::applies;
pub use published::{
    Headline, PublishedAgeing, PublishedDrop, PublishedRow, PublishedSeries, PublishedTable,
};
pub use tables::TableExperiment;

use std::collections::BTreeMap;

use file_system::FileSystemSpec;
use serde::{Deserialize, Serialize};

use crate::adapter::EngineName;
use crate::adapter::allocator::Allocator;
use crate::adapter::codec::Codec;
use crate::adapter::settings::DurabilityMode;

/// The experiments that are part of the program: name and text.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("zlib-vs-zstd", include_str!("../../experiments/zlib-vs-zstd.toml")),
    ("lithify-vs-rocksdb", include_str!("../../experiments/lithify-vs-rocksdb.toml")),
    ("compress-or-not", include_str!("../../experiments/compress-or-not.toml")),
    ("compression-options", include_str!("../../experiments/compression-options.toml")),
    ("chunk-length", include_str!("../../experiments/chunk-length.toml")),
    ("partitions", include_str!("../../experiments/partitions.toml")),
    ("page-compression", include_str!("../../experiments/page-compression.toml")),
    ("io-bound-lsm-vs-btree", include_str!("../../experiments/io-bound-lsm-vs-btree.toml")),
    ("amplification", include_str!("../../experiments/amplification.toml")),
    ("headline", include_str!("../../experiments/headline.toml")),
    ("headline-short", include_str!("../../experiments/headline-short.toml")),
    ("db-bench-sequence", include_str!("../../experiments/db-bench-sequence.toml")),
    ("cached-and-uncached", include_str!("../../experiments/cached-and-uncached.toml")),
    ("concurrency", include_str!("../../experiments/concurrency.toml")),
    ("durability", include_str!("../../experiments/durability.toml")),
    ("allocators", include_str!("../../experiments/allocators.toml")),
    ("device-speed", include_str!("../../experiments/device-speed.toml")),
    ("rocksdb-versions", include_str!("../../experiments/rocksdb-versions.toml")),
    ("embedded-engines", include_str!("../../experiments/embedded-engines.toml")),
];

/// An experiment of any kind.
#[derive(Clone, Debug, PartialEq)]
pub enum AnyExperiment {
    /// Over the social graph.
    LinkBench(Box<Experiment>),
    /// Over the loops of the classic key-value benchmark.
    Loops(Box<LoopExperiment>),
    /// Over tables of rows.
    Tables(Box<TableExperiment>),
    /// Over text in chunks.
    Chunks(Box<ChunkExperiment>),
    /// By a command of its own.
    Command(Box<CommandExperiment>),
}

impl AnyExperiment {
    /// Its name on the command line.
    pub fn name(&self) -> &str {
        match self {
            AnyExperiment::LinkBench(experiment) => &experiment.name,
            AnyExperiment::Loops(experiment) => &experiment.name,
            AnyExperiment::Tables(experiment) => &experiment.name,
            AnyExperiment::Chunks(experiment) => &experiment.name,
            AnyExperiment::Command(experiment) => &experiment.name,
        }
    }

    /// Its number among the published ones, `E1` and so on.
    pub fn id(&self) -> Option<&str> {
        match self {
            AnyExperiment::LinkBench(experiment) => experiment.id.as_deref(),
            AnyExperiment::Loops(experiment) => experiment.id.as_deref(),
            AnyExperiment::Tables(experiment) => experiment.id.as_deref(),
            AnyExperiment::Chunks(experiment) => experiment.id.as_deref(),
            AnyExperiment::Command(experiment) => experiment.id.as_deref(),
        }
    }

    /// What it runs.
    pub fn workload(&self) -> WorkloadKind {
        match self {
            AnyExperiment::LinkBench(experiment) => experiment.workload.kind,
            AnyExperiment::Loops(experiment) => experiment.workload.kind,
            AnyExperiment::Tables(experiment) => experiment.workload.kind,
            AnyExperiment::Chunks(experiment) => experiment.workload.kind,
            AnyExperiment::Command(experiment) => experiment.workload.kind,
        }
    }

    /// The number of [`AnyExperiment::id`]; nothing for one that was not published.
    pub fn number(&self) -> Option<u64> {
        self.id()?.trim_start_matches('E').parse().ok()
    }

    /// The engines that it names; an arm that names none runs on Lithify or what is chosen.
    pub fn engines(&self) -> Vec<&EngineName> {
        match self {
            AnyExperiment::LinkBench(experiment) => {
                experiment.arms.iter().filter_map(|arm| arm.engine.as_ref()).collect()
            }
            AnyExperiment::Loops(experiment) => experiment.workload.engines.iter().collect(),
            AnyExperiment::Tables(experiment) => {
                let of_arms = experiment.arms.iter().flat_map(|arm| &arm.engines);
                experiment.workload.engines.iter().chain(of_arms).collect()
            }
            AnyExperiment::Chunks(experiment) => experiment.workload.engines.iter().collect(),
            AnyExperiment::Command(experiment) => experiment.workload.engines.iter().collect(),
        }
    }

    /// Reads and checks the text of an experiment file; `file` names it in errors. The key
    /// `workload.kind` says which kind it is.
    ///
    /// # Errors
    /// Bad syntax, an unknown or missing key, an impossible value: with file, line and key.
    pub fn parse(file: &str, text: &str) -> Result<AnyExperiment, ExperimentError> {
        match parse::kind(text) {
            Some(WorkloadKind::DbBench) => {
                LoopExperiment::parse(file, text).map(|e| AnyExperiment::Loops(Box::new(e)))
            }
            Some(WorkloadKind::Tables) => {
                TableExperiment::parse(file, text).map(|e| AnyExperiment::Tables(Box::new(e)))
            }
            Some(WorkloadKind::Chunks) => {
                ChunkExperiment::parse(file, text).map(|e| AnyExperiment::Chunks(Box::new(e)))
            }
            Some(WorkloadKind::Command) => {
                CommandExperiment::parse(file, text).map(|e| AnyExperiment::Command(Box::new(e)))
            }
            // A kind that cannot be read is an error there, with its place.
            Some(WorkloadKind::LinkBench) | None => {
                Experiment::parse(file, text).map(|e| AnyExperiment::LinkBench(Box::new(e)))
            }
        }
    }
}

/// One experiment: what is asked, of what, and what was published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
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
    pub workload: Workload,
    /// The engine settings that all arms share.
    pub engine: SharedSettings,
    /// The sizes it can be run at, by name.
    #[serde(rename = "scale")]
    pub scales: BTreeMap<String, Scale>,
    /// What is compared, in the order of the tables.
    #[serde(rename = "arm")]
    pub arms: Vec<Arm>,
    /// The published tables.
    #[serde(default)]
    pub published: Vec<PublishedTable>,
    /// The published rates by the number of clients.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<PublishedSeries>,
    /// The published figures by turnover.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ageing: Vec<PublishedAgeing>,
    /// The published ratios of times to drop the database.
    #[serde(default, rename = "drop", skip_serializing_if = "Vec::is_empty")]
    pub drops: Vec<PublishedDrop>,
    /// The published ratios that ours are held against.
    #[serde(default, rename = "headline")]
    pub headlines: Vec<Headline>,
    /// Arms that are compared figure by figure.
    #[serde(default, rename = "pair", skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<Pair>,
    /// What a reader must know.
    pub caveats: Caveats,
}

/// Where published figures come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Title of the publication.
    pub title: String,
    /// Who published it, and where.
    pub author: String,
    /// When: year-month-day.
    pub date: String,
    /// On which machine and with which software.
    pub setup: String,
}

/// What is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// `linkbench`.
    pub kind: WorkloadKind,
    /// Its profile.
    pub profile: Profile,
    /// Repeat `r` (from 0) runs with seed `seed + r`; all arms of a repeat share it.
    pub seed: u64,
    /// After the queries, whose rate is the most that this number of clients reaches, requests
    /// arrive at these percentages of it, whether or not earlier ones were answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_loop_percent: Vec<u64>,
    /// At the end of a cell its database is dropped, beside other clients.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drop_database: bool,
}

/// The benchmarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkloadKind {
    /// The social graph.
    LinkBench,
    /// The loops of the classic key-value benchmark.
    DbBench,
    /// Rows of tables: load, aggregate, updates.
    Tables,
    /// Text in chunks: flush, scan, codec calls.
    Chunks,
    /// Whatever a command of its own does.
    Command,
}

impl WorkloadKind {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            WorkloadKind::LinkBench => "linkbench",
            WorkloadKind::DbBench => "dbbench",
            WorkloadKind::Tables => "tables",
            WorkloadKind::Chunks => "chunks",
            WorkloadKind::Command => "command",
        }
    }
}

/// The profiles of LinkBench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Profile {
    /// Mix, distributions and quirks of the 2013 edition.
    #[serde(rename = "lb2013")]
    Lb2013,
    /// The data of the 2013 edition with its rules repaired.
    #[serde(rename = "lb2013-clean")]
    Lb2013Clean,
    /// Mix, distributions and rules of the 2020 edition.
    #[serde(rename = "lb2020")]
    Lb2020,
}

/// Engine settings that all arms share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedSettings {
    /// Codec of level 0 and of levels at distance 2 and more from the bottom.
    pub codec_small: Codec,
    /// Codec of the level above the bottom.
    pub codec_middle: Codec,
    /// Raw bytes of a data block, KiB.
    pub block_kib: u64,
    /// When a write is acknowledged.
    pub durability: DurabilityMode,
}

/// One size that an experiment can be run at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scale {
    /// What it shows.
    pub about: String,
    /// Nodes of the graph.
    pub nodes: u64,
    /// Threads that load links (nodes are loaded by one more).
    pub loaders: u64,
    /// Threads of the query phase.
    pub requesters: u64,
    /// Threads of one query phase after another over the same data, ascending; the last one has
    /// `requesters`. Empty for that one alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<u64>,
    /// Loads each arm once more with each of these numbers of threads, ascending, and queries
    /// nothing after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load_clients: Vec<u64>,
    /// Speed of the device of arms that say nothing themselves.
    #[serde(default, skip_serializing_if = "DeviceSpeed::is_fast")]
    pub device: DeviceSpeed,
    /// Queries before the measured ones, seconds.
    pub warmup_seconds: u64,
    /// Measured queries, seconds; at most, where there are `turnovers`.
    pub query_seconds: u64,
    /// Write operations per loaded node, since the load, ascending: the rate and the size are taken
    /// at each, and the queries end at the last. Empty for queries that end by time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turnovers: Vec<f64>,
    /// Queries against the null engine, which measure the driver alone, seconds.
    pub calibration_seconds: u64,
    /// Runs of each arm.
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
    /// Free disk that one arm needs, MiB.
    pub disk_mib: u64,
    /// Memory that the operating system must hold the engine to, page cache of its files
    /// included, MiB; the driver's own comes on top. `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit_mib: Option<u64>,
    /// What the scale claims, to be proved by gates; `None` claims nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claims: Option<Claim>,
}

/// What an engine is told about sizes, in the terms that all kinds of scales share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineSizes {
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

impl Scale {
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

/// What a scale claims of its query phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Claim {
    /// The device limits it: the database is several times the memory.
    IoBound,
    /// The page cache holds the database.
    Cached,
}

impl Arm {
    /// Whether it belongs to scales that claim `claims`.
    pub fn belongs_to(&self, claims: Option<Claim>) -> bool {
        self.claims.is_none() || claims.is_none() || self.claims == claims
    }
}

impl Claim {
    /// Its name in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Claim::IoBound => "IO-bound",
            Claim::Cached => "cached",
        }
    }
}

/// One setting that is compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arm {
    /// Its name in tables and on the command line.
    pub name: String,
    /// On which engine; on Lithify when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineName>,
    /// Codec of level 0 alone; that of the small levels when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level0: Option<Codec>,
    /// Codec of the small levels, instead of the shared one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub small: Option<Codec>,
    /// Codec of the level above the bottom, instead of the shared one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub middle: Option<Codec>,
    /// Codec of the bottom level.
    pub bottom: Codec,
    /// What only its engine knows, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// It belongs to scales that claim this, and to those that claim nothing; to all when not
    /// given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claims: Option<Claim>,
    /// Speed of the device under its data, instead of the scale's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceSpeed>,
    /// The driver writes every change into a log of its own too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub second_log: bool,
    /// Every delete is a plain tombstone, on engines that know a cheaper one for keys that were put
    /// once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plain_deletes: bool,
    /// The file system that its data lie on, made for it; the one that is there when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_system: Option<FileSystemSpec>,
    /// What it shows needs so many hardware threads; with fewer its row says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware_threads: Option<u64>,
    /// Where its process gets its memory from; the program's own when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocator: Option<Allocator>,
    /// What the published tables call it, where that differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_as: Option<String>,
}

/// Two arms whose figures are set in relation, all of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// Above the line.
    pub arm: String,
    /// Below the line.
    pub base: String,
    /// A/A control: measures both arms a second time in every repeat. What the two runs of an arm
    /// differ by is noise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub control: bool,
}

/// What a reader must know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Caveats {
    /// How the figures may be read.
    pub notes: Vec<String>,
    /// What of the publication is not reproduced.
    pub not_reproduced: Vec<String>,
}

impl Experiment {
    /// Reads and checks the text of an experiment file; `file` names it in errors.
    ///
    /// # Errors
    /// Bad syntax, an unknown or missing key, an impossible value: with file, line and key.
    pub fn parse(file: &str, text: &str) -> Result<Experiment, ExperimentError> {
        parse::parse(file, text, check::check)
    }

    /// The arm of that name.
    pub fn arm(&self, name: &str) -> Option<&Arm> {
        self.arms.iter().find(|arm| arm.name == name)
    }
}
