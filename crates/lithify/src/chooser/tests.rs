//! Decisions from recorded inputs: a record, a line of dashes, what is decided. `LITHIFY_REWRITE=1`
//! writes what is below the line anew; then read the difference.

use super::*;
use crate::codec::Compression;
use std::path::Path;

fn choose(text: &str) -> String {
    let mut record: Record = text.parse().unwrap();
    let mut decided = String::new();
    for (level, conditions) in record.asked.clone() {
        let decision = record.chooser.decide(level, &conditions, Compression::LZ4);
        decided.push_str(&decision.to_string());
    }
    decided
}

#[test]
fn recorded_inputs_give_the_recorded_decisions() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/chooser/testdata");
    let mut paths: Vec<_> =
        std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 6, "{} cases", paths.len());
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let (input, expected) = text.split_once("----\n").unwrap_or((&text, ""));
        let decided = choose(input);
        if std::env::var_os("LITHIFY_REWRITE").is_some() {
            std::fs::write(&path, format!("{input}----\n{decided}")).unwrap();
        } else {
            assert_eq!(decided, expected, "{}: LITHIFY_REWRITE=1 writes it anew", path.display());
        }
    }
}
