//! `lithify bench compare`: two runs side by side.

use std::path::{Path, PathBuf};

use clap::Args;
use lithify_lab::comparison::{self, Comparison, render};
use lithify_lab::records::{self, file, kinds};
use lithify_report::{Finding, Outcome};

use super::places::read_record;
use super::screen::shown_report;
use crate::fault::{Fault, print, say};

/// `bench compare`
#[derive(Debug, Args)]
#[command(after_help = "\
A and B are the records of two runs (.json, .json.zst), their directories (results/runs/NAME), or two
directories of records, which are compared by their names. Ratios are B / A of geometric means over the repeats,
with a 95 % interval. Of the significant differences at most 5 % are expected to be false; n.s. is
not significant. Runs of different days give directions only: the day changes ratios by more than
the ranges inside one day. docs/reports.md has the rule. Runs of another workload, scale, machine or other settings are refused with exit code 2 and
a line that says what differs.

Examples:
  lithify bench compare before.json after.json
  lithify bench compare results/db-old.json results/db-new.json --csv > figures.csv
  lithify bench compare old-results/ results/ --json
  lithify bench compare cached.json another-machine.json --ignore-settings")]
pub struct CompareArguments {
    /// The first run, or a directory of runs
    first: PathBuf,
    /// The second run, which is given in units of the first
    second: PathBuf,
    /// Compare runs that were not measured alike, and say what differs
    #[arg(long)]
    ignore_settings: bool,
    /// One line per figure, nothing rounded
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Everything, for programs
    #[arg(long)]
    json: bool,
}

/// Compares them.
pub fn run(arguments: &CompareArguments) -> Result<(), Fault> {
    for path in [&arguments.first, &arguments.second] {
        if !path.exists() {
            let path = path.display();
            return Err(Fault::usage(format!("{path}: there is no such file or directory")));
        }
    }
    let pairs = pairs(&arguments.first, &arguments.second)?;
    let several = pairs.len() > 1;
    let mut compared = Vec::new();
    for [first, second] in &pairs {
        match one(first, second, arguments.ignore_settings) {
            Ok(comparison) => compared.push(comparison),
            // Of many runs some may have changed: the others are still of use.
            Err(fault) if several => say(&format!("left out: {}", fault.text())),
            Err(fault) => return Err(fault),
        }
    }
    if compared.is_empty() {
        return Err(Fault::usage("no two runs can be compared"));
    }
    print(&rendered(&compared, arguments)?)
}

fn is_one_place(first: &Path, second: &Path) -> bool {
    let [first, second] = [first, second].map(|path| path.canonicalize().ok());
    first.is_some() && first == second
}

fn rendered(compared: &[Comparison], arguments: &CompareArguments) -> Result<String, Fault> {
    if arguments.json {
        let values: Vec<serde_json::Value> = compared.iter().map(render::json).collect();
        let text = match values.as_slice() {
            [one] => serde_json::to_string_pretty(one),
            several => serde_json::to_string_pretty(several),
        };
        return text.map(|text| format!("{text}\n")).map_err(Fault::failure);
    }
    if arguments.csv {
        let mut text = String::new();
        for (index, comparison) in compared.iter().enumerate() {
            let lines = render::csv(comparison);
            let own = if index == 0 { 0 } else { lines.find('\n').map_or(0, |end| end + 1) };
            text.push_str(&lines[own..]);
        }
        return Ok(text);
    }
    let is_one = is_one_place(&arguments.first, &arguments.second);
    let shown = |comparison: &Comparison| {
        let mut report = render::report(comparison);
        if is_one {
            let same = "both names are of one record: no figure differs.";
            report.answer.found.insert(0, Finding::new(Outcome::Note, "Same", same));
        }
        shown_report(&report)
    };
    let texts: Vec<String> = compared.iter().map(shown).collect();
    Ok(texts.join("\n"))
}

fn one(first: &Path, second: &Path, ignore_settings: bool) -> Result<Comparison, Fault> {
    let [a, b] = [first, second].map(|path| read_record(path).map(|run| kinds::results(&run)));
    let (a, b) = (a?, b?);
    let refused = |why: comparison::Refusal| {
        Fault::usage(format!("{} and {}: {why}", first.display(), second.display()))
    };
    let mut comparison = comparison::compare(&a, &b, ignore_settings).map_err(refused)?;
    let name = |path: &Path, title: &str| format!("{}: {title}", path.display());
    let [one, other] = &comparison.titles;
    comparison.titles = [name(first, one), name(second, other)];
    Ok(comparison)
}

/// The runs to compare: the two, or those of one name in both directories.
fn pairs(first: &Path, second: &Path) -> Result<Vec<[PathBuf; 2]>, Fault> {
    let holds_runs = |path: &Path| path.is_dir() && !records::is_run(path);
    if !holds_runs(first) || !holds_runs(second) {
        return Ok(vec![[first.to_owned(), second.to_owned()]]);
    }
    let files = |path: &Path| file::files_in(path).map_err(Fault::failure);
    let (ours, mut theirs) = (files(first)?, files(second)?);
    let pairs: Vec<[PathBuf; 2]> =
        ours.into_iter().filter_map(|(name, path)| Some([path, theirs.remove(&name)?])).collect();
    if pairs.is_empty() {
        return Err(Fault::usage(format!(
            "{} and {} have no record of one name",
            first.display(),
            second.display()
        )));
    }
    Ok(pairs)
}
