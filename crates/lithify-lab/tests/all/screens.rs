//! What a person sees first: the short report of every record of the repository, on 80 columns.

use std::path::{Path, PathBuf};

use lithify_lab::records::{AnyRecord, file, kinds};
use lithify_report::text::{self, Options};

/// Columns of a narrow terminal.
const COLUMNS: usize = 80;

/// Lines of a screen.
const LINES: usize = 40;

fn results() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results")
}

/// The compressed records, by their names; not those that were measured anew in this checkout.
fn records() -> Vec<(String, PathBuf)> {
    let kept = |(name, path): (String, PathBuf)| {
        path.to_str()?.ends_with(".json.zst").then_some((name, path))
    };
    file::files_in(&results()).expect("the records").into_iter().filter_map(kept).collect()
}

fn screen(path: &Path) -> String {
    screen_of(path, COLUMNS)
}

fn screen_of(path: &Path, width: usize) -> String {
    let record = AnyRecord::read(path).expect("is a record");
    let options = Options { width, full: false, color: false };
    text::render(&kinds::report(&record), options)
}

/// `./run` measures less of the same experiment: it ends with such a screen.
#[test]
fn the_first_question_is_answered_on_one_screen() {
    let screen = screen(&results().join("zlib-vs-zstd-cached.json.zst"));
    assert!(screen.lines().count() <= LINES, "{screen}");
    for part in [
        "What does zstd instead of zlib",
        "· Claims: ",
        "? Not known: 2 repeats",
        "→ Next: ",
        "all CPU: of every process",
        "load   all CPU ",
    ] {
        assert!(screen.contains(part), "{part} is missing in {screen}");
    }
    let mut heads = screen.lines().filter(|line| line.starts_with("phase "));
    let head = heads.next().expect("a table");
    assert!(head.contains("published") && head.ends_with("verdict"), "{head}");
    assert!(heads.next().is_none(), "one table: {screen}");
    assert_eq!(screen.matches("/ zlib-1 ").count(), 10, "a line for each claim: {screen}");
}

/// The answer of this one is its rows: each mode under each crash.
#[test]
fn no_row_of_durability_is_hidden_on_80_columns_and_more() {
    for width in 80..=160 {
        let screen = screen_of(&results().join("durability-lithify.json.zst"), width);
        let is_row = |line: &&str| line.contains(" process") || line.contains(" power cut");
        let rows = screen.lines().skip_while(|line| !line.starts_with("──")).filter(is_row);
        assert_eq!(rows.count(), 8, "{width} columns:\n{screen}");
    }
}

#[test]
fn every_record_fits_a_screen() {
    let records = records();
    assert!(records.len() > 40, "{} records", records.len());
    for (name, path) in records {
        let screen = screen(&path);
        assert!(screen.lines().count() <= LINES, "{name}:\n{screen}");
        let wide = screen.lines().find(|line| line.chars().count() > COLUMNS);
        assert_eq!(wide, None, "{name}");
        let rules = screen.lines().filter(|line| line.starts_with("──")).count();
        assert!(rules <= 1, "{name} has several tables:\n{screen}");
    }
}

/// Beside each record lies its short report, for people who look at the repository and have no
/// program. `LITHIFY_REWRITE=1 cargo test -p lithify-lab --test all screens` writes them anew.
#[test]
fn beside_each_record_lies_its_short_report() {
    for (name, path) in records() {
        let report = results().join(format!("{name}.txt"));
        let screen = screen(&path);
        if std::env::var_os("LITHIFY_REWRITE").is_some() {
            std::fs::write(&report, screen).expect("writes");
            continue;
        }
        let kept = std::fs::read_to_string(&report).expect("is there");
        assert_eq!(kept, screen, "{} is not what its record says", report.display());
    }
}
