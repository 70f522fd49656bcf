//! Files with columns: Parquet and Arrow, one or many of them one behind the other.
//!
//! Owns: rows by their number, over the groups of all files. `cells` makes values of columns, `parquet`
//! and `arrow` read groups, `content` gives what rows say one after the other, `guard` makes errors of their panics on damaged files. A row of columns is laid out as a database would (`record`): how Parquet
//! packs columns says nothing about rows.

mod arrow;
mod cells;
mod content;
mod guard;
mod parquet;

pub use content::{ColumnarContent, ContentError, columnar_name};

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use guard::guarded;

use super::record::Record;
use super::size::user_bytes;
use super::stamp::Stamp;
use super::{Facts, Source, column_of};
use crate::error::{AdviseError, Result};
use crate::rows::{Row, Rows};

/// Rows that are decoded at once.
const BATCH_ROWS: usize = 1024;

/// Which library reads a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Parquet,
    Arrow,
}

impl Kind {
    /// By the first bytes.
    pub(super) fn of(head: &[u8]) -> Option<Kind> {
        match head {
            _ if head.starts_with(b"PAR1") => Some(Kind::Parquet),
            _ if head.starts_with(b"ARROW1") => Some(Kind::Arrow),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Parquet => "Parquet",
            Kind::Arrow => "Arrow",
        }
    }

    /// The columns, and the rows of each group.
    fn inspect(self, path: &Path) -> Result<(SchemaRef, Vec<u64>)> {
        let inspect = match self {
            Kind::Parquet => parquet::inspect,
            Kind::Arrow => arrow::inspect,
        };
        guarded(|| inspect(path)).unwrap_or_else(|| Err(self.gave_up(path)))
    }

    /// Batches of a group from a row of it on.
    fn read(self, path: &Path, group: usize, from: u64, each: Batches<'_>) -> Result<()> {
        let read = match self {
            Kind::Parquet => parquet::read,
            Kind::Arrow => arrow::read,
        };
        guarded(|| read(path, group, from, each)).unwrap_or_else(|| Err(self.gave_up(path)))
    }

    fn gave_up(self, path: &Path) -> AdviseError {
        wrong(path, format_args!("it is damaged: {} could not be decoded", self.name()))
    }
}

/// What is given batches until it has had enough.
type Batches<'a> = &'a mut dyn FnMut(&RecordBatch) -> Result<ControlFlow<()>>;

/// An error of a library, with the file that it is of.
fn wrong(path: &Path, error: impl std::fmt::Display) -> AdviseError {
    AdviseError::data(format_args!("{}: {error}", path.display()))
}

/// Rows that a file decodes together.
#[derive(Debug)]
struct Group {
    file: usize,
    number: usize,
    rows: u64,
    /// Rows of all groups in front of it.
    before: u64,
}

/// Files of the same columns.
#[derive(Debug)]
pub(super) struct Columnar {
    kind: Kind,
    files: Vec<Stamp>,
    groups: Vec<Group>,
    rows: u64,
    key_columns: Vec<usize>,
    facts: Facts,
}

impl Columnar {
    pub(super) fn open(kind: Kind, paths: &[PathBuf], key: &[String]) -> Result<Columnar> {
        let (mut files, mut groups, mut rows) = (Vec::new(), Vec::new(), 0);
        let mut columns: Option<SchemaRef> = None;
        for path in paths {
            let (schema, of_file) = kind.inspect(path)?;
            match &columns {
                Some(first) if !are_alike(first, &schema) => {
                    let what =
                        format!("{} has other columns than {}", path.display(), paths[0].display());
                    return Err(AdviseError::data(what));
                }
                Some(_) => {}
                None => columns = Some(schema),
            }
            for (number, count) in of_file.into_iter().enumerate() {
                groups.push(Group { file: files.len(), number, rows: count, before: rows });
                rows += count;
            }
            files.push(Stamp::of(path)?);
        }
        let path = paths.first().map_or(Path::new(""), PathBuf::as_path);
        let is_any = |schema: &SchemaRef| rows > 0 && !schema.fields().is_empty();
        let Some(schema) = columns.filter(is_any) else {
            let path = path.display();
            return Err(AdviseError::data(format_args!("{path} has no row, or no column")));
        };
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let key_columns =
            key.iter().map(|name| column_of(path, &names, name)).collect::<Result<_>>()?;
        let facts = Facts {
            format: format!("{} with {} columns", kind.name(), names.len()),
            files: files.len() as u64,
            has_rows: true,
            has_bytes: false,
            native: &[],
            key: key.join(", "),
            data_bytes: 0,
        };
        let mut columnar = Columnar { kind, files, groups, rows, key_columns, facts };
        columnar.facts.data_bytes = user_bytes(&mut columnar, rows)?;
        Ok(columnar)
    }

    /// Rows from a number on.
    fn read(&self, from: u64, each: &mut dyn FnMut(Row<'_>, u64) -> ControlFlow<()>) -> Result<()> {
        let mut record = Record::new(self.key_columns.clone());
        let (mut number, mut done) = (from, 0);
        let first = self.groups.partition_point(|group| group.before + group.rows <= from);
        for group in &self.groups[first.min(self.groups.len())..] {
            let path = &self.files[group.file].path;
            let skipped = from.saturating_sub(group.before);
            let mut flow = ControlFlow::Continue(());
            self.kind.read(path, group.number, skipped, &mut |batch| {
                let cells = cells::of_batch(batch).map_err(|what| wrong(path, what))?;
                for row in 0..batch.num_rows() {
                    record.clear();
                    cells.iter().for_each(|cell| cell(row, &mut |value| record.push(value)));
                    let row = record.row(number);
                    number += 1;
                    done += row.data_bytes;
                    flow = each(row, done);
                    if flow.is_break() {
                        break;
                    }
                }
                Ok(flow)
            })?;
            if flow.is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// The same names and types; what else is known of columns may differ.
fn are_alike(a: &SchemaRef, b: &SchemaRef) -> bool {
    let of = |schema: &SchemaRef| -> Vec<(String, String)> {
        let fields = schema.fields().iter();
        fields.map(|field| (field.name().clone(), field.data_type().to_string())).collect()
    };
    of(a) == of(b)
}

impl Source for Columnar {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn place(&mut self, share: f64, wanted_bytes: u64) -> Result<Rows> {
        let last = self.rows.saturating_sub(1);
        let from = ((share.clamp(0.0, 1.0) * self.rows as f64) as u64).min(last);
        let mut rows = Rows::default();
        self.read(from, &mut |row, _| rows.push_up_to(row, wanted_bytes))?;
        Ok(rows)
    }

    fn scan(&mut self, each: &mut dyn FnMut(Row<'_>, u64) -> ControlFlow<()>) -> Result<()> {
        self.read(0, each)
    }

    fn check_unchanged(&self) -> Result<()> {
        self.files.iter().try_for_each(Stamp::check)
    }
}
