//! What it costs to get rid of the pages, and what somebody sees who writes meanwhile.
//!
//! A thread writes and syncs a block of another file on the same file system again and again: first
//! alone, then while the pages are dropped, until their space is back.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::Pages;
use crate::meter::process::thread_cpu_us;
use crate::run::RunError;
use crate::run::file_system::Mounted;

/// How long the writer beside writes alone.
const ALONE: Duration = Duration::from_millis(500);

/// Between two writes.
const PAUSE: Duration = Duration::from_micros(500);

/// What the writer beside writes.
const BLOCK: [u8; 4096] = [0xa5; 4096];

/// The space counts as back when less than this part of it is missing.
const BACK_DIVISOR: u64 = 20;

/// A file system that has not freed the space by then is not waited for any longer.
const BACK_TIME_MAX: Duration = Duration::from_secs(120);

/// What dropping the pages cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DropFigures {
    /// Seconds until the call returned.
    pub call_seconds: f64,
    /// CPU of the calling thread, microseconds.
    pub cpu_us: u64,
    /// Seconds until the space was back.
    pub back_seconds: f64,
    /// True when it was not back in time.
    pub is_not_back: bool,
    /// The longest write and sync beside, alone, microseconds.
    pub longest_alone_us: u64,
    /// The same while the pages were dropped.
    pub longest_beside_us: u64,
}

/// Drops the pages.
///
/// # Errors
/// The store's, or the other file cannot be written.
pub(super) fn measure(pages: Box<dyn Pages>, mounted: &Mounted) -> Result<DropFigures, RunError> {
    let before_bytes = mounted.used_bytes();
    let (stop, longest_us) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let directory = mounted.directory();
        let writer = scope.spawn(|| write_beside(directory, &stop, &longest_us));
        thread::sleep(ALONE);
        let longest_alone_us = longest_us.swap(0, Ordering::Relaxed);
        let dropped = drop_pages(pages, mounted, before_bytes);
        stop.store(true, Ordering::Relaxed);
        let wrote = writer.join().unwrap_or_else(|_| Err(RunError::new("the writer panicked")));
        let figures = dropped.and_then(|figures| wrote.map(|()| figures))?;
        let longest_beside_us = longest_us.load(Ordering::Relaxed);
        Ok(DropFigures { longest_alone_us, longest_beside_us, ..figures })
    })
}

fn drop_pages(
    pages: Box<dyn Pages>,
    mounted: &Mounted,
    before_bytes: u64,
) -> Result<DropFigures, RunError> {
    let (began, cpu_before) = (Instant::now(), thread_cpu_us());
    pages.remove()?;
    let mut figures = DropFigures {
        call_seconds: began.elapsed().as_secs_f64(),
        cpu_us: thread_cpu_us() - cpu_before,
        ..DropFigures::default()
    };
    while mounted.used_bytes() > before_bytes / BACK_DIVISOR {
        if began.elapsed() > BACK_TIME_MAX {
            figures.is_not_back = true;
            break;
        }
        thread::sleep(PAUSE);
    }
    figures.back_seconds = began.elapsed().as_secs_f64();
    Ok(figures)
}

fn write_beside(
    directory: &Path,
    stop: &AtomicBool,
    longest_us: &AtomicU64,
) -> Result<(), RunError> {
    let path = directory.join("beside");
    let failed = |error| RunError::io(&path, error);
    let opened = OpenOptions::new().write(true).create(true).truncate(true).open(&path);
    let file = opened.map_err(failed)?;
    while !stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        file.write_all_at(&BLOCK, 0).and_then(|()| file.sync_data()).map_err(failed)?;
        longest_us.fetch_max(began.elapsed().as_micros() as u64, Ordering::Relaxed);
        thread::sleep(PAUSE);
    }
    Ok(())
}
