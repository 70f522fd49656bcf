//! What a run lacks: which cells count in no figure, why, and which verdicts lack them.
//!
//! Pure. Records hold their cells in different forms, so each kind makes a [`CellEnd`] of every cell;
//! the rest is the same for all.

use std::fmt::Write;

use lithify_report::{Finding, Outcome};

use crate::report::plural;
use crate::run::cells::{Cell, Entry, Part};

/// So many rows of the tables are named that lack cells; of the others the number is said.
const NAMED_MAX: usize = 2;

/// Characters of a reason that the answer quotes; the whole reason is under the checks.
const REASON_CHARS: usize = 120;

/// A cell that ended, or that was planned and has no result.
pub(crate) struct CellEnd {
    /// Its name.
    pub id: String,
    /// What it is to the verdicts.
    pub part: Part,
    /// Why it counts in no figure; `None` when it counts.
    pub problem: Option<String>,
    /// It was not measured, nor tried as far as is kept.
    pub is_absent: bool,
}

impl CellEnd {
    /// A cell with its result, or with why it has none.
    pub(crate) fn new<C: Cell>(
        cell: &C,
        result: Option<&C::Outcome>,
        failure: Option<&str>,
    ) -> CellEnd {
        let problem = match result {
            Some(result) => C::faults(result).into_iter().next(),
            None => Some(failure.unwrap_or("it has no result").to_owned()),
        };
        let is_absent = result.is_none() && failure.is_none();
        CellEnd { id: cell.id(), part: cell.part(), problem, is_absent }
    }
}

/// The cells of entries with how they ended.
pub(crate) fn ends<C: Cell>(entries: &[Entry<C>]) -> Vec<CellEnd> {
    let end = |entry: &Entry<C>| {
        CellEnd::new(&entry.cell, entry.result.as_ref(), entry.failure.as_deref())
    };
    entries.iter().map(end).collect()
}

/// With those cells of the plan that have no end yet.
pub(crate) fn with_planned<C: Cell>(mut ends: Vec<CellEnd>, planned: &[C]) -> Vec<CellEnd> {
    let absent = planned.iter().filter(|cell| ends.iter().all(|end| end.id != cell.id()));
    let absent: Vec<CellEnd> = absent.map(|cell| CellEnd::new(cell, None, None)).collect();
    ends.extend(absent);
    ends
}

/// The fault of a run of which some cells did not come to a figure.
pub(crate) fn fault(valid: usize, cells: usize) -> Option<String> {
    let failed = cells - valid;
    (failed > 0)
        .then(|| format!("{failed} of {cells} cells failed or are void; see Checks in the report"))
}

/// How many cells count, then which do not, why, and what lacks them. Nothing for a whole run.
pub(crate) fn findings(ends: &[CellEnd]) -> Vec<Finding> {
    let valid = ends.iter().filter(|end| end.problem.is_none()).count();
    if valid == ends.len() {
        return Vec::new();
    }
    let text = format!("{valid} of {} cells were measured and passed their checks.", ends.len());
    let missed = |tag: &str, text: String| Finding::new(Outcome::Missed, tag, text);
    let mut findings = vec![missed("Incomplete", text)];
    let failed = parts(ends.iter().filter(|end| !end.is_absent && end.problem.is_some()));
    let named = failed.iter().take(NAMED_MAX);
    findings.extend(named.map(|part| missed("Lacking", lacking(part, ends))));
    if failed.len() > NAMED_MAX {
        let others = plural((failed.len() - NAMED_MAX) as u64, "row");
        findings.push(missed("Lacking", format!("{others} more; see Checks.")));
    }
    let absent = || ends.iter().filter(|end| end.is_absent);
    let rows = parts(absent());
    if !rows.is_empty() {
        let names: Vec<String> = rows.iter().take(NAMED_MAX).map(ToString::to_string).collect();
        let others = match rows.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            others => format!(" and {} more", plural(others as u64, "row")),
        };
        let cells = plural(absent().count() as u64, "cell");
        let text = format!("{cells} without a result: {}{others}.", names.join("; "));
        findings.push(missed("Lacking", text));
    }
    findings
}

/// What cells are to the verdicts, each once.
fn parts<'a>(ends: impl Iterator<Item = &'a CellEnd>) -> Vec<&'a Part> {
    let mut parts: Vec<&Part> = Vec::new();
    for end in ends {
        if !parts.contains(&&end.part) {
            parts.push(&end.part);
        }
    }
    parts
}

/// What one part of a run lacks: its first cell that does not count, why, and what follows.
fn lacking(part: &Part, ends: &[CellEnd]) -> String {
    let own = || ends.iter().filter(|end| end.part == *part);
    let lost: Vec<(&str, &str)> =
        own().filter_map(|end| Some((end.id.as_str(), end.problem.as_deref()?))).collect();
    let (all, mut text) = (own().count(), part.to_string());
    if let Some((id, why)) = lost.first() {
        // Writing to a String cannot fail.
        let _ = write!(text, ", cell {id}: {}.", short(why).trim_end_matches('.'));
    }
    if lost.len() > 1 {
        let _ = write!(text, " {} of its {all} cells lack.", lost.len());
    }
    let valid = all - lost.len();
    text.push_str(&match part {
        Part::Row(_) if valid == 0 => " No verdict is on it.".to_owned(),
        Part::Row(_) => format!(" Its verdicts rest on {valid} of {all} repeats."),
        Part::Control(of) => {
            format!(" Verdicts on {of} rest on {valid} of {all} A/A controls.")
        }
        Part::Driver => " What the driver takes by itself is in all figures.".to_owned(),
    });
    text
}

/// The beginning of a reason, on one line.
fn short(why: &str) -> String {
    let mut words = why.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = words.char_indices().nth(REASON_CHARS) {
        words.truncate(end);
        words.push('…');
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(id: &str, part: Part, problem: Option<&str>) -> CellEnd {
        let is_absent = problem == Some("absent");
        CellEnd { id: id.to_owned(), part, problem: problem.map(str::to_owned), is_absent }
    }

    fn texts(ends: &[CellEnd]) -> Vec<String> {
        findings(ends).into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn a_whole_run_lacks_nothing() {
        assert_eq!(texts(&[end("a-r0", Part::Row("a".to_owned()), None)]), Vec::<String>::new());
    }

    #[test]
    fn a_lost_cell_is_named_with_what_lacks_it() {
        let row = |name: &str| Part::Row(name.to_owned());
        let long = format!("exit code 1: {}", "word ".repeat(100));
        let found = texts(&[
            end("a-r0", row("a"), None),
            end("a-r1", row("a"), Some("killed by SIGKILL")),
            end("b-r0", row("b"), Some(&long)),
            end("b-r1", row("b"), Some("exit code 2")),
            end("driver", Part::Driver, Some("exit code 3")),
            end("c-r0", row("c"), Some("absent")),
            end("c-r1", row("c"), Some("absent")),
        ]);
        assert_eq!(found[0], "1 of 7 cells were measured and passed their checks.");
        let first = "a, cell a-r1: killed by SIGKILL. Its verdicts rest on 1 of 2 repeats.";
        assert_eq!(found[1], first);
        let whole = "2 of its 2 cells lack. No verdict is on it.";
        assert!(found[2].ends_with(whole) && found[2].chars().count() < 220, "{}", found[2]);
        assert_eq!(found[3..], ["1 row more; see Checks.", "2 cells without a result: c."]);
    }

    #[test]
    fn a_lost_control_leaves_the_row() {
        let control = Part::Control("a".to_owned());
        let found = texts(&[
            end("a-r0", Part::Row("a".to_owned()), None),
            end("a-control-r0", control, Some("it stood still")),
        ]);
        assert_eq!(
            found[1],
            "A/A control of a, cell a-control-r0: it stood still. Verdicts on a rest on 0 of 1 A/A \
             controls."
        );
    }
}
