//! Files whose columns have types: what rows are made of them, and what is refused.

use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder, StringDictionaryBuilder};
use arrow_array::types::Int8Type;
use arrow_array::{ArrayRef, Float64Array, Int32Array, RecordBatch, StringArray, StructArray};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use lithify_advisor::input::{self, ColumnarContent, ContentError, Source};
use lithify_advisor::{AdviseError, Silent};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use rusqlite::Connection;
use tempfile::TempDir;

use super::data::{advice, refusal, request};

const COUNT: i32 = 20_000;
const GROUP: usize = 3_000;

/// Rows whose texts tell their number.
fn batch(count: i32) -> RecordBatch {
    let numbers: Vec<i32> = (0..count).collect();
    let text = |number: &i32| (number % 3 != 0).then(|| format!("rock {number}"));
    let texts: StringArray = numbers.iter().map(text).collect();
    let floats: Float64Array = numbers.iter().map(|number| f64::from(*number) / 4.0).collect();
    let mut lists = ListBuilder::new(StringBuilder::new());
    let mut kinds = StringDictionaryBuilder::<Int8Type>::new();
    for number in &numbers {
        (0..number % 3).for_each(|_| lists.values().append_value("x"));
        lists.append(true);
        kinds.append_value(if number % 2 == 0 { "even" } else { "odd" });
    }
    let inner: ArrayRef = Arc::new(Int32Array::from(numbers.clone()));
    let structs = StructArray::try_from(vec![("inner", inner)]).expect("is one");
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int32Array::from(numbers))),
        ("name", Arc::new(texts)),
        ("weight", Arc::new(floats)),
        ("tags", Arc::new(lists.finish())),
        ("kind", Arc::new(kinds.finish())),
        ("deep", Arc::new(structs)),
    ];
    RecordBatch::try_from_iter(columns).expect("is a batch")
}

fn write_parquet(path: &Path, batch: &RecordBatch) {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(GROUP))
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .build();
    let file = File::create(path).expect("is made");
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).expect("begins");
    writer.write(batch).expect("is taken");
    writer.close().expect("ends");
}

fn write_arrow(path: &Path, batch: &RecordBatch) {
    let options = IpcWriteOptions::default()
        .try_with_compression(Some(CompressionType::LZ4_FRAME))
        .expect("is built in");
    let file = File::create(path).expect("is made");
    let mut writer =
        FileWriter::try_new_with_options(file, &batch.schema(), options).expect("begins");
    for start in (0..batch.num_rows()).step_by(GROUP) {
        let length = GROUP.min(batch.num_rows() - start);
        writer.write(&batch.slice(start, length)).expect("is taken");
    }
    writer.finish().expect("ends");
}

fn open(path: &Path, key: &[&str], table: Option<&str>) -> Result<Box<dyn Source>, AdviseError> {
    let key: Vec<String> = key.iter().map(|name| (*name).to_owned()).collect();
    input::open(path, None, &key, table, &Silent)
}

/// All rows: keys and values.
fn rows(source: &mut dyn Source) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut rows = Vec::new();
    let scanned = source.scan(&mut |row, _| {
        rows.push((row.key.to_vec(), row.value.to_vec()));
        ControlFlow::Continue(())
    });
    scanned.expect("is read");
    rows
}

fn sorting(number: i64) -> [u8; 8] {
    ((number as u64) ^ (1 << 63)).to_be_bytes()
}

/// Columnar files in a directory, each with the same rows.
fn columnar(count: i32) -> (TempDir, Vec<&'static str>) {
    let directory = tempfile::tempdir().expect("a directory");
    write_parquet(&directory.path().join("rocks.parquet"), &batch(count));
    write_arrow(&directory.path().join("rocks.arrow"), &batch(count));
    (directory, vec!["rocks.parquet", "rocks.arrow"])
}

#[test]
fn columns_become_rows_in_either_format() {
    let (directory, names) = columnar(COUNT);
    for name in names {
        let mut source = open(&directory.path().join(name), &["id"], None).expect("opens");
        let rows = rows(&mut *source);
        assert_eq!(rows.len(), COUNT as usize, "{name}");
        let (key, value) = &rows[4];
        assert_eq!(key, &sorting(4), "{name}");
        let expected: &[&[u8]] = &[
            // No null; lengths of a name, a list of one, a kind and a struct of four bytes.
            &[0, 6, 2, 4, 4],
            b"rock 4",
            &1.0_f64.to_le_bytes(),
            &[1, b'x'],
            b"even",
            &4_i32.to_be_bytes(),
        ];
        assert_eq!(value, &expected.concat(), "{name}");
        // The name of every third is null, and has no length.
        assert_eq!(rows[3].1[..4], [0b10, 0, 3, 4], "{name}");

        let number = |place: &lithify_advisor::rows::Rows| {
            let first = place.iter().next().expect("has a row");
            i64::from_be_bytes(first.key.try_into().expect("eight bytes")) ^ i64::MIN
        };
        for (share, expected) in [(0.0, 0), (0.5, i64::from(COUNT) / 2), (0.99, 19_800)] {
            let place = source.place(share, 50_000).expect("is read");
            assert_eq!(number(&place), expected, "{name}");
        }
        // A place goes on into the next groups.
        let place = source.place(0.1, 200_000).expect("is read");
        assert!(place.len() > GROUP, "{name}: {}", place.len());
        let bytes: usize = rows.iter().map(|(key, value)| key.len() + value.len()).sum();
        assert_eq!(source.facts().data_bytes, bytes as u64, "{name}");
    }
}

#[test]
fn advice_for_columns_is_advice() {
    let (directory, names) = columnar(COUNT);
    for name in names {
        let advice = advice(&request(directory.path().join(name), &["innodb"], &["weight"]));
        assert_eq!(advice.data.rows, COUNT as u64);
        assert!(advice.data.is_sorted, "numbers that are not whole sort too");
        let error = refusal(&request(directory.path().join(name), &["btrfs"], &[]));
        assert!(error.is_usage() && error.to_string().contains("--format bytes"), "{error}");
        let error = refusal(&request(directory.path().join(name), &["innodb"], &["size"]));
        assert!(error.to_string().contains("there are: id, name, weight"), "{error}");
    }
}

#[test]
fn files_of_a_directory_are_one_table() {
    let directory = tempfile::tempdir().expect("a directory");
    for part in ["a", "b"] {
        write_parquet(&directory.path().join(format!("{part}.parquet")), &batch(5_000));
    }
    std::fs::write(directory.path().join("_SUCCESS"), "").expect("is written");
    std::fs::write(directory.path().join(".part.crc"), "sum").expect("is written");
    let mut source = open(directory.path(), &[], None).expect("opens");
    assert_eq!((rows(&mut *source).len(), source.facts().files), (10_000, 2));
    let names = batch(10).project(&[1]).expect("is a batch");
    write_parquet(&directory.path().join("c.parquet"), &names);
    let error = open(directory.path(), &[], None).err().expect("differs");
    assert!(error.to_string().contains("c.parquet has other columns than"), "{error}");
}

#[test]
fn damaged_columns_are_errors_with_their_file() {
    let (directory, names) = columnar(4_000);
    for name in names {
        let path = directory.path().join(name);
        let whole = std::fs::read(&path).expect("is there");
        for kept in [8, whole.len() / 2, whole.len() - 1] {
            std::fs::write(&path, &whole[..kept]).expect("is written");
            let error = refusal(&request(&path, &["rocksdb"], &[]));
            assert!(error.to_string().contains(name) && !error.is_usage(), "{error}");
        }
        for at in (0..whole.len()).step_by(whole.len() / 40) {
            let mut flipped = whole.clone();
            flipped[at] ^= 0x55;
            std::fs::write(&path, &flipped).expect("is written");
            // Neither has checksums of all of it: an error or rows, and no panic.
            let _ = open(&path, &[], None)
                .map(|mut source| source.scan(&mut |_, _| ControlFlow::Continue(())));
        }
        let none = batch(0);
        if name.ends_with("parquet") {
            write_parquet(&path, &none)
        } else {
            write_arrow(&path, &none)
        }
        let error = refusal(&request(&path, &["rocksdb"], &[]));
        assert!(error.to_string().contains("has no row"), "{error}");
    }
}

/// A database of SQLite after statements.
fn sqlite(statements: &str) -> (TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("rocks 100%.db");
    let connection = Connection::open(&path).expect("opens");
    connection.execute_batch(statements).expect("is taken");
    (directory, path)
}

const NUMBERS: &str =
    "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 19999)";

#[test]
fn tables_of_sqlite_have_their_own_keys() {
    let (directory, path) = sqlite(&format!(
        "CREATE TABLE few (id INTEGER PRIMARY KEY, note TEXT);
         INSERT INTO few VALUES (1, 'one');
         CREATE TABLE rocks (id INTEGER PRIMARY KEY, name TEXT, weight REAL, kind SMALLINT, raw BLOB);
         INSERT INTO rocks {NUMBERS} SELECT i, 'rock ' || i, i / 4.0, i % 5, NULL FROM n;
         CREATE TABLE pairs (a TEXT, b INT, c, PRIMARY KEY (a, b)) WITHOUT ROWID;
         INSERT INTO pairs {NUMBERS} SELECT 'a' || (i / 100 + 1000), i % 100, 'c' || i FROM n;
         CREATE TABLE \"odd \"\"name\" (rowid TEXT, x); INSERT INTO \"odd \"\"name\" VALUES ('r', 1);
         CREATE TABLE far (id INTEGER PRIMARY KEY, t TEXT);
         INSERT INTO far {NUMBERS} SELECT i, 'text ' || i FROM n; INSERT INTO far VALUES (1 << 50, 'x');"
    ));
    let files = || std::fs::read_dir(directory.path()).expect("is there").count();
    let before = files();
    let mut source = open(&path, &[], None).expect("opens");
    assert_eq!(source.facts().format, "SQLite table rocks with 5 columns, the largest of 5");
    assert_eq!(source.facts().key, "id");
    let all = rows(&mut *source);
    assert_eq!(all.len(), 20_000);
    assert_eq!(all[7].0, sorting(7));
    // The last column is null, its bit the fifth; one length; four bytes less than eight for the kind.
    let expected = [&[0b1_0000, 6][..], b"rock 7", &1.75_f64.to_le_bytes(), &[0x80, 2]].concat();
    assert_eq!(all[7].1, expected);

    let mut pairs = open(&path, &[], Some("pairs")).expect("opens");
    assert_eq!(pairs.facts().key, "a, b");
    let all = rows(&mut *pairs);
    assert_eq!(all[101].0, [b"a1001\0".as_slice(), &sorting(1)].concat());
    let place = pairs.place(0.5, 1_000).expect("is read");
    assert!(!place.is_empty() && pairs.places_max() > 0);

    let mut odd = open(&path, &[], Some("odd \"name")).expect("opens");
    assert_eq!((rows(&mut *odd).len(), odd.facts().key.as_str()), (1, ""));
    let mut far = open(&path, &[], Some("far")).expect("opens");
    assert_eq!(rows(&mut *far).len(), 20_001);
    assert!(far.place(0.5, 1_000).expect("is read").len() > 10, "places are where rows are");
    let mut named = open(&path, &["kind", "id"], Some("rocks")).expect("opens");
    assert_eq!(rows(&mut *named)[6].0, [sorting(1), sorting(6)].concat());

    let error = open(&path, &[], Some("colours")).err().expect("is unknown");
    assert!(error.is_usage() && error.to_string().contains("there are: far, few, odd"), "{error}");
    assert_eq!(files(), before, "nothing was written beside it");
}

#[test]
fn what_is_in_a_log_of_sqlite_is_told() {
    let (_directory, path) = sqlite("CREATE TABLE t (x TEXT); INSERT INTO t VALUES ('seen');");
    let writer = Connection::open(&path).expect("opens");
    writer
        .execute_batch("PRAGMA journal_mode=WAL; INSERT INTO t VALUES ('not seen');")
        .expect("is taken");
    let mut source = open(&path, &[], None).expect("opens");
    assert!(source.facts().format.ends_with("in its write-ahead log"), "{}", source.facts().format);
    assert_eq!(rows(&mut *source).len(), 1);
}

#[test]
fn damaged_or_empty_files_of_sqlite_are_errors() {
    let (_directory, path) = sqlite("CREATE TABLE t (x TEXT);");
    let error = refusal(&request(&path, &["rocksdb"], &[]));
    assert!(error.to_string().ends_with("t has no row"), "{error}");
    let whole = std::fs::read(&path).expect("is there");
    std::fs::write(&path, &whole[..500]).expect("is written");
    let error = refusal(&request(&path, &["rocksdb"], &[]));
    assert!(error.to_string().contains("SQLite:") && !error.is_usage(), "{error}");
    let (_directory, path) = sqlite("CREATE VIEW v AS SELECT 1;");
    let error = refusal(&request(&path, &["rocksdb"], &[]));
    assert!(error.to_string().ends_with("has no table"), "{error}");
}

/// All rows of a file, as text; an error ends them.
fn contents(
    path: &Path,
    key: Option<&str>,
    value: Option<&str>,
) -> (Vec<(String, String)>, Option<ContentError>) {
    let content = ColumnarContent::open(path, key, value);
    let mut content = content.expect("is read").expect("has columns");
    let (mut rows, mut key, mut value) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        match content.next(&mut key, &mut value) {
            Ok(false) => return (rows, None),
            Err(error) => return (rows, Some(error)),
            Ok(true) => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                rows.push((text(&key), text(&value)));
                assert_eq!(content.progress().0, rows.len() as u64);
            }
        }
    }
}

#[test]
fn rows_of_files_with_columns_say_what_they_hold() {
    let count = 2 * GROUP as i32 + 5;
    let (directory, names) = columnar(count);
    for name in names {
        let path = directory.path().join(name);
        let (rows, error) = contents(&path, Some("id"), None);
        assert!(error.is_none(), "{name}: {error:?}");
        assert_eq!(rows.len(), count as usize, "{name}");
        let second = r#"{"id":2,"name":"rock 2","weight":0.5,"tags":["x","x"],"kind":"even","deep":{"inner":2}}"#;
        assert_eq!(rows[2], ("2".to_owned(), second.to_owned()), "{name}");
        assert!(rows[3].1.contains(r#""name":null"#), "{name}: {}", rows[3].1);
        let numbers = rows.iter().enumerate();
        assert!(numbers.into_iter().all(|(number, (key, _))| *key == number.to_string()));
        // A dictionary's text, and a number.
        let (rows, error) = contents(&path, Some("kind"), Some("weight"));
        assert!(error.is_none() && rows[5] == ("odd".to_owned(), "1.25".to_owned()), "{name}");
        // The first row without a name is the first of all; behind it nothing is read.
        let (rows, error) = contents(&path, Some("name"), Some("id"));
        assert!(rows.is_empty(), "{name}");
        assert!(
            matches!(&error, Some(ContentError::Row(1, what)) if what == "column name is null")
        );
        let error = ColumnarContent::open(&path, Some("id"), Some("deep")).err().expect("is none");
        let what = "column deep is a list or structure; leave --value out: ";
        assert!(error.is_usage() && error.to_string().starts_with(what), "{error}");
        for (key, missing) in [(None, "key"), (Some("ID"), "ID")] {
            let error = ColumnarContent::open(&path, key, None).err().expect("is no column");
            assert!(
                error.is_usage() && error.to_string().contains(&format!("no column {missing};"))
            );
        }
        // Damaged anywhere, it is an error and no panic, or its rows are others.
        let whole = std::fs::read(&path).expect("is read");
        for place in (0..whole.len()).step_by(997) {
            let mut damaged = whole.clone();
            damaged[place] ^= 0x55;
            std::fs::write(&path, damaged).expect("is written");
            if let Ok(Some(mut content)) = ColumnarContent::open(&path, Some("id"), None) {
                let (mut key, mut value) = (Vec::new(), Vec::new());
                while let Ok(true) = content.next(&mut key, &mut value) {}
            }
        }
    }
    let text = directory.path().join("rocks.csv");
    std::fs::write(&text, "id,name\n").expect("is written");
    assert!(ColumnarContent::open(&text, Some("id"), None).expect("is read").is_none());
}

#[test]
fn times_with_zones_bytes_and_odd_numbers_are_what_they_are_in_both_kinds_of_file() {
    use arrow_array::builder::BinaryDictionaryBuilder;
    use arrow_array::{BinaryArray, TimestampSecondArray};
    let directory = tempfile::tempdir().expect("a directory");
    let mut packed = BinaryDictionaryBuilder::<Int8Type>::new();
    [&[0xff][..], &[0, 1]].iter().for_each(|bytes| packed.append_value(bytes));
    let times = TimestampSecondArray::from(vec![0, 86_400]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("utc", Arc::new(times.clone().with_timezone("UTC"))),
        ("berlin", Arc::new(times.with_timezone("Europe/Berlin"))),
        ("packed", Arc::new(packed.finish())),
        ("bytes", Arc::new(BinaryArray::from_vec(vec![&[0xfe][..], &[]]))),
        ("odd", Arc::new(Float64Array::from(vec![1.5, f64::NAN]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("is a batch");
    write_parquet(&directory.path().join("rocks.parquet"), &batch);
    write_arrow(&directory.path().join("rocks.arrow"), &batch);
    for name in ["rocks.parquet", "rocks.arrow"] {
        let path = directory.path().join(name);
        let of = |key: &str, value: &str| {
            let content = ColumnarContent::open(&path, Some(key), Some(value));
            let mut content = content.expect("is read").expect("has columns");
            let (mut key, mut value) = (Vec::new(), Vec::new());
            let next = content.next(&mut key, &mut value);
            assert!(matches!(next, Ok(true)), "{name}: {next:?}");
            (key, value, content)
        };
        let (packed, utc, _) = of("packed", "utc");
        assert_eq!((&packed[..], &utc[..]), (&[0xff][..], &b"1970-01-01T00:00:00Z"[..]), "{name}");
        let (bytes, odd, mut content) = of("bytes", "odd");
        assert_eq!((&bytes[..], &odd[..]), (&[0xfe][..], &b"1.5"[..]), "{name}");
        let next = content.next(&mut Vec::new(), &mut Vec::new());
        let is_odd = |what: &str| what == "column odd is no finite number";
        assert!(matches!(&next, Err(ContentError::Row(2, what)) if is_odd(what)), "{next:?}");
        let (rows, error) = contents(&path, Some("utc"), None);
        assert!(error.is_none() && rows.len() == 2, "{name}: {error:?}");
        assert!(rows[1].1.ends_with(r#""bytes":"","odd":null}"#), "{name}: {}", rows[1].1);
    }
    let twice: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int32Array::from(vec![1]))),
        ("a", Arc::new(Int32Array::from(vec![1]))),
        ("a", Arc::new(Int32Array::from(vec![2]))),
    ];
    let path = directory.path().join("twice.parquet");
    write_parquet(&path, &RecordBatch::try_from_iter(twice).expect("is a batch"));
    for value in [None, Some("a")] {
        let error = ColumnarContent::open(&path, Some("id"), value).err().expect("is ambiguous");
        assert!(error.is_usage() && error.to_string().contains("several columns a"), "{error}");
    }
}
