//! `lithify bench show`: renders a run again from its raw results.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lithify_lab::records::AnyRecord;
use lithify_lab::{
    amplification, chunks, dbbench, durability, linkbench, loop_experiment, overwrite, page_store,
    tables,
};

use crate::fault::{Fault, print};

/// `bench show`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lithify bench show results/zlib-vs-zstd-cached.json
  lithify bench show results/runs/zlib-vs-zstd-smoke
  lithify bench show results/zlib-vs-zstd-cached.json --format csv
  lithify bench show results/compress-or-not-smoke.json
  lithify bench show results/durability-lithify.json")]
pub struct ShowArguments {
    /// The JSON of a report, or the directory of a run
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
    let record = AnyRecord::read(&arguments.results).map_err(Fault::failure)?;
    let shown = match arguments.format {
        Format::Text => text(&record),
        Format::Csv => csv(&record),
    };
    match shown {
        Some(shown) => print(&shown),
        None => Err(nothing_to_show(arguments, &record)),
    }
}

/// The report for people; nothing for figures without their record.
pub(super) fn text(record: &AnyRecord) -> Option<String> {
    Some(match record {
        AnyRecord::LinkBench(record) => linkbench::report::render(record),
        AnyRecord::Loops(record) => loop_experiment::report::render(record),
        AnyRecord::Db(record) => dbbench::report::render(record),
        AnyRecord::Overwrite(record) => overwrite::report::render(record),
        AnyRecord::Tables(run) => tables::report::render(run),
        AnyRecord::Chunks(run) => chunks::report::render(run),
        AnyRecord::Amplification(record) => amplification::report::render(record),
        AnyRecord::Durability(record) => durability::report::render(record),
        AnyRecord::Pages(record) => page_store::report::render(record),
        AnyRecord::Digest(_) => return None,
    })
}

/// The figures, one line per cell and phase or test; nothing for kinds that have no such lines.
fn csv(record: &AnyRecord) -> Option<String> {
    Some(match record {
        AnyRecord::LinkBench(record) => linkbench::report::csv::render(record),
        AnyRecord::Loops(record) => loop_experiment::csv::figures(record),
        AnyRecord::Db(record) => dbbench::report::csv(record),
        AnyRecord::Overwrite(record) => {
            overwrite::report::csv(record.result.as_ref().unwrap_or(&record.driver))
        }
        AnyRecord::Tables(run) => tables::csv::render(run),
        AnyRecord::Chunks(run) => chunks::csv::render(run),
        AnyRecord::Amplification(record) => amplification::report::csv(record),
        AnyRecord::Pages(record) => page_store::report::csv(record),
        AnyRecord::Durability(_) | AnyRecord::Digest(_) => return None,
    })
}

fn nothing_to_show(arguments: &ShowArguments, record: &AnyRecord) -> Fault {
    match record {
        AnyRecord::Durability(_) => {
            Fault::usage("durability has no figures as csv; its JSON has all of them")
        }
        _ => Fault::usage(format!(
            "{} holds figures without the rest of their record; `bench report` makes a page of \
             them",
            arguments.results.display()
        )),
    }
}
