//! A table of an SQLite file, by its row ids.
//!
//! The file is opened as one that never changes, so that nothing is written beside it. What is in its
//! write-ahead log is then not seen, and the answer says so.

use std::ops::ControlFlow;
use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

use super::positions::{Place, Positions};
use super::record::{Record, Value};
use super::size::{Range, rows_of_range, user_bytes};
use super::spool::Spool;
use super::stamp::Stamp;
use super::{Facts, Source, column_of};
use crate::error::{AdviseError, Result};
use crate::rows::{Row, Rows};
use crate::watch::Watch;

/// Names of the row's number, of which one may be taken by a column.
const ROW_IDS: [&str; 3] = ["rowid", "_rowid_", "oid"];
/// Rows that tell which table is the largest.
const COMPARED_ROWS: u32 = 20;

struct Column {
    name: String,
    /// Its place in the primary key from 1, or 0.
    key: i64,
    /// What a whole number takes elsewhere, by the declared type.
    whole_bytes: usize,
}

/// A table.
pub(super) struct Sqlite {
    connection: Connection,
    stamp: Stamp,
    query: Query,
    record: Record,
    /// The row ids that there are, or rows that were kept of a table without them.
    positions: Positions,
    facts: Facts,
}

/// How rows are asked for.
struct Query {
    columns: String,
    table: String,
    /// What rows are numbered by; a table may be without.
    row_id: Option<&'static str>,
    whole_bytes: Vec<usize>,
}

impl Query {
    fn text(&self) -> String {
        let Query { columns, table, .. } = self;
        match self.row_id {
            Some(id) => {
                format!("SELECT {id}, {columns} FROM {table} WHERE {id} >= ?1 ORDER BY {id}")
            }
            None => format!("SELECT 0, {columns} FROM {table} WHERE ?1 = ?1"),
        }
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn wrong(path: &Path, error: &rusqlite::Error) -> AdviseError {
    AdviseError::data(format_args!("{}: SQLite: {error}", path.display()))
}

/// A file that never changes, whatever its name has in it.
fn uri(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => {
                uri.push(char::from(*byte));
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri + "?mode=ro&immutable=1"
}

impl Sqlite {
    /// The table of that name; the largest one without a name.
    pub(super) fn open(
        path: &Path,
        table: Option<&str>,
        key: &[String],
        watch: &dyn Watch,
    ) -> Result<Sqlite> {
        let stamp = Stamp::of(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let of = |error: rusqlite::Error| wrong(path, &error);
        let absolute = path.canonicalize().map_err(|error| AdviseError::of_file(path, &error))?;
        let connection = Connection::open_with_flags(uri(&absolute), flags).map_err(of)?;
        let (table, others) = choose(&connection, path, table)?;
        let columns = columns(&connection, &table).map_err(of)?;
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let (key_columns, key_name) = match key {
            [] => primary_key(&columns),
            names_of_key => {
                let found = names_of_key.iter().map(|name| column_of(path, &names, name));
                (found.collect::<Result<Vec<usize>>>()?, names_of_key.join(", "))
            }
        };
        let query = Query {
            columns: names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", "),
            table: quoted(&table),
            row_id: row_id(&connection, &table, &names),
            whole_bytes: columns.iter().map(|column| column.whole_bytes).collect(),
        };
        let of_others =
            if others > 0 { format!(", the largest of {}", others + 1) } else { String::new() };
        let facts = Facts {
            format: format!(
                "SQLite table {table} with {} columns{of_others}{}",
                names.len(),
                unseen(path)
            ),
            files: 1,
            has_rows: true,
            has_bytes: false,
            native: &[],
            key: key_name,
            data_bytes: 0,
        };
        let positions = Positions::none();
        let record = Record::new(key_columns);
        let mut sqlite = Sqlite { connection, stamp, query, record, positions, facts };
        sqlite.locate(watch)?;
        match sqlite.facts.data_bytes {
            0 => Err(AdviseError::data(format_args!("{}: {table} has no row", path.display()))),
            _ => Ok(sqlite),
        }
    }

    /// Finds out where rows are and how many.
    fn locate(&mut self, watch: &dyn Watch) -> Result<()> {
        let Some(id) = self.query.row_id else { return self.keep(watch) };
        let spread = spread(&self.connection, &self.query.table, id);
        match spread.map_err(|error| wrong(&self.stamp.path, &error))? {
            Spread::Empty => Ok(()),
            Spread::Uneven => self.keep(watch),
            Spread::Even(range, rows) => {
                self.positions = Positions::Numbers(range);
                self.facts.data_bytes = user_bytes(self, rows)?;
                Ok(())
            }
        }
    }

    /// Reads all rows, and keeps some.
    fn keep(&mut self, watch: &dyn Watch) -> Result<()> {
        let mut spool = Spool::default();
        let total = self.stamp.size;
        self.read(i64::MIN, &mut |_, row, done| spool.take(row, done, total, watch))?;
        self.facts.data_bytes = spool.finish()?;
        self.positions = Positions::Kept(spool);
        Ok(())
    }

    /// Rows from a row id on, each with its id and the bytes so far.
    fn read(
        &mut self,
        from: i64,
        each: &mut dyn FnMut(i64, Row<'_>, u64) -> ControlFlow<()>,
    ) -> Result<()> {
        let of = |error: rusqlite::Error| wrong(&self.stamp.path, &error);
        let mut statement = self.connection.prepare_cached(&self.query.text()).map_err(of)?;
        let mut rows = statement.query([from]).map_err(of)?;
        let mut done = 0;
        while let Some(row) = rows.next().map_err(of)? {
            self.record.clear();
            for (at, whole_bytes) in self.query.whole_bytes.iter().enumerate() {
                match row.get_ref(at + 1).map_err(of)? {
                    ValueRef::Null => self.record.push(Value::Null),
                    ValueRef::Integer(number) => {
                        self.record.push(Value::Whole(number, fitting(number, *whole_bytes)));
                    }
                    ValueRef::Real(real) => self.record.push(Value::Float(real, false)),
                    ValueRef::Text(text) | ValueRef::Blob(text) => {
                        self.record.push(Value::Text(text));
                    }
                }
            }
            let id = row.get::<_, i64>(0).map_err(of)?;
            // Without a key rows are found by their ids.
            let record = self.record.row(id as u64);
            done += record.data_bytes;
            if each(id, record, done).is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// The declared width, or eight bytes for what does not fit into it.
fn fitting(number: i64, bytes: usize) -> usize {
    let unused = 64 - 8 * bytes as u32;
    if (number << unused) >> unused == number { bytes } else { 8 }
}

/// What the log has that is not seen.
fn unseen(path: &Path) -> String {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    match std::fs::metadata(log) {
        Ok(metadata) if metadata.len() > 0 => {
            format!(", without {} KiB in its write-ahead log", metadata.len().div_ceil(1024))
        }
        _ => String::new(),
    }
}

/// The table, and how many others there are.
fn choose(connection: &Connection, path: &Path, name: Option<&str>) -> Result<(String, usize)> {
    let of = |error: rusqlite::Error| wrong(path, &error);
    let all = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' \
               ESCAPE '\\' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name";
    let mut statement = connection.prepare(all).map_err(of)?;
    let names = statement.query_map([], |row| row.get::<_, String>(0)).map_err(of)?;
    let names: Vec<String> = names.collect::<std::result::Result<_, _>>().map_err(of)?;
    if names.is_empty() {
        let (path, unseen) = (path.display(), unseen(path));
        let what = match unseen.is_empty() {
            true => format!("{path} has no table"),
            false => format!("{path} has no table{unseen}: PRAGMA wal_checkpoint brings it in"),
        };
        return Err(AdviseError::data(what));
    }
    if let Some(name) = name {
        return match names.iter().any(|known| known == name) {
            true => Ok((name.to_owned(), 0)),
            false => {
                let (path, names) = (path.display(), names.join(", "));
                let what = format!("{path} has no table '{name}'; there are: {names}");
                Err(AdviseError::usage(what))
            }
        };
    }
    let mut largest = (0.0, 0);
    for (at, name) in names.iter().enumerate().filter(|_| names.len() > 1) {
        let bytes = about_bytes(connection, name).map_err(of)?;
        if bytes > largest.0 {
            largest = (bytes, at);
        }
    }
    Ok((names[largest.1].clone(), names.len() - 1))
}

/// How row ids are spread over their range.
enum Spread {
    Empty,
    /// Most rows are in a small part of it.
    Uneven,
    /// The range, and about how many rows have a number of it.
    Even(Range, u64),
}

fn spread(connection: &Connection, table: &str, id: &str) -> rusqlite::Result<Spread> {
    let ends =
        connection.query_row(&format!("SELECT min({id}), max({id}) FROM {table}"), [], |row| {
            Ok(row.get::<_, Option<i64>>(0)?.zip(row.get::<_, Option<i64>>(1)?))
        })?;
    let Some((first, last)) = ends else { return Ok(Spread::Empty) };
    let range = Range { first, last };
    let from = format!("SELECT {id} FROM {table} WHERE {id} >= ?1 ORDER BY {id}");
    let mut from = connection.prepare(&from)?;
    let rows = rows_of_range::<rusqlite::Error>(range, &mut |start, each| {
        let mut rows = from.query([start])?;
        while let Some(row) = rows.next()? {
            if each(row.get(0)?).is_break() {
                break;
            }
        }
        Ok(())
    })?;
    Ok(rows.map_or(Spread::Uneven, |rows| Spread::Even(range, rows)))
}

/// About how many bytes a table has: its rows, times the length of some rows.
fn about_bytes(connection: &Connection, table: &str) -> rusqlite::Result<f64> {
    let columns = columns(connection, table)?;
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let name = quoted(table);
    let spread = match row_id(connection, table, &names) {
        Some(id) => spread(connection, &name, id)?,
        None => Spread::Uneven,
    };
    let rows = match spread {
        Spread::Empty => 0.0,
        Spread::Even(_, rows) => rows as f64,
        Spread::Uneven => {
            connection.query_row(&format!("SELECT count(*) FROM {name}"), [], |row| row.get(0))?
        }
    };
    let lengths: Vec<String> =
        names.iter().map(|name| format!("coalesce(length({}), 0)", quoted(name))).collect();
    let mean = format!(
        "SELECT avg({}) FROM (SELECT * FROM {name} LIMIT {COMPARED_ROWS})",
        lengths.join(" + ")
    );
    let mean: Option<f64> = connection.query_row(&mean, [], |row| row.get(0))?;
    Ok(rows * mean.unwrap_or(0.0))
}

fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<Column>> {
    let mut statement = connection.prepare("SELECT name, type, pk FROM pragma_table_info(?1)")?;
    let columns = statement.query_map([table], |row| {
        let kind: String = row.get::<_, Option<String>>(1)?.unwrap_or_default();
        Ok(Column { name: row.get(0)?, key: row.get(2)?, whole_bytes: whole_bytes(&kind) })
    })?;
    columns.collect()
}

/// What other databases give to a whole number of a declared type.
fn whole_bytes(kind: &str) -> usize {
    let kind = kind.to_ascii_uppercase();
    match kind.as_str() {
        _ if kind.starts_with("TINYINT") || kind.starts_with("BOOL") => 1,
        _ if kind.starts_with("SMALLINT") => 2,
        _ if kind.starts_with("MEDIUMINT") => 3,
        "INT" | "INT4" => 4,
        _ => 8,
    }
}

/// The columns that the table declares as its key, in their order.
fn primary_key(columns: &[Column]) -> (Vec<usize>, String) {
    let mut key: Vec<usize> = (0..columns.len()).filter(|at| columns[*at].key > 0).collect();
    key.sort_by_key(|at| columns[*at].key);
    let names: Vec<&str> = key.iter().map(|at| columns[*at].name.as_str()).collect();
    let name = names.join(", ");
    (key, name)
}

/// The name of the row ids, if the table has them.
fn row_id(connection: &Connection, table: &str, columns: &[&str]) -> Option<&'static str> {
    let is_free = |id: &&&str| !columns.iter().any(|column| column.eq_ignore_ascii_case(id));
    let id = ROW_IDS.iter().find(is_free).copied()?;
    let query = format!("SELECT {id} FROM {} LIMIT 0", quoted(table));
    connection.prepare(&query).is_ok().then_some(id)
}

impl Source for Sqlite {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn places_max(&self) -> usize {
        self.positions.places_max()
    }

    fn place(&mut self, share: f64, wanted_bytes: u64) -> Result<Rows> {
        let from = match self.positions.place(share, wanted_bytes) {
            Place::Kept(rows) => return Ok(rows),
            Place::From(number) => number,
        };
        let mut rows = Rows::default();
        self.read(from, &mut |_, row, _| rows.push_up_to(row, wanted_bytes))?;
        Ok(rows)
    }

    fn scan(&mut self, each: &mut dyn FnMut(Row<'_>, u64) -> ControlFlow<()>) -> Result<()> {
        self.read(i64::MIN, &mut |_, row, done| each(row, done))
    }

    fn check_unchanged(&self) -> Result<()> {
        self.stamp.check()
    }
}
