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
    match FULL.load(Ordering::Relaxed) {
        true => K::text(record),
        false => short(K::report(record)),
    }
}

/// A report as it is shown; `whole` is all of it as text.
pub fn shown_report(whole: String, report: Report) -> String {
    match FULL.load(Ordering::Relaxed) {
        true => whole,
        false => short(report),
    }
}

/// A record of any kind as it is shown; nothing of figures without their record as a whole.
pub fn shown_again(record: &AnyRecord) -> Option<String> {
    match FULL.load(Ordering::Relaxed) {
        true => kinds::text(record),
        false => Some(short(kinds::report(record))),
    }
}

/// The answer with a table: that of the report, else the first of its sections.
fn short(mut report: Report) -> String {
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
    text::render(&report, options())
}

/// As wide as the terminal, and coloured there alone.
fn options() -> Options {
    let is_terminal = stdout().is_terminal();
    let columns = terminal_size::terminal_size().map(|(columns, _)| usize::from(columns.0));
    let width = columns.filter(|_| is_terminal).unwrap_or(COLUMNS);
    let color = is_terminal && std::env::var_os("NO_COLOR").is_none();
    Options { width, full: false, color }
}
