//! Codecs by distance from the bottom, in the terms of RocksDB.
//!
//! RocksDB takes a list whose first entry is for level 0 and whose further entries count from the
//! base level, which moves up as the tree grows, and one codec for the bottom. So the list that
//! gives a physical level its codec depends on where the base level is: [`Policy::per_level`]
//! makes it for a base level, and who runs the engine sets it again when the base level moves.
//! Until it is set, the new base level takes what the list holds for the old one.

use lithify_lab::adapter::codec::Codec;
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::{EngineError, EngineResult};

/// Levels of the tree, level 0 with them: the library's default.
pub const LEVELS: usize = 7;

/// What settling a tree does, here and in MyRocks, for the report.
pub const LEVEL0_EMPTIED: &str = "flushed, level 0 compacted into the base level \
    (level0_file_num_compaction_trigger = 1 for as long as that took), compactions waited for";

/// A codec by the numbers of the C interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeCodec {
    /// Its number.
    pub number: i32,
    /// Its name in option texts.
    pub option_name: &'static str,
    /// Its effort, when it has one.
    pub effort: Option<i32>,
}

fn native(codec: Codec) -> EngineResult<NativeCodec> {
    let (number, option_name, effort) = match (codec.kind(), codec.effort()) {
        ("none", _) => (0, "kNoCompression", None),
        ("snappy", _) => (1, "kSnappyCompression", None),
        ("zlib", effort) => (2, "kZlibCompression", Some(effort)),
        ("lz4", 1) => (4, "kLZ4Compression", None),
        ("lz4", effort @ 2..) => (5, "kLZ4HCCompression", Some(effort)),
        // Its versions differ in what a negative effort of this codec does.
        ("lz4", _) => {
            return Err(EngineError::fatal(format!(
                "RocksDB cannot be given {codec} in every version; take lz4, or lz4-2 to lz4-12"
            )));
        }
        ("zstd", effort) => (7, "kZSTD", Some(effort)),
        ("libdeflate", _) => {
            return Err(EngineError::fatal(format!("RocksDB has no codec {codec}; take zlib-N")));
        }
        _ => return Err(EngineError::fatal(format!("RocksDB has no codec {codec}"))),
    };
    Ok(NativeCodec { number, option_name, effort })
}

/// The codecs of a tree by distance from the bottom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    level0: NativeCodec,
    small: NativeCodec,
    middle: NativeCodec,
    /// Of the bottom level.
    pub bottom: NativeCodec,
}

impl Policy {
    /// The codecs of `settings`.
    ///
    /// # Errors
    /// A codec that RocksDB does not have; two efforts above the bottom, where it has one.
    pub fn new(settings: &EngineSettings) -> EngineResult<Policy> {
        let upper = [
            settings.codec_level0.unwrap_or(settings.codec_small),
            settings.codec_small,
            settings.codec_middle,
        ];
        let mut with_effort = None;
        for codec in upper {
            let Some(effort) = native(codec)?.effort else { continue };
            let (first, other) = *with_effort.get_or_insert((codec, effort));
            if other != effort {
                return Err(EngineError::fatal(format!(
                    "RocksDB has one effort for all levels above the bottom: {first} and {codec} \
                     cannot be set together"
                )));
            }
        }
        let [level0, small, middle] = upper;
        Ok(Policy {
            level0: native(level0)?,
            small: native(small)?,
            middle: native(middle)?,
            bottom: native(settings.codec_bottom)?,
        })
    }

    /// The effort of the levels above the bottom, if their codec has one.
    pub fn upper_effort(&self) -> Option<i32> {
        self.level0.effort.or(self.small.effort).or(self.middle.effort)
    }

    /// True when the list says the same for every base level.
    pub fn is_uniform(&self) -> bool {
        self.small == self.middle
    }

    /// The list for a tree with this base level: level 0, then the base level and those below it.
    ///
    /// The bottom has an option of its own. Its entry here is for the level above it, which is
    /// read from this place from when it becomes the base level until the list is set again.
    pub fn per_level(&self, base_level: usize) -> Vec<NativeCodec> {
        let codec = |level: usize| match LEVELS - 1 - level {
            0 | 1 => self.middle,
            _ => self.small,
        };
        let base_level = base_level.clamp(1, LEVELS - 1);
        std::iter::once(self.level0).chain((base_level..LEVELS).map(codec)).collect()
    }

    /// The list as the text of an option.
    pub fn per_level_text(&self, base_level: usize) -> String {
        let names: Vec<&str> =
            self.per_level(base_level).iter().map(|codec| codec.option_name).collect();
        names.join(":")
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::settings;
    use super::*;

    #[test]
    fn a_level_keeps_its_codec_when_the_base_level_moves() {
        let policy = Policy::new(&settings("none,lz4,zstd-1")).expect("is possible");
        assert_eq!(policy.per_level_text(6), "kNoCompression:kLZ4Compression");
        assert_eq!(policy.per_level_text(5), "kNoCompression:kLZ4Compression:kLZ4Compression");
        assert_eq!(
            policy.per_level_text(3),
            "kNoCompression:kNoCompression:kNoCompression:kLZ4Compression:kLZ4Compression"
        );
        assert_eq!(policy.per_level(0), policy.per_level(1));
        assert!(!policy.is_uniform());
    }

    /// What the library gives a level above the bottom by a list.
    fn taken(list: &[NativeCodec], base_level: usize, level: usize) -> NativeCodec {
        list[(level - base_level + 1).min(list.len() - 1)]
    }

    #[test]
    fn a_list_that_is_late_gives_no_upper_level_the_codec_of_the_bottom() {
        let policy = Policy::new(&settings("none,lz4,zstd-1")).expect("is possible");
        let uniform = Policy::new(&settings("none,none,zstd-1")).expect("is possible");
        assert!(uniform.is_uniform());
        for set_for in 1..LEVELS {
            for base_level in 1..LEVELS {
                for level in base_level..LEVELS - 1 {
                    let late = taken(&policy.per_level(set_for), base_level, level);
                    assert_ne!(late, policy.bottom, "L{level} of {base_level} by {set_for}");
                    let late = taken(&uniform.per_level(set_for), base_level, level);
                    assert_eq!(late, uniform.small, "L{level} of {base_level} by {set_for}");
                }
            }
        }
        assert_eq!(taken(&policy.per_level(6), 5, 5), policy.middle);
    }

    #[test]
    fn level_0_may_have_a_codec_of_its_own() {
        let mut settings = settings("lz4,lz4,lz4");
        assert!(Policy::new(&settings).expect("is possible").is_uniform());
        settings.codec_level0 = Some(Codec::NONE);
        let policy = Policy::new(&settings).expect("is possible");
        assert_eq!(policy.per_level_text(5), "kNoCompression:kLZ4Compression:kLZ4Compression");
        assert!(policy.is_uniform(), "the list is the same wherever the base level is");
        settings.codec_level0 = Some(Codec::zstd(3));
        let policy = Policy::new(&settings).expect("is possible");
        assert_eq!(policy.upper_effort(), Some(3));
        settings.codec_middle = Codec::zstd(1);
        let error = Policy::new(&settings).expect_err("two efforts").to_string();
        assert!(error.contains("zstd-3 and zstd-1"), "{error}");
    }

    #[test]
    fn what_cannot_be_matched_is_refused() {
        let refuse = |codecs| Policy::new(&settings(codecs)).expect_err(codecs).to_string();
        assert!(refuse("none,lz4,libdeflate-6").contains("no codec libdeflate-6"));
        assert!(refuse("none,lz4--8,zstd-1").contains("cannot be given lz4--8"));
        assert!(refuse("zstd-1,zstd-3,zstd-9").contains("zstd-1 and zstd-3"));
        let policy = Policy::new(&settings("lz4,zstd-3,zstd-9")).expect("is possible");
        assert_eq!((policy.upper_effort(), policy.bottom.effort), (Some(3), Some(9)));
        let policy = Policy::new(&settings("none,lz4,lz4-9")).expect("is possible");
        assert_eq!(
            (policy.bottom.option_name, policy.bottom.effort),
            ("kLZ4HCCompression", Some(9))
        );
    }
}
