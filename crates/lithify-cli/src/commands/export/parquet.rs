//! Rows as a Parquet file, with the columns `key` and `value` of bytes.
//!
//! Rows are gathered, and written as a row group when there are enough: memory does not grow with their
//! number. Before [`RowWriter::end`] the file has no footer, and no reader takes it for whole.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::{Counted, RowWriter};

/// A row group ends at so many bytes of rows, or at so many rows: of short ones the bookkeeping takes more
/// than the bytes.
const GROUP_BYTES: usize = 32 << 20;
const GROUP_ROWS: usize = 1 << 18;

const SCHEMA: &str = "message rows { REQUIRED BINARY key; REQUIRED BINARY value; }";

/// See the module.
pub struct ParquetRows<W: Write + Send> {
    writer: SerializedFileWriter<Counted<W>>,
    keys: Vec<ByteArray>,
    values: Vec<ByteArray>,
    waiting_bytes: usize,
}

impl<W: Write + Send> ParquetRows<W> {
    /// Begins a file.
    pub fn begin(output: Counted<W>) -> io::Result<Self> {
        let schema = parse_message_type(SCHEMA).map_err(error_of)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            // No key comes twice.
            .set_column_dictionary_enabled("key".into(), false)
            .build();
        let writer = SerializedFileWriter::new(output, Arc::new(schema), Arc::new(properties));
        let writer = writer.map_err(error_of)?;
        Ok(ParquetRows { writer, keys: Vec::new(), values: Vec::new(), waiting_bytes: 0 })
    }

    fn write_group(&mut self) -> io::Result<()> {
        if self.keys.is_empty() {
            return Ok(());
        }
        let mut group = self.writer.next_row_group().map_err(error_of)?;
        for rows in [&mut self.keys, &mut self.values] {
            let Some(mut column) = group.next_column().map_err(error_of)? else { break };
            let rows = std::mem::take(rows);
            column.typed::<ByteArrayType>().write_batch(&rows, None, None).map_err(error_of)?;
            column.close().map_err(error_of)?;
        }
        group.close().map_err(error_of)?;
        self.waiting_bytes = 0;
        Ok(())
    }
}

impl<W: Write + Send> RowWriter for ParquetRows<W> {
    fn row(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.keys.push(key.to_vec().into());
        self.values.push(value.to_vec().into());
        self.waiting_bytes += key.len() + value.len();
        match self.waiting_bytes >= GROUP_BYTES || self.keys.len() >= GROUP_ROWS {
            true => self.write_group(),
            false => Ok(()),
        }
    }

    fn bytes(&self) -> u64 {
        self.writer.inner().bytes
    }

    fn end(&mut self) -> io::Result<()> {
        self.write_group()?;
        self.writer.finish().map_err(error_of)?;
        self.writer.inner_mut().flush()
    }
}

/// What the output refused is the error that it gave: a reader that has left is told by it.
fn error_of(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(cause) => io::Error::other(cause),
        },
        error => io::Error::other(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever reads has left.
    struct Left;

    impl Write for Left {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_has_left_is_told() {
        let ended = ParquetRows::begin(Counted { output: Left, bytes: 0 }).and_then(|mut rows| {
            rows.row(b"basalt", b"igneous")?;
            rows.end()
        });
        assert_eq!(ended.expect_err("nobody reads").kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn rows_wait_until_there_are_enough() {
        let mut file = Vec::new();
        let mut rows = ParquetRows::begin(Counted { output: &mut file, bytes: 0 }).expect("begins");
        for number in 0..GROUP_ROWS + 1 {
            rows.row(&(number as u32).to_be_bytes(), b"").expect("is taken");
            assert!(rows.keys.len() < GROUP_ROWS);
        }
        assert_eq!(rows.keys.len(), 1);
        rows.row(b"large", &vec![7; GROUP_BYTES]).expect("is taken");
        assert!(rows.keys.is_empty() && rows.waiting_bytes == 0);
        assert_eq!(rows.writer.flushed_row_groups().len(), 2);
        rows.end().expect("ends");
    }
}
