//! Workloads, meters and reports.

pub mod experiment;
