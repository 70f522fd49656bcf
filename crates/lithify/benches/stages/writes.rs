//! Memtable, log, and the whole way of a commit.

use crate::measure::{Budget, Line, Samples, Settings, cpu_ns};
use crate::rows::Rows;
use crate::tables::{family, open};
use lithify::base::{Trailer, ValueKind};
use lithify::fs::{FileSystem, OpenMode, SystemFileSystem};
use lithify::memtable::MemTable;
use lithify::wal::{LogKind, SegmentOptions, WalWriter};
use lithify::{ColumnFamily, Compression, Db, Result};
use std::hint::black_box;
use std::io::IoSlice;
use std::path::Path;

/// Batches of one group in the log.
pub const GROUP: usize = 64;
/// Rows of one transaction.
const TRANSACTION_ROWS: usize = 3;
/// What an entry has in a record beside key and value: kind, family, two lengths.
pub const ENTRY_HEAD_SIZE: usize = 5;

pub fn print(settings: &Settings) -> Result<()> {
    let rows = Rows::shuffled(settings.rows, 3);
    if settings.wants("memtable insert") {
        memtable(settings, &rows).print();
    }
    for (stage, is_recycled) in
        [("wal record, new segment", false), ("wal record in a group", true)]
    {
        if settings.wants(stage) {
            wal(settings, &rows, stage, is_recycled)?.print();
        }
    }
    let ways: [(&str, usize, Commit); 3] = [
        ("commit of one put", 1, single_puts),
        ("commit of a batch of 64", 64, batches),
        ("commit of a tx of 3", TRANSACTION_ROWS, transactions),
    ];
    for (stage, rows_per_commit, commit) in ways {
        if settings.wants(stage) {
            commits(settings, &rows, (stage, rows_per_commit), commit)?.print();
        }
    }
    Ok(())
}

fn memtable(settings: &Settings, rows: &Rows) -> Line {
    let mut total = Samples::default();
    for _ in 0..settings.repeats {
        let memtable = MemTable::new();
        let (ns, ()) = cpu_ns(|| {
            let mut writer = memtable.writer();
            for (index, (key, value)) in rows.iter().enumerate() {
                writer.insert(&key, Trailer::new(1 + index as u64, ValueKind::Put), value);
            }
        });
        black_box(&memtable);
        total.add(ns, rows.len());
    }
    Line {
        stage: "memtable insert".to_string(),
        rows: rows.len(),
        total,
        file_ns: None,
        codec: None,
        budget: Budget::Total(700.0),
    }
}

/// The first segment is new, each later one overwrites the one before, as in a database that has
/// been running for a while.
pub fn segment(files: &dyn FileSystem, directory: &Path, log_number: u64) -> Result<WalWriter> {
    let options = SegmentOptions {
        kind: LogKind::Wal,
        database_id: 1,
        log_number,
        previous: None,
        preallocate_bytes: 0,
    };
    let path_of = |number: u64| directory.join(format!("{number:06}.wal"));
    let recycled = (log_number > 1).then(|| path_of(log_number - 1));
    WalWriter::create(files, &path_of(log_number), options, recycled.as_deref())
}

/// Appends groups of 64 batches of one put each, already encoded; finishing the segment, which
/// syncs it, is not in the figure.
fn wal(settings: &Settings, rows: &Rows, stage: &str, is_recycled: bool) -> Result<Line> {
    let head = [0; 12];
    let entries: Vec<Vec<u8>> =
        rows.iter().map(|(key, value)| [&[1; ENTRY_HEAD_SIZE], &key[..], value].concat()).collect();
    let groups: Vec<Vec<IoSlice<'_>>> = entries
        .chunks(GROUP)
        .map(|group| {
            let batches = group.iter().map(|entry| IoSlice::new(entry));
            std::iter::once(IoSlice::new(&head)).chain(batches).collect()
        })
        .collect();
    let directory = settings.scratch()?;
    let (mut total, mut files) = (Samples::default(), Samples::default());
    let plain: Vec<u8> = groups.iter().flatten().flat_map(|piece| piece.iter().copied()).collect();
    let group_size = plain.len().div_ceil(groups.len());
    let plain: Vec<_> = plain.chunks(group_size).map(|group| vec![IoSlice::new(group)]).collect();
    for repeat in 0..=settings.repeats as u64 {
        let mut log = segment(&SystemFileSystem, directory.path(), 1 + repeat)?;
        let append = |group: &Vec<IoSlice<'_>>| log.append(group).map(|_| ());
        let (ns, result) = cpu_ns(|| groups.iter().try_for_each(append));
        result?;
        log.finish()?;
        let file_ns = write_ns(directory.path(), &plain)?;
        // A new file costs the system its pages; the log recycles its segments.
        if is_recycled == (repeat > 0) {
            total.add(ns, rows.len());
            files.add(file_ns, rows.len());
        }
    }
    Ok(Line {
        stage: stage.to_string(),
        rows: rows.len(),
        total,
        file_ns: Some(files.least()),
        codec: None,
        budget: Budget::Total(150.0),
    })
}

/// What the file system takes for the same bytes in the same number of calls: in a new file the
/// first time, over what is there the next.
fn write_ns(directory: &Path, groups: &[Vec<IoSlice<'_>>]) -> Result<f64> {
    let path = directory.join("plain");
    let is_there = SystemFileSystem.exists(&path)?;
    let mode = if is_there { OpenMode::ReadWrite } else { OpenMode::CreateNew };
    let file = SystemFileSystem.open(&path, mode)?;
    let (ns, result) = cpu_ns(|| {
        let mut offset = 0;
        groups.iter().try_for_each(|group| {
            let result = file.write_at(group, offset);
            offset += group.iter().map(|piece| piece.len() as u64).sum::<u64>();
            result
        })
    });
    result.map(|()| ns)
}

/// Commits all rows in one way.
type Commit = fn(&Db, &ColumnFamily, &Rows) -> Result<()>;

pub fn single_puts(_: &Db, family: &ColumnFamily, rows: &Rows) -> Result<()> {
    rows.iter().try_for_each(|(key, value)| family.put(key, value))
}

pub fn batches(db: &Db, family: &ColumnFamily, rows: &Rows) -> Result<()> {
    let mut batch = db.batch();
    for (key, value) in rows.iter() {
        batch.put(family, key, value);
        if batch.len() == GROUP {
            std::mem::replace(&mut batch, db.batch()).commit()?;
        }
    }
    batch.commit()
}

fn transactions(db: &Db, family: &ColumnFamily, rows: &Rows) -> Result<()> {
    let mut transaction = db.transaction();
    for (index, (key, value)) in rows.iter().enumerate() {
        transaction.put(family, key, value)?;
        if (index + 1) % TRANSACTION_ROWS == 0 {
            std::mem::replace(&mut transaction, db.transaction()).commit()?;
        }
    }
    transaction.commit()
}

/// The whole way of a put, from the call to its return, with nothing flushed meanwhile.
fn commits(
    settings: &Settings,
    rows: &Rows,
    (stage, rows_per_commit): (&str, usize),
    commit: Commit,
) -> Result<Line> {
    let record = vec![1; (ENTRY_HEAD_SIZE + 200) * rows_per_commit];
    let record = vec![vec![IoSlice::new(&record)]; rows.len() / rows_per_commit];
    let (mut total, mut files) = (Samples::default(), Samples::default());
    for _ in 0..settings.repeats {
        let directory = settings.scratch()?;
        let db = open(directory.path())?;
        let family = family(&db, Compression::NONE)?;
        let (ns, result) = cpu_ns(|| commit(&db, &family, rows));
        result?;
        total.add(ns, rows.len());
        files.add(write_ns(directory.path(), &record)?, rows.len());
    }
    Ok(Line {
        stage: stage.to_string(),
        rows: rows.len(),
        total,
        file_ns: Some(files.least()),
        codec: None,
        budget: Budget::None,
    })
}
