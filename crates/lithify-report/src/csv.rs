//! A table as CSV: every figure with all of its digits.

use crate::model::{Bounds, Cell, Table};

/// The table under its headings. A spread takes three columns and an effect three: its value and
/// the two ends of its range or interval.
pub fn table(table: &Table) -> String {
    let wide: Vec<bool> = (0..table.columns.len())
        .map(|column| {
            let cells = table.rows.iter().filter_map(|row| row.get(column));
            cells.into_iter().any(|cell| matches!(cell, Cell::Spread(_) | Cell::Effect(_)))
        })
        .collect();
    let mut text = String::new();
    let mut headings = Vec::new();
    for (column, wide) in table.columns.iter().zip(&wide) {
        let mut name = column.name.clone();
        if !column.unit.is_empty() {
            name = format!("{name} {}", column.unit);
        }
        headings.push(name.clone());
        if *wide {
            headings.extend([format!("{name} low"), format!("{name} high")]);
        }
    }
    line(&mut text, &headings);
    for row in &table.rows {
        let mut cells = Vec::new();
        for (cell, wide) in row.iter().zip(&wide) {
            let [value, low, high] = values(cell);
            cells.push(value);
            if *wide {
                cells.extend([low, high]);
            }
        }
        line(&mut text, &cells);
    }
    text
}

/// A cell, and the ends of its range.
fn values(cell: &Cell) -> [String; 3] {
    let alone = |text: String| [text, String::new(), String::new()];
    match cell {
        Cell::Missing => alone(String::new()),
        Cell::Number(value, _) | Cell::Duration(value) => alone(value.to_string()),
        Cell::Bytes(count) => alone(count.to_string()),
        Cell::Spread(spread) => [spread.median, spread.min, spread.max].map(|v| v.to_string()),
        Cell::Effect(effect) => match effect.bounds {
            Bounds::Unknown => alone(effect.value.to_string()),
            Bounds::Interval(low, high) | Bounds::Range(low, high) => {
                [effect.value, low, high].map(|value| value.to_string())
            }
        },
        other => alone(other.text()),
    }
}

fn line(text: &mut String, cells: &[String]) {
    let quoted: Vec<String> = cells.iter().map(|cell| field(cell)).collect();
    text.push_str(&quoted.join(","));
    text.push('\n');
}

/// A field, in quotes where it needs them.
pub fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}
