//! What is read, and what is refused with which words.

use super::data::{advice, file, orders, refusal, request};

#[test]
fn formats_are_recognised_by_content() {
    let csv = "id;name\n1;gneiss\n2;\"sl;ate\"\n";
    let tsv = "1\tgneiss\n2\tslate\n3\tmarble\n";
    let json = "{\"id\": 1}\n{\"id\": 2}\n";
    let cases: &[(&str, &[u8], &str)] = &[
        ("a", csv.as_bytes(), "CSV with 2 columns, with a header"),
        ("b", tsv.as_bytes(), "TSV with 2 columns, without a header"),
        ("c", json.as_bytes(), "JSON objects, one a line"),
        ("d", b"one line\nanother line\n", "lines of text"),
        ("e", b"\0\x01\x02 no text \0", "bytes without rows"),
        ("f.csv", b"\xef\xbb\xbfid,name\n1,\xff\xfe\n", "CSV with 2 columns, with a header"),
    ];
    for (name, content, expected) in cases {
        let (_directory, path) = file(name, content);
        let advice = advice(&request(path, &[], &[]));
        assert_eq!(advice.data.input.format, *expected, "{name}");
        assert!(!advice.targets.is_empty(), "{name}");
    }
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_name() {
    let (_directory, path) = file("a.csv", "\u{feff}id,name\r\n1,slate\r\n2,gneiss\r\n");
    let advice = advice(&request(path, &["rocksdb"], &["id"]));
    assert_eq!((advice.data.rows, advice.data.is_sorted), (2, true));
}

#[test]
fn a_wrong_row_is_named_with_its_line() {
    let mut text = orders(200, false);
    text.push_str("1,2\n");
    let (_directory, path) = file("orders.csv", &text);
    let error = refusal(&request(&path, &["rocksdb"], &["customer"]));
    assert!(!error.is_usage());
    // Every row has a quoted line end: a header, two lines a row, and the one behind them.
    assert!(error.to_string().contains("orders.csv:402:"), "{error}");
    assert!(error.to_string().contains("2 fields where others have 4"), "{error}");

    let (_directory, path) = file("a.jsonl", "{\"id\": 1}\n{\"id\": 2}\nplain\n");
    let error = refusal(&request(&path, &[], &["id"]));
    assert!(error.to_string().contains("a.jsonl:3: no JSON object"), "{error}");
    let error = refusal(&request(&path, &[], &[]));
    assert!(error.to_string().contains("a.jsonl:3: no JSON object"), "{error}");
}

#[test]
fn requests_that_do_not_fit_are_usage() {
    let (directory, path) = file("a.csv", "id,name\n1,slate\n2,gneiss\n");
    let cases: &[(&str, &[&str], &str)] = &[
        ("a.csv", &["colour"], "no column 'colour'; there are: id, name"),
        ("a.csv", &["3"], "no column '3'"),
        ("missing.csv", &[], "missing.csv: No such file"),
    ];
    for (name, key, expected) in cases {
        let error = refusal(&request(directory.path().join(name), &["rocksdb"], key));
        assert!(error.is_usage() && error.to_string().contains(expected), "{error}");
    }
    assert!(advice(&request(path, &["rocksdb"], &["2"])).data.input.key == "2");
    let (_directory, path) = file("a.jsonl", "{\"id\": 1}\n");
    let error = refusal(&request(path, &[], &["user.id"]));
    assert!(error.is_usage() && error.to_string().contains("no field 'user'"), "{error}");
    let (_directory, path) = file("picture", b"\0\x01\x02");
    let error = refusal(&request(path, &["rocksdb"], &[]));
    assert!(error.is_usage() && error.to_string().contains("RocksDB stores rows"), "{error}");
}

#[test]
fn containers_are_refused_with_what_to_do() {
    let cases: &[(&[u8], &str)] = &[
        (b"\x1f\x8b\x08", "gunzip"),
        (b"\x28\xb5\x2f\xfd", "zstd -dk"),
        (b"\xff\xfei\0d\0", "iconv"),
        (b"PK\x03\x04", "unpack"),
        (b"", "is empty"),
        (b"[{\"id\": 1}]", "jq -c '.[]'"),
        (b"{\n  \"id\": 1\n}\n", "jq -c ."),
    ];
    for (content, expected) in cases {
        let name = if content.starts_with(b"[") { "a.json" } else { "a" };
        let name = if content.starts_with(b"{") { "b.json" } else { name };
        let (_directory, path) = file(name, content);
        let error = refusal(&request(path, &[], &[]));
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn a_directory_is_one_table_or_files() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(directory.path().join("deeper")).expect("is made");
    for (name, first) in [("a.csv", 0), ("b.csv", 100), ("deeper/c.csv", 200)] {
        let rows: String = (first..first + 100).map(|row| format!("{row},rock {row}\n")).collect();
        std::fs::write(directory.path().join(name), format!("id,name\n{rows}"))
            .expect("is written");
    }
    std::fs::write(directory.path().join("empty.csv"), "").expect("is written");
    let table = advice(&request(directory.path(), &["rocksdb"], &["id"]));
    assert_eq!((table.data.rows, table.data.input.files), (300, 3));
    assert!(table.data.is_sorted);

    std::fs::write(directory.path().join("notes.txt"), "some\nnotes\n").expect("is written");
    let files = advice(&request(directory.path(), &[], &[]));
    assert_eq!(files.data.input.format, "bytes without rows");
    assert!(files.targets.iter().all(|advice| !advice.target.needs_rows));
    let error = refusal(&request(directory.path(), &["rocksdb"], &["id"]));
    assert!(error.to_string().contains("notes.txt"), "{error}");
}

#[test]
fn data_that_change_are_no_data() {
    struct Changing(std::path::PathBuf);
    impl lithify_advisor::Watch for Changing {
        fn hear(&self, stage: &str, _: u64, _: u64) -> lithify_advisor::Result<()> {
            if stage == "measuring codecs" {
                std::fs::write(&self.0, "id,name\n1,slate\n2,schist\n3,late\n")
                    .expect("is written");
            }
            Ok(())
        }
    }
    let (_directory, path) = file("a.csv", "id,name\n1,slate\n2,gneiss\n");
    let request = request(&path, &["rocksdb"], &[]);
    let error = lithify_advisor::advise(&request, &Changing(path)).expect_err("no advice");
    assert!(error.to_string().contains("changed while it was read"), "{error}");
}
