//! Where each figure of the ledger lives, and the sums over them.
//!
//! All figures are words of one array, so that a snapshot is a copy and an interval is a
//! difference. Counters that users' threads bump lie a cache line apart.

use super::names::{
    CODEC_NAMES, Cause, CodecFigure, Counter, CpuPart, DelayCause, JobFigure, LEVEL_SLOTS,
    TrafficFigure,
};
use crate::base::Level;

const CODECS: usize = CODEC_NAMES.len();

/// Words between two counters: 64 bytes.
const COUNTER_STRIDE: usize = 8;
/// Per cause of a unit or delay: how many, and their sum.
const COUNT_AND_SUM: usize = 2;

const TRAFFIC_START: usize = 0;
const CODEC_START: usize =
    TRAFFIC_START + Cause::COUNT * LEVEL_SLOTS * CODECS * TrafficFigure::COUNT;
const CPU_START: usize = CODEC_START + Cause::COUNT * LEVEL_SLOTS * CODECS * CodecFigure::COUNT;
const JOB_START: usize = CPU_START + Cause::COUNT * LEVEL_SLOTS * CpuPart::COUNT;
const UNIT_START: usize = JOB_START + LEVEL_SLOTS * JobFigure::COUNT;
const DELAY_START: usize = UNIT_START + Cause::COUNT * COUNT_AND_SUM;
const STOP_START: usize = DELAY_START + DelayCause::COUNT * COUNT_AND_SUM;
const COUNTER_START: usize =
    (STOP_START + DelayCause::COUNT * COUNT_AND_SUM).next_multiple_of(COUNTER_STRIDE);

/// Words of the array.
pub(super) const FIGURE_COUNT: usize = COUNTER_START + Counter::COUNT * COUNTER_STRIDE;

fn place(cause: Cause, level: Level, codec: u8) -> usize {
    let codec = codec as usize;
    // A codec that a user registered has no slot of its own; its bytes still must not vanish.
    let codec = if codec < CODECS { codec } else { 0 };
    (cause as usize * LEVEL_SLOTS + level.min(LEVEL_SLOTS - 1)) * CODECS + codec
}

pub(super) fn traffic_index(cause: Cause, level: Level, codec: u8, figure: TrafficFigure) -> usize {
    TRAFFIC_START + place(cause, level, codec) * TrafficFigure::COUNT + figure as usize
}

pub(super) fn codec_index(cause: Cause, level: Level, codec: u8, figure: CodecFigure) -> usize {
    CODEC_START + place(cause, level, codec) * CodecFigure::COUNT + figure as usize
}

pub(super) fn cpu_index(cause: Cause, level: Level, part: CpuPart) -> usize {
    let slot = cause as usize * LEVEL_SLOTS + level.min(LEVEL_SLOTS - 1);
    CPU_START + slot * CpuPart::COUNT + part as usize
}

pub(super) fn job_index(level: Level, figure: JobFigure) -> usize {
    JOB_START + level.min(LEVEL_SLOTS - 1) * JobFigure::COUNT + figure as usize
}

/// The index of the count; the sum follows it.
pub(super) fn unit_index(cause: Cause) -> usize {
    UNIT_START + cause as usize * COUNT_AND_SUM
}

/// The index of the count; the sum follows it.
pub(super) fn delay_index(cause: DelayCause) -> usize {
    DELAY_START + cause as usize * COUNT_AND_SUM
}

/// The index of the count; the sum follows it.
pub(super) fn stop_index(cause: DelayCause) -> usize {
    STOP_START + cause as usize * COUNT_AND_SUM
}

pub(super) fn counter_index(counter: Counter) -> usize {
    COUNTER_START + counter as usize * COUNTER_STRIDE
}

/// How many, and their sum in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many.
    pub count: u64,
    /// Their sum in microseconds.
    pub sum_us: u64,
}

/// A copy of the ledger's figures at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures(pub(super) Vec<u64>);

impl Figures {
    fn tally(&self, index: usize) -> Tally {
        Tally { count: self.0[index], sum_us: self.0[index + 1] }
    }

    /// A counter.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.0[counter_index(counter)]
    }

    /// Reads or writes of files under a cause, at a level, of blocks of a codec.
    pub fn traffic(&self, cause: Cause, level: Level, codec: u8, figure: TrafficFigure) -> u64 {
        self.0[traffic_index(cause, level, codec, figure)]
    }

    /// The same over all levels and codecs.
    pub fn traffic_of_cause(&self, cause: Cause, figure: TrafficFigure) -> u64 {
        places().map(|(level, codec)| self.traffic(cause, level, codec, figure)).sum()
    }

    /// The same under a cause at a level, over all codecs.
    pub fn traffic_of_level(&self, cause: Cause, level: Level, figure: TrafficFigure) -> u64 {
        (0..CODECS as u8).map(|codec| self.traffic(cause, level, codec, figure)).sum()
    }

    /// The same over all causes, levels and codecs. Space reserved in the log is not in it: a file
    /// system only notes it, and writes nothing.
    pub fn traffic_total(&self, figure: TrafficFigure) -> u64 {
        let moves_bytes = |cause: &&Cause| **cause != Cause::WalPreallocation;
        let causes = Cause::ALL.iter().filter(moves_bytes);
        causes.map(|cause| self.traffic_of_cause(*cause, figure)).sum()
    }

    /// A figure of a codec under a cause at a level.
    pub fn codec(&self, cause: Cause, level: Level, codec: u8, figure: CodecFigure) -> u64 {
        self.0[codec_index(cause, level, codec, figure)]
    }

    /// A figure of a codec over all causes and levels.
    pub fn codec_total(&self, codec: u8, figure: CodecFigure) -> u64 {
        Cause::ALL
            .iter()
            .flat_map(|cause| {
                (0..LEVEL_SLOTS).map(|level| self.codec(*cause, level, codec, figure))
            })
            .sum()
    }

    /// A figure of a codec at a level over all causes.
    pub fn codec_of_level(&self, level: Level, codec: u8, figure: CodecFigure) -> u64 {
        Cause::ALL.iter().map(|cause| self.codec(*cause, level, codec, figure)).sum()
    }

    /// CPU time of a part of a cause at a level, in nanoseconds.
    pub fn cpu_ns(&self, cause: Cause, level: Level, part: CpuPart) -> u64 {
        self.0[cpu_index(cause, level, part)]
    }

    /// CPU time of a part of a cause over all levels, in nanoseconds.
    pub fn cpu_ns_of_part(&self, cause: Cause, part: CpuPart) -> u64 {
        (0..LEVEL_SLOTS).map(|level| self.cpu_ns(cause, level, part)).sum()
    }

    /// CPU time of a cause over all levels and parts, in nanoseconds.
    pub fn cpu_ns_of_cause(&self, cause: Cause) -> u64 {
        CpuPart::ALL.iter().map(|part| self.cpu_ns_of_part(cause, *part)).sum()
    }

    /// All CPU time booked, in nanoseconds.
    pub fn cpu_ns_total(&self) -> u64 {
        Cause::ALL.iter().map(|cause| self.cpu_ns_of_cause(*cause)).sum()
    }

    /// A figure of the jobs that wrote into a level.
    pub fn job(&self, level: Level, figure: JobFigure) -> u64 {
        self.0[job_index(level, figure)]
    }

    /// The same over all levels.
    pub fn job_total(&self, figure: JobFigure) -> u64 {
        (0..LEVEL_SLOTS).map(|level| self.job(level, figure)).sum()
    }

    /// Units of work of a millisecond and more under a cause.
    pub fn units(&self, cause: Cause) -> Tally {
        self.tally(unit_index(cause))
    }

    /// Delays of writers.
    pub fn delays(&self, cause: DelayCause) -> Tally {
        self.tally(delay_index(cause))
    }

    /// Stops of writers.
    pub fn stops(&self, cause: DelayCause) -> Tally {
        self.tally(stop_index(cause))
    }

    /// What was added since an earlier copy.
    #[must_use]
    pub fn since(&self, earlier: &Figures) -> Figures {
        Figures(
            self.0.iter().zip(&earlier.0).map(|(now, then)| now.saturating_sub(*then)).collect(),
        )
    }
}

fn places() -> impl Iterator<Item = (Level, u8)> {
    (0..LEVEL_SLOTS).flat_map(|level| (0..CODECS as u8).map(move |codec| (level, codec)))
}
