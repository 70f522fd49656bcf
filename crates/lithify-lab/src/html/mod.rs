//! A run as one page: summary in words, plots, tables, machine; a single file that needs nothing
//! else.
//!
//! Owns: the model of a page ([`mod@model`]), its parts that kinds of records share (`parts`, `bars`,
//! `frontier`, `caveats`), the page over all runs ([`mod@index`]), the markup (`page`) and the plots
//! (`plot`). The page of a kind of run is in that kind's room.
//!
//! Promises: pure and deterministic: the same record gives the same file. No external resource; all
//! figures are readable without scripts, which add tooltips only; every plot has its figures as a
//! table; light, dark and paper by the reader's own setting; headings, landmarks, captions and
//! names for readers that listen. Every text of a record is escaped. Does not read or write files.

pub(crate) mod bars;
pub(crate) mod caveats;
pub(crate) mod frontier;
pub mod index;
pub mod model;
pub(crate) mod page;
pub(crate) mod parts;
mod plot;

/// A text as it may stand in markup and in attributes. What a page cannot hold becomes a
/// replacement character.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(character),
            control if control.is_control() => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}
