//! The ends of what formats can hold: what does not fit is refused or goes elsewhere, nothing that
//! was acknowledged is lost, and the database goes on.
//!
//! A case is one of two kinds.
//!
//! 1. A database has a few sequence numbers left. Commits of all kinds and sizes use them up: each
//!    succeeds if and only if its numbers are left. What a refused one wrote is not there, now or
//!    after the next opening.
//! 2. A memtable holds more long keys than the index of one table: the flush writes several.

use crate::check::{Check, Finding, Goal, Length, Tally};
use crate::random::Random;
use lithify::base::COMMIT_SEQUENCE_MAX;
use lithify::fs::{FileSystem, MemoryEnvironment, MemoryFileSystem, World};
use lithify::manifest::{Change, Manifest};
use lithify::{CfOptions, ColumnFamily, Db, Durability, ErrorKind, Options};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const PATH: &str = "/limits";
const FAMILY: &str = "rows";

/// One case of so many has long keys; they take a second and some memory.
const LONG_KEYS_AT: u64 = 1;
const ROUND: u64 = 16;

/// Sequence numbers that are left at most.
const LEFT_MAX: u64 = 60;

const KEYS: u64 = 30;
const KEY_BYTES_MAX: usize = 65_535;

/// Bytes of the largest index of a table.
const INDEX_BYTES_MAX: usize = 256 << 20;

/// The check; see the module.
pub struct Limits;

fn text(error: lithify::Error) -> String {
    error.to_string()
}

fn open(files: &MemoryFileSystem, options: &Options) -> Result<(Db, ColumnFamily), String> {
    let environment = Arc::new(MemoryEnvironment::new(1));
    let world = World { files: Arc::new(files.clone()), environment };
    let db = Db::open_in(PATH, options.clone(), world).map_err(text)?;
    let plain = CfOptions { compression: "none".parse().map_err(text)?, ..CfOptions::default() };
    let family = db.column_family(FAMILY, plain).map_err(text)?;
    Ok((db, family))
}

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn rows(family: &ColumnFamily) -> Result<Rows, String> {
    let mut cursor = family.cursor(..).map_err(text)?;
    let mut rows = Rows::new();
    while cursor.next().map_err(text)? {
        rows.insert(cursor.key().to_vec(), cursor.value().to_vec());
    }
    Ok(rows)
}

/// A database near the end of its sequence numbers, and what it must show.
struct Sequences {
    files: MemoryFileSystem,
    options: Options,
    random: Random,
    db: Db,
    family: ColumnFamily,
    rows: Rows,
    left: u64,
    refused: u64,
}

impl Sequences {
    fn new(case: u64) -> Result<Sequences, String> {
        let mut random = Random::new(case);
        let files = MemoryFileSystem::new();
        let durability = *random.pick(&[Durability::Buffered, Durability::Sync, Durability::None]);
        let options = Options {
            memory_budget_bytes: 4 << 20,
            memtable_bytes: 64 << 10,
            background_threads: 0,
            durability,
            ..Options::default()
        };
        let (db, _) = open(&files, &options)?;
        db.close().map_err(text)?;
        let left = random.below(LEFT_MAX);
        let disk: Arc<dyn FileSystem> = Arc::new(files.clone());
        let mut manifest = Manifest::open(disk, Path::new(PATH)).map_err(text)?.manifest;
        let last = Change::LastSequence(COMMIT_SEQUENCE_MAX - left);
        manifest.append(vec![last].into()).map_err(text)?;
        drop(manifest);
        let (db, family) = open(&files, &options)?;
        Ok(Sequences { files, options, random, db, family, rows: Rows::new(), left, refused: 0 })
    }

    fn key(&mut self) -> Vec<u8> {
        format!("key{:02}", self.random.below(KEYS)).into_bytes()
    }

    fn value(&mut self) -> Vec<u8> {
        self.random.next().to_le_bytes().to_vec()
    }

    /// A commit that takes so many numbers was answered so: whether it is there.
    fn answered(&mut self, numbers: u64, answer: lithify::Result<()>) -> Result<bool, String> {
        match answer.map_err(|error| error.kind()) {
            Ok(()) if numbers <= self.left => {
                self.left -= numbers;
                Ok(true)
            }
            Err(ErrorKind::LimitExceeded) if numbers > self.left => {
                self.refused += 1;
                Ok(false)
            }
            other => Err(format!("{numbers} numbers of {} are asked for: {other:?}", self.left)),
        }
    }

    fn put_rows(&mut self) -> Result<(), String> {
        let count = self.random.between(1, 9);
        let written: Vec<_> = (0..count).map(|_| (self.key(), self.value())).collect();
        let answer = match self.random.below(3) {
            0 => {
                let mut transaction = self.db.transaction();
                let mut puts = written.iter();
                let put =
                    puts.try_for_each(|(key, value)| transaction.put(&self.family, key, value));
                put.map_err(text)?;
                (count, transaction.commit())
            }
            1 => {
                let rows: Rows = written.iter().cloned().collect();
                let mut ingest = self.family.ingest().map_err(text)?;
                let put = rows.iter().try_for_each(|(key, value)| ingest.put(key, value));
                put.map_err(text)?;
                (1, ingest.commit().map(drop))
            }
            _ => {
                let mut batch = self.db.batch();
                for (key, value) in &written {
                    batch.put(&self.family, key, value);
                }
                (count, batch.commit())
            }
        };
        if self.answered(answer.0, answer.1)? {
            self.rows.extend(written);
        }
        Ok(())
    }

    fn delete(&mut self) -> Result<(), String> {
        let (one, other) = (self.key(), self.key());
        let (start, end) = if one <= other { (one, other) } else { (other, one) };
        let is_range = start < end && self.random.one_in(2);
        let answer = match is_range {
            true => self.family.delete_range(&start, &end),
            false => self.family.delete(&start),
        };
        if self.answered(1, answer)? {
            self.rows.retain(|key, _| match is_range {
                true => *key < start || *key >= end,
                false => *key != start,
            });
        }
        Ok(())
    }

    fn reopen(self) -> Result<Sequences, String> {
        let Sequences { files, options, random, db, family, rows, left, refused } = self;
        drop(family);
        db.close().map_err(text)?;
        let (db, family) = open(&files, &options)?;
        Ok(Sequences { files, options, random, db, family, rows, left, refused })
    }

    fn compare(&self) -> Result<(), String> {
        match rows(&self.family)? == self.rows {
            true => Ok(()),
            false => Err(format!("other rows than acknowledged, {} numbers left", self.left)),
        }
    }

    fn run(mut self, tally: &mut Tally) -> Result<(), String> {
        for _ in 0..LEFT_MAX {
            match self.random.below(12) {
                0 => self.family.flush().map_err(text)?,
                1 => self.family.compact_range(..).map_err(text)?,
                2 => self = self.reopen()?,
                3..=5 => self.delete()?,
                _ => self.put_rows()?,
            }
            self.compare()?;
        }
        tally.count("commits refused for want of sequence numbers", self.refused);
        self.reopen()?.compare()
    }
}

/// More long keys than the index of a table has room for, in one memtable.
fn long_keys(tally: &mut Tally) -> Result<(), String> {
    let options = Options {
        memory_budget_bytes: 4 << 30,
        memtable_bytes: 1 << 30,
        background_threads: 0,
        durability: Durability::None,
        ..Options::default()
    };
    let files = MemoryFileSystem::new();
    let (db, family) = open(&files, &options)?;
    let key = |number: u64| {
        let mut key = vec![b'k'; KEY_BYTES_MAX];
        key[KEY_BYTES_MAX - 8..].copy_from_slice(&number.to_be_bytes());
        key
    };
    let count = (INDEX_BYTES_MAX / KEY_BYTES_MAX) as u64 + 200;
    // What is below lets the flush write to level 0, where a table has no other end.
    for number in [0, count - 1] {
        family.put(key(number), b"older").map_err(text)?;
    }
    family.flush().map_err(text)?;
    for number in 0..count {
        family.put(key(number), number.to_be_bytes()).map_err(text)?;
    }
    family.flush().map_err(text)?;
    let tables = db.stats().levels.iter().map(|level| level.files).sum();
    let mut cursor = family.cursor(..).map_err(text)?;
    for number in 0..count {
        if !cursor.next().map_err(text)? || cursor.value() != number.to_be_bytes() {
            return Err(format!("row {number} of {count} with long keys is missing"));
        }
    }
    tally.count("tables of one flush of long keys", tables);
    family.put(b"and", b"on").map_err(text)
}

impl Check for Limits {
    fn name(&self) -> &'static str {
        "limits"
    }

    fn about(&self) -> &'static str {
        "at the ends of what formats hold writes are refused or split, and nothing is lost"
    }

    fn cases(&self) -> Option<u64> {
        None
    }

    fn goal(&self, length: Length) -> Goal {
        Goal::Cases(if length == Length::Short { ROUND } else { 100 * ROUND })
    }

    fn run_case(&self, case: u64, tally: &mut Tally) -> Result<(), Finding> {
        let found = match case % ROUND {
            LONG_KEYS_AT => long_keys(tally),
            _ => Sequences::new(case).and_then(|sequences| sequences.run(tally)),
        };
        found.map_err(|what| Finding::new(self, case, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::run_case;

    #[test]
    fn what_does_not_fit_is_refused_or_split() {
        let mut tally = Tally::default();
        for case in 0..8 {
            run_case(&Limits, case, &mut tally).unwrap();
        }
        assert!(tally.get("commits refused for want of sequence numbers") > 0);
        assert!(tally.get("tables of one flush of long keys") > 1);
    }
}
