//! Figures, verdicts, and the whole text of a report from a fixed record.

use super::*;
use crate::adapter::EngineName;
use crate::experiment::{BUILT_IN, Column, DeviceSpeed, Experiment, Pair};
use crate::kind::{Kind, wide_text};
use crate::linkbench::cell::{Age, CellSpec, Purpose};
use crate::linkbench::dropping::{DropResult, SpaceUse};
use crate::linkbench::kind::LinkBench;
use crate::linkbench::plan::{Choice, Plan};
use crate::linkbench::record::{CellRecord, LinkBenchRecord};
use crate::linkbench::report::figures::column_value;
use crate::linkbench::sample;
use crate::linkbench::second_log::SecondLogUsage;
use crate::meter::IoUsage;
use crate::meter::space::DirectorySize;
use crate::report::compare::{Comparison, Size, Verdict, claim, claim_cells, sentence};
use crate::report::figures::{Spread, figure};
use crate::report::paired::{Family, Sides};
use crate::run::device_limit::DeviceLimit;
use crate::run::dropping::{Beside, DropFigures};
use crate::run::file_system::CellFileSystem;

fn spread(values: &[f64]) -> Spread {
    Spread::of(values.to_vec()).expect("has values")
}

#[test]
fn figures_by_the_published_definitions() {
    let plan = sample::plan(&EngineName::lithify(), 1);
    let result = sample::result(plan.cells.last().expect("has cells"));
    let value = |column| column_value(&result.query, column);
    assert_eq!(value(Column::Tps), Some(20_000.0));
    assert_eq!(value(Column::ReadsPerTransaction), Some(0.5));
    assert_eq!(value(Column::ReadKbPerTransaction), Some(2.0));
    assert_eq!(value(Column::WriteKbPerTransaction), Some(1.0));
    // 70 % of the machine at 20,000 per second.
    assert_eq!(value(Column::McpuPerTransaction), Some(3_500.0));
    assert_eq!(value(Column::Size), Some(0.032));
    assert_eq!(value(Column::Rss), Some(0.05));
    // The original's bucket would be 1 ms.
    let p99_us = value(Column::UpdateNode).map(|ms| (ms * 1e3).round());
    assert_eq!(p99_us, Some(990.0));
    let mut without = result.query.clone();
    without.usage.device = None;
    without.latencies.clear();
    assert_eq!(column_value(&without, Column::ReadsPerTransaction), None);
    assert_eq!(column_value(&without, Column::UpdateNode), None);
}

#[test]
fn spreads() {
    let odd = spread(&[3.0, 1.0, 2.0]);
    assert_eq!((odd.median, odd.min, odd.max, odd.count), (2.0, 1.0, 3.0, 3));
    assert_eq!(spread(&[1.0, 2.0, 10.0, 3.0]).median, 2.5);
    assert_eq!(Spread::of(vec![f64::NAN]), None);
    assert!(odd.overlaps(&spread(&[3.0, 4.0])));
    assert!(!odd.overlaps(&spread(&[3.1, 4.0])));
    assert!(!spread(&[3.1, 4.0]).overlaps(&odd));
}

/// What comes of a claim that nobody else's noise helps to judge.
fn claimed(arm: &[f64], base: &[f64], published: f64) -> Comparison {
    let rounds = |values: &[f64]| (0..).zip(values.iter().copied()).collect::<Vec<(u64, f64)>>();
    let mut family = Family::default();
    let again = |values: &[f64]| rounds(values);
    family.add(Sides {
        values: [rounds(arm), rounds(base)],
        again: [again(arm), again(base)],
        ..Sides::default()
    });
    claim(family.judge().get(0).expect("both sides have values"), published)
}

#[test]
fn a_claim_is_confirmed_by_a_significant_difference() {
    let verdict = |arm: &[f64], base: &[f64], published| claimed(arm, base, published).verdict;
    let (one, two) = ([1.0, 1.01, 0.99], [2.0, 2.01, 1.99]);
    let as_published = Verdict::Confirmed(Size::AsPublished);
    assert_eq!(verdict(&one, &two, 0.5), as_published);
    assert_eq!(verdict(&two, &one, 1.8), as_published);
    assert_eq!(verdict(&one, &two, 1.5), Verdict::Contradicted);
    assert_eq!(verdict(&[1.0, 2.0, 3.0], &[2.0, 1.9, 2.1], 0.5), Verdict::NotSignificant);
    assert_eq!(verdict(&one[..2], &two[..2], 0.5), Verdict::DirectionOnly(true));
    assert_eq!(verdict(&one[..1], &two[..1], 1.5), Verdict::DirectionOnly(false));
    let comparison = claimed(&[1.0; 3], &[2.0; 3], 0.5);
    assert!((comparison.judged.ratio.expect("has one") - 0.5).abs() < 1e-12);
}

#[test]
fn a_claim_with_a_zero_says_what_was_measured() {
    let (some, none) = ([1.0, 1.01, 0.99], [0.0; 3]);
    let zeros = claimed(&some, &none, 0.5);
    assert_eq!(zeros.verdict, Verdict::DirectionOnly(false));
    let text = sentence("it is so", "reads", 0.5, Some(&zeros));
    assert!(text.contains("not as published: reads 1.00 against 0 here, -50.0 %"), "{text}");
    let cells = claim_cells(0.5, Some(&zeros), "not measured");
    assert_eq!(cells[1..3], ["1.00 / 0".to_owned(), "-".to_owned()]);
    // Enough repeats decide it by their signs.
    let zeros = claimed(&[0.0; 6], &[1.0, 2.0, 1.0, 3.0, 1.0, 2.0], 0.5);
    assert_eq!(zeros.verdict, Verdict::Confirmed(Size::More));
}

#[test]
fn a_published_ratio_near_to_1_says_about_equal() {
    let verdict = |arm: &[f64], published| claimed(arm, &[1.0, 1.0, 1.0], published).verdict;
    for published in [0.985, 1.0, 1.015] {
        let equal = Verdict::Confirmed(Size::AsPublished);
        let wide = [1.05, 1.042, 1.058];
        assert_eq!(verdict(&wide, published), Verdict::NotSignificant, "the interval is too wide");
        assert_eq!(verdict(&[1.0, 1.01, 0.99], published), equal);
        assert_eq!(verdict(&[1.03, 1.03, 1.03], published), equal, "significant, and near to 1");
        assert_eq!(verdict(&[0.7, 1.4, 1.0], published), Verdict::NotSignificant);
        assert_eq!(verdict(&[1.01], published), Verdict::DirectionOnly(true));
        assert_eq!(verdict(&[2.0], published), Verdict::DirectionOnly(false));
    }
    // Larger than published in the published direction is never against it.
    assert_eq!(verdict(&[0.88; 3], 0.979), Verdict::Confirmed(Size::More));
    assert_eq!(verdict(&[0.88; 3], 1.03), Verdict::Contradicted);
    for published in [0.99, 1.0, 1.01] {
        assert_eq!(verdict(&[0.88; 3], published), Verdict::Contradicted, "about equal");
    }
}

#[test]
fn a_sentence_says_both_sizes() {
    let says = |arm: f64, published| {
        sentence("it is so", "tps", published, Some(&claimed(&[arm; 3], &[1.0; 3], published)))
    };
    assert_eq!(
        says(0.88, 0.979),
        "\"it is so\": confirmed, and by more: tps -12.0 % here, -2.10 % published."
    );
    assert!(says(4.0, 5.0).contains(": confirmed: tps +300 % here, +400 % published."));
    assert!(says(1.1, 5.0).contains(": confirmed, but by less: "), "{}", says(1.1, 5.0));
    assert!(says(0.95, 0.2).contains(": confirmed, but by less: "), "{}", says(0.95, 0.2));
    assert!(says(5.0, 1.1).contains(": confirmed, and by more: "), "{}", says(5.0, 1.1));
    assert!(says(1.01, 1.01).contains(": confirmed: "), "{}", says(1.01, 1.01));
    assert!(says(0.5, 1.02).contains(": contradicted: "), "{}", says(0.5, 1.02));
    let of = |arm: &[f64], base: &[f64]| {
        sentence("it is so", "tps", 0.8, Some(&claimed(arm, base, 0.8)))
    };
    let noisy = of(&[1.0, 2.0, 1.2], &[1.5, 1.4, 1.8]);
    assert!(noisy.contains(": not significant here: tps -"), "{noisy}");
    assert!(noisy.contains("could have shown a ratio of "), "{noisy}");
    let few = of(&[1.0, 1.1], &[1.5, 1.4]);
    assert!(few.contains(": direction only, as published: "), "{few}");
}

#[test]
fn figures_for_people() {
    let cases = [
        (39_366.4, "39366"),
        (999.6, "1000"),
        (878.2, "878"),
        (12.24, "12.2"),
        (1.0, "1.00"),
        (0.555, "0.555"),
        (0.0331, "0.0331"),
        (0.002_83, "0.00283"),
        (0.0, "0"),
        (0.000_000_1, "0"),
        (-11.5, "-11.5"),
        (f64::NAN, "-"),
        (f64::INFINITY, "-"),
    ];
    for (value, text) in cases {
        assert_eq!(figure(value), text, "{value}");
    }
}

#[test]
fn failed_and_void_cells_are_named_and_not_counted() {
    let plan = sample::plan(&EngineName::lithify(), 2);
    let mut record = sample::record(&plan);
    let mut cell =
        |id: &str| record.cells.iter_mut().position(|cell| cell.spec.id == id).expect("is there");
    let (failed, void) = (cell("zlib-1-r0"), cell("zstd-1-r1"));
    record.cells[failed].result = None;
    record.cells[failed].failure = Some("exit code 3: on fire".into());
    if let Some(result) = &mut record.cells[void].result {
        result.oracle[1].passed = false;
        result.oracle[1].summary = "1 differences: list 7".into();
    }
    let text = wide_text::<LinkBench>(&record);
    assert!(text.contains("zlib-1 (1 failed, 1 of 2 repeats)"), "{text}");
    assert!(text.contains("zstd-1 (1 void, 1 of 2 repeats)"), "{text}");
    assert!(text.contains("zlib-1-r0: FAILED: exit code 3: on fire"), "{text}");
    assert!(
        text.contains("zstd-1-r1: ORACLE FAILED, row void after the query: 1 differences: list 7"),
        "{text}"
    );
    assert!(text.contains("direction only: as published"), "{text}");
    assert_eq!(record.valid_cells(), 5);
    record.interrupted = true;
    assert!(wide_text::<LinkBench>(&record).contains("the run was stopped before its last cell"));
}

#[test]
fn trees_of_different_height_are_reported() {
    let plan = sample::plan(&EngineName::lithify(), 1);
    let mut record = sample::record(&plan);
    assert!(
        wide_text::<LinkBench>(&record)
            .contains("below L0 after the queries: 3 (zlib-1, zlib-6, zstd-1)")
    );
    if let Some(result) = &mut record.cells[1].result {
        result.query.statistics.levels.remove(1);
    }
    let text = wide_text::<LinkBench>(&record);
    assert!(text.contains("2 (zlib-1); 3 (zlib-6, zstd-1). NOT THE SAME"), "{text}");
    assert!(text.contains("FEWER THAN 3"), "{text}");
}

#[test]
fn a_busy_machine_is_named() {
    let plan = sample::plan(&EngineName::lithify(), 1);
    let mut record = sample::record(&plan);
    assert!(!wide_text::<LinkBench>(&record).contains("NOT QUIET"));
    if let Some(result) = &mut record.cells[1].result {
        result.load.usage.foreign_cpu_us = (result.load.seconds * 2e6 * 0.3) as u64;
    }
    assert!(
        wide_text::<LinkBench>(&record).contains("NOT QUIET: other processes took up to 30.0 %")
    );
}

/// The figures that can be believed beside those that cannot; without noise the published ones alone.
#[test]
fn a_short_report_of_a_busy_machine_has_what_can_be_believed() {
    let mut record = sample::record(&sample::plan(&EngineName::lithify(), 2));
    let figures = |record: &LinkBenchRecord| -> Vec<String> {
        let headline = LinkBench::report(record).headline.expect("has one");
        headline.rows.iter().map(|row| row[1].text()).collect()
    };
    let quiet = figures(&record);
    assert!(quiet.iter().any(|figure| figure == "all CPU"), "{quiet:?}");
    assert!(!quiet.iter().any(|figure| figure == "own CPU"), "{quiet:?}");
    if let Some(result) = &mut record.cells[1].result {
        result.load.usage.foreign_cpu_us = (result.load.seconds * 2e6 * 0.3) as u64;
    }
    let noisy = figures(&record);
    assert_eq!(noisy[..2], ["all CPU", "own CPU"]);
    let beside = |of: &str| noisy.iter().filter(|figure| *figure == of).count();
    assert_eq!(beside("all CPU"), beside("own CPU"));
    assert_eq!(beside("size"), beside("tables, settled"));
    let found = &LinkBench::report(&record).answer.found[1].text;
    assert!(found.contains("own CPU of the load"), "{found}");
}

#[test]
fn round_brackets_are_explained_where_they_stand() {
    let caption = |repeats| {
        let record = sample::record(&sample::plan(&EngineName::lithify(), repeats));
        LinkBench::report(&record).headline.expect("has one").caption
    };
    assert!(!caption(3).contains("(a to b)"), "{}", caption(3));
    // Two arms and two repeats: too few to know the noise.
    let record = record_of("zlib-vs-zstd", "smoke", &["zlib-1", "zstd-1"]);
    let table = LinkBench::report(&record).headline.expect("has one");
    let has_range = table.rows.iter().any(|row| row[4].text().contains(" to "));
    assert_eq!(has_range, table.caption.contains("(a to b): the range"), "{table:?}");
    assert!(has_range, "{table:?}");
}

#[test]
fn one_line_of_csv_per_cell_and_phase() {
    let record = sample::record(&sample::plan(&EngineName::lithify(), 2));
    let text = csv::render(&record);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1 + 7 * 2);
    let columns = lines[0].split(',').count();
    assert!(lines.iter().all(|line| line.split(',').count() == columns), "{text}");
    assert!(lines[4].starts_with("zlib-vs-zstd,smoke,lithify,zlib-1,0,query,true,200000,20.0"));
}

/// The whole report. `LITHIFY_REWRITE=1 cargo test -p lithify-lab report` writes it anew; the
/// difference is then reviewed.
#[test]
fn report_of_a_fixed_record() {
    let record = sample::record(&sample::plan(&EngineName::lithify(), 3));
    let json = serde_json::to_string(&record).expect("to JSON");
    let record = serde_json::from_str(&json).expect("from JSON");
    let text = crate::kind::whole_text(&LinkBench::report(&record));
    if std::env::var_os("LITHIFY_REWRITE").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/linkbench/report/golden.txt");
        std::fs::write(path, &text).expect("writes");
        return;
    }
    let golden = include_str!("golden.txt");
    for (number, (line, expected)) in text.lines().zip(golden.lines()).enumerate() {
        assert_eq!(line, expected, "line {}", number + 1);
    }
    assert_eq!(text.lines().count(), golden.lines().count());
}

/// Three repeats of a pair, and with a control as many of the arms that are named.
fn plan_of_a_pair(controls: &[&str]) -> Plan {
    let mut plan = sample::plan(&EngineName::lithify(), 3);
    let control = !controls.is_empty();
    let pair = Pair { arm: "zstd-1".into(), base: "zlib-1".into(), control };
    plan.experiment.pairs.push(pair);
    let again = plan.cells.iter().filter(|cell| controls.contains(&cell.arm.as_str())).cloned();
    let again: Vec<_> = again
        .map(|cell| CellSpec { purpose: Purpose::Control, id: format!("{}-c", cell.id), ..cell })
        .collect();
    plan.cells.extend(again);
    plan
}

/// The last line of a report that begins with these words: charts stand over their tables.
fn row_of(text: &str, begin: &str) -> String {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let begins = |line: &String| line.starts_with(begin);
    text.lines().map(words).rfind(begins).unwrap_or_default()
}

/// The line of a report that begins with these words.
fn line_of(text: &str, begin: &str) -> String {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    text.lines().map(words).find(|line| line.starts_with(begin)).unwrap_or_default()
}

#[test]
fn a_pair_is_compared_figure_by_figure() {
    let text = wide_text::<LinkBench>(&sample::record(&plan_of_a_pair(&[])));
    assert!(text.contains("zstd-1 : zlib-1"), "{text}");
    // Half the CPU and twice the speed in every repeat; each one is 1 % slower.
    let line = row_of(&text, "operations/s load");
    assert!(line.contains(" 2.00 [2.00, 2.00] - - 1.0"), "{line}");
    assert!(line.ends_with(" - better"), "{line}");
    assert!(row_of(&text, "tables settled, GB query").contains("0.970"), "{text}");
    assert!(row_of(&text, "longest gap, ms query").ends_with("n.s."), "{text}");
    assert!(text.contains("no A/A control: the noise is that of the repeats alone"), "{text}");
    // A hundred samples have one beyond the 99th percentile.
    assert!(!text.contains("p99 GET_LINKS_LIST, us"), "{text}");
}

#[test]
fn a_pair_with_a_control_tells_noise_from_a_difference() {
    for controls in [&["zstd-1"][..], &["zlib-1", "zstd-1"]] {
        let mut record = sample::record(&plan_of_a_pair(controls));
        let text = wide_text::<LinkBench>(&record);
        let line = row_of(&text, "operations/s load");
        let same = "1.00 [1.00, 1.00]";
        let other = if controls.len() == 2 { same } else { "-" };
        let ratios = format!(" 2.00 [2.00, 2.00] {same} {other} 1.0");
        assert!(line.contains(&ratios) && line.ends_with(" better"), "{line}");
        let said = match controls.len() {
            2 => "A/A control of both sides in ",
            _ => "A/A control of one side only, in ",
        };
        assert!(text.contains(said), "{text}");
        let again = record.cells.iter_mut().filter(|cell| cell.spec.purpose == Purpose::Control);
        for result in again.filter_map(|cell| cell.result.as_mut()) {
            result.load.operations *= 3;
        }
        let text = wide_text::<LinkBench>(&record);
        let line = row_of(&text, "operations/s load");
        assert!(line.contains("3.00 [3.00, 3.00]") && line.ends_with("n.s."), "{line}");
        // The controls stand in no other figure, and in the list of cells under their purpose.
        assert!(text.contains("zstd-1: oracle passed 6 times"), "{text}");
        let lines = csv::render(&record);
        let count = lines.lines().filter(|line| line.contains(",control,")).count();
        assert_eq!(count, 6 * controls.len(), "{lines}");
    }
}

#[test]
fn two_repeats_give_directions_and_say_what_decides() {
    let mut plan = plan_of_a_pair(&["zlib-1", "zstd-1"]);
    plan.repeats = 2;
    plan.cells.retain(|cell| cell.repeat < 2);
    let text = wide_text::<LinkBench>(&sample::record(&plan));
    let line = row_of(&text, "operations/s load");
    assert!(line.ends_with(" - 3 direction only"), "{line}");
    assert!(text.contains("fewer than 3 repeats. --repeats 3 would decide half of them"), "{text}");
    assert!(
        text.contains("2 repeats: directions, no verdicts; --repeats 3 is the least"),
        "{text}"
    );
    assert!(!text.contains("MISSED 3"), "{text}");
}

#[test]
fn arms_of_different_days_have_no_verdict() {
    let mut record = sample::record(&plan_of_a_pair(&["zlib-1", "zstd-1"]));
    for cell in record.cells.iter_mut().filter(|cell| cell.spec.arm == "zstd-1") {
        cell.result.iter_mut().for_each(|result| result.started_unix_s += 3 * 86_400);
    }
    let text = wide_text::<LinkBench>(&record);
    let line = row_of(&text, "operations/s load");
    assert!(line.ends_with("direction only"), "{line}");
    assert!(text.contains("the two sides were measured on different days"), "{text}");
    let days = line_of(&text, "measured on");
    assert!(days.contains(": zstd-1 (6 cells of r0, r1, r2). Ratios of different days"), "{days}");
}

#[test]
fn floors_of_a_pair_begin_the_report() {
    let mut record = sample::record(&plan_of_a_pair(&[]));
    let of_arm = |cell: &&mut CellRecord| cell.spec.arm == "zstd-1";
    for result in record.cells.iter_mut().filter(of_arm).filter_map(|cell| cell.result.as_mut()) {
        result.load.statistics.live_bytes *= 2;
        result.query.observed_stalls.longest_gap_us = Some(90_000);
        result.query.usage.memory.resident_max_bytes = 500 << 20;
        result.query.usage.process_io.written_device_bytes *= 3;
    }
    let text = wide_text::<LinkBench>(&record);
    let at = |begin: &str| {
        let line = line_of(&text, begin);
        assert!(!line.is_empty(), "{begin}: {text}");
        line
    };
    // The driver's 57.2 MiB are off; a budget of 24 MiB and 64 MiB beyond it are allowed.
    let resident = "MISSED 5.032 x query zstd-1 resident less driver's, MiB 443 [443, 443]";
    assert!(at("MISSED 5").starts_with(resident), "{text}");
    assert!(at("MISSED 3.000 x query zstd-1 KB written/op").contains("settling"), "{text}");
    let gap = "load zstd-1 longest gap, ms 250 [250, 250] limit: at most 100";
    assert!(at("MISSED 2.5").contains(gap), "{text}");
    assert!(at("MISSED 3.000 x").contains(" zlib-1: "), "the base is named: {text}");
    assert!(at("MISSED 1.667 x load").contains("live peak / settled 2.00 [2.00, 2.00]"), "{text}");
    let missed = text.find("✕ Missed: resident less driver's").expect("is in the answer");
    assert!(missed < text.find("Side by side").expect("is a section"), "{text}");
    // Faster and cheaper is no miss.
    let missed = text.lines().filter(|line| line.trim_start().starts_with("MISSED"));
    assert!(missed.clone().all(|line| !line.contains("CPU") && !line.contains("operations")));
    assert_eq!(missed.count(), 4, "{text}");
    // The same time of waiting in half the time is behind; three repeats that differ by less than
    // the resolution, without a control, do not say how much such a share varies.
    let is_slowed = |line: &&str| line.contains("direction only") && line.contains("slowed share");
    let slowed = text.lines().filter(|line| line.contains(" x ")).filter(is_slowed);
    assert_eq!(slowed.count(), 2, "{text}");
    assert!(!text.contains("NOT QUIET"), "{text}");
    if let Some(result) = &mut record.cells[1].result {
        result.query.usage.foreign_cpu_us = (result.query.seconds * 2e6 * 0.3) as u64;
    }
    assert!(
        wide_text::<LinkBench>(&record).contains("NOT QUIET: other processes took up to 30.0 %")
    );
}

/// A record of a built-in experiment with these arms, every cell of which succeeded.
fn record_of(name: &str, scale: &str, arms: &[&str]) -> LinkBenchRecord {
    let text = BUILT_IN.iter().find(|(built_in, _)| *built_in == name).expect("is built in").1;
    let experiment = Experiment::parse("e.toml", text).expect("parses");
    let choice = Choice {
        scale: Some(scale.to_owned()),
        arms: Some(arms.iter().map(|arm| (*arm).to_owned()).collect()),
        repeats: Some(2),
        ..Choice::default()
    };
    let plan = Plan::expand(&experiment, &EngineName::lithify(), &choice, "b").expect("expands");
    sample::record(&plan)
}

#[test]
fn rates_ratios_and_costs_by_clients() {
    let mut record = record_of("io-bound-lsm-vs-btree", "smoke", &["rocksdb", "wiredtiger"]);
    let slower = record.cells.iter_mut().filter(|cell| cell.spec.arm == "wiredtiger");
    for result in slower.filter_map(|cell| cell.result.as_mut()) {
        result.query.operations /= 2;
    }
    let text = wide_text::<LinkBench>(&record);
    let at = |begin: &str| line_of(&text, begin);
    // A quarter of the operations with a quarter of the clients; the second repeat is 1 % slower.
    assert!(text.contains("queries by clients: QPS, medians of 2 repeats"), "{text}");
    assert_eq!(at("rate 4975"), "rate 4975 9950 19901 rocksdb");
    let halved = text.lines().filter(|line| line.trim_end().ends_with("9950  wiredtiger")).count();
    assert_eq!(halved, 1, "with the most clients only: {text}");
    assert_eq!(at("published 945"), "published 945 - 3171 rocksdb (rocksdb, ssd)");
    let ratio = "ratio 1.00 [1.00, 1.00] 1.00 [1.00, 1.00] 2.00 [2.00, 2.00] rocksdb : wiredtiger";
    assert_eq!(at("ratio 1.00 [1.00, 1.00] 1.00 [1.00, 1.00] 2.00"), ratio);
    assert_eq!(at("published 1.12"), "published 1.12 - 1.21 rocksdb : wiredtiger");
    assert_eq!(at("T 0.100"), "T 0.100 0.200 0.400 rocksdb");
    assert!(text.contains("load by clients: IPS") && !at("published 3772").is_empty(), "{text}");
    // 70 ticks of 100 busy; a device read per two operations.
    let costs = at("query 4 ");
    assert!(costs.ends_with(" 0.500 2.00 1.00 rocksdb"), "{costs}");
    assert!(text.contains("Latency by operation with 4 clients, ms"), "{text}");
    assert!(at("UPDATE_LINK 100").ends_with("rocksdb"), "{text}");
    // Three numbers of clients make no curve; seven that were published do.
    let curves: Vec<String> = text
        .lines()
        .filter(|line| line.contains(", published  "))
        .map(|line| line.split_whitespace().take(4).collect::<Vec<_>>().join(" "))
        .collect();
    assert!(curves.contains(&"query, published 7 819".to_owned()), "{curves:?}");
    assert!(!text.contains("rocksdb, query: 1: "), "{text}");
    // The headline at 4 clients is of that phase; at 16 there is none here.
    assert!(at("query tps at 4 clients rocksdb (rocksdb, ssd)").contains("1.210 2.000"), "{text}");
    assert!(at("query tps at 16 clients rocksdb (rocksdb, ssd)").contains("not measured"));
    let lines = csv::render(&record);
    // Per repeat and arm: a load and three queries, and a load with 1 and with 4.
    assert_eq!(lines.lines().count(), 1 + 2 + 2 * 2 * (4 + 2), "{lines}");
}

#[test]
fn enough_clients_give_a_curve_and_phases_are_judged_one_by_one() {
    let mut record = record_of("concurrency", "cached", &["rocksdb", "lithify"]);
    let text = wide_text::<LinkBench>(&record);
    let curve = line_of(&text, "query 16 1244");
    assert!(curve.starts_with("query 16 1244 0.0000 0.00000 1.000 none "), "{curve}");
    let published = line_of(&text, "query, published 48 1144");
    assert!(published.contains("0.00119 0.991 29.0"), "{text}");
    assert!(text.contains("16 over") && text.contains("over: more than two clients"), "{text}");
    // Nothing was counted in the second half: no phase is cached by proof.
    assert!(text.contains("*: NOT cached in a repeat"), "{text}");
    assert_eq!(text.matches("-r0, 16 clients").count(), 2, "{text}");
    for result in record.cells.iter_mut().filter_map(|cell| cell.result.as_mut()) {
        let sweep = result.sweep.iter_mut().map(|point| &mut point.phase);
        for phase in sweep {
            let io = IoUsage { device: Some(Default::default()), ..IoUsage::default() };
            phase.second_half = Some(crate::linkbench::cell::HalfUsage { operations: 1, io });
        }
    }
    let text = wide_text::<LinkBench>(&record);
    assert!(line_of(&text, "query by").is_empty());
    let rate =
        text.lines().find(|line| line.trim_start().starts_with("rate") && line.contains('*'));
    assert_eq!(rate.map(|line| line.matches('*').count()), Some(1), "the last one only: {text}");
}

#[test]
fn conditions_of_arms_are_told() {
    let plain = sample::record(&sample::plan(&EngineName::lithify(), 1));
    assert!(!wide_text::<LinkBench>(&plain).contains("conditions of the arms"));
    let mut record = record_of("cached-and-uncached", "io-s", &["lithify-log", "lithify-disk"]);
    for result in record.cells.iter_mut().filter_map(|cell| cell.result.as_mut()) {
        let usage = SecondLogUsage { records: 9, bytes: 1024 * 200_000, cpu_us: 400_000 };
        result.query.second_log = Some(usage);
        if !result.spec.device.is_fast() {
            let (speed, disk) = (DeviceSpeed::Disk, Some("8:0".to_owned()));
            result.device_limit = Some(DeviceLimit { speed, disk });
        }
    }
    let text = wide_text::<LinkBench>(&record);
    let line = line_of(&text, "disk - 1.00");
    assert_eq!(line, "disk - 1.00 - 2.00 glibc lithify-disk", "{text}");
    assert!(text.contains("emulated by a block control group on disk 8:0"), "{text}");
    assert!(!text.contains("memory by cache turnovers"), "{text}");
}

#[test]
fn memory_is_told_by_what_went_through_the_cache() {
    let mut record = record_of("allocators", "smoke", &["lithify-glibc", "lithify-jemalloc"]);
    for result in record.cells.iter_mut().filter_map(|cell| cell.result.as_mut()) {
        result.block_cache_bytes = 10_000_000;
        let sample = |inserted: u64, resident: u64| crate::keyvalue::samples::Sample {
            cache_inserted_bytes: inserted * 1_000_000,
            resident_bytes: resident * 1_000_000,
            ..Default::default()
        };
        result.query.samples = vec![sample(5, 11), sample(25, 20), sample(60, 24)];
    }
    let text = wide_text::<LinkBench>(&record);
    let line = line_of(&text, "lithify-glibc 10.0 6.00");
    assert!(line.ends_with(" 10.0 6.00 - 2.00 2.40 - - - 50.0 60.0 100 0 0"), "{text}");
}

#[test]
fn many_pairs_stand_in_one_table() {
    let arms = ["rocksdb", "lithify", "wiredtiger", "fjall"];
    let mut record = record_of("embedded-engines", "smoke", &arms);
    let faster = record.cells.iter_mut().filter(|cell| cell.spec.arm == "fjall");
    for result in faster.filter_map(|cell| cell.result.as_mut()) {
        result.query.operations *= 2;
    }
    let text = wide_text::<LinkBench>(&record);
    assert!(text.contains("All pairs, arm by base"), "{text}");
    assert!(text.contains("lithify : rocksdb  wiredtiger : rocksdb  fjall : rocksdb"), "{text}");
    let line = line_of(&text, "query operations/s ~1.00 ");
    assert_eq!(line, "query operations/s ~1.00 ~1.00 ~2.00", "two repeats have directions");
    let few = wide_text::<LinkBench>(&record_of("embedded-engines", "smoke", &arms[..3]));
    assert!(!few.contains("All pairs, arm by base"), "{few}");
}

#[test]
fn ages_stand_beside_what_was_published() {
    let mut record = record_of("partitions", "smoke", &["myrocks", "innodb-p16"]);
    for result in record.cells.iter_mut().filter_map(|cell| cell.result.as_mut()) {
        let age = |turnover, seconds, operations, megabytes: u64| Age {
            turnover,
            seconds,
            operations,
            directory: DirectorySize {
                allocated_bytes: megabytes * 1_000_000,
                ..DirectorySize::default()
            },
            file_system_bytes: (result.spec.arm == "myrocks").then_some(megabytes * 500_000),
        };
        // The second arm does not get to the end.
        result.query.ages = vec![
            age(0.12, 10.0, 10_000, 100),
            age(0.3, 20.0, 15_000, 150),
            age(0.61, 30.0, 18_000, 200),
        ];
        if result.spec.arm == "myrocks" {
            result.query.ages.push(age(1.0, 40.0, 20_000, 210));
        }
    }
    let text = wide_text::<LinkBench>(&record);
    let at = |begin: &str| line_of(&text, begin);
    // Rates are those between two turnovers.
    assert_eq!(at("QPS 1000"), "QPS 1000 500 300 200 200 1.00 0.200 0.562 myrocks", "{text}");
    let used = "GB used 0.0500 0.0750 0.100 0.105 0.105 1.00 2.10 1.06 myrocks";
    assert_eq!(at("GB used"), used, "{text}");
    let unfinished = "QPS 1000 500 300 - 300 0.610 0.300 0.916 innodb-p16";
    let found = text.lines().filter(|line| line.contains("innodb-p16"));
    let found: Vec<String> =
        found.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert!(found.contains(&unfinished.to_owned()), "{found:#?}");
    // Two hardware threads do not show what sixteen partitions do.
    let row = |line: &&String| {
        line.contains("T only 0.610") && line.contains("concurrency not reproducible: 2 hardware")
    };
    assert_eq!(found.iter().filter(row).count(), 1, "{found:#?}");
    assert!(text.contains("as published\n"), "{text}");
    assert!(!at("tps 31826").is_empty() && at("tps 31826").contains(" 0.562 myrocks"), "{text}");
}

#[test]
fn what_a_drop_cost_stands_beside_what_was_published() {
    let mut record =
        record_of("page-compression", "smoke", &["hole-xfs", "old-xfs", "lithify-xfs"]);
    assert!(
        !wide_text::<LinkBench>(&record).contains("dropping the database"),
        "nothing was dropped yet"
    );
    for result in record.cells.iter_mut().filter_map(|cell| cell.result.as_mut()) {
        let seconds = match result.spec.arm.as_str() {
            "hole-xfs" => 20.0 + result.spec.repeat as f64,
            "old-xfs" => 2.0,
            "driver" => continue,
            _ => 1.0,
        };
        let own = CellFileSystem {
            spec: "xfs".parse().expect("is known"),
            directory: "/mounted".into(),
            empty_bytes: 0,
            direct: true,
            process_id: None,
        };
        result.file_system = Some(own);
        result.load.settle.file_system_bytes = Some(70_000_000);
        result.dropped = Some(DropResult {
            how: if seconds > 1.0 { "DROP DATABASE" } else { "removed" }.to_owned(),
            neighbour: "somebody".to_owned(),
            figures: DropFigures {
                call_seconds: seconds,
                back_seconds: seconds + 1.0,
                is_not_back: seconds > 20.5,
                beside: Beside { operations: 7, p50_us: 1, p99_us: 4_000, longest_us: 9_000 },
                ..DropFigures::default()
            },
            before: SpaceUse { extents: Some(1234), ..SpaceUse::default() },
            after: SpaceUse::default(),
        });
    }
    let text = wide_text::<LinkBench>(&record);
    let at = |begin: &str| line_of(&text, begin);
    let dropped =
        "hole-xfs (space not back in time in 1) 20.5 0 21.5 0 0 4.00 9.00 7.00 0 0 - 1234";
    assert!(at(dropped).starts_with(dropped), "{text}");
    let answered = "until answered hole-xfs (transparent) / old-xfs (old-style) 43.200 10.247";
    assert!(at("until answered hole-xfs").starts_with(answered), "{text}");
    assert!(at("until answered hole-ext4").ends_with("not measured"), "{text}");
    assert!(text.contains("old-xfs, hole-xfs: DROP DATABASE; beside: somebody"), "{text}");
    let page = lithify_report::page::render(&page::report(&record));
    assert!(page.contains("The end of the databases") && page.contains("DROP DATABASE; beside"));
    assert!(text.contains("as published: time until the space is back"), "{text}");
    assert!(text.contains("xfs in a file, past the page cache of the file system below"), "{text}");
}

#[test]
fn an_arm_stands_beside_the_better_of_several_bases() {
    let arms = ["lithify-lz4", "rocksdb-lz4", "rocksdb-expert-lz4"];
    let mut record = record_of("lithify-vs-rocksdb", "smoke", &arms);
    let slower = record.cells.iter_mut().filter(|cell| cell.spec.arm == "rocksdb-lz4");
    for result in slower.filter_map(|cell| cell.result.as_mut()) {
        result.query.operations /= 2;
        result.query.usage.directory.allocated_bytes /= 2;
    }
    let text = wide_text::<LinkBench>(&record);
    let heading = "\nlithify-lz4 : better of rocksdb-lz4 and rocksdb-expert-lz4\n";
    let (_, table) = text.split_once(heading).expect("has the table");
    let base = |figure: &str| {
        let begin = format!("query  {figure} ");
        let line = table.lines().find(|line| line.starts_with(&begin)).expect("has the figure");
        line.contains("rocksdb-expert-lz4")
    };
    assert!(base("operations/s"), "{table}");
    assert!(!base("directory, GB"), "{table}");
    // With one base there is nothing to choose from.
    let alone = wide_text::<LinkBench>(&record_of("lithify-vs-rocksdb", "smoke", &arms[..2]));
    assert!(!alone.contains(" : better of "), "{alone}");
}
