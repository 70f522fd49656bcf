//! Loads in key order: written once, at the bottom, in its codec; everything else as ever.

use crate::support::{Model, PATH, Parts, Random, rows, small_options};
use lithify::stats::{Cause, Counter, JobFigure, StatisticsSnapshot, TrafficFigure};
use lithify::{CfOptions, ColumnFamily, Db};

const BOTTOM: usize = 6;

fn open(parts: &Parts) -> (Db, ColumnFamily) {
    let options = CfOptions {
        compression: "none,lz4,zstd-1".parse().unwrap(),
        table_bytes: 64 << 10,
        base_level_bytes_max: 64 << 10,
        fanout: 4,
        ..CfOptions::default()
    };
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let family = db.column_family("rocks", options).unwrap();
    (db, family)
}

fn key(number: u64) -> Vec<u8> {
    format!("rock{number:08}").into_bytes()
}

fn load(family: &ColumnFamily, model: &mut Model, numbers: impl Iterator<Item = u64>) {
    let mut random = Random(7);
    for number in numbers {
        let value = random.bytes(100);
        family.put(key(number), &value).unwrap();
        model.insert(key(number), value);
    }
}

fn written(stats: &StatisticsSnapshot, cause: Cause) -> u64 {
    stats.figures.traffic_of_cause(cause, TrafficFigure::WrittenBytes)
}

fn files_above_bottom(stats: &StatisticsSnapshot) -> u64 {
    stats.levels[..BOTTOM].iter().map(|level| level.files).sum()
}

#[test]
fn an_ascending_load_is_written_once_in_the_codec_of_the_bottom() {
    let parts = Parts::new(1);
    let (db, family) = open(&parts);
    let mut model = Model::new();
    load(&family, &mut model, 0..20_000);
    db.flush().unwrap();
    db.wait_for_compaction().unwrap();
    let stats = db.stats();
    // Every byte of a table that was ever written is live: the ledger and the files say so.
    assert_eq!(written(&stats, Cause::Flush), stats.table_bytes());
    assert_eq!(stats.table_bytes(), parts.bytes_ending(".sst"));
    assert_eq!(written(&stats, Cause::Compaction), 0);
    assert!(written(&stats, Cause::Flush) < stats.figures.counter(Counter::IngestedBytes));
    assert_eq!(files_above_bottom(&stats), 0);
    let jobs = stats.figures.job(BOTTOM, JobFigure::WrittenBytes);
    assert_eq!(jobs, stats.table_bytes(), "booked where it went");
    let bottom = &stats.levels[BOTTOM];
    assert!(bottom.files > 10);
    assert_eq!((bottom.codec_debt_files, bottom.compression.as_str()), (0, "zstd-1"));
    let zstd = lithify::codec::CodecId::Zstd as u8;
    let in_zstd = stats.figures.traffic(Cause::Flush, BOTTOM, zstd, TrafficFigure::WrittenBytes);
    assert_eq!(in_zstd, stats.table_bytes());
    assert_eq!(rows(&family), model);
    for number in (0..20_000).step_by(977) {
        let found = family.get(key(number)).unwrap();
        assert_eq!(found.as_deref(), model.get(&key(number)).map(Vec::as_slice));
    }
    drop(family);
    drop(db);
    let (_db, family) = open(&parts);
    assert_eq!(rows(&family), model);
}

#[test]
fn a_load_into_a_gap_goes_to_the_bottom_and_an_overlap_to_level_0() {
    let parts = Parts::new(2);
    let (db, family) = open(&parts);
    let mut model = Model::new();
    load(&family, &mut model, 0..100);
    family.flush().unwrap();
    load(&family, &mut model, 1000..1100);
    family.flush().unwrap();
    load(&family, &mut model, 500..600);
    family.flush().unwrap();
    assert_eq!((db.stats().levels[BOTTOM].files, files_above_bottom(&db.stats())), (3, 0));
    // One key of what is there, at either end.
    for overlap in [99..120, 480..501] {
        load(&family, &mut model, overlap);
        family.flush().unwrap();
    }
    assert_eq!((db.stats().levels[BOTTOM].files, db.stats().levels[0].files), (3, 2));
    assert_eq!(rows(&family), model);
    // A range delete reaches as far as it deletes.
    family.put(key(2000), b"alone").unwrap();
    family.delete_range(key(550), key(1050)).unwrap();
    family.flush().unwrap();
    assert_eq!(db.stats().levels[0].files, 3);
    model.insert(key(2000), b"alone".to_vec());
    (550..1050).for_each(|number| drop(model.remove(&key(number))));
    assert_eq!(rows(&family), model);
    family.compact_range(..).unwrap();
    assert_eq!(rows(&family), model);
}

#[test]
fn level_0_alone_is_merged_into_the_base_level() {
    let parts = Parts::new(4);
    let (db, family) = open(&parts);
    let mut model = Model::new();
    load(&family, &mut model, 0..3000);
    family.flush().unwrap();
    db.wait_for_compaction().unwrap();
    // Two runs wait in level 0 for more; memtables are flushed too.
    for number in [7, 1900] {
        family.put(key(number), b"newer").unwrap();
        model.insert(key(number), b"newer".to_vec());
        family.flush().unwrap();
    }
    family.put(key(2999), b"newest").unwrap();
    model.insert(key(2999), b"newest".to_vec());
    assert_eq!(db.stats().levels[0].files, 2);
    let below = |db: &Db| -> u64 { db.stats().levels[1..].iter().map(|level| level.files).sum() };
    assert!(below(&db) > 0);
    family.compact_level0().unwrap();
    assert_eq!(db.stats().levels[0].files, 0);
    assert_eq!(rows(&family), model);
    // Once more finds nothing to do.
    let written =
        db.stats().figures.traffic_of_cause(Cause::Compaction, TrafficFigure::WrittenBytes);
    family.compact_level0().unwrap();
    let again = db.stats().figures.traffic_of_cause(Cause::Compaction, TrafficFigure::WrittenBytes);
    assert_eq!(again, written);
    drop(family);
    drop(db);
    let (_db, family) = open(&parts);
    assert_eq!(rows(&family), model);
}

#[test]
fn snapshots_and_deletes_hold_at_the_bottom() {
    let parts = Parts::new(3);
    let (db, family) = open(&parts);
    let mut first = Model::new();
    // All of it fits one memtable.
    load(&family, &mut first, 0..60);
    let held = db.snapshot();
    let mut second = first.clone();
    load(&family, &mut second, 40..90);
    for number in 0..20 {
        family.delete(key(number)).unwrap();
        second.remove(&key(number));
    }
    family.delete_range(key(70), key(80)).unwrap();
    (70..80).for_each(|number| drop(second.remove(&key(number))));
    family.flush().unwrap();
    assert_eq!((db.stats().levels[BOTTOM].files, files_above_bottom(&db.stats())), (1, 0));
    let at_snapshot = || {
        let mut cursor = family.cursor_at(.., &held).unwrap();
        let mut rows = Model::new();
        while cursor.next().unwrap() {
            rows.insert(cursor.key().to_vec(), cursor.value().to_vec());
        }
        rows
    };
    assert_eq!((at_snapshot(), rows(&family)), (first, second.clone()));
    drop(held);
    db.wait_for_compaction().unwrap();
    family.compact_range(..).unwrap();
    assert_eq!(rows(&family), second);
    // Nothing but deletes, and nothing below: nothing is left to write.
    family.delete(key(5000)).unwrap();
    let before = written(&db.stats(), Cause::Flush);
    family.flush().unwrap();
    assert_eq!(written(&db.stats(), Cause::Flush), before);
    assert_eq!(rows(&family), second);
}
