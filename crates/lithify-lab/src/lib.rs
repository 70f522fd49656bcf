//! Workloads, meters and reports.

pub mod experiment;
pub mod meter;
