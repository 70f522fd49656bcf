//! Work in steps: one place that decides which background job advances next.
//!
//! 1. A [`Job`] owns its state. Its `step` does a bounded piece of work (64 to 256 KiB, or one
//!    call of a codec) and says whether there is more.
//! 2. A worker takes the most urgent job that can advance, runs one step without any lock, books
//!    its cost, and puts the job back. So a flush that comes in during a long compaction waits for
//!    one step, not for the compaction. Jobs of equal urgency run in the order they came.
//! 3. A job that waits for a file operation rests until its ticket is complete.
//! 4. With no workers at all, whoever waits through [`Scheduler::wait_until`] runs the steps
//!    himself. Nothing is left to chance then, and a simulator can replay a run.
//!
//! Promises: a job is in one thread at a time; [`Job::end`] is called exactly once for every job
//! that was ever submitted; a panic in a job ends that job, is reported, and kills no worker.
//! Idle workers sleep. All methods may be called from any thread, but `wait_until`, `wait_idle`
//! and `shutdown` never from inside a job, nor with a lock held that a job takes.

use super::pool::WorkerPool;
use crate::Result;
use crate::base::{Level, lock};
use crate::fs::{Environment, Event, Thread, Ticket};
use crate::stats::{Cause, Counter, Ledger, StepClock, WorkMeter};
use std::any::Any;
use std::cmp::Reverse;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

/// How often the tickets of waiting jobs are looked at if no completion is announced.
const TICKET_POLL_US: u64 = 1_000;

/// How often idle workers call what they were asked to.
const TICK_US: u64 = 1_000_000;

/// What a step came to.
pub enum Step {
    /// There is more to do.
    Progress,
    /// There is more to do once this operation has ended.
    Waiting(Ticket),
    /// The job is over; its step has already undone what a failure left behind.
    Done(Result<()>),
}

/// How a job ended.
#[derive(Debug)]
pub enum Ending {
    /// By itself.
    Done(Result<()>),
    /// Before it was over, because the scheduler was shut down.
    Aborted,
    /// In a panic with this message; its state is not to be trusted.
    Panicked(String),
}

/// Who goes first; a later one in this list goes before an earlier one, and the larger score (in
/// thousandths) before the smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// What can wait for ever: repaying codec debt, verification.
    Idle,
    /// A level over its target.
    Compaction(u32),
    /// Short and it frees space: removing files.
    Deletion,
    /// Level 0 has too many runs, which slows reads and soon writers.
    Level0(u32),
    /// Frees memory that writers wait for.
    Flush,
}

/// What a job has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// CPU time of its steps.
    pub cpu_ns: u64,
    /// Wall time from the start of its first step to the end of its last.
    pub wall_us: u64,
    /// Steps.
    pub steps: u64,
}

/// What a step works with.
pub struct StepContext<'a> {
    /// Clocks, randomness.
    pub environment: &'a dyn Environment,
    /// Where bytes are booked; the CPU time is booked by the scheduler.
    pub ledger: &'a Ledger,
    /// Where the parts of the step's CPU time are metered.
    pub meter: &'a mut WorkMeter,
    /// What the steps before this one used.
    pub spent: Spent,
}

/// A piece of background work.
pub trait Job: Send {
    /// What it is, for messages: "flush of links".
    fn name(&self) -> String;
    /// The cause under which its steps are booked.
    fn cause(&self) -> Cause;
    /// The level for which it works: the target level of a compaction.
    fn level(&self) -> Level;
    /// How urgent it is now. Asked before every step, under the scheduler's lock: be quick, take
    /// no lock.
    fn urgency(&self) -> Urgency;
    /// Advances by a bounded piece of work. Not called again after [`Step::Done`].
    fn step(&mut self, context: &mut StepContext<'_>) -> Step;
    /// The end. A job that did not end by itself gives back here what it holds.
    fn end(self: Box<Self>, ending: Ending, spent: Spent);
}

/// Chooses among so many jobs that can advance (in the order they came), instead of urgency: how
/// a simulator tries out interleavings. Must return a smaller number than it was given.
pub type StepOrder = Box<dyn FnMut(usize) -> usize + Send>;

/// How a scheduler is set up.
pub struct SchedulerOptions {
    /// Worker threads; with 0 the waiting callers do the work. Not used with `pool`.
    pub threads: usize,
    /// Workers that are there already, and work for other schedulers too.
    pub pool: Option<Arc<WorkerPool>>,
    /// By how many nice levels they give way to the thread that makes the scheduler.
    pub nice: u32,
    /// Called with a message when a job has panicked; the database stops writing then.
    pub on_panic: Box<dyn Fn(&str) + Send + Sync>,
    /// Called by a worker about every second while there is nothing to run, once
    /// [`Scheduler::set_ticking`] has asked for it.
    pub on_tick: Box<dyn Fn() + Send + Sync>,
    /// Steps by urgency if `None`.
    pub order: Option<StepOrder>,
}

/// What becomes of the jobs at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// They are carried through.
    Finish,
    /// They end after the step that they are in.
    Abort,
}

struct Slot {
    id: u64,
    job: Box<dyn Job>,
    ticket: Option<Ticket>,
    spent: Spent,
    start_us: Option<u64>,
}

impl Slot {
    fn can_advance(&self) -> bool {
        self.ticket.as_ref().is_none_or(Ticket::is_complete)
    }
}

struct State {
    /// Jobs that nobody is running, in the order they came.
    slots: Vec<Slot>,
    running: usize,
    next_id: u64,
    shutdown: Option<Shutdown>,
    order: Option<StepOrder>,
    /// What the callers wait at who drive the steps themselves.
    drivers: Vec<Arc<dyn Event>>,
}

impl State {
    fn take(&mut self) -> Option<Slot> {
        let can_advance = |slot: &Slot| slot.can_advance();
        let index = match &mut self.order {
            Some(order) => {
                let indexes: Vec<usize> =
                    (0..self.slots.len()).filter(|i| can_advance(&self.slots[*i])).collect();
                let chosen = if indexes.is_empty() { 0 } else { order(indexes.len()) };
                indexes.get(chosen).copied()?
            }
            None => {
                let candidates =
                    self.slots.iter().enumerate().filter(|(_, slot)| can_advance(slot));
                candidates.max_by_key(|(_, slot)| (slot.job.urgency(), Reverse(slot.id)))?.0
            }
        };
        self.running += 1;
        Some(self.slots.remove(index))
    }
}

/// What idle workers wait for, the least pressing first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Attention {
    /// For a call.
    None,
    /// And for the next tick.
    Tick,
    /// For tickets of jobs.
    Tickets,
}

impl Attention {
    pub(super) fn timeout_us(self) -> Option<u64> {
        match self {
            Attention::None => None,
            Attention::Tick => Some(TICK_US),
            Attention::Tickets => Some(TICKET_POLL_US),
        }
    }
}

pub(super) struct Shared {
    environment: Arc<dyn Environment>,
    ledger: Arc<Ledger>,
    on_panic: Box<dyn Fn(&str) + Send + Sync>,
    on_tick: Box<dyn Fn() + Send + Sync>,
    ticking: AtomicBool,
    threads: usize,
    state: Mutex<State>,
    /// There may be something to run, or to stop for.
    work: Arc<dyn Event>,
    /// A job has ended.
    ended: Arc<dyn Event>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// A job can advance, or has ended: wakes who may have waited for that.
    fn wake_drivers(&self, state: &State) {
        state.drivers.iter().for_each(|event| event.notify_all());
    }

    /// Runs one step of the most urgent job that can advance.
    pub(super) fn run_one(&self, clock: &mut StepClock) -> bool {
        let Some(mut slot) = self.lock().take() else { return false };
        slot.ticket = None;
        let start_us = *slot.start_us.get_or_insert_with(|| self.environment.now_us());
        let (cause, level) = (slot.job.cause(), slot.job.level());
        let mut meter = WorkMeter::default();
        let mut context = StepContext {
            environment: &*self.environment,
            ledger: &self.ledger,
            meter: &mut meter,
            spent: slot.spent,
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| slot.job.step(&mut context)));
        let cost = clock.finish(&*self.environment, &self.ledger, cause, level, &mut meter);
        self.ledger.count(Counter::Steps, 1);
        slot.spent.cpu_ns += cost.cpu_ns;
        slot.spent.wall_us = self.environment.now_us().saturating_sub(start_us);
        slot.spent.steps += 1;
        match outcome {
            Ok(Step::Progress) => self.put_back(slot),
            Ok(Step::Waiting(ticket)) => {
                slot.ticket = Some(ticket);
                self.put_back(slot);
            }
            Ok(Step::Done(result)) => self.end_running(slot, Ending::Done(result)),
            Err(panic) => {
                let message = format!("{}: {}", slot.job.name(), panic_message(&*panic));
                (self.on_panic)(&message);
                self.end_running(slot, Ending::Panicked(message));
            }
        }
        true
    }

    fn put_back(&self, slot: Slot) {
        let mut state = self.lock();
        if state.shutdown == Some(Shutdown::Abort) {
            drop(state);
            return self.end_running(slot, Ending::Aborted);
        }
        state.running -= 1;
        // Not at the end: among equals the older goes first, whoever ran last.
        let index = state.slots.partition_point(|other| other.id < slot.id);
        state.slots.insert(index, slot);
        self.wake_drivers(&state);
    }

    /// Ends a job that `run_one` took out, and only then counts it as no longer running.
    fn end_running(&self, slot: Slot, ending: Ending) {
        self.end(slot, ending);
        let mut state = self.lock();
        state.running -= 1;
        self.wake_drivers(&state);
        let stopping = state.shutdown.is_some();
        drop(state);
        self.ended.notify_all();
        if stopping {
            self.work.notify_all();
        }
    }

    fn end(&self, slot: Slot, ending: Ending) {
        if !matches!(ending, Ending::Done(Ok(())) | Ending::Aborted) {
            self.ledger.count(Counter::JobsFailed, 1);
        }
        let Slot { job, spent, .. } = slot;
        let name = job.name();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| job.end(ending, spent))) {
            (self.on_panic)(&format!("end of {name}: {}", panic_message(&*panic)));
        }
    }

    /// The body of a worker.
    fn work(&self) {
        loop {
            let mut clock = StepClock::start(&*self.environment);
            let mut seen = self.work.generation();
            let mut worked = false;
            while self.run_one(&mut clock) {
                seen = self.work.generation();
                worked = true;
            }
            if worked {
                // What the ends of jobs cost, and the looking for more.
                let nothing = &mut WorkMeter::default();
                clock.finish(&*self.environment, &self.ledger, Cause::Other, 0, nothing);
            }
            let state = self.lock();
            if state.shutdown.is_some() && state.slots.is_empty() {
                return;
            }
            drop(state);
            let attention = self.attention();
            if !self.work.wait(seen, attention.timeout_us()) && attention == Attention::Tick {
                self.tick();
            }
        }
    }

    /// What idle workers have to wait for.
    pub(super) fn attention(&self) -> Attention {
        match (self.lock().slots.is_empty(), self.ticking.load(Relaxed)) {
            (false, _) => Attention::Tickets,
            (true, true) => Attention::Tick,
            (true, false) => Attention::None,
        }
    }

    /// Does what is asked for about every second. Counts as a job, which a shutdown waits for.
    pub(super) fn tick(&self) {
        {
            let mut state = self.lock();
            if state.shutdown.is_some() || !self.ticking.load(Relaxed) {
                return;
            }
            state.running += 1;
        }
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (self.on_tick)())) {
            (self.on_panic)(&format!("a tick: {}", panic_message(&*panic)));
        }
        self.lock().running -= 1;
        self.ended.notify_all();
    }
}

/// What a panic said.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "panic without a message".to_owned(),
    }
}

/// The background work of a database. Dropping it aborts what is left.
pub struct Scheduler {
    shared: Arc<Shared>,
    workers: Mutex<Vec<Box<dyn Thread>>>,
    /// Until the shutdown: the last holder of a pool waits for its workers.
    pool: Mutex<Option<Arc<WorkerPool>>>,
}

impl Scheduler {
    /// Starts the workers.
    ///
    /// # Errors
    /// If a thread cannot be started; those already started have ended then.
    pub fn new(
        environment: Arc<dyn Environment>,
        ledger: Arc<Ledger>,
        options: SchedulerOptions,
    ) -> Result<Self> {
        let state = State {
            slots: Vec::new(),
            running: 0,
            next_id: 0,
            shutdown: None,
            order: options.order,
            drivers: Vec::new(),
        };
        let pool = options.pool;
        let own_threads = if pool.is_some() { 0 } else { options.threads };
        let shared = Arc::new(Shared {
            work: pool.as_ref().map_or_else(|| environment.new_event(), |p| p.work_event()),
            ended: environment.new_event(),
            environment,
            ledger,
            on_panic: options.on_panic,
            on_tick: options.on_tick,
            ticking: AtomicBool::new(false),
            threads: pool.as_ref().map_or(options.threads, |pool| pool.threads()),
            state: Mutex::new(state),
        });
        if let Some(pool) = &pool {
            pool.join(Arc::clone(&shared));
        }
        let scheduler = Scheduler { shared, workers: Mutex::default(), pool: Mutex::new(pool) };
        for index in 0..own_threads {
            let shared = Arc::clone(&scheduler.shared);
            let body = Box::new(move || {
                shared.environment.give_way(options.nice);
                shared.work();
            });
            let worker = scheduler.shared.environment.spawn(&format!("lithify-{index}"), body)?;
            scheduler.workers().push(worker);
        }
        Ok(scheduler)
    }

    /// Whether idle workers are to call [`SchedulerOptions::on_tick`].
    pub fn set_ticking(&self, ticking: bool) {
        if self.shared.ticking.swap(ticking, Relaxed) != ticking {
            self.shared.work.notify_all();
        }
    }

    fn workers(&self) -> MutexGuard<'_, Vec<Box<dyn Thread>>> {
        lock(&self.workers)
    }

    #[cfg(test)]
    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Jobs of which a thread does a step, and those that wait for a thread or the disk.
    pub fn running_and_waiting(&self) -> (usize, usize) {
        let state = self.shared.lock();
        (state.running, state.slots.len())
    }

    /// Hands over a job. After a shutdown it ends at once as aborted, and the answer is false.
    pub fn submit(&self, job: Box<dyn Job>) -> bool {
        let mut state = self.shared.lock();
        let slot =
            Slot { id: state.next_id, job, ticket: None, spent: Spent::default(), start_us: None };
        state.next_id += 1;
        if state.shutdown.is_some() {
            drop(state);
            self.shared.end(slot, Ending::Aborted);
            return false;
        }
        state.slots.push(slot);
        self.shared.wake_drivers(&state);
        drop(state);
        self.shared.work.notify_all();
        true
    }

    /// The event that a file system notifies when it completes a ticket.
    pub fn completion_event(&self) -> Arc<dyn Event> {
        Arc::clone(&self.shared.work)
    }

    /// Jobs submitted and not ended.
    pub fn job_count(&self) -> usize {
        let state = self.shared.lock();
        state.slots.len() + state.running
    }

    /// Runs one step of the most urgent job that can advance, in the calling thread. False if
    /// there is none. Meant for schedulers without workers; harmless beside them.
    pub fn drive_one(&self) -> bool {
        self.shared.run_one(&mut StepClock::start(&*self.shared.environment))
    }

    /// Waits until `condition` holds (true) or `deadline_us` has passed (false). Whoever makes the
    /// condition true notifies `event` afterwards. Without workers the caller does the background
    /// work meanwhile. Every blocking wait of the engine goes through here.
    pub fn wait_until(
        &self,
        event: &Arc<dyn Event>,
        deadline_us: Option<u64>,
        mut condition: impl FnMut() -> bool,
    ) -> bool {
        if self.shared.threads > 0 {
            return self.wait_driving(event, deadline_us, &mut condition, || false);
        }
        self.shared.lock().drivers.push(Arc::clone(event));
        let met = self.wait_driving(event, deadline_us, &mut condition, || self.drive_one());
        let mut state = self.shared.lock();
        if let Some(index) = state.drivers.iter().position(|driver| Arc::ptr_eq(driver, event)) {
            state.drivers.swap_remove(index);
        }
        met
    }

    fn wait_driving(
        &self,
        event: &Arc<dyn Event>,
        deadline_us: Option<u64>,
        condition: &mut dyn FnMut() -> bool,
        drive: impl Fn() -> bool,
    ) -> bool {
        loop {
            let seen = event.generation();
            if condition() {
                return true;
            }
            let left_us = match deadline_us {
                Some(deadline_us) => {
                    match deadline_us.saturating_sub(self.shared.environment.now_us()) {
                        0 => return false,
                        left_us => Some(left_us),
                    }
                }
                None => None,
            };
            if drive() {
                continue;
            }
            // With tickets outstanding and nobody else to poll them, the driver does.
            let polls = self.shared.threads == 0 && !self.shared.lock().slots.is_empty();
            let timeout_us = match polls {
                true => Some(left_us.map_or(TICKET_POLL_US, |left| left.min(TICKET_POLL_US))),
                false => left_us,
            };
            event.wait(seen, timeout_us);
        }
    }

    /// Waits until no job is left, or for the deadline.
    pub fn wait_idle(&self, deadline_us: Option<u64>) -> bool {
        let ended = Arc::clone(&self.shared.ended);
        self.wait_until(&ended, deadline_us, || self.job_count() == 0)
    }

    /// Takes no more jobs, finishes or aborts those it has, and ends the workers. Returns when
    /// all that is over; a second call does nothing, except that an abort cuts a finish short.
    pub fn shutdown(&self, shutdown: Shutdown) {
        let mut state = self.shared.lock();
        if state.shutdown != Some(Shutdown::Abort) {
            state.shutdown = Some(shutdown);
        }
        let aborted = match state.shutdown {
            Some(Shutdown::Abort) => std::mem::take(&mut state.slots),
            _ => Vec::new(),
        };
        drop(state);
        for slot in aborted {
            self.shared.end(slot, Ending::Aborted);
        }
        self.shared.work.notify_all();
        self.wait_idle(None);
        self.shared.work.notify_all();
        let workers = std::mem::take(&mut *self.workers());
        workers.into_iter().for_each(|worker| worker.join());
        let pool = lock(&self.pool).take();
        if let Some(pool) = pool {
            pool.leave(&self.shared);
        }
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.shutdown(Shutdown::Abort);
    }
}
