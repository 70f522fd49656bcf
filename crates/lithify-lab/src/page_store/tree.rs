//! The same pages as rows of a column family: what an LSM tree makes of the same writes.

use std::path::Path;

use lithify::{CfOptions, ColumnFamily, Db, Durability, Options};

use super::{PAGE_BYTES, Pages};
use crate::adapter::codec::Codec;
use crate::run::RunError;

/// Name of the column family.
const FAMILY: &str = "pages";

/// Pages in a database of Lithify.
pub struct PageTree {
    db: Db,
    pages: ColumnFamily,
}

fn failed(error: lithify::Error) -> RunError {
    RunError::new(error.to_string())
}

impl PageTree {
    /// A database without pages, with one codec for all levels.
    ///
    /// # Errors
    /// The engine's.
    pub fn open(directory: &Path, codec: Codec) -> Result<PageTree, RunError> {
        let options = Options { durability: Durability::Buffered, ..Options::default() };
        let db = Db::open(directory.join("tree"), options).map_err(failed)?;
        let compression = codec.to_string().parse().map_err(failed)?;
        let family =
            CfOptions { compression, block_size_bytes: PAGE_BYTES, ..CfOptions::default() };
        let pages = db.column_family(FAMILY, family).map_err(failed)?;
        Ok(PageTree { db, pages })
    }
}

impl Pages for PageTree {
    fn write(&mut self, number: u64, page: &[u8]) -> Result<(), RunError> {
        self.pages.put(number.to_be_bytes(), page).map_err(failed)
    }

    fn sync(&mut self) -> Result<(), RunError> {
        self.db.sync().map_err(failed)
    }

    fn read(&mut self, number: u64, page: &mut Vec<u8>) -> Result<(), RunError> {
        page.clear();
        let found = self.pages.get(number.to_be_bytes()).map_err(failed)?;
        found.into_iter().for_each(|value| page.extend_from_slice(&value));
        Ok(())
    }

    fn settle(&mut self) -> Result<(), RunError> {
        self.db.flush().and_then(|()| self.db.wait_for_compaction()).map_err(failed)
    }

    fn remove(self: Box<Self>) -> Result<(), RunError> {
        let PageTree { db, pages } = *self;
        drop(pages);
        db.drop_column_family(FAMILY).map_err(failed)?;
        db.close().map_err(failed)
    }
}
