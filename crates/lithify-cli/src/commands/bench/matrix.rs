//! `lithify bench run --all`: every experiment, one after the other, under one display.
//!
//! Nothing that was measured is measured again; what fails does not stop the others; what is left
//! out (no such scale, no engine, no data) says why and is no failure.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{IsTerminal, stderr};
use std::time::Instant;

use clap::Parser;
use lithify_lab::experiment::{AnyExperiment, CommandExperiment};
use lithify_lab::report::tables::{Align, table};
use lithify_lab::run::estimate::{Estimate, Outlook};
use lithify_lab::run::progress::ProgressLine;
use lithify_lab::run::progress::{Announcer, Terminal, duration};

use super::BenchCommand;
use super::dry_run;
use super::places::Places;
use super::process::watch_signals;
use super::ready::{How, Measured, Ready, outlook};
use super::run::{RunArguments, prepare};
use crate::fault::{Fault, print, say};

/// One experiment of the matrix.
struct Entry {
    name: String,
    id: String,
    /// What there is to do, or why it is left out.
    what: What,
}

enum What {
    Run(Box<dyn Ready>),
    LeftOut(String),
    /// Its file cannot be read.
    Broken(String),
}

/// What an experiment came to, for the summary.
struct Row {
    name: String,
    outcome: &'static str,
    cells: String,
    seconds: f64,
    note: String,
}

/// The command line of an experiment with a command of its own.
#[derive(Debug, Parser)]
#[command(name = "lithify")]
struct Own {
    #[command(subcommand)]
    command: OwnCommand,
}

#[derive(Debug, clap::Subcommand)]
enum OwnCommand {
    #[command(subcommand)]
    Bench(BenchCommand),
}

/// Makes an experiment ready that has a command of its own.
pub fn prepare_command(experiment: &CommandExperiment) -> Result<Box<dyn Ready>, Fault> {
    let command = &experiment.workload.command;
    let words = std::iter::once("lithify").chain(command.split_whitespace());
    let OwnCommand::Bench(own) = Own::try_parse_from(words)
        .map_err(|error| Fault::usage(format!("workload.command \"{command}\": {error}")))?
        .command;
    match own {
        BenchCommand::Amp(own) => Ok(Box::new(super::amplification::prepare(&own)?)),
        BenchCommand::Db(own) => Ok(Box::new(super::db::prepare_here(*own)?)),
        BenchCommand::Durability(own) => Ok(Box::new(super::durability::prepare(&own)?)),
        BenchCommand::Pages(own) => Ok(Box::new(super::pages::prepare(&own)?)),
        _ => Err(Fault::usage(format!(
            "workload.command \"{command}\" is none that runs with others: bench amp, db, durability \
             and pages are"
        ))),
    }
}

/// Runs the matrix, or says what there would be to do.
pub fn run(arguments: &RunArguments) -> Result<(), Fault> {
    let entries = entries(arguments);
    if entries.is_empty() {
        return Err(Fault::usage("no experiment has such a name or number; see `bench list`"));
    }
    let is_at_scale =
        |entry: &Entry| matches!(&entry.what, What::Run(ready) if ready.scale().is_some());
    let left_out = entries.iter().find_map(|entry| match &entry.what {
        What::LeftOut(why) => Some(why),
        _ => None,
    });
    if let Some(why) = left_out.filter(|_| !entries.iter().any(is_at_scale)) {
        let scale = &arguments.scale;
        return Err(Fault::usage(format!("no experiment runs at scale {scale}: {why}")));
    }
    if arguments.dry_run {
        print(&overview(arguments, &entries))?;
        let broken = entries.iter().filter(|entry| matches!(entry.what, What::Broken(_))).count();
        return match broken {
            0 => Ok(()),
            broken => Err(Fault::failure(format!("{broken} experiment files cannot be read"))),
        };
    }
    let interrupt = watch_signals()?;
    let _places = Places::make(&arguments.results, arguments.data.as_deref())?;
    let how = How {
        results: &arguments.results,
        data: arguments.data.as_deref(),
        fresh: arguments.fresh,
        interrupt: &interrupt,
    };
    let mut matrix = Matrix::new(&entries, arguments);
    matrix.terminal.say(&format!(
        "{} experiments, {}: {}",
        matrix.outlooks.len(),
        matrix.cells(),
        matrix.rest()
    ));
    let mut rows = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        rows.push(matrix.one(index, entry, &how));
        if how.is_stopped() {
            break;
        }
    }
    let whole = matrix.rest();
    drop(matrix);
    if !how.is_stopped() {
        let index = super::page::write_index(&arguments.results, &arguments.results)?;
        index.iter().for_each(|index| say(&format!("index: {}", index.display())));
    }
    print(&summary(&rows))?;
    if how.is_stopped() {
        return Err(Fault::interrupted(format!(
            "stopped; what is measured is kept, the same command goes on; still to do: {whole}"
        )));
    }
    let failed = rows.iter().filter(|row| row.outcome == FAILED).count();
    match failed {
        0 => Ok(()),
        failed => Err(Fault::failure(format!(
            "{failed} of {} experiments failed or have cells that do; the others are done",
            rows.len()
        ))),
    }
}

/// Words of the summary.
const FAILED: &str = "FAILED";
const DONE: &str = "done";
const LEFT_OUT: &str = "left out";
const STOPPED: &str = "stopped";

/// The experiments that are wanted: published ones first, by their numbers.
fn entries(arguments: &RunArguments) -> Vec<Entry> {
    let mut entries = Vec::new();
    for name in super::names(&arguments.experiments) {
        let (id, number, what) = match super::find(&name, &arguments.experiments) {
            Ok((experiment, _)) => (
                experiment.id().unwrap_or_default().to_owned(),
                experiment.number().unwrap_or(u64::MAX),
                ready(arguments, &experiment),
            ),
            Err(fault) => {
                let (id, number) = super::number_of_built_in(&name);
                (id, number, What::Broken(fault.text().to_owned()))
            }
        };
        let is_wanted = |glob: &glob::Pattern| glob.matches(&name) || glob.matches(&id);
        if arguments.only.as_ref().is_none_or(is_wanted) {
            entries.push((number, Entry { name, id, what }));
        }
    }
    entries.sort_by(|(one, a), (other, b)| one.cmp(other).then(a.name.cmp(&b.name)));
    entries.into_iter().map(|(_, entry)| entry).collect()
}

/// What there is to do for one experiment, how long that takes, what is missing.
pub fn overview_of(arguments: &RunArguments, experiment: &AnyExperiment) -> String {
    let entry = Entry {
        name: experiment.name().to_owned(),
        id: experiment.id().unwrap_or_default().to_owned(),
        what: ready(arguments, experiment),
    };
    overview(arguments, &[entry])
}

fn ready(arguments: &RunArguments, experiment: &AnyExperiment) -> What {
    match prepare(arguments, experiment) {
        Ok(ready) => What::Run(ready),
        Err(why) => What::LeftOut(why.text().to_owned()),
    }
}

/// What there is to do, how long that takes, what is missing.
fn overview(arguments: &RunArguments, entries: &[Entry]) -> String {
    let columns = [
        ("experiment", Align::Left),
        ("", Align::Left),
        ("scale", Align::Left),
        ("cells", Align::Right),
        ("done", Align::Right),
        ("disk MiB", Align::Right),
        ("estimate of the rest", Align::Left),
    ];
    let (mut rows, mut missing) = (Vec::new(), BTreeSet::new());
    let (mut whole, mut cells, mut disk_mib) = (Estimate::default(), [0, 0], 0);
    for entry in entries {
        let mut row = vec![entry.name.clone(), entry.id.clone()];
        match &entry.what {
            What::Run(ready) => {
                let outlook = outlook(&**ready, &arguments.results, arguments.fresh);
                let ([all, done], rest) = (outlook.counts(), outlook.rest());
                let needed_mib = ready.disk_bytes() >> 20;
                let scale = ready.scale().unwrap_or("-").to_owned();
                let figures = [all.to_string(), done.to_string(), needed_mib.to_string()];
                row.extend(std::iter::once(scale).chain(figures).chain([rest.to_string()]));
                whole = whole.plus(rest);
                cells = [cells[0] + all, cells[1] + done];
                disk_mib = disk_mib.max(needed_mib);
                missing.extend(ready.skipped().iter().cloned());
            }
            What::LeftOut(why) => {
                row.extend(["-", "-", "-", "-"].map(str::to_owned));
                row.push(format!("left out: {why}"));
            }
            What::Broken(why) => {
                row.extend(["-", "-", "-", "-"].map(str::to_owned));
                row.push(format!("BROKEN: {why}"));
            }
        }
        rows.push(row);
    }
    let mut text = format!("{}\n", table(&columns, &rows));
    let place = arguments.data.as_deref().unwrap_or(&arguments.results);
    // Writing to a String cannot fail.
    let _ = writeln!(text, "\nin all: {} cells, {} of them done; {whole}", cells[0], cells[1]);
    text.push_str(&dry_run::disk(place, disk_mib));
    if !missing.is_empty() {
        text.push_str("left out of them:\n");
        missing.iter().for_each(|line| {
            let _ = writeln!(text, "  {line}");
        });
    }
    text
}

fn summary(rows: &[Row]) -> String {
    let columns = [
        ("experiment", Align::Left),
        ("outcome", Align::Left),
        ("cells: now, before, of", Align::Left),
        ("time", Align::Right),
        ("", Align::Left),
    ];
    let line = |row: &Row| {
        let time = if row.seconds > 0.0 { duration(row.seconds) } else { "-".to_owned() };
        vec![row.name.clone(), row.outcome.to_owned(), row.cells.clone(), time, row.note.clone()]
    };
    format!("{}\n", table(&columns, &rows.iter().map(line).collect::<Vec<_>>()))
}

/// The runs of all experiments under one display.
struct Matrix {
    terminal: Terminal,
    /// Of each entry that runs, by its place among all.
    outlooks: Vec<(usize, Outlook)>,
    /// All that there was to do at the beginning, seconds.
    whole_s: f64,
    /// Cells that were measured in this run, of the current experiment.
    measured: usize,
    current: usize,
}

impl Matrix {
    fn new(entries: &[Entry], arguments: &RunArguments) -> Matrix {
        let of = |(index, entry): (usize, &Entry)| match &entry.what {
            What::Run(ready) => {
                Some((index, outlook(&**ready, &arguments.results, arguments.fresh)))
            }
            _ => None,
        };
        let outlooks: Vec<(usize, Outlook)> = entries.iter().enumerate().filter_map(of).collect();
        let terminal = Terminal::new(stderr().is_terminal());
        let mut matrix = Matrix { terminal, outlooks, whole_s: 0.0, measured: 0, current: 0 };
        matrix.whole_s = matrix.rest().seconds;
        matrix.show();
        matrix
    }

    /// What is left of all experiments.
    fn rest(&self) -> Estimate {
        let rests = self.outlooks.iter().map(|(_, outlook)| outlook.rest());
        rests.fold(Estimate::default(), Estimate::plus)
    }

    /// How many cells there are, and how many of them are done.
    fn cells(&self) -> String {
        let counts = self.outlooks.iter().map(|(_, outlook)| outlook.counts());
        let [all, done] = counts.fold([0, 0], |sum, of| [sum[0] + of[0], sum[1] + of[1]]);
        format!("{done} of {all} cells done")
    }

    /// Puts how far all of it is on the display. By cells where times are not known.
    fn show(&mut self) {
        let rest = self.rest();
        let left = match rest.cells() > 0 && rest.cells() == rest.unknown {
            true => "time left not known".to_owned(),
            false => format!("{} left", rest.time()),
        };
        let words = format!("{}, {left}", self.cells());
        // What was not known at the beginning makes the whole longer.
        self.whole_s = self.whole_s.max(rest.seconds);
        let share = match self.whole_s > 0.0 {
            true => 1.0 - rest.seconds / self.whole_s,
            false => 0.0,
        };
        self.terminal.set_whole(words, share);
    }

    fn one(&mut self, index: usize, entry: &Entry, how: &How<'_>) -> Row {
        let row = |outcome, note: String| Row {
            name: entry.name.clone(),
            outcome,
            cells: "-".to_owned(),
            seconds: 0.0,
            note,
        };
        let ready = match &entry.what {
            What::Run(ready) => ready,
            What::LeftOut(why) => return row(LEFT_OUT, why.clone()),
            What::Broken(why) => return row(FAILED, why.clone()),
        };
        (self.current, self.measured) = (index, 0);
        self.terminal.say(format!("{} {}", entry.id, entry.name).trim());
        ready.skipped().iter().for_each(|line| self.terminal.say(line));
        let began = Instant::now();
        let measured = ready.measure(how, self);
        let (outcome, note) = match measured {
            Ok(Measured { files, fault: None, .. }) => (DONE, report_of(&files)),
            Ok(Measured { files, fault: Some(fault), .. }) => {
                (FAILED, format!("{}; {}", fault.text(), report_of(&files)))
            }
            Err(fault) if fault.is_interrupted() => (STOPPED, String::new()),
            Err(fault) => (FAILED, fault.text().to_owned()),
        };
        if outcome == FAILED {
            self.terminal.say(&format!("{}: {note}", entry.name));
        }
        let counts = self.outlooks.iter().find(|(of, _)| *of == index);
        let [all, done] = counts.map_or([0, 0], |(_, outlook)| outlook.counts());
        Row {
            cells: format!("{}, {}, {all}", self.measured, done.saturating_sub(self.measured)),
            seconds: began.elapsed().as_secs_f64(),
            ..row(outcome, note)
        }
    }
}

/// The report for people among the files.
fn report_of(files: &[std::path::PathBuf]) -> String {
    let page = files.iter().find(|file| file.extension().is_some_and(|end| end == "html"));
    page.or(files.first()).map_or_else(String::new, |file| file.display().to_string())
}

impl Announcer for Matrix {
    fn say(&mut self, text: &str) {
        self.terminal.say(text);
    }

    fn begin(&mut self, text: &str) {
        self.terminal.begin(text);
    }

    fn progress(&mut self, line: &ProgressLine) {
        self.terminal.progress(line);
    }

    fn end(&mut self, text: &str) {
        self.terminal.end(text);
    }

    fn done(&mut self, id: &str, seconds: Option<f64>) {
        self.measured += usize::from(seconds.is_some());
        let current = self.current;
        if let Some((_, outlook)) = self.outlooks.iter_mut().find(|(of, _)| *of == current) {
            outlook.finish(id, seconds);
        }
        self.show();
    }
}
