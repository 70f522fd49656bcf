//! The standard sequence of the classic benchmark's own comparison script, as steps.
//!
//! Owns: the names that stand for whole sequences in a list of steps. The order, the settings of
//! each step and the share of keys that is overwritten are those of the script for leveled
//! compaction; what it does by waiting a fixed time is done here by waiting for compaction.

use std::str::FromStr;

use super::step::{StepError, StepSpec};
use crate::keyvalue::benchmark::Benchmark;

/// What the script lets the writer beside readers write, bytes per second.
const WRITER_BYTES_PER_S: u64 = 2 << 20;
/// One key in so many is overwritten before the reads beside a writer.
const OVERWRITTEN_ONE_IN: u64 = 10;

/// A place in a list of steps: one step, or the sequence that a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// One step.
    Step(StepSpec),
    /// The standard sequence.
    Standard {
        /// The first fill writes its log too, for engines that cannot do without.
        log: bool,
    },
}

/// Names of sequences.
const STANDARD: &str = "standard";
const STANDARD_WAL: &str = "standard-wal";

impl FromStr for Item {
    type Err = StepError;

    fn from_str(text: &str) -> Result<Item, StepError> {
        match text {
            STANDARD => Ok(Item::Standard { log: false }),
            STANDARD_WAL => Ok(Item::Standard { log: true }),
            _ => text.parse().map(Item::Step),
        }
    }
}

/// The steps of a list, for `num` keys and so many clients.
pub fn expand(items: &[Item], num: u64, threads: u64) -> Vec<StepSpec> {
    let steps = items.iter().map(|item| match item {
        Item::Step(step) => vec![*step],
        Item::Standard { log } => standard(num, threads, *log),
    });
    steps.flatten().collect()
}

fn standard(num: u64, threads: u64, log: bool) -> Vec<StepSpec> {
    let step = StepSpec::from;
    let backwards = |benchmark| StepSpec { reverse_iterator: Some(true), ..step(benchmark) };
    let beside_writer =
        |step| StepSpec { write_rate_bytes_per_s: Some(WRITER_BYTES_PER_S), ..step };
    let overwritten = (num / threads.max(1) / OVERWRITTEN_ONE_IN).max(1);
    vec![
        StepSpec { disable_wal: (!log).then_some(true), ..step(Benchmark::FillSeq) },
        backwards(Benchmark::SeekRandom),
        step(Benchmark::ReadRandom),
        step(Benchmark::SeekRandom),
        step(Benchmark::MultiReadRandom),
        StepSpec { writes: Some(overwritten), ..step(Benchmark::Overwrite) },
        step(Benchmark::Flush),
        step(Benchmark::WaitForCompaction),
        beside_writer(backwards(Benchmark::SeekRandomWhileWriting)),
        beside_writer(step(Benchmark::SeekRandomWhileWriting)),
        beside_writer(step(Benchmark::ReadWhileWriting)),
        step(Benchmark::Overwrite),
        step(Benchmark::WaitForCompaction),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_sequence() {
        let items: Vec<Item> =
            ["standard", "flush"].iter().map(|text| text.parse().expect(text)).collect();
        let steps: Vec<String> =
            expand(&items, 1_000_000, 2).iter().map(StepSpec::to_string).collect();
        let expected = "fillseq:disable-wal seekrandom:reverse-iterator readrandom seekrandom \
            multireadrandom overwrite:writes=50000 flush waitforcompaction \
            seekrandomwhilewriting:reverse-iterator:mb-write-per-sec=2 \
            seekrandomwhilewriting:mb-write-per-sec=2 readwhilewriting:mb-write-per-sec=2 \
            overwrite waitforcompaction flush";
        assert_eq!(steps.join(" "), expected);
        let with_log = expand(&["standard-wal".parse().expect("a name")], 5, 3);
        assert_eq!(with_log[0].to_string(), "fillseq");
        assert_eq!(with_log[5].to_string(), "overwrite:writes=1");
    }

    #[test]
    fn a_wrong_name_is_told_with_those_there_are() {
        let error = "standart".parse::<Item>().expect_err("no such step");
        assert!(error.to_string().contains("there is no benchmark \"standart\""), "{error}");
    }
}
