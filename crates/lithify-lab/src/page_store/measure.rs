//! One layout on a file system of its own, measured in this process: fill, updates, sizes, drop.

use std::path::Path;
use std::time::{Duration, Instant};

use super::store::{Layout, PageFile};
use super::tree::PageTree;
use super::{Contents, PAGE_BYTES, Pages, PagesFigures, PagesResult, PagesSpec, Place, SYNC_PAGES};
use crate::latency::Latencies;
use crate::meter::machine::Machine;
use crate::meter::process::thread_cpu_us;
use crate::meter::space::{directory_size, extents};
use crate::meter::system::Device;
use crate::meter::unix_seconds;
use crate::random::Random;
use crate::run::RunError;
use crate::run::cells::Job;
use crate::run::dropping::{self, DropFigures, FileWriter, Space};
use crate::run::file_system::CellFileSystem;
use crate::run::process::end_with_parent;
use crate::run::progress::{Listener, ProgressLine};
use crate::run::store::write_json;

/// Does a job and writes its result. Asks the kernel to end this process with its parent.
///
/// # Errors
/// The file system's, the engine's, or the result cannot be written.
pub fn run_job(job: &Job<Place>, listener: Listener<'_>) -> Result<(), RunError> {
    end_with_parent(job.parent)?;
    let own = job.file_system.as_ref();
    let own = own.ok_or_else(|| RunError::new("pages need a file system of their own"))?;
    write_json(&job.result_path, &measure(&job.cell, &job.data_directory, own, listener)?)
}

/// Measures one cell in `directory`, which lies on the file system `own`.
///
/// # Errors
/// The file system's, or the engine's.
pub(super) fn measure(
    place: &Place,
    directory: &Path,
    own: &CellFileSystem,
    listener: Listener<'_>,
) -> Result<PagesResult, RunError> {
    let started_unix_s = unix_seconds();
    let spec = &place.spec;
    let mut pages: Box<dyn Pages> = match place.layout {
        Layout::Tree => Box::new(PageTree::open(directory, spec.codec)?),
        layout => Box::new(PageFile::create(directory, layout, spec.codec, spec.pages)?),
    };
    let mut contents = Contents::new(spec.seed);
    let began = Instant::now();
    for number in 0..spec.pages {
        write(&mut *pages, number, number, contents.next())?;
        if number % SYNC_PAGES == 0 {
            let done = [number, spec.pages];
            listener(&ProgressLine::of_progress("fill", done, "pages", 0));
        }
    }
    pages.sync()?;
    let fill_seconds = began.elapsed().as_secs_f64();
    let mut figures = updates(spec, &mut *pages, &mut contents, directory, listener)?;
    figures.fill_seconds = fill_seconds;
    listener(&ProgressLine::of_stage("check"));
    compare(spec, &mut *pages)?;
    listener(&ProgressLine::of_stage("settle"));
    pages.settle()?;
    figures.pages_in_two_slots = pages.pages_in_two_slots();
    figures.used_bytes = own.used_bytes();
    let size = directory_size(directory);
    figures.allocated_bytes = size.allocated_bytes;
    figures.apparent_bytes = size.apparent_bytes;
    figures.extents = extents(directory);
    listener(&ProgressLine::of_stage("drop"));
    figures.drop = drop_pages(pages, directory, own)?;
    Ok(PagesResult {
        spec: spec.clone(),
        started_unix_s,
        // Of the file system below, where the file lies that the own one is in.
        machine: Some(Machine::describe(own.directory.parent().unwrap_or(&own.directory))),
        cell: place.cell(None, Some(figures)),
    })
}

fn write(pages: &mut dyn Pages, count: u64, number: u64, content: &[u8]) -> Result<(), RunError> {
    pages.write(number, content)?;
    if (count + 1).is_multiple_of(SYNC_PAGES) {
        pages.sync()?;
    }
    Ok(())
}

fn updates(
    spec: &PagesSpec,
    pages: &mut dyn Pages,
    contents: &mut Contents,
    directory: &Path,
    listener: Listener<'_>,
) -> Result<PagesFigures, RunError> {
    let mut random = Random::new(spec.seed, 2);
    let mut latencies = Latencies::default();
    let device = Device::of(directory).ok();
    let device = || device.as_ref().and_then(Device::counters).unwrap_or_default();
    let (device_before, cpu_before) = (device(), thread_cpu_us());
    let (began, time) = (Instant::now(), Duration::from_secs(spec.seconds));
    let (mut writes, mut told_s) = (0, 0);
    while began.elapsed() < time {
        let number = random.below(spec.pages);
        let content = contents.next();
        let start = Instant::now();
        write(pages, writes, number, content)?;
        latencies.record(start.elapsed().as_nanos() as u64 / 1000);
        writes += 1;
        let at_s = began.elapsed().as_secs();
        if at_s > told_s {
            told_s = at_s;
            let done = [at_s, spec.seconds];
            listener(&ProgressLine::of_progress("update", done, "seconds", writes / at_s));
        }
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
fn compare(spec: &PagesSpec, pages: &mut dyn Pages) -> Result<(), RunError> {
    let mut page = Vec::new();
    let mut random = Random::new(spec.seed, 3);
    for _ in 0..spec.pages.min(1_000) {
        let number = random.below(spec.pages);
        pages.read(number, &mut page)?;
        if page.len() != PAGE_BYTES {
            let what = format!("page {number} came back with {} bytes", page.len());
            return Err(RunError::new(what));
        }
    }
    Ok(())
}

/// Drops the pages while somebody else writes a file of the same file system.
fn drop_pages(
    pages: Box<dyn Pages>,
    directory: &Path,
    own: &CellFileSystem,
) -> Result<DropFigures, RunError> {
    let used = || own.used_bytes();
    let before_bytes = used();
    let space = Space { used: &used, before_bytes, dropped_bytes: before_bytes };
    let mut neighbour = FileWriter::new(directory)?;
    dropping::measure(&mut neighbour, &space, || pages.remove())
}
