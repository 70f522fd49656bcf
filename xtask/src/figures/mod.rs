//! Proves that a change of the renderers loses no figure of any record.
//!
//! 1. `render LITHIFY RECORDS OUT` lets a program make every report of every record: text, page, CSV.
//! 2. `same-figures BEFORE AFTER` compares two such directories, number by number. Words, order and
//!    line breaks do not matter.
//!
//! Owns: what is compared with what ([`Form`]), the verdict, and its print. A figure of the text
//! before is in the text or on the page after; one of the page on the page; one of the CSV in the CSV.
//!
//! Promises: a figure that is gone, and not allowed to be with a reason, is exit code 1. So is a
//! report that is missing as a whole.

mod allowed;
mod render;
#[cfg(test)]
mod tests;
mod tokens;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use allowed::Allowed;
pub use render::render;
use tokens::Figures;

/// The file of allowed differences, in this directory of the repository.
const ALLOWED_FILE: &str = "xtask/figures-allowed.txt";

/// Figures of one kind that are printed for one report, unless all are wanted.
const PRINTED: usize = 20;

/// What a record is made into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The report for people, in its longest form.
    Text,
    /// The page.
    Page,
    /// The lines for programs.
    Csv,
}

impl Form {
    /// All of them.
    const ALL: [Form; 3] = [Form::Text, Form::Page, Form::Csv];

    /// The word for it in print and in the file of allowed differences.
    pub fn name(self) -> &'static str {
        match self {
            Form::Text => "text",
            Form::Page => "page",
            Form::Csv => "csv",
        }
    }

    /// Endings of its file, the one with most in it first.
    fn endings(self) -> &'static [&'static str] {
        match self {
            Form::Text => &[render::FULL_TEXT, render::TEXT],
            Form::Page => &[render::PAGE],
            Form::Csv => &[render::CSV],
        }
    }

    /// Its figures in a directory; `None` where the record has no such report.
    fn read(self, directory: &Path, record: &str) -> Result<Option<Figures>, String> {
        for ending in self.endings() {
            let path = directory.join(format!("{record}{ending}"));
            if !path.exists() {
                continue;
            }
            let text = fs::read_to_string(&path)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            return Ok(Some(match self {
                Form::Text => Figures::of_text(&text),
                Form::Page => Figures::of_page(&text),
                Form::Csv => Figures::of_csv(&text),
            }));
        }
        Ok(None)
    }
}

/// A figure whose count differs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Difference {
    figure: String,
    before: usize,
    after: usize,
    /// A line it is in.
    context: String,
}

/// What differs between the two reports of one record in one form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Comparison {
    /// Not there any more.
    gone: Vec<Difference>,
    /// Not there any more, as is allowed.
    allowed: Vec<Difference>,
    /// There, less often.
    fewer: Vec<Difference>,
    /// Not there before.
    new: Vec<Difference>,
}

/// Compares a report with the one after, and where that counts too, with another form (`beside`).
fn compare(
    before: &Figures,
    after: &Figures,
    beside: Option<&Figures>,
    is_allowed: &mut dyn FnMut(&str) -> bool,
) -> Comparison {
    let mut comparison = Comparison::default();
    for (figure, (count, context)) in &before.counts {
        // The same figure is often in both forms: their sum would hide one that is gone.
        let found = after.count(figure).max(beside.map_or(0, |beside| beside.count(figure)));
        if found >= *count {
            continue;
        }
        let difference = Difference {
            figure: figure.clone(),
            before: *count,
            after: found,
            context: context.clone(),
        };
        let list = match found {
            0 if is_allowed(figure) => &mut comparison.allowed,
            0 => &mut comparison.gone,
            _ => &mut comparison.fewer,
        };
        list.push(difference);
    }
    for (figure, (count, context)) in &after.counts {
        if before.count(figure) == 0 {
            comparison.new.push(Difference {
                figure: figure.clone(),
                before: 0,
                after: *count,
                context: context.clone(),
            });
        }
    }
    comparison
}

/// How `same-figures` is asked to be.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wishes {
    /// A figure that is there less often is a loss too.
    pub counts: bool,
    /// Print every difference, not only the first [`PRINTED`] of a kind.
    pub all: bool,
}

/// The verdict over all records, as text, and whether something is gone.
fn judge(
    before: &Path,
    after: &Path,
    allowed: &mut Allowed,
    wishes: Wishes,
) -> Result<(String, bool), String> {
    let records = render::records_of(before)?;
    if records.is_empty() {
        return Err(format!("{} has no reports: make them with `render`", before.display()));
    }
    let mut text = String::new();
    let mut totals: BTreeMap<&str, usize> = BTreeMap::new();
    for record in &records {
        let page_after = Form::Page.read(after, record)?;
        for form in Form::ALL {
            let Some(old) = form.read(before, record)? else { continue };
            let new = form.read(after, record)?;
            let beside = page_after.as_ref().filter(|_| form == Form::Text);
            let mut is_allowed = |figure: &str| allowed.takes(record, form, figure);
            let absent = Figures::default();
            let compared = compare(&old, new.as_ref().unwrap_or(&absent), beside, &mut is_allowed);
            let missing = usize::from(new.is_none());
            *totals.entry("figures").or_default() += old.total();
            *totals.entry("missing").or_default() += missing;
            *totals.entry("gone").or_default() += compared.gone.len();
            *totals.entry("fewer").or_default() += compared.fewer.len();
            *totals.entry("allowed").or_default() += compared.allowed.len();
            *totals.entry("new").or_default() += compared.new.len();
            if missing > 0 {
                let _ = writeln!(text, "{record} {}: NO REPORT after", form.name());
            }
            describe(&mut text, record, form, &compared, wishes);
        }
    }
    for unused in allowed.unused() {
        let _ = writeln!(text, "allowed but not gone: {unused}");
    }
    let of = |name: &str| totals.get(name).copied().unwrap_or_default();
    let _ = writeln!(
        text,
        "{} records, {} figures before: {} gone, {} gone as allowed, {} less often, {} new, \
         {} reports missing",
        records.len(),
        of("figures"),
        of("gone"),
        of("allowed"),
        of("fewer"),
        of("new"),
        of("missing"),
    );
    let is_lost = of("gone") + of("missing") > 0 || (wishes.counts && of("fewer") > 0);
    Ok((text, is_lost))
}

/// The differences of one report, a line each.
fn describe(text: &mut String, record: &str, form: Form, compared: &Comparison, wishes: Wishes) {
    let kinds = [
        ("gone", &compared.gone),
        ("allowed", &compared.allowed),
        ("less often", &compared.fewer),
        ("new", &compared.new),
    ];
    for (word, list) in kinds.into_iter().filter(|(_, list)| !list.is_empty()) {
        let _ = writeln!(text, "{record} {}: {} {word}", form.name(), list.len());
        let printed = if wishes.all { list.len() } else { PRINTED };
        for one in list.iter().take(printed) {
            let Difference { figure, before, after, context } = one;
            let _ = writeln!(text, "  {figure} ({before} -> {after}): {context}");
        }
        if let Some(more) = list.len().checked_sub(printed).filter(|more| *more > 0) {
            let _ = writeln!(text, "  and {more} more (--all prints them)");
        }
    }
}

/// Compares the reports in two directories and prints what differs.
pub fn same_figures(repository: &Path, before: &Path, after: &Path, wishes: Wishes) -> ExitCode {
    let judged = Allowed::read(&repository.join(ALLOWED_FILE))
        .and_then(|mut allowed| judge(before, after, &mut allowed, wishes));
    match judged {
        Ok((text, is_lost)) => {
            print!("{text}");
            if is_lost { ExitCode::FAILURE } else { ExitCode::SUCCESS }
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
