//! What was done and found, to be pasted, and as JSON.

use crate::display::duration;
use lithify_sim::check::{Check, Tally};
use lithify_sim::checks;
use lithify_sim::runner::Report;
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;

/// The reports of one call of the program.
pub struct Summary {
    jobs: usize,
    reports: Vec<Report>,
}

/// A number with commas.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The figures of what a check counted: a line each, and its table.
pub fn figures(check: &str, tally: &Tally) -> String {
    let line = |(name, count): &(&str, u64)| format!("  {:>15} {name}\n", grouped(*count));
    let figures = tally.figures();
    let lines = figures.iter().filter(|(name, _)| !name.contains(':')).map(line);
    let check = checks().into_iter().find(|known| known.name() == check);
    let table = check.map(|check| check.table(tally)).unwrap_or_default();
    lines.collect::<String>() + &table
}

fn build() -> &'static str {
    if cfg!(debug_assertions) { "with assertions" } else { "release" }
}

impl Summary {
    /// Nothing was done yet.
    pub fn new(jobs: usize) -> Summary {
        Summary { jobs, reports: Vec::new() }
    }

    /// Adds what came of a check. The first thing that it found is shrunk, which may take a while.
    pub fn add(&mut self, check: &dyn Check, mut report: Report) {
        if let Some(first) = report.findings.first_mut() {
            *first = check.shrink(first.clone());
        }
        self.reports.push(report);
    }

    /// Whether anything was found.
    pub fn has_findings(&self) -> bool {
        self.reports.iter().any(|report| !report.findings.is_empty())
    }

    fn elapsed(&self) -> Duration {
        self.reports.iter().map(|report| report.elapsed).sum()
    }

    /// The same for programs.
    pub fn to_json(&self) -> Value {
        let check = |report: &Report| {
            let figures: serde_json::Map<String, Value> = report
                .tally
                .figures()
                .into_iter()
                .map(|(n, c)| (n.to_string(), json!(c)))
                .collect();
            let finding = |finding: &lithify_sim::check::Finding| {
                json!({
                    "case": finding.case,
                    "what": finding.what,
                    "script": finding.script,
                    "replay": finding.replay(),
                })
            };
            json!({
                "check": report.check,
                "first_case": report.first_case,
                "next_case": report.next_case,
                "seconds": report.elapsed.as_secs_f64(),
                "stopped": report.was_stopped,
                "figures": figures,
                "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
            })
        };
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "build": build(),
            "jobs": self.jobs,
            "seconds": self.elapsed().as_secs_f64(),
            "checks": self.reports.iter().map(check).collect::<Vec<_>>(),
        })
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = duration(self.elapsed().as_secs_f64());
        let version = env!("CARGO_PKG_VERSION");
        writeln!(f, "lithify-sim {version}, {}, {} jobs, {total}", build(), self.jobs)?;
        for report in &self.reports {
            let seconds = duration(report.elapsed.as_secs_f64());
            write!(f, "{}: cases {} to before ", report.check, report.first_case)?;
            write!(f, "{}, {seconds}, {} found", report.next_case, report.findings.len())?;
            writeln!(f, "{}", if report.was_stopped { ", stopped" } else { "" })?;
            f.write_str(&figures(report.check, &report.tally))?;
            for finding in &report.findings {
                writeln!(f, "{finding}")?;
            }
            writeln!(
                f,
                "  to go on: lithify-sim run --check {} --first-case {}",
                report.check, report.next_case
            )?;
        }
        let found: usize = self.reports.iter().map(|report| report.findings.len()).sum();
        writeln!(f, "found in all: {found}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lithify_sim::check::Finding;
    use lithify_sim::metamorphic::Metamorphic;

    #[test]
    fn a_summary_can_be_pasted_and_read_by_programs() {
        let mut tally = Tally::default();
        tally.count("operations", 1_234_567);
        let mut summary = Summary::new(2);
        assert!(!summary.has_findings());
        summary.reports.push(Report {
            check: "metamorphic",
            first_case: 3,
            next_case: 9,
            tally,
            findings: vec![Finding::new(&Metamorphic, 4, "a row is missing")],
            elapsed: Duration::from_secs(130),
            was_stopped: true,
        });
        let expected = format!(
            "lithify-sim {}, {}, 2 jobs, 2 min
metamorphic: cases 3 to before 9, 2 min, 1 found, stopped
        1,234,567 operations
FOUND by metamorphic in case 4: a row is missing
  again: lithify-sim replay metamorphic 4
  to go on: lithify-sim run --check metamorphic --first-case 9
found in all: 1
",
            env!("CARGO_PKG_VERSION"),
            build()
        );
        assert_eq!(summary.to_string(), expected);
        let json = summary.to_json();
        assert_eq!(json["checks"][0]["figures"]["operations"], 1_234_567);
        assert_eq!(json["checks"][0]["findings"][0]["case"], 4);
        assert!(summary.has_findings());
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
