//! The command that measures what a record holds, as far as the record tells.
//!
//! Records keep what was measured, not what was typed: what is at its default, or chosen by what
//! happened to be on the machine, is left out or named.

use std::fmt::Display;

use super::AnyRecord;
use crate::adapter::EngineName;
use crate::amplification::{AmplificationRecord, Workload};
use crate::chunks::plan::ChunkPlan;
use crate::dbbench::runner::{DbPlan, DbRecord};
use crate::dbbench::spec::Role;
use crate::durability::DurabilityRecord;
use crate::experiment::Ladder;
use crate::linkbench::plan::Plan;
use crate::loop_experiment::plan::LoopPlan;
use crate::overwrite::OverwriteRecord;
use crate::page_store::{PAGE_BYTES, PagesRecord};
use crate::run::allocator::Allocator;
use crate::tables::plan::TablePlan;

/// The command; nothing for figures that were kept without the rest of their record.
pub fn command(record: &AnyRecord) -> Option<String> {
    let command = match record {
        AnyRecord::LinkBench(record) => of_linkbench(&record.plan),
        AnyRecord::Loops(record) => of_loops(&record.plan),
        AnyRecord::Db(record) => of_db(record)?,
        AnyRecord::Overwrite(record) => of_overwrite(record),
        AnyRecord::Tables(run) => of_tables(&run.plan),
        AnyRecord::Chunks(run) => of_chunks(&run.plan),
        AnyRecord::Amplification(record) => of_amplification(record)?,
        AnyRecord::Durability(record) => of_durability(record),
        AnyRecord::Pages(record) => of_pages(record),
        AnyRecord::Digest(_) => return None,
    };
    Some(command.0)
}

/// A command on its way.
struct Line(String);

impl Line {
    fn new(command: &str) -> Line {
        Line(format!("lithify bench {command}"))
    }

    /// Of an experiment at a scale.
    fn of_run(experiment: &str, scale: &str) -> Line {
        Line::new(&format!("run {experiment}")).with("--scale", scale)
    }

    fn with(mut self, flag: &str, value: impl Display) -> Line {
        self.0.push_str(&format!(" {flag} {value}"));
        self
    }

    /// With a value, unless it is what the command takes by itself.
    fn unless<T: Display + PartialEq>(self, default: Option<T>, flag: &str, value: T) -> Line {
        if default.as_ref() == Some(&value) { self } else { self.with(flag, value) }
    }

    fn with_flag(mut self, flag: &str) -> Line {
        self.0.push_str(&format!(" {flag}"));
        self
    }

    /// With a list, unless it is all that there are.
    fn with_of<T: Display>(self, all: usize, flag: &str, values: &[T]) -> Line {
        if values.len() == all { self } else { self.with(flag, joined(values)) }
    }
}

fn joined<T: Display>(values: &[T]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// The engine that a run was restricted to, which its name ends with then.
fn only_engine<'a>(name: &str, engines: &'a [EngineName]) -> Option<&'a EngineName> {
    match engines {
        [engine] if name.ends_with(&format!("-{engine}")) => Some(engine),
        _ => None,
    }
}

fn of_linkbench(plan: &Plan) -> Line {
    let declared = plan.declared_scale();
    let belonging =
        |claims| plan.experiment.arms.iter().filter(move |arm| arm.belongs_to(claims)).count();
    let arms = belonging(declared.and_then(|scale| scale.claims));
    let mut line = Line::of_run(&plan.experiment.name, &plan.scale)
        .with_of(arms, "--arms", &plan.arms)
        .unless(declared.map(|scale| scale.repeats), "--repeats", plan.repeats);
    if plan.engine != EngineName::lithify() {
        line = line.with("--engine", &plan.engine);
    }
    let Some(cell) = plan.cells.iter().find(|cell| cell.arm != "driver") else { return line };
    line = line.unless(declared.map(|scale| scale.nodes), "--nodes", cell.nodes).unless(
        declared.map(|scale| scale.query_seconds),
        "--seconds",
        cell.query_seconds,
    );
    match declared.is_some_and(|scale| scale.clients == cell.clients) {
        true => line,
        false => line.with("--clients", joined(cell.client_counts())),
    }
}

fn of_loops(plan: &LoopPlan) -> Line {
    let declared = plan.experiment.scales.get(&plan.scale);
    let line = Line::of_run(&plan.experiment.name, &plan.scale)
        .with_of(plan.experiment.arms.len(), "--arms", &plan.arms)
        .unless(declared.map(|scale| scale.repeats), "--repeats", plan.sizes.repeats)
        .unless(declared.map(|scale| scale.test_seconds), "--seconds", plan.sizes.test_seconds)
        .unless(declared.map(|scale| scale.keys), "--keys", plan.sizes.keys);
    match only_engine(&plan.cells.name, &plan.engines) {
        Some(engine) => line.with("--engine", engine),
        None => line,
    }
}

fn of_tables(plan: &TablePlan) -> Line {
    let declared = plan.experiment.scales.get(&plan.scale);
    let line = Line::of_run(&plan.experiment.name, &plan.scale)
        .with_of(plan.experiment.arms.len(), "--arms", &plan.arms)
        .unless(declared.map(|scale| scale.repeats), "--repeats", plan.sizes.repeats);
    match only_engine(&plan.name, &plan.engines) {
        Some(engine) => line.with("--engine", engine),
        None => line,
    }
}

fn of_chunks(plan: &ChunkPlan) -> Line {
    let declared = plan.experiment.scales.get(&plan.scale);
    let mut arms: Vec<String> = Vec::new();
    for arm in plan.cells.iter().map(|cell| cell.arm().to_string()) {
        if !arms.contains(&arm) {
            arms.push(arm);
        }
    }
    let line = Line::of_run(&plan.experiment.name, &plan.scale)
        .with_of(plan.experiment.arms().len(), "--arms", &arms)
        .unless(declared.map(|scale| scale.repeats), "--repeats", plan.sizes.repeats)
        .unless(Some(plan.experiment.workload.text.clone()), "--text", plan.text.clone());
    match only_engine(&plan.name, &plan.engines) {
        Some(engine) => line.with("--engine", engine),
        None => line,
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
    for ladder in plan.ladders() {
        line = line.with("--compression", ladder);
    }
    Some(line.unless(Some(Allocator::System), "--allocator", spec.allocator))
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

fn of_overwrite(record: &OverwriteRecord) -> Line {
    let spec = &record.result.as_ref().unwrap_or(&record.driver).spec;
    Line::new("overwrite")
        .with("--engine", &spec.engine)
        .with("--keys", spec.keys)
        .with("--seconds", spec.seconds)
        .with("--clients", spec.clients)
        .with("--compression", spec.settings.ladder())
}

fn of_amplification(record: &AmplificationRecord) -> Option<Line> {
    let spec = |wanted: fn(Workload) -> bool| {
        record.cells.iter().map(|cell| &cell.spec).find(|spec| wanted(spec.workload))
    };
    let of_keys = spec(|workload| workload != Workload::LinkBench);
    let first = of_keys.or(spec(|_| true))?;
    let (mut engines, mut workloads) = (Vec::new(), Vec::new());
    for spec in record.cells.iter().map(|cell| &cell.spec) {
        let (engine, workload) = (spec.engine.name(), spec.workload.name());
        if !engines.contains(&engine) {
            engines.push(engine);
        }
        if !workloads.contains(&workload) {
            workloads.push(workload);
        }
    }
    let line = Line::new("amp").with("--engines", joined(&engines)).with_of(
        Workload::ALL.len(),
        "--workloads",
        &workloads,
    );
    let line = match of_keys {
        Some(spec) => line.with("--keys", spec.rows),
        None => line,
    };
    Some(
        line.with("--writes-percent", first.writes_percent)
            .with("--queries", first.queries)
            .with("--memory-budget-mib", first.settings.memory_budget_bytes >> 20)
            .with("--compression", first.settings.ladder()),
    )
}

fn of_durability(record: &DurabilityRecord) -> Line {
    let spec = &record.spec;
    let line = Line::new("durability")
        .with("--kills", spec.kills)
        .with("--cuts", spec.cuts)
        .with("--seconds", spec.seconds)
        .with("--writers", joined(&spec.writers));
    match spec.memory_limit_mib {
        Some(limit) => line.with("--memory-limit-mib", limit),
        None => line,
    }
}

fn of_pages(record: &PagesRecord) -> Line {
    let spec = &record.spec;
    Line::new("pages")
        .with("--file-systems", joined(&spec.file_systems))
        .with("--layouts", joined(&spec.layouts))
        .with("--codec", spec.codec)
        .with("--size-mib", (spec.pages * PAGE_BYTES as u64) >> 20)
        .with("--seconds", spec.seconds)
        .with("--repeats", spec.repeats)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linkbench::sample;

    #[test]
    fn only_what_differs_is_named() {
        let mut plan = sample::plan(&EngineName::lithify(), 3);
        let whole = of_linkbench(&plan).0;
        assert!(whole.starts_with("lithify bench run zlib-vs-zstd --scale smoke"), "{whole}");
        assert!(!whole.contains("--repeats") && !whole.contains("--engine"), "{whole}");
        plan.repeats = 2;
        plan.engine = EngineName::null();
        plan.arms.truncate(1);
        let arms = format!(" --arms {} --repeats 2 --engine null", plan.arms[0]);
        assert!(of_linkbench(&plan).0.contains(&arms), "{}", of_linkbench(&plan).0);
        let loops =
            crate::loop_experiment::sample::record(&crate::loop_experiment::sample::plan(3));
        let db = of_db(&loops.run).expect("has cells").0;
        assert!(db.starts_with("lithify bench db --engine "), "{db}");
    }
}
