//! `lithify advise` as a program: the answer, exit codes, what an interrupt leaves.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

fn advise(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lithify"));
    command.current_dir(directory).arg("advise").args(arguments).output().expect("starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A directory with a table of so many rows.
fn place(rows: u64) -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a directory");
    let row = |number: u64| {
        let name = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!("{number},secret {name:016x},{}\n", number % 7)
    };
    let rows: String = (0..rows).map(row).collect();
    std::fs::write(place.path().join("rocks.csv"), format!("id,name,kind\n{rows}"))
        .expect("is written");
    place
}

#[test]
fn the_answer_is_a_screen_and_a_json_file() {
    let place = place(5_000);
    let arguments =
        ["rocks.csv", "--key", "id", "--for", "rocksdb,cassandra", "--json", "advice.json"];
    let output = advise(place.path(), &arguments);
    let screen = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(screen.lines().count() <= 40, "{screen}");
    for part in ["5000 rows", "RocksDB", "bottommost_compression=", "compression = {'", "Not known"]
    {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    let json = std::fs::read_to_string(place.path().join("advice.json")).expect("is there");
    let json: serde_json::Value = serde_json::from_str(&json).expect("is JSON");
    assert_eq!(json["targets"][1]["name"], "cassandra");
    for quoted in ["secret", "9e3779b9"] {
        assert!(!screen.contains(quoted) && !json.to_string().contains(quoted), "{quoted}");
    }
}

#[test]
fn prices_and_uses_are_taken_and_said() {
    let place = place(5_000);
    let output = advise(
        place.path(),
        &["rocks.csv", "--for", "rocksdb", "--price", "month=1000000", "--reads-per-row", "0"],
    );
    let screen = text(&output.stdout);
    assert!(screen.contains("your prices"), "{screen}");
    assert!(!screen.contains("--reads-per-row") && screen.contains("--hot"), "{screen}");
    let json = ["rocks.csv", "--for", "zfs", "--price", "month=1000000", "--json", "a.json"];
    assert_eq!(advise(place.path(), &json).status.code(), Some(0));
    let json = std::fs::read_to_string(place.path().join("a.json")).expect("is there");
    assert!(json.contains("month=1000000"), "{json}");
}

#[track_caller]
fn refused(arguments: &[&str], code: i32, part: &str) {
    let place = place(10);
    std::fs::write(place.path().join("ragged.csv"), "1,2\n3,4\n5\n").expect("is written");
    let before = names(place.path());
    let output = advise(place.path(), arguments);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{error}");
    let last = error.lines().last().unwrap_or_default();
    assert!(last.starts_with("error: ") && last.contains(part), "{error}");
    assert!(output.stdout.is_empty() && !error.contains("so far"), "{error}");
    assert_eq!(names(place.path()), before, "nothing half-written is left");
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("is there");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("is there").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn wrong_use_and_wrong_data_have_their_codes() {
    refused(&["missing.csv"], 2, "missing.csv: No such file");
    refused(
        &["rocks.csv", "--for", "oracle", "--json", "a.json"],
        2,
        "there are: lithify, rocksdb",
    );
    refused(&["rocks.csv", "--key", "colour", "--json", "a.json"], 2, "there are: id, name, kind");
    for (name, what) in [
        ("mysql", "no target 'mysql'; its tables are of innodb, innodb-compressed or myrocks"),
        ("mariadb", "name the engine"),
        ("mongo", "MongoDB is mongodb"),
        ("postgres", "PostgreSQL is not among the targets"),
    ] {
        refused(&["rocks.csv", "--for", name], 2, what);
    }
    refused(&["-"], 2, "- is no file: places of a pipe cannot be read; write it to a file first");
    refused(&["rocks.csv", "--months", "-3"], 2, "a life is 0.0001 to 1200 months");
    refused(&["rocks.csv", "--reads-per-row", "-3"], 2, "reads are 0 to 1e12 a row");
    refused(&["rocks.csv", "--hot", "-0.5"], 2, "a share is 0 to 1");
    refused(&["rocks.csv", "--time", "-1"], 2, "a time is 1 to 86400 seconds");
    refused(&["rocks.csv", "--database-size", "-3"], 2, "expected bytes, as 4096");
    refused(&["rocks.csv", "--price", "gold=1"], 2, "gold");
    refused(&["rocks.csv", "--hot", "2"], 2, "a share is 0 to 1");
    refused(&["rocks.csv", "--json", "rocks.csv"], 2, "rocks.csv is the data");
    refused(&["rocks.csv", "--html", "./rocks.csv"], 2, "name another file");
    refused(&[".", "--json", "new.json"], 2, "lies in them");
    refused(&["rocks.csv", "--json", "a", "--html", "./a"], 2, "both name");
    refused(&["ragged.csv", "--json", "a.json"], 1, "ragged.csv:3: a row of 1 field where");
    refused(&["rocks.csv", "--json", "a.json"], 1, "Too little data to advise: 10 rows, ");
    refused(&["--compare", "rocks.csv", "rocks.csv"], 1, "rocks.csv: Too little data");
    refused(&["rocks.csv", "--key", "id,id"], 2, "--key names id twice");
    refused(&["rocks.csv", "--price", "cpu=0,write=0,month=0"], 2, "all settings cost the same");
    refused(&["rocks.csv", "--reads-per-row", "1e300"], 2, "reads are 0 to 1e12");
    refused(&["rocks.csv", "--check", "."], 2, "--check takes one target");
    refused(&["rocks.csv", "--for", "rocksdb", "--check", "."], 2, "has no file of RocksDB");
    refused(&["rocks.csv", "--table", "rocks"], 2, "no tables to choose from");
    refused(&["mysql://somewhere"], 2, "an address is mariadb://");
    refused(&["--compare", "missing.csv", "rocks.csv"], 2, "missing.csv: No such file");
    refused(&["rocks.csv", "--time", "soon"], 2, "a time is 1 to 86400 seconds");
    refused(&["rocks.csv", "--time", "0.5"], 2, "a time is 1 to 86400 seconds");
    refused(&["rocks.csv", "--html", "-"], 2, "--html needs the name of a file");
    refused(&["rocks.csv", "--compare", "rocks.csv", "--json", "-"], 2, "--json - takes the place");
}

#[test]
fn json_goes_to_standard_output_in_place_of_the_screen() {
    let place = place(5_000);
    let before = names(place.path());
    let arguments = ["rocks.csv", "--for", "rocksdb", "--time", "1.5", "--json", "-"];
    let output = advise(place.path(), &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("is JSON alone");
    assert_eq!(json["targets"][0]["name"], "rocksdb");
    assert_eq!(names(place.path()), before, "no file is called -");
}

#[test]
fn a_profile_takes_nothing_that_is_of_data() {
    let place = place(5_000);
    let saved = advise(place.path(), &["rocks.csv", "--for", "rocksdb", "--save", "a.profile"]);
    assert_eq!(saved.status.code(), Some(0), "{}", text(&saved.stderr));
    let cases: [(&[&str], &str); 4] = [
        (&["a.profile", "--time", "5"], "a.profile is a profile: --time is of data"),
        (&["--compare", "a.profile", "a.profile", "--time", "5"], "--time is of data"),
        (&["--compare", "a.profile", "a.profile", "--key", "id"], "are of data"),
        (&["a.profile", "--for", "zfs"], "not measured for zfs; it has: rocksdb"),
    ];
    for (arguments, part) in cases {
        let output = advise(place.path(), arguments);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(part), "{error}");
    }
    let beside = ["--compare", "a.profile", "rocks.csv", "--for", "rocksdb", "--time", "20"];
    let output = advise(place.path(), &beside);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn data_are_compared_by_the_key_of_the_profile() {
    let place = place(5_000);
    let saved = ["rocks.csv", "--key", "name,id", "--for", "rocksdb", "--save", "keyed"];
    assert_eq!(advise(place.path(), &saved).status.code(), Some(0));
    let plain = ["rocks.csv", "--for", "rocksdb", "--time", "5", "--save", "plain"];
    assert_eq!(advise(place.path(), &plain).status.code(), Some(0));
    for arguments in [
        ["--compare", "keyed", "rocks.csv", "--for", "rocksdb", "--json", "now.json"],
        ["--compare", "rocks.csv", "keyed", "--for", "rocksdb", "--json", "now.json"],
    ] {
        let output = advise(place.path(), &arguments);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let json = std::fs::read_to_string(place.path().join("now.json")).expect("is there");
        let json: serde_json::Value = serde_json::from_str(&json).expect("is JSON");
        assert_eq!(json["data"]["key"], "name, id");
    }
    let cases: [(&[&str], &str); 3] = [
        (&["--compare", "keyed", "rocks.csv", "--key", "id"], "is name,id, not id: leave --key"),
        (&["--compare", "plain", "rocks.csv", "--key", "id"], "was saved without a key"),
        (&["--compare", "plain", "keyed"], "has no key, and the key of rocks.csv is name, id"),
    ];
    for (arguments, part) in cases {
        let output = advise(place.path(), arguments);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn what_is_no_file_is_refused_before_it_is_opened() {
    let place = place(10);
    nix::unistd::mkfifo(&place.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU)
        .expect("is made");
    let _socket =
        std::os::unix::net::UnixListener::bind(place.path().join("socket")).expect("is made");
    let cases: [(&[&str], &str); 5] = [
        (&["pipe"], "pipe is no file: places of a pipe"),
        (&["pipe", "--format", "csv"], "pipe is no file: places of a pipe"),
        (&["--compare", "pipe", "rocks.csv"], "pipe is no file: places of a pipe"),
        (&["socket"], "socket is no file: places of a socket"),
        (&["/dev/null"], "/dev/null is no file: places of a device"),
    ];
    for (arguments, part) in cases {
        let output = advise(place.path(), arguments);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn two_days_are_compared_and_rows_quoted_on_request() {
    let place = place(5_000);
    let output = advise(place.path(), &["rocks.csv", "--for", "rocksdb", "--save", "monday.json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let early = text(&output.stderr);
    assert!(early.contains("so far, after ") && early.contains("rocksdb "), "{early}");
    let compared =
        advise(place.path(), &["--compare", "monday.json", "rocks.csv", "--for", "rocksdb"]);
    let screen = text(&compared.stdout);
    assert_eq!(compared.status.code(), Some(0), "{}", text(&compared.stderr));
    assert!(
        screen.contains("before   monday.json") || screen.contains("before   rocks.csv"),
        "{screen}"
    );
    assert!(screen.contains("keep it") || screen.contains("% cheaper"), "{screen}");

    let quoted = advise(place.path(), &["rocks.csv", "--for", "rocksdb", "--show-samples"]);
    assert_eq!(text(&quoted.stdout).matches("secret ").count(), 3, "{}", text(&quoted.stdout));
}

#[test]
fn an_interrupt_prints_what_is_known() {
    let place = place(120_000);
    let child = Command::new(env!("CARGO_BIN_EXE_lithify"))
        .current_dir(place.path())
        .args(["advise", "rocks.csv", "--key", "id", "--time", "600"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    std::thread::sleep(Duration::from_millis(2_500));
    // It may be done already on a fast machine; then there is nobody to tell.
    let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGINT);
    let output = child.wait_with_output().expect("ends");
    let (screen, error) = (text(&output.stdout), text(&output.stderr));
    match output.status.code() {
        // However little is known, it is a screen that says what is not.
        Some(0) => {
            assert!(screen.contains("Measured") && screen.contains("Not known"), "{screen}");
        }
        code => assert_eq!((code, screen.as_str()), (Some(130), ""), "{error}"),
    }
}
