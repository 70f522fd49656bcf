//! Files with rows, one behind the other, read where they are needed and nowhere else.

use std::ffi::OsStr;
use std::fs::{File, FileType};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};

use super::detect::{Detected, Format, HEAD_BYTES, detect};
use super::format::{Found, Parsed, RowFormat};
use super::stamp::Stamp;
use super::{Facts, Source, key};
use crate::error::{AdviseError, Result};
use crate::rows::{Row, Rows};

/// What is read at once.
const WINDOW_BYTES: usize = 256 << 10;
/// A row that is longer is taken for a sign that the format is not what it seems.
const ROW_BYTES_MAX: usize = 64 << 20;

/// One file.
#[derive(Debug)]
struct Part {
    stamp: Stamp,
    /// Where its rows begin.
    start: u64,
    /// Where it begins in the data.
    before: u64,
}

impl Part {
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
}

impl Files {
    /// A file, or all files below a directory. `key` has names of columns or paths of fields.
    ///
    /// # Errors
    /// Nothing is there, or nothing in it; it is an archive; the format is not the named one; there is
    /// no such column.
    pub fn open(path: &Path, named: Option<Format>, key: &[String]) -> Result<Files> {
        let (mut parts, mut formats): (Vec<Part>, Vec<Detected>) = (Vec::new(), Vec::new());
        let mut before = 0;
        let paths = paths_of(path)?;
        for path in &paths {
            let part = Part { stamp: Stamp::of(path)?, start: 0, before };
            let mut head = Vec::new();
            let is_whole = part.read(&Part::open(path)?, &mut head, 0, HEAD_BYTES)?;
            if head.is_empty() {
                continue;
            }
            let detected = detect(path, &head, is_whole, named, key)?;
            before += part.stamp.size;
            parts.push(Part { start: detected.start as u64, ..part });
            formats.push(detected);
        }
        let is_one = formats
            .windows(2)
            .all(|pair| pair[0].about == pair[1].about && pair[0].header == pair[1].header);
        if !is_one && named.is_none() && key.is_empty() {
            // Files of several formats are files, and no table.
            return Files::open(path, Some(Format::Bytes), key);
        }
        if !is_one {
            let what = format!("{}: the files have not one format", path.display());
            return Err(AdviseError::data(what));
        }
        let Some(detected) = formats.into_iter().next() else {
            return Err(AdviseError::data(format_args!("{} is empty", path.display())));
        };
        let facts = Facts {
            format: detected.about,
            data_bytes: before,
            files: parts.len() as u64,
            has_rows: detected.format.has_rows(),
            has_bytes: true,
            native: &[],
            key: key.join(", "),
        };
        let mut files = Files { parts, format: detected.format, facts, row_bytes: 1 };
        let first = files.place(0.0, WINDOW_BYTES as u64)?;
        if first.is_empty() {
            return Err(AdviseError::data(format_args!("{} has no row", path.display())));
        }
        files.row_bytes = (first.data_bytes() / first.len() as u64).max(1);
        Ok(files)
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
        let mut number = (part.before + from) / self.row_bytes;
        let mut wanted = WINDOW_BYTES;
        loop {
            window.drain(..consumed);
            offset += consumed as u64;
            consumed = 0;
            let end = offset + window.len() as u64;
            let is_end = part.read(&file, &mut window, end, wanted)?;
            if !is_start {
                consumed = self.format.first_start(&window, is_end);
                is_start = consumed < window.len();
            }
            loop {
                if !is_start {
                    break;
                }
                match self.format.parse(&window[consumed..], is_end) {
                    Found::Row(parsed) => {
                        let bytes = &window[consumed..consumed + parsed.end];
                        consumed += parsed.end;
                        let done = part.before + offset + consumed as u64;
                        if row(bytes, &parsed, &key::of_number(number), |row| each(row, done)) {
                            return Ok(ControlFlow::Break(()));
                        }
                        number += 1;
                    }
                    Found::Blank(0) | Found::More => break,
                    Found::Blank(length) => consumed += length,
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
                let what = format!("a row of more than {} MiB", ROW_BYTES_MAX >> 20);
                return Err(part.wrong(offset + consumed as u64, what));
            }
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
    each(Row { key, partition_bytes, value, data_bytes: bytes.len() as u64 }).is_break()
}

impl Source for Files {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn place(&mut self, share: f64, wanted_bytes: u64) -> Result<Rows> {
        let offset = (share.clamp(0.0, 1.0) * self.facts.data_bytes as f64) as u64;
        let at = self.parts.partition_point(|part| part.before <= offset).saturating_sub(1);
        let from = match self.format {
            RowFormat::Bytes(size) => (offset - self.parts[at].before) / size as u64 * size as u64,
            _ => offset - self.parts[at].before,
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

/// The file itself, or the files below the directory in the order of their names. Links and other
/// things are left out, and what begins with a dot or a line: writers of tables leave notes of that kind.
pub(super) fn paths_of(path: &Path) -> Result<Vec<PathBuf>> {
    let of = |error: io::Error| AdviseError::of_file(path, &error);
    let metadata = std::fs::metadata(path).map_err(of)?;
    if !metadata.is_dir() {
        return match metadata.is_file() {
            true => Ok(vec![path.to_owned()]),
            false => Err(no_file(path, metadata.file_type())),
        };
    }
    let entries = std::fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut entries = entries.map_err(of)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    let mut paths = Vec::new();
    let is_note = |name: &OsStr| {
        name.as_encoded_bytes().starts_with(b".") || name.as_encoded_bytes().starts_with(b"_")
    };
    for entry in entries.into_iter().filter(|entry| !is_note(&entry.file_name())) {
        let kind = entry.file_type().map_err(of)?;
        if kind.is_dir() {
            paths.extend(paths_of(&entry.path())?);
        } else if kind.is_file() {
            paths.push(entry.path());
        }
    }
    Ok(paths)
}
