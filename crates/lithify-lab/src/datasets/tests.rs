//! The shapes that the generators promise, by counting; real data by small files.

use lithify::Compression;
use lithify::codec::Compressor;

use super::*;

const KIB: usize = 1 << 10;

/// A name of so many rows, keys and values.
fn hash_of(table: &dyn Table) -> u64 {
    let (mut key, mut value, mut row) = (Vec::new(), Vec::new(), Row::new());
    (0..table.rows()).fold(0, |hash: u64, index| {
        table.row(index, &mut row);
        table.schema().encode_key(&row, &mut key);
        table.schema().encode_value(&row, &mut value);
        let seed = twox_hash::XxHash3_64::oneshot_with_seed(hash, &key);
        twox_hash::XxHash3_64::oneshot_with_seed(seed, &value)
    })
}

fn text_of(bytes: u64, seed: u64) -> Vec<u8> {
    let mut lines = TextData::Actors.open(bytes, seed).expect("is generated");
    let (mut line, mut text) = (Vec::new(), Vec::new());
    while lines.next(&mut line).expect("goes on") {
        text.extend_from_slice(&line);
    }
    text
}

/// Keys and values of a table, one after the other.
fn bytes_of(table: &dyn Table) -> Vec<u8> {
    let (mut key, mut value, mut row, mut all) = (Vec::new(), Vec::new(), Row::new(), Vec::new());
    for index in 0..table.rows() {
        table.row(index, &mut row);
        table.schema().encode_key(&row, &mut key);
        table.schema().encode_value(&row, &mut value);
        all.extend_from_slice(&key);
        all.extend_from_slice(&value);
    }
    all
}

/// Stored bytes per byte, in chunks of 64 KiB.
fn stored_share(bytes: &[u8], codec: &str) -> f64 {
    let compression: Compression = codec.parse().expect("is one");
    let mut compressor = Compressor::new(compression).expect("is made");
    let mut stored = Vec::new();
    for chunk in bytes.chunks(64 * KIB) {
        compressor.compress(chunk, &mut stored).expect("compresses");
    }
    stored.len() as f64 / bytes.len() as f64
}

#[test]
fn data_are_a_function_of_seed_and_size() {
    let counts = |seed| hash_of(&PageCounts::new(5_000, seed));
    let wide = |seed| hash_of(&Wide::new(3_000, seed));
    assert_eq!((counts(7), wide(7)), (counts(7), wide(7)));
    assert!(counts(7) != counts(8) && wide(7) != wide(8));
    assert_eq!(text_of(200_000, 3), text_of(200_000, 3));
    assert_ne!(text_of(200_000, 3), text_of(200_000, 4));
    // Recorded once: data that change make figures of before worthless.
    assert_eq!(
        [counts(7), wide(7), twox_hash::XxHash3_64::oneshot(&text_of(200_000, 3))],
        [14_247_166_750_208_897_724, 3_054_478_972_472_435_329, 14_957_954_511_113_355_301]
    );
}

#[test]
fn page_counts_have_long_escaped_titles_sorted_by_hour() {
    let table = PageCounts::new(24_000, 1);
    let schema = table.schema();
    let (mut row, mut key, mut last) = (Row::new(), Vec::new(), Vec::new());
    let (mut title_bytes, mut escapes, mut requests) = (0, 0, Vec::new());
    let mut hours = std::collections::BTreeMap::new();
    for index in 0..table.rows() {
        table.row(index, &mut row);
        schema.encode_key(&row, &mut key);
        assert!(key > last, "keys ascend");
        last.clone_from(&key);
        let (Value::Text(project), Value::Text(title)) = (&row[3], &row[4]) else {
            panic!("two texts")
        };
        assert!(!project.is_empty() && title.len() < 1000);
        title_bytes += title.len();
        escapes += title.iter().filter(|byte| **byte == b'%').count();
        requests.push(row[5].whole());
        *hours.entry((row[1].whole(), row[2].whole())).or_insert(0) += 1;
    }
    let mean = title_bytes as f64 / 24_000.0;
    assert!((70.0..90.0).contains(&mean), "titles have {mean} bytes");
    let share = escapes as f64 * 3.0 / title_bytes as f64;
    assert!((0.4..0.85).contains(&share), "{share} of the titles is escaped");
    assert_eq!((hours.len(), hours.values().all(|rows| *rows == 100)), (240, true));
    requests.sort_unstable();
    let (median, top) = (requests[12_000], requests[23_999]);
    assert!(median <= 2 && top > 50, "a long tail: {median}, {top}");
    let answer = answer(&table, &table.query());
    assert_eq!((answer.groups.len(), answer.rows()), (24, 2400), "a day is a tenth");
}

#[test]
fn wide_rows_are_zeros_small_numbers_and_floats() {
    let table = Wide::new(4_000, 1);
    assert_eq!(table.schema().columns.len(), 134);
    let (mut row, mut key, mut last) = (Row::new(), Vec::new(), Vec::new());
    let (mut zeros, mut small, mut floats) = (0, 0, 0);
    for index in 0..table.rows() {
        table.row(index, &mut row);
        table.schema().encode_key(&row, &mut key);
        assert!(key > last, "keys ascend and differ");
        last.clone_from(&key);
        for value in &row[3..] {
            match value {
                Value::Whole(0) => zeros += 1,
                Value::Float(number) if *number == 0.0 => zeros += 1,
                Value::Float(_) => floats += 1,
                Value::Whole(number) if number.abs() < 100_000 => small += 1,
                _ => {}
            }
        }
    }
    let all = 131.0 * 4_000.0;
    let shares = [zeros, small, floats].map(|count| f64::from(count) / all);
    let near = |share: f64, wanted: f64| (share - wanted).abs() < 0.03;
    assert!(near(shares[0], 0.4) && near(shares[1], 0.3) && near(shares[2], 0.3), "{shares:?}");
    let top = answer(&table, &table.query());
    assert_eq!(top.groups.len(), 10);
    assert!(top.groups.windows(2).all(|pair| pair[0].sums >= pair[1].sums));
}

#[test]
fn generated_data_compress_as_the_published_did() {
    let share = |bytes: &[u8]| ["lz4", "zstd-1"].map(|codec| stored_share(bytes, codec));
    let within = |shares: [f64; 2], bands: [std::ops::Range<f64>; 2], what: &str| {
        let fits = shares.iter().zip(&bands).all(|(share, band)| band.contains(share));
        assert!(fits, "{what}: {shares:?}");
    };
    within(share(&text_of(1 << 20, 1)), [0.45..0.55, 0.30..0.42], "actors");
    let counts = bytes_of(&PageCounts::new(20_000, 1));
    within(share(&counts), [0.40..0.62, 0.28..0.45], "page counts");
    let wide = bytes_of(&Wide::new(2_000, 1));
    within(share(&wide), [0.15..0.40, 0.10..0.30], "wide");
}

#[test]
fn a_file_of_the_users_is_read_line_by_line() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("text");
    let long = [vec![b'x'; 40 << 10], b"\nlast".to_vec()].concat();
    std::fs::write(&path, &long).expect("writes");
    let data = TextData::from(path.display().to_string());
    let mut lines = data.open(1 << 20, 0).expect("opens");
    let mut line = Vec::new();
    let mut lengths = Vec::new();
    while lines.next(&mut line).expect("reads") {
        lengths.push(line.len());
    }
    assert_eq!(lengths, [32 << 10, (8 << 10) + 1, 4], "long lines are cut");
    assert_eq!(data.available_bytes(100), Ok(100));
    std::fs::write(&path, "").expect("writes");
    assert!(data.open(10, 0).err().expect("is refused").0.ends_with("text: is empty"));
    let missing = TextData::from("no/such".to_owned());
    assert!(missing.available_bytes(1).expect_err("is missing").0.starts_with("no/such: "));
    let here = TextData::from(directory.path().display().to_string());
    assert!(here.available_bytes(1).expect_err("is a directory").0.ends_with("is no file"));
    assert_eq!(
        TextData::from("chess-names".to_owned()),
        TextData::Package("chess-names".to_owned())
    );
}

#[test]
fn recorded_edits_become_page_counts() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("edits");
    let edit = |time: &str, page: &str, added: u32| {
        format!(
            "{{\"time\":\"2015-09-12T{time}Z\",\"channel\":\"#ca.wikipedia\",\"page\":\"{page}\",\
             \"added\":{added},\"deleted\":5,\"isNew\":false}}\n"
        )
    };
    let text = [edit("23:48:46.051", "B c", 1), edit("00:46:58.771", "Ü", 2)].concat();
    std::fs::write(&path, &text).expect("writes");
    let table = recorded::wiki_edits(&path, 10).expect("reads");
    let mut row = Row::new();
    table.row(0, &mut row);
    assert_eq!(row[4], Value::Text(b"%C3%9C".to_vec()), "sorted by hour, escaped");
    assert_eq!((row[1].whole(), row[2].whole(), row[6].whole()), (20_150_912, 0, 7));
    assert_eq!((table.rows(), answer(&table, &table.query()).groups.len()), (2, 2));
    assert_eq!(recorded::wiki_edits(&path, 1).expect("reads").rows(), 1);
    std::fs::write(&path, text.replace("2015-09-12T23", "today")).expect("writes");
    let error = recorded::wiki_edits(&path, 10).err().expect("is refused").0;
    assert!(error.contains("edits:1: ") && error.ends_with("is no time"), "{error}");
}

#[test]
fn recorded_loads_are_exact() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("loads");
    let write = |text: &str| std::fs::write(&path, text).expect("writes");
    write("time;A-1_p;B\n01.01.2016 00:15;0.169872;0\n01.01.2016 00:30;-1.5;12.000000001\n");
    let table = recorded::grid(&path, 10).expect("reads");
    let mut row = Row::new();
    table.row(1, &mut row);
    let numbers: Vec<i64> = row.iter().map(Value::whole).collect();
    assert_eq!(numbers, [1, 1, -1_500_000_000, 12_000_000_001]);
    assert_eq!((table.rows(), table.schema().column("A_1_p")), (2, Some(2)));
    let refused = |text: &str| {
        write(text);
        recorded::grid(&path, 10).err().expect("is refused").0
    };
    assert!(refused("time;A\nx;0.1234567891\n").ends_with("is no whole number of billionths"));
    assert!(refused("time;A\nx;1;2\n").contains("loads:2: not as many numbers"));
    assert!(refused("time;A\nx;y\n").contains("loads:2: invalid float"));
    assert!(refused("").contains("there is no head"));
}
