//! Which codec a level's tables are written in, named by distance from the bottom: the setting, and
//! the policy that it is.
//!
//! The base level shifts as a database grows. A list indexed by level would mean something else
//! then; the distance from the bottom level, which is always the last one, does not.

use super::format_policy::{Evidence, FormatPolicy, TablePlace};
use crate::base::Level;
use crate::chooser::Objective;
use crate::codec::{BlockFormat, Compression};
use crate::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// A codec for the bottom level, one for the level above it, one for all levels above that, and
/// one for level 0.
///
/// Its text form reads as the data sinks: small levels, middle, bottom; level 0 goes first where
/// its codec is not that of the small levels.
///
/// ```
/// use lithify::compaction::CodecPolicy;
/// let policy: CodecPolicy = "none,lz4,zstd-1".parse()?;
/// assert_eq!(policy, CodecPolicy::default());
/// assert!(policy.table(5, 7).ends_with("L5     middle  lz4\nL6     bottom  zstd-1\n"));
/// let all_but_level0: CodecPolicy = "none,lz4,lz4,lz4".parse()?;
/// assert_eq!(all_but_level0.small.to_string(), "lz4");
/// # Ok::<(), lithify::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodecPolicy {
    /// Level 0: what flushes write, and users wait for.
    pub level0: Compression,
    /// Every other level at distance 2 and more from the bottom: small, short-lived, and rewritten
    /// most.
    pub small: Compression,
    /// The level above the bottom.
    pub middle: Compression,
    /// The last level: most of the data, and the longest-lived.
    pub bottom: Compression,
}

impl CodecPolicy {
    /// The same codec everywhere.
    pub fn uniform(compression: Compression) -> Self {
        CodecPolicy {
            level0: compression,
            small: compression,
            middle: compression,
            bottom: compression,
        }
    }

    /// The codec of a place. Asked by [`LevelFormats`]: others ask the policy.
    pub(super) fn resolve(&self, place: &TablePlace) -> Compression {
        match place.distance_from_bottom() {
            _ if place.level == 0 => self.level0,
            0 => self.bottom,
            1 => self.middle,
            _ => self.small,
        }
    }

    /// The resolved codec of every physical level, one line each.
    pub fn table(&self, base_level: Level, level_count: usize) -> String {
        let mut text = String::from("level  place   codec\n");
        for level in 0..level_count {
            let place = match level_count - 1 - level {
                _ if level == 0 => "L0",
                0 => "bottom",
                1 => "middle",
                _ => "small",
            };
            let codec = self.resolve(&TablePlace { family: None, level, level_count }).to_string();
            let use_now = if level > 0 && level < base_level { "  (not in use)" } else { "" };
            text.push_str(&format!("L{level:<5} {place:<7} {codec}{use_now}\n"));
        }
        text
    }
}

impl Default for CodecPolicy {
    /// `none,lz4,zstd-1`.
    fn default() -> Self {
        let zstd = crate::codec::CodecId::Zstd;
        CodecPolicy {
            level0: Compression::NONE,
            small: Compression::NONE,
            middle: Compression::LZ4,
            bottom: Compression { codec: zstd, effort: 1, ..Compression::NONE },
        }
    }
}

/// What the option `compression` can be: a codec for each level, or an objective by which the engine
/// decides for each table.
///
/// ```
/// use lithify::{CfOptions, CompressionPolicy, Objective};
/// let decided: CompressionPolicy = "auto:space".parse()?;
/// assert_eq!(decided, CompressionPolicy::Decided(Objective::Space));
/// let options = CfOptions { compression: "none,lz4,zstd-1".parse()?, ..CfOptions::default() };
/// assert_eq!(options, CfOptions::default());
/// # Ok::<(), lithify::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompressionPolicy {
    /// A codec for each level.
    Levels(CodecPolicy),
    /// Decided by measured costs.
    Decided(Objective),
}

impl Default for CompressionPolicy {
    /// `none,lz4,zstd-1`.
    fn default() -> Self {
        CompressionPolicy::Levels(CodecPolicy::default())
    }
}

impl From<CodecPolicy> for CompressionPolicy {
    fn from(codecs: CodecPolicy) -> Self {
        CompressionPolicy::Levels(codecs)
    }
}

impl From<Compression> for CompressionPolicy {
    /// The same codec everywhere.
    fn from(compression: Compression) -> Self {
        CodecPolicy::uniform(compression).into()
    }
}

impl From<Objective> for CompressionPolicy {
    fn from(objective: Objective) -> Self {
        CompressionPolicy::Decided(objective)
    }
}

impl fmt::Display for CompressionPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompressionPolicy::Levels(codecs) => codecs.fmt(f),
            CompressionPolicy::Decided(objective) => objective.fmt(f),
        }
    }
}

impl FromStr for CompressionPolicy {
    type Err = Error;

    /// Codecs as [`CodecPolicy`] reads them, or an [`Objective`]. Every failure is
    /// [`crate::ErrorKind::InvalidArgument`].
    fn from_str(text: &str) -> Result<Self> {
        let is_objective = |name: &str| {
            text.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name))
        };
        match is_objective("auto") || is_objective("prices:") {
            true => text.parse().map(CompressionPolicy::Decided),
            false => text.parse().map(CompressionPolicy::Levels),
        }
    }
}

/// The policy of the options: a table's codec by its level, blocks of one size everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelFormats {
    /// The codecs.
    pub codecs: CodecPolicy,
    /// The target size of blocks.
    pub block_size_bytes: usize,
}

impl FormatPolicy for LevelFormats {
    fn decide(&self, place: &TablePlace, _: &Evidence) -> BlockFormat {
        BlockFormat::new(self.codecs.resolve(place), self.block_size_bytes)
    }
}

impl fmt::Display for CodecPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.level0 != self.small {
            write!(f, "{},", self.level0)?;
        }
        write!(f, "{},{},{}", self.small, self.middle, self.bottom)
    }
}

impl FromStr for CodecPolicy {
    type Err = Error;

    /// Three codecs as `small,middle,bottom`, four as `level0,small,middle,bottom`, or one for all
    /// levels. Every failure is [`crate::ErrorKind::InvalidArgument`].
    fn from_str(text: &str) -> Result<Self> {
        let codecs: Vec<&str> = text.split(',').map(str::trim).collect();
        match codecs[..] {
            [all] => Ok(CodecPolicy::uniform(all.parse()?)),
            [level0, .., middle, bottom] if codecs.len() <= 4 => Ok(CodecPolicy {
                level0: level0.parse()?,
                small: codecs[codecs.len() - 3].parse()?,
                middle: middle.parse()?,
                bottom: bottom.parse()?,
            }),
            _ => Err(Error::invalid("codec policy").expected(
                "three codecs as small,middle,bottom, four with level 0 first, or one for all levels",
                format_args!("{} in '{text}'", codecs.len()),
            )),
        }
    }
}
