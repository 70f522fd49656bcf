//! The latest jobs: what each was to do, when it ran, what it came to. A log of fixed length.
//!
//! Any thread may log. A job takes the mutex once, when it ends.

use super::JsonWriter;
use super::ledger::JobRecord;
use super::names::named_list;
use crate::base::{Level, lock};
use crate::{Error, ErrorKind};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Mutex;

/// So many of the latest jobs are kept.
pub(super) const JOB_LOG_LENGTH: usize = 64;

named_list! {
    /// What a job does.
    JobKind {
        /// Memtables are written to tables.
        Flush = "flush", "";
        /// Tables are merged or rewritten into a level.
        Compaction = "compaction", "";
        /// A table goes to a deeper level as it is.
        Move = "move", "";
        /// A table goes as a whole, for all of its rows have expired.
        Drop = "drop", "";
        /// Rows or tables come in by bulk, in the caller's thread.
        Ingest = "ingest", "";
        /// No job of the database: writers were stopped from its beginning to its end.
        WriteStop = "write-stop", "";
    }
}

/// What a job is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobInfo {
    /// Jobs are numbered as they begin, from 1 on.
    pub number: u64,
    /// What it does.
    pub kind: JobKind,
    /// Of a compaction or move why it was picked, as in the counters' names: `level0`, `level-size`,
    /// `manual` and so on. Of a flush `dead-entries` if scans had paid for it by passing these. Of a write
    /// stop its [`super::DelayCause`]. Else empty.
    pub reason: &'static str,
    /// The column family; empty for a write stop.
    pub family: String,
    /// The level that a compaction or move takes from.
    pub source_level: Option<Level>,
    /// The level that it writes into; `None` for an ingest into several.
    pub target_level: Option<Level>,
    /// Input tables; of a flush its memtables.
    pub tables_in: u64,
    /// Bytes of them; of an ingest of rows those of keys and values.
    pub bytes_in: u64,
    /// When its first step began, in microseconds since the database was opened.
    pub began_us: u64,
}

impl JobInfo {
    /// A job of a family that was not begun.
    pub(crate) fn planned(kind: JobKind, family: &str) -> Self {
        JobInfo {
            number: 0,
            kind,
            reason: "",
            family: family.to_owned(),
            source_level: None,
            target_level: None,
            tables_in: 0,
            bytes_in: 0,
            began_us: 0,
        }
    }
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobOutcome {
    /// What it made is live.
    Done,
    /// The database was closed meanwhile, or an ingest was dropped. Nothing has changed.
    Aborted,
    /// It met an error. Nothing has changed, unless the kind is [`ErrorKind::Poisoned`].
    Failed {
        /// What to do about it.
        kind: ErrorKind,
        /// What happened, with file and offset.
        message: String,
    },
}

impl JobOutcome {
    /// Of a job that ended with this result.
    pub(crate) fn of_result<T>(result: &crate::Result<T>) -> Self {
        result.as_ref().err().map_or(JobOutcome::Done, JobOutcome::of_error)
    }

    /// Of a job that ended with this error.
    pub(crate) fn of_error(error: &Error) -> Self {
        match error.kind() {
            ErrorKind::Closed => JobOutcome::Aborted,
            kind => JobOutcome::Failed { kind, message: error.to_string() },
        }
    }
}

impl fmt::Display for JobOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JobOutcome::Done => f.write_str("done"),
            JobOutcome::Aborted => f.write_str("aborted"),
            JobOutcome::Failed { message, .. } => write!(f, "failed: {message}"),
        }
    }
}

/// What a job came to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobEnd {
    /// What it was to do.
    pub job: JobInfo,
    /// When it ended, in microseconds since the database was opened.
    pub ended_us: u64,
    /// CPU time of its steps. Of a job that failed, that of its parts that were done.
    pub cpu_ns: u64,
    /// Tables that it wrote or moved.
    pub tables_out: u64,
    /// Stored bytes of them.
    pub bytes_out: u64,
    /// Entries that it read.
    pub entries_in: u64,
    /// Entries that it did not write again.
    pub entries_dropped: u64,
    /// How it ended.
    pub outcome: JobOutcome,
}

impl JobEnd {
    /// What a job that has ended came to, from the records that are booked for it.
    pub(crate) fn new<'a>(
        job: JobInfo,
        ended_us: u64,
        tables_out: u64,
        records: impl IntoIterator<Item = &'a JobRecord>,
        outcome: JobOutcome,
    ) -> Self {
        let mut end = JobEnd {
            job,
            ended_us,
            cpu_ns: 0,
            tables_out: 0,
            bytes_out: 0,
            entries_in: 0,
            entries_dropped: 0,
            outcome,
        };
        for record in records {
            end.cpu_ns += record.cpu_ns;
            end.bytes_out += record.written_bytes + record.moved_bytes;
            end.entries_in += record.entries_in;
            end.entries_dropped += record.entries_dropped;
        }
        match end.outcome {
            JobOutcome::Done => end.tables_out = tables_out,
            // Its tables were removed again.
            _ => end.bytes_out = 0,
        }
        end
    }

    /// How long it ran or waited, from its first step to its end.
    pub fn wall_us(&self) -> u64 {
        self.ended_us.saturating_sub(self.job.began_us)
    }

    /// The members of its JSON object.
    pub(super) fn write_json(&self, json: &mut JsonWriter) {
        let JobInfo { number, kind, reason, family, source_level, target_level, .. } = &self.job;
        json.key("number").number(*number);
        json.key("kind").string(kind.name());
        json.key("reason").string(reason);
        json.key("family").string(family);
        for (name, level) in [("source_level", source_level), ("target_level", target_level)] {
            json.key(name).real(level.map_or(f64::NAN, |level| level as f64));
        }
        for (name, number) in [
            ("began_us", self.job.began_us),
            ("ended_us", self.ended_us),
            ("cpu_ns", self.cpu_ns),
            ("tables_in", self.job.tables_in),
            ("tables_out", self.tables_out),
            ("bytes_in", self.job.bytes_in),
            ("bytes_out", self.bytes_out),
            ("entries_in", self.entries_in),
            ("entries_dropped", self.entries_dropped),
        ] {
            json.key(name).number(number);
        }
        json.key("outcome").string(&self.outcome.to_string());
    }
}

/// The latest jobs, oldest first.
#[derive(Default)]
pub(super) struct JobLog(Mutex<VecDeque<JobEnd>>);

impl JobLog {
    pub(super) fn push(&self, end: JobEnd) {
        let mut ends = lock(&self.0);
        if ends.len() == JOB_LOG_LENGTH {
            ends.pop_front();
        }
        ends.push_back(end);
    }

    pub(super) fn latest(&self) -> Vec<JobEnd> {
        lock(&self.0).iter().cloned().collect()
    }
}
