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

/// What crashes took, by mode and crash. Its cells are short: on a screen every mode has its rows.
pub(crate) fn losses(losses: &[LossFigures]) -> Grid {
    let columns = [
        ("mode", Align::Left),
        ("crash", Align::Left),
        ("promised", Align::Left),
        ("acknowledged, lost", Align::Right),
        ("seen, lost", Align::Right),
        ("oldest lost ms", Align::Right),
    ];
    let row = |figures: &LossFigures| {
        vec![
            figures.mode.name().to_owned(),
            crash_name(figures.crash).to_owned(),
            promise(figures.mode, figures.crash),
            figures.acknowledged_lost.commits.to_string(),
            figures.visible_lost.commits.to_string(),
            match figures.crash {
                // Nobody outlives a kill who could have kept the times.
                Crash::ProcessEnd => "-".to_owned(),
                Crash::PowerCut => figure(figures.oldest_lost_ms),
            },
        ]
    };
    Grid::new(&columns, losses.iter().map(row).collect())
}

/// How many crashes there were, how many took something, and how long opening took after them.
pub(crate) fn crashes(losses: &[LossFigures]) -> Grid {
    let columns = [
        ("mode", Align::Left),
        ("crash", Align::Left),
        ("crashes", Align::Right),
        ("acknowledged", Align::Right),
        ("with acknowledged lost", Align::Right),
        ("most in one", Align::Right),
        ("with seen lost", Align::Right),
        ("most seen in one", Align::Right),
        ("recovery ms", Align::Right),
        ("longest ms", Align::Right),
    ];
    let row = |figures: &LossFigures| {
        let of = |loss: &Loss| [loss.crashes.to_string(), loss.commits_max.to_string()];
        let names = [figures.mode.name().to_owned(), crash_name(figures.crash).to_owned()];
        let counts = [figures.crashes, figures.acknowledged].map(|count| count.to_string());
        let lost = [&figures.acknowledged_lost, &figures.visible_lost].map(of);
        let recovery = figures.recovery_ms.map(figure);
        names.into_iter().chain(counts).chain(lost.into_iter().flatten()).chain(recovery).collect()
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
