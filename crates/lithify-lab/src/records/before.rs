//! Records and plans that were written before they named their kind: known by what only that kind
//! has, and read as if they had.

use std::path::Path;

use serde_json::Value;

use crate::amplification::kind::Amplification;
use crate::amplification::{self, AmplificationPlan};
use crate::chunks::kind::Chunks;
use crate::dbbench::kind::DbBench;
use crate::durability::kind::Durability;
use crate::kind::Kind;
use crate::linkbench::kind::LinkBench;
use crate::loop_experiment::kind::LoopExperiments;
use crate::overwrite::kind::Overwrites;
use crate::page_store::kind::Pages;
use crate::run::RunError;
use crate::tables::kind::Tables;

/// Figures that were kept without the rest of their record.
pub(super) const DIGEST: &str = "digest";

/// What only records of a kind have, in the order in which it is looked for: an experiment over
/// loops has a plan like others.
const MARKS: [(&str, &str); 9] = [
    ("/run/plan", LoopExperiments::NAME),
    ("/plan/experiment", LinkBench::NAME),
    ("/plan/engines", DbBench::NAME),
    ("/driver/throughput", Overwrites::NAME),
    ("/cells/0/spec/writes_percent", Amplification::NAME),
    ("/losses", Durability::NAME),
    ("/spec/file_systems", Pages::NAME),
    ("/runs/0", DIGEST),
    ("/tests/0", DIGEST),
];

/// The kind, or [`DIGEST`]; nothing for what is no record.
pub(super) fn kind_of(record: &Value) -> Option<&'static str> {
    match record.get("kind").and_then(Value::as_str) {
        Some("tables") => return Some(Tables::NAME),
        Some("chunks") => return Some(Chunks::NAME),
        _ => {}
    }
    let found = MARKS.iter().find(|(mark, _)| record.pointer(mark).is_some());
    found.map(|(_, kind)| *kind)
}

/// An experiment over loops, beside the plan of its loops.
const LOOPS_FILE: &str = "experiment.json";

/// An experiment over tables or chunks.
const CELLS_FILE: &str = "cells.json";

/// Files that some kinds had for their plans.
pub(super) const PLAN_FILES: [&str; 2] = [LOOPS_FILE, CELLS_FILE];

/// The kind and the plan of a run by what lies in its directory, with the text of its `plan.json` where
/// there is one; nothing where there is no run.
///
/// # Errors
/// A file that cannot be read.
pub(super) fn plan_of(
    directory: &Path,
    plan: Option<String>,
) -> Result<Option<(String, String)>, RunError> {
    let read = |name: &str| {
        let path = directory.join(name);
        let text = path.exists().then(|| std::fs::read_to_string(&path));
        text.transpose().map_err(|error| RunError::io(&path, error))
    };
    if let Some(text) = read(LOOPS_FILE)? {
        return Ok(Some((LoopExperiments::NAME.to_owned(), text)));
    }
    if let Some(text) = read(CELLS_FILE)? {
        let run: Value = serde_json::from_str(&text)
            .map_err(|error| super::broken(&directory.join(CELLS_FILE), error))?;
        let kind = run.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        return Ok(run.get("plan").map(|plan| (kind, plan.to_string())));
    }
    let Some(text) = plan else {
        let measured = directory
            .ends_with(amplification::NAME)
            .then(|| AmplificationPlan::measured(directory));
        let plan = measured.flatten().and_then(|plan| serde_json::to_string(&plan).ok());
        return Ok(plan.map(|plan| (Amplification::NAME.to_owned(), plan)));
    };
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| super::broken(&directory.join(super::PLAN_FILE), error))?;
    let kind = match value.get("experiment") {
        Some(_) => LinkBench::NAME,
        None => DbBench::NAME,
    };
    Ok(Some((kind.to_owned(), text)))
}
