//! Workloads, meters and reports.

pub mod adapter;
pub mod engines;
pub mod experiment;
pub mod latency;
pub mod linkbench;
pub mod meter;
pub mod report;
pub mod run;
