//! Figures as text and their spread: those of [`lithify_report`].

pub use lithify_report::Spread;
pub use lithify_report::figure::{figure, figure_or_dash};
