//! Small charts in a terminal: bars, ratios with the published ones beside them, lines over time.

use super::layout::{shown, width, wrap};
use crate::figure::figure;
use crate::model::{Drawing, Line, Lines, Plot, Row, Rows};

/// Rows that a chart may have; more are a table.
const ROWS_MAX: usize = 16;

/// Narrowest part of a line for marks.
const MARKS_MIN: usize = 16;

const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The chart; `None` for a plot that is better read as a table.
pub(super) fn lines(plot: &Plot, columns: usize) -> Option<Vec<String>> {
    match &plot.drawing {
        Drawing::Lines(lines) => Some(over_time(lines, &plot.series, columns)),
        Drawing::Rows(rows) => of_rows(rows, columns),
        Drawing::Curves(_) | Drawing::Scatter(_) | Drawing::Triangle(_) => None,
    }
}

/// A line of columns for each series, as high as its values, with its least and its most.
fn over_time(lines: &Lines, series: &[String], columns: usize) -> Vec<String> {
    let mut text = wrap(&format!("{}; from left to right: time", lines.y.name), columns);
    for line in &lines.series {
        let name = series.get(line.series).map_or("", String::as_str);
        let least = line.values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = line.values.iter().copied().fold(0.0, f64::max);
        let said = format!("{name}: {} to {}", figure(least), figure(most));
        text.extend(wrap(&said, columns));
        text.push(format!("  {}", heights(line, most, columns - 2)));
    }
    text
}

/// The values as heights; several share a column where there are too many.
fn heights(line: &Line, most: f64, columns: usize) -> String {
    let share = line.values.len().div_ceil(columns.max(1)).max(1);
    let height = |part: &[f64]| {
        let mean = part.iter().sum::<f64>() / part.len() as f64;
        if mean <= 0.0 || most <= 0.0 || !mean.is_finite() {
            return ' ';
        }
        let step = (mean / most * HEIGHTS.len() as f64).ceil() as usize;
        HEIGHTS[step.clamp(1, HEIGHTS.len()) - 1]
    };
    line.values.chunks(share).map(height).collect()
}

/// Rows with one mark each and a name: bars, or ratios.
fn of_rows(rows: &Rows, columns: usize) -> Option<Vec<String>> {
    let all: Vec<&Row> = rows.groups.iter().flat_map(|group| &group.rows).collect();
    let fits = |row: &&Row| row.marks.len() == 1 && !row.name.is_empty();
    if all.is_empty() || all.len() > ROWS_MAX || !all.iter().all(fits) {
        return None;
    }
    let widest =
        |text: fn(&Row) -> &str| all.iter().map(|row| width(&shown(text(row)))).max().unwrap_or(0);
    let [names, notes] = [widest(|row| &row.name), widest(|row| &row.note)];
    let marks = columns.checked_sub(names + notes + 6).filter(|room| *room >= MARKS_MIN)?;
    let axis = Scale::of(rows, &all, marks)?;
    let mut text = Vec::new();
    for group in &rows.groups {
        text.extend(wrap(&group.name, columns));
        for row in &group.rows {
            let (name, note) = (shown(&row.name), shown(&row.note));
            let space = " ".repeat(names - width(&name));
            text.push(format!("  {name}{space}  {}  {note}", axis.marks(row)));
        }
    }
    text.extend(wrap(&legend(rows, &all), columns));
    Some(text)
}

fn legend(rows: &Rows, all: &[&Row]) -> String {
    let mut text = format!("  {}", rows.x.name);
    if !rows.bars {
        text.push_str(": ● measured, ─ its interval");
    }
    if all.iter().any(|row| row.published.is_some()) {
        text.push_str(", ┃ published");
    }
    if let Some(reference) = rows.reference {
        text.push_str(&format!(", ┊ {}", figure(reference)));
    }
    text
}

/// From values to columns.
struct Scale {
    low: f64,
    high: f64,
    columns: usize,
    bars: bool,
    reference: Option<f64>,
}

impl Scale {
    /// `None` where the axis cannot be drawn.
    fn of(rows: &Rows, all: &[&Row], columns: usize) -> Option<Scale> {
        let of_row = |row: &&Row| {
            let span = row.span.into_iter().flat_map(|(low, high)| [low, high]);
            row.marks.iter().copied().chain(row.published).chain(span).collect::<Vec<_>>()
        };
        let values: Vec<f64> = all.iter().flat_map(of_row).chain(rows.reference).collect();
        let usable = |value: &f64| value.is_finite() && (rows.bars || *value > 0.0);
        if !values.iter().all(usable) {
            return None;
        }
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        let low = if rows.bars { 0.0 } else { low };
        let reference = rows.reference;
        (high > low).then_some(Scale { low, high, columns, bars: rows.bars, reference })
    }

    fn place(&self, value: f64) -> usize {
        let share = match self.bars {
            true => value / self.high,
            false => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        (share.clamp(0.0, 1.0) * (self.columns - 1) as f64).round() as usize
    }

    fn marks(&self, row: &Row) -> String {
        let mut line = vec![' '; self.columns];
        if let Some(reference) = self.reference {
            line[self.place(reference)] = '┊';
        }
        let value = row.marks[0];
        if self.bars {
            let whole = if value > 0.0 { self.place(value) + 1 } else { 0 };
            line[..whole].fill('█');
        } else if let Some((low, high)) = row.span {
            line[self.place(low)..=self.place(high.max(low))].fill('─');
        }
        if let Some(published) = row.published {
            line[self.place(published)] = '┃';
        }
        if !self.bars {
            line[self.place(value)] = '●';
        }
        line.into_iter().collect()
    }
}
