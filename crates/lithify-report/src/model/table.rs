//! Tables: columns with unit and direction, rows of typed cells.

use serde::{Deserialize, Serialize};

use super::Cell;
use crate::grid::{Align, Grid};

/// Which direction of a figure is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Better {
    /// Higher is better.
    Higher,
    /// Lower is better.
    Lower,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The unit of its figures; empty without.
    pub unit: String,
    /// Which direction is better, where one is.
    pub better: Option<Better>,
    /// How it is aligned; by the type of its cells where that is not said.
    pub align: Option<Align>,
}

impl Column {
    /// A column that is aligned by its cells.
    pub fn new(name: impl Into<String>) -> Column {
        Column { name: name.into(), unit: String::new(), better: None, align: None }
    }

    /// With a unit.
    #[must_use]
    pub fn unit(mut self, unit: &str) -> Column {
        unit.clone_into(&mut self.unit);
        self
    }

    /// Higher figures are better.
    #[must_use]
    pub fn higher(mut self) -> Column {
        self.better = Some(Better::Higher);
        self
    }

    /// Lower figures are better.
    #[must_use]
    pub fn lower(mut self) -> Column {
        self.better = Some(Better::Lower);
        self
    }

    /// Name, unit and direction: `rate, ops/s ↑`.
    pub fn heading(&self) -> String {
        let mut text = self.name.clone();
        if !self.unit.is_empty() {
            text.push_str(", ");
            text.push_str(&self.unit);
        }
        match self.better {
            None => {}
            Some(Better::Higher) => text.push_str(" ↑"),
            Some(Better::Lower) => text.push_str(" ↓"),
        }
        text
    }
}

impl From<&str> for Column {
    fn from(name: &str) -> Column {
        Column::new(name)
    }
}

/// Columns and rows on their way into a table.
#[derive(Clone, Debug, Default)]
pub struct Content {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl<C: Into<Column>, const N: usize> From<[C; N]> for Content {
    fn from(columns: [C; N]) -> Content {
        Content { columns: columns.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }
}

impl From<Vec<Column>> for Content {
    fn from(columns: Vec<Column>) -> Content {
        Content { columns, rows: Vec::new() }
    }
}

impl From<Grid> for Content {
    fn from(grid: Grid) -> Content {
        let column = |(name, align)| Column { align: Some(align), ..Column::new(name) };
        let row = |row: Vec<String>| row.into_iter().map(Cell::Text).collect();
        Content {
            columns: grid.columns.into_iter().map(column).collect(),
            rows: grid.rows.into_iter().map(row).collect(),
        }
    }
}

/// A table with its caption. The first column names the row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, each as long as the columns.
    pub rows: Vec<Vec<Cell>>,
    /// How many leading columns name the row; 0 counts as 1.
    pub keys: usize,
    /// On the page shown only when asked for.
    pub folded: bool,
    /// How strongly the cells of a row are shaded on the page, percent, from the second on; no
    /// shades when empty.
    pub shades: Vec<Vec<Option<u8>>>,
}

impl Table {
    /// A table of columns, whose rows come by [`Table::row`]; or of an untyped [`Grid`].
    pub fn new(caption: impl Into<String>, content: impl Into<Content>) -> Table {
        let Content { columns, rows } = content.into();
        Table { caption: caption.into(), columns, rows, ..Table::default() }
    }

    /// A table that the page shows when asked for.
    pub fn folded(caption: impl Into<String>, content: impl Into<Content>) -> Table {
        Table { folded: true, ..Table::new(caption, content) }
    }

    /// With one more row. A row that is too short is filled with missing cells; what it has too
    /// many is dropped.
    #[must_use]
    pub fn row(mut self, cells: impl IntoIterator<Item = Cell>) -> Table {
        self.push(cells);
        self
    }

    /// Adds a row as [`Table::row`] does.
    pub fn push(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let mut cells: Vec<Cell> = cells.into_iter().collect();
        debug_assert_eq!(cells.len(), self.columns.len(), "a row of {:?}", self.caption);
        cells.resize(self.columns.len(), Cell::Missing);
        self.rows.push(cells);
    }

    /// So many leading columns name the row; they are repeated where a table is split.
    #[must_use]
    pub fn keyed_by(mut self, keys: usize) -> Table {
        self.keys = keys;
        self
    }

    /// How a column is aligned: as said, or by the first cell that has something.
    pub fn align(&self, column: usize) -> Align {
        let said = self.columns.get(column).and_then(|column| column.align);
        let seen = || self.rows.iter().find_map(|row| row.get(column)?.align());
        said.or_else(seen).unwrap_or(Align::Left)
    }

    /// The cells of a row for people.
    pub fn texts(&self, row: usize) -> Vec<String> {
        self.rows.get(row).into_iter().flatten().map(Cell::text).collect()
    }
}
