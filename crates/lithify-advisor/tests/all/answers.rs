//! What is advised: sizes that come true, orders that matter, goals that are followed.

use std::ops::ControlFlow;
use std::time::Duration;

use lithify::{CfOptions, Db, Objective, Options};
use lithify_advisor::answer::Outcome;
use lithify_advisor::input::{self, Facts, Source};
use lithify_advisor::rows::{Row, Rows};
use lithify_advisor::sample::Collected;
use lithify_advisor::targets::TARGETS;
use lithify_advisor::{
    Advice, Format, Request, Silent, Watch, advise_source, check, compare, json, screen,
};

use super::data::{Numbers, advice, file, orders, request};

fn outcome<'a>(advice: &'a Advice, target: usize, name: &str) -> &'a Outcome {
    let outcomes = &advice.targets[target].outcomes;
    outcomes.iter().find(|one| one.setting.name() == name).expect("was measured")
}

#[test]
fn the_order_of_the_key_is_found_by_a_pass_and_makes_it_smaller() {
    // 13 MB: more than is read whole.
    let (_directory, path) = file("orders.csv", orders(160_000, false));
    let unsorted = advice(&request(&path, &["rocksdb"], &[]));
    let by_key = advice(&request(&path, &["rocksdb", "cassandra"], &["customer", "order"]));
    assert_eq!(unsorted.targets[0].collected, Collected::AsTheyAre);
    assert_eq!(by_key.targets[0].collected, Collected::ByFullPass);
    assert!(!by_key.data.is_sorted);
    let ratio = |advice: &Advice| outcome(advice, 0, "zstd-1 16k").ratio;
    assert!(ratio(&by_key).value < 0.8 * ratio(&unsorted).value);

    // The same rows sorted: no pass, the same answer.
    let (_directory, path) = file("sorted.csv", orders(160_000, true));
    let sorted = advice(&request(&path, &["rocksdb"], &["customer", "order"]));
    assert!(sorted.data.is_sorted);
    assert_eq!(sorted.targets[0].collected, Collected::AsTheyAre);
    let (a, b) = (ratio(&sorted), ratio(&by_key));
    assert!((a.value / b.value - 1.0).abs() < 0.02, "{a:?} {b:?}");
    // Partitions are whole in the order of hashes too.
    let hashed = outcome(&by_key, 1, "zstd-1 16k").ratio.value;
    let unhashed = ratio(&unsorted).value;
    assert!(hashed < 0.9 * unhashed, "{hashed} {unhashed}");
}

/// A source of which a pass takes long.
struct Slow(Box<dyn Source>);

impl Source for Slow {
    fn facts(&self) -> &Facts {
        self.0.facts()
    }

    fn place(&mut self, share: f64, wanted_bytes: u64) -> lithify_advisor::Result<Rows> {
        self.0.place(share, wanted_bytes)
    }

    fn scan(
        &mut self,
        each: &mut dyn FnMut(Row<'_>, u64) -> ControlFlow<()>,
    ) -> lithify_advisor::Result<()> {
        let mut rows = 0_u64;
        self.0.scan(&mut |row, done| {
            rows += 1;
            if rows.is_multiple_of(1_000) {
                std::thread::sleep(Duration::from_millis(60));
            }
            each(row, done)
        })
    }

    fn check_unchanged(&self) -> lithify_advisor::Result<()> {
        self.0.check_unchanged()
    }
}

#[test]
fn without_time_for_a_pass_both_orders_are_answered() {
    // 28 MB: more than is read whole.
    let (_directory, path) = file("orders.csv", orders(400_000, false));
    let key = ["customer".to_owned(), "order".to_owned()];
    let source = input::open(&path, None, &key, None, &Silent).expect("opens");
    let request = Request {
        time: Duration::from_secs(6),
        shows_samples: true,
        ..request(path, &["rocksdb"], &["customer", "order"])
    };
    let advice = advise_source(&mut Slow(source), &request, &Silent).expect("advice");
    let target = &advice.targets[0];
    assert_eq!(target.collected, Collected::OfSampledRows);
    let unsorted = target.unsorted.expect("is measured").value;
    assert!(unsorted > target.best().bottom.value, "{unsorted}");
    let screen = screen::render(&advice, 100);
    assert!(screen.contains("upper bounds") && screen.contains("as they come"), "{screen}");
    assert!(screen.contains("Some rows") && screen.contains("street"), "{screen}");
    assert!(!json::render(&advice).expect("renders").contains("street"));
}

#[test]
fn without_time_it_says_what_is_missing() {
    let (_directory, path) = file("orders.csv", orders(60_000, true));
    let advice = advice(&Request { time: Duration::ZERO, ..request(path, &["rocksdb"], &[]) });
    assert!(advice.targets[0].unmeasured > 0);
    assert!(advice.unknown.iter().any(|line| line.contains("--time")), "{:?}", advice.unknown);
    // Blocks of 64 KiB were not tried: nothing is said of them.
    assert_eq!(advice.data.far_repeats, None);
    let screen = screen::render(&advice, 100);
    assert!(!screen.contains("Larger blocks gain little"), "{screen}");
}

#[test]
fn without_time_each_target_has_an_answer() {
    let (_directory, path) = file("orders.csv", orders(60_000, true));
    let request = Request { time: Duration::ZERO, ..request(path, &[], &["customer", "order"]) };
    let advice = advice(&request);
    let names = advice.targets.iter().map(|target| target.target.name);
    let rows: Vec<&str> = TARGETS.iter().filter(|one| one.needs_rows).map(|one| one.name).collect();
    assert!(names.clone().filter(|name| rows.contains(name)).eq(rows.iter().copied()));
    assert!(advice.course.missing.is_empty());
    for target in &advice.targets {
        let name = target.target.name;
        // Scylla's own dictionary takes more than a few places are.
        assert!(target.default.is_some() || name == "scylla", "{name}");
        let is_raw = |one: &&Outcome| one.setting.compression == lithify::Compression::NONE;
        let raw = target.outcomes.iter().filter(is_raw).count();
        assert!(raw > 0 && target.outcomes.len() > raw, "{name}: {}", target.outcomes.len());
        assert!(target.is_provisional() || target.unmeasured == 0, "{name}");
    }
    let screen = screen::render(&advice, 100);
    assert!(screen.contains(", provisional"), "{screen}");
}

#[test]
fn rows_of_many_mib_are_not_left_raw_for_their_long_calls() {
    let mut numbers = Numbers(11);
    let word = |numbers: &mut Numbers| format!("{:03x} ", numbers.next() % 4096);
    let row = |id: usize, numbers: &mut Numbers| {
        let text: String = (0..1_000_000).map(|_| word(numbers)).collect();
        format!("{{\"id\":{id},\"text\":\"{text}\"}}\n")
    };
    let text: String = (0..5).map(|id| row(id, &mut numbers)).collect();
    let (_directory, path) = file("large.jsonl", text);
    let advice = advice(&request(path, &["lithify"], &["id"]));
    let target = &advice.targets[0];
    let (best, default) = (target.best(), target.default_outcome().expect("was measured"));
    assert!(default.unit_encode_us() > 1_000.0, "{} us", default.unit_encode_us());
    assert!(best.cost() <= default.cost(), "{} {}", best.name(), default.name());
    assert_ne!(best.setting.compression, lithify::Compression::NONE);
}

#[test]
fn no_advice_is_dearer_than_what_one_has() {
    let (directory, path) = file("orders.csv", orders(10_000, true));
    let all: Vec<&str> = TARGETS.iter().map(|one| one.name).collect();
    let measured = advice(&request(path, &all, &["customer", "order"]));
    let profile = directory.path().join("profile");
    std::fs::write(&profile, json::render(&measured).expect("renders")).expect("is written");
    for (objective, _) in Objective::NAMED {
        let prices = objective.prices();
        let advice = advice(&Request { prices, ..request(&profile, &all, &[]) });
        for target in &advice.targets {
            let before = target.before().map_or(f64::INFINITY, Outcome::cost);
            assert!(target.best().cost() <= before, "{objective} {:?}", target.target);
        }
    }
}

#[test]
fn slots_that_half_a_page_does_not_fit_are_told() {
    let mut numbers = Numbers(5);
    // Half of a row are digits that take a nibble, the rest is noise in a wide alphabet.
    let row = |id: usize| {
        let noise: String =
            (0..300).map(|_| char::from(b'#' + (numbers.next() % 90) as u8)).collect();
        format!("{id}\t{noise}\n")
    };
    let text: String = (0..8_000).map(row).collect();
    let (_directory, path) = file("noise.tsv", text.replace('"', "x"));
    let of = |path: &std::path::Path| advice(&request(path, &["innodb-compressed"], &["1"]));
    let found = of(&path);
    let target = &found.targets[0];
    assert_eq!(target.unmeasured, 0);
    let names: Vec<String> =
        ["8k", "4k", "2k", "1k"].map(|slot| format!("zlib-6 16k in {slot}")).into();
    let fit: Vec<String> = target.outcomes.iter().map(|one| one.setting.name()).collect();
    assert!(target.unfit.ends_with(&names[1..]), "{:?}", target.unfit);
    assert!(fit.iter().all(|name| !target.unfit.contains(name)), "{fit:?}");
    assert_eq!(fit.len() + target.unfit.len(), 1 + names.len());
    assert!(screen::render(&found, 100).contains("Not even half of a page fits: zlib-6 16k"));
    // A profile says the same.
    let directory = tempfile::tempdir().expect("a directory");
    let profile = directory.path().join("profile");
    std::fs::write(&profile, json::render(&found).expect("renders")).expect("is written");
    let again = advice(&request(profile, &["innodb-compressed"], &[]));
    assert_eq!(again.targets[0].unfit, target.unfit);
}

#[test]
fn screens_are_as_wide_as_they_may_be() {
    let (_directory, path) = file("orders.csv", orders(20_000, true));
    for targets in [&[][..], &["lithify"], &["innodb", "cassandra"]] {
        let advice = advice(&request(&path, targets, &["customer"]));
        for columns in [60, 80, 120] {
            let screen = screen::render(&advice, columns);
            // Texts to paste stay whole, and have no spaces to wrap at or are statements.
            let pasted: Vec<String> = advice
                .targets
                .iter()
                .flat_map(|target| target.snippet(target.best(), advice.data.basis))
                .collect();
            let is_pasted = |line: &str| pasted.iter().any(|text| line.contains(text.as_str()));
            for line in screen.lines().filter(|line| !is_pasted(line)) {
                assert!(line.chars().count() <= columns, "{columns}: {line}\n{screen}");
            }
        }
    }
}

#[test]
fn what_was_advised_before_is_kept_or_not() {
    let (_directory, path) = file("orders.csv", orders(40_000, true));
    let (_directory, noise) = file("noise.csv", {
        let mut numbers = Numbers(3);
        let row = |id: usize| format!("{id},{:016x}\n", numbers.next());
        format!("id,noise\n{}", (0..60_000).map(row).collect::<String>())
    });
    let before = advice(&request(&path, &["rocksdb", "innodb"], &[]));
    let same = compare::render(&before, &before, 100).expect("have all in common");
    assert!(same.starts_with("What was advised before is still good."), "{same}");
    assert_eq!(same.matches("keep it").count(), 2, "{same}");
    assert!(!same.contains("Not compared"), "{same}");
    // One measurement on both sides: two of them may differ in what they say is cheapest.
    let mut half = advice(&request(&path, &["cassandra"], &[]));
    half.targets.insert(0, before.targets[0].clone());
    let part = compare::render(&before, &half, 100).expect("have one in common");
    assert!(part.starts_with("Known to be still good: 1 of 2 settings."), "{part}");
    assert!(part.contains("Not compared, there only before: innodb."), "{part}");
    assert!(part.contains("Not compared, there only now: cassandra."), "{part}");
    let now = advice(&Request {
        prices: Objective::Throughput.prices(),
        ..request(&noise, &["rocksdb"], &[])
    });
    let other = compare::render(&before, &now, 100).expect("have one in common");
    let is_told = other.contains("should change.") && other.contains("% cheaper");
    assert!(is_told || other.contains("keep it"), "{other}");
    // What was never advised for is not counted.
    let mut one = before.clone();
    one.targets.truncate(1);
    let all = compare::render(&one, &before, 100).expect("have one in common");
    assert!(all.starts_with("What was advised before is still good."), "{all}");
    assert!(all.contains("Not compared, there only now: innodb."), "{all}");
    let mut keyed = before.clone();
    keyed.data.input.key = "customer".to_owned();
    let error = compare::render(&before, &keyed, 100).expect_err("have other orders");
    assert!(error.is_usage() && error.to_string().contains("is customer: sizes"), "{error}");
    let none = advice(&request(&noise, &["zfs"], &[]));
    assert!(compare::render(&before, &none, 100).expect_err("have nothing").is_usage());
}

#[test]
fn lithify_stores_what_was_predicted() {
    let text = orders(60_000, true);
    let (directory, path) = file("orders.csv", &text);
    let advice = advice(&request(path, &["lithify"], &["customer", "order"]));
    for (name, compression, block_size_bytes) in
        [("lz4 4k", "lz4", 4096), ("zstd-1 16k", "zstd-1", 16_384), ("none 16k", "none", 16_384)]
    {
        let db = Db::open(directory.path().join(name), Options::default()).expect("opens");
        let compression = compression.parse().expect("parses");
        let options = CfOptions { compression, block_size_bytes, ..CfOptions::default() };
        let rows = db.column_family("rows", options).expect("is made");
        let mut ingest = rows.ingest().expect("begins");
        let mut lines: Vec<(Vec<u8>, &str)> = records(&text);
        lines.sort();
        for (key, value) in lines {
            ingest.put(&key, value.as_bytes()).expect("is taken");
        }
        ingest.commit().expect("ends");
        db.close().expect("closes");
        let stored: u64 = std::fs::read_dir(directory.path().join(name))
            .expect("is there")
            .map(|entry| entry.expect("is there"))
            .filter(|entry| entry.path().extension().is_some_and(|kind| kind == "sst"))
            .map(|entry| entry.metadata().expect("has a size").len())
            .sum();
        let predicted = outcome(&advice, 0, name).bottom.value * text.len() as f64;
        let error = predicted / stored as f64 - 1.0;
        // Without upper levels: all of it is at the bottom.
        assert!(error.abs() < 0.03, "{name}: predicted {predicted:.0}, is {stored}");
    }
}

/// The rows of the table with the keys that the advisor gives them.
fn records(text: &str) -> Vec<(Vec<u8>, &str)> {
    let body = text.split_once('\n').expect("has a header").1;
    let mut rows = Vec::new();
    for row in body.split("cash\"\n").filter(|row| !row.is_empty()) {
        let end = row.as_ptr() as usize - body.as_ptr() as usize + row.len() + 5;
        let start = row.as_ptr() as usize - body.as_ptr() as usize;
        let row = &body[start..end];
        let fields: Vec<&str> = row.split(',').collect();
        let number = |at: usize| fields[at].parse::<u64>().expect("a number") ^ (1 << 63);
        rows.push(([number(0).to_be_bytes(), number(2).to_be_bytes()].concat(), row));
    }
    rows
}

#[test]
fn goals_are_followed() {
    let (_directory, path) = file("orders.csv", orders(40_000, true));
    let of = |objective: Objective| {
        let prices = objective.prices();
        advice(&Request { prices, ..request(&path, &["rocksdb"], &["customer", "order"]) })
    };
    let best = |advice: &Advice| {
        let best = advice.targets[0].best();
        (best.ratio.value, best.encode_ns + best.decode_ns)
    };
    let (space, throughput) = (of(Objective::Space), of(Objective::Throughput));
    let ((small, slow), (large, quick)) = (best(&space), best(&throughput));
    assert!(small < large && slow > quick, "{small} {large} {slow} {quick}");
    for advice in [&space, &throughput] {
        assert!(
            advice.targets[0].outcomes.iter().all(|one| !one.is_too_long),
            "RocksDB has threads"
        );
        let costs: Vec<f64> = advice.targets[0].outcomes.iter().map(Outcome::cost).collect();
        // What is advised comes first, and costs no more than what two runs differ by.
        assert!(costs[1..].is_sorted() && costs[0] <= costs[1] * 1.01, "{costs:?}");
        assert!(advice.targets[0].default.is_some());
    }
}

#[test]
fn a_screen_is_a_screen_and_json_is_json() {
    let (_directory, path) = file("orders.csv", orders(20_000, true));
    for targets in [&[][..], &["rocksdb"], &["innodb", "cassandra"]] {
        // On a busy machine too: a line says so where time runs out.
        let time = Duration::from_secs(600);
        let advice = advice(&Request { time, ..request(&path, targets, &["customer"]) });
        let screen = screen::render(&advice, 100);
        assert!(screen.lines().count() <= 40, "{} lines\n{screen}", screen.lines().count());
        assert!(!screen.contains("street"), "no row is quoted: {screen}");
        let document: serde_json::Value =
            serde_json::from_str(&json::render(&advice).expect("renders")).expect("parses");
        assert_eq!(document["schema"], "lithify-advice/1");
        assert_eq!(document["data"]["rows"], 20_000);
        assert!(!document.to_string().contains("street"));
        let count = document["targets"].as_array().expect("a list").len();
        assert_eq!(count, advice.targets.len());
        assert!(targets.is_empty() || count == targets.len());
    }
}

#[test]
fn too_little_data_are_told_first() {
    let of = |name: &str, text: String, targets: &[&str]| {
        let (_directory, path) = file(name, text);
        screen::render(&advice(&request(path, targets, &[])), 100)
    };
    let one = of("a.csv", "id,name\n1,slate\n".to_owned(), &["rocksdb"]);
    // Names of columns are no data.
    assert!(one.starts_with("Too little data to advise: 1 row, 8 B."), "{one}");
    assert!(one.contains("1 row of 8 bytes"), "{one}");
    let is_advice = |text: &str| {
        ["compression", "bottommost", "take this"].iter().any(|part| text.contains(part))
    };
    assert!(one.contains("Nothing is advised.") && !is_advice(&one), "{one}");
    assert_eq!(one.matches("Too little").count(), 1, "{one}");
    let two = of("a.txt", "x".repeat(50_000) + "\n" + &"y".repeat(50_000) + "\n", &["rocksdb"]);
    assert!(two.starts_with("Too little data to advise: 2 rows, "), "{two}");
    let files = of("a.bin", "\0".repeat(1_000), &[]);
    assert!(files.starts_with("Too little data to advise: 1000 B."), "{files}");
    let enough = of("orders.csv", orders(2_000, true), &["rocksdb"]);
    assert!(enough.starts_with("RocksDB (") && is_advice(&enough), "{enough}");
}

#[test]
fn money_cpu_and_sizes_say_what_they_are_of() {
    let (_directory, path) = file("orders.csv", orders(20_000, true));
    let (_other, bytes) = file("orders.bin", orders(20_000, true).replace(',', "\0"));
    let of = |path, prices: &str, targets: &[&str]| {
        let prices = prices.parse().expect("parses");
        screen::render(&advice(&Request { prices, ..request(path, targets, &[]) }), 100)
    };
    // Wherever lines are wrapped.
    let is_said = |screen: &str, part: &str| {
        screen.split_whitespace().collect::<Vec<_>>().join(" ").contains(part)
    };
    let balanced = Objective::Balanced.prices().to_string();
    let rows = of(&path, &balanced, &["lithify"]);
    for part in [
        "in millionths of a dollar: CPU second 11",
        "dollars a setting of raw size /M rows /M cold TB-year",
        "Upper levels' codecs follow the goal",
        "quickest of the compressed",
    ] {
        assert!(is_said(&rows, part), "{part}: {rows}");
    }
    assert!(!rows.contains("quickest to read"), "without a codec nothing is decoded: {rows}");
    let priced = of(&path, &balanced.replace("cpu=11", "cpu=12"), &["lithify", "rocksdb"]);
    assert!(is_said(&priced, "in millionths of your currency"), "{priced}");
    assert!(!priced.contains("dollar"), "{priced}");
    // A GB of them in seconds, whatever pieces are read at once.
    let bytes = advice(&request(&bytes, &["btrfs"], &[]));
    let screen = screen::render(&bytes, 100);
    assert!(screen.contains("/GB cold") && !screen.contains("/M rows"), "{screen}");
    assert!(!screen.contains("million rows") && !screen.contains("Upper levels"), "{screen}");
    let target = &bytes.targets[0];
    let smallest = target.outcomes.iter().find(|one| one.encode_ns > 0.0).expect("is there");
    let figure = lithify_report::figure::figure;
    assert!(screen.contains(&figure(smallest.encode_ns)), "{} {screen}", smallest.setting.name());
}

#[test]
fn data_that_do_not_shrink_are_left_alone() {
    let mut numbers = super::data::Numbers(7);
    // Whole records, which no rounding makes larger.
    let bytes: Vec<u8> = (0..81_920).flat_map(|_| numbers.next().to_le_bytes()).collect();
    let (_directory, path) = file("noise", bytes);
    let advice = advice(&request(path, &["btrfs", "zfs"], &[]));
    for target in &advice.targets {
        assert!((target.best().ratio.value - 1.0).abs() < 1e-6, "{:?}", target.target);
        // What costs the same as none is left as it is: ZFS comes with lz4.
        let default = target.default_outcome().expect("was measured");
        assert!(target.best().is(default), "{:?} {}", target.target, target.best().name());
    }
    assert!(advice.data.incompressible.is_some_and(|share| share > 0.99));
    assert!(advice.data.entropy_bits > 7.9);
}

/// A database whose rows came in no order, and another one of the same rows that is compacted. The first
/// quarter of the keys shrinks well, the rest hardly.
fn skewed(directory: &std::path::Path) -> [std::path::PathBuf; 2] {
    const ROWS: u64 = 220_000;
    let paths = ["as-it-is", "compacted"].map(|name| directory.join(name));
    for path in &paths {
        let db = Db::open(path, Options { memtable_bytes: 8 << 20, ..Options::default() });
        let db = db.expect("opens");
        let rows = db.column_family("rows", CfOptions::default()).expect("is made");
        for number in 0..ROWS {
            let key = number * 1_234_577 % ROWS;
            let mut numbers = Numbers(key + 1);
            let value = match key < ROWS / 4 {
                true => "the same words come again and again ".repeat(3),
                false => (0..7).map(|_| format!("{:016x}", numbers.next())).collect(),
            };
            rows.put(format!("{key:08}"), &value[..100]).expect("is put");
        }
        if path.ends_with("compacted") {
            rows.compact_range(..).expect("is compacted");
        }
        db.close().expect("closes");
    }
    paths
}

#[test]
fn places_of_a_database_are_of_all_levels_and_of_the_log() {
    let directory = tempfile::tempdir().expect("a directory");
    let of = |path: &std::path::PathBuf| advice(&request(path, &["lithify"], &[]));
    let [as_it_is, compacted] = skewed(directory.path()).each_ref().map(of);
    for advice in [&as_it_is, &compacted] {
        assert!(advice.data.is_sorted, "the cursor goes by the key");
        assert_eq!(advice.data.input.data_bytes, 220_000 * 108);
        assert_eq!(advice.data.rows, 220_000);
    }
    let ratio = |advice: &Advice| outcome(advice, 0, "zstd-1 16k").ratio.value;
    let (a, b) = (ratio(&as_it_is), ratio(&compacted));
    assert!((a / b - 1.0).abs() < 0.03, "{a} {b}");
}

#[test]
fn a_database_of_lithify_is_data_with_its_keys() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("rocks.db");
    let db = Db::open(&path, Options::default()).expect("opens");
    let small = db.column_family("small", CfOptions::default()).expect("is made");
    small.put(b"one", b"row").expect("is put");
    let rows = db.column_family("rows", CfOptions::default()).expect("is made");
    let text = orders(300_000, true);
    let mut ingest = rows.ingest().expect("begins");
    for (number, line) in text.lines().skip(1).filter(|line| line.len() > 20).enumerate() {
        ingest.put(format!("{number:08}").as_bytes(), line.as_bytes()).expect("is taken");
    }
    ingest.commit().expect("ends");
    // It is read beside its writer.
    let of_rows = advice(&request(&path, &["lithify", "rocksdb"], &[]));
    assert_eq!(of_rows.data.input.format, "Lithify database, column family rows");
    assert!(of_rows.data.is_sorted);
    let rows_off = of_rows.data.rows as f64 / 300_000.0 - 1.0;
    assert!(rows_off.abs() < 0.03, "{}", of_rows.data.rows);
    let of_small =
        advice(&Request { table: Some("small".to_owned()), ..request(&path, &["lithify"], &[]) });
    assert_eq!(of_small.data.rows, 1);
    db.close().expect("closes");
    let unknown = Request { table: Some("none".to_owned()), ..request(&path, &["lithify"], &[]) };
    let error = super::data::refusal(&unknown);
    assert!(error.is_usage() && error.to_string().contains("there are: "), "{error}");
    let error = super::data::refusal(&request(&path, &["lithify"], &["id"]));
    assert!(error.is_usage() && error.to_string().contains("leave --key out"), "{error}");
    let (_other, file) = file("a.csv", "id,name\n1,slate\n");
    let error =
        super::data::refusal(&Request { table: Some("t".to_owned()), ..request(file, &[], &[]) });
    assert!(error.to_string().contains("no tables"), "{error}");
}

#[test]
fn what_a_database_has_now_is_what_advice_is_compared_with() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("rocks.db");
    let db = Db::open(&path, Options::default()).expect("opens");
    let options = |text: &str| text.parse::<CfOptions>().expect("parses");
    let auto = options("compression=lz4 block_size_bytes=16384");
    let rows = db.column_family("rows", auto).expect("is made");
    let text = orders(20_000, true);
    for (number, line) in text.lines().skip(1).enumerate() {
        rows.put(format!("{number:08}"), line).expect("is put");
    }
    rows.compact_range(..).expect("is compacted");
    // What it is set to is not yet what its tables have.
    drop(rows);
    let rows = db.column_family("rows", options("compression=auto")).expect("is there");
    rows.put("last", "in the log").expect("is put");
    db.close().expect("closes");
    let advice = advice(&request(&path, &["lithify"], &[]));
    let before = advice.targets[0].before().expect("was measured");
    assert_eq!(before.setting.name(), "lz4 16k");
    let stored: u64 = std::fs::read_dir(&path)
        .expect("is there")
        .map(|entry| entry.expect("is there"))
        .filter(|entry| entry.path().extension().is_some_and(|kind| kind == "sst"))
        .map(|entry| entry.metadata().expect("has a size").len())
        .sum();
    let present = advice.data.present.as_ref().expect("is a database");
    assert_eq!((present.stored_bytes, present.rows_in_log), (stored, 1));
    let screen = screen::render(&advice, 100);
    assert!(screen.contains("Has now   compression=auto: "), "{screen}");
    assert!(screen.contains(" in 1 table of lz4 16k; 1 row is in the log alone."), "{screen}");
    assert!(!screen.contains("comes with"), "{screen}");
    assert!(screen.contains("it has this now") || screen.contains("what it has."), "{screen}");
    let profile = directory.path().join("profile");
    std::fs::write(&profile, json::render(&advice).expect("renders")).expect("is written");
    let again = super::data::advice(&request(&profile, &[], &[]));
    assert_eq!(again.data.present, advice.data.present);
    // What it is set to counts, also where level 0 has most bytes.
    let db = Db::open(&path, Options::default()).expect("opens");
    drop(db.column_family("rows", options("compression=none,lz4,zstd-6")).expect("is there"));
    db.close().expect("closes");
    let set = super::data::advice(&request(&path, &["lithify"], &[]));
    assert_eq!(set.targets[0].before().expect("was measured").setting.name(), "zstd-6 16k");
    let screen = screen::render(&set, 100);
    assert!(screen.contains("it is set to this") || screen.contains("what it has."), "{screen}");
    assert_eq!(again.targets[0].present, advice.targets[0].present);
}

#[test]
fn a_profile_gives_the_same_advice_and_other_advice_at_other_prices() {
    let (directory, path) = file("orders.csv", orders(20_000, true));
    let measured = advice(&request(path, &["rocksdb", "cassandra"], &["customer", "order"]));
    let profile = directory.path().join("orders.profile");
    let text = json::render(&measured).expect("renders");
    std::fs::write(&profile, &text).expect("is written");
    let again = advice(&request(&profile, &[], &[]));
    assert_eq!(again.data, measured.data);
    for (a, b) in again.targets.iter().zip(&measured.targets) {
        let names = |advice: &lithify_advisor::answer::TargetAdvice| -> Vec<String> {
            advice.outcomes.iter().map(|one| one.setting.name()).collect()
        };
        assert_eq!((names(a), a.default), (names(b), b.default));
        assert!((a.best().cost() / b.best().cost() - 1.0).abs() < 1e-9);
        assert_eq!(a.best().upper, b.best().upper);
    }
    let prices = Objective::Space.prices();
    let space = advice(&Request { prices, ..request(&profile, &["rocksdb"], &[]) });
    assert!(space.targets[0].best().ratio.value < measured.targets[0].best().ratio.value);

    let error = super::data::refusal(&request(&profile, &["zfs"], &[]));
    assert!(error.is_usage() && error.to_string().contains("not measured for zfs"), "{error}");
    assert!(error.to_string().contains("it has: rocksdb, cassandra"), "{error}");
    let all = advice(&Request { targets: TARGETS.to_vec(), ..request(&profile, &[], &[]) });
    assert_eq!(all.targets.len(), 2, "all are all that it has");
    for (from, to) in [("advice/1", "advice/9"), ("\"bytes\"", "\"byts\""), ("}]", "}")] {
        std::fs::write(&profile, text.replacen(from, to, 1)).expect("is written");
        let error = super::data::refusal(&request(&profile, &[], &[]));
        assert!(error.to_string().contains("orders.profile: "), "{error}");
    }
}

/// Wants an answer at once.
struct Hurried;

impl Watch for Hurried {
    fn hear(&self, _: &str, _: u64, _: u64) -> lithify_advisor::Result<()> {
        Ok(())
    }

    fn is_hurried(&self) -> bool {
        true
    }
}

#[test]
fn a_profile_of_a_stopped_run_says_so() {
    let (directory, path) = file("orders.csv", orders(20_000, true));
    let request_of_data = request(path, &["rocksdb", "zfs"], &["customer", "order"]);
    let stopped = lithify_advisor::advise(&request_of_data, &Hurried).expect("advice");
    assert!(stopped.course.is_stopped && stopped.targets.len() == 1, "{:?}", stopped.course);
    let profile = directory.path().join("orders.profile");
    std::fs::write(&profile, json::render(&stopped).expect("renders")).expect("is written");
    let again = advice(&request(&profile, &[], &[]));
    assert!(again.course.is_stopped);
    assert_eq!(again.course.missing, stopped.course.missing);
    assert_eq!(again.targets[0].unmeasured, stopped.targets[0].unmeasured);
    let screen = screen::render(&again, 100);
    assert!(screen.contains("was stopped") && screen.contains("no time was left"), "{screen}");
    assert!(!screen.contains("--time") && !screen.contains("--key"), "{screen}");
}

#[test]
fn what_is_there_is_compared_with_the_prediction() {
    let (directory, path) = file("orders.csv", orders(20_000, true));
    let of = |targets: &[&str]| advice(&request(&path, targets, &["customer", "order"]));
    let (one, two) = (of(&["cassandra"]), of(&["cassandra", "btrfs"]));
    let table = directory.path().join("table");
    std::fs::create_dir(&table).expect("is made");
    let predicted = one.targets[0].best().ratio.value * one.data.basis.data_bytes;
    std::fs::write(table.join("nb-1-big-Data.db"), vec![1; predicted.ceil() as usize])
        .expect("is written");
    std::fs::write(table.join("nb-1-big-Index.db"), vec![1; 5_000_000]).expect("is written");
    let said = check::compare(&one, &table).expect("compares");
    assert!(said.contains("in 1 file.") && said.contains("Off by +0.0 %"), "{said}");
    let usage = |advice: &Advice, path: &std::path::Path| {
        let error = check::compare(advice, path).expect_err("is refused");
        assert!(error.is_usage(), "{error}");
        error.to_string()
    };
    assert!(usage(&two, &table).contains("one target"));
    assert!(usage(&of(&["btrfs"]), &table).contains("compsize"));
    assert!(usage(&one, &path).contains("no file of Cassandra"));
    assert!(usage(&one, &table.join("missing")).contains("No such file"));
}

#[test]
fn rows_of_a_megabyte_that_shrink_are_compressed() {
    // A third of each line is noise, the rest repeats it.
    let mut numbers = super::data::Numbers(11);
    let line = |_| {
        let piece = |_| format!("{:016x}", numbers.next()).repeat(4);
        (0..16_000).map(piece).collect::<String>() + "\n"
    };
    let text: String = (0..4).map(line).collect();
    let (_directory, path) = file("long.txt", text);
    let request = Request { format: Some(Format::Lines), ..request(path, &["rocksdb"], &[]) };
    let advice = advice(&request);
    let best = advice.targets[0].best();
    assert!(best.ratio.value < 0.5, "{} {:?}", best.setting.name(), best.ratio);
    let screen = screen::render(&advice, 100);
    assert!(screen.contains("64 of each row are assumed"), "{screen}");
}

#[test]
fn rows_longer_than_a_page_are_not_cut_off() {
    let mut numbers = super::data::Numbers(9);
    let line =
        |_| (0..2_500).map(|_| format!("{:016x}", numbers.next())).collect::<String>() + "\n";
    let text: String = (0..60).map(line).collect();
    let (_directory, path) = file("long.txt", text);
    let request = Request {
        format: Some(Format::Lines),
        ..request(path, &["innodb", "innodb-compressed", "wiredtiger"], &[])
    };
    for target in &advice(&request).targets {
        let none = target.outcomes.iter().find(|one| one.encode_ns == 0.0).expect("was measured");
        assert!((1.0..1.6).contains(&none.ratio.value), "{:?} {:?}", target.target, none.ratio);
    }
}

#[test]
fn the_default_does_not_depend_on_the_goal() {
    let (_directory, path) = file("orders.csv", orders(20_000, true));
    let ratio = |objective: Objective| {
        let prices = objective.prices();
        let request = Request { prices, ..request(&path, &["rocksdb", "lithify"], &["customer"]) };
        let advice = advice(&request);
        let of =
            |at: usize| advice.targets[at].default_outcome().expect("was measured").ratio.value;
        [of(0), of(1)]
    };
    assert_eq!(ratio(Objective::Space), ratio(Objective::Throughput));
}
