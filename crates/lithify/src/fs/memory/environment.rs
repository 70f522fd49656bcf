//! A virtual clock, no threads, and randomness from a seed.

use super::random::{STEP, mix};
use crate::base::{Clock, lock};
use crate::fs::{CodecCall, Environment, Event, Thread};
use crate::{Error, ErrorKind, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Unix time at the start of every memory world, in seconds (2020-01-01).
const UNIX_TIME_START_S: u64 = 1_577_836_800;

/// An environment of one thread in virtual time. Time moves only by [`Self::advance_us`] and by
/// waiting: a wait with a timeout moves it to the deadline and returns false at once, because
/// with no other thread nothing can notify. A wait without a timeout would never end; it returns
/// false too and is counted in [`Self::endless_waits`], which a test expects to stay 0.
///
/// Whoever waits in a loop for what nobody will do never returns; [`Self::set_watch`] lets a test
/// end that.
///
/// It is safe from several threads, but does not make them wait for each other: for threads over
/// a memory file system put a [`SystemEnvironment`](crate::fs::SystemEnvironment) beside it. CPU time and ticks
/// follow the clock. A clone is the same environment.
#[derive(Clone)]
pub struct MemoryEnvironment {
    state: Arc<State>,
}

struct State {
    seed: u64,
    now_us: AtomicU64,
    random_position: AtomicU64,
    endless_waits: AtomicU64,
    waits: AtomicU64,
    watch: Mutex<Option<Arc<WaitWatch>>>,
}

/// Told of every wait with the number of waits before it.
pub type WaitWatch = dyn Fn(u64) + Send + Sync;

impl MemoryEnvironment {
    /// A new environment at time 0.
    pub fn new(seed: u64) -> Self {
        MemoryEnvironment {
            state: Arc::new(State {
                seed,
                now_us: AtomicU64::new(0),
                random_position: AtomicU64::new(mix(seed)),
                endless_waits: AtomicU64::new(0),
                waits: AtomicU64::new(0),
                watch: Mutex::default(),
            }),
        }
    }

    /// Moves the clock on.
    pub fn advance_us(&self, by_us: u64) {
        self.state.now_us.fetch_add(by_us, Ordering::SeqCst);
    }

    /// Calls `watch` before every wait from now on; it may panic to end one that is repeated for
    /// ever.
    pub fn set_watch(&self, watch: Box<WaitWatch>) {
        *lock(&self.state.watch) = Some(Arc::from(watch));
    }

    /// How many waits would never have ended: each one is a lost wake-up or a deadlock.
    pub fn endless_waits(&self) -> u64 {
        self.state.endless_waits.load(Ordering::SeqCst)
    }

    fn random_u64(&self) -> u64 {
        mix(self.state.random_position.fetch_add(STEP, Ordering::SeqCst))
    }
}

impl Clock for MemoryEnvironment {
    fn now_us(&self) -> u64 {
        self.state.now_us.load(Ordering::SeqCst)
    }

    fn thread_cpu_ns(&self) -> u64 {
        self.now_us().wrapping_mul(1000)
    }

    fn ticks(&self) -> u64 {
        self.now_us()
    }

    fn unix_time_s(&self) -> u64 {
        UNIX_TIME_START_S + self.now_us() / 1_000_000
    }
}

impl Environment for MemoryEnvironment {
    fn new_event(&self) -> Arc<dyn Event> {
        Arc::new(MemoryEvent { generation: AtomicU64::new(0), environment: self.clone() })
    }

    fn spawn(&self, name: &str, _body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn Thread>> {
        let what =
            format!("cannot start the thread {name}: a memory world has none; set 0 threads");
        Err(Error::new(ErrorKind::Unsupported, what))
    }

    fn random_u128(&self) -> u128 {
        u128::from(self.random_u64()) << 64 | u128::from(self.random_u64())
    }

    fn codec_cpu_ns(&self, call: &CodecCall, work: &mut dyn FnMut()) -> u64 {
        work();
        let CodecCall { codec, effort, has_dictionary, encodes, raw_bytes } = *call;
        // Nanoseconds per KiB, of the order of a real machine's.
        let base = match (codec, encodes) {
            (0, _) => 20,
            (1 | 3, true) => 2_000,
            (1 | 3, false) => 400,
            (_, true) => 5_000,
            (_, false) => 1_800,
        };
        let strength = 1 + u64::from(effort.unsigned_abs()) / 3 * u64::from(encodes);
        // Each seed has a machine of its own: 3/4 to 5/4 of the table.
        let which = u64::from(codec) << 40 | u64::from(effort.unsigned_abs()) << 8;
        let kind = u64::from(has_dictionary) << 1 | u64::from(encodes);
        let quirk = mix(self.state.seed ^ which ^ kind) % 512 + 768;
        raw_bytes * base * strength / 1024 * quirk / 1024
    }
}

struct MemoryEvent {
    generation: AtomicU64,
    environment: MemoryEnvironment,
}

impl Event for MemoryEvent {
    fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }

    fn notify_all(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
    }

    fn wait(&self, seen: u64, timeout_us: Option<u64>) -> bool {
        if self.generation() != seen {
            return true;
        }
        let state = &self.environment.state;
        let waits = state.waits.fetch_add(1, Ordering::SeqCst);
        let watch = lock(&state.watch).clone();
        if let Some(watch) = watch {
            watch(waits);
        }
        match timeout_us {
            Some(timeout_us) => self.environment.advance_us(timeout_us),
            None => {
                state.endless_waits.fetch_add(1, Ordering::SeqCst);
            }
        }
        self.generation() != seen
    }
}
