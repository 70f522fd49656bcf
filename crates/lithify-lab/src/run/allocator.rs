//! Who gives the measuring processes their memory: the C library, or an allocator that the loader
//! puts before it.
//!
//! Owns: the choice, and what a process has to be started with. It is for all engines of a run
//! and for the driver alike. [`Machine`](crate::meter::machine::Machine) tells what is really in
//! force in a process.

use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::RunError;

/// An allocator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Allocator {
    /// What the program has: the C library's, or what the environment puts before it.
    #[default]
    System,
    /// The system's shared library of jemalloc.
    Jemalloc,
    /// The system's shared library of mimalloc.
    Mimalloc,
    /// The system's shared library of tcmalloc, without its profilers.
    Tcmalloc,
}

/// A library that the loader puts before the C library's.
struct Library {
    /// The name that the loader looks for.
    file: &'static str,
    /// The Debian package that has it.
    package: &'static str,
}

impl Allocator {
    /// All of them.
    pub const ALL: [Allocator; 4] =
        [Allocator::System, Allocator::Jemalloc, Allocator::Mimalloc, Allocator::Tcmalloc];

    /// True for what the program has by itself.
    pub fn is_system(&self) -> bool {
        *self == Allocator::System
    }

    fn library(self) -> Option<Library> {
        let (file, package) = match self {
            Allocator::System => return None,
            Allocator::Jemalloc => ("libjemalloc.so.2", "libjemalloc2"),
            Allocator::Mimalloc => ("libmimalloc.so.2", "libmimalloc2.0"),
            Allocator::Tcmalloc => ("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"),
        };
        Some(Library { file, package })
    }

    /// Its name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Allocator::System => "system",
            Allocator::Jemalloc => "jemalloc",
            Allocator::Mimalloc => "mimalloc",
            Allocator::Tcmalloc => "tcmalloc",
        }
    }

    /// Variables with which a process has it.
    pub fn environment(self) -> Vec<(&'static str, &'static str)> {
        self.library().map(|library| ("LD_PRELOAD", library.file)).into_iter().collect()
    }

    /// Asks the loader whether it would find the library for `program`, which is not run.
    ///
    /// # Errors
    /// It would not; how to get it.
    pub fn require(self, program: &Path) -> Result<(), RunError> {
        let Some(library) = self.library() else { return Ok(()) };
        // With this variable the loader lists what it would load, and runs nothing.
        let output = Command::new(program)
            .env("LD_TRACE_LOADED_OBJECTS", "1")
            .envs(self.environment())
            .stdin(Stdio::null())
            .output()
            .map_err(|error| RunError::io(program, error))?;
        self.find(&library, &String::from_utf8_lossy(&output.stdout))
    }

    /// Looks for its library in what the loader lists.
    fn find(self, library: &Library, listing: &str) -> Result<(), RunError> {
        let Library { file, package } = library;
        if listing.contains(file) {
            return Ok(());
        }
        Err(RunError::new(format!(
            "allocator {self}: the loader finds no {file}; install the package {package} \
             (apt-get install {package}), or name its place in LD_LIBRARY_PATH"
        )))
    }

    /// Compares with what [`Machine`](crate::meter::machine::Machine) found in force.
    ///
    /// # Errors
    /// It is another one.
    pub fn verify(self, in_force: &str) -> Result<(), RunError> {
        if self == Allocator::System || in_force.split(' ').next() == Some(self.name()) {
            return Ok(());
        }
        Err(RunError::new(format!(
            "allocator {self} is not in force in this process: memory comes from {in_force}"
        )))
    }
}

impl fmt::Display for Allocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Allocator {
    type Err = String;

    fn from_str(text: &str) -> Result<Allocator, String> {
        let found = Allocator::ALL.into_iter().find(|allocator| allocator.name() == text);
        found.ok_or_else(|| format!("allowed: {}", Allocator::ALL.map(Allocator::name).join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_force_must_be_what_was_asked_for() {
        let found = "jemalloc (/usr/lib/libjemalloc.so.2)";
        assert_eq!(Allocator::Jemalloc.verify(found), Ok(()));
        assert_eq!(Allocator::System.verify(found), Ok(()), "the environment may name one");
        let error = Allocator::Jemalloc.verify("glibc").expect_err("is not in force");
        assert!(error.to_string().ends_with("memory comes from glibc"), "{error}");
        assert_eq!("jemalloc".parse(), Ok(Allocator::Jemalloc));
        let allowed = "allowed: system, jemalloc, mimalloc, tcmalloc".to_owned();
        assert_eq!("hoard".parse::<Allocator>(), Err(allowed));
        for allocator in Allocator::ALL {
            assert_eq!(allocator.name().parse(), Ok(allocator));
            assert_eq!(allocator.environment().len(), usize::from(!allocator.is_system()));
        }
    }

    #[test]
    fn a_missing_library_names_its_package() {
        let listing = "\tlibc.so.6 => /usr/lib/libc.so.6 (0x00007f00)\n";
        for allocator in &Allocator::ALL[1..] {
            let library = allocator.library().expect("has one");
            let error = allocator.find(&library, listing).expect_err("is missing").to_string();
            assert!(error.contains(&format!("install the package {}", library.package)), "{error}");
            let file = library.file;
            let listing = format!("\t{file} => /usr/lib/{file} (0x00007f01)\n{listing}");
            assert_eq!(allocator.find(&library, &listing), Ok(()));
        }
        let nowhere = Path::new("/nowhere/at/all");
        assert_eq!(Allocator::System.require(nowhere), Ok(()));
        let error = Allocator::Jemalloc.require(nowhere).expect_err("is no program").to_string();
        assert!(error.starts_with("/nowhere/at/all: "), "{error}");
    }
}
