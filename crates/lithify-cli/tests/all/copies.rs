//! `lithify checkpoint`, `backup` and `restore` as programs: output, exit codes, errors, Ctrl-C.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lithify::{CfOptions, Compression, Db, Options};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// Runs it in a directory, and asserts the exit code and that an error is one line.
fn expect(place: &Path, code: i32, arguments: &[&str]) -> (String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lithify"));
    let output = command.current_dir(place).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{out}\n{error}");
    let errors = error.lines().filter(|line| line.starts_with("error: ")).count();
    assert_eq!(errors, usize::from(code != 0), "{arguments:?}\n{error}");
    (out, error)
}

fn json(place: &Path, arguments: &[&str]) -> Value {
    let (out, _) = expect(place, 0, &[arguments, &["--json"]].concat());
    assert_eq!(out.lines().count(), 1, "{out}");
    serde_json::from_str(&out).unwrap()
}

fn options() -> Options {
    Options { background_threads: 0, ..Options::default() }
}

/// A database `rocks.db` of so many rows of 1000 bytes that do not shrink, most of them in tables.
fn database(place: &Path, rows: u64) -> PathBuf {
    let path = place.join("rocks.db");
    let db = Db::open(&path, options()).unwrap();
    let compression = Compression::NONE.into();
    let rocks = db.column_family("rocks", CfOptions { compression, ..CfOptions::default() });
    let rocks = rocks.unwrap();
    for number in 0..rows {
        rocks.put(format!("rock/{number:08}").as_bytes(), [number as u8; 1000]).unwrap();
    }
    rocks.flush().unwrap();
    rocks.put(b"rock/new", b"in the log").unwrap();
    db.close().unwrap();
    path
}

fn row(database: &Path, key: &[u8]) -> Option<Vec<u8>> {
    let db = Db::open(database, Options { create_if_missing: false, ..options() }).unwrap();
    let rocks = db.existing_column_family("rocks").unwrap().unwrap();
    rocks.get(key).unwrap().map(|value| value.to_vec())
}

fn names(place: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(place).unwrap();
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<_> =
        entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The user named the directory, and not what is in it.
#[test]
fn a_directory_with_other_files_is_named_before_them() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    database(place, 10);
    std::fs::create_dir(place.join("photos")).unwrap();
    std::fs::write(place.join("photos/bins.dat"), "0").unwrap();
    let to_do = " here but other files, such as bins.dat: name a new or an empty directory, in ";
    let is_said = |what: &str, error: &str| {
        error.starts_with(&format!("error: there is no {what}{to_do}"))
            && error.ends_with("photos\n")
    };
    let (_, error) = expect(place, 2, &["put", "photos", "x", "y", "--create"]);
    assert!(is_said("database", &error), "{error}");
    let (_, error) = expect(place, 2, &["backup", "create", "photos", "rocks.db"]);
    assert!(is_said("backup store", &error), "{error}");
}

#[test]
fn a_checkpoint_says_what_it_took() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    database(place, 100);
    let (out, error) = expect(place, 0, &["checkpoint", "rocks.db", "copy.db"]);
    assert!(
        out.starts_with("checkpoint in copy.db, through sequence 101: 1 tables linked ("),
        "{out}"
    );
    assert!(error.contains("checkpoint"), "plain lines of progress: {error}");
    assert_eq!(row(&place.join("copy.db"), b"rock/new").as_deref(), Some(&b"in the log"[..]));
    let made = json(place, &["checkpoint", "rocks.db", "second.db", "--copy", "--flush"]);
    assert_eq!((&made["linked_tables"], &made["copied_tables"]), (&0.into(), &2.into()), "{made}");
    assert_eq!((&made["log_bytes"], &made["link_refusal"]), (&0.into(), &Value::Null));
    let (_, error) = expect(place, 2, &["checkpoint", "rocks.db", "copy.db"]);
    let expected = "error: already exists: name a directory that is not there, in copy.db\n";
    assert_eq!(error, expected);
    let (_, error) = expect(place, 2, &["checkpoint", "missing.db", "third.db"]);
    assert_eq!(error, "error: there is no database here: missing.db\n");
    expect(place, 2, &["checkpoint", "rocks.db", "third.db", "--rate", "0"]);
    assert_eq!(names(place), ["copy.db", "rocks.db", "second.db"]);
}

#[test]
fn copies_are_made_beside_a_process_that_writes() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let path = database(place, 100);
    let open = Db::open(&path, options()).unwrap();
    let rocks = open.existing_column_family("rocks").unwrap().unwrap();
    rocks.put(b"rock/beside", b"in the log of the writer").unwrap();
    let (out, _) = expect(place, 0, &["checkpoint", "rocks.db", "copy.db"]);
    assert!(
        out.starts_with("checkpoint in copy.db, through sequence 102: 1 tables linked"),
        "{out}"
    );
    let made = json(place, &["backup", "create", "store", "rocks.db"]);
    assert_eq!(made["backup"]["sequence"], 102, "{made}");
    for arguments in [
        &["checkpoint", "rocks.db", "no.db", "--flush"][..],
        &["backup", "create", "no", "rocks.db", "--flush"],
    ] {
        let (_, error) = expect(place, 1, arguments);
        assert!(
            error.contains("another process has this database open") && error.contains("--flush"),
            "{error}"
        );
    }
    rocks.put(b"rock/later", b"not in the copies").unwrap();
    open.close().unwrap();
    expect(place, 0, &["restore", "store", "--to", "back.db"]);
    for copy in ["copy.db", "back.db"] {
        assert!(row(&place.join(copy), b"rock/beside").is_some());
        assert!(row(&place.join(copy), b"rock/later").is_none());
        let (out, _) = expect(place, 0, &["verify", copy]);
        assert!(out.ends_with("sound\n"), "{out}");
    }
    assert!(row(&path, b"rock/later").is_some(), "the database goes on");
    assert_eq!(names(place), ["back.db", "copy.db", "rocks.db", "store"]);
}

#[test]
fn backups_are_made_listed_restored_and_deleted() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let path = database(place, 100);
    let (out, _) = expect(place, 0, &["backup", "create", "store", "rocks.db", "--note", "first"]);
    assert!(out.starts_with("backup 1, through sequence 101: 2 files copied ("), "{out}");
    let db = Db::open(&path, options()).unwrap();
    db.existing_column_family("rocks").unwrap().unwrap().put(b"rock/later", b"2").unwrap();
    db.close().unwrap();
    let second = json(place, &["backup", "create", "store", "rocks.db", "--check-shared"]);
    assert_eq!((&second["backup"]["id"], &second["shared_files"]), (&2.into(), &1.into()));
    let (out, _) = expect(place, 0, &["backup", "list", "store"]);
    let lines: Vec<_> = out.lines().collect();
    assert!(lines[0].starts_with("ID  MADE (UTC)") && lines[0].ends_with("NOTE"), "{out}");
    assert!(lines[1].starts_with(" 1  20") && lines[1].ends_with("first"), "{out}");
    assert_eq!(lines.len(), 3);
    let list = json(place, &["backup", "list", "store"]);
    assert_eq!(list["backups"][1]["sequence"], 102);
    assert_eq!(list["backups"][1]["oldest_sequence"], 100, "{list}");
    let (out, _) = expect(place, 0, &["backup", "verify", "store"]);
    assert!(out.contains("backup 1: whole") && out.contains("4 files read"), "{out}");
    let (out, _) = expect(place, 0, &["restore", "store", "--to", "latest.db"]);
    assert!(out.starts_with("backup 2 restored in latest.db, through sequence 102"), "{out}");
    let first = json(place, &["restore", "store", "1", "--to", "first.db"]);
    assert_eq!((&first["backup"], &first["sequence"]), (&1.into(), &101.into()));
    let back = ["restore", "store", "latest", "--to", "back.db", "--up-to-sequence", "101"];
    assert_eq!(json(place, &back)["sequence"], 101);
    assert!(row(&place.join("latest.db"), b"rock/later").is_some());
    for name in ["first.db", "back.db"] {
        assert!(row(&place.join(name), b"rock/later").is_none());
        assert!(row(&place.join(name), b"rock/new").is_some());
    }
    for (refused, part) in [
        (&["restore", "store", "7", "--to", "no.db"][..], "there are: 1, 2"),
        (&["restore", "store", "first", "--to", "no.db"], "the number of a backup"),
        (&["restore", "store", "1", "--to", "first.db"], "already exists"),
        (&["restore", "nowhere", "--to", "no.db"], "no backup store"),
        (
            &["restore", "store", "1", "--to", "no.db", "--up-to-sequence", "5"],
            "expected 100 to 101",
        ),
        (&["backup", "delete", "store", "1", "9"], "no backup 9; nothing was deleted"),
        (&["backup", "purge", "nowhere", "--keep", "1"], "no backup store"),
        (&["backup", "purge", "store", "--keep", "0"], "would delete every backup"),
        (&["backup", "verify", "store", "latest"], "expected the number of a backup"),
        (
            &["restore", "store", "1", "--to", "no.db", "--up-to-sequence", "x"],
            "expected a sequence number",
        ),
        (&["checkpoint", "nothing.db", "no.db"], "there is no database here"),
        (&["backup", "create", "rocks.db", "first.db"], "no backup store here"),
    ] {
        let (_, error) = expect(place, 2, refused);
        assert!(error.contains(part), "{error}");
    }
    let (out, _) = expect(place, 0, &["backup", "delete", "store", "1"]);
    assert_eq!(out, "1 backups deleted, 1 left\n");
    let purged = json(place, &["backup", "purge", "store", "--keep", "1"]);
    assert_eq!(purged.to_string(), r#"{"deleted":[],"left":[2]}"#);
    expect(place, 0, &["backup", "delete", "store", "2"]);
    expect(place, 2, &["restore", "store", "--to", "no.db"]);
    assert!(!place.join("no.db").exists());
}

#[test]
fn damage_is_exit_code_1_and_names_file_offset_and_what_is_whole() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    database(place, 3000);
    expect(place, 0, &["backup", "create", "store", "rocks.db"]);
    expect(place, 0, &["backup", "create", "store", "rocks.db"]);
    let log = place
        .join("store")
        .join(names(&place.join("store")).into_iter().find(|name| name.ends_with(".wal")).unwrap());
    let mut bytes = std::fs::read(&log).unwrap();
    let at = bytes.len() - 100;
    bytes[at] ^= 1;
    std::fs::write(&log, bytes).unwrap();
    let (out, error) = expect(place, 1, &["backup", "verify", "store"]);
    assert!(out.contains("backup 1: damaged") && out.contains("backup 2: whole"), "{out}");
    assert!(error.contains("1 of 2 backups are damaged"), "{error}");
    let offset = format!("at offset {}", at >> 20 << 20);
    assert!(error.contains(log.file_name().unwrap().to_str().unwrap()) && error.contains(&offset));
    let (out, _) = expect(place, 1, &["backup", "verify", "store", "1", "--json"]);
    let found: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(found["backups"][0]["whole"], false);
    let (_, error) = expect(place, 1, &["restore", "store", "1", "--to", "back.db"]);
    assert!(error.contains("whole ones: 2") && error.contains(&offset), "{error}");
    expect(place, 0, &["restore", "store", "2", "--to", "back.db"]);
    std::fs::write(place.join("store/000002.backup"), "nothing").unwrap();
    let (out, error) = expect(place, 1, &["backup", "list", "store"]);
    assert!(out.lines().count() == 2 && error.contains("backup 2 cannot be read"), "{error}");
}

#[test]
fn ctrl_c_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    database(place, 8000);
    expect(place, 0, &["backup", "create", "full", "rocks.db"]);
    for arguments in [
        &["checkpoint", "rocks.db", "copy.db", "--copy", "--rate", "1"][..],
        &["backup", "create", "store", "rocks.db", "--rate", "1"],
        &["backup", "verify", "full", "--rate", "1"],
        &["restore", "full", "--to", "back.db", "--rate", "1"],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lithify"));
        command.current_dir(place).args(arguments);
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        // The first line of progress: it is under way.
        lines.next().unwrap().unwrap();
        kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
        let error: Vec<String> = lines.map(Result::unwrap).collect();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{error:?}");
        assert!(error.last().is_some_and(|line| line.contains("stopped")), "{error:?}");
    }
    assert_eq!(names(place), ["full", "rocks.db", "store"]);
    assert_eq!(names(&place.join("store")), ["LOCK", "STORE"]);
}
