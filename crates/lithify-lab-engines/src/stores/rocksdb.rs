//! A column family of RocksDB.

use std::path::Path;

use lithify_advisor::{AdviseError, Result};
use lithify_lab::adapter::{EngineError, EngineResult};

use super::{EachRow, Sorted};
use crate::rocksdb::read_only::{Family, ReadOnly};

/// A database and one of its families.
pub(super) struct OpenRocksDb {
    database: ReadOnly,
    family: usize,
    /// Has the library's log; removed with this.
    _log: tempfile::TempDir,
}

pub(super) fn open(path: &Path) -> EngineResult<OpenRocksDb> {
    let log = tempfile::tempdir().map_err(|error| EngineError::fatal(error.to_string()))?;
    let database = crate::rocksdb::open_read_only(path, log.path())?;
    Ok(OpenRocksDb { database, family: 0, _log: log })
}

impl OpenRocksDb {
    /// The family of that name; the largest one without a name.
    pub(super) fn choose(mut self, path: &Path, name: Option<&str>) -> Result<OpenRocksDb> {
        let families = &self.database.families;
        let found = match name {
            Some(name) => families.iter().position(|family| family.name == name),
            None => {
                (0..families.len()).max_by_key(|at| (families[*at].file_bytes, families[*at].rows))
            }
        };
        self.family = found.ok_or_else(|| {
            let names: Vec<&str> = families.iter().map(|family| family.name.as_str()).collect();
            let (path, names) = (path.display(), names.join(", "));
            AdviseError::usage(format_args!("{path} has no such column family; there are: {names}"))
        })?;
        Ok(self)
    }

    pub(super) fn family(&self) -> &Family {
        &self.database.families[self.family]
    }
}

impl Sorted for OpenRocksDb {
    fn read(&self, from: &[u8], each: EachRow<'_>) -> EngineResult<()> {
        self.database.read(self.family, from, each)
    }

    fn last_key(&self) -> EngineResult<Vec<u8>> {
        self.database.last_key(self.family)
    }

    fn bytes_between(&self, from: &[u8], to: &[u8]) -> EngineResult<u64> {
        self.database.bytes_between(self.family, from, to)
    }
}
