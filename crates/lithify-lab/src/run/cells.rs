//! Cells of any kind of workload: each in a process of its own, measured once, kept.
//!
//! Owns: what a kind of workload has to say about its cells ([`Cell`]), the loop over them
//! (`CellLoop`), the job that a measuring process is handed ([`Job`]), what became of the cells
//! ([`Entries`]), and reading a run of one kind again ([`read_run`]).
//!
//! Promises: a cell that was measured by the same description is not measured again; one that fails
//! costs its own row only; after an interrupt the child is gone and its data are removed.
//!
//! Threads: everything belongs to the caller's. Does not know what a cell measures.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::RunError;
use super::estimate::{Effort, Pace};
use super::file_system::{self, CellFileSystem, FileSystemRequest};
use super::process::{Answer, DataDirectory, JobFiles, Program, absolute, run_for_result};
use super::progress::Announcer;
use super::store::{Store, note_seconds};
use crate::adapter::EngineName;
use crate::experiment::WorkloadKind;

/// One measurement, described by everything that can change its figures.
pub trait Cell: Clone + Debug + PartialEq + Serialize + DeserializeOwned {
    /// What the measuring process leaves.
    type Outcome: Clone + Debug + Serialize + DeserializeOwned;

    /// Its name, unique in its run; also of its files.
    fn id(&self) -> &str;

    /// The file system that its data lie on, when it is not the one that is there.
    fn file_system(&self) -> Option<FileSystemRequest> {
        None
    }

    /// What is known of its time before it is measured.
    fn effort(&self) -> Effort {
        Effort::UNKNOWN
    }

    /// The cell that an outcome is of.
    fn of(outcome: &Self::Outcome) -> &Self;

    /// Why an outcome counts in no figure, line by line; nothing for one that counts.
    fn faults(outcome: &Self::Outcome) -> Vec<String>;

    /// What the display says of an outcome.
    fn summary(outcome: &Self::Outcome) -> String;
}

/// What the measuring process of a cell is handed on its standard input.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job<C> {
    /// What to do.
    pub cell: C,
    /// Where the engine's data are; exists.
    pub data_directory: PathBuf,
    /// Where the result goes.
    pub result_path: PathBuf,
    /// The process that waits for it.
    pub parent: u32,
    /// The file system of its own that the data are on.
    #[serde(default)]
    pub file_system: Option<CellFileSystem>,
}

/// A cell with what became of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Entry<C: Cell> {
    /// What was to be done.
    pub cell: C,
    /// The result, when it was measured.
    pub result: Option<C::Outcome>,
    /// Why there is none, when its process failed.
    pub failure: Option<String>,
}

impl<C: Cell> Entry<C> {
    pub(crate) fn new(cell: &C, outcome: Result<C::Outcome, String>) -> Entry<C> {
        let (result, failure) = match outcome {
            Ok(result) => (Some(result), None),
            Err(why) => (None, Some(why)),
        };
        Entry { cell: cell.clone(), result, failure }
    }
}

/// The cells of a run with what became of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Entries<C: Cell> {
    /// True when the run was stopped before its last cell.
    pub interrupted: bool,
    /// The cells in the order in which they ran.
    pub cells: Vec<Entry<C>>,
}

impl<C: Cell> Entries<C> {
    /// The results that count.
    pub fn results(&self) -> impl Iterator<Item = &C::Outcome> {
        let measured = self.cells.iter().filter_map(|entry| entry.result.as_ref());
        measured.filter(|result| C::faults(result).is_empty())
    }

    /// What is wrong with the cells, line by line.
    pub fn problems(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for entry in &self.cells {
            let id = entry.cell.id();
            lines.extend(entry.failure.iter().map(|why| format!("{id}: FAILED: {why}")));
            let faults = entry.result.iter().flat_map(C::faults);
            lines.extend(faults.map(|fault| format!("{id}: WRONG, row void: {fault}")));
        }
        lines
    }

    /// True when every one of `planned` cells was measured and counts.
    pub fn is_complete(&self, planned: usize) -> bool {
        !self.interrupted && self.results().count() == planned
    }
}

/// Where a cell keeps its data, and with which variables its process starts.
pub(crate) struct Place {
    /// Removed, or kept, when the cell is done.
    pub(crate) directory: DataDirectory,
    /// The directory in it that the engine gets.
    pub(crate) database: PathBuf,
    /// Variables beside those of this process.
    pub(crate) environment: Vec<(&'static str, &'static str)>,
}

/// How cells are run.
pub(crate) struct CellLoop<'a> {
    /// Where results are kept.
    pub(crate) store: &'a Store,
    /// The program that measures, with the arguments that make it the measuring process.
    pub(crate) program: &'a Program,
    /// Measure again what was measured.
    pub(crate) fresh: bool,
    /// Set to true, it stops the run.
    pub(crate) interrupt: &'a AtomicBool,
}

impl CellLoop<'_> {
    /// Measures every cell that was not measured yet, at the place that `place` makes for it.
    pub(crate) fn run<C: Cell>(
        &self,
        cells: &[C],
        place: &dyn Fn(&C) -> Result<Place, RunError>,
        announcer: &mut dyn Announcer,
    ) -> Result<Entries<C>, RunError> {
        let mut entries = Entries { interrupted: false, cells: Vec::new() };
        let mut pace = Pace::new(cells.iter().map(C::effort));
        for cell in cells {
            let done = match self.interrupt.load(Ordering::Relaxed) {
                true => None,
                false => self.cell(cell, place, &mut pace, announcer)?,
            };
            match done {
                Some(done) => entries.cells.push(done),
                None => {
                    entries.interrupted = true;
                    break;
                }
            }
        }
        Ok(entries)
    }

    /// Finds or measures one cell; `None` when it was interrupted.
    fn cell<C: Cell>(
        &self,
        cell: &C,
        place: &dyn Fn(&C) -> Result<Place, RunError>,
        pace: &mut Pace,
        announcer: &mut dyn Announcer,
    ) -> Result<Option<Entry<C>>, RunError> {
        let id = cell.id();
        let result_path = absolute(&result_path(self.store.directory(), cell))?;
        if let Some(result) = find(&result_path, cell).filter(|_| !self.fresh) {
            pace.skip(&cell.effort());
            announcer.say(&format!("{id}: measured already, kept"));
            announcer.done(id, None);
            return Ok(Some(Entry::new(cell, Ok(result))));
        }
        announcer.begin(&format!("cell {} {id}{}", pace.position(), pace.rest()));
        let began = Instant::now();
        let Place { mut directory, mut database, environment } = place(cell)?;
        if let Err(why) = directory.mount(cell.file_system().as_ref()) {
            pace.skip(&cell.effort());
            announcer.end(&format!("{id}: failed: {why}"));
            return Ok(Some(Entry::new(cell, Err(why.to_string()))));
        }
        let file_system = directory.file_system().cloned();
        if file_system.is_some() {
            database = directory.engine_directory()?;
        }
        let job = Job {
            cell: cell.clone(),
            data_directory: database,
            result_path: result_path.clone(),
            parent: std::process::id(),
            file_system,
        };
        let log_path = self.store.directory().join(format!("{id}.log"));
        let files = JobFiles { result: &result_path, log: &log_path };
        let mut program = self.program.clone();
        program.environment.extend(environment);
        let mut progress = |line: &_| announcer.progress(line);
        let answer = run_for_result(&program, &job, &files, self.interrupt, &mut progress)?;
        drop(directory);
        let seconds = began.elapsed().as_secs_f64();
        pace.measured(&cell.effort(), seconds);
        let outcome = match answer {
            Answer::Interrupted => {
                announcer.end(&format!("{id}: stopped"));
                return Ok(None);
            }
            Answer::Failed(why) => {
                announcer.end(&format!("{id}: failed after {seconds:.0} s: {why}"));
                Err(why)
            }
            Answer::Result(result) => {
                let summary = C::summary(&result);
                announcer.end(&format!("{id}: {summary}, {seconds:.0} s in all"));
                Ok(*result)
            }
        };
        if outcome.is_ok() {
            note_seconds(self.store.directory(), id, seconds);
        }
        announcer.done(id, Some(seconds));
        Ok(Some(Entry::new(cell, outcome)))
    }
}

fn result_path(directory: &Path, cell: &impl Cell) -> PathBuf {
    directory.join(format!("{}.json", cell.id()))
}

/// Whether a cell of the run `name` was measured by the same program with the same settings.
pub fn is_measured<C: Cell>(results: &Path, name: &str, cell: &C) -> bool {
    find(&result_path(&results.join("runs").join(name), cell), cell).is_some()
}

/// The result of an earlier run of the same program with the same settings.
pub(crate) fn find<C: Cell>(path: &Path, cell: &C) -> Option<C::Outcome> {
    let text = std::fs::read_to_string(path).ok()?;
    let result: C::Outcome = serde_json::from_str(&text).ok()?;
    (C::of(&result) == cell).then_some(result)
}

/// What the directory of a run keeps of a cell: its result, or why the file there is none; nothing
/// where there is no file.
pub(crate) fn kept<C: Cell>(directory: &Path, cell: &C) -> Option<Entry<C>> {
    let path = result_path(directory, cell);
    let outcome = match find(&path, cell) {
        Some(result) => Ok(result),
        None if path.exists() => Err(format!("{} is no result of this plan", path.display())),
        None => return None,
    };
    Some(Entry::new(cell, outcome))
}

/// The plan of a run of one kind: what tells it from others, and its cells.
pub trait RunPlan: Clone + Debug + Serialize + DeserializeOwned {
    /// What it measures.
    type Cell: Cell;
    /// The kind of workload.
    const KIND: WorkloadKind;

    /// The name of the run, and of its files.
    fn name(&self) -> &str;

    /// The cells in the order in which they run.
    fn cells(&self) -> &[Self::Cell];

    /// Most bytes of disk that a cell takes.
    fn needed_bytes(cell: &Self::Cell) -> u64;

    /// Name of the scale.
    fn scale(&self) -> &str;

    /// What was left out, line by line.
    fn skipped(&self) -> &[String];

    /// The engine of a cell.
    fn engine(cell: &Self::Cell) -> &EngineName;

    /// What is wrong between cells that each count by themselves, line by line.
    fn disagreements(_entries: &Entries<Self::Cell>) -> Vec<String> {
        Vec::new()
    }
}

/// A run with all its results: what a report is made of.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Run<P: RunPlan> {
    /// The kind of workload, by which its JSON is told from others'.
    pub kind: WorkloadKind,
    /// What was to be measured.
    pub plan: P,
    /// What was measured.
    pub entries: Entries<P::Cell>,
}

impl<P: RunPlan> Run<P> {
    /// A run with what became of its cells.
    pub fn new(plan: P, entries: Entries<P::Cell>) -> Run<P> {
        Run { kind: P::KIND, plan, entries }
    }

    /// Cells that were measured and count.
    pub fn valid_cells(&self) -> usize {
        self.entries.results().count()
    }

    /// True when every cell was measured and counts, and no two disagree.
    pub fn is_complete(&self) -> bool {
        self.entries.is_complete(self.plan.cells().len())
            && P::disagreements(&self.entries).is_empty()
    }

    /// What is wrong with the cells, one by one and between them, line by line.
    pub fn problems(&self) -> Vec<String> {
        let mut lines = self.entries.problems();
        lines.extend(P::disagreements(&self.entries));
        lines
    }
}

/// The plan of a run, beside its cells.
const PLAN_FILE: &str = "cells.json";

/// How a plan is run.
pub struct PlanRunner<'a, P> {
    /// What is measured.
    pub plan: &'a P,
    /// The program that does it, with the arguments that make it the measuring process.
    pub program: Program,
    /// Where results go.
    pub results: &'a Path,
    /// Where engines keep their data meanwhile; beside the results when not given.
    pub data: Option<&'a Path>,
    /// Measure again what was measured.
    pub fresh: bool,
    /// Set to true, it stops the run.
    pub interrupt: &'a AtomicBool,
}

impl<P: RunPlan> PlanRunner<'_, P> {
    /// Measures every cell that was not measured yet.
    ///
    /// # Errors
    /// Results cannot be written, the disk is too small, another run is at work. A cell that fails
    /// is no error: it is in the run.
    pub fn run(&self, announcer: &mut dyn Announcer) -> Result<Run<P>, RunError> {
        let store = Store::open(self.results, self.plan.name())?;
        let file = Run::new(self.plan.clone(), Entries { interrupted: true, cells: Vec::new() });
        super::store::write_json(&store.directory().join(PLAN_FILE), &file)?;
        let data = self.data.unwrap_or(store.directory());
        std::fs::create_dir_all(data).map_err(|error| RunError::io(data, error))?;
        file_system::clean(data, announcer);
        let place = |cell: &P::Cell| {
            super::require_free(data, P::needed_bytes(cell), ", or take a smaller scale")?;
            let directory = DataDirectory::create(&data.join(format!("{}.data", cell.id())))?;
            let database = directory.engine_directory()?;
            let allocator = crate::engines::registry::allocator_for(P::engine(cell), None);
            let allocator = allocator.map_err(|error| RunError::new(error.to_string()))?;
            allocator.require(&self.program.path)?;
            Ok(Place { directory, database, environment: allocator.environment() })
        };
        let cells = CellLoop {
            store: &store,
            program: &self.program,
            fresh: self.fresh,
            interrupt: self.interrupt,
        };
        let entries = cells.run(self.plan.cells(), &place, announcer)?;
        Ok(Run::new(self.plan.clone(), entries))
    }
}

/// Reads a run of the kind `P` again, from its directory (`results/runs/NAME`) or from the JSON of
/// its report; `None` when it is one of another kind, or none.
///
/// # Errors
/// A run of this kind that cannot be read.
pub fn read_run<P: RunPlan>(path: &Path) -> Result<Option<Run<P>>, RunError> {
    /// Enough to tell the kind.
    #[derive(Deserialize)]
    struct Head {
        kind: WorkloadKind,
    }
    let file = if path.is_dir() { path.join(PLAN_FILE) } else { path.to_owned() };
    if path.is_dir() && !file.exists() {
        return Ok(None);
    }
    let text = std::fs::read_to_string(&file).map_err(|error| RunError::io(&file, error))?;
    if !serde_json::from_str::<Head>(&text).is_ok_and(|head| head.kind == P::KIND) {
        return Ok(None);
    }
    let mut run: Run<P> = serde_json::from_str(&text).map_err(|error| {
        RunError::new(format!("{} is no record of a run: {error}", file.display()))
    })?;
    if path.is_dir() {
        run.entries.cells = run.plan.cells().iter().filter_map(|cell| kept(path, cell)).collect();
        run.entries.interrupted = run.entries.cells.len() < run.plan.cells().len();
    }
    Ok(Some(run))
}

#[cfg(test)]
mod tests;
