//! Compaction filters.

use crate::base::Level;
use crate::{Error, ErrorKind, Result};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A row that a compaction is about to write.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FilteredRow<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
    /// The level that it is written to.
    pub level: Level,
    /// In a family with a time to live: how many seconds ago it was written. In others: how many
    /// seconds ago the table was written that it comes from, which is less. Both times are whole
    /// seconds, rounded down: the age may be almost a second too high, so `age_s > limit` is never early.
    pub age_s: u64,
}

/// What becomes of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterDecision {
    /// It stays.
    Keep,
    /// It goes, as if it had been deleted.
    Remove,
    /// It has another value from now on. Its age stays.
    Change(Vec<u8>),
}

/// What a filter answers: any error will do.
type Answer = std::result::Result<FilterDecision, Box<dyn std::error::Error + Send + Sync>>;

type Decide = dyn Fn(&FilteredRow<'_>) -> Answer + Send + Sync;

/// Decides of rows while they are compacted. Given to a family by
/// [`crate::ColumnFamily::supply_compaction_filter`], for as long as the database is open.
///
/// A filter must give the same answer for the same row whenever it is asked. It sees a row when a
/// compaction comes by, not before, and perhaps never: reads show a row until then. It is not shown
/// what a snapshot sees that was there before the compaction began, nor merge operands that are not
/// folded yet.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// use lithify::{CfOptions, CompactionFilter, Db, FilterDecision, Options};
/// let db = Db::open(directory.path(), Options::default())?;
/// let rocks = db.column_family("rocks", CfOptions::default())?;
/// rocks.supply_compaction_filter(CompactionFilter::new("no sand", |row| {
///     Ok(if row.value == b"sand" { FilterDecision::Remove } else { FilterDecision::Keep })
/// }));
/// rocks.put("beach", "sand")?;
/// rocks.put("cliff", "chalk")?;
/// rocks.compact_range(..)?;
/// assert_eq!((rocks.get("beach")?, rocks.get("cliff")?.is_some()), (None, true));
/// # Ok::<(), lithify::Error>(())
/// ```
#[derive(Clone)]
pub struct CompactionFilter {
    name: Arc<str>,
    decide: Arc<Decide>,
}

impl CompactionFilter {
    /// A filter; the name is for messages. An error, or a panic, ends the compaction: its tables stay
    /// as they are, and it is tried again later.
    pub fn new(
        name: &str,
        decide: impl Fn(
            &FilteredRow<'_>,
        )
            -> std::result::Result<FilterDecision, Box<dyn std::error::Error + Send + Sync>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        CompactionFilter { name: name.into(), decide: Arc::new(decide) }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What becomes of a row, whose value may have so many bytes.
    ///
    /// # Errors
    /// [`ErrorKind::CompactionFilter`] if the filter fails, panics, or gives a value that is too long.
    pub(crate) fn decide(
        &self,
        row: &FilteredRow<'_>,
        value_bytes_max: usize,
    ) -> Result<FilterDecision> {
        let decided = catch_unwind(AssertUnwindSafe(|| (self.decide)(row)));
        match decided {
            Ok(Ok(FilterDecision::Change(value))) if value.len() > value_bytes_max => {
                let error = self.failed("gave a value that is too long to a key", row.key);
                Err(error.expected(format_args!("at most {value_bytes_max} bytes"), value.len()))
            }
            Ok(Ok(decision)) => Ok(decision),
            Ok(Err(error)) => Err(self.failed(&format!("failed ({error}) at a key"), row.key)),
            Err(_) => Err(self.failed("panicked at a key", row.key)),
        }
    }

    #[cold]
    fn failed(&self, what: &str, key: &[u8]) -> Error {
        let (name, key) = (&self.name, key.escape_ascii());
        let what = format!("the compaction filter {name:?} {what}, \"{key}\"");
        Error::new(ErrorKind::CompactionFilter, what)
    }
}

impl fmt::Debug for CompactionFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CompactionFilter({:?})", self.name)
    }
}
