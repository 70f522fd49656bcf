//! Values of options that several commands take.

use clap::builder::ValueParser;
use lithify_lab::adapter::EngineName;
use lithify_lab::engines::registry;

use super::super::sizes::within;
use crate::fault::Fault;

/// A whole number between two others, which are allowed too.
pub fn range(min: u64, max: u64) -> ValueParser {
    let parse = move |text: &str| -> Result<u64, String> {
        let expected = |_| format!("expected a whole number from {min} to {max}");
        within(text.parse().map_err(expected)?, min, max)
    };
    ValueParser::new(parse)
}

/// An engine: one of those that can be opened by name.
pub fn engine_name(text: &str) -> Result<EngineName, String> {
    let name = EngineName::new(text);
    match registry::find(&name) {
        Ok(_) => Ok(name),
        Err(_) => {
            let known = registry::providers().into_iter().map(|provider| provider.name());
            let similar = similar(text, known);
            Err(format!("there is no engine {text:?}{similar}; `lithify bench engines` has all"))
        }
    }
}

/// Names that resemble another one at least so much, of 1, are said.
const SIMILAR: f64 = 0.75;

/// How many similar names are said.
const SIMILAR_MAX: usize = 3;

/// The names that resemble one that is not among them, as a part of a sentence.
pub fn similar<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let resemblance = |known: &str| match known.contains(name) || name.contains(known) {
        true => 1.0,
        false => strsim::jaro_winkler(name, known),
    };
    let mut similar: Vec<(f64, &str)> =
        known.into_iter().map(|known| (resemblance(known), known)).collect();
    similar.retain(|(score, _)| *score >= SIMILAR);
    similar.sort_by(|one, other| other.0.total_cmp(&one.0));
    let similar: Vec<&str> = similar.iter().take(SIMILAR_MAX).map(|(_, known)| *known).collect();
    match similar.is_empty() {
        true => String::new(),
        false => format!("; similar: {}", similar.join(", ")),
    }
}

/// One line of what `--engine` takes, for the help.
pub const ENGINE_HELP: &str = "On which engine: a name of `bench engines`";

/// Refuses an engine that is known and not here, before anything is made.
pub fn require_engine(name: &EngineName) -> Result<(), Fault> {
    registry::find(name).and_then(|provider| provider.available()).map_err(Fault::failure)
}
