//! An open database of RocksDB behind calls that are safe to make.
//!
//! Owns: the handles of the database and its column families, what is read from it, batches,
//! iterators and transactions. Promises: what the library hands out does not outlive the database
//! (by lifetimes), and nothing that it points to is kept after the object behind it is gone.
//!
//! Threads: a [`Database`] is shared; batches, iterators and transactions belong to one thread.

#![expect(unsafe_code, reason = "every call into the loaded library")]

use std::ffi::{CStr, CString, c_char, c_int};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr::{self, NonNull};

use lithify_lab::adapter::{EngineError, EngineResult};

use super::functions::{self as raw, Functions};
use super::objects::{Owned, checked, take_text};
use super::options::{DatabaseOptions, ReadView};

/// A live table file, as the library lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveFile {
    /// Column family.
    pub family: String,
    /// Name in the database's directory.
    pub name: String,
    /// Level.
    pub level: u32,
    /// Size, bytes.
    pub size_bytes: u64,
}

enum Handle {
    Plain(NonNull<raw::Db>),
    /// The database with locks, and the one below it for everything that needs none.
    Transactional {
        locks: NonNull<raw::TransactionDb>,
        base: NonNull<raw::Db>,
    },
}

/// An open database with its column families.
pub struct Database {
    functions: &'static Functions,
    handle: Handle,
    /// In the order in which they were named; the last one is the library's own "default".
    families: Vec<NonNull<raw::FamilyHandle>>,
    options: DatabaseOptions,
}

// SAFETY: the library documents that a database and its column family handles may be used by any
// number of threads at once; the options are not changed any more.
unsafe impl Send for Database {}
// SAFETY: as above.
unsafe impl Sync for Database {}

fn text_of(text: &str) -> EngineResult<CString> {
    CString::new(text).map_err(|_| EngineError::fatal(format!("{text:?} has a zero byte in it")))
}

impl Database {
    /// Opens or makes the database in `directory` with these families, each with its options.
    ///
    /// # Errors
    /// What the library refuses; transactions with a library whose C interface has no way to them.
    pub fn open(
        functions: &'static Functions,
        directory: &Path,
        names: &[&str],
        options: DatabaseOptions,
        transactions: bool,
    ) -> EngineResult<Database> {
        let path =
            text_of(directory.to_str().ok_or_else(|| {
                EngineError::fatal(format!("{} is no UTF-8", directory.display()))
            })?)?;
        let names: Vec<CString> = names
            .iter()
            .chain(&["default"])
            .map(|name| text_of(name))
            .collect::<EngineResult<_>>()?;
        let name_pointers: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
        let family_options: Vec<*const raw::Options> =
            options.families.iter().map(|family| family.get().cast_const()).collect();
        if family_options.len() != names.len() {
            return Err(EngineError::fatal("every column family needs options"));
        }
        let count = names.len() as c_int;
        let mut families = vec![ptr::null_mut(); names.len()];
        let handle = if transactions {
            let (Some(get_base), Some(_)) =
                (functions.transactiondb_get_base_db, functions.transactiondb_close_base_db)
            else {
                return Err(EngineError::fatal(
                    "transactions cannot be used through the C interface of this version of \
                     RocksDB; take the engine \"rocksdb\"",
                ));
            };
            // SAFETY: all arrays have `count` entries of live objects and texts; the library
            // copies what it keeps and fills `families`.
            let locks = checked(functions, |error| unsafe {
                (functions.transactiondb_open_column_families)(
                    options.database.get(),
                    options.transactions.get(),
                    path.as_ptr(),
                    count,
                    name_pointers.as_ptr(),
                    family_options.as_ptr(),
                    families.as_mut_ptr(),
                    error,
                )
            })?;
            let locks = NonNull::new(locks).ok_or_else(nothing_opened)?;
            // SAFETY: the database is open.
            let base = NonNull::new(unsafe { get_base(locks.as_ptr()) });
            Handle::Transactional { locks, base: base.ok_or_else(nothing_opened)? }
        } else {
            // SAFETY: as above.
            let base = checked(functions, |error| unsafe {
                (functions.open_column_families)(
                    options.database.get(),
                    path.as_ptr(),
                    count,
                    name_pointers.as_ptr(),
                    family_options.as_ptr(),
                    families.as_mut_ptr(),
                    error,
                )
            })?;
            Handle::Plain(NonNull::new(base).ok_or_else(nothing_opened)?)
        };
        let families = families.into_iter().filter_map(NonNull::new).collect();
        Ok(Database { functions, handle, families, options })
    }

    fn base(&self) -> *mut raw::Db {
        match self.handle {
            Handle::Plain(base) | Handle::Transactional { base, .. } => base.as_ptr(),
        }
    }

    fn family(&self, index: usize) -> EngineResult<*mut raw::FamilyHandle> {
        match self.families.get(index) {
            // The last one is not the caller's.
            Some(family) if index + 1 < self.families.len() => Ok(family.as_ptr()),
            _ => Err(EngineError::fatal(format!("there is no space {index}"))),
        }
    }

    /// What it was opened with.
    pub fn options(&self) -> &DatabaseOptions {
        &self.options
    }

    /// True when it was opened for transactions.
    pub fn has_locks(&self) -> bool {
        matches!(self.handle, Handle::Transactional { .. })
    }

    /// Number of column families that were named.
    pub fn family_count(&self) -> usize {
        self.families.len().saturating_sub(1)
    }

    /// A way to read, with memory for bounds of its own.
    ///
    /// # Errors
    /// The library makes none.
    pub fn read_view(&self) -> EngineResult<ReadView> {
        ReadView::new(self.functions)
    }

    /// Reads a committed row into `value`; whether there is one.
    ///
    /// # Errors
    /// The library's.
    pub fn get(
        &self,
        family: usize,
        view: &ReadView,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> EngineResult<bool> {
        let family = self.family(family)?;
        // SAFETY: database, family and options are live; the key is read during the call only.
        let pinned = checked(self.functions, |error| unsafe {
            (self.functions.get_pinned_cf)(
                self.base(),
                view.point.get(),
                family,
                key.as_ptr().cast(),
                key.len(),
                error,
            )
        })?;
        Ok(self.copy_pinned(pinned, value))
    }

    /// Copies what a read has pinned and lets it go; false, and nothing, for null.
    fn copy_pinned(&self, pinned: *mut raw::Pinned, value: &mut Vec<u8>) -> bool {
        value.clear();
        // SAFETY: null, or an object that the library has just handed over to us.
        let Ok(pinned) = (unsafe { Owned::new(pinned, self.functions.pinnableslice_destroy) })
        else {
            return false;
        };
        value.extend_from_slice(pinned_bytes(self.functions, &pinned));
        true
    }

    /// Reads several committed rows; calls `found` with the index and value of each there is.
    ///
    /// # Errors
    /// The library's, of the first key that has one.
    pub fn multi_get(
        &self,
        family: usize,
        view: &ReadView,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, &[u8]),
    ) -> EngineResult<()> {
        let family = self.family(family)?;
        let starts: Vec<*const c_char> = keys.iter().map(|key| key.as_ptr().cast()).collect();
        let sizes: Vec<usize> = keys.iter().map(|key| key.len()).collect();
        let mut values = vec![ptr::null_mut(); keys.len()];
        let mut errors: Vec<*mut c_char> = vec![ptr::null_mut(); keys.len()];
        // SAFETY: all arrays have as many entries as there are keys; the library reads the keys
        // during the call and fills values and errors.
        unsafe {
            (self.functions.batched_multi_get_cf)(
                self.base(),
                view.point.get(),
                family,
                keys.len(),
                starts.as_ptr(),
                sizes.as_ptr(),
                values.as_mut_ptr(),
                errors.as_mut_ptr(),
                false,
            );
        }
        let mut result = Ok(());
        for (index, (value, error)) in values.into_iter().zip(errors).enumerate() {
            // SAFETY: null, or an object handed over to us.
            let value = unsafe { Owned::new(value, self.functions.pinnableslice_destroy) };
            // SAFETY: null, or a text handed over to us.
            if let Some(text) = unsafe { take_text(self.functions, error) } {
                result = result.and(Err(super::objects::error_of(&text)));
            } else if let Ok(value) = value {
                found(index, pinned_bytes(self.functions, &value));
            }
        }
        result
    }

    /// An iterator over committed rows as of now, before its first row. `view` keeps its bound
    /// until the iterator is gone.
    ///
    /// # Errors
    /// The library makes none.
    pub fn iterator<'a>(&'a self, family: usize, view: &'a Scan<'_>) -> EngineResult<Iterator<'a>> {
        let family = self.family(family)?;
        // SAFETY: database, family and options are live, and stay so for the iterator's life.
        let object =
            unsafe { (self.functions.create_iterator_cf)(self.base(), view.options.get(), family) };
        // SAFETY: the library has just made it for us.
        let object = unsafe { Owned::new(object, self.functions.iter_destroy) }?;
        Ok(Iterator { functions: self.functions, object, _database: PhantomData })
    }

    /// An empty batch.
    ///
    /// # Errors
    /// The library makes none.
    pub fn batch(&self) -> EngineResult<Batch<'_>> {
        // SAFETY: takes nothing, gives an object of ours.
        let object = unsafe {
            Owned::new((self.functions.writebatch_create)(), self.functions.writebatch_destroy)
        }?;
        Ok(Batch { database: self, object })
    }

    /// Applies a batch atomically; under row locks where the database has them.
    ///
    /// # Errors
    /// The library's.
    pub fn write(&self, batch: &mut Batch<'_>) -> EngineResult<()> {
        let (functions, options) = (self.functions, self.options.write.get());
        // SAFETY: database, options and batch are live; the library changes the batch's header
        // only, and it is borrowed alone.
        checked(functions, |error| unsafe {
            match self.handle {
                Handle::Plain(base) => {
                    (functions.write)(base.as_ptr(), options, batch.object.get(), error);
                }
                Handle::Transactional { locks, .. } => {
                    (functions.transactiondb_write)(
                        locks.as_ptr(),
                        options,
                        batch.object.get(),
                        error,
                    );
                }
            }
        })
    }

    /// Begins a transaction, with the memory of one that has ended.
    ///
    /// # Errors
    /// The database was opened without locks.
    pub fn begin<'a>(&'a self, ended: Option<Transaction<'a>>) -> EngineResult<Transaction<'a>> {
        let Handle::Transactional { locks, .. } = self.handle else {
            return Err(EngineError::fatal("the database was opened without transactions"));
        };
        let old = ended.as_ref().map_or(ptr::null_mut(), |ended| ended.object.get());
        // SAFETY: database and options are live; `old` is null or a transaction that was
        // committed or rolled back, which the library begins anew and gives back.
        let object = unsafe {
            (self.functions.transaction_begin)(
                locks.as_ptr(),
                self.options.write.get(),
                self.options.transaction.get(),
                old,
            )
        };
        match ended {
            Some(ended) => Ok(ended),
            None => {
                // SAFETY: made for us by the call above.
                let object = unsafe { Owned::new(object, self.functions.transaction_destroy) }?;
                Ok(Transaction { database: self, object })
            }
        }
    }

    /// Writes all memtables to files.
    ///
    /// # Errors
    /// The library's.
    pub fn flush(&self) -> EngineResult<()> {
        let functions = self.functions;
        // SAFETY: takes nothing, gives an object of ours. Its default is to wait.
        let options = unsafe {
            Owned::new((functions.flushoptions_create)(), functions.flushoptions_destroy)
        }?;
        if let Some(flush_cfs) = functions.flush_cfs {
            let mut families: Vec<_> = self.families.iter().map(|f| f.as_ptr()).collect();
            let count = families.len() as c_int;
            // SAFETY: database, options and the `count` handles are live.
            return checked(functions, |error| unsafe {
                flush_cfs(self.base(), options.get(), families.as_mut_ptr(), count, error);
            });
        }
        self.families.iter().try_for_each(|family| {
            // SAFETY: as above.
            checked(functions, |error| unsafe {
                (functions.flush_cf)(self.base(), options.get(), family.as_ptr(), error);
            })
        })
    }

    /// Waits until no flush or compaction is due, if this version can; whether it has.
    ///
    /// # Errors
    /// The library's.
    pub fn wait_for_compaction(&self) -> EngineResult<bool> {
        let functions = self.functions;
        let (Some(create), Some(destroy), Some(wait)) = (
            functions.wait_for_compact_options_create,
            functions.wait_for_compact_options_destroy,
            functions.wait_for_compact,
        ) else {
            return Ok(false);
        };
        // SAFETY: takes nothing, gives an object of ours.
        let options = unsafe { Owned::new(create(), destroy) }?;
        // SAFETY: database and options are live.
        checked(functions, |error| unsafe { wait(self.base(), options.get(), error) })?;
        Ok(true)
    }

    /// A property of one column family as text; `None` when there is no such property.
    pub fn property(&self, family: usize, name: &CStr) -> Option<String> {
        let family = self.family(family).ok()?;
        // SAFETY: database, family and name are live; the text is handed over to us.
        unsafe {
            let text = (self.functions.property_value_cf)(self.base(), family, name.as_ptr());
            take_text(self.functions, text)
        }
    }

    /// All counters since open as text, one per line.
    pub fn statistics(&self) -> String {
        // SAFETY: the options are live and hold the counters; the text is handed over to us.
        let text = unsafe {
            let text = (self.functions.options_statistics_get_string)(self.options.database.get());
            take_text(self.functions, text)
        };
        text.unwrap_or_default()
    }

    /// Changes one option of a column family from now on.
    ///
    /// # Errors
    /// The library's.
    pub fn set_option(&self, family: usize, name: &CStr, value: &str) -> EngineResult<()> {
        let family = self.family(family)?;
        let value = text_of(value)?;
        // SAFETY: database, family and the one pair of texts are live; they are copied.
        checked(self.functions, |error| unsafe {
            (self.functions.set_options_cf)(
                self.base(),
                family,
                1,
                &name.as_ptr(),
                &value.as_ptr(),
                error,
            );
        })
    }

    /// All live table files.
    pub fn live_files(&self) -> Vec<LiveFile> {
        let functions = self.functions;
        // SAFETY: the database is live; the list is ours until it is destroyed below, and the
        // texts in it are copied before.
        unsafe {
            let list = (functions.livefiles)(self.base());
            if list.is_null() {
                return Vec::new();
            }
            let text = |text: *const c_char| CStr::from_ptr(text).to_string_lossy().into_owned();
            let files = (0..(functions.livefiles_count)(list))
                .map(|index| LiveFile {
                    family: text((functions.livefiles_column_family_name)(list, index)),
                    name: text((functions.livefiles_name)(list, index)),
                    level: u32::try_from((functions.livefiles_level)(list, index)).unwrap_or(0),
                    size_bytes: (functions.livefiles_size)(list, index) as u64,
                })
                .collect();
            (functions.livefiles_destroy)(list);
            files
        }
    }
}

fn nothing_opened() -> EngineError {
    EngineError::fatal("the library of RocksDB opened nothing and gave no reason")
}

impl Drop for Database {
    fn drop(&mut self) {
        // SAFETY: by their lifetimes nothing that belongs to the database is left; the handles go
        // first, as the library asks, and each is freed once.
        unsafe {
            for family in &self.families {
                (self.functions.column_family_handle_destroy)(family.as_ptr());
            }
            match self.handle {
                Handle::Plain(base) => (self.functions.close)(base.as_ptr()),
                Handle::Transactional { locks, base } => {
                    if let Some(close_base) = self.functions.transactiondb_close_base_db {
                        close_base(base.as_ptr());
                    }
                    (self.functions.transactiondb_close)(locks.as_ptr());
                }
            }
        }
    }
}

fn pinned_bytes<'a>(functions: &Functions, pinned: &'a Owned<raw::Pinned>) -> &'a [u8] {
    let mut size = 0;
    // SAFETY: the object is live and keeps its bytes in place until it is destroyed.
    unsafe { bytes((functions.pinnableslice_value)(pinned.get(), &raw mut size), size) }
}

/// # Safety
/// `start` is null or points to `size` bytes that stay as they are for `'a`.
unsafe fn bytes<'a>(start: *const c_char, size: usize) -> &'a [u8] {
    if start.is_null() {
        return &[];
    }
    // SAFETY: promised by the caller.
    unsafe { std::slice::from_raw_parts(start.cast(), size) }
}

/// How a scan reads: options that point to a bound, which stays in place as long as this lives.
pub struct Scan<'a> {
    options: &'a Owned<raw::ReadOptions>,
}

impl ReadView {
    /// Reads rows below `end` (all, when it is empty); only those that share the first row's
    /// prefix when `one_prefix`.
    pub fn scan(&mut self, functions: &Functions, end: &[u8], one_prefix: bool) -> Scan<'_> {
        self.bound.clear();
        self.bound.extend_from_slice(end);
        let options = if one_prefix { &self.prefix } else { &self.total };
        let start = if end.is_empty() { ptr::null() } else { self.bound.as_ptr().cast() };
        // SAFETY: the options are live; they keep a pointer to the bound, which is not touched
        // while the scan borrows it, and is set anew before the next one.
        unsafe {
            (functions.readoptions_set_iterate_upper_bound)(options.get(), start, end.len());
        }
        Scan { options }
    }
}

/// Goes over committed rows of one moment.
pub struct Iterator<'a> {
    functions: &'static Functions,
    object: Owned<raw::Iter>,
    _database: PhantomData<&'a Database>,
}

impl Iterator<'_> {
    /// Goes to the first row at or after `key`.
    pub fn seek(&mut self, key: &[u8]) {
        // SAFETY: the iterator is live; the key is read during the call.
        unsafe { (self.functions.iter_seek)(self.object.get(), key.as_ptr().cast(), key.len()) }
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
    ///
    /// # Errors
    /// There is no such family.
    pub fn put(&mut self, family: usize, key: &[u8], value: &[u8]) -> EngineResult<()> {
        let family = self.database.family(family)?;
        // SAFETY: batch and family are live; key and value are copied.
        unsafe {
            (self.database.functions.writebatch_put_cf)(
                self.object.get(),
                family,
                key.as_ptr().cast(),
                key.len(),
                value.as_ptr().cast(),
                value.len(),
            );
        }
        Ok(())
    }

    /// Adds a delete, or a delete of a key that was put once.
    ///
    /// # Errors
    /// There is no such family.
    pub fn delete(&mut self, family: usize, key: &[u8], once: bool) -> EngineResult<()> {
        let family = self.database.family(family)?;
        let functions = self.database.functions;
        let call = if once {
            functions.writebatch_singledelete_cf
        } else {
            functions.writebatch_delete_cf
        };
        // SAFETY: batch and family are live; the key is copied.
        unsafe { call(self.object.get(), family, key.as_ptr().cast(), key.len()) }
        Ok(())
    }
}

/// A transaction with row locks. Rolled back by the library when it is dropped unfinished.
pub struct Transaction<'a> {
    database: &'a Database,
    object: Owned<raw::Transaction>,
}

impl Transaction<'_> {
    /// Locks a row and reads it, the transaction's own writes included.
    ///
    /// # Errors
    /// The library's; retryable when the lock was not had in time.
    pub fn get_for_update(
        &mut self,
        family: usize,
        view: &ReadView,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> EngineResult<bool> {
        let family = self.database.family(family)?;
        let functions = self.database.functions;
        // SAFETY: all objects are live; the key is read during the call.
        let pinned = checked(functions, |error| unsafe {
            (functions.transaction_get_pinned_for_update_cf)(
                self.object.get(),
                view.point.get(),
                family,
                key.as_ptr().cast(),
                key.len(),
                1,
                error,
            )
        })?;
        Ok(self.database.copy_pinned(pinned, value))
    }

    /// Locks and puts a row.
    ///
    /// # Errors
    /// As [`Transaction::get_for_update`].
    pub fn put(&mut self, family: usize, key: &[u8], value: &[u8]) -> EngineResult<()> {
        let family = self.database.family(family)?;
        let functions = self.database.functions;
        // SAFETY: all objects are live; key and value are copied.
        checked(functions, |error| unsafe {
            (functions.transaction_put_cf)(
                self.object.get(),
                family,
                key.as_ptr().cast(),
                key.len(),
                value.as_ptr().cast(),
                value.len(),
                error,
            );
        })
    }

    /// Locks and deletes a row.
    ///
    /// # Errors
    /// As [`Transaction::get_for_update`].
    pub fn delete(&mut self, family: usize, key: &[u8]) -> EngineResult<()> {
        let family = self.database.family(family)?;
        let functions = self.database.functions;
        // SAFETY: all objects are live; the key is copied.
        checked(functions, |error| unsafe {
            let (start, size) = (key.as_ptr().cast(), key.len());
            (functions.transaction_delete_cf)(self.object.get(), family, start, size, error);
        })
    }

    /// Deletes a row that was put once. The C interface has this for the transaction's batch and
    /// not for the transaction, so that no lock is taken: another row's lock has to cover it.
    ///
    /// # Errors
    /// There is no such family.
    pub fn single_delete(&mut self, family: usize, key: &[u8]) -> EngineResult<()> {
        let family = self.database.family(family)?;
        let functions = self.database.functions;
        // SAFETY: the transaction is live and so is its batch; the key is copied. What is freed
        // is the memory that the library made to hold the pointer to that batch.
        unsafe {
            let batch = (functions.transaction_get_writebatch_wi)(self.object.get());
            if batch.is_null() {
                return Err(EngineError::fatal("a transaction of RocksDB has no batch"));
            }
            let (start, size) = (key.as_ptr().cast(), key.len());
            (functions.writebatch_wi_singledelete_cf)(batch, family, start, size);
            (functions.free)(batch);
        }
        Ok(())
    }

    /// Applies it and frees its locks.
    ///
    /// # Errors
    /// The library's; the transaction is still open then.
    pub fn commit(&mut self) -> EngineResult<()> {
        // SAFETY: the transaction is live.
        checked(self.database.functions, |error| unsafe {
            (self.database.functions.transaction_commit)(self.object.get(), error);
        })
    }

    /// Drops its changes and frees its locks.
    ///
    /// # Errors
    /// The library's.
    pub fn rollback(&mut self) -> EngineResult<()> {
        // SAFETY: the transaction is live.
        checked(self.database.functions, |error| unsafe {
            (self.database.functions.transaction_rollback)(self.object.get(), error);
        })
    }
}
