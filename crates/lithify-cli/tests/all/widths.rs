//! Reports as wide as they may be: by the variable `COLUMNS`, and whole where there is no terminal.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use lithify::{CfOptions, Db, Options};

/// What a command prints where lines may have so many columns; `None` where nothing says how many.
fn printed(place: &Path, arguments: &[&str], columns: Option<usize>) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lithify"));
    command.current_dir(place).args(arguments).env_remove("COLUMNS");
    if let Some(columns) = columns {
        command.env("COLUMNS", columns.to_string());
    }
    let output = command.output().unwrap();
    assert!(!output.stdout.is_empty(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Two families, one of a long name, with rows in tables of two codecs and in the log; a store with a
/// backup of a long note; and a damaged copy.
fn databases(place: &Path) {
    let db = Db::open(place.join("rocks.db"), Options::default()).unwrap();
    let name = "sediments of the northern shelf, as sampled";
    for (name, compression) in [("rocks", "none,lz4,zstd-1"), (name, "lz4")] {
        let compression = compression.parse().unwrap();
        let options = CfOptions { compression, ..CfOptions::default() };
        let family = db.column_family(name, options).unwrap();
        for number in 0..20_000_u64 {
            let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
            family.put(key, format!("a stone {number:050}").as_bytes()).unwrap();
        }
        family.compact_range(..).unwrap();
        family.put(b"newer", b"in a table of its own").unwrap();
        family.flush().unwrap();
        family.put(b"newest", b"in the log").unwrap();
    }
    db.close().unwrap();
    let note = "before the move to the other machine, which is the larger one";
    printed(place, &["backup", "create", "store", "rocks.db", "--note", note], None);
    printed(place, &["checkpoint", "rocks.db", "damaged.db", "--copy"], None);
    let table = largest_table(&place.join("damaged.db"));
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[20] ^= 1;
    std::fs::write(table, bytes).unwrap();
}

/// The largest table in a directory.
pub fn largest_table(directory: &Path) -> PathBuf {
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let tables = files.filter(|path| path.extension().is_some_and(|end| end == "sst"));
    tables.max_by_key(|path| path.metadata().unwrap().len()).unwrap()
}

/// The words with digits: figures, codecs, times, files.
fn figures(text: &str) -> BTreeSet<&str> {
    let has_digit = |word: &&str| word.contains(|sign: char| sign.is_ascii_digit());
    text.split_whitespace().filter(has_digit).collect()
}

fn widest(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap()
}

#[test]
fn no_line_is_wider_than_asked_for_and_no_figure_is_lost() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    databases(place);
    for arguments in [
        &["stats", "rocks.db"][..],
        &["backup", "list", "store"],
        &["backup", "verify", "store"],
        &["verify", "rocks.db"],
        &["verify", "damaged.db"],
        &["repair", "damaged.db", "--to"],
    ] {
        let run = |columns: Option<usize>| {
            let target = format!("repaired-{}.db", columns.unwrap_or(0));
            let is_repair = arguments[0] == "repair";
            let target = is_repair.then_some(target.as_str());
            let arguments: Vec<&str> = arguments.iter().copied().chain(target).collect();
            printed(place, &arguments, columns)
        };
        let whole = run(None);
        for columns in [60, 80] {
            let narrow = run(Some(columns));
            assert!(widest(&narrow) <= columns, "{arguments:?}, {columns}:\n{narrow}");
            assert_eq!(figures(&whole), figures(&narrow), "{arguments:?}:\n{whole}\n{narrow}");
        }
    }
    // It takes another time each time.
    for columns in [60, 80] {
        let page = printed(place, &["compact", "rocks.db"], Some(columns));
        assert!(widest(&page) <= columns, "{page}");
    }
}

#[test]
fn a_dump_is_cut_between_fields_and_keeps_every_sign() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    databases(place);
    let signs = |text: &str| text.split_whitespace().collect::<String>();
    for entry in std::fs::read_dir(place.join("rocks.db")).unwrap() {
        let file = entry.unwrap().path();
        let dump = ["dump", file.to_str().unwrap(), "--blocks", "--entries", "--limit", "9"];
        let whole = printed(place, &dump, None);
        for columns in [60, 80] {
            let narrow = printed(place, &dump, Some(columns));
            assert!(widest(&narrow) <= columns, "{columns}:\n{narrow}");
            assert_eq!(signs(&whole), signs(&narrow));
        }
    }
}

/// A program that reads lines finds an item, a finding and a level in one line each.
#[test]
fn lines_are_whole_where_there_is_no_terminal() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    databases(place);
    let stats = printed(place, &["stats", "rocks.db"], None);
    let name = "sediments of the northern shelf, as sampled  all ";
    assert!(stats.lines().any(|line| line.starts_with(name)), "{stats}");
    let list = printed(place, &["backup", "list", "store"], None);
    let lines: Vec<&str> = list.lines().collect();
    assert!(lines.len() == 2 && lines[1].ends_with("which is the larger one"), "{list}");
    let found = printed(place, &["verify", "damaged.db"], None);
    let damage: Vec<&str> = found.lines().filter(|line| line.starts_with("damage: ")).collect();
    assert!(damage.len() == 1 && damage[0].contains("cannot be read; "), "{found}");
}
