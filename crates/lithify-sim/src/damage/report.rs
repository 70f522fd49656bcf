//! What the sweeps add up to, as tables for people.

use super::structure::KINDS;
use crate::check::Tally;
use std::fmt::Write;

/// The table of flipped bits by structure.
pub fn flips(tally: &Tally) -> String {
    let mut page = String::from(
        "| structure | bits | detected | harmless | why harmless |\n|---|---|---|---|---|\n",
    );
    for kind in KINDS {
        let counts = [kind.tried, kind.detected, kind.harmless].map(|name| tally.get(name));
        let [tried, detected, harmless] = counts;
        // INVARIANT of the format: a string takes whatever is written to it.
        let _ = writeln!(
            page,
            "| {} | {tried} | {detected} | {harmless} | {} |",
            kind.name, kind.why_harmless
        );
    }
    page
}

/// The table of changes to whole files.
pub fn files(tally: &Tally) -> String {
    let mut page = String::from("| change | tried | detected | harmless |\n|---|---|---|---|\n");
    for (name, tried) in tally.figures() {
        let Some(change) = name.strip_prefix("tried: ") else { continue };
        let count = |what: &str| tally.get(&format!("{what}: {change}"));
        let _ = writeln!(
            page,
            "| {change} | {tried} | {} | {} |",
            count("detected"),
            count("harmless")
        );
    }
    page
}
