//! Experiments that a command of its own runs: what it is, what it asks, on which engines.
//!
//! Such a file holds no settings; the command has its own. It is there so that the list of
//! experiments is whole.

use serde::{Deserialize, Serialize};

use super::check::{Fault, check_id, check_kind, check_name, fault};
use super::{Caveats, ExperimentError, Source, WorkloadKind, parse};
use crate::adapter::EngineName;

/// One experiment with a command of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandExperiment {
    /// Its name in the list: lower case, digits, dashes.
    pub name: String,
    /// Its number among the published experiments, `E1` and so on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// One line for headings.
    pub title: String,
    /// What is asked.
    pub question: String,
    /// What the published source says the answer is.
    pub hypothesis: String,
    /// Where it was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// What runs it.
    pub workload: CommandWorkload,
    /// What a reader must know.
    pub caveats: Caveats,
}

/// What runs an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandWorkload {
    /// `command`.
    pub kind: WorkloadKind,
    /// The command, without the name of the program: `bench amp`.
    pub command: String,
    /// The engines that it is meant for.
    pub engines: Vec<EngineName>,
}

impl CommandExperiment {
    /// Reads and checks the text of an experiment file; `file` names it in errors.
    ///
    /// # Errors
    /// Bad syntax, an unknown or missing key, an impossible value: with file, line and key.
    pub fn parse(file: &str, text: &str) -> Result<CommandExperiment, ExperimentError> {
        parse::parse(file, text, check)
    }
}

fn check(experiment: &CommandExperiment) -> Result<(), Fault> {
    check_name("name", &experiment.name)?;
    check_id(experiment.id.as_deref())?;
    check_kind(experiment.workload.kind, WorkloadKind::Command)?;
    if !experiment.workload.command.starts_with("bench ") {
        return Err(fault("workload.command", "a command of the program begins with \"bench \""));
    }
    if experiment.workload.engines.is_empty() {
        return Err(fault("workload.engines", "a command needs at least one engine"));
    }
    Ok(())
}
