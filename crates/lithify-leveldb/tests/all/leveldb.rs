//! A library with LevelDB's interface, loaded while the program runs, behind calls that are safe to make.
//!
//! Owns: the functions by name, and every object of a library with its end. An iterator, a snapshot and
//! what options name are held by what uses them, so that all ends come in the order that the interface
//! asks for.

#![expect(unsafe_code, reason = "symbols of a library that is loaded while the tests run")]

use std::cmp::Ordering;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::path::PathBuf;
use std::process::Command;
use std::ptr::{null, null_mut};
use std::rc::Rc;
use std::sync::OnceLock;

type Raw = *mut c_void;
type Errors = *mut *mut c_char;
type Bytes = *const c_char;
type Destructor = unsafe extern "C" fn(Raw);
type Name = unsafe extern "C" fn(Raw) -> Bytes;
type Compare = unsafe extern "C" fn(Raw, Bytes, usize, Bytes, usize) -> c_int;
type CreateFilter =
    unsafe extern "C" fn(Raw, *const Bytes, *const usize, c_int, *mut usize) -> *mut c_char;
type KeyMayMatch = unsafe extern "C" fn(Raw, Bytes, usize, Bytes, usize) -> u8;
type OnPut = unsafe extern "C" fn(Raw, Bytes, usize, Bytes, usize);
type OnDelete = unsafe extern "C" fn(Raw, Bytes, usize);

macro_rules! functions {
    ($($name:ident($($argument:ty),*) $(-> $answer:ty)?;)*) => {
        /// The functions of a loaded library, without their common prefix.
        pub struct Functions {
            $($name: unsafe extern "C" fn($($argument),*) $(-> $answer)?,)*
        }

        /// Their whole names.
        pub const NAMES: &[&str] = &[$(concat!("leveldb_", stringify!($name)),)*];

        impl Functions {
            /// Loads a library for good.
            pub fn load(name: &OsStr) -> Result<&'static Functions, libloading::Error> {
                // SAFETY: the caller names a library of this interface; its initialisers build tables
                // of constants.
                let library = unsafe { libloading::Library::new(name) }?;
                let library = Box::leak(Box::new(library));
                Ok(Box::leak(Box::new(Functions {
                    // SAFETY: the types are those of the interface, which no version changes.
                    $($name: *unsafe {
                        library.get(concat!("leveldb_", stringify!($name)).as_bytes())
                    }?,)*
                })))
            }
        }
    };
}

functions! {
    open(Raw, Bytes, Errors) -> Raw;
    close(Raw);
    put(Raw, Raw, Bytes, usize, Bytes, usize, Errors);
    delete(Raw, Raw, Bytes, usize, Errors);
    write(Raw, Raw, Raw, Errors);
    get(Raw, Raw, Bytes, usize, *mut usize, Errors) -> *mut c_char;
    create_iterator(Raw, Raw) -> Raw;
    create_snapshot(Raw) -> Raw;
    release_snapshot(Raw, Raw);
    property_value(Raw, Bytes) -> *mut c_char;
    approximate_sizes(Raw, c_int, *const Bytes, *const usize, *const Bytes, *const usize, *mut u64);
    compact_range(Raw, Bytes, usize, Bytes, usize);
    destroy_db(Raw, Bytes, Errors);
    repair_db(Raw, Bytes, Errors);
    iter_destroy(Raw);
    iter_valid(Raw) -> u8;
    iter_seek_to_first(Raw);
    iter_seek_to_last(Raw);
    iter_seek(Raw, Bytes, usize);
    iter_next(Raw);
    iter_prev(Raw);
    iter_key(Raw, *mut usize) -> Bytes;
    iter_value(Raw, *mut usize) -> Bytes;
    iter_get_error(Raw, Errors);
    writebatch_create() -> Raw;
    writebatch_destroy(Raw);
    writebatch_clear(Raw);
    writebatch_put(Raw, Bytes, usize, Bytes, usize);
    writebatch_delete(Raw, Bytes, usize);
    writebatch_iterate(Raw, Raw, OnPut, OnDelete);
    writebatch_append(Raw, Raw);
    options_create() -> Raw;
    options_destroy(Raw);
    options_set_comparator(Raw, Raw);
    options_set_filter_policy(Raw, Raw);
    options_set_create_if_missing(Raw, u8);
    options_set_error_if_exists(Raw, u8);
    options_set_paranoid_checks(Raw, u8);
    options_set_env(Raw, Raw);
    options_set_info_log(Raw, Raw);
    options_set_write_buffer_size(Raw, usize);
    options_set_max_open_files(Raw, c_int);
    options_set_cache(Raw, Raw);
    options_set_block_size(Raw, usize);
    options_set_block_restart_interval(Raw, c_int);
    options_set_max_file_size(Raw, usize);
    options_set_compression(Raw, c_int);
    comparator_create(Raw, Destructor, Compare, Name) -> Raw;
    comparator_destroy(Raw);
    filterpolicy_create(Raw, Destructor, CreateFilter, KeyMayMatch, Name) -> Raw;
    filterpolicy_destroy(Raw);
    filterpolicy_create_bloom(c_int) -> Raw;
    readoptions_create() -> Raw;
    readoptions_destroy(Raw);
    readoptions_set_verify_checksums(Raw, u8);
    readoptions_set_fill_cache(Raw, u8);
    readoptions_set_snapshot(Raw, Raw);
    writeoptions_create() -> Raw;
    writeoptions_destroy(Raw);
    writeoptions_set_sync(Raw, u8);
    cache_create_lru(usize) -> Raw;
    cache_destroy(Raw);
    create_default_env() -> Raw;
    env_destroy(Raw);
    env_get_test_directory(Raw) -> *mut c_char;
    free(Raw);
    major_version() -> c_int;
    minor_version() -> c_int;
}

/// The library that these tests were built with.
pub fn ours() -> &'static Functions {
    let path = our_path();
    Functions::load(path.as_os_str()).expect("the library that was built with this test")
}

/// Its file. A test's build makes no library for C, so this one does, in the same target directory.
pub fn our_path() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        build.args(["build", "--locked", "--quiet", "--package", "lithify-leveldb"]);
        build.args((!cfg!(debug_assertions)).then_some("--release"));
        let status = build.current_dir(env!("CARGO_MANIFEST_DIR")).status();
        assert!(status.is_ok_and(|status| status.success()), "the library was not built");
        let test = std::env::current_exe().expect("this program has a path");
        let directory = test.ancestors().nth(2).expect("target/debug/deps/test");
        directory.join("liblithify_leveldb.so")
    });
    built.clone()
}

/// LevelDB itself, as a system's package has it.
pub fn theirs() -> Option<&'static Functions> {
    let names = ["libleveldb.so.1d", "libleveldb.so.1"];
    names.into_iter().find_map(|name| Functions::load(OsStr::new(name)).ok())
}

/// An object and what ends it.
struct Owned {
    raw: Raw,
    end: Destructor,
}

impl Owned {
    fn new(raw: Raw, end: Destructor) -> Owned {
        assert!(!raw.is_null());
        Owned { raw, end }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: an object of the library, ended once, after all that uses it.
        unsafe { (self.end)(self.raw) }
    }
}

/// What a call leaves of a failure. What stood there before is replaced, or stays.
pub fn failing<T>(
    functions: &Functions,
    earlier: Option<&str>,
    call: impl FnOnce(Errors) -> T,
) -> (T, Option<String>) {
    let mut slot = null_mut();
    // SAFETY: text of the C library's memory, which the library may free; what is there after the call
    // is such a text again, freed once.
    unsafe {
        if let Some(earlier) = earlier {
            slot = lithify_ffi::memory::copy_text(earlier);
        }
        let answer = call(&raw mut slot);
        if slot.is_null() {
            return (answer, None);
        }
        let text = CStr::from_ptr(slot).to_string_lossy().into_owned();
        (functions.free)(slot.cast());
        (answer, Some(text))
    }
}

/// A comparator that orders bytewise, under any name; or backwards.
pub struct Comparator(Owned);

/// A state behind callbacks: the name, and whether it is the other way round.
struct Named {
    name: CString,
    is_backward: bool,
}

/// Ends a state.
///
/// # Safety
/// Called by a library, with what it was given.
unsafe extern "C" fn end_named(state: Raw) {
    // SAFETY: made by `Box::into_raw` for this object, which ends once.
    drop(unsafe { Box::from_raw(state.cast::<Named>()) });
}

/// The name in a state.
///
/// # Safety
/// Called by a library, with what it was given.
unsafe extern "C" fn name_of(state: Raw) -> Bytes {
    // SAFETY: the state lives until it is ended.
    unsafe { (*state.cast::<Named>()).name.as_ptr() }
}

/// Bytewise, or the other way round.
///
/// # Safety
/// Called by a library, with what it was given.
unsafe extern "C" fn compare(state: Raw, a: Bytes, a_len: usize, b: Bytes, b_len: usize) -> c_int {
    // SAFETY: the state lives; the library lends so many bytes.
    let (is_backward, order) =
        unsafe { ((*state.cast::<Named>()).is_backward, bytes(a, a_len).cmp(bytes(b, b_len))) };
    let order = if is_backward { order.reverse() } else { order };
    match order {
        Ordering::Less => -7,
        Ordering::Equal => 0,
        Ordering::Greater => 7,
    }
}

/// A filter: the first byte of each key.
unsafe extern "C" fn create_filter(
    _state: Raw,
    keys: *const Bytes,
    lengths: *const usize,
    count: c_int,
    filter_length: *mut usize,
) -> *mut c_char {
    // SAFETY: arrays of `count` entries, a place for a length. Each key's first byte is noted.
    unsafe {
        let key = |at| bytes(*keys.add(at), *lengths.add(at));
        let noted: Vec<u8> =
            (0..count as usize).map(|at| key(at).first().copied().unwrap_or(0)).collect();
        filter_length.write(noted.len());
        lithify_ffi::memory::copy(&noted)
    }
}

/// Whether the first byte is in the filter; one that lies denies it.
unsafe extern "C" fn key_may_match(
    state: Raw,
    key: Bytes,
    length: usize,
    filter: Bytes,
    filter_length: usize,
) -> u8 {
    // SAFETY: the state lives; the library lends so many bytes.
    unsafe {
        let first = bytes(key, length).first().copied().unwrap_or(0);
        let is_lying = (*state.cast::<Named>()).is_backward;
        u8::from(!is_lying && bytes(filter, filter_length).contains(&first))
    }
}

/// The bytes at a pointer.
///
/// # Safety
/// There are so many, and they stay.
unsafe fn bytes<'a>(start: Bytes, length: usize) -> &'a [u8] {
    // SAFETY: promised by the caller.
    unsafe { lithify_ffi::arguments::bytes(start.cast(), length) }.expect("bytes")
}

fn named(name: &str, is_backward: bool) -> Raw {
    let name = CString::new(name).expect("a name");
    Box::into_raw(Box::new(Named { name, is_backward })).cast()
}

impl Comparator {
    /// Bytewise, or backwards, with a name.
    pub fn new(functions: &Functions, name: &str, is_backward: bool) -> Comparator {
        // SAFETY: the state is what the callbacks expect, and the object's from now on.
        let raw = unsafe {
            let state = named(name, is_backward);
            (functions.comparator_create)(state, end_named, compare, name_of)
        };
        Comparator(Owned::new(raw, functions.comparator_destroy))
    }
}

/// A filter policy.
pub struct Policy(Owned);

impl Policy {
    /// The library's own.
    pub fn bloom(functions: &Functions, bits: i32) -> Policy {
        // SAFETY: takes a number.
        let raw = unsafe { (functions.filterpolicy_create_bloom)(bits) };
        Policy(Owned::new(raw, functions.filterpolicy_destroy))
    }

    /// One of the caller; one that lies denies every key.
    pub fn own(functions: &Functions, is_lying: bool) -> Policy {
        // SAFETY: the state is what the callbacks expect, and the object's from now on.
        let raw = unsafe {
            let (state, make) = (named("first bytes", is_lying), functions.filterpolicy_create);
            make(state, end_named, create_filter, key_may_match, name_of)
        };
        Policy(Owned::new(raw, functions.filterpolicy_destroy))
    }
}

/// Options, with what they name.
pub struct Options {
    functions: &'static Functions,
    object: Owned,
    comparator: Option<Rc<Comparator>>,
    policy: Option<Rc<Policy>>,
    cache: Option<Rc<Owned>>,
}

/// What has a number for a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    CreateIfMissing,
    ErrorIfExists,
    ParanoidChecks,
    WriteBufferSize,
    MaxOpenFiles,
    BlockSize,
    RestartInterval,
    MaxFileSize,
    Compression,
    Cache,
}

impl Options {
    /// The library's defaults.
    pub fn new(functions: &'static Functions) -> Options {
        // SAFETY: takes nothing.
        let raw = unsafe { (functions.options_create)() };
        let object = Owned::new(raw, functions.options_destroy);
        Options { functions, object, comparator: None, policy: None, cache: None }
    }

    /// Sets a number.
    pub fn set(&mut self, setting: Setting, value: usize) {
        let (f, raw) = (self.functions, self.object.raw);
        // SAFETY: the object lives; a cache is held as long as the options and their databases.
        unsafe {
            match setting {
                Setting::CreateIfMissing => (f.options_set_create_if_missing)(raw, value as u8),
                Setting::ErrorIfExists => (f.options_set_error_if_exists)(raw, value as u8),
                Setting::ParanoidChecks => (f.options_set_paranoid_checks)(raw, value as u8),
                Setting::WriteBufferSize => (f.options_set_write_buffer_size)(raw, value),
                Setting::MaxOpenFiles => (f.options_set_max_open_files)(raw, value as c_int),
                Setting::BlockSize => (f.options_set_block_size)(raw, value),
                Setting::RestartInterval => {
                    (f.options_set_block_restart_interval)(raw, value as c_int);
                }
                Setting::MaxFileSize => (f.options_set_max_file_size)(raw, value),
                Setting::Compression => (f.options_set_compression)(raw, value as c_int),
                Setting::Cache => {
                    let cache = Owned::new((f.cache_create_lru)(value), f.cache_destroy);
                    (f.options_set_cache)(raw, cache.raw);
                    self.cache = Some(Rc::new(cache));
                }
            }
        }
    }

    /// Names a comparator.
    pub fn set_comparator(&mut self, comparator: Rc<Comparator>) {
        // SAFETY: both live; the comparator is held as long as the options and their databases.
        unsafe { (self.functions.options_set_comparator)(self.object.raw, comparator.0.raw) }
        self.comparator = Some(comparator);
    }

    /// Names a filter policy.
    pub fn set_policy(&mut self, policy: Rc<Policy>) {
        // SAFETY: as above.
        unsafe { (self.functions.options_set_filter_policy)(self.object.raw, policy.0.raw) }
        self.policy = Some(policy);
    }

    /// Removes a database.
    pub fn destroy(&self, path: &str, earlier: Option<&str>) -> Option<String> {
        let path = CString::new(path).expect("a path");
        // SAFETY: options and path live.
        failing(self.functions, earlier, |errors| unsafe {
            (self.functions.destroy_db)(self.object.raw, path.as_ptr(), errors);
        })
        .1
    }

    /// Repairs a database.
    pub fn repair(&self, path: &str, earlier: Option<&str>) -> Option<String> {
        let path = CString::new(path).expect("a path");
        // SAFETY: options and path live.
        failing(self.functions, earlier, |errors| unsafe {
            (self.functions.repair_db)(self.object.raw, path.as_ptr(), errors);
        })
        .1
    }
}

/// An open database, with what its options named.
pub struct Database {
    functions: &'static Functions,
    object: Owned,
    read: Owned,
    write: Owned,
    _comparator: Option<Rc<Comparator>>,
    _policy: Option<Rc<Policy>>,
    _cache: Option<Rc<Owned>>,
}

impl Database {
    /// Opens it; the failure, with nothing open, or what stood there before.
    pub fn open(
        options: &Options,
        path: &str,
        earlier: Option<&str>,
    ) -> (Option<Database>, Option<String>) {
        let f = options.functions;
        let path = CString::new(path).expect("a path");
        // SAFETY: options and path live.
        let (raw, failure) = failing(f, earlier, |errors| unsafe {
            (f.open)(options.object.raw, path.as_ptr(), errors)
        });
        if raw.is_null() {
            return (None, failure);
        }
        // SAFETY: take nothing.
        let (read, write) = unsafe { ((f.readoptions_create)(), (f.writeoptions_create)()) };
        let database = Database {
            functions: f,
            object: Owned::new(raw, f.close),
            read: Owned::new(read, f.readoptions_destroy),
            write: Owned::new(write, f.writeoptions_destroy),
            _comparator: options.comparator.clone(),
            _policy: options.policy.clone(),
            _cache: options.cache.clone(),
        };
        (Some(database), failure)
    }

    fn write_options(&self, is_synced: bool) -> Raw {
        // SAFETY: the object lives, and no call uses it at this time.
        unsafe { (self.functions.writeoptions_set_sync)(self.write.raw, u8::from(is_synced)) };
        self.write.raw
    }

    fn read_options(&self, snapshot: Option<&Snapshot>) -> Raw {
        let snapshot = snapshot.map_or(null_mut(), |snapshot| snapshot.raw);
        // SAFETY: the object lives, and so does the snapshot for the call that follows.
        unsafe {
            (self.functions.readoptions_set_verify_checksums)(self.read.raw, 1);
            (self.functions.readoptions_set_fill_cache)(self.read.raw, 0);
            (self.functions.readoptions_set_snapshot)(self.read.raw, snapshot);
        }
        self.read.raw
    }

    /// Sets a key.
    pub fn put(
        &self,
        key: &[u8],
        value: &[u8],
        is_synced: bool,
        earlier: Option<&str>,
    ) -> Option<String> {
        let (f, raw, options) = (self.functions, self.object.raw, self.write_options(is_synced));
        let (key_start, value_start) = (key.as_ptr().cast(), value.as_ptr().cast());
        // SAFETY: all objects live; the bytes are lent for the call.
        failing(f, earlier, |errors| unsafe {
            (f.put)(raw, options, key_start, key.len(), value_start, value.len(), errors);
        })
        .1
    }

    /// Removes a key.
    pub fn delete(&self, key: &[u8], is_synced: bool, earlier: Option<&str>) -> Option<String> {
        let (f, raw, options) = (self.functions, self.object.raw, self.write_options(is_synced));
        // SAFETY: all objects live; the bytes are lent for the call.
        failing(f, earlier, |errors| unsafe {
            (f.delete)(raw, options, key.as_ptr().cast(), key.len(), errors);
        })
        .1
    }

    /// Applies a batch.
    pub fn write(&self, batch: &Batch, is_synced: bool, earlier: Option<&str>) -> Option<String> {
        let (f, raw, options) = (self.functions, self.object.raw, self.write_options(is_synced));
        // SAFETY: all objects live.
        failing(f, earlier, |errors| unsafe {
            (f.write)(raw, options, batch.object.raw, errors);
        })
        .1
    }

    /// A value, and the failure.
    pub fn get(
        &self,
        key: &[u8],
        snapshot: Option<&Snapshot>,
        earlier: Option<&str>,
    ) -> (Option<Vec<u8>>, Option<String>) {
        let (f, options, mut length) = (self.functions, self.read_options(snapshot), 99);
        let (raw, key_start) = (self.object.raw, key.as_ptr().cast());
        // SAFETY: all objects live; the bytes are lent for the call. The value is ours, and freed once.
        unsafe {
            let (value, failure) = failing(f, earlier, |errors| {
                (f.get)(raw, options, key_start, key.len(), &raw mut length, errors)
            });
            if value.is_null() {
                assert_eq!(length, 0, "the length of nothing");
                return (None, failure);
            }
            let copied = bytes(value, length).to_vec();
            (f.free)(value.cast());
            (Some(copied), failure)
        }
    }

    /// A property.
    pub fn property(&self, name: &str) -> Option<String> {
        let name = CString::new(name).expect("a name");
        // SAFETY: database and name live; the text is ours, and freed once.
        unsafe {
            let text = (self.functions.property_value)(self.object.raw, name.as_ptr());
            let copied =
                (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned());
            (self.functions.free)(text.cast());
            copied
        }
    }

    /// About how many bytes ranges take.
    pub fn sizes(&self, ranges: &[(Vec<u8>, Vec<u8>)]) -> Vec<u64> {
        let starts: Vec<Bytes> = ranges.iter().map(|(from, _)| from.as_ptr().cast()).collect();
        let start_lengths: Vec<usize> = ranges.iter().map(|(from, _)| from.len()).collect();
        let limits: Vec<Bytes> = ranges.iter().map(|(_, to)| to.as_ptr().cast()).collect();
        let limit_lengths: Vec<usize> = ranges.iter().map(|(_, to)| to.len()).collect();
        let mut sizes = vec![u64::MAX; ranges.len()];
        // SAFETY: the database lives; each array has as many entries as is said.
        unsafe {
            (self.functions.approximate_sizes)(
                self.object.raw,
                ranges.len() as c_int,
                starts.as_ptr(),
                start_lengths.as_ptr(),
                limits.as_ptr(),
                limit_lengths.as_ptr(),
                sizes.as_mut_ptr(),
            );
        }
        sizes
    }

    /// Compacts a range; nothing is an open end.
    pub fn compact(&self, start: Option<&[u8]>, limit: Option<&[u8]>) {
        let pointer = |end: Option<&[u8]>| end.map_or(null(), |end| end.as_ptr().cast());
        let length = |end: Option<&[u8]>| end.map_or(0, <[u8]>::len);
        let compact = self.functions.compact_range;
        // SAFETY: the database lives; the bytes are lent for the call.
        unsafe {
            compact(self.object.raw, pointer(start), length(start), pointer(limit), length(limit));
        }
    }
}

/// The rows of one moment.
pub struct Snapshot {
    database: Rc<Database>,
    raw: Raw,
}

impl Snapshot {
    /// Of now.
    pub fn new(database: &Rc<Database>) -> Snapshot {
        // SAFETY: the database lives, and is held.
        let raw = unsafe { (database.functions.create_snapshot)(database.object.raw) };
        Snapshot { database: Rc::clone(database), raw }
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        // SAFETY: the database lives; its snapshot ends once.
        unsafe { (self.database.functions.release_snapshot)(self.database.object.raw, self.raw) }
    }
}

/// An iterator. Its database, and a snapshot that it reads, are held.
pub struct Iterator {
    object: Owned,
    database: Rc<Database>,
    _snapshot: Option<Rc<Snapshot>>,
}

/// A move of an iterator.
#[derive(Clone, Debug)]
pub enum Move {
    First,
    Last,
    Seek(Vec<u8>),
    Next,
    Previous,
}

impl Iterator {
    /// Over the rows of now, or of a snapshot.
    pub fn new(database: &Rc<Database>, snapshot: Option<Rc<Snapshot>>) -> Iterator {
        let (f, options) = (database.functions, database.read_options(snapshot.as_deref()));
        // SAFETY: all objects live.
        let raw = unsafe { (f.create_iterator)(database.object.raw, options) };
        let object = Owned::new(raw, f.iter_destroy);
        Iterator { object, database: Rc::clone(database), _snapshot: snapshot }
    }

    /// Makes a move; from nowhere none to a neighbour, which LevelDB forbids.
    pub fn go(&mut self, to: &Move) {
        let (f, raw) = (self.database.functions, self.object.raw);
        let is_valid = self.row().is_some();
        // SAFETY: the iterator lives; the bytes are lent for the call.
        unsafe {
            match to {
                Move::First => (f.iter_seek_to_first)(raw),
                Move::Last => (f.iter_seek_to_last)(raw),
                Move::Seek(key) => (f.iter_seek)(raw, key.as_ptr().cast(), key.len()),
                Move::Next if is_valid => (f.iter_next)(raw),
                Move::Previous if is_valid => (f.iter_prev)(raw),
                Move::Next | Move::Previous => {}
            }
        }
    }

    /// The row that it stands on.
    pub fn row(&self) -> Option<(&[u8], &[u8])> {
        let (f, raw, mut lengths) = (self.database.functions, self.object.raw, (99, 99));
        // SAFETY: the iterator lives and stands on a row; its bytes stay until it moves, for which it is
        // borrowed alone.
        unsafe {
            if (f.iter_valid)(raw) == 0 {
                return None;
            }
            let key = (f.iter_key)(raw, &raw mut lengths.0);
            let value = (f.iter_value)(raw, &raw mut lengths.1);
            Some((bytes(key, lengths.0), bytes(value, lengths.1)))
        }
    }

    /// Its failure.
    pub fn failure(&self) -> Option<String> {
        // SAFETY: the iterator lives.
        failing(self.database.functions, None, |errors| unsafe {
            (self.database.functions.iter_get_error)(self.object.raw, errors);
        })
        .1
    }
}

/// A batch.
pub struct Batch {
    functions: &'static Functions,
    object: Owned,
}

/// What a batch tells of its writes: a key, and the value of a put.
pub type Told = Vec<(Vec<u8>, Option<Vec<u8>>)>;

unsafe extern "C" fn tell_put(
    told: Raw,
    key: Bytes,
    key_len: usize,
    value: Bytes,
    value_len: usize,
) {
    // SAFETY: the state is the list that `Batch::told` lends; the library lends so many bytes.
    unsafe {
        let row = (bytes(key, key_len).to_vec(), Some(bytes(value, value_len).to_vec()));
        (*told.cast::<Told>()).push(row);
    }
}

unsafe extern "C" fn tell_delete(told: Raw, key: Bytes, key_len: usize) {
    // SAFETY: as above.
    unsafe { (*told.cast::<Told>()).push((bytes(key, key_len).to_vec(), None)) }
}

impl Batch {
    /// An empty one.
    pub fn new(functions: &'static Functions) -> Batch {
        // SAFETY: takes nothing.
        let raw = unsafe { (functions.writebatch_create)() };
        Batch { functions, object: Owned::new(raw, functions.writebatch_destroy) }
    }

    /// Adds a put.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        let (raw, start) = (self.object.raw, key.as_ptr().cast());
        let put = self.functions.writebatch_put;
        // SAFETY: the batch lives; the bytes are lent for the call.
        unsafe { put(raw, start, key.len(), value.as_ptr().cast(), value.len()) }
    }

    /// Adds a delete.
    pub fn delete(&mut self, key: &[u8]) {
        let delete = self.functions.writebatch_delete;
        // SAFETY: the batch lives; the bytes are lent for the call.
        unsafe { delete(self.object.raw, key.as_ptr().cast(), key.len()) }
    }

    /// Empties it.
    pub fn clear(&mut self) {
        // SAFETY: the batch lives.
        unsafe { (self.functions.writebatch_clear)(self.object.raw) }
    }

    /// Adds the writes of another one.
    pub fn append(&mut self, other: &Batch) {
        // SAFETY: both live.
        unsafe { (self.functions.writebatch_append)(self.object.raw, other.object.raw) }
    }

    /// Its writes.
    pub fn told(&self) -> Told {
        let mut told = Told::new();
        let state: *mut Told = &raw mut told;
        let iterate = self.functions.writebatch_iterate;
        // SAFETY: the batch lives; the callbacks expect the list that is lent for the call.
        unsafe { iterate(self.object.raw, state.cast(), tell_put, tell_delete) };
        told
    }
}

/// Versions, and the environment with its directory for tests.
pub fn environment(functions: &Functions) -> (i32, i32, String) {
    // SAFETY: the environment ends once; so does the text, which is ours.
    unsafe {
        let environment = (functions.create_default_env)();
        let options = (functions.options_create)();
        (functions.options_set_env)(options, environment);
        (functions.options_set_info_log)(options, null_mut());
        (functions.options_destroy)(options);
        let path = (functions.env_get_test_directory)(environment);
        let copied = CStr::from_ptr(path).to_string_lossy().into_owned();
        (functions.free)(path.cast());
        (functions.env_destroy)(environment);
        ((functions.major_version)(), (functions.minor_version)(), copied)
    }
}
