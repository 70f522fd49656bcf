//! `lithify bench run` of tables and chunks from outside: exit codes, one-line errors, files, runs
//! that are stopped and go on, data sets.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

fn bench(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lithify"));
    command.current_dir(directory).arg("bench").args(arguments);
    command.env("LITHIFY_ENGINES", "nowhere").env("LITHIFY_DATA", "no-data");
    command
}

fn output(directory: &Path, arguments: &[&str]) -> Output {
    bench(directory, arguments).output().expect("starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn place() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

/// Expects exit code 2 and one line on standard error that has `part`.
#[track_caller]
fn refused(arguments: &[&str], part: &str) {
    let place = place();
    let bad = "name = \"bad\"\n[workload]\nkind = \"chunks\"\nlenght = 4\n";
    fs::write(place.path().join("bad.toml"), bad).expect("writes");
    let output = output(place.path(), arguments);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.starts_with("error: ") && error.contains(part), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(!place.path().join("results").exists(), "nothing was done");
}

#[test]
fn wrong_command_lines_exit_with_2() {
    let chunks = |more: &[&'static str]| [&["run", "chunk-length"], more].concat();
    let tables = |more: &[&'static str]| [&["run", "compression-options"], more].concat();
    refused(&["run", "bad.toml"], "bad.toml:4: key workload.lenght: unknown field `lenght`");
    refused(&chunks(&["--arms", "lz4-5k"]), "there is no arm \"lz4-5k\"; there are: none-4k");
    refused(&chunks(&["--scale", "huge"]), "there are: large, smoke, standard");
    refused(&chunks(&["--text", "no-file"]), "no-file: No such file");
    refused(&chunks(&["--text", "chess-names"]), "get it with: lithify bench data chess-names");
    refused(&chunks(&["--nodes", "5000"]), "--nodes is of linkbench");
    refused(&chunks(&["--engine", "model"]), "model keeps nothing on disk");
    refused(&tables(&["--arms", "gzip"]), "there is no arm \"gzip\"; there are: none-16k");
    refused(&tables(&["--text", "x"]), "--text is of chunks");
    refused(&tables(&["--keys", "5000"]), "--keys is of dbbench");
    refused(&tables(&["--repeats", "0"]), "allowed: 1 to 100");
    refused(&["run", "zlib-vs-zstd", "--text", "x"], "--text is of chunks");
    let graph = ["run", "zlib-vs-zstd", "--tables", "wide"];
    refused(&graph, "--tables is of tables, not of linkbench");
    refused(&tables(&["--tables", "wiki-edits"]), "the scale has no rows of wiki-edits");
    refused(
        &tables(&["--tables", "wid"]),
        "there is no table of that name; there are: page-counts",
    );
    refused(&["data", "names"], "there is no data set \"names\"; there are: chess-names, ");
}

#[test]
fn both_are_listed_and_data_sets_say_how_to_get_them() {
    let place = place();
    let listed = text(&output(place.path(), &["list", "--full"]).stdout);
    for part in [
        "chunk-length: Length of a compressed chunk",
        "scale smoke     1024 KiB of text; ",
        "compression-options: Compression options for tables",
        "scale smoke     100000 rows of page-counts, 6000 rows of wide; ",
        "arms            none-16k, lz4-16k, ",
    ] {
        assert!(listed.contains(part), "{part} is missing in:\n{listed}");
    }
    let data = text(&output(place.path(), &["data"]).stdout);
    let missing = "missing: wiki-edits is not here; get it with: lithify bench data wiki-edits";
    assert!(data.contains(missing), "{data}");
}

#[test]
fn chunks_of_a_file_are_measured_once_and_shown_again() {
    let place = place();
    let lines: String =
        (0..20_000).map(|n| format!("line {} of the text\n", n * 7 % 1000)).collect();
    fs::write(place.path().join("text"), lines).expect("writes");
    let arms = ["--full", "--engine", "lithify", "--arms", "none-4k,lz4-64k", "--text", "text"];
    let arguments = [&["run", "chunk-length"][..], &arms].concat();
    let run = output(place.path(), &arguments);
    let (report, progress) = (text(&run.stdout), text(&run.stderr));
    assert_eq!(run.status.code(), Some(0), "{progress}");
    for part in ["2 of 2 cells count", "text: 20000 lines, ", "remark", "not measured here"] {
        assert!(report.contains(part), "{part} is missing in:\n{report}");
    }
    let results = place.path().join("results");
    for end in ["txt", "csv", "json"] {
        assert!(results.join(format!("chunk-length-smoke-lithify.{end}")).is_file(), "{end}");
    }
    assert!(!results.join("runs/chunk-length-smoke-lithify/lithify-none-4k-r0.data").exists());
    let again = output(place.path(), &arguments);
    assert!(text(&again.stderr).contains("lithify-lz4-64k-r0: measured already, kept"));
    assert_eq!(text(&again.stdout), report);
    for shown in
        ["results/chunk-length-smoke-lithify.json", "results/runs/chunk-length-smoke-lithify"]
    {
        assert_eq!(
            text(&output(place.path(), &["show", "--full", shown]).stdout),
            report,
            "{shown}"
        );
    }
    let csv = output(
        place.path(),
        &["show", "--format", "csv", "results/chunk-length-smoke-lithify.json"],
    );
    assert_eq!(text(&csv.stdout).lines().count(), 3);
}

#[test]
fn tables_that_were_stopped_go_on() {
    let place = place();
    let arguments = [
        "run",
        "compression-options",
        "--full",
        "--arms=lz4-16k,zstd-1-64k",
        "--engine",
        "lithify",
    ];
    let mut child = bench(place.path(), &arguments)
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("starts");
    let mut lines = BufReader::new(child.stderr.take().expect("is piped")).lines();
    let began = lines.by_ref().map_while(Result::ok).find(|line| line.starts_with("cell 2/4 "));
    assert!(began.is_some(), "a second cell begins");
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).expect("is there");
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    assert_eq!(child.wait().expect("ends").code(), Some(130), "{rest:?}");
    let last = rest.last().expect("says why");
    assert!(last.contains("stopped; 1 of 4 cells are measured and kept"), "{last}");
    let run = place.path().join("results/runs/compression-options-smoke-lithify");
    let left = fs::read_dir(&run).expect("reads").flatten();
    assert!(left.into_iter().all(|entry| !entry.path().is_dir()), "the data are gone");
    let shown = output(place.path(), &["show", "--full", &run.display().to_string()]);
    assert!(text(&shown.stdout).contains("1 of 4 cells count"), "{}", text(&shown.stderr));
    let again = output(place.path(), &arguments);
    let (report, progress) = (text(&again.stdout), text(&again.stderr));
    assert_eq!(again.status.code(), Some(0), "{progress}");
    assert!(progress.contains("lithify-lz4-16k-page-counts-r0: measured already"), "{progress}");
    for part in ["4 of 4 cells count", "wide: 6000 rows", "separate-commits", "w_dev/size"] {
        assert!(report.contains(part), "{part} is missing in:\n{report}");
    }
}
