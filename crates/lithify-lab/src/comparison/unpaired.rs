//! Figures of the kinds of runs that know no pairs and controls: tables, chunks, amplification,
//! durability, pages with holes.

use super::collect::{machine, subject};
use super::results::{ResultSet, Subject};
use crate::amplification::report::Row;
use crate::amplification::{AmplificationRecord, QueryKind};
use crate::chunks::plan::ChunkPlan;
use crate::durability::report::crash_name;
use crate::durability::{CommitFigures, DurabilityRecord};
use crate::experiment::tables::TableColumn;
use crate::page_store::PagesRecord;
use crate::page_store::report::columns;
use crate::report::paired::{Better, Reading};
use crate::run::cells::Run;
use crate::statistics::verdicts::Scale;
use crate::tables::figures::column_value;
use crate::tables::plan::TablePlan;

pub(super) fn tables(run: &Run<TablePlan>) -> ResultSet {
    let title = format!("{} (scale {})", run.plan.experiment.title, run.plan.scale);
    let mut set = ResultSet { title, ..ResultSet::default() };
    for outcome in run.entries.results() {
        let cell = &outcome.cell;
        let name = format!("{} {}", cell.engine, cell.arm);
        set.measured_on(machine(&outcome.machine), outcome.file_system.is_some());
        let mut subject = subject(&name, &outcome.engine_name, cell);
        // The number of rows belongs to the table, the arm to the name.
        subject.without(&["rows", "table", "block_bytes"]);
        set.subject(Subject { arm: cell.arm.clone(), ..subject });
        set.note_start(&name, cell.repeat, outcome.started_unix_s);
        for column in TableColumn::MAIN {
            if let Some(value) = column_value(outcome, *column) {
                let test = format!("{}, {} rows", cell.table, cell.rows);
                let series = [name.as_str(), &test, column.name()];
                set.add(series, Better::Lower, (cell.repeat, value), false);
            }
        }
    }
    set
}

pub(super) fn chunks(run: &Run<ChunkPlan>) -> ResultSet {
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

pub(super) fn amplification(record: &AmplificationRecord) -> ResultSet {
    let title = "read, write and space amplification".to_owned();
    let mut set = ResultSet { title, ..ResultSet::default() };
    for row in record.cells.iter().filter_map(Row::of) {
        let (result, measured) = (row.result, &row.measured);
        let (name, test) = (result.spec.engine.name(), result.spec.workload.name());
        set.machine = machine(&result.machine);
        let mut subject = subject(name, &result.engine_name, &result.spec);
        subject.without(&["workload", "rows"]);
        set.subject(subject);
        if let Some(moment) = result.started_unix_s {
            set.note_start(name, 0, moment);
        }
        let figures = [
            ("written by the process", Some(measured.write_process)),
            ("written to the device", measured.write_device),
            ("stored, settled", Some(measured.space_settled)),
            ("stored, at most", Some(measured.space_peak)),
            ("reads per point query, cold", row.cold_reads(QueryKind::Point)),
            ("reads per range, cold", row.cold_reads(QueryKind::Range)),
            ("reads per absent key, cold", row.cold_reads(QueryKind::Absent)),
        ];
        for (figure, value) in figures.into_iter().filter_map(|(name, v)| Some((name, v?))) {
            let scale = match figure.starts_with("reads") {
                true => Scale::Difference { resolution: 0.01 },
                false => Scale::Ratio,
            };
            set.add([name, test, figure], Better::Lower.by(scale), (0, value), false);
        }
    }
    set
}

/// Of commits that a crash took: there may be none.
const LOST: Reading =
    Reading { better: Better::Lower, scale: Scale::Difference { resolution: 1.0 } };

pub(super) fn durability(record: &DurabilityRecord) -> ResultSet {
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

pub(super) fn pages(record: &PagesRecord) -> ResultSet {
    let mut set = ResultSet {
        title: "pages with holes in files".to_owned(),
        machine: machine(&record.machine),
        ..ResultSet::default()
    };
    for cell in &record.cells {
        let (name, test) = (cell.layout.name(), cell.file_system.to_string());
        let Some(figures) = &cell.figures else { continue };
        let mut subject = subject(name, name, &record.spec);
        subject.without(&["file_systems", "layouts"]);
        set.subject(subject);
        for (figure, of) in columns() {
            let better = if *figure == "writes/s" { Better::Higher } else { Better::Lower };
            if let Some(value) = of(figures) {
                set.add([name, &test, figure], better, (cell.repeat, value), false);
            }
        }
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{chunks, tables};

    #[test]
    fn figures_of_cells_become_series() {
        let run = chunks::sample::run(&chunks::sample::plan(&["lz4-4k", "none-4k"]));
        let set = super::chunks(&run);
        assert_eq!(set.names(), ["lithify none-4k", "lithify lz4-4k"]);
        let flush = set.find("lithify lz4-4k", "text", "flush ms").expect("is there");
        assert_eq!(flush.better, Better::Lower);
        assert!((flush.values[0].1 - 9.1).abs() < 1e-9, "{flush:?}");
        let run = tables::sample::run(&tables::sample::small_plan());
        let set = super::tables(&run);
        assert!(set.tests()[0].contains(" rows"), "{:?}", set.tests());
        assert_eq!(set.figures(set.tests()[0]).len(), TableColumn::MAIN.len());
    }
}
