//! Who gives the measuring processes their memory: the C library, or an allocator that the loader
//! puts before it.
//!
//! Owns: the choice, and what a process has to be started with. It is for all engines of a run
//! and for the driver alike. `crate::run::allocator` checks that the loader finds it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

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
pub(crate) struct Library {
    /// The name that the loader looks for.
    pub(crate) file: &'static str,
    /// The Debian package that has it.
    pub(crate) package: &'static str,
}

impl Allocator {
    /// All of them.
    pub const ALL: [Allocator; 4] =
        [Allocator::System, Allocator::Jemalloc, Allocator::Mimalloc, Allocator::Tcmalloc];

    /// True for what the program has by itself.
    pub fn is_system(&self) -> bool {
        *self == Allocator::System
    }

    /// What the loader puts before the C library; nothing for [`Allocator::System`].
    pub(crate) fn library(self) -> Option<Library> {
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
    fn names_are_what_they_say() {
        assert_eq!("jemalloc".parse(), Ok(Allocator::Jemalloc));
        let allowed = "allowed: system, jemalloc, mimalloc, tcmalloc".to_owned();
        assert_eq!("hoard".parse::<Allocator>(), Err(allowed));
        for allocator in Allocator::ALL {
            assert_eq!(allocator.name().parse(), Ok(allocator));
            assert_eq!(allocator.environment().len(), usize::from(!allocator.is_system()));
        }
    }
}
