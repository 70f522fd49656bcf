//! CSV: a table of a report with all of its digits, and records by columns of a name and a function.

use crate::model::{Bounds, Cell, Table};

/// What a column says of a row.
type Value<'a, Row> = Box<dyn Fn(&Row) -> String + 'a>;

/// The columns of a file: each a name and what it says of a row, in one place.
///
/// ```
/// use lithify_report::csv::{Columns, Fixed};
///
/// let columns = Columns::new()
///     .with("name", |row: &(&str, f64)| row.0.to_owned())
///     .with("seconds", |row| Fixed(row.1, 3))
///     .with("failure", |_| None::<u64>);
/// assert_eq!(columns.csv(&[("a, b", 1.5)]), "name,seconds,failure\n\"a, b\",1.500,\n");
/// ```
pub struct Columns<'a, Row> {
    columns: Vec<(String, Value<'a, Row>)>,
}

impl<Row> Default for Columns<'_, Row> {
    fn default() -> Self {
        Columns { columns: Vec::new() }
    }
}

impl<'a, Row> Columns<'a, Row> {
    /// No column.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more column at the right.
    #[must_use]
    pub fn with<F: Field>(
        mut self,
        name: impl Into<String>,
        value: impl Fn(&Row) -> F + 'a,
    ) -> Self {
        self.columns.push((name.into(), Box::new(move |row| value(row).field())));
        self
    }

    /// One line of names, then one line a row, separated by commas; quoted where a field needs it.
    pub fn csv(&self, rows: &[Row]) -> String {
        self.render(rows, |fields| {
            let quoted: Vec<String> = fields.iter().map(|text| field(text)).collect();
            quoted.join(",")
        })
    }

    /// The same separated by tabs; a tab or the end of a line within a field becomes a space.
    pub fn tsv(&self, rows: &[Row]) -> String {
        self.render(rows, |fields| {
            let plain: Vec<String> =
                fields.iter().map(|text| text.replace(['\t', '\n', '\r'], " ")).collect();
            plain.join("\t")
        })
    }

    fn render(&self, rows: &[Row], line: impl Fn(&[String]) -> String) -> String {
        let names = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let fields =
            |row: &Row| self.columns.iter().map(|(_, value)| value(row)).collect::<Vec<String>>();
        let lines = std::iter::once(names).chain(rows.iter().map(fields));
        lines.map(|fields| line(&fields) + "\n").collect()
    }
}

/// What may stand in a column. Floating-point numbers have all of their digits.
pub trait Field {
    /// The text, before quotes.
    fn field(&self) -> String;
}

/// A number with so many digits behind its point.
pub struct Fixed(pub f64, pub usize);

impl Field for Fixed {
    fn field(&self) -> String {
        format!("{:.*}", self.1, self.0)
    }
}

/// Nothing is an empty field.
impl<F: Field> Field for Option<F> {
    fn field(&self) -> String {
        self.as_ref().map_or_else(String::new, Field::field)
    }
}

macro_rules! displayed_fields {
    ($($type:ty),*) => {
        $(impl Field for $type {
            fn field(&self) -> String {
                self.to_string()
            }
        })*
    };
}

displayed_fields!(bool, u32, u64, usize, f64, &str, String);

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
