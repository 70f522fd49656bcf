//! Groups of rows of Parquet files.

use std::fs::File;
use std::path::Path;

use arrow_schema::SchemaRef;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::basic::Compression;
use parquet::file::metadata::ColumnChunkMetaData;

use super::{BATCH_ROWS, Batches, wrong};
use crate::error::{AdviseError, Result};

/// Types are those of Parquet: the ones of Arrow that some writers add can be unreadable, and say nothing
/// more of how rows are laid out.
fn open(path: &Path) -> Result<ParquetRecordBatchReaderBuilder<File>> {
    open_with(path, ArrowReaderOptions::new().with_skip_arrow_metadata(true))
}

/// Types are those of Arrow if the writer added them and they can be read: a number of Parquet may be a
/// time of Arrow.
pub(super) fn open_for_content(path: &Path) -> Result<ParquetRecordBatchReaderBuilder<File>> {
    open_with(path, ArrowReaderOptions::new()).or_else(|_| open(path))
}

fn open_with(
    path: &Path,
    options: ArrowReaderOptions,
) -> Result<ParquetRecordBatchReaderBuilder<File>> {
    let file = File::open(path).map_err(|error| AdviseError::of_file(path, &error))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options)
        .map_err(|error| wrong(path, error))?;
    let mut columns = builder
        .metadata()
        .row_groups()
        .iter()
        .flat_map(|group| group.columns())
        .map(ColumnChunkMetaData::compression);
    match columns.any(|compression| matches!(compression, Compression::BROTLI(_))) {
        true => Err(wrong(
            path,
            "is compressed with Brotli, which is not read: write it again with zstd",
        )),
        false => Ok(builder),
    }
}

pub(super) fn inspect(path: &Path) -> Result<(SchemaRef, Vec<u64>)> {
    let builder = open(path)?;
    let rows = |group: &parquet::file::metadata::RowGroupMetaData| {
        u64::try_from(group.num_rows()).unwrap_or(0)
    };
    let groups = builder.metadata().row_groups().iter().map(rows).collect();
    Ok((builder.schema().clone(), groups))
}

pub(super) fn read(path: &Path, group: usize, from: u64, each: Batches<'_>) -> Result<()> {
    let builder = open(path)?
        .with_row_groups(vec![group])
        .with_offset(usize::try_from(from).unwrap_or(usize::MAX))
        .with_batch_size(BATCH_ROWS);
    for batch in builder.build().map_err(|error| wrong(path, error))? {
        if each(&batch.map_err(|error| wrong(path, error))?)?.is_break() {
            break;
        }
    }
    Ok(())
}
