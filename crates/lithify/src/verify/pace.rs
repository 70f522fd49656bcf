//! How far reading has come, at most how fast it goes, and whether it is to end.

use super::OnProgress;
use crate::fs::{Environment, RateLimit, World};
use crate::{Error, ErrorKind, Result};
use std::sync::Arc;

/// The caller hears of progress whenever so many bytes have been read.
const REPORT_BYTES: u64 = 256 << 10;

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
    rate: RateLimit,
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
            rate: RateLimit::new(&*world.environment, rate_bytes_per_s),
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
            tell(self.on_progress, &self.progress, &mut self.is_cancelled)?;
        }
        let environment = Arc::clone(&self.environment);
        let done_bytes = self.progress.done_bytes;
        let Pace { rate, progress, on_progress, is_cancelled, .. } = self;
        rate.wait(&*environment, done_bytes, || tell(on_progress, progress, is_cancelled))
    }
}

/// Tells the caller how far it is; [`ErrorKind::Cancelled`] once the caller has ended it.
fn tell(
    on_progress: &mut OnProgress<'_>,
    progress: &Progress,
    is_cancelled: &mut bool,
) -> Result<()> {
    *is_cancelled = *is_cancelled || on_progress(progress).is_break();
    match is_cancelled {
        true => Err(Error::new(ErrorKind::Cancelled, "stopped by the caller")),
        false => Ok(()),
    }
}
