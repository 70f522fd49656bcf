//! What a cell of a chunk experiment is told to do, and what it answers.

use serde::{Deserialize, Serialize};

use super::codec_calls::CodecCalls;
use super::row_reads::RowReads;
use crate::adapter::codec::Codec;
use crate::adapter::settings::EngineSettings;
use crate::adapter::{Capabilities, EngineName};
use crate::datasets::TextData;
use crate::experiment::chunks::ChunkArm;
use crate::meter::PhaseUsage;
use crate::meter::machine::Machine;
use crate::meter::space::DirectorySize;
use crate::run::cells::{Cell, Part};

/// Version of the JSON of cells and results.
pub const SCHEMA: u32 = 2;

/// One codec in chunks of one size on one engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChunkCell {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Its name, unique in its plan; also of its files.
    pub id: String,
    /// On which engine.
    pub engine: EngineName,
    /// Of all data.
    pub codec: Codec,
    /// Raw bytes that are compressed at once, KiB.
    pub chunk_kib: u64,
    /// Repeat, from 0.
    pub repeat: u64,
    /// What the engine is told.
    pub settings: EngineSettings,
    /// The text.
    pub text: TextData,
    /// Its length, bytes; the last line may go beyond.
    pub text_bytes: u64,
    /// Its parts.
    pub partitions: u64,
    /// Seed of generated text.
    pub seed: u64,
    /// How often everything is flushed.
    pub flushes: u64,
    /// How often everything is read, with empty caches and with warm ones.
    pub scans: u64,
    /// How often each chunk is compressed by the codec alone.
    pub codec_passes: u64,
    /// Hash of the program: figures of different builds are not mixed.
    pub build: String,
}

impl ChunkCell {
    /// Its codec and chunk.
    pub fn arm(&self) -> ChunkArm {
        ChunkArm { codec: self.codec, chunk_kib: self.chunk_kib }
    }
}

/// How long background work held the caller's thread where the engine has no threads of its own:
/// units of a millisecond and more, by the engine's account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldThread {
    /// How many.
    pub units: u64,
    /// The longest, microseconds; 0 when none took a millisecond.
    pub longest_us: u64,
    /// All of them together, microseconds.
    pub sum_us: u64,
}

/// What a cell found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChunkOutcome {
    /// What was done.
    pub cell: ChunkCell,
    /// When it began, seconds since 1970.
    pub started_unix_s: u64,
    /// On which machine.
    pub machine: Machine,
    /// Name and version of the engine.
    pub engine_name: String,
    /// What the engine can do by itself.
    pub capabilities: Capabilities,
    /// Name and version of the library behind the codec.
    pub codec_library: String,
    /// Lines of the text.
    pub rows: u64,
    /// Bytes of the lines.
    pub text_bytes: u64,
    /// A hash of all rows as they were read in the end: the same on every engine.
    pub rows_hash: u64,
    /// How long each flush took, milliseconds.
    pub flush_ms: Vec<f64>,
    /// What all flushes cost.
    pub flush_usage: PhaseUsage,
    /// CPU that the engine says its codec took, all flushes together, microseconds; `None` for one
    /// that does not tell.
    pub flush_codec_us: Option<u64>,
    /// The directory after the last flush, when nothing was due and the engine was closed.
    pub directory: DirectorySize,
    /// Stored bytes of the live tables then; `None` for an engine without levels.
    pub table_bytes: Option<u64>,
    /// The codec of those tables, as their metadata say.
    pub table_codec: String,
    /// How long each scan took with empty caches, milliseconds.
    pub cold_scan_ms: Vec<f64>,
    /// Bytes that all of them read from the device.
    pub cold_read_device_bytes: u64,
    /// How long each scan took after the database was opened anew, files in the page cache,
    /// milliseconds.
    pub warm_scan_ms: Vec<f64>,
    /// Rows read one by one, files in the page cache.
    pub row_reads: RowReads,
    /// The codec alone.
    pub calls: CodecCalls,
    /// The engine without background threads; `None` for one that always has them.
    pub held_thread: Option<HeldThread>,
    /// What other processes took of the machine while flushes and scans ran, percent.
    pub foreign_percent: f64,
    /// What keeps the figures from counting.
    pub faults: Vec<String>,
}

impl ChunkOutcome {
    /// What the text takes: live tables, or the directory where the engine has no levels.
    pub fn stored_bytes(&self) -> u64 {
        self.table_bytes.unwrap_or(self.directory.allocated_bytes)
    }
}

impl Cell for ChunkCell {
    type Outcome = ChunkOutcome;

    fn id(&self) -> String {
        self.id.clone()
    }

    fn engine(&self) -> EngineName {
        self.engine.clone()
    }

    fn part(&self) -> Part {
        Part::Row(format!("{} on {}", self.arm(), self.engine))
    }

    fn is_result(&self, outcome: &ChunkOutcome) -> bool {
        outcome.cell == *self
    }

    fn faults(outcome: &ChunkOutcome) -> Vec<String> {
        outcome.faults.clone()
    }

    fn summary(outcome: &ChunkOutcome) -> String {
        let least = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
        format!(
            "{:.2} of the text, flush {:.1} ms, scan {:.1} ms at best",
            outcome.stored_bytes() as f64 / outcome.text_bytes.max(1) as f64,
            least(&outcome.flush_ms),
            least(&outcome.warm_scan_ms)
        )
    }
}
