//! An open database of RocksDB behind calls that are safe to make.
//!
//! Owns: opening and closing, the handles of the database and its column families, what it says of
//! itself. `reads` and `writes` have the calls that touch rows. Promises: what the library hands
//! out does not outlive the database (by lifetimes), and nothing that it points to is kept after
//! the object behind it is gone.
//!
//! Threads: a [`Database`] is shared.

#![expect(unsafe_code, reason = "every call into the loaded library")]

use std::ffi::{CStr, CString, c_char, c_int};
use std::path::Path;
use std::ptr::{self, NonNull};

use lithify_lab::adapter::{EngineError, EngineResult, SpaceId};

use super::functions::{self as raw, Functions};
use super::objects::{checked, take_text};
use super::options::DatabaseOptions;
use super::writes::FirstTransaction;
use crate::library::Owned;

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

pub(super) enum Handle {
    Plain(NonNull<raw::Db>),
    /// The database with locks, and the one below it for everything that needs none.
    Transactional {
        locks: NonNull<raw::TransactionDb>,
        base: NonNull<raw::Db>,
        first: FirstTransaction,
    },
}

/// An open database with its column families.
pub struct Database {
    pub(super) functions: &'static Functions,
    pub(super) handle: Handle,
    /// In the order in which they were named; the last one is the library's own "default".
    families: Vec<NonNull<raw::FamilyHandle>>,
    pub(super) options: DatabaseOptions,
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
        let mut families = vec![ptr::null_mut(); names.len()];
        let (database, path, count) =
            (options.database.get().cast_const(), path.as_ptr(), names.len() as c_int);
        let (names, each, opened) =
            (name_pointers.as_ptr(), family_options.as_ptr(), families.as_mut_ptr());
        // Both kinds of database take the same: arrays of `count` live texts and options, which the
        // library copies, and one of `count` places, which it fills.
        let handle = if transactions {
            let (Some(get_base), Some(_)) =
                (functions.transactiondb_get_base_db, functions.transactiondb_close_base_db)
            else {
                return Err(EngineError::fatal(
                    "transactions cannot be used through the C interface of this version of \
                     RocksDB; take the engine \"rocksdb\"",
                ));
            };
            let (open, locks) =
                (functions.transactiondb_open_column_families, options.transactions.get());
            // SAFETY: as said above; the options of locks are live too.
            let locks = checked(functions, |error| unsafe {
                open(database, locks, path, count, names, each, opened, error)
            })?;
            let locks = NonNull::new(locks).ok_or_else(nothing_opened)?;
            // SAFETY: the database is open.
            let base = NonNull::new(unsafe { get_base(locks.as_ptr()) });
            let base = base.ok_or_else(nothing_opened)?;
            Handle::Transactional { locks, base, first: FirstTransaction::default() }
        } else {
            let open = functions.open_column_families;
            // SAFETY: as said above.
            let base = checked(functions, |error| unsafe {
                open(database, path, count, names, each, opened, error)
            })?;
            Handle::Plain(NonNull::new(base).ok_or_else(nothing_opened)?)
        };
        let families = families.into_iter().filter_map(NonNull::new).collect();
        Ok(Database { functions, handle, families, options })
    }

    pub(super) fn base(&self) -> *mut raw::Db {
        match self.handle {
            Handle::Plain(base) | Handle::Transactional { base, .. } => base.as_ptr(),
        }
    }

    pub(super) fn family(&self, space: SpaceId) -> EngineResult<*mut raw::FamilyHandle> {
        let index = space.index();
        match self.families.get(index) {
            // The last one is not the caller's.
            Some(family) if index + 1 < self.families.len() => Ok(family.as_ptr()),
            _ => Err(EngineError::no_space(space)),
        }
    }

    /// What it was opened with.
    pub fn options(&self) -> &DatabaseOptions {
        &self.options
    }

    /// The spaces, one for each column family that was named.
    pub fn spaces(&self) -> impl Iterator<Item = SpaceId> + use<> {
        let named = self.families.len().saturating_sub(1);
        (0..=u8::MAX).take(named).map(SpaceId)
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
    pub fn property(&self, space: SpaceId, name: &CStr) -> Option<String> {
        let family = self.family(space).ok()?;
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
    pub fn set_option(&self, space: SpaceId, name: &CStr, value: &str) -> EngineResult<()> {
        let family = self.family(space)?;
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
                Handle::Transactional { locks, base, .. } => {
                    if let Some(close_base) = self.functions.transactiondb_close_base_db {
                        close_base(base.as_ptr());
                    }
                    (self.functions.transactiondb_close)(locks.as_ptr());
                }
            }
        }
    }
}
