//! Random overwrites as fast as they go: what an engine's writers see when nothing holds them.
//!
//! Owns: the workload (keys and values of the classic key-value benchmark; every key is put once
//! in random order, then random keys are put again for a time, then background work is waited
//! for), what the engine and the process cost ([`measure`]), and the report ([`report`]). Entries,
//! timeline and samples are those of [`crate::keyvalue`].
//!
//! Promises: the engine runs in a process of its own, opened anew between fill and overwrites, so
//! that its counters are those of the overwrites; the same driver runs over the engine that stores
//! nothing, so that its own cost is known. No latency leaves out a wait.
//!
//! Threads: [`Runner::run`] belongs to one thread; the measuring process has one thread per client
//! and one that samples every second. Does not know experiments, arms or repeats.

pub mod compared;
pub mod figures;
pub mod kind;
pub mod measure;
pub mod page;
pub mod report;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use crate::adapter::settings::EngineSettings;
use crate::adapter::{EngineName, EngineStatistics};
use crate::engines::registry;
use crate::keyvalue::samples::Sample;
use crate::keyvalue::timeline::{Evenness, Throughput};
use crate::meter::PhaseUsage;
use crate::meter::machine::Machine;
use crate::run::process::{Answer, DataDirectory, JobFiles, Program, absolute, run_for_result};
use crate::run::progress::Announcer;
use crate::run::progress::ProgressLine;
use crate::run::{RunError, require_free};

/// What is done, on what. Everything that can change a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverwriteSpec {
    /// On which engine.
    pub engine: EngineName,
    /// With which settings.
    pub settings: EngineSettings,
    /// Number of keys.
    pub keys: u64,
    /// Length of a key, bytes; at least 8.
    pub key_bytes: u64,
    /// Length of a value, bytes.
    pub value_bytes: u64,
    /// Threads that write.
    pub clients: u64,
    /// How long keys are overwritten, seconds.
    pub seconds: u64,
    /// Seed of everything random.
    pub seed: u64,
    /// Hash of the program.
    pub build: String,
}

impl OverwriteSpec {
    /// Key and value bytes of the whole database.
    pub fn logical_bytes(&self) -> u64 {
        self.keys * (self.key_bytes + self.value_bytes)
    }
}

/// What the measuring process is handed on its standard input.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OverwriteJob {
    /// What to do.
    pub spec: OverwriteSpec,
    /// Where the engine may write; exists and is empty.
    pub data_directory: PathBuf,
    /// Where the result goes.
    pub result_path: PathBuf,
    /// The process that waits for it.
    pub parent: u32,
}

/// What the measuring process found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OverwriteResult {
    /// What was done.
    pub spec: OverwriteSpec,
    /// When it began, seconds since 1970; `None` where that was not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_unix_s: Option<u64>,
    /// On which machine.
    pub machine: Machine,
    /// Name and version of the engine.
    pub engine_name: String,
    /// The options that it really ran with.
    pub engine_options: serde_json::Value,
    /// Keys put per second by the fill.
    pub fill_rate: f64,
    /// What the fill cost, background work that it left behind included.
    pub fill: PhaseUsage,
    /// What the clients saw.
    pub throughput: Throughput,
    /// What the overwrites cost.
    pub usage: PhaseUsage,
    /// What the background work cost that they left behind.
    pub settle: PhaseUsage,
    /// Every second, from the first overwrite until nothing was due.
    pub samples: Vec<Sample>,
    /// What the engine said when it was opened for the overwrites.
    pub statistics_before: EngineStatistics,
    /// When they were over.
    pub statistics: EngineStatistics,
    /// When nothing was due any more.
    pub statistics_settled: EngineStatistics,
}

/// The result of a run with that of its driver.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OverwriteRecord {
    /// Over the engine; nothing when only the driver was measured.
    pub result: Option<OverwriteResult>,
    /// Over the engine that stores nothing.
    pub driver: OverwriteResult,
}

/// The driver is measured for so long at most: its figures do not change.
const DRIVER_SECONDS_MAX: u64 = 10;

/// How a run is done.
pub struct Runner<'a> {
    /// What to do.
    pub spec: &'a OverwriteSpec,
    /// The program that does it, with the arguments that make it the measuring process.
    pub program: Program,
    /// Where results go.
    pub results: &'a Path,
    /// Where the engine keeps its data meanwhile; beside the results when not given.
    pub data: Option<&'a Path>,
    /// Set to true, it stops the run.
    pub interrupt: &'a AtomicBool,
}

impl Runner<'_> {
    /// Measures the driver, then the engine; `None` when it was stopped.
    ///
    /// # Errors
    /// Too little room on the disk, a process that failed, results that cannot be written.
    pub fn run(&self, announcer: &mut dyn Announcer) -> Result<Option<OverwriteRecord>, RunError> {
        std::fs::create_dir_all(self.results).map_err(|error| RunError::io(self.results, error))?;
        let driver_spec = OverwriteSpec {
            engine: EngineName::null(),
            seconds: self.spec.seconds.min(DRIVER_SECONDS_MAX),
            ..self.spec.clone()
        };
        let Some(driver) = self.measure(&driver_spec, announcer)? else { return Ok(None) };
        if !registry::stores(&self.spec.engine) {
            return Ok(Some(OverwriteRecord { result: None, driver }));
        }
        let Some(result) = self.measure(self.spec, announcer)? else { return Ok(None) };
        Ok(Some(OverwriteRecord { result: Some(result), driver }))
    }

    /// Runs one measuring process.
    fn measure(
        &self,
        spec: &OverwriteSpec,
        announcer: &mut dyn Announcer,
    ) -> Result<Option<OverwriteResult>, RunError> {
        let name = format!("overwrite-{}", spec.engine.name());
        let allocator = registry::allocator_for(&spec.engine, None);
        let allocator = allocator.map_err(|error| RunError::new(error.to_string()))?;
        allocator.require(&self.program.path)?;
        announcer.begin(&format!("{name}, {} keys, {} s", spec.keys, spec.seconds));
        let data = self.data.unwrap_or(self.results);
        std::fs::create_dir_all(data).map_err(|error| RunError::io(data, error))?;
        if registry::uses_disk(&spec.engine) {
            // Twice the logical size is more than the engine needs at its peak.
            let needed_bytes = spec.logical_bytes() * 2 + (256 << 20);
            require_free(data, needed_bytes, ", or take fewer --keys")?;
        }
        let directory = DataDirectory::create(&data.join(format!("{name}.data")))?;
        let result_path = absolute(&self.results.join(format!("{name}.result.json")))?;
        let log_path = self.results.join(format!("{name}.log"));
        let job = OverwriteJob {
            spec: spec.clone(),
            data_directory: directory.engine_directory()?,
            result_path: result_path.clone(),
            parent: std::process::id(),
        };
        let mut program = self.program.clone();
        program.environment.extend(allocator.environment());
        let mut progress = |line: &ProgressLine| announcer.progress(line);
        let files = JobFiles { result: &result_path, log: &log_path };
        let result: OverwriteResult =
            match run_for_result(&program, &job, &files, self.interrupt, &mut progress)? {
                Answer::Interrupted => return Ok(None),
                Answer::Failed(why) => return Err(RunError::new(format!("{name}: {why}"))),
                Answer::Result(result) => *result,
            };
        for path in [&result_path, &log_path] {
            std::fs::remove_file(path).map_err(|error| RunError::io(path, error))?;
        }
        let mean = Evenness::of(&result.throughput.per_second).mean;
        announcer.end(&format!("{name}: {mean:.0} writes/s"));
        Ok(Some(result))
    }
}
