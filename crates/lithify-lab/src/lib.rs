//! Workloads, meters and reports: the laboratory that runs published experiments on engines.
//!
//! | room | owns |
//! |---|---|
//! | [`adapter`] | what an engine must offer to be measured |
//! | [`conformance`] | what every adapter has to do alike, as cases over any engine |
//! | [`engines`] | the engines that can be measured |
//! | [`linkbench`], [`latency`] | the social-graph workload and its latencies |
//! | [`experiment`] | experiment files: question, scales, arms, published figures |
//! | [`random`] | numbers that follow from a seed |
//! | [`meter`] | what a phase cost the process, the machine and the device |
//! | [`keyvalue`] | what workloads of plain keys and values share |
//! | [`dbbench`] | the loops of the classic key-value benchmark, in pairs of engines |
//! | [`loop_experiment`] | published experiments over those loops: arms of codecs on several engines, times of jobs by level |
//! | [`datasets`] | rows and text: generated, fetched, or the user's own |
//! | [`tables`] | tables of rows: load, aggregate, updates; what compression costs and saves there |
//! | [`chunks`] | text in chunks: size, flush, scan, and how long a codec's call holds a thread |
//! | [`overwrite`] | random overwrites as fast as they go: throughput over time, gaps, space, memory |
//! | [`durability`] | what crashes take in each mode of durability, and what commits cost |
//! | [`amplification`] | read, write and space amplification: formulas and measurements |
//! | [`scalability`] | the curve of throughput by clients |
//! | [`run`] | the plan, one process per cell, results that are kept |
//! | [`report`] | tables, comparison with the published figures, CSV |
//! | [`records`] | the results of a run of any kind, read again |
//! | [`kind`] | what a kind of run has to say of itself |
//! | [`comparison`] | two runs side by side: ratios with intervals, winners outside of noise |
//! | [`html`] | a run as one page: summary, plots, tables |
//! | [`statistics`] | medians; which differences are significant |

pub mod adapter;
pub mod amplification;
pub mod chunks;
pub mod comparison;
pub mod conformance;
pub mod datasets;
pub mod dbbench;
pub mod durability;
pub mod engines;
pub mod experiment;
pub mod html;
pub mod keyvalue;
pub mod kind;
pub mod latency;
pub mod linkbench;
pub mod loop_experiment;
pub mod meter;
pub mod overwrite;
pub mod page_store;
pub mod policies;
pub mod random;
pub mod records;
pub mod report;
pub mod run;
pub mod scalability;
pub mod statistics;
pub mod tables;
