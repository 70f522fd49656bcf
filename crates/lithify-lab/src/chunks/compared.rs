//! The figures of a run, to be set beside those of another run.

use super::plan::ChunkPlan;
use crate::comparison::collect::{machine, subject};
use crate::comparison::results::{ResultSet, Subject};
use crate::report::paired::Better;
use crate::run::cells::Run;

/// All figures; there are no pairs and no controls.
pub fn results(run: &Run<ChunkPlan>) -> ResultSet {
    let title = format!("{} (scale {})", run.plan.experiment.title, run.plan.scale);
    let mut set = ResultSet { title, ..ResultSet::default() };
    for outcome in run.entries.results() {
        let cell = &outcome.cell;
        let name = format!("{} {}", cell.engine, cell.arm());
        set.machine = machine(&outcome.machine);
        let subject = subject(&name, &outcome.engine_name, cell);
        set.subject(Subject { arm: cell.arm().to_string(), ..subject });
        set.note_start(&name, cell.repeat, outcome.started_unix_s);
        let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len().max(1) as f64;
        let stored = outcome.stored_bytes() as f64 / outcome.text_bytes.max(1) as f64;
        let figures = [
            ("stored per byte of text", stored),
            ("flush ms", mean(&outcome.flush_ms)),
            ("cold scan ms", mean(&outcome.cold_scan_ms)),
            ("warm scan ms", mean(&outcome.warm_scan_ms)),
            ("longest call ms", outcome.calls.longest_us as f64 / 1e3),
        ];
        for (figure, value) in figures {
            set.add([&name, "text", figure], Better::Lower, (cell.repeat, value), false);
        }
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_cells_become_series() {
        let run = crate::chunks::sample::run(&crate::chunks::sample::plan(&["lz4-4k", "none-4k"]));
        let set = results(&run);
        assert_eq!(set.names(), ["lithify none-4k", "lithify lz4-4k"]);
        let flush = set.find("lithify lz4-4k", "text", "flush ms").expect("is there");
        assert_eq!(flush.better, Better::Lower);
        assert!((flush.values[0].1 - 9.1).abs() < 1e-9, "{flush:?}");
    }
}
