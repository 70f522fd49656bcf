//! What is read, and what is refused with which words.

use std::time::Duration;

use lithify_advisor::{Format, Request};

use super::data::{Numbers, advice, file, orders, refusal, request};

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
fn names_of_columns_are_no_row_and_no_bytes() {
    let (_directory, path) = file("a.csv", "id,name\n");
    for key in [&["id"][..], &[]] {
        let error = refusal(&request(&path, &[], key));
        assert!(!error.is_usage() && error.to_string().ends_with("a.csv has no row"), "{error}");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let text = orders(30_000, true);
    let header = text.lines().next().expect("has one").len() + 1;
    for name in ["a.csv", "b.csv"] {
        std::fs::write(directory.path().join(name), &text).expect("is written");
    }
    std::fs::write(directory.path().join("c.csv"), &text[..header]).expect("is written");
    let advice = advice(&request(directory.path(), &["rocksdb"], &["order"]));
    assert_eq!(advice.data.rows, 60_000);
    assert_eq!(advice.data.input.data_bytes, 2 * (text.len() - header) as u64);
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
        ("wide.csv", &["z"], "there are: c0, c1, c2, c3, c4, c5, c6, c7 and 22 more"),
        ("missing.csv", &[], "missing.csv: No such file"),
    ];
    let wide = |row: &str| (0..30).map(|at| format!("{row}{at}")).collect::<Vec<_>>().join(";");
    let text = format!("{}\n{}\n", wide("c"), wide(""));
    std::fs::write(directory.path().join("wide.csv"), text).expect("is written");
    for (name, key, expected) in cases {
        let error = refusal(&request(directory.path().join(name), &["rocksdb"], key));
        assert!(error.is_usage() && error.to_string().contains(expected), "{error}");
    }
    assert!(advice(&request(path, &["rocksdb"], &["2"])).data.input.key == "2");
    let (_directory, path) = file("a.csv", "name,city,comment\nslate,Wales,a long one\n");
    let error = refusal(&request(path, &["rocksdb"], &["nme"]));
    let expected = "the first row was taken for data, not for names, so columns are 1 to 3";
    assert!(error.is_usage() && error.to_string().ends_with(expected), "{error}");
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
    let utf16: Vec<u8> = "id,name\n1,gneiss\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let cases = [cases, &[(&utf16[..], "iconv -f UTF-16LE -t UTF-8")]].concat();
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
    let note = "a.csv is CSV with 2 columns, with a header, and ";
    assert!(files.unknown.iter().any(|line| line.contains(note)), "{:?}", files.unknown);
    for key in [&["id"][..], &[]] {
        let error = refusal(&request(directory.path(), &["rocksdb"], key)).to_string();
        assert!(error.contains(note), "{error}");
        assert!(error.contains("notes.txt is lines of text"), "{error}");
        assert!(!error.contains(".."), "{error}");
    }
    std::fs::remove_file(directory.path().join("notes.txt")).expect("is there");
    std::fs::write(directory.path().join("d.csv"), "id,kind\n1,2\n").expect("is written");
    for key in ["id", "name"] {
        let error = refusal(&request(directory.path(), &["rocksdb"], &[key])).to_string();
        assert!(error.contains("a.csv has the columns id, name, and "), "{error}");
        assert!(error.contains("d.csv has id, kind"), "{error}");
    }
}

/// What file systems store of small files is the sum of what they store of each.
#[test]
fn small_files_are_stored_one_by_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut numbers = Numbers(7);
    let (mut none, mut sectors, mut data_bytes) = (0, 0, 0);
    for file in 0..2_000 {
        let size = numbers.next() % 9_000 + 1;
        let line = || format!("{:x} and the same words again\n", file % 97);
        let text: String = std::iter::repeat_with(line).take(400).collect();
        let path = directory.path().join(format!("{file:04}"));
        std::fs::write(path, &text[..size as usize]).expect("is written");
        none += if size <= 2048 { size } else { size.next_multiple_of(4096) };
        sectors += if size > 4096 { 4096 } else { 0 };
        data_bytes += size;
    }
    let request =
        Request { format: Some(Format::Bytes), ..request(directory.path(), &["btrfs"], &[]) };
    let btrfs = &advice(&request).targets[0];
    let ratio = |name: &str| {
        let found = btrfs.outcomes.iter().find(|one| one.setting.name() == name);
        found.expect("is measured").ratio.value
    };
    let expected = none as f64 / data_bytes as f64;
    assert!(
        (ratio("none 128k") / expected - 1.0).abs() < 1e-6,
        "{} {expected}",
        ratio("none 128k")
    );
    // Each shrinks to some bytes. What is larger than a sector takes one, the others are inline.
    let compressed = ratio("zstd-3 128k") * data_bytes as f64;
    let inline = compressed - sectors as f64;
    assert!((15_000.0..60_000.0).contains(&inline), "{inline}");
}

#[test]
fn a_number_is_a_column_and_never_makes_a_header() {
    let rows: String = (1..4_000).map(|row| format!("a{row},{},x\n", row + 1)).collect();
    let (_directory, path) = file("a.csv", &rows);
    for key in [&["2"][..], &["1", "3"], &[]] {
        let advice = advice(&request(&path, &["rocksdb"], key));
        assert_eq!(advice.data.input.format, "CSV with 3 columns, without a header", "{key:?}");
        assert_eq!(advice.data.rows, 3_999, "{key:?}");
    }
    let (_directory, path) = file("a.csv", format!("name,number,kind\n{rows}"));
    let advice = advice(&request(&path, &["rocksdb"], &["2"]));
    assert!(advice.data.is_sorted && advice.data.rows == 3_999, "{:?}", advice.data);
}

/// Where all columns are texts no row tells that the first one has names. Who names one does.
#[test]
fn a_column_that_is_named_makes_a_header() {
    let rows: String = (0..4_000).map(|row| format!("slate{row},quarry,blue\n")).collect();
    let (_directory, path) = file("a.csv", format!("stone,place,colour\n{rows}"));
    for (key, header, count) in
        [("stone", "with a header", 4_000), ("1", "without a header", 4_001)]
    {
        let advice = advice(&request(&path, &["rocksdb"], &[key]));
        assert_eq!(advice.data.input.format, format!("CSV with 3 columns, {header}"));
        assert_eq!(advice.data.rows, count);
    }
}

#[test]
fn rows_that_are_not_counted_are_about_so_many() {
    const MIB: usize = 1 << 20;
    let body = |bytes: usize| "basalt and gneiss ".repeat(bytes / 18);
    let large: String = (0..5).map(|row| format!("{row},{}\n", body(4 * MIB))).collect();
    let (_directory, path) = file("a.csv", format!("id,body\n{large}"));
    let advice =
        advice(&Request { time: Duration::from_secs(3), ..request(&path, &["rocksdb"], &["id"]) });
    let shown = lithify_advisor::screen::render(&advice, 100);
    assert!(shown.contains("CSV with 2 columns, with a header: 20.0 MiB"), "{shown}");
    assert!(shown.contains(", about 5 rows of 4"), "{shown}");
    assert!(!shown.contains("all of it"), "{shown}");

    let (_directory, path) = file("a.jsonl", format!("{{\"id\": \"{}\"}}\n", body(MIB)).repeat(4));
    let shown = lithify_advisor::screen::render(&self::advice(&request(&path, &["zfs"], &[])), 100);
    assert!(shown.contains(", 4 rows of 10"), "{shown}");
}

#[test]
fn a_text_about_a_table_is_no_part_of_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let rows: String = (0..3_000).map(|row| format!("{row},rock {row}\n")).collect();
    std::fs::write(directory.path().join("a.csv"), format!("id,name\n{rows}")).expect("is written");
    for name in ["README.md", "LICENSE"] {
        std::fs::write(directory.path().join(name), "What this is.\n\nAnd of whom.\n")
            .expect("is written");
    }
    let table = advice(&request(directory.path(), &["rocksdb", "zfs"], &["id"]));
    assert_eq!((table.data.rows, table.data.input.files), (3_000, 1));
    let told = |line: &String| line.contains("about the data: ") && line.contains("README.md");
    assert!(table.unknown.iter().any(told), "{:?}", table.unknown);
    let bytes = Request { format: Some(Format::Bytes), ..request(directory.path(), &[], &[]) };
    assert_eq!(advice(&bytes).data.input.files, 3);
    // Beside what is no table they are files as the others.
    std::fs::write(directory.path().join("b.txt"), "some\nlines\n").expect("is written");
    let files = advice(&request(directory.path(), &[], &[]));
    assert_eq!(
        (files.data.input.format.as_str(), files.data.input.files),
        ("bytes without rows", 4)
    );
    let error = refusal(&request(directory.path(), &["rocksdb"], &[])).to_string();
    assert!(error.contains("is read as bytes without any: name one file, or "), "{error}");
}

#[test]
fn errors_hold_no_control_characters() {
    let header = "id,\u{1b}[31mred\u{202e}\n";
    let (_directory, path) = file("a.csv", format!("{header}1,2\n3,4\n"));
    let error = refusal(&request(&path, &["rocksdb"], &["colour"])).to_string();
    assert!(error.ends_with(r"there are: id, \u{1b}[31mred\u{202e}"), "{error}");
    let shown = lithify_advisor::screen::render(
        &advice(&request(&path, &[], &["\u{1b}[31mred\u{202e}"])),
        100,
    );
    assert!(!shown.contains('\u{1b}') && shown.contains(r"\u{1b}[31mred"), "{shown}");
}

#[test]
fn links_to_files_are_files_and_others_are_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let elsewhere = tempfile::tempdir().expect("a directory");
    let (links, data) = (directory.path(), elsewhere.path());
    let link = |to: &std::path::Path, name: &str| {
        std::os::unix::fs::symlink(to, links.join(name)).expect("is made");
    };
    link(data, "folder");
    link(&data.join("missing.csv"), "nothing.csv");
    let error = refusal(&request(links, &[], &[])).to_string();
    assert!(error.contains("is empty. Left out, because they are no files: "), "{error}");
    assert!(error.contains("folder") && error.contains("nothing.csv"), "{error}");

    std::fs::write(data.join("a.csv"), "id,name\n1,slate\n2,gneiss\n").expect("is written");
    link(&data.join("a.csv"), "a.csv");
    link(&data.join("a.csv"), "again.csv");
    std::fs::write(links.join("b.csv"), "id,name\n3,marble\n").expect("is written");
    link(&links.join("b.csv"), "0.csv");
    let advice = advice(&request(links, &["rocksdb"], &["id"]));
    assert_eq!((advice.data.rows, advice.data.input.files), (3, 2), "each file once");
    let is_told = |line: &String| line.contains("Left out") && line.contains("folder");
    assert!(advice.unknown.iter().any(is_told), "{:?}", advice.unknown);
}

#[test]
fn quotes_that_never_close_are_named() {
    let mut text = "id,name\n1,slate\n2,\"gneiss\n".to_owned();
    text.extend((3..5_000).map(|row| format!("{row},rock\n")));
    let (_directory, path) = file("rocks.csv", &text);
    let error = refusal(&request(&path, &["rocksdb"], &["id"]));
    assert!(!error.is_usage());
    assert!(error.to_string().contains("rocks.csv:3: the quote that opens here"), "{error}");

    // Where another quote ends it, only its length tells.
    let long = "a line of a note\n".repeat(80_000);
    let text = format!("id,name\n1,slate\n2,\"{long}\"\n3,marble\n");
    let (_directory, path) = file("rocks.csv", &text);
    let advice = advice(&request(&path, &["rocksdb"], &["id"]));
    let [note] = advice.data.notes.as_slice() else { panic!("{:?}", advice.data.notes) };
    assert!(
        note.contains("rocks.csv:3: a row of 1.3") && note.contains("over 80001 lines"),
        "{note}"
    );
    assert!(advice.unknown.contains(note), "{:?}", advice.unknown);
    let ragged = format!("id,name\n1,slate\n2,\"{long}\",x\n");
    let (_directory, path) = file("rocks.csv", &ragged);
    let error = refusal(&request(&path, &["rocksdb"], &["id"])).to_string();
    assert!(error.contains("3 fields over 80001 lines (is a quote left open?)"), "{error}");
}

#[test]
fn a_last_row_that_is_cut_is_left_out_and_told() {
    let csv = "id,name,kind\n1,slate,7\n2,gneiss,8\n3,mar";
    let tsv = "1\tslate\t7\n2\tgneiss\t8\n3\tmar";
    let json = "{\"id\": 1}\n{\"id\": 2}\n{\"id\": 3, \"na";
    for (name, text, key, line) in [
        ("a.csv", csv, "id", 4),
        ("a.tsv", tsv, "2", 3),
        ("a.jsonl", json, "id", 3),
        ("rocks", json, "id", 3),
    ] {
        let (_directory, path) = file(name, text);
        for key in [&[key][..], &[]] {
            let advice = advice(&request(&path, &["rocksdb"], key));
            assert_eq!(advice.data.rows, 2, "{name} {:?}", advice.data.input.format);
            let [note] = advice.data.notes.as_slice() else { panic!("{:?}", advice.data.notes) };
            let expected = format!("{name}:{line}: the last row is cut, and left out");
            assert!(note.ends_with(&expected), "{note}");
        }
        // With a line end it is a row that is wrong.
        let (_directory, path) = file(name, format!("{text}\n"));
        let request = request(&path, &["rocksdb"], &[key]);
        assert!(refusal(&request).to_string().contains(&format!("{name}:{line}: ")), "{name}");
    }
    let (_directory, path) = file("rocks", tsv);
    let guessed = advice(&request(&path, &["rocksdb"], &[])).data;
    assert_eq!((guessed.rows, guessed.notes.len()), (2, 1), "{}", guessed.input.format);
    let (_directory, path) = file("a.jsonl", "{\"id\": 1");
    let error = refusal(&request(&path, &["rocksdb"], &[])).to_string();
    assert!(error.contains("has no row. ") && error.contains("a.jsonl:1: the last row"), "{error}");
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

/// Each row is larger than all that is measured of most data: their parts are, and the time is kept to.
#[test]
fn large_rows_take_no_longer_than_small_ones() {
    const MIB: usize = 1 << 20;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("large.jsonl");
    let mut text = Vec::new();
    let sizes = [40, 20, 24, 48, 20];
    for (number, size) in sizes.into_iter().enumerate() {
        text.extend_from_slice(format!("{{\"id\": {}, \"text\": \"", 9 - number).as_bytes());
        let end = text.len() + size * MIB;
        let mut numbers = Numbers(number as u64 + 1);
        while text.len() < end {
            let word = numbers.next() % 5_000;
            text.extend_from_slice(
                format!("word{word} of {:x}, ", numbers.next() >> 40).as_bytes(),
            );
        }
        text.extend_from_slice(b"\"}\n");
    }
    std::fs::write(&path, &text).expect("is written");
    let request = Request {
        format: Some(Format::Json),
        time: Duration::from_secs(3),
        ..request(&path, &["rocksdb", "lithify", "cassandra"], &["id"])
    };
    // One thread does all of it. Its CPU time is not that of others on a busy machine.
    let cpu = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let began = cpu();
    let advice = advice(&request);
    let took_s = cpu().tv_sec - began.tv_sec;
    assert!(took_s < 20, "{took_s} s");
    // By three places: not exact, but rows are counted as wholes.
    assert!((3..=8).contains(&advice.data.rows), "{}", advice.data.rows);
    assert!(advice.data.basis.row_bytes > 20.0 * MIB as f64, "{:?}", advice.data.basis);
    let best = advice.targets[0].best();
    assert!(best.ratio.value > 0.2 && best.ratio.value < 0.8, "{best:?}");
    assert!(best.unit_data_bytes > 20.0 * MIB as f64, "{best:?}");
}
