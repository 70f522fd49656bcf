//! How other engines adapt their compression, as policies of this one: so that they can be measured on
//! the same data in the same engine. Arms of the laboratory; no option names them.
//!
//! | rule | after | signal | answer |
//! |---|---|---|---|
//! | [`Rule::Size`] | Pebble's adaptive compressor | what zstd-1 saves beside lz4 | zstd-1 from 30 % on, at the bottom from 15 %; else lz4; nothing if lz4 saves less than an eighth |
//! | [`Rule::Load`] | the adaptive compressor of DataStax' Cassandra | pending work | a step weaker while writers are being slowed, a step stronger while nothing presses |
//! | [`Rule::Skip`] | RocksDB's AutoSkip | blocks that did not shrink | zstd-1, but nothing for nine tables of ten while most blocks are refused |
//!
//! None of them knows a price, and none rewrites what is there.

use super::deciding::Deciding;
use super::format_policy::{Evidence, FormatPolicy, TablePlace};
use crate::chooser::Objective;
use crate::codec::{BlockFormat, CodecId, Compression};
use crate::manifest::FileMetadata;
use crate::{Error, Result};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Whose rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// `size`: by what is saved alone.
    Size,
    /// `load`: by the load alone.
    Load,
    /// `skip`: leaves out what does not shrink.
    Skip,
}

impl FromStr for Rule {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "size" => Ok(Rule::Size),
            "load" => Ok(Rule::Load),
            "skip" => Ok(Rule::Skip),
            other => Err(Error::invalid("rule").expected("size, load or skip", other)),
        }
    }
}

const ZSTD: Compression = Compression { codec: CodecId::Zstd, effort: 1, ..Compression::NONE };

/// What the rule by load moves along, the weakest first.
const STEPS: [Compression; 5] = [
    Compression::LZ4,
    Compression { effort: -3, ..ZSTD },
    ZSTD,
    Compression { effort: 3, ..ZSTD },
    Compression { effort: 6, ..ZSTD },
];
const FIRST_STEP: usize = 2;

/// What zstd-1 has to save beside lz4, and at the bottom.
const SIZE_CUT: f64 = 0.30;
const SIZE_CUT_BOTTOM: f64 = 0.15;

/// One table in so many is compressed although most blocks are refused.
const EXPLORED_PERIOD: u64 = 10;

/// A rule of another engine. See the module.
pub struct OfOthers {
    rule: Rule,
    block_size_bytes: usize,
    /// Measures zstd-1 and lz4; decides nothing.
    measured: Deciding,
    step: AtomicUsize,
    tables: AtomicU64,
}

impl OfOthers {
    /// With blocks of one size.
    pub fn new(rule: Rule, block_size_bytes: usize) -> Self {
        let sizes = Some(block_size_bytes);
        OfOthers {
            rule,
            block_size_bytes,
            measured: Deciding::new(Objective::Balanced, sizes, block_size_bytes),
            step: AtomicUsize::new(FIRST_STEP),
            tables: AtomicU64::new(0),
        }
    }

    fn by_size(&self, place: &TablePlace) -> Compression {
        let ratio = |compression| self.measured.ratio(place.level, compression);
        let (Some(fast), Some(strong)) = (ratio(Compression::LZ4), ratio(ZSTD)) else {
            return Compression::LZ4;
        };
        let cut = match place.distance_from_bottom() {
            0 => SIZE_CUT_BOTTOM,
            _ => SIZE_CUT,
        };
        match (1.0 - strong / fast >= cut, fast > 7.0 / 8.0) {
            (true, _) => ZSTD,
            (false, true) => Compression::NONE,
            (false, false) => Compression::LZ4,
        }
    }

    fn by_load(&self) -> Compression {
        let pressure = self.measured.pressure();
        let step = self.step.load(Relaxed);
        let next = match pressure {
            _ if pressure > 0.25 => step.saturating_sub(1),
            _ if pressure <= 0.0 => (step + 1).min(STEPS.len() - 1),
            _ => step,
        };
        self.step.store(next, Relaxed);
        STEPS[next]
    }

    fn by_refusals(&self) -> Compression {
        let explores = self.tables.fetch_add(1, Relaxed).is_multiple_of(EXPLORED_PERIOD);
        match self.measured.is_incompressible() && !explores {
            true => Compression::NONE,
            false => ZSTD,
        }
    }
}

impl FormatPolicy for OfOthers {
    fn decide(&self, place: &TablePlace, _: &Evidence) -> BlockFormat {
        let compression = match self.rule {
            Rule::Size => self.by_size(place),
            Rule::Load => self.by_load(),
            Rule::Skip => self.by_refusals(),
        };
        BlockFormat::new(compression, self.block_size_bytes)
    }

    fn debt(&self, _: &TablePlace, _: &FileMetadata) -> Option<crate::codec::FormatMismatch> {
        None
    }

    fn deciding(&self) -> Option<&Deciding> {
        Some(&self.measured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_by_load_steps_down_under_pressure_and_up_without() {
        let policy = OfOthers::new(Rule::Load, 16 << 10);
        let place = TablePlace { family: None, level: 6, level_count: 7 };
        let decide = || policy.decide(&place, &Evidence::default()).compression.to_string();
        policy.measured.note_pressure(0.6);
        assert_eq!([decide(), decide(), decide()], ["zstd--3", "lz4", "lz4"]);
        policy.measured.note_pressure(0.0);
        let up: Vec<String> = (0..5).map(|_| decide()).collect();
        assert_eq!(up, ["zstd--3", "zstd-1", "zstd-3", "zstd-6", "zstd-6"]);
        policy.measured.note_pressure(0.1);
        assert_eq!(decide(), "zstd-6");
    }

    #[test]
    fn without_measurements_the_others_answer_with_what_they_begin_with() {
        let place = TablePlace { family: None, level: 6, level_count: 7 };
        let decide = |rule| OfOthers::new(rule, 8192).decide(&place, &Evidence::default());
        assert_eq!(decide(Rule::Size).compression, Compression::LZ4);
        assert_eq!(decide(Rule::Skip).compression, ZSTD);
        assert!("cost".parse::<Rule>().unwrap_err().to_string().contains("size, load or skip"));
    }
}
