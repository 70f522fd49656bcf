//! The tables: what crashes took, and what commits cost.

use super::{CommitFigures, Crash, INTERVAL_MS, Loss, LossFigures, Mode, crash_name};

use crate::report::figures::figure;
use crate::report::tables::{Align, Grid};

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
