//! `lithify get`, `put`, `delete`, `scan`, `count`, `compact` and `stats` as programs: output, exit
//! codes, errors, beside a writer.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lithify::{CfOptions, Db, Options};
use serde_json::Value;

/// The program in a directory, with what it gets as standard input.
fn run(place: &Path, arguments: &[&str], input: &[u8]) -> (Option<i32>, Vec<u8>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lithify"));
    command.current_dir(place).args(arguments);
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), output.stdout, String::from_utf8(output.stderr).unwrap())
}

/// Runs it, and asserts the exit code and that an error is one line.
#[track_caller]
fn expect(place: &Path, code: i32, arguments: &[&str]) -> (String, String) {
    let (found, out, error) = run(place, arguments, b"");
    let out = String::from_utf8_lossy(&out).into_owned();
    assert_eq!(found, Some(code), "{arguments:?}\n{out}\n{error}");
    let errors: Vec<&str> = error.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(errors.len(), usize::from(code != 0), "{arguments:?}: {error}");
    // What was expected and found of damage may be longer; a terminal wraps it.
    let is_short = |line: &str| line.chars().count() <= 100 || line.contains("corruption");
    assert!(error.lines().all(is_short), "{error}");
    (out, error)
}

/// The lines of a command that ends well and says nothing else.
#[track_caller]
fn lines(place: &Path, arguments: &[&str]) -> Vec<String> {
    let (out, error) = expect(place, 0, arguments);
    assert_eq!(error, "", "{arguments:?}");
    out.lines().map(str::to_owned).collect()
}

fn options() -> Options {
    Options { background_threads: 0, ..Options::default() }
}

/// `rocks.db` with the default family.
fn database(place: &Path) -> PathBuf {
    let path = place.join("rocks.db");
    let db = Db::open(&path, options()).unwrap();
    for (key, value) in [("basalt", "igneous"), ("chalk", "sedimentary"), ("gneiss", "metamorphic")]
    {
        db.put(key, value).unwrap();
    }
    db.put(b"link/\x00\xff", b"\xfe\n").unwrap();
    db.close().unwrap();
    path
}

#[test]
fn rows_are_put_read_and_removed() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    assert_eq!(lines(place, &["put", "new.db", "basalt", "igneous", "--create"]), [""; 0]);
    lines(place, &["put", "new.db", r"a\x00\xffb", r"one\ntwo\\"]);
    lines(place, &["put", "new.db", "--hex", "6b", "00ff"]);
    lines(place, &["put", "new.db", "-5", "-6"]);
    lines(place, &["put", "new.db", "--", "--key", "--value"]);
    let value = (0..=255).collect::<Vec<u8>>();
    let (code, _, error) = run(place, &["put", "new.db", "all", "--stdin"], &value);
    assert_eq!((code, error.as_str()), (Some(0), ""));
    let (_, all, _) = run(place, &["get", "new.db", "all"], b"");
    assert_eq!(all, value, "to a pipe the bytes go as they are");

    let (_, value, _) = run(place, &["get", "new.db", r"a\x00\xffb"], b"");
    assert_eq!(value, b"one\ntwo\\");
    let format = |format| lines(place, &["get", "new.db", "--hex", "6b", "--format", format]);
    assert_eq!(format("table"), [r"\x00\xff"]);
    assert_eq!(format("hex"), ["00ff"]);
    assert_eq!(format("json"), [r#"{"key":"k","value_hex":"00ff"}"#]);
    assert_eq!(
        lines(place, &["get", "new.db", "basalt", "--format", "csv"]),
        ["key,value", "basalt,igneous"]
    );
    assert_eq!(lines(place, &["get", "new.db", "-5"]), ["-6"]);
    assert_eq!(lines(place, &["get", "new.db", "--", "--key"]), ["--value"]);

    lines(place, &["delete", "new.db", "basalt"]);
    let (out, error) = expect(place, 1, &["get", "new.db", "basalt"]);
    assert_eq!(
        (out.as_str(), error.as_str()),
        ("", "error: no such key in column family default: basalt\n")
    );
    lines(place, &["delete", "new.db", "basalt"]);
}

#[test]
fn ranges_are_removed() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let path = place.join("rocks.db");
    let db = Db::open(&path, options()).unwrap();
    for number in 0..100 {
        db.put(format!("k{number:02}"), "v").unwrap();
    }
    db.put([0xff; 65_535], "the last key that there can be").unwrap();
    db.close().unwrap();
    let count = || lines(place, &["count", "rocks.db"]).join("");
    lines(place, &["delete", "rocks.db", "--prefix", "k0"]);
    assert_eq!(count(), "91");
    lines(place, &["delete", "rocks.db", "--range", "k10..k20"]);
    assert_eq!(count(), "81");
    lines(place, &["delete", "rocks.db", "--range", "..k30"]);
    assert_eq!(count(), "71");
    lines(place, &["delete", "rocks.db", "--range", "k90.."]);
    assert_eq!(count(), "60");
    lines(place, &["delete", "rocks.db", "--hex", "--prefix", "6b38"]);
    assert_eq!(lines(place, &["count", "rocks.db", "--from", "k40", "--to", "k99"]), ["40"]);
    for (arguments, part) in [
        (&["--range", "k1"][..], "--range takes A..B"),
        (&["--range", "k5..k4"], "ends before it begins"),
        (&["--range", "a..b..c"], r"\x2e"),
        (&["--prefix", r"\y"], r"\y is no escape"),
        (&[], "required"),
        (&["k1", "--prefix", "k"], "cannot be used with"),
    ] {
        let (_, error) = expect(place, 2, &[&["delete", "rocks.db"], arguments].concat());
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn rows_are_printed_in_every_form() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    database(place);
    let scan = |arguments: &[&str]| lines(place, &[&["scan", "rocks.db"], arguments].concat());
    let all = [
        "basalt\tigneous",
        "chalk\tsedimentary",
        "gneiss\tmetamorphic",
        "link/\\x00\\xff\t\\xfe\\n",
    ];
    assert_eq!(scan(&[]), all);
    let reverse: Vec<&str> = all.iter().rev().copied().collect();
    assert_eq!(scan(&["--reverse"]), reverse);
    assert_eq!(scan(&["--limit", "2", "--reverse"]), reverse[..2]);
    assert_eq!(scan(&["--limit", "0"]), [""; 0]);
    assert_eq!(scan(&["--from", "c", "--to", "gneiss"]), all[1..2]);
    assert_eq!(scan(&["--prefix", "g", "--keys-only"]), ["gneiss"]);
    assert_eq!(
        scan(&["--from", "h", "--hex", "--format", "hex"].map(|a| if a == "h" { "68" } else { a })),
        ["6c696e6b2f00ff\tfe0a"]
    );
    let json = scan(&["--format", "json", "--from", "gneiss"]);
    assert_eq!(
        json,
        [
            r#"{"key":"gneiss","value":"metamorphic"}"#,
            r#"{"key_hex":"6c696e6b2f00ff","value_hex":"fe0a"}"#
        ]
    );
    let table = scan(&["--format", "table", "--to", "d"]);
    assert_eq!(table, ["KEY     VALUE", "basalt  igneous", "chalk   sedimentary"]);
    let (_, csv, _) = run(place, &["scan", "rocks.db", "--format", "csv", "--from", "l"], b"");
    assert_eq!(csv, b"key,value\nlink/\x00\xff,\"\xfe\n\"\n");
    assert_eq!(lines(place, &["count", "rocks.db"]), ["4"]);
    assert_eq!(lines(place, &["count", "rocks.db", "--prefix", "link/"]), ["1"]);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let db = Db::open(place.join("rocks.db"), options()).unwrap();
    for number in 0..20_000 {
        db.put(format!("key {number:08}"), "value").unwrap();
    }
    db.close().unwrap();
    for format in ["table", "lines", "json", "csv", "hex"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lithify"));
        command.current_dir(place).args(["scan", "rocks.db", "--format", format]);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
        let mut head = BufReader::new(child.stdout.take().expect("is piped"));
        let mut line = String::new();
        head.read_line(&mut line).expect("reads");
        assert!(!line.is_empty());
        drop(head);
        let output = child.wait_with_output().expect("ends");
        assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()), "{format}");
    }
}

#[test]
fn the_family_that_is_meant_is_found_or_named() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let path = place.join("rocks.db");
    Db::open(&path, options()).unwrap().close().unwrap();
    assert_eq!(lines(place, &["count", "rocks.db"]), ["0"]);
    assert_eq!(lines(place, &["scan", "rocks.db"]), [""; 0]);
    assert!(expect(place, 1, &["get", "rocks.db", "a"]).1.contains("no such key"));
    let (_, error) = expect(place, 2, &["scan", "rocks.db", "--family", "lava"]);
    assert!(error.contains("no column family \"lava\"; there are none yet"), "{error}");
    lines(place, &["delete", "rocks.db", "a"]);

    lines(place, &["put", "rocks.db", "a", "1", "--family", "lava", "--create"]);
    // The only one is meant, and named.
    for command in
        [&["get", "rocks.db", "a"][..], &["scan", "rocks.db"], &["put", "rocks.db", "b", "2"]]
    {
        assert_eq!(expect(place, 0, command).1, "column family lava: the only one\n");
    }
    lines(place, &["put", "rocks.db", "a", "3", "--family", "sand", "--create"]);
    for command in [&["get", "rocks.db", "a"][..], &["put", "rocks.db", "b", "2"]] {
        let (_, error) = expect(place, 2, command);
        assert!(error.contains("name one with --family: lava, sand"), "{error}");
    }
    for command in
        [&["count", "rocks.db"][..], &["put", "rocks.db", "b", "2"], &["compact", "rocks.db"]]
    {
        let (_, error) = expect(place, 2, &[command, &["--family", "silt"]].concat());
        assert!(error.contains("no column family \"silt\"; there are: lava, sand"), "{error}");
    }
    lines(place, &["put", "rocks.db", "a", "4", "--family", "default", "--create"]);
    assert_eq!(lines(place, &["scan", "rocks.db"]), ["a\t4"]);
    assert_eq!(lines(place, &["scan", "rocks.db", "--family", "lava"]), ["a\t1", "b\t2"]);
}

#[test]
fn readers_work_beside_a_writer_and_writers_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let path = database(place);
    let db = Db::open(path, options()).unwrap();
    db.put("slate", "metamorphic").unwrap();
    assert_eq!(lines(place, &["get", "rocks.db", "slate"]), ["metamorphic"]);
    db.flush().unwrap();
    db.put("tuff", "igneous").unwrap();
    assert_eq!(lines(place, &["count", "rocks.db"]), ["6"]);
    assert_eq!(lines(place, &["scan", "rocks.db", "--from", "s"]).len(), 2);
    let stats = lines(place, &["stats", "rocks.db"]);
    assert!(stats[0].starts_with("1 tables, "), "{stats:?}");
    assert!(stats[1].starts_with("Entries that are only in the log ("), "{stats:?}");
    let metrics = lines(place, &["stats", "rocks.db", "--prometheus"]);
    let is_there = |line: &String| line.starts_with("lithify_level_files{family=\"default\"");
    assert!(metrics.iter().any(is_there), "{metrics:?}");
    for command in
        [&["put", "rocks.db", "a", "1"][..], &["delete", "rocks.db", "a"], &["compact", "rocks.db"]]
    {
        let (_, error) = expect(place, 1, command);
        assert!(error.starts_with("error: another process has this database open; "), "{error}");
        assert!(error.ends_with(": rocks.db\n"), "{error}");
    }
    db.close().unwrap();
}

#[test]
fn what_is_named_wrongly_is_2_and_damage_1() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    std::fs::write(place.join("file"), "nothing of the engine's").unwrap();
    std::fs::create_dir(place.join("empty")).unwrap();
    for rest in [
        &["get", "DIR", "a"][..],
        &["put", "DIR", "a", "b"],
        &["delete", "DIR", "a"],
        &["scan", "DIR"],
        &["count", "DIR"],
        &["compact", "DIR"],
        &["stats", "DIR"],
    ] {
        for directory in ["missing", "empty", "file"] {
            let arguments: Vec<&str> =
                rest.iter().map(|part| if *part == "DIR" { directory } else { part }).collect();
            let (_, error) = expect(place, 2, &arguments);
            assert!(error.contains(directory), "{error}");
            assert_eq!(error.matches("error").count(), 1, "no nested texts: {error}");
        }
    }
    assert!(
        !place.join("missing").exists()
            && std::fs::read_dir(place.join("empty")).unwrap().count() == 0
    );
    let path = database(place);
    for (arguments, part) in [
        (&["get", "rocks.db", r"a\xg0"][..], r"the key: behind \x"),
        (&["get", "rocks.db", "--hex", "abc"], "even number"),
        (&["put", "rocks.db", "a", r"b\"], "the value: it ends within an escape"),
        (&["scan", "rocks.db", "--from", r"\z"], r"--from: \z is no escape"),
        (&["scan", "rocks.db", "--from", "b", "--to", "a"], "--from lies behind --to"),
        (&["scan", "rocks.db", "--from", "b", "--prefix", "a"], "cannot be used with"),
        (&["put", "rocks.db", "a"], "required"),
        (&["scan", "rocks.db", "--limit", "many"], "--limit"),
    ] {
        let (_, error) = expect(place, 2, arguments);
        assert!(error.contains(part), "{error}");
    }
    let db = Db::open(&path, options()).unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    let files = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    let table =
        files.into_iter().find(|path| path.extension().is_some_and(|e| e == "sst")).unwrap();
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&table, bytes).unwrap();
    for command in
        [&["get", "rocks.db", "basalt"][..], &["scan", "rocks.db"], &["count", "rocks.db"]]
    {
        let (_, error) = expect(place, 1, command);
        assert!(error.contains(".sst at offset 0"), "{error}");
    }
}

#[test]
fn a_database_is_compacted_and_its_statistics_are_printed() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let db = Db::open(place.join("rocks.db"), options()).unwrap();
    for family in ["default", "links"] {
        let family = db.column_family(family, CfOptions::default()).unwrap();
        for round in 0..3 {
            for number in 0..1000 {
                family.put(format!("key {number:05}"), format!("{round}{number:0100}")).unwrap();
            }
            family.flush().unwrap();
        }
    }
    db.close().unwrap();
    let stats = |arguments: &[&str]| lines(place, &[&["stats", "rocks.db"], arguments].concat());
    let page = stats(&[]);
    assert!(page[0].ends_with("due for compaction: rocks.db"), "{page:?}");
    assert!(page[1].starts_with("FAMILY   LEVEL  TABLES"), "{page:?}");
    assert!(page.iter().any(|line| line.starts_with("links    all")), "{page:?}");
    assert!(page.iter().all(|line| line.len() <= 100), "{page:?}");
    let metrics = stats(&["--prometheus"]);
    let sum = |name: &str| -> f64 {
        let samples = metrics.iter().filter(|line| line.starts_with(name));
        samples.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
    };
    assert_eq!(sum("lithify_level_files{family=\"links\""), 3.0, "{metrics:?}");
    assert!(sum("lithify_level_size_bytes{family=\"default\"") > 0.0, "{metrics:?}");
    assert_eq!(sum("lithify_puts_total{family=\"links\"}"), 0.0, "this process put nothing");
    let (_, error) = expect(place, 2, &["stats", "rocks.db", "--json", "--prometheus"]);
    assert!(error.contains("cannot be used with"), "{error}");
    let before: Value = serde_json::from_str(&stats(&["--json"]).join("\n")).unwrap();
    let entries =
        |stats: &Value, family: usize| stats["families"][family]["total"]["entries"].as_u64();
    assert_eq!((entries(&before, 0), entries(&before, 1)), (Some(3000), Some(3000)));

    let (out, _) = expect(place, 0, &["compact", "rocks.db", "--family", "links"]);
    assert!(out.starts_with("links: 3 tables, ") && out.contains("before, 1 tables, "), "{out}");
    let after: Value = serde_json::from_str(&stats(&["--json"]).join("\n")).unwrap();
    assert_eq!((entries(&after, 0), entries(&after, 1)), (Some(3000), Some(1000)));
    let (out, _) = expect(place, 0, &["compact", "rocks.db", "--json"]);
    let compacted: Value = serde_json::from_str(&out).unwrap();
    let family = &compacted["families"][0];
    assert_eq!((&family["name"], &family["before"]["tables"]), (&"default".into(), &3.into()));
    assert_eq!(family["after"]["tables"], 1, "{out}");
    let (out, _) = expect(place, 0, &["compact", "rocks.db"]);
    assert_eq!(out.lines().count(), 2, "{out}");
    assert_eq!(lines(place, &["compact", "rocks.db", "--format", "csv"]).len(), 3);
    assert_eq!(lines(place, &["count", "rocks.db"]), ["1000"]);
}

/// What is only in the log becomes tables by the command itself: it is no part of what there was.
#[test]
fn before_a_compaction_is_before_anything_is_done() {
    let place = tempfile::tempdir().unwrap();
    database(place.path());
    let out = lines(place.path(), &["compact", "rocks.db"]);
    assert!(out[0].starts_with("default: 0 tables, 0 B before, 1 tables, "), "{out:?}");
    assert!(out[1].starts_with("Entries that were only in the log ("), "{out:?}");
    let out = lines(place.path(), &["compact", "rocks.db"]);
    assert!(out.len() == 1 && out[0].starts_with("default: 1 tables, "), "{out:?}");
}

/// As a value and rows are printed, so are other reports: by the same two flags.
#[test]
fn json_is_short_for_its_form() {
    let place = tempfile::tempdir().unwrap();
    database(place.path());
    for command in [&["get", "rocks.db", "basalt"][..], &["scan", "rocks.db"]] {
        let short = lines(place.path(), &[command, &["--json"]].concat());
        assert_eq!(short, lines(place.path(), &[command, &["--format", "json"]].concat()));
        let forms = [command, &["--format", "xml"]].concat();
        let (_, error) = expect(place.path(), 2, &forms);
        assert!(error.contains("'xml'") && error.contains("json, csv, hex"), "{error}");
    }
}

#[test]
fn help_has_examples_and_exit_codes() {
    let place = tempfile::tempdir().unwrap();
    for command in ["get", "put", "delete", "scan", "count", "compact", "stats"] {
        let (out, _) = expect(place.path(), 0, &[command, "--help"]);
        assert!(out.contains("Examples:\n") && out.contains("Exit codes:\n"), "{out}");
    }
}
