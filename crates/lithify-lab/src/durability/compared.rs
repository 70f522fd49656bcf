//! The figures of a run, to be set beside those of another run.

use super::{CommitFigures, DurabilityRecord, crash_name};
use crate::comparison::collect::{machine, subject};
use crate::comparison::results::ResultSet;
use crate::report::paired::{Better, Reading};
use crate::statistics::verdicts::Scale;

/// Of commits that a crash took: there may be none.
const LOST: Reading =
    Reading { better: Better::Lower, scale: Scale::Difference { resolution: 1.0 } };

/// All figures; there are no pairs and no controls.
pub fn results(record: &DurabilityRecord) -> ResultSet {
    let mut set = ResultSet {
        title: "what crashes take, and what commits cost".to_owned(),
        machine: machine(&record.machine),
        ..ResultSet::default()
    };
    let mut add = |mode: &str, test: &str, figures: &[(&str, Reading, f64)]| {
        set.subject(subject(mode, &record.engine_name, &record.spec));
        for (figure, reading, value) in figures {
            set.add([mode, test, figure], *reading, (0, *value), false);
        }
    };
    for figures in &record.commits {
        let CommitFigures { mode, writers, latency, .. } = figures;
        let test = format!("{writers} writer{}", if *writers == 1 { "" } else { "s" });
        add(
            mode.name(),
            &test,
            &[
                ("commits/s", Better::Higher.into(), figures.rate()),
                ("p50 us", Better::Lower.into(), latency.p50_us),
                ("p99 us", Better::Lower.into(), latency.p99_us),
                ("p99.9 us", Better::Lower.into(), latency.p999_us),
            ],
        );
    }
    for figures in &record.losses {
        let lost = |commits: u64| commits as f64 / figures.crashes.max(1) as f64;
        add(
            figures.mode.name(),
            crash_name(figures.crash),
            &[
                ("lost per crash", LOST, lost(figures.acknowledged_lost.commits)),
                ("lost after it was seen", LOST, lost(figures.visible_lost.commits)),
                ("recovery ms", Better::Lower.into(), figures.recovery_ms[0]),
            ],
        );
    }
    set
}
