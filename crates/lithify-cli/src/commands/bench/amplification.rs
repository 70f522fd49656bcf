//! `lithify bench amp`: read, write and space amplification, predicted by formulas and measured.

use std::path::PathBuf;

use clap::Args;
use lithify_lab::adapter::EngineName;
use lithify_lab::adapter::codec::Ladder;
use lithify_lab::adapter::provider::Content;
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::amplification::kind::Amplification;
use lithify_lab::amplification::{AmplificationPlan, AmplificationSpec, Workload};
use lithify_lab::engines::registry;
use lithify_lab::experiment::AnyExperiment;
use lithify_lab::kind::planned::{Planned, PlannedRun};
use lithify_lab::kind::{Expanded, Kind};

use super::arguments::{engine_name, range, require_engine};
use super::places::refuse_files;
use super::process::this_program;
use super::ready::alone;
use crate::fault::Fault;

/// `bench amp`
#[derive(Debug, Args)]
#[command(after_help = "\
Each engine and workload runs in a separate process. It fills a database, waits until nothing is
due, changes rows, and waits again. Then it reads keys that are there, short ranges, and keys that
are not, each kind cold and then warm. Beside it is what the formulas of leveled trees and of
B-trees predict, with the rows, pages, fanout and levels that were measured (docs/lab.md). The
report goes to DIR/amplification.txt, .csv, .json and .html. Cells that were measured by the
same program with the same settings are not measured again.

Examples:
  lithify bench amp
  lithify bench amp --engines lithify,rocksdb --workloads uniform --keys 50000
  lithify bench amp --writes-percent 400 --compression none,lz4,zstd-1")]
pub struct AmplificationArguments {
    /// On which engines, separated by commas; on all that are here when not given
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = engine_name)]
    engines: Option<Vec<EngineName>>,
    /// Which changes: uniform, zipf, linkbench
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = workload,
        default_values = ["uniform", "zipf", "linkbench"])]
    workloads: Vec<Workload>,
    /// Keys; the graph has a quarter of that many nodes [4000 to 1000000000]
    #[arg(long, value_name = "N", default_value_t = 200_000,
        value_parser = range(4_000, 1_000_000_000))]
    keys: u64,
    /// Length of a key [8 to 1024]
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = range(8, 1024))]
    key_bytes: u64,
    /// Length of a value; values compress to about half [1 to 1000000]
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = range(1, 1_000_000))]
    value_bytes: u64,
    /// Writes after the fill, in percent of the keys or nodes [1 to 100000]
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = range(1, 100_000))]
    writes_percent: u64,
    /// The writes end after so many seconds at the latest [1 to 86400]
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = range(1, 86_400))]
    seconds: u64,
    /// Queries of each kind [1 to 10000000]
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = range(1, 10_000_000))]
    queries: u64,
    /// Memory of the engine, MiB [16 to 1000000]
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = range(16, 1_000_000))]
    memory_budget_mib: u64,
    /// Codecs by distance from the bottom, or one for all data
    #[arg(long, value_name = "CODECS", default_value = "none")]
    compression: Ladder,
    /// Measure again what was measured
    #[arg(long)]
    fresh: bool,
    /// Where the engines keep their data meanwhile; beside the results when not given
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where results go
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,
}

fn workload(text: &str) -> Result<Workload, String> {
    let found = Workload::ALL.into_iter().find(|workload| workload.name() == text);
    found.ok_or_else(|| format!("allowed: {}", Workload::ALL.map(Workload::name).join(", ")))
}

/// Seed of everything random, so that runs can be compared.
const SEED: u64 = 20_151_123;

/// Nodes of the graph: each comes with links and counts.
const KEYS_PER_NODE: u64 = 4;

impl AmplificationArguments {
    fn settings(&self) -> EngineSettings {
        const KIB: u64 = 1 << 10;
        let budget = self.memory_budget_mib << 20;
        let settings = EngineSettings {
            memory_budget_bytes: budget,
            block_cache_bytes: budget / 3 * 2,
            memtable_bytes: 1024 * KIB,
            table_bytes: 1024 * KIB,
            base_level_bytes: 4096 * KIB,
            fanout: 8,
            block_bytes: 16 * KIB,
            ..EngineSettings::small()
        };
        settings.with_ladder(self.compression)
    }

    /// The engines, and a line for each that is not here.
    fn engines(&self) -> Result<(Vec<EngineName>, Vec<String>), Fault> {
        if let Some(engines) = &self.engines {
            let settings = self.settings();
            for name in engines {
                require_engine(name)?;
                registry::require(name, &settings, Content::Keys).map_err(Fault::usage)?;
            }
            return Ok((engines.clone(), Vec::new()));
        }
        let (experiment, _) = super::find("amplification", super::EXPERIMENTS.as_ref())?;
        let AnyExperiment::Command(experiment) = experiment else {
            return Err(Fault::usage("experiments/amplification.toml is of another kind"));
        };
        let (mut engines, mut skipped) = (Vec::new(), Vec::new());
        for name in experiment.workload.engines {
            match registry::available_for(&name, Content::Keys) {
                Ok(_) => engines.push(name),
                Err(missing) => skipped.push(format!("{name} is skipped: {missing}")),
            }
        }
        Ok((engines, skipped))
    }

    fn specs(&self, engines: &[EngineName], build: &str) -> Vec<AmplificationSpec> {
        let spec = |workload, engine: &EngineName| AmplificationSpec {
            engine: engine.clone(),
            settings: self.settings(),
            workload,
            rows: match workload {
                Workload::LinkBench => self.keys / KEYS_PER_NODE,
                Workload::Uniform | Workload::Zipf => self.keys,
            },
            key_bytes: self.key_bytes,
            value_bytes: self.value_bytes,
            writes_percent: self.writes_percent,
            seconds_max: self.seconds,
            queries: self.queries,
            seed: SEED,
            build: build.to_owned(),
        };
        let of_workload = |workload: &Workload| {
            let workload = *workload;
            engines.iter().map(move |engine| spec(workload, engine)).collect::<Vec<_>>()
        };
        self.workloads.iter().flat_map(of_workload).collect()
    }
}

/// Runs it.
pub fn run(arguments: &AmplificationArguments) -> Result<(), Fault> {
    let ready = prepare(arguments)?;
    refuse_files([&arguments.results].into_iter().chain(&arguments.data).map(PathBuf::as_path))?;
    alone(&ready, &arguments.results, arguments.data.as_deref(), arguments.fresh, &[])
}

/// Makes it ready.
pub fn prepare(arguments: &AmplificationArguments) -> Result<Box<dyn PlannedRun>, Fault> {
    let (engines, skipped) = arguments.engines()?;
    if engines.is_empty() {
        return Err(Fault::usage(skipped.join("; ")));
    }
    let program = this_program(Amplification::NAME)?;
    let build = program.build().map_err(Fault::failure)?;
    let plan = AmplificationPlan { cells: arguments.specs(&engines, &build) };
    Ok(Box::new(Planned::<Amplification>::new(Expanded { plan, skipped }, program)))
}
