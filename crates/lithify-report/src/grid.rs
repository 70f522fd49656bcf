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

    /// With its last column first: it names the rows, whose figures are in the published order.
    #[must_use]
    pub fn named_by_last(mut self) -> Grid {
        if !self.columns.is_empty() {
            self.columns.rotate_right(1);
        }
        for row in self.rows.iter_mut().filter(|row| !row.is_empty()) {
            row.rotate_right(1);
        }
        self
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_comes_first() {
        let columns = [("ips", Align::Right), ("engine", Align::Left)];
        let grid = Grid::new(&columns, vec![vec!["1".to_owned(), "lz4".to_owned()]]);
        let turned = grid.named_by_last();
        assert_eq!(turned.columns[0].0, "engine");
        assert_eq!(turned.rows[0], ["lz4", "1"]);
        assert_eq!(Grid::default().named_by_last(), Grid::default());
    }
}
