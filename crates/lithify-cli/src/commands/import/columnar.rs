//! Rows of a Parquet or Arrow file.

use std::path::Path;

use lithify_advisor::AdviseError;
use lithify_advisor::input::{ColumnarContent, ContentError};

use super::{Bad, Line, Records, Row};

/// See the module.
pub struct ColumnarRows {
    content: ColumnarContent,
    file_bytes: u64,
}

impl ColumnarRows {
    /// Opens a file; nothing if it is of another kind.
    pub fn open(
        path: &Path,
        key: Option<&str>,
        value: Option<&str>,
        file_bytes: u64,
    ) -> Result<Option<Self>, AdviseError> {
        let content = ColumnarContent::open(path, key, value)?;
        Ok(content.map(|content| ColumnarRows { content, file_bytes }))
    }
}

impl Records for ColumnarRows {
    fn next(&mut self, row: &mut Row) -> Result<bool, Bad> {
        let taken = self.content.next(&mut row.key, &mut row.value);
        taken.map_err(|error| match error {
            ContentError::Row(number, what) => Bad::Row(number, what),
            ContentError::File(error) => Bad::Source(error.to_string()),
        })
    }

    /// Rows for lines, and of the file's bytes the part that its rows are of all.
    fn line(&self) -> Line {
        let (rows, rows_in_all) = self.content.progress();
        let bytes = u128::from(self.file_bytes) * u128::from(rows) / u128::from(rows_in_all.max(1));
        Line { first: rows, last: rows, bytes: bytes as u64 }
    }
}
