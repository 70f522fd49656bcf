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

/// A library that the system's package installs, or that `LD_LIBRARY_PATH` has, as the loader looks for it.
///
/// # Errors
/// It is not there: one line that says where it was looked for, and how to get it.
pub fn system_library(name: &str, package: &str) -> EngineResult<PathBuf> {
    let named = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let named = std::env::split_paths(&named).filter(|path| !path.as_os_str().is_empty());
    let directories: Vec<PathBuf> =
        named.chain(SYSTEM_DIRECTORIES.iter().map(PathBuf::from)).collect();
    find_library(name, package, &directories)
}

fn find_library(name: &str, package: &str, directories: &[PathBuf]) -> EngineResult<PathBuf> {
    let paths = directories.iter().map(|directory| directory.join(name));
    paths.into_iter().find(|path| path.is_file()).ok_or_else(|| {
        let searched: Vec<String> =
            directories.iter().map(|directory| directory.display().to_string()).collect();
        EngineError::fatal(format!(
            "{name} is not in {}; get it with: apt-get install {package}",
            searched.join(", ")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_found_in_any_directory_or_all_of_them_are_named() {
        let [empty, full] = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
        std::fs::write(full.path().join("libx.so.1"), "").expect("is written");
        let directories = [empty.path().to_owned(), full.path().to_owned()];
        let found = find_library("libx.so.1", "libx1", &directories).expect("is there");
        assert_eq!(found, full.path().join("libx.so.1"));
        let error = find_library("liby.so.1", "liby1", &directories).expect_err("is not there");
        let error = error.to_string();
        assert!(error.contains("liby.so.1 is not in "), "{error}");
        assert!(
            directories.iter().all(|path| error.contains(&path.display().to_string())),
            "{error}"
        );
    }
}
