//! Files with rows, one behind the other, read where they are needed and nowhere else.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{File, FileType};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use lithify_report::figure::bytes;

use super::delimited::{MANY_LINES, is_blank};
use super::detect::{Detected, Format, HEAD_BYTES, PIECE_BYTES, detect};
use super::format::{Found, Parsed, RowFormat, Start};
use super::stamp::Stamp;
use super::{Facts, Source, key};
use crate::error::{AdviseError, Result};
use crate::rows::{Row, Rows};

/// What is read at once.
const WINDOW_BYTES: usize = 256 << 10;
/// A row that is longer is taken for a sign that the format is not what it seems.
const ROW_BYTES_MAX: usize = 64 << 20;

/// A row of text that is longer, over many lines, is told.
const LONG_ROW_BYTES: usize = 1 << 20;
/// Notes of rows that are kept.
const NOTES_MAX: usize = 4;
/// Lines are counted up to there for a note.
const COUNTED_BYTES: u64 = 64 << 20;
/// Names of what is left out.
const NAMES_MAX: usize = 3;

/// One file.
#[derive(Debug)]
struct Part {
    stamp: Stamp,
    /// Where its rows begin.
    start: u64,
    /// Where its rows begin in the data.
    before: u64,
}

impl Part {
    /// Bytes of its rows. Names of columns are no data.
    fn data_bytes(&self) -> u64 {
        self.stamp.size.saturating_sub(self.start)
    }

    /// The place in the data of an offset in the file.
    fn in_data(&self, offset: u64) -> u64 {
        self.before + offset.saturating_sub(self.start)
    }

    /// Opened for each read: there may be more of them than a process may have open.
    fn open(path: &Path) -> Result<File> {
        File::open(path).map_err(|error| AdviseError::of_file(path, &error))
    }

    /// Reads behind what is in `window`, up to its capacity; true at the end of the file.
    fn read(&self, file: &File, window: &mut Vec<u8>, offset: u64, wanted: usize) -> Result<bool> {
        let filled = window.len();
        window.resize(filled + wanted, 0);
        let mut read = 0;
        while read < wanted {
            match file.read_at(&mut window[filled + read..], offset + read as u64) {
                Ok(0) => break,
                Ok(count) => read += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(AdviseError::of_file(&self.stamp.path, &error)),
            }
        }
        window.truncate(filled + read);
        Ok(read < wanted)
    }

    /// The line that an offset is in, from 1: what an error names.
    fn line(&self, offset: u64) -> u64 {
        let (mut at, mut line) = (0, 1);
        let mut window = Vec::new();
        let Ok(file) = Part::open(&self.stamp.path) else { return line };
        while at < offset {
            window.clear();
            let wanted = WINDOW_BYTES.min((offset - at) as usize);
            if self.read(&file, &mut window, at, wanted).is_err() || window.is_empty() {
                break;
            }
            line += window.iter().filter(|byte| **byte == b'\n').count() as u64;
            at += window.len() as u64;
        }
        line
    }

    /// Where an offset is, in words that take no long time to find out.
    fn whereabouts(&self, offset: u64) -> String {
        let path = self.stamp.path.display();
        match offset {
            0..=COUNTED_BYTES => format!("{path}:{}", self.line(offset)),
            _ => format!("{path}, byte {offset}"),
        }
    }

    fn wrong(&self, offset: u64, what: impl std::fmt::Display) -> AdviseError {
        AdviseError::at_line(&self.stamp.path, self.line(offset), what)
    }
}

/// Files of one format.
#[derive(Debug)]
pub struct Files {
    parts: Vec<Part>,
    format: RowFormat,
    facts: Facts,
    /// Bytes of a row on average, by the first ones.
    row_bytes: u64,
    /// What is to be said of the files themselves.
    opened: Vec<String>,
    /// What was noticed of rows, by part and offset.
    noticed: RefCell<BTreeMap<(usize, u64), String>>,
}

impl Files {
    /// A file, or all files below a directory. `key` has names of columns or paths of fields.
    ///
    /// # Errors
    /// Nothing is there, or nothing in it; it is an archive; the format is not the named one; there is
    /// no such column.
    pub fn open(path: &Path, named: Option<Format>, key: &[String]) -> Result<Files> {
        let listed = list(path)?;
        let listed = if named.is_none() { listed.without_notes() } else { listed };
        let (parts, formats) = detect_all(&listed.files, named, key)?;
        let differing = (1..formats.len()).find_map(|at| differ(&parts, &formats, at));
        if let Some(what) = differing {
            if named.is_some() || !key.is_empty() {
                return Err(mixed(path, &what));
            }
            // Files of several formats are files, and no table.
            let mut files = Files::open(path, Some(Format::Bytes), key)?;
            files.opened.push(format!("Whether these are one table: {what}. They are bytes here"));
            return Ok(files);
        }
        let Some(detected) = formats.into_iter().next() else {
            let left_out = listed.left_out.map_or_else(String::new, |what| format!(". {what}"));
            return Err(AdviseError::data(format_args!("{} is empty{left_out}", path.display())));
        };
        let facts = Facts {
            format: detected.about,
            data_bytes: parts.iter().map(Part::data_bytes).sum(),
            files: parts.len() as u64,
            has_rows: detected.format.has_rows(),
            has_bytes: true,
            native: &[],
            key: key.join(", "),
        };
        let opened = listed.left_out.into_iter().collect();
        let (format, noticed) = (detected.format, RefCell::default());
        let mut files = Files { parts, format, facts, row_bytes: 1, opened, noticed };
        let first = files.place(0.0, WINDOW_BYTES as u64)?;
        if first.is_empty() {
            let notes = files.notes().into_iter().map(|note| format!(". {note}"));
            let notes: String = notes.collect();
            return Err(AdviseError::data(format_args!("{} has no row{notes}", path.display())));
        }
        files.row_bytes = (first.data_bytes() / first.len() as u64).max(1);
        Ok(files)
    }

    /// Keeps that something is odd with the row at an offset of a part.
    fn notice(&self, at: usize, offset: u64, what: impl FnOnce() -> String) {
        let mut noticed = self.noticed.borrow_mut();
        if noticed.len() < NOTES_MAX {
            noticed.entry((at, offset)).or_insert_with(what);
        }
    }

    /// Keeps that a row is so long, over so many lines, that a quote may be left open.
    fn notice_length(&self, at: usize, offset: u64, row: &[u8]) {
        if row.len() < LONG_ROW_BYTES || !matches!(self.format, RowFormat::Delimited(_)) {
            return;
        }
        let lines = row.iter().filter(|byte| **byte == b'\n').count();
        if lines > MANY_LINES {
            let size = bytes(row.len() as u64);
            self.notice(at, offset, || {
                format!("a row of {size} over {lines} lines. Is a quote left open?")
            });
        }
    }

    /// Rows of a part from an offset on; whether a row starts there is known or not.
    fn read_part(
        &self,
        at: usize,
        from: u64,
        mut is_start: bool,
        each: &mut dyn FnMut(Row<'_>, u64) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let part = &self.parts[at];
        let file = Part::open(&part.stamp.path)?;
        let (mut window, mut offset, mut consumed) = (Vec::new(), from, 0);
        let mut number = part.in_data(from) / self.row_bytes;
        let mut wanted = WINDOW_BYTES;
        loop {
            window.drain(..consumed);
            offset += consumed as u64;
            consumed = 0;
            let end = offset + window.len() as u64;
            let is_end = part.read(&file, &mut window, end, wanted)?;
            if !is_start {
                (consumed, is_start) = match self.format.first_start(&window, is_end) {
                    Start::At(at) => (at, true),
                    Start::NotBefore(at) => (at, false),
                };
            }
            loop {
                if !is_start {
                    break;
                }
                match self.format.parse(&window[consumed..], is_end) {
                    Found::Row(parsed) => {
                        let bytes = &window[consumed..consumed + parsed.end];
                        self.notice_length(at, offset + consumed as u64, bytes);
                        consumed += parsed.end;
                        let done = part.in_data(offset + consumed as u64);
                        // Line ends behind the last row are no rows.
                        let is_last = is_end && is_blank(&window[consumed..]);
                        let file_bytes = if is_last { part.data_bytes() } else { 0 };
                        let each = |row: Row<'_>| each(Row { file_bytes, ..row }, done);
                        if row(bytes, &parsed, &key::of_number(number), each) {
                            return Ok(ControlFlow::Break(()));
                        }
                        number += 1;
                    }
                    Found::Blank(0) | Found::More => break,
                    Found::Blank(length) => consumed += length,
                    Found::Cut(from) => {
                        let cut = || "the last row is cut, and left out".to_owned();
                        self.notice(at, offset + (consumed + from) as u64, cut);
                        consumed = window.len();
                    }
                    Found::Wrong(from, what) => {
                        return Err(part.wrong(offset + (consumed + from) as u64, what));
                    }
                }
            }
            if is_end {
                return Ok(ControlFlow::Continue(()));
            }
            wanted = if consumed == 0 { window.len() * 2 } else { WINDOW_BYTES };
            if window.len() - consumed > ROW_BYTES_MAX {
                let what = format!("a row of more than {} MiB{}", ROW_BYTES_MAX >> 20, self.hint());
                return Err(part.wrong(offset + consumed as u64, what));
            }
        }
    }

    /// What may make a row so long.
    fn hint(&self) -> &'static str {
        match self.format {
            RowFormat::Delimited(_) => "; is a quote left open?",
            _ => "",
        }
    }

    /// Rows of this part and of those behind it.
    fn read_from(
        &self,
        at: usize,
        from: u64,
        each: &mut dyn FnMut(Row<'_>, u64) -> ControlFlow<()>,
    ) -> Result<()> {
        let is_start = from <= self.parts[at].start;
        let mut flow = self.read_part(at, from.max(self.parts[at].start), is_start, each)?;
        for next in at + 1..self.parts.len() {
            if flow.is_break() {
                break;
            }
            flow = self.read_part(next, self.parts[next].start, true, each)?;
        }
        Ok(())
    }
}

/// Gives a row to `each`; true if that has had enough. Rows without a key have their number.
fn row(
    bytes: &[u8],
    parsed: &Parsed,
    number: &[u8],
    each: impl FnOnce(Row<'_>) -> ControlFlow<()>,
) -> bool {
    let (key, partition_bytes) = match parsed.key.as_slice() {
        [] => (number, number.len()),
        key => (key, parsed.partition_bytes),
    };
    let value = &bytes[parsed.text.clone()];
    let data_bytes = bytes.len() as u64;
    each(Row { key, partition_bytes, value, data_bytes, file_bytes: 0 }).is_break()
}

impl Source for Files {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn notes(&self) -> Vec<String> {
        let noticed = self.noticed.borrow();
        let note = |((at, offset), what): (&(usize, u64), &String)| {
            format!("{}: {what}", self.parts[*at].whereabouts(*offset))
        };
        self.opened.iter().cloned().chain(noticed.iter().map(note)).collect()
    }

    fn place(&mut self, share: f64, wanted_bytes: u64) -> Result<Rows> {
        let offset = (share.clamp(0.0, 1.0) * self.facts.data_bytes as f64) as u64;
        let at = self.parts.partition_point(|part| part.before <= offset).saturating_sub(1);
        let part = &self.parts[at];
        let from = match self.format {
            RowFormat::Bytes(size) => (offset - part.before) / size as u64 * size as u64,
            // What a file system compresses at once is a small file as a whole.
            _ if part.data_bytes() <= PIECE_BYTES as u64 => part.start,
            _ => part.start + (offset - part.before),
        };
        let mut rows = Rows::default();
        self.read_from(at, from, &mut |row, _| rows.push_up_to(row, wanted_bytes))?;
        Ok(rows)
    }

    fn scan(&mut self, each: &mut dyn FnMut(Row<'_>, u64) -> ControlFlow<()>) -> Result<()> {
        self.read_from(0, 0, each)
    }

    fn check_unchanged(&self) -> Result<()> {
        self.parts.iter().try_for_each(|part| part.stamp.check())
    }
}

/// Why what is neither a file nor a directory is refused: it would wait for a writer, or never end.
fn no_file(path: &Path, kind: FileType) -> AdviseError {
    let name = match kind {
        kind if kind.is_socket() => "a socket",
        kind if kind.is_char_device() || kind.is_block_device() => "a device",
        _ => "a pipe",
    };
    let what = format!("is no file: places of {name} cannot be read; write it to a file first");
    AdviseError::usage(format_args!("{} {what}", path.display()))
}

/// The files of a path.
#[derive(Default)]
pub(super) struct Listed {
    pub(super) files: Vec<PathBuf>,
    /// What else is there, in words.
    left_out: Option<String>,
}

/// Names of texts about the data beside them, without what follows a dot.
const NOTES: [&str; 7] =
    ["readme", "license", "licence", "copying", "notice", "changelog", "authors"];

/// Whether a file is about the data, and no part of them.
fn is_note(path: &Path) -> bool {
    let name = path.file_stem().map(|name| name.to_string_lossy().to_ascii_lowercase());
    name.is_some_and(|name| NOTES.contains(&name.as_str()))
}

impl Listed {
    /// Without texts about the data, if the others are one table.
    fn without_notes(mut self) -> Listed {
        let (notes, files): (Vec<PathBuf>, Vec<PathBuf>) =
            self.files.iter().cloned().partition(|path| is_note(path));
        if notes.is_empty() || !are_a_table(&files) {
            return self;
        }
        let told = format!("Left out, because they are about the data: {}", names_of(&notes));
        let told = [self.left_out.take(), Some(told)].into_iter().flatten();
        Listed { files, left_out: Some(told.collect::<Vec<_>>().join(". ")) }
    }
}

/// Whether files are rows of fields or objects, and all of them the same.
fn are_a_table(files: &[PathBuf]) -> bool {
    let Ok((parts, formats)) = detect_all(files, None, &[]) else { return false };
    let is_table = |one: &Detected| !matches!(one.format, RowFormat::Lines | RowFormat::Bytes(_));
    formats.first().is_some_and(is_table)
        && (1..formats.len()).all(|at| differ(&parts, &formats, at).is_none())
}

/// The first of some paths, and how many more there are.
fn names_of(paths: &[PathBuf]) -> String {
    let names: Vec<String> =
        paths.iter().take(NAMES_MAX).map(|path| path.display().to_string()).collect();
    let more = match paths.len().saturating_sub(NAMES_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", names.join(", "))
}

/// The file itself, or the files below the directory in the order of their names. What begins with a
/// dot or a line is left out: writers of tables leave notes of that kind. Links to files are those
/// files, once; links to directories are left out, because they may lead in a circle.
pub(super) fn list(path: &Path) -> Result<Listed> {
    let metadata = std::fs::metadata(path).map_err(|error| AdviseError::of_file(path, &error))?;
    if !metadata.is_dir() {
        return match metadata.is_file() {
            true => Ok(Listed { files: vec![path.to_owned()], left_out: None }),
            false => Err(no_file(path, metadata.file_type())),
        };
    }
    let (mut found, mut others) = (Vec::new(), Vec::new());
    walk(path, &mut found, &mut others)?;
    let plain = found.iter().filter(|one| !one.is_link).map(|one| one.identity);
    let mut known: BTreeSet<(u64, u64)> = plain.collect();
    found.retain(|one| !one.is_link || known.insert(one.identity));
    let left_out = (!others.is_empty())
        .then(|| format!("Left out, because they are no files: {}", names_of(&others)));
    Ok(Listed { files: found.into_iter().map(|one| one.path).collect(), left_out })
}

/// A file below a directory.
struct Entry {
    path: PathBuf,
    is_link: bool,
    /// Device and number, by which two names of one file are found out.
    identity: (u64, u64),
}

/// All files below a directory, and what is neither a file nor a directory.
fn walk(path: &Path, found: &mut Vec<Entry>, others: &mut Vec<PathBuf>) -> Result<()> {
    let of = |error: io::Error| AdviseError::of_file(path, &error);
    let entries = std::fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut entries = entries.map_err(of)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    let is_hidden = |name: &OsStr| {
        name.as_encoded_bytes().starts_with(b".") || name.as_encoded_bytes().starts_with(b"_")
    };
    for entry in entries.into_iter().filter(|entry| !is_hidden(&entry.file_name())) {
        let (kind, path) = (entry.file_type().map_err(of)?, entry.path());
        if kind.is_dir() {
            walk(&path, found, others)?;
            continue;
        }
        match std::fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => {
                let identity = (metadata.dev(), metadata.ino());
                found.push(Entry { path, is_link: kind.is_symlink(), identity });
            }
            // Links to directories and to nothing, pipes.
            Ok(_) => others.push(path),
            Err(_) if kind.is_symlink() => others.push(path),
            Err(error) => return Err(AdviseError::of_file(&path, &error)),
        }
    }
    Ok(())
}

/// The format of each file that is not empty.
fn detect_all(
    paths: &[PathBuf],
    named: Option<Format>,
    key: &[String],
) -> Result<(Vec<Part>, Vec<Detected>)> {
    let (mut parts, mut formats): (Vec<Part>, Vec<Detected>) = (Vec::new(), Vec::new());
    let mut before = 0;
    for path in paths {
        let part = Part { stamp: Stamp::of(path)?, start: 0, before };
        let mut head = Vec::new();
        let is_whole = part.read(&Part::open(path)?, &mut head, 0, HEAD_BYTES)?;
        if head.is_empty() {
            continue;
        }
        let detected = detect(path, &head, is_whole, named, key);
        if detected.is_err() && !key.is_empty() && !formats.is_empty() {
            // The key may be one of the other files alone.
            if let Ok(without_key) = detect(path, &head, is_whole, named, &[]) {
                parts.push(part);
                formats.push(without_key);
                if let Some(what) = differ(&parts, &formats, parts.len() - 1) {
                    return Err(mixed(path.parent().unwrap_or(path), &what));
                }
                return detected.map(|_| (parts, formats));
            }
        }
        let detected = detected?;
        let part = Part { start: detected.start as u64, ..part };
        before += part.data_bytes();
        parts.push(part);
        formats.push(detected);
    }
    Ok((parts, formats))
}

/// How a file differs from the first one; nothing if it does not.
fn differ(parts: &[Part], formats: &[Detected], at: usize) -> Option<String> {
    let [first, other] = [0, at].map(|at| parts[at].stamp.path.display());
    let [a, b] = [&formats[0], &formats[at]];
    if a.about != b.about {
        return Some(format!("{first} is {}, and {other} is {}", a.about, b.about));
    }
    let [names, others] = [a, b].map(|one| one.header.join(", "));
    (a.header != b.header)
        .then(|| format!("{first} has the columns {names}, and {other} has {others}"))
}

fn mixed(path: &Path, what: &str) -> AdviseError {
    AdviseError::data(format_args!("{}: the files have not one format: {what}", path.display()))
}
