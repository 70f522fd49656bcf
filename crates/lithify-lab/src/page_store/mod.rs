//! Compressed pages in one file, three ways, beside an LSM tree: what holes in files cost.
//!
//! Databases that update pages in place compress them in two ways. Old: a page gets a slot of half
//! its size, and one that does not fit takes two. New: a page keeps its place, and what it saved
//! is given back to the file system as a hole. This room does both, and neither, in the simplest
//! possible store ([`store`]), in a process of its own ([`measure`]), on any file system ([`crate::run::file_system`]), and does the same
//! writes with Lithify ([`tree`]); then the file is dropped while somebody else writes
//! ([`crate::run::dropping`]).
//!
//! 1. Every page is written once in order, then random pages for a time, with a data sync every
//!    [`SYNC_PAGES`] pages.
//! 2. Everything is written out and sizes are taken: `du`, length, the file system's own account,
//!    extents.
//! 3. A thread writes and syncs 4 KiB at a time beside; the store is dropped, and the time counts
//!    until the space is back.
//!
//! Promises: the same contents in the same order for every layout and file system; nothing is left
//! mounted. Threads: one, and one that writes beside the drop.

pub mod compared;
pub mod kind;
pub mod measure;
pub mod page;
pub mod report;
pub mod store;
pub mod tree;

#[cfg(test)]
mod tests;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::adapter::EngineName;
use crate::adapter::codec::Codec;
use crate::experiment::file_system::FileSystemSpec;
use crate::keyvalue::entries::Values;
use crate::kind::incomplete::{self, CellEnd};
use crate::meter::machine::Machine;
use crate::random::Random;
use crate::run::cells::{Cell, Entries, Entry, Part, RunPlan};
use crate::run::dropping::DropFigures;
use crate::run::estimate::Effort;
use crate::run::file_system::{self, FileSystemRequest};
use crate::run::{RunError, rotated};
use store::Layout;

/// Bytes of a page.
pub const PAGE_BYTES: usize = 16 << 10;

/// Pages between two data syncs.
pub const SYNC_PAGES: u64 = 256;

/// Contents by how much of them is random, and how many of a hundred pages have it: most fit a
/// slot of half a page, some do not.
const CONTENTS: [(f64, u64); 3] = [(0.30, 80), (0.45, 15), (0.75, 5)];

/// A file system has room for this many times the pages.
const ROOM: u64 = 3;

/// What is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PagesSpec {
    /// On which file systems.
    pub file_systems: Vec<FileSystemSpec>,
    /// In which layouts.
    pub layouts: Vec<Layout>,
    /// The codec of pages and of the tree's blocks.
    pub codec: Codec,
    /// Number of pages.
    pub pages: u64,
    /// How long random pages are written, seconds.
    pub seconds: u64,
    /// Rounds over all file systems and layouts.
    pub repeats: u64,
    /// Seed of everything random.
    pub seed: u64,
    /// Hash of the program.
    pub build: String,
}

impl PagesSpec {
    /// Size of the file that a file system is made in, bytes.
    pub fn image_bytes(&self) -> u64 {
        (self.pages * PAGE_BYTES as u64 * ROOM).max(file_system::SIZE_BYTES_MIN)
    }
}

/// One layout on one file system in one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// What is done.
    pub spec: PagesSpec,
    /// Round, from 0.
    pub repeat: u64,
    /// On which file system.
    pub file_system: FileSystemSpec,
    /// In which layout.
    pub layout: Layout,
}

impl Place {
    fn cell(&self, failure: Option<String>, figures: Option<PagesFigures>) -> PagesCell {
        PagesCell {
            file_system: self.file_system.clone(),
            layout: self.layout,
            repeat: self.repeat,
            failure,
            figures,
        }
    }
}

impl Cell for Place {
    type Outcome = PagesResult;

    fn id(&self) -> String {
        let file_system = self.file_system.to_string().replace(':', "-");
        format!("{file_system}-{}-r{}", self.layout.name(), self.repeat)
    }

    fn engine(&self) -> EngineName {
        EngineName::lithify()
    }

    fn part(&self) -> Part {
        Part::Row(format!("{} on {}", self.layout.name(), self.file_system))
    }

    fn alike(&self) -> String {
        self.file_system.to_string()
    }

    fn file_system(&self) -> Option<FileSystemRequest> {
        Some(FileSystemRequest::new(&self.file_system, self.spec.image_bytes()))
    }

    fn effort(&self) -> Effort {
        Effort::declared(self.spec.seconds as f64)
    }

    fn is_result(&self, result: &PagesResult) -> bool {
        let PagesCell { file_system, layout, repeat, .. } = &result.cell;
        result.spec == self.spec
            && (file_system, layout, repeat) == (&self.file_system, &self.layout, &self.repeat)
    }

    fn faults(_result: &PagesResult) -> Vec<String> {
        Vec::new()
    }

    fn summary(result: &PagesResult) -> String {
        result.cell.figures.as_ref().map(PagesFigures::line).unwrap_or_default()
    }
}

/// A cell that was measured, with what describes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PagesResult {
    /// What was done.
    pub spec: PagesSpec,
    /// When it began, seconds since 1970.
    pub started_unix_s: u64,
    /// The machine, with what its file system lies on; `None` where that was not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// The cell.
    pub cell: PagesCell,
}

/// What is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PagesPlan {
    /// What is done.
    pub spec: PagesSpec,
    /// The cells in the order in which they run.
    pub cells: Vec<Place>,
}

impl PagesPlan {
    /// Layouts are interleaved over the rounds, and each round begins with another one.
    pub fn new(spec: PagesSpec) -> PagesPlan {
        let mut cells = Vec::new();
        for repeat in 0..spec.repeats {
            for file_system in &spec.file_systems {
                cells.extend(rotated(&spec.layouts, repeat as usize).map(|layout| Place {
                    spec: spec.clone(),
                    repeat,
                    file_system: file_system.clone(),
                    layout: *layout,
                }));
            }
        }
        PagesPlan { spec, cells }
    }
}

impl RunPlan for PagesPlan {
    type Cell = Place;
    const SMALLER: &'static str = "take a smaller --size-mib";

    fn name(&self) -> String {
        NAME.to_owned()
    }

    fn scale(&self) -> Option<&str> {
        None
    }

    fn cells(&self) -> &[Place] {
        &self.cells
    }

    fn needed_bytes(&self, cell: &Place) -> u64 {
        cell.spec.image_bytes()
    }
}

/// Name of the run, and of its files.
pub const NAME: &str = "page-compression";

/// What one layout on one file system cost.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PagesCell {
    /// On which file system.
    pub file_system: FileSystemSpec,
    /// In which layout.
    pub layout: Layout,
    /// Round, from 0.
    pub repeat: u64,
    /// Why there are no figures, if there are none.
    pub failure: Option<String>,
    /// The figures.
    pub figures: Option<PagesFigures>,
}

/// The figures of a cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PagesFigures {
    /// Seconds of the first writes of all pages, the last sync included.
    pub fill_seconds: f64,
    /// Random pages written.
    pub writes: u64,
    /// In so many seconds.
    pub seconds: f64,
    /// CPU of the writing thread for them, microseconds; threads of the kernel are not in it.
    pub cpu_us: u64,
    /// p50, p99 and longest write, microseconds.
    pub write_us: [u64; 3],
    /// Bytes that the device wrote for them.
    pub device_written_bytes: u64,
    /// Pages that did not fit their slot when they were last written.
    pub pages_in_two_slots: u64,
    /// `du`.
    pub allocated_bytes: u64,
    /// Lengths of files.
    pub apparent_bytes: u64,
    /// By the account of the file system.
    pub used_bytes: u64,
    /// Extents of the file, where that is known.
    pub extents: Option<u64>,
    /// What dropping it cost.
    pub drop: DropFigures,
}

/// A run with all its results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PagesRecord {
    /// What was to be done.
    pub spec: PagesSpec,
    /// When it began, seconds since 1970; `None` where that was not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_unix_s: Option<u64>,
    /// The machine.
    pub machine: Machine,
    /// The cells, in the order in which they were measured.
    pub cells: Vec<PagesCell>,
    /// True when it was stopped before the last one.
    pub interrupted: bool,
}

impl PagesRecord {
    /// A run with what became of its cells.
    pub fn new(plan: PagesPlan, entries: Entries<Place>) -> PagesRecord {
        let results: Vec<&PagesResult> = entries.results().collect();
        let machine = results.iter().find_map(|result| result.machine.clone());
        let started_unix_s = results.iter().map(|result| result.started_unix_s).min();
        let cell = |entry: &Entry<Place>| match &entry.result {
            Some(result) => result.cell.clone(),
            None => entry.cell.cell(entry.failure.clone(), None),
        };
        PagesRecord {
            spec: plan.spec,
            started_unix_s,
            machine: machine.unwrap_or_else(|| Machine::describe(Path::new("."))),
            cells: entries.cells.iter().map(cell).collect(),
            interrupted: entries.interrupted,
        }
    }
}

impl PagesRecord {
    /// The planned cells with how they ended.
    pub(crate) fn ends(&self) -> Vec<CellEnd> {
        let plan = PagesPlan::new(self.spec.clone());
        let end = |of: &PagesCell| {
            let (file_system, layout) = (of.file_system.clone(), of.layout);
            let place = Place { spec: self.spec.clone(), repeat: of.repeat, file_system, layout };
            let problem = match &of.figures {
                Some(_) => None,
                None => Some(of.failure.clone().unwrap_or_default()),
            };
            let is_absent = of.figures.is_none() && of.failure.is_none();
            CellEnd { id: place.id(), part: place.part(), problem, is_absent }
        };
        incomplete::with_planned(self.cells.iter().map(end).collect(), &plan.cells)
    }
}

/// Something that keeps pages by number.
pub trait Pages {
    /// Writes a page.
    ///
    /// # Errors
    /// In words.
    fn write(&mut self, number: u64, page: &[u8]) -> Result<(), RunError>;

    /// Makes everything that was written durable.
    ///
    /// # Errors
    /// In words.
    fn sync(&mut self) -> Result<(), RunError>;

    /// Reads a page, to be compared.
    ///
    /// # Errors
    /// In words.
    fn read(&mut self, number: u64, page: &mut Vec<u8>) -> Result<(), RunError>;

    /// Does what it put off, so that sizes are those at rest.
    ///
    /// # Errors
    /// In words.
    fn settle(&mut self) -> Result<(), RunError> {
        Ok(())
    }

    /// Pages that take two slots.
    fn pages_in_two_slots(&self) -> u64 {
        0
    }

    /// Takes it off the disk for good. What wrote beside it goes on.
    ///
    /// # Errors
    /// In words.
    fn remove(self: Box<Self>) -> Result<(), RunError>;
}

/// The contents of pages: of a page and the number of its write always the same.
pub(crate) struct Contents {
    kinds: Vec<(Values, u64)>,
    random: Random,
}

impl Contents {
    pub(crate) fn new(seed: u64) -> Contents {
        let kinds = CONTENTS.map(|(ratio, share)| (Values::new(PAGE_BYTES, ratio), share));
        Contents { kinds: kinds.into(), random: Random::new(seed, 1) }
    }

    /// The next content.
    pub(crate) fn next(&mut self) -> &[u8] {
        let mut drawn = self.random.below(100);
        let last = self.kinds.len() - 1;
        let at = self.kinds.iter().position(|(_, share)| match drawn.checked_sub(*share) {
            Some(rest) => {
                drawn = rest;
                false
            }
            None => true,
        });
        self.kinds[at.unwrap_or(last)].0.next()
    }
}
