//! `lithify verify` and `lithify repair` as programs: output, exit codes, errors.

use std::path::{Path, PathBuf};
use std::process::Command;

use lithify::{CfOptions, Db, Options};

/// Runs it; exit code, standard output, the lines on standard error that are errors.
fn lithify(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_lithify")).args(arguments).output().expect("starts");
    let error = String::from_utf8(output.stderr).expect("text");
    let error: Vec<&str> = error.lines().filter(|line| line.starts_with("error: ")).collect();
    let out = String::from_utf8(output.stdout).expect("text");
    (output.status.code(), out, error.join("\n"))
}

fn database(directory: &Path) -> PathBuf {
    let path = directory.join("rocks.db");
    let db = Db::open(&path, Options::default()).unwrap();
    let rocks = db.column_family("rocks", CfOptions::default()).unwrap();
    for number in 0..3000 {
        let key = format!("rock/{number:05}");
        rocks.put(key.as_bytes(), format!("igneous {number:050}").as_bytes()).unwrap();
    }
    rocks.flush().unwrap();
    rocks.put(b"rock/new", b"in the log").unwrap();
    db.close().unwrap();
    path
}

#[test]
fn a_sound_database_is_0_and_a_damaged_one_1() {
    let directory = tempfile::tempdir().unwrap();
    let database = database(directory.path());
    let path = database.to_str().unwrap();
    let report = directory.path().join("report.json");
    let report = report.to_str().unwrap();
    let (code, out, error) = lithify(&["verify", path, "--json", report]);
    assert_eq!((code, error.as_str()), (Some(0), ""), "{out}");
    assert!(out.contains("entries") && out.ends_with("sound\n"), "{out}");
    let json = std::fs::read_to_string(report).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (json["sound"].as_bool(), json["examined"]["entries"].as_u64()),
        (Some(true), Some(3000))
    );

    // Beside a writer too.
    let db = Db::open(&database, Options::default()).unwrap();
    let (code, out, error) = lithify(&["verify", path, "--family", "rocks", "--rate", "100"]);
    assert_eq!((code, error.as_str()), (Some(0), ""), "{out}");
    let (code, _, error) = lithify(&["repair", path, "--to", "nowhere"]);
    assert!(code == Some(1) && error.contains("locked"), "{error}");
    db.close().unwrap();

    let table = std::fs::read_dir(&database).unwrap().map(|entry| entry.unwrap().path());
    let table = table.into_iter().find(|path| path.extension().is_some_and(|e| e == "sst"));
    let table = table.unwrap();
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&table, &bytes).unwrap();
    let (code, out, error) = lithify(&["verify", path, "--json", report]);
    assert_eq!(code, Some(1));
    assert!(out.contains("damage: data block of column family \"rocks\""), "{out}");
    assert!(error.contains("block checksum") && error.contains("at offset 0"), "{error}");

    let target = directory.path().join("repaired.db");
    let to = target.to_str().unwrap();
    let (code, out, error) = lithify(&["repair", path, "--to", to, "--json", report]);
    assert_eq!((code, error.as_str()), (Some(1), "error: not everything was saved"), "{out}");
    assert!(out.contains("lost: data block of column family \"rocks\""), "{out}");
    let json = std::fs::read_to_string(report).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["lost"].as_array().unwrap().len(), 1);
    assert_eq!(lithify(&["verify", to]).0, Some(0));
    let db = Db::open(&target, Options::default()).unwrap();
    let rocks = db.existing_column_family("rocks").unwrap().unwrap();
    assert!(rocks.contains(b"rock/02999").unwrap() && rocks.contains(b"rock/new").unwrap());
    assert!(!rocks.contains(b"rock/00000").unwrap());
    let (code, _, error) = lithify(&["repair", path, "--to", to]);
    assert!(code == Some(2) && error.contains("not empty"), "{error}");
}

#[test]
fn the_repair_of_a_whole_database_is_0() {
    let directory = tempfile::tempdir().unwrap();
    let database = database(directory.path());
    let (path, to) = (database.to_str().unwrap(), directory.path().join("repaired.db"));
    let (code, out, error) = lithify(&["repair", path, "--to", to.to_str().unwrap()]);
    assert_eq!((code, error.as_str()), (Some(0), ""), "{out}");
}

#[test]
fn used_wrongly_is_2() {
    let directory = tempfile::tempdir().unwrap();
    let database = database(directory.path());
    let (path, empty) = (database.to_str().unwrap(), directory.path().join("empty"));
    std::fs::create_dir(&empty).unwrap();
    let inside = database.join("inside");
    for arguments in [
        vec!["verify"],
        vec!["verify", "/no/such/directory"],
        vec!["verify", empty.to_str().unwrap()],
        vec!["verify", path, "--family", "lava"],
        vec!["verify", path, "--rate", "0"],
        vec!["verify", path, "--json", "/no/such/directory/report.json"],
        vec!["repair", path],
        vec!["repair", "/no/such/directory", "--to", "x"],
        vec!["repair", path, "--to", inside.to_str().unwrap()],
    ] {
        let (code, _, error) = lithify(&arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {error}");
        assert!(error.starts_with("error: "), "{error}");
    }
    for command in ["verify", "repair"] {
        let (code, out, _) = lithify(&[command, "--help"]);
        assert!(code == Some(0) && out.contains("Examples:") && out.contains("Exit codes:"));
    }
}
