//! The fairness card of a run of LinkBench.

use std::collections::BTreeSet;

use crate::adapter::codec::Codec;
use crate::linkbench::cell::{CellResult, Purpose};
use crate::linkbench::record::LinkBenchRecord;
use crate::report::figures::figure;
use crate::report::{card, days};

const MIB: f64 = (1u64 << 20) as f64;

/// The card as names and values; empty when no cell was measured.
pub fn lines(record: &LinkBenchRecord) -> Vec<(&'static str, String)> {
    let measured = record
        .cells
        .iter()
        .filter_map(|cell| cell.result.as_ref())
        .find(|result| result.spec.purpose == Purpose::Measure);
    let Some(result) = measured else { return Vec::new() };
    let mut lines = machine(result);
    lines.extend(days_of(record).map(|days| ("measured on", days)));
    lines.extend(engine(record, result));
    lines.push(("codec libraries", libraries(record)));
    lines.push(("database : memory", ratios(record)));
    lines.push((
        "clients",
        format!(
            "{} loaders, {} requesters in the engine's process; they share its {} CPUs{}",
            result.spec.loaders,
            result.spec.requesters,
            result.machine.cpus,
            if result.spec.requesters as usize > 2 * result.machine.cpus {
                " and are over-subscribed"
            } else {
                ""
            }
        ),
    ));
    lines.push(("graph", compact(&result.graph)));
    lines.push(("counters", counters(record)));
    lines
}

/// The days of the cells; with several, what was measured on each.
fn days_of(record: &LinkBenchRecord) -> Option<String> {
    let results = record.cells.iter().filter_map(|cell| cell.result.as_ref());
    days::line(
        results.map(|result| (result.spec.arm.as_str(), result.spec.repeat, result.started_unix_s)),
    )
}

fn machine(result: &CellResult) -> Vec<(&'static str, String)> {
    card::machine_with(&result.machine, &limit(result))
}

/// How the memory of the cells was limited.
fn limit(result: &CellResult) -> String {
    let Some(limit) = &result.memory_limit else { return "not limited".to_owned() };
    let mib = |bytes: u64| figure(bytes as f64 / MIB);
    format!(
        "each cell held to {} MiB, page cache included, by a {}: {} MiB for the engine, {} MiB for \
         the driver; the C library keeps one arena of memory",
        mib(limit.limit_bytes()),
        limit.mechanism.name(),
        mib(limit.budget_bytes),
        mib(limit.driver_bytes)
    )
}

fn engine(record: &LinkBenchRecord, result: &CellResult) -> Vec<(&'static str, String)> {
    let settings = &result.spec.settings;
    let mib = |bytes: u64| format!("{} MiB", figure(bytes as f64 / MIB));
    vec![
        ("engine", engines(record)),
        ("durability", settings.durability.name().to_owned()),
        (
            "memory budget",
            format!(
                "{}, block cache {} in it, memtable {}",
                mib(settings.memory_budget_bytes),
                mib(result.block_cache_bytes),
                mib(settings.memtable_bytes)
            ),
        ),
        ("tree", card::tree(settings)),
        ("codecs", codecs(settings.codec_small, settings.codec_middle)),
    ]
}

/// The engines of all arms, each with what is said of it.
fn engines(record: &LinkBenchRecord) -> String {
    let results = record.cells.iter().filter_map(|cell| cell.result.as_ref());
    let measured = results.filter(|result| result.spec.purpose == Purpose::Measure);
    let names: BTreeSet<String> = measured
        .map(|result| match result.capabilities.labels.as_slice() {
            [] => result.engine_name.clone(),
            labels => format!("{} ({})", result.engine_name, labels.join(", ")),
        })
        .collect();
    names.into_iter().collect::<Vec<_>>().join("; ")
}

/// The libraries behind the codecs of all arms.
fn libraries(record: &LinkBenchRecord) -> String {
    let results = record.cells.iter().filter_map(|cell| cell.result.as_ref());
    let measured = results.filter(|result| result.spec.purpose == Purpose::Measure);
    let libraries: BTreeSet<_> = measured.flat_map(|r| r.codec_libraries.iter()).collect();
    let parts: Vec<String> = libraries
        .iter()
        .filter(|(codec, _)| codec.as_str() != "none")
        .map(|(codec, library)| format!("{codec} by {library}"))
        .collect();
    parts.join("; ")
}

fn codecs(small: Codec, middle: Codec) -> String {
    format!(
        "small levels (L0 and distance 2 and more from the bottom) {small}, middle {middle}, \
         unless the arm says otherwise; bottom as the arm says"
    )
}

/// Each arm's database in units of the block cache and of the memory budget.
fn ratios(record: &LinkBenchRecord) -> String {
    let arms: Vec<String> = record
        .plan
        .arms
        .iter()
        .filter_map(|arm| {
            let result = record
                .cells
                .iter()
                .filter_map(|cell| cell.result.as_ref())
                .find(|result| result.spec.arm == *arm)?;
            let size = result.load.usage.directory.allocated_bytes as f64;
            let budget = result.spec.settings.memory_budget_bytes;
            let mut ratio = format!(
                "{arm} {}:1 cache, {}:1 budget",
                figure(size / result.block_cache_bytes as f64),
                figure(size / budget as f64)
            );
            if let Some(limit) = &result.memory_limit {
                let to_limit = figure(size / limit.budget_bytes as f64);
                ratio.push_str(&format!(", {to_limit}:1 limit"));
            }
            Some(ratio)
        })
        .collect();
    format!("{} (after the load)", arms.join("; "))
}

/// Which counters are missing, and how much of the machine others took.
fn counters(record: &LinkBenchRecord) -> String {
    let mut notes: Vec<String> =
        vec!["device columns include the write-back of the phase (synced after it)".to_owned()];
    let mut foreign_max: f64 = 0.0;
    for result in record.cells.iter().filter_map(|cell| cell.result.as_ref()) {
        for phase in [&result.load, &result.query] {
            foreign_max = foreign_max.max(phase.usage.foreign_percent(result.machine.cpus));
            for note in &phase.usage.notes {
                if !notes.contains(note) {
                    notes.push(note.clone());
                }
            }
        }
    }
    notes.push(format!("other processes took at most {} % of the CPUs", figure(foreign_max)));
    notes.join("; ")
}

/// A JSON value on one line: `rank_rule midpoint, links_per_node 4.27`.
fn compact(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| format!("{name} {}", compact(value)))
            .collect::<Vec<_>>()
            .join(", "),
        serde_json::Value::Array(values) => {
            values.iter().map(compact).collect::<Vec<_>>().join(", ")
        }
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Null => "-".to_owned(),
        serde_json::Value::Number(number) => match number.as_f64() {
            Some(value) if !number.is_u64() && !number.is_i64() => figure(value),
            _ => number.to_string(),
        },
        serde_json::Value::Bool(value) => value.to_string(),
    }
}
