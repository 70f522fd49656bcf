//! The command from outside, in one program: each file is a part of the command line.

mod advise;
mod bench_all;
mod bench_compare;
mod bench_db;
mod bench_durability;
mod bench_refusals;
mod bench_tables;
mod cli;
mod copies;
mod foreign;
mod forms;
mod import;
mod inspect;
#[cfg(feature = "advisor-formats")]
mod parquet;
mod repair;
mod rows;
mod widths;
