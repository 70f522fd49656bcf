//! What is shown while a check runs: a bar with rate and remaining time on a terminal, plain
//! lines elsewhere.

use crate::summary::grouped;
use indicatif::{ProgressBar, ProgressStyle};
use lithify_sim::runner::Progress;
use std::io::{IsTerminal, Write, stderr, stdout};
use std::time::Duration;

/// Time between two plain lines.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);

/// Prints a line to standard error. Where nobody reads it, the exit code says enough.
pub fn say(line: &str) {
    let _ = writeln!(stderr(), "{line}");
}

/// Prints to standard output. A reader that has seen enough is no error.
pub fn print(text: &str) {
    let mut output = stdout().lock();
    let _ = output.write_all(text.as_bytes()).and_then(|()| output.flush());
}

/// Shows how far a check is.
pub struct Display {
    name: &'static str,
    bar: Option<ProgressBar>,
    next_line: Duration,
}

impl Display {
    /// A bar if standard error is a terminal.
    pub fn new(name: &'static str) -> Display {
        let bar = stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(0);
            let style = ProgressStyle::with_template("{prefix} {wide_bar} {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_prefix(name);
            bar
        });
        Display { name, bar, next_line: PLAIN_INTERVAL }
    }

    /// The check goes on.
    pub fn show(&mut self, progress: &Progress) {
        match &self.bar {
            Some(bar) => {
                bar.set_length(progress.total);
                bar.set_position(progress.done.min(progress.total));
                bar.set_message(describe(progress));
            }
            None if progress.elapsed >= self.next_line => {
                self.next_line = progress.elapsed + PLAIN_INTERVAL;
                say(&format!("{}: {}", self.name, describe(progress)));
            }
            None => {}
        }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// `120,000 of 500,000 operations, 61,000/s, 6 s left`, and what was found.
fn describe(progress: &Progress) -> String {
    let Progress { done, total, unit, .. } = *progress;
    let mut text = format!("{} of {} {unit}", grouped(done), grouped(total));
    let seconds = progress.elapsed.as_secs_f64();
    let rest = total.saturating_sub(done) as f64;
    let left = match unit {
        "seconds" => Some(rest),
        _ if done > 0 && seconds > 0.0 => {
            let rate = done as f64 / seconds;
            text.push_str(&format!(", {}/s", grouped(rate as u64)));
            Some(rest / rate)
        }
        _ => None,
    };
    if let Some(left) = left {
        text.push_str(&format!(", {} left", duration(left)));
    }
    if progress.findings > 0 {
        text.push_str(&format!(", {} found", progress.findings));
    }
    text
}

/// A duration for people: `50 s`, `3 min`, `2.5 h`.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 100.0 => format!("{s:.0} s"),
        s if s < 6_000.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3_600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_in_words() {
        let progress = Progress {
            done: 120_000,
            total: 500_000,
            unit: "operations",
            elapsed: Duration::from_secs(2),
            findings: 0,
            oldest: None,
        };
        assert_eq!(describe(&progress), "120,000 of 500,000 operations, 60,000/s, 6 s left");
        let progress = Progress { done: 5, total: 10, unit: "seconds", findings: 2, ..progress };
        assert_eq!(describe(&progress), "5 of 10 seconds, 5 s left, 2 found");
        let progress = Progress { done: 0, total: 7, unit: "cases", findings: 0, ..progress };
        assert_eq!(describe(&progress), "0 of 7 cases");
        assert_eq!((duration(7200.0), duration(120.0)), ("2.0 h".into(), "2 min".into()));
    }
}
