//! What became of the failures: calls by kind, failures and outcomes.

use super::failure::{FAILURES, Failure};
use crate::check::Tally;
use lithify::fs::FileCallKind;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

/// Runs in which one call failed.
pub const FAULTS: &str = "faults";

/// What became of a run in which a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Nothing failed that was told to the database.
    Unnoticed,
    /// An operation failed with an error that says why, and the database went on.
    WentOn,
    /// The database stopped writing, said so, and was opened again.
    Stopped,
    /// It was not opened, with an error that says why, and then it was.
    NotOpened,
}

const OUTCOMES: [Outcome; 4] =
    [Outcome::Unnoticed, Outcome::WentOn, Outcome::Stopped, Outcome::NotOpened];

fn name_of(call: FileCallKind, failure: Failure, outcome: Outcome) -> String {
    format!("fault: {call:?}, {}: {outcome:?}", failure.name())
}

/// The one copy of a name that lives as long as the program: there are a few hundred of them.
fn kept(name: String) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    match names.get(name.as_str()) {
        Some(name) => name,
        None => {
            let name: &'static str = name.leak();
            names.insert(name);
            name
        }
    }
}

/// Counts a run.
pub fn count(tally: &mut Tally, call: FileCallKind, failure: Failure, outcome: Outcome) {
    tally.count(FAULTS, 1);
    tally.count(kept(name_of(call, failure, outcome)), 1);
}

/// The figures as a table in Markdown: a line for each kind of call, a column for each failure, in
/// it the runs by outcome.
pub fn table(tally: &Tally) -> String {
    let mut text = String::from(
        "runs in which a call failed: unnoticed / went on / stopped / opened at the second try\n\n\
         | call |",
    );
    FAILURES.iter().for_each(|failure| text += &format!(" {} |", failure.name()));
    let _ = writeln!(text, "\n|---|{}", "---|".repeat(FAILURES.len()));
    for call in FileCallKind::ALL {
        let cell = |failure: &Failure| {
            let count = |outcome: &Outcome| tally.get(&name_of(call, *failure, *outcome));
            let counts: Vec<u64> = OUTCOMES.iter().map(count).collect();
            match counts.iter().sum() {
                0_u64 => "-".to_string(),
                _ => counts.iter().map(u64::to_string).collect::<Vec<_>>().join(" / "),
            }
        };
        let cells: Vec<String> = FAILURES.iter().map(cell).collect();
        if cells.iter().any(|cell| cell != "-") {
            let _ = writeln!(text, "| {call:?} | {} |", cells.join(" | "));
        }
    }
    text
}
