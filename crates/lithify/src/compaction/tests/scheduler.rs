use super::environment::TestEnvironment;
use crate::base::{Clock, Level};
use crate::compaction::scheduler::*;
use crate::fs::{Environment, IoOutcome, Ticket};
use crate::stats::{Cause, Counter, Ledger};
use crate::{Error, ErrorKind};
use std::sync::{Arc, Mutex};

type Log = Arc<Mutex<Vec<String>>>;

/// A job of so many steps that writes down what happens to it.
struct TestJob {
    name: &'static str,
    urgency: Urgency,
    steps: u32,
    /// What one step does beside; given the number of steps left.
    body: Box<dyn FnMut(u32) -> Option<Step> + Send>,
    log: Log,
}

impl Job for TestJob {
    fn name(&self) -> String {
        self.name.to_owned()
    }
    fn cause(&self) -> Cause {
        if self.urgency == Urgency::Flush { Cause::Flush } else { Cause::Compaction }
    }
    fn level(&self) -> Level {
        if self.urgency == Urgency::Flush { 0 } else { 3 }
    }
    fn urgency(&self) -> Urgency {
        self.urgency
    }
    fn step(&mut self, _: &mut StepContext<'_>) -> Step {
        self.log.lock().unwrap().push(self.name.to_owned());
        self.steps -= 1;
        if let Some(step) = (self.body)(self.steps) {
            return step;
        }
        if self.steps == 0 { Step::Done(Ok(())) } else { Step::Progress }
    }
    fn end(self: Box<Self>, ending: Ending, spent: Spent) {
        let text = match ending {
            Ending::Done(Ok(())) => "done".to_owned(),
            Ending::Done(Err(error)) => error.to_string(),
            Ending::Aborted => "aborted".to_owned(),
            Ending::Panicked(message) => format!("panicked ({message})"),
        };
        let text = format!("{} {text} after {}", self.name, spent.steps);
        self.log.lock().unwrap().push(text);
    }
}

struct World {
    environment: Arc<TestEnvironment>,
    ledger: Arc<Ledger>,
    scheduler: Arc<Scheduler>,
    log: Log,
}

fn world_with(threads: usize, order: Option<StepOrder>) -> World {
    let environment = TestEnvironment::new(threads > 0);
    let ledger = Ledger::new(&*environment);
    let log = Log::default();
    let panics = Arc::clone(&log);
    let on_panic = Box::new(move |message: &str| {
        panics.lock().unwrap().push(format!("! {message}"));
    });
    let options = SchedulerOptions {
        threads,
        pool: None,
        nice: 0,
        on_panic,
        on_tick: Box::new(|| {}),
        order,
    };
    let outside: Arc<dyn Environment> = Arc::clone(&environment) as _;
    let scheduler = Arc::new(Scheduler::new(outside, Arc::clone(&ledger), options).unwrap());
    World { environment, ledger, scheduler, log }
}

fn world(threads: usize) -> World {
    world_with(threads, None)
}

impl World {
    fn job(&self, name: &'static str, urgency: Urgency, steps: u32) -> Box<TestJob> {
        Box::new(TestJob {
            name,
            urgency,
            steps,
            body: Box::new(|_| None),
            log: Arc::clone(&self.log),
        })
    }

    fn submit(&self, name: &'static str, urgency: Urgency, steps: u32) {
        assert!(self.scheduler.submit(self.job(name, urgency, steps)));
    }

    fn environment_now(&self) -> u64 {
        self.environment.now_us()
    }

    fn history(&self) -> String {
        std::mem::take(&mut *self.log.lock().unwrap()).join(", ")
    }
}

#[test]
fn a_flush_overtakes_a_compaction_at_a_step_boundary() {
    let world = world(0);
    world.submit("compaction", Urgency::Compaction(1_500), 4);
    assert!(world.scheduler.drive_one());
    world.submit("flush", Urgency::Flush, 2);
    world.submit("level0", Urgency::Level0(1), 1);
    assert!(world.scheduler.wait_idle(None));
    assert_eq!(
        world.history(),
        "compaction, flush, flush, flush done after 2, level0, level0 done after 1, \
         compaction, compaction, compaction, compaction done after 4"
    );
    assert!(!world.scheduler.drive_one());
}

#[test]
fn equals_run_in_the_order_they_came() {
    let world = world(0);
    world.submit("a", Urgency::Compaction(1_000), 2);
    world.submit("b", Urgency::Compaction(1_000), 1);
    world.submit("c", Urgency::Compaction(1_001), 1);
    world.scheduler.wait_idle(None);
    assert_eq!(world.history(), "c, c done after 1, a, a, a done after 2, b, b done after 1");
}

#[test]
fn an_order_may_replace_urgency() {
    let world = world_with(0, Some(Box::new(|count| count - 1)));
    world.submit("flush", Urgency::Flush, 1);
    world.submit("idle", Urgency::Idle, 2);
    world.scheduler.wait_idle(None);
    assert_eq!(world.history(), "idle, idle, idle done after 2, flush, flush done after 1");
}

#[test]
fn a_job_rests_until_its_ticket_is_complete() {
    let world = world(0);
    let ticket = Ticket::new();
    let mut job = world.job("reader", Urgency::Flush, 2);
    let waits_for = ticket.clone();
    job.body = Box::new(move |left| (left == 1).then(|| Step::Waiting(waits_for.clone())));
    world.scheduler.submit(job);
    world.submit("other", Urgency::Idle, 1);
    while world.scheduler.drive_one() {}
    assert_eq!(world.history(), "reader, other, other done after 1");
    let deadline_us = world.environment_now() + 5_000;
    assert!(!world.scheduler.wait_idle(Some(deadline_us)), "nobody completes the ticket");
    ticket.complete(IoOutcome { buffer: Vec::new(), result: Ok(()) });
    assert!(world.scheduler.wait_idle(None));
    assert_eq!(world.history(), "reader, reader done after 2");
}

#[test]
fn errors_and_panics_end_the_job_and_nothing_else() {
    for threads in [0, 2] {
        let world = world(threads);
        let mut failing = world.job("failing", Urgency::Flush, 1);
        failing.body = Box::new(|_| Some(Step::Done(Err(Error::new(ErrorKind::NoSpace, "write")))));
        world.scheduler.submit(failing);
        world.scheduler.wait_idle(None);
        let mut panicking = world.job("panicking", Urgency::Flush, 3);
        panicking.body = Box::new(|left| if left == 1 { panic!("two left") } else { None });
        world.scheduler.submit(panicking);
        world.scheduler.wait_idle(None);
        world.submit("next", Urgency::Flush, 1);
        assert!(world.scheduler.wait_idle(None));
        assert_eq!(
            world.history(),
            "failing, failing no space left: write after 1, panicking, panicking, \
             ! panicking: two left, panicking panicked (panicking: two left) after 2, \
             next, next done after 1"
        );
        assert_eq!(world.ledger.counter(Counter::JobsFailed), 2);
    }
}

#[test]
fn shutdown_finishes_or_aborts_and_takes_no_more() {
    for threads in [0, 1] {
        for (shutdown, expected) in
            [(Shutdown::Finish, "done after 3"), (Shutdown::Abort, "aborted")]
        {
            let world = world(threads);
            world.submit("job", Urgency::Idle, 3);
            world.scheduler.shutdown(shutdown);
            let history = world.history();
            // A worker may be through before the abort comes.
            if threads == 0 || shutdown == Shutdown::Finish {
                assert!(history.contains(expected), "{history}");
            }
            assert_eq!(history.matches("after").count(), 1, "one end: {history}");
            assert!(!world.scheduler.submit(world.job("late", Urgency::Flush, 1)));
            assert_eq!(world.history(), "late aborted after 0");
            world.scheduler.shutdown(Shutdown::Abort);
            assert_eq!(world.scheduler.job_count(), 0);
        }
    }
}

#[test]
fn an_abort_reaches_a_job_between_its_steps() {
    let world = world(1);
    let (started, entered) = std::sync::mpsc::channel();
    let mut endless = world.job("endless", Urgency::Idle, u32::MAX);
    endless.body = Box::new(move |_| {
        let _ = started.send(());
        None
    });
    world.scheduler.submit(endless);
    entered.recv().unwrap();
    world.scheduler.shutdown(Shutdown::Abort);
    let history = world.history();
    assert!(history.contains("endless aborted after"), "{}", &history[history.len() - 40..]);
}

#[test]
fn a_waiting_caller_drives_the_steps_where_there_are_no_workers() {
    let world = world(0);
    let event = world.environment.new_event();
    let reached = Arc::new(Mutex::new(false));
    let mut job = world.job("setter", Urgency::Flush, 5);
    let sets = Arc::clone(&reached);
    job.body = Box::new(move |left| {
        *sets.lock().unwrap() |= left == 2;
        None
    });
    world.scheduler.submit(job);
    assert!(world.scheduler.wait_until(&event, None, || *reached.lock().unwrap()));
    assert_eq!(world.history(), "setter, setter, setter", "no step more than was needed");
    let deadline_us = world.environment_now() + 700;
    assert!(!world.scheduler.wait_until(&event, Some(deadline_us), || false));
    assert_eq!(world.environment_now(), deadline_us, "it waited, without turning round");
}

#[test]
fn callers_without_workers_take_over_from_each_other() {
    // Real threads wait, but the scheduler has none of its own.
    let environment = TestEnvironment::new(true);
    let ledger = Ledger::new(&*environment);
    let options = SchedulerOptions {
        threads: 0,
        pool: None,
        nice: 0,
        on_panic: Box::new(|_| {}),
        on_tick: Box::new(|| {}),
        order: None,
    };
    let outside: Arc<dyn Environment> = Arc::clone(&environment) as _;
    let scheduler = Arc::new(Scheduler::new(outside, ledger, options).unwrap());
    let log = Log::default();
    let counts = [Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0))];
    for (count, name) in counts.iter().zip(["a", "b"]) {
        let count = Arc::clone(count);
        scheduler.submit(Box::new(TestJob {
            name,
            urgency: Urgency::Flush,
            steps: 500,
            body: Box::new(move |_| {
                *count.lock().unwrap() += 1;
                None
            }),
            log: Arc::clone(&log),
        }));
    }
    std::thread::scope(|scope| {
        for count in &counts {
            let event = environment.new_event();
            let scheduler = &scheduler;
            scope.spawn(move || {
                scheduler.wait_until(&event, None, || *count.lock().unwrap() == 500)
            });
        }
    });
    assert!(scheduler.wait_idle(None));
}

#[test]
fn a_caller_that_has_what_it_wanted_leaves_the_job_to_the_next() {
    let environment = TestEnvironment::new(true);
    let ledger = Ledger::new(&*environment);
    let options = SchedulerOptions {
        threads: 0,
        pool: None,
        nice: 0,
        on_panic: Box::new(|_| {}),
        on_tick: Box::new(|| {}),
        order: None,
    };
    let outside: Arc<dyn Environment> = Arc::clone(&environment) as _;
    let scheduler = Arc::new(Scheduler::new(outside, ledger, options).unwrap());
    let (first_is_in, second_may_start) = std::sync::mpsc::channel();
    let (second_waits, first_may_go_on) = std::sync::mpsc::channel();
    let left = Arc::new(Mutex::new(3));
    let counts = Arc::clone(&left);
    scheduler.submit(Box::new(TestJob {
        name: "job",
        urgency: Urgency::Flush,
        steps: 3,
        body: Box::new(move |steps| {
            if steps == 2 {
                // The first caller is in the first step: the second finds nothing to run.
                first_is_in.send(()).unwrap();
                first_may_go_on.recv().unwrap();
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            *counts.lock().unwrap() = steps;
            None
        }),
        log: Log::default(),
    }));
    let (finished, both) = std::sync::mpsc::channel();
    let caller = |wanted: u32, waits: Option<std::sync::mpsc::Sender<()>>| {
        let (left, scheduler, finished) = (left.clone(), scheduler.clone(), finished.clone());
        let event = environment.new_event();
        std::thread::spawn(move || {
            let met = scheduler.wait_until(&event, None, || {
                waits.as_ref().map(|waits| waits.send(()));
                *left.lock().unwrap() <= wanted
            });
            let _ = finished.send(met);
        });
    };
    caller(2, None);
    second_may_start.recv().unwrap();
    caller(0, Some(second_waits));
    for _ in 0..2 {
        assert_eq!(both.recv_timeout(std::time::Duration::from_secs(20)), Ok(true));
    }
}

#[test]
fn workers_run_everything_and_book_it() {
    let world = world(2);
    for _ in 0..20 {
        let mut job = world.job("job", Urgency::Compaction(1), 5);
        let environment = Arc::clone(&world.environment);
        job.body = Box::new(move |_| {
            environment.advance(1);
            None
        });
        world.scheduler.submit(job);
    }
    assert!(world.scheduler.wait_idle(None));
    assert_eq!(world.history().matches("done after 5").count(), 20);
    assert_eq!(world.ledger.counter(Counter::Steps), 100);
}

#[test]
fn steps_are_booked_under_their_job_and_long_ones_are_recorded() {
    let world = world(0);
    for (urgency, us) in [(Urgency::Flush, 300), (Urgency::Idle, 2_500)] {
        let mut job = world.job("job", urgency, 2);
        let environment = Arc::clone(&world.environment);
        job.body = Box::new(move |_| {
            environment.advance(us);
            None
        });
        world.scheduler.submit(job);
    }
    world.scheduler.wait_idle(None);
    let figures = world.ledger.figures();
    assert_eq!(figures.cpu_ns_of_cause(Cause::Flush), 600_000);
    assert_eq!(figures.cpu_ns_of_cause(Cause::Compaction), 5_000_000);
    assert_eq!(figures.units(Cause::Flush).count, 0);
    assert_eq!(figures.units(Cause::Compaction).sum_us, 5_000);
}
