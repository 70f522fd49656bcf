//! The one list from which the statistics' names, units and descriptions come.
//!
//! A name is written here once; the ledger's cells, the page, the JSON and `docs/stats.md` are
//! made from it.

use crate::codec::CodecId;

/// An enum whose variants carry a name, a unit and a description, in a fixed order.
macro_rules! named_list {
    ($(#[$attribute:meta])* $list:ident {
        $($(#[doc = $doc:literal])+ $variant:ident = $name:literal, $unit:literal;)+
    }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(usize)]
        pub enum $list { $($(#[doc = $doc])+ $variant,)+ }

        impl $list {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [$list] = &[$($list::$variant,)+];
            /// How many there are.
            pub const COUNT: usize = $list::ALL.len();

            /// The name in the page, the JSON and the documentation.
            pub fn name(self) -> &'static str {
                match self { $($list::$variant => $name,)+ }
            }

            /// The unit that its figures are in.
            pub fn unit(self) -> &'static str {
                match self { $($list::$variant => $unit,)+ }
            }

            /// What it stands for.
            pub fn description(self) -> &'static str {
                match self { $($list::$variant => concat!($($doc,)+).trim_ascii(),)+ }
            }
        }
    };
}

pub(super) use named_list;

named_list! {
    /// Why a cost arose.
    Cause {
        /// Records written to the write-ahead log, and zeros ahead of small synced ones.
        Wal = "wal", "bytes, ns";
        /// Space reserved in log segments ahead of the records: nothing is written, no total has it.
        WalPreallocation = "wal-preallocation", "bytes, ns";
        /// Version edits and the files that name the current manifest.
        Manifest = "manifest", "bytes, ns";
        /// Memtables written to tables.
        Flush = "flush", "bytes, ns";
        /// Tables merged or rewritten into a level.
        Compaction = "compaction", "bytes, ns";
        /// Tables written by bulk ingest, and copied for it.
        Ingest = "ingest", "bytes, ns";
        /// Gets and multi-gets of the user; CPU is sampled.
        UserLookup = "user-lookup", "bytes, ns";
        /// Cursors and iterators of the user; CPU is sampled.
        UserScan = "user-scan", "bytes, ns";
        /// Commits of the user: log encoding, memtable inserts, locks and conflict checks of
        /// transactions; CPU is sampled.
        UserWrite = "user-write", "bytes, ns";
        /// Opening: replay of the manifest and the log.
        Recovery = "recovery", "bytes, ns";
        /// Removing files that no version holds.
        FileDeletion = "file-deletion", "bytes, ns";
        /// Reading files only to check them.
        Verification = "verification", "bytes, ns";
        /// Checkpoints and backups: what is read for them, checked and written, by themselves.
        Copy = "copy", "bytes, ns";
        /// Identity, lock and option files, and what no other cause covers.
        Other = "other", "bytes, ns";
    }
}

named_list! {
    /// A part of the CPU time of a cause. The parts of a cause add up to its CPU time.
    CpuPart {
        /// Compressing blocks.
        Compress = "compress", "ns";
        /// Decompressing blocks.
        Decompress = "decompress", "ns";
        /// Checksums, made or checked.
        Checksum = "checksum", "ns";
        /// Hashing keys and building filters.
        Filter = "filter", "ns";
        /// Calls of the file system.
        Io = "io", "ns";
        /// Measuring what compressions would cost.
        Sampling = "sampling", "ns";
        /// All the rest: merging, copying, searching.
        Merge = "merge", "ns";
    }
}

named_list! {
    /// Counts of operations and of what became of them.
    Counter {
        /// Point reads, `contains` among them, and what `lock_first` reads again under its lock; not a
        /// transaction's reads of its own writes.
        Gets = "gets", "count";
        /// Point reads that found a value.
        GetHits = "get-hits", "count";
        /// Bytes of values that point reads found.
        GetValueBytes = "get-value-bytes", "bytes";
        /// Calls of multi-get.
        MultiGets = "multi-gets", "count";
        /// Keys asked for by multi-gets.
        MultiGetKeys = "multi-get-keys", "count";
        /// Cursors opened.
        Cursors = "cursors", "count";
        /// Cursor positionings: seeks to a key, to the first or last row, and a first move.
        Seeks = "seeks", "count";
        /// Rows that cursors came to, by a seek or a move.
        Nexts = "nexts", "count";
        /// Dead entries that cursors passed: tombstones, what they hide, older versions, expired rows.
        SkippedEntries = "skipped-entries", "count";
        /// Stored bytes that cursors read ahead of the block that they wanted.
        ReadAheadBytes = "read-ahead-bytes", "bytes";
        /// Puts committed.
        Puts = "puts", "count";
        /// Deletes committed.
        Deletes = "deletes", "count";
        /// Single deletes committed.
        SingleDeletes = "single-deletes", "count";
        /// Range deletes committed.
        RangeDeletes = "range-deletes", "count";
        /// Merge operands committed.
        Merges = "merges", "count";
        /// Merge operands that reads made values of.
        FoldedOperands = "folded-operands", "count";
        /// Merge operands that flushes and compactions made values of, or one operand of several.
        CompactedOperands = "compacted-operands", "count";
        /// Rows whose merge operator failed in a flush or compaction; their operands stayed.
        MergeFailures = "merge-failures", "count";
        /// Expired rows that flushes and compactions dropped.
        ExpiredRows = "expired-rows", "count";
        /// Tables that went as a whole because all of their rows had expired.
        ExpiredTables = "expired-tables", "count";
        /// Rows that a compaction filter removed or changed.
        FilteredRows = "filtered-rows", "count";
        /// Bytes of keys and values committed: the denominator of write amplification.
        IngestedBytes = "ingested-bytes", "bytes";
        /// Tables that bulk ingest made live.
        IngestedTables = "ingested-tables", "count";
        /// Batches given to a commit, those that it refused among them.
        Commits = "commits", "count";
        /// Groups of batches that one leader committed.
        CommitGroups = "commit-groups", "count";
        /// Writes to the log, one or more batches each.
        WalWrites = "wal-writes", "count";
        /// Syncs of the log.
        WalSyncs = "wal-syncs", "count";
        /// Single deletes that met a second older put: the contract was broken.
        SingleDeleteMisuses = "single-delete-misuses", "count";
        /// Filters asked by point reads whether a key may be in a table.
        FilterChecks = "filter-checks", "count";
        /// Filters that said no to a point read.
        FilterNegatives = "filter-negatives", "count";
        /// Filters that said maybe where the table then had no entry that the read may see.
        FilterFalsePositives = "filter-false-positives", "count";
        /// Filters asked by prefix cursors whether a key of the prefix may be in a table.
        PrefixFilterChecks = "prefix-filter-checks", "count";
        /// Filters that said no to a prefix cursor.
        PrefixFilterNegatives = "prefix-filter-negatives", "count";
        /// Transactions committed.
        TransactionCommits = "transaction-commits", "count";
        /// Transactions rolled back.
        TransactionRollbacks = "transaction-rollbacks", "count";
        /// Row locks asked for by transactions.
        LockRequests = "lock-requests", "count";
        /// Row locks that had to be waited for.
        LockWaits = "lock-waits", "count";
        /// Row locks that were not granted in time.
        LockTimeouts = "lock-timeouts", "count";
        /// Waits for a row lock that were refused because they would have closed a circle.
        Deadlocks = "deadlocks", "count";
        /// Transactions refused because a row had changed.
        Conflicts = "conflicts", "count";
        /// Blocks stored raw because they did not shrink enough.
        RawFallbackBlocks = "raw-fallback-blocks", "count";
        /// Steps of background jobs.
        Steps = "steps", "count";
        /// Background jobs that ended with an error.
        JobsFailed = "jobs-failed", "count";
        /// Flushes and compactions that failed, left everything as it was and are tried again.
        BackgroundRefusals = "background-refusals", "count";
        /// Panics of the event listener; each was caught, and the work went on.
        ListenerPanics = "listener-panics", "count";
        /// Tables removed.
        TablesRemoved = "tables-removed", "count";
        /// Compactions and trivial moves because of the runs or bytes of level 0.
        CompactionsLevel0 = "compactions-level0", "count";
        /// Compactions and trivial moves because of a level over its target.
        CompactionsLevelSize = "compactions-level-size", "count";
        /// Compactions and trivial moves because a user asked for them.
        CompactionsManual = "compactions-manual", "count";
        /// Compactions and trivial moves because of a table full of tombstones.
        CompactionsTombstones = "compactions-tombstones", "count";
        /// Compactions and trivial moves because scans had paid for them by passing dead entries.
        CompactionsDeadEntries = "compactions-dead-entries", "count";
        /// Compactions and trivial moves because no snapshot needed a table's obsolete entries any
        /// more.
        CompactionsSnapshotRelease = "compactions-snapshot-release", "count";
        /// Compactions and trivial moves because of a table's codec.
        CompactionsCodecDebt = "compactions-codec-debt", "count";
        /// Compactions because rows had expired, and tables that went as a whole.
        CompactionsExpired = "compactions-expired", "count";
    }
}

named_list! {
    /// Why a writer was slowed or stopped.
    DelayCause {
        /// Memtables hold too much that is not flushed.
        Memtable = "memtable", "us";
        /// Level 0 has too many runs.
        Level0 = "level0", "us";
        /// Compaction is behind by too many bytes.
        PendingCompaction = "pending-compaction", "us";
        /// Obsolete entries that compaction has not come to take too much space.
        Space = "space", "us";
        /// The memory budget is used up.
        MemoryBudget = "memory-budget", "us";
        /// The log is larger than its bound.
        WalSize = "wal-size", "us";
    }
}

named_list! {
    /// What is summed up over the jobs that wrote into a level.
    JobFigure {
        /// Stored bytes of the input tables from levels above. `read-bytes` has what was read.
        ReadSourceBytes = "read-source-bytes", "bytes";
        /// Stored bytes of the input tables from the level itself.
        ReadTargetBytes = "read-target-bytes", "bytes";
        /// Bytes of tables written.
        WrittenBytes = "written-bytes", "bytes";
        /// Bytes of their data blocks before compression.
        WrittenRawBytes = "written-raw-bytes", "bytes";
        /// Data blocks of those tables that were copied as they were stored.
        CopiedBlocks = "copied-blocks", "count";
        /// Stored bytes of those blocks.
        CopiedBytes = "copied-bytes", "bytes";
        /// Bytes of tables moved into the level without being rewritten.
        MovedBytes = "moved-bytes", "bytes";
        /// Wall time of the jobs.
        WallUs = "wall", "us";
        /// CPU time of the jobs.
        CpuNs = "cpu", "ns";
        /// Jobs, trivial moves not counted.
        Jobs = "jobs", "count";
        /// Trivial moves.
        Moves = "moves", "count";
        /// Entries read.
        EntriesIn = "entries-in", "count";
        /// Entries not written again: shadowed, deleted.
        EntriesDropped = "entries-dropped", "count";
    }
}

named_list! {
    /// What is summed up over the blocks that went through a codec.
    CodecFigure {
        /// Bytes given to the encoder.
        CompressedRawBytes = "compressed-raw-bytes", "bytes";
        /// Bytes that came out of it and were kept.
        CompressedStoredBytes = "compressed-stored-bytes", "bytes";
        /// CPU time in the encoder.
        CompressNs = "compress-cpu", "ns";
        /// Bytes that came out of the decoder.
        DecompressedRawBytes = "decompressed-raw-bytes", "bytes";
        /// CPU time in the decoder.
        DecompressNs = "decompress-cpu", "ns";
    }
}

named_list! {
    /// What is summed up over the reads and writes of files.
    TrafficFigure {
        /// Bytes written to files; of `wal-preallocation`, bytes reserved.
        WrittenBytes = "written-bytes", "bytes";
        /// Bookings of written or reserved bytes.
        Writes = "writes", "count";
        /// Bytes read from files.
        ReadBytes = "read-bytes", "bytes";
        /// Bookings of read bytes.
        Reads = "reads", "count";
    }
}

named_list! {
    /// What is computed from the figures.
    Derived {
        /// (flush + compaction + ingest: written bytes) / ingested-bytes.
        WriteAmplificationTables = "w-amp-flush", "ratio";
        /// (wal: written bytes) / ingested-bytes.
        WriteAmplificationWal = "w-amp-wal", "ratio";
        /// (all causes but copy and wal-preallocation: written bytes) / ingested-bytes.
        WriteAmplificationTotal = "w-amp-total", "ratio";
        /// (user-lookup: reads) / (gets + multi-get-keys).
        FileReadsPerLookup = "file-reads-per-lookup", "ratio";
        /// (user-scan: reads) / nexts.
        FileReadsPerRow = "file-reads-per-row", "ratio";
        /// skipped-entries / nexts: dead entries that cursors passed for each row.
        SkippedPerRow = "skipped-per-row", "ratio";
        /// (bytes of live tables and log) / (bytes of the newest visible keys and values), where
        /// the caller has counted the latter.
        SpaceAmplification = "space-amp", "ratio";
        /// (bytes of live tables) / (the same data blocks before compression).
        StoredToRaw = "stored-to-raw", "ratio";
        /// cache hits / (cache hits + misses).
        CacheHitShare = "cache-hit-share", "share";
        /// filter-false-positives / (filter-checks - filter-negatives): how often a maybe was
        /// wrong.
        FilterFalseShare = "filter-false-share", "share";
        /// filter-false-positives / (filter-false-positives + filter-negatives): how often a filter
        /// let an absent key through.
        FilterFalseRate = "filter-false-rate", "share";
        /// CPU time of user-lookup / (gets + multi-get-keys); undefined while no call was timed.
        CpuPerLookup = "cpu-per-lookup", "us";
        /// CPU time of user-scan / cursors; undefined while no call was timed.
        CpuPerCursor = "cpu-per-cursor", "us";
        /// CPU time of user-scan / nexts; undefined while no call was timed.
        CpuPerRow = "cpu-per-row", "us";
        /// CPU time of wal, user-write, flush and compaction / (puts + merges + deletes +
        /// single-deletes + range-deletes).
        CpuPerWrite = "cpu-per-write", "us";
        /// Time in which at least one writer was held back / uptime.
        SlowedShare = "slowed-share", "share";
        /// Windows of 100 ms all through which a writer wanted to complete a write and none was
        /// completed / windows of the uptime.
        GapShare = "gap-share", "share";
        /// The longest time for which a writer wanted to and nothing was completed.
        LongestGap = "longest-gap", "us";
    }
}

impl Counter {
    /// Whether it is counted for each column family; the database's is the sum then.
    pub fn is_of_family(self) -> bool {
        match self {
            Counter::Commits
            | Counter::CommitGroups
            | Counter::WalWrites
            | Counter::WalSyncs
            | Counter::TransactionCommits
            | Counter::TransactionRollbacks
            | Counter::LockRequests
            | Counter::LockWaits
            | Counter::LockTimeouts
            | Counter::Deadlocks
            | Counter::Conflicts
            | Counter::RawFallbackBlocks
            | Counter::Steps
            | Counter::JobsFailed
            | Counter::BackgroundRefusals
            | Counter::ListenerPanics
            | Counter::TablesRemoved => false,
            Counter::Gets
            | Counter::GetHits
            | Counter::GetValueBytes
            | Counter::MultiGets
            | Counter::MultiGetKeys
            | Counter::Cursors
            | Counter::Seeks
            | Counter::Nexts
            | Counter::SkippedEntries
            | Counter::Puts
            | Counter::Merges
            | Counter::FoldedOperands
            | Counter::Deletes
            | Counter::SingleDeletes
            | Counter::RangeDeletes
            | Counter::IngestedBytes
            | Counter::IngestedTables
            | Counter::FilterChecks
            | Counter::FilterNegatives
            | Counter::FilterFalsePositives
            | Counter::PrefixFilterChecks
            | Counter::PrefixFilterNegatives
            | Counter::CompactionsLevel0
            | Counter::CompactionsLevelSize
            | Counter::CompactionsManual
            | Counter::CompactionsTombstones
            | Counter::CompactionsDeadEntries
            | Counter::CompactionsSnapshotRelease
            | Counter::CompactionsCodecDebt
            | Counter::ExpiredTables
            | Counter::CompactionsExpired
            | Counter::ReadAheadBytes
            | Counter::SingleDeleteMisuses
            | Counter::CompactedOperands
            | Counter::MergeFailures
            | Counter::ExpiredRows
            | Counter::FilteredRows => true,
        }
    }
}

/// Levels that are told apart; what is booked for a deeper one counts for the last.
pub const LEVEL_SLOTS: usize = 8;

/// Names of the codecs by their numbers on disk; the ledger knows no codec, only its number.
pub const CODEC_NAMES: [&str; CodecId::ALL.len()] = CodecId::NAMES;
