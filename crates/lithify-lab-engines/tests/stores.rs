//! Databases of other engines as data that advice is wanted for: every row is seen, places are spread
//! over all of them, and nothing is written where they are.

mod harness;

use std::ops::ControlFlow;
use std::path::Path;

use harness::{ROWS, present};
use lithify_advisor::Silent;
use lithify_advisor::input::{self, Source};
use lithify_advisor::rows::Rows;
use lithify_lab::adapter::codec::{Codec, Ladder};
use lithify_lab::adapter::provider::Transactions;
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::{EngineName, SpaceId, WriteBatch};
use lithify_lab::engines::registry::open_spaces;
use lithify_lab_engines::{mariadb, stores};

const COUNT: u64 = 200_000;

fn key(number: u64) -> Vec<u8> {
    format!("user{number:012}").into_bytes()
}

/// Bytes that no codec makes smaller across rows.
fn noise(number: u64) -> Vec<u8> {
    [number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes(); 25].concat()
}

/// A database with rows of 216 bytes, closed.
fn filled(engine: &EngineName, directory: &Path) {
    // Stored bytes are then spread as rows are.
    filled_with(engine, directory, Codec::NONE, noise);
}

/// The same with a codec in all levels and other values of 200 bytes.
fn filled_with(
    engine: &EngineName,
    directory: &Path,
    codec: Codec,
    value: impl Fn(u64) -> Vec<u8>,
) {
    let ladder = Ladder { small: codec, middle: codec, bottom: codec };
    let settings = EngineSettings::small().with_ladder(ladder);
    let opened = open_spaces(engine, directory, &settings, &ROWS, Transactions::Unneeded);
    let opened = opened.expect("opens");
    {
        let mut session = opened.session().expect("a session");
        let numbers: Vec<u64> = (0..COUNT).collect();
        for some in numbers.chunks(1_000) {
            let mut batch = WriteBatch::new();
            for number in some {
                batch.put(SpaceId(0), &key(*number), &value(*number));
            }
            session.write_batch(&batch).expect("is written");
        }
    }
    opened.settle_tree().expect("settles");
    opened.close().expect("closes");
}

/// Names, sizes and times of a directory's files.
fn listing(directory: &Path) -> Vec<(String, u64, std::time::SystemTime)> {
    let entry = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.expect("is there");
        let metadata = entry.metadata().expect("has some");
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, metadata.len(), metadata.modified().expect("has a time"))
    };
    let mut files: Vec<_> = std::fs::read_dir(directory).expect("is there").map(entry).collect();
    files.sort();
    files
}

/// How many rows there are; `number_of` gives a row's place among them.
fn check_rows(source: &mut dyn Source, number_of: impl Fn(&[u8]) -> u64) {
    let mut rows = 0;
    let scanned = source.scan(&mut |row, _| {
        assert_eq!(number_of(row.key), rows);
        rows += 1;
        ControlFlow::Continue(())
    });
    scanned.expect("is read");
    assert_eq!(rows, COUNT);
    let first = |rows: &Rows| rows.iter().next().map_or(0, |row| number_of(row.key));
    for share in [0.0, 0.25, 0.5, 0.9] {
        let place = source.place(share, 100_000).expect("is read");
        let (expected, found) = (share * COUNT as f64, first(&place) as f64);
        assert!((found - expected).abs() < 0.05 * COUNT as f64, "{share}: row {found}");
        assert!(place.data_bytes() >= 100_000 && place.data_bytes() < 110_000);
    }
}

fn number_in(key: &[u8]) -> u64 {
    let key = std::str::from_utf8(key).expect("is text");
    key[key.len() - 12..].parse().expect("is a number")
}

fn reads_all_of(engine: &str) {
    let Some(name) = present(engine) else { return };
    let directory = tempfile::tempdir().expect("a directory");
    filled(&name, directory.path());
    let before = listing(directory.path());
    let table = (engine == "rocksdb").then_some("rows");
    let source = stores::open(directory.path(), &[], table).expect("is a database");
    let mut source = source.expect("opens");
    check_rows(&mut *source, number_in);
    let bytes = source.facts().data_bytes as f64;
    let expected = (COUNT * 216) as f64;
    assert!((bytes / expected - 1.0).abs() < 0.1, "{bytes} of {expected}");
    let native: &[&str] = if engine == "rocksdb" { &["rocksdb"] } else { &[] };
    assert_eq!(source.facts().native, native);
    drop(source);
    assert_eq!(listing(directory.path()), before, "nothing was written");

    let refused = stores::open(directory.path(), &["id".to_owned()], None).expect("is one");
    assert!(refused.err().expect("has keys").is_usage());
    let refused = stores::open(directory.path(), &[], Some("colours")).expect("is one");
    assert!(refused.err().expect("is unknown").is_usage());
    std::fs::write(directory.path().join("CURRENT"), "MANIFEST-999999\n").expect("is written");
    let damaged = stores::open(directory.path(), &[], None).expect("is one");
    assert!(!damaged.err().expect("is damaged").is_usage());
}

/// Of a database whose first half takes hardly any stored bytes.
fn samples_what_shrinks_well(engine: &str) {
    let Some(name) = present(engine) else { return };
    let directory = tempfile::tempdir().expect("a directory");
    // As a mixer of numbers has them: 200 bytes without a repeat.
    let mixed = |number: u64| -> Vec<u8> {
        let word =
            |at: u64| (number * 25 + at + 1).wrapping_mul(0xd129_0d3d_4d95_8b2b).rotate_left(31);
        (0..25).flat_map(|at| word(at).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()).collect()
    };
    let value = |number: u64| if number < COUNT / 2 { vec![0; 200] } else { mixed(number) };
    filled_with(&name, directory.path(), Codec::SNAPPY, value);
    let source = stores::open(directory.path(), &[], None).expect("is a database");
    let mut source = source.expect("opens");
    source.prepare(&Silent).expect("is read");
    let bytes = source.facts().data_bytes as f64;
    // LevelDB's keys begin with the number of their space.
    assert!((bytes / (COUNT * 216) as f64 - 1.0).abs() < 0.01, "{bytes}");
    check_rows(&mut *source, number_in);
}

#[test]
fn rows_of_rocksdb_that_shrink_well_are_sampled_as_much_as_others() {
    samples_what_shrinks_well("rocksdb");
}

#[test]
fn rows_of_leveldb_that_shrink_well_are_sampled_as_much_as_others() {
    samples_what_shrinks_well("leveldb");
}

#[test]
fn rocksdb_is_read_and_not_written() {
    reads_all_of("rocksdb");
}

#[test]
fn leveldb_is_read_and_not_written() {
    reads_all_of("leveldb");
}

#[test]
fn other_directories_are_no_databases() {
    let directory = tempfile::tempdir().expect("a directory");
    assert!(stores::open(directory.path(), &[], None).is_none());
    std::fs::write(directory.path().join("CURRENT"), "LITHCUR\n").expect("is written");
    assert!(stores::open(directory.path(), &[], None).is_none());
}

#[test]
fn a_table_of_mariadb_is_read_by_its_key() {
    if present("innodb").is_none() {
        return;
    }
    let statements: Vec<String> = [
        "CREATE DATABASE shop",
        "CREATE TABLE shop.orders (note varchar(99), id bigint PRIMARY KEY, paid decimal(10,2), \
         at datetime, kind enum('a','b')) ENGINE=InnoDB",
        "INSERT INTO shop.orders SELECT concat('tab\there ', seq), seq - 1, seq / 3, \
         '2026-11-26 10:00:00' + INTERVAL seq SECOND, if(seq % 3, 'a', NULL) \
         FROM shop.numbers",
        "CREATE TABLE shop.names (a varchar(20), b int, note varchar(99), PRIMARY KEY (a, b)) \
         ENGINE=InnoDB",
        "CREATE TABLE shop.odd (id bigint unsigned PRIMARY KEY, t varchar(9)) ENGINE=InnoDB",
        "INSERT INTO shop.odd VALUES (18446744073709551615, NULL), (1, 'NULL')",
        "INSERT INTO shop.names SELECT concat('user', lpad(id, 12, '0')), id, note FROM shop.orders",
    ]
    .map(str::to_owned)
    .into();
    // Numbers from 1 without the engine for sequences, which may not be there.
    let mut all = statements;
    let digits = "CREATE TABLE shop.digits (d int PRIMARY KEY) ENGINE=InnoDB";
    let filled = "INSERT INTO shop.digits VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)";
    let numbers = format!(
        "CREATE VIEW shop.numbers AS SELECT 1 + a.d + 10*b.d + 100*c.d + 1000*e.d + 10000*f.d + \
         100000*g.d AS seq FROM shop.digits a, shop.digits b, shop.digits c, shop.digits e, \
         shop.digits f, shop.digits g WHERE g.d < {}",
        COUNT / 100_000
    );
    all.splice(1..1, [digits.to_owned(), filled.to_owned(), numbers]);
    let directory = tempfile::tempdir().expect("a directory");
    let checked = mariadb::beside_private_server(directory.path(), &all, |socket| {
        let address = |names: &str| format!("mariadb://root@/{names}?socket={}", socket.display());
        let open = |names: &str, key: &[&str], table: Option<&str>| {
            let key: Vec<String> = key.iter().map(|name| (*name).to_owned()).collect();
            input::open(Path::new(&address(names)), None, &key, table, &Silent)
        };
        let mut orders = open("shop/orders", &[], None).expect("opens");
        assert_eq!(orders.facts().key, "id");
        assert_eq!(orders.facts().native, ["innodb", "innodb-compressed", "myrocks"]);
        let number =
            |key: &[u8]| u64::from_be_bytes(key.try_into().expect("eight bytes")) ^ (1 << 63);
        check_rows(&mut *orders, number);
        let row = orders.place(0.0, 1).expect("is read");
        let value = row.iter().next().expect("is there").value.to_vec();
        assert!(value.windows(9).any(|part| part == b"tab\there "), "{value:?}");
        // One bit for each column, two lengths at most, 5 bytes of digits, 5 of time, 1 of the list.
        // Bits of five columns, a length, the text, 5 bytes of digits, 5 of time, 1 of the list.
        assert_eq!(value.len(), 1 + 1 + "tab\there 1".len() + 5 + 5 + 1);

        let mut names = open("shop", &[], Some("names")).expect("opens");
        assert_eq!(names.facts().key, "a, b");
        check_rows(&mut *names, |key| number_in(&key[..16]));
        // A text that reads NULL is a text, and numbers without a sign sort beyond those with one.
        let mut odd = open("shop/odd", &[], None).expect("opens");
        let mut rows = Vec::new();
        let scanned = odd.scan(&mut |row, _| {
            rows.push((row.key.to_vec(), row.value.to_vec()));
            ControlFlow::Continue(())
        });
        scanned.expect("is read");
        assert_eq!(rows[0], (1_u64.to_be_bytes().to_vec(), b"\0\x04NULL".to_vec()));
        assert_eq!(rows[1], (u64::MAX.to_be_bytes().to_vec(), vec![0b10]));

        let refused = |names: &str, key: &[&str]| open(names, key, None).err().expect("is refused");
        assert!(refused("shop/colours", &[]).to_string().contains("no table 'colours'"));
        assert!(refused("shop/orders", &["size"]).to_string().contains("there are: note, id,"));
        assert!(refused("market/orders", &[]).to_string().contains("market"));
    });
    checked.expect("a server runs");
    let gone = format!("mariadb:///shop/orders?socket={}", directory.path().join("no").display());
    let error = input::open(Path::new(&gone), None, &[], None, &Silent).err().expect("is refused");
    assert!(error.to_string().contains("ERROR 2002"), "{error}");
}
