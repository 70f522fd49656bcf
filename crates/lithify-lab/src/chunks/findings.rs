//! Published findings held against the figures of one engine.

use super::figures::{ArmFigures, MeanAndDeviation};
use crate::adapter::codec::Codec;
use crate::experiment::chunks::{ChunkArm, ChunkCheck};
use crate::report::figures::figure;

/// The largest chunk of the published matrix, KiB.
const PUBLISHED_MAX_KIB: u64 = 64;

/// Sizes that differ by less are the same: blocks do not end at the same rows.
const SAME_SIZE: f64 = 0.005;

/// What the figures say about a finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Whether it is so here.
    pub held: bool,
    /// The figures that say so.
    pub figures: String,
}

/// The figures of one engine.
struct Matrix<'a>(&'a [ArmFigures]);

/// A part of the text, as a percentage.
fn percent(share: f64) -> String {
    format!("{} %", figure(100.0 * share))
}

fn is_fast(codec: Codec) -> bool {
    [Codec::LZ4, Codec::SNAPPY].contains(&codec)
}

/// zlib, and zstd from effort 5 on.
fn is_strong(codec: Codec) -> bool {
    codec.kind() == "zlib" || codec.kind() == "zstd" && codec.effort() >= 5
}

impl Matrix<'_> {
    fn get(&self, codec: Codec, chunk_kib: u64) -> Option<&ArmFigures> {
        self.0.iter().find(|of| of.arm.codec == codec && of.arm.chunk_kib == chunk_kib)
    }

    /// The arms of a codec, small chunks first.
    fn of_codec(&self, codec: Codec) -> Vec<&ArmFigures> {
        let mut arms: Vec<&ArmFigures> = self.0.iter().filter(|of| of.arm.codec == codec).collect();
        arms.sort_by_key(|of| of.arm.chunk_kib);
        arms
    }

    /// The arms of a chunk.
    fn of_chunk(&self, chunk_kib: u64) -> impl Iterator<Item = &ArmFigures> {
        self.0.iter().filter(move |of| of.arm.chunk_kib == chunk_kib)
    }

    /// Every codec once.
    fn codecs(&self) -> Vec<Codec> {
        let mut codecs = Vec::new();
        for of in self.0 {
            if !codecs.contains(&of.arm.codec) {
                codecs.push(of.arm.codec);
            }
        }
        codecs
    }
}

/// All of `cases` hold, and their figures; `None` when there is no case.
fn all(cases: Vec<(bool, String)>) -> Option<Verdict> {
    if cases.is_empty() {
        return None;
    }
    let held = cases.iter().all(|(holds, _)| *holds);
    // Of what did not hold only the cases that did not say why.
    let told = cases.into_iter().filter(|(holds, _)| held || !holds).map(|(_, figures)| figures);
    Some(Verdict { held, figures: told.collect::<Vec<_>>().join("; ") })
}

/// Judges a finding; `None` when the arms that decide it were not measured.
pub fn judge(check: ChunkCheck, figures: &[ArmFigures]) -> Option<Verdict> {
    let matrix = Matrix(figures);
    match check {
        ChunkCheck::LargerChunksAreSmaller => larger_chunks_are_smaller(&matrix),
        ChunkCheck::FastCodecsHalve => all(matrix
            .of_chunk(PUBLISHED_MAX_KIB)
            .filter(|of| is_fast(of.arm.codec))
            .map(|of| {
                let share = of.stored_share;
                ((0.4..=0.6).contains(&share), format!("{} {}", of.arm, percent(share)))
            })
            .collect()),
        ChunkCheck::StrongCodecsAreSmallest => strong_codecs_are_smallest(&matrix),
        ChunkCheck::EffortsMatterInLargeChunks => efforts_matter_in_large_chunks(&matrix),
        ChunkCheck::FastCodecsFlushFasterAtTimes => fast_codecs_flush_faster_at_times(&matrix),
        ChunkCheck::LightZstdFlushesLikeLz4 => {
            pair(&matrix, [Codec::zstd(1), Codec::LZ4], |ratio| ratio <= 1.10)
        }
        ChunkCheck::HighZstdFlushesSlowly => {
            pair(&matrix, [Codec::zstd(9), Codec::zstd(1)], |ratio| ratio >= 1.5)
        }
        ChunkCheck::FastCodecsReadFaster => fast_codecs_read_faster(&matrix),
        ChunkCheck::LightZstdReadsSlowerThanZlib => light_zstd_reads_slower(&matrix),
        ChunkCheck::LargerChunksReadFaster => larger_chunks_read_faster(&matrix),
        ChunkCheck::FastCodecsNeverLong => all(figures
            .iter()
            .filter(|of| of.arm.chunk_kib <= PUBLISHED_MAX_KIB)
            .filter(|of| is_fast(of.arm.codec) || of.arm.codec == Codec::zstd(1))
            .map(|of| (of.long_calls == 0.0, longest(of)))
            .collect()),
        ChunkCheck::LongCallsNeedLargeChunks => long_calls_need_large_chunks(figures),
    }
}

/// `lz4-64k at most 0.4 ms`
fn longest(of: &ArmFigures) -> String {
    format!("{} at most {} ms", of.arm, figure(of.longest_call_ms))
}

fn larger_chunks_are_smaller(matrix: &Matrix<'_>) -> Option<Verdict> {
    let mut cases = Vec::new();
    for codec in matrix.codecs().into_iter().filter(|codec| *codec != Codec::NONE) {
        let arms = matrix.of_codec(codec);
        if arms.len() < 2 {
            continue;
        }
        let falls = arms
            .windows(2)
            .all(|pair| pair[1].stored_share <= pair[0].stored_share * (1.0 + SAME_SIZE));
        let shares: Vec<String> = arms.iter().map(|of| percent(of.stored_share)).collect();
        cases.push((falls, format!("{codec} {}", shares.join(" > "))));
    }
    all(cases)
}

fn strong_codecs_are_smallest(matrix: &Matrix<'_>) -> Option<Verdict> {
    let mut arms: Vec<&ArmFigures> = matrix.of_chunk(PUBLISHED_MAX_KIB).collect();
    let strong = arms.iter().filter(|of| is_strong(of.arm.codec)).count();
    if strong < 2 || arms.len() == strong {
        return None;
    }
    arms.sort_by(|a, b| a.stored_share.total_cmp(&b.stored_share));
    let told: Vec<String> =
        arms.iter().take(3).map(|of| format!("{} {}", of.arm, percent(of.stored_share))).collect();
    let held = arms[..2].iter().all(|of| is_strong(of.arm.codec));
    Some(Verdict { held, figures: format!("smallest: {}", told.join(", ")) })
}

fn efforts_matter_in_large_chunks(matrix: &Matrix<'_>) -> Option<Verdict> {
    let (least, most) = (Codec::zstd(1), Codec::zstd(9));
    let chunks = [matrix.of_codec(least), matrix.of_codec(most)];
    let smallest = chunks[0].first()?.arm.chunk_kib;
    let largest = chunks[0].last()?.arm.chunk_kib;
    let gain = |chunk_kib| {
        let share = |codec| matrix.get(codec, chunk_kib).map(|of| of.stored_share);
        Some(1.0 - share(most)? / share(least)?)
    };
    let (small, large) = (gain(smallest)?, gain(largest)?);
    (smallest < largest).then(|| Verdict {
        held: large > small,
        figures: format!(
            "effort 9 saves {} against effort 1 at {smallest} KiB, {} at {largest} KiB",
            percent(small),
            percent(large)
        ),
    })
}

/// Times of the arms of lz4 and snappy, each beside that of its chunk without a codec.
fn fast_and_none<'a>(
    matrix: &'a Matrix<'_>,
    time: fn(&ArmFigures) -> MeanAndDeviation,
) -> impl Iterator<Item = (ChunkArm, MeanAndDeviation, MeanAndDeviation)> + 'a {
    let fast = matrix.0.iter().filter(|of| is_fast(of.arm.codec));
    fast.filter_map(move |of| {
        let none = matrix.get(Codec::NONE, of.arm.chunk_kib)?;
        Some((of.arm, time(of), time(none)))
    })
}

/// `lz4-4k 10.0 : 11.0 ms`
fn beside(arm: ChunkArm, own: MeanAndDeviation, none: MeanAndDeviation) -> String {
    format!("{arm} {} : {} ms", figure(own.mean), figure(none.mean))
}

/// One case of many is enough, when it is faster by more than flushes differ among themselves.
fn fast_codecs_flush_faster_at_times(matrix: &Matrix<'_>) -> Option<Verdict> {
    let flushes: Vec<_> = fast_and_none(matrix, |of| of.flush_ms).collect();
    let faster: Vec<String> = flushes
        .iter()
        .filter(|(_, own, none)| own.mean + own.deviation.max(none.deviation) < none.mean)
        .map(|(arm, own, none)| beside(*arm, *own, *none))
        .collect();
    if !faster.is_empty() {
        return Some(Verdict { held: true, figures: faster.join("; ") });
    }
    let share = |(_, own, none): &(ChunkArm, MeanAndDeviation, MeanAndDeviation)| {
        own.mean / none.mean.max(1e-9)
    };
    let nearest = flushes.iter().min_by(|a, b| share(a).total_cmp(&share(b)))?;
    let figures =
        format!("nearest: {}, within noise or slower", beside(nearest.0, nearest.1, nearest.2));
    Some(Verdict { held: false, figures })
}

fn fast_codecs_read_faster(matrix: &Matrix<'_>) -> Option<Verdict> {
    let case = |(arm, own, none): (ChunkArm, MeanAndDeviation, MeanAndDeviation)| {
        (own.mean <= none.mean, beside(arm, own, none))
    };
    all(fast_and_none(matrix, |of| of.cold_ms).map(case).collect())
}

/// The flush of one codec over that of another, at 64 KiB.
fn pair(matrix: &Matrix<'_>, [codec, base]: [Codec; 2], holds: fn(f64) -> bool) -> Option<Verdict> {
    let mean = |codec| matrix.get(codec, PUBLISHED_MAX_KIB).map(|of| of.flush_ms.mean);
    let (own, other) = (mean(codec)?, mean(base)?);
    let ratio = own / other.max(1e-9);
    Some(Verdict {
        held: holds(ratio),
        figures: format!(
            "{codec} {} ms : {base} {} ms = {} at {PUBLISHED_MAX_KIB} KiB",
            figure(own),
            figure(other),
            figure(ratio)
        ),
    })
}

fn light_zstd_reads_slower(matrix: &Matrix<'_>) -> Option<Verdict> {
    let zlib = matrix.codecs().into_iter().find(|codec| codec.kind() == "zlib")?;
    let case = |of: &&ArmFigures| {
        let (own, other) = (of.warm_ms.mean, matrix.get(zlib, of.arm.chunk_kib)?.warm_ms.mean);
        let figures = format!("{} {} : {zlib} {} ms", of.arm, figure(own), figure(other));
        Some((own > other, figures))
    };
    all(matrix.of_codec(Codec::zstd(1)).iter().filter_map(case).collect())
}

fn larger_chunks_read_faster(matrix: &Matrix<'_>) -> Option<Verdict> {
    let mut cases = Vec::new();
    for codec in matrix.codecs() {
        let time = |chunk_kib| matrix.get(codec, chunk_kib).map(|of| of.cold_ms.mean);
        if let (Some(small), Some(large)) = (time(4), time(PUBLISHED_MAX_KIB)) {
            let figures = format!("{codec} {} > {} ms", figure(small), figure(large));
            cases.push((large < small, figures));
        }
    }
    all(cases)
}

fn long_calls_need_large_chunks(figures: &[ArmFigures]) -> Option<Verdict> {
    let published = || figures.iter().filter(|of| of.arm.chunk_kib <= PUBLISHED_MAX_KIB);
    let long: Vec<&ArmFigures> = published().filter(|of| of.long_calls > 0.0).collect();
    if long.is_empty() {
        let slowest = published().max_by(|a, b| a.longest_call_ms.total_cmp(&b.longest_call_ms));
        return slowest.map(|of| Verdict {
            held: true,
            figures: format!("no call took a millisecond; {}", longest(of)),
        });
    }
    all(long
        .iter()
        .map(|of| {
            let expected = is_strong(of.arm.codec) && of.arm.chunk_kib >= PUBLISHED_MAX_KIB;
            let figures = format!(
                "{}: {} calls of up to {} ms",
                of.arm,
                figure(of.long_calls),
                figure(of.longest_call_ms)
            );
            (expected, figures)
        })
        .collect())
}
