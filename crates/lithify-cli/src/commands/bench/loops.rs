//! `lithify bench run` of an experiment over the loops of the classic key-value benchmark.

use std::path::Path;

use lithify_lab::adapter::provider::Content;
use lithify_lab::dbbench::runner::{Runner, needed_bytes};
use lithify_lab::experiment::LoopExperiment;
use lithify_lab::kind::Kind;
use lithify_lab::linkbench::plan::engines_here;
use lithify_lab::loop_experiment::kind::LoopExperiments;
use lithify_lab::loop_experiment::plan::{LoopChoice, LoopPlan};
use lithify_lab::loop_experiment::{LoopRecord, write_plan};
use lithify_lab::run::process::Program;
use lithify_lab::run::progress::Announcer;
use lithify_lab::run::store::write_files;

use super::process::{incomplete, this_program};
use super::ready::{How, Measured, Planned, Ready, stopped};
use super::run::RunArguments;
use super::screen::shown;
use crate::fault::Fault;

/// Such an experiment with the options of the command line.
pub fn prepare(
    arguments: &RunArguments,
    experiment: &LoopExperiment,
) -> Result<Box<dyn Ready>, Fault> {
    if arguments.nodes.is_some() {
        return Err(Fault::usage("--nodes is of linkbench; the database of dbbench has --keys"));
    }
    if arguments.clients.is_some() {
        return Err(Fault::usage("--clients is of linkbench"));
    }
    let choice = LoopChoice {
        scale: Some(arguments.scale.clone()),
        arms: arguments.arms.clone(),
        engine: arguments.engine.clone(),
        repeats: arguments.repeats,
        test_seconds: arguments.seconds,
        keys: arguments.keys,
    };
    let (engines, skipped) =
        engines_here(&experiment.workload.engines, choice.engine.as_ref(), Content::Keys)
            .map_err(Fault::usage)?;
    let program = this_program(LoopExperiments::NAME)?;
    let build = program.build().map_err(Fault::failure)?;
    let plan = LoopPlan::expand(experiment, &engines, &choice, &build).map_err(Fault::usage)?;
    Ok(Box::new(LoopRun { plan, program, skipped }))
}

struct LoopRun {
    plan: LoopPlan,
    program: Program,
    skipped: Vec<String>,
}

impl Ready for LoopRun {
    fn name(&self) -> String {
        self.plan.cells.name.clone()
    }

    fn scale(&self) -> Option<&str> {
        Some(&self.plan.scale)
    }

    fn skipped(&self) -> &[String] {
        &self.skipped
    }

    fn cells(&self, results: &Path) -> Vec<Planned> {
        super::db::planned(&self.plan.cells, results)
    }

    fn disk_bytes(&self) -> u64 {
        self.plan.cells.cells.iter().map(|cell| needed_bytes(&cell.spec)).max().unwrap_or(0)
    }

    fn measure(&self, how: &How<'_>, announcer: &mut dyn Announcer) -> Result<Measured, Fault> {
        let runner = Runner {
            plan: &self.plan.cells,
            program: self.program.clone(),
            results: how.results,
            data: how.data,
            kept: None,
            fresh: how.fresh,
            interrupt: how.interrupt,
        };
        write_plan(how.results, &self.plan).map_err(Fault::failure)?;
        let run = runner.run(announcer).map_err(Fault::failure)?;
        let record = LoopRecord { plan: self.plan.clone(), run };
        let (valid, cells) = (record.valid_cells(), self.plan.cells.cells.len());
        if record.run.interrupted || how.is_stopped() {
            return Err(stopped(self, how.results));
        }
        let files = LoopExperiments::files(&record).map_err(Fault::failure)?;
        let files = write_files(how.results, &files).map_err(Fault::failure)?;
        let fault = (!record.is_complete()).then(|| incomplete(cells - valid, cells));
        Ok(Measured { text: shown::<LoopExperiments>(&record), files, fault })
    }
}
