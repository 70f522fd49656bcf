//! Errors name the line and the key; the built-in experiment is the published matrix.

use super::*;
use crate::experiment::AnyExperiment;
use crate::experiment::tests::built_in;

/// Replaces the first line that is `from`; returns its number and the error of the new text.
fn refused(from: &str, to: &str) -> (usize, ExperimentError) {
    let text = built_in("chunk-length");
    let line = text.lines().position(|line| line == from);
    let line = line.unwrap_or_else(|| panic!("{from} is there")) + 1;
    let text = text.replacen(&format!("\n{from}\n"), &format!("\n{to}\n"), 1);
    (line, ChunkExperiment::parse("e.toml", &text).expect_err("must be refused"))
}

#[test]
fn bad_keys_are_named_with_their_line() {
    let cases = [
        ("partitions = 10", "partition = 10", "workload.partition", "unknown field `partition`"),
        ("partitions = 10", "partitions = 0", "workload.partitions", "1 to 1000000"),
        ("chunks_kib = [4, 16, 64, 256]", "chunks_kib = []", "workload.chunks_kib", "at least one"),
        (
            "chunks_kib = [4, 16, 64, 256]",
            "chunks_kib = [4, 4]",
            "workload.chunks_kib[1]",
            "4 twice",
        ),
        (
            "chunks_kib = [4, 16, 64, 256]",
            "chunks_kib = [4, 8192]",
            "workload.chunks_kib[1]",
            "1 to 4096",
        ),
        ("durability = \"buffered\"", "durability = \"some\"", "workload.durability", "some"),
        ("flushes = 3", "flushes = 0", "scale.smoke.flushes", "1 to 1000"),
        ("memtable_kib = 8192", "memtable_kib = 1024", "scale.smoke.memtable_kib", "2 * text_kib"),
        ("memtable_kib = 8192", "memtable_kib = 99999", "scale.smoke.memtable_kib", "half of"),
        (
            "check = \"larger-chunks-are-smaller\"",
            "check = \"smaller\"",
            "finding[0].check",
            "unknown variant `smaller`",
        ),
    ];
    for (from, to, key, what) in cases {
        let (line, error) = refused(from, to);
        assert_eq!((error.line, error.key.as_str()), (line, key), "{error}");
        assert!(error.what.contains(what), "{error}");
        assert!(error.to_string().starts_with(&format!("e.toml:{line}: key {key}: ")), "{error}");
    }
}

#[test]
fn the_built_in_is_the_published_matrix() {
    let experiment = ChunkExperiment::parse("e.toml", built_in("chunk-length")).expect("parses");
    let arms: Vec<String> = experiment.arms().iter().map(ToString::to_string).collect();
    assert_eq!(arms.len(), 36);
    assert_eq!((&*arms[0], &*arms[10], &*arms[35]), ("none-4k", "lz4-16k", "zstd-9-256k"));
    assert!(["smoke", "standard"].iter().all(|scale| experiment.scales.contains_key(*scale)));
    let again: ChunkExperiment =
        serde_json::from_str(&serde_json::to_string(&experiment).expect("to JSON")).expect("back");
    assert_eq!(again, experiment);
    let any = AnyExperiment::parse("e.toml", built_in("chunk-length")).expect("parses");
    assert!(matches!(any, AnyExperiment::Chunks(_)));
}
