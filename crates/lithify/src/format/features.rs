//! What a file needs of its reader, as bits.

use super::{Decoder, put_u32};
use crate::{Error, ErrorKind, Result};

/// Feature bits of a file, in three classes by what a program that does not know a bit may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Reads and writes.
    pub compatible: u32,
    /// Reads, and must not write.
    pub read_only_compatible: u32,
    /// Does nothing with the file.
    pub incompatible: u32,
}

impl Features {
    /// The bytes that [`Features::encode`] appends.
    pub const SIZE_BYTES: usize = 12;

    /// No features beyond the first version.
    pub const NONE: Features = Features { compatible: 0, read_only_compatible: 0, incompatible: 0 };

    /// Appends the three words.
    pub fn encode(self, target: &mut Vec<u8>) {
        put_u32(target, self.compatible);
        put_u32(target, self.read_only_compatible);
        put_u32(target, self.incompatible);
    }

    /// Reads the three words; any bits are fine.
    pub fn decode(decoder: &mut Decoder<'_>) -> Result<Self> {
        Ok(Features {
            compatible: decoder.u32()?,
            read_only_compatible: decoder.u32()?,
            incompatible: decoder.u32()?,
        })
    }

    /// [`ErrorKind::Unsupported`] if the file has an incompatible bit that is not among `known`;
    /// names the version that wrote the `what` and the newest one that this program knows.
    pub fn check_readable(
        self,
        known: Features,
        what: &str,
        written_by_version: u32,
        own_version: u32,
    ) -> Result<()> {
        if planted!(UnknownFeaturesAccepted) {
            return Ok(());
        }
        match self.incompatible & !known.incompatible {
            0 => Ok(()),
            unknown => Err(Error::new(
                ErrorKind::Unsupported,
                format!(
                    "{what} of format version {written_by_version} uses features that format \
                     version {own_version} does not know (bits {unknown:#x}); use a newer version"
                ),
            )),
        }
    }

    /// [`ErrorKind::ReadOnly`] if the file may be read but not written by a program that knows
    /// only `known`.
    pub fn check_writable(self, known: Features, what: &str) -> Result<()> {
        match self.read_only_compatible & !known.read_only_compatible {
            0 => Ok(()),
            unknown => Err(Error::new(
                ErrorKind::ReadOnly,
                format!("{what} has features that allow this version reading only ({unknown:#x})"),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unknown_bits_of_the_right_class_are_refused() {
        let known = Features { incompatible: 1, ..Features::NONE };
        let file = Features { compatible: 8, read_only_compatible: 4, incompatible: 1 };
        file.check_readable(known, "table", 3, 1).unwrap();
        assert_eq!(file.check_writable(known, "table").unwrap_err().kind(), ErrorKind::ReadOnly);
        let error = file.check_readable(Features::NONE, "table", 3, 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("version 3"), "{error}");
        assert!(error.to_string().contains("version 1"), "{error}");

        let mut bytes = Vec::new();
        file.encode(&mut bytes);
        assert_eq!(bytes.len(), Features::SIZE_BYTES);
        assert_eq!(Features::decode(&mut Decoder::new(&bytes)).unwrap(), file);
    }
}
