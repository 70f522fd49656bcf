//! What workloads of plain keys and values share.
//!
//! Owns: the steps of the classic key-value benchmark by name ([`benchmark`]), its keys and values
//! (`entries`), what clients see
//! over time ([`timeline`]), and what is sampled of engine and process every second ([`samples`]).
//! Does not: open engines, run clients, or write reports.

pub mod benchmark;
pub(crate) mod entries;
pub mod samples;
pub mod timeline;

use crate::adapter::{SpaceId, SpaceSpec};

/// The only space.
pub const SPACE: SpaceId = SpaceId(0);
/// The spaces of these workloads.
pub const SPACES: [SpaceSpec; 1] =
    [SpaceSpec { name: "rows", prefix_bytes: None, single_delete: false }];
