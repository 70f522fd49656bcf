//! The published arithmetic, and the whole text of a report from a made-up record.

use std::path::Path;

use super::figures::{Figures, column_value};
use super::*;
use crate::experiment::loops::LoopColumn;
use crate::keyvalue::benchmark::Benchmark;
use crate::kind::{Kind, head, wide_text};
use crate::loop_experiment::kind::LoopExperiments;
use crate::records::AnyRecord;
use crate::run::cells::Cell;
use crate::run::store::{Store, write_files, write_json};

fn close(left: Option<f64>, right: f64) -> bool {
    left.is_some_and(|left| (left / right - 1.0).abs() < 1e-9)
}

#[test]
fn the_driver_alone_is_no_work() {
    let cells = sample::plan(1).cells.cells;
    let work: Vec<f64> = cells.iter().map(|cell| cell.effort().work).collect();
    assert_eq!((work[0], cells[0].id.as_str()), (0.0, "driver"));
    assert!(work[1..].iter().all(|work| *work == 1.0), "{work:?}");
}

#[test]
fn figures_by_the_published_definitions() {
    let record = sample::record(&sample::plan(1));
    let figures = Figures::of(&record);
    let engine = sample::lithify();
    let value = |arm: &str, test, column| {
        let tests = figures.tests(&engine, arm, test);
        tests.first().and_then(|measured| column_value(measured, column))
    };
    let of = |column| value("lz4", Benchmark::Overwrite, column);
    let ingested = 500_000.0 * 420.0;
    assert!(close(of(LoopColumn::OperationsPerSecond), 50_000.0));
    assert!(close(of(LoopColumn::Ingest), ingested / figures::GB));
    // A quarter and 27 quarters in each half step.
    assert!(close(of(LoopColumn::Flush), ingested / 2.0 / figures::GB));
    assert!(close(of(LoopColumn::Compact), ingested * 13.5 / figures::GB));
    assert!(close(of(LoopColumn::WriteAmplification), 14.0), "flushes count twice");
    assert!(close(of(LoopColumn::FlushPerIngest), 0.5));
    // 20 of 100 ms, 5 of 800, 10 of 400, 8 of 600, 6 of 1000, twice.
    assert!(close(of(LoopColumn::JobWall), 2.0 * 20.8));
    assert!(close(of(LoopColumn::JobCpu), 20.8));
    assert!(close(of(LoopColumn::JobCpuPerWrite), 20.8 / 50_000.0));
    assert!(close(of(LoopColumn::Stall), 1.0), "of the clients' time alone");
    assert!(close(of(LoopColumn::JobLevel0), 0.1));
    assert!(close(of(LoopColumn::JobBase), 0.8));
    assert!(close(of(LoopColumn::JobNext), 0.4));
    assert!(close(of(LoopColumn::JobDeeper), (8.0 * 0.6 + 6.0) / 14.0));
    let upper = |column| value("none-upper", Benchmark::Overwrite, column);
    assert!(close(upper(LoopColumn::JobLevel0), 0.05));
    assert!(close(upper(LoopColumn::FlushPerIngest), 1.0));
    let reading = |column| value("lz4", Benchmark::ReadWhileWriting, column);
    assert_eq!(reading(LoopColumn::JobCpuPerWrite), None, "readers do not write");
    assert!(close(reading(LoopColumn::Ingest), 100_000.0 * 420.0 / figures::GB));
    assert_eq!(value("zstd-bottom", Benchmark::Overwrite, LoopColumn::Ingest), None);
}

#[test]
fn failed_and_void_cells_are_named_and_not_counted() {
    let mut record = sample::record(&sample::plan(2));
    let position =
        |id: &str| record.run.cells.iter().position(|cell| cell.cell.id == id).expect("is there");
    let (failed, void) = (position("lithify-lz4-r0"), position("rocksdb-lz4-r1"));
    record.run.cells[failed].result = None;
    record.run.cells[failed].failure = Some("exit code 3: on fire".into());
    if let Some(seen) =
        record.run.cells[void].result.as_mut().and_then(|result| result.verification.as_mut())
    {
        seen.rows -= 1;
    }
    let text = wide_text::<LoopExperiments>(&record);
    assert!(text.contains("lithify-lz4-r0: FAILED: exit code 3: on fire"), "{text}");
    assert!(text.contains("WRONG, row void: rocksdb-lz4-r1: a scan finds 249999 rows"), "{text}");
    assert_eq!(text.matches("lz4 (1 of 2 repeats)").count(), 8, "{text}");
    assert!(text.contains("direction only: as published"), "{text}");
    assert_eq!((record.valid_cells(), record.is_complete()), (11, false));
    record.run.interrupted = true;
    assert!(
        wide_text::<LoopExperiments>(&record).contains("the run was stopped before its last cell")
    );
    assert!(csv::figures(&record).contains(",rocksdb,lz4,1,overwrite,false,"));
}

#[test]
fn trees_with_another_base_level_are_named() {
    let mut record = sample::record(&sample::plan(1));
    assert!(
        wide_text::<LoopExperiments>(&record)
            .contains("lithify: base level L3 (none-upper, lz4, lz4-but-l0)")
    );
    for cell in record.run.cells.iter_mut().filter(|cell| cell.cell.id == "lithify-lz4-r0") {
        let steps = cell.result.iter_mut().flat_map(|result| &mut result.steps);
        for step in steps {
            if let crate::dbbench::spec::Step::Loop(step) = step {
                step.statistics_settled.levels.remove(1);
            }
        }
    }
    let text = wide_text::<LoopExperiments>(&record);
    let line = "lithify: base level L3 (none-upper, lz4-but-l0); L4 (lz4). NOT THE SAME";
    assert!(text.contains(line), "{text}");
}

#[test]
fn a_busy_machine_is_named() {
    let mut record = sample::record(&sample::plan(1));
    assert!(!wide_text::<LoopExperiments>(&record).contains("NOT QUIET"));
    let steps = record.run.cells.iter_mut().filter_map(|cell| cell.result.as_mut());
    for step in steps.flat_map(|result| &mut result.steps) {
        if let crate::dbbench::spec::Step::Loop(step) = step {
            step.usage.foreign_cpu_us = 5_000_000;
        }
    }
    assert!(wide_text::<LoopExperiments>(&record).contains("NOT QUIET"));
}

#[test]
fn one_line_of_csv_per_cell_and_test_and_per_level() {
    let record = sample::record(&sample::plan(2));
    let same_width = |text: &str| {
        let widths: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
        widths.len()
    };
    let text = csv::figures(&record);
    assert_eq!(same_width(&text), 1 + 12 * 2, "the driver has no line");
    assert!(
        text.contains("\ncompress-or-not,smoke,lithify,lz4,0,overwrite,true,500000,10.000000,")
    );
    let text = csv::jobs(&record);
    assert_eq!(same_width(&text), 1 + 12 * 2 * 5);
    assert!(text.contains("\nrocksdb,lz4-but-l0,1,overwrite,0,L0,none,2,"), "{text}");
}

/// The whole report. `LITHIFY_REWRITE=1 cargo test -p lithify-lab loop_experiment` writes it anew;
/// the difference is then reviewed.
#[test]
fn report_of_a_made_up_record() {
    let record = sample::record(&sample::plan(3));
    let json = serde_json::to_string(&record).expect("to JSON");
    let record: LoopRecord = serde_json::from_str(&json).expect("from JSON");
    let text = crate::kind::whole_text(&LoopExperiments::report(&record));
    if std::env::var_os("LITHIFY_REWRITE").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/loop_experiment/golden.txt");
        std::fs::write(path, &text).expect("writes");
        return;
    }
    let golden = include_str!("golden.txt");
    for (number, (line, expected)) in text.lines().zip(golden.lines()).enumerate() {
        assert_eq!(line, expected, "line {}", number + 1);
    }
    assert_eq!(text.lines().count(), golden.lines().count());
}

#[test]
fn a_run_is_read_again_from_its_directory_and_from_its_report() {
    let root = tempfile::tempdir().expect("a directory");
    let record = sample::record(&sample::plan(1));
    let name = record.plan.cells.name.clone();
    let store = Store::open(root.path(), &name).expect("opens");
    store.write_plan(&head::<LoopExperiments>(), &record.plan).expect("writes");
    for result in record.run.results() {
        write_json(&store.result_path(&result.cell.id), result).expect("writes");
    }
    let text = wide_text::<LoopExperiments>(&record);
    let read = |path: &Path| {
        let record = AnyRecord::read(path).expect("reads");
        record.get::<LoopRecord>().expect("is one").clone()
    };
    assert_eq!(wide_text::<LoopExperiments>(&read(store.directory())), text);
    let files = write_files(root.path(), &LoopExperiments::files(&record).expect("has files"))
        .expect("writes");
    assert_eq!(wide_text::<LoopExperiments>(&read(&files[3])), text);
    let whole = crate::kind::whole_text(&LoopExperiments::report(&record));
    let (whole, footer) = whole.split_once("Each engine is judged").expect("has a footer");
    let file = std::fs::read_to_string(&files[0]).expect("reads");
    assert!(file.starts_with(whole) && file.contains("-jobs.csv"), "{footer}");

    std::fs::remove_file(store.result_path("rocksdb-lz4-r0")).expect("removes");
    let partial = read(store.directory());
    assert!(partial.run.interrupted && !partial.is_complete());
    // As it was written before plans named their kind, beside the plan of the loops alone.
    write_json(&store.directory().join("experiment.json"), &record.plan).expect("writes");
    write_json(&store.directory().join("plan.json"), &record.plan.cells).expect("writes");
    assert_eq!(read(store.directory()).run.cells.len(), partial.run.cells.len());
}
