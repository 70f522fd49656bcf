//! `lithify bench compare` and `bench report` from outside: exit codes, one-line errors, files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn bench(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lithify"));
    command.current_dir(directory).arg("bench").args(arguments).output().expect("starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A committed result.
fn result(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results").join(name)
}

/// A plain copy of a committed result.
fn unpack(name: &str, to: &Path) {
    let (from, to) = (result(name).display().to_string(), to.display().to_string());
    let output = bench(Path::new("."), &["pack", &from, "--to", &to]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

/// A plain copy of a committed result with `from` replaced by `to`.
fn changed(directory: &Path, name: &str, from: &str, to: &str) -> String {
    let plain = directory.join("plain.json");
    unpack(name, &plain);
    let record = fs::read_to_string(plain).expect("a committed result");
    assert!(record.contains(from), "{name} has no {from}");
    let path = directory.join("changed.json");
    fs::write(&path, record.replace(from, to)).expect("writes");
    path.display().to_string()
}

/// Expects an exit code and one line on standard error that has `part`.
#[track_caller]
fn refused(directory: &Path, arguments: &[&str], code: i32, part: &str) {
    let output = bench(directory, arguments);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{error}");
    assert!(error.starts_with("error: ") && error.contains(part), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

const RUN: &str = "lithify-vs-rocksdb-cached.json.zst";

#[test]
fn what_cannot_be_compared_is_refused() {
    let place = tempfile::tempdir().expect("a directory");
    let run = result(RUN).display().to_string();
    refused(place.path(), &["compare", &run, "absent"], 2, "there is no such file");
    refused(place.path(), &["compare", &run], 2, "<SECOND>");
    fs::write(place.path().join("words.json"), "no json").expect("writes");
    refused(place.path(), &["compare", &run, "words.json"], 1, "is no record of a run");
    let smaller = changed(place.path(), RUN, "\"nodes\":1000000", "\"nodes\":50000");
    let part = "not measured alike: nodes 1000000 and 50000";
    refused(place.path(), &["compare", &run, &smaller], 2, part);
    let output = bench(place.path(), &["compare", &run, &smaller, "--ignore-settings"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("Not measured alike: nodes 1000000 and 50000"));
    let other = result("overwrite-lithify.json.zst").display().to_string();
    refused(place.path(), &["compare", &run, &other], 2, "nothing in common");
    fs::create_dir_all(place.path().join("a")).expect("makes");
    fs::create_dir_all(place.path().join("b")).expect("makes");
    refused(place.path(), &["compare", "a", "b"], 2, "have no record of one name");
}

#[test]
fn a_run_against_itself_has_no_winner_in_any_form() {
    let place = tempfile::tempdir().expect("a directory");
    let run = result(RUN).display().to_string();
    let shown = bench(place.path(), &["compare", &run, &run]);
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown.stderr));
    assert!(text(&shown.stdout).contains("the second is significantly better in 0, worse in 0"));
    let csv = text(&bench(place.path(), &["compare", &run, &run, "--csv"]).stdout);
    let json = bench(place.path(), &["compare", &run, &run, "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).expect("is JSON");
    let lines = json["lines"].as_array().expect("lines");
    assert_eq!(csv.lines().count(), lines.len() + 1);
    assert!(
        lines.iter().all(|line| line["verdict"] == "n.s." || line["verdict"] == "direction only")
    );
}

#[test]
fn directories_are_compared_name_by_name() {
    let place = tempfile::tempdir().expect("a directory");
    for directory in ["before", "after"] {
        fs::create_dir_all(place.path().join(directory)).expect("makes");
        for name in [RUN, "db-ladders.json.zst"] {
            let to = place.path().join(directory).join(name);
            fs::copy(result(name), to).expect("copies");
        }
        // A record is found by its name, in either form.
        if directory == "after" {
            let packed = place.path().join("after").join(RUN);
            unpack(RUN, &packed.with_extension(""));
            fs::remove_file(packed).expect("is removed");
        }
        fs::write(place.path().join(directory).join("words.json"), "no json").expect("writes");
    }
    let output = bench(place.path(), &["compare", "before", "after"]);
    let (shown, said) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(shown.contains("before/db-ladders.json.zst") && shown.contains(RUN), "{shown}");
    assert!(said.contains("left out: before/words.json is no record of a run"), "{said}");
}

#[test]
fn a_page_is_made_beside_the_results_or_where_it_is_asked_for() {
    let place = tempfile::tempdir().expect("a directory");
    let packed = place.path().join("run.json.zst");
    fs::copy(result(RUN), &packed).expect("copies");
    let output = bench(place.path(), &["report", "run.json.zst"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "page: run.html\n");
    let page = fs::read_to_string(place.path().join("run.html")).expect("a page");
    assert!(page.starts_with("<!doctype html>") && page.contains("lithify-lz4"));
    let output = bench(place.path(), &["report", "run.json.zst", "--out", "other.html"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(fs::read_to_string(place.path().join("other.html")).expect("a page"), page);
    refused(place.path(), &["report", "absent.json"], 2, "there is no such file");
    refused(place.path(), &["report", "run.json.zst", "--out", "."], 2, "--out . is a directory");
    refused(place.path(), &["report", "run.json.zst", "--out", "no/dir/x.html"], 2, "no/dir");
    fs::write(place.path().join("list.json"), "[]").expect("writes");
    refused(place.path(), &["report", "list.json"], 1, "is no record of a run");
    let frame = fs::read(&packed).expect("reads");
    fs::write(&packed, &frame[..frame.len() / 2]).expect("writes");
    let part = "run.json.zst is no record of a run: zstd: the file is cut off";
    for command in ["report", "show"] {
        refused(place.path(), &[command, "run.json.zst"], 1, part);
    }
}

#[test]
fn a_record_is_not_thinned_where_its_report_would_say_something_else() {
    let place = tempfile::tempdir().expect("a directory");
    let small = place.path().join("small.json");
    let to = small.display().to_string();
    let name = "overwrite-lithify.json.zst";
    let whole = result(name).display().to_string();
    let thin = |record: &str, samples: &str| {
        let output = bench(place.path(), &["pack", record, "--to", &to, "--samples", samples]);
        (output.status.code(), text(&output.stderr))
    };
    // Its table over time would lose lines; and fewer digits make 55.75 of the other, which is
    // printed as 55.8.
    let near = changed(place.path(), name, "55.655138", "55.74999999999999");
    for (record, samples) in [(&whole, "2"), (&near, "1000")] {
        let (code, error) = thin(record, samples);
        assert_eq!(code, Some(1), "{error}");
        assert!(error.contains("the report would say something else"), "{error}");
    }
    assert!(!small.exists());
    let (code, error) = thin(&whole, "1000");
    assert_eq!(code, Some(0), "{error}");
    assert!(small.is_file());
}
