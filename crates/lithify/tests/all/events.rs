//! What the event listener hears, and the log of jobs in the statistics.

use crate::support::{PATH, Parts, Random, rows, small_options, watched};
use lithify::fs::FileCallKind;
use lithify::stats::{Counter, JobEnd, JobKind, JobOutcome};
use lithify::{
    CfOptions, ColumnFamily, Db, Durability, ErrorKind, Event, EventListener, Options,
    TableTransfer, TableWriter,
};
use std::io;
use std::sync::{Arc, Mutex, OnceLock};

type Heard = Arc<Mutex<Vec<Event>>>;

/// A listener that writes down what it hears.
fn recorder() -> (EventListener, Heard) {
    let heard = Heard::default();
    let sink = Arc::clone(&heard);
    (EventListener::new(move |event| sink.lock().unwrap().push(event.clone())), heard)
}

fn open_with(parts: &Parts, options: Options) -> (Db, ColumnFamily) {
    let db = Db::open_in(PATH, options, parts.world()).unwrap();
    let family = CfOptions { table_bytes: 64 << 10, ..CfOptions::default() };
    let family = db.column_family("rows", family).unwrap();
    (db, family)
}

fn listening(event_listener: EventListener) -> Options {
    Options { event_listener, ..small_options() }
}

fn ends(heard: &Heard) -> Vec<JobEnd> {
    let ended = |event: &Event| match event {
        Event::JobEnded(end) => Some(end.clone()),
        _ => None,
    };
    heard.lock().unwrap().iter().filter_map(ended).collect()
}

/// Numbers of the jobs that were told to begin.
fn begun(heard: &Heard) -> Vec<u64> {
    let number = |event: &Event| match event {
        Event::JobBegan(job) => Some(job.number),
        _ => None,
    };
    heard.lock().unwrap().iter().filter_map(number).collect()
}

fn fail_on_tables(parts: &Parts, kind: FileCallKind) {
    parts.files.set_fault(Box::new(move |call| {
        let is_table = call.path.extension().is_some_and(|extension| extension == "sst");
        let fails = is_table && call.kind == kind;
        fails.then(|| io::Error::from_raw_os_error(5))
    }));
}

/// Overwrites, a flush, a compaction by hand.
fn work(family: &ColumnFamily) {
    let mut random = Random(1);
    for _ in 0..6_000 {
        family.put(random.below(2_000).to_be_bytes(), random.bytes(100)).unwrap();
    }
    family.flush().unwrap();
    family.compact_range(..).unwrap();
}

#[test]
fn every_job_is_told_from_begin_to_end_and_kept() {
    let parts = Parts::new(1);
    let (listener, heard) = recorder();
    let (db, family) = open_with(&parts, listening(listener));
    work(&family);
    let mut begun = Vec::new();
    for event in heard.lock().unwrap().iter() {
        match event {
            Event::JobBegan(job) => begun.push(job.clone()),
            Event::JobEnded(end) if end.job.kind != JobKind::WriteStop => {
                let index = begun.iter().position(|job| *job == end.job);
                begun.remove(index.expect("it had begun"));
                assert_eq!(end.outcome, JobOutcome::Done);
                assert!(end.ended_us >= end.job.began_us);
                assert_eq!(end.job.family, "rows");
            }
            _ => {}
        }
    }
    assert!(begun.is_empty(), "{begun:?}");
    let ends = ends(&heard);
    let of = |kind| ends.iter().filter(move |end| end.job.kind == kind);
    assert!(of(JobKind::Flush).all(|end| end.job.tables_in > 0 && end.tables_out == 1));
    assert!(of(JobKind::Compaction).any(|end| end.job.reason == "manual"));
    let merged = of(JobKind::Compaction).max_by_key(|end| end.entries_dropped).unwrap();
    assert!(merged.entries_dropped > 0 && merged.bytes_out > 0 && merged.tables_out > 0);
    assert_eq!(merged.job.source_level, Some(0));
    let kept = db.stats().jobs;
    assert_eq!(kept, ends[ends.len().saturating_sub(64)..]);
    let text = db.stats().to_string();
    assert!(text.contains("** Latest jobs **"), "{text}");
    assert!(db.stats().to_json().contains("\"kind\":\"compaction\",\"reason\":\"manual\""));
    assert!(!db.stats().to_prometheus().contains("job_log"));
}

#[test]
fn options_that_a_reopened_family_changes_are_told() {
    let parts = Parts::new(11);
    open_with(&parts, small_options());
    let (listener, heard) = recorder();
    let db = Db::open_in(PATH, listening(listener), parts.world()).unwrap();
    db.existing_column_family("rows").unwrap().unwrap();
    assert!(heard.lock().unwrap().is_empty());
    let compression = "snappy,lz4,zlib-6".parse().unwrap();
    let other = CfOptions { fanout: 5, compression, ..CfOptions::default() };
    for _ in 0..2 {
        db.column_family("rows", other.clone()).unwrap();
    }
    db.column_family("new", other).unwrap();
    let heard = heard.lock().unwrap();
    let [Event::OptionsChanged { family, changes, .. }] = &heard[..] else { panic!("{heard:?}") };
    let lines: Vec<String> = changes.iter().map(|change| change.to_string()).collect();
    assert_eq!(family, "rows");
    let expected = [
        "compression: none,lz4,zstd-1 -> snappy,lz4,zlib-6",
        "table_bytes: 65536 -> 16777216",
        "fanout: 8 -> 5",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn the_log_has_an_end() {
    let parts = Parts::new(2);
    let (db, family) = open_with(&parts, small_options());
    for row in 0..100_u64 {
        family.put(row.to_be_bytes(), "a").unwrap();
        family.flush().unwrap();
    }
    let jobs = db.stats().jobs;
    assert_eq!(jobs.len(), 64);
    assert!(jobs.windows(2).all(|pair| pair[0].ended_us <= pair[1].ended_us));
    let shown = db.stats().to_string();
    let section = shown.split("** Latest jobs **").nth(1).unwrap();
    assert_eq!(section.split("\n\n").next().unwrap().trim().lines().count(), 11);
}

/// The log's clock is the world's.
#[test]
fn the_log_is_a_function_of_the_seed() {
    let run = || {
        let parts = Parts::new(3);
        let (db, family) = open_with(&parts, small_options());
        work(&family);
        db.stats().jobs
    };
    let (first, second) = (run(), run());
    assert!(!first.is_empty());
    assert_eq!(first, second);
}

#[test]
fn a_flush_that_is_refused_is_told_with_its_error() {
    let parts = Parts::new(4);
    let (listener, heard) = recorder();
    let (db, family) = open_with(&parts, listening(listener));
    family.put("a", "1").unwrap();
    fail_on_tables(&parts, FileCallKind::Write);
    family.flush().unwrap_err();
    let end = ends(&heard).pop().unwrap();
    let JobOutcome::Failed { kind, message } = &end.outcome else { panic!("{end:?}") };
    assert_eq!((end.job.kind, *kind), (JobKind::Flush, ErrorKind::Io));
    assert!(message.contains(".sst"), "{message}");
    assert_eq!((end.tables_out, end.bytes_out), (0, 0));
    assert!(db.stats().to_string().contains("rows, failed: "));
    parts.files.set_fault(Box::new(|_| None));
    family.flush().unwrap();
    assert_eq!(ends(&heard).pop().unwrap().outcome, JobOutcome::Done);
    let failed = |event: &Event| matches!(event, Event::DatabaseFailed { .. });
    assert!(!heard.lock().unwrap().iter().any(failed), "the database goes on");
}

#[test]
fn a_compaction_that_is_refused_is_told_with_its_error() {
    let parts = Parts::new(5);
    let (listener, heard) = recorder();
    let (_db, family) = open_with(&parts, listening(listener));
    for value in ["1", "2"] {
        (0..100_u64).for_each(|row| family.put(row.to_be_bytes(), value).unwrap());
        family.flush().unwrap();
    }
    fail_on_tables(&parts, FileCallKind::Create);
    family.compact_range(..).unwrap_err();
    let end = ends(&heard).pop().unwrap();
    assert_eq!((end.job.kind, end.job.reason), (JobKind::Compaction, "manual"));
    assert!(matches!(end.outcome, JobOutcome::Failed { kind: ErrorKind::Io, .. }), "{end:?}");
    assert_eq!(begun(&heard), ends(&heard).iter().map(|end| end.job.number).collect::<Vec<_>>());
}

#[test]
fn an_ingest_begins_with_its_first_rows_and_ends_once() {
    let parts = Parts::new(12);
    let (listener, heard) = recorder();
    let (db, family) = open_with(&parts, listening(listener));
    drop(family.ingest().unwrap());
    family.ingest().unwrap().commit().unwrap();
    family.ingest_tables::<&str>(&[], TableTransfer::Link).unwrap();
    assert!(heard.lock().unwrap().is_empty(), "nothing was written");
    let fill = || {
        let mut ingest = family.ingest().unwrap();
        (0..40_u64).for_each(|row| ingest.put(row.to_be_bytes(), [7; 10_000]).unwrap());
        ingest
    };
    let dropped = fill();
    assert_eq!((begun(&heard), ends(&heard).len()), (vec![1], 0), "before the end is known");
    drop(dropped);
    let outlived = fill();
    db.close().unwrap();
    drop(outlived);
    assert_eq!(begun(&heard), [1, 2]);
    let ends = ends(&heard);
    let outcomes: Vec<_> = ends.iter().map(|end| (end.job.number, &end.outcome)).collect();
    assert_eq!(outcomes, [(1, &JobOutcome::Aborted), (2, &JobOutcome::Aborted)]);
}

/// A sync of the log that fails leaves the state on disk unknown.
#[test]
fn a_failure_of_the_database_is_told_once() {
    let parts = Parts::new(6);
    let (listener, heard) = recorder();
    let options = Options { durability: Durability::Sync, ..listening(listener) };
    let (_db, family) = open_with(&parts, options);
    family.put("a", "1").unwrap();
    parts.files.set_fault(Box::new(|call| {
        let fails = call.kind == FileCallKind::SyncData;
        fails.then(|| io::Error::from_raw_os_error(5))
    }));
    family.put("b", "2").unwrap_err();
    family.put("c", "3").unwrap_err();
    let heard = heard.lock().unwrap();
    let failures: Vec<_> = heard
        .iter()
        .filter_map(|event| match event {
            Event::DatabaseFailed { error, .. } => Some(error.kind()),
            _ => None,
        })
        .collect();
    assert_eq!(failures, [ErrorKind::Poisoned]);
}

#[test]
fn a_listener_that_panics_breaks_nothing() {
    let parts = Parts::new(7);
    let listener = EventListener::new(|_| panic!("on purpose"));
    let (db, family) = open_with(&parts, listening(listener));
    work(&family);
    assert!(rows(&family).len() > 1_000);
    let stats = db.stats();
    assert!(stats.figures.counter(Counter::ListenerPanics) > 0);
    assert_eq!(stats.figures.counter(Counter::JobsFailed), 0);
    assert!(stats.jobs.iter().all(|end| end.outcome == JobOutcome::Done));
    db.close().unwrap();
}

/// At every event the listener reads all that there is to read, with and without threads of the
/// database's own.
#[test]
fn a_listener_may_read_the_database() {
    for background_threads in [0, 2] {
        watched("a listener that reads", || {
            let place = Arc::new(OnceLock::<(Db, ColumnFamily)>::new());
            let seen = Arc::new(Mutex::new(0_u64));
            let (own, count) = (Arc::clone(&place), Arc::clone(&seen));
            let listener = EventListener::new(move |_| {
                let Some((db, family)) = own.get() else { return };
                assert!(!db.stats().to_json().is_empty());
                let snapshot = db.snapshot();
                family.get(1_u64.to_be_bytes()).unwrap();
                assert!(rows(family).len() <= 2_000);
                family.stats();
                drop(snapshot);
                *count.lock().unwrap() += 1;
            });
            let directory = tempfile::tempdir().unwrap();
            let options = Options { background_threads, ..listening(listener) };
            let db = Db::open(directory.path(), options).unwrap();
            let family = db.column_family("rows", CfOptions::default()).unwrap();
            assert!(place.set((db.clone(), family.clone())).is_ok());
            work(&family);
            db.wait_for_compaction().unwrap();
            let heard = *seen.lock().unwrap();
            assert!(heard > 0);
            assert_eq!(db.stats().figures.counter(Counter::ListenerPanics), 0);
            // It owns the database, so that nothing else closes it.
            db.close().unwrap();
        });
    }
}

/// A flush that cannot be done keeps writers waiting: slowed, stopped, and free again once it can.
#[test]
fn writers_that_are_held_back_are_told_once_per_change() {
    let parts = Parts::new(8);
    let (listener, heard) = recorder();
    let (db, family) = open_with(&parts, listening(listener));
    fail_on_tables(&parts, FileCallKind::Write);
    let mut written = 0_u64;
    while family.put(written.to_be_bytes(), [7; 1000]).is_ok() {
        written += 1;
        assert!(written < 20_000);
    }
    let stops = db.stats().figures.stops(lithify::stats::DelayCause::Memtable).count;
    assert!(stops > 0);
    parts.files.set_fault(Box::new(|_| None));
    family.flush().unwrap();
    db.wait_for_compaction().unwrap();
    let changes: Vec<_> = heard
        .lock()
        .unwrap()
        .iter()
        .filter_map(|event| match event {
            Event::WritesSlowed { .. } => Some("slowed"),
            Event::WritesStopped { .. } => Some("stopped"),
            Event::WritesFree { .. } => Some("free"),
            _ => None,
        })
        .collect();
    assert!(changes.contains(&"stopped"), "{changes:?}");
    assert_eq!(changes.last(), Some(&"free"));
    assert!(changes.windows(2).all(|pair| pair[0] != pair[1]), "{changes:?}");
    let stopped = ends(&heard).into_iter().find(|end| end.job.kind == JobKind::WriteStop).unwrap();
    assert_eq!((stopped.job.reason, &*stopped.job.family), ("memtable", ""));
}

#[test]
fn ingests_are_told_by_rows_and_by_tables() {
    let parts = Parts::new(9);
    let (listener, heard) = recorder();
    let (_db, family) = open_with(&parts, listening(listener));
    let mut ingest = family.ingest().unwrap();
    (0..100_u64).for_each(|row| ingest.put(row.to_be_bytes(), "row").unwrap());
    ingest.commit().unwrap();
    let end = ends(&heard).pop().unwrap();
    assert_eq!((end.job.kind, end.outcome), (JobKind::Ingest, JobOutcome::Done));
    assert_eq!((end.entries_in, end.tables_out, end.job.bytes_in), (100, 1, 1_100));
    let mut writer = TableWriter::create_in("/t", &CfOptions::default(), parts.world()).unwrap();
    (500..600_u64).for_each(|row| writer.put(row.to_be_bytes(), "row").unwrap());
    writer.finish().unwrap();
    family.ingest_tables(&["/t"], TableTransfer::Link).unwrap();
    let end = ends(&heard).pop().unwrap();
    assert_eq!((end.job.tables_in, end.tables_out, end.outcome), (1, 1, JobOutcome::Done));
    let missing = family.ingest_tables(&["/nowhere.sst"], TableTransfer::Copy);
    missing.unwrap_err();
    let end = ends(&heard).pop().unwrap();
    let kind = ErrorKind::NotFound;
    assert!(matches!(end.outcome, JobOutcome::Failed { kind: k, .. } if k == kind), "{end:?}");
    fail_on_tables(&parts, FileCallKind::Write);
    let mut ingest = family.ingest().unwrap();
    (200..300_u64).for_each(|row| ingest.put(row.to_be_bytes(), "row").unwrap());
    ingest.commit().unwrap_err();
    let end = ends(&heard).pop().unwrap();
    assert!(matches!(end.outcome, JobOutcome::Failed { kind: ErrorKind::Io, .. }), "{end:?}");
}
