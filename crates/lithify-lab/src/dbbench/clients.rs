//! The loops: what each client does between the common start and its end.
//!
//! A client's time for an operation runs from the end of its operation before, so it holds the
//! making of key and value and every wait but that of a limited rate. Everything that can be
//! prepared is prepared before the start.

use std::ops::ControlFlow;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Instant;

use super::oracle::{Checkpoint, ReadSum, row_hash};
use super::rate::RateLimit;
use super::spec::DbSpec;
use super::stream::KeyStream;
use crate::adapter::{Engine, EngineError, EngineResult, ScanRange, Session, WriteBatch};
use crate::keyvalue::SPACE;
use crate::keyvalue::benchmark::Benchmark;
use crate::keyvalue::entries::{Key, Values};
use crate::keyvalue::samples::{Count, counts};
use crate::keyvalue::timeline::Trace;
use crate::latency::Latencies;
use crate::meter::process::thread_cpu_us;

/// One step's clients.
pub(super) struct Loop<'a> {
    /// With the step's own settings.
    pub(super) spec: &'a DbSpec,
    /// Which step.
    pub(super) benchmark: Benchmark,
    /// Seed of the first thread; the others take the following numbers.
    first_seed: u64,
    start: Instant,
    /// Operations of each client so far.
    pub(super) counts: Vec<Count>,
    /// Writes of the writer beside them so far.
    pub(super) background: Count,
    limit: Option<RateLimit>,
    barrier: Barrier,
    failure: AtomicBool,
    clients_done: AtomicBool,
}

/// What one client did.
pub(super) struct ClientEnd {
    /// Its operations.
    pub(super) operations: u64,
    /// When it began, nanoseconds since the start of the step.
    pub(super) began_ns: u64,
    /// When it ended.
    pub(super) ended_ns: u64,
    /// CPU of its thread, microseconds.
    pub(super) cpu_us: u64,
    /// Keys and values written, found or visited.
    pub(super) bytes: u64,
    /// Times of its operations.
    pub(super) latencies: Latencies,
    /// Its writes over time; `None` for a reader.
    pub(super) trace: Option<Trace>,
    /// What it read.
    pub(super) checkpoints: Vec<Checkpoint>,
    /// How many reads found their key.
    pub(super) found: u64,
}

/// What the clients of a step did.
pub(super) struct Ends {
    /// The clients, in order.
    pub(super) clients: Vec<ClientEnd>,
    /// The writer beside them.
    pub(super) background: Option<ClientEnd>,
}

/// The keys that a thread with `seed` visits.
pub(super) fn key_stream(spec: &DbSpec, benchmark: Benchmark, seed: u64) -> KeyStream {
    let num = spec.num.max(1);
    match benchmark {
        Benchmark::FillSeq => KeyStream::Ascending(0),
        _ if benchmark.is_seek() => KeyStream::random(seed, num, 0),
        Benchmark::MultiReadRandom => KeyStream::random(seed, num, spec.batch_size),
        _ => KeyStream::random(seed, num, 1),
    }
}

/// Number of threads of a step: they take so many seeds.
pub(super) fn threads(spec: &DbSpec, benchmark: Benchmark) -> u64 {
    match benchmark {
        _ if benchmark.is_beside_writer() => spec.threads + 1,
        _ if benchmark.is_loop() => spec.threads,
        _ => 0,
    }
}

/// Seed of the first client of a step whose first thread has `first_seed`.
pub(super) fn client_seed(benchmark: Benchmark, first_seed: u64) -> u64 {
    first_seed + u64::from(benchmark.is_beside_writer())
}

impl<'a> Loop<'a> {
    /// The clients of a step, whose times count from `start`.
    pub(super) fn new(
        spec: &'a DbSpec,
        benchmark: Benchmark,
        first_seed: u64,
        start: Instant,
    ) -> Loop<'a> {
        let rate = spec.write_rate_bytes_per_s;
        let limited = benchmark.changes_database() && rate > 0;
        Loop {
            spec,
            benchmark,
            first_seed,
            start,
            counts: counts(spec.threads),
            background: Count::default(),
            limit: limited.then(|| RateLimit::new(rate, start)),
            barrier: Barrier::new(threads(spec, benchmark) as usize),
            failure: AtomicBool::new(false),
            clients_done: AtomicBool::new(false),
        }
    }

    /// True when every client has done its last operation.
    pub(super) fn are_done(&self) -> bool {
        self.clients_done.load(Ordering::Relaxed)
    }

    /// Runs them until all are done.
    pub(super) fn run(&self, engine: &dyn Engine) -> EngineResult<Ends> {
        thread::scope(|scope| {
            let background = self
                .benchmark
                .is_beside_writer()
                .then(|| scope.spawn(|| self.guarded(|| self.background_writer(engine))));
            let seeds = client_seed(self.benchmark, self.first_seed)..;
            let clients: Vec<_> = seeds
                .zip(&self.counts)
                .map(|(seed, count)| {
                    scope.spawn(move || self.guarded(|| self.client(engine, seed, count)))
                })
                .collect();
            let clients: Vec<_> = clients.into_iter().map(join).collect();
            self.clients_done.store(true, Ordering::Relaxed);
            let background = background.map(join).transpose();
            Ok(Ends {
                clients: clients.into_iter().collect::<Result<_, _>>()?,
                background: background?,
            })
        })
    }

    /// A client that fails ends the others.
    fn guarded<T>(&self, run: impl FnOnce() -> EngineResult<T>) -> EngineResult<T> {
        run().inspect_err(|_| self.failure.store(true, Ordering::Relaxed))
    }

    fn client(&self, engine: &dyn Engine, seed: u64, count: &Count) -> EngineResult<ClientEnd> {
        let keys = key_stream(self.spec, self.benchmark, seed);
        match self.benchmark {
            Benchmark::MultiReadRandom => self.reader(engine, keys, count, read_batch),
            Benchmark::ReadRandom | Benchmark::ReadWhileWriting => {
                self.reader(engine, keys, count, read_one)
            }
            benchmark if benchmark.is_seek() => self.reader(engine, keys, count, seek),
            _ => self.writer(engine, seed, count),
        }
    }

    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn is_over(&self, operations: u64, began_ns: u64, now_ns: u64) -> bool {
        let over = match self.spec.operations(self.benchmark) {
            Some(limit) => operations >= limit,
            None => now_ns >= began_ns + self.spec.duration_seconds * 1_000_000_000,
        };
        over || self.failure.load(Ordering::Relaxed)
    }

    /// Puts keys as fast as the limit lets it.
    fn writer(&self, engine: &dyn Engine, seed: u64, count: &Count) -> EngineResult<ClientEnd> {
        let mut put = Put::new(self.spec, self.benchmark, seed);
        let timed = self.spec.operations(self.benchmark).is_none();
        let mut trace = match timed {
            true => Trace::of_seconds(self.spec.duration_seconds),
            false => Trace::open_ended(),
        };
        self.barrier.wait();
        let cpu_before_us = thread_cpu_us();
        let mut session = engine.session()?;
        let began_ns = self.now_ns();
        trace.begin(began_ns);
        let mut now_ns = began_ns;
        while !self.is_over(trace.count(), began_ns, now_ns) {
            if let Some(limit) = &self.limit
                && limit.request(self.spec.entry_bytes(), &self.failure)
            {
                trace.waited(self.now_ns());
            }
            put.next(&mut *session)?;
            now_ns = self.now_ns();
            trace.completed(now_ns);
            count.0.store(trace.count(), Ordering::Relaxed);
        }
        Ok(self.writer_end(trace, began_ns, now_ns, thread_cpu_us() - cpu_before_us))
    }

    /// Puts random keys until the clients are done, one at least; the limit is asked after each.
    fn background_writer(&self, engine: &dyn Engine) -> EngineResult<ClientEnd> {
        // The writer draws its keys as any writer does, whatever the readers beside it do.
        let mut put = Put::new(self.spec, Benchmark::Overwrite, self.first_seed);
        let mut trace = Trace::open_ended();
        self.barrier.wait();
        let cpu_before_us = thread_cpu_us();
        let mut session = engine.session()?;
        let began_ns = self.now_ns();
        trace.begin(began_ns);
        loop {
            put.next(&mut *session)?;
            let now_ns = self.now_ns();
            trace.completed(now_ns);
            self.background.0.store(trace.count(), Ordering::Relaxed);
            if self.clients_done.load(Ordering::Relaxed) || self.failure.load(Ordering::Relaxed) {
                let cpu_us = thread_cpu_us() - cpu_before_us;
                return Ok(self.writer_end(trace, began_ns, now_ns, cpu_us));
            }
            if let Some(limit) = &self.limit
                && limit.request(self.spec.entry_bytes(), &self.clients_done)
            {
                trace.waited(self.now_ns());
            }
        }
    }

    fn writer_end(&self, trace: Trace, began_ns: u64, ended_ns: u64, cpu_us: u64) -> ClientEnd {
        ClientEnd {
            operations: trace.count(),
            began_ns,
            ended_ns,
            cpu_us,
            bytes: trace.count() * self.spec.entry_bytes(),
            latencies: trace.latencies().clone(),
            trace: Some(trace),
            checkpoints: Vec::new(),
            found: 0,
        }
    }

    /// Reads random keys, each time as `read` does.
    fn reader(
        &self,
        engine: &dyn Engine,
        keys: KeyStream,
        count: &Count,
        read: fn(&mut Reads<'_>, &mut dyn Session) -> EngineResult<()>,
    ) -> EngineResult<ClientEnd> {
        let mut reads = Reads::new(self.spec, keys);
        let mut latencies = Latencies::default();
        self.barrier.wait();
        let cpu_before_us = thread_cpu_us();
        let mut session = engine.session()?;
        let began_ns = self.now_ns();
        let mut now_ns = began_ns;
        while !self.is_over(reads.sum.now().operations, began_ns, now_ns) {
            read(&mut reads, &mut *session)?;
            let ended_ns = self.now_ns();
            latencies.record(ended_ns - now_ns);
            now_ns = ended_ns;
            count.0.store(reads.sum.now().operations, Ordering::Relaxed);
        }
        Ok(ClientEnd {
            operations: reads.sum.now().operations,
            began_ns,
            ended_ns: now_ns,
            cpu_us: thread_cpu_us() - cpu_before_us,
            bytes: reads.bytes,
            latencies,
            trace: None,
            found: reads.sum.now().found,
            checkpoints: reads.sum.finish(),
        })
    }
}

/// What a reader needs for its next call, and what it has read.
struct Reads<'a> {
    spec: &'a DbSpec,
    keys: KeyStream,
    key: Key,
    /// The keys of one call, one behind the other, for readers of several.
    batch: Vec<u8>,
    value: Vec<u8>,
    sum: ReadSum,
    bytes: u64,
}

impl Reads<'_> {
    fn new(spec: &DbSpec, keys: KeyStream) -> Reads<'_> {
        Reads {
            spec,
            keys,
            key: Key::new(spec.key_bytes as usize),
            batch: Vec::new(),
            value: Vec::with_capacity(spec.value_bytes as usize),
            sum: ReadSum::default(),
            bytes: 0,
        }
    }
}

fn read_one(reads: &mut Reads<'_>, session: &mut dyn Session) -> EngineResult<()> {
    let wanted = reads.key.of(reads.keys.next());
    let found = session.get(SPACE, wanted, &mut reads.value)?;
    if found {
        reads.bytes += (wanted.len() + reads.value.len()) as u64;
        reads.sum.row(wanted, &reads.value);
    }
    reads.sum.done(found);
    Ok(())
}

/// Reads the keys of a batch in one call. Each is an operation; what was found counts in the order
/// of the keys, whatever the order in which the engine answers.
fn read_batch(reads: &mut Reads<'_>, session: &mut dyn Session) -> EngineResult<()> {
    let count = reads.spec.batch_size as usize;
    reads.batch.clear();
    for _ in 0..count {
        reads.batch.extend_from_slice(reads.key.of(reads.keys.next()));
    }
    let keys: Vec<&[u8]> = reads.batch.chunks(reads.spec.key_bytes as usize).collect();
    let mut answers = vec![None; count];
    let bytes = &mut reads.bytes;
    session.multi_get(SPACE, &keys, &mut |index, value| {
        *bytes += (keys[index].len() + value.len()) as u64;
        answers[index] = Some(row_hash(keys[index], value));
    })?;
    for answer in answers {
        if let Some(hash) = answer {
            reads.sum.hash(hash);
        }
        reads.sum.done(answer.is_some());
    }
    Ok(())
}

/// Seeks a key and visits rows from there on, forward or back; found means that the first is the
/// key.
fn seek(reads: &mut Reads<'_>, session: &mut dyn Session) -> EngineResult<()> {
    let Reads { spec, keys, key, sum, bytes, .. } = reads;
    let wanted = key.of(keys.next());
    let nexts = spec.seek_nexts;
    let mut found = false;
    let mut first = true;
    let mut visit = |key: &[u8], value: &[u8]| {
        if std::mem::take(&mut first) {
            found = key == wanted;
        }
        if nexts == 0 {
            return ControlFlow::Break(());
        }
        *bytes += (key.len() + value.len()) as u64;
        sum.row(key, value);
        ControlFlow::Continue(())
    };
    let limit = nexts.max(1);
    if spec.reverse_iterator {
        session.scan_back(SPACE, wanted, limit, &mut visit)?;
    } else {
        let range = ScanRange { start: wanted, limit, ..ScanRange::prefix(b"") };
        session.scan(SPACE, &range, &mut visit)?;
    }
    sum.done(found);
    Ok(())
}

/// What a writer needs for its next put.
struct Put {
    keys: KeyStream,
    key: Key,
    values: Values,
    batch: WriteBatch,
}

impl Put {
    /// Of a client with this seed.
    fn new(spec: &DbSpec, benchmark: Benchmark, seed: u64) -> Put {
        let (length_bytes, ratio) = (spec.value_bytes as usize, spec.compression_ratio);
        Put {
            keys: key_stream(spec, benchmark, seed),
            key: Key::new(spec.key_bytes as usize),
            values: match spec.fresh_values {
                true => Values::fresh(length_bytes, ratio, seed),
                false => Values::new(length_bytes, ratio),
            },
            batch: WriteBatch::new(),
        }
    }

    fn next(&mut self, session: &mut dyn Session) -> EngineResult<()> {
        self.batch.clear();
        self.batch.put(SPACE, self.key.of(self.keys.next()), self.values.next());
        session.write_batch(&self.batch)
    }
}

fn join<T>(client: ScopedJoinHandle<'_, EngineResult<T>>) -> EngineResult<T> {
    client.join().unwrap_or_else(|_| Err(EngineError::fatal("a client failed")))
}
