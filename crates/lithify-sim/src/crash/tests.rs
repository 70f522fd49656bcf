//! The crash checks themselves: they are deterministic, they find what is wrong, and the scripts do
//! what they are there for. Their short forms are run here too.

use super::actor::{DIRECTORY, open};
use super::choice::{Choice, plain};
use super::figures::{self, DISTINCT_IMAGES};
use super::history::{CrashKind, History};
use super::points::record;
use super::record::Point;
use super::recover::{read_all, recover, watched_environment};
use super::scripts::{self, MODES, Script};
use super::trial::Trial;
use super::*;
use crate::check::{Check, Tally};
use crate::operation::lifetimes::HALF_LIFE_US;
use crate::runner::run_first;
use lithify::fs::{CrashKeep, FileSystem, MemoryFileSystem, OpenMode};
use lithify::{Durability, ErrorKind};
use std::io::IoSlice;
use std::path::{Path, PathBuf};

fn script(name: &str) -> Script {
    let found = scripts::with_reads().into_iter().find(|script| script.name == name);
    found.expect("there is such a script")
}

fn recorded(name: &str, durability: Durability) -> (History, Vec<Point>) {
    record(&script(name), durability).unwrap()
}

#[test]
fn scripts_run_in_every_mode_and_the_same_way_each_time() {
    for script in scripts::with_reads() {
        for durability in MODES {
            let runs = [0, 1].map(|_| {
                let (_, points) = record(&script, durability).unwrap();
                let seen = |point: &Point| (point.files.fingerprint(), point.moment);
                points.iter().map(seen).collect::<Vec<_>>()
            });
            assert_eq!(runs[0], runs[1], "{}", script.name);
            assert!(runs[0].len() > 10, "{} has few points", script.name);
        }
    }
}

#[test]
fn scripts_do_what_they_are_there_for() {
    let names = |points: &[Point], start: &str, end: &str| {
        let mut found: Vec<PathBuf> = Vec::new();
        for point in points {
            let names = point.files.list(Path::new(DIRECTORY)).unwrap_or_default();
            found.extend(names.into_iter().filter(|name| {
                let name = name.to_string_lossy();
                name.starts_with(start) && name.ends_with(end)
            }));
        }
        found.sort();
        found.dedup();
        found.len()
    };
    let called = |points: &[Point], call: &str, name: &str| {
        points.iter().filter(|point| point.call.contains(call) && point.call.contains(name)).count()
    };
    let (_, points) = recorded("manifests", Durability::Sync);
    assert!(names(&points, "MANIFEST", "") >= 3, "the manifest is replaced");
    let (_, points) = recorded("log segments", Durability::Buffered);
    assert!(names(&points, "", ".wal") >= 4, "segments follow each other");
    assert!(called(&points, "Rename", ".wal") >= 1, "one is used again");
    let (_, points) = recorded("levels", Durability::Buffered);
    assert!(names(&points, "", ".sst") >= 8, "tables are merged");
    assert!(called(&points, "Remove", ".sst") >= 4, "and removed");
    let (_, points) = recorded("ingested tables", Durability::Buffered);
    assert!(called(&points, "Link", ".table") >= 2, "tables are linked");
}

#[test]
fn a_promise_that_is_not_kept_is_found() {
    let (history, mut points) = recorded("single commits", Durability::Buffered);
    let mut tally = Tally::default();
    let mut trial = Trial::new(&history, &mut tally);
    let last = points.last_mut().unwrap();
    let nothing = Choice::Chosen(Vec::new());
    trial.crash(last, &nothing).unwrap();
    last.moment.power_floor = last.moment.acknowledged;
    let found = trial.crash(last, &nothing).err().unwrap();
    assert!(found.contains("events survived"), "{found}");
    assert!(trial.crash(last, &Choice::ProcessEnd).is_ok());
}

#[test]
fn what_was_never_written_is_found() {
    let (history, _) = recorded("batches over families", Durability::Sync);
    let (_, points) = recorded("transactions", Durability::Sync);
    let mut tally = Tally::default();
    let mut trial = Trial::new(&history, &mut tally);
    let found = trial.crash(points.last().unwrap(), &Choice::ProcessEnd).err().unwrap();
    assert!(found.contains("no prefix"), "{found}");
}

#[test]
fn a_filtered_row_that_comes_back_is_found() {
    let (history, mut points) = recorded("filtered rows", Durability::Sync);
    assert!(history.filtered_rows() > 8, "{} rows were filtered", history.filtered_rows());
    let mut tally = Tally::default();
    let mut trial = Trial::new(&history, &mut tally);
    // Before the flush and the compaction that filtered the first rows, which are no events.
    let last_unseen = points.iter().rposition(|point| point.moment.sightings == 0).unwrap();
    let begun = points[last_unseen].moment.begun;
    let unfiltered = points.iter_mut().find(|point| point.moment.begun == begun).unwrap();
    trial.crash(unfiltered, &Choice::ProcessEnd).unwrap();
    unfiltered.moment.sightings = 1;
    let found = trial.crash(unfiltered, &Choice::ProcessEnd).err().unwrap();
    assert!(found.contains("no prefix"), "{found}");
    // Whether it is seen at once or not.
    trial.crash(&points[last_unseen], &Choice::ProcessEnd).unwrap();
}

#[test]
fn a_row_that_is_over_and_shown_is_found() {
    let (history, points) = recorded("expiring rows", Durability::Sync);
    let is_right = |point: &Point, behind_us: u64| {
        let options = point.options.clone().unwrap();
        let image = Choice::ProcessEnd.image(&point.files);
        let now_us = point.moment.now_us.saturating_sub(behind_us);
        let found = recover(&image, &options, None, now_us).unwrap().found;
        history.find(&point.moment, 0..=point.moment.begun, &found).is_ok()
    };
    assert!(points.iter().all(|point| is_right(point, 0)));
    let wrong = points.iter().filter(|point| !is_right(point, HALF_LIFE_US)).count();
    assert!(wrong > 10, "at {wrong} points a row would be shown for too long");
}

/// The only log segment of a disk, and its bytes.
fn log_of(files: &MemoryFileSystem) -> (PathBuf, Vec<u8>) {
    let names = files.list(Path::new(DIRECTORY)).unwrap();
    let mut logs = names.iter().filter(|name| name.extension().is_some_and(|end| end == "wal"));
    let path = Path::new(DIRECTORY).join(logs.next().unwrap());
    assert!(logs.next().is_none(), "one segment");
    let file = files.open(&path, OpenMode::Read).unwrap();
    let mut bytes = vec![0; file.length().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    (path, bytes)
}

#[test]
fn damage_below_the_watermark_is_corruption_and_above_it_a_torn_write() {
    let (history, points) = recorded("single commits", Durability::Sync);
    let last = points.last().unwrap();
    let killed = last.files.crash_clone(0, CrashKeep::Everything);
    let (path, bytes) = log_of(&killed);
    // In this mode each record knows that all before it were synced; of the last nobody knows.
    let length = |at: usize| u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap()) as usize;
    // Behind the last one there are zeros for those to come.
    let is_record = |at: usize| {
        let frame = bytes.get(at..at + lithify::wal::FRAME_SIZE_BYTES);
        frame.is_some_and(|frame| frame.iter().any(|byte| *byte != 0))
    };
    let mut records = vec![lithify::wal::HEADER_SIZE_BYTES];
    while is_record(records[records.len() - 1]) {
        let at = records[records.len() - 1];
        records.push(at + lithify::wal::stored_size_bytes(length(at)) as usize);
    }
    let (last_record, end) = (records[records.len() - 2], records[records.len() - 1]);
    assert!(end + 64 < bytes.len(), "there are zeros");
    let mut dropped = 0;
    for (offset, byte) in bytes.iter().enumerate().take(end + 64) {
        let image = killed.crash_clone(0, CrashKeep::Everything);
        let file = image.open(&path, OpenMode::ReadWrite).unwrap();
        file.write_at(&[IoSlice::new(&[!byte])], offset as u64).unwrap();
        let options = last.options.clone().unwrap();
        match open(&image, &watched_environment(1, 0), &options) {
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corruption, "offset {offset}");
                assert!(offset < last_record, "offset {offset}: {error}");
                assert!(error.path().is_some(), "{error}");
            }
            Ok(db) => {
                let found = read_all(&db, history.filter()).unwrap();
                let survived = history.find(&last.moment, 0..=last.moment.begun, &found);
                let lost = last.moment.begun - survived.unwrap();
                // Between records there are bytes that nothing is read from.
                let is_padding = records.windows(2).any(|record| {
                    let payload = lithify::wal::FRAME_SIZE_BYTES + length(record[0]);
                    (record[0] + payload..record[1]).contains(&offset)
                });
                let is_in_last = (last_record..end).contains(&offset);
                let allowed = usize::from(is_in_last && !is_padding);
                assert_eq!(lost, allowed, "damage at {offset}");
                let may_pass = is_padding || offset >= end;
                assert!(may_pass || allowed == 1, "damage at {offset} was not reported");
                dropped += lost;
            }
        }
    }
    assert!(dropped > 0, "the last group was dropped");
}

/// What so many cases counted; a finding fails the test.
fn tally_of(check: &dyn Check, cases: u64) -> Tally {
    let report = run_first(check, cases, 1);
    if let Some(finding) = report.findings.first() {
        panic!("{finding}");
    }
    assert_eq!(report.tally.get("cases"), cases);
    println!("{}", check.table(&report.tally));
    println!("distinct images: {}", report.tally.get(DISTINCT_IMAGES));
    report.tally
}

#[test]
fn crash_points_of_every_script() {
    // Each script in one mode, and then in the others.
    let tally = tally_of(&CrashPoints, scripts::all().len() as u64 * MODES.len() as u64);
    assert!(tally.get(DISTINCT_IMAGES) >= 20_000, "{} images", tally.get(DISTINCT_IMAGES));
}

#[test]
fn chains_of_crashes() {
    let tally = tally_of(&Crashes, 100);
    assert!(tally.get("rows filtered") > 100, "{} rows filtered", tally.get("rows filtered"));
    assert!(tally.get(DISTINCT_IMAGES) >= 5_000, "{} images", tally.get(DISTINCT_IMAGES));
}

#[test]
fn the_end_of_a_process_loses_nothing_that_was_acknowledged_where_there_is_a_log() {
    let (history, points) = recorded("after a kill", Durability::Buffered);
    let mut tally = Tally::default();
    let mut trial = Trial::new(&history, &mut tally);
    for point in &points {
        for choice in plain(&point.files) {
            let left = trial.crash(point, &choice).unwrap();
            let acknowledged = point.moment.acknowledged;
            assert!(choice.kind() == CrashKind::PowerCut || left.survived >= acknowledged);
        }
    }
    assert_eq!(tally.get(figures::CRASH_STATES), 3 * points.len() as u64);
}
