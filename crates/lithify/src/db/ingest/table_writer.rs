//! Table files outside of any database, to be ingested later.

use crate::base::{MemoryBudget, Trailer, ValueKind};
use crate::codec::{ContextPool, Dictionary};
use crate::compaction::{Evidence, TablePlace};
use crate::db::LEVEL_COUNT;
use crate::db::ingest::check_row;
use crate::db::jobs::background::table_options;
use crate::fs::{File, OpenMode, Origin, World};
use crate::options::CfOptions;
use crate::retention::{stamped, write_time};
use crate::stats::WorkMeter;
use crate::table::{TableBuilder, TableOptions, WRITE_BYTES};
use crate::{Error, Result};
use std::borrow::Cow;
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Written pages go to the disk in strides of this size, so that the sync at the end is short.
const WRITE_BACK_STRIDE_BYTES: u64 = 1 << 20;

/// What the codec contexts of one writer may take.
const CONTEXT_BYTES: usize = 64 << 20;

/// A finished table file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenTable {
    /// Where it is.
    pub path: PathBuf,
    /// Its length in bytes.
    pub size_bytes: u64,
    /// Rows, deletes among them.
    pub rows: u64,
}

/// Writes rows in ascending key order to a table file of its own, outside of any database, for
/// [`crate::ColumnFamily::ingest_tables`]. Any number of them may work at once, in any process, on
/// any machine. A writer that is dropped before [`TableWriter::finish`] removes its file.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// use lithify::{CfOptions, Db, Options, TableTransfer, TableWriter};
/// let path = directory.path().join("rocks.table");
/// let mut writer = TableWriter::create(&path, &CfOptions::default())?;
/// writer.put(b"basalt", b"igneous")?;
/// writer.put(b"chalk", b"sedimentary")?;
/// writer.finish()?;
///
/// let db = Db::open(directory.path().join("db"), Options::default())?;
/// let rocks = db.column_family("rocks", CfOptions::default())?;
/// rocks.ingest_tables(&[&path], TableTransfer::Link)?;
/// assert_eq!(rocks.get(b"chalk")?.as_deref(), Some(&b"sedimentary"[..]));
/// # Ok::<(), lithify::Error>(())
/// ```
pub struct TableWriter {
    world: World,
    path: PathBuf,
    file: Arc<dyn File>,
    pool: Arc<ContextPool>,
    builder: TableBuilder,
    meter: WorkMeter,
    offset: u64,
    written_back_through: u64,
    /// Whether values are stored with the times of their writing.
    has_write_times: bool,
    is_finished: bool,
    /// A child of a fork leaves the file to its parent.
    origin: Origin,
}

impl TableWriter {
    /// Makes a new file for rows that are to lie in a column family with these options; the codec
    /// is that of its last level. With a time to live, rows are as old as the calls that add them.
    ///
    /// # Errors
    /// [`crate::ErrorKind::AlreadyExists`] if there is such a file; options out of range; what the
    /// disk refuses.
    pub fn create(path: impl AsRef<Path>, options: &CfOptions) -> Result<TableWriter> {
        TableWriter::create_in(path, options, World::system())
    }

    /// [`TableWriter::create`] in a world of the caller's.
    ///
    /// # Errors
    /// As [`TableWriter::create`].
    pub fn create_in(
        path: impl AsRef<Path>,
        options: &CfOptions,
        world: World,
    ) -> Result<TableWriter> {
        options.validate()?;
        let path = world.files.absolute(path.as_ref())?;
        let pool = ContextPool::new(MemoryBudget::new(CONTEXT_BYTES));
        let place = TablePlace { family: None, level: LEVEL_COUNT - 1, level_count: LEVEL_COUNT };
        let format = options.formats().decide(&place, &Evidence::default());
        let compressor = pool.compressor(format.compression)?;
        let table_id = world.environment.random_u128().to_le_bytes();
        let table = TableOptions {
            block_size_bytes: format.block_size_bytes,
            ..table_options(options, place.level, None)
        };
        let file = world.files.open(&path, OpenMode::CreateNew)?;
        Ok(TableWriter {
            world,
            path,
            file,
            pool,
            builder: TableBuilder::new(table, table_id, compressor),
            meter: WorkMeter::default(),
            offset: 0,
            written_back_through: 0,
            has_write_times: options.time_to_live_s > 0,
            is_finished: false,
            origin: Origin::here(),
        })
    }

    /// Has the table be compressed with a dictionary of this content, of which it gets a copy. To be
    /// called before the first row. A writer has no other dictionaries, however large its table.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidArgument`] if there are rows, if the content has not 8 bytes to
    /// 1 MiB, or if the codec takes no dictionary: `lz4` and `zstd` do.
    pub fn use_dictionary(&mut self, content: &[u8]) -> Result<()> {
        if !self.builder.is_empty() {
            return Err(Error::invalid("a dictionary comes before the first row"));
        }
        self.builder.use_dictionary(self.pool.hold(&Dictionary::new(content)?))
    }

    /// Adds a row behind all others.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidArgument`] for a key that does not sort behind the last one,
    /// naming both; [`crate::ErrorKind::LimitExceeded`] for a key over 65,535 bytes or a value over
    /// 64 MiB. The writer is as it was then. What the disk refuses.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.add(ValueKind::Put, key.as_ref(), value.as_ref())
    }

    /// Adds the removal of a key behind all other rows.
    ///
    /// # Errors
    /// As [`TableWriter::put`].
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.add(ValueKind::Delete, key.as_ref(), &[])
    }

    /// Rows added so far, deletes among them.
    pub fn rows(&self) -> u64 {
        self.builder.entries()
    }

    /// About how long the file would be if it ended here.
    pub fn estimated_size_bytes(&self) -> u64 {
        self.builder.estimated_size_bytes()
    }

    /// Ends the table; it and its name are durable then.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidArgument`] without rows; what the disk refuses. The file is gone
    /// then.
    pub fn finish(mut self) -> Result<WrittenTable> {
        if self.builder.is_empty() {
            return Err(Error::invalid("a table needs a row").in_file(&self.path));
        }
        let summary = self.builder.finish(&mut self.meter, &*self.world.environment)?;
        self.write()?;
        self.file.sync_data()?;
        let directory = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        self.world.files.sync_directory(directory.unwrap_or(Path::new(".")))?;
        self.is_finished = true;
        Ok(WrittenTable {
            path: self.path.clone(),
            size_bytes: summary.size_bytes,
            rows: summary.properties.entries,
        })
    }

    fn add(&mut self, kind: ValueKind, key: &[u8], value: &[u8]) -> Result<()> {
        let last_key = (self.builder.entries() > 0).then(|| self.builder.last_key());
        check_row(last_key, key, value)?;
        let clock = &*self.world.environment;
        let mut value = Cow::Borrowed(value);
        if self.has_write_times && kind == ValueKind::Put {
            value = Cow::Owned(stamped(&value, write_time(clock.unix_time_s())));
        }
        self.builder.add(key, Trailer::new(0, kind), &value, &mut self.meter, clock)?;
        if self.builder.output_bytes() >= WRITE_BYTES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        let output = self.builder.take_output();
        self.file.write_at(&[IoSlice::new(&output)], self.offset)?;
        self.offset += output.len() as u64;
        self.builder.recycle(output);
        let stride = self.offset - self.written_back_through;
        if stride >= WRITE_BACK_STRIDE_BYTES {
            self.file.sync_range(self.written_back_through, stride)?;
            self.written_back_through = self.offset;
        }
        Ok(())
    }
}

impl Drop for TableWriter {
    fn drop(&mut self) {
        if !self.is_finished && self.origin.is_here() {
            // Without its end it is no table: whoever finds it is told so.
            let _ = self.world.files.remove(&self.path);
        }
    }
}
