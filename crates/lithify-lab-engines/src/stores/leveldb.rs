//! A database of LevelDB, opened in a directory of its own.

use std::ops::ControlFlow;
use std::path::Path;

use lithify_lab::adapter::{EngineError, EngineResult};
use lithify_lab::engines::stand_in::{Becomes, stand_in};

use super::{EachRow, Sorted};
use crate::leveldb::{Database, open_as_it_is};

/// Rows that tell how long rows are stored.
const TRIED_ROWS: u64 = 20_000;

/// A database, and the directory of links to it.
pub(super) struct OpenLevelDb {
    database: Database,
    /// Removed with this, and after the database.
    _links: tempfile::TempDir,
}

pub(super) fn open(path: &Path) -> EngineResult<OpenLevelDb> {
    let links = stand_in(path, &becomes).map_err(|error| EngineError::fatal(error.to_string()))?;
    let database = open_as_it_is(links.path())?;
    Ok(OpenLevelDb { database, _links: links })
}

/// Tables never change.
fn becomes(path: &Path) -> Becomes {
    let is_table = path.extension().is_some_and(|kind| kind == "ldb" || kind == "sst");
    let name = path.file_name().and_then(|name| name.to_str());
    match name {
        _ if is_table => Becomes::Link,
        Some("LOCK" | "LOG" | "LOG.old") => Becomes::Nothing,
        _ => Becomes::Copy,
    }
}

impl OpenLevelDb {
    /// About how many rows there are: stored bytes, over those of the first rows.
    pub(super) fn rows(&self) -> EngineResult<u64> {
        let (mut rows, mut first, mut last) = (0, Vec::new(), Vec::new());
        self.read(&[], &mut |key, _| {
            if rows == 0 {
                first = key.to_vec();
            }
            rows += 1;
            last = key.to_vec();
            if rows < TRIED_ROWS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        if rows < TRIED_ROWS {
            return Ok(rows);
        }
        let all = self.database.bytes_between(&first, &self.last_key()?);
        let tried = self.database.bytes_between(&first, &last).max(1);
        Ok((rows as f64 * (all as f64 / tried as f64).max(1.0)) as u64)
    }
}

impl Sorted for OpenLevelDb {
    fn read(&self, from: &[u8], each: EachRow<'_>) -> EngineResult<()> {
        let mut rows = self.database.iterator()?;
        rows.seek(from);
        while let Some((key, value)) = rows.row() {
            if each(key, value).is_break() {
                return Ok(());
            }
            rows.advance();
        }
        rows.check()
    }

    fn last_key(&self) -> EngineResult<Vec<u8>> {
        let mut rows = self.database.iterator()?;
        rows.seek_to_last();
        Ok(rows.row().map_or_else(Vec::new, |(key, _)| key.to_vec()))
    }

    fn bytes_between(&self, from: &[u8], to: &[u8]) -> EngineResult<u64> {
        Ok(self.database.bytes_between(from, to))
    }
}
