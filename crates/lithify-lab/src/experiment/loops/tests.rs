//! Errors name the line and the key; the built-in experiment says what was published.

use super::*;
use crate::experiment::BUILT_IN;

fn built_in() -> &'static str {
    BUILT_IN[2].1
}

/// Replaces the first line that is `from`; returns its number and the error of the new text.
fn refused(from: &str, to: &str) -> (usize, ExperimentError) {
    let text = built_in();
    let line = text.lines().position(|line| line == from);
    let line = line.unwrap_or_else(|| panic!("{from} is there")) + 1;
    let text = text.replacen(&format!("\n{from}\n"), &format!("\n{to}\n"), 1);
    (line, LoopExperiment::parse("e.toml", &text).expect_err("must be refused"))
}

#[test]
fn bad_keys_are_named_with_their_line() {
    let row = "  { arm = \"lz4\", values = [224320, 18.05, 9.84, 245, 14.1, 2737, 2693, 0] },";
    let jobs = "  { arm = \"lz4\", values = [0.08, 1.03, 0.47, 0.92, 0.88, 0.88, 0.55] },";
    let cases = [
        ("load = \"fillseq\"", "lode = \"fillseq\"", "workload.lode", "unknown field `lode`"),
        ("load = \"fillseq\"", "load = \"overwrite\"", "workload.load", "fillseq, fillrandom"),
        ("load = \"fillseq\"", "load = \"fill\"", "workload.load", "unknown variant"),
        (
            "tests = [\"readwhilewriting\", \"overwrite\"]",
            "tests = [\"readrandom\"]",
            "workload.tests[0]",
            "readrandom is no test",
        ),
        (
            "tests = [\"readwhilewriting\", \"overwrite\"]",
            "tests = [\"overwrite\", \"overwrite\"]",
            "workload.tests[1]",
            "overwrite twice",
        ),
        (
            "engines = [\"lithify\", \"rocksdb\"]",
            "engines = [\"rocksdb\", \"rocksdb\"]",
            "workload.engines[1]",
            "rocksdb twice",
        ),
        (
            "engines = [\"lithify\", \"rocksdb\"]",
            "engines = []",
            "workload.engines",
            "at least one",
        ),
        ("compression_ratio = 0.5", "compression_ratio = 5", "workload.compression_ratio", "0.01"),
        ("key_bytes = 20", "key_bytes = 7", "workload.key_bytes", "8 to 1024"),
        ("block_kib = 8", "block_kib = 0", "engine.block_kib", "1 to 1024"),
        ("keys = 250_000", "keys = 2", "scale.smoke.keys", "1000 to"),
        ("test_seconds = 3", "test_seconds = 0", "scale.smoke.test_seconds", "1 to 86400"),
        ("block_cache_mib = 16", "block_cache_mib = 32", "scale.smoke.block_cache_mib", "not less"),
        ("level0 = \"none\"", "level0 = \"lz\"", "arm[3].level0", "one of none, snappy"),
        ("level0 = \"none\"", "engine = \"null\"", "arm[3].engine", "none of its own"),
        ("name = \"lz4-but-l0\"", "name = \"lz4\"", "arm[3].name", "second arm"),
        (row, &row.replace("lz4", "lz5"), "published[0].rows[1].arm", "there are: none"),
        (row, &row.replace(", 0]", "]"), "published[0].rows[1].values", "7 values for 8"),
        (row, &row.replace(", 0]", ", nan]"), "published[0].rows[1].values", "NaN is no figure"),
        (jobs, &jobs.replace("0.08, ", ""), "published_jobs[0].rows[1].values", "6 values for 7"),
        ("published = 1.32", "published = 1.4", "headline[0].published", "contradicts"),
        ("published = 1.81", "published = 1.0", "headline[2].published", "1.810"),
        ("published = 2.16", "published = 1.64", "headline[6].published", "2.157"),
        ("published = 1.0", "published = 0.0", "headline[8].published", "above 0"),
    ];
    for (from, to, key, what) in cases {
        let (line, error) = refused(from, to);
        assert_eq!((error.line, error.key.as_str()), (line, key), "{error}");
        assert!(error.what.contains(what), "{error}");
        assert!(error.to_string().starts_with(&format!("e.toml:{line}: key {key}: ")), "{error}");
    }
}

#[test]
fn a_headline_of_a_test_that_is_not_run_is_refused() {
    let from = "tests = [\"readwhilewriting\", \"overwrite\"]";
    let (_, error) = refused(from, "tests = [\"overwrite\"]");
    assert_eq!(error.key, "published[0].test");
    assert!(error.what.contains("there are: overwrite"), "{error}");
}

#[test]
fn published_figures_and_those_that_follow_from_them() {
    let experiment = LoopExperiment::parse("e.toml", built_in()).expect("parses");
    let value = |column, arm| experiment.published_value(Benchmark::Overwrite, column, arm);
    assert_eq!(value(LoopColumn::OperationsPerSecond, "none-upper"), Some(117383.0));
    assert_eq!(value(LoopColumn::FlushPerIngest, "lz4"), Some(71.12 / 127.07));
    assert_eq!(value(LoopColumn::JobBase, "lz4"), Some(28.86));
    assert_eq!(value(LoopColumn::JobDeeper, "lz4"), None);
    assert_eq!(value(LoopColumn::Stall, "none"), None);
    let reading = Benchmark::ReadWhileWriting;
    assert_eq!(experiment.published_value(reading, LoopColumn::JobCpuPerWrite, "lz4"), None);
}
