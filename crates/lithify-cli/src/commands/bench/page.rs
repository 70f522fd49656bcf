//! `lithify bench report`: makes the page of a run from its results.

use std::path::PathBuf;

use clap::Args;
use lithify_lab::html;
use lithify_lab::records::AnyRecord;
use lithify_lab::run::store::write_atomically;

use crate::fault::{Fault, say};

/// `bench report`
#[derive(Debug, Args)]
#[command(after_help = "\
The page is one file that needs nothing else: summary in words, plots, tables, machine. Every
browser shows it, without a network, on a phone, in the dark and on paper (docs/reports.md).

Examples:
  lithify bench report results/lithify-vs-rocksdb-cached.json
  lithify bench report results/runs/zlib-vs-zstd-smoke --out /tmp/zlib.html")]
pub struct ReportArguments {
    /// The JSON of a run, or its directory
    results: PathBuf,
    /// Where the page goes; beside the results when not given
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Makes it.
pub fn run(arguments: &ReportArguments) -> Result<(), Fault> {
    let results = &arguments.results;
    if !results.exists() {
        let path = results.display();
        return Err(Fault::usage(format!("{path}: there is no such file or directory")));
    }
    let beside = match results.is_dir() {
        // A directory's name may have dots in it.
        true => results.with_file_name(format!(
            "{}.html",
            results.file_name().unwrap_or_default().to_string_lossy()
        )),
        false => results.with_extension("html"),
    };
    let out = arguments.out.clone().unwrap_or(beside);
    if out.is_dir() {
        return Err(Fault::usage(format!("--out {} is a directory", out.display())));
    }
    let record = AnyRecord::read(results).map_err(Fault::failure)?;
    write_atomically(&out, html::render(&record).as_bytes()).map_err(Fault::failure)?;
    say(&format!("page: {}", out.display()));
    Ok(())
}
