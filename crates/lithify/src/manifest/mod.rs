//! Floor 4: which tables are live. Versions are immutable; an edit makes the next one.
//!
//! Owns: the names of files, edits and their bytes, the state that they add up to, the manifest
//! and `CURRENT` on disk, and the lifetimes of files. The format is described in
//! docs/format/manifest.md.
//!
//! Promises: an edit is applied and durable as a whole or not at all; a file number is never
//! given out twice; readers hold a version as long as they like and block nobody. A [`Manifest`]
//! belongs to one thread at a time, states and versions to any.
//!
//! It does not open tables, does not delete files other than old manifests, and does not know
//! what a column family's options mean.

mod current;
mod edit;
mod lifetimes;
mod log;
mod names;
mod readers;
mod state;
mod version;
mod witness;

#[cfg(test)]
mod apply_tests;
#[cfg(test)]
mod edit_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod witness_tests;

pub(crate) use current::{Current, MAGIC as CURRENT_MAGIC, SIZE_BYTES as CURRENT_SIZE_BYTES};
pub use edit::{
    Change, CleanClose, FAMILY_NAME_SIZE_MAX, FAMILY_OPTIONS_SIZE_MAX, FEATURE_DECIDED_COMPRESSION,
    FEATURE_MERGE, FEATURE_WRITE_TIMES, KNOWN_FEATURES, VersionEdit,
};
pub use lifetimes::{DirectoryListing, ObsoleteTables};
pub use log::{FileNumbers, LoadedManifest, Manifest, OpenedManifest, ROTATE_SIZE_BYTES};
pub use names::FileName;
pub(crate) use names::INCOMPLETE;
pub use readers::ManifestPosition;
pub(crate) use readers::{DIRECTORY as READERS_DIRECTORY, ReaderRegistration, Readers};
pub use state::{Applied, FamilyState, ManifestState};
pub use version::{FileMetadata, KeyRange, TableFile, Version};
pub(crate) use witness::{MAGIC as WITNESS_MAGIC, Witness, WitnessKeeper};
