//! Failures as LevelDB tells them: a class in front of the text, which callers match on.

use lithify::{Error, ErrorKind};
use std::fmt;

/// The classes of LevelDB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A file or directory is not there.
    NotFound,
    /// Stored bytes are not what was written.
    Corruption,
    /// Not to be had.
    NotSupported,
    /// The call or the options are wrong.
    InvalidArgument,
    /// The system refused, or somebody else has it.
    Io,
}

/// A failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    class: Class,
    text: String,
}

impl Status {
    /// A failure of `class`; `text` says what failed, where, and what to do.
    #[cold]
    pub fn new(class: Class, text: impl Into<String>) -> Self {
        Status { class, text: text.into() }
    }

    /// The call or the options are wrong.
    #[cold]
    pub fn invalid(text: impl Into<String>) -> Self {
        Status::new(Class::InvalidArgument, text)
    }

    /// The system refused, or somebody else has it.
    #[cold]
    pub fn io(text: impl Into<String>) -> Self {
        Status::new(Class::Io, text)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = match self.class {
            Class::NotFound => "NotFound",
            Class::Corruption => "Corruption",
            Class::NotSupported => "Not implemented",
            Class::InvalidArgument => "Invalid argument",
            Class::Io => "IO error",
        };
        write!(f, "{class}: {}", self.text)
    }
}

fn class_of(kind: ErrorKind) -> Class {
    use ErrorKind as K;
    match kind {
        K::Corruption => Class::Corruption,
        K::Unsupported => Class::NotSupported,
        K::InvalidArgument | K::LimitExceeded | K::AlreadyExists => Class::InvalidArgument,
        _ => Class::Io,
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        // The engine's own class stands in front of its text.
        let text = text.split_once(": ").map_or(&*text, |(_, text)| text);
        Status::new(class_of(error.kind()), text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_stands_in_front_once() {
        let error = Error::corruption("block checksum").at("7.sst", 4096);
        let status = Status::from(error);
        assert_eq!(status.to_string(), "Corruption: block checksum, in 7.sst at offset 4096");
        let text = |kind| Status::from(Error::new(kind, "x")).to_string();
        assert_eq!(text(ErrorKind::Unsupported), "Not implemented: x");
        assert_eq!(text(ErrorKind::LimitExceeded), "Invalid argument: x");
        for kind in [ErrorKind::NoSpace, ErrorKind::Closed, ErrorKind::Poisoned, ErrorKind::Io] {
            assert_eq!(text(kind), "IO error: x");
        }
    }
}
