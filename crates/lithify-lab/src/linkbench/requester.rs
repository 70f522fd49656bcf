//! One requesting thread: generates, executes, times and books requests.
//!
//! Everything it books stays in its own [`Tally`] until it ends; while it runs, other threads see
//! only its count of requests done.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::arrivals::Arrivals;
use super::control::{Completions, Control, IntervalSample, PerSecond, RequestProgress};
use super::expected::Effects;
use super::generator::{Request, RequestGenerator, Seat};
use super::graph::Graph;
use super::ledger::Ledger;
use super::profile::Operation;
use super::request::RequestConfig;
use crate::adapter::graph::schema::{Link, VISIBILITY_DEFAULT};
use crate::adapter::graph::store::ReadDigest;
use crate::adapter::graph::{GraphEngine, GraphSession, LinkBefore};
use crate::adapter::{EngineError, EngineResult};
use crate::latency::Latencies;

/// Tries of one request before it counts as failed.
const RETRIES_MAX: u64 = 1000;
/// Longest sleep between two looks at the cancellation flag.
const NAP: Duration = Duration::from_millis(50);

/// What the requesters share.
pub(super) struct Shared<'a> {
    pub(super) config: &'a RequestConfig,
    pub(super) control: &'a Control<'a>,
    pub(super) start: Instant,
    pub(super) measure_from: Instant,
    pub(super) end: Instant,
    /// The queue of requests, when they arrive at a fixed rate.
    pub(super) arrivals: Option<Arrivals>,
    pub(super) aborted: AtomicBool,
    /// Requests done by each requester, each counter on a cache line of its own.
    pub(super) done: Vec<Done>,
    /// Recorded write operations of all, counted where they end the phase.
    pub(super) writes: AtomicU64,
    pub(super) finished: Mutex<(Tally, Option<EngineError>)>,
}

#[derive(Default)]
#[repr(align(64))]
pub(super) struct Done(pub(super) AtomicU64);

impl Shared<'_> {
    /// Tells the caller how far the phase is.
    pub(super) fn report(&self) {
        let elapsed = self.start.elapsed();
        self.control.progress.request(&RequestProgress {
            elapsed,
            warming_up: self.start + elapsed < self.measure_from,
            requests: self.done.iter().map(|done| done.0.load(Ordering::Relaxed)).sum(),
            writes: self.writes.load(Ordering::Relaxed),
        });
    }
}

/// What requesters did.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) latencies: [Latencies; 10],
    pub(super) found: [u64; 10],
    pub(super) list_rows: Latencies,
    pub(super) from_history: u64,
    pub(super) per_second: PerSecond,
    /// Completed writes, by which stalls are told.
    pub(super) writes: Completions,
    pub(super) retries: u64,
    pub(super) failures: u64,
    /// Most arrivals that waited at once.
    pub(super) queue_max: u64,
    pub(super) digest: ReadDigest,
    pub(super) effects: Effects,
    pub(super) ledger: Ledger,
    pub(super) time_ms: u64,
    pub(super) last_end: Option<Instant>,
}

impl Tally {
    /// Adds what another requester did.
    pub(super) fn merge(&mut self, other: &Tally) {
        for (sum, latencies) in self.latencies.iter_mut().zip(&other.latencies) {
            sum.merge(latencies);
        }
        for (sum, found) in self.found.iter_mut().zip(other.found) {
            *sum += found;
        }
        self.list_rows.merge(&other.list_rows);
        self.from_history += other.from_history;
        self.per_second.merge(&other.per_second);
        self.writes.merge(&other.writes);
        self.retries += other.retries;
        self.failures += other.failures;
        self.queue_max = self.queue_max.max(other.queue_max);
        self.effects.merge(&other.effects);
        self.ledger.merge(&other.ledger);
        self.digest.rows += other.digest.rows;
        self.digest.bytes += other.digest.bytes;
        // Independent of the order in which requesters end.
        self.digest.hash = self.digest.hash.wrapping_add(other.digest.hash);
        self.time_ms = self.time_ms.max(other.time_ms);
        self.last_end = self.last_end.max(other.last_end);
    }
}

/// What a request that did not fail brought.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Answer {
    /// Rows that it found, or rewrote.
    pub(super) rows: u64,
    /// It rewrote a hidden link, which is visible now.
    pub(super) shown: bool,
    retries: u64,
}

/// One requesting thread.
pub(super) struct Requester<'a> {
    shared: &'a Shared<'a>,
    number: usize,
    generator: RequestGenerator<'a>,
    store: Box<dyn GraphSession + 'a>,
    tally: Tally,
    /// Recorded requests, failed ones not among them.
    recorded: u64,
    first_error: Option<EngineError>,
    intervals: Option<Intervals>,
}

/// The current display interval.
struct Intervals {
    length: Duration,
    begun: Instant,
    latencies: [Latencies; 10],
}

impl<'a> Requester<'a> {
    /// The requester of `seat`, with a session of its own.
    pub(super) fn new(
        graph: &'a Graph,
        engine: &'a dyn GraphEngine,
        shared: &'a Shared<'a>,
        seat: Seat<'a>,
    ) -> EngineResult<Self> {
        let generator = RequestGenerator::new(graph, seat)
            .map_err(|error| EngineError::fatal(error.to_string()))?;
        let length = Duration::from_secs_f64(shared.config.display_seconds);
        let intervals = (!length.is_zero()).then(|| Intervals {
            length,
            begun: shared.measure_from,
            latencies: Default::default(),
        });
        Ok(Requester {
            shared,
            number: usize::try_from(seat.requester).unwrap_or(usize::MAX),
            generator,
            store: engine.graph_session(shared.config.hash_reads)?,
            tally: Tally::default(),
            recorded: 0,
            first_error: None,
            intervals,
        })
    }

    /// Makes requests until the phase ends. Returns what it did and its first error.
    pub(super) fn run(mut self) -> EngineResult<(Tally, Option<EngineError>)> {
        let config = self.shared.config;
        let mut done = 0u64;
        let mut due = Instant::now();
        if self.shared.arrivals.is_some() {
            // The default slack of 50 us would be a part of every latency; refused, it stays.
            let _ = nix::sys::prctl::set_timerslack(1);
        }
        while self.recorded < config.requests_per_requester && !self.must_stop() {
            if config.rate_per_requester > 0.0 {
                let wait = -(1.0 - self.generator.random().unit()).ln() / config.rate_per_requester;
                due += Duration::from_secs_f64(wait);
                if !self.sleep_until(due) {
                    break;
                }
            }
            let arrived = match &self.shared.arrivals {
                None => None,
                Some(arrivals) => match self.wait_for_arrival(arrivals) {
                    None => break,
                    arrived => arrived,
                },
            };
            let request = self.generator.next_request();
            let started = Instant::now();
            let begun = arrived.unwrap_or(started);
            let result = self.execute_with_retries(&request);
            let ended = Instant::now();
            let found = result.as_ref().ok().map(|answer| answer.rows > 0);
            let payload = self.generator.payload();
            self.tally.ledger.note(&request, payload, found, [started, ended]);
            done += 1;
            self.shared.done[self.number].0.store(done, Ordering::Relaxed);
            self.book(&request, result, begun, ended);
            if ended >= self.shared.end {
                break;
            }
        }
        self.report_interval(Instant::now());
        self.tally.digest = self.store.digest();
        self.tally.time_ms = self.generator.time_ms();
        Ok((self.tally, self.first_error))
    }

    #[inline]
    fn must_stop(&self) -> bool {
        let Shared { control, aborted, config, writes, .. } = self.shared;
        control.is_cancelled()
            || aborted.load(Ordering::Relaxed)
            || config.max_writes.is_some_and(|most| writes.load(Ordering::Relaxed) >= most)
    }

    /// Takes the next arrival and sleeps until it is due; `None` when none is left or the phase is
    /// over, which leaves it unanswered.
    fn wait_for_arrival(&mut self, arrivals: &Arrivals) -> Option<Instant> {
        let arrival = arrivals.take()?;
        if !self.sleep_until(arrival.due) || Instant::now() >= self.shared.end {
            return None;
        }
        let waiting = arrivals.waiting(arrival, Instant::now());
        self.tally.queue_max = self.tally.queue_max.max(waiting);
        Some(arrival.due)
    }

    /// Returns false when the phase ends before `due`.
    fn sleep_until(&self, due: Instant) -> bool {
        loop {
            let now = Instant::now();
            if now >= due {
                return true;
            }
            if now >= self.shared.end || self.must_stop() {
                return false;
            }
            std::thread::sleep((due - now).min(NAP));
        }
    }

    fn execute_with_retries(&mut self, request: &Request) -> EngineResult<Answer> {
        let mut retries = 0;
        loop {
            match self.execute(request) {
                Err(error) if error.is_retryable() && retries < RETRIES_MAX => retries += 1,
                result => return result.map(|answer| Answer { retries, ..answer }),
            }
        }
    }

    /// Makes the request once.
    #[inline]
    fn execute(&mut self, request: &Request) -> EngineResult<Answer> {
        let store = &mut self.store;
        let rows = match *request {
            Request::PutLink { id1, link_type, id2, time_ms, .. } => {
                let link = Link {
                    id1,
                    link_type,
                    id2,
                    visibility: VISIBILITY_DEFAULT,
                    version: 0,
                    time_ms,
                    data: self.generator.payload(),
                };
                let before = store.put_link(&link, time_ms)?;
                let rows = u64::from(before.existed());
                return Ok(Answer { rows, shown: before == LinkBefore::Hidden, retries: 0 });
            }
            Request::DeleteLink { id1, link_type, id2, time_ms } => {
                store.delete_link(id1, link_type, id2, false, time_ms).map(u64::from)
            }
            Request::CountLink { id1, link_type } => {
                store.count_links(id1, link_type).map(|count| u64::from(count > 0))
            }
            Request::MultigetLink { id1, link_type } => {
                store.multiget_links(id1, link_type, self.generator.targets())
            }
            Request::GetLinksList { query, from_history } => {
                let result = store.list_links(&query)?;
                self.generator.list_was_read(&query, from_history, result);
                Ok(result.rows)
            }
            Request::AddNode { id, time_s } => {
                store.add_node(id, time_s, self.generator.payload()).map(|()| 1)
            }
            Request::UpdateNode { id, time_s } => {
                store.update_node(id, time_s, self.generator.payload()).map(u64::from)
            }
            Request::DeleteNode { id } => store.delete_node(id).map(u64::from),
            Request::GetNode { id } => store.get_node(id).map(u64::from),
        }?;
        Ok(Answer { rows, ..Answer::default() })
    }

    #[inline]
    fn book(
        &mut self,
        request: &Request,
        result: EngineResult<Answer>,
        begun: Instant,
        ended: Instant,
    ) {
        let answer = match result {
            Ok(answer) => answer,
            Err(error) => return self.book_failure(error),
        };
        self.tally.effects.book(request, &answer);
        if begun < self.shared.measure_from {
            return;
        }
        let operation = request.operation().index();
        let taken_ns = (ended - begun).as_nanos() as u64;
        self.tally.latencies[operation].record(taken_ns);
        self.tally.found[operation] += u64::from(answer.rows > 0);
        self.tally.retries += answer.retries;
        if let Request::GetLinksList { from_history, .. } = request {
            self.tally.list_rows.record(answer.rows);
            self.tally.from_history += u64::from(*from_history);
        }
        let elapsed = ended - self.shared.measure_from;
        self.tally.per_second.record(elapsed, 1);
        if request.operation().is_write() {
            self.tally.writes.record(elapsed);
            // Others share its cache line: it costs nothing where nobody asks for it.
            if self.shared.config.max_writes.is_some() {
                self.shared.writes.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.tally.last_end = Some(ended);
        self.recorded += 1;
        if let Some(intervals) = &mut self.intervals {
            intervals.latencies[operation].record(taken_ns);
            if ended - intervals.begun >= intervals.length {
                self.report_interval(ended);
            }
        }
    }

    #[cold]
    fn book_failure(&mut self, error: EngineError) {
        self.tally.failures += 1;
        self.first_error.get_or_insert(error);
        let allowed = self.shared.config.max_failed_per_requester;
        if allowed.is_some_and(|allowed| self.tally.failures > allowed) {
            self.shared.aborted.store(true, Ordering::Relaxed);
        }
    }

    #[cold]
    fn report_interval(&mut self, now: Instant) {
        let Some(intervals) = &mut self.intervals else { return };
        for operation in Operation::REPORTED {
            let latencies = &mut intervals.latencies[operation.index()];
            if latencies.count() == 0 {
                continue;
            }
            let us = |ns: u64| ns as f64 / 1e3;
            let percentiles = [25.0, 50.0, 75.0, 90.0, 95.0, 99.0];
            self.shared.control.progress.interval(&IntervalSample {
                requester: self.number as u64,
                at_ms: (now - self.shared.start).as_millis() as u64,
                op: operation.name().to_owned(),
                requests_done: self.recorded,
                failures: self.tally.failures,
                interval_ms: now.saturating_duration_since(intervals.begun).as_millis() as u64,
                samples: latencies.count(),
                mean_us: latencies.mean() / 1e3,
                min_us: us(latencies.min()),
                percentiles_us: percentiles.map(|percent| us(latencies.percentile(percent))),
                max_us: us(latencies.max()),
            });
            latencies.clear();
        }
        intervals.begun = now;
    }
}
