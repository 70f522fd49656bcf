//! The recorded counts: the file, and the comparison.
//!
//! ```text
//! environment rustc ...; valgrind ...; x86_64+avx2
//! STAGE INSTRUCTIONS-PER-OPERATION REASON ...
//! ```

use std::fmt;
use std::path::Path;

/// More than this much more fails.
const MORE_MAX: f64 = 0.03;

const HEAD: &str = "\
# Instructions per operation of each stage, as `cargo run -p xtask -- counts` compares them.
# Only `counts --accept STAGE \"reason\"` writes this file.
";

/// A recorded stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub stage: String,
    pub count: f64,
    pub reason: String,
}

/// The file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Baseline {
    pub environment: String,
    pub lines: Vec<Line>,
}

/// What a comparison came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Passes,
    Fails,
}

impl Baseline {
    /// Reads the file; a file that is not there is empty.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(format!("{}: {error}", path.display())),
        };
        Baseline::parse(&text).map_err(|error| format!("{}:{error}", path.display()))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut baseline = Baseline::default();
        for (index, line) in text.lines().enumerate() {
            if line.starts_with('#') || line.is_empty() {
                continue;
            }
            if let Some(environment) = line.strip_prefix("environment ") {
                baseline.environment = environment.to_owned();
                continue;
            }
            let mut words = line.splitn(3, ' ');
            let parsed = (words.next(), words.next().map(str::parse::<f64>), words.next());
            let (Some(stage), Some(Ok(count)), Some(reason)) = parsed else {
                return Err(format!("{}: not STAGE COUNT REASON: {line}", index + 1));
            };
            baseline.set(stage, count, reason);
        }
        Ok(baseline)
    }

    /// Records a stage.
    pub fn set(&mut self, stage: &str, count: f64, reason: &str) {
        // One line each, whatever the reason is.
        let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
        let new = Line { stage: stage.to_owned(), count, reason };
        match self.lines.iter_mut().find(|line| line.stage == stage) {
            Some(line) => *line = new,
            None => self.lines.push(new),
        }
    }

    /// A line to print for each stage, and whether it is as it should be.
    pub fn judge(&self, measured: &[(String, f64)]) -> Vec<(String, Verdict)> {
        let mut verdicts = Vec::new();
        for (stage, count) in measured {
            let Some(line) = self.lines.iter().find(|line| line.stage == *stage) else {
                let text = format!("{stage:<22} {count:>12.1}  is not recorded yet");
                verdicts.push((text, Verdict::Fails));
                continue;
            };
            let change = count / line.count - 1.0;
            let (verdict, note) = match change {
                change if change > MORE_MAX => (Verdict::Fails, "  more than 3 % more"),
                change if change < -MORE_MAX => (Verdict::Passes, "  record the gain"),
                _ => (Verdict::Passes, ""),
            };
            let recorded = line.count;
            let percent = change * 100.0;
            verdicts.push((
                format!("{stage:<22} {count:>12.1}  was {recorded:>12.1}  {percent:>+7.2} %{note}"),
                verdict,
            ));
        }
        for line in &self.lines {
            if !measured.iter().any(|(stage, _)| *stage == line.stage) {
                let text = format!("{:<22} is recorded, but there is no such stage", line.stage);
                verdicts.push((text, Verdict::Fails));
            }
        }
        verdicts
    }
}

impl fmt::Display for Baseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEAD}environment {}", self.environment)?;
        for Line { stage, count, reason } in &self.lines {
            writeln!(f, "{stage} {count:.1} {reason}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn baseline() -> Baseline {
        let mut baseline = Baseline { environment: "a b; c".into(), lines: Vec::new() };
        baseline.set("flush", 100.0, "first\nmeasured");
        baseline.set("get", 2000.5, "first measured");
        baseline
    }

    fn verdicts(measured: &[(&str, f64)]) -> Vec<Verdict> {
        let measured: Vec<_> = measured.iter().map(|(s, count)| (s.to_string(), *count)).collect();
        baseline().judge(&measured).into_iter().map(|(_, verdict)| verdict).collect()
    }

    #[test]
    fn the_file_is_read_as_it_was_written() {
        assert_eq!(Baseline::parse(&baseline().to_string()), Ok(baseline()));
        assert_eq!(Baseline::parse(""), Ok(Baseline::default()));
        for bad in ["flush", "flush many why", "flush 1.0", "\n\nflush x y"] {
            assert!(Baseline::parse(bad).unwrap_err().contains("not STAGE COUNT REASON"), "{bad}");
        }
    }

    #[test]
    fn three_per_cent_more_pass_and_a_little_over_fails() {
        use Verdict::{Fails, Passes};
        assert_eq!(verdicts(&[("flush", 102.9), ("get", 2000.5)]), [Passes, Passes]);
        assert_eq!(verdicts(&[("flush", 103.1), ("get", 2000.5)]), [Fails, Passes]);
        assert_eq!(verdicts(&[("flush", 50.0), ("get", 2000.5)]), [Passes, Passes]);
    }

    #[test]
    fn a_stage_on_one_side_only_fails() {
        use Verdict::{Fails, Passes};
        assert_eq!(verdicts(&[("flush", 100.0)]), [Passes, Fails]);
        let more = [("flush", 100.0), ("get", 2000.0), ("scan", 1.0)];
        assert_eq!(verdicts(&more), [Passes, Passes, Fails]);
    }

    #[test]
    fn accepting_moves_one_line_and_keeps_the_reason() {
        let mut baseline = baseline();
        baseline.set("flush", 110.0, "checks what it wrote");
        let text = baseline.to_string();
        assert!(text.contains("\nflush 110.0 checks what it wrote\nget 2000.5 first"), "{text}");
    }
}
