//! A run as one page: summary in words, plots, tables, machine; a single file that needs nothing
//! else.
//!
//! Owns: the parts of reports that kinds share (`parts`, `caveats`). Models, markup and plots are
//! those of [`lithify_report`]. The report of a kind of run is in that kind's room, the page over
//! many runs in [`crate::records::index`].
//!
//! Promises: pure and deterministic: the same record gives the same file. No external resource; all
//! figures are readable without scripts, which add tooltips only; every plot has its figures as a
//! table; light, dark and paper by the reader's own setting; headings, landmarks, captions and
//! names for readers that listen. Every text of a record is escaped. Does not read or write files.

pub(crate) mod caveats;
pub(crate) mod parts;
