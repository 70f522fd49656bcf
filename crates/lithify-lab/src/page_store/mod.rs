//! Compressed pages in one file, three ways, beside an LSM tree: what holes in files cost.
//!
//! Databases that update pages in place compress them in two ways. Old: a page gets a slot of half
//! its size, and one that does not fit takes two. New: a page keeps its place, and what it saved
//! is given back to the file system as a hole. This room does both, and neither, in the simplest
//! possible store ([`store`]), on any file system ([`crate::run::file_system`]), and does the same
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
pub mod page;
pub mod report;
pub mod store;
pub mod tree;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::adapter::codec::Codec;
use crate::experiment::file_system::FileSystemSpec;
use crate::keyvalue::entries::Values;
use crate::latency::Latencies;
use crate::meter::machine::Machine;
use crate::meter::process::thread_cpu_us;
use crate::meter::space::{directory_size, extents};
use crate::meter::system::Device;
use crate::meter::unix_seconds;
use crate::random::Random;
use crate::run::dropping::{self, DropFigures, FileWriter, Space};
use crate::run::file_system::{self, FileSystemRequest, Mounted};
use crate::run::progress::Announcer;
use crate::run::rotated;
use crate::run::store::{Store, note_seconds, write_json};
use crate::run::{RunError, require_free};
use store::{Layout, PageFile};
use tree::PageTree;

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
    /// The cells in the order in which they run: layouts are interleaved over the rounds, and each
    /// round begins with another one.
    pub fn places(&self) -> Vec<Place> {
        let mut places = Vec::new();
        for repeat in 0..self.repeats {
            for file_system in &self.file_systems {
                places.extend(rotated(&self.layouts, repeat as usize).map(|layout| Place {
                    repeat,
                    file_system: file_system.clone(),
                    layout: *layout,
                }));
            }
        }
        places
    }

    /// Size of the file that a file system is made in, bytes.
    pub fn image_bytes(&self) -> u64 {
        (self.pages * PAGE_BYTES as u64 * ROOM).max(file_system::SIZE_BYTES_MIN)
    }
}

/// Where and when something is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Round, from 0.
    pub repeat: u64,
    /// On which file system.
    pub file_system: FileSystemSpec,
    /// In which layout.
    pub layout: Layout,
}

impl Place {
    /// Its name, unique in a run; also of its file.
    pub fn id(&self) -> String {
        let file_system = self.file_system.to_string().replace(':', "-");
        format!("{file_system}-{}-r{}", self.layout.name(), self.repeat)
    }

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

/// A cell that was measured, with what describes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Kept {
    spec: PagesSpec,
    /// When it began, seconds since 1970.
    started_unix_s: u64,
    cell: PagesCell,
}

/// Name of the run, and of its files.
pub const NAME: &str = "page-compression";

fn result_path(results: &Path, place: &Place) -> PathBuf {
    results.join("runs").join(NAME).join(format!("{}.json", place.id()))
}

/// Whether an earlier run with the same description measured a place.
pub fn is_measured(results: &Path, spec: &PagesSpec, place: &Place) -> bool {
    find(results, spec, place).is_some()
}

fn find(results: &Path, spec: &PagesSpec, place: &Place) -> Option<Kept> {
    let text = std::fs::read_to_string(result_path(results, place)).ok()?;
    let kept: Kept = serde_json::from_str(&text).ok()?;
    (kept.spec == *spec).then_some(kept)
}

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
    /// One of its cells began then.
    fn began(&mut self, unix_s: u64) {
        let first = self.started_unix_s.get_or_insert(unix_s);
        *first = unix_s.min(*first);
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

/// How a spec is measured.
pub struct Runner<'a> {
    /// What.
    pub spec: &'a PagesSpec,
    /// Where results go.
    pub results: &'a Path,
    /// Where file systems are made; beside the results of the cells when not given.
    pub data: Option<&'a Path>,
    /// Measure again what was measured.
    pub fresh: bool,
    /// Set to true, it stops the run.
    pub interrupt: &'a AtomicBool,
}

/// What ends a cell before its end.
enum Stop {
    Interrupted,
    Failed(RunError),
}

impl From<RunError> for Stop {
    fn from(error: RunError) -> Self {
        Stop::Failed(error)
    }
}

impl Runner<'_> {
    /// Measures all cells that were not measured yet. A file system that cannot be made costs its
    /// own rows.
    ///
    /// # Errors
    /// The data cannot be written at all.
    pub fn run(&self, announcer: &mut dyn Announcer) -> Result<PagesRecord, RunError> {
        let store = Store::open(self.results, NAME)?;
        let data = self.data.unwrap_or(store.directory());
        std::fs::create_dir_all(data).map_err(|error| RunError::io(data, error))?;
        file_system::clean(data, announcer);
        require_free(data, self.spec.image_bytes(), "")?;
        let mut record = PagesRecord {
            spec: self.spec.clone(),
            started_unix_s: None,
            machine: Machine::describe(data),
            cells: Vec::new(),
            interrupted: false,
        };
        let places = self.spec.places();
        for (number, place) in places.iter().enumerate() {
            let id = place.id();
            if let Some(kept) = find(self.results, self.spec, place).filter(|_| !self.fresh) {
                announcer.say(&format!("{id}: measured already, kept"));
                announcer.done(&id, None);
                record.began(kept.started_unix_s);
                record.cells.push(kept.cell);
                continue;
            }
            let Place { repeat, file_system, layout } = place;
            let name = format!("{file_system}, {}, round {}", layout.name(), repeat + 1);
            announcer.begin(&format!("cell {}/{} {name}", number + 1, places.len()));
            let (began, started_unix_s) = (Instant::now(), unix_seconds());
            let (failure, figures) = match self.cell(file_system, *layout, data) {
                Ok(figures) => (None, Some(figures)),
                Err(Stop::Interrupted) => {
                    announcer.end(&format!("{name}: stopped"));
                    record.interrupted = true;
                    break;
                }
                Err(Stop::Failed(error)) => (Some(error.to_string()), None),
            };
            let told = figures.as_ref().map(PagesFigures::line).or_else(|| failure.clone());
            announcer.end(&format!("{name}: {}", told.unwrap_or_default()));
            let seconds = began.elapsed().as_secs_f64();
            let is_measured = figures.is_some();
            let cell = place.cell(failure, figures);
            if is_measured {
                record.began(started_unix_s);
                let kept = Kept { spec: self.spec.clone(), started_unix_s, cell: cell.clone() };
                write_json(&result_path(self.results, place), &kept)?;
                note_seconds(store.directory(), &id, seconds);
            }
            announcer.done(&id, Some(seconds));
            record.cells.push(cell);
        }
        Ok(record)
    }

    fn cell(
        &self,
        file_system: &FileSystemSpec,
        layout: Layout,
        data: &Path,
    ) -> Result<PagesFigures, Stop> {
        let request = FileSystemRequest::new(file_system, self.spec.image_bytes());
        let mounted = Mounted::make(&request, data)?;
        let directory = mounted.directory();
        let mut pages: Box<dyn Pages> = match layout {
            Layout::Tree => Box::new(PageTree::open(directory, self.spec.codec)?),
            _ => Box::new(PageFile::create(directory, layout, self.spec.codec, self.spec.pages)?),
        };
        let mut contents = Contents::new(self.spec.seed);
        let began = Instant::now();
        for number in 0..self.spec.pages {
            self.write(&mut *pages, number, number, contents.next())?;
        }
        pages.sync()?;
        let fill_seconds = began.elapsed().as_secs_f64();
        let mut figures = self.updates(&mut *pages, &mut contents, directory)?;
        figures.fill_seconds = fill_seconds;
        self.compare(&mut *pages)?;
        pages.settle()?;
        figures.pages_in_two_slots = pages.pages_in_two_slots();
        figures.used_bytes = mounted.file_system().used_bytes();
        let size = directory_size(directory);
        figures.allocated_bytes = size.allocated_bytes;
        figures.apparent_bytes = size.apparent_bytes;
        figures.extents = extents(directory);
        figures.drop = drop_pages(pages, &mounted)?;
        Ok(figures)
    }

    fn write(
        &self,
        pages: &mut dyn Pages,
        count: u64,
        number: u64,
        content: &[u8],
    ) -> Result<(), Stop> {
        if self.interrupt.load(Ordering::Relaxed) {
            return Err(Stop::Interrupted);
        }
        pages.write(number, content)?;
        if (count + 1).is_multiple_of(SYNC_PAGES) {
            pages.sync()?;
        }
        Ok(())
    }

    fn updates(
        &self,
        pages: &mut dyn Pages,
        contents: &mut Contents,
        directory: &Path,
    ) -> Result<PagesFigures, Stop> {
        let mut random = Random::new(self.spec.seed, 2);
        let mut latencies = Latencies::default();
        let device = Device::of(directory).ok();
        let device = || device.as_ref().and_then(Device::counters).unwrap_or_default();
        let (device_before, cpu_before) = (device(), thread_cpu_us());
        let (began, time) = (Instant::now(), Duration::from_secs(self.spec.seconds));
        let mut writes = 0;
        while began.elapsed() < time {
            let number = random.below(self.spec.pages);
            let content = contents.next();
            let start = Instant::now();
            self.write(pages, writes, number, content)?;
            latencies.record(start.elapsed().as_nanos() as u64 / 1000);
            writes += 1;
        }
        pages.sync()?;
        let seconds = began.elapsed().as_secs_f64();
        Ok(PagesFigures {
            fill_seconds: 0.0,
            writes,
            seconds,
            cpu_us: thread_cpu_us() - cpu_before,
            write_us: [latencies.percentile(50.0), latencies.percentile(99.0), latencies.max()],
            device_written_bytes: device().since(&device_before).written_bytes,
            pages_in_two_slots: 0,
            allocated_bytes: 0,
            apparent_bytes: 0,
            used_bytes: 0,
            extents: None,
            drop: DropFigures::default(),
        })
    }

    /// Reads a sample of the pages: each must decode to a whole page.
    fn compare(&self, pages: &mut dyn Pages) -> Result<(), Stop> {
        let mut page = Vec::new();
        let mut random = Random::new(self.spec.seed, 3);
        for _ in 0..self.spec.pages.min(1_000) {
            let number = random.below(self.spec.pages);
            pages.read(number, &mut page)?;
            if page.len() != PAGE_BYTES {
                let what = format!("page {number} came back with {} bytes", page.len());
                return Err(RunError::new(what).into());
            }
        }
        Ok(())
    }
}

/// Drops the pages while somebody else writes a file of the same file system.
fn drop_pages(pages: Box<dyn Pages>, mounted: &Mounted) -> Result<DropFigures, RunError> {
    let used = || mounted.file_system().used_bytes();
    let before_bytes = used();
    let space = Space { used: &used, before_bytes, dropped_bytes: before_bytes };
    let mut neighbour = FileWriter::new(mounted.directory())?;
    dropping::measure(&mut neighbour, &space, || pages.remove())
}
