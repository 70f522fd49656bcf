//! The measuring process, seen from inside: fill, settle, open anew, overwrite, settle.
//!
//! 1. Every key is put once, in random order, by all clients; background work is waited for.
//! 2. The engine is closed and opened again, so that its counters start from zero.
//! 3. Meters are read, all clients start together and overwrite random keys for the time; another
//!    thread samples sizes and memory every second until the end of step 4.
//! 4. Meters are read, then everything is flushed and background work is waited for.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{OverwriteResult, OverwriteSpec};
use crate::adapter::provider::Transactions;
use crate::adapter::{Engine, EngineError, EngineResult, EngineStatistics, WriteBatch};
use crate::engines::registry::{open_spaces, uses_disk};
use crate::keyvalue::entries::{HALF, Key, Permutation, Values};
use crate::keyvalue::samples::{Count, SAMPLE_INTERVAL, Sampler, counts, sum};
use crate::keyvalue::timeline::{Throughput, Trace};
use crate::keyvalue::{SPACE, SPACES};
use crate::meter::machine::Machine;
use crate::meter::{Meter, PhaseUsage, unix_seconds};
use crate::random::Random;
use crate::run::cells::Job;
use crate::run::phase::{settle, statistics};
use crate::run::process::end_with_parent;
use crate::run::progress::{Listener, ProgressLine};
use crate::run::store::write_json;
use crate::run::{RunError, failed};

/// Does a job and writes its result. Asks the kernel to end this process with its parent.
///
/// # Errors
/// The engine's, or the result cannot be written.
pub fn run_job(job: &Job<OverwriteSpec>, listener: Listener<'_>) -> Result<(), RunError> {
    end_with_parent(job.parent)?;
    let result = measure(&job.cell, &job.data_directory, listener)?;
    write_json(&job.result_path, &result)
}

fn open(spec: &OverwriteSpec, directory: &Path) -> EngineResult<Box<dyn Engine>> {
    open_spaces(&spec.engine, directory, &spec.settings, &SPACES, Transactions::Unneeded)
}

/// Measures in this process, with the engine's data in `directory`.
///
/// # Errors
/// The engine's.
pub fn measure(
    spec: &OverwriteSpec,
    directory: &Path,
    listener: Listener<'_>,
) -> Result<OverwriteResult, RunError> {
    let started_unix_s = unix_seconds();
    let mut run = Run { spec, directory, meter: Meter::new(directory), listener };
    let engine = open(spec, directory).map_err(|error| failed("open", &error))?;
    run.meter.watch(engine.process_ids());
    let (fill_rate, fill) = run.fill(&*engine)?;
    let engine = run.reopen(engine)?;
    run.meter.watch(engine.process_ids());
    let statistics_before = statistics(&*engine)?;
    let start = Instant::now();
    let counts = counts(spec.clients);
    let sampler = Sampler::new(directory, start);
    let (outcome, samples) = thread::scope(|scope| {
        let thread = scope.spawn(|| sampler.run(&*engine, &mut run.tick(&counts)));
        let outcome = run.overwrite(&*engine, start, &counts);
        sampler.finish(thread.thread());
        (outcome, thread.join())
    });
    let outcome = outcome?;
    let samples = samples.map_err(|_| RunError::new("the sampling thread failed"))?;
    let result = OverwriteResult {
        spec: spec.clone(),
        started_unix_s: Some(started_unix_s),
        machine: Machine::describe(directory),
        engine_name: engine.name(),
        engine_options: engine.options(),
        fill_rate,
        fill,
        throughput: outcome.throughput,
        usage: outcome.usage,
        settle: outcome.settle,
        samples,
        statistics_before,
        statistics: outcome.statistics,
        statistics_settled: statistics(&*engine)?,
    };
    engine.close().map_err(|error| failed("close", &error))?;
    Ok(result)
}

struct Run<'a> {
    spec: &'a OverwriteSpec,
    directory: &'a Path,
    meter: Meter,
    listener: Listener<'a>,
}

/// What came of the overwrites and of the work that they left behind.
struct Outcome {
    throughput: Throughput,
    usage: PhaseUsage,
    settle: PhaseUsage,
    statistics: EngineStatistics,
}

impl Run<'_> {
    /// Puts every key once and waits for background work; gives the rate of the puts.
    fn fill(&self, engine: &dyn Engine) -> Result<(f64, PhaseUsage), RunError> {
        let before = self.meter.read();
        let start = Instant::now();
        let counts = counts(self.spec.clients);
        let finished = AtomicBool::new(false);
        let result = thread::scope(|scope| {
            let reporter = scope.spawn(|| self.report_fill(&counts, &finished));
            let clients: Vec<_> = (0..)
                .zip(&counts)
                .map(|(client, count)| scope.spawn(move || self.fill_stripe(engine, client, count)))
                .collect();
            let ends: Vec<_> = clients.into_iter().map(thread::ScopedJoinHandle::join).collect();
            finished.store(true, Ordering::Relaxed);
            reporter.thread().unpark();
            ends.into_iter().try_for_each(|end| end.unwrap_or_else(|_| Err(panicked())))
        });
        result.map_err(|error| failed("fill", &error))?;
        let rate = self.spec.keys as f64 / start.elapsed().as_secs_f64();
        self.say("settle");
        settle(engine)?;
        let after = self.meter.read();
        self.meter.sync();
        Ok((rate, self.meter.usage(&before, &after)))
    }

    /// The keys of one client: every so-manieth of the random order.
    fn fill_stripe(&self, engine: &dyn Engine, client: u64, count: &Count) -> EngineResult<()> {
        let order = Permutation::new(self.spec.keys, self.spec.seed);
        let mut session = engine.session()?;
        let mut key = Key::new(self.spec.key_bytes as usize);
        let mut values = Values::new(self.spec.value_bytes as usize, HALF);
        let mut batch = WriteBatch::new();
        for place in (client..self.spec.keys).step_by(self.spec.clients.max(1) as usize) {
            batch.clear();
            batch.put(SPACE, key.of(order.at(place)), values.next());
            session.write_batch(&batch)?;
            count.0.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn report_fill(&self, counts: &[Count], finished: &AtomicBool) {
        let mut done = 0;
        while !finished.load(Ordering::Relaxed) {
            thread::park_timeout(SAMPLE_INTERVAL);
            let before = std::mem::replace(&mut done, sum(counts));
            let keys = [done, self.spec.keys];
            (self.listener)(&ProgressLine::of_progress("fill", keys, "keys", done - before));
        }
    }

    fn reopen(&self, engine: Box<dyn Engine>) -> Result<Box<dyn Engine>, RunError> {
        if !uses_disk(&self.spec.engine) {
            return Ok(engine);
        }
        engine.close().map_err(|error| failed("close", &error))?;
        open(self.spec, self.directory).map_err(|error| failed("open again", &error))
    }

    fn overwrite(
        &self,
        engine: &dyn Engine,
        start: Instant,
        counts: &[Count],
    ) -> Result<Outcome, RunError> {
        let before = self.meter.read();
        let failure = AtomicBool::new(false);
        let traces: EngineResult<Vec<Trace>> = thread::scope(|scope| {
            let failure = &failure;
            let clients: Vec<_> = (0..)
                .zip(counts)
                .map(|(client, count)| {
                    scope.spawn(move || {
                        self.client(engine, client, start, count, failure)
                            .inspect_err(|_| failure.store(true, Ordering::Relaxed))
                    })
                })
                .collect();
            let join = |client: thread::ScopedJoinHandle<'_, EngineResult<Trace>>| {
                client.join().unwrap_or_else(|_| Err(panicked()))
            };
            clients.into_iter().map(join).collect()
        });
        let traces = traces.map_err(|error| failed("overwrite", &error))?;
        let after = self.meter.read();
        let usage = self.meter.usage(&before, &after);
        let statistics = statistics(engine)?;
        self.say("settle");
        let settle_before = self.meter.read();
        settle(engine)?;
        let settle_after = self.meter.read();
        self.meter.sync();
        self.meter.wait_for_quiet_directory(Duration::from_secs_f64(usage.seconds));
        let settle = self.meter.usage(&settle_before, &settle_after);
        Ok(Outcome {
            throughput: Throughput::of("overwrite", &traces.iter().collect::<Vec<_>>()),
            usage,
            settle,
            statistics,
        })
    }

    /// One client: random keys until the time is over.
    fn client(
        &self,
        engine: &dyn Engine,
        client: u64,
        start: Instant,
        count: &Count,
        failure: &AtomicBool,
    ) -> EngineResult<Trace> {
        let mut session = engine.session()?;
        // Stream 0 is that of the fill.
        let mut random = Random::new(self.spec.seed, client + 1);
        let mut key = Key::new(self.spec.key_bytes as usize);
        let mut values = Values::new(self.spec.value_bytes as usize, HALF);
        let mut batch = WriteBatch::new();
        let mut trace = Trace::of_seconds(self.spec.seconds);
        let end_ns = self.spec.seconds * 1_000_000_000;
        loop {
            batch.clear();
            batch.put(SPACE, key.of(random.below(self.spec.keys)), values.next());
            session.write_batch(&batch)?;
            let now_ns = start.elapsed().as_nanos() as u64;
            trace.completed(now_ns);
            count.0.store(trace.count(), Ordering::Relaxed);
            if now_ns >= end_ns || failure.load(Ordering::Relaxed) {
                return Ok(trace);
            }
        }
    }

    /// Reports the overwrites of the last second.
    fn tick<'b>(&'b self, counts: &'b [Count]) -> impl FnMut(f64) + 'b {
        let mut done = 0;
        move |at_s| {
            let before = std::mem::replace(&mut done, sum(counts));
            if at_s < self.spec.seconds as f64 {
                let seconds = [at_s as u64, self.spec.seconds];
                let rate = done - before;
                let line = ProgressLine::of_progress("overwrite", seconds, "seconds", rate);
                (self.listener)(&line);
            }
        }
    }

    fn say(&self, stage: &str) {
        (self.listener)(&ProgressLine::of_stage(stage));
    }
}

fn panicked() -> EngineError {
    EngineError::fatal("a client failed")
}
