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

use lithify_lab::kind::Kind;
use lithify_report::text::{Options, render};

/// The whole report of a record, in lines that no table breaks.
fn text<K: Kind>(record: &K::Record) -> String {
    render(&K::report(record), Options { width: 1000, full: true, color: false })
}
