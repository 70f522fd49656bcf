//! The loops of the classic key-value benchmark over real engines, in this process.
//!
//! The counts of found keys are those that the original (db_bench 7.8.3) prints for the same
//! flags and seed.

use lithify_lab::adapter::EngineName;
use lithify_lab::adapter::allocator::Allocator;
use lithify_lab::adapter::codec::Ladder;
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::dbbench::kind::DbBench;
use lithify_lab::dbbench::oracle::{agreement, faults};
use lithify_lab::dbbench::original::beside;
use lithify_lab::dbbench::plan::{Controls, DbCellRecord, DbPlan, DbRecord};
use lithify_lab::dbbench::spec::{
    DEFAULT_BATCH_SIZE, DbCell, DbResult, DbSpec, Role, SCHEMA, StepResult,
};
use lithify_lab::dbbench::step::StepSpec;
use lithify_lab::dbbench::{csv, measure, report};
use lithify_lab::keyvalue::benchmark::Benchmark;

/// `--num=20000 --reads=3000 --writes=4000 --value_size=100 --seed=42 --seek_nexts=10`
fn spec(engine: EngineName, benchmarks: &[Benchmark]) -> DbSpec {
    DbSpec {
        schema: SCHEMA,
        engine,
        settings: EngineSettings::small(),
        benchmarks: benchmarks.iter().copied().map(StepSpec::from).collect(),
        allocator: Allocator::System,
        num: 20_000,
        reads: Some(3_000),
        writes: Some(4_000),
        key_bytes: 16,
        value_bytes: 100,
        compression_ratio: 0.5,
        fresh_values: false,
        threads: 1,
        duration_seconds: 0,
        seek_nexts: 10,
        reverse_iterator: false,
        batch_size: DEFAULT_BATCH_SIZE,
        write_rate_bytes_per_s: 0,
        seed: 42,
        use_existing: false,
        settle: true,
        build: "test".to_owned(),
    }
}

fn cell(spec: DbSpec) -> DbCell {
    DbCell { id: format!("{}-r0", spec.engine), role: Role::Measure, repeat: 0, spec }
}

fn run(spec: DbSpec) -> DbResult {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("db");
    std::fs::create_dir(&data).expect("makes");
    measure::measure(&cell(spec), &data, &|_| {}).expect("measures")
}

fn ladder(text: &str) -> Ladder {
    text.parse().expect("a ladder")
}

const SEQUENCE: [Benchmark; 6] = [
    Benchmark::FillRandom,
    Benchmark::ReadRandom,
    Benchmark::Overwrite,
    Benchmark::ReadRandom,
    Benchmark::SeekRandom,
    Benchmark::ReadWhileWriting,
];

fn steps(result: &DbResult) -> Vec<&StepResult> {
    result.loops().collect()
}

#[test]
fn every_loop_finds_what_the_original_finds_on_any_engine() {
    let results = [EngineName::model(), EngineName::lithify()].map(|engine| {
        let result = run(spec(engine, &SEQUENCE));
        assert_eq!(faults(&result), [""; 0]);
        let steps = steps(&result);
        let operations: Vec<u64> = steps.iter().map(|step| step.operations).collect();
        assert_eq!(operations, [4_000, 3_000, 4_000, 3_000, 3_000, 3_000]);
        let found: Vec<u64> = steps.iter().map(|step| step.found).collect();
        assert_eq!(found[..5], [0, 567, 0, 1_011, 990]);
        assert_eq!(steps[1].bytes, 567 * 116);
        // Ten rows after each seek, but for the last keys, which have fewer after them.
        assert_eq!(steps[4].bytes, 29_988 * 116);
        assert_eq!(steps[0].ingested_bytes, 4_000 * 116);
        assert_eq!(steps[0].latency.summary.count, 4_000);
        let beside = steps[5];
        assert!(beside.background_writes > 0 && beside.throughput.is_some());
        assert!(beside.found >= 975, "the writer only adds keys: {}", beside.found);
        assert_eq!(beside.found_expected, None);
        result
    });
    let [model, lithify] = &results;
    let agreed = agreement(model, lithify);
    assert_eq!(agreed.differences, [""; 0]);
    // One client in each of three steps that only read.
    assert_eq!(agreed.equal, 3);
    assert_eq!(steps(model)[1].checkpoints[0].len(), 13, "powers of two to 2048, and the end");
    assert_eq!(agreed.not_comparable, ["readwhilewriting", "the contents at the end"]);
}

#[test]
fn clients_share_nothing_and_the_scan_finds_what_they_wrote() {
    for engine in [EngineName::model(), EngineName::lithify()] {
        let two = DbSpec { threads: 2, ..spec(engine.clone(), &SEQUENCE[..2]) };
        let result = run(two);
        let seen = result.verification.clone().expect("scanned");
        // What the original's database holds after two clients.
        assert_eq!((seen.rows, seen.rows_expected), (6_566, Some(6_566)));
        assert_eq!((seen.malformed, seen.contents), (0, None));
        assert_eq!(steps(&result)[0].operations, 8_000);
        assert_eq!(faults(&result), [""; 0]);

        let benchmarks = [Benchmark::FillRandom, Benchmark::FillSeq, Benchmark::Flush];
        let result = run(DbSpec { writes: None, ..spec(engine, &benchmarks) });
        let seen = result.verification.clone().expect("scanned");
        assert_eq!(seen.rows, 20_000, "a fill begins with an empty database");
        assert_eq!(result.steps.len(), 3);
    }
}

#[test]
fn a_wrong_count_or_sum_is_told() {
    let good = run(spec(EngineName::model(), &SEQUENCE[..5]));
    assert_eq!(agreement(&good, &good).differences, [""; 0]);
    let changed = |change: &dyn Fn(&mut StepResult)| {
        let mut result = good.clone();
        for step in &mut result.steps {
            if let lithify_lab::dbbench::spec::Step::Loop(step) = step
                && step.spec.benchmark == Benchmark::SeekRandom
            {
                change(step);
            }
        }
        result
    };
    let lost = changed(&|step| step.found -= 1);
    assert_eq!(faults(&lost), ["model-r0 seekrandom: 989 found, 990 are there"]);
    let other = changed(&|step| step.checkpoints[0].last_mut().expect("the end").sum ^= 1);
    let differences = agreement(&good, &other).differences;
    assert_eq!(differences.len(), 1);
    assert!(differences[0].contains("read differently in seekrandom"), "{differences:?}");
    // One that stopped earlier agrees up to where it came.
    let earlier = changed(&|step| {
        step.checkpoints[0].pop();
    });
    assert_eq!(agreement(&good, &earlier).differences, [""; 0]);
    let mut rows = good.clone();
    rows.verification.as_mut().expect("scanned").rows_sum ^= 1;
    rows.verification.as_mut().expect("scanned").rows += 1;
    assert!(faults(&rows)[0].contains("a scan finds"), "{:?}", faults(&rows));
    assert!(agreement(&good, &rows).differences[0].contains("hold different rows"));
}

#[test]
fn the_time_ends_a_loop_and_the_rate_holds() {
    let benchmarks = ["fillseq", "overwrite", "readwhilewriting:benchmark-write-rate-limit=58000"];
    let timed = DbSpec {
        benchmarks: benchmarks.map(|step| step.parse().expect("a step")).to_vec(),
        num: 1_000,
        reads: None,
        writes: None,
        duration_seconds: 1,
        write_rate_bytes_per_s: 116 * 2_000,
        ..spec(EngineName::lithify(), &[])
    };
    let result = run(timed);
    assert_eq!(faults(&result), [""; 0]);
    let steps = steps(&result);
    assert_eq!(steps[0].operations, 1_000, "the time does not end a sequential fill");
    // At most the rate, the first refill, and the request that overdraws the last one.
    let most = 2_000 + 200 + 1;
    let allowed = 1..=(most as f64 * steps[1].elapsed_s.max(1.0)) as u64;
    assert!(allowed.contains(&steps[1].operations), "{} writes", steps[1].operations);
    // The writer beside the readers has a rate of its own, 500 a second. It may be a moment longer
    // at it than the readers who end the loop.
    let most = 500 + 50 + 1;
    assert!(steps[2].background_writes <= (most as f64 * (steps[2].elapsed_s + 1.0)) as u64);
    assert!(steps[2].elapsed_s >= 1.0 && steps[2].operations > 0);
    assert_eq!(result.verification.as_ref().and_then(|seen| seen.contents), None);
}

#[test]
fn a_sequence_goes_on_with_the_database_of_another() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("db");
    std::fs::create_dir(&data).expect("makes");
    let first = cell(spec(EngineName::lithify(), &[Benchmark::FillRandom]));
    let filled = measure::measure(&first, &data, &|_| {}).expect("measures");
    let again =
        DbSpec { use_existing: true, ..spec(EngineName::lithify(), &[Benchmark::ReadRandom]) };
    let read = measure::measure(&cell(again), &data, &|_| {}).expect("measures");
    // A new process numbers its clients from one again: the reader draws what the writer drew.
    assert_eq!(steps(&read)[0].found, 3_000);
    assert_eq!(steps(&read)[0].found_expected, None);
    let contents = |result: &DbResult| result.verification.as_ref().and_then(|seen| seen.contents);
    assert!(contents(&filled).is_some());
    assert_eq!(contents(&read), contents(&filled));
    assert_eq!(steps(&read)[0].contents, contents(&filled), "so engines can be compared");
}

#[test]
fn the_reports_have_their_columns() {
    let benchmarks = [Benchmark::FillSeq, Benchmark::ReadWhileWriting];
    let specs = [EngineName::lithify(), EngineName::model()]
        .map(|engine| DbSpec { num: 2_000, ..spec(engine, &benchmarks) });
    let plan = DbPlan::new("pairs", &specs, &[ladder("none,lz4,zstd-1")], 2, Controls::ALL);
    let ids: Vec<&str> = plan.cells.iter().map(|cell| cell.id.as_str()).collect();
    let controls = ["lithify-control-r0", "model-control-r0"];
    assert_eq!(ids[..5], ["driver", "lithify-r0", "model-r0", controls[0], controls[1]]);
    assert_eq!(ids[5..7], ["model-r1", "lithify-r1"], "the next repeat begins with the next");
    assert_eq!(ids.len(), 9);
    let cells = plan.cells.iter().map(|cell| {
        let directory = tempfile::tempdir().expect("a directory");
        let data = directory.path().join("db");
        std::fs::create_dir(&data).expect("makes");
        let result = measure::measure(cell, &data, &|_| {}).expect("measures");
        DbCellRecord { cell: cell.clone(), result: Some(result), failure: None }
    });
    let cells = cells.collect();
    let record = DbRecord { schema: SCHEMA, plan, interrupted: false, cells };
    assert_eq!(record.problems(), [""; 0]);

    let text = crate::text::<DbBench>(&record);
    for part in [
        " targets missed, ",
        "fillseq (step 1): lithify against model",
        "readwhilewriting (step 2)",
        "\nallocator ",
        "throughput ops/s",
        "written per byte ingested",
        "gap share %",
        "longest gap ms",
        "resident MiB",
        "A/A lithify",
        "A/A model",
        "measured on ",
        "direction only",
        "lithify-r0 and model-r0 read the same",
        "other processes",
    ] {
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    }
    let tsv = csv::tsv(&record);
    let columns: Vec<usize> = tsv.lines().map(|line| line.split('\t').count()).collect();
    assert_eq!(columns, [39; 17], "the header, two steps of eight runs:\n{tsv}");
    let classic = "ops_sec\tmb_sec\tlsm_sz\tblob_sz\tc_wgb\tw_amp\tc_mbps\tc_wsecs\tc_csecs\t";
    assert!(tsv.starts_with(classic), "{tsv}");
    let csv = csv::csv(&record);
    let columns: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
    assert!(columns.len() == 19 && columns.iter().all(|count| *count == columns[0]), "{csv}");

    let alone = DbRecord { cells: record.cells[..2].to_vec(), ..record.clone() };
    let text = report::classic(&alone);
    let line = "fillseq      : ";
    assert!(text.contains(line) && text.contains(" seconds 2000 operations; "), "{text}");
    assert!(text.contains("Microseconds per write:\nCount: 2000 "), "{text}");
    assert!(text.contains("directory settled") && text.contains("live peak"), "{text}");
    let json = serde_json::to_string(&record).expect("to JSON");
    let back: DbRecord = serde_json::from_str(&json).expect("from JSON");
    assert_eq!(csv::csv(&back), csv);
}

#[test]
fn a_step_reads_past_the_page_cache_where_that_can_be_done() {
    let steps_of = ["fillrandom", "readrandom:use-direct-reads", "readrandom"];
    let direct = |count: usize| {
        let steps = steps_of[..count].iter().map(|step| step.parse().expect("a step"));
        let spec = spec(EngineName::lithify(), &[]);
        let directory = tempfile::tempdir().expect("a directory");
        let data = directory.path().join("db");
        std::fs::create_dir(&data).expect("makes");
        measure::measure(&cell(DbSpec { benchmarks: steps.collect(), ..spec }), &data, &|_| {})
    };
    let all = match direct(3) {
        Ok(result) => result,
        Err(error) => {
            assert!(error.to_string().contains("direct_reads"), "{error}");
            return;
        }
    };
    assert_eq!(faults(&all), [""; 0]);
    let steps = steps(&all);
    assert_eq!(steps[1].spec.to_string(), "readrandom:use-direct-reads");
    // Opened again for either, with no block in memory: one reads them from the device.
    let from_device = |step: &StepResult| step.usage.process_io.read_device_bytes;
    if all.machine.file_system != "tmpfs" {
        assert!(from_device(steps[1]) > 100_000, "{}", from_device(steps[1]));
        assert_eq!(from_device(steps[2]), 0);
    }
    let options = |result: &DbResult| result.engine_options.to_string();
    assert!(options(&all).contains("direct_reads: false"), "{}", options(&all));
    let until_direct = direct(2).expect("measures");
    assert!(options(&until_direct).contains("direct_reads: true"), "{}", options(&until_direct));
}

#[test]
fn an_allocator_that_is_not_in_force_is_no_result() {
    let spec = DbSpec {
        allocator: Allocator::Jemalloc,
        ..spec(EngineName::model(), &[Benchmark::FillSeq])
    };
    let directory = tempfile::tempdir().expect("a directory");
    let error = measure::measure(&cell(spec), directory.path(), &|_| {}).expect_err("is refused");
    assert!(error.to_string().starts_with("allocator jemalloc is not in force"), "{error}");
}

/// Two engines with two ladders, three repeats and a control, all with the same figures but for
/// what `change` does to them.
fn made_up(change: &dyn Fn(&DbCell, &mut StepResult)) -> DbRecord {
    let benchmarks = [Benchmark::FillRandom, Benchmark::ReadRandom];
    let specs =
        [EngineName::lithify(), EngineName::model()].map(|engine| spec(engine, &benchmarks));
    let ladders = [ladder("none,none,lz4"), ladder("lz4")];
    let plan = DbPlan::new("made-up", &specs, &ladders, 3, Controls::ALL);
    let shape = run(spec(EngineName::model(), &benchmarks));
    let cells = plan.cells.iter().map(|cell| {
        let mut result = DbResult { cell: cell.clone(), hash: cell.hash(), ..shape.clone() };
        for step in &mut result.steps {
            if let lithify_lab::dbbench::spec::Step::Loop(step) = step {
                step.elapsed_s = 2.0;
                if let Some(seen) = &mut step.throughput {
                    seen.longest_gap_ms = 50.0;
                }
                change(cell, step);
            }
        }
        DbCellRecord { cell: cell.clone(), result: Some(result), failure: None }
    });
    let cells = cells.collect();
    DbRecord { schema: SCHEMA, plan, interrupted: false, cells }
}

#[test]
fn every_repeat_runs_every_ladder_with_every_engine() {
    let record = made_up(&|_, _| {});
    let ids: Vec<&str> = record.plan.cells.iter().map(|cell| cell.id.as_str()).collect();
    let first = [
        "driver",
        "lithify-none+none+lz4-r0",
        "model-none+none+lz4-r0",
        "lithify-none+none+lz4-control-r0",
        "model-none+none+lz4-control-r0",
        "lithify-lz4+lz4+lz4-r0",
        "model-lz4+lz4+lz4-r0",
        "lithify-lz4+lz4+lz4-control-r0",
        "model-lz4+lz4+lz4-control-r0",
        "model-none+none+lz4-r1",
    ];
    assert_eq!((&ids[..10], ids.len()), (&first[..], 25));
    let text = crate::text::<DbBench>(&record);
    for part in [
        ", codecs none,none,lz4; lz4,lz4,lz4",
        "fillrandom (step 1), codecs none,none,lz4: lithify against model",
        "readrandom (step 2), codecs lz4,lz4,lz4: lithify against model",
    ] {
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    }
    let csv = csv::csv(&record);
    assert!(csv.contains("\nlithify-lz4+lz4+lz4-r2,measure,lithify,lz4+lz4+lz4,2,1,fillrandom,"));
    assert!(csv.contains("\ndriver,driver,null,,0,1,fillrandom,"), "{csv}");
}

#[test]
fn controls_can_be_kept_to_the_first_ladders_and_repeats() {
    let specs = [EngineName::lithify(), EngineName::model()]
        .map(|engine| spec(engine, &[Benchmark::FillRandom]));
    let ladders = [ladder("none,none,lz4"), ladder("lz4")];
    let plan = |controls| DbPlan::new("controls", &specs, &ladders, 3, controls);
    let controls = |controls| -> Vec<String> {
        let cells = plan(controls).cells.into_iter();
        cells.map(|cell| cell.id).filter(|id| id.contains("control")).collect()
    };
    let of_first = controls(Controls { ladders: 1, repeats: 1 });
    assert_eq!(of_first, ["lithify-none+none+lz4-control-r0", "model-none+none+lz4-control-r0"]);
    assert_eq!(controls(Controls { ladders: 1, ..Controls::ALL }).len(), 6);
    assert_eq!(controls(Controls::ALL).len(), 12);
    assert_eq!(controls(Controls::NONE), [""; 0]);
    assert_eq!(plan(Controls { ladders: 1, repeats: 1 }).cells.len(), 1 + 12 + 2);
}

#[test]
fn missed_floors_come_first_the_farthest_at_the_top() {
    let held = crate::text::<DbBench>(&made_up(&|_, _| {}));
    let summary = held.lines().find(|line| line.contains("targets missed")).expect("is there");
    assert!(
        summary.starts_with("✓ Targets: 0 of ") && summary.contains(", 0 behind (n.s.), "),
        "{held}"
    );
    let record = made_up(&|cell, step| {
        let ours = cell.spec.engine == EngineName::lithify();
        let lz4 = cell.spec.settings.ladder() == ladder("lz4");
        match (ours, lz4, step.spec.benchmark) {
            // Slower every time, by a half.
            (true, true, Benchmark::ReadRandom) => step.elapsed_s *= 1.5,
            // Slower by a tenth, as it may be by itself.
            (true, false, Benchmark::ReadRandom) if cell.role == Role::Measure => {
                step.elapsed_s *= 1.1;
            }
            (true, false, Benchmark::ReadRandom) => {
                step.elapsed_s *= [0.8, 1.4, 0.8][cell.repeat as usize];
            }
            // One long gap in one repeat.
            (true, false, Benchmark::FillRandom) if cell.repeat == 1 => {
                step.throughput.as_mut().expect("wrote").longest_gap_ms = 250.0;
            }
            // Of the other's there is none.
            (false, true, Benchmark::FillRandom) => {
                step.throughput.as_mut().expect("wrote").gap_windows = 0;
            }
            _ => {}
        }
        if let (true, true, Some(seen)) = (ours, lz4, &mut step.throughput) {
            (seen.gap_windows, seen.windows) = (1, 20);
        }
    });
    let text = crate::text::<DbBench>(&record);
    assert_eq!(text, crate::text::<DbBench>(&record));
    let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part} in:\n{text}"));
    let counts = place("Targets of the first engine: 3 of ");
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let rows: Vec<String> = text[counts..].lines().skip(3).take(4).map(words).collect();
    for (row, parts) in rows.iter().zip([
        // Shares are judged by their difference: a base of zero hides nothing.
        ["MISSED infinite", "fillrandom (step 1), lz4,lz4,lz4 gap share %"],
        ["MISSED 2.500 x", "fillrandom (step 1), none,none,lz4 longest gap ms"],
        ["MISSED 1.500 x", "readrandom (step 2), lz4,lz4,lz4 throughput ops/s"],
        ["n.s. 1.100 x", "readrandom (step 2), none,none,lz4 throughput ops/s"],
    ]) {
        assert!(parts.iter().all(|part| row.contains(part)), "{parts:?}: {row}\n{text}");
    }
    assert!(text.contains(" model: "), "the base is named: {text}");
    assert!(counts < place("fillrandom (step 1), codecs none,none,lz4"), "before the tables");
}

#[test]
fn a_run_is_shown_beside_the_original_and_counts_must_be_equal() {
    let record = made_up(&|_, _| {});
    let printed: Vec<String> =
        record.cells[1].result.iter().flat_map(DbResult::loops).map(report::result_line).collect();
    let printed = format!("Initializing RocksDB Options : x\n{}\n", printed.join("\nCount: 3\n"));
    let same = beside(&record, &printed).expect("the same steps");
    assert_eq!(same.differences, [""; 0]);
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let rows: Vec<String> = same.text.lines().map(words).collect();
    assert_eq!(rows[2..], ["fillrandom 2000 2000 1.00 - -", "readrandom 1500 1500 1.00 567 567"]);
    let other = beside(&record, &printed.replace("(567 of", "(566 of")).expect("the same steps");
    let told = "readrandom: 567 found in 3000 operations, by the original 566 in 3000";
    assert_eq!(other.differences, [told]);
    let error =
        beside(&record, &printed.replace("readrandom ", "seekrandom ")).expect_err("others");
    assert!(error.ends_with("fillrandom,seekrandom instead of fillrandom,readrandom"), "{error}");
}
