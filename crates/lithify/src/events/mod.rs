//! Floor 2: what a database does, told where it happens.
//!
//! Owns [`Event`] and [`EventListener`], the hub [`Events`] that every event passes, and the bridge to
//! `tracing`. A job's end goes from one value to the log of jobs, to the bridge and to the listener.
//!
//! Whoever tells an event holds no lock of the database, for the listener may read it. A panic of the
//! listener ends here. Any thread may tell.

#[cfg(test)]
mod tests;
#[cfg(feature = "tracing")]
mod tracing;

use crate::Error;
use crate::fs::Environment;
use crate::stats::{Counter, DelayCause, JobEnd, JobInfo, JobOutcome, JobRecord, Ledger};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// What has happened in a database. Times are microseconds since it was opened, on the clock of its
/// [`crate::fs::World`].
///
/// Later versions may have more events.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A flush, compaction, move or ingest begins; an ingest of rows when it first writes some. Not told of
    /// a job that a close ends before its first step.
    JobBegan(JobInfo),
    /// A flush, compaction, move or ingest has ended: it is live, was given up, or failed. Told before
    /// those who wait for the job, such as [`crate::Db::flush`], continue. Of kind
    /// [`crate::stats::JobKind::WriteStop`]: writers were stopped for so long.
    JobEnded(JobEnd),
    /// Writers are slowed from now on. Told once, however many writes wait.
    WritesSlowed {
        /// What there is too much of.
        cause: DelayCause,
        /// When.
        at_us: u64,
    },
    /// Writers are stopped until a flush or compaction has ended.
    WritesStopped {
        /// What there is too much of.
        cause: DelayCause,
        /// When.
        at_us: u64,
    },
    /// Writers are held back no more. Told at the end of a job, so up to a job after the last slow write.
    WritesFree {
        /// When.
        at_us: u64,
    },
    /// A column family was opened with other options than it had: it has these from now on. Told by the
    /// thread that opened it, and of options that have changed alone.
    OptionsChanged {
        /// The family's name.
        family: String,
        /// What has changed, in the order of [`crate::FAMILY_OPTIONS`].
        changes: Vec<OptionChange>,
        /// When.
        at_us: u64,
    },
    /// A failure has stopped all writing: reads go on, and opening the database again may mend it.
    DatabaseFailed {
        /// What writers are told.
        error: Error,
        /// When it was found, not before it happened.
        at_us: u64,
    },
}

/// An option that has changed, with its values as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionChange {
    /// The option's name.
    pub name: &'static str,
    /// Its value before.
    pub old: String,
    /// Its value now.
    pub new: String,
}

/// `name: old -> new`.
impl fmt::Display for OptionChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} -> {}", self.name, self.old, self.new)
    }
}

type Listener = dyn Fn(&Event) + Send + Sync;

/// Hears of what the database does: a setting of [`crate::Options`].
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// use lithify::{Db, Event, EventListener, Options};
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use std::sync::Arc;
///
/// let flushed = Arc::new(AtomicU64::new(0));
/// let sum = Arc::clone(&flushed);
/// let event_listener = EventListener::new(move |event| {
///     if let Event::JobEnded(end) = event {
///         println!("{} of {}: {}", end.job.kind.name(), end.job.family, end.outcome);
///         sum.fetch_add(end.bytes_out, Ordering::Relaxed);
///     }
/// });
/// let db = Db::open(directory.path(), Options { event_listener, ..Options::default() })?;
/// db.put("basalt", "igneous")?;
/// db.flush()?;
/// assert!(flushed.load(Ordering::Relaxed) > 0);
/// # Ok::<(), lithify::Error>(())
/// ```
///
/// The rules:
///
/// - It is called where the event happens: by background threads, by a writer that is slowed or stopped,
///   by whoever ingests, changes options, closes, or releases the snapshot that a job waited for; by several at once.
///   A job begins before it ends. Between threads there is no order.
/// - The database works on only once it returns. What takes long belongs to a thread of its own, behind
///   a channel.
/// - It may read: no lock of the database is held. It must not write, flush, compact, wait for
///   compactions or close, for what it would wait for may be the thread that it runs on.
/// - A panic in it is caught and counted as `listener-panics`; the work goes on.
/// - A listener that owns a [`crate::Db`] keeps it from being closed by its last drop: call
///   [`crate::Db::close`].
///
/// Two are equal if they are clones of one.
#[derive(Clone, Default)]
pub struct EventListener(Option<Arc<Listener>>);

impl EventListener {
    /// Nobody listens.
    pub const fn none() -> Self {
        EventListener(None)
    }

    /// Calls `listener` at every event.
    pub fn new(listener: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        EventListener(Some(Arc::new(listener)))
    }

    /// Whether nobody listens.
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }
}

impl fmt::Debug for EventListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_none() { "EventListener::none()" } else { "EventListener" })
    }
}

impl PartialEq for EventListener {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            (own, other) => own.is_none() && other.is_none(),
        }
    }
}

impl Eq for EventListener {}

/// The one place that every event passes; see the module.
pub(crate) struct Events {
    listener: EventListener,
    ledger: Arc<Ledger>,
    environment: Arc<dyn Environment>,
    /// Jobs that have begun.
    jobs: AtomicU64,
    is_failure_told: AtomicBool,
    #[cfg(feature = "tracing")]
    spans: tracing::Spans,
}

impl Events {
    /// Nothing has happened yet.
    pub(crate) fn new(
        listener: EventListener,
        ledger: Arc<Ledger>,
        environment: Arc<dyn Environment>,
    ) -> Self {
        Events {
            listener,
            ledger,
            environment,
            jobs: AtomicU64::new(0),
            is_failure_told: AtomicBool::new(false),
            #[cfg(feature = "tracing")]
            spans: tracing::Spans::default(),
        }
    }

    /// Microseconds since the database was opened.
    pub(crate) fn now_us(&self) -> u64 {
        self.ledger.uptime_us(self.environment.now_us())
    }

    /// Tells an event to all who listen. The caller holds no lock.
    pub(crate) fn tell(&self, event: Event) {
        if let Event::JobEnded(end) = &event {
            self.ledger.log_job(end.clone());
        }
        #[cfg(feature = "tracing")]
        self.spans.trace(&event);
        if let Some(listener) = &self.listener.0
            && catch_unwind(AssertUnwindSafe(|| listener(&event))).is_err()
        {
            self.ledger.count(Counter::ListenerPanics, 1);
        }
    }

    /// Tells that a family has other options.
    pub(crate) fn tell_options(&self, family: &str, changes: Vec<OptionChange>) {
        let (family, at_us) = (family.to_owned(), self.now_us());
        self.tell(Event::OptionsChanged { family, changes, at_us });
    }

    /// Tells what stopped writing, the first time.
    pub(crate) fn tell_failure(&self, error: Error) {
        if !self.is_failure_told.swap(true, Relaxed) {
            self.tell(Event::DatabaseFailed { error, at_us: self.now_us() });
        }
    }

    /// Tells that a job is over that was not told to begin.
    pub(crate) fn tell_end<'a>(
        &self,
        planned: JobInfo,
        tables_out: u64,
        records: impl IntoIterator<Item = &'a JobRecord>,
        outcome: JobOutcome,
    ) {
        let job = JobInfo { number: self.next_number(), ..planned };
        let end = JobEnd::new(job, self.now_us(), tables_out, records, outcome);
        self.tell(Event::JobEnded(end));
    }

    fn next_number(&self) -> u64 {
        self.jobs.fetch_add(1, Relaxed) + 1
    }
}

/// A job that is told of from its first step to its end.
pub(crate) struct TrackedJob {
    planned: JobInfo,
    /// Set by its first step.
    begun: OnceLock<JobInfo>,
}

impl TrackedJob {
    /// A job that has not begun.
    pub(crate) fn new(planned: JobInfo) -> Self {
        TrackedJob { planned, begun: OnceLock::new() }
    }

    /// A part of it begins; the first one is told.
    pub(crate) fn begin(&self, events: &Events) {
        if self.begun.get().is_some() {
            return;
        }
        let (number, began_us) = (events.next_number(), events.now_us());
        let begun = JobInfo { number, began_us, ..self.planned.clone() };
        if self.begun.set(begun.clone()).is_ok() {
            events.tell(Event::JobBegan(begun));
        }
    }

    /// It has ended. Of one that never began nothing is told.
    pub(crate) fn end<'a>(
        &self,
        events: &Events,
        tables_out: u64,
        records: impl IntoIterator<Item = &'a JobRecord>,
        outcome: JobOutcome,
    ) {
        self.end_knowing(events, |job| job, tables_out, records, outcome);
    }

    /// It has ended, and its end tells what nobody knew when it began.
    pub(crate) fn end_knowing<'a>(
        &self,
        events: &Events,
        complete: impl FnOnce(JobInfo) -> JobInfo,
        tables_out: u64,
        records: impl IntoIterator<Item = &'a JobRecord>,
        outcome: JobOutcome,
    ) {
        if planted!(FailureUntold) && outcome != JobOutcome::Done {
            return;
        }
        if let Some(begun) = self.begun.get() {
            let job = complete(begun.clone());
            let end = JobEnd::new(job, events.now_us(), tables_out, records, outcome);
            events.tell(Event::JobEnded(end));
        }
    }
}
