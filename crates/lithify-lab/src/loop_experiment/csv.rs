//! The figures as comma-separated values, nothing rounded away: one line per cell and test, and one
//! per cell, test and level.

use lithify_report::csv::{Columns, Fixed};

use super::LoopRecord;
use super::figures::{BESIDE, Figures, column_value, jobs as jobs_of};
use super::jobs::{LevelJobs, LevelRole};
use super::plan::cell_id;
use crate::adapter::{EngineName, LevelStatistics};
use crate::dbbench::figures::Measured;
use crate::dbbench::oracle;
use crate::dbbench::spec::DbResult;
use crate::experiment::loops::LoopColumn;
use crate::keyvalue::benchmark::Benchmark;

/// The columns of the report that follow the published ones.
const MORE: [LoopColumn; 5] = [
    LoopColumn::FlushPerIngest,
    LoopColumn::JobLevel0,
    LoopColumn::JobBase,
    LoopColumn::JobNext,
    LoopColumn::JobDeeper,
];

/// A test of a cell.
struct TestRow<'a> {
    engine: &'a EngineName,
    arm: &'a str,
    result: &'a DbResult,
    test: Benchmark,
    measured: Measured<'a>,
}

/// A level of a cell, after a test.
struct LevelRow<'a> {
    test: &'a TestRow<'a>,
    level: &'a LevelStatistics,
    role: Option<LevelRole>,
    work: LevelJobs,
}

/// Every test of every measured cell; void ones too.
fn tests(record: &LoopRecord) -> Vec<TestRow<'_>> {
    let figures = Figures::of(record);
    let mut rows = Vec::new();
    for result in record.run.cells.iter().filter_map(|cell| cell.result.as_ref()) {
        let (id, repeat) = (&result.cell.id, result.cell.repeat);
        for (engine, arm) in
            arms(record).filter(|(engine, arm)| cell_id(engine, arm, repeat) == *id)
        {
            let of_test = |test: &Benchmark| {
                let measured = figures.test(result, *test)?;
                Some(TestRow { engine, arm, result, test: *test, measured })
            };
            rows.extend(record.plan.experiment.workload.tests.iter().filter_map(of_test));
        }
    }
    rows
}

fn arms(record: &LoopRecord) -> impl Iterator<Item = (&EngineName, &str)> {
    let arms = &record.plan.arms;
    record.plan.engines.iter().flat_map(move |engine| arms.iter().map(move |arm| (engine, &**arm)))
}

/// One line per cell and test.
pub fn figures(record: &LoopRecord) -> String {
    let fixed = |value: f64| Fixed(value, 6);
    let mut columns = Columns::new()
        .with("experiment", |_: &TestRow<'_>| record.plan.experiment.name.clone())
        .with("scale", |_| record.plan.scale.clone())
        .with("engine", |row| row.engine.to_string())
        .with("arm", |row| row.arm.to_owned())
        .with("repeat", |row| row.result.cell.repeat)
        .with("test", |row| row.test.to_string())
        .with("valid", |row| oracle::faults(row.result).is_empty())
        .with("operations", |row| row.measured.step.operations)
        .with("seconds", |row| Fixed(row.measured.step.elapsed_s, 6));
    for column in LoopColumn::TABLE.iter().chain(&MORE) {
        let value = move |row: &TestRow<'_>| column_value(&row.measured, *column).map(fixed);
        columns = columns.with(column.name().replace(' ', "_"), value);
    }
    for (name, value) in BESIDE {
        columns = columns.with(name.replace(' ', "_"), move |row| value(&row.measured).map(fixed));
    }
    columns.with("foreign_cpu_us", |row| row.measured.step.usage.foreign_cpu_us).csv(&tests(record))
}

/// One line per cell, test and level that jobs wrote into, or that has files when the clients end.
pub fn jobs(record: &LoopRecord) -> String {
    let tests = tests(record);
    let rows: Vec<LevelRow<'_>> = tests.iter().flat_map(levels).collect();
    Columns::new()
        .with("engine", |row: &LevelRow<'_>| row.test.engine.to_string())
        .with("arm", |row| row.test.arm.to_owned())
        .with("repeat", |row| row.test.result.cell.repeat)
        .with("test", |row| row.test.test.to_string())
        .with("level", |row| row.level.level)
        .with("role", |row| row.role.map(LevelRole::name))
        .with("codec", |row| row.level.codec.clone())
        .with("files", |row| row.level.files)
        .with("stored_bytes", |row| row.level.stored_bytes)
        .with("jobs", |row| row.work.jobs)
        .with("wall_us", |row| row.work.wall_us)
        .with("cpu_us", |row| row.work.cpu_us)
        .with("read_bytes", |row| row.work.read_bytes)
        .with("written_bytes", |row| row.work.written_bytes)
        .csv(&rows)
}

fn levels<'a>(test: &'a TestRow<'a>) -> Vec<LevelRow<'a>> {
    let step = test.measured.step;
    let jobs = jobs_of(step);
    let row = |level: &'a LevelStatistics| {
        let work = jobs.levels.get(&level.level).copied();
        let shown = work.is_some() || level.files > 0;
        let (role, work) = (jobs.role(level.level), work.unwrap_or_default());
        shown.then_some(LevelRow { test, level, role, work })
    };
    step.statistics.levels.iter().filter_map(row).collect()
}
