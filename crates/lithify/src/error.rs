//! The one error type of the engine.
//!
//! Owns: what failed, where (file and offset), what was expected and found, and the source.
//! [`ErrorKind`] says what the *caller* does about it; the text says the rest.
//! It does not decide anything: no retry, no logging.

use std::fmt;
use std::path::{Path, PathBuf};

/// The result of every fallible call of the engine.
pub type Result<T> = std::result::Result<T, Error>;

/// What the caller does about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The call is wrong: change the arguments or the options. Nothing was changed.
    InvalidArgument,
    /// A key, value or batch is over a documented limit. Nothing was changed.
    LimitExceeded,
    /// The path does not hold what was asked for (no database, no such column family).
    NotFound,
    /// Something with that name exists already.
    AlreadyExists,
    /// Stored bytes are not what was written: restore the file from a copy, or repair.
    Corruption,
    /// The file was written by a version with features that this one does not know: upgrade.
    Unsupported,
    /// The operating system refused or failed a call: see the source; free space, fix the disk.
    Io,
    /// The disk is full: free space; the database goes on without a restart.
    NoSpace,
    /// Another process has the database open.
    Locked,
    /// A row lock was not granted in time: roll back and retry the transaction.
    LockTimeout,
    /// Waiting for a row lock would have closed a circle of writers that wait for each other:
    /// roll back and retry the transaction.
    Deadlock,
    /// The row changed after the transaction's snapshot: roll back and retry.
    Conflict,
    /// The database or transaction is closed, or the column family was dropped: open it again.
    Closed,
    /// The database was opened read-only, or a feature allows reading only.
    ReadOnly,
    /// A failed sync left the state on disk unknown; nothing is written any more: reopen.
    Poisoned,
    /// What was to be read changed faster than it could be read: call again.
    TryAgain,
    /// The caller stopped it before its end; nothing of it is left.
    Cancelled,
    /// The merge operator of the column family is not there or refused the operands of a row: give it
    /// at opening, or repair the row by a put. Nothing was changed.
    Merge,
    /// A compaction filter failed: its compaction ended, and is tried again later. Nothing was changed.
    CompactionFilter,
}

impl ErrorKind {
    /// True when the same work may succeed if it is simply tried again: a plain write as it is, a
    /// transaction from its start.
    pub fn is_retryable(self) -> bool {
        use ErrorKind as K;
        matches!(self, K::LockTimeout | K::Deadlock | K::Conflict | K::TryAgain)
    }
}

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    what: String,
    path: Option<PathBuf>,
    offset: Option<u64>,
    expected_found: Option<(String, String)>,
    source: Option<std::sync::Arc<dyn std::error::Error + Send + Sync + 'static>>,
}

/// An error of the engine: kind, what, where, expected and found, source. Cheap to clone, so that
/// every waiter of a failed group commit gets the same one. `Debug` prints the text, too, so that a `main` that
/// returns an error shows it.
///
/// ```
/// use lithify::{Error, ErrorKind};
/// let error = Error::corruption("block checksum").at("7.sst", 4096).expected(1, 2);
/// assert_eq!(error.kind(), ErrorKind::Corruption);
/// assert_eq!(error.to_string(),
///     "corruption: block checksum, in 7.sst at offset 4096: expected 1, found 2");
/// assert_eq!(format!("{error:?}"), error.to_string());
/// ```
#[derive(Clone)]
pub struct Error(Box<Inner>);

impl Error {
    /// A new error of `kind`; `what` says what failed and what to do.
    #[cold]
    pub fn new(kind: ErrorKind, what: impl Into<String>) -> Self {
        Error(Box::new(Inner {
            kind,
            what: what.into(),
            path: None,
            offset: None,
            expected_found: None,
            source: None,
        }))
    }

    /// Stored bytes are damaged.
    #[cold]
    pub fn corruption(what: impl Into<String>) -> Self {
        Error::new(ErrorKind::Corruption, what)
    }

    /// The call or an option is wrong.
    #[cold]
    pub fn invalid(what: impl Into<String>) -> Self {
        Error::new(ErrorKind::InvalidArgument, what)
    }

    /// A directory where `what` should be has somebody else's files, one of them `name`.
    pub(crate) fn other_files(what: &str, directory: &Path, name: &Path) -> Self {
        let name = name.file_name().unwrap_or_default().to_string_lossy();
        Error::invalid(format!(
            "there is no {what} here but other files, such as {name}: name a new or an empty directory"
        ))
        .in_file(directory)
    }

    /// A documented limit was exceeded.
    #[cold]
    pub fn limit(what: impl Into<String>) -> Self {
        Error::new(ErrorKind::LimitExceeded, what)
    }

    /// An operating-system error while doing `what` to `path`. The kind follows the error:
    /// a missing file is [`ErrorKind::NotFound`], a full disk [`ErrorKind::NoSpace`], a read-only
    /// file system or missing permission [`ErrorKind::ReadOnly`], all else [`ErrorKind::Io`].
    #[cold]
    pub fn io(what: impl Into<String>, path: impl AsRef<Path>, source: std::io::Error) -> Self {
        use std::io::ErrorKind as Os;
        let kind = match source.kind() {
            Os::NotFound => ErrorKind::NotFound,
            Os::AlreadyExists => ErrorKind::AlreadyExists,
            Os::StorageFull | Os::QuotaExceeded => ErrorKind::NoSpace,
            Os::ReadOnlyFilesystem | Os::PermissionDenied => ErrorKind::ReadOnly,
            _ => ErrorKind::Io,
        };
        let mut error = Error::new(kind, what).in_file(path);
        error.0.source = Some(std::sync::Arc::new(source));
        error
    }

    /// Names the file, unless one is named already (the innermost place knows best).
    #[must_use]
    pub fn in_file(mut self, path: impl AsRef<Path>) -> Self {
        self.0.path.get_or_insert_with(|| path.as_ref().to_path_buf());
        self
    }

    /// Names the file and the byte offset, unless a file is named already.
    #[must_use]
    pub fn at(mut self, path: impl AsRef<Path>, offset: u64) -> Self {
        if self.0.path.is_none() {
            self.0.path = Some(path.as_ref().to_path_buf());
            self.0.offset.get_or_insert(offset);
        }
        self
    }

    /// Names the byte offset in the file, unless it is named already.
    #[must_use]
    pub fn at_offset(mut self, offset: u64) -> Self {
        self.0.offset.get_or_insert(offset);
        self
    }

    /// Says what was expected and what was found.
    #[must_use]
    pub fn expected(mut self, expected: impl fmt::Display, found: impl fmt::Display) -> Self {
        self.0.expected_found = Some((expected.to_string(), found.to_string()));
        self
    }

    /// Adds the error that caused this one.
    #[must_use]
    pub fn because(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(std::sync::Arc::new(source));
        self
    }

    /// Another error that this one caused, at the same place.
    #[cold]
    pub(crate) fn causing(self, kind: ErrorKind, what: impl Into<String>) -> Self {
        let mut outer = Error::new(kind, what);
        (outer.0.path, outer.0.offset) = (self.0.path.clone(), self.0.offset);
        outer.because(self)
    }

    /// What the caller does about it.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The file it happened in, if it was one.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// The byte offset in that file, if known.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.0.kind {
            ErrorKind::InvalidArgument => "invalid argument",
            ErrorKind::LimitExceeded => "limit exceeded",
            ErrorKind::NotFound => "not found",
            ErrorKind::AlreadyExists => "already exists",
            ErrorKind::Corruption => "corruption",
            ErrorKind::Unsupported => "unsupported",
            ErrorKind::Io => "input/output error",
            ErrorKind::NoSpace => "no space left",
            ErrorKind::Locked => "database is locked",
            ErrorKind::LockTimeout => "lock timeout",
            ErrorKind::Deadlock => "deadlock",
            ErrorKind::Conflict => "conflict",
            ErrorKind::Closed => "closed",
            ErrorKind::ReadOnly => "read-only",
            ErrorKind::Poisoned => "poisoned",
            ErrorKind::TryAgain => "try again",
            ErrorKind::Cancelled => "cancelled",
            ErrorKind::Merge => "merge",
            ErrorKind::CompactionFilter => "compaction filter",
        };
        write!(f, "{kind}: {}", self.0.what)?;
        if let Some(path) = &self.0.path {
            write!(f, ", in {}", path.display())?;
        }
        if let Some(offset) = self.0.offset {
            write!(f, " at offset {offset}")?;
        }
        if let Some((expected, found)) = &self.0.expected_found {
            write!(f, ": expected {expected}, found {found}")?;
        }
        if let Some(source) = &self.0.source {
            write!(f, ": {source}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|s| &**s as &(dyn std::error::Error + 'static))
    }
}
