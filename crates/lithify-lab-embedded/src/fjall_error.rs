//! What an error of fjall says to a user. The library prints the inside of its types, and names no file.

use std::borrow::Cow;

use ::fjall::{Error, LsmError};

/// What helps against damage: the library has no repair.
const DAMAGED: &str = "take the database from a copy, because fjall has no repair";

/// What failed, and what to do about it, in one line without the place.
pub(crate) fn said(error: &Error) -> String {
    let (what, to_do): (Cow<'_, str>, &str) = match error {
        Error::Io(error) | Error::Storage(LsmError::Io(error)) => return error.to_string(),
        Error::Storage(LsmError::ChecksumMismatch { .. }) => {
            ("the checksum of a block is wrong".into(), DAMAGED)
        }
        Error::Storage(LsmError::Unrecoverable) | Error::Unrecoverable => {
            ("files are missing or damaged".into(), DAMAGED)
        }
        Error::JournalRecovery(_) | Error::InvalidTrailer => {
            ("a journal is damaged".into(), DAMAGED)
        }
        Error::Decompress(codec) | Error::Storage(LsmError::Decompress(codec)) => {
            (format!("a block cannot be decompressed with {codec}").into(), DAMAGED)
        }
        Error::InvalidTag((what, tag)) | Error::Storage(LsmError::InvalidTag((what, tag))) => {
            (format!("a file is damaged: {tag} is no {what}").into(), DAMAGED)
        }
        Error::Storage(LsmError::InvalidHeader(what)) => {
            (format!("a file is damaged: the header of {what}").into(), DAMAGED)
        }
        Error::Storage(LsmError::InvalidTrailer | LsmError::Utf8(_)) => {
            ("a file is damaged".into(), DAMAGED)
        }
        Error::InvalidVersion(_) | Error::Storage(LsmError::InvalidVersion(_)) => {
            ("a file has another format".into(), "open the database with the fjall that wrote it")
        }
        Error::Locked => ("the database is open elsewhere".into(), "close it first"),
        Error::Poisoned => ("an earlier write failed".into(), "check the disk, and open it anew"),
        Error::KeyspaceDeleted => ("the keyspace is deleted".into(), "choose another one"),
        // The library may get errors that this does not know.
        other => (format!("{other:?}").into(), "ask its authors"),
    };
    format!("{what}; {to_do}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_error_shows_the_inside_of_a_type() {
        let io = || std::io::Error::other("the disk is full");
        for error in [
            Error::Io(io()),
            Error::Storage(LsmError::Io(io())),
            Error::Storage(LsmError::Unrecoverable),
            Error::Storage(LsmError::InvalidTag(("ValueType", 9))),
            Error::Storage(LsmError::InvalidHeader("Block")),
            Error::Storage(LsmError::InvalidTrailer),
            Error::Storage(LsmError::InvalidVersion(9)),
            Error::InvalidVersion(None),
            Error::InvalidTrailer,
            Error::InvalidTag(("CompressionType", 7)),
            Error::Poisoned,
            Error::KeyspaceDeleted,
            Error::Locked,
            Error::Unrecoverable,
        ] {
            let said = said(&error);
            let is_inside = said.contains("Error") || said.contains(['(', '{']);
            assert!(!is_inside && !said.contains('\n'), "{said}");
        }
        assert_eq!(said(&Error::Io(io())), "the disk is full");
        assert_eq!(said(&Error::Locked), "the database is open elsewhere; close it first");
    }
}
