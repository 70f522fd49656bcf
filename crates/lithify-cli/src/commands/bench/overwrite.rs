//! `lithify bench overwrite`: random overwrites as fast as they go, with throughput over time,
//! gaps, space and memory.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use lithify_lab::adapter::EngineName;
use lithify_lab::adapter::codec::Ladder;
use lithify_lab::adapter::provider::Content;
use lithify_lab::adapter::settings::DurabilityMode;
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::engines::registry;
use lithify_lab::kind::planned::{Planned, PlannedRun};
use lithify_lab::kind::{Expanded, Kind};
use lithify_lab::overwrite::kind::Overwrites;
use lithify_lab::overwrite::{OverwritePlan, OverwriteSpec};

use super::arguments::{ENGINE_HELP, engine_name, range, require_engine};
use super::places::refuse_files;
use super::process::this_program;
use super::ready::alone;
use crate::fault::Fault;

/// `bench overwrite`
#[derive(Debug, Args)]
#[command(after_help = "\
Puts every key once in random order, waits for compaction, opens the database again, overwrites
random keys without a limit for the time, and waits for compaction again. The engine runs in a
process of its own, and so does the driver over an engine that stores nothing: its CPU and memory
are taken off. The report goes to DIR/overwrite-ENGINE.txt, .csv (one line per second), .json and
.html. What was measured by the same program with the same settings is not measured again.

Examples:
  lithify bench overwrite
  lithify bench overwrite --seconds 60 --keys 1000000
  lithify bench overwrite --compression none,none,zstd-3 --clients 4 --durability sync
  lithify bench overwrite --engine null --seconds 5")]
pub struct OverwriteArguments {
    #[arg(long, value_name = "NAME", default_value = "lithify", value_parser = engine_name,
        help = ENGINE_HELP)]
    engine: EngineName,
    /// How long keys are overwritten [1 to 86400]
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = range(1, 86_400))]
    seconds: u64,
    /// Number of keys [1000 to 10000000000]
    #[arg(long, value_name = "N", default_value_t = 3_000_000,
        value_parser = range(1_000, 10_000_000_000))]
    keys: u64,
    /// Length of a key [8 to 1024]
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = range(8, 1024))]
    key_bytes: u64,
    /// Length of a value; values compress to about half [1 to 1000000]
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = range(1, 1_000_000))]
    value_bytes: u64,
    /// Threads that write [1 to 1000]
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = range(1, 1000))]
    clients: u64,
    /// Memory of the engine, MiB [1 to 1000000]
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = range(1, 1_000_000))]
    memory_budget_mib: u64,
    /// Size at which a memtable is flushed, MiB [1 to 4096]
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = range(1, 4096))]
    memtable_mib: u64,
    /// Codecs by distance from the bottom: small levels, the middle one, the bottom
    #[arg(long, value_name = "SMALL,MIDDLE,BOTTOM", default_value = "none,lz4,zstd-1")]
    compression: Ladder,
    /// Threads of flush and compaction [0 to 64]
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = range(0, 64))]
    background_threads: u64,
    /// When a write is acknowledged: sync, buffered or none
    #[arg(long, value_name = "MODE", default_value = "buffered", value_parser = durability)]
    durability: DurabilityMode,
    /// Measure again what was measured
    #[arg(long)]
    fresh: bool,
    /// Where the engine keeps its data meanwhile; beside the results when not given
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where results go
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,
}

fn durability(text: &str) -> Result<DurabilityMode, String> {
    let modes = [DurabilityMode::Sync, DurabilityMode::Buffered, DurabilityMode::None];
    let found = modes.into_iter().find(|mode| mode.name() == text);
    found.ok_or_else(|| "allowed: sync, buffered, none".to_owned())
}

/// Seed of the order of keys, so that runs can be compared.
const SEED: u64 = 301;

impl OverwriteArguments {
    fn spec(&self, build: String) -> Result<OverwriteSpec, Fault> {
        const MIB: u64 = 1 << 20;
        let Ladder { small, middle, bottom } = self.compression;
        if self.memtable_mib > self.memory_budget_mib / 2 {
            return Err(Fault::usage(format!(
                "--memtable-mib {} contradicts --memory-budget-mib {}: it must be at most half",
                self.memtable_mib, self.memory_budget_mib
            )));
        }
        let spec = OverwriteSpec {
            engine: self.engine.clone(),
            settings: EngineSettings {
                memory_budget_bytes: self.memory_budget_mib * MIB,
                block_cache_bytes: 0,
                memtable_bytes: self.memtable_mib * MIB,
                table_bytes: 16 * MIB,
                base_level_bytes: 64 * MIB,
                fanout: 8,
                background_threads: self.background_threads,
                block_bytes: 16 << 10,
                durability: self.durability,
                codec_level0: None,
                codec_small: small,
                codec_middle: middle,
                codec_bottom: bottom,
                direct_reads: false,
                options: BTreeMap::new(),
            },
            keys: self.keys,
            key_bytes: self.key_bytes,
            value_bytes: self.value_bytes,
            clients: self.clients,
            seconds: self.seconds,
            seed: SEED,
            build,
        };
        registry::require(&spec.engine, &spec.settings, Content::Keys).map_err(Fault::usage)?;
        Ok(spec)
    }
}

/// Runs it.
pub fn run(arguments: &OverwriteArguments) -> Result<(), Fault> {
    require_engine(&arguments.engine)?;
    refuse_files([&arguments.results].into_iter().chain(&arguments.data).map(PathBuf::as_path))?;
    let program = this_program(Overwrites::NAME)?;
    let build = program.build().map_err(Fault::failure)?;
    let spec = arguments.spec(build)?;
    let expanded = Expanded { plan: OverwritePlan::new(spec), skipped: Vec::new() };
    let ready: Box<dyn PlannedRun> = Box::new(Planned::<Overwrites>::new(expanded, program));
    alone(&ready, &arguments.results, arguments.data.as_deref(), arguments.fresh, &[])
}
