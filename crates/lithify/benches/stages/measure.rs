//! CPU time of the calling thread, several times over, and the table in which it is printed.
//!
//! The least of the repeats is what the work takes; the median says how far others disturbed it.

use lithify::base::Clock;
use lithify::fs::SystemEnvironment;
use lithify::{Error, Result};
use std::path::PathBuf;

/// What a run may be told by the environment.
pub struct Settings {
    /// Rows of the stages that write. `LITHIFY_BENCH_ROWS`.
    pub rows: usize,
    /// Rows under gets and scans. `LITHIFY_BENCH_READ_ROWS`.
    pub read_rows: usize,
    /// How often everything is measured. `LITHIFY_BENCH_REPEATS`.
    pub repeats: usize,
    /// Where databases are made and removed again. `LITHIFY_BENCH_DIR`.
    pub directory: PathBuf,
    /// Only stages whose name contains this: the first argument.
    pub filter: String,
}

impl Settings {
    pub fn from_environment() -> Result<Self> {
        let number = |name: &str, default: usize| match std::env::var(name) {
            Ok(text) => text.parse().map_err(|_| Error::invalid(name).expected("a number", text)),
            Err(_) => Ok(default),
        };
        let directory = std::env::var_os("LITHIFY_BENCH_DIR");
        let is_filter = |argument: &String| !argument.starts_with('-');
        Ok(Settings {
            rows: number("LITHIFY_BENCH_ROWS", 100_000)?.max(1_000),
            read_rows: number("LITHIFY_BENCH_READ_ROWS", 1_000_000)?.max(1_000),
            repeats: number("LITHIFY_BENCH_REPEATS", 5)?.max(1),
            directory: directory.map_or_else(std::env::temp_dir, PathBuf::from),
            filter: std::env::args().skip(1).find(is_filter).unwrap_or_default(),
        })
    }

    /// Whether a stage of that name is asked for.
    pub fn wants(&self, stage: &str) -> bool {
        stage.contains(&self.filter)
    }

    /// A directory that is removed with the value.
    pub fn scratch(&self) -> Result<tempfile::TempDir> {
        tempfile::Builder::new()
            .prefix("lithify-stages-")
            .tempdir_in(&self.directory)
            .map_err(|error| Error::io("cannot make a directory", &self.directory, error))
    }
}

/// Nanoseconds of thread CPU that `work` takes, and what it gives.
pub fn cpu_ns<R>(work: impl FnOnce() -> R) -> (f64, R) {
    let start_ns = SystemEnvironment.thread_cpu_ns();
    let result = work();
    ((SystemEnvironment.thread_cpu_ns() - start_ns) as f64, result)
}

/// Nanoseconds per row, one figure per repeat.
#[derive(Clone, Default)]
pub struct Samples(Vec<f64>);

impl Samples {
    pub fn add(&mut self, total_ns: f64, rows: usize) {
        self.0.push(total_ns / rows as f64);
    }

    pub fn least(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

/// What a row may cost, in nanoseconds.
#[derive(Clone, Copy)]
pub enum Budget {
    /// Nobody has set one.
    None,
    /// In all.
    Total(f64),
    /// Beside the codec.
    OverCodec(f64),
}

/// One line of the table; every figure is of one row.
pub struct Line {
    pub stage: String,
    pub rows: usize,
    pub total: Samples,
    /// What of it are calls of the file system, where that is known.
    pub file_ns: Option<f64>,
    /// The codec alone on the same blocks.
    pub codec: Option<Samples>,
    pub budget: Budget,
}

impl Line {
    pub fn print_head() {
        println!(
            "{:<26} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>6}  budget",
            "stage", "rows", "min ns", "median", "in files", "codec", "over", "ratio"
        );
    }

    pub fn print(&self) {
        let least = self.total.least();
        let codec_ns = self.codec.as_ref().map(Samples::least);
        let figure = |value: Option<f64>| value.map_or("-".to_string(), |ns| format!("{ns:.1}"));
        let over_ns = codec_ns.map(|codec_ns| least - codec_ns);
        let ratio = codec_ns.filter(|ns| *ns >= 1.0).map(|ns| least / ns);
        let verdict = |limit: f64, value: f64| {
            let missed = 100.0 * (value / limit - 1.0);
            if value <= limit { "met".to_string() } else { format!("missed by {missed:.0} %") }
        };
        let budget = match self.budget {
            Budget::None => "-".to_string(),
            Budget::Total(limit) => format!("{limit:.0}: {}", verdict(limit, least)),
            Budget::OverCodec(limit) => {
                format!("codec + {limit:.0}: {}", verdict(limit, over_ns.unwrap_or(least)))
            }
        };
        println!(
            "{:<26} {:>9} {:>8.1} {:>8.1} {:>8} {:>8} {:>8} {:>6}  {budget}",
            self.stage,
            self.rows,
            least,
            self.total.median(),
            figure(self.file_ns),
            figure(codec_ns),
            figure(over_ns),
            ratio.map_or("-".to_string(), |ratio| format!("{ratio:.2}")),
        );
    }
}
