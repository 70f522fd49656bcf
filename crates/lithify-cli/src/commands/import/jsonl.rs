//! Rows of JSON lines: an object a line.

use std::collections::BTreeMap;
use std::io::BufRead;

use serde_json::error::Category;
use serde_json::value::RawValue;

use super::{Bad, Line, Records, Row, read_line};
use crate::commands::bytes::unhex;

/// Rows of JSON lines.
pub struct JsonRows<R> {
    input: R,
    line: Line,
    buffer: Vec<u8>,
    key: Option<String>,
    value: Option<String>,
}

type Fields = BTreeMap<String, Box<RawValue>>;

impl<R: BufRead> JsonRows<R> {
    /// The fields that are key and value; what `lithify export` writes without them.
    pub fn new(input: R, key: Option<String>, value: Option<String>) -> Self {
        JsonRows { input, line: Line::default(), buffer: Vec::new(), key, value }
    }

    fn row_of(&self, fields: &Fields, row: &mut Row) -> Result<(), String> {
        let Some(key) = &self.key else {
            row.key = exported(fields, "key")?;
            row.value = exported(fields, "value")?;
            return Ok(());
        };
        row.key = text_of(fields, key)?;
        row.value = match &self.value {
            Some(value) => text_of(fields, value)?,
            None => self.buffer.trim_ascii().to_vec(),
        };
        Ok(())
    }
}

/// A field as `lithify export` writes it: text, or hexadecimal digits under another name.
fn exported(fields: &Fields, name: &str) -> Result<Vec<u8>, String> {
    let hex = format!("{name}_hex");
    match (fields.contains_key(name), fields.contains_key(&hex)) {
        (true, false) => text_of(fields, name),
        (false, true) => {
            let digits = String::from_utf8(text_of(fields, &hex)?).unwrap_or_default();
            unhex(&digits).map_err(|error| format!("field {hex}: {error}"))
        }
        (true, true) => Err(format!("fields {name} and {hex} are both there")),
        (false, false) => Err(format!("no field {name} or {hex}; --key chooses others")),
    }
}

/// Text is taken as it is; numbers, true, false and null as they are written.
fn text_of(fields: &Fields, name: &str) -> Result<Vec<u8>, String> {
    let Some(raw) = fields.get(name) else { return Err(format!("no field {name}")) };
    let raw = raw.get();
    match raw.as_bytes().first() {
        Some(b'"') => serde_json::from_str::<String>(raw)
            .map(String::into_bytes)
            .map_err(|error| format!("field {name}: {error}")),
        Some(b'{' | b'[') => Err(format!("field {name} is neither text nor a number")),
        _ => Ok(raw.as_bytes().to_vec()),
    }
}

impl<R: BufRead> Records for JsonRows<R> {
    fn next(&mut self, row: &mut Row) -> Result<bool, Bad> {
        loop {
            if !read_line(&mut self.input, &mut self.buffer, &mut self.line)? {
                return Ok(false);
            }
            self.line.first = self.line.last;
            if !self.buffer.trim_ascii().is_empty() {
                break;
            }
        }
        let bad = |what| Bad::Row(self.line.first, what);
        let fields: Fields = serde_json::from_slice(self.buffer.trim_ascii_end())
            .map_err(|error| bad(reason(&error)))?;
        self.row_of(&fields, row).map_err(bad)?;
        Ok(true)
    }

    fn line(&self) -> Line {
        self.line
    }
}

/// What is wrong, with the column; the line is that of the file. The parser's own words are of its
/// insides.
fn reason(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        Category::Eof => "the JSON object ends too early",
        // It is JSON as a whole.
        Category::Data => return "this is no JSON object".to_owned(),
        Category::Syntax | Category::Io => "this is not JSON",
    };
    format!("{what} (column {})", error.column())
}
