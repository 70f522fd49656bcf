//! `lithify bench durability` from outside: every mode, both crashes, files, and what is left.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn bench(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lithify"));
    command.current_dir(directory).args(["bench", "durability"]).args(arguments);
    command.output().expect("starts")
}

#[test]
fn every_promise_is_tried_and_reported() {
    let place = tempfile::tempdir().expect("a directory");
    let small = ["--full", "--seconds=1", "--writers=2", "--kills=2", "--cuts=4"];
    let output = bench(place.path(), &small);
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(report.contains("✓ Promises: Every promise was kept"), "{report}");
    let rows = |begin: &str| -> Vec<&str> {
        report.lines().filter(|line| line.starts_with(begin)).collect()
    };
    for mode in ["none", "buffered", "interval", "sync"] {
        // Two crashes in two tables; the commits in a chart and two tables.
        assert_eq!(rows(&format!("{mode} ")).len(), 4 + 3, "{mode}: {report}");
    }
    let lost = |mode: &str, crash: &str| {
        let counts = rows(&format!("{mode}, {crash}")).into_iter();
        let counts = counts.filter_map(|row| row.split_whitespace().last()?.parse::<u64>().ok());
        let counts: Vec<u64> = counts.collect();
        assert_eq!(counts.len(), 2, "acknowledged and seen: {report}");
        counts.iter().sum::<u64>() > 0
    };
    assert!(lost("none", "process killed"), "without a log a kill takes something: {report}");
    assert!(!lost("sync", "power cut"), "{report}");
    let results = place.path().join("results");
    let mut files: Vec<_> = fs::read_dir(&results)
        .expect("results")
        .map(|file| file.expect("a file").file_name())
        .collect();
    files.sort();
    let report = ["durability-lithify.html", "durability-lithify.json", "durability-lithify.txt"];
    assert_eq!(files[..3], report);
    assert_eq!(files[3..], ["runs"]);
    let again = bench(place.path(), &small);
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert_eq!(said.matches(": measured already, kept").count(), 4, "{said}");
}

#[test]
fn wrong_command_lines_exit_with_2() {
    let place = tempfile::tempdir().expect("a directory");
    for wrong in [["--writers", "0"], ["--kills", "0"], ["--value-bytes", "70000"]] {
        let output = bench(place.path(), &wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: "));
    }
}
