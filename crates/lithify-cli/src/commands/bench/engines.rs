//! `lithify bench engines`: the engines by name, and how to get those that are missing.

use std::fmt::Write as _;

use lithify_lab::run::engine;

use crate::fault::{Fault, print};

/// Lists them.
pub fn run() -> Result<(), Fault> {
    let mut text = String::new();
    for provider in engine::providers() {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{:<16} {}", provider.name(), provider.about());
        if let Err(missing) = provider.available() {
            let _ = writeln!(text, "{:<16} missing: {missing}", "");
        }
    }
    print(&text)
}
