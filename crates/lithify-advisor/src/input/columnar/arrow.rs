//! Batches of Arrow files (IPC with a footer, also called Feather 2).

use std::fs::File;
use std::io::BufReader;
use std::os::unix::fs::FileExt;
use std::path::Path;

use arrow_ipc::reader::{FileReader, read_footer_length};
use arrow_ipc::{Block, root_as_footer, root_as_message};
use arrow_schema::SchemaRef;

use super::{Batches, wrong};
use crate::error::{AdviseError, Result};

/// What ends a file: the length of the footer and a mark.
const TRAILER_BYTES: u64 = 10;
/// What is in front of a batch's metadata: a mark and its length.
const PREFIX_BYTES: usize = 8;

fn open(path: &Path) -> Result<FileReader<BufReader<File>>> {
    let file = File::open(path).map_err(|error| AdviseError::of_file(path, &error))?;
    FileReader::try_new_buffered(file, None).map_err(|error| wrong(path, error))
}

/// The rows of each batch are in its metadata: nothing else of it is read.
pub(super) fn inspect(path: &Path) -> Result<(SchemaRef, Vec<u64>)> {
    let schema = open(path)?.schema();
    let file = File::open(path).map_err(|error| AdviseError::of_file(path, &error))?;
    let size = file.metadata().map_err(|error| AdviseError::of_file(path, &error))?.len();
    let read = |offset: u64, length: usize| -> Result<Vec<u8>> {
        let is_inside = offset.checked_add(length as u64).is_some_and(|end| end <= size);
        if !is_inside {
            return Err(wrong(path, "its footer points behind its end"));
        }
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, offset)
            .map_err(|error| AdviseError::of_file(path, &error))?;
        Ok(bytes)
    };
    let end = size.saturating_sub(TRAILER_BYTES);
    let trailer: [u8; TRAILER_BYTES as usize] =
        read(end, TRAILER_BYTES as usize)?.try_into().unwrap_or_default();
    let length = read_footer_length(trailer).map_err(|error| wrong(path, error))?;
    let footer = read(end.saturating_sub(length as u64), length)?;
    let footer = root_as_footer(&footer).map_err(|error| wrong(path, error))?;
    let rows = |block: &Block| -> Result<u64> {
        let offset = u64::try_from(block.offset()).unwrap_or(u64::MAX);
        let length = usize::try_from(block.metaDataLength()).unwrap_or(0);
        let bytes = read(offset, length)?;
        let message = root_as_message(bytes.get(PREFIX_BYTES..).unwrap_or_default())
            .map_err(|error| wrong(path, error))?;
        let batch = message.header_as_record_batch();
        let batch = batch.ok_or_else(|| wrong(path, "a block is no batch of rows"))?;
        Ok(u64::try_from(batch.length()).unwrap_or(0))
    };
    let blocks = footer.recordBatches().unwrap_or_default();
    Ok((schema, blocks.iter().map(rows).collect::<Result<_>>()?))
}

pub(super) fn read(path: &Path, group: usize, from: u64, each: Batches<'_>) -> Result<()> {
    let mut reader = open(path)?;
    reader.set_index(group).map_err(|error| wrong(path, error))?;
    if let Some(batch) = reader.next() {
        let batch = batch.map_err(|error| wrong(path, error))?;
        let from = usize::try_from(from).unwrap_or(usize::MAX).min(batch.num_rows());
        // Whether more is wanted is known to whoever reads groups.
        let _ = each(&batch.slice(from, batch.num_rows() - from))?;
    }
    Ok(())
}
