//! The bytes that the ledger has booked against those that an independent file system counted, by
//! kind of file, over random work with flushes, compactions, crashes and reopening.

use crate::support::{PATH, Parts, Random, names_ending, small_options};
use lithify::backup::{BackupOptions, BackupStore};
use lithify::fs::{
    CountingFileSystem, CrashKeep, FileCounts, MemoryFileSystem, SystemEnvironment,
    TransferListener, TransferOptions, World,
};
use lithify::stats::{Cause, CpuPart, Derived, JobFigure, StatisticsSnapshot, TrafficFigure};
use lithify::verify::VerifyOptions;
use lithify::{
    CfOptions, CheckpointOptions, ColumnFamily, Db, Durability, ErrorKind, Options, TableTransfer,
    TableWriter,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

/// A counted disk.
struct Counted {
    memory: MemoryFileSystem,
    counting: CountingFileSystem,
    world: World,
}

impl Counted {
    fn new(memory: MemoryFileSystem, seed: u64) -> Counted {
        let parts = Parts::new(seed);
        let counting = CountingFileSystem::new(Arc::new(memory.clone()));
        let world = World { files: Arc::new(counting.clone()), ..parts.world() };
        Counted { memory, counting, world }
    }

    fn counts(&self) -> BTreeMap<String, FileCounts> {
        self.counting.all_counts()
    }
}

/// What was counted for files of a class since `before`.
fn since(
    counted: &Counted,
    before: &BTreeMap<String, FileCounts>,
    class: &str,
    of: impl Fn(&FileCounts) -> u64,
) -> u64 {
    let before = before.get(class).map_or(0, &of);
    counted.counts().get(class).map_or(0, &of) - before
}

fn booked(stats: &StatisticsSnapshot, figure: TrafficFigure, causes: &[Cause]) -> u64 {
    causes.iter().map(|cause| stats.figures.traffic_of_cause(*cause, figure)).sum()
}

/// Compares everything written and read since `before` with what the session's ledger says.
fn compare(counted: &Counted, before: &BTreeMap<String, FileCounts>, db: &Db, when: &str) {
    let stats = db.stats();
    let written = |class: &str| since(counted, before, class, |counts| counts.written_bytes);
    let booked_written = |causes: &[Cause]| booked(&stats, TrafficFigure::WrittenBytes, causes);
    let log = booked_written(&[Cause::Wal, Cause::Recovery]);
    assert_eq!(log, written("wal"), "{when}: log");
    let tables = booked_written(&[Cause::Flush, Cause::Compaction, Cause::Ingest]);
    assert_eq!(tables, written("sst"), "{when}: tables");
    let manifest = booked_written(&[Cause::Manifest]);
    let beside = written("tmp") + written("witness");
    assert_eq!(manifest, written("manifest") + beside, "{when}: manifests, CURRENT, WITNESS");
    let all: u64 = stats.figures.traffic_total(TrafficFigure::WrittenBytes);
    let reserved = booked_written(&[Cause::WalPreallocation]);
    assert_eq!(reserved, since(counted, before, "wal", |counts| counts.preallocated_bytes));
    assert_eq!(all, log + tables + manifest, "{when}: nothing else is written");

    let table_reads = [
        Cause::UserLookup,
        Cause::UserScan,
        // Conflict checks of transactions.
        Cause::UserWrite,
        Cause::Flush,
        Cause::Compaction,
        Cause::Recovery,
        Cause::Ingest,
        Cause::Verification,
    ];
    let read = since(counted, before, "sst", |counts| counts.read_bytes);
    let booked_read = booked(&stats, TrafficFigure::ReadBytes, &table_reads);
    assert_eq!(booked_read, read, "{when}: bytes read from tables");
    let reads = since(counted, before, "sst", |counts| counts.reads);
    assert_eq!(booked(&stats, TrafficFigure::Reads, &table_reads), reads, "{when}: reads");
    let syncs = since(counted, before, "wal", |counts| counts.syncs);
    let booked_syncs = stats.figures.counter(lithify::stats::Counter::WalSyncs);
    assert!(booked_syncs <= syncs, "{when}: {booked_syncs} syncs booked, {syncs} made");
}

fn options(random: &mut Random) -> Options {
    Options {
        durability: match random.below(4) {
            0 => Durability::Sync,
            1 => Durability::None,
            2 => Durability::Interval { milliseconds: 3 },
            _ => Durability::Buffered,
        },
        ..small_options()
    }
}

fn family_options(random: &mut Random) -> CfOptions {
    let codecs = ["none", "snappy", "lz4", "zlib-1", "zstd-1"];
    let mut codec = || codecs[random.below(codecs.len() as u64) as usize];
    CfOptions {
        compression: format!("{},{},{}", codec(), codec(), codec()).parse().unwrap(),
        block_size_bytes: 1024,
        table_bytes: 64 << 10,
        base_level_bytes_max: 64 << 10,
        fanout: 4,
        prefix_length_bytes: 4,
        ..CfOptions::default()
    }
}

fn key(random: &mut Random) -> Vec<u8> {
    format!("key{:05}", random.below(3000)).into_bytes()
}

fn work(db: &Db, families: &[ColumnFamily], random: &mut Random) {
    for _ in 0..600 {
        let family = &families[random.below(families.len() as u64) as usize];
        let key = key(random);
        match random.below(100) {
            0..=59 => family.put(&key, random.bytes(300)).unwrap(),
            60..=69 => family.delete(&key).unwrap(),
            70 => {
                let mut end = key.clone();
                end.push(b'x');
                family.delete_range(&key, &end).unwrap();
            }
            71..=84 => drop(family.get(&key).unwrap()),
            85..=89 => {
                let mut cursor = family.prefix_cursor(&key[..7]).unwrap();
                while cursor.next().unwrap() {}
            }
            90..=91 => {
                let mut cursor = family.cursor(&key[..]..).unwrap();
                for _ in 0..50 {
                    cursor.next().unwrap();
                }
                cursor.prev().unwrap();
            }
            92..=95 => {
                let mut transaction = db.transaction();
                transaction.set_snapshot();
                transaction.get_for_update(family, &key).unwrap();
                transaction.put(family, &key, b"new").unwrap();
                transaction.commit().unwrap();
            }
            96..=97 => {
                family.multi_get(&[&key, &key[..3].to_vec()]).unwrap();
            }
            98 => family.flush().unwrap(),
            _ => family.compact_range(&key..).unwrap(),
        }
    }
}

/// Ingests rows in key order, and a table file that nobody counted while it was written.
fn ingest(counted: &Counted, family: &ColumnFamily, random: &mut Random) {
    let keys: BTreeSet<_> = (0..200).map(|_| key(random)).collect();
    let mut rows = family.ingest().unwrap();
    keys.iter().for_each(|key| rows.put(key, random.bytes(300)).unwrap());
    rows.commit().unwrap();
    let path = format!("/rows{}.sst", random.next());
    let world = World { files: Arc::new(counted.memory.clone()), ..counted.world.clone() };
    let mut writer = TableWriter::create_in(&path, &family.options(), world).unwrap();
    keys.iter().for_each(|key| writer.put(key, b"again").unwrap());
    writer.finish().unwrap();
    let transfer = if random.below(2) == 0 { TableTransfer::Link } else { TableTransfer::Copy };
    family.ingest_tables(&[&path], transfer).unwrap();
}

#[test]
fn booked_bytes_are_those_of_the_files() {
    let mut recovered = 0;
    for seed in 0..6 {
        let random = &mut Random(seed);
        let mut counted = Counted::new(MemoryFileSystem::new(), seed);
        for session in 0..4 {
            let when = format!("seed {seed}, session {session}");
            let before = counted.counts();
            let db = Db::open_in(PATH, options(random), counted.world.clone()).unwrap();
            compare(&counted, &before, &db, &format!("{when}, opened"));
            let stats = db.stats();
            recovered += booked(&stats, TrafficFigure::WrittenBytes, &[Cause::Recovery]);
            let families: Vec<_> = ["a", "b"]
                .map(|name| db.column_family(name, family_options(random)).unwrap())
                .into();
            for round in 0..3 {
                work(&db, &families, random);
                ingest(&counted, &families[round % 2], random);
                compare(&counted, &before, &db, &format!("{when}, round {round}"));
            }
            db.wait_for_compaction().unwrap();
            compare(&counted, &before, &db, &format!("{when}, settled"));
            check_shape(&counted, &db);
            if random.below(2) == 0 {
                let files = counted.memory.crash_clone(seed, CrashKeep::Everything);
                drop((db, families));
                counted = Counted::new(files, seed + 100);
            } else {
                if db.options().durability == Durability::None {
                    // Without a log, closing would do this.
                    db.flush().unwrap();
                    db.wait_for_compaction().unwrap();
                    compare(&counted, &before, &db, &format!("{when}, flushed"));
                }
                let at_end = counted.counts();
                db.close().unwrap();
                let written = |counts: &FileCounts| counts.written_bytes;
                for class in ["wal", "sst"] {
                    assert_eq!(since(&counted, &at_end, class, written), 0, "{when}: a close");
                }
                assert!(since(&counted, &at_end, "manifest", written) > 0);
            }
        }
    }
    assert!(recovered > 0, "no log was ever made durable by writing it again");
}

/// The table of levels sums up to the same bytes, and to those of the files that are there.
fn check_shape(counted: &Counted, db: &Db) {
    let stats = db.stats();
    let of_jobs: u64 = (0..stats.levels.len())
        .map(|level| stats.figures.job(level, JobFigure::WrittenBytes))
        .sum();
    let causes = [Cause::Flush, Cause::Compaction, Cause::Ingest];
    assert_eq!(of_jobs, booked(&stats, TrafficFigure::WrittenBytes, &causes));
    let length = |name: &String| {
        let path = std::path::Path::new(PATH).join(name);
        lithify::fs::FileSystem::length(&counted.memory, &path).unwrap()
    };
    let on_disk: u64 = names_ending(&counted.memory, ".sst").iter().map(length).sum();
    assert_eq!(stats.table_bytes(), on_disk, "live tables are the tables on disk");
}

/// Bytes that a write amplification is made of are exact for a workload that can be counted by
/// hand: one flush of known rows.
#[test]
fn ingested_bytes_are_those_of_keys_and_values() {
    let counted = Counted::new(MemoryFileSystem::new(), 1);
    let db = Db::open_in(PATH, small_options(), counted.world.clone()).unwrap();
    let family = db.column_family("a", CfOptions::default()).unwrap();
    let mut batch = db.batch();
    for number in 0..100u32 {
        batch.put(&family, number.to_be_bytes(), [7; 46]);
    }
    batch.delete(&family, b"gone").delete_range(&family, b"from", b"to");
    batch.commit().unwrap();
    let counter = lithify::stats::Counter::IngestedBytes;
    assert_eq!(db.stats().figures.counter(counter), 100 * 50 + 4 + 6);
}

/// What copies and a verification read and write is theirs in the ledger, to the byte, and no write
/// amplification; that of one which was stopped too.
#[test]
fn copies_and_verification_have_causes_of_their_own() {
    let mut counted = Counted::new(MemoryFileSystem::new(), 1);
    counted.world.environment = Arc::new(SystemEnvironment);
    let db = Db::open_in(PATH, small_options(), counted.world.clone()).unwrap();
    let family = db.column_family("a", CfOptions::default()).unwrap();
    let random = &mut Random(1);
    for number in 0..400u32 {
        family.put(number.to_be_bytes(), random.bytes(300)).unwrap();
        if number == 300 {
            family.flush().unwrap();
        }
    }
    let amplification = db.stats().derived(Derived::WriteAmplificationTotal);
    let mut totals = BTreeMap::<Cause, FileCounts>::new();
    let mut expect = |cause: Cause, done: FileCounts| {
        let total = totals.entry(cause).or_default();
        *total = *total + done;
        let of = |figure| booked(&db.stats(), figure, &[cause]);
        assert_eq!(of(TrafficFigure::ReadBytes), total.read_bytes, "{cause:?}");
        assert_eq!(of(TrafficFigure::Reads), total.reads, "{cause:?}");
        assert_eq!(of(TrafficFigure::WrittenBytes), total.written_bytes, "{cause:?}");
        assert!(done.read_bytes > 0 && db.stats().figures.cpu_ns_of_cause(cause) > 0);
    };
    let counting = &counted.counting;

    for (name, tables) in [("/linked", TableTransfer::Link), ("/copied", TableTransfer::Copy)] {
        let before = counting.total();
        let options = CheckpointOptions { tables, ..CheckpointOptions::default() };
        let made = db.checkpoint_with(name, &options).unwrap();
        let done = counting.total() - before;
        assert_eq!(done.written_bytes, made.copied_bytes + made.log_bytes + made.manifest_bytes);
        expect(Cause::Copy, done);
    }
    let before = counting.total();
    let listener: &TransferListener<'_> = &|_| ControlFlow::Break(());
    let transfer = TransferOptions { listener: Some(listener), ..TransferOptions::default() };
    let options = CheckpointOptions { transfer, ..CheckpointOptions::default() };
    let error = db.checkpoint_with("/stopped", &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    expect(Cause::Copy, counting.total() - before);

    let in_store = CountingFileSystem::new(Arc::new(counted.memory.clone()));
    let world = World { files: Arc::new(in_store.clone()), ..counted.world.clone() };
    let mut store = BackupStore::open_in("/store", world).unwrap();
    for check_shared in [false, true] {
        let before = counting.total() + in_store.total();
        let options = BackupOptions { check_shared, ..BackupOptions::default() };
        store.create(&db, &options).unwrap();
        expect(Cause::Copy, counting.total() + in_store.total() - before);
    }
    assert_eq!(db.stats().derived(Derived::WriteAmplificationTotal), amplification);

    let before = counting.total();
    let report = db.verify(&VerifyOptions::default()).unwrap();
    assert!(report.is_sound());
    expect(Cause::Verification, counting.total() - before);
}

/// Set to anything, this makes the comparison of CPU time run. It takes some seconds of an
/// otherwise quiet machine, so it is no part of an ordinary run.
const LONG: &str = "LITHIFY_LONG_TESTS";

#[test]
fn booked_cpu_is_that_of_the_background_thread() {
    if std::env::var_os(LONG).is_none() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let options = Options { background_threads: 1, ..Options::default() };
    let db = Db::open(directory.path(), options).unwrap();
    let family = db.column_family("a", CfOptions::default()).unwrap();
    let random = &mut Random(1);
    for _ in 0..2_000_000 {
        family.put(random.next().to_be_bytes(), random.bytes(200)).unwrap();
    }
    db.wait_for_compaction().unwrap();
    let stats = db.stats();
    let causes = [Cause::Flush, Cause::Compaction, Cause::FileDeletion, Cause::Other];
    let booked_ns: u64 = causes
        .iter()
        .flat_map(|cause| CpuPart::ALL.iter().map(move |part| (*cause, *part)))
        .map(|(cause, part)| stats.figures.cpu_ns_of_part(cause, part))
        .sum();
    let measured_ns = cpu_ns_of_thread("lithify-0");
    let share = booked_ns as f64 / measured_ns as f64;
    println!("booked {booked_ns} ns of {measured_ns} ns: {share:.4}");
    assert!((0.98..=1.02).contains(&share), "booked {booked_ns} ns of {measured_ns} ns");
}

/// The CPU time that the system has counted for a thread of this process.
fn cpu_ns_of_thread(name: &str) -> u64 {
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let path = task.unwrap().path();
        if std::fs::read_to_string(path.join("comm")).unwrap().trim() == name {
            let text = std::fs::read_to_string(path.join("schedstat")).unwrap();
            return text.split(' ').next().unwrap().parse().unwrap();
        }
    }
    panic!("there is no thread {name}");
}
