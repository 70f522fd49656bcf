//! Figures that may be gone, each with its reason: numbers in sentences that are no measurements.
//!
//! A line is `RECORD FORM FIGURE REASON`. `*` is any record or any form; lines that begin with `#` and
//! empty ones are skipped.

use std::fs;
use std::io;
use std::path::Path;

use super::Form;

/// The list.
#[derive(Debug, Default)]
pub struct Allowed {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    record: String,
    form: String,
    figure: String,
    line: String,
    is_used: bool,
}

impl Allowed {
    /// Reads the list; a file that is not there is an empty one.
    pub fn read(path: &Path) -> Result<Allowed, String> {
        match fs::read_to_string(path) {
            Ok(text) => {
                Allowed::parse(&text).map_err(|error| format!("{}:{error}", path.display()))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Allowed::default()),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }

    /// Parses the list.
    pub fn parse(text: &str) -> Result<Allowed, String> {
        let mut entries = Vec::new();
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let mut words = line.split_whitespace();
            let mut word = || words.next().unwrap_or_default().to_owned();
            let (record, form, figure) = (word(), word(), word());
            if words.next().is_none() {
                return Err(format!("{}: needs RECORD FORM FIGURE REASON", index + 1));
            }
            if form != "*" && !Form::ALL.iter().any(|known| known.name() == form) {
                return Err(format!("{}: the form {form} is none of text, page, csv", index + 1));
            }
            entries.push(Entry { record, form, figure, line: line.to_owned(), is_used: false });
        }
        Ok(Allowed { entries })
    }

    /// Whether a figure may be gone. Notes that the line was of use.
    pub fn takes(&mut self, record: &str, form: Form, figure: &str) -> bool {
        let is_of = |wanted: &str, given: &str| wanted == "*" || wanted == given;
        let found = self.entries.iter_mut().find(|entry| {
            is_of(&entry.record, record)
                && is_of(&entry.form, form.name())
                && entry.figure == figure
        });
        found.map(|entry| entry.is_used = true).is_some()
    }

    /// The lines that no figure needed.
    pub fn unused(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter(|entry| !entry.is_used).map(|entry| entry.line.as_str())
    }
}
