//! A table in a width: as it is where it fits, with headings and words wrapped, or split into
//! several tables that repeat the names of the rows.

use super::layout::{width, wrap_cell};
use crate::grid::Align;
use crate::model::{Cell, Table};

/// Between two columns.
const GAP: usize = 2;

/// How many lines of other columns one more line of the names of the rows is worth.
const NAMES_PRICE: usize = 4;

/// The lines; `paint` colours a piece of a cell.
pub(super) fn lines(
    table: &Table,
    columns: usize,
    paint: impl Fn(&Cell, &str) -> String,
) -> Vec<String> {
    lines_below(table, columns, |shape, part| shape.head(part), paint)
}

/// The lines without rules and colours.
pub(super) fn plain(table: &Table, columns: usize) -> Vec<String> {
    let head = |shape: &Shape<'_>, part: &[usize]| shape.headings(part);
    lines_below(table, columns, head, |_, text| text.to_owned())
}

/// The lines of each of the tables below its `head`.
fn lines_below(
    table: &Table,
    columns: usize,
    head: impl Fn(&Shape<'_>, &[usize]) -> Vec<String>,
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
        lines.extend(head(&shape, part));
        lines.extend(shape.rows(part, &paint).into_iter().flatten());
    }
    lines
}

/// The head of a table and the lines of each of its rows, where all of its columns stand beside
/// each other; else how many of them do.
pub(super) fn whole(
    table: &Table,
    columns: usize,
    paint: impl Fn(&Cell, &str) -> String,
) -> Result<(Vec<String>, Vec<Vec<String>>), usize> {
    let shape = Shape::of(table, columns);
    match shape.parts(columns).as_slice() {
        [part] => Ok((shape.head(part), shape.rows(part, &paint))),
        parts => Err(parts.first().map_or(0, Vec::len)),
    }
}

/// How many lines each row takes, of the heights of its columns.
fn tops(heights: &[Vec<usize>]) -> Vec<usize> {
    let rows = heights.first().map_or(0, Vec::len);
    let top = |row: usize| heights.iter().map(|column| column[row]).max().unwrap_or(1);
    (0..rows).map(top).collect()
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
        let fits = shape.total() <= columns
            || shape.squeeze(columns, &[' '])
            || shape.squeeze(columns, &[' ', '-']);
        if !fits {
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

    /// Makes columns narrower whose headings and words can be wrapped, until all of them stand
    /// beside each other; those first where it takes the fewest lines. Names of rows are broken
    /// behind `breaks` alone. False where it cannot be done.
    fn squeeze(&mut self, columns: usize, breaks: &[char]) -> bool {
        let all = 0..self.widths.len();
        let breaks = |column| if column < self.keys { breaks } else { &[' ', '-'] };
        let least: Vec<usize> =
            all.clone().map(|column| self.least(column, breaks(column))).collect();
        if least.iter().sum::<usize>() + GAP * (least.len() - 1) > columns {
            return false;
        }
        let mut heights: Vec<Vec<usize>> =
            all.clone().map(|column| self.heights(column, self.widths[column])).collect();
        let narrower = |shape: &Shape<'_>, column: usize| {
            let width = shape.widths[column];
            (width > least[column]).then(|| shape.heights(column, width - 1))
        };
        let mut next: Vec<Option<Vec<usize>>> = all.map(|column| narrower(self, column)).collect();
        while self.total() > columns {
            let tops = tops(&heights);
            let price = |column: usize, next: &[usize]| {
                let more = next.iter().zip(&tops).map(|(next, top)| next.saturating_sub(*top));
                more.sum::<usize>() * if column < self.keys { NAMES_PRICE } else { 1 }
            };
            let candidates = next.iter().enumerate().filter_map(|(column, next)| {
                let price = price(column, next.as_deref()?);
                Some((price, usize::MAX - self.widths[column], column))
            });
            let Some((_, _, column)) = candidates.min() else { return false };
            self.widths[column] -= 1;
            heights[column] = next[column].take().unwrap_or_default();
            next[column] = narrower(self, column);
        }
        true
    }

    /// The width of a column below which something in it would be broken that is one piece.
    fn least(&self, column: usize, breaks: &[char]) -> usize {
        let longest = |text: &str| {
            let pieces = text.split_inclusive(breaks).map(|piece| width(piece.trim_end()));
            pieces.max().unwrap_or(0)
        };
        let words = self.headings[column].split(' ').map(width).max().unwrap_or(0);
        let cells = match self.table.align(column) {
            Align::Right => self.widest(column),
            Align::Left => self.texts.iter().map(|row| longest(&row[column])).max().unwrap_or(0),
        };
        words.max(cells).max(1)
    }

    /// How many lines the heading and the cells of a column take.
    fn heights(&self, column: usize, width: usize) -> Vec<usize> {
        let cells = self.texts.iter().map(|row| row[column].as_str());
        let all = std::iter::once(self.headings[column].as_str()).chain(cells);
        all.map(|text| wrap_cell(text, width).len()).collect()
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

    /// The headings of one of the tables, over a rule.
    fn head(&self, part: &[usize]) -> Vec<String> {
        let mut lines = self.headings(part);
        let rule = part.iter().map(|column| "─".repeat(self.widths[*column]));
        lines.push(rule.collect::<Vec<_>>().join(&" ".repeat(GAP)));
        lines
    }

    fn headings(&self, part: &[usize]) -> Vec<String> {
        let heading = |column: &usize| wrap_cell(&self.headings[*column], self.widths[*column]);
        let headings: Vec<Vec<String>> = part.iter().map(heading).collect();
        let height = headings.iter().map(Vec::len).max().unwrap_or(0);
        // Headings stand on the rows.
        let sunk = headings.into_iter().map(|lines| {
            let above = vec![String::new(); height - lines.len()];
            above.into_iter().chain(lines).collect()
        });
        let sunk: Vec<Vec<String>> = sunk.collect();
        self.row(part, &sunk, |_, text| text.to_owned())
    }

    /// The lines of each row of one of the tables.
    fn rows(&self, part: &[usize], paint: &impl Fn(&Cell, &str) -> String) -> Vec<Vec<String>> {
        let row = |(row, texts): (usize, &Vec<String>)| {
            let cell = |column: &usize| {
                let text = texts.get(*column).map_or("", String::as_str);
                wrap_cell(text, self.widths[*column])
            };
            let cells: Vec<Vec<String>> = part.iter().map(cell).collect();
            let painted = |column: usize, text: &str| {
                let cell = self.table.rows[row].get(column);
                cell.map_or_else(|| text.to_owned(), |cell| paint(cell, text))
            };
            self.row(part, &cells, painted)
        };
        self.texts.iter().enumerate().map(row).collect()
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
