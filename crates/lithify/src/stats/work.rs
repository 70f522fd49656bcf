//! What one job or one sampled read has done, gathered where it is done and booked once a step.

use crate::base::Clock;
use crate::stats::CODEC_NAMES;

/// A part of a step's CPU time, split off by tick deltas inside the step; what is left over is
/// the merge or copy itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum Part {
    /// Compressing blocks.
    Compress = 0,
    /// Decompressing blocks.
    Decompress = 1,
    /// Checksums, made or checked.
    Checksum = 2,
    /// Hashing keys and building filters.
    Filter = 3,
    /// Calls of the file system.
    Io = 4,
    /// Measuring what compressions would cost.
    Sampling = 5,
}

/// The number of [`Part`]s.
pub const PART_COUNT: usize = 6;

/// Ticks spent in each part, and bytes through each codec, since the last [`WorkMeter::take`].
/// Owned by one job or one sampled read and handed down by `&mut`; booking into the ledger
/// happens once per step.
#[derive(Clone, Debug, Default)]
pub struct WorkMeter {
    /// Ticks per part.
    pub ticks: [u64; PART_COUNT],
    /// What went through the codecs, once something did: most reads find their block decoded, and
    /// a large meter costs them more than all that they book.
    pub codecs: Option<Box<CodecMeter>>,
    /// Blocks whose encoding was dropped because it did not shrink enough.
    pub raw_fallback_blocks: u64,
    /// Reads of files that succeeded.
    pub reads: u64,
    /// Bytes that they returned.
    pub read_bytes: u64,
    /// Bytes among them that a cursor read ahead of its block.
    pub read_ahead_bytes: u64,
    /// What filters said to point reads.
    pub filters: FilterMeter,
}

/// What filters said. A maybe is wrong where the table then had no entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilterMeter {
    /// Filters asked.
    pub checks: u64,
    /// Filters that said no.
    pub negatives: u64,
    /// Entries found behind a maybe.
    pub found: u64,
}

impl FilterMeter {
    /// Maybes that were wrong.
    #[inline]
    pub fn false_positives(&self) -> u64 {
        self.checks - self.negatives - self.found
    }
}

/// What went through the codecs, per codec number.
#[derive(Clone, Debug, Default)]
pub struct CodecMeter {
    /// Raw bytes given to the encoder.
    pub compressed_raw_bytes: [u64; CODEC_NAMES.len()],
    /// Bytes that came out and were kept.
    pub compressed_stored_bytes: [u64; CODEC_NAMES.len()],
    /// Raw bytes that came out of the decoder.
    pub decompressed_raw_bytes: [u64; CODEC_NAMES.len()],
    /// Ticks in the encoder.
    pub compress_ticks: [u64; CODEC_NAMES.len()],
    /// Ticks in the decoder.
    pub decompress_ticks: [u64; CODEC_NAMES.len()],
}

impl WorkMeter {
    /// Where work of the codecs is metered.
    #[inline]
    pub fn codecs(&mut self) -> &mut CodecMeter {
        self.codecs.get_or_insert_default()
    }

    /// Runs `work` and books its ticks under `part`.
    #[inline]
    pub fn time<R>(&mut self, clock: &dyn Clock, part: Part, work: impl FnOnce() -> R) -> R {
        let start = clock.ticks();
        let result = work();
        self.ticks[part as usize] += clock.ticks().saturating_sub(start);
        result
    }

    /// Notes a read of a file.
    #[inline]
    pub fn read(&mut self, bytes: usize) {
        self.reads += 1;
        self.read_bytes += bytes as u64;
    }

    /// Takes what was metered and starts again from nothing.
    pub fn take(&mut self) -> WorkMeter {
        std::mem::take(self)
    }
}
