//! Reading no faster than the caller allows, by waiting.

use super::{Environment, Event};
use crate::Result;
use std::sync::Arc;

/// A wait is cut into pieces of at most this length, so that the caller can end it.
const WAIT_US_MAX: u64 = 100_000;

/// At most so many bytes a second, from when it was made on.
pub(crate) struct RateLimit {
    bytes_per_second: u64,
    started_us: u64,
    event: Arc<dyn Event>,
}

impl RateLimit {
    /// 0 is no limit.
    pub(crate) fn new(environment: &dyn Environment, bytes_per_second: u64) -> Self {
        let event = environment.new_event();
        RateLimit { bytes_per_second, started_us: environment.now_us(), event }
    }

    /// Waits until so many bytes in all may have been read; `on_wait` is called after each piece
    /// of the wait and ends it by an error.
    pub(crate) fn wait(
        &self,
        environment: &dyn Environment,
        bytes: u64,
        mut on_wait: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        if self.bytes_per_second == 0 {
            return Ok(());
        }
        let due_us = u128::from(bytes) * 1_000_000 / u128::from(self.bytes_per_second);
        let due_us = u64::try_from(due_us).unwrap_or(u64::MAX);
        loop {
            let elapsed_us = environment.now_us().saturating_sub(self.started_us);
            if elapsed_us >= due_us {
                return Ok(());
            }
            let wait_us = (due_us - elapsed_us).min(WAIT_US_MAX);
            self.event.wait(self.event.generation(), Some(wait_us));
            on_wait()?;
        }
    }
}
