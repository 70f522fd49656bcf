//! The engine's own book of bytes against what the file system counted, by kind of file.

use super::disk::Disk;
use lithify::Db;
use lithify::fs::FileCounts;
use lithify::stats::{Cause, Counter, StatisticsSnapshot, TrafficFigure};
use std::collections::BTreeMap;

/// What was counted when a database was opened.
pub(super) struct Before(BTreeMap<String, FileCounts>);

const TABLE_READERS: [Cause; 6] = [
    Cause::UserRead,
    Cause::Flush,
    Cause::Compaction,
    Cause::Recovery,
    Cause::Ingest,
    Cause::Verification,
];

impl Before {
    pub(super) fn now(disk: &Disk) -> Before {
        Before(disk.counts())
    }

    /// Leaves out what was read and written since `earlier`: the ledger is the database's own work,
    /// without copies and verification.
    pub(super) fn leave_out(&mut self, disk: &Disk, earlier: &Before) {
        for (class, now) in disk.counts() {
            let then = earlier.0.get(&class).copied().unwrap_or_default();
            let left_out = self.0.entry(class).or_default();
            left_out.reads += now.reads - then.reads;
            left_out.read_bytes += now.read_bytes - then.read_bytes;
            left_out.writes += now.writes - then.writes;
            left_out.written_bytes += now.written_bytes - then.written_bytes;
            left_out.syncs += now.syncs - then.syncs;
            left_out.preallocated_bytes += now.preallocated_bytes - then.preallocated_bytes;
        }
    }

    /// Compares everything since then with what the database has booked since it was opened.
    ///
    /// # Errors
    /// The first sum that differs.
    pub(super) fn reconcile(&self, disk: &Disk, db: &Db) -> Result<(), String> {
        let counts = disk.counts();
        let since = |class: &str, of: fn(&FileCounts) -> u64| {
            counts.get(class).map_or(0, of) - self.0.get(class).map_or(0, of)
        };
        let stats = db.stats();
        let written = |causes: &[Cause]| booked(&stats, TrafficFigure::WrittenBytes, causes);
        let log = written(&[Cause::Wal, Cause::Recovery]);
        let tables = written(&[Cause::Flush, Cause::Compaction, Cause::Ingest]);
        let manifests = written(&[Cause::Manifest]);
        let reserved = written(&[Cause::WalPreallocation]);
        let bytes = |counts: &FileCounts| counts.written_bytes;
        let manifests_counted =
            since("manifest", bytes) + since("tmp", bytes) + since("witness", bytes);
        let read = booked(&stats, TrafficFigure::ReadBytes, &TABLE_READERS);
        let reads = booked(&stats, TrafficFigure::Reads, &TABLE_READERS);
        let all = stats.figures.traffic_total(TrafficFigure::WrittenBytes);
        let syncs = stats.figures.counter(Counter::WalSyncs);
        for (what, booked, counted) in [
            ("log bytes written", log, since("wal", bytes)),
            ("table bytes written", tables, since("sst", bytes)),
            ("manifest bytes written", manifests, manifests_counted),
            ("log bytes reserved", reserved, since("wal", |counts| counts.preallocated_bytes)),
            ("bytes written in all", all, log + tables + manifests + reserved),
            ("table bytes read", read, since("sst", |counts| counts.read_bytes)),
            ("table reads", reads, since("sst", |counts| counts.reads)),
            ("log syncs at most", syncs, syncs.min(since("wal", |counts| counts.syncs))),
        ] {
            if booked != counted {
                return Err(format!("the ledger has {booked} {what}, the files {counted}"));
            }
        }
        Ok(())
    }
}

fn booked(stats: &StatisticsSnapshot, figure: TrafficFigure, causes: &[Cause]) -> u64 {
    causes.iter().map(|cause| stats.figures.traffic_of_cause(*cause, figure)).sum()
}
