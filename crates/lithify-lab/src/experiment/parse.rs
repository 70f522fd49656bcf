//! From text to an experiment, with file, line and key in every error.
//!
//! The text is parsed twice: into the types, and into a tree of spans. The tree translates both
//! ways: from the byte where the types disagreed to the key there, and from the key of an
//! impossible value to its line.

use std::fmt;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::WorkloadKind;
use super::check::Fault;

/// What is wrong with an experiment file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExperimentError {
    /// The file as it was named.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Key with its tables, `arm[2].bottom`; empty when the file as a whole is meant.
    pub key: String,
    /// What is wrong and what is allowed.
    pub what: String,
}

impl fmt::Display for ExperimentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        if !self.key.is_empty() {
            write!(f, "key {}: ", self.key)?;
        }
        f.write_str(&self.what)
    }
}

impl std::error::Error for ExperimentError {}

/// The kind of workload that a text names; `None` when that cannot be read.
pub(super) fn kind(text: &str) -> Option<WorkloadKind> {
    #[derive(Deserialize)]
    struct Head {
        workload: HeadWorkload,
    }
    #[derive(Deserialize)]
    struct HeadWorkload {
        kind: WorkloadKind,
    }
    toml::from_str::<Head>(text).ok().map(|head| head.workload.kind)
}

/// Reads and checks.
pub(super) fn parse<E: DeserializeOwned>(
    file: &str,
    text: &str,
    check: fn(&E) -> Result<(), Fault>,
) -> Result<E, ExperimentError> {
    let places = Places::of(text);
    let experiment: E = toml::from_str(text).map_err(|error| {
        let span = error.span().unwrap_or_default();
        ExperimentError {
            file: file.to_owned(),
            line: line_of(text, span.start),
            key: places.key_at(&span),
            what: one_line(error.message()),
        }
    })?;
    check(&experiment).map_err(|fault| ExperimentError {
        file: file.to_owned(),
        line: line_of(text, places.start_of(&fault.key)),
        key: fault.key,
        what: fault.what,
    })?;
    Ok(experiment)
}

fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// Where every key of a document stands.
#[derive(Default)]
struct Places {
    /// Key with its tables, span of the key, span of the value.
    keys: Vec<(String, Range<usize>, Range<usize>)>,
}

impl Places {
    /// The places of a document; none when it does not parse.
    fn of(text: &str) -> Places {
        let mut places = Places::default();
        if let Ok(document) = DeTable::parse(text) {
            places.add_table("", document.get_ref());
        }
        places
    }

    fn add_table(&mut self, prefix: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            let dot = if prefix.is_empty() { "" } else { "." };
            let path = format!("{prefix}{dot}{}", key.get_ref());
            self.keys.push((path.clone(), key.span(), value.span()));
            self.add_value(&path, value.get_ref());
        }
    }

    fn add_value(&mut self, path: &str, value: &DeValue<'_>) {
        match value {
            DeValue::Table(table) => self.add_table(path, table),
            DeValue::Array(values) => {
                for (index, value) in values.iter().enumerate() {
                    let path = format!("{path}[{index}]");
                    self.keys.push((path.clone(), value.span(), value.span()));
                    self.add_value(&path, value.get_ref());
                }
            }
            _ => {}
        }
    }

    /// The innermost key whose name or value holds `span`.
    fn key_at(&self, span: &Range<usize>) -> String {
        let holds = |outer: &Range<usize>| outer.start <= span.start && span.end <= outer.end;
        self.keys
            .iter()
            .filter(|(_, key, value)| holds(key) || holds(value))
            .max_by_key(|(path, _, _)| path.len())
            .map(|(path, _, _)| path.clone())
            .unwrap_or_default()
    }

    /// The first byte of a key, or of the innermost table around it that is there.
    fn start_of(&self, key: &str) -> usize {
        self.keys
            .iter()
            .filter(|(path, _, _)| {
                key.strip_prefix(path.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
            })
            .max_by_key(|(path, _, _)| path.len())
            .map_or(0, |(_, key, _)| key.start)
    }
}
