//! An open database of WiredTiger behind calls that are safe to make.
//!
//! Owns: loading the library, opening and closing, tables, checkpoints, and what the database says
//! of itself. `cursors` has the calls that touch rows. Promises: cursors do not outlive the
//! database (by lifetimes); it is closed once.
//!
//! Threads: a [`Database`] is shared.

#![expect(unsafe_code, reason = "every call into the loaded library")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::{self, NonNull};

use lithify_lab::adapter::{EngineError, EngineResult};

use super::functions::{self as raw, Functions};

/// An open database with its tables.
pub struct Database {
    pub(super) functions: &'static Functions,
    pub(super) connection: NonNull<raw::Connection>,
    /// The names of the tables, in the order of their spaces.
    pub(super) tables: Vec<CString>,
}

// SAFETY: the library documents that a connection may be used by any number of threads at once;
// each call here opens a session of its own.
unsafe impl Send for Database {}
// SAFETY: as above.
unsafe impl Sync for Database {}

/// Loads the library that the setup has built.
///
/// # Errors
/// It cannot be loaded, or it was built for another version of this program.
pub fn load(path: &Path) -> EngineResult<&'static Functions> {
    let functions = Functions::load(path)?;
    // SAFETY: takes nothing.
    let found = unsafe { (functions.version)() };
    if found != raw::FLAT_VERSION {
        return Err(EngineError::fatal(format!(
            "{}: built for another version of this program ({found}, not {}); get it again with: \
             lithify bench setup wiredtiger",
            path.display(),
            raw::FLAT_VERSION
        )));
    }
    Ok(functions)
}

/// The version of the library.
pub fn library_version(functions: &Functions) -> String {
    // SAFETY: gives a text that stays until the same thread asks again.
    unsafe { copied((functions.library_version)()) }
}

/// The version of a codec's library, where it tells.
pub fn codec_version(functions: &Functions, codec: &CStr) -> Option<String> {
    // SAFETY: the name is live; the text is a constant of the codec's library, or null.
    let version = unsafe { copied((functions.codec_version)(codec.as_ptr())) };
    Some(version).filter(|version| !version.is_empty())
}

/// # Safety
/// `text` is null or ends with a zero byte and stays as it is during the call.
unsafe fn copied(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: promised by the caller.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// What a call has returned: whether there is a row.
///
/// # Errors
/// What the library says; retryable after a conflict.
pub(super) fn found(functions: &Functions, code: c_int) -> EngineResult<bool> {
    match code {
        raw::OK => Ok(true),
        raw::NOT_FOUND => Ok(false),
        // SAFETY: gives a text of this thread.
        _ => Err(error_of(code, &unsafe { copied((functions.message)()) })),
    }
}

/// The same for a call that finds nothing.
pub(super) fn done(functions: &Functions, code: c_int) -> EngineResult<()> {
    match found(functions, code)? {
        true => Ok(()),
        false => Err(EngineError::fatal("WiredTiger: what should be there is not")),
    }
}

/// An error by its code and text. The text of the library begins with time, process and thread.
fn error_of(code: c_int, text: &str) -> EngineError {
    let text = text.split_once("], ").map_or(text, |(_, text)| text);
    let text = format!("WiredTiger: {}", text.lines().collect::<Vec<_>>().join(" "));
    match code {
        raw::RETRY => EngineError::retryable(text),
        _ => EngineError::fatal(text),
    }
}

fn text_of(text: &str) -> EngineResult<CString> {
    CString::new(text).map_err(|_| EngineError::fatal(format!("{text:?} has a zero byte in it")))
}

impl Database {
    /// Opens or makes the database in `directory`, with tables of these names.
    ///
    /// # Errors
    /// What the library refuses.
    pub fn open(
        functions: &'static Functions,
        directory: &Path,
        config: &str,
        names: &[&str],
        table_config: &str,
    ) -> EngineResult<Database> {
        let home = directory
            .to_str()
            .ok_or_else(|| EngineError::fatal(format!("{} is no UTF-8", directory.display())))?;
        let (home, config, table_config) =
            (text_of(home)?, text_of(config)?, text_of(table_config)?);
        let tables = names
            .iter()
            .map(|name| text_of(&format!("table:{name}")))
            .collect::<EngineResult<Vec<_>>>()?;
        let mut connection = ptr::null_mut();
        // SAFETY: the texts are live; the place is filled when the call succeeds.
        done(functions, unsafe {
            (functions.open)(home.as_ptr(), config.as_ptr(), &raw mut connection)
        })?;
        let connection = NonNull::new(connection)
            .ok_or_else(|| EngineError::fatal("WiredTiger opened nothing and gave no reason"))?;
        // Closes itself when a table cannot be made.
        let database = Database { functions, connection, tables };
        for table in &database.tables {
            // SAFETY: connection and texts are live.
            done(functions, unsafe {
                (functions.create)(connection.as_ptr(), table.as_ptr(), table_config.as_ptr())
            })?;
        }
        Ok(database)
    }

    /// Writes all changes to the tables.
    ///
    /// # Errors
    /// The library's.
    pub fn checkpoint(&self) -> EngineResult<()> {
        // SAFETY: the connection is live.
        done(self.functions, unsafe { (self.functions.checkpoint)(self.connection.as_ptr()) })
    }

    /// Closes it, with a last checkpoint.
    ///
    /// # Errors
    /// The library's; it is closed all the same.
    pub fn close(self) -> EngineResult<()> {
        let (functions, connection) = (self.functions, self.connection);
        // It is closed here and not again at its end: of that only the names are left to free.
        let mut this = std::mem::ManuallyDrop::new(self);
        drop(std::mem::take(&mut this.tables));
        // SAFETY: the connection is live, nobody borrows it, and it is not closed again.
        done(functions, unsafe { (functions.close)(connection.as_ptr()) })
    }

    /// Calls `each` with all figures of the database, or of what a name like `table:rows` stands
    /// for.
    ///
    /// # Errors
    /// The library's.
    pub fn statistics(
        &self,
        of: Option<&str>,
        mut each: impl FnMut(&str, i64),
    ) -> EngineResult<()> {
        let uri = text_of(of.unwrap_or_default())?;
        self.told(&mut each, |each, context| {
            // SAFETY: connection and name are live; the callback is called during the call only.
            unsafe {
                (self.functions.statistics)(self.connection.as_ptr(), uri.as_ptr(), each, context)
            }
        })
    }

    /// The configuration that the database keeps for a table's file.
    ///
    /// # Errors
    /// The library's.
    pub fn file_config(&self, file: &str) -> EngineResult<String> {
        let uri = text_of(&format!("file:{file}"))?;
        let mut config = String::new();
        self.told(&mut |text: &str, _: i64| config = text.to_owned(), |each, context| {
            // SAFETY: as above.
            unsafe {
                (self.functions.metadata)(self.connection.as_ptr(), uri.as_ptr(), each, context)
            }
        })?;
        Ok(config)
    }

    /// Makes a call that tells names and numbers.
    fn told<F: FnMut(&str, i64)>(
        &self,
        each: &mut F,
        call: impl FnOnce(raw::Each, *mut c_void) -> c_int,
    ) -> EngineResult<()> {
        unsafe extern "C" fn forward<F: FnMut(&str, i64)>(
            context: *mut c_void,
            name: *const c_char,
            value: i64,
        ) {
            // SAFETY: the context is the closure below, borrowed alone during the call; the name
            // ends with a zero byte.
            let (each, name) = unsafe { (&mut *context.cast::<F>(), copied(name)) };
            each(&name, value);
        }
        let code = call(forward::<F>, ptr::from_mut(each).cast());
        done(self.functions, code)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // SAFETY: the connection is live, and nothing borrows it any more. There is nobody to tell
        // what went wrong.
        let _ = unsafe { (self.functions.close)(self.connection.as_ptr()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_one_line_without_the_place_in_the_process() {
        let text = "[1700000000:1][2:0x7f], wiredtiger_open: [WT_VERB_DEFAULT][ERROR]: no\nspace";
        let error = error_of(3, text);
        assert!(!error.is_retryable());
        assert_eq!(
            error.to_string(),
            "WiredTiger: wiredtiger_open: [WT_VERB_DEFAULT][ERROR]: no space"
        );
        assert!(error_of(raw::RETRY, "WT_ROLLBACK: conflict").is_retryable());
    }
}
