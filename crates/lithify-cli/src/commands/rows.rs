//! Rows on standard output, in the forms that `--format` names.
//!
//! Every form gives every byte back, but for a table on a terminal, which is as wide as the terminal:
//!
//! - `table` and `lines`: text with escapes, see [`super::bytes`].
//! - `json`: one object a line. What is text is in the fields `key` and `value`; what is not has the
//!   field `key_hex` or `value_hex` instead.
//! - `csv`: a header and the bytes as they are, in quotes where they have to be.
//! - `hex`: hexadecimal digits.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write, stdout};

use clap::ValueEnum;
use serde_json::Value;

use super::bench::screen::width;
use super::bytes::{escape, hex};
use crate::fault::Fault;

/// Forms of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RowFormat {
    /// Columns, cut at the width of a terminal
    Table,
    /// Key, tab, value, with escapes
    Lines,
    /// One JSON object a line; bytes that are no text are in key_hex or value_hex
    Json,
    /// A header, and the bytes as they are, in quotes where needed
    Csv,
    /// Hexadecimal digits, with a tab between
    Hex,
}

/// The form where none is asked for.
pub fn default_format() -> RowFormat {
    match stdout().is_terminal() {
        true => RowFormat::Table,
        false => RowFormat::Lines,
    }
}

/// A row as a JSON object, without what is not asked for.
pub fn json_row(key: Option<&[u8]>, value: Option<&[u8]>) -> String {
    let fields = [("key", key), ("value", value)];
    let fields = fields.into_iter().filter_map(|(name, bytes)| Some((name, bytes?)));
    let fields: Vec<String> = fields
        .map(|(name, bytes)| match std::str::from_utf8(bytes) {
            Ok(text) => format!("\"{name}\":{}", Value::from(text)),
            Err(_) => format!("\"{name}_hex\":\"{}\"", hex(bytes)),
        })
        .collect();
    format!("{{{}}}", fields.join(","))
}

/// Writes a field of a CSV file.
pub fn csv_field(output: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let needs_quotes = |byte: &u8| matches!(byte, b',' | b'"' | b'\r' | b'\n' | b' ' | b'\t');
    // An empty field in quotes tells an empty last line from none.
    if !bytes.is_empty() && !bytes.iter().any(needs_quotes) {
        return output.write_all(bytes);
    }
    output.write_all(b"\"")?;
    let mut pieces = bytes.split(|byte| *byte == b'"');
    output.write_all(pieces.next().unwrap_or_default())?;
    for piece in pieces {
        output.write_all(b"\"\"")?;
        output.write_all(piece)?;
    }
    output.write_all(b"\"")
}

/// Rows of a table as the lines of a CSV file; the first one is its header.
pub fn csv(rows: &[Vec<String>]) -> String {
    let mut text = Vec::new();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            text.extend(if column > 0 { b",".as_slice() } else { b"" });
            // Writing to memory cannot fail.
            let _ = csv_field(&mut text, cell.as_bytes());
        }
        text.push(b'\n');
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Objects as the lines of a CSV file, by the names of their fields. A field that an object does not have is
/// empty.
pub fn csv_of<'a>(names: &[&str], objects: impl IntoIterator<Item = &'a Value>) -> String {
    let cell = |value: &Value| match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let line = |object: &Value| names.iter().map(|name| cell(&object[*name])).collect();
    let header = names.iter().map(|name| (*name).to_owned()).collect();
    csv(&[header].into_iter().chain(objects.into_iter().map(line)).collect::<Vec<_>>())
}

/// The same of the objects in a field of a report.
pub fn csv_of_report(names: &[&str], report: &str, field: &str) -> String {
    // The report is the program's own: it is JSON, and has the field.
    let report: Value = serde_json::from_str(report).unwrap_or_default();
    csv_of(names, report[field].as_array().into_iter().flatten())
}

/// So many rows are seen before the widths of a table are known.
const ROWS_SEEN: usize = 200;

/// Prints rows, one after the other.
pub struct RowPrinter<W: Write> {
    output: W,
    format: RowFormat,
    keys_only: bool,
    /// Where a table is cut; nowhere if not on a terminal.
    width: Option<usize>,
    /// The first rows of a table.
    waiting: Vec<(String, String)>,
    key_width: Option<usize>,
}

impl RowPrinter<BufWriter<StdoutLock<'static>>> {
    /// Prints to standard output.
    pub fn to_screen(format: Option<RowFormat>, keys_only: bool, full: bool) -> Self {
        let format = format.unwrap_or_else(default_format);
        let is_cut = stdout().is_terminal() && !full;
        let output = BufWriter::new(stdout().lock());
        RowPrinter::new(output, format, keys_only, is_cut.then(width))
    }
}

impl<W: Write> RowPrinter<W> {
    /// Prints to `output`, cut at a width if there is one.
    pub fn new(output: W, format: RowFormat, keys_only: bool, width: Option<usize>) -> Self {
        RowPrinter { output, format, keys_only, width, waiting: Vec::new(), key_width: None }
    }

    /// Where it prints to.
    pub fn output(&self) -> &W {
        &self.output
    }

    /// What stands before the first row.
    pub fn begin(&mut self) -> io::Result<()> {
        match (self.format, self.keys_only) {
            (RowFormat::Csv, true) => self.output.write_all(b"key\n"),
            (RowFormat::Csv, false) => self.output.write_all(b"key,value\n"),
            _ => Ok(()),
        }
    }

    /// One row.
    pub fn row(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        let value = (!self.keys_only).then_some(value);
        match self.format {
            RowFormat::Table => return self.table_row(key, value),
            RowFormat::Lines => {
                self.output.write_all(escape(key).as_bytes())?;
                if let Some(value) = value {
                    write!(self.output, "\t{}", escape(value))?;
                }
            }
            RowFormat::Json => {
                self.output.write_all(json_row(Some(key), value).as_bytes())?;
            }
            RowFormat::Csv => {
                csv_field(&mut self.output, key)?;
                if let Some(value) = value {
                    self.output.write_all(b",")?;
                    csv_field(&mut self.output, value)?;
                }
            }
            RowFormat::Hex => {
                self.output.write_all(hex(key).as_bytes())?;
                if let Some(value) = value {
                    write!(self.output, "\t{}", hex(value))?;
                }
            }
        }
        self.output.write_all(b"\n")
    }

    /// What stands behind the last row.
    pub fn end(&mut self) -> io::Result<()> {
        self.write_waiting()?;
        self.output.flush()
    }

    fn table_row(&mut self, key: &[u8], value: Option<&[u8]>) -> io::Result<()> {
        let row = (escape(key), value.map(escape).unwrap_or_default());
        match self.key_width {
            Some(width) => self.write_table_row(&row, width),
            None => {
                self.waiting.push(row);
                match self.waiting.len() < ROWS_SEEN {
                    true => Ok(()),
                    false => self.write_waiting(),
                }
            }
        }
    }

    /// Writes the head and the first rows, whose widths the others follow.
    fn write_waiting(&mut self) -> io::Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        if waiting.is_empty() {
            return Ok(());
        }
        let longest = waiting.iter().map(|(key, _)| key.chars().count()).max().unwrap_or(0);
        let most = self.width.map_or(longest, |width| width / 2);
        let width = longest.min(most).max("KEY".len());
        self.key_width = Some(width);
        let value = if self.keys_only { "" } else { "VALUE" };
        self.write_table_row(&("KEY".to_owned(), value.to_owned()), width)?;
        waiting.iter().try_for_each(|row| self.write_table_row(row, width))
    }

    fn write_table_row(&mut self, (key, value): &(String, String), width: usize) -> io::Result<()> {
        if self.keys_only {
            return writeln!(self.output, "{}", self.cut(key, 0));
        }
        let key = match self.width {
            Some(_) => shortened(key, width),
            None => key.clone(),
        };
        let value = self.cut(value, width.max(key.chars().count()) + 2);
        writeln!(self.output, "{}", format!("{key:<width$}  {value}").trim_end_matches(' '))
    }

    /// What of a cell is left of the edge.
    fn cut(&self, cell: &str, column: usize) -> String {
        match self.width {
            Some(width) => shortened(cell, width.saturating_sub(column).max(1)),
            None => cell.to_owned(),
        }
    }
}

/// At most so many signs of a text.
fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// What a failure to write is: a reader that has seen enough is none.
pub fn written(result: io::Result<()>) -> Result<(), Fault> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Fault::failure(format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(format: RowFormat, width: Option<usize>) -> String {
        let mut output = Vec::new();
        let mut printer = RowPrinter::new(&mut output, format, false, width);
        printer.begin().unwrap();
        printer.row(b"a", b"one, \"two\"").unwrap();
        printer.row(b"long\xff", b"").unwrap();
        printer.end().unwrap();
        String::from_utf8_lossy(&output).into_owned()
    }

    #[test]
    fn every_form_has_every_row() {
        let table = "KEY       VALUE\na         one, \"two\"\nlong\\xff\n";
        assert_eq!(printed(RowFormat::Table, None), table);
        assert_eq!(printed(RowFormat::Table, Some(12)), "KEY     VAL…\na       one…\nlong\\…\n");
        assert_eq!(printed(RowFormat::Lines, None), "a\tone, \"two\"\nlong\\xff\t\n");
        assert_eq!(printed(RowFormat::Hex, None), "61\t6f6e652c202274776f22\n6c6f6e67ff\t\n");
        let json = "{\"key\":\"a\",\"value\":\"one, \\\"two\\\"\"}\n{\"key_hex\":\"6c6f6e67ff\",\"value\":\"\"}\n";
        assert_eq!(printed(RowFormat::Json, None), json);
        let csv = "key,value\na,\"one, \"\"two\"\"\"\nlong\u{fffd},\"\"\n";
        assert_eq!(printed(RowFormat::Csv, None), csv);
    }
}
