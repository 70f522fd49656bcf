//! A real disk that is full: a small file system of its own, filled by the database, which must
//! answer with an error, lose nothing, and go on when there is space again, without a restart.
//!
//! The file system is mounted in a mount namespace of a child process and goes with it. Where that
//! is not allowed (it takes root), the tests say so and pass. The same over the file system in
//! memory, with every call failing in turn, is in `crates/lithify-sim`.

use lithify::{CfOptions, ColumnFamily, Db, Durability, ErrorKind, Options};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// The child finds the mounted directory in it.
const DIRECTORY: &str = "LITHIFY_FULL_DISK";

/// The shell's exit code where the file system cannot be mounted.
const CANNOT_MOUNT: i32 = 77;

/// How long the database may take to notice that there is space again.
const PATIENCE: Duration = Duration::from_secs(60);

/// Rows of a commit.
const BATCH_ROWS: u64 = 20;

const VALUE: [u8; 1000] = [7; 1000];

fn options(durability: Durability) -> Options {
    Options {
        durability,
        memory_budget_bytes: 8 << 20,
        memtable_bytes: 256 << 10,
        wal_bytes_max: 2 << 20,
        ..Options::default()
    }
}

fn open(directory: &Path, durability: Durability) -> (Db, ColumnFamily) {
    let db = Db::open(directory.join("db"), options(durability)).unwrap();
    let small = CfOptions {
        compression: "none".parse().unwrap(),
        table_bytes: 256 << 10,
        base_level_bytes_max: 1 << 20,
        ..CfOptions::default()
    };
    let family = db.column_family("rows", small).unwrap();
    (db, family)
}

fn key(row: u64) -> [u8; 8] {
    // Scattered, so that compactions have something to do.
    row.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// Commits the next rows together: a sync for each of them would take minutes.
fn put(db: &Db, family: &ColumnFamily, rows: &mut u64) -> lithify::Result<()> {
    let mut batch = db.batch();
    for row in *rows..*rows + BATCH_ROWS {
        batch.put(family, key(row), VALUE);
    }
    batch.commit()?;
    *rows += BATCH_ROWS;
    Ok(())
}

/// Puts rows until an error, which it gives.
fn fill(db: &Db, family: &ColumnFamily, rows: &mut u64) -> ErrorKind {
    loop {
        if let Err(error) = put(db, family, rows) {
            return error.kind();
        }
    }
}

fn assert_all_there(family: &ColumnFamily, rows: u64) {
    for row in 0..rows {
        let value = family.get(key(row)).unwrap();
        assert_eq!(value.as_deref(), Some(&VALUE[..]), "row {row} of {rows}");
    }
}

/// What happens on the small disk.
fn fill_and_clear(directory: &Path, durability: Durability) {
    let ballast = directory.join("ballast");
    std::fs::write(&ballast, vec![1; 6 << 20]).unwrap();
    let (db, family) = open(directory, durability);
    let mut rows = 0;
    assert_eq!(fill(&db, &family, &mut rows), ErrorKind::NoSpace);
    assert!(rows > 100, "only {rows} rows fitted");
    // Full stays full, and says so each time, at once.
    for _ in 0..10 {
        assert_eq!(fill(&db, &family, &mut rows), ErrorKind::NoSpace);
    }
    assert_all_there(&family, rows);
    std::fs::remove_file(&ballast).unwrap();
    let start = Instant::now();
    let goal = rows + 1000;
    while rows < goal {
        if let Err(error) = put(&db, &family, &mut rows) {
            assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
            assert!(start.elapsed() < PATIENCE, "still full: {error}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    assert_all_there(&family, rows);
    drop(family);
    db.close().unwrap();
    let (db, family) = open(directory, durability);
    assert_all_there(&family, rows);
    drop(family);
    db.close().unwrap();
    println!("{rows} rows");
}

/// The child's side: does nothing unless the parent started it.
#[test]
fn child() {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        let directory = PathBuf::from(directory);
        for durability in [Durability::Buffered, Durability::Sync] {
            fill_and_clear(&directory, durability);
            std::fs::remove_dir_all(directory.join("db")).unwrap();
        }
    }
}

/// Runs the child with a file system at `$1` that the shell command mounts.
fn run_mounted(mount: &str) -> Option<Output> {
    let place = tempfile::tempdir().unwrap();
    let script = format!(
        "{{ {mount}; }} >/dev/null 2>&1 || exit {CANNOT_MOUNT}; exec \"$2\" --exact full_disk::child --nocapture"
    );
    let directory = place.path().join("mounted");
    std::fs::create_dir(&directory).unwrap();
    let output = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", &script, "sh"])
        .arg(&directory)
        .arg(std::env::current_exe().unwrap())
        .env(DIRECTORY, &directory)
        .output();
    output.ok().filter(|output| {
        let code = output.status.code();
        // unshare itself fails with 1 and says so before the shell begins.
        let began = String::from_utf8_lossy(&output.stdout).contains("running 1 test");
        began || code != Some(CANNOT_MOUNT) && code != Some(1)
    })
}

#[track_caller]
fn check(name: &str, mount: &str) {
    let Some(output) = run_mounted(mount) else {
        eprintln!("skipped: no {name} can be mounted here (it takes root and a mount namespace)");
        return;
    };
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}", said(&output.stdout), said(&output.stderr));
    assert_eq!(said(&output.stdout).matches(" rows").count(), 2, "{}", said(&output.stdout));
}

#[test]
fn a_full_tmpfs_loses_nothing_and_goes_on_when_there_is_space() {
    check("tmpfs", "mount -t tmpfs -o size=24m none \"$1\"");
}

#[test]
fn a_full_ext4_loses_nothing_and_goes_on_when_there_is_space() {
    let image = "truncate -s 32M \"$1.image\" && mkfs.ext4 -q \"$1.image\"";
    check("ext4 on a loop device", &format!("{image} && mount -o loop \"$1.image\" \"$1\""));
}
