//! Verdicts from known figures, refusals, and the forms of a comparison.

use super::results::{ResultSet, Subject};
use super::*;
use crate::adapter::EngineName;
use crate::comparison::collect;
use crate::records::AnyRecord;
use crate::run::sample;

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

fn verdict(better: Better, first: [&[f64]; 2], second: [&[f64]; 2]) -> Verdict {
    let [first, second] = [first, second].map(|[values, again]| set("a", better, values, again));
    compare(&first, &second, false).expect("compares").lines[0].verdict
}

#[test]
fn no_winner_inside_the_noise_of_a_control() {
    let lower = |first, second| verdict(Better::Lower, first, second);
    let three: &[f64] = &[10.0, 10.1, 10.2];
    // The same side twice differed by 1 %.
    let quiet: &[f64] = &[10.1, 10.1, 10.2];
    assert_eq!(lower([three, quiet], [&[8.0, 8.1, 8.2], &[]]), Verdict::Better);
    assert_eq!(lower([three, quiet], [&[12.0, 12.1, 12.2], &[]]), Verdict::Worse);
    assert_eq!(lower([three, quiet], [&[10.0, 10.1, 10.1], &[]]), Verdict::WithinNoise);
    // By a third in the other run: its noise counts too.
    let noisy: &[f64] = &[8.0, 10.0, 12.0];
    let second: &[f64] = &[8.0, 8.0, 9.0];
    assert_eq!(lower([three, quiet], [second, noisy]), Verdict::WithinNoise);
    assert_eq!(lower([three, &[]], [second, noisy]), Verdict::WithinNoise);
    let higher = verdict(Better::Higher, [three, quiet], [&[12.0, 12.1, 12.2], &[]]);
    assert_eq!(higher, Verdict::Better);
}

#[test]
fn without_a_control_ranges_must_not_overlap() {
    let lower = |first: &[f64], second: &[f64]| verdict(Better::Lower, [first, &[]], [second, &[]]);
    assert_eq!(lower(&[10.0, 11.0], &[8.0, 9.9]), Verdict::Better);
    assert_eq!(lower(&[10.0, 11.0], &[8.0, 10.0]), Verdict::RangesOverlap);
    assert_eq!(lower(&[10.0], &[8.0]), Verdict::OneRun);
    assert_eq!(lower(&[10.0, 11.0], &[8.0]), Verdict::OneRun);
    // No ratio to nothing, but a winner all the same.
    assert_eq!(lower(&[0.0, 0.0], &[3.0, 4.0]), Verdict::Worse);
    assert_eq!(lower(&[0.0, 0.0], &[0.0, 0.0]), Verdict::RangesOverlap);
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
    assert!(render::text(&comparison).contains("NOT MEASURED ALIKE: keys 1000 and 2000"));
}

#[test]
fn subjects_are_matched_by_name_and_alone_in_any_case() {
    let one = set("lithify", Better::Lower, &[2.0, 2.0], &[]);
    let other = set("rocksdb", Better::Lower, &[1.0, 1.0], &[]);
    let comparison = compare(&one, &other, false).expect("one on each side");
    assert_eq!(comparison.lines[0].ratio, Some(0.5));
    assert!(
        render::text(&comparison).contains("lithify (lithify 1.0) against rocksdb (rocksdb 1.0)")
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
    let text = render::text(&comparison);
    assert!(text.contains("ARMS DIFFER, lz4: codec_small lz4 and none\n"), "{text}");
    assert!(text.contains("in the first run alone: zlib-1\n"), "{text}");
    assert!(text.contains("in the second run alone: zstd-1, zstd-3\n"), "{text}");
    let alike = render::text(&compare(&one, &one, false).expect("compares"));
    assert!(!alike.contains("DIFFER") && !alike.contains("alone"), "{alike}");
}

#[test]
fn a_run_against_itself_has_no_winner() {
    let record = sample::record(&sample::plan(&EngineName::lithify(), 3));
    let set = collect::results(&AnyRecord::LinkBench(Box::new(record)));
    assert_eq!(set.names(), ["zlib-1", "zlib-6", "zstd-1"]);
    let comparison = compare(&set, &set, false).expect("compares");
    let undecided = [Verdict::RangesOverlap, Verdict::WithinNoise];
    assert!(comparison.lines.iter().all(|line| undecided.contains(&line.verdict)));
    assert!(comparison.lines.iter().all(|line| line.ratio.is_none_or(|ratio| ratio == 1.0)));
    let text = render::text(&comparison);
    assert!(text.contains("better in 0, worse in 0"), "{text}");
    assert!(text.contains("without a control a winner needs two repeats"), "{text}");
    let csv = render::csv(&comparison);
    assert_eq!(csv.lines().count(), comparison.lines.len() + 1);
    let json = render::json(&comparison);
    assert_eq!(json["lines"].as_array().map(Vec::len), Some(comparison.lines.len()));
    assert_eq!(json["lines"][0]["verdict"], "ranges-overlap");
}

#[test]
fn faster_cells_win_and_other_sizes_are_refused() {
    let plan = sample::plan(&EngineName::lithify(), 3);
    let (before, mut after) = (sample::record(&plan), sample::record(&plan));
    for result in after.cells.iter_mut().filter_map(|cell| cell.result.as_mut()) {
        result.query.seconds /= 2.0;
    }
    let set = |record| collect::results(&AnyRecord::LinkBench(Box::new(record)));
    let comparison = compare(&set(before.clone()), &set(after), false).expect("compares");
    let rate = |line: &&Line| line.test == "query" && line.figure == "operations/s";
    let rates: Vec<&Line> = comparison.lines.iter().filter(rate).collect();
    assert_eq!(rates.len(), 3);
    assert!(rates.iter().all(|line| line.verdict == Verdict::Better && line.ratio == Some(2.0)));
    let mut larger = before.clone();
    for result in larger.cells.iter_mut().filter_map(|cell| cell.result.as_mut()) {
        result.spec.nodes *= 10;
        result.machine.cpus = 4;
    }
    let refusal = compare(&set(before), &set(larger), false).expect_err("is refused").to_string();
    assert!(refusal.contains("machine's CPUs 2 and 4"), "{refusal}");
    assert!(refusal.contains("nodes 100000 and 1000000"), "{refusal}");
}
