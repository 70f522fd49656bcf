//! Databases that share threads and memory.

use crate::support::Random;
use lithify::fs::{FileCallKind, MemoryFileSystem, SystemEnvironment, World};
use lithify::{CfOptions, ColumnFamily, Db, Durability, ErrorKind, Options, Resources};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const DATABASES: usize = 20;
const BUDGET_BYTES: usize = 16 << 20;

/// One test at a time: threads are counted in the whole process.
fn alone() -> MutexGuard<'static, ()> {
    static TESTS: Mutex<()> = Mutex::new(());
    TESTS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn options() -> Options {
    Options { memtable_bytes: 1 << 20, ..Options::default() }
}

/// Threads that several databases share.
fn shared_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok());
    names.filter(|name| name.starts_with("lithify-shared")).count()
}

/// Waits for threads that are ending.
fn wait_for_no_threads() {
    for _ in 0..200 {
        if shared_threads() == 0 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{} threads are left", shared_threads());
}

fn open(path: &Path, options: Options, resources: &Resources) -> (Db, ColumnFamily) {
    let db = Db::open_shared(path, options, resources).unwrap();
    let family = db.column_family("rows", CfOptions::default()).unwrap();
    (db, family)
}

/// Rows of a database and a round, with values that no other has.
fn put(family: &ColumnFamily, database: usize, round: u64, rows: u64) {
    let mut random = Random(database as u64 * 1_000 + round);
    for row in 0..rows {
        let value = random.bytes(400);
        family.put(format!("{database}-{row:06}").as_bytes(), &value).unwrap();
    }
}

fn check(family: &ColumnFamily, database: usize, round: u64, rows: u64) {
    let mut random = Random(database as u64 * 1_000 + round);
    for row in 0..rows {
        let expected = random.bytes(400);
        let found = family.get(format!("{database}-{row:06}").as_bytes()).unwrap();
        assert_eq!(found.as_deref(), Some(&expected[..]), "{database} {row}");
    }
}

#[test]
fn twenty_databases_share_threads_and_memory_and_close_in_any_order() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let resources = Resources::new(BUDGET_BYTES, 2).unwrap();
    let path = |database: usize| directory.path().join(format!("db{database}"));
    // Some have their log synced at intervals.
    let options_of = |database: usize| Options {
        durability: match database % 2 {
            0 => Durability::Interval { milliseconds: 20 },
            _ => Durability::Buffered,
        },
        ..options()
    };
    let open_one = |database| open(&path(database), options_of(database), &resources);
    let mut databases: Vec<_> = (0..DATABASES).map(|database| Some(open_one(database))).collect();
    assert_eq!(shared_threads(), 3, "two that work, one that syncs");
    const ROWS: u64 = 6_000;
    for round in 0..3 {
        std::thread::scope(|scope| {
            for part in 0..4 {
                let databases = &databases;
                scope.spawn(move || {
                    for database in (part..DATABASES).step_by(4) {
                        let (_, family) = databases[database].as_ref().unwrap();
                        put(family, database, round, ROWS);
                    }
                });
            }
            for _ in 0..100 {
                let used = resources.memory_used_bytes();
                // Each database may have one merge under way, which takes up to 0.9 MB of buffers here
                // whatever the budget.
                assert!(used <= BUDGET_BYTES * 2, "{used} of {BUDGET_BYTES}");
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
        });
        for (database, one) in databases.iter().enumerate() {
            let (db, family) = one.as_ref().unwrap();
            check(family, database, round, ROWS);
            assert_eq!(db.options().memory_budget_bytes, BUDGET_BYTES);
        }
        // Each is closed at another place in the order than it was opened.
        let mut random = Random(round);
        for _ in 0..DATABASES {
            let database = random.below(DATABASES as u64) as usize;
            if let Some((db, _)) = databases[database].take() {
                db.close().unwrap();
            }
        }
        for (database, one) in databases.iter_mut().enumerate() {
            let (_, family) = one.get_or_insert_with(|| open_one(database));
            check(family, database, round, ROWS);
        }
        assert_eq!(shared_threads(), 3);
    }
    drop(resources);
    assert_eq!(shared_threads(), 3, "the databases still need them");
    databases.into_iter().flatten().for_each(|(db, _)| db.close().unwrap());
    wait_for_no_threads();
}

#[test]
fn a_failing_disk_is_the_failure_of_one_database() {
    let _alone = alone();
    let resources = Resources::new(BUDGET_BYTES, 2).unwrap();
    let world = || {
        let files = MemoryFileSystem::new();
        let environment = Arc::new(SystemEnvironment);
        (files.clone(), World { files: Arc::new(files), environment })
    };
    let open = |world: World| {
        let db = Db::open_shared_in("/db", options(), world, &resources).unwrap();
        let family = db.column_family("rows", CfOptions::default()).unwrap();
        (db, family)
    };
    let (files, broken_world) = world();
    let (broken, broken_family) = open(broken_world);
    let sound: Vec<_> = (0..3).map(|_| open(world().1)).collect();
    let fails = Arc::new(AtomicBool::new(true));
    let switch = Arc::clone(&fails);
    files.set_fault(Box::new(move |call| {
        let is_write = matches!(call.kind, FileCallKind::Write | FileCallKind::SyncData);
        (switch.load(Ordering::SeqCst) && is_write).then(|| io::Error::from_raw_os_error(5))
    }));
    let failed = broken_family.put(b"key", b"value").unwrap_err();
    assert!(matches!(failed.kind(), ErrorKind::Io | ErrorKind::Poisoned), "{failed}");
    for (database, (db, family)) in sound.iter().enumerate() {
        put(family, database, 0, 10_000);
        db.flush().unwrap();
        db.wait_for_compaction().unwrap();
        check(family, database, 0, 10_000);
    }
    assert!(broken.close().is_err());
    for (database, (db, family)) in sound.into_iter().enumerate() {
        put(&family, database, 1, 2_000);
        check(&family, database, 1, 2_000);
        db.close().unwrap();
    }
    drop((broken_family, resources));
    wait_for_no_threads();
}

#[test]
fn tables_that_cannot_be_written_hold_up_no_other_database() {
    let _alone = alone();
    let resources = Resources::new(4 << 20, 1).unwrap();
    let files = MemoryFileSystem::new();
    files.set_fault(Box::new(|call| {
        let is_table = call.path.extension().is_some_and(|end| end == "sst");
        (is_table && call.kind == FileCallKind::Write).then(|| io::Error::from_raw_os_error(5))
    }));
    let options = Options { memtable_bytes: 256 << 10, ..options() };
    let open = |files: MemoryFileSystem| {
        let world = World { files: Arc::new(files), environment: Arc::new(SystemEnvironment) };
        let db = Db::open_shared_in("/db", options.clone(), world, &resources).unwrap();
        let family = db.column_family("rows", CfOptions::default()).unwrap();
        (db, family)
    };
    let (_stuck, stuck_family) = open(files);
    // Until its memory is full of what cannot be flushed.
    let refused =
        (0..100_000_u32).find_map(|number| stuck_family.put(number.to_be_bytes(), [7; 400]).err());
    assert!(refused.is_some());
    let (sound, family) = open(MemoryFileSystem::new());
    put(&family, 1, 0, 20_000);
    sound.wait_for_compaction().unwrap();
    check(&family, 1, 0, 20_000);
    sound.close().unwrap();
}

#[test]
fn resources_out_of_range_are_refused() {
    for (bytes, threads) in [(1_000, 2), (1 << 30, 0), (1 << 30, 65)] {
        let error = Resources::new(bytes, threads).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
}
