//! The report of a run of LinkBench: the published tables with our figures in them, and the
//! comparison under them.
//!
//! Owns: from raw results to figures ([`mod@figures`]), the tables ([`tables`]), published claims
//! ([`headlines`]), all that a report judges together (`judged`), two arms figure by figure
//! ([`pairs`]), all pairs at a glance ([`glance`]), what engines cost in processes of their own
//! ([`servers`]), open-loop latencies ([`open_loop`]), what changes with the number of clients
//! ([`clients`]), what arms are run under ([`conditions`]), what becomes of them with age
//! ([`ageing`]) and at their end ([`dropping`]), the gates that a scale has to pass ([`gates`]),
//! the checks ([`checks`]), the driver against what was published (`workload`), the fairness card
//! ([`card`]), the CSV ([`csv`]) and the page ([`mod@page`]).
//!
//! Promises: pure and deterministic: the same record gives the same text, so that a report can be
//! rendered again at any time. A cell that failed or whose oracle found a violation is named and
//! counts in no figure. Does not measure and does not read files.

pub mod ageing;
mod better_pairs;
pub mod card;
pub mod checks;
pub mod clients;
pub mod conditions;
pub mod csv;
pub mod dropping;
pub mod figures;
pub mod gates;
pub mod glance;
pub mod headlines;
pub(crate) mod judged;
pub mod open_loop;
pub mod page;
pub mod pairs;
pub mod servers;
pub mod tables;
#[cfg(test)]
mod tests;
mod workload;

use std::fmt::Write as _;

use crate::experiment::{Pair, Phase};
use crate::kind::json;
use crate::linkbench::kind::LinkBench;
use crate::linkbench::record::LinkBenchRecord;
use crate::report::figures::figure;
use crate::report::{VERDICTS_HEADING, floors, opening, repeats};
use crate::run::RunError;
use crate::run::store::ReportFile;
use figures::Figures;
use judged::Judgements;

/// The files of the report: the record, the figures, the text, the page. What engines say about
/// themselves beyond the report stays in the results of the cells.
///
/// # Errors
/// The record is no JSON.
pub fn files(record: &LinkBenchRecord) -> Result<Vec<ReportFile>, RunError> {
    let mut short = record.clone();
    for phase in short.cells.iter_mut().filter_map(|cell| cell.result.as_mut()).flat_map(|result| {
        let sweep = result.sweep.iter_mut().map(|point| &mut point.phase);
        [&mut result.load, &mut result.query].into_iter().chain(sweep)
    }) {
        phase.statistics.raw = serde_json::Value::Null;
        phase.statistics_before.raw = serde_json::Value::Null;
        phase.statistics_settled.raw = serde_json::Value::Null;
    }
    let file = |kind: &str| format!("{}.{kind}", record.plan.name());
    Ok(vec![
        (file("json"), json::<LinkBench>(&short)?),
        (file("csv"), csv::render(record)),
        (file("txt"), render(record)),
        (file("html"), page::model(record).page()),
    ])
}

/// The whole report as text.
pub fn render(record: &LinkBenchRecord) -> String {
    let figures = Figures::of(record);
    let judged = Judgements::of(record, &figures);
    let experiment = &record.plan.experiment;
    let mut text = String::new();
    let mut line = |part: &str| {
        text.push_str(part.trim_end());
        text.push('\n');
    };
    let source = experiment.source.as_ref();
    line(&opening(&experiment.title, &record.plan.scale, &experiment.question, source));
    line("");
    line(&card::render(record));
    if let Some(floors) = floors_of_pairs(&figures, &judged) {
        line("");
        let doubt = headlines::disturbance_percent(record).map(|foreign| {
            format!(" (NOT QUIET: other processes took {} % of the CPUs)", figure(foreign))
        });
        let doubt = doubt.unwrap_or_default();
        line(&format!("Targets of the pairs, missed ones first{doubt}: {floors}"));
    }
    for phase in [Phase::Load, Phase::Query] {
        line("");
        line(&heading(record, phase));
        line(&tables::published_columns(record, &figures, phase).text());
        for published in tables::published(record, phase) {
            let date = experiment.source.as_ref().map_or("", |source| source.date.as_str());
            line(&format!("as published ({date}):"));
            line(&published.text());
        }
        line("");
        line(&format!("{phase}: what an operation costs this process"));
        line(&tables::process_columns(record, &figures, phase).text());
    }
    let beyond = beyond_the_tables(record, &figures, &judged);
    for part in beyond.into_iter().chain(clients::render(record, &figures)) {
        line(&part);
    }
    line("");
    line("Levels at the end of the queries (first valid repeat of each arm)");
    line(&tables::levels(record).text_or("  the engine has no levels"));
    line(&tables::shape(record));
    line("");
    line("What the engine booked until then");
    line(&tables::causes(record).text_or("  the engine books no causes"));
    line("");
    line("Checks");
    line(&checks::render(record, &figures));
    judged_parts(record, &judged).iter().for_each(|part| line(part));
    line("");
    line("To be read with");
    experiment.caveats.notes.iter().for_each(|note| line(&format!("  - {note}")));
    line("Not reproduced");
    experiment.caveats.not_reproduced.iter().for_each(|note| line(&format!("  - {note}")));
    text
}

/// All pairs, each pair, the published claims, and what the verdicts rest on.
fn judged_parts(record: &LinkBenchRecord, judged: &Judgements<'_>) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some(glance) = glance::render(judged) {
        parts.push(format!("\n{}\n{glance}", glance::HEADING));
    }
    parts.extend(measured_pairs(record, judged));
    let heading = match record.plan.experiment.headlines.is_empty() {
        true => "How far the figures can be believed",
        false => "Published against measured",
    };
    parts.push(format!("\n{heading}\n{}", headlines::render(record, judged)));
    let basis = judged.basis.text();
    if !basis.is_empty() {
        parts.push(format!("\n{VERDICTS_HEADING}\n{basis}"));
    }
    parts
}

/// The pairs of arms, then arms against the better of several bases, each with an empty line and a
/// heading before it.
fn measured_pairs(record: &LinkBenchRecord, judged: &Judgements<'_>) -> Vec<String> {
    let part = |(pair, lines): &(&Pair, Vec<pairs::Line>)| {
        format!("\n{} : {}\n{}", pair.arm, pair.base, pairs::grid(pair, lines).text())
    };
    let mut parts: Vec<String> = judged.pairs.iter().map(part).collect();
    let better = better_pairs::grids(&record.plan.experiment, judged);
    parts.extend(better.iter().map(|(heading, grid)| format!("\n{heading}\n{}", grid.text())));
    parts
}

/// What no pair may miss.
fn floors_of_pairs(figures: &Figures<'_>, judged: &Judgements<'_>) -> Option<String> {
    let pairs = judged.pairs.iter();
    let cells: Vec<_> =
        pairs.flat_map(|(pair, lines)| pairs::floors(figures, pair, lines)).collect();
    floors::render(&cells)
}

/// What stands over the gates.
pub(crate) const GATES_HEADING: &str = "query: gates of the scale, by the counters of each cell";

/// What stands over the open loop.
pub(crate) const OPEN_LOOP_HEADING: &str =
    "open loop: latency from the intended start, ms (medians over the repeats)";

/// Processes of engines, the gates, the conditions and the open loop, each with an empty line and a
/// heading before it; nothing for engines without, a scale that claims nothing, arms without
/// conditions and no open loops.
fn beyond_the_tables(
    record: &LinkBenchRecord,
    figures: &Figures<'_>,
    judged: &Judgements<'_>,
) -> Vec<String> {
    let parts = [
        ("engines with processes of their own, apart", servers::render(record, figures)),
        (GATES_HEADING, gates::grid(record, figures).map(|grid| grid.text())),
        (
            "conditions of the arms: device, the driver's own log, allocator",
            conditions::render(record, figures),
        ),
        ("memory by cache turnovers", conditions::memory(record, figures)),
        (
            "file systems of the arms: GB of the files, and used by the file system's own account",
            conditions::file_systems(record, figures),
        ),
        (ageing::HEADING, ageing::render(record, figures)),
        (dropping::HEADING, dropping::render(record, figures, judged)),
        (OPEN_LOOP_HEADING, open_loop::grid(record, figures).map(|grid| grid.text())),
    ];
    parts
        .into_iter()
        .filter_map(|(heading, text)| Some(format!("\n{heading}\n{}", text?)))
        .collect()
}

pub(crate) fn heading(record: &LinkBenchRecord, phase: Phase) -> String {
    let Some(spec) = record.plan.cells.iter().find(|cell| cell.arm != "driver") else {
        return phase.to_string();
    };
    let mut heading = match phase {
        Phase::Load => format!("load: {} nodes, {} clients", spec.nodes, spec.loaders),
        Phase::Query => format!("query: {} s, {} clients", spec.query_seconds, spec.requesters),
    };
    // Writing to a String cannot fail.
    let _ = write!(
        heading,
        " (medians of {}; size and rss in GB of 10^9 bytes",
        repeats(record.plan.repeats)
    );
    if phase == Phase::Query {
        heading.push_str("; p99 in ms");
    }
    heading.push(')');
    heading
}
