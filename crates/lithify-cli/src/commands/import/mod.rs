//! `lithify import`: rows of a file, or of another engine's database, into a column family.

#[cfg(feature = "advisor-formats")]
mod columnar;
mod csv;
mod jsonl;
mod sink;
mod table;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, stdin};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::Args;
use lithify::{KEY_SIZE_MAX, VALUE_SIZE_MAX};
#[cfg(feature = "advisor-formats")]
use lithify_advisor::input::columnar_name;
use lithify_advisor::input::{Database, Source, container};
use lithify_report::printable;

use super::database::{family_to_write, open_to_write};
use super::export::FileFormat;
use super::foreign;
use super::tool::Watch;
use crate::fault::{Fault, engine_text, print};
use sink::Sink;

/// `import`
#[derive(Debug, Args)]
#[command(
    long_about = "\
Put the rows of a file into a column family. Rows with a key that is there replace what is there.

CSV has a header. Between fields are commas; tabs, semicolons or bars if the header has no comma; or what
--separator names. The columns key and value are
taken, or those that --key and --value name. With --key alone the value is the row as a JSON object. JSON lines have an object a line, with the fields key and
value, or key_hex and value_hex with hexadecimal digits: what `lithify export` writes. With --key alone
the value is the line as it is. Parquet and Arrow files are known by their first bytes; their columns are
chosen as those of CSV. Text and bytes are taken as they are, numbers and times as JSON has them.
A directory is a database of RocksDB, LevelDB, fjall or Lithify; --table
chooses a column family or keyspace of it. - is standard input, and needs --format.

Input in the order of keys goes straight into tables and becomes visible at the end, all at once. Other
input goes in batches of 1 MiB. A row that is wrong ends the command, as Ctrl-C does: all rows before it
are written, none behind it, and the last line says how many. The same command may be run again.

Without --family it is the column family `default`, which is made in a database without any. If there
is only one other, it is that one, and a line on standard error says so.",
    after_help = "\
Examples:
  lithify import rocks.db rocks.jsonl
  lithify import new.db links.csv --create --family links
  lithify import flights.db flights.csv --key id --create
  lithify import prices.db prices.csv --separator ';' --key id --create
  lithify import events.db - --format jsonl --key id < events.jsonl
  lithify import trips.db trips.parquet --key trip_id --create
  lithify import new.db /var/lib/app/rocksdb --table events --create

Exit codes:
  0    done
  1    a row is wrong, or something failed: the error names file and line, and what is written
  2    used wrongly: no database, file, column or column family; nothing is written
  130  stopped by Ctrl-C or SIGTERM: the error says what is written"
)]
pub struct ImportArguments {
    /// The directory of the database
    directory: PathBuf,
    /// The file, the directory of a database, or - for standard input
    file: PathBuf,
    /// What the file is; without it what its name says
    #[arg(long, value_enum)]
    format: Option<FileFormat>,
    /// The column or field that is the key
    #[arg(long, value_name = "COLUMN")]
    key: Option<String>,
    /// The column or field that is the value; the whole row without it
    #[arg(long, value_name = "COLUMN", requires = "key")]
    value: Option<String>,
    /// What stands between the fields of a CSV file, where its header does not tell: one sign, or tab
    #[arg(long, value_name = "SIGN", value_parser = separator)]
    separator: Option<u8>,
    /// The column family or keyspace of a directory to import from
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// The column family to put rows into
    #[arg(long, value_name = "NAME")]
    family: Option<String>,
    /// Make the database, and the named column family, if they are not there
    #[arg(long)]
    create: bool,
}

/// A separator by its sign.
fn separator(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        _ if matches!(text, "tab" | "\\t") => Ok(b'\t'),
        [sign] if sign.is_ascii() && !matches!(sign, b'"' | b'\r' | b'\n') => Ok(*sign),
        _ => Err("a separator is one ASCII sign, as ; or |, or tab".to_owned()),
    }
}

/// What the number of written rows leaves open. Keys that ascend have one row each.
const ROWS_OF_ONE_KEY: &str =
    "Of rows with the same key the last one stays: `lithify count` has the number of keys.\n";

/// The most bytes of a row in the input.
pub const RECORD_BYTES_MAX: usize = 256 << 20;

/// So many bytes of a key are shown where a row is named by it.
const NAMED_BYTES_MAX: usize = 40;

/// What of a row is longer than a database takes.
fn too_large(key: &[u8], value: &[u8]) -> Option<String> {
    if key.len() > KEY_SIZE_MAX {
        return Some(format!("a key of more than {KEY_SIZE_MAX} bytes"));
    }
    (value.len() > VALUE_SIZE_MAX).then(|| "a value of more than 64 MiB".to_owned())
}

/// Where in a file a reader is: lines from 1, and bytes read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Line {
    /// The line where the row begins.
    first: u64,
    /// The line where it ends.
    last: u64,
    bytes: u64,
}

/// What is wrong with an input.
#[derive(Debug)]
pub enum Bad {
    /// A row, by the line where it begins.
    Row(u64, String),
    /// It cannot be read.
    Read(std::io::Error),
    /// What the command asks of it is not there.
    Usage(String),
    /// It is wrong; the text says where.
    #[cfg_attr(
        not(feature = "advisor-formats"),
        expect(dead_code, reason = "of files with columns")
    )]
    Source(String),
}

/// Reads a line with its end; false at the end of the input.
fn read_line(input: &mut impl BufRead, buffer: &mut Vec<u8>, line: &mut Line) -> Result<bool, Bad> {
    buffer.clear();
    let mut limited = input.take(RECORD_BYTES_MAX as u64 + 1);
    let bytes = limited.read_until(b'\n', buffer).map_err(Bad::Read)?;
    if bytes > 0 {
        line.last += 1;
        line.bytes += bytes as u64;
    }
    if bytes > RECORD_BYTES_MAX {
        return Err(Bad::Row(line.last, "a row of more than 256 MiB".to_owned()));
    }
    Ok(bytes > 0)
}

/// Rows of an input, one after the other.
trait Records {
    /// Reads the next row into `row`; false at the end.
    fn next(&mut self, row: &mut Row) -> Result<bool, Bad>;

    /// Where it is.
    fn line(&self) -> Line;
}

/// A row on its way.
#[derive(Default)]
struct Row {
    key: Vec<u8>,
    value: Vec<u8>,
}

/// What ends an import early.
enum Stop {
    Bad(Bad),
    Engine(lithify::Error),
    /// The source of rows is another database.
    Source(String),
    /// A row of it is too large.
    Size(String),
    Interrupted,
}

/// Imports them.
pub fn run(arguments: &ImportArguments) -> Result<(), Fault> {
    // From the start: what stands in for a database is removed after Ctrl-C too.
    let watch = Watch::begin("import")?;
    let mut input = Input::open(arguments)?;
    if watch.is_interrupted() {
        let file = arguments.file.display();
        return Err(Fault::interrupted(format!("stopped; nothing is written: {file}")));
    }
    let db = open_to_write(&arguments.directory, arguments.create)?;
    let family = family_to_write(&db, arguments.family.as_deref(), arguments.create)?;
    let mut sink = Sink::new(&db, &family);
    let stopped = input.read_into(&mut sink, &watch);
    drop(watch);
    // What was taken before the end, or before what went wrong, is written.
    let committed = match &stopped {
        Err(Stop::Engine(_)) => Ok(()),
        _ => sink.commit(),
    };
    let written = format!("{} rows are written", sink.written);
    let stopped = committed.map_err(Stop::Engine).and(stopped);
    let file = arguments.file.display();
    match stopped {
        Ok(()) => {}
        Err(Stop::Bad(bad)) => return Err(wrong_row(bad, &written, &arguments.file)),
        Err(Stop::Size(what)) => return Err(Fault::failure(format!("{what}; {written}: {file}"))),
        Err(Stop::Source(what)) => return Err(Fault::failure(format!("{what}; {written}"))),
        Err(Stop::Engine(error)) => {
            return Err(Fault::failure(format!("{written}; {}", engine_text(&error))));
        }
        Err(Stop::Interrupted) => {
            return Err(Fault::interrupted(format!("stopped; {written}: {file}")));
        }
    }
    let is_sorted = sink.is_sorted();
    let order = if is_sorted { "in the order of keys" } else { "in batches" };
    let (rows, name) = (sink.written, family.name().to_owned());
    drop(sink);
    db.close().map_err(Fault::of_engine)?;
    let mut text = format!("{rows} rows written {order} to column family {name}: {file}\n");
    if !is_sorted {
        text.push_str(ROWS_OF_ONE_KEY);
    }
    print(&printable(&text))
}

/// What the name of a file says. What stands between the fields of CSV its header tells.
fn format_of_name(path: &Path) -> Option<FileFormat> {
    let is_tsv = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("tsv"));
    if is_tsv { Some(FileFormat::Csv) } else { FileFormat::of_name(path) }
}

/// What is imported.
enum Input {
    /// Of both the first row is read before the database is opened: nothing is made for an input that is wrong.
    File {
        records: Box<dyn Records>,
        first: Option<Row>,
        total_bytes: u64,
    },
    Database(Box<dyn Source>),
}

impl Input {
    /// Opens it, before the database is: nothing is made for an input that is not there.
    fn open(arguments: &ImportArguments) -> Result<Input, Fault> {
        let path = arguments.file.as_path();
        let shown = path.display();
        let is_stdin = path == Path::new("-");
        let format = arguments.format.or_else(|| format_of_name(path));
        if arguments.separator.is_some() && (path.is_dir() || format != Some(FileFormat::Csv)) {
            return Err(Fault::usage(format!("--separator is of CSV files: {shown}")));
        }
        if !is_stdin && path.is_dir() {
            return open_database(arguments);
        }
        if arguments.table.is_some() {
            return Err(Fault::usage(format!("--table is for databases; this is a file: {shown}")));
        }
        if !is_stdin && let Some(input) = open_columnar(arguments)? {
            return Ok(input);
        }
        let (input, total_bytes): (Box<dyn Read>, u64) = match is_stdin {
            true => (Box::new(stdin()), 0),
            false => {
                let opened = File::open(path).and_then(|file| {
                    let bytes = file.metadata()?.len();
                    Ok((file, bytes))
                });
                let wrong = |error| Fault::usage(format!("cannot be read: {error}: {shown}"));
                let (file, bytes) = opened.map_err(wrong)?;
                (Box::new(file), bytes)
            }
        };
        let mut input = BufReader::with_capacity(1 << 18, input);
        let head = input
            .fill_buf()
            .map_err(|error| Fault::usage(format!("cannot be read: {error}: {shown}")))?;
        if let Some(what) = refused(head) {
            return Err(Fault::usage(format!("this {what}: {shown}")));
        }
        let Some(format) = format else {
            return Err(Fault::usage(format!(
                "say what it is with --format csv or jsonl: {shown}"
            )));
        };
        let separator = arguments.separator.unwrap_or_else(|| table::separator_of(head));
        let (key, value) = (arguments.key.clone(), arguments.value.clone());
        let records: Result<Box<dyn Records>, Bad> = match format {
            FileFormat::Csv => {
                table::CsvRows::open(input, separator, key, value).map(|rows| Box::new(rows) as _)
            }
            FileFormat::Jsonl => Ok(Box::new(jsonl::JsonRows::new(input, key, value))),
            FileFormat::Parquet if is_stdin => {
                Err(Bad::Usage("Parquet is read from files, not from streams".to_owned()))
            }
            FileFormat::Parquet => Err(Bad::Usage("this is no Parquet file".to_owned())),
        };
        let records = records.map_err(|bad| match bad {
            Bad::Row(line, what) => Fault::failure(format!("{what}: {shown}:{line}")),
            Bad::Read(error) => Fault::usage(format!("cannot be read: {error}: {shown}")),
            Bad::Usage(what) => Fault::usage(format!("{what}: {shown}")),
            Bad::Source(what) => Fault::failure(what),
        })?;
        Input::of_records(records, total_bytes, arguments)
    }

    /// A file whose first row is read.
    fn of_records(
        mut records: Box<dyn Records>,
        total_bytes: u64,
        arguments: &ImportArguments,
    ) -> Result<Input, Fault> {
        let mut row = Row::default();
        match next_row(&mut *records, &mut row) {
            Ok(is_there) => {
                let first = is_there.then_some(row);
                Ok(Input::File { records, first, total_bytes })
            }
            Err(bad) => Err(wrong_row(bad, "0 rows are written", &arguments.file)),
        }
    }

    /// A database whose first row can be read and taken.
    fn of_source(mut source: Box<dyn Source>, path: &Path) -> Result<Input, Fault> {
        let mut wrong = None;
        let read = source.scan(&mut |row, _| {
            wrong = wrong_size(row.key, row.value);
            ControlFlow::Break(())
        });
        let read = read.map_err(|error| error.to_string());
        match read.and(wrong.map_or(Ok(()), Err)) {
            Ok(()) => Ok(Input::Database(source)),
            Err(what) => {
                Err(Fault::failure(format!("{what}; 0 rows are written: {}", path.display())))
            }
        }
    }

    /// Hands all rows to the sink.
    fn read_into(&mut self, sink: &mut Sink<'_>, watch: &Watch) -> Result<(), Stop> {
        match self {
            Input::File { records, first, total_bytes } => {
                read_file(&mut **records, first.take(), *total_bytes, sink, watch)
            }
            Input::Database(source) => read_database(&mut **source, sink, watch),
        }
    }
}

/// Reads the next row, which a database can take; false at the end.
fn next_row(records: &mut dyn Records, row: &mut Row) -> Result<bool, Bad> {
    if !records.next(row)? {
        return Ok(false);
    }
    match too_large(&row.key, &row.value) {
        Some(what) => Err(Bad::Row(records.line().first, what)),
        None => Ok(true),
    }
}

/// What is wrong with a row, with what is written before it.
fn wrong_row(bad: Bad, written: &str, file: &Path) -> Fault {
    let file = file.display();
    match bad {
        Bad::Row(line, what) => Fault::failure(format!("{what}; {written}: {file}:{line}")),
        Bad::Read(error) => Fault::failure(format!("{error}; {written}: {file}")),
        Bad::Usage(what) => Fault::usage(format!("{what}: {file}")),
        Bad::Source(what) => Fault::failure(format!("{what}; {written}")),
    }
}

/// Why a file that begins with these bytes is neither CSV nor JSON lines, and what makes it so.
fn refused(head: &[u8]) -> Option<&'static str> {
    match head.starts_with(b"SQLite format 3\0") {
        true => Some(
            "is SQLite: make CSV of a table first (sqlite3 -header -csv FILE 'SELECT * FROM table')",
        ),
        false => container(head),
    }
}

/// Hands `first` and the rows behind it to the sink.
fn read_file(
    records: &mut dyn Records,
    first: Option<Row>,
    total_bytes: u64,
    sink: &mut Sink<'_>,
    watch: &Watch,
) -> Result<(), Stop> {
    // Without a first row there is none.
    let mut is_there = first.is_some();
    let mut row = first.unwrap_or_default();
    let mut last_heard = None;
    while is_there {
        let line = records.line();
        if watch.is_interrupted() {
            return Err(Stop::Interrupted);
        }
        // A bar that is drawn for every row costs more than the row.
        if last_heard.is_none_or(|heard| line.bytes - heard >= 1 << 16) {
            last_heard = Some(line.bytes);
            // What it says is asked before every row.
            let _ = watch.hear(line.bytes, total_bytes);
        }
        sink.put(&row.key, &row.value).map_err(Stop::Engine)?;
        is_there = next_row(records, &mut row).map_err(Stop::Bad)?;
    }
    Ok(())
}

/// A Parquet or Arrow file; nothing if it is another one, or none that can be read.
#[cfg(feature = "advisor-formats")]
fn open_columnar(arguments: &ImportArguments) -> Result<Option<Input>, Fault> {
    let path = arguments.file.as_path();
    let metadata = path.metadata();
    let metadata =
        metadata.map_err(|e| Fault::usage(format!("cannot be read: {e}: {}", path.display())))?;
    // Named pipes are read once, from their beginning.
    if !metadata.is_file() {
        return Ok(None);
    }
    if arguments.format.is_some_and(|format| format != FileFormat::Parquet) {
        return match columnar_name(path) {
            Ok(Some(kind)) => {
                let what = format!("this is a {kind} file; leave --format out");
                Err(Fault::usage(format!("{what}: {}", path.display())))
            }
            _ => Ok(None),
        };
    }
    let (key, value) = (arguments.key.as_deref(), arguments.value.as_deref());
    match columnar::ColumnarRows::open(path, key, value, metadata.len()) {
        Ok(None) => Ok(None),
        Ok(Some(rows)) => Input::of_records(Box::new(rows), metadata.len(), arguments).map(Some),
        Err(error) if error.is_usage() => Err(Fault::usage(error)),
        Err(error) => Err(Fault::failure(error)),
    }
}

/// This program was built without these files.
#[cfg(not(feature = "advisor-formats"))]
fn open_columnar(_: &ImportArguments) -> Result<Option<Input>, Fault> {
    Ok(None)
}

fn open_database(arguments: &ImportArguments) -> Result<Input, Fault> {
    let path = arguments.file.as_path();
    if arguments.key.is_some() || arguments.format.is_some() {
        let what = "a database has its keys: leave --key and --format out";
        return Err(Fault::usage(format!("{what}: {}", path.display())));
    }
    let table = arguments.table.as_deref();
    let source = match foreign::open(path, &[], table) {
        Some(source) => source,
        None => Database::open(path, table).map(|database| Box::new(database) as _),
    };
    let source = source.map_err(|error| match error.is_usage() {
        true => Fault::usage(error),
        false => Fault::failure(error),
    })?;
    Input::of_source(source, path)
}

fn put_row(sink: &mut Sink<'_>, key: &[u8], value: &[u8]) -> Result<(), Stop> {
    match wrong_size(key, value) {
        None => sink.put(key, value).map_err(Stop::Engine),
        Some(what) => Err(Stop::Size(what)),
    }
}

/// What of a row of a database is too long. A row of a file has a line; this one its key, unless that is it.
fn wrong_size(key: &[u8], value: &[u8]) -> Option<String> {
    let what = too_large(key, value)?;
    Some(match key.len() <= KEY_SIZE_MAX {
        true => format!("{what}: \"{}\"", key[..key.len().min(NAMED_BYTES_MAX)].escape_ascii()),
        false => what,
    })
}

fn read_database(source: &mut dyn Source, sink: &mut Sink<'_>, watch: &Watch) -> Result<(), Stop> {
    let total_bytes = source.facts().data_bytes;
    let mut stopped = Ok(());
    let read = source.scan(&mut |row, done_bytes| {
        stopped = match watch.hear(done_bytes, total_bytes) {
            ControlFlow::Break(()) => Err(Stop::Interrupted),
            ControlFlow::Continue(()) => put_row(sink, row.key, row.value),
        };
        match stopped {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    stopped.and_then(|()| read.map_err(|error| Stop::Source(error.to_string())))
}

#[cfg(test)]
mod tests {
    use lithify_advisor::input::Facts;
    use lithify_advisor::rows::{Row, Rows};
    use lithify_advisor::{AdviseError, Result};

    use super::*;

    /// A database whose first block is damaged.
    struct Damaged(Facts);

    impl Source for Damaged {
        fn facts(&self) -> &Facts {
            &self.0
        }

        fn place(&mut self, _: f64, _: u64) -> Result<Rows> {
            Err(AdviseError::data("a block is damaged"))
        }

        fn scan(&mut self, _: &mut dyn FnMut(Row<'_>, u64) -> ControlFlow<()>) -> Result<()> {
            Err(AdviseError::data("a block is damaged"))
        }

        fn check_unchanged(&self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_is_wrong_at_the_first_row_of_a_database_is_found_before_one_is_made() {
        let opened = Input::of_source(Box::new(Damaged(Facts::default())), Path::new("old"));
        let fault = opened.err().expect("is damaged");
        assert_eq!(fault.text(), "a block is damaged; 0 rows are written: old");
    }
}
