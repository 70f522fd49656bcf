//! The defects that are put into the engine on purpose are never in what is used: the feature that
//! has them stands in two manifests, as one that nothing turns on. In the engine a defect is a
//! statement on lines of its own, so that the code without it reads as if it were not there.

use super::source::Source;
use super::{Complaint, Tree};

/// The feature.
const FEATURE: &str = "planted-defects";

/// The lines that may name it, by manifest.
const ALLOWED: &[(&str, &str)] = &[
    ("crates/lithify/Cargo.toml", "planted-defects = []"),
    ("crates/lithify-sim/Cargo.toml", "planted-defects = [\"lithify/planted-defects\"]"),
];

/// How a site begins.
const SITES: &[&str] = &["if planted!(", "if !planted!("];

/// Complains about sites of defects inside of other expressions.
pub fn check_sites(source: &Source, complaints: &mut Vec<Complaint>) {
    let is_engine = source.path.starts_with("crates/lithify/src/");
    if !is_engine || source.path == "crates/lithify/src/planted.rs" {
        return;
    }
    for (index, line) in source.code.iter().enumerate() {
        let begins = SITES.iter().any(|site| line.trim_start().starts_with(site));
        if line.contains("planted!(") && !begins {
            complaints.push(Complaint {
                path: source.path.clone(),
                line: index + 1,
                what: "a planted defect is an `if planted!(Name)` on lines of its own".to_owned(),
            });
        }
    }
}

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
