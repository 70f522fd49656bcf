//! What a run does and what it answers: steps, their settings, their results.

use serde::{Deserialize, Serialize};

use super::histogram::Distribution;
use super::oracle::{Checkpoint, Verification};
use super::step::StepSpec;
use crate::adapter::allocator::Allocator;
use crate::adapter::settings::EngineSettings;
use crate::adapter::{Capabilities, EngineName, EngineStatistics};
use crate::keyvalue::benchmark::Benchmark;
use crate::keyvalue::samples::Sample;
use crate::keyvalue::timeline::Throughput;
use crate::latency::LatencySummary;
use crate::meter::PhaseUsage;
use crate::meter::machine::Machine;
use crate::run::cells::Job;

/// Version of the JSON of specs and results.
pub const SCHEMA: u32 = 1;

/// As the original's scripts have it.
pub const DEFAULT_BATCH_SIZE: u64 = 10;

/// For results from before there were batches.
fn default_batch_size() -> u64 {
    DEFAULT_BATCH_SIZE
}

/// What is done, on what. Everything that can change a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DbSpec {
    /// [`SCHEMA`].
    pub schema: u32,
    /// On which engine.
    pub engine: EngineName,
    /// With which settings.
    pub settings: EngineSettings,
    /// The steps, in order.
    pub benchmarks: Vec<StepSpec>,
    /// Who gives it its memory.
    pub allocator: Allocator,
    /// Number of keys that there are, and of operations of a client unless told otherwise.
    pub num: u64,
    /// Operations of a reading client; `num` when not given.
    pub reads: Option<u64>,
    /// Operations of a writing client; `num` when not given.
    pub writes: Option<u64>,
    /// Length of a key, bytes; at least 8.
    pub key_bytes: u64,
    /// Length of a value, bytes.
    pub value_bytes: u64,
    /// Share of a value that is random; the rest repeats it.
    pub compression_ratio: f64,
    /// Every value is made anew; otherwise they are cut from 1 MiB, as the original's are.
    #[serde(default)]
    pub fresh_values: bool,
    /// Clients.
    pub threads: u64,
    /// How long a step runs, seconds; 0 for a number of operations instead.
    pub duration_seconds: u64,
    /// Rows visited from a seek on.
    pub seek_nexts: u64,
    /// Those rows are visited in descending order.
    #[serde(default)]
    pub reverse_iterator: bool,
    /// Keys that multireadrandom reads in one call.
    #[serde(default = "default_batch_size")]
    pub batch_size: u64,
    /// Limit on what is written, keys and values, bytes per second; 0 for none. Where one writer
    /// works beside readers it limits that one, elsewhere all writers together.
    pub write_rate_bytes_per_s: u64,
    /// Clients take this and the following numbers as their seeds.
    pub seed: u64,
    /// Start with the database that is there.
    pub use_existing: bool,
    /// Wait for background work after each step that writes, and measure it.
    pub settle: bool,
    /// Hash of the program.
    pub build: String,
}

impl DbSpec {
    /// Key and value bytes of one entry.
    pub fn entry_bytes(&self) -> u64 {
        self.key_bytes + self.value_bytes
    }

    /// Operations of one client of a step; `None` when the time decides.
    pub fn operations(&self, benchmark: Benchmark) -> Option<u64> {
        let own = match benchmark {
            // Beyond the last key there is none that anybody would look for.
            Benchmark::FillSeq => self.writes.map(|writes| writes.min(self.num)),
            _ if benchmark.is_write() => self.writes,
            _ => self.reads,
        };
        // The time does not end a sequential fill: it would leave a part of the keys.
        let timed = self.duration_seconds > 0 && benchmark != Benchmark::FillSeq;
        (!timed).then(|| own.unwrap_or(self.num))
    }
}

/// Why a sequence is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Over the engine that stores nothing: what the driver itself costs.
    Driver,
    /// One side of a pair.
    Measure,
    /// A side once more in the same repeat, for the A/A control: what its two runs differ by is noise.
    Control,
}

/// One sequence in one process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DbCell {
    /// Name, unique in its run; also of its files.
    pub id: String,
    /// What it is for.
    pub role: Role,
    /// Repeat, from 0.
    pub repeat: u64,
    /// What is done.
    pub spec: DbSpec,
}

impl DbCell {
    /// The name of this measurement: a hash of the whole description.
    pub fn hash(&self) -> String {
        // The fields are written in declaration order, so equal cells give equal text.
        let text = serde_json::to_string(self).unwrap_or_default();
        format!("{:016x}", twox_hash::XxHash3_64::oneshot(text.as_bytes()))
    }
}

/// What the measuring process is handed on its standard input.
pub type DbJob = Job<DbCell>;

/// Latencies of one kind of operation: the summary, and as the original prints them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OperationLatency {
    /// In nanoseconds with three digits.
    pub summary: LatencySummary,
    /// In classic buckets.
    pub distribution: Distribution,
}

/// Operations of one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Seconds since the first operation.
    pub elapsed_s: f64,
    /// Seconds since the interval before.
    pub seconds: f64,
    /// Operations of the clients.
    pub operations: u64,
    /// Writes of the writer beside them.
    pub background_writes: u64,
}

/// CPU of the laboratory's own threads, microseconds, the engine's work on them included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadCpu {
    /// Of the clients.
    pub clients_us: u64,
    /// Of the writer beside them.
    pub background_us: u64,
    /// Of the thread that samples, which no client pays for.
    pub sampler_us: u64,
}

/// What a step with clients found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StepResult {
    /// Which, with the settings that it had for itself.
    #[serde(rename = "benchmark")]
    pub spec: StepSpec,
    /// Operations of the clients, the writer beside them left out.
    pub operations: u64,
    /// Reads or seeks that found their key.
    pub found: u64,
    /// What that number must be, where it can be told.
    pub found_expected: Option<u64>,
    /// Keys and values that clients wrote, found or visited, bytes.
    pub bytes: u64,
    /// From the first client's start to the last one's end, seconds.
    pub elapsed_s: f64,
    /// The clients' times added up, seconds.
    pub client_seconds: f64,
    /// Writes of the writer beside the clients.
    pub background_writes: u64,
    /// Keys and values written by anybody, bytes.
    pub ingested_bytes: u64,
    /// Latencies of the clients.
    pub latency: OperationLatency,
    /// Latencies of the writer beside them.
    pub background_latency: Option<OperationLatency>,
    /// What the writers saw over time; `None` when nobody wrote.
    pub throughput: Option<Throughput>,
    /// Operations of every second.
    pub intervals: Vec<Interval>,
    /// What was read up to some numbers of operations, per client.
    pub checkpoints: Vec<Vec<Checkpoint>>,
    /// Names the contents of the database that was read, when they are the same on any engine.
    pub contents: Option<u64>,
    /// CPU of the laboratory's threads.
    pub thread_cpu: ThreadCpu,
    /// What the step cost.
    pub usage: PhaseUsage,
    /// What the background work cost that it left behind; `None` when it was not waited for.
    pub settle: Option<PhaseUsage>,
    /// CPU of the sampling thread in it, microseconds.
    pub settle_sampler_us: u64,
    /// Every second until nothing was due.
    pub samples: Vec<Sample>,
    /// What the engine said before.
    pub statistics_before: EngineStatistics,
    /// When the clients were done.
    pub statistics: EngineStatistics,
    /// When nothing was due any more; the same as before when that was not waited for.
    pub statistics_settled: EngineStatistics,
}

/// What a step without clients took.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CallResult {
    /// Which.
    pub benchmark: Benchmark,
    /// What it cost.
    pub usage: PhaseUsage,
    /// What the engine says that it did, where it can do it in several ways.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub done: String,
}

/// The result of a step.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// Of one with clients.
    Loop(Box<StepResult>),
    /// Of one without.
    Call(Box<CallResult>),
}

impl Step {
    /// Which.
    pub fn benchmark(&self) -> Benchmark {
        match self {
            Step::Loop(step) => step.spec.benchmark,
            Step::Call(call) => call.benchmark,
        }
    }
}

/// What the measuring process found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DbResult {
    /// [`DbCell::hash`] of `cell`.
    pub hash: String,
    /// What was done.
    pub cell: DbCell,
    /// When it began, seconds since 1970.
    pub started_unix_s: u64,
    /// On which machine.
    pub machine: Machine,
    /// Name and version of the engine.
    pub engine_name: String,
    /// What the engine can do by itself.
    pub capabilities: Capabilities,
    /// The options that it really ran with.
    pub engine_options: serde_json::Value,
    /// The steps.
    pub steps: Vec<Step>,
    /// What was in the database at the end; `None` for an engine that stores nothing.
    pub verification: Option<Verification>,
}

impl DbResult {
    /// The steps with clients, in order.
    pub fn loops(&self) -> impl Iterator<Item = &StepResult> {
        self.steps.iter().filter_map(|step| match step {
            Step::Loop(step) => Some(&**step),
            Step::Call(_) => None,
        })
    }
}
