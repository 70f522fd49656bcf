//! `lithify bench db`: the loops of the classic key-value benchmark, on one engine or in pairs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use lithify_lab::adapter::EngineName;
use lithify_lab::adapter::allocator::Allocator;
use lithify_lab::adapter::codec::{Codec, Ladder};
use lithify_lab::adapter::provider::Content;
use lithify_lab::adapter::settings::DurabilityMode;
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::dbbench::kind::DbBench;
use lithify_lab::dbbench::plan::{Controls, DbPlan};
use lithify_lab::dbbench::sequence::{self, Item};
use lithify_lab::dbbench::spec::{DEFAULT_BATCH_SIZE, DbSpec, SCHEMA};
use lithify_lab::dbbench::step::{BATCH_SIZE_MAX, StepSpec, switch};
use lithify_lab::dbbench::{original, report};
use lithify_lab::engines::registry;
use lithify_lab::kind::Kind;
use lithify_lab::kind::planned::{Planned, PlannedRun};
use lithify_lab::linkbench::plan::engines_here;
use lithify_lab::run::progress::Announcer;
use lithify_lab::run::store::write_files;

use super::super::sizes::bytes;
use super::arguments::{engine_name, range, require_engine};
use super::dry_run;
use super::places::refuse_files;
use super::process::this_program;
use super::ready::{CellState, How, Measured, Ready, alone, stopped};
use super::screen::shown_beside;
use crate::fault::{Fault, engine_text, print, refuse_repetition};

/// `bench db`
#[derive(Debug, Args)]
#[command(after_help = "\
Benchmarks: fillseq, fillrandom, overwrite, readrandom, multireadrandom, readwhilewriting,
seekrandom, seekrandomwhilewriting; and the calls flush, waitforcompaction, settle. The sequence of
the original's comparison script is standard; standard-wal is the same with a log for its fill. A
sequence runs over one database in one process; a fill begins with an empty one. Options have
the names of the original, with - or _ between the words. Keys, values and random numbers are
the original's: the same flags and seed visit the same keys.

A step may have settings behind colons: use-direct-reads, mb-write-per-sec=N,
benchmark-write-rate-limit=N, seek-nexts=N, reverse-iterator, batch-size=N, writes=N, disable-wal,
duration=N. Other settings are those of the command line. An example is
readwhilewriting:mb-write-per-sec=10,readrandom:use-direct-reads:duration=30.

With several engines every repeat runs each in turn. --control is the A/A control: it runs each a
second time, and what its two runs differ by is noise. Verdicts need three repeats; without
--control more are needed. With several --compression every repeat does so for each, and the
report has a table for each. Before the tables come the targets that the first engine misses,
the farthest behind first. Results go to DIR/NAME.txt, .csv, .tsv, .json
and .html, raw results and one line per second to DIR/runs/NAME. Ctrl-C keeps what is measured,
and the same command continues. docs/db-bench.md explains every column.

Examples:
  lithify bench db
  lithify bench db --benchmarks fillseq,readrandom --num 100000
  lithify bench db --engine lithify,rocksdb --repeats 3 --dry-run
  lithify bench db --benchmarks fillrandom,overwrite,waitforcompaction,readwhilewriting \\
      --duration 60 --mb-write-per-sec 10 --threads 2
  lithify bench db --engine lithify,rocksdb --repeats 5 --control --compression lz4
  lithify bench db --engine lithify,rocksdb --repeats 5 --control \\
      --compression none,none,lz4 --compression lz4 --compression none,lz4,zstd-1
  lithify bench db --benchmarks \\
fillrandom,readrandom,readrandom:use-direct-reads,readwhilewriting:mb-write-per-sec=10
  lithify bench db --engine lithify,rocksdb --allocator jemalloc
  lithify bench db --benchmarks fillrandom,overwrite --option space_slack_percent=100
  lithify bench db --engine lithify,rocksdb,leveldb --benchmarks standard-wal --duration 15
  lithify bench db --benchmarks fillrandom --db /tmp/databases
  lithify bench db --benchmarks seekrandom --seek-nexts 10 --db /tmp/databases --use-existing")]
pub struct DbArguments {
    /// Which steps, in order, with settings of their own
    #[arg(
        long,
        value_name = "STEPS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "fillseq,fillrandom,overwrite,readrandom,readwhilewriting,seekrandom"
    )]
    benchmarks: Vec<Item>,
    /// On which engines: names of `bench engines`; the first is compared with the others
    #[arg(long, value_name = "NAMES", value_delimiter = ',', num_args = 1,
        default_value = "lithify", value_parser = engine_name)]
    engine: Vec<EngineName>,
    /// Runs of each engine, in turn [1 to 100]
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = range(1, 100))]
    repeats: u64,
    /// Run every engine twice in every repeat: the A/A control
    #[arg(long)]
    control: bool,
    /// The control with the first N of several --compression only [1 to 1000]
    #[arg(long, value_name = "N", requires = "control", value_parser = range(1, 1000))]
    control_ladders: Option<u64>,
    /// The control in the first N repeats only [1 to 100]
    #[arg(long, value_name = "N", requires = "control", value_parser = range(1, 100))]
    control_repeats: Option<u64>,
    #[command(flatten)]
    workload: Workload,
    #[command(flatten)]
    tuning: Tuning,
    /// Keep the databases here, one directory per engine, for runs with --use-existing
    #[arg(long, value_name = "DIR")]
    db: Option<PathBuf>,
    /// Start with the databases in --db; a fill adds to them
    #[arg(long, aliases = ["use_existing", "use-existing-db", "use_existing_db"],
        value_name = "true|false", num_args = 0..=1,
        require_equals = true, default_value = "false",
        default_missing_value = "true", value_parser = flag, hide_possible_values = true)]
    use_existing: bool,
    /// Name of the run and of its files; db-ENGINES when not given
    #[arg(long, value_name = "NAME", value_parser = run_name)]
    name: Option<String>,
    /// Where results go
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,
    /// Where engines keep their data meanwhile; beside the results when not given
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Measure again what was measured
    #[arg(long)]
    fresh: bool,
    /// Only say which arms there are, how long they take and how much disk they need
    #[arg(long)]
    dry_run: bool,
    /// What the original printed for the same steps, to be shown beside the first engine; found
    /// keys must be equal
    #[arg(long, value_name = "FILE")]
    original: Option<PathBuf>,
}

/// What the clients do.
#[derive(Debug, Args)]
struct Workload {
    /// Number of keys, and of operations of a client [100 to 10000000000]
    #[arg(long, value_name = "N", default_value_t = 1_000_000,
        value_parser = range(100, 10_000_000_000))]
    num: u64,
    /// Operations of a reading client, instead of --num [1 to 10000000000]
    #[arg(long, value_name = "N", value_parser = range(1, 10_000_000_000))]
    reads: Option<u64>,
    /// Operations of a writing client, instead of --num [1 to 10000000000]
    #[arg(long, value_name = "N", value_parser = range(1, 10_000_000_000))]
    writes: Option<u64>,
    /// Length of a key [8 to 1024]
    #[arg(long, alias = "key_size", value_name = "BYTES", default_value_t = 20,
        value_parser = bytes(8, 1024))]
    key_size: u64,
    /// Length of a value [1 to 1000000]
    #[arg(long, alias = "value_size", value_name = "BYTES", default_value_t = 400,
        value_parser = bytes(1, 1_000_000))]
    value_size: u64,
    /// Share of a value that is random; the rest repeats it [0.01 to 1]
    #[arg(long, alias = "compression_ratio", value_name = "SHARE", default_value_t = 0.5,
        value_parser = share)]
    compression_ratio: f64,
    /// Make every value anew: those of the original come again after 1 MiB, which a dictionary or a
    /// large window learns
    #[arg(long, value_name = "true|false", num_args = 0..=1,
        require_equals = true, default_value = "false",
        default_missing_value = "true", value_parser = flag, hide_possible_values = true)]
    fresh_values: bool,
    /// Clients [1 to 1000]
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = range(1, 1000))]
    threads: u64,
    /// How long each step runs but fillseq; 0 for a number of operations [0 to 86400]
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = range(0, 86_400))]
    duration: u64,
    /// Rows visited from each seek on [0 to 1000000]
    #[arg(long, alias = "seek_nexts", value_name = "N", default_value_t = 10,
        value_parser = range(0, 1_000_000))]
    seek_nexts: u64,
    /// Visit them in descending order
    #[arg(long, alias = "reverse_iterator", value_name = "true|false", num_args = 0..=1,
        require_equals = true,
        default_value = "false", default_missing_value = "true", value_parser = flag,
        hide_possible_values = true)]
    reverse_iterator: bool,
    /// Keys that multireadrandom reads in one call [1 to 100000]
    #[arg(long, alias = "batch_size", value_name = "N", default_value_t = DEFAULT_BATCH_SIZE,
        value_parser = range(1, BATCH_SIZE_MAX))]
    batch_size: u64,
    /// Limit on what is written, keys and values; 0 for none [0 to 1000000000000]
    #[arg(long, alias = "benchmark_write_rate_limit", value_name = "BYTES/S",
        default_value_t = 0, value_parser = bytes(0, 1_000_000_000_000))]
    benchmark_write_rate_limit: u64,
    /// The same in MiB/s [0 to 1000000]
    #[arg(long, alias = "mb_write_per_sec", value_name = "MIB/S",
        conflicts_with = "benchmark_write_rate_limit", value_parser = range(0, 1_000_000))]
    mb_write_per_sec: Option<u64>,
    /// Seed of the first client, less 1; the others follow [0 to 1000000000000]
    #[arg(long, value_name = "N", default_value_t = 301, value_parser = range(0, 1_000_000_000_000))]
    seed: u64,
    /// Do not wait for background work after each step that writes
    #[arg(long)]
    no_settle: bool,
}

/// What the engines are told.
#[derive(Debug, Args)]
struct Tuning {
    /// Codecs by distance from the bottom, small levels, the middle one, the bottom, or one for
    /// all; given several times, each is measured
    #[arg(long, value_name = "SMALL,MIDDLE,BOTTOM", default_value = "none,lz4,zstd-1")]
    compression: Vec<Ladder>,
    /// Who gives all processes their memory: system (what the program has) or jemalloc (the
    /// system's libjemalloc.so.2, loaded before the C library). When not given, it is system, but
    /// jemalloc for an engine that is measured with it only
    #[arg(long, value_name = "NAME")]
    allocator: Option<Allocator>,
    /// Read tables past the system's page cache
    #[arg(long, alias = "use_direct_reads", value_name = "true|false", num_args = 0..=1,
        require_equals = true,
        default_value = "false", default_missing_value = "true", value_parser = flag,
        hide_possible_values = true)]
    use_direct_reads: bool,
    /// Memory of the engine as a whole, MiB [1 to 1000000]
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = range(1, 1_000_000))]
    memory_budget_mib: u64,
    /// The block cache; the memory budget is then this and two memtables [1048576 to 2^40]
    #[arg(long, alias = "cache_size", value_name = "BYTES",
        conflicts_with = "memory_budget_mib", value_parser = bytes(1 << 20, 1 << 40))]
    cache_size: Option<u64>,
    /// Size at which a memtable is flushed [1048576 to 2^32]
    #[arg(long, alias = "write_buffer_size", value_name = "BYTES", default_value_t = 16 << 20,
        value_parser = bytes(1 << 20, 1 << 32))]
    write_buffer_size: u64,
    /// Size of a table file [1048576 to 2^32]
    #[arg(long, alias = "target_file_size_base", value_name = "BYTES",
        default_value_t = 16 << 20, value_parser = bytes(1 << 20, 1 << 32))]
    target_file_size_base: u64,
    /// Largest size of the first level below level 0 [1048576 to 2^40]
    #[arg(long, alias = "max_bytes_for_level_base", value_name = "BYTES",
        default_value_t = 64 << 20, value_parser = bytes(1 << 20, 1 << 40))]
    max_bytes_for_level_base: u64,
    /// Size of a level in units of the one above [2 to 100]
    #[arg(long, alias = "max_bytes_for_level_multiplier", value_name = "N", default_value_t = 8,
        value_parser = range(2, 100))]
    max_bytes_for_level_multiplier: u64,
    /// Raw bytes of a data block [1024 to 1048576]
    #[arg(long, alias = "block_size", value_name = "BYTES", default_value_t = 8192,
        value_parser = bytes(1024, 1 << 20))]
    block_size: u64,
    /// Threads of flush and compaction [1 to 64]
    #[arg(long, alias = "max_background_jobs", value_name = "N", default_value_t = 2,
        value_parser = range(1, 64))]
    max_background_jobs: u64,
    /// An option of Lithify by its name, beside those that all engines have; given several times, all are
    /// set. The names are in docs/options.md
    #[arg(long, value_name = "NAME=VALUE", value_parser = own_option)]
    option: Vec<(String, String)>,
    /// A write is acknowledged when it is on the device
    #[arg(long, value_name = "true|false", num_args = 0..=1,
        require_equals = true, default_value = "false",
        default_missing_value = "true", value_parser = flag, hide_possible_values = true)]
    sync: bool,
    /// Write no log
    #[arg(long, alias = "disable_wal", value_name = "true|false", num_args = 0..=1,
        require_equals = true,
        default_value = "false", default_missing_value = "true", value_parser = flag,
        hide_possible_values = true)]
    disable_wal: bool,
}

fn flag(text: &str) -> Result<bool, String> {
    switch(text).ok_or_else(|| "allowed: 1, true, 0, false".to_owned())
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.01..=1.0).contains(share));
    share.ok_or_else(|| "allowed: 0.01 to 1".to_owned())
}

fn own_option(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = pair.ok_or_else(|| "allowed: NAME=VALUE".to_owned())?;
    registry::check_own_option(name, value).map_err(|error| engine_text(&error))?;
    Ok((name.to_owned(), value.to_owned()))
}

fn run_name(text: &str) -> Result<String, String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let good = !text.is_empty() && text.chars().all(allowed) && !text.starts_with('.');
    good.then(|| text.to_owned())
        .ok_or_else(|| "allowed: letters, digits, - _ and . but not first".to_owned())
}

impl Tuning {
    /// What an engine is told beside what all of them are.
    fn options_of(&self, engine: &EngineName) -> BTreeMap<String, String> {
        match registry::is_lithify(engine) {
            true => self.option.iter().cloned().collect(),
            false => BTreeMap::new(),
        }
    }

    fn settings(&self) -> Result<EngineSettings, Fault> {
        // The others follow in the plan; there is one at least, by default.
        let Some(Ladder { small, middle, bottom }) = self.compression.first().copied() else {
            return Err(Fault::usage("--compression names no codecs"));
        };
        let memory_budget_bytes = match self.cache_size {
            Some(cache_bytes) => cache_bytes + 2 * self.write_buffer_size,
            None => self.memory_budget_mib << 20,
        };
        if self.write_buffer_size > memory_budget_bytes / 2 {
            return Err(Fault::usage(format!(
                "--write-buffer-size {} contradicts --memory-budget-mib {}: it must be at most half",
                self.write_buffer_size, self.memory_budget_mib
            )));
        }
        let durability = match (self.sync, self.disable_wal) {
            (true, true) => return Err(Fault::usage("--sync contradicts --disable-wal")),
            (true, false) => DurabilityMode::Sync,
            (false, true) => DurabilityMode::None,
            (false, false) => DurabilityMode::Buffered,
        };
        Ok(EngineSettings {
            memory_budget_bytes,
            block_cache_bytes: self.cache_size.unwrap_or(0),
            memtable_bytes: self.write_buffer_size,
            table_bytes: self.target_file_size_base,
            base_level_bytes: self.max_bytes_for_level_base,
            fanout: self.max_bytes_for_level_multiplier,
            background_threads: self.max_background_jobs,
            block_bytes: self.block_size,
            durability,
            codec_level0: None,
            codec_small: small,
            codec_middle: middle,
            codec_bottom: bottom,
            direct_reads: self.use_direct_reads,
            options: BTreeMap::new(),
        })
    }
}

impl DbArguments {
    fn controls(&self) -> Controls {
        if !self.control {
            return Controls::NONE;
        }
        Controls {
            ladders: self.control_ladders.unwrap_or(u64::MAX),
            repeats: self.control_repeats.unwrap_or(u64::MAX),
        }
    }

    fn steps(&self) -> Vec<StepSpec> {
        sequence::expand(&self.benchmarks, self.workload.num, self.workload.threads)
    }

    fn specs(&self, build: &str) -> Result<Vec<DbSpec>, Fault> {
        let settings = self.tuning.settings()?;
        let workload = &self.workload;
        let rate_bytes_per_s = match workload.mb_write_per_sec {
            Some(mib_per_s) => mib_per_s << 20,
            None => workload.benchmark_write_rate_limit,
        };
        let allocator = |engine: &EngineName| {
            registry::allocator_for(engine, self.tuning.allocator).map_err(Fault::usage)
        };
        let spec = |engine: &EngineName| -> Result<DbSpec, Fault> {
            Ok(DbSpec {
                schema: SCHEMA,
                engine: engine.clone(),
                settings: EngineSettings {
                    options: self.tuning.options_of(engine),
                    ..settings.clone()
                },
                benchmarks: self.steps(),
                allocator: allocator(engine)?,
                num: workload.num,
                reads: workload.reads,
                writes: workload.writes,
                key_bytes: workload.key_size,
                value_bytes: workload.value_size,
                compression_ratio: workload.compression_ratio,
                fresh_values: workload.fresh_values,
                threads: workload.threads,
                duration_seconds: workload.duration,
                seek_nexts: workload.seek_nexts,
                reverse_iterator: workload.reverse_iterator,
                batch_size: workload.batch_size,
                write_rate_bytes_per_s: rate_bytes_per_s,
                seed: workload.seed,
                use_existing: self.use_existing,
                settle: !workload.no_settle,
                build: build.to_owned(),
            })
        };
        let specs = self.engine.iter().map(spec).collect::<Result<Vec<DbSpec>, Fault>>()?;
        for spec in &specs {
            for ladder in &self.tuning.compression {
                for step in &spec.benchmarks {
                    let settings = step.of(spec).settings.with_ladder(*ladder);
                    registry::require(&spec.engine, &settings, Content::Keys).map_err(|error| {
                        let hint = self.hint_of_codecs(&settings);
                        Fault::usage(format!("{step}: {error}{hint}"))
                    })?;
                }
            }
        }
        Ok(specs)
    }

    /// What to do about a codec that one of several engines lacks: all may have none.
    fn hint_of_codecs(&self, settings: &EngineSettings) -> &'static str {
        let plain = settings.clone().with_ladder(Ladder {
            small: Codec::NONE,
            middle: Codec::NONE,
            bottom: Codec::NONE,
        });
        let has_none = |engine| registry::require(engine, &plain, Content::Keys).is_ok();
        match self.engine.len() > 1 && *settings != plain && self.engine.iter().all(has_none) {
            true => "; --compression none is for all engines here",
            false => "",
        }
    }

    /// Refuses what cannot be meant.
    fn check(&self) -> Result<(), Fault> {
        refuse_repetition("--engine", &self.engine, "; --control runs each one twice")?;
        if !self.tuning.option.is_empty() && !self.engine.iter().any(registry::is_lithify) {
            return Err(Fault::usage(
                "--option sets options of Lithify, which --engine does not name",
            ));
        }
        let ladders = &self.tuning.compression;
        refuse_repetition("--compression", ladders, "")?;
        if self.db.is_some() && ladders.len() > 1 {
            return Err(Fault::usage(
                "--db keeps one database per engine: give one --compression with it",
            ));
        }
        if self.use_existing {
            let Some(db) = &self.db else {
                return Err(Fault::usage("--use-existing needs --db, where the databases are"));
            };
            for name in self.engine.iter().filter(|name| registry::stores(name)) {
                let path = db.join(name.name());
                if !path.join("db").is_dir() {
                    return Err(Fault::usage(format!("{} holds no database", path.display())));
                }
            }
        } else if let Some(first) = self.steps().first()
            && !first.benchmark.is_fill()
        {
            return Err(Fault::usage(format!(
                "--benchmarks begins with {}, which needs data: begin with fillseq or fillrandom, \
                 or name a database with --db and --use-existing",
                first
            )));
        }
        let directories = [&self.results].into_iter().chain(&self.data).chain(&self.db);
        refuse_files(directories.map(PathBuf::as_path))?;
        self.engine.iter().try_for_each(require_engine)
    }

    fn run_name(&self) -> String {
        self.name.clone().unwrap_or_else(|| {
            let engines: Vec<&str> = self.engine.iter().map(EngineName::name).collect();
            let allocator = match self.tuning.allocator {
                None | Some(Allocator::System) => String::new(),
                Some(other) => format!("-{other}"),
            };
            format!("db-{}{allocator}", engines.join("-"))
        })
    }
}

fn read_original(path: &Path) -> Result<String, Fault> {
    std::fs::read_to_string(path)
        .map_err(|error| Fault::usage(format!("{}: {error}", path.display())))
}

/// Runs it.
pub fn run(arguments: &DbArguments) -> Result<(), Fault> {
    let ready = prepare(arguments)?;
    let (results, data) = (&arguments.results, arguments.data.as_deref());
    if arguments.dry_run {
        // Databases that are kept lie elsewhere.
        let place = arguments.db.as_deref().or(data);
        return print(&dry_run::arms(&ready, results, place, arguments.fresh));
    }
    let line = format!(
        "{}: {} runs, the driver alone first; results in {}",
        ready.name(),
        ready.planned.plan.cells.len(),
        results.display()
    );
    alone(&ready, results, data, arguments.fresh, &[line])
}

/// Makes it ready.
pub fn prepare(arguments: &DbArguments) -> Result<DbRun, Fault> {
    arguments.check()?;
    let printed = arguments.original.as_deref().map(read_original).transpose()?;
    let program = this_program(DbBench::NAME)?;
    let build = program.build().map_err(Fault::failure)?;
    let specs = arguments.specs(&build)?;
    let allocators = specs.iter().map(|spec| spec.allocator);
    let missing = allocators.map(|allocator| allocator.require(&program.path));
    missing.collect::<Result<(), _>>().map_err(Fault::failure)?;
    let plan = DbPlan::new(
        &arguments.run_name(),
        &specs,
        &arguments.tuning.compression,
        arguments.repeats,
        arguments.controls(),
    );
    let databases = arguments.db.clone();
    let planned = Planned { plan, skipped: Vec::new(), program, databases };
    Ok(DbRun { planned, printed })
}

/// Makes it ready for the engines that are here.
pub fn prepare_here(mut arguments: DbArguments) -> Result<DbRun, Fault> {
    let (engines, skipped) =
        engines_here(&arguments.engine, None, Content::Keys).map_err(Fault::usage)?;
    arguments.engine = engines;
    let mut run = prepare(&arguments)?;
    run.planned.skipped = skipped;
    Ok(run)
}

/// Sequences on engines, beside what the original printed.
pub struct DbRun {
    planned: Planned<DbBench>,
    /// What the original printed.
    printed: Option<String>,
}

impl Ready for DbRun {
    fn name(&self) -> String {
        self.planned.name()
    }

    fn scale(&self) -> Option<&str> {
        self.planned.scale()
    }

    fn skipped(&self) -> &[String] {
        self.planned.skipped()
    }

    fn cells(&self, results: &Path) -> Vec<CellState> {
        self.planned.cells(results)
    }

    fn disk_bytes(&self) -> u64 {
        self.planned.disk_bytes()
    }

    fn measure(&self, how: &How<'_>, announcer: &mut dyn Announcer) -> Result<Measured, Fault> {
        let record = self.planned.run(how, announcer).map_err(Fault::failure)?;
        let record = record.ok_or_else(|| stopped(self, how.results))?;
        let files = DbBench::files(&record).map_err(Fault::failure)?;
        let files = write_files(how.results, &files).map_err(Fault::failure)?;
        write_files(how.results, &report::interval_files(&record)).map_err(Fault::failure)?;
        // One engine: the lines of the original, which tools read.
        let mut text = match record.plan.engines.len() {
            0 | 1 => report::classic(&record),
            _ => shown_beside(DbBench::report(&record), &files),
        };
        let mut differences = Vec::new();
        if let Some(printed) = &self.printed {
            let beside = original::beside(&record, printed).map_err(Fault::failure)?;
            text.push_str(&format!("\n{}", beside.text));
            differences = beside.differences;
        }
        let fault = match differences.is_empty() {
            false => Some(differences.join("; ")),
            true => DbBench::fault(&record),
        };
        Ok(Measured { text, files, fault: fault.map(Fault::failure) })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use lithify_lab::run::cells::Cell as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Own {
        #[command(flatten)]
        db: DbArguments,
    }

    /// Most seconds that all cells of the headline may take.
    const HEADLINE_SECONDS_MAX: f64 = 96.0 * 60.0;

    #[test]
    fn the_headline_keeps_its_time() {
        let text = include_str!("../../../../../experiments/headline.toml");
        let line = text.lines().find_map(|line| line.strip_prefix("command = \"bench "));
        // The others may not be built into this program: what they cost is known by their names.
        let names = "lithify,rocksdb,rocksdb-expert";
        let line = line.expect("a command").trim_end_matches('"');
        assert!(line.contains(names), "{line}");
        let line = line.replace(names, "lithify");
        let arguments = Own::try_parse_from(line.split_whitespace()).expect("is a command").db;
        let engines: Vec<EngineName> = names.split(',').map(EngineName::new).collect();
        let spec = arguments.specs("build").expect("are settings").remove(0);
        let specs: Vec<DbSpec> = engines
            .iter()
            .map(|engine| DbSpec { engine: engine.clone(), ..spec.clone() })
            .collect();
        let plan = |controls| {
            let ladders = &arguments.tuning.compression;
            DbPlan::new("headline", &specs, ladders, arguments.repeats, controls)
        };
        let seconds = |plan: DbPlan| -> f64 {
            plan.cells.iter().filter_map(|cell| cell.effort().declared_s).sum()
        };
        let (own, all) = (plan(arguments.controls()), plan(Controls::ALL));
        assert_eq!((own.cells.len(), arguments.repeats), (1 + 18 + 3, 3));
        let planned = seconds(own);
        assert!(planned <= HEADLINE_SECONDS_MAX, "{planned} s");
        assert!(seconds(all) > HEADLINE_SECONDS_MAX, "the limit can be broken");
    }
}
