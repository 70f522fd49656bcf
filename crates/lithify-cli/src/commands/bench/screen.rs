//! What the terminal gets of a report: its answer and its first table, or all of it with `--full`.

use std::io::{IsTerminal, stdout};
use std::sync::atomic::{AtomicBool, Ordering};

use lithify_lab::kind::Kind;
use lithify_lab::records::{AnyRecord, kinds};
use lithify_report::grid::Align;
use lithify_report::text::{self, Options};
use lithify_report::{Block, Report};

/// Columns where no terminal says how many it has.
const COLUMNS: usize = 100;

/// Leading columns that may be repeated where a table is split for a narrow terminal.
const KEYS_MAX: usize = 2;

/// Whether all of a report is wanted. Every command that reports asks it, at its end.
static FULL: AtomicBool = AtomicBool::new(false);

/// From now on reports are shown as a whole, or not.
pub fn set_full(full: bool) {
    FULL.store(full, Ordering::Relaxed);
}

/// A run as it is shown.
pub fn shown<K: Kind>(record: &K::Record) -> String {
    shown_report(K::report(record))
}

/// A record of any kind as it is shown.
pub fn shown_again(record: &AnyRecord) -> String {
    shown_report(kinds::report(record))
}

/// A report as it is shown.
pub fn shown_report(report: Report) -> String {
    let is_full = FULL.load(Ordering::Relaxed);
    let report = if is_full { report } else { with_table(report) };
    text::render(&report, options(is_full))
}

/// With the table that the answer is shown with: its own, else the first of its sections.
fn with_table(mut report: Report) -> Report {
    if report.headline.is_none() {
        let blocks = report.sections.iter().flat_map(|section| &section.blocks);
        let mut tables = blocks.filter_map(|block| match block {
            Block::Table(table) if !table.folded => Some(table.clone()),
            _ => None,
        });
        report.headline = tables.next().map(|table| {
            let names = (0..KEYS_MAX).take_while(|column| table.align(*column) == Align::Left);
            let keys = names.count().max(1);
            table.keyed_by(keys)
        });
    }
    report
}

/// As wide as the terminal, and coloured there alone.
fn options(full: bool) -> Options {
    let is_terminal = stdout().is_terminal();
    let columns = terminal_size::terminal_size().map(|(columns, _)| usize::from(columns.0));
    let width = columns.filter(|_| is_terminal).unwrap_or(COLUMNS);
    let color = is_terminal && std::env::var_os("NO_COLOR").is_none();
    Options { width, full, color }
}
