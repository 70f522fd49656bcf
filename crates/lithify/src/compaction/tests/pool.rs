use super::environment::TestEnvironment;
use crate::Result;
use crate::base::{Clock, Level};
use crate::compaction::pool::WorkerPool;
use crate::compaction::scheduler::*;
use crate::fs::{Environment, Event, Thread};
use crate::stats::{Cause, Ledger};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long a test waits for what comes at once, before it says that it never will.
const PATIENCE: Duration = Duration::from_secs(20);

type Hook = Box<dyn FnOnce() + Send>;

/// A test environment whose events call a hook before the next look at their generation.
struct HookedEnvironment {
    inner: Arc<TestEnvironment>,
    hook: Arc<Mutex<Option<Hook>>>,
}

impl HookedEnvironment {
    fn new() -> Arc<Self> {
        Arc::new(HookedEnvironment { inner: TestEnvironment::new(true), hook: Arc::default() })
    }

    /// Has the next look at a generation wait before it looks. Gives what tells of it, and what ends it.
    fn stop_next_look(&self) -> (Receiver<()>, Sender<()>) {
        let (reached, is_reached) = channel();
        let (release, is_released) = channel();
        let hook = move || {
            reached.send(()).unwrap();
            let _ = is_released.recv_timeout(PATIENCE);
        };
        *self.hook.lock().unwrap() = Some(Box::new(hook));
        (is_reached, release)
    }
}

impl Clock for HookedEnvironment {
    fn now_us(&self) -> u64 {
        self.inner.now_us()
    }
    fn thread_cpu_ns(&self) -> u64 {
        self.inner.thread_cpu_ns()
    }
    fn ticks(&self) -> u64 {
        self.inner.ticks()
    }
    fn unix_time_s(&self) -> u64 {
        self.inner.unix_time_s()
    }
}

impl Environment for HookedEnvironment {
    fn new_event(&self) -> Arc<dyn Event> {
        Arc::new(HookedEvent { inner: self.inner.new_event(), hook: Arc::clone(&self.hook) })
    }
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn Thread>> {
        self.inner.spawn(name, body)
    }
    fn random_u128(&self) -> u128 {
        self.inner.random_u128()
    }
}

struct HookedEvent {
    inner: Arc<dyn Event>,
    hook: Arc<Mutex<Option<Hook>>>,
}

impl Event for HookedEvent {
    fn generation(&self) -> u64 {
        let hook = self.hook.lock().unwrap().take();
        if let Some(hook) = hook {
            hook();
        }
        self.inner.generation()
    }
    fn notify_all(&self) {
        self.inner.notify_all();
    }
    fn wait(&self, seen: u64, timeout_us: Option<u64>) -> bool {
        self.inner.wait(seen, timeout_us)
    }
}

/// A job of one step.
struct OneStep(Box<dyn FnMut() + Send>);

impl Job for OneStep {
    fn name(&self) -> String {
        "one step".to_owned()
    }
    fn cause(&self) -> Cause {
        Cause::Other
    }
    fn level(&self) -> Level {
        0
    }
    fn urgency(&self) -> Urgency {
        Urgency::Idle
    }
    fn step(&mut self, _: &mut StepContext<'_>) -> Step {
        (self.0)();
        Step::Done(Ok(()))
    }
    fn end(self: Box<Self>, _: Ending, _: Spent) {}
}

fn member(environment: &Arc<HookedEnvironment>, pool: &Arc<WorkerPool>) -> Scheduler {
    let environment: Arc<dyn Environment> = Arc::clone(environment) as _;
    let ledger = Ledger::new(&*environment);
    let options = SchedulerOptions {
        threads: 0,
        pool: Some(Arc::clone(pool)),
        nice: 0,
        on_panic: Box::new(|_| {}),
        on_tick: Box::new(|| {}),
        order: None,
    };
    Scheduler::new(environment, ledger, options).unwrap()
}

/// Ends the pool while its worker, stopped before a look, does not look; the worker then has to end too.
fn end_before_look(pool: Arc<WorkerPool>, release: Sender<()>) {
    let work = pool.work_event();
    let before = work.generation();
    let (ended, is_ended) = channel();
    std::thread::spawn(move || {
        drop(pool);
        let _ = ended.send(());
    });
    while work.generation() == before {
        std::thread::yield_now();
    }
    release.send(()).unwrap();
    is_ended.recv_timeout(PATIENCE).expect("the pool ends");
}

#[test]
fn a_worker_that_is_about_to_look_around_sees_the_end_of_its_pool() {
    let environment = HookedEnvironment::new();
    let (is_reached, release) = environment.stop_next_look();
    let pool = WorkerPool::new(Arc::clone(&environment) as _, 1, 0).unwrap();
    is_reached.recv_timeout(PATIENCE).unwrap();
    end_before_look(pool, release);
}

#[test]
fn a_worker_that_has_just_done_a_job_sees_the_end_of_its_pool() {
    let environment = HookedEnvironment::new();
    let pool = WorkerPool::new(Arc::clone(&environment) as _, 1, 0).unwrap();
    let scheduler = member(&environment, &pool);
    let (stopped, stop) = channel();
    // The next look is the one after this job.
    let at_step = Arc::clone(&environment);
    let step = move || stopped.send(at_step.stop_next_look()).unwrap();
    assert!(scheduler.submit(Box::new(OneStep(Box::new(step)))));
    let (is_reached, release) = stop.recv_timeout(PATIENCE).unwrap();
    is_reached.recv_timeout(PATIENCE).unwrap();
    drop(scheduler);
    end_before_look(pool, release);
}

#[test]
fn a_worker_looks_again_when_members_have_changed() {
    let environment = HookedEnvironment::new();
    let pool = WorkerPool::new(Arc::clone(&environment) as _, 1, 0).unwrap();
    let work = pool.work_event();
    let before = work.generation();
    let scheduler = member(&environment, &pool);
    let joined = work.generation();
    assert_ne!(joined, before, "a member has joined");
    pool.leave(scheduler.shared());
    assert_ne!(work.generation(), joined, "a member has left");
}
