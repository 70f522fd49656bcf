//! Families whose compression is decided by measured costs.

use crate::support::{PATH, Parts, Random, rows, small_options};
use lithify::{CfOptions, ColumnFamily, CompressionPolicy, Db, Explanation};

const WORDS: [&str; 16] = [
    "granite ", "basalt ", "gneiss ", "marble ", "slate ", "quartz ", "flint ", "chalk ", "shale ",
    "pumice ", "amber ", "jet ", "onyx ", "agate ", "opal ", "topaz ",
];

fn options(compression: &str) -> CfOptions {
    CfOptions {
        block_size_bytes: 0,
        table_bytes: 128 << 10,
        base_level_bytes_max: 128 << 10,
        fanout: 4,
        compression: compression.parse().unwrap(),
        ..CfOptions::default()
    }
}

fn open(parts: &Parts) -> Db {
    Db::open_in(PATH, small_options(), parts.world()).unwrap()
}

/// A row that shrinks to about a third.
fn text(random: &mut Random) -> String {
    (0..24).map(|_| WORDS[(random.next() % 16) as usize]).collect()
}

fn load(family: &ColumnFamily, count: u32, seed: u64, value: impl Fn(&mut Random) -> Vec<u8>) {
    let mut random = Random(seed);
    for _ in 0..count {
        let number = random.next() % u64::from(count);
        family.put(format!("key{number:08}").as_bytes(), value(&mut random)).unwrap();
    }
}

fn bottom(explanation: &Explanation) -> &lithify::LevelExplanation {
    explanation.levels.last().unwrap()
}

#[test]
fn a_bottom_of_text_is_compressed_strongly_for_the_sake_of_space() {
    let parts = Parts::new(11);
    let db = open(&parts);
    let family = db.column_family("rows", options("auto:space")).unwrap();
    load(&family, 20_000, 1, |random| text(random).into_bytes());
    let before = rows(&family);
    db.wait_for_compaction().unwrap();
    let explanation = family.explain();
    println!("{explanation:#}\n{}", explanation.record);
    let bottom = bottom(&explanation);
    assert!(bottom.chosen.starts_with("zstd") || bottom.chosen.starts_with("libdeflate"));
    assert!(!bottom.candidates.is_empty() && bottom.expected.unwrap().lifetime_h > 0.0);
    assert_eq!(explanation.levels.iter().map(|level| level.debt_bytes).sum::<u64>(), 0);
    assert!(rows(&family) == before, "rows are as they were");
}

/// The number behind `name=` in the last line of a record that asks for a level.
fn asked(record: &str, level: usize, name: &str) -> Option<f64> {
    let wanted = format!("choose level={level} ");
    let line = record.lines().rfind(|line| line.starts_with(&wanted))?;
    let mut fields = line.split(' ').filter_map(|field| field.split_once('='));
    fields.find(|(known, _)| *known == name)?.1.parse().ok()
}

#[test]
fn levels_know_what_their_size_changes_of_rewrites() {
    let parts = Parts::new(15);
    let db = open(&parts);
    let family = db.column_family("rows", options("auto")).unwrap();
    for seed in 1..=2 {
        load(&family, 20_000, seed, |random| text(random).into_bytes());
        parts.environment.advance_us(2_000_000);
        db.wait_for_compaction().unwrap();
    }
    let explanation = family.explain();
    println!("{explanation:#}\n{}", explanation.record);
    let record = &explanation.record;
    let deep: Vec<usize> =
        explanation.levels.iter().map(|level| level.level).filter(|level| *level > 0).collect();
    let [.., middle, last] = deep[..] else { panic!("{deep:?}: too few levels for a middle one") };
    // Random keys: a row that goes down has several of the next level rewritten, and no more of them than
    // there are for each row of the middle level.
    let pushed_onto = asked(record, middle, "pushed_onto").unwrap();
    assert!((0.5..20.0).contains(&pushed_onto), "{pushed_onto}");
    assert_eq!(asked(record, middle, "through"), Some(0.0));
    assert!(asked(record, middle, "next_ns").unwrap() > 0.0);
    let ratio_now = asked(record, middle, "ratio_now").unwrap();
    assert!((0.1..1.1).contains(&ratio_now), "{ratio_now}");
    // Nothing lies below the last one, and level 0 has no target.
    assert_eq!(asked(record, last, "pushed_onto"), Some(0.0));
    let through = asked(record, last, "through").unwrap();
    assert!((0.2..10.0).contains(&through), "{through}");
    assert!(asked(record, last, "merged").unwrap() > 0.5);
    assert_eq!(asked(record, 0, "ratio_now"), None);
}

#[test]
fn no_change_is_older_than_its_database() {
    let parts = Parts::new(19);
    let hours = |count: u64| count * 3_600_000_000;
    parts.environment.advance_us(hours(25));
    let db = open(&parts);
    let family = db.column_family("rows", options("auto:space")).unwrap();
    load(&family, 20_000, 1, |random| text(random).into_bytes());
    db.wait_for_compaction().unwrap();
    let explanation = family.explain();
    let changes = || explanation.levels.iter().flat_map(|level| &level.changes);
    assert!(changes().count() > 0 && changes().all(|change| change.ago_s < 3_600.0));
    parts.environment.advance_us(hours(2));
    let later = family.explain();
    let changes = || later.levels.iter().flat_map(|level| &level.changes);
    assert!(changes().all(|change| change.ago_s >= 7_200.0), "{later:#}");
    for text in [explanation.to_string(), format!("{explanation:#}")] {
        assert!(text.lines().all(|line| line.trim_end() == line), "{text}");
    }
}

#[test]
fn what_does_not_shrink_is_stored_as_it_is() {
    let parts = Parts::new(12);
    let db = open(&parts);
    let family = db.column_family("rows", options("auto")).unwrap();
    load(&family, 20_000, 2, |random| (0..25).flat_map(|_| random.next().to_le_bytes()).collect());
    db.wait_for_compaction().unwrap();
    let explanation = family.explain();
    println!("{explanation:#}");
    assert!(bottom(&explanation).chosen.starts_with("none "), "{explanation}");
}

#[test]
fn lookups_make_blocks_small() {
    let parts = Parts::new(13);
    let db = open(&parts);
    let family = db.column_family("rows", options("auto")).unwrap();
    load(&family, 20_000, 3, |random| text(random).into_bytes());
    db.wait_for_compaction().unwrap();
    println!("{:#}", family.explain());
    let size = |family: &ColumnFamily| -> u32 {
        let explanation = family.explain();
        let name = bottom(&explanation).chosen.clone();
        name.split(' ').next_back().unwrap().trim_end_matches('k').parse().unwrap()
    };
    let before = size(&family);
    let mut random = Random(4);
    for _ in 0..20 {
        for _ in 0..2_000 {
            let number = random.next() % 20_000;
            family.get(format!("key{number:08}").as_bytes()).unwrap();
        }
        parts.environment.advance_us(2_000_000);
        db.wait_for_compaction().unwrap();
    }
    println!("{:#}", family.explain());
    assert!(size(&family) < before, "{} {before}", size(&family));
}

#[test]
fn the_setting_survives_reopening_and_can_be_changed_back() {
    let parts = Parts::new(14);
    {
        let db = open(&parts);
        let family = db.column_family("rows", options("auto:endurance")).unwrap();
        load(&family, 5_000, 5, |random| text(random).into_bytes());
    }
    let explanations =
        lithify::inspect::read_explanations(&*parts.world().files, std::path::Path::new(PATH));
    assert_eq!(explanations.unwrap()[0].setting, "auto:endurance");
    let db = open(&parts);
    let families = db.column_family("rows", options("auto:endurance")).unwrap();
    let setting = families.options().compression;
    assert_eq!(setting, "auto:endurance".parse::<CompressionPolicy>().unwrap());
    let family = db.column_family("rows", options("none,lz4,zstd-1")).unwrap();
    db.wait_for_compaction().unwrap();
    assert!(family.explain().prices.is_none());
    assert_eq!(rows(&family).len(), rows(&families).len());
}

/// Tables record what they were decided from; whoever opens the database, or reads it while it is open,
/// knows it again.
#[test]
fn a_decision_is_known_again_from_tables() {
    let parts = Parts::new(15);
    let own = CfOptions { table_bytes: 1 << 20, ..options("auto:space") };
    let before = {
        let db = open(&parts);
        let family = db.column_family("rows", own.clone()).unwrap();
        load(&family, 20_000, 6, |random| random.bytes(300));
        db.wait_for_compaction().unwrap();
        let explained =
            lithify::inspect::read_explanations(&*parts.world().files, std::path::Path::new(PATH));
        let explained = explained.unwrap().remove(0);
        let (there, here) = (bottom(&explained).clone(), family.explain());
        assert_eq!(there.chosen, bottom(&here).chosen);
        assert!(!there.candidates.is_empty(), "{explained}");
        assert!(explained.to_json().contains("\"candidates\":[{"));
        bottom(&here).clone()
    };
    let db = open(&parts);
    let family = db.existing_column_family("rows").unwrap().unwrap();
    let explanation = family.explain();
    let after = bottom(&explanation);
    assert_eq!(after.chosen, before.chosen);
    assert!(!after.candidates.is_empty() && explanation.specimens > 0, "{explanation}");
}

/// What was observed of reads outlives the process, and a reader beside it sees it. Without the file, or
/// with a damaged one, everything works and reads are unknown.
#[test]
fn reads_are_known_again_from_the_file_beside_the_tables() {
    let parts = Parts::new(16);
    let own = CfOptions { table_bytes: 1 << 20, ..options("auto") };
    let loads = |explanation: &Explanation| {
        bottom(explanation).expected.and_then(|expected| expected.point_loads_per_mib_h)
    };
    let explain = || {
        let files = &*parts.world().files;
        let path = std::path::Path::new(PATH);
        lithify::inspect::read_explanations(files, path).unwrap().remove(0)
    };
    let (before, loaded) = {
        let db = open(&parts);
        let family = db.column_family("rows", own).unwrap();
        load(&family, 20_000, 7, |random| random.bytes(300));
        db.wait_for_compaction().unwrap();
        let mut random = Random(8);
        for _ in 0..12 {
            for _ in 0..2_000 {
                let number = random.next() % 20_000;
                family.get(format!("key{number:08}").as_bytes()).unwrap();
            }
            parts.environment.advance_us(2_000_000);
            db.wait_for_compaction().unwrap();
        }
        let before = family.explain();
        let seen = loads(&explain()).unwrap();
        assert!(seen > 0.2 * loads(&before).unwrap(), "{seen}");
        (before, rows(&family))
    };
    let near = |explanation: &Explanation| {
        let (now, then) = (loads(explanation).unwrap(), loads(&before).unwrap());
        assert!((now / then - 1.0).abs() < 0.2 && then > 0.0, "{now} {then}");
    };
    near(&explain());
    // It was decided anew for whoever looks, not changed.
    assert!(explain().levels.iter().all(|level| level.changes.is_empty()), "{:#}", explain());
    {
        let db = open(&parts);
        let family = db.existing_column_family("rows").unwrap().unwrap();
        near(&family.explain());
        assert_eq!(bottom(&family.explain()).chosen, bottom(&before).chosen);
    }
    let path = std::path::Path::new(PATH).join("HEAT");
    for damage in [&b"LITHEA2"[..], b"LITHEA2\nall of this is damage"] {
        let file = parts.world().files.open(&path, lithify::fs::OpenMode::ReadWrite).unwrap();
        file.write_at(&[std::io::IoSlice::new(damage)], 0).unwrap();
        if damage.len() < 8 {
            file.truncate(7).unwrap();
        }
        assert_eq!(loads(&explain()), None);
        assert!(explain().to_string().contains("unknown"), "{}", explain());
        let db = open(&parts);
        let family = db.existing_column_family("rows").unwrap().unwrap();
        assert!(rows(&family) == loaded, "rows are as they were");
    }
    parts.world().files.remove(&path).unwrap();
    assert_eq!(loads(&explain()), None);
}

/// The sizes of blocks that tables have, by the name that `explain` gives to what is stored.
fn stored_sizes(explanation: &Explanation) -> Vec<String> {
    let stored = explanation.levels.iter().flat_map(|level| &level.stored_as);
    stored.map(|(name, _)| name.split(' ').next_back().unwrap().to_owned()).collect()
}

#[test]
fn a_size_that_is_set_is_obeyed_from_then_on() {
    let parts = Parts::new(31);
    let db = open(&parts);
    let family = db.column_family("rows", options("auto:space")).unwrap();
    load(&family, 20_000, 1, |random| text(random).into_bytes());
    db.wait_for_compaction().unwrap();
    assert!(!stored_sizes(&family.explain()).contains(&"4k".to_owned()));
    let set = CfOptions { block_size_bytes: 4096, ..options("auto:space") };
    let family = db.column_family("rows", set).unwrap();
    for _ in 0..2 {
        family.compact_range(..).unwrap();
        db.wait_for_compaction().unwrap();
    }
    let explanation = family.explain();
    assert!(stored_sizes(&explanation).iter().all(|size| size == "4k"), "{explanation:#}");
}

#[test]
fn who_only_looks_decides_nothing() {
    let parts = Parts::new(32);
    let db = open(&parts);
    let family = db.column_family("rows", options("auto:space")).unwrap();
    load(&family, 20_000, 1, |random| text(random).into_bytes());
    db.wait_for_compaction().unwrap();
    let decided = |record: &str| record.lines().filter(|line| line.starts_with("had ")).count();
    let first = family.explain();
    let levels = first.levels.len();
    assert!(decided(&first.record) <= levels + 1, "level 0 may be empty: {}", first.record);
    for _ in 0..3 {
        drop((family.stats(), db.stats()));
        assert_eq!(family.explain().record, first.record);
    }
}

/// A family that decides, then has a codec that is set, then decides again: its tables have recorded what
/// was known.
#[test]
fn who_decides_again_knows_what_tables_recorded() {
    let parts = Parts::new(34);
    let own = |compression: &str| CfOptions { table_bytes: 1 << 20, ..options(compression) };
    let db = open(&parts);
    let family = db.column_family("rows", own("auto:space")).unwrap();
    load(&family, 20_000, 6, |random| random.bytes(300));
    db.wait_for_compaction().unwrap();
    assert!(family.explain().specimens > 0);
    db.column_family("rows", own("lz4")).unwrap();
    let family = db.column_family("rows", own("auto:space")).unwrap();
    let explanation = family.explain();
    assert!(explanation.specimens > 0, "{explanation:#}");
}
