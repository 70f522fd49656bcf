//! Tables of text: those of [`lithify_report`].

pub use lithify_report::grid::{Align, Grid, table};
