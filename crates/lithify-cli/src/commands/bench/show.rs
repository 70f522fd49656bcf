//! `lithify bench show`: renders a run again from its raw results.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lithify_lab::chunks::{self, plan::ChunkPlan};
use lithify_lab::records::AnyRecord;
use lithify_lab::run::cells::read_run;
use lithify_lab::tables::{self, plan::TablePlan};
use lithify_lab::{dbbench, loop_experiment, overwrite, report};

use crate::fault::{Fault, print};

/// `bench show`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lithify bench show results/zlib-vs-zstd-cached.json
  lithify bench show results/runs/zlib-vs-zstd-smoke
  lithify bench show results/zlib-vs-zstd-cached.json --format csv
  lithify bench show results/compress-or-not-smoke.json")]
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
    if let Some(run) = read_run::<TablePlan>(&arguments.results).map_err(Fault::failure)? {
        return print(&match arguments.format {
            Format::Text => tables::report::render(&run),
            Format::Csv => tables::csv::render(&run),
        });
    }
    if let Some(run) = read_run::<ChunkPlan>(&arguments.results).map_err(Fault::failure)? {
        return print(&match arguments.format {
            Format::Text => chunks::report::render(&run),
            Format::Csv => chunks::csv::render(&run),
        });
    }
    let text = matches!(arguments.format, Format::Text);
    let shown = match AnyRecord::read(&arguments.results).map_err(Fault::failure)? {
        AnyRecord::LinkBench(record) if text => report::render(&record),
        AnyRecord::LinkBench(record) => report::csv::render(&record),
        AnyRecord::Loops(record) if text => loop_experiment::report::render(&record),
        AnyRecord::Loops(record) => loop_experiment::csv::figures(&record),
        AnyRecord::Db(record) if text => dbbench::report::render(&record),
        AnyRecord::Db(record) => dbbench::report::csv(&record),
        AnyRecord::Overwrite(record) if text => overwrite::report::render(&record),
        AnyRecord::Overwrite(record) => {
            overwrite::report::csv(record.result.as_ref().unwrap_or(&record.driver))
        }
        AnyRecord::Digest(_) => {
            return Err(Fault::usage(format!(
                "{} holds figures without the rest of their record; `bench report` makes a page of \
                 them",
                arguments.results.display()
            )));
        }
    };
    print(&shown)
}
