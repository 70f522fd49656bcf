//! The figures as comma-separated values, nothing rounded away: one line per cell and test, and one
//! per cell, test and level.

use std::fmt::Write as _;

use super::LoopRecord;
use super::figures::{BESIDE, Figures, column_value, jobs as jobs_of};
use super::jobs::LevelRole;
use super::plan::cell_id;
use crate::adapter::EngineName;
use crate::dbbench::figures::Measured;
use crate::dbbench::oracle;
use crate::dbbench::spec::DbResult;
use crate::experiment::loops::LoopColumn;

/// The columns of the report that follow the published ones.
const MORE: [LoopColumn; 5] = [
    LoopColumn::FlushPerIngest,
    LoopColumn::JobLevel0,
    LoopColumn::JobBase,
    LoopColumn::JobNext,
    LoopColumn::JobDeeper,
];

fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{value:.6}"))
}

/// Every measured cell with its engine and arm; void ones too.
fn cells(record: &LoopRecord) -> Vec<(&EngineName, &str, &DbResult)> {
    let mut cells = Vec::new();
    for result in record.run.cells.iter().filter_map(|cell| cell.result.as_ref()) {
        for (engine, arm) in arms(record) {
            if cell_id(engine, arm, result.cell.repeat) == result.cell.id {
                cells.push((engine, arm, result));
            }
        }
    }
    cells
}

fn arms(record: &LoopRecord) -> impl Iterator<Item = (&EngineName, &str)> {
    let arms = &record.plan.arms;
    record.plan.engines.iter().flat_map(move |engine| arms.iter().map(move |arm| (engine, &**arm)))
}

/// One line per cell and test.
pub fn figures(record: &LoopRecord) -> String {
    let mut text = "experiment,scale,engine,arm,repeat,test,valid,operations,seconds".to_owned();
    for column in LoopColumn::TABLE.iter().chain(&MORE) {
        let _ = write!(text, ",{}", column.name().replace(' ', "_"));
    }
    for (name, _) in BESIDE {
        let _ = write!(text, ",{}", name.replace(' ', "_"));
    }
    text.push_str(",foreign_cpu_us\n");
    let figures = Figures::of(record);
    for (engine, arm, result) in cells(record) {
        let valid = oracle::faults(result).is_empty();
        for test in &record.plan.experiment.workload.tests {
            let Some(Measured { step, driver }) = figures.test(result, *test) else { continue };
            let _ = write!(
                text,
                "{},{},{engine},{arm},{},{test},{valid},{},{:.6}",
                record.plan.experiment.name,
                record.plan.scale,
                result.cell.repeat,
                step.operations,
                step.elapsed_s,
            );
            let measured = Measured { step, driver };
            for column in LoopColumn::TABLE.iter().chain(&MORE) {
                let _ = write!(text, ",{}", number(column_value(&measured, *column)));
            }
            for (_, value) in BESIDE {
                let _ = write!(text, ",{}", number(value(&measured)));
            }
            let _ = writeln!(text, ",{}", step.usage.foreign_cpu_us);
        }
    }
    text
}

/// One line per cell, test and level that jobs wrote into, or that has files when the clients end.
pub fn jobs(record: &LoopRecord) -> String {
    let mut text =
        "engine,arm,repeat,test,level,role,codec,files,stored_bytes,jobs,wall_us,cpu_us,\
        read_bytes,written_bytes\n"
            .to_owned();
    let figures = Figures::of(record);
    for (engine, arm, result) in cells(record) {
        for test in &record.plan.experiment.workload.tests {
            let Some(Measured { step, .. }) = figures.test(result, *test) else { continue };
            let jobs = jobs_of(step);
            for level in &step.statistics.levels {
                let of_level = jobs.levels.get(&level.level);
                if of_level.is_none() && level.files == 0 {
                    continue;
                }
                let work = of_level.copied().unwrap_or_default();
                let _ = writeln!(
                    text,
                    "{engine},{arm},{},{test},{},{},\"{}\",{},{},{},{},{},{},{}",
                    result.cell.repeat,
                    level.level,
                    jobs.role(level.level).map_or("", LevelRole::name),
                    level.codec,
                    level.files,
                    level.stored_bytes,
                    work.jobs,
                    work.wall_us,
                    work.cpu_us,
                    work.read_bytes,
                    work.written_bytes,
                );
            }
        }
    }
    text
}
