//! C libraries that are loaded while the program runs.
//!
//! Owns: finding functions by their names ([`functions!`]), objects of a library with an owner
//! ([`Owned`]), and the texts and errors that it hands over. Promises: all names are looked up when
//! a library is loaded, so that a missing one is one error at the start; it stays loaded until the
//! process ends, because its threads cannot be waited for.
//!
//! Calling what was found is unsafe: the adapters prove each call.

#![expect(unsafe_code, reason = "symbols of a library that is loaded while the program runs")]

mod objects;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use lithify_lab::adapter::{EngineError, EngineResult};

pub use objects::{Owned, bytes, checked, take_text};

/// Loads a library for good.
///
/// # Errors
/// It cannot be loaded.
///
/// # Safety
/// The initialisers of the library are safe to run.
pub unsafe fn load(path: &Path) -> EngineResult<&'static libloading::Library> {
    // SAFETY: promised by the caller.
    let library = unsafe { libloading::Library::new(path) };
    let library =
        library.map_err(|error| EngineError::fatal(format!("{}: {error}", path.display())))?;
    Ok(Box::leak(Box::new(library)))
}

/// The functions of a library, which is loaded when they are first asked for.
pub struct LoadedOnce<F: 'static>(Mutex<Option<&'static F>>);

impl<F: 'static> LoadedOnce<F> {
    /// None yet.
    pub const fn new() -> LoadedOnce<F> {
        LoadedOnce(Mutex::new(None))
    }

    /// The functions; `load` is asked until it gives them.
    ///
    /// # Errors
    /// Those of `load`.
    pub fn get(&self, load: impl FnOnce() -> EngineResult<&'static F>) -> EngineResult<&'static F> {
        let mut loaded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match *loaded {
            Some(functions) => Ok(functions),
            None => Ok(*loaded.insert(load()?)),
        }
    }
}

/// Where systems keep their libraries.
const SYSTEM_DIRECTORIES: [&str; 4] =
    ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"];

/// A library that the system's package installs.
///
/// # Errors
/// It is not there: one line that says how to get it.
pub fn system_library(name: &str, package: &str) -> EngineResult<PathBuf> {
    SYSTEM_DIRECTORIES
        .iter()
        .map(|directory| Path::new(directory).join(name))
        .find(|path| path.is_file())
        .ok_or_else(|| {
            EngineError::fatal(format!(
                "{name} is not installed; get it with: apt-get install {package}"
            ))
        })
}

macro_rules! opaque {
    ($($name:ident)*) => { $(
        /// An object of the library, only ever seen behind a pointer.
        #[repr(C)]
        pub struct $name {
            _private: [u8; 0],
        }
    )* };
}

macro_rules! functions {
    (
        prefix $prefix:literal;
        required { $($name:ident($($argument:ty),*) $(-> $result:ty)?;)* }
        optional { $($late:ident($($late_argument:ty),*) $(-> $late_result:ty)?;)* }
    ) => {
        /// The functions of one loaded library. Fields are named like the functions without
        /// their common prefix.
        #[allow(non_snake_case, reason = "the library's own names")]
        pub struct Functions {
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            $(pub $late: Option<unsafe extern "C" fn($($late_argument),*) $(-> $late_result)?>,)*
        }

        impl Functions {
            /// Loads the library and finds the functions.
            ///
            /// # Errors
            /// It cannot be loaded, or a function is missing: which one.
            pub fn load(path: &std::path::Path) -> EngineResult<&'static Functions> {
                let failed = |error: libloading::Error| {
                    EngineError::fatal(format!("{}: {error}", path.display()))
                };
                // SAFETY: the caller names a library of this engine; its initialisers build tables
                // of constants and start nothing.
                let library = unsafe { $crate::library::load(path) }?;
                Ok(Box::leak(Box::new(Functions {
                    // SAFETY: the types are those of the library's documented interface, which
                    // keeps them from version to version.
                    $($name: *unsafe {
                        library.get(concat!($prefix, stringify!($name)).as_bytes())
                    }.map_err(failed)?,)*
                    // SAFETY: as above; a function that is not there is not called.
                    $($late: unsafe {
                        library.get(concat!($prefix, stringify!($late)).as_bytes())
                    }.ok().map(|found| *found),)*
                })))
            }
        }
    };
}

pub(crate) use {functions, opaque};
