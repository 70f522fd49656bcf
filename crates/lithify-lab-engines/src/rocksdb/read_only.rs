//! A database that is read and never written, whoever made it.
//!
//! Owns: opening all its column families, rows from a key on, what bytes lie before a key. Promises:
//! nothing is written into its directory: the library's log goes to another one.

#![expect(unsafe_code, reason = "every call into the loaded library")]

use std::ffi::{CStr, CString, c_char, c_int};
use std::ops::ControlFlow;
use std::path::Path;
use std::ptr::{self, NonNull};

use lithify_lab::adapter::{EngineError, EngineResult};

use super::functions::{self as raw, Functions};
use super::objects::{checked, take_text};
use crate::library::{Owned, bytes};

/// Is given key and value of rows, until it has had enough.
pub type EachRow<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>;

/// Count what is in memtables too.
const WITH_MEMTABLES: u8 = 0b11;
/// Files that are kept open; the others are opened when they are read.
const OPEN_FILES_MAX: c_int = 256;

/// A column family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// Its name.
    pub name: String,
    /// What its files take.
    pub file_bytes: u64,
    /// Rows, as the library estimates them.
    pub rows: u64,
}

/// An open database.
pub struct ReadOnly {
    functions: &'static Functions,
    database: NonNull<raw::Db>,
    handles: Vec<NonNull<raw::FamilyHandle>>,
    /// In the order of the handles.
    pub families: Vec<Family>,
    read: Owned<raw::ReadOptions>,
    _options: Owned<raw::Options>,
}

fn text_of(path: &Path) -> EngineResult<CString> {
    let text = path.to_str().and_then(|path| CString::new(path).ok());
    text.ok_or_else(|| EngineError::fatal(format!("{} is no UTF-8", path.display())))
}

/// A number of a text such as `# data blocks=27; # entries=200000; …`.
fn number_of(properties: &str, name: &str) -> Option<u64> {
    let mut pairs = properties.split(';').filter_map(|pair| pair.split_once('='));
    pairs.find(|(found, _)| found.trim() == name)?.1.trim().parse().ok()
}

impl ReadOnly {
    /// Opens the database in `directory`; `log_directory` takes the library's log.
    ///
    /// # Errors
    /// What the library refuses: another comparator, a missing file.
    pub fn open(
        functions: &'static Functions,
        directory: &Path,
        log_directory: &Path,
    ) -> EngineResult<ReadOnly> {
        let (path, log) = (text_of(directory)?, text_of(log_directory)?);
        // SAFETY: takes nothing, gives objects of ours, which are changed while nobody else has
        // them; the text is copied.
        let (options, read) = unsafe {
            let options = Owned::new((functions.options_create)(), functions.options_destroy)?;
            (functions.options_set_db_log_dir)(options.get(), log.as_ptr());
            (functions.options_set_max_open_files)(options.get(), OPEN_FILES_MAX);
            let read = Owned::new((functions.readoptions_create)(), functions.readoptions_destroy)?;
            (functions.readoptions_set_total_order_seek)(read.get(), 1);
            (options, read)
        };
        let names = family_names(functions, &options, &path)?;
        let pointers: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
        let each = vec![options.get().cast_const(); names.len()];
        let mut handles = vec![ptr::null_mut(); names.len()];
        // SAFETY: arrays of as many live texts, options and places as there are names.
        let database = checked(functions, |error| unsafe {
            (functions.open_for_read_only_column_families)(
                options.get(),
                path.as_ptr(),
                names.len() as c_int,
                pointers.as_ptr(),
                each.as_ptr(),
                handles.as_mut_ptr(),
                0,
                error,
            )
        })?;
        let database = NonNull::new(database)
            .ok_or_else(|| EngineError::fatal("the library of RocksDB opened nothing"))?;
        let handles = handles.into_iter().filter_map(NonNull::new).collect();
        let mut opened = ReadOnly {
            functions,
            database,
            handles,
            families: Vec::new(),
            read,
            _options: options,
        };
        opened.families = (names.iter().enumerate())
            .map(|(at, name)| Family {
                name: name.to_string_lossy().into_owned(),
                file_bytes: opened.number(at, c"rocksdb.live-sst-files-size"),
                rows: opened.rows(at),
            })
            .collect();
        Ok(opened)
    }

    /// Rows: entries of all tables, each removal taken off with what it removes. The library's own estimate
    /// (`rocksdb.estimate-num-keys`) reads twenty tables and takes the others to be like them: it was off by
    /// 15 % where tables differ in size. It stands in where the properties cannot be read.
    fn rows(&self, family: usize) -> u64 {
        let all = self.property(family, c"rocksdb.aggregated-table-properties").unwrap_or_default();
        match (number_of(&all, "# entries"), number_of(&all, "# deletions")) {
            (Some(entries), Some(deletions)) => entries.saturating_sub(2 * deletions),
            _ => self.number(family, c"rocksdb.estimate-num-keys"),
        }
    }

    /// A property that is a number, or 0.
    fn number(&self, family: usize, name: &CStr) -> u64 {
        self.property(family, name).and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    fn property(&self, family: usize, name: &CStr) -> Option<String> {
        let handle = self.handles.get(family)?;
        // SAFETY: database, family and name are live; the text is handed over to us.
        unsafe {
            let text = (self.functions.property_value_cf)(
                self.database.as_ptr(),
                handle.as_ptr(),
                name.as_ptr(),
            );
            take_text(self.functions, text)
        }
    }

    fn iterator(&self, family: usize) -> EngineResult<Owned<raw::Iter>> {
        let handle = self.handles.get(family);
        let handle = handle.ok_or_else(|| EngineError::fatal("there is no such family"))?;
        // SAFETY: database, options and family are live; the iterator is ours.
        unsafe {
            let iterator = (self.functions.create_iterator_cf)(
                self.database.as_ptr(),
                self.read.get(),
                handle.as_ptr(),
            );
            Owned::new(iterator, self.functions.iter_destroy)
        }
    }

    /// Rows of a family from a key on, until `each` has had enough.
    ///
    /// # Errors
    /// The library's: damage, or a merge operator that it does not have.
    pub fn read(&self, family: usize, from: &[u8], each: EachRow<'_>) -> EngineResult<()> {
        let iterator = self.iterator(family)?;
        // SAFETY: the iterator is live; the key is read during the call.
        unsafe { (self.functions.iter_seek)(iterator.get(), from.as_ptr().cast(), from.len()) };
        while let Some((key, value)) = self.row(&iterator) {
            if each(key, value).is_break() {
                return Ok(());
            }
            // SAFETY: the iterator stands on a row, which nobody holds any more.
            unsafe { (self.functions.iter_next)(iterator.get()) };
        }
        // SAFETY: the iterator is live.
        checked(self.functions, |error| unsafe {
            (self.functions.iter_get_error)(iterator.get(), error);
        })
    }

    fn row<'a>(&self, iterator: &'a Owned<raw::Iter>) -> Option<(&'a [u8], &'a [u8])> {
        let (mut key_size, mut value_size) = (0, 0);
        // SAFETY: the iterator is live; its bytes stay until it is moved, which its one user does
        // after the row is no longer held.
        unsafe {
            if (self.functions.iter_valid)(iterator.get()) == 0 {
                return None;
            }
            let key = (self.functions.iter_key)(iterator.get(), &raw mut key_size);
            let value = (self.functions.iter_value)(iterator.get(), &raw mut value_size);
            Some((bytes(key, key_size), bytes(value, value_size)))
        }
    }

    /// The last key of a family.
    ///
    /// # Errors
    /// The library's.
    pub fn last_key(&self, family: usize) -> EngineResult<Vec<u8>> {
        let iterator = self.iterator(family)?;
        // SAFETY: the iterator is live.
        unsafe { (self.functions.iter_seek_to_last)(iterator.get()) };
        Ok(self.row(&iterator).map_or_else(Vec::new, |(key, _)| key.to_vec()))
    }

    /// About how many bytes of a family lie between two keys.
    ///
    /// # Errors
    /// The library's.
    pub fn bytes_between(&self, family: usize, from: &[u8], to: &[u8]) -> EngineResult<u64> {
        let handle = self.handles.get(family);
        let handle = handle.ok_or_else(|| EngineError::fatal("there is no such family"))?;
        let (start, end) = (from.as_ptr().cast(), to.as_ptr().cast());
        let (from_bytes, to_bytes, mut size) = (from.len(), to.len(), 0);
        // SAFETY: database and family are live; each array has the one entry that is said.
        checked(self.functions, |error| unsafe {
            let (database, handle) = (self.database.as_ptr(), handle.as_ptr());
            let (start, end) = (&raw const start, &raw const end);
            let lengths = (&raw const from_bytes, &raw const to_bytes);
            match self.functions.approximate_sizes_cf_with_flags {
                Some(sizes) => sizes(
                    database,
                    handle,
                    1,
                    start,
                    lengths.0,
                    end,
                    lengths.1,
                    WITH_MEMTABLES,
                    &raw mut size,
                    error,
                ),
                None => (self.functions.approximate_sizes_cf)(
                    database,
                    handle,
                    1,
                    start,
                    lengths.0,
                    end,
                    lengths.1,
                    &raw mut size,
                    error,
                ),
            }
        })?;
        Ok(size)
    }
}

/// The names of all column families.
fn family_names(
    functions: &Functions,
    options: &Owned<raw::Options>,
    path: &CStr,
) -> EngineResult<Vec<CString>> {
    let mut count = 0;
    // SAFETY: options and path are live; the list is ours until it is destroyed below.
    let list = checked(functions, |error| unsafe {
        (functions.list_column_families)(options.get(), path.as_ptr(), &raw mut count, error)
    })?;
    if list.is_null() {
        return Err(EngineError::fatal("the library of RocksDB lists no column family"));
    }
    // SAFETY: the list has `count` texts, which are copied before it is destroyed, once.
    unsafe {
        let names = (0..count).map(|at| CStr::from_ptr(*list.add(at)).to_owned()).collect();
        (functions.list_column_families_destroy)(list, count);
        Ok(names)
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        // SAFETY: iterators do not outlive the calls that make them; handles go first, each once.
        unsafe {
            for handle in &self.handles {
                (self.functions.column_family_handle_destroy)(handle.as_ptr());
            }
            (self.functions.close)(self.database.as_ptr());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::number_of;

    #[test]
    fn numbers_are_found_by_their_whole_name() {
        let text = "# data blocks=27; # entries=200; # deletions=4; raw key size=16";
        assert_eq!(number_of(text, "# entries"), Some(200));
        assert_eq!(number_of(text, "# deletions"), Some(4));
        assert_eq!(number_of(text, "entries"), None);
        assert_eq!(number_of("", "# entries"), None);
    }
}
