//! A run that is ready to be measured: what `bench run` and the commands with experiments of their
//! own do alone, and `bench run --all` one after the other.

use std::collections::BTreeSet;
use std::io::{IsTerminal, stderr};
use std::path::{Path, PathBuf};

pub use lithify_lab::kind::planned::{CellState, How};
use lithify_lab::kind::planned::{Outcome, PlannedRun};
use lithify_lab::run::estimate::Outlook;
use lithify_lab::run::progress::{Announcer, Terminal};
use lithify_lab::run::store::{read_seconds, write_files};

use super::places::Places;
use super::process::{print_report, watch_signals};
use super::screen::shown_beside;
use crate::fault::Fault;

/// What a run came to.
pub struct Measured {
    /// The report for people.
    pub text: String,
    /// Where the report is.
    pub files: Vec<PathBuf>,
    /// What went wrong, in one line; `None` when every cell counts.
    pub fault: Option<Fault>,
}

/// A run that is ready to be measured.
pub trait Ready {
    /// Its name: of its files, and of its directory beside those of other runs.
    fn name(&self) -> String;

    /// The scale, where there are several.
    fn scale(&self) -> Option<&str>;

    /// What is left out and why, line by line.
    fn skipped(&self) -> &[String];

    /// Its cells in the order in which they run; which of them were measured is read from `results`.
    fn cells(&self, results: &Path) -> Vec<CellState>;

    /// Free disk that a cell needs, bytes.
    fn disk_bytes(&self) -> u64;

    /// Measures what was not measured and writes the report.
    ///
    /// # Errors
    /// The run was stopped, or could not begin. Cells that failed are in what it came to.
    fn measure(&self, how: &How<'_>, announcer: &mut dyn Announcer) -> Result<Measured, Fault>;
}

/// Every kind whose runs are cells is ready alike.
impl Ready for Box<dyn PlannedRun> {
    fn name(&self) -> String {
        (**self).name()
    }

    fn scale(&self) -> Option<&str> {
        (**self).scale()
    }

    fn skipped(&self) -> &[String] {
        (**self).skipped()
    }

    fn cells(&self, results: &Path) -> Vec<CellState> {
        (**self).cells(results)
    }

    fn disk_bytes(&self) -> u64 {
        (**self).disk_bytes()
    }

    fn measure(&self, how: &How<'_>, announcer: &mut dyn Announcer) -> Result<Measured, Fault> {
        let outcome = (**self).measure(how, announcer).map_err(Fault::failure)?;
        let Some(Outcome { report, files, fault }) = outcome else {
            return Err(stopped(self, how.results));
        };
        let files = write_files(how.results, &files).map_err(Fault::failure)?;
        Ok(Measured { text: shown_beside(report, &files), files, fault: fault.map(Fault::failure) })
    }
}

/// What is known of the time that a run takes.
pub fn outlook(ready: &dyn Ready, results: &Path, fresh: bool) -> Outlook {
    let planned = ready.cells(results);
    let done = planned.iter().filter(|planned| planned.is_measured && !fresh);
    let done: BTreeSet<String> = done.map(|planned| planned.cell.id.clone()).collect();
    let cells = planned.into_iter().map(|planned| planned.cell).collect();
    Outlook::new(cells, done, read_seconds(&results.join("runs").join(ready.name())))
}

/// The end of a run that was stopped; all that was measured is kept, in this run or before.
pub fn stopped(ready: &dyn Ready, results: &Path) -> Fault {
    let cells = ready.cells(results);
    let measured = cells.iter().filter(|cell| cell.is_measured).count();
    Fault::interrupted(format!(
        "stopped; {measured} of {} cells are measured and kept, the same command goes on",
        cells.len()
    ))
}

/// Measures one run by itself and prints its report. `lines` are said before it begins.
pub fn alone(
    ready: &dyn Ready,
    results: &Path,
    data: Option<&Path>,
    fresh: bool,
    lines: &[String],
) -> Result<(), Fault> {
    let interrupt = watch_signals()?;
    let _places = Places::make(results, data)?;
    let how = How { results, data, fresh, interrupt: &interrupt };
    let mut terminal = Terminal::new(stderr().is_terminal());
    ready.skipped().iter().chain(lines).for_each(|line| terminal.say(line));
    let measured = ready.measure(&how, &mut terminal);
    drop(terminal);
    let Measured { text, files, fault } = measured?;
    print_report(&text, &files)?;
    fault.map_or(Ok(()), Err)
}
