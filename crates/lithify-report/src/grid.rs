//! Tables without types: columns with an alignment, rows of texts. Kinds of runs that are not yet
//! functions to a report make these; [`Table`](crate::Table) takes them.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use serde::{Deserialize, Serialize};

/// How a column is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Align {
    /// Words.
    Left,
    /// Figures.
    Right,
}

/// Renders rows under a header, without lines, as wide as it needs to be.
pub fn table(columns: &[(&str, Align)], rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Disabled);
    let cell = |text: &str, align| {
        Cell::new(text).set_alignment(match align {
            Align::Left => CellAlignment::Left,
            Align::Right => CellAlignment::Right,
        })
    };
    table.set_header(columns.iter().map(|(name, align)| cell(name, *align)));
    for row in rows {
        debug_assert_eq!(row.len(), columns.len());
        table.add_row(row.iter().zip(columns).map(|(text, (_, align))| cell(text, *align)));
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// A table before it is printed or drawn: columns with their alignment, rows of texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grid {
    /// Headings.
    pub columns: Vec<(String, Align)>,
    /// Rows, each as wide as the headings.
    pub rows: Vec<Vec<String>>,
}

impl Grid {
    /// A table of `rows` under `columns`.
    pub fn new(columns: &[(&str, Align)], rows: Vec<Vec<String>>) -> Grid {
        let columns = columns.iter().map(|(name, align)| ((*name).to_owned(), *align)).collect();
        Grid { columns, rows }
    }

    /// As [`table`] renders it.
    pub fn text(&self) -> String {
        let columns: Vec<(&str, Align)> =
            self.columns.iter().map(|(name, align)| (name.as_str(), *align)).collect();
        table(&columns, &self.rows)
    }

    /// As text, or `none` when there are no rows.
    pub fn text_or(&self, none: &str) -> String {
        if self.rows.is_empty() { none.to_owned() } else { self.text() }
    }
}

/// Heading of the first column of tables over time.
pub const SECOND: &str = "second";

/// A row begins with its name. Grids of the terminal that begin with figures have the name at their
/// end.
pub(crate) fn with_header_first(mut grid: Grid) -> Grid {
    let begins_with_figures = grid.columns.first().is_some_and(|(_, align)| *align == Align::Right);
    let last_words = grid.columns.iter().rposition(|(_, align)| *align == Align::Left);
    let Some(header) = last_words.filter(|_| begins_with_figures && !is_time(&grid)) else {
        return grid;
    };
    grid.columns[..=header].rotate_right(1);
    for row in grid.rows.iter_mut().filter(|row| row.len() > header) {
        row[..=header].rotate_right(1);
    }
    grid
}

/// True for a table over time, whose first column is its header though it is of numbers.
fn is_time(grid: &Grid) -> bool {
    grid.columns.first().is_some_and(|(name, _)| name == SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_begin_with_their_names() {
        let columns = [("ips", Align::Right), ("engine", Align::Left)];
        let grid = Grid::new(&columns, vec![vec!["1".to_owned(), "lz4".to_owned()]]);
        let turned = with_header_first(grid);
        assert_eq!(turned.columns[0].0, "engine");
        assert_eq!(turned.rows[0], ["lz4", "1"]);
        let time = [(SECOND, Align::Right), ("note", Align::Left)];
        let grid = Grid::new(&time, Vec::new());
        assert_eq!(with_header_first(grid.clone()), grid);
    }
}
