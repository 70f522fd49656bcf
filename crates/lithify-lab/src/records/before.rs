//! The kind of a record that was written before records named theirs: by what only that kind has.

use serde_json::Value;

use crate::amplification::kind::Amplification;
use crate::chunks::kind::Chunks;
use crate::dbbench::kind::DbBench;
use crate::durability::kind::Durability;
use crate::kind::Kind;
use crate::linkbench::kind::LinkBench;
use crate::loop_experiment::kind::LoopExperiments;
use crate::overwrite::kind::Overwrites;
use crate::page_store::kind::Pages;
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
