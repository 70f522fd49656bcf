//! An environment for tests: real threads and events, a clock that moves only when told to.

use crate::Result;
use crate::base::Clock;
use crate::fs::{Environment, Event, Thread};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};

/// Time stands still but for `advance` and for waits with a timeout where there are no threads.
#[derive(Default)]
pub(super) struct TestEnvironment {
    now_us: Arc<AtomicU64>,
    has_threads: bool,
}

impl TestEnvironment {
    pub(super) fn new(has_threads: bool) -> Arc<Self> {
        Arc::new(TestEnvironment { now_us: Arc::default(), has_threads })
    }

    pub(super) fn advance(&self, us: u64) {
        self.now_us.fetch_add(us, SeqCst);
    }
}

impl Clock for TestEnvironment {
    fn now_us(&self) -> u64 {
        self.now_us.load(SeqCst)
    }
    fn thread_cpu_ns(&self) -> u64 {
        self.now_us() * 1_000
    }
    fn ticks(&self) -> u64 {
        self.now_us() * 1_000
    }
    fn unix_time_s(&self) -> u64 {
        0
    }
}

struct TestEvent {
    generation: Mutex<u64>,
    moved: Condvar,
    /// The clock that a timeout moves on, if nothing else could.
    virtual_now_us: Option<Arc<AtomicU64>>,
}

impl Event for TestEvent {
    fn generation(&self) -> u64 {
        *self.generation.lock().unwrap()
    }
    fn notify_all(&self) {
        *self.generation.lock().unwrap() += 1;
        self.moved.notify_all();
    }
    fn wait(&self, seen: u64, timeout_us: Option<u64>) -> bool {
        let mut generation = self.generation.lock().unwrap();
        match (&self.virtual_now_us, timeout_us) {
            (Some(now_us), Some(timeout_us)) if *generation == seen => {
                now_us.fetch_add(timeout_us, SeqCst);
            }
            (None, Some(timeout_us)) => {
                let timeout = std::time::Duration::from_micros(timeout_us);
                let same = |now: &mut u64| *now == seen;
                generation = self.moved.wait_timeout_while(generation, timeout, same).unwrap().0;
            }
            (_, None) => {
                generation = self.moved.wait_while(generation, |now| *now == seen).unwrap();
            }
            _ => {}
        }
        *generation != seen
    }
}

struct TestThread(std::thread::JoinHandle<()>);

impl Thread for TestThread {
    fn join(self: Box<Self>) {
        self.0.join().unwrap();
    }
}

impl Environment for TestEnvironment {
    fn new_event(&self) -> Arc<dyn Event> {
        Arc::new(TestEvent {
            generation: Mutex::new(0),
            moved: Condvar::new(),
            virtual_now_us: (!self.has_threads).then(|| Arc::clone(&self.now_us)),
        })
    }
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn Thread>> {
        assert!(self.has_threads, "a thread where there are none");
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(body).unwrap();
        Ok(Box::new(TestThread(thread)))
    }
    fn random_u128(&self) -> u128 {
        4
    }
}
