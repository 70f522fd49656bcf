//! Whether an allocator can be had, and whether a process really has it.
//!
//! [`Machine`](crate::meter::machine::Machine) tells what is in force in a process.

use std::path::Path;
use std::process::{Command, Stdio};

use super::RunError;
use crate::adapter::allocator::{Allocator, Library};

impl Allocator {
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
