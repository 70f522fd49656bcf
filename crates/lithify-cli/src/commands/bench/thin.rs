//! `lithify bench thin`: a record made small enough for a repository, saying the same.

use std::path::{Path, PathBuf};

use clap::Args;
use lithify_lab::records::thin::thin;
use lithify_lab::records::{AnyRecord, kinds};
use lithify_lab::run::store::write_atomically;
use serde_json::Value;

use super::places::require_file_place;
use crate::fault::{Fault, say};

/// `bench thin`
#[derive(Debug, Args)]
#[command(after_help = "\
Of lists over time, the first, the last, the peaks of all figures in bytes, and as many in
between as --samples says are kept; numbers keep twelve digits. The report made from the copy is
compared with the one made from the record: when they differ nothing is written. The page made
from the copy has coarser plots over time, and its CSV the digits that are left.

Examples:
  lithify bench thin results/zlib-vs-zstd-cached.json --to kept/zlib-vs-zstd-cached.json
  lithify bench thin results/overwrite-lithify.json --samples 100 --to kept/overwrite-lithify.json")]
pub struct ThinArguments {
    /// The JSON of a run, or its directory (results/runs/NAME), also of one that was stopped
    record: PathBuf,
    /// Where the smaller one goes
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// Samples that stay of each list over time, beside its peaks
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    samples: u32,
}

/// Makes it.
pub fn run(arguments: &ThinArguments) -> Result<(), Fault> {
    let (from, to) = (arguments.record.as_path(), arguments.to.as_path());
    let text = text_of(from)?;
    require_file_place("--to", to)?;
    let wanted = report(from, &text)?;
    let mut record: Value = serde_json::from_str(&text).map_err(Fault::failure)?;
    thin(&mut record, arguments.samples as usize);
    let thinned = format!("{record}\n");
    if report(from, &thinned)? != wanted {
        return Err(Fault::failure(format!(
            "{}: with {} samples the report would say something else; nothing was written; keep \
             more with --samples",
            from.display(),
            arguments.samples
        )));
    }
    write_atomically(to, thinned.as_bytes()).map_err(Fault::failure)?;
    let kib = |text: &str| text.len().div_ceil(1024);
    say(&format!("{}: {} KiB of {} KiB", to.display(), kib(&thinned), kib(&text)));
    Ok(())
}

/// A record as JSON.
fn text_of(from: &Path) -> Result<String, Fault> {
    if from.is_dir() {
        let record = AnyRecord::read(from).map_err(Fault::usage)?;
        return kinds::json(&record).map_err(Fault::failure);
    }
    std::fs::read_to_string(from)
        .map_err(|error| Fault::usage(format!("{}: {error}", from.display())))
}

/// What people are told by a record.
fn report(path: &Path, text: &str) -> Result<String, Fault> {
    let record = AnyRecord::parse(path, text).map_err(Fault::failure)?;
    kinds::text(&record).ok_or_else(|| {
        Fault::usage(format!("{} holds figures without the rest of their record", path.display()))
    })
}
