//! `lithify bench setup`: gets another engine and tries it.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use clap::Args;
use lithify_lab_engines::setup;

use super::process::watch_signals;
use crate::fault::{Fault, print, say};

/// `bench setup`
#[derive(Debug, Args)]
#[command(after_help = "\
Gets the engine with the client of the registry that it is published in. Builds it where that is
needed, and tries it with a small database. Keeps it in a directory outside of any build:
$LITHIFY_ENGINES, else $XDG_CACHE_HOME/lithify/engines, else ~/.cache/lithify/engines.
Without a name it lists what can be got.

Examples:
  lithify bench setup
  lithify bench setup rocksdb
  lithify bench setup rocksdb --version 10.4.2
  lithify bench overwrite --engine rocksdb --seconds 10")]
pub struct SetupArguments {
    /// Which engine; lists them when it is not named
    engine: Option<String>,
    /// Which version of it; the first one of the list when it is not named
    #[arg(long, value_name = "VERSION", requires = "engine")]
    version: Option<String>,
    /// Where to keep it, instead; name the same place in LITHIFY_ENGINES when it is used
    #[arg(long, value_name = "DIR", requires = "engine")]
    directory: Option<PathBuf>,
}

/// Gets it, or lists what there is to get.
pub fn run(arguments: &SetupArguments) -> Result<(), Fault> {
    let Some(engine) = &arguments.engine else { return list() };
    let recipe = setup::recipe(engine).map_err(Fault::usage)?;
    let directory = match &arguments.directory {
        Some(directory) => directory.clone(),
        None => setup::directory().map_err(Fault::usage)?,
    };
    let directory = std::path::absolute(&directory).map_err(Fault::usage)?;
    let version = arguments.version.as_deref().unwrap_or(recipe.default_version());
    recipe.known(version).map_err(Fault::usage)?;
    let interrupt = watch_signals()?;
    let place = recipe.follow(&directory, version, &interrupt, &say).map_err(|error| {
        match interrupt.load(Ordering::Relaxed) {
            true => Fault::interrupted(error),
            false => Fault::failure(error),
        }
    })?;
    (recipe.advice)().iter().for_each(|advice| say(advice));
    print(&format!("{} {version} is at {}\n", recipe.title, place.display()))
}

fn list() -> Result<(), Fault> {
    let mut text = String::new();
    for recipe in setup::RECIPES {
        let versions = recipe.versions.join(", ");
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{:<12} {} {versions}", recipe.engine, recipe.title);
        let _ = writeln!(text, "{:<12} {}", "", recipe.about);
        if let Some(advice) = (recipe.advice)() {
            let _ = writeln!(text, "{:<12} {advice}", "");
        }
    }
    print(&text)
}
