//! How far reading has come, at most how fast it goes, and whether it is to end.

use super::OnProgress;
use crate::fs::{Environment, Event, World};
use crate::{Error, ErrorKind, Result};
use std::sync::Arc;

/// The caller hears of progress whenever so many bytes have been read.
const REPORT_BYTES: u64 = 256 << 10;

/// A wait is cut into pieces of this length, so that the caller can end it.
const WAIT_US_MAX: u64 = 100_000;

/// How far it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that have been gone through.
    pub done_bytes: u64,
    /// Bytes that there are to go through, as far as is known.
    pub total_bytes: u64,
}

/// See the module.
pub(crate) struct Pace<'a> {
    environment: Arc<dyn Environment>,
    event: Arc<dyn Event>,
    rate_bytes_per_s: u64,
    started_us: u64,
    progress: Progress,
    reported_bytes: u64,
    is_cancelled: bool,
    on_progress: &'a mut OnProgress<'a>,
}

impl<'a> Pace<'a> {
    pub(crate) fn new(
        world: &World,
        rate_bytes_per_s: u64,
        on_progress: &'a mut OnProgress<'_>,
    ) -> Pace<'a> {
        Pace {
            environment: Arc::clone(&world.environment),
            event: world.environment.new_event(),
            rate_bytes_per_s,
            started_us: world.environment.now_us(),
            progress: Progress::default(),
            reported_bytes: 0,
            is_cancelled: false,
            on_progress,
        }
    }

    /// So many more bytes are to be gone through.
    pub(crate) fn announce(&mut self, bytes: u64) {
        self.progress.total_bytes = self.progress.total_bytes.saturating_add(bytes);
    }

    /// Whether the caller has ended it.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_cancelled
    }

    /// So many more bytes have been gone through. Waits as long as the bound on the rate demands;
    /// an error once the caller has ended it.
    pub(crate) fn advance(&mut self, bytes: u64) -> Result<()> {
        let progress = &mut self.progress;
        progress.done_bytes = progress.done_bytes.saturating_add(bytes);
        progress.total_bytes = progress.total_bytes.max(progress.done_bytes);
        let is_end = progress.done_bytes == progress.total_bytes;
        let is_due = progress.done_bytes - self.reported_bytes >= REPORT_BYTES;
        if is_end || is_due || self.reported_bytes == 0 {
            self.reported_bytes = progress.done_bytes;
            self.report()?;
        }
        self.wait()
    }

    fn report(&mut self) -> Result<()> {
        if !self.is_cancelled && (self.on_progress)(&self.progress).is_break() {
            self.is_cancelled = true;
        }
        match self.is_cancelled {
            true => Err(Error::new(ErrorKind::Closed, "ended by the caller")),
            false => Ok(()),
        }
    }

    fn wait(&mut self) -> Result<()> {
        if self.rate_bytes_per_s == 0 {
            return Ok(());
        }
        let due_us =
            u128::from(self.progress.done_bytes) * 1_000_000 / u128::from(self.rate_bytes_per_s);
        let due_us = self.started_us.saturating_add(u64::try_from(due_us).unwrap_or(u64::MAX));
        loop {
            let now_us = self.environment.now_us();
            if now_us >= due_us {
                return Ok(());
            }
            let seen = self.event.generation();
            self.event.wait(seen, Some((due_us - now_us).min(WAIT_US_MAX)));
            if due_us - now_us > WAIT_US_MAX {
                self.report()?;
            }
        }
    }
}
