//! Tests through the public interface, in one program: each file is a room of its own.
//!
//! A test that counts what belongs to the process is a program of its own beside this one.

// What only Linux tells of threads.
#[cfg(all(target_os = "linux", not(lithify_portable)))]
mod background;
mod bad_files;
mod close;
mod codec_debt;
mod compaction_filter;
mod copies;
mod counters;
mod dead_ranges;
mod deadlocks;
mod deciding;
mod deletes;
mod dictionaries;
mod events;
mod families;
mod first_guess;
#[cfg(all(target_os = "linux", not(lithify_portable)))]
mod forks;
mod full_disk;
mod ingest;
mod ledger_bytes;
mod limits;
mod log_segments;
mod manual_compaction;
mod memory;
mod merges;
mod metrics;
mod model;
mod open_errors;
mod options_page;
mod paid_rewrites;
mod promises;
mod range_deletes;
mod readers;
mod reads;
mod refusals;
mod repair;
mod resources;
mod serializability;
mod sorted_load;
mod stopped_writers;
mod support;
mod time_to_live;
mod transactions;
mod updates;
mod verify;
