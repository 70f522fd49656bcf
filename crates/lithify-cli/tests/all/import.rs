//! `lithify export` and `lithify import` as programs: the identical rows come back, wrong input names
//! file and line, and what is written is said.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use lithify::{CfOptions, Db, Options};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

pub fn command(place: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lithify"));
    command.current_dir(place).args(arguments);
    command
}

/// Runs it; what it printed, and the line that is an error, if there is one.
#[track_caller]
pub fn expect(place: &Path, code: i32, arguments: &[&str]) -> (String, String) {
    let output = command(place, arguments).output().unwrap();
    let (out, error) = (output.stdout, String::from_utf8(output.stderr).unwrap());
    let out = String::from_utf8_lossy(&out).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{out}\n{error}");
    let errors: Vec<&str> = error.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(errors.len(), usize::from(code != 0), "{error}");
    (out, errors.concat())
}

pub fn options() -> Options {
    Options { background_threads: 0, ..Options::default() }
}

pub type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

pub fn rows(path: &Path, family: &str) -> Rows {
    let db = Db::open_read_only(path, options()).unwrap();
    let family = db.existing_column_family(family).unwrap().unwrap();
    family.iter().map(Result::unwrap).map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

fn text_rows(path: &Path) -> Vec<(String, String)> {
    let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
    rows(path, "default").iter().map(|(key, value)| (text(key), text(value))).collect()
}

/// Bytes that follow from a seed: any, or those that files of text trip over.
pub fn noise(seed: &mut u64, length_max: u64) -> Vec<u8> {
    let mut next = |bound: u64| {
        *seed =
            seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 33) % bound
    };
    let is_nasty = next(2) == 0;
    let length = next(length_max + 1);
    let nasty = b"\"\",,\r\n\\\0\t {}ab\xef\xbb\xbf\xff";
    let byte = |n: u64| if is_nasty { nasty[n as usize % nasty.len()] } else { n as u8 };
    (0..length).map(|_| byte(next(256))).collect()
}

#[test]
fn the_identical_rows_come_back_whatever_bytes_they_hold() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let path = place.join("rocks.db");
    let db = Db::open(&path, options()).unwrap();
    let family = db.column_family("noise", CfOptions::default()).unwrap();
    let mut seed = 7;
    family.put(b"", b"").unwrap();
    family.put(b"key", b"value").unwrap();
    for _ in 0..3000 {
        family.put(noise(&mut seed, 12), noise(&mut seed, 40)).unwrap();
    }
    family.put(b"large", vec![b'"'; 300_000]).unwrap();
    db.close().unwrap();
    let expected = rows(&path, "noise");
    for (format, file) in [("csv", "rows.csv"), ("jsonl", "rows.jsonl")] {
        let (out, _) = expect(place, 0, &["export", "rocks.db", "-o", file]);
        assert!(out.starts_with(&format!("{} rows, ", expected.len())), "{out}");
        let to = format!("{format}.db");
        let (out, _) = expect(place, 0, &["import", &to, file, "--create", "--family", "back"]);
        let begin =
            format!("{} rows written in the order of keys to column family back", expected.len());
        assert!(out.starts_with(&begin), "{out}");
        assert!(rows(&place.join(&to), "back") == expected, "{format}");
        // Through pipes, out of order, over what is there already.
        let piped = command(place, &["export", "rocks.db", "--format", format]).output().unwrap();
        assert_eq!(piped.stdout, std::fs::read(place.join(file)).unwrap());
        // As with import, - is no file.
        let dash = command(place, &["export", "rocks.db", "-o", "-", "--format", format]).output();
        let dash = dash.unwrap();
        assert!(dash.stdout == piped.stdout, "{format}");
        let said = String::from_utf8_lossy(&dash.stderr);
        assert!(said.contains(&format!("{} rows, ", expected.len())), "{said}");
        assert!(!place.join("-").exists());
        let arguments = ["import", &to, "-", "--format", format];
        let mut child = command(place, &arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&piped.stdout).unwrap();
        assert!(child.wait_with_output().unwrap().status.success());
        assert!(rows(&place.join(&to), "back") == expected, "{format}");
        expect(place, 0, &["verify", &to]);
    }
    // From a database of the project's own.
    expect(place, 0, &["import", "own.db", "rocks.db", "--create", "--table", "noise"]);
    assert!(rows(&place.join("own.db"), "default") == expected);
}

#[test]
fn rows_that_do_not_ascend_go_in_batches_and_the_last_one_counts() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let mut text = String::from("key,value\n");
    let mut expected = Rows::new();
    // Ascending for longer than is gathered, then not.
    for number in (0..15_000).chain((0..12_000).rev()) {
        let (key, value) = (format!("{number:06}"), format!("{}", text.len()));
        text.push_str(&format!("{key},{value}\n"));
        expected.insert(key.into_bytes(), value.into_bytes());
    }
    std::fs::write(place.join("rows.csv"), text).unwrap();
    let (out, _) = expect(place, 0, &["import", "rocks.db", "rows.csv", "--create"]);
    let (rows_written, rest) = out.split_once('\n').unwrap();
    assert_eq!(rows_written, "27000 rows written in batches to column family default: rows.csv");
    assert!(rest.starts_with("Of rows with the same key the last one stays"), "{out}");
    assert!(rows(&place.join("rocks.db"), "default") == expected);
}

#[test]
fn columns_and_fields_are_chosen() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    std::fs::write(
        place.join("a.csv"),
        "\u{feff}id,name,age\r\n7,\"Ann \"\"A\"\"\",31\r\n8,Bob,32\r\n",
    )
    .unwrap();
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    expect(place, 0, &["import", "a.db", "a.csv", "--create", "--key", "id"]);
    let json = r#"{"id":"7","name":"Ann \"A\"","age":"31"}"#;
    assert_eq!(text_rows(&place.join("a.db"))[0], pair("7", json));
    expect(place, 0, &["import", "a.db", "a.csv", "--key", "name", "--value", "age"]);
    assert_eq!(text_rows(&place.join("a.db"))[3], pair("Bob", "32"));
    std::fs::write(
        place.join("b.jsonl"),
        "{\"id\": 7, \"name\": \"Ann\"}\n\n{\"id\":8,\"name\":\"B\\u00f6b\"}",
    )
    .unwrap();
    expect(place, 0, &["import", "b.db", "b.jsonl", "--create", "--key", "id"]);
    assert_eq!(text_rows(&place.join("b.db"))[0], pair("7", r#"{"id": 7, "name": "Ann"}"#));
    expect(place, 0, &["import", "b.db", "b.jsonl", "--key", "id", "--value", "name"]);
    assert_eq!(text_rows(&place.join("b.db")), [pair("7", "Ann"), pair("8", "Böb")]);
}

#[test]
fn a_wrong_row_names_its_line_and_those_before_it_are_written() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    for (number, (name, text, line, what)) in [
        ("a.csv", &b"key,value\na,1\nb,2\nc\nd,4\n"[..], 4, "1 fields where the header has 2"),
        ("b.csv", b"key,value\na,1\nb,\"2\n\n\"\nc,\"3\nd,4\n", 6, "a quote is never closed"),
        ("c.csv", b"key,value\nb,1\na,2\nc,\"3\"4\n", 4, "text behind the quote"),
        ("d.jsonl", b"{\"key\":\"a\",\"value\":\"1\"}\n\n{\"key\":\"b\",\"value\":\"2\"}\n{\"key\":\"c\",\n", 4, "error: the JSON object ends too early (column 11);"),
        ("e.jsonl", b"{\"key\":\"a\",\"value\":\"\"}\n{\"key\":\"b\",\"value\":\"2\"}\n{\"key\":\"c\"}", 3, "no field value or value_hex"),
        ("f.jsonl", b"{\"key\":\"a\",\"value\":\"\"}\n{\"key\":\"b\",\"value\":\"2\"}\n{\"key_hex\":\"0\",\"value\":\"\"}", 3, "even number"),
        ("g.jsonl", b"{\"key\":\"a\",\"value\":\"\"}\n{\"key\":\"b\",\"value\":\"2\"}\n[1]", 3, "error: this is no JSON object;"),
        ("h.jsonl", b"{\"key\":\"a\",\"value\":\"\"}\n{\"key\":\"b\",\"value\":\"2\"}\nnope", 3, "error: this is not JSON (column 2);"),
    ]
    .into_iter()
    .enumerate()
    {
        std::fs::write(place.join(name), text).unwrap();
        let db = format!("{number}.db");
        let (out, error) = expect(place, 1, &["import", &db, name, "--create"]);
        assert!(out.is_empty() && error.contains(what), "{error}");
        let end = format!("; 2 rows are written: {name}:{line}");
        assert!(error.ends_with(&end), "{error}");
        let keys: Vec<String> = text_rows(&place.join(&db)).into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["a", "b"]);
        expect(place, 0, &["verify", &db]);
    }
}

#[test]
fn what_is_named_wrongly_is_2_and_nothing_is_made() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    std::fs::write(place.join("a.csv"), "id,name\n7,Ann\n").unwrap();
    std::fs::write(place.join("a.txt"), "id,name\n7,Ann\n").unwrap();
    std::fs::write(place.join("empty.csv"), "").unwrap();
    std::fs::create_dir(place.join("empty")).unwrap();
    for (arguments, part) in [
        (&["import", "no.db", "missing.csv", "--create"][..], "missing.csv"),
        (&["import", "no.db", "a.txt", "--create"], "--format csv or jsonl"),
        (&["import", "no.db", "-", "--create"], "--format csv or jsonl"),
        (&["import", "no.db", "a.csv", "--create"], "no column key; choose with --key: id, name"),
        (&["import", "no.db", "a.csv", "--create", "--key", "ID"], "no column ID"),
        (&["import", "no.db", "a.csv", "--create", "--key", "id", "--value", "x"], "no column x"),
        (&["import", "no.db", "empty.csv", "--create"], "no header"),
        (&["import", "no.db", "a.csv", "--create", "--table", "x"], "this is a file"),
        (&["import", "no.db", "a.csv", "--key", "id"], "there is no database here"),
        (&["import", "no.db", "a.csv", "--value", "id"], "--key"),
        (&["import", "no.db", "empty", "--create", "--key", "id"], "leave --key"),
        (&["export", "no.db", "-o", "x.csv"], "there is no database here"),
        (&["export", "no.db", "--format", "xml"], "csv, jsonl"),
    ] {
        let (_, error) = expect(place, 2, arguments);
        assert!(error.contains(part), "{arguments:?}: {error}");
    }
    assert!(!place.join("no.db").exists() && !place.join("x.csv").exists());
    let db = Db::open(place.join("rocks.db"), options()).unwrap();
    let (_, error) = expect(place, 1, &["import", "rocks.db", "a.csv", "--key", "id"]);
    assert!(error.contains("another process has this database open"), "{error}");
    db.put("a", "1").unwrap();
    let (out, _) = expect(place, 0, &["export", "rocks.db"]);
    assert_eq!(out, "{\"key\":\"a\",\"value\":\"1\"}\n", "beside a writer");
    let (_, error) = expect(place, 2, &["export", "rocks.db", "-o", "empty"]);
    assert!(error.contains("this is a directory"), "{error}");
    let (_, error) = expect(place, 2, &["export", "rocks.db", "-o", "nowhere/x.csv"]);
    assert!(error.contains("nowhere/x.csv"), "{error}");
}

/// What is no text of rows, and a first row that is wrong, are refused before anything is made.
#[test]
fn a_file_of_another_kind_is_refused_with_the_next_step() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let mut with_mark = vec![0xff, 0xfe];
    with_mark.extend(utf16("key,value\n1,2\n"));
    let cases: [(&str, &[u8], i32, &str); 8] = [
        ("a.csv.gz", b"\x1f\x8b\x08\0", 2, "this is gzip: unpack it first (gunzip -k): a.csv.gz"),
        ("a.sqlite", b"SQLite format 3\0rest", 2, "sqlite3 -header -csv"),
        ("a.csv", &with_mark, 2, "this is UTF-16: convert it first (iconv"),
        ("a.csv", &utf16("key,value\n1,2\n"), 2, "iconv -f UTF-16LE"),
        ("a.csv", b"key,value\n1\n2,3\n", 1, "1 fields where the header has 2; 0 rows are written"),
        ("a.csv", b"key,value\n\"1,2\n", 1, "a quote is never closed; 0 rows are written"),
        ("a.jsonl", b"{\"key\": 1", 1, "0 rows are written"),
        ("a.csv", b"id,\x1b[31mred\n1,2\n", 2, r"id, \u{1b}[31mred"),
    ];
    for (name, content, code, part) in cases {
        std::fs::write(place.join(name), content).unwrap();
        let (_, error) = expect(place, code, &["import", "new.db", name, "--create"]);
        assert!(error.contains(part), "{error}");
        assert!(!error.contains(|sign: char| sign.is_control() && sign != '\n'), "{error:?}");
        assert!(!place.join("new.db").exists(), "{name}");
    }
    std::fs::write(place.join("a.tsv"), "key\tvalue\n1\tone, two\n").unwrap();
    expect(place, 0, &["import", "new.db", "a.tsv", "--create"]);
    let (out, _) = expect(place, 0, &["get", "new.db", "1"]);
    assert_eq!(out, "one, two");
}

/// A table of a spreadsheet in a country of decimal commas.
#[test]
fn another_separator_is_told_by_the_header_or_suggested() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let names: Vec<String> = (0..45).map(|number| format!("column {number}")).collect();
    for (separator, name, given) in [(";", "';'", ";"), ("\t", "tab", "tab"), ("|", "'|'", "|")] {
        let header = names.join(separator);
        let row = vec!["1,5"; 45].join(separator);
        std::fs::write(place.join("wide.csv"), format!("{header}\n{row}\n")).unwrap();
        let import = ["import", "wide.db", "wide.csv", "--create", "--key", "column 7"];
        let (out, _) = expect(place, 0, &import);
        assert!(out.starts_with("1 rows written"), "{out}");
        let (_, error) = expect(place, 2, &[&import[..], &["--separator", ","]].concat());
        let what = format!(
            "error: no column column 7; the header seems to be separated by {name}: \
             --separator {name}: wide.csv"
        );
        assert_eq!(error.trim_end(), what);
        let (out, _) = expect(place, 0, &[&import[..], &["--separator", given]].concat());
        assert!(out.starts_with("1 rows written"), "{out}");
    }
    std::fs::write(place.join("wide.csv"), names.join(",")).unwrap();
    let (_, error) = expect(place, 2, &["import", "wide.db", "wide.csv", "--key", "id"]);
    assert!(error.contains("choose with --key: column 0, ") && error.len() < 200, "{error}");
    assert!(error.contains("column 7 and 37 more: wide.csv"), "{error}");
    std::fs::write(place.join("rows.jsonl"), "{}").unwrap();
    for (sign, file, what) in [
        (";;", "wide.csv", "one ASCII sign"),
        (";", "rows.jsonl", "--separator is of CSV files"),
        (";", "wide.db", "--separator is of CSV files"),
    ] {
        let (_, error) = expect(place, 2, &["import", "wide.db", file, "--separator", sign]);
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn an_import_that_is_stopped_says_what_it_wrote() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let arguments = ["import", "rocks.db", "-", "--format", "csv", "--create"];
    let mut command = command(place, &arguments);
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = pipes.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"key,value\na,1\nb,2\n").unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    // The first line of progress: it is under way.
    lines.next().unwrap().unwrap();
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    // Whether it sees the signal before or behind these rows, it counts what it took.
    std::thread::sleep(std::time::Duration::from_millis(300));
    // It may have ended already.
    let _ = input.write_all(b"c,3\nd,4\n");
    drop(input);
    let errors: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{errors:?}");
    let rows = text_rows(&place.join("rocks.db"));
    let expected = format!("error: stopped; {} rows are written: -", rows.len());
    assert_eq!(errors.last(), Some(&expected));
    assert!((1..4).contains(&rows.len()), "{rows:?}");
}

/// Waits until a process catches both signals that stop it.
#[cfg(target_os = "linux")]
pub fn wait_until_signals_are_caught(pid: u32) {
    let caught = |signal: Signal| 1_u64 << (signal as i32 - 1);
    let both = caught(Signal::SIGINT) | caught(Signal::SIGTERM);
    loop {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        if u64::from_str_radix(line.trim(), 16).unwrap() & both == both {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// The opening of a pipe waits for its writer, so that the signal comes while it waits.
#[test]
#[cfg(target_os = "linux")]
fn an_import_that_is_stopped_while_its_input_opens_makes_nothing() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let pipe = place.join("rows.csv");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut command = command(place, &["import", "new.db", "rows.csv", "--create"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until_signals_are_caught(child.id());
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    std::fs::write(&pipe, "key,value\na,1\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{error}");
    assert_eq!(error.lines().last(), Some("error: stopped; nothing is written: rows.csv"));
    assert!(output.stdout.is_empty() && !place.join("new.db").exists());
}

/// Nobody ever writes into the pipe: the first signal is taken note of, the second one does not wait.
#[test]
#[cfg(target_os = "linux")]
fn the_second_signal_ends_an_import_at_once() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    nix::unistd::mkfifo(&place.join("rows.csv"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut command = command(place, &["import", "new.db", "rows.csv", "--create"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = Pid::from_raw(child.id() as i32);
    wait_until_signals_are_caught(child.id());
    kill(pid, Signal::SIGINT).unwrap();
    // Two signals that wait to be delivered are one.
    while child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(20));
        let _ = kill(pid, Signal::SIGINT);
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(output.stdout.is_empty() && !place.join("new.db").exists());
}

#[test]
fn help_has_examples_and_exit_codes() {
    let place = tempfile::tempdir().unwrap();
    for command in ["export", "import"] {
        let (out, _) = expect(place.path(), 0, &[command, "--help"]);
        assert!(out.contains("Examples:\n") && out.contains("Exit codes:\n"), "{out}");
    }
}

#[cfg(feature = "advisor-formats")]
#[test]
fn files_with_columns_are_known_by_their_first_bytes() {
    use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
    use std::sync::Arc;
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    // The last row has no name.
    let columns: [(&str, ArrayRef); 2] = [
        ("name", Arc::new(StringArray::from(vec![Some("basalt"), Some("chalk"), None]))),
        ("age", Arc::new(Int32Array::from(vec![3, 1, 2]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = std::fs::File::create(place.join("rocks")).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();

    let import = ["import", "by-age.db", "rocks", "--create", "--key", "age"];
    let (out, _) = expect(place, 0, &import);
    assert!(out.starts_with("3 rows written in batches"), "{out}");
    let row = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let expected = [
        row("1", r#"{"name":"chalk","age":1}"#),
        row("2", r#"{"name":null,"age":2}"#),
        row("3", r#"{"name":"basalt","age":3}"#),
    ];
    assert_eq!(text_rows(&place.join("by-age.db")), expected);

    let import = ["import", "by-name.db", "rocks", "--create", "--key", "name", "--value", "age"];
    let (_, error) = expect(place, 1, &import);
    assert_eq!(error, "error: column name is null; 2 rows are written: rocks:3");
    assert_eq!(text_rows(&place.join("by-name.db")), [row("basalt", "3"), row("chalk", "1")]);

    let (_, error) = expect(place, 2, &["import", "none.db", "rocks", "--format", "csv"]);
    assert_eq!(error, "error: this is a Parquet file; leave --format out: rocks");
    let (_, error) = expect(place, 2, &["import", "none.db", "rubble.parquet", "--key", "age"]);
    assert!(error.contains("cannot be read: No such file"), "{error}");
    let (_, error) = expect(place, 2, &["export", "by-age.db", "-o", "out.arrow"]);
    assert!(error.contains("Arrow files are not written"), "{error}");
    assert!(!place.join("out.arrow").exists());
    expect(place, 0, &["set", "by-age.db", "4", "slate"]);
    expect(place, 0, &["del", "by-age.db", "4"]);
    let (_, error) = expect(place, 2, &["import", "none.db", "rocks", "--create", "--key", "Age"]);
    assert_eq!(error, "error: no column Age; choose with --key: name, age: rocks");
    let whole = std::fs::read(place.join("rocks")).unwrap();
    std::fs::write(place.join("half"), &whole[..whole.len() / 2]).unwrap();
    let (_, error) = expect(place, 1, &["import", "none.db", "half", "--create", "--key", "age"]);
    assert!(error.contains("half"), "{error}");
    assert!(!place.join("none.db").exists());
}

/// Makes a database of LevelDB; false where LevelDB is not installed.
fn fill_leveldb<V: AsRef<[u8]>>(
    directory: &Path,
    rows: impl Iterator<Item = (Vec<u8>, V)>,
) -> bool {
    use lithify_lab::adapter::provider::{Provider, Transactions};
    use lithify_lab::adapter::settings::EngineSettings;
    use lithify_lab::adapter::{SpaceId, SpaceSpec, WriteBatch};
    use lithify_lab_engines::leveldb::PROVIDER;

    if let Err(missing) = PROVIDER.available() {
        eprintln!("skipped: {missing}");
        return false;
    }
    let spaces = [SpaceSpec { name: "rows", prefix_bytes: None, single_delete: false }];
    let settings = EngineSettings::small();
    std::fs::create_dir(directory).unwrap();
    let leveldb = PROVIDER.open(directory, &settings, &spaces, Transactions::Unneeded).unwrap();
    let mut batch = WriteBatch::new();
    rows.for_each(|(key, value)| batch.put(SpaceId(0), &key, value.as_ref()));
    leveldb.session().unwrap().write_batch(&batch).unwrap();
    leveldb.close().unwrap();
    true
}

/// What a refusal of LevelDB's interface names: the rows of LevelDB, in a database of ours.
#[test]
fn a_database_of_leveldb_is_copied_and_stays_as_it_is() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let old = place.join("old");
    let row = |number: u32| (number.to_be_bytes().to_vec(), number.to_le_bytes().repeat(9));
    if !fill_leveldb(&old, (0..20_000).map(row)) {
        return;
    }
    let files = |directory: &Path| -> BTreeMap<_, _> {
        let entries = std::fs::read_dir(directory).unwrap().flatten();
        entries.map(|entry| (entry.file_name(), std::fs::read(entry.path()).unwrap())).collect()
    };
    let before = files(&old);
    expect(place, 0, &["import", "new.db", "old", "--create"]);
    assert!(files(&old) == before, "the old directory has changed");
    // The adapter's keys have the byte of their space in front.
    let expected: Rows = (0..20_000).map(row).map(|(k, v)| ([&[0], &k[..]].concat(), v)).collect();
    assert!(rows(&place.join("new.db"), "default") == expected);
}

/// Rows of a database before one that is too large are written, as those of a file are.
#[test]
fn a_row_of_a_database_that_is_too_large_ends_the_import_there() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let two = [(b"a".to_vec(), "first"), (vec![b'k'; 70_000], "too long")];
    if !fill_leveldb(&place.join("old"), two.into_iter()) {
        return;
    }
    let (_, error) = expect(place, 1, &["import", "new.db", "old", "--create"]);
    assert_eq!(error, "error: a key of more than 65535 bytes; 1 rows are written: old");
    assert_eq!(rows(&place.join("new.db"), "default").len(), 1);
}

/// As for a file whose first row is wrong.
#[test]
fn a_database_whose_first_row_is_too_large_leaves_nothing_behind() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let two = [(vec![b'a'; 70_000], "too long"), (b"b".to_vec(), "second")];
    if !fill_leveldb(&place.join("old"), two.into_iter()) {
        return;
    }
    let (_, error) = expect(place, 1, &["import", "new.db", "old", "--create"]);
    assert_eq!(error, "error: a key of more than 65535 bytes; 0 rows are written: old");
    assert!(!place.join("new.db").exists());
}

/// Of a program that was built without fjall.
#[test]
#[cfg(not(feature = "embedded-engines"))]
fn a_database_of_fjall_says_how_to_get_it() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    std::fs::create_dir(place.join("old")).unwrap();
    std::fs::write(place.join("old/version"), b"FJL\x03").unwrap();
    for command in [&["import", "new.db", "old", "--create"][..], &["advise", "old"]] {
        let (_, error) = expect(place, 2, command);
        assert!(error.contains("fjall is not in this build; get it with: cargo build"), "{error}");
    }
    assert!(!place.join("new.db").exists());
}

/// Of a program that was built with it.
#[test]
#[cfg(feature = "embedded-engines")]
fn a_database_of_fjall_in_an_old_format_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    std::fs::create_dir(place.join("old")).unwrap();
    std::fs::write(place.join("old/version"), b"FJL\x02").unwrap();
    let (_, error) = expect(place, 1, &["import", "new.db", "old", "--create"]);
    assert!(error.contains("fjall's format 2; format 3 is read"), "{error}");
    assert!(!place.join("new.db").exists());
}
