//! Workers that several schedulers share: the background threads of many databases in one process.
//!
//! 1. A worker takes one step of one scheduler, then looks at the next one: each has its turn, and in its
//!    turn its most urgent job. So a database with much to do delays a flush of another by one
//!    step of each that has work, whatever that work is.
//! 2. A scheduler that is shut down leaves; its own jobs have ended then, those of others run on.
//! 3. The workers end with the last handle.
//!
//! A panic in a job is the scheduler's matter ([`super::scheduler`]) and kills no worker.

use super::scheduler::{Attention, Shared};
use crate::base::lock;
use crate::fs::{Environment, Event, Thread};
use crate::stats::StepClock;
use crate::{Error, Result};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

struct PoolShared {
    environment: Arc<dyn Environment>,
    members: Mutex<Vec<Arc<Shared>>>,
    /// Whose turn it is.
    turn: AtomicUsize,
    /// There may be something to run, or to stop for.
    work: Arc<dyn Event>,
    is_ending: AtomicBool,
}

impl PoolShared {
    /// The members from the next turn on.
    fn in_turn(&self) -> impl Iterator<Item = Arc<Shared>> {
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        let member = move |step: usize| {
            let members = lock(&self.members);
            let count = members.len();
            (step < count).then(|| Arc::clone(&members[first.wrapping_add(step) % count]))
        };
        (0..).map_while(member)
    }

    /// Runs one step of the next member that has one.
    fn run_one(&self, clock: &mut StepClock) -> bool {
        self.in_turn().any(|member| member.run_one(clock))
    }

    /// The body of a worker.
    fn work(&self) {
        let mut clock = StepClock::start(&*self.environment);
        loop {
            let mut seen = self.work.generation();
            while self.run_one(&mut clock) {
                seen = self.work.generation();
            }
            // Asked behind every look at the generation: the end is announced once.
            if self.is_ending.load(Ordering::Acquire) {
                return;
            }
            let attention = self.in_turn().map(|member| member.attention()).max();
            let attention = attention.unwrap_or(Attention::None);
            if !self.work.wait(seen, attention.timeout_us()) && attention == Attention::Tick {
                self.in_turn().for_each(|member| member.tick());
            }
            clock = StepClock::start(&*self.environment);
        }
    }
}

/// See the module.
pub struct WorkerPool {
    shared: Arc<PoolShared>,
    workers: Mutex<Vec<Box<dyn Thread>>>,
    threads: usize,
}

impl WorkerPool {
    /// Starts the workers, so many nice levels behind the calling thread.
    ///
    /// # Errors
    /// If a thread cannot be started; those already started have ended then.
    pub fn new(environment: Arc<dyn Environment>, threads: usize, nice: u32) -> Result<Arc<Self>> {
        if threads == 0 {
            return Err(Error::invalid("shared workers are at least one thread"));
        }
        let shared = Arc::new(PoolShared {
            work: environment.new_event(),
            environment,
            members: Mutex::default(),
            turn: AtomicUsize::new(0),
            is_ending: AtomicBool::new(false),
        });
        let pool = WorkerPool { shared, workers: Mutex::default(), threads };
        for index in 0..threads {
            let shared = Arc::clone(&pool.shared);
            let body = Box::new(move || {
                shared.environment.give_way(nice);
                shared.work();
            });
            let name = format!("lithify-shared-{index}");
            let worker = pool.shared.environment.spawn(&name, body)?;
            lock(&pool.workers).push(worker);
        }
        Ok(Arc::new(pool))
    }

    /// How many there are.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// What wakes the workers.
    pub(super) fn work_event(&self) -> Arc<dyn Event> {
        Arc::clone(&self.shared.work)
    }

    pub(super) fn join(&self, member: Arc<Shared>) {
        lock(&self.shared.members).push(member);
        self.members_changed();
    }

    pub(super) fn leave(&self, member: &Arc<Shared>) {
        lock(&self.shared.members).retain(|other| !Arc::ptr_eq(other, member));
        self.members_changed();
    }

    /// A worker that goes by turns just then may have passed over a member that has work: it looks again.
    fn members_changed(&self) {
        self.shared.work.notify_all();
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        self.shared.is_ending.store(true, Ordering::Release);
        self.shared.work.notify_all();
        let workers = std::mem::take(&mut *lock(&self.workers));
        workers.into_iter().for_each(|worker| worker.join());
    }
}
