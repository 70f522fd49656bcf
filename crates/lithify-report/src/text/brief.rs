//! A table for one screen: what was measured of it, as much as fits, and a line on the rest.

use super::table;
use crate::figure::MISSING;
use crate::grid::Align;
use crate::model::{Block, Bounds, Cell, Claim, Column, Drawing, Paint, Plot, Report, Table};

/// Rows that are shown however long the rest of the screen is.
const ROWS_MIN: usize = 6;

/// Names of rows or columns that are said; where there are more, their number is.
const NAMED_MAX: usize = 4;

/// Leading columns of words that name the rows of a table that does not say so.
const KEYS_MAX: usize = 2;

/// The one table of a screen: that of the report, else published figures beside measured ones, else
/// the first table.
pub(super) fn headline(report: &Report) -> Option<Table> {
    let blocks = || report.sections.iter().flat_map(|section| &section.blocks);
    let published = || {
        blocks().find_map(|block| match block {
            Block::Plot(plot) => published(plot),
            _ => None,
        })
    };
    let first = || {
        let table = blocks().find_map(|block| match block {
            Block::Table(table) if !table.folded => Some(table.clone()),
            _ => None,
        })?;
        let names = (0..KEYS_MAX).take_while(|column| table.align(*column) == Align::Left);
        let keys = names.count().max(table.keys).max(1);
        Some(table.keyed_by(keys))
    };
    report.headline.clone().or_else(published).or_else(first)
}

/// The rows of a plot that have something published beside them, as a table.
fn published(plot: &Plot) -> Option<Table> {
    let Drawing::Rows(rows) = &plot.drawing else { return None };
    let columns = ["of", "figure", "published", "here [95\u{a0}%]", "claim"].map(Column::new);
    let mut table = Table::new(plot.title.as_str(), columns).keyed_by(3);
    for group in &rows.groups {
        for row in &group.rows {
            let (Some(published), Some(here)) = (row.published, row.marks.first()) else {
                continue;
            };
            let bounds =
                row.span.map_or(Bounds::Unknown, |(low, high)| Bounds::Interval(low, high));
            let claim = match row.paint {
                Paint::Good => Claim::Confirmed,
                Paint::Bad => Claim::Contradicted,
                Paint::Series(_) | Paint::Even | Paint::Published => Claim::Undecided,
            };
            table.push([
                group.name.as_str().into(),
                row.name.as_str().into(),
                published.into(),
                Cell::ratio(*here, bounds),
                claim.into(),
            ]);
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

/// The lines of a table on a screen that has room for `room` of them, and what was left out.
pub(super) fn lines(
    table: &Table,
    columns: usize,
    room: usize,
    paint: impl Fn(&Cell, &str) -> String,
) -> (Vec<String>, Option<String>) {
    let mut brief = Brief::of(table);
    if brief.table.rows.is_empty() {
        return (Vec::new(), brief.left_out());
    }
    let (mut lines, rows) = loop {
        match table::whole(&brief.table, columns, &paint) {
            Ok(whole) => break whole,
            Err(count) => brief.cut_columns(count),
        }
    };
    let mut shown = 0;
    for row in &rows {
        if shown >= ROWS_MIN && lines.len() + row.len() > room {
            break;
        }
        lines.extend(row.iter().cloned());
        shown += 1;
    }
    brief.more_rows = rows.len() - shown;
    (lines, brief.left_out())
}

/// A table without what was not measured.
struct Brief {
    table: Table,
    /// Names of rows without a figure.
    unmeasured: Vec<String>,
    /// Names of columns that do not fit.
    columns: Vec<String>,
    /// How many rows do not fit.
    more_rows: usize,
}

impl Brief {
    fn of(table: &Table) -> Brief {
        let mut table = table.clone();
        let keys = table.keys.clamp(1, table.columns.len().max(1));
        let names: Vec<usize> = (0..keys).filter(|key| table.align(*key) == Align::Left).collect();
        let name = |row: &Vec<Cell>| {
            let texts: Vec<String> =
                names.iter().filter_map(|key| row.get(*key)).map(Cell::text).collect();
            texts.join(" ")
        };
        let is_measured = |row: &Vec<Cell>| row.iter().skip(keys).any(|cell| !is_missing(cell));
        let (measured, unmeasured): (Vec<_>, Vec<_>) =
            std::mem::take(&mut table.rows).into_iter().partition(is_measured);
        // A table of names alone has no figures that could be missing.
        let (rows, unmeasured) = match table.columns.len() > keys {
            true => (measured, unmeasured),
            false => (unmeasured, Vec::new()),
        };
        let has_figures = !rows.is_empty();
        let is_empty = |column: usize| {
            rows.iter().all(|row: &Vec<Cell>| row.get(column).is_none_or(is_missing))
        };
        let kept: Vec<usize> = (0..table.columns.len())
            .filter(|column| *column < keys || !has_figures || !is_empty(*column))
            .collect();
        let unmeasured = unmeasured.iter().map(name).collect();
        table.rows = rows;
        let mut brief = Brief { table, unmeasured, columns: Vec::new(), more_rows: 0 };
        brief.keep(&kept);
        brief
    }

    /// Keeps these columns alone.
    fn keep(&mut self, kept: &[usize]) {
        // By their cells as they are: a column does not turn when rows go.
        let aligned = kept.iter().map(|column| {
            let mut of = self.table.columns[*column].clone();
            of.align = Some(self.table.align(*column));
            of
        });
        let columns = aligned.collect();
        for row in &mut self.table.rows {
            *row = kept.iter().filter_map(|column| row.get(*column).cloned()).collect();
        }
        self.table.columns = columns;
    }

    /// Keeps the first columns; never all of them, so that there is an end to it.
    fn cut_columns(&mut self, count: usize) {
        let count = count.min(self.table.columns.len() - 1).max(1);
        let gone = self.table.columns[count..].iter().map(|column| column.name.clone());
        let gone: Vec<String> = gone.collect();
        self.columns.splice(0..0, gone);
        self.keep(&(0..count).collect::<Vec<_>>());
    }

    /// What is not on the screen.
    fn left_out(&self) -> Option<String> {
        let mut sentences = Vec::new();
        if !self.unmeasured.is_empty() {
            let what = named(&self.unmeasured, "row", "rows");
            sentences.push(format!("Not measured: {what}."));
        }
        let mut more = Vec::new();
        match self.more_rows {
            0 => {}
            1 => more.push("1 row".to_owned()),
            count => more.push(format!("{count} rows")),
        }
        if !self.columns.is_empty() {
            more.push(named(&self.columns, "column", "columns"));
        }
        if !more.is_empty() {
            sentences.push(format!("More with --full and on the page: {}.", more.join(", ")));
        }
        (!sentences.is_empty()).then(|| sentences.join(" "))
    }
}

/// Few things by their names, many by their number.
fn named(names: &[String], one: &str, several: &str) -> String {
    let count = names.len();
    match count {
        1 => format!("1 {one} ({})", names[0]),
        _ if count <= NAMED_MAX => format!("{count} {several} ({})", names.join(", ")),
        _ => format!("{count} {several}"),
    }
}

/// True for a cell that has nothing to say.
fn is_missing(cell: &Cell) -> bool {
    match cell {
        Cell::Missing => true,
        Cell::Text(text) => text.is_empty() || text == MISSING,
        _ => false,
    }
}
