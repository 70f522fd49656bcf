//! Cells of any kind of run: each in a process of its own, measured once, kept.
//!
//! Owns: what a kind has to say about its cells ([`Cell`]) and its plan ([`RunPlan`]), the loop over
//! them ([`PlanRunner`]), the job that a measuring process is handed ([`Job`]), what became of the
//! cells ([`Entries`]), and finding that again in the directory of a run ([`kept_entries`]).
//!
//! Promises: a cell that was measured by the same description is not measured again; one that fails,
//! or whose conditions cannot be had here, costs its own row only; after an interrupt the child is
//! gone and its data are removed.
//!
//! Threads: everything belongs to the caller's. Does not know what a cell measures.

use std::fmt::{self, Debug};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::RunError;
use super::conditions::Conditions;
use super::device_limit::CellDevice;
use super::estimate::{Effort, Pace};
use super::file_system::{self, CellFileSystem, FileSystemRequest};
use super::memory_limit::{CellMemory, Controller, MemoryLimit};
use super::process::{DataDirectory, JobEnd, Program, absolute, run_job};
use super::progress::Announcer;
use super::store::{RecordHead, Store, note_seconds};
use crate::adapter::EngineName;
use crate::adapter::allocator::Allocator;
use crate::engines::registry;
use crate::experiment::{DeviceSpeed, WorkloadKind};

/// What a cell is to the verdicts of its run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A repeat of a row of the tables, which has this name.
    Row(String),
    /// The row of this name measured once more, to see the noise.
    Control(String),
    /// The driver alone.
    Driver,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Row(name) => f.write_str(name),
            Part::Control(name) => write!(f, "A/A control of {name}"),
            Part::Driver => f.write_str("driver alone"),
        }
    }
}

/// One measurement, described by everything that can change its figures. What it does not say of its
/// conditions is as the machine has it.
pub trait Cell: Clone + Debug + Serialize + DeserializeOwned {
    /// What the measuring process leaves.
    type Outcome: Clone + Debug + Serialize + DeserializeOwned;

    /// Its name, unique in its run; also of its files.
    fn id(&self) -> String;

    /// On which engine.
    fn engine(&self) -> EngineName;

    /// The name that it shares with the cells whose times are like its own.
    fn alike(&self) -> String {
        self.engine().to_string()
    }

    /// What it is to the verdicts.
    fn part(&self) -> Part {
        Part::Row(self.alike())
    }

    /// Where its process gets its memory from.
    ///
    /// # Errors
    /// The engine needs another one than the cell names.
    fn allocator(&self) -> Result<Allocator, RunError> {
        let found = registry::allocator_for(&self.engine(), None);
        found.map_err(|error| RunError::new(error.to_string()))
    }

    /// It opens a database that an earlier run has kept.
    fn is_continued(&self) -> bool {
        false
    }

    /// The file system that its data lie on, when it is not the one that is there.
    fn file_system(&self) -> Option<FileSystemRequest> {
        None
    }

    /// What its engine may use, page cache of its files included, bytes. The driver's own memory
    /// comes on top: an earlier cell of the run measures it ([`Cell::driver_bytes`]).
    fn memory_limit_bytes(&self) -> Option<u64> {
        None
    }

    /// How fast its device is.
    fn device(&self) -> DeviceSpeed {
        DeviceSpeed::Fast
    }

    /// What is known of its time before it is measured.
    fn effort(&self) -> Effort {
        Effort::UNKNOWN
    }

    /// Whether an outcome is of this cell as it would be measured now.
    fn is_result(&self, outcome: &Self::Outcome) -> bool;

    /// The memory of the driver by itself, where an outcome tells it.
    fn driver_bytes(_outcome: &Self::Outcome) -> Option<u64> {
        None
    }

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
    /// Where the result goes, atomically.
    pub result_path: PathBuf,
    /// The process that waits for it; the cell ends when that one is gone.
    pub parent: u32,
    /// The group that limits its memory, which it joins before it opens the engine.
    #[serde(default)]
    pub memory: Option<CellMemory>,
    /// How its device is slowed.
    #[serde(default)]
    pub device: Option<CellDevice>,
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
    /// All results; void ones too.
    pub fn measured(&self) -> impl Iterator<Item = &C::Outcome> {
        self.cells.iter().filter_map(|entry| entry.result.as_ref())
    }

    /// The results that count.
    pub fn results(&self) -> impl Iterator<Item = &C::Outcome> {
        self.measured().filter(|result| C::faults(result).is_empty())
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

/// What is known about a cell before it is measured.
#[derive(Clone, Debug)]
pub enum Stored<O> {
    /// Measured already: the same description.
    Finished(Box<O>),
    /// Not measured.
    Absent,
    /// There is a result of another description, or one that cannot be read: why it is not used.
    Unusable(String),
}

/// Reads the result of a cell.
fn read_result<C: Cell>(path: &Path, cell: &C) -> Stored<C::Outcome> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Stored::Absent,
        Err(error) => return Stored::Unusable(format!("{}: {error}", path.display())),
    };
    match serde_json::from_str::<C::Outcome>(&text) {
        Ok(outcome) if cell.is_result(&outcome) => Stored::Finished(Box::new(outcome)),
        Ok(_) => Stored::Unusable("it was measured with other settings or another build".into()),
        Err(error) => Stored::Unusable(format!("{} is no result: {error}", path.display())),
    }
}

fn result_path(directory: &Path, cell: &impl Cell) -> PathBuf {
    directory.join(format!("{}.json", cell.id()))
}

/// Whether a cell of the run `name` was measured by the same program with the same settings.
pub fn is_measured<C: Cell>(results: &Path, name: &str, cell: &C) -> bool {
    let path = result_path(&results.join("runs").join(name), cell);
    matches!(read_result(&path, cell), Stored::Finished(_))
}

/// What the directory of a run keeps of the cells of its plan.
pub fn kept_entries<P: RunPlan>(directory: &Path, plan: &P) -> Entries<P::Cell> {
    let entry = |cell: &P::Cell| match read_result(&result_path(directory, cell), cell) {
        Stored::Finished(result) => Some(Entry::new(cell, Ok(*result))),
        Stored::Unusable(why) => Some(Entry::new(cell, Err(why))),
        Stored::Absent => None,
    };
    let cells: Vec<Entry<P::Cell>> = plan.cells().iter().filter_map(entry).collect();
    Entries { interrupted: cells.len() < plan.cells().len(), cells }
}

/// The plan of a run: what distinguishes it from others, and its cells. Its JSON is `plan.json` in the
/// directory of the run.
pub trait RunPlan: Clone + Debug + Serialize + DeserializeOwned {
    /// What it measures.
    type Cell: Cell;

    /// What else helps where the disk is too small.
    const SMALLER: &'static str = "take a smaller scale";

    /// The name of the run, and of its files.
    fn name(&self) -> String;

    /// Name of the scale, where there are several.
    fn scale(&self) -> Option<&str>;

    /// The cells in the order in which they run.
    fn cells(&self) -> &[Self::Cell];

    /// Most bytes of disk that a cell takes.
    fn needed_bytes(&self, cell: &Self::Cell) -> u64;

    /// What is wrong between cells that each count by themselves, line by line.
    fn disagreements(_entries: &Entries<Self::Cell>) -> Vec<String> {
        Vec::new()
    }
}

/// A plan whose record is a [`Run`].
pub trait WorkloadPlan: RunPlan {
    /// The kind of workload.
    const KIND: WorkloadKind;
}

/// A run with all its results: what a report is made of.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Run<P: RunPlan> {
    /// The kind of workload.
    pub kind: WorkloadKind,
    /// What was to be measured.
    pub plan: P,
    /// What was measured.
    pub entries: Entries<P::Cell>,
}

impl<P: WorkloadPlan> Run<P> {
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

/// How a plan is run.
pub struct PlanRunner<'a, P> {
    /// What is measured.
    pub plan: &'a P,
    /// The kind of the plan, and the version of its records.
    pub head: RecordHead,
    /// The program that does it, with the arguments that make it the measuring process.
    pub program: &'a Program,
    /// Where results go.
    pub results: &'a Path,
    /// Where engines keep their data meanwhile; beside the results when not given.
    pub data: Option<&'a Path>,
    /// Where databases are kept for later runs, one directory per engine; nowhere when not given.
    pub databases: Option<&'a Path>,
    /// Measure again what was measured.
    pub fresh: bool,
    /// Set to true, it stops the run.
    pub interrupt: &'a AtomicBool,
}

impl<P: RunPlan> PlanRunner<'_, P> {
    /// Measures every cell that was not measured yet.
    ///
    /// # Errors
    /// Results cannot be written, the disk is too small, memory cannot be limited, another run is at
    /// work. A cell that fails is no error: it is among the entries.
    pub fn run(&self, announcer: &mut dyn Announcer) -> Result<Entries<P::Cell>, RunError> {
        let store = Store::open(self.results, &self.plan.name())?;
        let data = self.data.unwrap_or(store.directory());
        std::fs::create_dir_all(data).map_err(|error| RunError::io(data, error))?;
        file_system::clean(data, announcer);
        if self.fresh {
            store.forget(self.plan.cells().iter().map(Cell::id))?;
        } else if self.would_lose_results(&store) {
            let aside = store.set_aside()?;
            announcer.say(&format!(
                "a run of this name had other settings: its results are in {} now",
                aside.display()
            ));
        }
        store.write_plan(&self.head, self.plan)?;
        let controller = self.controller(announcer)?;
        let place = Place { runner: self, store: &store, data };
        let mut entries = Entries { interrupted: false, cells: Vec::new() };
        let mut pace = Pace::new(self.plan.cells().iter().map(Cell::effort));
        for cell in self.plan.cells() {
            if self.interrupt.load(Ordering::Relaxed) {
                entries.interrupted = true;
                break;
            }
            let memory = match controller.as_ref().zip(cell.memory_limit_bytes()) {
                Some((controller, bytes)) => {
                    Some((controller, limit(controller, bytes, &entries)?))
                }
                None => None,
            };
            match place.cell(cell, memory, &mut pace, announcer)? {
                Some(entry) => entries.cells.push(entry),
                None => {
                    entries.interrupted = true;
                    break;
                }
            }
        }
        Ok(entries)
    }

    /// Whether results of another plan would be written over.
    fn would_lose_results(&self, store: &Store) -> bool {
        let is_unlike = |cell: &P::Cell| {
            let path = store.result_path(&cell.id());
            matches!(read_result(&path, cell), Stored::Unusable(_))
        };
        store.has_other_plan(self.plan) && self.plan.cells().iter().any(is_unlike)
    }

    /// Where memory can be limited, when a cell needs that; cleaned of what killed runs left.
    fn controller(&self, announcer: &mut dyn Announcer) -> Result<Option<Controller>, RunError> {
        if self.plan.cells().iter().all(|cell| cell.memory_limit_bytes().is_none()) {
            return Ok(None);
        }
        let controller = Controller::find()?;
        for name in controller.remove_stale() {
            announcer.say(&format!("control group {name} of an earlier run is still in use"));
        }
        Ok(Some(controller))
    }
}

/// The limit of a cell: the budget, and what the driver uses by itself.
fn limit<C: Cell>(
    controller: &Controller,
    budget_bytes: u64,
    entries: &Entries<C>,
) -> Result<MemoryLimit, RunError> {
    let mut outcomes = entries.measured();
    let driver_bytes = outcomes.find_map(C::driver_bytes).ok_or_else(|| {
        RunError::new("memory cannot be limited: the driver's own memory was not measured")
    })?;
    Ok(MemoryLimit { mechanism: controller.version(), budget_bytes, driver_bytes })
}

/// How the process of a cell ended.
enum End<O> {
    Finished(Box<O>),
    Failed(String),
    Interrupted,
}

/// Where the cells of a run are measured.
struct Place<'a, P> {
    runner: &'a PlanRunner<'a, P>,
    store: &'a Store,
    data: &'a Path,
}

impl<P: RunPlan> Place<'_, P> {
    /// Finds or measures one cell; `None` when it was interrupted.
    fn cell(
        &self,
        cell: &P::Cell,
        memory: Option<(&Controller, MemoryLimit)>,
        pace: &mut Pace,
        announcer: &mut dyn Announcer,
    ) -> Result<Option<Entry<P::Cell>>, RunError> {
        let (id, effort) = (cell.id(), cell.effort());
        match read_result(&self.store.result_path(&id), cell) {
            Stored::Finished(result) => {
                pace.skip(&effort);
                announcer.say(&format!("{id}: measured already, kept"));
                announcer.done(&id, None);
                return Ok(Some(Entry::new(cell, Ok(*result))));
            }
            Stored::Unusable(why) => announcer.say(&format!("{id}: measuring again: {why}")),
            Stored::Absent => {}
        }
        let (directory, kept) = self.directory(cell)?;
        announcer.begin(&format!("cell {} {id}{}", pace.position(), pace.rest()));
        let began = Instant::now();
        let end = self.measure(cell, (directory, kept), memory, announcer)?;
        let seconds = began.elapsed().as_secs_f64();
        pace.measured(&effort, seconds);
        let outcome = match end {
            End::Interrupted => {
                announcer.end(&format!("{id}: stopped"));
                return Ok(None);
            }
            End::Failed(why) => {
                announcer.end(&format!("{id}: failed after {seconds:.0} s: {why}"));
                Err(why)
            }
            End::Finished(result) => {
                let summary = P::Cell::summary(&result);
                announcer.end(&format!("{id}: {summary}, {seconds:.0} s in all"));
                note_seconds(self.store.directory(), &id, seconds);
                Ok(*result)
            }
        };
        announcer.done(&id, Some(seconds));
        Ok(Some(Entry::new(cell, outcome)))
    }

    /// The directory of a cell's data; of one that is kept, the database in it too.
    fn directory(&self, cell: &P::Cell) -> Result<(DataDirectory, Option<PathBuf>), RunError> {
        let engine = cell.engine();
        let on_disk = registry::uses_disk(&engine);
        let databases = self.runner.databases.filter(|_| on_disk);
        let kept = databases.map(|databases| databases.join(engine.name()));
        if let Some(path) = kept.as_ref().filter(|_| cell.is_continued()) {
            let (directory, database) = DataDirectory::open(path)?;
            return Ok((directory, Some(database)));
        }
        let parent = databases.unwrap_or(self.data);
        std::fs::create_dir_all(parent).map_err(|error| RunError::io(parent, error))?;
        if on_disk {
            let advice = format!(", or {}", P::SMALLER);
            super::require_free(parent, self.runner.plan.needed_bytes(cell), &advice)?;
        }
        match kept {
            Some(path) => Ok((DataDirectory::create(&path)?.keep(), None)),
            None => {
                let path = self.data.join(format!("{}.data", cell.id()));
                Ok((DataDirectory::create(&path)?, None))
            }
        }
    }

    /// Runs the process of a cell; its directory, its file system and the groups that limit it are
    /// gone afterwards.
    fn measure(
        &self,
        cell: &P::Cell,
        (mut directory, kept): (DataDirectory, Option<PathBuf>),
        memory: Option<(&Controller, MemoryLimit)>,
        announcer: &mut dyn Announcer,
    ) -> Result<End<<P::Cell as Cell>::Outcome>, RunError> {
        let id = cell.id();
        let result_path = absolute(&self.store.result_path(&id))?;
        let mut conditions = Conditions::with_memory(memory)?;
        let made = directory
            .mount(cell.file_system().as_ref())
            .and_then(|()| conditions.prepare(cell, self.data, self.runner.program));
        let program = match made {
            Ok(program) => program,
            Err(why) => return Ok(End::Failed(why.to_string())),
        };
        let job = Job {
            cell: cell.clone(),
            data_directory: kept.map_or_else(|| directory.engine_directory(), Ok)?,
            result_path: result_path.clone(),
            parent: std::process::id(),
            memory: conditions.memory(),
            device: conditions.device(),
            file_system: directory.file_system().cloned(),
        };
        let log_path = self.store.log_path(&id);
        let mut progress = |line: &_| announcer.progress(line);
        let end = run_job(&program, &job, &log_path, self.runner.interrupt, &mut progress)?;
        Ok(match end {
            JobEnd::Interrupted => End::Interrupted,
            JobEnd::Failed(why) => End::Failed(conditions.explain(why)),
            JobEnd::Succeeded => match read_result(&result_path, cell) {
                Stored::Finished(result) => End::Finished(result),
                Stored::Absent => End::Failed("it left no result".to_owned()),
                Stored::Unusable(why) => End::Failed(why),
            },
        })
    }
}

#[cfg(test)]
mod tests;
