//! Experiments over lines of text in partitions: every codec in chunks of every size.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::check::{
    Fault, check_claims, check_engines, check_id, check_kind, check_name, check_sizes, fault,
    in_range,
};
use super::{Caveats, EngineSizes, ExperimentError, Source, WorkloadKind, parse};
use crate::adapter::EngineName;
use crate::adapter::codec::Codec;
use crate::adapter::settings::DurabilityMode;
use crate::datasets::TextData;

/// One experiment: every codec in every chunk on every engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChunkExperiment {
    /// Its name on the command line: lower case, digits, dashes.
    pub name: String,
    /// Its number among the published ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// One line for headings.
    pub title: String,
    /// What is asked.
    pub question: String,
    /// What the published source says the answer is.
    pub hypothesis: String,
    /// Where the published findings come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// What is run.
    pub workload: ChunkWorkload,
    /// The sizes it can be run at, by name.
    #[serde(rename = "scale")]
    pub scales: BTreeMap<String, ChunkScale>,
    /// What was published, in words, with the check that decides whether it is so here.
    #[serde(default, rename = "finding")]
    pub findings: Vec<Finding>,
    /// What a reader must know.
    pub caveats: Caveats,
}

/// What is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChunkWorkload {
    /// `chunks`.
    pub kind: WorkloadKind,
    /// On which engines; one that is missing is left out with a line.
    pub engines: Vec<EngineName>,
    /// The text: a data set's name, or a file.
    pub text: TextData,
    /// Parts of the text, each under a key of its own.
    pub partitions: u64,
    /// Raw bytes that are compressed at once, KiB.
    pub chunks_kib: Vec<u64>,
    /// The codecs, each of all data.
    pub codecs: Vec<Codec>,
    /// When a write is acknowledged.
    pub durability: DurabilityMode,
    /// Seed of generated text.
    pub seed: u64,
}

/// One size that an experiment can be run at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChunkScale {
    /// What it shows.
    pub about: String,
    /// Length of the text, KiB; of a file, at most.
    pub text_kib: u64,
    /// How often everything is flushed, each time into an empty database.
    pub flushes: u64,
    /// How often everything is read with empty caches, and as often with warm ones.
    pub scans: u64,
    /// How often every chunk is compressed by the codec alone; its shortest time counts.
    pub codec_passes: u64,
    /// Runs of each arm.
    pub repeats: u64,
    /// Memory of the engine as a whole, MiB.
    pub memory_budget_mib: u64,
    /// The block cache in it, MiB.
    pub block_cache_mib: u64,
    /// Size at which a memtable is flushed, KiB: larger than the text with its keys, so that one
    /// flush writes all of it.
    pub memtable_kib: u64,
    /// Target size of a table file, KiB.
    pub table_kib: u64,
    /// Threads of flush and compaction.
    pub background_threads: u64,
}

impl ChunkScale {
    /// What its engines are told about sizes. Nothing is compacted, so the shape of the tree is
    /// any.
    pub fn sizes(&self) -> EngineSizes {
        EngineSizes {
            memory_budget_mib: self.memory_budget_mib,
            block_cache_mib: self.block_cache_mib,
            memtable_kib: self.memtable_kib,
            table_kib: self.table_kib,
            base_level_mib: 64,
            fanout: 8,
            background_threads: self.background_threads,
        }
    }
}

/// A published statement and the check that decides it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// Which check.
    pub check: ChunkCheck,
    /// What was published, in words.
    pub claim: String,
}

/// What can be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChunkCheck {
    /// With every codec, larger chunks are stored in less.
    LargerChunksAreSmaller,
    /// lz4 and snappy halve the size at 64 KiB.
    FastCodecsHalve,
    /// The two smallest at 64 KiB are of zlib or of zstd from effort 5 on.
    StrongCodecsAreSmallest,
    /// Efforts of zstd differ more in the largest chunks than in the smallest.
    EffortsMatterInLargeChunks,
    /// Some flushes with lz4 or snappy are faster than without a codec. Older records know it by
    /// another name.
    #[serde(alias = "fast-codecs-flush-like-none")]
    FastCodecsFlushFasterAtTimes,
    /// Flushes with zstd-1 take at most a tenth longer than with lz4 at 64 KiB.
    LightZstdFlushesLikeLz4,
    /// Flushes with zstd-9 take at least half as long again as with zstd-1.
    HighZstdFlushesSlowly,
    /// Reading with lz4 and snappy is faster than without a codec.
    FastCodecsReadFaster,
    /// Reading with zstd-1 is slower than with zlib.
    LightZstdReadsSlowerThanZlib,
    /// Chunks of 64 KiB are read faster than chunks of 4 KiB, with every codec.
    LargerChunksReadFaster,
    /// No call of lz4, snappy or zstd-1 takes a millisecond, up to 64 KiB.
    FastCodecsNeverLong,
    /// Up to 64 KiB, calls of a millisecond are of zlib and zstd from effort 5 on, in chunks of
    /// 64 KiB.
    LongCallsNeedLargeChunks,
}

/// The codec and the chunk of an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkArm {
    /// Of all data.
    pub codec: Codec,
    /// Raw bytes that are compressed at once, KiB.
    pub chunk_kib: u64,
}

impl fmt::Display for ChunkArm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}k", self.codec, self.chunk_kib)
    }
}

impl ChunkExperiment {
    /// Reads and checks the text of an experiment file; `file` names it in errors.
    ///
    /// # Errors
    /// Bad syntax, an unknown or missing key, an impossible value: with file, line and key.
    pub fn parse(file: &str, text: &str) -> Result<ChunkExperiment, ExperimentError> {
        parse::parse(file, text, check)
    }

    /// Every codec in every chunk, in the order of the tables.
    pub fn arms(&self) -> Vec<ChunkArm> {
        let ChunkWorkload { chunks_kib, codecs, .. } = &self.workload;
        let of_chunk = |chunk_kib: &u64| {
            let chunk_kib = *chunk_kib;
            codecs.iter().map(move |codec| ChunkArm { codec: *codec, chunk_kib })
        };
        chunks_kib.iter().flat_map(of_chunk).collect()
    }
}

/// Refuses what cannot be run.
fn check(experiment: &ChunkExperiment) -> Result<(), Fault> {
    check_name("name", &experiment.name)?;
    check_id(experiment.id.as_deref())?;
    let workload = &experiment.workload;
    check_kind(workload.kind, WorkloadKind::Chunks)?;
    check_engines("workload.engines", &workload.engines)?;
    in_range("workload.partitions", workload.partitions, 1..=1_000_000)?;
    // TOML integers are signed, and repeats are added to the seed.
    in_range("workload.seed", workload.seed, 0..=i64::MAX as u64 / 2)?;
    check_each("workload.chunks_kib", &workload.chunks_kib)?;
    for (index, chunk_kib) in workload.chunks_kib.iter().enumerate() {
        in_range(&format!("workload.chunks_kib[{index}]"), *chunk_kib, 1..=4096)?;
    }
    check_each("workload.codecs", &workload.codecs)?;
    if experiment.scales.is_empty() {
        return Err(fault("scale", "an experiment needs at least one scale"));
    }
    for (name, scale) in &experiment.scales {
        check_scale(name, scale)?;
    }
    let repeats = experiment.scales.values().map(|scale| scale.repeats);
    check_claims(experiment.findings.len(), repeats)
}

/// Refuses a list in which there is nothing, or something twice.
fn check_each<T: PartialEq + fmt::Display>(key: &str, values: &[T]) -> Result<(), Fault> {
    if values.is_empty() {
        return Err(fault(key, "an experiment needs at least one"));
    }
    for (index, value) in values.iter().enumerate() {
        if values[..index].contains(value) {
            return Err(fault(format!("{key}[{index}]"), format!("{value} twice")));
        }
    }
    Ok(())
}

fn check_scale(name: &str, scale: &ChunkScale) -> Result<(), Fault> {
    let key = format!("scale.{name}");
    check_name(&key, name)?;
    let limits = [
        ("text_kib", scale.text_kib, 64..=1 << 24),
        ("flushes", scale.flushes, 1..=1000),
        ("scans", scale.scans, 1..=1000),
        ("codec_passes", scale.codec_passes, 1..=100),
        ("repeats", scale.repeats, 1..=100),
    ];
    for (name, value, allowed) in limits {
        in_range(&format!("{key}.{name}"), value, allowed)?;
    }
    check_sizes(&key, &scale.sizes())?;
    if scale.memtable_kib < 2 * scale.text_kib {
        let what = format!(
            "{} does not hold the text with its keys; at least 2 * text_kib ({})",
            scale.memtable_kib,
            2 * scale.text_kib
        );
        return Err(fault(format!("{key}.memtable_kib"), what));
    }
    if scale.memtable_kib > scale.memory_budget_mib * 512 {
        let what = "more than half of memory_budget_mib, which holds the memtable";
        return Err(fault(format!("{key}.memtable_kib"), what));
    }
    Ok(())
}
