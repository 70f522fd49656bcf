//! What the command line chooses of an experiment, whatever its kind.

use std::fmt;

use crate::adapter::EngineName;
use crate::datasets::{TableData, TextData};

/// What the command line chose. What was not given is as the experiment says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choice {
    /// Name of the scale, of several with commas between them the first that there is.
    pub scale: Option<String>,
    /// Names of arms.
    pub arms: Option<Vec<String>>,
    /// The one engine.
    pub engine: Option<EngineName>,
    /// Runs of each arm.
    pub repeats: Option<u64>,
    /// Measured seconds: of the queries, or of each test.
    pub seconds: Option<u64>,
    /// Nodes of a graph.
    pub nodes: Option<u64>,
    /// Numbers of clients, one query phase after another.
    pub clients: Option<Vec<u64>>,
    /// Keys of a database.
    pub keys: Option<u64>,
    /// Tables of rows.
    pub tables: Option<Vec<TableData>>,
    /// The text of chunks.
    pub text: Option<TextData>,
}

impl Choice {
    /// The flags of what was chosen and only some kinds take.
    pub fn flags(&self) -> Vec<&'static str> {
        let flags = [
            ("--nodes", self.nodes.is_some()),
            ("--clients", self.clients.is_some()),
            ("--keys", self.keys.is_some()),
            ("--seconds", self.seconds.is_some()),
            ("--tables", self.tables.is_some()),
            ("--text", self.text.is_some()),
        ];
        flags.into_iter().filter(|(_, given)| *given).map(|(flag, _)| flag).collect()
    }

    /// True when nothing but the scale was chosen.
    pub fn is_scale_only(&self) -> bool {
        *self == Choice { scale: self.scale.clone(), ..Choice::default() }
    }
}

/// A choice that the experiment does not offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChoiceError(pub String);

impl fmt::Display for ChoiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ChoiceError {}
