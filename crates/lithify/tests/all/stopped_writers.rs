//! When a stopped writer goes on. The clock stands still, so that no writer is merely slowed, and none
//! that waits is woken by a deadline.

use crate::support::{PATH, Parts, Random, small_options};
use lithify::fs::{
    Clock, Environment, Event as WaitEvent, FileCallKind, SystemEnvironment, Thread, World,
};
use lithify::stats::{DelayCause, JobKind};
use lithify::{CfOptions, Db, Event, EventListener, Options, Result};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// How long the test waits for what comes at once, before it says that it never will.
const PATIENCE: Duration = Duration::from_secs(20);
/// Writes of tables behind the stop by which the compaction has done a step, and is not at its end.
const WRITES_OF_A_STEP: u32 = 1;

/// The system's threads, and a clock that stands still.
struct StandingClock(SystemEnvironment);

impl Clock for StandingClock {
    fn now_us(&self) -> u64 {
        0
    }
    fn thread_cpu_ns(&self) -> u64 {
        self.0.thread_cpu_ns()
    }
    fn ticks(&self) -> u64 {
        self.0.ticks()
    }
    fn unix_time_s(&self) -> u64 {
        self.0.unix_time_s()
    }
}

impl Environment for StandingClock {
    fn new_event(&self) -> Arc<dyn WaitEvent> {
        Arc::new(NoTimeout(self.0.new_event()))
    }
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn Thread>> {
        self.0.spawn(name, body)
    }
    fn random_u128(&self) -> u128 {
        self.0.random_u128()
    }
}

/// An event at which only a notification ends a wait: time does not pass.
struct NoTimeout(Arc<dyn WaitEvent>);

impl WaitEvent for NoTimeout {
    fn generation(&self) -> u64 {
        self.0.generation()
    }
    fn notify_all(&self) {
        self.0.notify_all();
    }
    fn wait(&self, seen: u64, _timeout_us: Option<u64>) -> bool {
        self.0.wait(seen, None)
    }
}

/// How far the test is. Compactions wait until a writer is stopped, do a step, and wait until it has
/// gone on.
#[derive(Default)]
struct Progress {
    is_stopped: bool,
    writes_since: u32,
    has_gone_on: bool,
    is_given_up: bool,
}

#[derive(Default)]
struct Gate {
    progress: Mutex<Progress>,
    changed: Condvar,
}

impl Gate {
    fn tell(&self, change: impl FnOnce(&mut Progress)) {
        change(&mut self.progress.lock().unwrap());
        self.changed.notify_all();
    }

    fn wait_while(&self, waits: impl Fn(&Progress) -> bool) {
        let progress = self.progress.lock().unwrap();
        let waited = self.changed.wait_timeout_while(progress, PATIENCE, |now| waits(now));
        let (mut progress, timeout) = waited.unwrap();
        progress.is_given_up |= timeout.timed_out();
    }

    /// A compaction begins: it waits until a writer is stopped.
    fn compaction_began(&self) {
        self.wait_while(|progress| !progress.is_stopped);
    }

    /// A table is written to: beyond a step behind the stop, it waits until the writer has gone on.
    fn table_write(&self) {
        if !self.progress.lock().unwrap().is_stopped {
            return;
        }
        self.tell(|progress| progress.writes_since += 1);
        self.wait_while(|progress| {
            progress.writes_since > WRITES_OF_A_STEP && !progress.has_gone_on
        });
    }

    fn is_over(&self) -> bool {
        let progress = self.progress.lock().unwrap();
        progress.is_stopped || progress.is_given_up
    }
}

/// What a running job has done already makes room, and its end is far away.
#[test]
fn a_stopped_writer_goes_on_in_the_midst_of_a_compaction() {
    let gate = Arc::new(Gate::default());
    let parts = Parts::new(1);
    let at_calls = Arc::clone(&gate);
    parts.files.set_fault(Box::new(move |call| {
        let is_table = call.path.extension().is_some_and(|extension| extension == "sst");
        if is_table && call.kind == FileCallKind::Write {
            at_calls.table_write();
        }
        None
    }));
    let at_events = Arc::clone(&gate);
    let event_listener = EventListener::new(move |event| match event {
        Event::JobBegan(job) if job.kind == JobKind::Compaction => at_events.compaction_began(),
        Event::WritesStopped { cause: DelayCause::Level0, .. } => {
            at_events.tell(|progress| progress.is_stopped = true);
        }
        _ => {}
    });
    let options = Options { background_threads: 2, event_listener, ..small_options() };
    let world = World { environment: Arc::new(StandingClock(SystemEnvironment)), ..parts.world() };
    let db = Db::open_in(PATH, options, world).unwrap();
    let family = CfOptions { table_bytes: 64 << 10, ..CfOptions::default() };
    let family = db.column_family("rows", family).unwrap();
    let mut random = Random(2);
    while !gate.is_over() {
        for _ in 0..50 {
            family.put(random.below(10_000).to_be_bytes(), random.bytes(1_000)).unwrap();
        }
        if !gate.is_over() {
            family.flush().unwrap();
        }
    }
    gate.tell(|progress| progress.has_gone_on = true);
    let stops = db.stats().figures.stops(DelayCause::Level0).count;
    db.close().unwrap();
    assert!(stops > 0);
    assert!(!gate.progress.lock().unwrap().is_given_up, "the writer waits for the job's end");
}
