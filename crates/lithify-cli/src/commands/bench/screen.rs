//! What the terminal gets of a report: its answer and its first table, or all of it with `--full`.

use std::io::{IsTerminal, stdout};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use lithify_lab::records::{AnyRecord, kinds};
use lithify_report::Report;
use lithify_report::text::{self, Options};

/// Columns where no terminal says how many it has.
const COLUMNS: usize = 100;

/// Whether all of a report is wanted. Every command that reports asks it, at its end.
static FULL: AtomicBool = AtomicBool::new(false);

/// From now on reports are shown as a whole, or not.
pub fn set_full(full: bool) {
    FULL.store(full, Ordering::Relaxed);
}

/// Whether all is wanted.
pub fn is_full() -> bool {
    FULL.load(Ordering::Relaxed)
}

/// All of a report, as wide as this terminal.
pub fn whole(report: &Report) -> String {
    text::render(report, Options { full: true, ..options() })
}

/// A run as it is shown, with what shows all of it: its record is one of `files`.
pub fn shown_beside(mut report: Report, files: &[PathBuf]) -> String {
    let is_record = |path: &&PathBuf| path.extension().is_some_and(|end| end == "json");
    if let Some(record) = files.iter().find(is_record).filter(|_| !is_full()) {
        let record = record.display();
        report.answer.next.push(format!("lithify bench show {record} --full prints all of it."));
    }
    shown_report(&report)
}

/// A record of any kind as it is shown, read from `path`.
pub fn shown_again(record: &AnyRecord, path: &Path) -> String {
    let mut report = kinds::report(record);
    if !is_full() {
        let path = path.display();
        let all = format!("lithify bench show {path} --full prints all of it.");
        let page = format!("lithify bench report {path} makes the page: all of it.");
        report.answer.next.extend([all, page]);
    }
    shown_report(&report)
}

/// A report as it is shown.
pub fn shown_report(report: &Report) -> String {
    text::render(report, Options { full: is_full(), ..options() })
}

/// Columns of this terminal.
pub fn width() -> usize {
    width_or(COLUMNS)
}

/// Columns of this terminal. Where there is none, as many as the variable `COLUMNS` says, or `unknown`.
pub fn width_or(unknown: usize) -> usize {
    let columns = terminal_size::terminal_size().map(|(columns, _)| usize::from(columns.0));
    let named = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0);
    columns.filter(|_| stdout().is_terminal()).or_else(named).unwrap_or(unknown)
}

/// Columns for what is read line by line where there is no terminal: lines stay whole there, unless the
/// variable `COLUMNS` says otherwise.
pub fn width_or_whole() -> usize {
    // Half of the largest number, so that sums with it are numbers too.
    width_or(usize::MAX / 2)
}

/// As wide as the terminal, and coloured there alone.
fn options() -> Options {
    let color = stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    Options { width: width(), full: false, color }
}
