//! The tree.

pub(crate) mod departing;
pub(crate) mod families;
pub(crate) mod family;
pub(crate) mod frozen;
pub(crate) mod versions;
