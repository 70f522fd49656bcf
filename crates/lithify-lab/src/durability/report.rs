//! The tables: what crashes took, and what commits cost.

use std::fmt::Write as _;

use super::{CommitFigures, Crash, DurabilityRecord, INTERVAL_MS, Loss, LossFigures, Mode};
use super::{NAME, crash_name, page};
use crate::durability::kind::Durability;
use crate::kind::json;
use crate::report::figures::figure;
use crate::report::tables::{Align, Grid};
use crate::run::RunError;
use crate::run::store::ReportFile;

/// What the documentation promises of writes that were seen and of acknowledged ones.
pub(crate) fn promise(mode: Mode, crash: Crash) -> String {
    match (mode, crash) {
        (Mode::None, _) | (Mode::Buffered, Crash::PowerCut) => "may be lost".to_owned(),
        (Mode::Interval, Crash::PowerCut) => format!("at most about {INTERVAL_MS} ms"),
        _ => "safe".to_owned(),
    }
}

pub(crate) fn loss(loss: &Loss) -> String {
    match loss.crashes {
        0 => "none".to_owned(),
        crashes => {
            format!("{} in {crashes} crashes, at most {}", loss.commits, loss.commits_max)
        }
    }
}

/// One line about the crashes of one kind.
pub fn line(figures: &LossFigures) -> String {
    format!(
        "{} crashes, {} commits acknowledged; lost of those: {}",
        figures.crashes,
        figures.acknowledged,
        loss(&figures.acknowledged_lost)
    )
}

/// The files of the report: text, the record, the page.
///
/// # Errors
/// The record is no JSON.
pub fn files(record: &DurabilityRecord) -> Result<Vec<ReportFile>, RunError> {
    let file = |kind: &str| format!("{NAME}.{kind}");
    Ok(vec![
        (file("txt"), render(record)),
        (file("json"), json::<Durability>(record)?),
        (file("html"), page::model(record).page()),
    ])
}

/// The report for people.
pub fn render(record: &DurabilityRecord) -> String {
    let spec = &record.spec;
    let mut text = String::from("Losing it: what a crash takes, and what a promise costs\n\n");
    // Writing to a String cannot fail.
    let machine = &record.machine;
    let _ = writeln!(
        text,
        "{} on {}, {} CPUs, {}, {} on {}, {}",
        record.engine_name,
        machine.cpu,
        machine.cpus,
        machine.kernel,
        machine.file_system,
        machine.device,
        machine.build
    );
    let _ = writeln!(
        text,
        "rows of 9 + {} bytes, one a commit; {} kills{} and {} power cuts in each mode, interval \
         {INTERVAL_MS} ms\n",
        spec.value_bytes,
        spec.kills,
        match spec.memory_limit_mib {
            Some(limit_mib) => format!(" (in {limit_mib} MiB, page cache included)"),
            None => String::new(),
        },
        spec.cuts
    );
    let _ = writeln!(text, "What crashes took\n{}\n", losses(&record.losses).text());
    let _ = writeln!(text, "What commits cost\n{}", commits(&record.commits).text());
    let violations = record.violations();
    match violations.is_empty() {
        true => text.push_str("\nEvery promise was kept.\n"),
        false => {
            let _ = writeln!(text, "\nBROKEN PROMISES\n  {}", violations.join("\n  "));
        }
    }
    text
}

/// What crashes took, by mode and crash.
pub(crate) fn losses(losses: &[LossFigures]) -> Grid {
    let columns = [
        ("mode", Align::Left),
        ("crash", Align::Left),
        ("promised", Align::Left),
        ("crashes", Align::Right),
        ("acknowledged", Align::Right),
        ("of them lost", Align::Left),
        ("lost after it was seen", Align::Left),
        ("oldest lost, ms", Align::Right),
        ("recovery, ms", Align::Right),
        ("at most", Align::Right),
    ];
    let row = |figures: &LossFigures| {
        vec![
            figures.mode.name().to_owned(),
            crash_name(figures.crash).to_owned(),
            promise(figures.mode, figures.crash),
            figures.crashes.to_string(),
            figures.acknowledged.to_string(),
            loss(&figures.acknowledged_lost),
            loss(&figures.visible_lost),
            match figures.crash {
                // Nobody outlives a kill who could have kept the times.
                Crash::ProcessEnd => "-".to_owned(),
                Crash::PowerCut => figure(figures.oldest_lost_ms),
            },
            figure(figures.recovery_ms[0]),
            figure(figures.recovery_ms[1]),
        ]
    };
    Grid::new(&columns, losses.iter().map(row).collect())
}

/// What commits cost, by mode and number of writers.
pub(crate) fn commits(commits: &[CommitFigures]) -> Grid {
    let columns = [
        ("mode", Align::Left),
        ("writers", Align::Right),
        ("commits/s", Align::Right),
        ("p50 us", Align::Right),
        ("p99 us", Align::Right),
        ("p99.9 us", Align::Right),
        ("max ms", Align::Right),
        ("commits/group", Align::Right),
        ("syncs/s", Align::Right),
        ("CPU us/commit", Align::Right),
    ];
    let row = |figures: &CommitFigures| {
        let latency = &figures.latency;
        let ratio = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        vec![
            figures.mode.name().to_owned(),
            figures.writers.to_string(),
            format!("{:.0}", figures.rate()),
            figure(latency.p50_us),
            figure(latency.p99_us),
            figure(latency.p999_us),
            figure(latency.max_ms),
            figure(ratio(figures.commits, figures.groups)),
            figure(figures.syncs as f64 / figures.seconds.max(1e-9)),
            figure(ratio(figures.cpu_us, figures.commits)),
        ]
    };
    Grid::new(&columns, commits.iter().map(row).collect())
}
