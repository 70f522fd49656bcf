//! Workloads, meters and reports.
