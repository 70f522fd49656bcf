//! The request phase: requesters that run the operation mix against a loaded engine.
//!
//! Each requester has its own random stream, history and session. Only the engine's work is timed,
//! encoding of keys and values and retries included, generation of arguments not. During the
//! warm-up everything runs and nothing is recorded.
//!
//! Does not: check the data afterwards; that is [`super::oracle`].

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::arrivals::{Arrivals, OpenLoop};
use super::control::{Control, ObservedStalls};
use super::expected::Effects;
use super::generator::{Seat, TimeSource};
use super::graph::Graph;
use super::ledger::Ledger;
use super::profile::Operation;
use super::requester::{Done, Requester, Shared, Tally};
use crate::adapter::graph::GraphEngine;
use crate::adapter::{EngineError, EngineResult};
use crate::latency::{Latencies, LatencySummary};

/// How to run the requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestConfig {
    /// Threads.
    pub requesters: u64,
    /// Requests of each requester after the warm-up.
    pub requests_per_requester: u64,
    /// The phase ends after so many write operations of all requesters together; `None` for no such
    /// end.
    pub max_writes: Option<u64>,
    /// Requests per second of each requester, arriving at random; 0 for as many as possible.
    pub rate_per_requester: f64,
    /// Requests per second of all requesters together, arriving at even distances; latencies then
    /// count from the arrival, the wait for a requester included. 0 for as many as possible.
    pub arrivals_per_second: f64,
    /// End of the phase after the warm-up, seconds.
    pub max_seconds: f64,
    /// Nothing is recorded that long, seconds.
    pub warmup_seconds: f64,
    /// A requester with more failed requests ends the phase; `None` never does.
    pub max_failed_per_requester: Option<u64>,
    /// Where times of writes come from.
    pub time_source: TimeSource,
    /// Start of the logical clock, milliseconds since 1970, and seed of the phase: a second phase
    /// starts at the [`RequestOutcome::next_time_ms`] of the first.
    pub start_time_ms: u64,
    /// First id of new nodes: the end of the loaded ones, or the
    /// [`RequestOutcome::next_node_id`] of an earlier phase.
    pub first_new_node_id: u64,
    /// Gives each requester targets of its own.
    pub separate_targets: bool,
    /// Hashes everything that is read, to compare engines.
    pub hash_reads: bool,
    /// Length of the intervals reported to [`super::Progress::interval`], seconds; 0 for none.
    pub display_seconds: f64,
}

impl RequestConfig {
    /// The defaults, for the first phase after the load of `graph`.
    pub fn after_load(graph: &Graph) -> Self {
        RequestConfig {
            requesters: 100,
            requests_per_requester: 500_000,
            max_writes: None,
            rate_per_requester: 0.0,
            arrivals_per_second: 0.0,
            max_seconds: 100_000.0,
            warmup_seconds: 0.0,
            max_failed_per_requester: Some(100),
            time_source: TimeSource::Logical,
            start_time_ms: graph.config().epoch_ms,
            first_new_node_id: graph.end_id(),
            separate_targets: false,
            hash_reads: false,
            display_seconds: 0.0,
        }
    }

    fn validate(&self) -> EngineResult<()> {
        let fail = |text: &str| Err(EngineError::fatal(text));
        if self.requesters == 0 {
            return fail("requesters must be at least 1");
        }
        for seconds in [self.max_seconds, self.warmup_seconds, self.display_seconds] {
            if !(0.0..=1e9).contains(&seconds) {
                return fail("seconds must lie between 0 and 1e9");
            }
        }
        if !(0.0..=1e9).contains(&self.rate_per_requester) {
            return fail("rate_per_requester must lie between 0 and 1e9");
        }
        if !(0.0..=1e9).contains(&self.arrivals_per_second) {
            return fail("arrivals_per_second must lie between 0 and 1e9");
        }
        if self.arrivals_per_second > 0.0
            && (self.rate_per_requester > 0.0 || self.warmup_seconds > 0.0)
        {
            return fail("arrivals_per_second goes with no other rate and no warm-up");
        }
        Ok(())
    }
}

/// Rows that list reads returned.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RangeSizes {
    /// List reads.
    pub reads: u64,
    /// Of them from history.
    pub from_history: u64,
    /// Mean rows per read.
    pub mean: f64,
    /// Median.
    pub p50: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Most.
    pub max: u64,
}

/// What one operation found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OperationCount {
    /// Name of the operation.
    pub op: String,
    /// Done.
    pub done: u64,
    /// Of them met what they were about: the row existed, the list was not empty.
    pub found: u64,
}

/// What the request phase did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RequestOutcome {
    /// Requests recorded, failed ones not among them.
    pub requests: u64,
    /// Time since the end of the warm-up, seconds.
    pub seconds: f64,
    /// Requests per second: what posts call TPS and QPS.
    pub requests_per_second: f64,
    /// Write operations among the requests.
    pub writes: u64,
    /// How often recorded requests were tried again.
    pub retries: u64,
    /// Requests that failed, warm-up included.
    pub failures: u64,
    /// Text of the first error.
    pub first_error: Option<String>,
    /// True when failures ended the phase.
    pub aborted: bool,
    /// True when the caller ended the phase.
    pub cancelled: bool,
    /// Latencies in the order of reports, operations without samples left out.
    pub latencies: Vec<LatencySummary>,
    /// Per operation, in the same order.
    pub operations: Vec<OperationCount>,
    /// How the arrivals went, if requests arrived at a fixed rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<OpenLoop>,
    /// Rows of list reads.
    pub range_sizes: RangeSizes,
    /// Requests in each second after the warm-up.
    pub per_second: Vec<u64>,
    /// Windows without a completed write.
    pub observed_stalls: ObservedStalls,
    /// What was done to the graph, warm-up included.
    #[serde(default)]
    pub effects: Effects,
    /// What the last writes of a sample of the rows left, warm-up included.
    #[serde(skip)]
    pub ledger: Ledger,
    /// Rows read, warm-up included.
    pub rows_read: u64,
    /// Bytes of their keys and values.
    pub bytes_read: u64,
    /// Hash of all answers if asked for; with one requester it tells whether two engines answered
    /// alike.
    pub read_hash: u64,
    /// Id of the next new node.
    pub next_node_id: u64,
    /// Start of the logical clock for a following phase.
    pub next_time_ms: u64,
}

impl RequestOutcome {
    /// The line that ends the phase.
    pub fn line(&self) -> String {
        format!(
            "REQUEST PHASE COMPLETED. {} requests done in {:.3} seconds. Requests/second = {:.3}",
            self.requests, self.seconds, self.requests_per_second
        )
    }

    /// What tables call un, gn, ul and gl: p99 of UPDATE_NODE, GET_NODE, UPDATE_LINK and
    /// GET_LINKS_LIST in milliseconds, `None` for an operation without samples.
    pub fn un_gn_ul_gl(&self) -> [Option<f64>; 4] {
        let named = [
            Operation::UpdateNode,
            Operation::GetNode,
            Operation::UpdateLink,
            Operation::GetLinksList,
        ];
        named.map(|operation| {
            let summary = self.latencies.iter().find(|summary| summary.op == operation.name());
            summary.map(LatencySummary::p99_bucket_ms)
        })
    }
}

/// Runs the mix of `graph`'s profile against `engine`, which holds the loaded graph.
pub fn run(
    graph: &Graph,
    engine: &dyn GraphEngine,
    config: &RequestConfig,
    control: &Control<'_>,
) -> EngineResult<RequestOutcome> {
    config.validate()?;
    let start = Instant::now();
    let measure_from = start + Duration::from_secs_f64(config.warmup_seconds);
    let shared = Shared {
        config,
        control,
        start,
        measure_from,
        end: measure_from + Duration::from_secs_f64(config.max_seconds),
        arrivals: Arrivals::new(
            config.arrivals_per_second,
            Duration::from_secs_f64(config.max_seconds),
        ),
        aborted: AtomicBool::new(false),
        done: (0..config.requesters).map(|_| Done::default()).collect(),
        writes: AtomicU64::new(0),
        finished: Mutex::default(),
    };
    let next_node_id = AtomicU64::new(config.first_new_node_id);
    let seat = |requester| Seat {
        requester,
        requesters: config.requesters,
        next_node_id: &next_node_id,
        time_source: config.time_source,
        start_time_ms: config.start_time_ms,
        separate_targets: config.separate_targets,
    };
    let ready = Barrier::new(usize::try_from(config.requesters).unwrap_or(usize::MAX));
    std::thread::scope(|scope| {
        let (sender, workers) = channel();
        for requester in 0..config.requesters {
            let (sender, shared, ready): (Sender<()>, _, _) = (sender.clone(), &shared, &ready);
            let seat = seat(requester);
            scope.spawn(move || {
                let made = Requester::new(graph, engine, shared, seat);
                // All are ready before the first begins, and none waits for one that failed.
                ready.wait();
                let result = made.and_then(Requester::run);
                finish(shared, result);
                drop(sender);
            });
        }
        drop(sender);
        control.tick_until_done(&workers, || shared.report());
    });
    shared.report();
    let next_node_id = next_node_id.into_inner();
    outcome(shared, next_node_id)
}

/// Books a requester's work, or its failure to start.
fn finish(shared: &Shared<'_>, result: EngineResult<(Tally, Option<EngineError>)>) {
    let mut finished = shared.finished.lock().unwrap_or_else(|poison| poison.into_inner());
    let error = match result {
        Ok((tally, error)) => {
            finished.0.merge(&tally);
            error
        }
        Err(error) => {
            shared.aborted.store(true, Ordering::Relaxed);
            finished.0.failures += 1;
            Some(error)
        }
    };
    if let Some(error) = error {
        finished.1.get_or_insert(error);
    }
}

fn outcome(shared: Shared<'_>, next_node_id: u64) -> EngineResult<RequestOutcome> {
    let aborted = shared.aborted.into_inner();
    let cancelled = shared.control.is_cancelled();
    let (tally, error) = shared.finished.into_inner().unwrap_or_else(|poison| poison.into_inner());
    let end = tally.last_end.unwrap_or(shared.measure_from);
    let seconds = end.saturating_duration_since(shared.measure_from).as_secs_f64();
    let requests: u64 = tally.latencies.iter().map(Latencies::count).sum();
    let done = |operation: Operation| tally.latencies[operation.index()].count();
    let reported = || Operation::REPORTED.into_iter().filter(|operation| done(*operation) > 0);
    Ok(RequestOutcome {
        requests,
        seconds,
        requests_per_second: requests as f64 / seconds.max(1e-9),
        writes: Operation::ALL.into_iter().filter(|op| op.is_write()).map(done).sum(),
        retries: tally.retries,
        failures: tally.failures,
        first_error: error.map(|error| error.to_string()),
        aborted,
        cancelled,
        open_loop: shared.arrivals.map(|arrivals| arrivals.outcome(requests, tally.queue_max)),
        latencies: reported()
            .map(|op| LatencySummary::new(op.name(), &tally.latencies[op.index()]))
            .collect(),
        operations: reported()
            .map(|op| OperationCount {
                op: op.name().to_owned(),
                done: done(op),
                found: tally.found[op.index()],
            })
            .collect(),
        range_sizes: RangeSizes {
            reads: tally.list_rows.count(),
            from_history: tally.from_history,
            mean: tally.list_rows.mean(),
            p50: tally.list_rows.percentile(50.0),
            p99: tally.list_rows.percentile(99.0),
            max: tally.list_rows.max(),
        },
        effects: tally.effects,
        ledger: tally.ledger,
        rows_read: tally.digest.rows,
        bytes_read: tally.digest.bytes,
        read_hash: tally.digest.hash,
        next_node_id,
        next_time_ms: tally.time_ms.max(shared.config.start_time_ms) + 1,
        per_second: tally.per_second.amounts().to_vec(),
        observed_stalls: ObservedStalls::of(&tally.writes),
    })
}
