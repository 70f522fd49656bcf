//! What a reader of a page must know.

use super::model::{Block, Section};
use crate::experiment::Caveats;

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
