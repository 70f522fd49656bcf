//! What the tools on whole databases share: progress on standard error, Ctrl-C, a JSON file.

use std::cell::RefCell;
use std::fs;
use std::io::{IsTerminal, stderr};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use lithify_lab::run::cell::ProgressLine;
use lithify_lab::run::progress::{Announcer, Terminal};

use super::bench::process::watch_signals;
use crate::fault::Fault;

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
        let seconds = self.started.elapsed().as_secs_f64().max(0.001);
        let megabytes = |bytes: u64| bytes.div_ceil(1_000_000);
        self.terminal.borrow_mut().progress(&ProgressLine {
            stage: self.stage.to_owned(),
            done: megabytes(done_bytes),
            total: megabytes(total_bytes),
            unit: "MB".to_owned(),
            rate: (done_bytes as f64 / seconds / 1e6) as u64,
        });
        match self.interrupt.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Writes the machine-readable result.
pub fn write_json(path: &Path, json: &str) -> Result<(), Fault> {
    fs::write(path, format!("{json}\n"))
        .map_err(|error| Fault::failure(format!("{}: {error}", path.display())))
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
