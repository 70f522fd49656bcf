//! What a reader of a report must know: caveats, and the rules of the verdicts.

use lithify_report::{Block, Section};

use crate::experiment::Caveats;
use crate::report::paired::Basis;

/// What a reader must know.
pub(crate) fn caveats(caveats: &Caveats) -> Section {
    let mut section = Section::new("To be read with");
    if !caveats.notes.is_empty() {
        section = section.with(Block::List(caveats.notes.clone()));
    }
    if !caveats.not_reproduced.is_empty() {
        section = section.with(Block::Heading("Not reproduced".to_owned()));
        section = section.with(Block::List(caveats.not_reproduced.clone()));
    }
    section
}

/// On what the verdicts rest.
pub(crate) fn basis(basis: &Basis) -> Section {
    let section = Section::new("What the verdicts rest on");
    match basis.lines() {
        lines if lines.is_empty() => section,
        lines => section.with(Block::List(lines)),
    }
}
