//! The command: what it prints, what it writes, and how it exits.

use std::path::PathBuf;
use std::process::{Command, Output};

fn call(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lithify-sim")).args(arguments).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A file that goes with the test.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_run_prints_a_summary_and_writes_it_as_json() {
    let name = format!("lithify-sim-{}.json", std::process::id());
    let file = Scratch(std::env::temp_dir().join(name));
    let path = file.0.to_str().unwrap();
    let output = call(&[
        "run",
        "--check",
        "metamorphic",
        "--cases",
        "2",
        "--first-case",
        "7",
        "--jobs",
        "1",
        "--json",
        path,
    ]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = out(&output);
    assert!(text.contains("metamorphic: cases 7 to before 9") && text.contains("operations"));
    assert!(text.ends_with("found in all: 0\n"), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(json["checks"][0]["figures"]["cases"], 2);
    assert_eq!(json["checks"][0]["next_case"], 9);
}

#[test]
fn a_case_is_run_again_by_its_number() {
    let output = call(&["replay", "metamorphic", "3"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(out(&output).ends_with("nothing was found in case 3 of metamorphic\n"));
}

#[test]
fn checks_are_listed_and_a_wrong_command_line_is_one_line() {
    let output = call(&["list"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(out(&output).contains("metamorphic"));
    for arguments in [
        &["run", "--check", "nothing"][..],
        &["run", "--cases", "many"],
        &["run", "--cases", "1", "--long"],
        &["run", "--cases", "1", "--json", "/nowhere/at/all.json"],
        &["replay", "nothing", "1"],
        &["dance"],
    ] {
        let output = call(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.starts_with("error: ") && error.lines().count() == 1, "{error}");
    }
    let help = call(&["run", "--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(out(&help).contains("--first-case") && out(&help).contains("Exit codes"));
}
