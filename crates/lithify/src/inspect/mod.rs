//! Floor 8: what the command line prints of files and trees. Reads only.
//!
//! Owns: [`dump()`], which takes any file of the engine apart into [`Item`]s with the field names of
//! docs/format, [`read_levels`], which adds up the tree of a database on disk, and
//! [`read_explanations`], which tells why its levels are compressed as they are.
//!
//! 1. A file is known by its magic, and by its name where the magic is damaged.
//! 2. Its parts are handed out in the order of the file, each as one item. Where a part is
//!    damaged an item says so, and whatever can still be found behind it is handed out too.
//! 3. The first damage is the result, with file and offset.
//!
//! Promises: no content of a file makes it panic; nothing is written and no lock is taken, so
//! that an open database can be looked at. Any thread.
//!
//! It has no parsers of its own: what it says is what the rooms below read. It does not repair.

mod dump;
mod explain;
mod item;
mod levels;
mod levels_page;
mod log;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use table::{NoClock, context_pool};

pub use crate::base::{size, wrapped};
pub use dump::{DumpOptions, dump};
pub use explain::read_explanations;
pub use item::{Item, Value};
pub use levels::{FamilyLevels, LevelSum, Levels, LevelsOptions, TableLine, read_levels};
pub use levels_page::LevelsPage;
