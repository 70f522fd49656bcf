//! The page of overwrites as fast as they go.

use crate::html::parts;
use crate::html::parts::{Course, LatencyRow, Stalls};
use crate::keyvalue::samples::Sample;
use crate::keyvalue::timeline::Evenness;
use crate::meter::steady::is_steady;
use crate::overwrite::report::{self, Lines};
use crate::overwrite::{OverwriteRecord, OverwriteResult, figures};
use crate::report::figures::{figure, figure_or_dash};
use crate::report::paired::Better;
use crate::report::tables::{Align, Grid};
use lithify_report::{Answer, Block, Finding, Outcome, Report, Section, Table, Unit, filled};

const MIB: f64 = (1u64 << 20) as f64;

/// What the page says.
pub fn report(record: &OverwriteRecord) -> Report {
    let result = record.result.as_ref().unwrap_or(&record.driver);
    let spec = &result.spec;
    let mut sections = vec![over_time(result), latencies(result), stalls(result), levels(result)];
    sections.push(tables(record, result));
    sections.push(Section::new("Machine and settings").with(facts(report::run_lines(result))));
    Report {
        answer: Answer { found: summary(result, record), ..Answer::default() },
        title: format!("Overwrites on {}", result.engine_name),
        context: format!(
            "{} s · {} keys · {}, {} CPUs",
            spec.seconds, spec.keys, result.machine.cpu, result.machine.cpus
        ),
        question: "What writers see when nothing holds them back but the engine: every key is put \
                   once, then random keys are put again as fast as it goes."
            .to_owned(),
        source: String::new(),
        sections: filled(sections),
        ..Report::default()
    }
}

fn facts(lines: Lines) -> Block {
    Block::Facts(lines.into_iter().map(|(name, value)| (name.trim().to_owned(), value)).collect())
}

fn summary(result: &OverwriteResult, record: &OverwriteRecord) -> Vec<Finding> {
    let seen = &result.throughput;
    let even = Evenness::of(&seen.per_second);
    let mut findings = vec![Finding::new(
        Outcome::Note,
        "Rate",
        format!(
            "{:.0} writes per second on average, {} in the slowest second of a hundred.",
            even.mean, even.p1
        ),
    )];
    let steady = match is_steady(&seen.per_second) {
        Some(true) => (Outcome::Met, "the last third was within a tenth of the middle one."),
        Some(false) => {
            (Outcome::Missed, "the last third was not within a tenth of the middle one.")
        }
        None => (Outcome::Undecided, "the run was too short to say."),
    };
    findings.push(Finding::new(steady.0, "Steady", format!("Throughput: {}", steady.1)));
    findings.extend(limits(result, record).into_iter().map(|(name, value, limit)| {
        let outcome = if value <= limit { Outcome::Met } else { Outcome::Missed };
        let tag = if value <= limit { "Met" } else { "Missed" };
        let text = format!("{name}: {}, at most {} asked for.", figure(value), figure(limit));
        Finding::new(outcome, tag, text)
    }));
    findings
}

/// The figures with a limit: name, value, limit.
fn limits(result: &OverwriteResult, record: &OverwriteRecord) -> Vec<(&'static str, f64, f64)> {
    let budget_mib = result.spec.settings.memory_budget_bytes as f64 / MIB;
    let limits = [
        ("longest gap, ms", 100.0),
        ("live peak / settled", 1.2),
        ("resident less driver's, MiB", budget_mib + 64.0),
    ];
    let all = figures::of(result, &record.driver);
    let found = |name: &str| all.iter().find(|figure| figure.name == name).map(|f| f.value);
    limits.into_iter().filter_map(|(name, limit)| Some((name, found(name)?, limit))).collect()
}

fn over_time(result: &OverwriteResult) -> Section {
    let section = Section::new("Over time");
    let writes = result.throughput.per_second.iter().map(|count| *count as f64).collect();
    let course =
        |name: &str, values: Vec<f64>| Course { name: name.to_owned(), repeats: vec![values] };
    let rate = [course(&result.engine_name, writes)];
    let of = |value: fn(&Sample) -> u64| -> Vec<f64> {
        result.samples.iter().map(|sample| value(sample) as f64 / MIB).collect()
    };
    let space = [
        course("directory", of(|sample| sample.directory.allocated_bytes)),
        course("live tables and log", of(|sample| sample.live_bytes)),
        course("pending compaction", of(|sample| sample.pending_compaction_bytes)),
    ];
    let memory = [course("resident", of(|sample| sample.resident_bytes))];
    let title = "Writes per second";
    section
        .with_all(parts::over_time(title, "writes per second", Unit::Number, &rate))
        .with_all(parts::over_time("Space", "MiB", Unit::Number, &space))
        .with_all(parts::over_time("Memory of the process", "MiB", Unit::Number, &memory))
}

fn latencies(result: &OverwriteResult) -> Section {
    let latency = &result.throughput.latency;
    let us = [latency.p50_us, latency.p99_us, latency.p999_us, latency.max_ms * 1e3].map(Some);
    let rows = [LatencyRow { operation: "write".to_owned(), series: 0, us }];
    let names = [result.engine_name.clone()];
    let plot = parts::latencies("Time from one write of a client to the next", &names, &rows);
    let section = Section::new("Rate and latency").with_all(plot);
    section.with(facts(report::throughput_lines(result)))
}

fn stalls(result: &OverwriteResult) -> Section {
    let seen = &result.throughput;
    let slowed_us = result.statistics.slowed_us_since(&result.statistics_before);
    let percent = |us: f64| (us / (result.usage.seconds * 1e4)).clamp(0.0, 100.0);
    let line = Stalls {
        of: result.engine_name.clone(),
        statistics: [&result.statistics_before, &result.statistics],
        slowed_percent: slowed_us.map(percent),
        gap_percent: Some(100.0 * seen.gap_share()),
        longest_gap_ms: Some(seen.longest_gap_ms),
    };
    let section = Section::new("Stalls").with(parts::stalls("Writers held back", &[line]));
    section.with(facts(report::stall_lines(result)))
}

fn levels(result: &OverwriteResult) -> Section {
    let columns = [
        ("level", Align::Left),
        ("codec in files", Align::Left),
        ("files", Align::Right),
        ("stored MB", Align::Right),
        ("user MB", Align::Right),
        ("stored/user", Align::Right),
        ("jobs", Align::Right),
        ("written MB", Align::Right),
        ("cpu s", Align::Right),
    ];
    let levels = &result.statistics_settled.levels;
    let used = levels.iter().filter(|level| level.files > 0 || level.compactions > 0);
    let row = |level: &crate::adapter::LevelStatistics| {
        vec![
            format!("L{}", level.level),
            level.codec.clone(),
            level.files.to_string(),
            figure(level.stored_bytes as f64 / 1e6),
            figure_or_dash(level.user_mb()),
            figure_or_dash(level.stored_per_user_byte()),
            level.compactions.to_string(),
            figure(level.compaction_write_bytes as f64 / 1e6),
            figure(level.compaction_cpu_us as f64 / 1e6),
        ]
    };
    let rows: Vec<Vec<String>> = used.map(row).collect();
    let section = Section::new("Levels and jobs");
    if rows.is_empty() {
        return section;
    }
    section.with(Table::new("Levels when nothing was due", Grid::new(&columns, rows)))
}

fn tables(record: &OverwriteRecord, result: &OverwriteResult) -> Section {
    let columns = [("figure", Align::Left), ("value", Align::Right), ("good is", Align::Left)];
    let row = |item: figures::Figure| {
        let good = if item.reading.better == Better::Higher { "more" } else { "less" };
        vec![item.name.to_owned(), figure(item.value), good.to_owned()]
    };
    let rows = figures::of(result, &record.driver).into_iter().map(row).collect();
    let section = Section::new("All figures");
    let section = section.with(Table::new("Figures of the run", Grid::new(&columns, rows)));
    if record.result.is_none() {
        return section;
    }
    section
        .with(Block::Heading("Space".to_owned()))
        .with(facts(report::space_lines(result)))
        .with(Block::Heading("Memory".to_owned()))
        .with(facts(report::memory_lines(result, &record.driver)))
        .with(Block::Heading("Cost".to_owned()))
        .with(facts(report::cost_lines(result, &record.driver)))
}
