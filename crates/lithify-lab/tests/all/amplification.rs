//! Amplification over engines in this process: the figures add up, rows are found.

use lithify_lab::adapter::EngineName;
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::amplification::kind::Amplification;
use lithify_lab::amplification::{
    AmplificationCell, AmplificationRecord, AmplificationResult, AmplificationSpec, QueryKind,
    Workload, measure, report,
};

fn spec(engine: EngineName, workload: Workload) -> AmplificationSpec {
    AmplificationSpec {
        engine,
        settings: EngineSettings::small(),
        workload,
        rows: 3_000,
        key_bytes: 20,
        value_bytes: 100,
        writes_percent: 200,
        seconds_max: 60,
        queries: 50,
        seed: 7,
        build: "test".to_owned(),
    }
}

fn measure(spec: &AmplificationSpec) -> AmplificationResult {
    let directory = tempfile::tempdir().expect("a directory");
    measure::measure(spec, directory.path(), &|_| {}).expect("measures")
}

#[test]
fn the_engine_writes_at_least_what_users_write() {
    for workload in Workload::ALL {
        let result = measure(&spec(EngineName::lithify(), workload));
        if workload != Workload::LinkBench {
            assert_eq!((result.changes, result.user_bytes), (6_000, 6_000 * 120));
            assert_eq!(result.live_bytes, 3_000 * 120);
        }
        assert!(result.user_bytes > 0 && result.live_bytes > 0, "{workload:?}");
        let booked = |cause: &str| {
            let of = |statistics: &lithify_lab::adapter::EngineStatistics| {
                statistics.written_bytes_by_cause.get(cause).copied().unwrap_or(0)
            };
            of(&result.statistics) - of(&result.statistics_before)
        };
        assert!(booked("wal") >= result.user_bytes, "{workload:?}: the log holds every row");
        assert_eq!(result.queries.len(), 6);
        for cost in &result.queries {
            assert_eq!(cost.queries, 50);
            match cost.kind {
                QueryKind::Absent => assert_eq!(cost.rows, 0),
                QueryKind::Point => assert!(cost.rows >= 40, "{workload:?} {cost:?}"),
                QueryKind::Range => assert!(cost.rows >= 50, "{workload:?} {cost:?}"),
            }
        }
    }
}

#[test]
fn the_report_has_every_cell_and_names_failures() {
    let cell = |engine, workload| {
        let spec = spec(engine, workload);
        AmplificationCell { result: Some(measure(&spec)), spec, failure: None }
    };
    let mut record = AmplificationRecord {
        cells: vec![
            cell(EngineName::lithify(), Workload::Uniform),
            cell(EngineName::model(), Workload::Zipf),
            cell(EngineName::null(), Workload::LinkBench),
        ],
    };
    let failed = spec(EngineName::new("other"), Workload::Zipf);
    let failure = Some("it burnt".to_owned());
    record.cells.push(AmplificationCell { spec: failed, result: None, failure });
    let text = crate::text::<Amplification>(&record);
    for part in ["uniform", "levels ", "pages ", "absent", "other-zipf: FAILED: it burnt"] {
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    }
    let csv = report::csv(&record);
    let columns = csv.lines().next().map_or(0, |line| line.split(',').count());
    assert_eq!(csv.lines().count(), 4, "a head and three results: {csv}");
    assert!(csv.lines().all(|line| line.split(',').count() == columns), "{csv}");
    let json = serde_json::to_string(&record).expect("to JSON");
    let again: AmplificationRecord = serde_json::from_str(&json).expect("from JSON");
    assert_eq!(crate::text::<Amplification>(&again), text);
}
