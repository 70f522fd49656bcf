//! `lithify export` into Parquet: the identical rows come back, other programs read it, nothing half is left.

use std::path::Path;
use std::process::Stdio;

use lithify::{CfOptions, Db};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::import::{command, expect, noise, options, rows, wait_until_signals_are_caught};

/// A database `rocks.db` whose family `noise` has an empty row, a large one and so many of any bytes.
fn database(place: &Path, count: usize) {
    let db = Db::open(place.join("rocks.db"), options()).unwrap();
    let family = db.column_family("noise", CfOptions::default()).unwrap();
    let mut seed = 7;
    family.put(b"", b"").unwrap();
    family.put(b"large", vec![0xff; 300_000]).unwrap();
    for _ in 0..count {
        family.put(noise(&mut seed, 12), noise(&mut seed, 40)).unwrap();
    }
    db.close().unwrap();
}

#[test]
fn the_identical_rows_come_back_whatever_bytes_they_hold() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    database(place, 3_000);
    let expected = rows(&place.join("rocks.db"), "noise");
    let (out, _) = expect(place, 0, &["export", "rocks.db", "-o", "rows.parquet"]);
    let bytes = std::fs::read(place.join("rows.parquet")).unwrap();
    assert!(out.starts_with(&format!("{} rows, ", expected.len())), "{out}");
    assert!(out.ends_with(" written: rows.parquet\n"), "{out}");
    let import = ["import", "back.db", "rows.parquet", "--create", "--family", "back"];
    let (out, _) = expect(place, 0, &import);
    let begin = format!("{} rows written in the order of keys", expected.len());
    assert!(out.starts_with(&begin), "{out}");
    assert!(rows(&place.join("back.db"), "back") == expected);
    // The form that is named, whatever the file is called; and through a pipe.
    expect(place, 0, &["export", "rocks.db", "-o", "rows", "--format", "parquet"]);
    assert!(std::fs::read(place.join("rows")).unwrap() == bytes);
    let piped = command(place, &["export", "rocks.db", "--format", "parquet"]).output().unwrap();
    assert!(piped.status.success() && piped.stdout == bytes);
    expect(place, 0, &["import", "back.db", "rows", "--format", "parquet"]);
    // A part of the rows, as in every form.
    let part = ["export", "rocks.db", "-o", "part.parquet", "--from", "l", "--to", "m"];
    expect(place, 0, &part);
    expect(place, 0, &["import", "part.db", "part.parquet", "--create"]);
    let range = b"l".to_vec()..b"m".to_vec();
    let expected = expected.range(range).map(|(key, value)| (key.clone(), value.clone())).collect();
    assert!(rows(&place.join("part.db"), "default") == expected);
}

#[test]
fn the_columns_are_binary_and_a_database_without_rows_has_them_too() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    Db::open(place.join("empty.db"), options()).unwrap().close().unwrap();
    database(place, 0);
    for (database, groups, count) in [("empty.db", 0, 0), ("rocks.db", 1, 2)] {
        let (out, _) = expect(place, 0, &["export", database, "-o", "rows.parquet"]);
        assert!(out.starts_with(&format!("{count} rows, ")), "{out}");
        let file = std::fs::File::open(place.join("rows.parquet")).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let metadata = reader.metadata().file_metadata();
        let columns: Vec<String> = metadata
            .schema_descr()
            .columns()
            .iter()
            .map(|column| format!("{} {}", column.name(), column.physical_type()))
            .collect();
        assert_eq!(columns, ["key BYTE_ARRAY", "value BYTE_ARRAY"]);
        assert_eq!((reader.num_row_groups(), metadata.num_rows()), (groups, count));
        let (out, _) = expect(place, 0, &["import", "back.db", "rows.parquet", "--create"]);
        assert!(out.starts_with(&format!("{count} rows written")), "{out}");
    }
}

/// The opening of a pipe waits for its reader, so that the signal comes before the first row.
#[test]
fn ctrl_c_leaves_no_half_file() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    database(place, 3_000);
    for file in ["rows.parquet", "rows.csv"] {
        std::fs::write(place.join(file), "what was there").unwrap();
        let partial = place.join(format!("{file}.partial"));
        nix::unistd::mkfifo(&partial, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let mut command = command(place, &["export", "rocks.db", "-o", file]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_until_signals_are_caught(child.id());
        kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
        let _ = std::fs::read(&partial);
        let output = child.wait_with_output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(130), "{error}");
        assert_eq!(error.lines().last(), Some("error: stopped; there is no new file"));
        assert_eq!(std::fs::read(place.join(file)).unwrap(), b"what was there");
        assert!(!partial.exists(), "{file}");
    }
}

#[test]
fn what_is_no_parquet_file_is_refused_as_such() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    std::fs::write(place.join("rows.parquet"), "key,value\n1,2\n").unwrap();
    let (_, error) = expect(place, 2, &["import", "new.db", "rows.parquet", "--create"]);
    assert_eq!(error, "error: this is no Parquet file: rows.parquet");
    let piped = ["import", "new.db", "-", "--format", "parquet", "--create"];
    let mut command = command(place, &piped);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert_eq!(error, "error: Parquet is read from files, not from streams: -\n");
    assert!(!place.join("new.db").exists());
}
