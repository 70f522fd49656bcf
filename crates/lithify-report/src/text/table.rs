//! A table in a width: as it is where it fits, with headings and words wrapped, or split into
//! several tables that repeat the names of the rows.

use super::layout::{width, wrap};
use crate::grid::Align;
use crate::model::{Cell, Table};

/// Between two columns.
const GAP: usize = 2;

/// The lines; `paint` colours a piece of a cell.
pub(super) fn lines(
    table: &Table,
    columns: usize,
    paint: impl Fn(&Cell, &str) -> String,
) -> Vec<String> {
    if table.columns.is_empty() {
        return Vec::new();
    }
    let shape = Shape::of(table, columns);
    let mut lines = Vec::new();
    for (number, part) in shape.parts(columns).iter().enumerate() {
        if number > 0 {
            lines.push(String::new());
        }
        lines.extend(shape.lines(part, &paint));
    }
    lines
}

/// A table with its texts and the widths of its columns.
struct Shape<'a> {
    table: &'a Table,
    headings: Vec<String>,
    texts: Vec<Vec<String>>,
    widths: Vec<usize>,
    keys: usize,
}

impl<'a> Shape<'a> {
    fn of(table: &'a Table, columns: usize) -> Shape<'a> {
        let headings: Vec<String> = table.columns.iter().map(|column| column.heading()).collect();
        let texts: Vec<Vec<String>> = (0..table.rows.len()).map(|row| table.texts(row)).collect();
        let keys = table.keys.clamp(1, table.columns.len());
        let mut shape = Shape { table, headings, texts, widths: Vec::new(), keys };
        shape.widths = (0..table.columns.len()).map(|column| shape.natural(column)).collect();
        if shape.total() > columns {
            shape.narrow(columns);
        }
        shape
    }

    /// Columns of the whole table.
    fn total(&self) -> usize {
        self.widths.iter().sum::<usize>() + GAP * (self.widths.len() - 1)
    }

    /// The widest cell of a column.
    fn widest(&self, column: usize) -> usize {
        self.texts.iter().filter_map(|row| row.get(column)).map(|t| width(t)).max().unwrap_or(0)
    }

    fn natural(&self, column: usize) -> usize {
        self.widest(column).max(width(&self.headings[column])).max(1)
    }

    /// Headings break between words. Names of rows take at most half of the line, words a third,
    /// and no column more than stands beside the names.
    fn narrow(&mut self, columns: usize) {
        for column in 0..self.widths.len() {
            let words = self.headings[column].split(' ').map(width);
            let heading = words.max().unwrap_or(0);
            let wanted = self.widest(column).max(heading).max(1);
            let most = match (column < self.keys, self.table.align(column)) {
                (true, _) => columns / 2 / self.keys - GAP,
                (false, Align::Left) => columns / 3,
                (false, Align::Right) => columns / 2 - GAP,
            };
            self.widths[column] = wanted.min(most.max(1));
        }
    }

    /// The columns of each of the tables: the names of the rows, and as many others as fit.
    fn parts(&self, columns: usize) -> Vec<Vec<usize>> {
        let keys: Vec<usize> = (0..self.keys).collect();
        let of_keys: usize = keys.iter().map(|key| self.widths[*key] + GAP).sum();
        let mut parts = vec![keys.clone()];
        let mut taken = of_keys;
        for column in self.keys..self.widths.len() {
            let more = self.widths[column] + GAP;
            let last = parts.last().map_or(0, Vec::len);
            if taken + more > columns + GAP && last > self.keys {
                parts.push(keys.clone());
                taken = of_keys;
            }
            taken += more;
            parts.last_mut().into_iter().for_each(|part| part.push(column));
        }
        parts
    }

    /// One of the tables.
    fn lines(&self, part: &[usize], paint: &impl Fn(&Cell, &str) -> String) -> Vec<String> {
        let heading = |column: &usize| wrap(&self.headings[*column], self.widths[*column]);
        let headings: Vec<Vec<String>> = part.iter().map(heading).collect();
        let height = headings.iter().map(Vec::len).max().unwrap_or(0);
        // Headings stand on the rows.
        let sunk = headings.into_iter().map(|lines| {
            let above = vec![String::new(); height - lines.len()];
            above.into_iter().chain(lines).collect()
        });
        let sunk: Vec<Vec<String>> = sunk.collect();
        let mut lines = self.row(part, &sunk, |_, text| text.to_owned());
        let rule = part.iter().map(|column| "─".repeat(self.widths[*column]));
        lines.push(rule.collect::<Vec<_>>().join(&" ".repeat(GAP)));
        for (row, texts) in self.texts.iter().enumerate() {
            let cell = |column: &usize| {
                let text = texts.get(*column).map_or("", String::as_str);
                wrap(text, self.widths[*column])
            };
            let cells: Vec<Vec<String>> = part.iter().map(cell).collect();
            let painted = |column: usize, text: &str| {
                let cell = self.table.rows[row].get(column);
                cell.map_or_else(|| text.to_owned(), |cell| paint(cell, text))
            };
            lines.extend(self.row(part, &cells, painted));
        }
        lines
    }

    /// The lines of a row, whose cells have one line or several.
    fn row(
        &self,
        part: &[usize],
        cells: &[Vec<String>],
        paint: impl Fn(usize, &str) -> String,
    ) -> Vec<String> {
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        let line = |number: usize| {
            let mut line = String::new();
            for (place, (column, pieces)) in part.iter().zip(cells).enumerate() {
                let piece = pieces.get(number).map_or("", String::as_str);
                let space = " ".repeat(self.widths[*column].saturating_sub(width(piece)));
                let gap = if place > 0 { " ".repeat(GAP) } else { String::new() };
                line.push_str(&gap);
                match self.table.align(*column) {
                    Align::Left => line.push_str(&(paint(*column, piece) + &space)),
                    Align::Right => line.push_str(&(space + &paint(*column, piece))),
                }
            }
            line.trim_end().to_owned()
        };
        (0..height).map(line).collect()
    }
}
