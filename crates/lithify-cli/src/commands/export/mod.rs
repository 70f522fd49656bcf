//! `lithify export`: writes rows into a file that `lithify import` and other programs read.

#[cfg(feature = "advisor-formats")]
mod parquet;

use std::fs::{File, remove_file, rename};
use std::io::{self, BufWriter, Write, stdout};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use lithify::ColumnFamily;
use lithify::inspect::size;

use super::database::{RangeArguments, find_family, open_to_read};
use super::rows::{RowFormat, RowPrinter, written};
use super::tool::Watch;
use crate::fault::{Fault, print, say};

/// `export`
#[derive(Debug, Args)]
#[command(
    long_about = "\
Write the rows of a column family into a file, in the order of their keys.

`lithify import` makes the identical rows of it, whatever bytes they hold. JSON lines have an object for
each row, with the fields key and value; bytes that are no UTF-8 are hexadecimal digits in key_hex or
value_hex instead. CSV has the columns key and value, and the bytes as they are, in quotes where needed.
Parquet has the columns key and value, both binary, in row groups of at most 32 MiB of rows.

A file appears as a whole, in place of one of that name. Without --output, and with -, rows go to standard
output; with - their number goes to standard error.
Works beside a process that writes: the rows are those on disk when the command began.

Without --family it is the column family `default`. If there is none of that name and only one
other, it is that one, and a line on standard error says so.",
    after_help = "\
Examples:
  lithify export rocks.db -o rocks.jsonl
  lithify export rocks.db -o links.csv --family links --prefix link/
  lithify export rocks.db -o rocks.parquet
  lithify export rocks.db --format csv | gzip > rocks.csv.gz
  lithify export rocks.db -o - --format csv | lithify import other.db - --format csv

Exit codes:
  0    done
  1    something failed: there is no new file
  2    used wrongly: no database, no such column family, a bad escape
  130  stopped by Ctrl-C or SIGTERM: there is no new file"
)]
pub struct ExportArguments {
    /// The directory of the database
    directory: PathBuf,
    /// The file, or - for standard output; standard output without it
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The form of the rows; without it what the name of the file says, else jsonl
    #[arg(long, value_enum)]
    format: Option<FileFormat>,
    /// The column family
    #[arg(long, value_name = "NAME")]
    family: Option<String>,
    #[command(flatten)]
    range: RangeArguments,
}

/// Forms of files of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FileFormat {
    /// A header, then a row a line
    Csv,
    /// A JSON object a line
    Jsonl,
    /// Columns of bytes
    Parquet,
}

impl FileFormat {
    /// What the name of a file says.
    pub fn of_name(path: &Path) -> Option<FileFormat> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "csv" => Some(FileFormat::Csv),
            "jsonl" | "ndjson" | "json" => Some(FileFormat::Jsonl),
            "parquet" => Some(FileFormat::Parquet),
            _ => None,
        }
    }
}

/// Whether a name promises a file that this command does not write.
fn is_arrow(path: &Path) -> bool {
    let end = path.extension().and_then(|end| end.to_str());
    end.is_some_and(|end| matches!(end, "arrow" | "feather"))
}

/// Writes them.
pub fn run(arguments: &ExportArguments) -> Result<(), Fault> {
    let range = arguments.range.range()?;
    if let Some(path) = arguments.output.as_deref().filter(|path| is_arrow(path))
        && arguments.format.is_none()
    {
        let what = "Arrow files are not written; name a .parquet, .csv or .jsonl file";
        return Err(Fault::usage(format!("{what}: {}", path.display())));
    }
    let by_name = arguments.output.as_deref().and_then(FileFormat::of_name);
    let format = arguments.format.or(by_name).unwrap_or(FileFormat::Jsonl);
    if format == FileFormat::Parquet && cfg!(not(feature = "advisor-formats")) {
        let what =
            "this program was built without Parquet: build it with --features advisor-formats";
        return Err(Fault::usage(what));
    }
    let db = open_to_read(&arguments.directory)?;
    let family = find_family(&db, arguments.family.as_deref())?;
    let is_dash = arguments.output.as_deref() == Some(Path::new("-"));
    let Some(path) = arguments.output.as_ref().filter(|_| !is_dash) else {
        let output = BufWriter::new(stdout());
        return match write_rows(output, format, family, range, &mut |_| ControlFlow::Continue(())) {
            Err(Stop::Write(error)) => written(Err(error)),
            Err(Stop::Fault(fault)) => Err(fault),
            Ok((rows, bytes)) => {
                if is_dash {
                    say(&format!("{rows} rows, {} written to standard output", size(bytes)));
                }
                Ok(())
            }
        };
    };
    let watch = Watch::begin("export")?;
    let partial = PartialFile::create(path)?;
    let output = BufWriter::new(&partial.file);
    let rows = write_rows(output, format, family, range, &mut |bytes| watch.hear(bytes, 0));
    drop(watch);
    let wrong = |error| Fault::failure(format!("cannot write: {error}: {}", path.display()));
    let (rows, bytes) = match rows {
        Err(Stop::Write(error)) => return Err(wrong(error)),
        Err(Stop::Fault(fault)) => return Err(fault),
        Ok(done) => done,
    };
    partial.finish(path).map_err(wrong)?;
    print(&format!("{rows} rows, {} written: {}\n", size(bytes), path.display()))
}

/// Why an export ends early.
enum Stop {
    Write(io::Error),
    Fault(Fault),
}

/// Counts what goes through it.
struct Counted<W> {
    output: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.output.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

/// What makes a file of rows.
trait RowWriter {
    /// Takes a row.
    fn row(&mut self, key: &[u8], value: &[u8]) -> io::Result<()>;

    /// Bytes that are written so far.
    fn bytes(&self) -> u64;

    /// Writes what stands behind the last row.
    fn end(&mut self) -> io::Result<()>;
}

impl<W: Write> RowWriter for RowPrinter<Counted<W>> {
    fn row(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        RowPrinter::row(self, key, value)
    }

    fn bytes(&self) -> u64 {
        self.output().bytes
    }

    fn end(&mut self) -> io::Result<()> {
        RowPrinter::end(self)
    }
}

/// Begins a file of rows.
fn begin<'a>(
    output: impl Write + Send + 'a,
    format: FileFormat,
) -> io::Result<Box<dyn RowWriter + 'a>> {
    let output = Counted { output, bytes: 0 };
    let format = match format {
        FileFormat::Csv => RowFormat::Csv,
        FileFormat::Jsonl => RowFormat::Json,
        #[cfg(feature = "advisor-formats")]
        FileFormat::Parquet => return Ok(Box::new(parquet::ParquetRows::begin(output)?)),
        #[cfg(not(feature = "advisor-formats"))]
        FileFormat::Parquet => return Err(io::ErrorKind::Unsupported.into()),
    };
    let mut printer = RowPrinter::new(output, format, false, None);
    printer.begin()?;
    Ok(Box::new(printer))
}

/// Rows, and bytes of them, that were written.
fn write_rows(
    output: impl Write + Send,
    format: FileFormat,
    family: Option<ColumnFamily>,
    range: lithify::ScanRange,
    hear: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<(u64, u64), Stop> {
    let mut count = 0;
    let mut writer = begin(output, format).map_err(Stop::Write)?;
    if let Some(family) = family {
        let of_engine = |error| Stop::Fault(Fault::of_engine(error));
        let mut rows = family.cursor(range).map_err(of_engine)?;
        while rows.next().map_err(of_engine)? {
            writer.row(rows.key(), rows.value()).map_err(Stop::Write)?;
            count += 1;
            if count % 1024 == 0 && hear(writer.bytes()).is_break() {
                let what = "stopped; there is no new file".to_owned();
                return Err(Stop::Fault(Fault::interrupted(what)));
            }
        }
    }
    writer.end().map_err(Stop::Write)?;
    Ok((count, writer.bytes()))
}

/// A file under another name, until it is whole.
struct PartialFile {
    file: File,
    path: PathBuf,
    is_whole: bool,
}

impl PartialFile {
    fn create(target: &Path) -> Result<PartialFile, Fault> {
        let mut name = target.as_os_str().to_owned();
        name.push(".partial");
        let path = PathBuf::from(name);
        if target.is_dir() {
            return Err(Fault::usage(format!("this is a directory: {}", target.display())));
        }
        match File::create(&path) {
            Ok(file) => Ok(PartialFile { file, path, is_whole: false }),
            Err(error) => {
                Err(Fault::usage(format!("cannot be made: {error}: {}", target.display())))
            }
        }
    }

    fn finish(mut self, target: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        rename(&self.path, target)?;
        self.is_whole = true;
        Ok(())
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.is_whole {
            // That it may stay changes nothing else.
            let _ = remove_file(&self.path);
        }
    }
}
