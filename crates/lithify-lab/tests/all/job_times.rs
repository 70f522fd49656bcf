//! Times of jobs by level: what the adapter says against the engine's ledger, and the experiment
//! over the loops from end to end, very small.

use lithify_lab::adapter::codec::Codec;
use lithify_lab::adapter::provider::Transactions;
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::{Engine, EngineName, EngineStatistics, WriteBatch};
use lithify_lab::dbbench::measure;
use lithify_lab::dbbench::plan::{DbCellRecord, DbRecord};
use lithify_lab::dbbench::spec::SCHEMA;
use lithify_lab::engines::registry::open_spaces;
use lithify_lab::experiment::loops::LoopColumn;
use lithify_lab::experiment::{BUILT_IN, LoopExperiment};
use lithify_lab::keyvalue::benchmark::Benchmark;
use lithify_lab::keyvalue::{SPACE, SPACES};
use lithify_lab::loop_experiment::figures::{Figures, column_value, jobs};
use lithify_lab::loop_experiment::kind::LoopExperiments;
use lithify_lab::loop_experiment::plan::{LoopChoice, LoopPlan};
use lithify_lab::loop_experiment::{LoopRecord, csv};

const KIB: u64 = 1 << 10;

fn settings() -> EngineSettings {
    EngineSettings {
        memory_budget_bytes: 16 * KIB * KIB,
        memtable_bytes: 2 * KIB * KIB,
        table_bytes: 64 * KIB,
        base_level_bytes: 64 * KIB,
        codec_level0: Some(Codec::NONE),
        codec_small: Codec::LZ4,
        ..EngineSettings::small()
    }
}

/// Flushes that the test asks for; memtables are too large to be flushed by themselves.
const FLUSHES: u64 = 30;

/// Writes random keys and flushes, again and again.
fn flush_often(engine: &dyn Engine) {
    let mut session = engine.session().expect("a session");
    let mut random = 1u64;
    for _ in 0..FLUSHES {
        let mut batch = WriteBatch::new();
        for _ in 0..300 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let key = format!("{:016x}", random >> 8);
            batch.put(SPACE, key.as_bytes(), format!("{key}{:0>84}", key).as_bytes());
        }
        session.write_batch(&batch).expect("is written");
        engine.flush().expect("is flushed");
    }
}

/// A figure of the ledger summed over the levels, as the engine's own JSON has it.
fn ledger(statistics: &EngineStatistics, name: &str) -> u64 {
    let levels = statistics.raw["levels"].as_array().expect("levels");
    levels.iter().map(|level| level[name].as_u64().expect(name)).sum()
}

#[test]
fn jobs_by_level_are_those_of_the_ledger() {
    let directory = tempfile::tempdir().expect("a directory");
    let lithify = EngineName::lithify();
    let engine =
        open_spaces(&lithify, directory.path(), &settings(), &SPACES, Transactions::Unneeded)
            .expect("opens");
    flush_often(&*engine);
    engine.wait_for_compaction().expect("comes to rest");
    let statistics = engine.statistics().expect("says");
    let levels = &statistics.levels;
    let sum = |figure: fn(&lithify_lab::adapter::LevelStatistics) -> u64| -> u64 {
        levels.iter().map(figure).sum()
    };
    assert_eq!(sum(|level| level.compaction_wall_us), ledger(&statistics, "wall"));
    for (level, raw) in levels.iter().zip(statistics.raw["levels"].as_array().expect("levels")) {
        let of = |name: &str| raw[name].as_u64().expect("a figure");
        assert_eq!(level.compaction_wall_us, of("wall"));
        assert_eq!(level.compaction_cpu_us, of("cpu") / 1000);
        assert_eq!(level.compactions, of("jobs"));
        assert!(level.compaction_wall_us > 0 || level.compactions == 0, "{level:?}");
    }
    // Every flush and every compaction is one job, or one move that rewrites nothing.
    let counters = statistics.raw["counters"].as_object().expect("counters");
    let compactions: u64 = counters
        .iter()
        .filter(|(name, _)| name.starts_with("compactions-"))
        .map(|(_, count)| count.as_u64().expect("a count"))
        .sum();
    assert!(compactions > 3, "{compactions}");
    let booked = sum(|level| level.compactions);
    assert_eq!(booked, ledger(&statistics, "jobs"));
    assert_eq!(booked + ledger(&statistics, "moves"), FLUSHES + compactions);
    // What they wrote is what was booked by cause, and their CPU is part of that of the causes.
    let by_cause = &statistics.written_bytes_by_cause;
    assert_eq!(
        sum(|level| level.compaction_write_bytes),
        by_cause["flush"] + by_cause["compaction"]
    );
    let cpu_by_cause = &statistics.cpu_us_by_cause;
    let cpu_us = cpu_by_cause["flush"] + cpu_by_cause["compaction"];
    let of_jobs_us = sum(|level| level.compaction_cpu_us);
    assert!(0 < of_jobs_us && of_jobs_us <= cpu_us, "{of_jobs_us} of {cpu_us}");
    // Codecs are those of the files.
    for level in levels.iter().filter(|level| level.files > 0) {
        let expected = match level.level {
            0 => "none",
            6 => "zstd-1",
            _ => "lz4",
        };
        // A table that was moved keeps the codec that it was written in.
        assert!(level.codec.contains(expected) || level.codec.contains(" in "), "{level:?}");
    }
    assert_eq!(levels[6].codec, "zstd-1");
    engine.close().expect("closes");
}

fn tiny(arms: &[&str]) -> LoopPlan {
    let (_, text) = BUILT_IN.iter().find(|(name, _)| *name == "compress-or-not").expect("is there");
    let mut experiment = LoopExperiment::parse("built in", text).expect("parses");
    if let Some(scale) = experiment.scales.get_mut("smoke") {
        (scale.memtable_kib, scale.table_kib) = (128, 64);
    }
    let choice = LoopChoice {
        arms: Some(arms.iter().map(|arm| (*arm).to_owned()).collect()),
        keys: Some(20_000),
        test_seconds: Some(1),
        ..LoopChoice::default()
    };
    LoopPlan::expand(&experiment, &[EngineName::lithify()], &choice, "test").expect("expands")
}

#[test]
fn the_experiment_runs_from_end_to_end() {
    let plan = tiny(&["none-upper", "lz4"]);
    let cells = plan.cells.cells.iter().map(|cell| {
        let directory = tempfile::tempdir().expect("a directory");
        let data = directory.path().join("db");
        std::fs::create_dir(&data).expect("makes");
        let result = measure::measure(cell, &data, &|_| {}).expect("measures");
        DbCellRecord { cell: cell.clone(), result: Some(result), failure: None }
    });
    let cells = cells.collect();
    let run = DbRecord { schema: SCHEMA, plan: plan.cells.clone(), interrupted: false, cells };
    let record = LoopRecord { plan, run };
    assert!(record.is_complete(), "{:?}", record.run.problems());
    let figures = Figures::of(&record);
    let lithify = EngineName::lithify();
    for arm in ["none-upper", "lz4"] {
        for test in [Benchmark::ReadWhileWriting, Benchmark::Overwrite] {
            let tests = figures.tests(&lithify, arm, test);
            let measured = tests.first().expect("was measured");
            let step = measured.step;
            let total = jobs(step).total();
            assert!(total.jobs > 0 && total.wall_us > 0, "{total:?}");
            let value = |column| column_value(measured, column).expect("has it");
            assert!(value(LoopColumn::WriteAmplification) > value(LoopColumn::FlushPerIngest));
            assert!(value(LoopColumn::JobLevel0) > 0.0);
            // Bytes that jobs wrote are those that the ledger has by cause.
            let grown = |cause: &str| {
                let of = |statistics: &EngineStatistics| {
                    statistics.written_bytes_by_cause.get(cause).copied().unwrap_or(0)
                };
                of(&step.statistics_settled) - of(&step.statistics_before)
            };
            assert_eq!(total.written_bytes, grown("flush") + grown("compaction"), "{arm} {test}");
        }
        let codec = if arm == "lz4" { "lz4" } else { "none" };
        let step = figures.tests(&lithify, arm, Benchmark::Overwrite)[0].step;
        for level in step.statistics.levels.iter().filter(|level| level.files > 0) {
            match level.level {
                0 => assert_eq!(level.codec, codec, "{arm}"),
                6 => assert_eq!(level.codec, "lz4", "{arm}"),
                _ => {}
            }
        }
    }
    let text = crate::text::<LoopExperiments>(&record);
    for part in [
        "overwrite on lithify",
        "wall s/job",
        "codecs as files say",
        "Published against measured",
        "stall% of readwhilewriting: 0 in every arm published; here",
    ] {
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    }
    assert_eq!(csv::figures(&record).lines().count(), 1 + 4);
}
