//! Codecs by name, `none`, `snappy`, `lz4`, `lz4-9`, `zlib-6`, `libdeflate-6`, `zstd-1`, and
//! ladders of them by distance from the bottom of a tree.
//!
//! The laboratory has no list of codecs: names, efforts and libraries are those of the registry in
//! `lithify::codec`, and a codec that is added there can be measured here at once. Which of them
//! another engine has is in its adapter alone: its [`Capabilities`](super::Capabilities) list the
//! kinds, and it maps [`Codec::kind`] and [`Codec::effort`] to what the engine calls them. Whatever it
//! does not map it refuses by name. A codec that only another engine has is an option of that engine.

use std::fmt;
use std::str::FromStr;

use lithify::Compression;
use lithify::codec::{CodecId, Encoder, encoder_name, encoder_names};
use serde::{Deserialize, Serialize};

/// A codec of the engine with its strength ("effort").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Codec(Compression);

impl Codec {
    /// Stored as it is.
    pub const NONE: Codec = Codec(Compression::NONE);
    /// LZ4, fast mode.
    pub const LZ4: Codec = Codec(Compression::LZ4);
    /// Snappy.
    pub const SNAPPY: Codec = Codec::with(CodecId::Snappy, 0, Encoder::Reference);

    const fn with(codec: CodecId, effort: i32, encoder: Encoder) -> Codec {
        Codec(Compression { codec, effort, encoder })
    }

    /// LZ4 with an effort: 2 to 12 is stronger, negative is faster and weaker.
    pub const fn lz4(effort: i32) -> Codec {
        Codec::with(CodecId::Lz4, effort, Encoder::Reference)
    }

    /// Deflate by reference zlib, effort 1 to 9.
    pub const fn zlib(effort: i32) -> Codec {
        Codec::with(CodecId::Zlib, effort, Encoder::Reference)
    }

    /// Deflate by a faster encoder of the same format, effort 1 to 12.
    pub const fn libdeflate(effort: i32) -> Codec {
        Codec::with(CodecId::Zlib, effort, Encoder::Fast)
    }

    /// Zstandard, effort up to 22 without 0, negative is faster and weaker.
    pub const fn zstd(effort: i32) -> Codec {
        Codec::with(CodecId::Zstd, effort, Encoder::Reference)
    }

    /// The kinds of codec there are, `none` first.
    pub fn kinds() -> impl Iterator<Item = &'static str> {
        encoder_names()
    }

    /// Which of [`Codec::kinds`] it is, whatever its effort: its name without the effort.
    pub fn kind(self) -> &'static str {
        encoder_name(self.0)
    }

    /// Its effort; 0 of a kind that has none, 1 of plain `lz4`.
    pub fn effort(self) -> i32 {
        self.0.effort
    }

    /// A codec of that kind with an effort that every engine with the kind has: none where it needs
    /// none, else 6, as Cassandra's zlib has no other; `None` when there is no such kind.
    pub fn of_kind(kind: &str) -> Option<Codec> {
        [kind.to_owned(), format!("{kind}-6"), format!("{kind}-1")]
            .iter()
            .find_map(|name| name.parse().ok())
    }
}

impl From<Codec> for Compression {
    fn from(codec: Codec) -> Compression {
        codec.0
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<Codec> for String {
    fn from(codec: Codec) -> Self {
        codec.to_string()
    }
}

impl TryFrom<String> for Codec {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for Codec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Codec).map_err(|error: lithify::Error| {
            // Where it is wrong is said here, once.
            let error = error.to_string();
            let what = error.strip_prefix("invalid argument: ").unwrap_or(&error);
            format!("codec \"{text}\": {}", what.strip_prefix("compression: ").unwrap_or(what))
        })
    }
}

/// The codecs of a tree by distance from the bottom, written `none,lz4,zstd-1`; one codec stands
/// for all levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ladder {
    /// Of level 0 and of levels at distance 2 and more from the bottom.
    pub small: Codec,
    /// Of the level above the bottom.
    pub middle: Codec,
    /// Of the bottom level.
    pub bottom: Codec,
}

impl Ladder {
    /// It as part of the name of a file.
    pub fn file_name(&self) -> String {
        format!("{}+{}+{}", self.small, self.middle, self.bottom)
    }
}

impl fmt::Display for Ladder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{}", self.small, self.middle, self.bottom)
    }
}

impl FromStr for Ladder {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with("auto") || text.starts_with("prices:") {
            return Err(format!(
                "{text} is a decision of Lithify: measure it with --engine lithify-auto, or with \
                 --option compression={text} --option block_size_bytes=0"
            ));
        }
        let codecs: Vec<Codec> = text.split(',').map(str::parse).collect::<Result<_, _>>()?;
        match codecs[..] {
            [all] => Ok(Ladder { small: all, middle: all, bottom: all }),
            [small, middle, bottom] => Ok(Ladder { small, middle, bottom }),
            _ => Err(format!(
                "a ladder takes 3 codecs separated by commas, or one for all levels; {} were given",
                codecs.len()
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_the_engine_is_one_here() {
        assert_eq!(Codec::kinds().next(), Some("none"), "first, to compare others with");
        for kind in Codec::kinds() {
            let codec = Codec::of_kind(kind).expect("has such an effort");
            assert_eq!(codec.kind(), kind);
            assert_eq!(codec.to_string().parse(), Ok(codec));
        }
        assert_eq!(Codec::of_kind("lzma"), None);
        assert_eq!("lzma-6".parse::<Codec>().map_err(|error| error.contains("lzma-6")), Err(true));
    }

    #[test]
    fn names_and_constants_are_the_same() {
        let named = [
            ("none", Codec::NONE),
            ("snappy", Codec::SNAPPY),
            ("lz4", Codec::LZ4),
            ("lz4-9", Codec::lz4(9)),
            ("zlib-6", Codec::zlib(6)),
            ("libdeflate-6", Codec::libdeflate(6)),
            ("zstd--5", Codec::zstd(-5)),
        ];
        for (name, codec) in named {
            assert_eq!((name.parse(), codec.to_string().as_str()), (Ok(codec), name));
        }
        assert_eq!((Codec::zstd(-5).kind(), Codec::zstd(-5).effort()), ("zstd", -5));
    }
}
