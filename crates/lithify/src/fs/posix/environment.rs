//! Clocks, threads, waiting and randomness of the operating system.

use super::machine;
use crate::base::Clock;
use crate::base::sync::{AtomicU64, AtomicUsize, Condvar, Mutex, lock};
use crate::fs::{BytesRead, Environment, Event, Thread};
use crate::{Error, ErrorKind, Result};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Clocks, threads, waiting and randomness of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct PosixEnvironment;

/// The level that gives way to all others.
#[cfg(any(target_os = "linux", target_os = "android"))]
const NICE_MAX: i32 = 19;

fn nanoseconds(time: Timespec) -> u64 {
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

pub(super) fn monotonic_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

impl Clock for PosixEnvironment {
    fn now_us(&self) -> u64 {
        monotonic_ns() / 1000
    }

    fn thread_cpu_ns(&self) -> u64 {
        nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
    }

    fn ticks(&self) -> u64 {
        machine::ticks()
    }

    fn unix_time_s(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
    }
}

impl Environment for PosixEnvironment {
    fn new_event(&self) -> Arc<dyn Event> {
        Arc::new(PosixEvent::default())
    }

    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn Thread>> {
        let builder = std::thread::Builder::new().name(name.replace('\0', "?"));
        match builder.spawn(body) {
            Ok(handle) => Ok(Box::new(PosixThread(handle))),
            Err(e) => {
                let what = format!("cannot start the thread {name}");
                Err(Error::new(ErrorKind::Io, what).because(e))
            }
        }
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn give_way(&self, nice: u32) {
        use rustix::process::{getpriority_process, setpriority_process};
        // Linux means the calling thread by no process; elsewhere it is the process as a whole.
        if let Ok(now) = getpriority_process(None) {
            let _ = setpriority_process(None, now.saturating_add_unsigned(nice).min(NICE_MAX));
        }
    }

    fn random_u128(&self) -> u128 {
        let mut bytes = [0_u8; 16];
        let flags = rustix::rand::GetRandomFlags::empty();
        match rustix::io::retry_on_intr(|| rustix::rand::getrandom(&mut bytes, flags)) {
            Ok(16) => u128::from_le_bytes(bytes),
            // A system that forbids the call: the standard library's hash seeds are random too.
            _ => {
                let half = || u128::from(RandomState::new().hash_one(monotonic_ns()));
                half() << 64 | half()
            }
        }
    }

    fn bytes_read(&self) -> Option<BytesRead> {
        let text = std::fs::read_to_string("/proc/self/io").ok()?;
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().parse().ok()
        };
        Some(BytesRead { by_calls: field("rchar:")?, from_devices: field("read_bytes:")? })
    }
}

struct PosixThread(std::thread::JoinHandle<()>);

impl Thread for PosixThread {
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
struct PosixEvent {
    generation: AtomicU64,
    waiters: AtomicUsize,
    mutex: Mutex<()>,
    moved: Condvar,
}

impl Event for PosixEvent {
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

impl PosixEvent {
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
