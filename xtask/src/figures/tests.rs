//! A figure that is changed or removed is found, and nothing else is.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

fn figures(text: &str) -> Vec<String> {
    let all = Figures::of_text(text).counts;
    all.into_iter().map(|(figure, (count, _))| format!("{figure} x{count}")).collect()
}

#[test]
fn numbers_are_read_by_their_digits() {
    assert_eq!(figures("cost 1,234,567 of 12.30 %, 12.30us"), ["12.30 x2", "1234567 x1"]);
    assert_eq!(
        figures("127\u{202f}002 in 5\u{a0}MiB of 127 003"),
        ["003 x1", "127 x1", "127002 x1", "5 x1"]
    );
    assert_eq!(figures("1,2,4,8 clients, 1,2345"), ["1 x2", "2 x1", "2345 x1", "4 x1", "8 x1"]);
    assert_eq!(
        figures("−2.1 %, -2.1, +2.1, 3-2.1, [-1, 1]"),
        ["-1 x1", "-2.1 x2", "1 x1", "2.1 x2", "3 x1"]
    );
    assert_eq!(figures("lz4 zstd-1 none-16k p99.9 a_7 cached-7-8, 16k and 3x"), ["16 x1", "3 x1"]);
    assert_eq!(
        figures("1.5e-7 2e3 5else RocksDB 11.8.1 ends in 6."),
        ["1.5e-7 x1", "11.8.1 x1", "2e3 x1", "5 x1", "6 x1"]
    );
    assert_eq!(figures("2026-11-22"), ["11 x1", "2026 x1", "22 x1"]);
}

#[test]
fn pages_are_read_as_people_read_them() {
    let page = "<style>p { width: 7px }</style><script>let a = 8;</script>\n\
        <table><tr><td>load</td><td>1.5</td><td>2.5 &lt; 3</td></tr></table>\
        <svg><text x=\"9\" y=\"9\">10×</text><circle r=\"4\"><title>query: 4.5</title></circle></svg>\
        <p>a<b>6</b>&nbsp;MiB";
    let found = Figures::of_page(page);
    let all: Vec<&str> = found.counts.keys().map(String::as_str).collect();
    assert_eq!(all, ["1.5", "2.5", "3", "4.5", "6"]);
    assert_eq!(found.counts["1.5"].1, "| load | | 1.5 | | 2.5 < 3 |");
}

#[test]
fn lines_for_programs_name_the_column() {
    let found = Figures::of_csv("arm,ops,list\nlz4,100,\"1,200\"\nlz4,100,300\n");
    let all: Vec<(&str, usize)> =
        found.counts.iter().map(|(figure, (count, _))| (figure.as_str(), *count)).collect();
    assert_eq!(all, [("1", 1), ("100", 2), ("200", 1), ("300", 1)]);
    assert_eq!(found.counts["300"].1, "column list of lz4,100,300");
}

#[test]
fn long_lines_are_shown_around_the_figure() {
    let line = format!("name {} 4.25 {}", "x ".repeat(100), "y ".repeat(100));
    let context = &Figures::of_text(&line).counts["4.25"].1;
    assert!(context.starts_with("name x") && context.contains(" … x x"), "{context}");
    assert!(context.contains("4.25") && context.chars().count() <= 140, "{context}");
}

/// A record with its reports.
struct World(Place);

/// A directory below the system's place for temporary files, removed again.
struct Place(PathBuf);

impl Place {
    fn new() -> Place {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("lithify-figures-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("is made");
        Place(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const TEXT: &str = "load 1.25 s, 3 runs\nsize 40.5 GB, 3 runs, 5 % of noise\n";
const PAGE: &str = "<p>load 1.25 s<p>rate 7.75 MB/s\n";
const CSV: &str = "arm,load_s\nlz4,1.2468\n";

impl World {
    fn new() -> World {
        let world = World(Place::new());
        for directory in ["before", "after"] {
            std::fs::create_dir(world.0.0.join(directory)).expect("is made");
            for (ending, text) in [("txt", TEXT), ("html", PAGE), ("csv", CSV)] {
                world.write(&format!("{directory}/run.{ending}"), text);
            }
        }
        world
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.0.0.join(file), text).expect("writes");
    }

    fn judge(&self, allowed: &str, counts: bool) -> (String, bool) {
        let mut allowed = Allowed::parse(allowed).expect("a list");
        let [before, after] = ["before", "after"].map(|name| self.0.0.join(name));
        judge(&before, &after, &mut allowed, Wishes { counts, all: false }).expect("reads")
    }
}

#[test]
fn the_same_figures_in_other_words_are_the_same() {
    let world = World::new();
    let (text, is_lost) = world.judge("", true);
    assert_eq!(
        (text.as_str(), is_lost),
        (
            "1 records, 8 figures before: 0 gone, 0 gone as allowed, 0 less often, 0 new, \
             0 reports missing\n",
            false
        )
    );
    world.write("after/run.txt", "Loading took 1.25 seconds (3\nruns).\n\n");
    world.write("after/run.full.txt", "40.5 GB after 3 runs; noise: 5%\nin 1.25 s of loading 3");
    let (text, is_lost) = world.judge("", false);
    assert!(!is_lost && text.contains("0 gone,"), "{text}");
}

#[test]
fn a_figure_of_the_text_may_move_to_the_page_and_no_further() {
    let world = World::new();
    world.write("after/run.txt", "load 1.25 s, 3 runs, 3, 5 %\n");
    let (text, is_lost) = world.judge("", false);
    assert!(is_lost, "{text}");
    assert!(text.contains("run text: 1 gone\n  40.5 (1 -> 0): size 40.5 GB, 3 runs"), "{text}");
    world.write("after/run.html", &format!("{PAGE}<p>40.5 GB"));
    let (text, is_lost) = world.judge("", false);
    assert!(!is_lost && text.contains("run page: 1 new\n  40.5 (0 -> 1): 40.5 GB"), "{text}");
    world.write("after/run.html", "<p>load 1.25 s<p>40.5 GB");
    let (text, is_lost) = world.judge("", false);
    assert!(is_lost && text.contains("run page: 1 gone\n  7.75 (1 -> 0): rate"), "{text}");
}

#[test]
fn changed_digits_signs_and_counts_are_found() {
    let world = World::new();
    for (file, text, part) in [
        ("run.csv", CSV.replace("1.2468", "1.2469"), "run csv: 1 gone\n  1.2468 (1 -> 0): column "),
        ("run.csv", CSV.replace("1.2468", "-1.2468"), "run csv: 1 gone\n  1.2468 (1 -> 0)"),
        ("run.txt", TEXT.replace("40.5", "40.50"), "run text: 1 gone\n  40.5 (1 -> 0)"),
    ] {
        let kept = std::fs::read_to_string(world.0.0.join("after").join(file)).expect("is");
        world.write(&format!("after/{file}"), &text);
        let (text, is_lost) = world.judge("", false);
        assert!(is_lost && text.contains(part), "{part}: {text}");
        world.write(&format!("after/{file}"), &kept);
    }
    world.write("after/run.txt", &TEXT.replacen(", 3 runs", "", 1));
    let (text, is_lost) = world.judge("", false);
    assert!(!is_lost && text.contains("run text: 1 less often\n  3 (2 -> 1): load"), "{text}");
    assert!(world.judge("", true).1, "counts are wished for");
}

#[test]
fn a_report_that_is_missing_is_a_loss() {
    let world = World::new();
    std::fs::remove_file(world.0.0.join("after/run.csv")).expect("is removed");
    let (text, is_lost) = world.judge("", false);
    assert!(is_lost && text.contains("run csv: NO REPORT after\nrun csv: 1 gone"), "{text}");
    std::fs::remove_file(world.0.0.join("after/run.txt")).expect("is removed");
    std::fs::remove_file(world.0.0.join("after/run.html")).expect("is removed");
    assert!(world.judge("", false).0.contains("3 reports missing"));
}

#[test]
fn a_difference_is_allowed_with_a_reason() {
    let world = World::new();
    world.write("after/run.txt", &TEXT.replace("5 %", ""));
    let list = "# Sentences.\n\n* text 5 the share of noise is said once, in docs/reports.md\n\
                other * 9 no longer said\n";
    let (text, is_lost) = world.judge(list, false);
    assert!(!is_lost && text.contains("run text: 1 allowed\n  5 (1 -> 0)"), "{text}");
    assert!(text.contains("allowed but not gone: other * 9 no longer said"), "{text}");
    assert!(world.judge("run page 5 of the page alone", false).1);
    for (line, part) in [
        ("\n* text 5", "2: needs RECORD FORM FIGURE REASON"),
        ("* txt 5 a reason", "1: the form txt is none of text, page, csv"),
    ] {
        assert_eq!(Allowed::parse(line).expect_err("is refused"), part);
    }
}

#[test]
fn directories_without_reports_prove_nothing() {
    let place = Place::new();
    let mut allowed = Allowed::default();
    let error = judge(&place.0, &place.0, &mut allowed, Wishes::default());
    assert!(error.expect_err("is empty").ends_with("has no reports: make them with `render`"));
    assert_eq!(render(Path::new("/no/program"), &place.0, &place.0), ExitCode::FAILURE);
}
