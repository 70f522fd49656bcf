//! The engine's own book of bytes against what the file system counted, by kind of file.

use super::disk::Disk;
use lithify::Db;
use lithify::fs::FileCounts;
use lithify::stats::{Cause, Counter, StatisticsSnapshot, TrafficFigure};
use std::collections::BTreeMap;

/// What was counted when a database was opened, and what is to be told from its own work since.
pub(super) struct Before {
    counts: BTreeMap<String, FileCounts>,
    /// What copies and verifications did, with files of whatever class.
    beside: FileCounts,
}

const READERS: [Cause; 9] = [
    Cause::UserLookup,
    Cause::UserScan,
    // Conflict checks of transactions.
    Cause::UserWrite,
    Cause::Flush,
    Cause::Compaction,
    Cause::Recovery,
    Cause::Ingest,
    Cause::Verification,
    Cause::Copy,
];

impl Before {
    pub(super) fn now(disk: &Disk) -> Before {
        Before { counts: disk.counts(), beside: FileCounts::default() }
    }

    /// Takes what was read and written since `earlier` for that of a copy or a verification, with
    /// what was done in a store of backups.
    pub(super) fn set_aside(&mut self, disk: &Disk, earlier: &Before, in_store: FileCounts) {
        self.beside = self.beside + in_store;
        for (class, now) in disk.counts() {
            let then = earlier.counts.get(&class).copied().unwrap_or_default();
            let set_aside = self.counts.entry(class).or_default();
            *set_aside = *set_aside + (now - then);
            self.beside = self.beside + (now - then);
        }
    }

    /// Compares everything since then with what the database has booked since it was opened.
    ///
    /// # Errors
    /// The first sum that differs.
    pub(super) fn reconcile(&self, disk: &Disk, db: &Db) -> Result<(), String> {
        let counts = disk.counts();
        let since = |class: &str, of: fn(&FileCounts) -> u64| {
            counts.get(class).map_or(0, of) - self.counts.get(class).map_or(0, of)
        };
        let stats = db.stats();
        let written = |causes: &[Cause]| booked(&stats, TrafficFigure::WrittenBytes, causes);
        let log = written(&[Cause::Wal, Cause::Recovery]);
        let tables = written(&[Cause::Flush, Cause::Compaction, Cause::Ingest]);
        let manifests = written(&[Cause::Manifest]);
        let reserved = written(&[Cause::WalPreallocation]);
        let copies = written(&[Cause::Copy]);
        let bytes = |counts: &FileCounts| counts.written_bytes;
        let manifests_counted =
            since("manifest", bytes) + since("tmp", bytes) + since("witness", bytes);
        let read = booked(&stats, TrafficFigure::ReadBytes, &READERS);
        let reads = booked(&stats, TrafficFigure::Reads, &READERS);
        let beside = self.beside;
        let read_counted = since("sst", |counts| counts.read_bytes) + beside.read_bytes;
        let all = stats.figures.traffic_total(TrafficFigure::WrittenBytes);
        let syncs = stats.figures.counter(Counter::WalSyncs);
        for (what, booked, counted) in [
            ("log bytes written", log, since("wal", bytes)),
            ("table bytes written", tables, since("sst", bytes)),
            ("manifest bytes written", manifests, manifests_counted),
            ("log bytes reserved", reserved, since("wal", |counts| counts.preallocated_bytes)),
            ("bytes written for copies", copies, beside.written_bytes),
            ("bytes written in all", all, log + tables + manifests + copies),
            ("bytes read from tables and for copies", read, read_counted),
            ("such reads", reads, since("sst", |counts| counts.reads) + beside.reads),
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
