//! Verdicts from known figures, refusals, and the forms of a comparison.

use super::results::{ResultSet, Subject};
use super::*;
use crate::adapter::EngineName;
use crate::kind::whole_text;
use crate::linkbench::record::LinkBenchRecord;
use crate::linkbench::{compared, sample};
use crate::statistics::verdicts::{Scale, Why};

fn subject(name: &str, settings: &[(&str, &str)]) -> Subject {
    let settings = settings.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    let engine = format!("{name} 1.0");
    Subject { name: name.to_owned(), engine, settings, ..Subject::default() }
}

/// One subject with one figure, its repeats and those of its control.
fn set(name: &str, better: Better, values: &[f64], again: &[f64]) -> ResultSet {
    let mut set = ResultSet { title: "a run".to_owned(), ..ResultSet::default() };
    set.subject(subject(name, &[("keys", "1000")]));
    for (repeat, value) in (0..).zip(values) {
        set.add([name, "load", "figure, us"], better, (repeat, *value), false);
    }
    for (repeat, value) in (0..).zip(again) {
        set.add([name, "load", "figure, us"], better, (repeat, *value), true);
    }
    set
}

fn outcome(better: Better, first: [&[f64]; 2], second: [&[f64]; 2]) -> Outcome {
    let [first, second] = [first, second].map(|[values, again]| set("a", better, values, again));
    compare(&first, &second, false).expect("compares").lines[0].outcome()
}

#[test]
fn a_difference_beyond_the_noise_is_significant() {
    let lower = |first, second| outcome(Better::Lower, first, second);
    let five: &[f64] = &[10.0, 10.1, 10.2, 9.9, 10.0];
    let better: &[f64] = &[8.0, 8.1, 8.2, 8.0, 8.1];
    let worse: &[f64] = &[12.0, 12.1, 12.2, 11.9, 12.0];
    assert_eq!(lower([five, &[]], [better, &[]]), Outcome::Better);
    assert_eq!(lower([five, &[]], [worse, &[]]), Outcome::Worse);
    assert_eq!(outcome(Better::Higher, [five, &[]], [worse, &[]]), Outcome::Better);
    assert_eq!(lower([five, &[]], [five, &[]]), Outcome::NotSignificant);
    // A control that differs by a third, in either run, counts too.
    let noisy: &[f64] = &[11.0, 6.0, 12.0, 6.0, 11.0];
    assert_eq!(lower([five, &[]], [better, noisy]), Outcome::NotSignificant);
    assert_eq!(lower([five, noisy], [better, &[]]), Outcome::NotSignificant);
}

#[test]
fn few_repeats_and_zeros_have_a_direction() {
    let lower = |first: &[f64], second: &[f64]| outcome(Better::Lower, [first, &[]], [second, &[]]);
    assert_eq!(lower(&[10.0, 11.0], &[8.0, 9.9]), Outcome::DirectionOnly(Why::FewRounds));
    assert_eq!(lower(&[10.0], &[8.0]), Outcome::DirectionOnly(Why::FewRounds));
    // No ratio to nothing.
    let direction = lower(&[0.0; 3], &[3.0, 4.0, 5.0]);
    assert!(matches!(direction, Outcome::DirectionOnly(_)), "{direction:?}");
}

#[test]
fn runs_of_different_days_have_directions_and_say_so() {
    let mut first = set("a", Better::Lower, &[10.0, 10.1, 10.2, 9.9, 10.0], &[]);
    let mut second = set("a", Better::Lower, &[8.0, 8.1, 8.2, 8.0, 8.1], &[]);
    first.note_start("a", 0, 86_400);
    second.note_start("a", 0, 4 * 86_400);
    let comparison = compare(&first, &second, false).expect("compares");
    assert_eq!(comparison.lines[0].outcome(), Outcome::DirectionOnly(Why::OtherDay));
    let text = whole_text(&render::report(&comparison));
    let mut lines = text.lines().filter(|line| line.starts_with("first "));
    assert!(lines.any(|line| line.ends_with(" a run (measured on 1970-01-02)")), "{text}");
    let basis = render::basis(&comparison);
    let said = "Ratios of different days differ by more than the ranges inside one day";
    assert!(
        basis.contains("of different days: directions only.") && basis.contains(said),
        "{basis}"
    );
    second.starts = first.starts.clone();
    let comparison = compare(&first, &second, false).expect("compares");
    assert_eq!(comparison.lines[0].outcome(), Outcome::Better, "on one day");
}

#[test]
fn the_first_table_begins_with_the_farthest_ratio() {
    let mut first = set("a", Better::Lower, &[10.0, 10.0], &[]);
    let mut second = set("a", Better::Lower, &[20.0, 20.0], &[]);
    for (set, near, share) in [(&mut first, 1.0, 0.001), (&mut second, 1.1, 50.0)] {
        set.add(["a", "load", "near"], Better::Lower, (0, near), false);
        let by_difference = Better::Lower.by(Scale::PERCENT);
        set.add(["a", "load", "slowed share, %"], by_difference, (0, share), false);
    }
    let report = render::report(&compare(&first, &second, false).expect("compares"));
    let table = report.headline.clone().expect("has one");
    let figures: Vec<String> = table.rows.iter().map(|row| row[1].text()).collect();
    let place = |name: &str| figures.iter().position(|figure| figure.contains(name));
    // A share is judged by its difference: however large its ratio to almost nothing is.
    assert!(place("near") < place("slowed share"), "{figures:?}");
    let text = whole_text(&report);
    assert!(text.contains("Figures: of 3 figures"), "{text}");
}

#[test]
fn arms_of_two_engines_are_compared_where_each_run_has_one() {
    let run = |engines: &[&str]| {
        let mut set = ResultSet::default();
        for (engine, arm) in engines.iter().flat_map(|e| [(*e, "lz4-4k"), (*e, "none-4k")]) {
            let name = format!("{engine} {arm}");
            let subject = Subject { engine: engine.to_owned(), ..subject(&name, &[]) };
            set.subject(Subject { arm: arm.to_owned(), ..subject });
            set.add([&name, "text", "flush ms"], Better::Lower, (0, 1.0), false);
        }
        set
    };
    let comparison = compare(&run(&["lithify"]), &run(&["rocksdb"]), false).expect("compares");
    let subjects: Vec<_> = comparison.lines.iter().map(|line| line.subject.as_str()).collect();
    assert_eq!(subjects, ["lithify lz4-4k", "lithify none-4k"]);
    assert_eq!(comparison.subjects[1][1].name, "rocksdb none-4k");
    let several = compare(&run(&["lithify"]), &run(&["rocksdb", "leveldb"]), false);
    assert!(matches!(several, Err(Refusal::NothingInCommon(_))), "{several:?}");
}

#[test]
fn file_systems_of_cells_alone_are_no_difference_of_machines() {
    let facts = |file_system: &str| -> BTreeMap<String, String> {
        [("file system".to_owned(), file_system.to_owned()), ("kernel".into(), "6".into())].into()
    };
    let mut set = ResultSet::default();
    set.measured_on(facts("ext4"), false);
    set.measured_on(facts("btrfs"), true);
    assert_eq!(set.machine, facts("ext4"));
}

#[test]
fn what_differs_is_named_and_refused() {
    let first = set("a", Better::Lower, &[1.0, 2.0], &[]);
    let mut second = first.clone();
    second.subjects[0] = subject("a", &[("keys", "2000"), ("fanout", "8")]);
    second.machine = [("kernel".to_owned(), "Linux 7".to_owned())].into();
    let refusal = compare(&first, &second, false).expect_err("is refused");
    assert_eq!(
        refusal.to_string(),
        "not measured alike: kernel nothing and Linux 7; fanout nothing and 8; keys 1000 and 2000; \
         --ignore-settings compares them nevertheless"
    );
    let comparison = compare(&first, &second, true).expect("compares");
    assert_eq!(comparison.differences.len(), 3);
    assert!(
        whole_text(&render::report(&comparison)).contains("Not measured alike: keys 1000 and 2000")
    );
}

#[test]
fn subjects_are_matched_by_name_and_alone_in_any_case() {
    let one = set("lithify", Better::Lower, &[2.0, 2.0], &[]);
    let other = set("rocksdb", Better::Lower, &[1.0, 1.0], &[]);
    let comparison = compare(&one, &other, false).expect("one on each side");
    assert!((comparison.lines[0].judged.ratio.expect("has one") - 0.5).abs() < 1e-12);
    assert!(
        whole_text(&render::report(&comparison))
            .contains("lithify 1.0, against rocksdb (rocksdb 1.0)")
    );
    let mut two = other.clone();
    two.subject(subject("redb", &[]));
    let refusal = compare(&one, &two, true).expect_err("no name in common").to_string();
    assert_eq!(refusal, "nothing in common: the first has lithify; the second has rocksdb, redb");
    let mut other_test = one.clone();
    other_test.series[0].test = "query".to_owned();
    let refusal = compare(&one, &other_test, true).expect_err("no test in common").to_string();
    assert_eq!(
        refusal,
        "the same engines, and no test or figure in common: the first has load; the second has query"
    );
}

#[test]
fn what_arms_of_one_name_differ_in_and_what_one_run_alone_has_is_told() {
    let arm = |codec: &str, others: &[&str]| {
        let mut set = set("lz4", Better::Lower, &[1.0, 2.0], &[]);
        set.subjects[0].of_arm = [("codec_small".to_owned(), codec.to_owned())].into();
        others.iter().for_each(|name| set.subject(subject(name, &[])));
        set
    };
    let (one, other) = (arm("lz4", &["zlib-1"]), arm("none", &["zstd-1", "zstd-3"]));
    let comparison = compare(&one, &other, false).expect("compares");
    let text = whole_text(&render::report(&comparison));
    assert!(text.contains("The arms differ: lz4: codec_small lz4 and none.\n"), "{text}");
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = text.lines().map(words).collect();
    for alone in ["in the first run alone zlib-1", "in the second run alone zstd-1, zstd-3"] {
        assert!(lines.iter().any(|line| line == alone), "{alone} is missing in {text}");
    }
    let alike = whole_text(&render::report(&compare(&one, &one, false).expect("compares")));
    assert!(!alike.contains("differ:") && !alike.contains("alone"), "{alike}");
}

#[test]
fn a_run_against_itself_has_no_winner() {
    let record = sample::record(&sample::plan(&EngineName::lithify(), 3));
    let set = compared::results(&record);
    assert_eq!(set.names(), ["zlib-1", "zlib-6", "zstd-1"]);
    let comparison = compare(&set, &set, false).expect("compares");
    assert!(comparison.lines.iter().all(|line| !line.judged.verdict.is_significant()));
    let is_one = |line: &Line| line.judged.ratio.is_none_or(|ratio| (ratio - 1.0).abs() < 1e-12);
    assert!(comparison.lines.iter().all(is_one));
    let text = whole_text(&render::report(&comparison));
    assert!(text.contains("significantly better in 0, worse in 0"), "{text}");
    let basis = render::basis(&comparison);
    assert!(basis.contains("; 0 of ") && basis.ends_with(" figures have A/A controls."), "{basis}");
    let csv = render::csv(&comparison);
    assert_eq!(csv.lines().count(), comparison.lines.len() + 1);
    let json = render::json(&comparison);
    assert_eq!(json["lines"].as_array().map(Vec::len), Some(comparison.lines.len()));
    assert_eq!(json["lines"][0]["verdict"], "n.s.");
}

#[test]
fn faster_cells_win_and_other_sizes_are_refused() {
    let plan = sample::plan(&EngineName::lithify(), 3);
    let (before, mut after) = (sample::record(&plan), sample::record(&plan));
    for result in after.cells.iter_mut().filter_map(|cell| cell.result.as_mut()) {
        result.query.seconds /= 2.0;
    }
    let set = |record: LinkBenchRecord| compared::results(&record);
    let comparison = compare(&set(before.clone()), &set(after), false).expect("compares");
    let rate = |line: &&Line| line.test == "query" && line.figure == "operations/s";
    let rates: Vec<&Line> = comparison.lines.iter().filter(rate).collect();
    assert_eq!(rates.len(), 3);
    assert!(rates.iter().all(|line| line.outcome() == Outcome::Better), "{rates:?}");
    let mut larger = before.clone();
    for result in larger.cells.iter_mut().filter_map(|cell| cell.result.as_mut()) {
        result.spec.nodes *= 10;
        result.machine.cpus = 4;
    }
    let refusal = compare(&set(before), &set(larger), false).expect_err("is refused").to_string();
    assert!(refusal.contains("machine's CPUs 2 and 4"), "{refusal}");
    assert!(refusal.contains("nodes 100000 and 1000000"), "{refusal}");
}
