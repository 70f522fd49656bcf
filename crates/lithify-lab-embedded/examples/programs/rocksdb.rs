//! RocksDB's database with transactions, as much of it as the programs need.
//!
//! Owns: the C functions, found by name in the library that `lithify bench setup rocksdb` fetches, and
//! [`RocksDb`], whose methods are safe to call. Promises: what the library hands out is freed once, before
//! the database is closed; texts of errors are copied.

#![expect(unsafe_code, reason = "calls into a library that is loaded while the program runs")]

use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use lithify_lab_engines::setup;

use crate::samples::{Sample, Window};
use crate::{Outcome, Store, job, number};

/// Any object of the library: it is only ever handed back.
type Object = *mut c_void;
type ErrorText = *mut *mut c_char;

macro_rules! functions {
    ($($name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        struct Functions {
            $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            fn find(library: &'static libloading::Library) -> Outcome<Functions> {
                // SAFETY: the types are those of the library's documented C interface.
                Ok(Functions { $($name: *unsafe {
                    library.get(concat!("rocksdb_", stringify!($name)).as_bytes())
                }?,)* })
            }
        }
    };
}

functions! {
    free(Object);
    iter_destroy(Object);
    iter_get_error(Object, ErrorText);
    iter_key(Object, *mut usize) -> *const u8;
    iter_next(Object);
    iter_seek(Object, *const u8, usize);
    iter_valid(Object) -> c_uchar;
    iter_value(Object, *mut usize) -> *const u8;
    options_create() -> Object;
    options_destroy(Object);
    options_increase_parallelism(Object, c_int);
    options_set_create_if_missing(Object, c_uchar);
    options_set_uint64add_merge_operator(Object);
    readoptions_create() -> Object;
    readoptions_destroy(Object);
    transaction_begin(Object, Object, Object, Object) -> Object;
    transaction_commit(Object, ErrorText);
    transaction_delete(Object, *const u8, usize, ErrorText);
    transaction_destroy(Object);
    transaction_get_for_update(Object, Object, *const u8, usize, *mut usize, c_uchar, ErrorText)
        -> *mut u8;
    transaction_put(Object, *const u8, usize, *const u8, usize, ErrorText);
    transaction_options_create() -> Object;
    transaction_options_destroy(Object);
    transaction_options_set_lock_timeout(Object, i64);
    transactiondb_close(Object);
    transactiondb_create_iterator(Object, Object) -> Object;
    transactiondb_merge(Object, Object, *const u8, usize, *const u8, usize, ErrorText);
    transactiondb_open(Object, Object, *const c_char, ErrorText) -> Object;
    transactiondb_options_create() -> Object;
    transactiondb_options_destroy(Object);
    transactiondb_put(Object, Object, *const u8, usize, *const u8, usize, ErrorText);
    transactiondb_write(Object, Object, Object, ErrorText);
    writebatch_create() -> Object;
    writebatch_destroy(Object);
    writebatch_put(Object, *const u8, usize, *const u8, usize);
    writeoptions_create() -> Object;
    writeoptions_destroy(Object);
}

/// Where a claim begins to look for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    /// At the first key.
    First,
    /// Behind the last job that anybody took: what RocksDB's documents advise for queues, because a scan
    /// passes the tombstones of all that was taken. Jobs whose producer was slow lie before it.
    LastTaken,
}

/// Of so many looks behind the last job that find none, one is followed by a look from the first key on.
const EMPTY_LOOKS: u64 = 1000;

/// An open database.
pub(crate) struct RocksDb {
    call: Functions,
    database: Object,
    options: Object,
    read: Object,
    write: Object,
    /// Waits for a row that somebody else has locked.
    wait: Object,
    /// Gives up on it at once.
    skip_locked: Object,
    begin: Begin,
    last_taken: Mutex<u64>,
    empty_looks: AtomicU64,
}

// SAFETY: the library's documents let any number of threads use a database; its options do not change.
unsafe impl Send for RocksDb {}
// SAFETY: as above.
unsafe impl Sync for RocksDb {}

/// An iterator, a transaction or a batch, freed where it ends.
struct Owned<'d> {
    object: Object,
    destroy: unsafe extern "C" fn(Object),
    _database: &'d RocksDb,
}

impl Drop for Owned<'_> {
    fn drop(&mut self) {
        // SAFETY: made by the library, freed by its own function, here and nowhere else.
        unsafe { (self.destroy)(self.object) }
    }
}

impl RocksDb {
    /// Makes a database with the library's defaults, and as many threads as Lithify has.
    pub(crate) fn open(directory: &Path, begin: Begin) -> Outcome<RocksDb> {
        let recipe = setup::recipe("rocksdb")?;
        let path = recipe.library(recipe.default_version())?;
        // SAFETY: initialisers of this library build tables of constants.
        let library = Box::leak(Box::new(unsafe { libloading::Library::new(path) }?));
        let call = Functions::find(library)?;
        let path = CString::new(directory.as_os_str().as_bytes())?;
        // SAFETY: objects are made with nothing, changed while nobody else has them, and lent to the call
        // that opens; the path lives that long.
        unsafe {
            let options = (call.options_create)();
            (call.options_set_create_if_missing)(options, 1);
            (call.options_set_uint64add_merge_operator)(options);
            (call.options_increase_parallelism)(options, 2);
            let locks = (call.transactiondb_options_create)();
            let database = checked(&call, |error| {
                (call.transactiondb_open)(options, locks, path.as_ptr(), error)
            })?;
            (call.transactiondb_options_destroy)(locks);
            let wait = (call.transaction_options_create)();
            let skip_locked = (call.transaction_options_create)();
            (call.transaction_options_set_lock_timeout)(skip_locked, 0);
            let (read, write) = ((call.readoptions_create)(), (call.writeoptions_create)());
            let last_taken = Mutex::new(0);
            Ok(RocksDb {
                call,
                database,
                options,
                read,
                write,
                wait,
                skip_locked,
                begin,
                last_taken,
                empty_looks: AtomicU64::new(0),
            })
        }
    }

    fn transaction(&self, options: Object) -> Owned<'_> {
        let call = &self.call;
        // SAFETY: the database and the options live; a new transaction is asked for.
        let object =
            unsafe { (call.transaction_begin)(self.database, self.write, options, null_mut()) };
        Owned { object, destroy: call.transaction_destroy, _database: self }
    }

    fn rows(&self) -> Owned<'_> {
        // SAFETY: the database and the options live.
        let object = unsafe { (self.call.transactiondb_create_iterator)(self.database, self.read) };
        Owned { object, destroy: self.call.iter_destroy, _database: self }
    }

    /// The row that an iterator is at.
    fn row<'r>(&self, rows: &'r Owned<'_>) -> Outcome<Option<(&'r [u8], &'r [u8])>> {
        let (call, mut key_bytes, mut value_bytes) = (&self.call, 0, 0);
        // SAFETY: key and value of a valid iterator live until it moves, which needs it whole.
        unsafe {
            if (call.iter_valid)(rows.object) == 0 {
                checked(call, |error| (call.iter_get_error)(rows.object, error))?;
                return Ok(None);
            }
            let key = (call.iter_key)(rows.object, &mut key_bytes);
            let value = (call.iter_value)(rows.object, &mut value_bytes);
            Ok(Some((
                std::slice::from_raw_parts(key, key_bytes),
                std::slice::from_raw_parts(value, value_bytes),
            )))
        }
    }

    fn seek(&self, rows: &mut Owned<'_>, key: [u8; 8]) {
        // SAFETY: the iterator and the key live.
        unsafe { (self.call.iter_seek)(rows.object, key.as_ptr(), key.len()) }
    }

    fn advance(&self, rows: &mut Owned<'_>) {
        // SAFETY: the iterator is at a row.
        unsafe { (self.call.iter_next)(rows.object) }
    }

    /// Locks a row and reads it; an error if somebody else has locked it.
    fn lock(&self, transaction: &Owned<'_>, key: &[u8]) -> Outcome<Option<u64>> {
        let (call, mut bytes) = (&self.call, 0);
        // SAFETY: transaction, options and key live; the value is ours to free.
        unsafe {
            let value = checked(call, |error| {
                let (key, key_bytes) = (key.as_ptr(), key.len());
                (call.transaction_get_for_update)(
                    transaction.object,
                    self.read,
                    key,
                    key_bytes,
                    &mut bytes,
                    1,
                    error,
                )
            })?;
            if value.is_null() {
                return Ok(None);
            }
            let read = number(std::slice::from_raw_parts(value, bytes));
            (call.free)(value.cast());
            Ok(Some(read))
        }
    }

    fn commit(&self, transaction: &Owned<'_>) -> Outcome<()> {
        // SAFETY: the transaction lives.
        checked(&self.call, |error| unsafe {
            (self.call.transaction_commit)(transaction.object, error);
        })
    }

    fn remember(&self, last_taken: impl FnOnce(u64) -> u64) {
        if let Ok(mut last) = self.last_taken.lock() {
            *last = last_taken(*last);
        }
    }

    /// Takes the first job from a key on that nobody else is at.
    fn take_from(&self, from: u64) -> Outcome<Option<u64>> {
        let (mut rows, transaction) = (self.rows(), self.transaction(self.skip_locked));
        self.seek(&mut rows, from.to_be_bytes());
        while let Some((key, _)) = self.row(&rows)? {
            // Locked by another, or gone since the scan began: the next one.
            if let Ok(Some(_)) = self.lock(&transaction, key) {
                let taken = job(key);
                // SAFETY: the transaction and the key live.
                checked(&self.call, |error| unsafe {
                    let key = (key.as_ptr(), key.len());
                    (self.call.transaction_delete)(transaction.object, key.0, key.1, error);
                })?;
                self.commit(&transaction)?;
                return Ok(Some(taken));
            }
            self.advance(&mut rows);
        }
        Ok(None)
    }
}

impl Store for RocksDb {
    fn put(&self, key: [u8; 8], value: &[u8]) -> Outcome<()> {
        let (call, key, value) = (&self.call, (key.as_ptr(), 8), (value.as_ptr(), value.len()));
        // SAFETY: database, options, key and value live.
        checked(call, |error| unsafe {
            let (database, write) = (self.database, self.write);
            (call.transactiondb_put)(database, write, key.0, key.1, value.0, value.1, error);
        })
    }

    fn take_first(&self) -> Outcome<Option<u64>> {
        let last_taken = match self.begin {
            Begin::First => 0,
            Begin::LastTaken => self.last_taken.lock().map_or(0, |last| *last),
        };
        if let Some(taken) = self.take_from(last_taken)? {
            self.remember(|last| taken.max(last));
            return Ok(Some(taken));
        }
        if self.empty_looks.fetch_add(1, Relaxed) % EMPTY_LOOKS < EMPTY_LOOKS - 1 {
            return Ok(None);
        }
        let taken = self.take_from(0)?;
        // Others that were passed lie behind it.
        if let Some(taken) = taken {
            self.remember(|_| taken);
        }
        Ok(taken)
    }

    fn merge(&self, key: [u8; 8]) -> Outcome<()> {
        let (call, one) = (&self.call, 1_u64.to_le_bytes());
        // SAFETY: database, options, key and operand live.
        checked(call, |error| unsafe {
            let (database, write) = (self.database, self.write);
            (call.transactiondb_merge)(database, write, key.as_ptr(), 8, one.as_ptr(), 8, error);
        })
    }

    fn update(&self, key: [u8; 8]) -> Outcome<()> {
        let (call, transaction) = (&self.call, self.transaction(self.wait));
        let sum = (self.lock(&transaction, &key)?.unwrap_or(0) + 1).to_le_bytes();
        // SAFETY: transaction, key and value live.
        checked(call, |error| unsafe {
            let object = transaction.object;
            (call.transaction_put)(object, key.as_ptr(), 8, sum.as_ptr(), 8, error);
        })?;
        self.commit(&transaction)
    }

    fn sum(&self) -> Outcome<u64> {
        let (mut rows, mut sum) = (self.rows(), 0);
        self.seek(&mut rows, [0; 8]);
        while let Some((_, value)) = self.row(&rows)? {
            sum += number(value);
            self.advance(&mut rows);
        }
        Ok(sum)
    }

    fn put_all(&self, rows: &[Sample]) -> Outcome<()> {
        let call = &self.call;
        // SAFETY: a new batch, freed by its owner.
        let object = unsafe { (call.writebatch_create)() };
        let batch = Owned { object, destroy: call.writebatch_destroy, _database: self };
        for (key, value) in rows {
            let (key, value) = ((key.as_ptr(), key.len()), (value.as_ptr(), value.len()));
            // SAFETY: batch, key and value live; the batch copies both.
            unsafe { (call.writebatch_put)(batch.object, key.0, key.1, value.0, value.1) };
        }
        // SAFETY: database, options and batch live.
        checked(call, |error| unsafe {
            (call.transactiondb_write)(self.database, self.write, batch.object, error);
        })
    }

    fn read(&self, from: [u8; 8], to: [u8; 8]) -> Outcome<Window> {
        let (mut rows, mut window) = (self.rows(), Window::default());
        self.seek(&mut rows, from);
        while let Some((key, value)) = self.row(&rows)? {
            if key >= to.as_slice() {
                break;
            }
            window.add(value);
            self.advance(&mut rows);
        }
        Ok(window)
    }
}

impl Drop for RocksDb {
    fn drop(&mut self) {
        let call = &self.call;
        // SAFETY: iterators and transactions borrow the database, so none is left; each object goes once.
        unsafe {
            (call.transactiondb_close)(self.database);
            (call.transaction_options_destroy)(self.skip_locked);
            (call.transaction_options_destroy)(self.wait);
            (call.writeoptions_destroy)(self.write);
            (call.readoptions_destroy)(self.read);
            (call.options_destroy)(self.options);
        }
    }
}

/// Makes a call that may leave the text of an error.
fn checked<R>(call: &Functions, what: impl FnOnce(ErrorText) -> R) -> Outcome<R> {
    let mut text: *mut c_char = null_mut();
    let result = what(&mut text);
    if text.is_null() {
        return Ok(result);
    }
    // SAFETY: a text of the library ends with a zero byte; it is ours, and freed once.
    let error = unsafe {
        let error = CStr::from_ptr(text).to_string_lossy().into_owned();
        (call.free)(text.cast());
        error
    };
    Err(error.into())
}
