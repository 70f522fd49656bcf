//! `lithify bench pack`: a record made small enough for a repository, or plain again.

use std::path::{Path, PathBuf};

use clap::Args;
use lithify_lab::records::thin::thin;
use lithify_lab::records::{AnyRecord, file, kinds};
use lithify_report::{Block, Drawing, Plot, Report};
use serde_json::Value;

use super::places::require_file_place;
use crate::fault::{Fault, say};

/// `bench pack`
#[derive(Debug, Args)]
#[command(after_help = "\
The ending of --to says the form: .json.zst is compressed with zstd, .json is plain. Nothing is lost:
both forms hold the same bytes, every command reads both, and so does `zstd -dc FILE`.

With --samples N a record gets smaller still. Of lists over time, the first, the last, the peaks of
all figures in bytes, and N in between stay; numbers keep twelve digits. The report made from the
copy is compared with the one made from the record: when they differ nothing is written. The page
made from the copy has coarser plots over time, and its CSV the digits that are left.

Examples:
  lithify bench pack results/zlib-vs-zstd-cached.json --to kept/zlib-vs-zstd-cached.json.zst
  lithify bench pack kept/zlib-vs-zstd-cached.json.zst --to plain.json
  lithify bench pack results/runs/zlib-vs-zstd-smoke --to stopped.json.zst
  lithify bench pack results/overwrite-lithify.json --samples 100 --to kept/overwrite.json.zst")]
pub struct PackArguments {
    /// The record of a run (.json, .json.zst), or its directory, also of one that was stopped
    record: PathBuf,
    /// Where the copy goes; its ending, .json or .json.zst, says in which form
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// Samples that stay of each list over time, beside its peaks; all when not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    samples: Option<u32>,
}

/// Makes it.
pub fn run(arguments: &PackArguments) -> Result<(), Fault> {
    let (from, to) = (arguments.record.as_path(), arguments.to.as_path());
    if !from.exists() {
        let path = from.display();
        return Err(Fault::usage(format!("{path}: there is no such file or directory")));
    }
    require_file_place("--to", to)?;
    if file::ending(to).is_none() {
        let endings = file::ENDINGS.join(" or ");
        return Err(Fault::usage(format!("--to {} does not end in {endings}", to.display())));
    }
    let text = text_of(from)?;
    let record = AnyRecord::parse(from, &text).map_err(Fault::failure)?;
    let copy = match arguments.samples {
        None => text,
        Some(samples) => thinned(from, &record, &text, samples)?,
    };
    let bytes = file::write(to, &copy).map_err(Fault::failure)?;
    let kib = |bytes: usize| bytes.div_ceil(1024);
    say(&format!("{}: {} KiB, {} KiB of JSON", to.display(), kib(bytes), kib(copy.len())));
    Ok(())
}

/// A record as JSON: of a file its own bytes.
fn text_of(from: &Path) -> Result<String, Fault> {
    if from.is_dir() {
        let record = AnyRecord::read(from).map_err(Fault::usage)?;
        return kinds::json(&record).map_err(Fault::failure);
    }
    file::read(from).map_err(Fault::failure)
}

/// The record with fewer samples, when its report says the same.
fn thinned(from: &Path, record: &AnyRecord, text: &str, samples: u32) -> Result<String, Fault> {
    let wanted = report(from, record)?;
    let mut value: Value = serde_json::from_str(text).map_err(Fault::failure)?;
    thin(&mut value, samples as usize);
    let thinned = format!("{value}\n");
    let after = AnyRecord::parse(from, &thinned).map_err(Fault::failure)?;
    if report(from, &after)? != wanted {
        return Err(Fault::failure(format!(
            "{}: with {samples} samples the report would say something else; nothing was written; \
             keep more with --samples",
            from.display(),
        )));
    }
    Ok(thinned)
}

/// What people read of a record, but for its courses over time, which have fewer points.
fn report(path: &Path, record: &AnyRecord) -> Result<Report, Fault> {
    if record.kind().is_none() {
        let path = path.display();
        return Err(Fault::usage(format!("{path} holds figures without the rest of their record")));
    }
    let mut report = kinds::report(record);
    let is_course = |plot: &Plot| matches!(plot.drawing, Drawing::Lines(_));
    for section in &mut report.sections {
        section.blocks.retain(|block| !matches!(block, Block::Plot(plot) if is_course(plot)));
        for block in &mut section.blocks {
            if let Block::Plots(plots) = block {
                plots.retain(|plot| !is_course(plot));
            }
        }
    }
    Ok(report)
}
