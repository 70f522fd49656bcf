//! Floor 4: which tables are live. Versions are immutable; an edit makes the next one.

mod version;

pub use version::{FileMetadata, KeyRange, TableFile, Version};
