//! Open databases, snapshots, and what is done to whole databases.

#![expect(unsafe_code, reason = "bytes and arrays that come from C")]

use super::failures::Failures;
use super::iterator::IteratorHandle;
use super::options::{ReadOptions, WriteOptions};
use super::{at_home, exported, given, lent, quietly, telling};
use crate::batch::{Write, WriteBatch};
use crate::database::Database;
use crate::directory;
use crate::settings::Settings;
use crate::status::Status;
use lithify::Snapshot;
use lithify_ffi::memory;
use lithify_ffi::process::Bound;
use std::ffi::{CStr, OsStr, c_char, c_int};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// `leveldb_t`
pub struct DatabaseHandle {
    database: Bound<Database>,
}

/// `leveldb_snapshot_t`
pub struct SnapshotHandle {
    snapshot: Bound<Snapshot>,
}

impl DatabaseHandle {
    fn reach(handle: Option<&Self>) -> Result<&Database, Status> {
        at_home(given(handle)?.database.get())
    }
}

/// The snapshot that options of a read name.
///
/// # Safety
/// It is NULL, or lives as long as the options say so.
unsafe fn snapshot_of(options: Option<&ReadOptions>) -> Result<Option<&Snapshot>, Status> {
    // SAFETY: promised by the caller.
    let handle = options.and_then(|options| unsafe { options.snapshot.as_ref() });
    handle.map(|handle| at_home(handle.snapshot.get())).transpose()
}

/// A path, as bytes that end with a zero.
///
/// # Safety
/// It is NULL, or ends with a zero and is not changed meanwhile.
unsafe fn path<'a>(name: *const c_char) -> Result<&'a Path, Status> {
    let name = given((!name.is_null()).then_some(name))?;
    // SAFETY: promised by the caller; it is not NULL.
    let name = unsafe { CStr::from_ptr(name) };
    Ok(Path::new(OsStr::from_bytes(name.to_bytes())))
}

/// Opens a database, and makes it if that is asked for.
fn open(settings: Option<&Settings>, name: *const c_char) -> Result<Box<DatabaseHandle>, Status> {
    // SAFETY: the caller lends a name that ends with a zero for the call.
    let path = unsafe { path(name) }?;
    let database = Bound::new(Database::open(path, given(settings)?)?);
    Ok(Box::new(DatabaseHandle { database }))
}

/// An end of a range; NULL is an open one.
///
/// # Safety
/// As [`lent`].
unsafe fn bound<'a>(key: *const c_char, length: usize) -> Result<Option<&'a [u8]>, Status> {
    if key.is_null() {
        return Ok(None);
    }
    // SAFETY: promised by the caller.
    unsafe { lent(key, length) }.map(Some)
}

/// Arrays of as many entries.
#[derive(Clone, Copy)]
struct Ranges {
    starts: *const *const c_char,
    start_lengths: *const usize,
    limits: *const *const c_char,
    limit_lengths: *const usize,
}

impl Ranges {
    /// Both ends of one of them.
    ///
    /// # Safety
    /// `at` is within the arrays, and each entry is bytes of its length.
    unsafe fn get<'a>(self, at: usize) -> Result<(&'a [u8], &'a [u8]), Status> {
        // SAFETY: promised by the caller.
        unsafe {
            let start = lent(*self.starts.add(at), *self.start_lengths.add(at))?;
            Ok((start, lent(*self.limits.add(at), *self.limit_lengths.add(at))?))
        }
    }
}

exported! {
    /// Opens a database; NULL with a failure.
    fn leveldb_open(
        settings: Option<&Settings>,
        name: *const c_char,
        failures: Failures<'_>,
    ) -> Option<Box<DatabaseHandle>> {
        telling(failures, || open(settings, name).map(Some))
    }

    /// Closes a database. Its iterators and snapshots are to be ended before.
    fn leveldb_close(database: Option<Box<DatabaseHandle>>) {
        quietly(|| {
            database?.database.take()?.close();
            Some(())
        });
    }

    /// Sets a key to a value.
    fn leveldb_put(
        database: Option<&DatabaseHandle>,
        options: Option<&WriteOptions>,
        key: *const c_char,
        key_length: usize,
        value: *const c_char,
        value_length: usize,
        failures: Failures<'_>,
    ) {
        telling(failures, || {
            // SAFETY: the caller lends so many bytes for the call.
            let (key, value) = unsafe { (lent(key, key_length)?, lent(value, value_length)?) };
            let database = DatabaseHandle::reach(database)?;
            database.write_one(Write::Put(key, value), given(options)?.is_synced)
        });
    }

    /// Removes a key; it need not be there.
    fn leveldb_delete(
        database: Option<&DatabaseHandle>,
        options: Option<&WriteOptions>,
        key: *const c_char,
        key_length: usize,
        failures: Failures<'_>,
    ) {
        telling(failures, || {
            // SAFETY: the caller lends so many bytes for the call.
            let key = unsafe { lent(key, key_length) }?;
            let database = DatabaseHandle::reach(database)?;
            database.write_one(Write::Delete(key), given(options)?.is_synced)
        });
    }

    /// Applies a batch, all of it or nothing. The batch stays as it is.
    fn leveldb_write(
        database: Option<&DatabaseHandle>,
        options: Option<&WriteOptions>,
        batch: Option<&WriteBatch>,
        failures: Failures<'_>,
    ) {
        telling(failures, || {
            let database = DatabaseHandle::reach(database)?;
            database.write(given(batch)?, given(options)?.is_synced)
        });
    }

    /// A copy of the value of a key, for the caller to free; NULL and no failure if there is none.
    fn leveldb_get(
        database: Option<&DatabaseHandle>,
        options: Option<&ReadOptions>,
        key: *const c_char,
        key_length: usize,
        value_length: Option<&mut MaybeUninit<usize>>,
        failures: Failures<'_>,
    ) -> *mut c_char {
        let value_length = value_length.map(|length| length.write(0));
        telling(failures, || {
            // SAFETY: the caller lends so many bytes for the call, and names a live snapshot.
            let (key, snapshot) = unsafe { (lent(key, key_length)?, snapshot_of(options)?) };
            let found = DatabaseHandle::reach(database)?.get(key, snapshot)?;
            let Some(value) = found else { return Ok(std::ptr::null_mut()) };
            let copied = memory::copy(&value);
            let copied = (!copied.is_null()).then_some(copied);
            let copied = copied.ok_or_else(|| Status::io("no memory for a copy of the value"))?;
            *given(value_length)? = value.len();
            Ok(copied)
        })
    }

    /// An iterator over the rows of now, or of the snapshot that the options name; it stands nowhere.
    fn leveldb_create_iterator(
        database: Option<&DatabaseHandle>,
        options: Option<&ReadOptions>,
    ) -> Option<Box<IteratorHandle>> {
        quietly(|| {
            // SAFETY: the caller names a live snapshot.
            let snapshot = unsafe { snapshot_of(options) }.ok()?;
            let database = DatabaseHandle::reach(database).ok()?;
            Some(Some(IteratorHandle::new(database.iterator(snapshot))))
        })
    }

    /// The present, to be read later.
    fn leveldb_create_snapshot(database: Option<&DatabaseHandle>) -> Option<Box<SnapshotHandle>> {
        quietly(|| {
            let snapshot = Bound::new(DatabaseHandle::reach(database).ok()?.snapshot());
            Some(Some(Box::new(SnapshotHandle { snapshot })))
        })
    }

    /// Ends a snapshot.
    fn leveldb_release_snapshot(
        _database: Option<&DatabaseHandle>,
        snapshot: Option<Box<SnapshotHandle>>,
    ) {
        quietly(|| {
            drop(snapshot);
            Some(())
        });
    }

    /// What the database says of itself under a name, for the caller to free; NULL for an unknown one.
    fn leveldb_property_value(
        database: Option<&DatabaseHandle>,
        name: *const c_char,
    ) -> *mut c_char {
        quietly(|| {
            // SAFETY: the caller lends a name that ends with a zero for the call.
            let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) })?;
            let text = DatabaseHandle::reach(database).ok()?.property(name.to_bytes())?;
            Some(memory::copy_text(&text))
        })
    }

    /// About how many bytes of files each range has, its limit not included.
    fn leveldb_approximate_sizes(
        database: Option<&DatabaseHandle>,
        count: c_int,
        starts: *const *const c_char,
        start_lengths: *const usize,
        limits: *const *const c_char,
        limit_lengths: *const usize,
        sizes: *mut u64,
    ) {
        quietly(|| {
            let database = DatabaseHandle::reach(database).ok();
            let ranges = Ranges { starts, start_lengths, limits, limit_lengths };
            for at in 0..usize::try_from(count).ok()? {
                // SAFETY: the caller gives arrays of `count` entries, and as many places for sizes.
                unsafe {
                    let ends = ranges.get(at).ok().zip(database);
                    let size = ends.map(|((from, to), database)| database.approximate_bytes(from, to));
                    sizes.add(at).write(size.unwrap_or(0));
                }
            }
            Some(())
        });
    }

    /// Compacts a range of keys, its limit included; NULL is an open end.
    fn leveldb_compact_range(
        database: Option<&DatabaseHandle>,
        start: *const c_char,
        start_length: usize,
        limit: *const c_char,
        limit_length: usize,
    ) {
        quietly(|| {
            // SAFETY: the caller lends so many bytes for the call.
            let ends = unsafe { (bound(start, start_length), bound(limit, limit_length)) };
            DatabaseHandle::reach(database).ok()?.compact(ends.0.ok()?, ends.1.ok()?);
            Some(())
        });
    }

    /// Removes a database; nothing there is no failure.
    fn leveldb_destroy_db(
        settings: Option<&Settings>,
        name: *const c_char,
        failures: Failures<'_>,
    ) {
        telling(failures, || {
            given(settings)?;
            // SAFETY: the caller lends a name that ends with a zero for the call.
            directory::destroy(unsafe { path(name) }?)
        });
    }

    /// Puts what can be saved of a database into its place.
    fn leveldb_repair_db(
        settings: Option<&Settings>,
        name: *const c_char,
        failures: Failures<'_>,
    ) {
        telling(failures, || {
            // SAFETY: the caller lends a name that ends with a zero for the call.
            directory::restore(unsafe { path(name) }?, given(settings)?)
        });
    }
}
