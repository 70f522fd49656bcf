//! Databases: opening, closing, what concerns all of one.

#![expect(unsafe_code, reason = "the border to C")]

use crate::call::OK;
use crate::handle::{Handle, borrow, borrow_mut, borrow_option, free_function, new, place};
use crate::options::Options;
use libc::c_char;
use lithify_ffi::arguments::text;

/// `lithify_db`.
pub type Db = Handle<lithify::Db>;
/// `lithify_resources`.
pub type Resources = Handle<lithify::Resources>;

free_function!(lithify_db_free, lithify::Db);
free_function!(lithify_resources_free, lithify::Resources);

c_functions! {
    /// Opens a database.
    fn lithify_open(
        path: *const c_char,
        options: *const Options,
        resources: *const Resources,
        db: *mut *mut Db,
    ) {
        let (path, db) = (text(path)?, place(db)?);
        let options = borrow_option(options)?.cloned().unwrap_or_default();
        db.set(new(match borrow_option(resources)? {
            Some(resources) => lithify::Db::open_shared(path, options, resources)?,
            None => lithify::Db::open(path, options)?,
        }));
        Ok(OK)
    }

    /// Opens a database for reading.
    fn lithify_open_read_only(path: *const c_char, options: *const Options, db: *mut *mut Db) {
        let (path, db) = (text(path)?, place(db)?);
        let options = borrow_option(options)?.cloned().unwrap_or_default();
        db.set(new(lithify::Db::open_read_only(path, options)?));
        Ok(OK)
    }

    /// Moves a reader on to the present.
    fn lithify_refresh(db: *mut Db) {
        borrow_mut(db)?.refresh()?;
        Ok(OK)
    }

    /// Closes a database; its handle stays.
    fn lithify_close(db: *mut Db) {
        borrow(db)?.clone().close()?;
        Ok(OK)
    }

    /// Memory and threads for several databases.
    fn lithify_resources_new(
        memory_budget_bytes: usize,
        background_threads: usize,
        resources: *mut *mut Resources,
    ) {
        let resources = place(resources)?;
        resources.set(new(lithify::Resources::new(memory_budget_bytes, background_threads)?));
        Ok(OK)
    }

    /// Makes all logged writes durable.
    fn lithify_sync(db: *mut Db) {
        borrow(db)?.sync()?;
        Ok(OK)
    }

    /// Writes all memtables to tables.
    fn lithify_flush(db: *mut Db) {
        borrow(db)?.flush()?;
        Ok(OK)
    }

    /// Waits for background work.
    fn lithify_wait_for_compaction(db: *mut Db) {
        borrow(db)?.wait_for_compaction()?;
        Ok(OK)
    }
}

/// Bytes of shared memory in use; 0 for NULL and in another process.
///
/// # Safety
/// `resources` is NULL, or came from this library and is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lithify_resources_used_bytes(resources: *const Resources) -> usize {
    // SAFETY: the caller promises a live object, or NULL.
    unsafe { borrow(resources) }.map_or(0, lithify::Resources::memory_used_bytes)
}
