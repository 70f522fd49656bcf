//! `lithify dump` and `lithify levels` as programs: output, exit codes, errors.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use lithify::{CfOptions, Db, Options};

fn lithify(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lithify")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Runs it, and asserts the exit code and that an error is one line.
fn expect(code: i32, arguments: &[&str]) -> (String, String) {
    let output = lithify(arguments);
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{out}\n{error}");
    match code {
        0 => assert_eq!(error, "", "{arguments:?}"),
        _ => {
            assert!(error.starts_with("error: ") && error.lines().count() == 1, "{error}");
        }
    }
    (out, error)
}

fn database(directory: &Path) -> PathBuf {
    let path = directory.join("rocks.db");
    let db = Db::open(&path, Options::default()).unwrap();
    let rocks = db.column_family("rocks", CfOptions::default()).unwrap();
    for number in 0..2000 {
        let key = format!("rock/{number:05}");
        rocks.put(key.as_bytes(), format!("igneous {number:050}").as_bytes()).unwrap();
    }
    rocks.compact_range(..).unwrap();
    rocks.put(b"rock/new", b"in the log").unwrap();
    rocks.flush().unwrap();
    rocks.put(b"rock/newer", b"in the log").unwrap();
    db.close().unwrap();
    path
}

fn files(database: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(database).unwrap();
    let mut files: Vec<String> =
        entries.map(|entry| entry.unwrap().path().to_str().unwrap().to_owned()).collect();
    files.sort();
    files
}

#[test]
fn every_file_is_dumped_as_text_and_as_json() {
    let directory = tempfile::tempdir().unwrap();
    let database = database(directory.path());
    let files = files(&database);
    assert!(files.len() >= 6, "{files:?}");
    for file in &files {
        let (out, _) = expect(0, &["dump", file]);
        assert!(out.starts_with("file: kind="), "{out}");
        let options = ["dump", file, "--json", "--blocks", "--entries", "--full", "--limit", "3"];
        let (out, _) = expect(0, &options);
        for line in out.lines() {
            let object: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(object["item"].is_string(), "{line}");
        }
    }
    let log = files.iter().rfind(|file| file.ends_with(".wal")).unwrap();
    let (out, _) = expect(0, &["dump", log, "--entries"]);
    assert!(out.contains("kind=put family=0 key=\"rock/newer\" value=\"in the log\""), "{out}");
    let (short, _) = expect(0, &["dump", log, "--entries", "--limit", "1"]);
    assert!(short.contains("left out: kind=entry") || out.matches("entry:").count() == 1);
}

#[test]
fn damage_is_exit_code_1_and_names_file_and_offset() {
    let directory = tempfile::tempdir().unwrap();
    let database = database(directory.path());
    let (out, _) = expect(0, &["levels", database.to_str().unwrap(), "--files", "--json"]);
    let object: serde_json::Value = serde_json::from_str(&out).unwrap();
    let live = object["families"][0]["tables"].as_array().unwrap();
    let number = live.iter().find(|table| table["level"] == 6).unwrap()["number"].as_u64();
    let table = database.join(format!("{:06}.sst", number.unwrap()));
    let table = &table.to_str().unwrap().to_owned();
    let mut bytes = std::fs::read(table).unwrap();
    bytes[20] ^= 1;
    std::fs::write(table, &bytes).unwrap();
    let (out, error) = expect(1, &["dump", table]);
    assert!(out.contains("footer @") && out.contains("damage @0:"), "{out}");
    assert!(error.contains(table.as_str()) && error.contains("at offset 0"), "{error}");
    let database = database.to_str().unwrap();
    expect(0, &["levels", database]);
    let (out, error) = expect(1, &["levels", database, "--check"]);
    assert!(out.contains("damage: corruption") && error.contains(table.as_str()), "{out}{error}");

    std::fs::write(table, &bytes[..bytes.len() - 1]).unwrap();
    let (_, error) = expect(1, &["dump", table]);
    assert!(error.contains(table.as_str()) && error.contains("at offset"), "{error}");
    let (out, _) = expect(1, &["levels", database, "--json"]);
    let object: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(object["damage"].as_array().unwrap().len(), 1);
}

#[test]
fn wrong_use_is_exit_code_2() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let stranger = directory.path().join("notes.txt");
    std::fs::write(&stranger, "nothing of the engine's").unwrap();
    let stranger = stranger.to_str().unwrap();
    let missing = format!("{path}/000001.sst");
    for arguments in [
        &["dump", stranger][..],
        &["dump", path],
        &["dump", &missing],
        &["dump", stranger, "--limit", "many"],
        &["levels", path],
        &["levels", stranger],
        &["levels", &missing],
    ] {
        let (out, _) = expect(2, arguments);
        assert_eq!(out, "", "{arguments:?}");
    }
    let (_, error) = expect(2, &["levels", path]);
    assert!(error.contains(path) && error.contains("no database"), "{error}");
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_refused_without_waiting_for_a_writer() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("000001");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let (_, error) = expect(2, &["dump", pipe.to_str().unwrap()]);
    assert!(error.contains("not a file of the engine"), "{error}");
}

#[test]
fn the_tree_is_printed_while_the_database_is_open() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(directory.path());
    let db = Db::open(&path, Options::default()).unwrap();
    let path = path.to_str().unwrap();
    let (out, _) = expect(0, &["levels", path, "--files", "--check"]);
    let bottom = out.lines().find(|line| line.starts_with("L6")).unwrap();
    assert!(bottom.contains("zstd-1"), "{out}");
    assert!(out.contains("column family \"rocks\" (id 0)"), "{out}");
    assert!(out.starts_with("2 tables, ") && out.contains(", 2001 entries, "), "{out}");
    let (full, _) = expect(0, &["levels", path, "--full"]);
    assert!(full.contains(" zstd:") && full.contains("sequence"), "{full}");
    for page in [&out, &full] {
        assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    }
    let (out, _) = expect(0, &["levels", path, "--json"]);
    let object: serde_json::Value = serde_json::from_str(&out).unwrap();
    let levels = object["families"][0]["levels"].as_array().unwrap();
    assert_eq!((levels.len(), object["total"]["entries"].as_u64()), (7, Some(2001)));
    db.close().unwrap();
}

/// `--json` is `--format json`; a form that a command does not have is one line with those that it has.
#[test]
fn every_report_has_its_forms() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(directory.path());
    let path = path.to_str().unwrap();
    let count = ["count", path, "--family", "rocks"];
    // What a ladder costs is measured: no two runs print the same.
    let explain = ["explain", path, "--time", "0"];
    for command in [&count[..], &["stats", path], &["levels", path], &explain] {
        let with = |arguments: &[&'static str]| [command, arguments].concat();
        let (json, _) = expect(0, &with(&["--format", "json"]));
        assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok(), "{command:?}: {json}");
        assert_eq!(expect(0, &with(&["--json"])).0, json, "{command:?}");
        assert_eq!(expect(0, &with(&["--format", "table"])).0, expect(0, command).0);
        let (out, error) = expect(2, &with(&["--format", "hex"]));
        let names = error.contains("'hex'") && error.contains("table, json");
        assert!(out.is_empty() && names, "{command:?}: {error}");
        let (_, error) = expect(2, &with(&["--json", "--format", "json"]));
        assert!(error.contains("cannot be used with"), "{error}");
    }
    let (_, error) = expect(2, &["explain", path, "--format", "hex"]);
    assert!(error.contains("table, json, csv, record"), "{error}");
    let fields = |arguments: &[&str]| -> Vec<Vec<String>> {
        let (out, _) = expect(0, &[arguments, &["--format", "csv"]].concat());
        // What is in quotes is one field, whatever it holds.
        let plain = |line: &str| line.split('"').step_by(2).collect::<Vec<_>>().join("quoted");
        let fields = |line: &str| plain(line).split(',').map(str::to_owned).collect();
        out.lines().map(fields).collect()
    };
    assert_eq!(fields(&count), [["rows"], ["2002"]]);
    for (arguments, lines) in
        [(&["stats", path][..], 8), (&["levels", path], 8), (&["levels", path, "--files"], 3)]
    {
        let fields = fields(arguments);
        assert_eq!(fields.len(), lines, "{arguments:?}: {fields:?}");
        assert!(fields.iter().all(|line| line.len() == fields[0].len()), "{fields:?}");
        assert_eq!(fields[1][0], "rocks", "{fields:?}");
    }
    assert!(expect(0, &["stats", path, "--format", "prometheus"]).0.contains("# TYPE lithify_"));
}

#[test]
fn help_has_examples_and_exit_codes() {
    for command in ["dump", "levels"] {
        let (out, _) = expect(0, &[command, "--help"]);
        // Where lines end depends on the width.
        let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in ["Examples:", "Exit codes:", "no lock"] {
            assert!(out.contains(part), "{part} is missing in\n{out}");
        }
    }
}

/// While the database is open too; with what is wrong said, and nothing printed then.
#[test]
fn compression_is_explained() {
    let directory = tempfile::tempdir().unwrap();
    let ladder = database(directory.path());
    let (out, _) = expect(0, &["explain", ladder.to_str().unwrap(), "--time", "0"]);
    assert!(out.starts_with("rocks: ") && out.contains("none,lz4,zstd-1"), "{out}");
    let words = out.split_whitespace().collect::<Vec<_>>().join(" ");
    let advise = format!("`lithify advise {} --table rocks` prices it", ladder.display());
    assert!(words.ends_with(&advise), "{out}");

    let path = directory.path().join("deciding.db");
    let db = Db::open(&path, Options::default()).unwrap();
    let options = CfOptions { compression: "auto:space".parse().unwrap(), ..CfOptions::default() };
    let rocks = db.column_family("rocks", options).unwrap();
    for number in 0..20_000_u64 {
        let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        rocks.put(key, format!("igneous {number:050} {:050}", number % 91).as_bytes()).unwrap();
    }
    for _ in 0..4 {
        rocks.compact_range(..).unwrap();
    }
    let path = path.to_str().unwrap();
    let (out, _) = expect(0, &["explain", path]);
    assert!(out.contains("auto:space") && out.contains("80000 a GB-month"), "{out}");
    assert!(out.contains("L6 "), "{out}");
    let (out, _) = expect(0, &["explain", path, "rocks", "--why"]);
    assert!(out.contains("store ") && !out.contains("lithify advise"), "{out}");
    let (_, error) = expect(2, &["explain", path, "--why", "--json"]);
    assert!(error.contains("--why is of the table"), "{error}");
    let (out, _) = expect(0, &["explain", path, "--json"]);
    let all: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(all[0]["levels"][0]["candidates"].as_array().unwrap().len() > 1, "{out}");
    // What the tables have, not who decides it.
    let (out, _) = expect(0, &["stats", path]);
    let codec = |line: &str| line.split_whitespace().last().unwrap_or_default().to_owned();
    let codecs: Vec<_> = out.lines().filter(|line| line.contains(" L6 ")).map(codec).collect();
    assert!(codecs.len() == 1 && codecs[0] != "auto", "{out}");
    let names = ["none", "snappy", "lz4", "zstd", "zlib"];
    assert!(names.iter().any(|name| codecs[0].starts_with(name)), "{out}");
    let (out, _) = expect(0, &["explain", path, "rocks", "--record"]);
    assert!(out.starts_with("prices cpu=11,write=150,month=80000,read=1900"), "{out}");

    let (out, error) = expect(2, &["explain", path, "sands"]);
    assert!(out.is_empty() && error.contains("there are: rocks"), "{error}");
    let (out, _) = expect(2, &["explain", directory.path().to_str().unwrap()]);
    assert_eq!(out, "");
    drop((rocks, db));
}

/// Of a database that is open for writing elsewhere; only the registry of readers may come to its files.
#[test]
fn a_fixed_ladder_is_priced_beside_its_writer() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ladder.db");
    let db = Db::open(&path, Options::default()).unwrap();
    let options = CfOptions {
        compression: "none,lz4,zlib-4".parse().unwrap(),
        block_size_bytes: 6_000,
        ..CfOptions::default()
    };
    let rocks = db.column_family("rocks", options).unwrap();
    let rows = 4_000_u64;
    for number in 0..rows {
        rocks.put(number.to_be_bytes(), format!("igneous {number:050}").as_bytes()).unwrap();
    }
    rocks.compact_range(..).unwrap();
    let path = path.to_str().unwrap();
    let files = || -> Vec<String> {
        files(Path::new(path)).into_iter().filter(|file| !file.ends_with("READERS")).collect()
    };
    let before = files();
    let (out, _) = expect(0, &["explain", path, "--why"]);
    let words = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.starts_with("rocks: none,lz4,zlib-4 6000 costs "), "{out}");
    assert!(words.contains(" dollars a TB-year; "), "{out}");
    assert!(out.contains("  level     stored  ratio  codec      cost  of all  runners-up\n"));
    for part in ["  L0-L4 ", "  L6 ", "  L6, bottom: 90 % of the bytes", "  > zlib-4 ", "zstd-3 "] {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
    // The writer itself may remove some.
    assert!(files().iter().all(|file| before.contains(file)), "{:?}", files());

    let (out, _) = expect(0, &["explain", path, "--json", "--price", "cpu=11,month=80000"]);
    let all: serde_json::Value = serde_json::from_str(&out).unwrap();
    let ladder = &all[0]["ladder"];
    assert_eq!(
        (&ladder["goal"], &ladder["set"]["name"]),
        (&"your prices".into(), &"none,lz4,zlib-4 6000".into())
    );
    let cost = |value: &serde_json::Value| value["cost"].as_f64().unwrap();
    let set = |place: &serde_json::Value| {
        let candidates = place["candidates"].as_array().unwrap();
        cost(candidates.iter().find(|one| one["is_chosen"] == true).unwrap())
    };
    let places = ladder["places"].as_array().unwrap();
    let sum: f64 = places.iter().map(set).sum();
    assert!((sum / cost(&ladder["set"]) - 1.0).abs() < 1e-9, "{out}");
    assert!(cost(&ladder["best"]) <= 1.01 * cost(&ladder["set"]), "{out}");

    let (out, _) = expect(0, &["explain", path, "--format", "csv", "--goal", "space"]);
    assert!(out.starts_with("family,level,name,is_chosen,cost,cost_per_tb_year,"), "{out}");
    assert!(out.contains("\nrocks,all,\"none,lz4,zlib-4 6000\",true,"), "{out}");
    assert!(out.contains("\nrocks,L6,zlib-4,true,"), "{out}");
    let (_, error) = expect(2, &["explain", path, "--price", "gold=1"]);
    assert!(error.contains("gold"), "{error}");
    drop((rocks, db));
}
