//! Workloads, meters and reports.

pub mod adapter;
pub mod engines;
pub mod latency;
pub mod linkbench;
