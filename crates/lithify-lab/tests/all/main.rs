//! Tests through the public interface, in one program: each file is a room of its own.

mod amplification;
mod chunks;
mod conformance;
mod dbbench;
mod experiments;
mod job_times;
mod linkbench;
mod open_loop;
mod oracle;
mod oracle_kinds;
mod overwrite;
mod process_kill;
mod screens;
mod tables;
