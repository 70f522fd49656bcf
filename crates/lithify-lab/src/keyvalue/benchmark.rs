//! The steps of the classic key-value benchmark by name: fills, reads, seeks, and calls of the engine.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One step of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Benchmark {
    /// Keys in ascending order into an empty database.
    FillSeq,
    /// Random keys into an empty database.
    FillRandom,
    /// Random keys into the database that is there.
    Overwrite,
    /// Random point reads.
    ReadRandom,
    /// Random point reads, several in one call.
    MultiReadRandom,
    /// Random point reads beside one writer.
    ReadWhileWriting,
    /// Random seeks, each with some steps from there on.
    SeekRandom,
    /// Random seeks beside one writer.
    SeekRandomWhileWriting,
    /// Writes the memtables to tables.
    Flush,
    /// Waits until no compaction is due.
    WaitForCompaction,
    /// Makes the tree the same whenever the same was written, as far as the engine can.
    Settle,
}

impl Benchmark {
    /// All.
    pub const ALL: [Benchmark; 11] = [
        Benchmark::FillSeq,
        Benchmark::FillRandom,
        Benchmark::Overwrite,
        Benchmark::ReadRandom,
        Benchmark::MultiReadRandom,
        Benchmark::ReadWhileWriting,
        Benchmark::SeekRandom,
        Benchmark::SeekRandomWhileWriting,
        Benchmark::Flush,
        Benchmark::WaitForCompaction,
        Benchmark::Settle,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Benchmark::FillSeq => "fillseq",
            Benchmark::FillRandom => "fillrandom",
            Benchmark::Overwrite => "overwrite",
            Benchmark::ReadRandom => "readrandom",
            Benchmark::MultiReadRandom => "multireadrandom",
            Benchmark::ReadWhileWriting => "readwhilewriting",
            Benchmark::SeekRandom => "seekrandom",
            Benchmark::SeekRandomWhileWriting => "seekrandomwhilewriting",
            Benchmark::Flush => "flush",
            Benchmark::WaitForCompaction => "waitforcompaction",
            Benchmark::Settle => "settle",
        }
    }

    /// True when it begins with an empty database.
    pub fn is_fill(self) -> bool {
        matches!(self, Benchmark::FillSeq | Benchmark::FillRandom)
    }

    /// True when its clients write.
    pub fn is_write(self) -> bool {
        self.is_fill() || self == Benchmark::Overwrite
    }

    /// True when one writer works beside its clients.
    pub fn is_beside_writer(self) -> bool {
        matches!(self, Benchmark::ReadWhileWriting | Benchmark::SeekRandomWhileWriting)
    }

    /// True when its clients seek.
    pub fn is_seek(self) -> bool {
        matches!(self, Benchmark::SeekRandom | Benchmark::SeekRandomWhileWriting)
    }

    /// True when anything is written while it runs.
    pub fn changes_database(self) -> bool {
        self.is_write() || self.is_beside_writer()
    }

    /// True when it has clients; the others are calls of the engine.
    pub fn is_loop(self) -> bool {
        !matches!(self, Benchmark::Flush | Benchmark::WaitForCompaction | Benchmark::Settle)
    }

    /// The kind of operation that its clients do.
    pub fn operation(self) -> &'static str {
        match self {
            Benchmark::FillSeq | Benchmark::FillRandom | Benchmark::Overwrite => "write",
            Benchmark::ReadRandom | Benchmark::ReadWhileWriting => "read",
            Benchmark::MultiReadRandom => "batch",
            Benchmark::SeekRandom | Benchmark::SeekRandomWhileWriting => "seek",
            Benchmark::Flush | Benchmark::WaitForCompaction | Benchmark::Settle => "call",
        }
    }
}

impl fmt::Display for Benchmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
