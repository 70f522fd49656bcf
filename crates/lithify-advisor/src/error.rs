//! What goes wrong, as one sentence that says where and what to do.

use std::fmt;
use std::path::Path;

use lithify_report::printable;

/// Why there is no advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdviseError {
    is_usage: bool,
    text: String,
}

/// What the functions of this crate give.
pub type Result<T> = std::result::Result<T, AdviseError>;

impl AdviseError {
    /// The request is wrong: a path, a name of a column, a target.
    pub fn usage(text: impl ToString) -> Self {
        AdviseError { is_usage: true, text: text.to_string() }
    }

    /// The data cannot be read, or are not what they seem.
    pub fn data(text: impl ToString) -> Self {
        AdviseError { is_usage: false, text: text.to_string() }
    }

    /// Something is wrong in a line of a file, counted from 1.
    pub fn at_line(path: &Path, line: u64, what: impl fmt::Display) -> Self {
        AdviseError::data(format_args!("{}:{line}: {what}", path.display()))
    }

    /// A file cannot be opened or read. One that is not there was named wrongly.
    pub fn of_file(path: &Path, error: &std::io::Error) -> Self {
        let text = format!("{}: {error}", path.display());
        AdviseError { is_usage: error.kind() == std::io::ErrorKind::NotFound, text }
    }

    /// True if the request was wrong, false if the data were.
    pub fn is_usage(&self) -> bool {
        self.is_usage
    }
}

impl fmt::Display for AdviseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // It quotes names and data of a user.
        f.write_str(&printable(&self.text))
    }
}

impl std::error::Error for AdviseError {}

impl From<lithify::Error> for AdviseError {
    fn from(error: lithify::Error) -> Self {
        use lithify::ErrorKind::{InvalidArgument, NotFound};
        let is_usage = matches!(error.kind(), InvalidArgument | NotFound);
        AdviseError { is_usage, text: error.to_string() }
    }
}
