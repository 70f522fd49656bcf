//! The defects that are put into the engine on purpose are never in what is used: the feature that
//! has them stands in two manifests, as one that nothing turns on.

use super::{Complaint, Tree};

/// The feature.
const FEATURE: &str = "planted-defects";

/// The lines that may name it, by manifest.
const ALLOWED: &[(&str, &str)] = &[
    ("crates/lithify/Cargo.toml", "planted-defects = []"),
    ("crates/lithify-sim/Cargo.toml", "planted-defects = [\"lithify/planted-defects\"]"),
];

/// Complains about manifests that could turn the feature on.
pub fn check(tree: &Tree, complaints: &mut Vec<Complaint>) {
    for file in tree.files.iter().filter(|file| file.path.ends_with("Cargo.toml")) {
        let text = String::from_utf8_lossy(&file.bytes);
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.contains(FEATURE) && !ALLOWED.contains(&(file.path.as_str(), line)) {
                complaints.push(Complaint {
                    path: file.path.clone(),
                    line: index + 1,
                    what: format!("{FEATURE} is for tests of the tests: nothing turns it on"),
                });
            }
        }
    }
}
