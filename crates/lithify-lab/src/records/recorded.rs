//! A record of any kind, asked without knowing its kind.

use std::any::Any;
use std::fmt;

use super::AnyRecord;
use crate::comparison::results::ResultSet;
use crate::kind::Kind;
use crate::loop_experiment::digest::Digest;
use crate::loop_experiment::{compared, digest_page};
use crate::run::RunError;
use lithify_report::Report;

/// What a record is asked, whatever its kind; see [`super::kinds`].
pub(super) trait Recorded {
    fn kind(&self) -> Option<&'static str>;
    fn started_unix_s(&self) -> Option<u64>;
    fn csv(&self) -> Option<String>;
    fn report(&self) -> Report;
    fn results(&self) -> ResultSet;
    fn command(&self) -> Option<String>;
    fn json(&self) -> Result<String, RunError>;
    fn as_any(&self) -> &dyn Any;
}

/// A record of the kind `K`.
struct Of<K: Kind>(K::Record);

impl<K: Kind> Recorded for Of<K> {
    fn kind(&self) -> Option<&'static str> {
        Some(K::NAME)
    }

    fn started_unix_s(&self) -> Option<u64> {
        K::started_unix_s(&self.0)
    }

    fn csv(&self) -> Option<String> {
        K::csv(&self.0)
    }

    fn report(&self) -> Report {
        K::report(&self.0)
    }

    fn results(&self) -> ResultSet {
        K::results(&self.0)
    }

    fn command(&self) -> Option<String> {
        K::command(&self.0).map(|line| line.0)
    }

    fn json(&self) -> Result<String, RunError> {
        K::json(&self.0)
    }

    fn as_any(&self) -> &dyn Any {
        &self.0
    }
}

/// Figures without the rest of their record, which is not to be had again.
impl Recorded for Digest {
    fn kind(&self) -> Option<&'static str> {
        None
    }

    fn started_unix_s(&self) -> Option<u64> {
        None
    }

    fn csv(&self) -> Option<String> {
        None
    }

    fn report(&self) -> Report {
        digest_page::report(self)
    }

    fn results(&self) -> ResultSet {
        compared::of_digest(self)
    }

    fn command(&self) -> Option<String> {
        None
    }

    fn json(&self) -> Result<String, RunError> {
        Err(RunError::new("figures without the rest of their record are kept as they are"))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl AnyRecord {
    /// A record of the kind `K`.
    pub fn of<K: Kind>(record: K::Record) -> AnyRecord {
        AnyRecord(Box::new(Of::<K>(record)))
    }

    pub(super) fn of_digest(digest: Digest) -> AnyRecord {
        AnyRecord(Box::new(digest))
    }

    /// The name of its kind; nothing for figures without the rest of their record.
    pub fn kind(&self) -> Option<&'static str> {
        self.0.kind()
    }

    /// The record, when it is such a one.
    pub fn get<R: Any>(&self) -> Option<&R> {
        self.0.as_any().downcast_ref()
    }
}

impl fmt::Debug for AnyRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AnyRecord").field(&self.kind()).finish()
    }
}
