//! Threads in real time whose date is that of a virtual clock, so that rows expire when a check says so.

use lithify::base::Clock;
use lithify::fs::{Environment, Event, MemoryEnvironment, SystemEnvironment, Thread};
use std::sync::Arc;

/// The system's environment with the date of another one.
pub(crate) struct Dated(pub(crate) MemoryEnvironment);

impl Clock for Dated {
    fn now_us(&self) -> u64 {
        SystemEnvironment.now_us()
    }

    fn thread_cpu_ns(&self) -> u64 {
        SystemEnvironment.thread_cpu_ns()
    }

    fn ticks(&self) -> u64 {
        SystemEnvironment.ticks()
    }

    fn unix_time_s(&self) -> u64 {
        self.0.unix_time_s()
    }
}

impl Environment for Dated {
    fn new_event(&self) -> Arc<dyn Event> {
        SystemEnvironment.new_event()
    }

    fn spawn(
        &self,
        name: &str,
        body: Box<dyn FnOnce() + Send>,
    ) -> lithify::Result<Box<dyn Thread>> {
        SystemEnvironment.spawn(name, body)
    }

    fn random_u128(&self) -> u128 {
        SystemEnvironment.random_u128()
    }
}
