//! Floor 3: the sorted-table file.

pub mod filter;
