//! What `lithify bench` refuses before it measures: experiment files that cannot be meant, places
//! that cannot be written to.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn bench(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lithify"));
    command.current_dir(directory).arg("bench").args(arguments).output().expect("starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The program's own experiment of that name, changed.
fn changed(directory: &Path, file: &str, from: &str, to: &str) {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/chunk-length.toml");
    let own = fs::read_to_string(own).expect("reads");
    assert!(own.contains(from), "{from}");
    fs::create_dir_all(directory.join("mine")).expect("is made");
    fs::write(directory.join("mine").join(file), own.replacen(from, to, 1)).expect("writes");
}

/// A run of one cell of a second.
const SHORT: [&str; 6] = ["run", "chunk-length", "--engine", "lithify", "--arms", "none-4k"];

/// Expects exit code 2, one line that has `part`, and that nothing was left behind.
#[track_caller]
fn refused(directory: &Path, arguments: &[&str], part: &str) {
    let before = names(directory);
    let output = bench(directory, arguments);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.starts_with("error: ") && error.contains(part), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    assert_eq!(names(directory), before);
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("reads").flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn an_engine_that_nobody_knows_is_no_missing_one() {
    let place = tempfile::tempdir().expect("a directory");
    changed(place.path(), "chunk-length.toml", "\"rocksdb\"", "\"rockdsb\"");
    let part = "mine/chunk-length.toml: there is no engine \"rockdsb\"; there are: lithify, ";
    refused(place.path(), &["run", "chunk-length", "--experiments", "mine"], part);
    refused(place.path(), &["run", "mine/chunk-length.toml"], part);
}

#[test]
fn a_file_in_a_directory_of_experiments_has_the_name_of_its_experiment() {
    let place = tempfile::tempdir().expect("a directory");
    changed(place.path(), "other.toml", "\"lithify\"", "\"lithify\"");
    let part = "mine/other.toml: name \"chunk-length\": a file in a directory of experiments has";
    refused(place.path(), &["run", "other", "--experiments", "mine"], part);
}

#[test]
fn a_broken_file_hides_neither_others_nor_what_it_replaces() {
    let place = tempfile::tempdir().expect("a directory");
    changed(place.path(), "chunk-length.toml", "durability", "durabilty");
    let listed = bench(place.path(), &["list", "--experiments", "mine"]);
    let error = text(&listed.stderr);
    assert_eq!(listed.status.code(), Some(2), "{error}");
    assert!(error.contains("mine/chunk-length.toml:") && error.contains("durabilty"), "{error}");
    assert!(text(&listed.stdout).contains("E1   zlib-vs-zstd "));
    let matrix = ["run", "--all", "--only", "E12", "--dry-run", "--experiments", "mine"];
    let matrix = bench(place.path(), &matrix);
    let said = text(&matrix.stdout);
    assert_eq!(matrix.status.code(), Some(1), "{said}");
    assert!(said.contains("chunk-length") && said.contains("BROKEN: "), "{said}");
}

#[test]
fn places_that_cannot_be_written_to_are_refused_before_anything_is_measured() {
    let place = tempfile::tempdir().expect("a directory");
    fs::write(place.path().join("file"), "x").expect("writes");
    let with = |more: &[&'static str]| [SHORT.as_slice(), more].concat();
    refused(place.path(), &with(&["--results", "/proc/results"]), "--results /proc/results: ");
    refused(place.path(), &with(&["--results", "file/results"]), "file/results");
    let output = bench(place.path(), &with(&["--data", "/proc/data/a"]));
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("error: --data /proc/data/a: "), "{error}");
    assert!(!error.contains("cell 1/"), "{error}");
}

#[test]
fn directories_that_were_made_for_data_go_again() {
    let place = tempfile::tempdir().expect("a directory");
    fs::create_dir(place.path().join("mine")).expect("is made");
    let run = bench(place.path(), &[SHORT.as_slice(), &["--data", "mine/made/data"]].concat());
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    assert_eq!(names(place.path()), ["mine", "results"]);
    assert!(names(&place.path().join("mine")).is_empty());
    let record = "results/chunk-length-smoke-lithify.json";
    let part = "nowhere/x: there is no directory nowhere";
    refused(place.path(), &["report", record, "--out", "nowhere/x"], part);
    refused(place.path(), &["pack", record, "--to", "nowhere/x"], part);
    let same = bench(place.path(), &["compare", record, record]);
    assert_eq!(same.status.code(), Some(0), "{}", text(&same.stderr));
    assert!(text(&same.stdout).contains("both names are of one record: no figure differs."));
}

#[test]
fn a_file_that_was_cut_is_named_where_its_run_is_shown() {
    let place = tempfile::tempdir().expect("a directory");
    let run = bench(place.path(), &SHORT);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let all = "lithify bench show results/chunk-length-smoke-lithify.json --full prints all of it.";
    assert!(text(&run.stdout).contains(all), "{}", text(&run.stdout));
    let directory = place.path().join("results/runs/chunk-length-smoke-lithify");
    let is_cell = |name: &String| name.ends_with("-r0.json");
    let cell = names(&directory).into_iter().find(is_cell).expect("a cell");
    fs::write(directory.join(&cell), "{\"schema\": 1").expect("writes");
    let shown =
        text(&bench(place.path(), &["show", "--full", &directory.to_string_lossy()]).stdout);
    let part = format!("{cell} is no result: EOF");
    assert!(shown.contains(&part), "{part} is missing in:\n{shown}");
}

#[test]
fn policies_that_could_not_be_told_apart_or_priced_are_refused() {
    let place = tempfile::tempdir().expect("a directory");
    let place = place.path();
    fs::write(place.join("rows.txt"), "one\ntwo\n").expect("writes");
    let refused = |more: &[&str], part: &str| {
        refused(place, &[&["policies", "--data", "rows.txt"], more].concat(), part);
    };
    refused(&["--data", "rows.txt"], "--data names rows.txt twice");
    refused(&["--mixes", "load,load"], "--mixes names load twice");
    for name in ["lz4", "auto", "auto-space", "none lz4,zstd-1"] {
        let arm = format!("{name}: compression=lz4");
        refused(&["--arm", &arm], "there is a policy of that name");
    }
    refused(&["--mb", "1", "--pace", "1"], "raise --mb or --pace");
    for (arguments, part) in [
        (["policies", "--data", ","], "a name is missing"),
        (["policies", "--arm", "a/b: compression=lz4"], "a policy's name takes"),
        (["db", "--compression", "auto"], "--engine lithify-auto"),
    ] {
        let output = bench(place, &arguments);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(part), "{}", text(&output.stderr));
    }
}

#[cfg(feature = "embedded-engines")]
#[test]
fn a_codec_that_one_of_several_engines_lacks_is_answered_with_none() {
    let place = tempfile::tempdir().unwrap();
    let output = bench(place.path(), &["db", "--engine", "lithify,sqlite"]);
    assert_eq!(output.status.code(), Some(2));
    let error = text(&output.stderr);
    assert!(error.contains("--compression none is for all engines here"), "{error}");
}
