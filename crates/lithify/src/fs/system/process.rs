//! Processes told apart after a fork.

use super::platform;

/// The process that made something. A child of a fork has its parent's memory and shares its open
/// files, but has none of its threads: locks may be held for ever. So what a parent made is neither used
/// nor ended in the child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin(u32);

impl Origin {
    /// This process.
    pub(crate) fn here() -> Self {
        platform::watch_forks();
        Origin(platform::process_number())
    }

    /// Whether it is this process, not one that this one was forked from.
    #[inline]
    pub(crate) fn is_here(self) -> bool {
        platform::process_number() == self.0
    }
}
