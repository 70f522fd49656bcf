//! `lithify advise`: measures a user's data and prints the settings for their database.

use std::cell::RefCell;
use std::io::{IsTerminal, stderr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use lithify_advisor::targets::{TARGETS, Target};
use lithify_advisor::{
    Advice, AdviseError, Early, Expectations, Format, Request, Watch, advise, advise_source, check,
    compare, json, page, profile, screen, target,
};
use lithify_lab::run::progress::ProgressLine;
use lithify_lab::run::progress::{Announcer, Terminal};

use super::bench::process::watch_signals;
use super::foreign;
use super::sizes::bytes;
use super::tool::ResultFile;
use super::worth::WorthArguments;
use crate::fault::{Fault, print, refuse_repetition};

/// `advise`
#[derive(Debug, Args)]
#[command(
    long_about = "\
Measure your own data, and print the compression settings for the database that you run.

Reads evenly spaced places of the data, lays their rows out as each database would, and calls the
codecs on them. Prints the cheapest setting with the text to paste, what it saves against the default,
and what is not known. A third of the places is held out to test the predictions.

Files are CSV, TSV, JSON objects in lines, lines of text, Parquet, Arrow or SQLite, alone or in a
directory. Databases are those of Lithify, RocksDB, LevelDB and fjall, and tables of a running MariaDB or MySQL.
Other files are bytes, for file systems. Data are only read. Nothing is sent or kept, and no row is
printed.

Costs are money at the prices of a goal. The presets are assumptions: --price has your own.",
    after_help = "\
Examples:
  lithify advise events.jsonl
  lithify advise orders.csv --key customer,date --for rocksdb
  lithify advise orders.csv --key id --for innodb,cassandra --goal space
  lithify advise shop.sqlite --table orders --for mongodb,innodb
  lithify advise mariadb://reader@db.example/shop/orders
  lithify advise /var/lib/app/rocksdb --table events
  lithify advise events.jsonl --reads-per-row 3 --hot 0.9 --json advice.json
  lithify advise events.jsonl --database-size 2TB --html advice.html
  lithify advise events.jsonl --save events.profile && lithify advise events.profile --goal space
  lithify advise events.profile --for rocksdb --check /var/lib/events
  lithify advise --compare monday.profile tuesday.jsonl
  lithify advise events.jsonl --price cpu=11,month=80000

Targets: lithify, rocksdb, myrocks, innodb, innodb-compressed, wiredtiger, mongodb, cassandra, scylla,
btrfs, zfs; `all` for every one. Without --for: the database that the data are in, else all.

A server is asked through its own client, which has to be installed: `mariadb` or `mysql`. It finds the
password as ever: in its option files, or in MYSQL_PWD.

Exit codes:
  0    done; after Ctrl-C with what was known by then
  1    the data cannot be read, or a row is not what the format asks for: the error names file and line
  2    used wrongly: no such file, target, column or price
  130  stopped by Ctrl-C before anything was known"
)]
pub struct AdviseArguments {
    /// A file, a directory of files or of a database, or mariadb://[USER@][HOST[:PORT]]/DATABASE[/TABLE]
    path: PathBuf,
    /// Databases to advise for
    #[arg(long = "for", value_name = "TARGET,…", value_delimiter = ',')]
    targets: Vec<String>,
    /// Columns or fields that the database sorts by, in their order; a number is a column from 1
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',')]
    key: Vec<String>,
    /// The table, column family or keyspace of a database; the largest without it
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// What the file is, where the guess is wrong: csv, tsv, json, lines or bytes
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    #[command(flatten)]
    worth: WorthArguments,
    /// How often a row is read in its life
    #[arg(long, value_name = "N", value_parser = reads, allow_negative_numbers = true)]
    reads_per_row: Option<f64>,
    /// The share of reads that a cache answers, from 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = share, allow_negative_numbers = true)]
    hot: Option<f64>,
    /// How long a row lives until it is rewritten or deleted
    #[arg(long, value_name = "N", value_parser = months, allow_negative_numbers = true)]
    months: Option<f64>,
    /// How large the whole database is, as 200GB or 2TiB, where the data are a part of it: a larger tree
    /// has more levels, and writes each row more often
    #[arg(long, value_name = "SIZE", value_parser = database_size(), allow_negative_numbers = true)]
    database_size: Option<u64>,
    /// Seconds that it may take; 60 without it
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    time: Option<f64>,
    /// Write everything that was measured into a file, as one JSON object without any row. As PATH it is a
    /// profile: it gives advice anew, at other prices, wherever it is. `-` prints it in place of the screen
    #[arg(long, visible_alias = "save", value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a page with plots and every setting into a file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Tell whether the advice for these data, or this profile of them, still holds for PATH
    #[arg(long, value_name = "BEFORE", conflicts_with = "check")]
    compare: Option<PathBuf>,
    /// Quote three rows of the data in the answer
    #[arg(long)]
    show_samples: bool,
    /// Compare the files of a database, where the advice was taken, with the prediction; with one --for
    #[arg(long, value_name = "DIRECTORY")]
    check: Option<PathBuf>,
}

/// Seconds that it may take where none are named.
const SECONDS: f64 = 60.0;

fn number(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "a number is expected".to_owned())?;
    match number.is_finite() && number >= 0.0 {
        true => Ok(number),
        false => Err("a number from 0 is expected".to_owned()),
    }
}

fn reads(text: &str) -> Result<f64, String> {
    let is_number = |reads: &f64| Expectations::READS_PER_ROW.contains(reads);
    number(text).ok().filter(is_number).ok_or_else(|| "reads are 0 to 1e12 a row".to_owned())
}

fn share(text: &str) -> Result<f64, String> {
    number(text).ok().filter(|share| *share <= 1.0).ok_or_else(|| "a share is 0 to 1".to_owned())
}

fn months(text: &str) -> Result<f64, String> {
    let is_life = |months: &f64| Expectations::MONTHS.contains(months);
    number(text).ok().filter(is_life).ok_or_else(|| "a life is 0.0001 to 1200 months".to_owned())
}

fn database_size() -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static {
    let sizes = Expectations::DATABASE_BYTES;
    bytes(*sizes.start(), *sizes.end())
}

fn seconds(text: &str) -> Result<f64, String> {
    let is_time = |seconds: &f64| (1.0..=86_400.0).contains(seconds);
    number(text).ok().filter(is_time).ok_or_else(|| "a time is 1 to 86400 seconds".to_owned())
}

/// Measures, and prints the answer.
pub fn run(arguments: &AdviseArguments) -> Result<(), Fault> {
    let prices = arguments.worth.prices()?;
    let targets = targets(&arguments.targets).map_err(fault)?;
    let request = Request {
        format: arguments.format,
        table: arguments.table.clone(),
        key: arguments.key.clone(),
        targets,
        time: Duration::from_secs_f64(arguments.time.unwrap_or(SECONDS)),
        goal: arguments.worth.name(),
        prices,
        expectations: Expectations {
            reads_per_row: arguments.reads_per_row,
            hot: arguments.hot,
            months: arguments.months,
            database_bytes: arguments.database_size.map(|bytes| bytes as f64),
        },
        shows_samples: arguments.show_samples,
        ..Request::new(&arguments.path)
    };
    check(arguments, &request)?;
    let results = Results::open(arguments)?;
    let listener = Listener::begin()?;
    let usual_key = compared_key(arguments, &request)?;
    let of = |path: &PathBuf| {
        let usual_key = usual_key.clone();
        let request = Request { path: path.clone(), usual_key, ..request.clone() };
        // Beside the data that a profile is compared with, what is said of data is not of the profile.
        let is_beside_data = arguments.compare.is_some() && !has_no_data(arguments);
        let request = match is_beside_data && profile::is_profile(path) {
            true => Request { format: None, table: None, key: Vec::new(), ..request },
            false => request,
        };
        measured(&request, &listener).map_err(|error| listener.fault(error))
    };
    let before = arguments.compare.as_ref().map(of).transpose()?;
    let advice = of(&request.path)?;
    if before.is_some() && listener.is_hurried() {
        let what = "stopped: what is not measured of both cannot be compared";
        return Err(listener.fault(AdviseError::data(what)));
    }
    drop(listener);
    [before.as_ref(), Some(&advice)].into_iter().flatten().try_for_each(refuse_too_little)?;
    let shown = match (&arguments.check, &before) {
        (Some(path), _) => check::compare(&advice, path).map_err(fault)?,
        (None, Some(before)) => compare::render(before, &advice, columns()).map_err(fault)?,
        (None, None) => screen::render(&advice, columns()),
    };
    results.write(&advice, &shown)
}

/// Of data that are too few nothing is advised, compared or saved.
fn refuse_too_little(advice: &Advice) -> Result<(), Fault> {
    match advice.too_little() {
        None => Ok(()),
        Some(what) => Err(Fault::failure(format!("{}: {what}", advice.data.path))),
    }
}

/// Where the answer goes: the screen, and the files of `--json` and `--html`.
struct Results {
    json: Option<ResultFile>,
    html: Option<ResultFile>,
    /// JSON takes the place of the screen.
    is_json_shown: bool,
}

impl Results {
    /// Opens the files before the work.
    fn open(arguments: &AdviseArguments) -> Result<Results, Fault> {
        let is_dash = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new("-"));
        if is_dash(&arguments.html) {
            let what = "--html needs the name of a file; ./- is one that is called so";
            return Err(Fault::usage(what.to_owned()));
        }
        let is_json_shown = is_dash(&arguments.json);
        if is_json_shown && (arguments.compare.is_some() || arguments.check.is_some()) {
            let what = "--json - takes the place of what --compare and --check print: name a file";
            return Err(Fault::usage(what.to_owned()));
        }
        let json = arguments.json.as_ref().filter(|_| !is_json_shown);
        let outputs: Vec<&PathBuf> =
            [json, arguments.html.as_ref()].into_iter().flatten().collect();
        refuse_overwriting(&arguments.path, &outputs)?;
        Ok(Results {
            json: ResultFile::open(json.map(PathBuf::as_path))?,
            html: ResultFile::open(arguments.html.as_deref())?,
            is_json_shown,
        })
    }

    fn write(self, advice: &Advice, screen: &str) -> Result<(), Fault> {
        let json = || json::render(advice).map_err(Fault::failure);
        match self.is_json_shown {
            true => print(&format!("{}\n", json()?))?,
            false => print(screen)?,
        }
        if let Some(file) = self.json {
            file.write(&json()?)?;
        }
        if let Some(file) = self.html {
            file.write(&page::render(advice))?;
        }
        Ok(())
    }
}

/// The key of a profile that data are compared with: theirs too, unless they have one of their own.
fn compared_key(arguments: &AdviseArguments, request: &Request) -> Result<Vec<String>, Fault> {
    let Some(before) = &arguments.compare else { return Ok(Vec::new()) };
    let of_profile = match [before, &arguments.path].map(|path| profile::is_profile(path)) {
        [true, false] => before,
        [false, true] => &arguments.path,
        _ => return Ok(Vec::new()),
    };
    let Some(saved) = profile::key(of_profile).map_err(fault)? else { return Ok(Vec::new()) };
    if request.key.is_empty() || request.key == saved {
        return Ok(saved);
    }
    let (path, named) = (of_profile.display(), request.key.join(","));
    Err(Fault::usage(match saved.as_slice() {
        [] => format!("{path} was saved without a key: leave --key {named} out, or save it anew"),
        saved => {
            let saved = saved.join(",");
            format!("the key of {path} is {saved}, not {named}: leave --key out, or save it anew")
        }
    }))
}

/// Whether only profiles are named: nothing is measured.
fn has_no_data(arguments: &AdviseArguments) -> bool {
    let before = arguments.compare.as_ref();
    profile::is_profile(&arguments.path) && before.is_none_or(|path| profile::is_profile(path))
}

/// What can be said before anything is measured.
fn check(arguments: &AdviseArguments, request: &Request) -> Result<(), Fault> {
    refuse_repetition("--key", &request.key, "")?;
    if arguments.time.is_some() && has_no_data(arguments) {
        let path = arguments.path.display();
        return Err(Fault::usage(format!("{path} is a profile: --time is of data")));
    }
    if let Some(path) = &arguments.check {
        let [target] = request.targets.as_slice() else {
            return Err(Fault::usage("--check takes one target: --for NAME".to_owned()));
        };
        check::stored_bytes(target, path).map_err(fault)?;
    }
    Ok(())
}

/// The targets of those names; `all` stands for every one.
fn targets(names: &[String]) -> Result<Vec<Target>, AdviseError> {
    match names {
        _ if names.iter().any(|name| name == "all") => Ok(TARGETS.to_vec()),
        _ => names.iter().map(|name| target(name)).collect(),
    }
}

/// Advice for what is behind the path: databases of other engines are opened by their own libraries.
fn measured(request: &Request, listener: &Listener) -> Result<Advice, AdviseError> {
    let (key, table) = (&request.key, request.table.as_deref());
    let of_another = match request.format {
        None => foreign::open(&request.path, key, table),
        Some(_) => None,
    };
    match of_another {
        Some(store) => advise_source(&mut *store?, request, listener),
        None => advise(request, listener),
    }
}

/// Results never take the place of the data, of files among them, or of each other.
fn refuse_overwriting(data: &Path, outputs: &[&PathBuf]) -> Result<(), Fault> {
    if let [json, html] = outputs
        && whole_path(json) == whole_path(html)
    {
        return Err(Fault::usage(format!("--json and --html both name {}", json.display())));
    }
    let Ok(data) = data.canonicalize() else { return Ok(()) };
    match outputs.iter().find(|output| whole_path(output).starts_with(&data)) {
        None => Ok(()),
        Some(output) => {
            let what =
                format!("{} is the data, or lies in them: name another file", output.display());
            Err(Fault::usage(what))
        }
    }
}

/// The path without links, of a file that may not be there yet.
fn whole_path(path: &Path) -> PathBuf {
    if let Ok(whole) = path.canonicalize() {
        return whole;
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new(".")).canonicalize();
    let name = path.file_name().unwrap_or_default();
    directory.map_or_else(|_| path.to_owned(), |directory| directory.join(name))
}

fn columns() -> usize {
    terminal_size::terminal_size().map_or(100, |(width, _)| usize::from(width.0)).clamp(60, 120)
}

fn fault(error: AdviseError) -> Fault {
    match error.is_usage() {
        true => Fault::usage(error),
        false => Fault::failure(error),
    }
}

/// Targets that an early answer names.
const EARLY_TARGETS: usize = 4;

/// Shows progress, and hears Ctrl-C.
struct Listener {
    began: Instant,
    /// The last early answer, which is told again only where it is another one.
    early: RefCell<String>,
    terminal: RefCell<Terminal>,
    stage: RefCell<(String, Instant)>,
    interrupt: Arc<AtomicBool>,
}

impl Listener {
    fn begin() -> Result<Listener, Fault> {
        let interrupt = watch_signals()?;
        let terminal = RefCell::new(Terminal::new(stderr().is_terminal()));
        let stage = RefCell::new((String::new(), Instant::now()));
        let (began, early) = (Instant::now(), RefCell::default());
        Ok(Listener { began, early, terminal, stage, interrupt })
    }

    fn fault(&self, error: AdviseError) -> Fault {
        match self.interrupt.load(Ordering::Relaxed) {
            true => Fault::interrupted(error),
            false => fault(error),
        }
    }
}

impl Watch for Listener {
    fn hear(&self, name: &str, done: u64, total: u64) -> Result<(), AdviseError> {
        let mut stage = self.stage.borrow_mut();
        if stage.0 != name {
            *stage = (name.to_owned(), Instant::now());
        }
        let seconds = stage.1.elapsed().as_secs_f64().max(0.001);
        let unit = if matches!(name, "sorting by key" | "reading rows") { "MB" } else { "" };
        self.terminal.borrow_mut().progress(&ProgressLine {
            stage: name.to_owned(),
            done,
            total,
            unit: unit.to_owned(),
            rate: (done as f64 / seconds) as u64,
        });
        // While codecs are measured something is known already: that is printed.
        match self.is_hurried() && name != "measuring codecs" {
            true => Err(AdviseError::data("stopped before anything was known")),
            false => Ok(()),
        }
    }

    fn hear_early(&self, answer: &[Early]) {
        if answer.is_empty() || self.is_hurried() {
            return;
        }
        let of = |early: &Early| {
            let (share, width) = (early.ratio.value, early.ratio.relative() * 100.0);
            format!("{} {} ({share:.2} of raw ±{width:.0} %)", early.target, early.setting)
        };
        let mut said: Vec<String> = answer.iter().take(EARLY_TARGETS).map(of).collect();
        if answer.len() > EARLY_TARGETS {
            said.push(format!("and {} more", answer.len() - EARLY_TARGETS));
        }
        let said = said.join(", ");
        if self.early.replace(said.clone()) != said {
            let seconds = self.began.elapsed().as_secs_f64();
            self.terminal.borrow_mut().say(&format!("so far, after {seconds:.1} s: {said}"));
        }
    }

    fn is_hurried(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }
}
