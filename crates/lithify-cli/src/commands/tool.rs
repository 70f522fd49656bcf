//! What the tools on whole databases share: progress on standard error, Ctrl-C, files for results.

use std::cell::RefCell;
use std::fs::File;
use std::io::{IsTerminal, Write, stderr};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use lithify::inspect::wrapped;
use lithify_lab::run::progress::ProgressLine;
use lithify_lab::run::progress::{Announcer, Terminal};

use super::bench::process::watch_signals;
use crate::fault::Fault;

/// Before so many seconds no rate is known, and amounts say nothing without one.
const RATE_SECONDS: f64 = 0.5;

/// Shows how far a tool is, as a bar on a terminal and as plain lines elsewhere, and ends it at
/// Ctrl-C.
pub struct Watch {
    terminal: RefCell<Terminal>,
    stage: &'static str,
    started: Instant,
    interrupt: Arc<AtomicBool>,
}

impl Watch {
    /// Watches from now on.
    pub fn begin(stage: &'static str) -> Result<Watch, Fault> {
        let interrupt = watch_signals()?;
        let terminal = RefCell::new(Terminal::new(stderr().is_terminal()));
        Ok(Watch { terminal, stage, started: Instant::now(), interrupt })
    }

    /// Takes note of progress: bytes done, and bytes in all as far as is known.
    pub fn hear(&self, done_bytes: u64, total_bytes: u64) -> ControlFlow<()> {
        let seconds = self.started.elapsed().as_secs_f64();
        let line = progress_line(self.stage, [done_bytes, total_bytes], seconds);
        self.terminal.borrow_mut().progress(&line);
        match self.is_interrupted() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// Whether the user wants it to end.
    pub fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }
}

/// So many bytes of a stage after so many seconds, in MB, or in kB where a second has less than 1 MB.
/// At first only that it has begun.
fn progress_line(stage: &str, bytes: [u64; 2], seconds: f64) -> ProgressLine {
    if seconds < RATE_SECONDS {
        return ProgressLine::of_stage(stage);
    }
    let rate = bytes[0] as f64 / seconds;
    let (unit, name) = if rate < 1e6 { (1_000, "kB") } else { (1_000_000, "MB") };
    let amount = bytes.map(|bytes| bytes.div_ceil(unit));
    ProgressLine::of_progress(stage, amount, name, (rate / unit as f64) as u64)
}

/// The file for a result: `--json FILE`, `--html FILE`.
pub struct ResultFile {
    path: PathBuf,
    file: File,
    /// It was made for this result: it goes when there is none.
    is_made: bool,
}

impl ResultFile {
    /// Opens the file before the work, that hours of it are not lost for a wrong path; what is in it
    /// stays until there is a result.
    pub fn open(path: Option<&Path>) -> Result<Option<ResultFile>, Fault> {
        let Some(path) = path else { return Ok(None) };
        let is_made = !path.exists();
        let file = File::options().write(true).create(true).truncate(false).open(path);
        match file {
            Ok(file) => Ok(Some(ResultFile { path: path.to_owned(), file, is_made })),
            Err(error) => Err(Fault::usage(format!("{}: {error}", path.display()))),
        }
    }

    /// Writes the result in place of what was there.
    pub fn write(mut self, result: &str) -> Result<(), Fault> {
        self.is_made = false;
        let text = format!("{result}\n");
        let written = self.file.set_len(0).and_then(|()| self.file.write_all(text.as_bytes()));
        written.map_err(|error| Fault::failure(format!("{}: {error}", self.path.display())))
    }
}

impl Drop for ResultFile {
    fn drop(&mut self) {
        if self.is_made {
            // An empty file is no result; that it may stay changes nothing else.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Columns in front of what continues a line.
pub const INDENT: usize = 2;

/// Lines as lines of at most so many columns. What continues one stands deeper than it begins; no word is
/// broken.
pub fn fitted(text: &str, columns: usize) -> String {
    let line = |line: &str| {
        let words = line.trim_start_matches(' ');
        let (first, _) = line.split_at(line.len() - words.len());
        wrapped(first, words.split(' '), first.len() + INDENT, columns) + "\n"
    };
    text.lines().map(line).collect()
}

/// Findings on the screen: all of them, or the first ones and how many more there are.
pub fn listed<T: ToString>(findings: &[T]) -> String {
    const SHOWN_MAX: usize = 100;
    let mut text = String::new();
    for finding in findings.iter().take(SHOWN_MAX) {
        text.push_str(&finding.to_string());
        text.push('\n');
    }
    if findings.len() > SHOWN_MAX {
        let rest = findings.len() - SHOWN_MAX;
        text.push_str(&format!("and {rest} more: --json FILE has all of them\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_continues_below_itself() {
        let text = "sound as far as read\n  7.sst: a checksum\n";
        assert_eq!(fitted(text, 40), text);
        let narrow = "sound as\n  far as\n  read\n  7.sst: a\n    checksum\n";
        assert_eq!(fitted(text, 10), narrow);
    }

    #[test]
    fn a_slow_tool_has_a_rate_too() {
        assert_eq!(
            progress_line("import", [1, 10_000_000], 0.001),
            ProgressLine::of_stage("import")
        );
        let line = progress_line("import", [1_500_000, 10_000_000], 3.0);
        assert_eq!((line.done, line.total), (1_500, 10_000));
        assert_eq!((line.unit.as_str(), line.rate), ("kB", 500));
        let line = progress_line("export", [226_000_000, 0], 2.0);
        assert_eq!((line.done, line.unit.as_str(), line.rate), (226, "MB", 113));
    }
}
