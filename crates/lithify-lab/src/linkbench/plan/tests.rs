//! Cells in their order, and choices that cannot be.

use super::*;
use crate::experiment::{BUILT_IN, Pair};

fn experiment() -> Experiment {
    Experiment::parse("e.toml", BUILT_IN[0].1).expect("parses")
}

fn ids(plan: &Plan) -> Vec<&str> {
    plan.cells.iter().map(|cell| cell.id.as_str()).collect()
}

fn expand(choice: &Choice) -> Result<Plan, ChoiceError> {
    Plan::expand(&experiment(), &EngineName::model(), choice, "b")
}

#[test]
fn arms_rotate_over_repeats() {
    let choice = Choice {
        arms: Some(vec!["zstd-1".into(), "none".into(), "lz4".into()]),
        repeats: Some(4),
        ..Choice::default()
    };
    let plan = expand(&choice).expect("expands");
    assert_eq!(
        ids(&plan),
        [
            "driver",
            "none-r0",
            "lz4-r0",
            "zstd-1-r0",
            "lz4-r1",
            "zstd-1-r1",
            "none-r1",
            "zstd-1-r2",
            "none-r2",
            "lz4-r2",
            "none-r3",
            "lz4-r3",
            "zstd-1-r3",
        ]
    );
    assert_eq!(plan.arms, ["none", "lz4", "zstd-1"]);
    assert_eq!(plan.name(), "zlib-vs-zstd-smoke-model");
    let seeds: Vec<u64> = plan.cells[1..].iter().map(|cell| cell.seed).collect();
    let first = experiment().workload.seed;
    assert!(plan.cells[1..].iter().zip(seeds).all(|(cell, s)| s == first + cell.repeat));
}

#[test]
fn everything_by_default_and_no_calibration_of_the_null_engine() {
    let plan =
        Plan::expand(&experiment(), &EngineName::null(), &Choice::default(), "b").expect("expands");
    assert_eq!(plan.cells.len(), 18);
    assert_eq!(plan.scale, "smoke");
    assert_eq!(plan.name(), "zlib-vs-zstd-smoke-null");
    assert_eq!(plan.cells[0].settings.codec_bottom.to_string(), "none");
    assert_eq!(plan.cells[2].settings.base_level_bytes, 1 << 20);
}

fn versus() -> Experiment {
    Experiment::parse("e.toml", BUILT_IN[1].1).expect("parses")
}

#[test]
fn an_arm_may_have_an_engine_and_codecs_of_its_own() {
    let plan = |engine| Plan::expand(&versus(), &engine, &Choice::default(), "b");
    let own = plan(EngineName::lithify()).expect("expands");
    assert_eq!(own.name(), "lithify-vs-rocksdb-smoke");
    let cell = |arm: &str| own.cells.iter().find(|cell| cell.arm == arm).expect("is there");
    assert_eq!(cell("rocksdb-lz4").engine.name(), "rocksdb");
    assert_eq!(cell("lithify-lz4").engine.name(), "lithify");
    let (a, b) = (&cell("rocksdb-lz4").settings, &cell("lithify-lz4").settings);
    assert_eq!((a, a.codec_small.to_string()), (b, "lz4".to_owned()));
    assert_eq!(cell("rocksdb-none-lz4-lz4").settings.codec_small.to_string(), "none");
    let all = plan(EngineName::null()).expect("expands");
    assert!(all.cells.iter().all(|cell| cell.engine == EngineName::null()));
}

#[test]
fn a_pair_with_a_control_measures_both_arms_twice() {
    let ids_of = |arms: Option<&[&str]>| {
        let arms = arms.map(|arms| arms.iter().map(|arm| (*arm).to_owned()).collect());
        let choice = Choice { arms, repeats: Some(2), ..Choice::default() };
        let plan = Plan::expand(&versus(), &EngineName::lithify(), &choice, "b");
        let plan = plan.expect("expands");
        let ids: Vec<String> = plan.cells.iter().map(|cell| cell.id.clone()).collect();
        (plan, ids)
    };
    let (plan, ids) = ids_of(Some(&["lithify-lz4", "rocksdb-lz4"]));
    assert_eq!(
        ids,
        [
            "driver",
            "lithify-lz4-r0",
            "rocksdb-lz4-r0",
            "lithify-lz4-control-r0",
            "rocksdb-lz4-control-r0",
            "rocksdb-lz4-r1",
            "lithify-lz4-control-r1",
            "rocksdb-lz4-control-r1",
            "lithify-lz4-r1",
        ]
    );
    let (measured, control) = (&plan.cells[1], &plan.cells[3]);
    assert_eq!(control.purpose, Purpose::Control);
    assert_eq!((&control.arm, control.seed), (&measured.arm, measured.seed));
    assert_eq!(control.settings, measured.settings);
    assert_ne!(control.hash(), measured.hash());
    let (measured, control) = (&plan.cells[2], &plan.cells[4]);
    assert_eq!((&control.arm, control.seed), (&measured.arm, measured.seed));
    assert_eq!(control.purpose, Purpose::Control);
    // Without the base there is nothing to compare, and nothing to control.
    let (_, ids) = ids_of(Some(&["lithify-lz4"]));
    assert_eq!(ids, ["driver", "lithify-lz4-r0", "lithify-lz4-r1"]);
}

#[test]
fn an_arm_of_several_pairs_has_one_control() {
    let mut experiment = versus();
    let (arm, base) = ("lithify-lz4".to_owned(), "rocksdb-none-lz4-lz4".to_owned());
    experiment.pairs.push(Pair { arm, base, control: true });
    let choice = Choice { repeats: Some(1), ..Choice::default() };
    let plan = Plan::expand(&experiment, &EngineName::lithify(), &choice, "b").expect("expands");
    let mut ids: Vec<&str> = plan.cells.iter().map(|cell| cell.id.as_str()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((ids.len(), count), (16, 16), "{ids:?}");
}

#[test]
fn arms_without_their_engine_are_left_out() {
    // The lab alone knows no other engines; who links their adapters does.
    let mut choice = Choice::default();
    let skipped = leave_out_missing(&versus(), &EngineName::lithify(), &mut choice);
    let skipped = skipped.expect("some are there");
    assert_eq!(skipped.len(), 6, "{skipped:?}");
    let line = "arm rocksdb-none-lz4-lz4 is skipped: there is no engine \"rocksdb\"; there are: ";
    assert!(skipped[0].starts_with(line), "{skipped:?}");
    let left = choice.arms.take().expect("are named");
    assert_eq!(left, ["lithify-none-lz4-lz4", "lithify-lz4", "lithify-zstd-1"]);
    choice.arms = Some(vec!["rocksdb-lz4".into()]);
    let error = leave_out_missing(&versus(), &EngineName::lithify(), &mut choice);
    assert!(error.expect_err("nothing is left").0.starts_with("arm rocksdb-lz4 is skipped"));
    let mut choice = Choice::default();
    let skipped = leave_out_missing(&versus(), &EngineName::model(), &mut choice);
    assert_eq!(skipped, Ok(Vec::new()));
    assert!(choice.arms.is_none());
}

#[test]
fn only_engines_on_disk_are_held_to_a_limit() {
    let choice = Choice { scale: Some("io-s".into()), ..Choice::default() };
    for (engine, limit) in [(EngineName::lithify(), Some(128 << 20)), (EngineName::model(), None)] {
        let plan = Plan::expand(&experiment(), &engine, &choice, "b").expect("expands");
        assert_eq!(plan.cells[0].memory_limit_bytes, None, "the calibration");
        assert!(plan.cells[1..].iter().all(|cell| cell.memory_limit_bytes == limit));
    }
}

fn named(name: &str) -> Experiment {
    let text = BUILT_IN.iter().find(|(built_in, _)| *built_in == name).expect("is there").1;
    Experiment::parse("e.toml", text).expect("parses")
}

#[test]
fn clients_and_loads_with_other_numbers() {
    let arms = Some(vec!["lithify".to_owned(), "lithify-disk".to_owned()]);
    let choice = Choice { arms, ..Choice::default() };
    let experiment = named("io-bound-lsm-vs-btree");
    let plan = Plan::expand(&experiment, &EngineName::lithify(), &choice, "b");
    let plan = plan.expect("expands");
    assert_eq!(
        ids(&plan),
        [
            "driver",
            "lithify-r0",
            "lithify-disk-r0",
            "lithify-load1-r0",
            "lithify-disk-load1-r0",
            "lithify-load4-r0",
            "lithify-disk-load4-r0",
        ],
        "two loaders are those of the arms themselves"
    );
    let (measured, disk, load) = (&plan.cells[1], &plan.cells[2], &plan.cells[3]);
    assert_eq!((measured.client_counts(), load.client_counts()), (&[1, 2, 4][..], &[][..]));
    assert_eq!((measured.loaders, load.loaders, load.purpose), (2, 1, Purpose::Load));
    assert_eq!((measured.device, disk.device), (DeviceSpeed::Fast, DeviceSpeed::Disk));
    assert!(measured.second_log && !plan.cells[0].second_log);
    assert_eq!(plan.cells[0].client_counts(), [4], "the driver runs with the most clients");
    assert_ne!(measured.hash(), disk.hash());
    // An engine in memory has no device to slow down.
    let plan = Plan::expand(&experiment, &EngineName::model(), &choice, "b");
    assert!(plan.expect("expands").cells.iter().all(|cell| cell.device.is_fast()));
}

#[test]
fn the_command_line_may_choose_the_clients() {
    let expand = |name, clients: &[u64]| {
        let arms = Some(vec![named(name).arms[0].name.clone()]);
        let choice = Choice { arms, clients: Some(clients.to_vec()), ..Choice::default() };
        Plan::expand(&named(name), &EngineName::model(), &choice, "b")
    };
    let plan = expand("io-bound-lsm-vs-btree", &[2, 3]).expect("expands");
    let arms: Vec<_> = plan.cells[1..].iter().map(|cell| (cell.purpose, cell.loaders)).collect();
    assert_eq!(arms, [(Purpose::Measure, 2), (Purpose::Load, 3)]);
    assert_eq!((plan.cells[1].client_counts(), plan.cells[0].requesters), (&[2, 3][..], 3));
    // An experiment with one number of clients gets several, and no more loads.
    let plan = expand("embedded-engines", &[1, 4]).expect("expands");
    assert_eq!((plan.cells.len(), plan.cells[1].client_counts()), (4, &[1, 4][..]));
    let refuse = |clients: &[u64]| expand("concurrency", clients).expect_err("is refused").0;
    assert_eq!(refuse(&[2, 2]), "--clients: numbers of clients must ascend");
    assert_eq!(refuse(&[1, 300]), "--clients 300 is out of range; allowed: 1 to 256");
}

#[test]
fn arms_belong_to_scales() {
    let experiment = named("cached-and-uncached");
    let arms = |scale: &str| {
        let choice = Choice { scale: Some(scale.to_owned()), ..Choice::default() };
        let plan = Plan::expand(&experiment, &EngineName::lithify(), &choice, "b");
        plan.expect("expands").arms
    };
    assert_eq!(arms("smoke").len(), 11);
    assert_eq!(arms("cached").len(), 7);
    assert!(arms("io-s").iter().all(|arm| arm.ends_with("-log") || arm.ends_with("-disk")));
    let arms = Some(vec!["lithify-disk".to_owned()]);
    let choice = Choice { scale: Some("cached".into()), arms, ..Choice::default() };
    let error = Plan::expand(&experiment, &EngineName::lithify(), &choice, "b");
    let error = error.expect_err("no arm is left").0;
    assert!(error.contains("claims to be cached"), "{error}");
}

#[test]
fn arms_may_have_an_allocator() {
    let choice = Choice::default();
    let plan = Plan::expand(&named("allocators"), &EngineName::lithify(), &choice, "b");
    let plan = plan.expect("expands");
    let of = |arm: &str| plan.cells.iter().find(|cell| cell.arm == arm).map(|c| c.allocator);
    assert_eq!(of("lithify-jemalloc"), Some(Allocator::Jemalloc));
    assert_eq!(of("rocksdb-glibc"), Some(Allocator::System));
}

#[test]
fn impossible_choices_say_what_is_possible() {
    let refuse = |choice: Choice| expand(&choice).expect_err("must be refused").0;
    let text = refuse(Choice { scale: Some("big".into()), ..Choice::default() });
    assert!(text.contains("\"big\"; there are: cached, io-l, io-s, smoke"), "{text}");
    let text = refuse(Choice { arms: Some(vec!["gzip".into()]), ..Choice::default() });
    assert!(text.contains("\"gzip\"; there are: none, lz4"), "{text}");
    assert!(refuse(Choice { arms: Some(vec![]), ..Choice::default() }).contains("no arm"));
    let text = refuse(Choice { repeats: Some(0), ..Choice::default() });
    assert_eq!(text, "--repeats 0 is out of range; allowed: 1 to 100");
    let text = refuse(Choice { query_seconds: Some(0), ..Choice::default() });
    assert!(text.contains("--seconds"), "{text}");
}

#[test]
fn the_hash_is_that_of_the_whole_description() {
    let plan = expand(&Choice::default()).expect("expands");
    let spec = &plan.cells[1];
    assert_eq!(spec.hash(), expand(&Choice::default()).expect("expands").cells[1].hash());
    let mut others = vec![spec.hash()];
    for change in [
        |spec: &mut CellSpec| spec.seed += 1,
        |spec: &mut CellSpec| spec.query_seconds += 1,
        |spec: &mut CellSpec| spec.settings.block_bytes += 1,
        |spec: &mut CellSpec| spec.build.push('x'),
    ] {
        let mut changed = spec.clone();
        change(&mut changed);
        others.push(changed.hash());
    }
    others.sort();
    others.dedup();
    assert_eq!(others.len(), 5);
}

#[test]
fn ages_tombstones_and_file_systems_belong_to_their_arms() {
    let arms = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    let choice = Choice { arms: arms(&["lithify", "lithify-tombstones"]), ..Choice::default() };
    let experiment = named("partitions");
    let plan = Plan::expand(&experiment, &EngineName::lithify(), &choice, "b").expect("expands");
    let [driver, single, plain] = &plan.cells[..] else { panic!("{:?}", ids(&plan)) };
    assert_eq!((single.turnovers.last(), driver.turnovers.len()), (Some(&1.0), 0));
    assert!(plain.plain_deletes && !single.plain_deletes && !driver.plain_deletes);
    assert_ne!(single.hash(), CellSpec { plain_deletes: true, ..single.clone() }.hash());
    // The queries end once.
    let clients = Choice { clients: Some(vec![1, 2]), ..choice.clone() };
    let error = Plan::expand(&experiment, &EngineName::lithify(), &clients, "b");
    assert!(error.expect_err("is refused").0.contains("have one number"));
    let clients = Choice { clients: Some(vec![2]), ..choice };
    let plan = Plan::expand(&experiment, &EngineName::lithify(), &clients, "b").expect("expands");
    assert_eq!(plan.cells[1].client_counts(), [2]);

    let choice = Choice { arms: arms(&["lithify-ext4", "lithify-btrfs"]), ..Choice::default() };
    let experiment = named("page-compression");
    let plan = Plan::expand(&experiment, &EngineName::lithify(), &choice, "b").expect("expands");
    let [driver, ext4, btrfs] = &plan.cells[..] else { panic!("{:?}", ids(&plan)) };
    assert!(driver.file_system.is_none() && !driver.drop_database && ext4.drop_database);
    let asked = |cell: &CellSpec| {
        let asked = cell.file_system.as_ref().expect("has one");
        (asked.spec.to_string(), asked.size_bytes >> 20)
    };
    assert_eq!((asked(ext4), asked(btrfs)), (("ext4".into(), 2000), ("btrfs".into(), 2000)));
    // An engine in memory has no files.
    let plan = Plan::expand(&experiment, &EngineName::model(), &choice, "b").expect("expands");
    assert!(plan.cells.iter().all(|cell| cell.file_system.is_none() && !cell.drop_database));
}
