//! `lithify bench run` of the kinds of workload whose cells run alike: tables and chunks.

use std::path::Path;

use lithify_lab::chunks::kind::Chunks;
use lithify_lab::chunks::plan::{ChunkChoice, ChunkPlan};
use lithify_lab::datasets::TextData;
use lithify_lab::experiment::{ChunkExperiment, TableExperiment};
use lithify_lab::kind::Kind;
use lithify_lab::run::RunError;
use lithify_lab::run::cells::{Cell, PlanRunner, Run, RunPlan, is_measured};
use lithify_lab::run::estimate::PlannedCell;
use lithify_lab::run::process::Program;
use lithify_lab::run::progress::Announcer;
use lithify_lab::run::store::{ReportFile, write_files};
use lithify_lab::tables::kind::Tables;
use lithify_lab::tables::plan::{TableChoice, TablePlan};

use super::process::{incomplete, this_program};
use super::ready::{How, Measured, Planned, Ready, stopped};
use super::run::RunArguments;
use super::screen::shown;
use crate::fault::Fault;

/// An experiment over text in chunks with the options of the command line.
pub fn prepare_chunks(
    arguments: &RunArguments,
    experiment: &ChunkExperiment,
) -> Result<Box<dyn Ready>, Fault> {
    refuse_foreign(arguments)?;
    let program = this_program(Chunks::NAME)?;
    let choice = ChunkChoice {
        scale: Some(arguments.scale.clone()),
        arms: arguments.arms.clone(),
        engine: arguments.engine.clone(),
        repeats: arguments.repeats,
        text: arguments.text.clone().map(TextData::from),
    };
    let build = program.build().map_err(Fault::failure)?;
    let plan = ChunkPlan::expand(experiment, &choice, &build).map_err(Fault::usage)?;
    let (text, files) = (shown::<Chunks>, Chunks::files);
    Ok(Box::new(CellRun { plan, program, text, files }))
}

/// An experiment over tables with the options of the command line.
pub fn prepare_tables(
    arguments: &RunArguments,
    experiment: &TableExperiment,
) -> Result<Box<dyn Ready>, Fault> {
    refuse_foreign(arguments)?;
    let program = this_program(Tables::NAME)?;
    let choice = TableChoice {
        scale: Some(arguments.scale.clone()),
        arms: arguments.arms.clone(),
        tables: arguments.tables.clone(),
        engine: arguments.engine.clone(),
        repeats: arguments.repeats,
    };
    let build = program.build().map_err(Fault::failure)?;
    let plan = TablePlan::expand(experiment, &choice, &build).map_err(Fault::usage)?;
    let (text, files) = (shown::<Tables>, Tables::files);
    Ok(Box::new(CellRun { plan, program, text, files }))
}

/// Refuses options that only other kinds of workload have.
fn refuse_foreign(arguments: &RunArguments) -> Result<(), Fault> {
    let foreign = [
        ("--nodes", arguments.nodes.is_some(), "linkbench"),
        ("--clients", arguments.clients.is_some(), "linkbench"),
        ("--keys", arguments.keys.is_some(), "dbbench"),
        ("--seconds", arguments.seconds.is_some(), "linkbench and dbbench"),
    ];
    match foreign.iter().find(|(_, given, _)| *given) {
        Some((flag, _, kinds)) => Err(Fault::usage(format!("{flag} is of {kinds}"))),
        None => Ok(()),
    }
}

/// A plan with what makes its report.
struct CellRun<P: RunPlan> {
    plan: P,
    program: Program,
    text: fn(&Run<P>) -> String,
    files: fn(&Run<P>) -> Result<Vec<ReportFile>, RunError>,
}

impl<P: RunPlan> Ready for CellRun<P> {
    fn name(&self) -> String {
        self.plan.name().to_owned()
    }

    fn scale(&self) -> Option<&str> {
        Some(self.plan.scale())
    }

    fn skipped(&self) -> &[String] {
        self.plan.skipped()
    }

    fn cells(&self, results: &Path) -> Vec<Planned> {
        let planned = |cell: &P::Cell| Planned {
            is_measured: is_measured(results, self.plan.name(), cell),
            cell: PlannedCell {
                id: cell.id().to_owned(),
                engine: P::engine(cell).to_string(),
                effort: cell.effort(),
            },
        };
        self.plan.cells().iter().map(planned).collect()
    }

    fn disk_bytes(&self) -> u64 {
        self.plan.cells().iter().map(P::needed_bytes).max().unwrap_or(0)
    }

    fn measure(&self, how: &How<'_>, announcer: &mut dyn Announcer) -> Result<Measured, Fault> {
        let runner = PlanRunner {
            plan: &self.plan,
            program: self.program.clone(),
            results: how.results,
            data: how.data,
            fresh: how.fresh,
            interrupt: how.interrupt,
        };
        let run = runner.run(announcer).map_err(Fault::failure)?;
        let (valid, cells) = (run.valid_cells(), self.plan.cells().len());
        if run.entries.interrupted || how.is_stopped() {
            return Err(stopped(self, how.results));
        }
        let files = (self.files)(&run).map_err(Fault::failure)?;
        let files = write_files(how.results, &files).map_err(Fault::failure)?;
        let text = (self.text)(&run);
        let fault = (!run.is_complete()).then(|| match cells - valid {
            0 => Fault::failure(run.problems().join("; ")),
            missing => incomplete(missing, cells),
        });
        Ok(Measured { text, files, fault })
    }
}
