//! An open database of LevelDB behind calls that are safe to make.
//!
//! Owns: opening and closing, all objects of the library, reads, batches, iterators. Promises:
//! what the library hands out does not outlive the database (by lifetimes), and nothing that it
//! points to is kept after the object behind it is gone. Keys here are LevelDB's own, with the byte
//! of their space in front.
//!
//! Threads: a [`Database`] is shared; batches and iterators belong to one thread.

#![expect(unsafe_code, reason = "every call into the loaded library")]

use std::ffi::{CStr, CString, c_char, c_int};
use std::marker::PhantomData;
use std::path::Path;

use lithify_lab::adapter::{EngineError, EngineResult};

use super::functions::{self as raw, Functions};
use crate::library::{self, Owned, bytes, take_text};

/// What a database is opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// The cache of blocks, bytes.
    pub cache_bytes: u64,
    /// A memtable, bytes.
    pub memtable_bytes: u64,
    /// A table file, bytes.
    pub table_bytes: u64,
    /// Raw bytes of a block.
    pub block_bytes: u64,
    /// Bits of the filter per key.
    pub filter_bits_per_key: u32,
    /// Blocks are compressed with Snappy, or not at all.
    pub snappy: bool,
    /// Writes are synced before they are acknowledged.
    pub sync: bool,
}

/// An open database. Its fields go in their order: the database before what it points to.
pub struct Database {
    functions: &'static Functions,
    handle: Owned<raw::Db>,
    write: Owned<raw::WriteOptions>,
    read: Owned<raw::ReadOptions>,
    _options: Owned<raw::Options>,
    _cache: Owned<raw::Cache>,
    _filter: Owned<raw::FilterPolicy>,
}

/// The version of the library.
pub fn library_version(functions: &Functions) -> String {
    // SAFETY: take nothing.
    let (major, minor) = unsafe { ((functions.major_version)(), (functions.minor_version)()) };
    format!("{major}.{minor}")
}

fn error_of(text: &str) -> EngineError {
    EngineError::fatal(format!("LevelDB: {text}"))
}

fn checked<R>(functions: &Functions, call: impl FnOnce(*mut *mut c_char) -> R) -> EngineResult<R> {
    // SAFETY: calls of the library leave the place alone or put a text of its own there.
    unsafe { library::checked(functions.free, error_of, call) }
}

/// Options of reads, which check what they read as other engines do.
fn read_options(functions: &Functions) -> EngineResult<Owned<raw::ReadOptions>> {
    // SAFETY: takes nothing, gives an object of ours, which is changed while it is nobody else's.
    unsafe {
        let read = Owned::new((functions.readoptions_create)(), functions.readoptions_destroy)?;
        (functions.readoptions_set_verify_checksums)(read.get(), 1);
        Ok(read)
    }
}

impl Database {
    /// Opens or makes the database in `directory`.
    ///
    /// # Errors
    /// What the library refuses.
    pub fn open(
        functions: &'static Functions,
        directory: &Path,
        open: &OpenOptions,
    ) -> EngineResult<Database> {
        let path = directory.to_str().and_then(|path| CString::new(path).ok());
        let path =
            path.ok_or_else(|| EngineError::fatal(format!("{} is no UTF-8", directory.display())))?;
        // SAFETY: each call takes numbers or live objects and gives or changes an object of ours;
        // cache and filter live as long as the database, by the order of its fields.
        let (options, cache, filter, write, read) = unsafe {
            let cache = (functions.cache_create_lru)(open.cache_bytes as usize);
            let cache = Owned::new(cache, functions.cache_destroy)?;
            let filter = (functions.filterpolicy_create_bloom)(open.filter_bits_per_key as c_int);
            let filter = Owned::new(filter, functions.filterpolicy_destroy)?;
            let options = Owned::new((functions.options_create)(), functions.options_destroy)?;
            let object = options.get();
            (functions.options_set_create_if_missing)(object, 1);
            (functions.options_set_cache)(object, cache.get());
            (functions.options_set_filter_policy)(object, filter.get());
            (functions.options_set_write_buffer_size)(object, open.memtable_bytes as usize);
            (functions.options_set_max_file_size)(object, open.table_bytes as usize);
            (functions.options_set_block_size)(object, open.block_bytes as usize);
            (functions.options_set_compression)(object, c_int::from(open.snappy));
            let write =
                Owned::new((functions.writeoptions_create)(), functions.writeoptions_destroy)?;
            (functions.writeoptions_set_sync)(write.get(), u8::from(open.sync));
            let read = read_options(functions)?;
            (options, cache, filter, write, read)
        };
        // SAFETY: options and path are live.
        let handle = checked(functions, |error| unsafe {
            (functions.open)(options.get().cast_const(), path.as_ptr(), error)
        })?;
        // SAFETY: just opened for us.
        let handle = unsafe { Owned::new(handle, functions.close) }?;
        Ok(Database {
            functions,
            handle,
            write,
            read,
            _options: options,
            _cache: cache,
            _filter: filter,
        })
    }

    /// Reads a committed row into `value`; whether there is one.
    ///
    /// # Errors
    /// The library's.
    pub fn get(&self, key: &[u8], value: &mut Vec<u8>) -> EngineResult<bool> {
        self.get_with(self.read.get(), key, value)
    }

    fn get_with(
        &self,
        options: *const raw::ReadOptions,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> EngineResult<bool> {
        value.clear();
        let mut size = 0;
        // SAFETY: database and options are live; the key is read during the call only.
        let found = checked(self.functions, |error| unsafe {
            (self.functions.get)(
                self.handle.get(),
                options,
                key.as_ptr(),
                key.len(),
                &raw mut size,
                error,
            )
        })?;
        if found.is_null() {
            return Ok(false);
        }
        // SAFETY: the memory was handed over to us with this size; it is freed once, after it was
        // copied.
        unsafe {
            value.extend_from_slice(bytes(found, size));
            (self.functions.free)(found.cast());
        }
        Ok(true)
    }

    /// A view of the rows of now.
    ///
    /// # Errors
    /// The library makes none.
    pub fn snapshot(&self) -> EngineResult<Snapshot<'_>> {
        let functions = self.functions;
        let options = read_options(functions)?;
        // SAFETY: the database is live; the options are ours and point to the snapshot, which is
        // released after the last read with them.
        unsafe {
            let snapshot = (functions.create_snapshot)(self.handle.get());
            (functions.readoptions_set_snapshot)(options.get(), snapshot);
            Ok(Snapshot { database: self, options, snapshot })
        }
    }

    /// An empty batch.
    ///
    /// # Errors
    /// The library makes none.
    pub fn batch(&self) -> EngineResult<Batch<'_>> {
        let functions = self.functions;
        // SAFETY: takes nothing, gives an object of ours.
        let object =
            unsafe { Owned::new((functions.writebatch_create)(), functions.writebatch_destroy) }?;
        Ok(Batch { database: self, object })
    }

    /// An iterator over the rows of now, before the first one.
    ///
    /// # Errors
    /// The library makes none.
    pub fn iterator(&self) -> EngineResult<Iterator<'_>> {
        let functions = self.functions;
        // SAFETY: database and options are live, and stay so for the iterator's life.
        let object = unsafe { (functions.create_iterator)(self.handle.get(), self.read.get()) };
        // SAFETY: the library has just made it for us.
        let object = unsafe { Owned::new(object, functions.iter_destroy) }?;
        Ok(Iterator { functions, object, _database: PhantomData })
    }

    /// Writes the memtable to a file. `unused` is a key above all keys: the library has no other
    /// call for this than the compaction of a range, and a range without keys is only this.
    pub fn flush(&self, unused: &[u8]) {
        // SAFETY: the database is live; the key is read during the call only.
        unsafe {
            (self.functions.compact_range)(
                self.handle.get(),
                unused.as_ptr(),
                unused.len(),
                unused.as_ptr(),
                unused.len(),
            );
        }
    }

    /// About how many stored bytes lie between two keys.
    pub fn bytes_between(&self, from: &[u8], to: &[u8]) -> u64 {
        let (start, end, mut size) = (from.as_ptr(), to.as_ptr(), 0);
        let lengths = [from.len(), to.len()];
        // SAFETY: the database is live; each array has the one entry that is said.
        unsafe {
            (self.functions.approximate_sizes)(
                self.handle.get(),
                1,
                &raw const start,
                &raw const lengths[0],
                &raw const end,
                &raw const lengths[1],
                &raw mut size,
            );
        }
        size
    }

    /// A property as text; `None` when there is no such property.
    pub fn property(&self, name: &CStr) -> Option<String> {
        // SAFETY: database and name are live; the text is handed over to us.
        unsafe {
            let text = (self.functions.property_value)(self.handle.get(), name.as_ptr());
            take_text(self.functions.free, text)
        }
    }
}

/// A view of the rows of one moment.
pub struct Snapshot<'a> {
    database: &'a Database,
    options: Owned<raw::ReadOptions>,
    snapshot: *const raw::Snapshot,
}

impl Snapshot<'_> {
    /// As [`Database::get`].
    ///
    /// # Errors
    /// The library's.
    pub fn get(&self, key: &[u8], value: &mut Vec<u8>) -> EngineResult<bool> {
        self.database.get_with(self.options.get(), key, value)
    }
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        let functions = self.database.functions;
        // SAFETY: the database is live, the snapshot is its own and released once.
        unsafe { (functions.release_snapshot)(self.database.handle.get(), self.snapshot) }
    }
}

/// Changes that are applied together.
pub struct Batch<'a> {
    database: &'a Database,
    object: Owned<raw::Batch>,
}

impl Batch<'_> {
    /// Empties it.
    pub fn clear(&mut self) {
        // SAFETY: the batch is live and borrowed alone.
        unsafe { (self.database.functions.writebatch_clear)(self.object.get()) }
    }

    /// Adds a put.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        let put = self.database.functions.writebatch_put;
        // SAFETY: as above; key and value are copied.
        unsafe { put(self.object.get(), key.as_ptr(), key.len(), value.as_ptr(), value.len()) }
    }

    /// Adds a delete.
    pub fn delete(&mut self, key: &[u8]) {
        let delete = self.database.functions.writebatch_delete;
        // SAFETY: as above.
        unsafe { delete(self.object.get(), key.as_ptr(), key.len()) }
    }

    /// Applies it atomically.
    ///
    /// # Errors
    /// The library's.
    pub fn write(&mut self) -> EngineResult<()> {
        let database = self.database;
        // SAFETY: database, options and batch are live; the batch is borrowed alone.
        checked(database.functions, |error| unsafe {
            (database.functions.write)(
                database.handle.get(),
                database.write.get(),
                self.object.get(),
                error,
            );
        })
    }
}

/// Goes over the rows of one moment in the order of their keys.
pub struct Iterator<'a> {
    functions: &'static Functions,
    object: Owned<raw::Iter>,
    _database: PhantomData<&'a Database>,
}

impl Iterator<'_> {
    /// Goes to the first row at or after `key`.
    pub fn seek(&mut self, key: &[u8]) {
        // SAFETY: the iterator is live; the key is read during the call.
        unsafe { (self.functions.iter_seek)(self.object.get(), key.as_ptr(), key.len()) }
    }

    /// Goes to the last row at or before `key`.
    pub fn seek_for_prev(&mut self, key: &[u8]) {
        self.seek(key);
        match self.row() {
            Some((found, _)) if found == key => {}
            Some(_) => self.retreat(),
            // SAFETY: the iterator is live.
            None => unsafe { (self.functions.iter_seek_to_last)(self.object.get()) },
        }
    }

    /// Goes to the last row.
    pub fn seek_to_last(&mut self) {
        // SAFETY: the iterator is live.
        unsafe { (self.functions.iter_seek_to_last)(self.object.get()) }
    }

    /// The row it stands on.
    pub fn row(&self) -> Option<(&[u8], &[u8])> {
        let (mut key_size, mut value_size) = (0, 0);
        // SAFETY: the iterator is live and stands on a row; its bytes stay until it is moved, for
        // which it has to be borrowed alone.
        unsafe {
            if (self.functions.iter_valid)(self.object.get()) == 0 {
                return None;
            }
            let key = (self.functions.iter_key)(self.object.get(), &raw mut key_size);
            let value = (self.functions.iter_value)(self.object.get(), &raw mut value_size);
            Some((bytes(key, key_size), bytes(value, value_size)))
        }
    }

    /// Goes to the next row; only from a row.
    pub fn advance(&mut self) {
        // SAFETY: the iterator is live; without a row nothing is called.
        unsafe {
            if (self.functions.iter_valid)(self.object.get()) != 0 {
                (self.functions.iter_next)(self.object.get());
            }
        }
    }

    /// Goes to the row before; only from a row.
    pub fn retreat(&mut self) {
        // SAFETY: the iterator is live; without a row nothing is called.
        unsafe {
            if (self.functions.iter_valid)(self.object.get()) != 0 {
                (self.functions.iter_prev)(self.object.get());
            }
        }
    }

    /// Why it ended, if not at the last row.
    ///
    /// # Errors
    /// The library's.
    pub fn check(&self) -> EngineResult<()> {
        // SAFETY: the iterator is live.
        checked(self.functions, |error| unsafe {
            (self.functions.iter_get_error)(self.object.get(), error);
        })
    }
}
