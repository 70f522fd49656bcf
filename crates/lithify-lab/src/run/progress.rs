//! Progress with rate and remaining time: a bar on a terminal, plain lines elsewhere.

use std::io::Write;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};

/// One line that the process of a cell prints on its way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgressLine {
    /// What is going on: `load`, `warm-up`, `query`, `check`, ...
    pub stage: String,
    /// How much is done.
    pub done: u64,
    /// How much there is to do, in the same unit; 0 when not known.
    pub total: u64,
    /// The unit: `links`, `seconds`, `rows`.
    pub unit: String,
    /// Operations per second over the last second.
    pub rate: u64,
}

impl ProgressLine {
    /// A stage that does not count what it does.
    pub fn of_stage(stage: &str) -> ProgressLine {
        ProgressLine { stage: stage.to_owned(), done: 0, total: 0, unit: String::new(), rate: 0 }
    }

    /// So much of a stage.
    pub fn of_progress(
        stage: &str,
        [done, total]: [u64; 2],
        unit: &str,
        rate: u64,
    ) -> ProgressLine {
        ProgressLine { stage: stage.to_owned(), done, total, unit: unit.to_owned(), rate }
    }
}

/// Hears the lines of progress. Called from several threads.
pub type Listener<'a> = &'a (dyn Fn(&ProgressLine) + Sync);

/// Hears what a run does.
pub trait Announcer {
    /// Something worth a line of its own.
    fn say(&mut self, text: &str);
    /// A cell begins.
    fn begin(&mut self, text: &str);
    /// The cell goes on.
    fn progress(&mut self, line: &ProgressLine);
    /// The cell has ended.
    fn end(&mut self, text: &str);
    /// The cell `id` counts as done: measured in so many seconds, or without them measured before.
    fn done(&mut self, _id: &str, _seconds: Option<f64>) {}
}

/// Time between two plain lines of one stage.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);

/// A line on standard error. A run goes on when nobody reads it any more.
fn print_line(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Announces on standard error.
pub struct Terminal {
    bar: Option<ProgressBar>,
    cell: String,
    stage: String,
    last_line: Option<Instant>,
    whole: Option<Whole>,
}

/// How far all runs together are.
struct Whole {
    words: String,
    share: f64,
}

/// Places of a bar over all runs.
const WHOLE: u64 = 1_000;

impl Terminal {
    /// A bar when `interactive`, plain lines otherwise.
    pub fn new(interactive: bool) -> Terminal {
        let bar = interactive.then(|| {
            // Of a length that is not known nothing is done; of the length 0 all of it.
            let bar = ProgressBar::no_length();
            let style = ProgressStyle::with_template("{prefix} {wide_bar} {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Terminal { bar, cell: String::new(), stage: String::new(), last_line: None, whole: None }
    }

    /// From now on the bar is over all runs: so much of them is done, in words and as a share of 1.
    pub fn set_whole(&mut self, words: String, share: f64) {
        self.whole = Some(Whole { words, share });
    }

    fn print(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => print_line(text),
        }
    }
}

impl Announcer for Terminal {
    fn say(&mut self, text: &str) {
        self.print(text);
    }

    fn begin(&mut self, text: &str) {
        match &self.whole {
            Some(whole) => self.print(&format!("[{}] {text}", whole.words)),
            None => self.print(text),
        }
        self.cell = text.split(',').next().unwrap_or_default().to_owned();
        self.stage.clear();
        self.last_line = None;
    }

    fn progress(&mut self, line: &ProgressLine) {
        if let Some(bar) = &self.bar {
            let stage = format!("{} {}", self.cell, line.stage);
            match &self.whole {
                Some(Whole { words, share }) => {
                    bar.set_prefix(words.clone());
                    bar.set_length(WHOLE);
                    bar.set_position((share.clamp(0.0, 1.0) * WHOLE as f64) as u64);
                    bar.set_message(format!("{stage}{}", describe(line)));
                }
                None => {
                    bar.set_prefix(stage);
                    match line.total {
                        0 => bar.unset_length(),
                        total => bar.set_length(total),
                    }
                    bar.set_position(line.done);
                    bar.set_message(describe(line).trim_start_matches(": ").to_owned());
                }
            }
            return;
        }
        let due = self.last_line.is_none_or(|last| last.elapsed() >= PLAIN_INTERVAL);
        if line.stage != self.stage || due {
            print_line(&format!("  {}{}", line.stage, describe(line)));
            self.stage.clone_from(&line.stage);
            self.last_line = Some(Instant::now());
        }
    }

    fn end(&mut self, text: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message("");
        }
        self.print(&format!("  {text}"));
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// `: 1200000 of 4300000 links, 61543 links/s, 50 s left`; nothing for a stage that is not counted.
/// A stage that is counted in seconds has operations beside them.
fn describe(line: &ProgressLine) -> String {
    if line.unit.is_empty() {
        return String::new();
    }
    let mut text = match line.total {
        0 => format!(": {} {}", line.done, line.unit),
        total => format!(": {} of {total} {}", line.done, line.unit),
    };
    if line.rate > 0 {
        let of = if line.unit == "seconds" { "operations" } else { &line.unit };
        text.push_str(&format!(", {} {of}/s", line.rate));
    }
    let rest = line.total.saturating_sub(line.done);
    let seconds = match line.unit.as_str() {
        "seconds" => Some(rest as f64),
        _ if line.rate > 0 && line.total > 0 => Some(rest as f64 / line.rate as f64),
        _ => None,
    };
    if let Some(seconds) = seconds.filter(|seconds| *seconds >= 1.0) {
        text.push_str(&format!(", {} left", duration(seconds)));
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
        let line = |stage: &str, done, total, unit: &str, rate| ProgressLine {
            stage: stage.into(),
            done,
            total,
            unit: unit.into(),
            rate,
        };
        assert_eq!(
            describe(&line("load", 1_200_000, 4_300_000, "links", 62_000)),
            ": 1200000 of 4300000 links, 62000 links/s, 50 s left"
        );
        assert_eq!(
            describe(&line("query", 5, 120, "seconds", 39_366)),
            ": 5 of 120 seconds, 39366 operations/s, 2 min left"
        );
        assert_eq!(describe(&line("export", 1, 0, "MB", 113)), ": 1 MB, 113 MB/s");
        assert_eq!(describe(&line("check", 7, 0, "rows", 0)), ": 7 rows");
        assert_eq!(describe(&line("settle", 0, 0, "", 0)), "");
        assert_eq!(duration(7_200.0), "2.0 h");
    }
}
