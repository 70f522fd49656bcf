//! Clocks, threads, waiting and randomness of the operating system.

use super::{platform, ticks};
use crate::base::Clock;
use crate::base::sync::{AtomicU64, AtomicUsize, Condvar, Mutex, lock};
use crate::fs::{BytesRead, Environment, Event, Thread};
use crate::{Error, ErrorKind, Result};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Clocks, threads, waiting and randomness of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEnvironment;

impl Clock for SystemEnvironment {
    fn now_us(&self) -> u64 {
        platform::monotonic_ns() / 1000
    }

    fn thread_cpu_ns(&self) -> u64 {
        platform::thread_cpu_ns()
    }

    fn ticks(&self) -> u64 {
        ticks::ticks()
    }

    fn unix_time_s(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
    }
}

impl Environment for SystemEnvironment {
    fn new_event(&self) -> Arc<dyn Event> {
        Arc::new(SystemEvent::default())
    }

    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn Thread>> {
        let builder = std::thread::Builder::new().name(name.replace('\0', "?"));
        match builder.spawn(body) {
            Ok(handle) => Ok(Box::new(SystemThread(handle))),
            Err(e) => {
                let what = format!("cannot start the thread {name}");
                Err(Error::new(ErrorKind::Io, what).because(e))
            }
        }
    }

    fn give_way(&self, nice: u32) {
        platform::give_way(nice);
    }

    fn random_u128(&self) -> u128 {
        match platform::random_bytes() {
            Some(bytes) => u128::from_le_bytes(bytes),
            // The standard library's hash seeds are random too.
            None => {
                let half = || u128::from(RandomState::new().hash_one(platform::monotonic_ns()));
                half() << 64 | half()
            }
        }
    }

    fn bytes_read(&self) -> Option<BytesRead> {
        platform::bytes_read()
    }
}

struct SystemThread(std::thread::JoinHandle<()>);

impl Thread for SystemThread {
    fn join(self: Box<Self>) {
        // A panic has been printed by its own thread; whoever joins only needs to know the end.
        let _ = self.0.join();
    }
}

/// A generation, and a condition variable that is touched only when somebody waits.
///
/// No notification is lost: a waiter counts itself before it reads the generation, a notifier
/// moves the generation before it reads the count, all sequentially consistent, so at least one
/// of them sees the other. A notifier that sees a waiter passes through the mutex, so the waiter
/// has either not looked yet or is already waiting.
#[derive(Default)]
struct SystemEvent {
    generation: AtomicU64,
    waiters: AtomicUsize,
    mutex: Mutex<()>,
    moved: Condvar,
}

impl Event for SystemEvent {
    fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }

    fn notify_all(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
        if self.waiters.load(Ordering::SeqCst) > 0 {
            drop(lock(&self.mutex));
            self.moved.notify_all();
        }
    }

    fn wait(&self, seen: u64, timeout_us: Option<u64>) -> bool {
        if self.generation() != seen {
            return true;
        }
        // A deadline beyond the end of the clock is none.
        let deadline =
            timeout_us.and_then(|t| Instant::now().checked_add(Duration::from_micros(t)));
        if !planted!(WaiterCountedLate) {
            self.waiters.fetch_add(1, Ordering::SeqCst);
        }
        let moved = self.wait_counted(seen, deadline);
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        moved
    }
}

impl SystemEvent {
    fn wait_counted(&self, seen: u64, deadline: Option<Instant>) -> bool {
        let mut guard = lock(&self.mutex);
        while self.generation() == seen {
            if planted!(WaiterCountedLate) {
                self.waiters.fetch_add(1, Ordering::SeqCst);
            }
            guard = match deadline {
                None => self.moved.wait(guard).unwrap_or_else(|poisoned| poisoned.into_inner()),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return false;
                    }
                    let woken = self.moved.wait_timeout(guard, left);
                    woken.unwrap_or_else(|poisoned| poisoned.into_inner()).0
                }
            };
        }
        true
    }
}
