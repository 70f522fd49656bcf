//! A codec with its effort and encoder: its valid range, and how it is written in options.

use super::{CodecId, EncoderRow, encoders};
use crate::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// Which program encodes; both write the same format. Their numbers are on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Encoder {
    /// The codec's reference implementation.
    Reference = 0,
    /// A faster one of the same format (deflate: libdeflate).
    Fast = 1,
}

/// A number in a file that names no codec, effort or encoder of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownCodec {
    /// Which of the three.
    pub what: &'static str,
    /// The number, without its sign.
    pub number: u64,
}

/// A codec with its strength ("effort": zstd 3, zlib 6, lz4 1; negative is faster and weaker).
///
/// It is written as a name and an effort. A codec that takes efforts always shows one, except
/// that `lz4` alone is its fast mode:
///
/// ```
/// use lithify::codec::{CodecId, Compression, Encoder};
/// let compression: Compression = "zstd--5".parse()?;
/// assert_eq!((compression.codec, compression.effort), (CodecId::Zstd, -5));
/// assert_eq!("lz4".parse::<Compression>()?, Compression::LZ4);
/// let fast: Compression = "libdeflate-6".parse()?;
/// assert_eq!((fast.codec, fast.encoder), (CodecId::Zlib, Encoder::Fast));
/// assert_eq!(fast.to_string(), "libdeflate-6");
/// assert!("zlib-10".parse::<Compression>().is_err());
/// # Ok::<(), lithify::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Compression {
    /// The format.
    pub codec: CodecId,
    /// The strength; 0 for codecs that have none.
    pub effort: i32,
    /// Which encoder.
    pub encoder: Encoder,
}

impl Compression {
    /// Blocks are stored as they are.
    pub const NONE: Compression =
        Compression { codec: CodecId::None, effort: 0, encoder: Encoder::Reference };
    /// LZ4, fast mode.
    pub const LZ4: Compression =
        Compression { codec: CodecId::Lz4, effort: 1, encoder: Encoder::Reference };

    /// What the numbers in a file mean.
    ///
    /// # Errors
    /// The first number that this version does not know.
    pub(crate) fn from_numbers(
        codec: u64,
        effort: i64,
        encoder: u64,
    ) -> std::result::Result<Self, UnknownCodec> {
        let unknown = |what, number| UnknownCodec { what, number };
        let known_codec = u8::try_from(codec).ok().and_then(CodecId::from_u8);
        let known_effort = i32::try_from(effort);
        Ok(Compression {
            codec: known_codec.ok_or(unknown("codec", codec))?,
            effort: known_effort.map_err(|_| unknown("effort", effort.unsigned_abs()))?,
            encoder: match encoder {
                0 => Encoder::Reference,
                1 => Encoder::Fast,
                other => return Err(unknown("encoder", other)),
            },
        })
    }

    /// Fails with [`crate::ErrorKind::InvalidArgument`], naming the allowed range, if the codec
    /// has no such encoder or effort.
    pub fn validate(self) -> Result<()> {
        let Some(row) = self.encoder_row() else {
            let codec = self.codec.name();
            return Err(Error::invalid(format!("{codec} has only its reference encoder")));
        };
        let without = row.effort_of_bare_name == Some(0);
        let efforts = (row.efforts)();
        if efforts.contains(&self.effort) && (self.effort != 0 || without) {
            return Ok(());
        }
        let allowed = if without {
            "no effort".to_string()
        } else if *efforts.start() < 0 {
            format!("-1 to {} or 1 to {}", efforts.start(), efforts.end())
        } else {
            format!("{} to {}", efforts.start(), efforts.end())
        };
        Err(Error::invalid(format!("effort of {}", row.name)).expected(allowed, self.effort))
    }

    /// The registry's row of its encoder; `None` if the codec has no such encoder.
    pub(super) fn encoder_row(self) -> Option<&'static EncoderRow> {
        self.codec.row().encoders.iter().find(|row| row.encoder == self.encoder)
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.encoder_row() {
            Some(row) if row.effort_of_bare_name == Some(self.effort) => f.write_str(row.name),
            Some(row) => write!(f, "{}-{}", row.name, self.effort),
            None => write!(f, "{}-{} ({:?})", self.codec.name(), self.effort, self.encoder),
        }
    }
}

impl FromStr for Compression {
    type Err = Error;

    /// Parses what `Display` writes. Every failure is [`crate::ErrorKind::InvalidArgument`].
    fn from_str(text: &str) -> Result<Self> {
        let (name, effort) = match text.split_once('-') {
            Some((name, effort)) => (name, Some(effort)),
            None => (text, None),
        };
        let Some((codec, row)) = encoders().find(|(_, row)| row.name == name) else {
            let names: Vec<&str> = encoders().map(|(_, row)| row.name).collect();
            let expected = format!("one of {}", names.join(", "));
            return Err(Error::invalid("compression").expected(expected, text));
        };
        let effort = match effort {
            Some(effort) => effort.parse::<i32>().map_err(|error| {
                Error::invalid(format!("effort of {name} in '{text}'")).because(error)
            })?,
            None => row.effort_of_bare_name.ok_or_else(|| {
                Error::invalid(format!("compression '{text}' needs an effort, as in '{text}-1'"))
            })?,
        };
        let compression = Compression { codec, effort, encoder: row.encoder };
        compression.validate()?;
        Ok(compression)
    }
}
