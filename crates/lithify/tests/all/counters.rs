//! Every counter of the statistics' list is booked where it says, for the family that it concerns.

use crate::support::{PATH, Parts, Random, small_options};
use lithify::fs::FileCallKind;
use lithify::stats::{Cause, Counter, Derived, StatisticsSnapshot, TrafficFigure};
use lithify::{
    CfOptions, ColumnFamily, CompactionFilter, Db, Durability, EventListener, FilterDecision,
    MergeOperator, Options,
};
use std::collections::BTreeSet;
use std::io;
use std::sync::Barrier;

fn key(number: u64) -> Vec<u8> {
    format!("key{number:07}").into_bytes()
}

fn family_options() -> CfOptions {
    CfOptions {
        block_size_bytes: 1024,
        table_bytes: 64 << 10,
        base_level_bytes_max: 64 << 10,
        fanout: 4,
        prefix_length_bytes: 6,
        compression: "none".parse().unwrap(),
        ..CfOptions::default()
    }
}

fn open_with(parts: &Parts, options: CfOptions) -> (Db, ColumnFamily) {
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let family = db.column_family("rows", options).unwrap();
    (db, family)
}

fn open(parts: &Parts) -> (Db, ColumnFamily) {
    open_with(parts, family_options())
}

fn counter(db: &Db, counter: Counter) -> u64 {
    db.stats().figures.counter(counter)
}

fn scan(family: &ColumnFamily) -> u64 {
    let mut cursor = family.cursor(..).unwrap();
    let mut rows = 0;
    while cursor.next().unwrap() {
        rows += 1;
    }
    rows
}

/// Overwrites at random until levels below level 0 are over their targets.
fn many_writes() -> StatisticsSnapshot {
    let parts = Parts::new(1);
    let (db, family) = open(&parts);
    let mut random = Random(1);
    for _ in 0..12_000 {
        family.put(key(random.below(5_000)), random.bytes(100)).unwrap();
    }
    db.wait_for_compaction().unwrap();
    for number in 0..5_000 {
        family.contains([&key(number)[..], b"+"].concat()).unwrap();
    }
    family.get(key(1)).unwrap();
    family.multi_get(&[key(2), key(3)]).unwrap();
    db.stats()
}

/// Deletes of every kind, and scans over what they leave.
fn deletes() -> StatisticsSnapshot {
    let parts = Parts::new(2);
    let (db, family) = open(&parts);
    for number in 0..3_000 {
        family.put(key(number), [7; 100]).unwrap();
    }
    // The contract of single deletes is broken here.
    for number in 5_000..5_010 {
        family.put(key(number), b"first").unwrap();
        family.put(key(number), b"second").unwrap();
        family.single_delete(key(number)).unwrap();
    }
    family.compact_range(..).unwrap();
    let snapshot = db.snapshot();
    for number in 500..2_500 {
        family.delete(key(number)).unwrap();
    }
    family.delete_range(key(2_600), key(2_700)).unwrap();
    family.flush().unwrap();
    db.wait_for_compaction().unwrap();
    scan(&family);
    drop(snapshot);
    db.wait_for_compaction().unwrap();
    db.stats()
}

/// A snapshot that held obsolete versions in tables of the last level.
fn snapshot_release() -> StatisticsSnapshot {
    let parts = Parts::new(3);
    let (db, family) = open(&parts);
    let load = |value: u8| (0..2_000).for_each(|n| family.put(key(n), [value; 60]).unwrap());
    load(1);
    let snapshot = db.snapshot();
    load(2);
    family.compact_range(..).unwrap();
    db.wait_for_compaction().unwrap();
    drop(snapshot);
    db.wait_for_compaction().unwrap();
    db.stats()
}

/// A codec that changes, rows that no codec shrinks, rows that come in by bulk.
fn codecs_and_ingest() -> StatisticsSnapshot {
    let parts = Parts::new(4);
    let (db, family) = open(&parts);
    let mut ingest = family.ingest().unwrap();
    (0..2_000).for_each(|number| ingest.put(key(number), [9; 100]).unwrap());
    ingest.commit().unwrap();
    let lz4 = CfOptions { compression: "lz4".parse().unwrap(), ..family_options() };
    db.column_family("rows", lz4).unwrap();
    db.wait_for_compaction().unwrap();
    let mut random = Random(4);
    for number in 0..500 {
        let value: Vec<u8> = (0..100).map(|_| random.next() as u8).collect();
        family.put(key(number), value).unwrap();
    }
    family.flush().unwrap();
    db.stats()
}

/// Operands that reads fold, that compactions fold, and that nothing can fold.
fn merges() -> StatisticsSnapshot {
    let parts = Parts::new(9);
    let (db, family) = open_with(&parts, family_options());
    // The operator, once it is there, refuses such a value.
    family.put("text", "no number").unwrap();
    let options = CfOptions { merge_operator: MergeOperator::add(), ..family_options() };
    let family = db.column_family(family.name(), options).unwrap();
    family.merge("sum", 1_u64.to_le_bytes()).unwrap();
    family.merge("sum", 2_u64.to_le_bytes()).unwrap();
    family.merge("text", 1_u64.to_le_bytes()).unwrap();
    assert_eq!(family.get("sum").unwrap().unwrap(), 3_u64.to_le_bytes());
    family.compact_range(..).unwrap();
    db.stats()
}

/// Rows that are over, one by one and as whole tables, and rows that a filter lets go.
fn rows_that_go() -> StatisticsSnapshot {
    let parts = Parts::new(10);
    let (db, family) = open_with(&parts, CfOptions { time_to_live_s: 60, ..family_options() });
    family.put("early", "1").unwrap();
    parts.environment.advance_us(59_000_000);
    family.put("late", "2").unwrap();
    parts.environment.advance_us(2_000_000);
    family.compact_range(..).unwrap();
    parts.environment.advance_us(60_000_000);
    db.wait_for_compaction().unwrap();
    family.supply_compaction_filter(CompactionFilter::new("all", |_| Ok(FilterDecision::Remove)));
    family.put("filtered", "3").unwrap();
    family.compact_range(..).unwrap();
    db.stats()
}

/// A long scan of a cold table.
fn long_scan() -> StatisticsSnapshot {
    let parts = Parts::new(5);
    let options = Options { background_threads: 0, ..Options::default() };
    let cf_options = CfOptions { table_bytes: 16 << 20, ..family_options() };
    let open = || {
        let db = Db::open_in(PATH, options.clone(), parts.world()).unwrap();
        let family = db.column_family("rows", cf_options.clone()).unwrap();
        (db, family)
    };
    let (db, family) = open();
    for number in 0..20_000 {
        family.put(key(number), [3; 100]).unwrap();
    }
    family.flush().unwrap();
    db.close().unwrap();
    let (db, family) = open();
    scan(&family);
    db.stats()
}

/// Prefixes of which a table has one and not the other.
fn prefixes() -> StatisticsSnapshot {
    let parts = Parts::new(8);
    let (db, family) = open(&parts);
    family.put("red/1/one", b"1").unwrap();
    family.put("red/3/one", b"3").unwrap();
    family.compact_range(..).unwrap();
    assert!(family.prefix_cursor("red/1/").unwrap().next().unwrap());
    assert!(!family.prefix_cursor("red/2/").unwrap().next().unwrap());
    let checks = counter(&db, Counter::PrefixFilterChecks);
    assert_eq!((checks, counter(&db, Counter::PrefixFilterNegatives)), (2, 1));
    assert_eq!(counter(&db, Counter::FilterChecks), 0, "point reads are counted by themselves");
    db.stats()
}

/// Transactions that commit, roll back, wait, give up, and conflict; a commit that is synced.
fn transactions() -> StatisticsSnapshot {
    let parts = Parts::new(6);
    let (db, family) = open(&parts);
    let mut first = db.transaction();
    first.put(&family, b"a", b"1").unwrap();
    let mut second = db.transaction();
    second.set_lock_timeout_ms(1);
    second.put(&family, b"a", b"2").unwrap_err();
    first.commit().unwrap();
    drop(second);
    let mut third = db.transaction();
    third.set_snapshot();
    family.put(b"b", b"later").unwrap();
    third.get_for_update(&family, b"b").unwrap_err();
    let mut batch = db.batch();
    batch.put(&family, b"c", b"3");
    batch.commit_with(Durability::Sync).unwrap();
    drop(third);
    db.stats()
}

/// Two transactions that each want what the other one holds.
fn deadlock() -> StatisticsSnapshot {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path(), Options::default()).unwrap();
    let family = db.column_family("rows", CfOptions::default()).unwrap();
    let barrier = Barrier::new(2);
    std::thread::scope(|scope| {
        for [own, other] in [[b"a", b"b"], [b"b", b"a"]] {
            let (db, family, barrier) = (&db, &family, &barrier);
            scope.spawn(move || {
                let mut transaction = db.transaction();
                transaction.put(family, own, b"1").unwrap();
                barrier.wait();
                // One is refused, and its end lets the other one on.
                let _ = transaction.put(family, other, b"1");
            });
        }
    });
    db.stats()
}

/// Scans that pass tombstones until these sink. Rows that may expire have no dead ranges.
fn scans_of_dead_entries() -> StatisticsSnapshot {
    let parts = Parts::new(11);
    // In one memtable, and so in one table, which is not full of tombstones.
    let options = Options { background_threads: 0, ..Options::default() };
    let db = Db::open_in(PATH, options, parts.world()).unwrap();
    let options = CfOptions { time_to_live_s: 60, ..family_options() };
    let family = db.column_family("rows", options).unwrap();
    (0..1_000).for_each(|number| family.put(key(number), b"a row").unwrap());
    family.compact_range(..).unwrap();
    (0..900).for_each(|number| family.delete(key(number)).unwrap());
    (900..2_000).for_each(|number| family.put(key(number), b"a row").unwrap());
    family.flush().unwrap();
    for _ in 0..100 {
        assert_eq!(scan(&family), 1_100);
        db.wait_for_compaction().unwrap();
    }
    db.stats()
}

/// A flush that the disk refuses.
fn refusal() -> StatisticsSnapshot {
    let parts = Parts::new(7);
    let (db, family) = open(&parts);
    family.put(b"a", b"1").unwrap();
    parts.files.set_fault(Box::new(|call| {
        let is_table = call.path.extension().is_some_and(|extension| extension == "sst");
        let fails = is_table && call.kind == FileCallKind::Write;
        fails.then(|| io::Error::from_raw_os_error(5))
    }));
    family.flush().unwrap_err();
    db.stats()
}

/// A listener that panics at a flush.
fn listener_panic() -> StatisticsSnapshot {
    let parts = Parts::new(10);
    let event_listener = EventListener::new(|_| panic!("on purpose"));
    let options = Options { event_listener, ..small_options() };
    let db = Db::open_in(PATH, options, parts.world()).unwrap();
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    db.stats()
}

/// Whoever adds a counter adds here what moves it.
#[test]
fn every_counter_of_the_list_is_moved_by_work_that_must_move_it() {
    let workloads: [fn() -> StatisticsSnapshot; 13] = [
        many_writes,
        deletes,
        snapshot_release,
        codecs_and_ingest,
        merges,
        rows_that_go,
        long_scan,
        scans_of_dead_entries,
        prefixes,
        transactions,
        deadlock,
        refusal,
        listener_panic,
    ];
    let all: Vec<StatisticsSnapshot> = workloads.iter().map(|workload| workload()).collect();
    let never: BTreeSet<_> = Counter::ALL
        .iter()
        .filter(|counter| all.iter().all(|stats| stats.figures.counter(**counter) == 0))
        .map(|counter| counter.name())
        .collect();
    assert!(never.is_empty(), "no workload moves {never:?}");
    all.iter().for_each(check_sums);
}

/// What is counted by family adds up, and nothing else is.
fn check_sums(stats: &StatisticsSnapshot) {
    for wanted in Counter::ALL {
        let of_families = stats.families.iter().map(|family| family.figures.counter(*wanted));
        let expected = if wanted.is_of_family() { stats.figures.counter(*wanted) } else { 0 };
        assert_eq!(of_families.sum::<u64>(), expected, "{}", wanted.name());
    }
}

#[test]
fn filters_are_counted_by_what_they_said_and_by_what_was_there() {
    let parts = Parts::new(11);
    let (db, family) = open(&parts);
    for number in 0..400 {
        family.put(key(2 * number), [1; 20]).unwrap();
    }
    family.flush().unwrap();
    db.wait_for_compaction().unwrap();
    assert_eq!(family.stats().tables, 1);
    let said = || {
        let of = |wanted| counter(&db, wanted);
        (of(Counter::FilterChecks), of(Counter::FilterNegatives), of(Counter::FilterFalsePositives))
    };
    (0..400).for_each(|number| assert!(family.contains(key(2 * number)).unwrap()));
    assert_eq!(said(), (400, 0, 0), "a key that is there is let through");
    let keys: Vec<_> = (0..400).map(|number| key(2 * number)).collect();
    family.multi_get(&keys).unwrap();
    assert_eq!(said(), (800, 0, 0));
    (0..399).for_each(|number| assert!(!family.contains(key(2 * number + 1)).unwrap()));
    let (checks, negatives, wrong) = said();
    assert_eq!((checks, negatives + wrong), (1199, 399));
    assert!(wrong < 40, "{wrong}");
    let absent: Vec<_> = (0..399).map(|number| key(2 * number + 1)).collect();
    family.multi_get(&absent).unwrap();
    let (checks, negatives_of_both, wrong_of_both) = said();
    assert_eq!((checks, negatives_of_both, wrong_of_both), (1598, 2 * negatives, 2 * wrong));
    let stats = db.stats();
    let rate = stats.derived(Derived::FilterFalseRate).unwrap();
    assert_eq!(rate, wrong as f64 / 399.0);
    // Outside of every table's range no filter is asked.
    family.get(b"zzz").unwrap();
    assert_eq!(said().0, 1598);
}

#[test]
fn cursors_count_positionings_rows_and_dead_entries_both_ways() {
    let parts = Parts::new(12);
    let (db, family) = open(&parts);
    (0..1_000).for_each(|number| family.put(key(number), [1; 50]).unwrap());
    let counted = || {
        let of = |wanted| counter(&db, wanted);
        [of(Counter::Cursors), of(Counter::Seeks), of(Counter::Nexts), of(Counter::SkippedEntries)]
    };
    for is_flushed in [false, true] {
        if is_flushed {
            family.flush().unwrap();
        }
        let before = counted();
        assert_eq!(scan(&family), 1_000);
        let mut cursor = family.cursor(..).unwrap();
        let mut rows = 0;
        while cursor.prev().unwrap() {
            rows += 1;
        }
        assert_eq!(rows, 1_000);
        assert!(cursor.seek(key(500)).unwrap() && cursor.seek_for_prev(key(400)).unwrap());
        assert!(cursor.prev().unwrap() && cursor.next().unwrap());
        assert!(cursor.seek_for_prev(b"zzz").unwrap() && cursor.seek_to_last().unwrap());
        drop(cursor);
        let after = counted();
        let moved: Vec<_> =
            after.iter().zip(before).map(|(after, before)| after - before).collect();
        // A first move is a positioning; nothing that was passed was dead.
        assert_eq!(moved, [2, 2 + 4, 2_000 + 6, 0], "{is_flushed}");
    }
    (0..1_000).step_by(2).for_each(|number| family.delete(key(number)).unwrap());
    let before = counted()[3];
    assert_eq!(scan(&family), 500);
    assert_eq!(counted()[3] - before, 1_000, "500 tombstones and what they hide");
    let before = counted()[3];
    let mut cursor = family.cursor(..).unwrap();
    while cursor.prev().unwrap() {}
    drop(cursor);
    assert_eq!(counted()[3] - before, 1_000, "the same from the other end");
    let text = db.stats().to_string();
    let passed = "they passed 2,000 dead entries for 5,012 rows, 0.40 per row";
    assert!(text.contains(passed), "{text}");
}

/// Dead entries that a scan of all rows passes, forward and backward.
fn dead_both_ways(db: &Db, family: &ColumnFamily) -> [u64; 2] {
    let before = counter(db, Counter::SkippedEntries);
    scan(family);
    let between = counter(db, Counter::SkippedEntries);
    let mut cursor = family.cursor(..).unwrap();
    while cursor.prev().unwrap() {}
    drop(cursor);
    [between - before, counter(db, Counter::SkippedEntries) - between]
}

#[test]
fn what_a_folded_row_is_made_of_is_not_dead() {
    for is_flushed in [false, true] {
        let parts = Parts::new(15);
        let options = CfOptions { merge_operator: MergeOperator::add(), ..family_options() };
        let (db, family) = open_with(&parts, options);
        let flush = || {
            if is_flushed {
                family.flush().unwrap();
            }
        };
        let one = 1_u64.to_le_bytes();
        (0..10).for_each(|number| family.put(key(number), one).unwrap());
        flush();
        // A flush makes one operand of the two.
        (0..2).for_each(|_| (0..10).for_each(|number| family.merge(key(number), one).unwrap()));
        flush();
        assert_eq!(dead_both_ways(&db, &family), [0, 0], "{is_flushed}");
        family.put(key(0), one).unwrap();
        family.delete(key(1)).unwrap();
        family.delete_range(key(2), key(4)).unwrap();
        family.merge(key(3), one).unwrap();
        flush();
        let hidden = if is_flushed { 2 } else { 3 };
        assert_eq!(dead_both_ways(&db, &family), [4 * hidden + 1; 2], "{is_flushed}: 1 tombstone");
    }
}

#[test]
fn rows_that_live_until_they_expire_are_not_dead_before() {
    for is_flushed in [false, true] {
        let parts = Parts::new(16);
        let options = CfOptions { time_to_live_s: 60, ..family_options() };
        let (db, family) = open_with(&parts, options);
        let flush = || {
            if is_flushed {
                family.flush().unwrap();
            }
        };
        (0..10).for_each(|number| family.put(key(number), b"1").unwrap());
        flush();
        assert_eq!(dead_both_ways(&db, &family), [0, 0], "{is_flushed}");
        parts.environment.advance_us(50_000_000);
        family.put(key(0), b"2").unwrap();
        family.delete(key(1)).unwrap();
        family.delete_range(key(2), key(3)).unwrap();
        flush();
        let hidden = 1 + 2 + 1;
        assert_eq!(dead_both_ways(&db, &family), [hidden; 2], "{is_flushed}");
        parts.environment.advance_us(15_000_000);
        assert_eq!(dead_both_ways(&db, &family), [hidden + 7; 2], "{is_flushed}: 7 rows expired");
    }
}

#[test]
fn what_level_0_holds_below_its_trigger_is_not_pending() {
    let parts = Parts::new(17);
    let (db, family) = open(&parts);
    for _ in 0..2 {
        (0..100).for_each(|number| family.put(key(number), [1; 50]).unwrap());
        family.flush().unwrap();
    }
    db.wait_for_compaction().unwrap();
    let stats = db.stats();
    assert!(stats.levels[0].size_bytes > 0, "{stats}");
    assert_eq!(stats.pending_compaction_bytes, 0, "{stats}");
}

#[test]
fn a_scan_shows_while_it_goes_on() {
    let parts = Parts::new(13);
    let (db, family) = open(&parts);
    (0..5_000).for_each(|number| family.put(key(number), [1; 50]).unwrap());
    let mut cursor = family.cursor(..).unwrap();
    (0..5_000).for_each(|_| assert!(cursor.next().unwrap()));
    let shown = counter(&db, Counter::Nexts);
    assert!((4_500..=5_000).contains(&shown), "{shown}");
    drop(cursor);
    assert_eq!(counter(&db, Counter::Nexts), 5_000);
}

/// The blocks that scans read are theirs, those of gets are the lookups', those of conflict checks
/// the writers'.
#[test]
fn lookups_and_scans_are_booked_apart() {
    let parts = Parts::new(14);
    let (db, family) = open(&parts);
    (0..3_000).for_each(|number| family.put(key(number), [1; 100]).unwrap());
    family.compact_range(..).unwrap();
    db.close().unwrap();
    let (db, family) = open(&parts);
    let reads = || {
        let of = |cause| db.stats().figures.traffic_of_cause(cause, TrafficFigure::Reads);
        [of(Cause::UserLookup), of(Cause::UserScan), of(Cause::UserWrite)]
    };
    let mut transaction = db.transaction();
    transaction.set_snapshot();
    transaction.get_for_update(&family, [&key(2_500)[..], b"+"].concat()).unwrap();
    let [lookup, scan_reads, write] = reads();
    assert!(write > 0 && lookup == 0 && scan_reads == 0, "{lookup} {scan_reads} {write}");
    family.get(key(10)).unwrap();
    let [lookup, scan_reads, _] = reads();
    assert!(lookup > 0 && scan_reads == 0, "{lookup} {scan_reads}");
    assert_eq!(scan(&family), 3_000);
    let [lookup_now, scan_reads, _] = reads();
    assert!(lookup_now == lookup && scan_reads > 0, "{lookup_now} {lookup} {scan_reads}");
    let stats = db.stats();
    // The transaction's get is a lookup, too.
    let per_lookup = stats.derived(Derived::FileReadsPerLookup).unwrap();
    assert_eq!(per_lookup, lookup as f64 / 2.0);
    let per_row = stats.derived(Derived::FileReadsPerRow).unwrap();
    assert_eq!(per_row, scan_reads as f64 / 3_000.0);
}

#[test]
fn families_have_figures_of_their_own_that_add_up() {
    let parts = Parts::new(15);
    let (db, rows) = open(&parts);
    let lz4 = CfOptions { compression: "lz4".parse().unwrap(), ..family_options() };
    let links = db.column_family("links", lz4).unwrap();
    let dropped = db.column_family("dropped", family_options()).unwrap();
    for number in 0..2_000 {
        rows.put(key(number), [1; 100]).unwrap();
        links.put(key(number % 500), [2; 100]).unwrap();
        dropped.put(key(number), [3; 10]).unwrap();
    }
    (0..300).for_each(|number| links.delete(key(number)).unwrap());
    (0..7).for_each(|number| assert!(rows.contains(key(number)).unwrap()));
    scan(&links);
    for family in [&rows, &links] {
        family.compact_range(..).unwrap();
    }
    db.wait_for_compaction().unwrap();
    let stats = db.stats();
    check_sums(&stats);
    let (of_rows, of_links) = (rows.stats(), links.stats());
    let count = |stats: &lithify::stats::FamilyStatistics, wanted| stats.figures.counter(wanted);
    assert_eq!((count(&of_rows, Counter::Gets), count(&of_links, Counter::Gets)), (7, 0));
    assert_eq!((count(&of_rows, Counter::Deletes), count(&of_links, Counter::Deletes)), (0, 300));
    assert_eq!((count(&of_rows, Counter::Nexts), count(&of_links, Counter::Nexts)), (0, 200));
    // The tombstones, and of what they hide that which no flush has dropped.
    assert!(count(&of_links, Counter::SkippedEntries) >= 300);
    assert_eq!(of_rows.compression, "none,none,none");
    assert_eq!(of_links.compression, "lz4,lz4,lz4");
    let sum = |of: &dyn Fn(&lithify::stats::FamilyStatistics) -> u64| -> u64 {
        stats.families.iter().map(of).sum()
    };
    assert_eq!(sum(&|family| family.table_bytes), stats.table_bytes());
    for level in 0..stats.levels.len() {
        let files = sum(&|family| family.levels[level].files);
        assert_eq!(files, stats.levels[level].files, "level {level}");
        assert_eq!(stats.levels[level].compression, "by family");
    }
    assert!(of_links.derived(Derived::StoredToRaw).unwrap() < 0.9);
    assert!(of_rows.derived(Derived::WriteAmplificationTables).unwrap() > 0.9);
    let page = stats.to_string();
    let line = page.lines().find(|line| line.starts_with("links ")).expect("one line a family");
    assert!(line.contains(" 300 ") && line.ends_with("lz4,lz4,lz4"), "{line}");
    let gone = of_database_then_dropped(&db, dropped);
    assert_eq!(gone, stats.figures.counter(Counter::Puts), "a dropped family's work was done");
}

/// Drops a family, makes another one, and gives the puts of the database.
fn of_database_then_dropped(db: &Db, family: ColumnFamily) -> u64 {
    db.drop_column_family(family.name()).unwrap();
    drop(family);
    db.column_family("next", family_options()).unwrap();
    db.wait_for_compaction().unwrap();
    counter(db, Counter::Puts)
}
