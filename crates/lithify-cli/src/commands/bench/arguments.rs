//! Values of options that several commands take.

use clap::{builder::ValueParser, value_parser};
use lithify_lab::adapter::EngineName;
use lithify_lab::engines::registry;

use crate::fault::Fault;

/// A whole number between two others, which are allowed too.
pub fn range(min: u64, max: u64) -> ValueParser {
    value_parser!(u64).range(min..=max).into()
}

/// An engine: one of those that can be opened by name.
pub fn engine_name(text: &str) -> Result<EngineName, String> {
    let name = EngineName::new(text);
    registry::find(&name).map_err(|error| error.to_string())?;
    Ok(name)
}

/// One line of what `--engine` takes, for the help.
pub const ENGINE_HELP: &str = "On which engine: a name of `bench engines`";

/// Refuses an engine that is known and not here, before anything is made.
pub fn require_engine(name: &EngineName) -> Result<(), Fault> {
    registry::find(name).and_then(|provider| provider.available()).map_err(Fault::failure)
}
