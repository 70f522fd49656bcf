//! Loops of db_bench as a kind of run.

use std::borrow::Cow;

use super::plan::{DbPlan, DbRecord, shortened};
use super::spec::{DEFAULT_BATCH_SIZE, DbCell, DbJob, DbSpec, Role, SCHEMA};
use super::{csv, measure, page};
use crate::adapter::allocator::Allocator;
use crate::adapter::codec::Ladder;
use crate::adapter::settings::DurabilityMode;
use crate::comparison::results::ResultSet;
use crate::keyvalue::entries::HALF;
use crate::kind::Kind;
use crate::kind::command::{Line, joined};
use crate::run::RunError;
use crate::run::cells::Entries;
use crate::run::progress::Listener;
use crate::run::store::ReportFile;
use lithify_report::Report;

/// Loops of the classic key-value benchmark, engine against engine.
pub struct DbBench;

impl Kind for DbBench {
    const NAME: &'static str = "dbbench";
    const SCHEMA: u32 = SCHEMA;
    type Plan = DbPlan;
    type Record = DbRecord;
    type Job = DbJob;

    fn measure(job: &DbJob, listener: Listener<'_>) -> Result<(), RunError> {
        measure::run_job(job, listener)
    }

    fn record(plan: DbPlan, entries: Entries<DbCell>) -> Result<DbRecord, RunError> {
        Ok(DbRecord::new(plan, entries))
    }

    fn fault(record: &DbRecord) -> Option<String> {
        match record.problems().len() {
            0 => None,
            count => Some(format!("{count} checks failed; see Checks in the report")),
        }
    }

    fn started_unix_s(record: &DbRecord) -> Option<u64> {
        record.results().map(|result| result.started_unix_s).min()
    }

    fn csv(record: &DbRecord) -> Option<String> {
        Some(csv::csv(record))
    }

    fn report(record: &DbRecord) -> Report {
        page::report(record)
    }

    fn results(record: &DbRecord) -> ResultSet {
        super::compared::results(record)
    }

    fn command(record: &DbRecord) -> Option<Line> {
        of_db(record)
    }

    fn name(record: &DbRecord) -> String {
        record.plan.name.clone()
    }

    fn kept(record: &DbRecord) -> Cow<'_, DbRecord> {
        Cow::Owned(shortened(record))
    }

    fn more_files(record: &DbRecord) -> Vec<ReportFile> {
        vec![(format!("{}.tsv", record.plan.name), csv::tsv(record))]
    }
}

fn of_db(record: &DbRecord) -> Option<Line> {
    let plan = &record.plan;
    let cell = plan.cells.iter().find(|cell| cell.role == Role::Measure)?;
    let (spec, repeats) = (&cell.spec, plan.cells.iter().map(|cell| cell.repeat + 1).max());
    let mut line = Line::new("db")
        .with("--engine", joined(&plan.engines))
        .with("--benchmarks", joined(&spec.benchmarks))
        .unless(Some(1_000_000), "--num", spec.num)
        .unless(Some(1), "--threads", spec.threads)
        .unless(Some(0), "--duration", spec.duration_seconds)
        .unless(Some(20), "--key-size", spec.key_bytes)
        .unless(Some(400), "--value-size", spec.value_bytes)
        .unless(Some(1), "--repeats", repeats.unwrap_or(1))
        .unless(Some(256), "--memory-budget-mib", spec.settings.memory_budget_bytes >> 20);
    line = with_controls(line, plan, repeats.unwrap_or(1));
    let settings = &spec.settings;
    line = line
        .unless(Some(16 << 20), "--write-buffer-size", settings.memtable_bytes)
        .unless(Some(16 << 20), "--target-file-size-base", settings.table_bytes)
        .unless(Some(64 << 20), "--max-bytes-for-level-base", settings.base_level_bytes)
        .unless(Some(8), "--max-bytes-for-level-multiplier", settings.fanout)
        .unless(Some(8192), "--block-size", settings.block_bytes)
        .unless(Some(2), "--max-background-jobs", settings.background_threads);
    line = with_shape(line, spec);
    for (name, value) in &settings.options {
        line = line.with("--option", format!("{name}={value}"));
    }
    for ladder in plan.ladders() {
        line = line.with("--compression", ladder);
    }
    Some(line.unless(Some(Allocator::System), "--allocator", spec.allocator))
}

/// With what is seldom changed of the operations and of how they are acknowledged.
fn with_shape(mut line: Line, spec: &DbSpec) -> Line {
    if let Some(reads) = spec.reads {
        line = line.with("--reads", reads);
    }
    if let Some(writes) = spec.writes {
        line = line.with("--writes", writes);
    }
    line = line
        .unless(Some(HALF), "--compression-ratio", spec.compression_ratio)
        .unless(Some(10), "--seek-nexts", spec.seek_nexts)
        .unless(Some(DEFAULT_BATCH_SIZE), "--batch-size", spec.batch_size)
        .unless(Some(0), "--benchmark-write-rate-limit", spec.write_rate_bytes_per_s)
        .unless(Some(301), "--seed", spec.seed);
    let flags = [
        (spec.fresh_values, "--fresh-values"),
        (spec.reverse_iterator, "--reverse-iterator"),
        (!spec.settle, "--no-settle"),
        (spec.settings.direct_reads, "--use-direct-reads"),
        (spec.settings.durability == DurabilityMode::Sync, "--sync"),
        (spec.settings.durability == DurabilityMode::None, "--disable-wal"),
    ];
    flags.iter().filter(|(is_set, _)| *is_set).fold(line, |line, (_, flag)| line.with_flag(flag))
}

/// With the controls of loops, and where they are not everywhere, how far they go.
fn with_controls(line: Line, plan: &DbPlan, repeats: u64) -> Line {
    let controls = || plan.cells.iter().filter(|cell| cell.role == Role::Control);
    let Some(of_repeats) = controls().map(|cell| cell.repeat + 1).max() else { return line };
    let is_controlled =
        |ladder: &Ladder| controls().any(|cell| cell.spec.settings.ladder() == *ladder);
    let ladders = plan.ladders();
    let of_ladders = ladders.iter().filter(|ladder| is_controlled(ladder)).count();
    line.with_flag("--control").unless(Some(ladders.len()), "--control-ladders", of_ladders).unless(
        Some(repeats),
        "--control-repeats",
        of_repeats,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::settings::EngineSettings;
    use crate::loop_experiment::sample;

    #[test]
    fn the_command_of_loops_names_their_engines() {
        let loops = sample::record(&sample::plan(3));
        let db = of_db(&loops.run).expect("has cells").0;
        assert!(db.starts_with("lithify bench db --engine "), "{db}");
    }

    #[test]
    fn the_command_of_loops_has_what_was_changed() {
        let loops = sample::record(&sample::plan(3));
        let spec = DbSpec {
            reads: Some(7),
            seed: 5,
            fresh_values: true,
            settle: false,
            compression_ratio: 0.25,
            settings: EngineSettings {
                durability: DurabilityMode::None,
                ..loops.run.plan.cells[0].spec.settings.clone()
            },
            ..loops.run.plan.cells[0].spec.clone()
        };
        let text = with_shape(Line::new("db"), &spec).0;
        for flag in [
            " --reads 7",
            " --seed 5",
            " --fresh-values",
            " --no-settle",
            " --compression-ratio 0.25",
            " --disable-wal",
        ] {
            assert!(text.contains(flag), "{flag} of {text}");
        }
        assert!(!text.contains("--sync") && !text.contains("--batch-size"), "{text}");
    }
}
