//! `lithify bench report`: makes the page of a run from its results, or of all runs of a directory.

use std::path::{Path, PathBuf};

use clap::Args;
use lithify_lab::records::{self, AnyRecord, file, kinds};
use lithify_lab::run::store::write_atomically;

use super::places::require_file_place;
use crate::fault::{Fault, say};

/// `bench report`
#[derive(Debug, Args)]
#[command(after_help = "\
The page is one file that needs nothing else: summary in words, plots, tables, machine. Every
browser shows it, without a network, on a phone, in the dark and on paper (docs/reports.md).
Of a directory of results every run gets its page anew, and index.html links them: what was
measured, when, by which command, what came out.

Examples:
  lithify bench report results/lithify-vs-rocksdb-cached.json
  lithify bench report results/runs/zlib-vs-zstd-smoke --out /tmp/zlib.html
  lithify bench report results
  lithify bench report results --out /tmp/pages")]
pub struct ReportArguments {
    /// The record of a run (.json, .json.zst), its directory, or a directory of results
    results: PathBuf,
    /// Where the page goes, or of a directory of results the directory of the pages; beside the
    /// results when not given
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
}

/// Makes it.
pub fn run(arguments: &ReportArguments) -> Result<(), Fault> {
    let results = &arguments.results;
    if !results.exists() {
        let path = results.display();
        return Err(Fault::usage(format!("{path}: there is no such file or directory")));
    }
    match AnyRecord::read(results) {
        Ok(record) => page(arguments, &record),
        Err(error) if results.is_dir() && !records::is_run(results) => {
            let directory = arguments.out.as_deref().unwrap_or(results);
            match write_index(results, directory)? {
                Some(index) => {
                    say(&format!("index: {}", index.display()));
                    Ok(())
                }
                // There is a directory, of something else.
                None => Err(Fault::usage(error)),
            }
        }
        Err(error) => Err(Fault::failure(error)),
    }
}

/// Writes the page of one run.
fn page(arguments: &ReportArguments, record: &AnyRecord) -> Result<(), Fault> {
    let results = &arguments.results;
    // A directory's name may have dots in it, and the name of a record too.
    let beside = results.with_file_name(format!("{}.html", file::name(results)));
    let out = arguments.out.clone().unwrap_or(beside);
    require_file_place("--out", &out)?;
    write_atomically(&out, kinds::page(record).as_bytes()).map_err(Fault::failure)?;
    say(&format!("page: {}", out.display()));
    Ok(())
}

/// Writes the pages of all runs of `results` into `directory`, and the one that links them; gives
/// that one, or nothing where there is no run.
pub fn write_index(results: &Path, directory: &Path) -> Result<Option<PathBuf>, Fault> {
    let (mut runs, mut unread) = (Vec::new(), Vec::new());
    for (name, path) in file::files_in(results).map_err(Fault::failure)? {
        match AnyRecord::read(&path) {
            Ok(record) => runs.push((format!("{name}.html"), record)),
            Err(error) => unread.push(error.to_string()),
        }
    }
    if runs.is_empty() {
        return Ok(None);
    }
    std::fs::create_dir_all(directory)
        .map_err(|error| Fault::usage(format!("{}: {error}", directory.display())))?;
    for (page, record) in &runs {
        let path = directory.join(page);
        write_atomically(&path, kinds::page(record).as_bytes()).map_err(Fault::failure)?;
    }
    let index = directory.join("index.html");
    let text = records::index::render(&results.display().to_string(), &runs, &unread);
    write_atomically(&index, text.as_bytes()).map_err(Fault::failure)?;
    Ok(Some(index))
}
