//! Codecs by name: `none`, `snappy`, `lz4`, `zlib-6`, `libdeflate-6`, `zstd-1`, `zstd--3`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A codec with its strength ("effort").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Codec {
    /// Stored as it is.
    None,
    /// Snappy.
    Snappy,
    /// LZ4, fast mode.
    Lz4,
    /// Deflate by reference zlib, effort 1 to 9.
    Zlib(i32),
    /// Deflate by a faster encoder of the same format, effort 1 to 12.
    ZlibFast(i32),
    /// Zstandard, effort -7 to 22 without 0.
    Zstd(i32),
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Codec::None => f.write_str("none"),
            Codec::Snappy => f.write_str("snappy"),
            Codec::Lz4 => f.write_str("lz4"),
            Codec::Zlib(effort) => write!(f, "zlib-{effort}"),
            Codec::ZlibFast(effort) => write!(f, "libdeflate-{effort}"),
            Codec::Zstd(effort) => write!(f, "zstd-{effort}"),
        }
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
        match text {
            "none" => return Ok(Codec::None),
            "snappy" => return Ok(Codec::Snappy),
            "lz4" => return Ok(Codec::Lz4),
            _ => {}
        }
        if let Some(effort) = text.strip_prefix("libdeflate-") {
            return effort_of(text, effort, 1, 12).map(Codec::ZlibFast);
        }
        if let Some(effort) = text.strip_prefix("zlib-") {
            return effort_of(text, effort, 1, 9).map(Codec::Zlib);
        }
        if let Some(effort) = text.strip_prefix("zstd-") {
            return effort_of(text, effort, -7, 22).map(Codec::Zstd);
        }
        Err(format!(
            "unknown codec \"{text}\"; allowed: none, snappy, lz4, zlib-1 to zlib-9, libdeflate-1 \
             to libdeflate-12, zstd-1 to zstd-22, zstd--7 to zstd--1"
        ))
    }
}

fn effort_of(text: &str, effort: &str, min: i32, max: i32) -> Result<i32, String> {
    let zero = if min < 0 { " without 0" } else { "" };
    match effort.parse::<i32>() {
        Ok(number) if number != 0 && (min..=max).contains(&number) => Ok(number),
        _ => Err(format!("impossible effort in \"{text}\"; allowed: {min} to {max}{zero}")),
    }
}
