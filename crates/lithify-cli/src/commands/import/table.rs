//! Which columns of a CSV file are key and value.

use std::io::BufRead;

use lithify_advisor::input::listed;
use serde_json::Value;

use super::csv::CsvReader;
use super::{Bad, Line, Records, Row};

/// Rows of a CSV file.
pub struct CsvRows<R> {
    reader: CsvReader<R>,
    names: Vec<String>,
    key: usize,
    /// The whole row as a JSON object without it.
    value: Option<usize>,
}

impl<R: BufRead> CsvRows<R> {
    /// Reads the header, and finds the columns in it.
    pub fn open(
        input: R,
        separator: u8,
        key: Option<String>,
        value: Option<String>,
    ) -> Result<Self, Bad> {
        let mut reader = CsvReader::new(input, separator);
        if !reader.read()? {
            return Err(Bad::Usage("an empty file has no header".to_owned()));
        }
        if let Some(first) = reader.fields.first_mut()
            && let Some(rest) = first.strip_prefix(b"\xef\xbb\xbf")
        {
            *first = rest.to_vec();
        }
        let name = |field: &Vec<u8>| String::from_utf8_lossy(field).into_owned();
        let names: Vec<String> = reader.fields.iter().map(name).collect();
        let find = |wanted: &str, flag: &str| {
            names.iter().position(|name| name == wanted).ok_or_else(|| {
                Bad::Usage(match other_separator(&names, separator) {
                    Some(other) => format!(
                        "no column {wanted}; the header seems to be separated by {other}: \
                         --separator {other}"
                    ),
                    None => format!("no column {wanted}; choose with {flag}: {}", listed(&names)),
                })
            })
        };
        let (key, value) = match (key, value) {
            (Some(key), Some(value)) => (find(&key, "--key")?, Some(find(&value, "--value")?)),
            (Some(key), None) => (find(&key, "--key")?, None),
            (None, _) => (find("key", "--key")?, Some(find("value", "--key and --value")?)),
        };
        Ok(CsvRows { reader, names, key, value })
    }

    /// The row as a JSON object, which holds text only.
    fn object(&self) -> Result<String, Bad> {
        let mut text = String::from("{");
        for (name, field) in self.names.iter().zip(&self.reader.fields) {
            let Ok(field) = std::str::from_utf8(field) else {
                let what = format!("column {name} is no UTF-8; choose a column with --value");
                return Err(Bad::Row(self.reader.line().first, what));
            };
            let comma = if text.len() > 1 { "," } else { "" };
            text.push_str(&format!("{comma}{}:{}", Value::from(name.as_str()), Value::from(field)));
        }
        text.push('}');
        Ok(text)
    }
}

/// Separators of CSV files, as they are named on the command line.
const SEPARATORS: [(&str, u8); 4] = [("','", b','), ("';'", b';'), ("tab", b'\t'), ("'|'", b'|')];

/// The separator of a header where none is named: the comma if it has one, else what it has most of.
pub fn separator_of(head: &[u8]) -> u8 {
    let header = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let times = |separator: u8| header.iter().filter(|byte| **byte == separator).count();
    let most = SEPARATORS.into_iter().map(|(_, separator)| separator).max_by_key(|one| times(*one));
    match most {
        Some(separator) if times(b',') == 0 && times(separator) > 0 => separator,
        _ => b',',
    }
}

/// A separator that the names of a header hold more often than there are names beside the first.
fn other_separator(names: &[String], separator: u8) -> Option<&'static str> {
    let times =
        |other: u8| names.iter().flat_map(|name| name.bytes()).filter(move |byte| *byte == other);
    let others = SEPARATORS.into_iter().filter(|(_, other)| *other != separator);
    let counted = others.map(|(name, other)| (name, times(other).count()));
    let (name, most) = counted.max_by_key(|(_, count)| *count)?;
    (most >= names.len()).then_some(name)
}

impl<R: BufRead> Records for CsvRows<R> {
    fn next(&mut self, row: &mut Row) -> Result<bool, Bad> {
        if !self.reader.read()? {
            return Ok(false);
        }
        let (found, expected) = (self.reader.fields.len(), self.names.len());
        if found != expected {
            let what = format!("{found} fields where the header has {expected}");
            return Err(Bad::Row(self.reader.line().first, what));
        }
        row.value = match self.value {
            Some(column) => std::mem::take(&mut self.reader.fields[column]),
            None => self.object()?.into_bytes(),
        };
        row.key = match self.value {
            // The column that is both has been taken.
            Some(column) if column == self.key => row.value.clone(),
            _ => std::mem::take(&mut self.reader.fields[self.key]),
        };
        Ok(true)
    }

    fn line(&self) -> Line {
        self.reader.line()
    }
}
