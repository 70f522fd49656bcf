//! `lithify compact`: merges the tables of a database down to the bottom.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use lithify::fs::World;
use lithify::inspect::{self, size};

use super::database::{open_to_write, unknown_family};
use crate::fault::{Fault, print};

/// `compact`
#[derive(Debug, Args)]
#[command(
    long_about = "\
Merge the tables of a database, level by level down to the bottom, and drop what no read sees any more.

What was removed or replaced gives its space back. Tables are written as the options of their column
family say. Needs the space of a few tables meanwhile. Ctrl-C ends it at once; what is merged stays.

A process that has the database open compacts it by itself: then this command changes nothing and ends
with 1.",
    after_help = "\
Examples:
  lithify compact rocks.db
  lithify compact rocks.db --family links

Exit codes:
  0  done
  1  failed, or another process has the database open
  2  used wrongly: no database, no such column family"
)]
pub struct CompactArguments {
    /// The directory of the database
    directory: PathBuf,
    /// This column family only
    #[arg(long, value_name = "NAME")]
    family: Option<String>,
}

/// Compacts it.
pub fn run(arguments: &CompactArguments) -> Result<(), Fault> {
    let directory = arguments.directory.as_path();
    let db = open_to_write(directory, false)?;
    let mut names = db.column_family_names();
    if let Some(wanted) = &arguments.family {
        if !names.contains(wanted) {
            return Err(unknown_family(wanted, &names));
        }
        names.retain(|name| name == wanted);
    }
    let mut text = String::new();
    for name in &names {
        let Some(family) = db.existing_column_family(name).map_err(Fault::of_engine)? else {
            continue;
        };
        // What is in the log becomes tables first, so that both sides count it.
        family.flush().map_err(Fault::of_engine)?;
        let before = shape(directory, name)?;
        let began = Instant::now();
        family.compact_range(None, None).map_err(Fault::of_engine)?;
        let after = shape(directory, name)?;
        let seconds = began.elapsed().as_secs_f64();
        text.push_str(&format!("{name}: {before} before, {after} now, {seconds:.1} s\n"));
    }
    db.close().map_err(Fault::of_engine)?;
    print(&text)
}

/// Tables of a family and their size, in words.
fn shape(directory: &Path, name: &str) -> Result<String, Fault> {
    let levels = inspect::read_levels(&*World::system().files, directory, &Default::default());
    let levels = levels.map_err(Fault::of_engine)?;
    let family = levels.families.iter().find(|family| family.name == name);
    let total = family.map(|family| family.total());
    let (files, bytes) = total.map_or((0, 0), |total| (total.files, total.size_bytes));
    Ok(format!("{files} tables, {}", size(bytes)))
}
