//! LinkBench over the engine: what its oracle says after the load and after requests.

use std::path::Path;

use super::{Failures, Subject, Verdict, same, text};
use crate::adapter::graph::GraphEngine;
use crate::engines::registry;
use crate::linkbench::expected::Expected;
use crate::linkbench::load::{self, LoadConfig};
use crate::linkbench::request::{self, RequestConfig};
use crate::linkbench::{Control, Graph, GraphConfig, Profile, oracle};

/// Nodes of the graph.
const NODES: u64 = 2_000;

/// Clients, and requests of each.
const CLIENTS: u64 = 2;
const REQUESTS: u64 = 2_000;

/// Loads a graph, runs requests of two clients at once, and has everything checked twice.
pub fn check(subject: &Subject<'_>, root: &Path) -> Vec<String> {
    let mut failures = Failures::default();
    failures.note("the graph agrees", requests(subject, root));
    failures.0
}

fn requests(subject: &Subject<'_>, directory: &Path) -> Verdict {
    std::fs::create_dir_all(directory).map_err(|error| error.to_string())?;
    let engine = registry::open_graph(subject.engine, directory, subject.settings).map_err(text)?;
    let config = GraphConfig::with_nodes(NODES);
    let graph = Graph::new(Profile::lb2013(), config).map_err(|error| error.to_string())?;
    let control = Control::silent();
    let loading = LoadConfig { loaders: CLIENTS, ..LoadConfig::default() };
    let loaded =
        load::run(&graph, &*engine, &loading, &control).map_err(|error| error.to_string())?;
    let mut expected = Expected::after_load(&graph, &loaded, loading.nodes);
    passes(&*engine, &expected, "after the load")?;
    let config = RequestConfig {
        requesters: CLIENTS,
        requests_per_requester: REQUESTS,
        ..RequestConfig::after_load(&graph)
    };
    let outcome =
        request::run(&graph, &*engine, &config, &control).map_err(|error| error.to_string())?;
    same("requests that failed", (outcome.failures, &outcome.first_error), (0, &None))?;
    same("requests", outcome.requests, CLIENTS * REQUESTS)?;
    expected.follow(&outcome);
    passes(&*engine, &expected, "after the requests")?;
    engine.close().map_err(text)
}

fn passes(engine: &dyn GraphEngine, expected: &Expected, when: &str) -> Verdict {
    let report = oracle::check_expected(engine, &Control::silent(), expected)
        .map_err(|error| error.to_string())?;
    if report.passed() && report.nodes > 0 {
        return Ok(());
    }
    Err(format!("{when}: {} nodes, {}", report.nodes, report.described.join("; ")))
}
