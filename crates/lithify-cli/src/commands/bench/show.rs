//! `lithify bench show`: renders a run again from its raw results.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lithify_lab::records::{AnyRecord, kinds};

use super::places::read_record;
use super::screen::shown_again;
use crate::fault::{Fault, print};

/// `bench show`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lithify bench show results/zlib-vs-zstd-cached.json.zst
  lithify bench show results/zlib-vs-zstd-cached.json.zst --full
  lithify bench show results/runs/zlib-vs-zstd-smoke
  lithify bench show results/zlib-vs-zstd-cached.json.zst --format csv
  lithify bench show results/compress-or-not-smoke.json
  lithify bench show results/durability-lithify.json.zst")]
pub struct ShowArguments {
    /// The record of a run (.json, .json.zst), or its directory
    results: PathBuf,
    /// As what
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Forms of a report.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// Tables for people
    Text,
    /// One line per cell and phase or test
    Csv,
}

/// Shows it.
pub fn run(arguments: &ShowArguments) -> Result<(), Fault> {
    if !arguments.results.exists() {
        let path = arguments.results.display();
        return Err(Fault::usage(format!("{path}: there is no such file or directory")));
    }
    let record = read_record(&arguments.results)?;
    let shown = match arguments.format {
        Format::Text => Some(shown_again(&record, &arguments.results)),
        Format::Csv => kinds::csv(&record),
    };
    match shown {
        Some(shown) => print(&shown),
        None => Err(nothing_to_show(arguments, &record)),
    }
}

fn nothing_to_show(arguments: &ShowArguments, record: &AnyRecord) -> Fault {
    match record.kind() {
        Some(kind) => {
            Fault::usage(format!("{kind} has no figures as csv; its JSON has all of them"))
        }
        None => Fault::usage(format!(
            "{} holds figures without the rest of their record; `bench report` makes a page of \
             them",
            arguments.results.display()
        )),
    }
}
