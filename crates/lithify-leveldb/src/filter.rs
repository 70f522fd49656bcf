//! Filter policies of the caller.
//!
//! The engine has filters of its own, so a policy of the caller saves nothing. But it can be seen: what a
//! policy denies, LevelDB does not find. So a policy is asked by each get, with a filter of that one key.

/// A filter policy of the caller; asked from any thread.
pub trait FilterPolicy: Send + Sync {
    /// Whether a filter made of `key` alone says that `key` may be in it.
    fn keeps(&self, key: &[u8]) -> bool;
}
