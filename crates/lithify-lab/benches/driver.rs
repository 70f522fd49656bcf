//! What the driver itself costs: the full request loop over the engine that does nothing.
//!
//! `cargo bench -p lithify-lab --bench driver` prints requests per second and core for the mix and
//! for each operation alone. The core's share is measured by CPU time, so other processes on the
//! machine do not lower the figure.

use std::error::Error;

use lithify_lab::engines::null::NullEngine;
use lithify_lab::linkbench::request::{self, RequestConfig};
use lithify_lab::linkbench::{Control, Graph, GraphConfig, OpMix, Operation, Profile};

/// CPU time of this process, seconds.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn measure(name: &str, profile: Profile, requests: u64) -> Result<f64, Box<dyn Error>> {
    let graph = Graph::new(profile, GraphConfig::with_nodes(1_000_000))?;
    let engine = NullEngine::of_graph();
    let config = RequestConfig {
        requesters: 1,
        requests_per_requester: requests,
        ..RequestConfig::after_load(&graph)
    };
    let cpu_before = cpu_seconds();
    let outcome = request::run(&graph, &engine, &config, &Control::silent())?;
    let cpu = cpu_seconds() - cpu_before;
    let per_core = outcome.requests as f64 / cpu;
    println!(
        "{name:<16} {per_core:>12.0} requests/s/core {:>8.0} ns CPU/request {:>12.0}/s wall",
        cpu * 1e9 / outcome.requests as f64,
        outcome.requests_per_second,
    );
    Ok(per_core)
}

fn main() -> Result<(), Box<dyn Error>> {
    let per_core = measure("lb2013 mix", Profile::lb2013(), 5_000_000)?;
    for operation in Operation::REPORTED {
        let profile = Profile { mix: OpMix::only(operation), ..Profile::lb2013() };
        measure(operation.name(), profile, 1_000_000)?;
    }
    println!(
        "requirement: 1000000 requests/s/core over the mix: {}",
        if per_core >= 1e6 { "met" } else { "NOT met" }
    );
    Ok(())
}
