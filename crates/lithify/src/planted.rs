//! Floor 0: defects put into the engine on purpose, so that the harness which has to find defects
//! is tested itself.
//!
//! Owns: the list of them, which one is in force, and `planted!`, by which a site asks. Without
//! the cargo feature `planted-defects` all that is left of this room is that `planted!(Name)` is
//! the constant `false`: no code and no cost. With it one defect, or none, is in force in the whole
//! process at a time; any thread may ask, and one chooses while no database is open.
//!
//! A defect is one that could be made by mistake: a call forgotten, a bound that is off by one, an
//! error passed over, two steps of a thread in the wrong order. Each says what it breaks, and stands
//! under the harness that has to find it: the simulator, whose `lithify-sim defects` prints
//! which check did; or the models of what threads do beside each other (`db/shuttle.rs`,
//! `memtable/loom.rs`), where an order of steps is too rare to be met by chance, or no processor at
//! hand makes it.

/// Whether this build has defects to choose from.
pub const IS_BUILT_IN: bool = cfg!(feature = "planted-defects");

#[cfg(all(test, any(shuttle, loom)))]
pub(crate) mod models;

/// Whether a defect is in force: `if planted!(LogNameUnsynced) { ... }`.
#[cfg(feature = "planted-defects")]
macro_rules! planted {
    ($defect:ident) => {
        $crate::planted::is_in_force($crate::planted::Defect::$defect)
    };
}

/// Whether a defect is in force: never in a build without them.
#[cfg(not(feature = "planted-defects"))]
macro_rules! planted {
    ($defect:ident) => {
        false
    };
}

#[cfg(feature = "planted-defects")]
pub use list::{Defect, Harness, is_in_force, select, selected, set_pause, times_reached};

/// In a defect that is one of order: lets other threads come in between. Nothing without defects.
pub(crate) fn let_others_in() {
    #[cfg(feature = "planted-defects")]
    list::pause();
}

/// As [`let_others_in`], now and then, for as long as a flush takes.
pub(crate) fn let_a_flush_in() {
    #[cfg(feature = "planted-defects")]
    if list::times_reached().is_multiple_of(16) {
        (0..20).for_each(|_| list::pause());
    }
}

/// As [`let_others_in`], for as long as a close takes.
pub(crate) fn let_a_close_in() {
    (0..20).for_each(|_| let_others_in());
}

#[cfg(feature = "planted-defects")]
mod list {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

    /// No defect is in force.
    const NONE: usize = usize::MAX;

    static SELECTED: AtomicUsize = AtomicUsize::new(NONE);
    static REACHED: AtomicU64 = AtomicU64::new(0);
    static PAUSE: OnceLock<fn()> = OnceLock::new();

    /// Who has to find a defect.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Harness {
        /// The checks of `lithify-sim`.
        Simulator,
        /// The check `powerloss` of `lithify-sim`, which needs FUSE: below the file system's calls
        /// there is nothing else that looks.
        RealFiles,
        /// The models of protocols, in many orders of their steps.
        Schedules,
        /// The models under weak orders of memory.
        WeakMemory,
    }

    /// Puts one defect into force, or none.
    pub fn select(defect: Option<Defect>) {
        SELECTED.store(defect.map_or(NONE, |defect| defect as usize), Ordering::SeqCst);
        REACHED.store(0, Ordering::SeqCst);
    }

    /// The defect in force.
    pub fn selected() -> Option<Defect> {
        Defect::ALL.get(SELECTED.load(Ordering::SeqCst)).copied()
    }

    /// Whether a defect is in force.
    pub fn is_in_force(defect: Defect) -> bool {
        let selected = SELECTED.load(Ordering::Relaxed) == defect as usize;
        if selected {
            REACHED.fetch_add(1, Ordering::Relaxed);
        }
        selected
    }

    /// Says what passes some time for the other threads, once for the process: this room has no
    /// threads. Where nothing is said, a defect of order shows itself less often.
    pub fn set_pause(pause: fn()) {
        let _ = PAUSE.set(pause);
    }

    pub(super) fn pause() {
        if let Some(pause) = PAUSE.get() {
            pause();
        }
    }

    /// How often a site of the defect in force was come by since it was selected: a defect that
    /// nothing comes by cannot be caught.
    pub fn times_reached() -> u64 {
        REACHED.load(Ordering::SeqCst)
    }

    macro_rules! defects {
        ($($harness:ident: $($(#[doc = $line:literal])+ $name:ident,)+)+) => {
            /// A defect that can be put into force; the text says what it breaks.
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub enum Defect {
                $($($(#[doc = $line])+ $name,)+)+
            }

            impl Defect {
                /// All of them, the rooms from the log upwards.
                pub const ALL: &[Defect] = &[$($(Defect::$name,)+)+];

                /// Those that a harness has to find.
                pub fn of(harness: Harness) -> impl Iterator<Item = Defect> {
                    Defect::ALL.iter().copied().filter(move |defect| defect.harness() == harness)
                }

                /// Who has to find it.
                pub fn harness(self) -> Harness {
                    match self {
                        $($(Defect::$name => Harness::$harness,)+)+
                    }
                }

                /// Its name, as in the source.
                pub fn name(self) -> &'static str {
                    match self {
                        $($(Defect::$name => stringify!($name),)+)+
                    }
                }

                /// What it breaks.
                pub fn breaks(self) -> &'static str {
                    match self {
                        $($(Defect::$name => concat!($($line),+).trim_ascii(),)+)+
                    }
                }
            }
        };
    }

    defects! {
        Simulator:

        /// The header of a log segment is not synced before records follow it.
        LogHeaderUnsynced,
        /// The name of a new log segment is not made durable.
        LogNameUnsynced,
        /// The end of a log segment is handed out before the segment is synced.
        SegmentEndUnsynced,
        /// A record claims that everything before it is durable.
        SyncedThroughTooFar,
        /// Zeros that are written ahead of synced commits begin before the end of the last record.
        ZerosOverLastRecord,
        /// After a full disk the end of the log moves on as if the record had been written.
        NoSpaceMovesLogEnd,
        /// A sync of the log that failed counts as done.
        FailedSyncForgotten,
        /// A sync of the log counts for what was appended while it ran, too.
        SyncCoversArrivals,
        /// The checksums of log records and manifest edits are not compared.
        RecordChecksumIgnored,
        /// Records that a recycled log segment holds from its former life are accepted.
        FormerLifeAccepted,
        /// A log segment or manifest of another database is accepted.
        ForeignLogAccepted,
        /// Recovery passes over the third record of the last log segment.
        RecordPassedOver,
        /// What recovery read from the end of the log is not written again and synced.
        RecoveredEndUnsynced,
        /// A log that is damaged below what was synced ends there, as if it had been cut.
        SyncedDamageAccepted,
        /// A log that is damaged before its recorded end ends there, as if it had been cut.
        NamedEndIgnored,
        /// Log segments are released one too early.
        SegmentReleasedEarly,
        /// Log segments that nobody needs are never released.
        SegmentsLeaked,
        /// The bytes of a log record are booked twice.
        LogBytesBookedTwice,

        /// An edit of the manifest is not synced.
        EditUnsynced,
        /// The new CURRENT is not synced before it is renamed.
        CurrentUnsynced,
        /// The renamed CURRENT is not made durable.
        CurrentNameUnsynced,
        /// Opening removes the newest live table as an orphan.
        LiveTableTakenForOrphan,
        /// Tables that nobody holds any more are not removed.
        DeadTablesLeaked,
        /// The runs of level 0 are searched oldest first.
        Level0OldestFirst,
        /// Files with features that this version does not know are read.
        UnknownFeaturesAccepted,

        /// A commit that asked for a sync is acknowledged without it.
        CommitSyncSkipped,
        /// The sync that is due at the end of an interval is not done.
        IntervalSyncSkipped,
        /// The thread that is to sync at intervals does not.
        IntervalThreadIdle,
        /// A commit that could not be logged is acknowledged.
        LogErrorSwallowed,
        /// A failure does not stop writing.
        PoisonNotSet,
        /// A flush or compaction that was refused is reported as done.
        RefusalNotReported,
        /// A flush or compaction that failed and touched nothing stops all writing.
        RefusalStopsWriting,
        /// Commits go on when all sequence numbers are used.
        SequencesRunOver,
        /// The leader of a commit group panics now and then, and nobody catches it.
        LeaderPanicUncaught,
        /// The name of a new database's directory is not made durable.
        NewDirectoryUnsynced,
        /// A database without a log is closed without a flush.
        CloseWithoutFlush,
        /// A database without a log takes writes between its last flush and its close.
        ClosedAfterFlush,
        /// A close does not wait for calls that touch files.
        CloseLeavesCallsIn,
        /// A close leaves tables that nothing refers to.
        CloseLeavesTables,
        /// An ingest goes live in a database that is being closed.
        IngestIntoClosing,
        /// An orphan that is gone when it is to be removed fails the opening.
        GoneOrphanIsError,
        /// A flush that finds nothing to write makes nothing durable.
        EmptyFlushSyncsNothing,
        /// Opening accepts a table that is not the one the manifest names.
        ForeignTableAccepted,
        /// Of a batch that writes to several families, only the first one's part is replayed.
        BatchReplayedInPart,
        /// Writes that are in tables already are replayed from the log too.
        FlushedWritesReplayed,
        /// After opening, sequence numbers go on below those in use.
        RecoveredSequenceTooLow,
        /// A flushed table goes live before the log is synced.
        LogUnsyncedBeforeTable,
        /// A column family is made or dropped before the log is synced.
        LogUnsyncedBeforeFamilyEdit,
        /// The names of new tables are not made durable before the manifest names them.
        TableNameUnsynced,
        /// A flush claims the writes of families that it did not take.
        FlushClaimsAllFamilies,
        /// A range delete in a memtable keeps all older ones of its keys, whoever may read them.
        TombstoneKeptForNobody,
        /// A put leaves the range that it goes into known as one without rows.
        PutLeavesDeadRange,
        /// The same with an ingest.
        IngestLeavesDeadRange,
        /// A range without rows is believed in after one scan.
        DeadRangeUnproven,
        /// A merge operand leaves the range that it goes into known as one without rows.
        MergeLeavesDeadRange,
        /// Operands are folded in the order opposite to that of their writes.
        OperandsBackwards,
        /// A read folds operands without the put below them.
        MergeForgetsBase,
        /// A compaction makes one value of operands that a snapshot tells apart.
        FoldAcrossSnapshots,
        /// A compaction takes operands for all there is of a key that deeper levels hold.
        BaseTakenForNothing,
        /// Reads at old snapshots jump over ranges that have had no rows since later.
        DeadRangeForOldSnapshots,
        /// A reader without a snapshot trusts range deletes that have forgotten what it sees.
        StaleReadTrusted,
        /// A flush leaves out range tombstones.
        RangeTombstonesLostInFlush,
        /// Without a log, the families are flushed by one edit each instead of one for all.
        FamiliesFlushedApart,
        /// The drop of a column family is not recorded.
        DroppedFamilyComesBack,
        /// Inputs of a compaction are removed before the edit that replaces them.
        InputsRemovedBeforeEdit,
        /// Ingested rows go live although a memtable holds older ones of their keys.
        IngestUnderMemtable,
        /// An ingest is acknowledged before the edit that makes it live is durable.
        IngestEditUnsynced,
        /// Ingested rows count as one sequence number older than they are.
        IngestedTooOld,
        /// A scan passes newer rows with the older ones that a range tombstone covers.
        CoveredRunHasNewerRows,
        /// A snapshot sees one write too many.
        SnapshotTooNew,
        /// Of two snapshots at one moment, releasing one releases both.
        TwinSnapshotReleased,
        /// A cursor sees writes that came after it was opened.
        CursorSeesLaterWrites,
        /// The answers of a multi-get come in the order of the keys, not of the question.
        MultiGetMisplaced,
        /// A table that cannot be read counts as one without the key.
        ReadErrorTakenForMiss,
        /// A table whose filter excludes a prefix keeps its range tombstones to itself.
        PrefixHidesTombstones,
        /// A transaction writes rows without locking them.
        RowLockSkipped,
        /// A transaction that is rolled back keeps its locks.
        RollbackKeepsLocks,
        /// A row that was changed after a transaction's snapshot is no conflict.
        ConflictOverlooked,
        /// An optimistic transaction commits whatever was written of what it has read.
        OptimisticUnchecked,
        /// The same for what its cursors went over.
        ScansUnchecked,
        /// A write that depends on its row reads it before it locks it.
        ReadBeforeLock,
        /// A write that depends on its row does not notice that a range with it is deleted meanwhile.
        UpdateMissesRanges,
        /// A put of what is absent takes an empty value for none.
        EmptyTakenForAbsent,
        /// A comparison takes a row that is not there for one with an empty value.
        AbsentEqualsEmpty,
        /// The first row of a range is given although another transaction has locked it.
        BusyRowGiven,
        /// Behind a locked row the next one is passed over too.
        FreeRowPassedOver,
        /// Gets of a transaction that reads at a snapshot see later commits.
        SnapshotGetsNewest,
        /// Cursors of a transaction that reads at a snapshot see later commits.
        SnapshotScansNewest,
        /// The end of a flush is told before its tables are live.
        EndToldEarly,
        /// The end of a job that failed is not told.
        FailureUntold,
        /// A compaction that fails tells its end where it fails, and again where it ends.
        FailureToldTwice,
        /// Reads show expired rows.
        ExpiredRowsShown,
        /// Compactions drop rows that have expired by now, and not for a snapshot.
        ExpiryForgetsSnapshots,
        /// A table goes whose rows have all expired, although older rows lie under it.
        ExpiredTableUncovers,
        /// Rows that are replayed from the log have the time of the replay.
        ReplayedRowsRenewed,
        /// A row that a compaction filter changes has the time of the compaction.
        FilterRenewsRow,
        /// The newest write time of a table is that of its last row.
        NewestTimeOfLastRow,
        /// A compaction filter is shown what a snapshot sees.
        FilterForgetsSnapshots,
        /// A row that a compaction lets go leaves no delete, although deeper levels hold its key.
        GoneRowUncovers,
        /// A block is copied as it is stored past a compaction filter.
        CopiedPastFilter,
        /// A table of a family with a compaction filter is moved as it is.
        MovedPastFilter,
        /// A row at which a compaction filter fails goes, and the compaction goes on.
        FilterErrorLosesRow,
        /// Recovery takes back the last edit of the manifest if the tables that it removes are still there.
        LastCompactionTakenBack,
        /// Rolling back to a savepoint keeps the writes behind it.
        SavepointKeepsWrites,

        /// A delete is dropped although a deeper level holds its key.
        DeleteDroppedEarly,
        /// A range tombstone is dropped although deeper levels hold its keys.
        RangeTombstoneDroppedEarly,
        /// A single delete takes a put with it that a snapshot still sees.
        SingleDeleteAcrossSnapshot,
        /// Compactions keep nothing for snapshots.
        SnapshotsIgnored,
        /// A put that not every snapshot sees loses its sequence number.
        SequenceZeroedEarly,
        /// Every entry of a merge is taken for the first one of its key.
        KeyEndsAtEveryEntry,
        /// A block is copied as it is stored although a range tombstone covers it.
        CopiedUnderTombstone,
        /// A block is copied as it is stored although other inputs have keys within it.
        CopiedBesideOthers,
        /// A block is decoded with the first dictionary of its table, not with the one that it names.
        WrongDictionaryUsed,
        /// A copied block's dictionary is not written into the new table.
        DictionaryNotCarried,
        /// A block is copied into a table that has another dictionary of the same id.
        DictionaryIdCollisionAccepted,
        /// A compaction leaves out the newest run of level 0 and removes it.
        RunLeftOut,
        /// A compaction from level 0 grows into one that lacks some of its sources.
        GrownWithoutSources,
        /// A table is not synced before the manifest names it.
        TableUnsynced,
        /// The manifest has the smallest key of a table as its largest.
        LargestKeyTooSmall,
        /// A table whose index or filter is full goes on until its blocks have no room.
        FullTableGoesOn,
        /// A table is written anew for its dead entries although a snapshot needs them.
        RewrittenInVain,
        /// A job that fails leaves the files it wrote.
        FailedJobLeavesFiles,

        /// A table's filter lacks the last key.
        FilterWithoutLastKey,
        /// A search in a data block begins one restart too late.
        RestartSkipped,
        /// Going back, a cursor passes over the first entry of each block.
        BlockStartSkipped,
        /// A range tombstone covers its end too.
        RangeEndInclusive,
        /// A block that did not shrink is marked as compressed.
        CodecMarkerWrong,
        /// A value larger than a block is cut to the size of one.
        LongValueCut,
        /// The checksums of data blocks are not compared.
        DataChecksumIgnored,
        /// The checksums of filters are not compared.
        FilterChecksumIgnored,
        /// The checksums of index blocks are not compared.
        IndexChecksumIgnored,
        /// Bytes read from tables are not booked.
        ReadsNotBooked,
        /// The upper bound of a cursor is shown.
        UpperBoundInclusive,
        /// Entries of one key in several runs come in any order.
        MergeTieBroken,
        /// A run that leads goes past entries of another run.
        LeadPastAnotherRun,
        /// A run leads through entries that the reader does not see, or that are no puts.
        LeadThroughUnseen,
        /// A run that leads shows older entries of a key as rows.
        LeadShowsOldVersions,
        /// A step back at a restart takes the entry before for one of another key.
        RestartEndsVersions,
        /// A memtable leaf loses its last entry when it is split.
        LeafSplitLosesEntry,
        /// Cached blocks are known by their offset alone, not by their file.
        CacheKeyWithoutFile,

        /// A checkpoint leaves out the last segment of the log.
        CheckpointWithoutLogEnd,
        /// A table that a checkpoint copies lacks its last byte.
        CheckpointTableCutShort,
        /// A database opened for reading leaves out the log.
        ReaderPassesOverLog,
        /// Deleting a backup removes the tables that the newest one shares with it.
        SharedTablesSweptAway,
        /// A backup is restored without its log.
        RestoredWithoutLog,
        /// Verification passes over the log.
        VerifyPassesOverLog,
        /// Verification passes over tables.
        VerifyPassesOverTables,
        /// A repair forgets range tombstones.
        RepairForgetsTombstones,
        /// A repair that lost something says that it did not.
        RepairHidesLosses,

        /// A group of commits is visible before the memtables have its rows.
        PublishedBeforeMemtable,
        /// Flushed memtables leave the view before the table that they became is in it.
        MemtableLeavesEarly,
        /// A get takes the sequence number that it reads at before the tables that it reads in.
        SequenceBeforeView,
        /// A read without a snapshot sees what was written behind an ingest that its view lacks.
        IngestMissed,
        /// A snapshot takes its sequence number before compactions know of it.
        SnapshotRegisteredLate,
        /// The blocks of a table leave the cache when it is replaced, not when its last reader goes.
        BlocksErasedEarly,
        /// A transaction gives back its locks before its writes are visible.
        LocksReleasedEarly,

        RealFiles:

        /// A sync of a file of the operating system does nothing.
        SystemSyncSkipped,
        /// A sync of a directory of the operating system does nothing.
        SystemDirectorySyncSkipped,

        Schedules:

        /// Of the transactions that begin at first, only one waits for writes without locks.
        FirstTransactionAlone,
        /// Who waits in the queue of commits is woken before it is told why.
        WokenBeforeTold,
        /// A leader that hands over leaves the queue as if nobody led.
        LeaderUnmarked,
        /// Who waits at an event counts itself after its last check of what it waits for.
        WaiterCountedLate,
        /// A wait for a row is noted only after it was found to close no cycle.
        WaitNotedLate,
        /// A freed row lock is not announced.
        RowFreedSilently,
        /// Who notes a range without rows asks which numbers writers use before they can see it.
        DeadRangeNotedLate,
        /// Of two readers that miss the same block, both put it into the cache.
        BlockCachedTwice,

        WeakMemory:

        /// An entry of a memtable is linked before other threads must see what is in it.
        EntryUnpublished,
    }
}

#[cfg(all(test, not(feature = "planted-defects")))]
mod tests {
    use super::*;

    // A constant of the compiler: no site leaves a trace.
    const _: () = assert!(!planted!(LogNameUnsynced) && !IS_BUILT_IN);
}

#[cfg(all(test, feature = "planted-defects"))]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_different_and_texts_are_sentences() {
        let names: BTreeSet<_> = Defect::ALL.iter().map(|defect| defect.name()).collect();
        assert_eq!(names.len(), Defect::ALL.len());
        assert!(Defect::ALL.iter().all(|defect| defect.breaks().ends_with('.')));
    }
}
