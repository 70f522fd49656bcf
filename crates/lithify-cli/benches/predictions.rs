//! What the advisor predicts beside what engines then do with all of the data.
//!
//! ```sh
//! cargo bench -p lithify-cli --bench predictions -- FILE[:KEY,…]… [--for ENGINE,…] [--cpu] [--choice]
//! ```
//!
//! For each file, engine and setting: all rows are loaded, the tree is settled, and what is stored is
//! compared with the prediction of the bottom level: every level has the same codec here. RocksDB and
//! MyRocks are loaded in random order: what is loaded in the order of the key keeps its sequence
//! numbers, which compactions set to zero. Their filters, which the laboratory turns on, are added.
//! InnoDB keeps up to 8 MiB free in a file; where these are not holes, what is found is the growth by the
//! second half of the rows. With `--cpu` loads and cold gets of Lithify and RocksDB are compared as the difference
//! from the same engine's arm without codec, the median of three pairs. Worst first.
//!
//! With `--choice` the same measurements of Lithify and RocksDB are priced at every goal: what the advised
//! setting costs, over the cheapest of all that were measured.

use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;

use lithify::{Objective, Prices};
use lithify_advisor::answer::{Outcome, TargetAdvice, reprice};
use lithify_advisor::estimate::Estimate;
use lithify_advisor::{Advice, Request, Silent, advise, input, target};
use lithify_lab::adapter::codec::{Codec, Ladder};
use lithify_lab::adapter::provider::Transactions;
use lithify_lab::adapter::settings::{DurabilityMode, EngineSettings};
use lithify_lab::adapter::{Engine, EngineName, SpaceId, SpaceSpec, WriteBatch};
use lithify_lab::engines::registry::find;
use lithify_lab::meter::process::ProcessCpu;

type Failure = Box<dyn std::error::Error>;

const SPACE: [SpaceSpec; 1] =
    [SpaceSpec { name: "rows", prefix_bytes: None, single_delete: false }];

/// The engine of the laboratory for a target, and the settings that are tried.
const TRIED: &[(&str, &str, &[&str])] = &[
    (
        "lithify",
        "lithify",
        &["none 16k", "lz4 4k", "zstd-1 16k", "zstd-6 32k", "lz4-9 16k", "zstd-3 64k"],
    ),
    (
        "rocksdb",
        "rocksdb",
        &["none 16k", "lz4 4k", "snappy 8k", "zstd-3 16k", "zlib-6 16k", "zstd-12 64k"],
    ),
    ("myrocks", "myrocks", &["lz4 4k", "zstd-3 16k", "zlib-6 8k"]),
    (
        "wiredtiger",
        "wiredtiger",
        &["none 32k", "snappy 32k", "lz4 32k", "zstd-6 32k", "zlib-6 16k", "zstd-6 64k"],
    ),
    ("innodb", "innodb", &["none 16k", "zlib-1 16k", "zlib-6 16k", "lz4 16k", "snappy 16k"]),
    ("innodb-compressed", "innodb", &["zlib-6 16k in 8k", "zlib-6 16k in 4k"]),
    (
        "cassandra",
        "cassandra",
        &["none 16k", "lz4 4k", "lz4 16k", "snappy 16k", "zlib-6 16k", "zstd-3 16k", "zstd-3 64k"],
    ),
    ("btrfs", "btrfs", &["zlib-3 128k", "zstd-1 128k", "zstd-3 128k", "zstd-9 128k"]),
];

/// One comparison.
struct Compared {
    what: String,
    predicted: f64,
    found: f64,
}

impl Compared {
    fn error(&self) -> f64 {
        self.predicted / self.found - 1.0
    }
}

struct Rows(Vec<(Vec<u8>, Vec<u8>)>);

fn main() -> Result<(), Failure> {
    lithify_lab_engines::register();
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let is_given = |name: &str| arguments.iter().any(|argument| argument == name);
    let (wants_cpu, wants_choice) = (is_given("--cpu"), is_given("--choice"));
    let for_engines = arguments.iter().position(|argument| argument == "--for");
    let engines = for_engines.and_then(|at| arguments.get(at + 1)).cloned();
    let inputs = arguments.iter().enumerate().filter(|(at, argument)| {
        !argument.starts_with("--") && for_engines.is_none_or(|name| name + 1 != *at)
    });
    let (mut sizes, mut cpu, mut choices) = (Vec::new(), Vec::new(), Vec::new());
    for (_, input) in inputs {
        let (path, key) = input.split_once(':').unwrap_or((input, ""));
        let key: Vec<String> =
            key.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let rows = read(path, &key)?;
        for (name, engine, settings) in TRIED {
            let is_wanted =
                engines.as_deref().is_none_or(|names| names.split(',').any(|n| n == *name));
            let is_here = match *engine {
                "btrfs" => is_btrfs_here(),
                engine => find(&EngineName::new(engine))?.available().is_ok(),
            };
            if !is_wanted || !is_here {
                continue;
            }
            let request =
                Request { key: key.clone(), targets: vec![target(name)?], ..Request::new(path) };
            let advice = match advise(&request, &Silent) {
                Ok(advice) => advice,
                Err(error) => {
                    println!("{name:<18} {}: {error}", label(path));
                    continue;
                }
            };
            let is_timed = matches!(*name, "lithify" | "rocksdb");
            if wants_choice {
                if is_timed {
                    choices.extend(choices_of(engine, settings, &rows, &advice, path)?);
                }
                continue;
            }
            for setting in *settings {
                let Some(outcome) = outcome(&advice, setting) else { continue };
                let what = format!("{name:<18} {setting:<18} {}", label(path));
                let stored = match *engine {
                    "btrfs" => size_on_btrfs(outcome, path),
                    "cassandra" => size_in_cassandra(outcome, &rows),
                    engine => size(engine, outcome, &rows),
                };
                match stored {
                    Ok(stored) => {
                        let filters = filters_bytes(engine, &rows);
                        let predicted =
                            outcome.bottom.value * advice.data.basis.data_bytes + filters;
                        let compared = Compared { what, predicted, found: stored };
                        println!("{}", line(&compared));
                        sizes.push(compared);
                    }
                    Err(error) => println!("{what}: {error}"),
                }
                if wants_cpu && is_timed {
                    cpu.extend(cpu_of(engine, outcome, &rows, &advice, path)?);
                }
            }
        }
    }
    summary("Size", &mut sizes);
    summary("CPU", &mut cpu);
    summary("Cost of the advice, and of the best", &mut choices);
    Ok(())
}

fn label(path: &str) -> String {
    Path::new(path).file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

fn line(compared: &Compared) -> String {
    let (predicted, found) = (compared.predicted, compared.found);
    format!(
        "{:<60} {predicted:>14.0} {found:>14.0} {:>+7.1} %",
        compared.what,
        compared.error() * 100.0
    )
}

fn summary(title: &str, compared: &mut [Compared]) {
    if compared.is_empty() {
        return;
    }
    compared.sort_by(|a, b| b.error().abs().total_cmp(&a.error().abs()));
    println!("\n{title}, worst first: predicted, found, error");
    compared.iter().for_each(|one| println!("{}", line(one)));
    let median = compared[compared.len() / 2].error().abs() * 100.0;
    let over = compared.iter().filter(|one| one.error().abs() > 0.05).count();
    println!("{} cells, median {median:.1} %, {over} over 5 %", compared.len());
}

fn read(path: &str, key: &[String]) -> Result<Rows, Failure> {
    let mut rows = Vec::new();
    input::open(Path::new(path), None, key, None, &Silent)?.scan(&mut |row, _| {
        rows.push((row.key.to_vec(), row.value.to_vec()));
        ControlFlow::Continue(())
    })?;
    rows.sort();
    // Rows with one key would replace each other.
    let mut number = 0_u32;
    for at in 1..rows.len() {
        let is_same =
            rows[at].0.starts_with(&rows[at - 1].0[..rows[at].0.len().min(rows[at - 1].0.len())])
                && rows[at].0.len() <= rows[at - 1].0.len();
        number = if is_same { number + 1 } else { 0 };
        if is_same {
            rows[at].0.extend_from_slice(&number.to_be_bytes());
        }
    }
    rows.sort();
    Ok(Rows(rows))
}

fn outcome<'a>(advice: &'a Advice, setting: &str) -> Option<&'a Outcome> {
    let outcomes = &advice.targets.first()?.outcomes;
    outcomes.iter().find(|outcome| outcome.setting.name() == setting)
}

fn settings(engine: &str, outcome: &Outcome) -> Result<EngineSettings, Failure> {
    let setting = &outcome.setting;
    let codec: Codec = setting.compression.to_string().parse()?;
    let settings = EngineSettings {
        memory_budget_bytes: 64 << 20,
        block_cache_bytes: 8 << 20,
        memtable_bytes: 8 << 20,
        table_bytes: 16 << 20,
        base_level_bytes: 64 << 20,
        fanout: 10,
        background_threads: 2,
        block_bytes: setting.size_bytes as u64,
        durability: DurabilityMode::Buffered,
        ..EngineSettings::small()
    };
    let mut settings = settings.with_ladder(Ladder { small: codec, middle: codec, bottom: codec });
    if engine == "innodb" && setting.slot_bytes > 0 {
        let kib = (setting.slot_bytes >> 10).to_string();
        settings.options.insert("key_block_kib".to_owned(), kib);
    }
    if engine == "wiredtiger" {
        // As it is shipped; the laboratory has others.
        settings.options.insert("allocation_bytes".to_owned(), "4096".to_owned());
        settings.options.insert("prefix_compression".to_owned(), "false".to_owned());
    }
    Ok(settings)
}

fn is_shuffled(engine: &str) -> bool {
    matches!(engine, "rocksdb" | "myrocks")
}

/// Numbers that are the same in every run (xorshift64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// Loads all rows, and settles the tree.
fn load(
    engine: &str,
    settings: &EngineSettings,
    rows: &Rows,
    directory: &Path,
) -> Result<Box<dyn Engine>, Failure> {
    let provider = find(&EngineName::new(engine))?;
    let opened = provider.open(directory, settings, &SPACE, Transactions::Unneeded)?;
    let mut order: Vec<usize> = (0..rows.0.len()).collect();
    if is_shuffled(engine) {
        let mut random = Random(7);
        for at in (1..order.len()).rev() {
            order.swap(at, random.below(at + 1));
        }
    }
    {
        let mut session = opened.session()?;
        for some in order.chunks(500) {
            let mut batch = WriteBatch::new();
            some.iter().for_each(|at| batch.put(SpaceId(0), &rows.0[*at].0, &rows.0[*at].1));
            session.write_batch(&batch)?;
        }
    }
    opened.settle_tree()?;
    Ok(opened)
}

/// Bytes that the rows take: files of rows, without logs and what an empty database has.
fn size(engine: &str, outcome: &Outcome, rows: &Rows) -> Result<f64, Failure> {
    let settings = settings(engine, outcome)?;
    let bytes = |rows: &Rows| -> Result<u64, Failure> {
        let directory = tempfile::tempdir()?;
        load(engine, &settings, rows, directory.path())?.close()?;
        Ok(data_files(directory.path()))
    };
    let has_holes = outcome.setting.slot_bytes == 0 && outcome.encode_ns > 0.0;
    let is_reserving = engine == "innodb" && !has_holes;
    let few = if is_reserving { rows.0.len() / 2 } else { 1 };
    let fixed = bytes(&Rows(rows.0[..few].to_vec()))?;
    let part = if is_reserving {
        rows.0[few..].iter().map(row_bytes).sum::<usize>() as f64
            / rows.0.iter().map(row_bytes).sum::<usize>() as f64
    } else {
        1.0
    };
    Ok(bytes(rows)?.saturating_sub(fixed) as f64 / part)
}

fn is_btrfs_here() -> bool {
    let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
    has("mkfs.btrfs") && has("compsize")
}

fn run(program: &str, arguments: &[&str]) -> Result<String, Failure> {
    let output = Command::new(program).args(arguments).output()?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(said(&output.stdout)),
        false => Err(format!("{program}: {}", said(&output.stderr)).into()),
    }
}

/// Bytes of a copy of the file on a file system of its own, as compsize counts them.
fn size_on_btrfs(outcome: &Outcome, path: &str) -> Result<f64, Failure> {
    let directory = tempfile::tempdir()?;
    let (image, place) = (directory.path().join("image"), directory.path().join("place"));
    let bytes = std::fs::metadata(path)?.len();
    std::fs::File::create(&image)?.set_len((2 * bytes).max(300 << 20))?;
    std::fs::create_dir(&place)?;
    let (image, place) = (image.display().to_string(), place.display().to_string());
    run("mkfs.btrfs", &["-q", &image])?;
    let option = outcome.setting.compression.to_string().replace('-', ":");
    run("mount", &["-o", &format!("loop,compress={option}"), &image, &place])?;
    let copied = || {
        run("cp", &[path, &place])?;
        run("sync", &["-f", &place])?;
        run("compsize", &["-b", &place])
    };
    let said = copied();
    run("umount", &[&place])?;
    let said = said?;
    let total =
        said.lines().find(|line| line.starts_with("TOTAL")).ok_or("compsize has no total")?;
    Ok(total.split_whitespace().nth(2).ok_or("compsize has no size")?.parse()?)
}

/// Bytes of data files; every row is a partition, so that the order is that of hashes. Offsets of
/// chunks are in another file, which is left out on both sides.
fn size_in_cassandra(outcome: &Outcome, rows: &Rows) -> Result<f64, Failure> {
    let directory = tempfile::tempdir()?;
    let settings = EngineSettings { memtable_bytes: 256 << 20, ..settings("cassandra", outcome)? };
    let provider = find(&EngineName::new("cassandra"))?;
    let database = provider.open_text(directory.path(), &settings)?;
    {
        let mut session = database.session()?;
        for (number, (_, value)) in rows.0.iter().enumerate() {
            session.insert((number as u32, 0, value))?;
        }
        session.finish()?;
    }
    database.flush()?;
    database.rest()?;
    let stored = data_files(directory.path());
    database.close()?;
    Ok(stored as f64)
}

fn row_bytes(row: &(Vec<u8>, Vec<u8>)) -> usize {
    row.0.len() + row.1.len()
}

/// Allocated bytes of table files and tablespaces of the rows, whatever the engine calls them.
fn data_files(directory: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = std::fs::read_dir(directory) else { return 0 };
    let of = |entry: std::fs::DirEntry| {
        let path = entry.path();
        let Ok(metadata) = entry.metadata() else { return 0 };
        if metadata.is_dir() {
            return data_files(&path);
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_of_rows = path.to_string_lossy().contains("/lab/");
        let is_data = name.ends_with(".sst")
            || name.ends_with("-Data.db") && is_of_rows
            || name.starts_with("keys_") && name.ends_with(".ibd")
            || name.ends_with(".wt") && !name.starts_with("WiredTiger");
        // Holes count as nothing.
        let allocated = metadata.blocks() * 512;
        if is_data { allocated.min(metadata.len()) } else { 0 }
    };
    entries.flatten().map(of).sum()
}

/// Differences from the arm without codec, medians of three pairs.
struct Differences {
    load_us: f64,
    gets_us: f64,
    rewrites: f64,
    stored_bytes: f64,
}

fn differences(engine: &str, outcome: &Outcome, rows: &Rows) -> Result<Differences, Failure> {
    let with = settings(engine, outcome)?;
    let none = Codec::NONE;
    let without = with.clone().with_ladder(Ladder { small: none, middle: none, bottom: none });
    let (mut loads, mut gets, mut last) = (Vec::new(), Vec::new(), None);
    for _ in 0..3 {
        let (a, b) = (measure(engine, &with, rows)?, measure(engine, &without, rows)?);
        loads.push(a.load_us - b.load_us);
        gets.push(a.get_us - b.get_us);
        last = Some(a);
    }
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let last = last.ok_or("nothing was measured")?;
    let (rewrites, stored_bytes) = (last.rewrites, last.stored_bytes);
    Ok(Differences { load_us: median(loads), gets_us: median(gets), rewrites, stored_bytes })
}

/// CPU of a load and of cold gets, as differences from the arm without codec.
fn cpu_of(
    engine: &str,
    outcome: &Outcome,
    rows: &Rows,
    advice: &Advice,
    path: &str,
) -> Result<Vec<Compared>, Failure> {
    if outcome.encode_ns == 0.0 {
        return Ok(Vec::new());
    }
    let Differences { load_us, gets_us, rewrites, .. } = differences(engine, outcome, rows)?;
    let data = advice.data.basis.data_bytes;
    let load = (outcome.encode_ns * rewrites + outcome.decode_ns * (rewrites - 1.0)) * data / 1e3;
    let name = outcome.setting.name();
    let what = |kind: &str| format!("{engine:<10} {kind:<5} {name:<14} {}", label(path));
    Ok(vec![
        Compared { what: what("load"), predicted: load, found: load_us },
        Compared {
            what: what("gets"),
            predicted: outcome.unit_decode_us * GETS as f64,
            found: gets_us,
        },
    ])
}

const GOALS: [(&str, Objective); 4] = [
    ("balanced", Objective::Balanced),
    ("throughput", Objective::Throughput),
    ("endurance", Objective::Endurance),
    ("space", Objective::Space),
];

/// The advice of each goal beside the cheapest setting, both at what was measured.
fn choices_of(
    engine: &str,
    settings: &[&str],
    rows: &Rows,
    advice: &Advice,
    path: &str,
) -> Result<Vec<Compared>, Failure> {
    let predicted = advice.targets.first().ok_or("nothing is advised")?;
    let at = |prices: &Prices, outcomes: Vec<Outcome>| -> Result<TargetAdvice, Failure> {
        let (basis, expectations) = (&advice.data.basis, &advice.expectations);
        let collected = predicted.collected;
        let priced =
            reprice(&predicted.target, outcomes, 0, collected, basis, prices, expectations);
        priced.ok_or_else(|| "nothing is advised".into())
    };
    // Dictionaries are no setting of the laboratory.
    let plain: Vec<Outcome> = (predicted.outcomes.iter())
        .filter(|outcome| outcome.setting.dictionary_bytes == 0)
        .cloned()
        .collect();
    let mut names: Vec<String> = settings.iter().map(|name| (*name).to_owned()).collect();
    let mut advised = Vec::new();
    for (goal, objective) in GOALS {
        let prices = objective.prices();
        let best = at(&prices, plain.clone())?.best().setting.name();
        if !names.contains(&best) {
            names.push(best.clone());
        }
        advised.push((goal, prices, best));
    }
    let mut measured = Vec::new();
    for outcome in plain.iter().filter(|outcome| names.contains(&outcome.setting.name())) {
        measured.push(as_measured(engine, outcome, rows, advice)?);
    }
    let mut choices = Vec::new();
    for (goal, prices, best) in advised {
        let priced = at(&prices, measured.clone())?;
        let is_advised = |outcome: &&Outcome| outcome.setting.name() == best;
        let taken = priced.outcomes.iter().find(is_advised).ok_or("the advice was not measured")?;
        let cheapest = priced.best().setting.name();
        let compared = Compared {
            what: format!("{engine:<8} {goal:<10} {best} for {cheapest} {}", label(path)),
            predicted: taken.cost(),
            found: priced.best().cost(),
        };
        println!("{}", line(&compared));
        choices.push(compared);
    }
    Ok(choices)
}

/// The outcome with what the engine stored and took in place of what was predicted.
fn as_measured(
    engine: &str,
    outcome: &Outcome,
    rows: &Rows,
    advice: &Advice,
) -> Result<Outcome, Failure> {
    let data = advice.data.basis.data_bytes;
    let found = differences(engine, outcome, rows)?;
    let filters = filters_bytes(engine, rows);
    let value = (found.stored_bytes - filters) / data;
    let per_get = found.gets_us / GETS as f64;
    let decode_ns = (per_get * 1e3 / outcome.unit_data_bytes).max(0.0);
    let load_ns = found.load_us * 1e3 / data;
    let encode_ns = ((load_ns - decode_ns * (found.rewrites - 1.0)) / found.rewrites).max(0.0);
    let [encode_ns, decode_ns] =
        if outcome.encode_ns == 0.0 { [0.0, 0.0] } else { [encode_ns, decode_ns] };
    println!(
        "{engine:<8} {:<14} stored {value:.4} (predicted {:.4}), encode {encode_ns:.2} ({:.2}), decode \
         {decode_ns:.2} ({:.2}) ns a byte",
        outcome.setting.name(),
        outcome.bottom.value,
        outcome.encode_ns,
        outcome.decode_ns
    );
    let bottom = Estimate { value, half_width: 0.0 };
    Ok(Outcome { bottom, ratio: bottom, encode_ns, decode_ns, ..outcome.clone() })
}

const GETS: usize = 20_000;

/// Settings with which nearly every get decodes a data block, and nothing else.
struct Cold {
    settings: EngineSettings,
    /// The part of all gets that find their block in no cache.
    decoded: f64,
}

impl Cold {
    /// Filters and indexes stay in memory: RocksDB compresses its index blocks, and would decode one of
    /// 100 KB for each get of 30 bytes.
    fn of(engine: &str, settings: &EngineSettings, rows: &Rows) -> Cold {
        let count = rows.0.len() as f64;
        let data_bytes = rows.0.iter().map(row_bytes).sum::<usize>() as f64;
        let key_bytes = rows.0.iter().map(|row| row.0.len()).sum::<usize>() as f64 / count;
        let blocks = data_bytes / settings.block_bytes as f64;
        let kept_bytes = FILTER_BYTES_PER_ROW * count + blocks * (key_bytes + INDEX_ENTRY_BYTES);
        // Lithify keeps filters and indexes in a quarter of its budget.
        let kept_of_budget = if engine == "lithify" { 0.25 } else { 0.5 };
        let budget_bytes = kept_bytes / kept_of_budget + COLD_CACHE_BYTES;
        let decoded = 1.0 - ((budget_bytes - kept_bytes) / data_bytes).min(0.9);
        let settings = EngineSettings {
            block_cache_bytes: budget_bytes as u64,
            memory_budget_bytes: budget_bytes as u64,
            memtable_bytes: 128 << 10,
            ..settings.clone()
        };
        Cold { settings, decoded }
    }
}

const FILTER_BYTES_PER_ROW: f64 = 1.25;

/// What the laboratory's filters add to what is stored where no prediction has them.
fn filters_bytes(engine: &str, rows: &Rows) -> f64 {
    if is_shuffled(engine) { FILTER_BYTES_PER_ROW * rows.0.len() as f64 } else { 0.0 }
}

/// Of an entry in memory, beside its key.
const INDEX_ENTRY_BYTES: f64 = 64.0;
const COLD_CACHE_BYTES: f64 = (1 << 20) as f64;

struct Spent {
    load_us: f64,
    get_us: f64,
    rewrites: f64,
    stored_bytes: f64,
}

fn measure(engine: &str, settings: &EngineSettings, rows: &Rows) -> Result<Spent, Failure> {
    let directory = tempfile::tempdir()?;
    let before = ProcessCpu::of_self();
    let opened = load(engine, settings, rows, directory.path())?;
    let loaded = ProcessCpu::of_self();
    let statistics = opened.statistics()?;
    let written: u64 = statistics.levels.iter().map(|level| level.compaction_write_bytes).sum();
    let live: u64 = statistics.levels.iter().map(|level| level.stored_bytes).sum();
    opened.close()?;
    let stored_bytes = data_files(directory.path()) as f64;
    let cold = Cold::of(engine, settings, rows);
    let provider = find(&EngineName::new(engine))?;
    let opened = provider.open(directory.path(), &cold.settings, &SPACE, Transactions::Unneeded)?;
    // Other settings may ask for compactions, and the CPU is that of the process.
    opened.wait_for_compaction()?;
    let (start, end) = {
        let mut session = opened.session()?;
        let (mut value, mut random) = (Vec::new(), Random(9));
        let start = ProcessCpu::of_self();
        for _ in 0..GETS {
            let (key, expected) = &rows.0[random.below(rows.0.len())];
            if !session.get(SpaceId(0), key, &mut value)? || value != *expected {
                return Err("a row is not what was loaded".into());
            }
        }
        (start, ProcessCpu::of_self())
    };
    opened.close()?;
    Ok(Spent {
        load_us: loaded.since(&before).total_us() as f64,
        get_us: end.since(&start).total_us() as f64 / cold.decoded,
        rewrites: written as f64 / live.max(1) as f64,
        stored_bytes,
    })
}
