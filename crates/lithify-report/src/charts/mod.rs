//! From figures to plots with their tables: bars, matrices, courses over time, percentiles, points
//! with a frontier, triangles.

mod amplification;
mod bars;
pub mod frontier;
mod latencies;
mod over_time;

pub use amplification::{Amplification, amplification};
pub use bars::{Bar, bars, heat};
pub use latencies::{LatencyRow, jobs, latencies};
pub use over_time::{Course, over_time};
