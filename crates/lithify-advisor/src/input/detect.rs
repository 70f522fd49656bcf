//! Which format a file has, from its first bytes.

use csv_core::Reader;
use std::cell::RefCell;
use std::path::Path;

use super::container::container;
use super::delimited::{Delimited, Read, Record, read_record, reader};
use super::format::{Found, RowFormat};
use super::listed;
use crate::error::{AdviseError, Result};

/// Bytes of the head that decide.
pub(super) const HEAD_BYTES: usize = 256 << 10;
/// Records of the head that are compared.
const COMPARED: usize = 200;
/// What file systems compress at once.
pub(super) const PIECE_BYTES: usize = 128 << 10;
/// Lines that are longer on average are no rows.
const LINE_BYTES_MAX: usize = 64 << 10;

/// A format that a user may name where the guess is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Fields with commas, semicolons or bars.
    Csv,
    /// Fields with tabs.
    Tsv,
    /// JSON objects, one a line.
    Json,
    /// Lines of text.
    Lines,
    /// Bytes without rows.
    Bytes,
}

impl std::str::FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        Ok(match text {
            "csv" => Format::Csv,
            "tsv" => Format::Tsv,
            "json" | "jsonl" => Format::Json,
            "lines" => Format::Lines,
            "bytes" => Format::Bytes,
            _ => return Err("a format is csv, tsv, json, lines or bytes".to_owned()),
        })
    }
}

/// What was found out about a file.
pub(super) struct Detected {
    pub(super) format: RowFormat,
    /// Where its rows begin: behind the byte order mark and the header.
    pub(super) start: usize,
    /// In words.
    pub(super) about: String,
    /// The names of the columns, or nothing.
    pub(super) header: Vec<String>,
}

/// Finds out about a file. `key` has names of columns, their numbers from 1, or paths of fields.
pub(super) fn detect(
    path: &Path,
    head: &[u8],
    is_whole: bool,
    named: Option<Format>,
    key: &[String],
) -> Result<Detected> {
    let is_typed = [&b"PAR1"[..], b"ARROW1", b"SQLite format 3\0"];
    match named {
        Some(Format::Bytes) => {}
        Some(_) if is_typed.iter().any(|magic| head.starts_with(magic)) => {
            let what = "tells its format itself: leave --format out";
            return Err(AdviseError::usage(format_args!("{} {what}", path.display())));
        }
        _ => refuse_containers(path, head)?,
    }
    let mark = if head.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let body = &head[mark..];
    let format = named.unwrap_or_else(|| guess(path, body, is_whole));
    let mut detected = match format {
        Format::Csv | Format::Tsv => table(path, body, is_whole, format, key)?,
        Format::Json => json(path, body, is_whole, key)?,
        Format::Lines => plain(RowFormat::Lines, "lines of text"),
        Format::Bytes => plain(RowFormat::Bytes(PIECE_BYTES), "bytes without rows"),
    };
    if !key.is_empty() && matches!(format, Format::Lines | Format::Bytes) {
        let about = &detected.about;
        let what = format!("{}: {about} have no key to name", path.display());
        return Err(AdviseError::usage(what));
    }
    detected.start += mark;
    Ok(detected)
}

fn plain(format: RowFormat, about: &str) -> Detected {
    Detected { format, start: 0, about: about.to_owned(), header: Vec::new() }
}

/// Files that are not read, or not here.
fn refuse_containers(path: &Path, head: &[u8]) -> Result<()> {
    const KINDS: &[(&[u8], &str)] = &[
        (b"PAR1", "is Parquet, and others beside it are not: name the one or the others"),
        (b"ARROW1", "is Arrow, and others beside it are not: name the one or the others"),
        (b"SQLite format 3\0", "is SQLite: name it alone, and its table with --table"),
    ];
    let typed = KINDS.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, what)| *what);
    match typed.or_else(|| container(head)) {
        Some(what) => Err(AdviseError::data(format_args!("{} {what}", path.display()))),
        None => Ok(()),
    }
}

fn guess(path: &Path, body: &[u8], is_whole: bool) -> Format {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "csv" => return Format::Csv,
        "tsv" => return Format::Tsv,
        "jsonl" | "ndjson" | "json" => return Format::Json,
        _ => {}
    }
    let lines = body.iter().filter(|byte| **byte == b'\n').count();
    let is_text = !body.contains(&0) && lines > 0 && body.len() / lines <= LINE_BYTES_MAX;
    if !is_text {
        return Format::Bytes;
    }
    if matches!(RowFormat::Json(Vec::new()).parse(body, is_whole), Found::Row(_)) {
        return Format::Json;
    }
    match delimiter(body, is_whole) {
        Some((b'\t', _)) => Format::Tsv,
        Some(_) => Format::Csv,
        None => Format::Lines,
    }
}

/// The first records of the head.
fn records(reader: &mut Reader, body: &[u8], is_whole: bool) -> Vec<Record> {
    let (mut at, mut records) = (0, Vec::new());
    while records.len() < COMPARED {
        match read_record(reader, &body[at..], is_whole) {
            Read::Record(record) => {
                at += record.end;
                records.push(record);
            }
            Read::End | Read::More | Read::Open => break,
        }
    }
    // The last row may be cut, which tells nothing of the others.
    let is_unended = is_whole && at == body.len() && !matches!(body.last(), Some(b'\n' | b'\r'));
    let fields = records.first().map_or(0, Record::len);
    if is_unended && records.len() > 1 && records.last().is_some_and(|last| last.len() < fields) {
        records.pop();
    }
    records
}

/// The delimiter by which all first rows have as many fields, the most of them.
fn delimiter(body: &[u8], is_whole: bool) -> Option<(u8, usize)> {
    let fields = |delimiter: &u8| {
        let records = records(&mut reader(*delimiter), body, is_whole);
        let fields = records.first()?.len();
        let is_even = fields >= 2 && records.iter().all(|record| record.len() == fields);
        is_even.then_some((*delimiter, fields))
    };
    b",\t;|".iter().filter_map(fields).max_by_key(|(_, fields)| *fields)
}

fn table(
    path: &Path,
    body: &[u8],
    is_whole: bool,
    format: Format,
    key: &[String],
) -> Result<Detected> {
    let delimiter = match format {
        Format::Tsv => b'\t',
        // Where rows differ, the place where they do is found when they are read.
        _ => delimiter(body, is_whole).map_or(b',', |(delimiter, _)| delimiter),
    };
    let mut reader = reader(delimiter);
    let records = records(&mut reader, body, is_whole);
    let Some(first) = records.first() else {
        return Err(AdviseError::data(format_args!(
            "{}: no row at the start; is a quote left open?",
            path.display()
        )));
    };
    let fields = first.len();
    let texts: Vec<String> =
        (0..fields).map(|at| String::from_utf8_lossy(first.field(at)).into_owned()).collect();
    // Who names a column of the first row takes that for the header. A number is a column, not a name.
    let is_name = |name: &&String| name.parse::<usize>().is_err();
    let names_a_column = key.iter().filter(is_name).any(|name| texts.contains(name));
    let has_header = names_a_column || is_header(&records, body, is_whole);
    let column = |name: &String| column(path, &texts, has_header, name);
    let columns = key.iter().map(column).collect::<Result<Vec<usize>>>()?;
    let header = if has_header { texts } else { Vec::new() };
    let delimited = Delimited { reader: RefCell::new(reader), delimiter, fields, key: columns };
    let kind = if delimiter == b'\t' { "TSV" } else { "CSV" };
    let headed = if has_header { ", with a header" } else { ", without a header" };
    Ok(Detected {
        start: if has_header { first.end } else { 0 },
        format: RowFormat::Delimited(Box::new(delimited)),
        about: format!("{kind} with {fields} columns{headed}"),
        header,
    })
}

/// A first row of so many bytes, above one that is longer than the rest of the head, has names.
const NAMES_BYTES_MAX: usize = 4096;

/// Names are texts that differ. A row below has a number where they have none, or there is none, or it is so
/// much longer that it does not end in the head.
fn is_header(records: &[Record], body: &[u8], is_whole: bool) -> bool {
    let Some(first) = records.first() else { return false };
    let is_number = |field: &[u8]| {
        std::str::from_utf8(field).is_ok_and(|text| text.trim().parse::<f64>().is_ok())
    };
    let mut names: Vec<&[u8]> = (0..first.len()).map(|at| first.field(at)).collect();
    let are_names = names.iter().all(|name| !name.is_empty() && !is_number(name));
    names.sort_unstable();
    let all_differ = names.windows(2).all(|pair| pair[0] != pair[1]);
    let is_told = match records.get(1) {
        Some(second) => (0..second.len()).any(|at| is_number(second.field(at))),
        None => is_whole || (first.end <= NAMES_BYTES_MAX && body.len() > 2 * NAMES_BYTES_MAX),
    };
    are_names && all_differ && is_told
}

/// The number of a column. `first` has the texts of the first row, which are names or data. No name of a
/// header is a number, so a number is always that of a column.
fn column(path: &Path, first: &[String], has_header: bool, name: &str) -> Result<usize> {
    let by_number = name.parse().ok().filter(|number| (1..=first.len()).contains(number));
    let by_name = || first.iter().position(|column| has_header && column == name);
    by_number.map(|number: usize| number - 1).or_else(by_name).ok_or_else(|| {
        let known = match has_header {
            true => format!("there are: {}", listed(first)),
            false => format!(
                "the first row was taken for data, not for names, so columns are 1 to {}",
                first.len(),
            ),
        };
        AdviseError::usage(format_args!("{}: no column '{name}'; {known}", path.display()))
    })
}

fn json(path: &Path, body: &[u8], is_whole: bool, key: &[String]) -> Result<Detected> {
    let text = body.trim_ascii_start();
    if text.starts_with(b"[") {
        let what = "is one JSON array: make lines of it first (jq -c '.[]')";
        return Err(AdviseError::data(format_args!("{} {what}", path.display())));
    }
    let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    if first.trim_ascii() == b"{" {
        let what = "has JSON over several lines: make one line of each object first (jq -c .)";
        return Err(AdviseError::data(format_args!("{} {what}", path.display())));
    }
    let paths = key.iter().map(|path| path.split('.').map(str::to_owned).collect()).collect();
    let format = RowFormat::Json(paths);
    match format.parse(text, is_whole) {
        // A field that is not there was named wrongly.
        Found::Wrong(_, what) if !key.is_empty() => {
            Err(AdviseError::usage(format_args!("{}:1: {what}", path.display())))
        }
        Found::Wrong(_, what) => Err(AdviseError::at_line(path, 1, what)),
        _ => Ok(plain(format, "JSON objects, one a line")),
    }
}
