//! One life of a database: from an opening to a cut, with random calls in between, each noted in
//! the history before it is made and acknowledged after it.

use crate::cut::Cut;
use crate::history::{Change, Event, FAMILIES, History, Rows, row_hash};
use crate::random::Random;
use lithify::base::Clock;
use lithify::fs::{FileSystem, MemoryEnvironment, MemoryFileSystem, World};
use lithify::{
    CfOptions, CodecPolicy, ColumnFamily, Db, Durability, Options, Result, TableTransfer,
    TableWriter,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Two levels deep, so that a new directory's parent is new too.
pub const DIRECTORY: &str = "data/base";

/// Keys under this prefix are put, deleted and range deleted; the others, put once at a time, are
/// removed by single delete only.
const KEY_COUNT: u64 = 60;
const SINGLE_KEY_COUNT: u64 = 12;

pub fn durability(random: &mut Random) -> Durability {
    match random.below(4) {
        0 => Durability::Sync,
        1 => Durability::Buffered,
        2 => Durability::Interval { milliseconds: 1 + random.below(9) as u32 },
        _ => Durability::None,
    }
}

fn family_options(random: &mut Random) -> CfOptions {
    let codec = |random: &mut Random| *random.pick(&["none", "snappy", "lz4", "zstd-1"]);
    let policy = format!("{},{},{}", codec(random), codec(random), codec(random));
    CfOptions {
        compression: policy.parse::<CodecPolicy>().unwrap(),
        block_size_bytes: 512 << random.below(4),
        table_bytes: 64 << 10,
        base_level_bytes_max: 64 << 10,
        fanout: 2 + random.below(3) as u32,
        ..CfOptions::default()
    }
}

pub fn open(
    files: &MemoryFileSystem,
    environment: &MemoryEnvironment,
    durability: Durability,
) -> Result<Db> {
    let options = Options {
        memory_budget_bytes: 1 << 20,
        memtable_bytes: 64 << 10,
        wal_bytes_max: 256 << 10,
        background_threads: 0,
        durability,
        ..Options::default()
    };
    let (files, environment) = (Arc::new(files.clone()), Arc::new(environment.clone()));
    Db::open_in(DIRECTORY, options, World { files, environment })
}

type Handles = [Option<ColumnFamily>; FAMILIES.len()];

pub fn handles(db: &Db) -> Handles {
    FAMILIES.map(|name| db.existing_column_family(name).unwrap())
}

/// The sum of the row hashes of each family, by a scan.
pub fn hashes(handles: &Handles) -> Result<[Option<u64>; FAMILIES.len()]> {
    let mut hashes = [None; FAMILIES.len()];
    for (hash, family) in hashes.iter_mut().zip(handles) {
        let Some(family) = family else { continue };
        let mut sum = 0_u64;
        let mut rows = family.cursor(..)?;
        while rows.next()? {
            sum = sum.wrapping_add(row_hash(rows.key(), rows.value()));
        }
        *hash = Some(sum);
    }
    Ok(hashes)
}

pub struct Life<'a> {
    pub db: Option<Db>,
    families: Handles,
    pub files: &'a MemoryFileSystem,
    pub environment: &'a MemoryEnvironment,
    pub durability: Durability,
    pub history: &'a mut History,
    random: &'a mut Random,
}

impl<'a> Life<'a> {
    pub fn new(
        db: Db,
        files: &'a MemoryFileSystem,
        environment: &'a MemoryEnvironment,
        history: &'a mut History,
        random: &'a mut Random,
    ) -> Self {
        let families = handles(&db);
        let durability = db.options().durability;
        history.is_logless = durability == Durability::None;
        Life { db: Some(db), families, files, environment, durability, history, random }
    }

    /// Random calls until the cut, or until there were so many; an error only by the cut.
    pub fn run(&mut self, calls: u64, cut: &Cut) -> Result<()> {
        for _ in 0..calls {
            let result = self.call(cut);
            if cut.has_happened() {
                return Ok(());
            }
            result?;
            self.environment.advance_us(self.random.below(1500));
        }
        Ok(())
    }

    fn db(&self) -> &Db {
        self.db.as_ref().unwrap()
    }

    fn call(&mut self, cut: &Cut) -> Result<()> {
        let Some(family) = self.any_family() else { return self.create_or_drop(cut) };
        let handle = self.families[family].clone().unwrap();
        match self.random.below(100) {
            0..=44 => self.write_one(family, &handle, cut),
            45..=62 => self.write_batch(cut),
            63..=64 => self.ingest(family, &handle, cut),
            65..=72 => self.transact(cut),
            73..=76 if self.durability != Durability::None => {
                let result = self.db().sync();
                self.promised(cut, result, History::all_durable)
            }
            73..=80 => {
                let result = handle.flush();
                self.promised(cut, result, |history| history.family_durable(family))
            }
            81..=82 => {
                let result = self.db().flush();
                self.promised(cut, result, History::all_durable)
            }
            83..=84 => {
                let (start, end) = self.range();
                let is_whole = self.random.one_in(2);
                let bounds = (!is_whole).then_some((&start[..], &end[..]));
                handle.compact_range(bounds.map(|b| b.0), bounds.map(|b| b.1))
            }
            85..=87 => self.db().wait_for_compaction(),
            88..=91 => self.create_or_drop(cut),
            92 => self.reopen(cut),
            _ => self.check_visible(family, &handle),
        }
    }

    fn promised(
        &mut self,
        cut: &Cut,
        result: Result<()>,
        promise: impl FnOnce(&mut History),
    ) -> Result<()> {
        if result.is_ok() && !cut.has_happened() {
            promise(self.history);
        }
        result
    }

    /// Notes what a write's acknowledgement promises.
    fn written(&mut self, cut: &Cut, result: Result<()>, durability: Durability) -> Result<()> {
        let now_us = self.environment.now_us();
        self.promised(cut, result, |history| {
            history.acknowledge(now_us);
            match durability {
                Durability::Sync => history.all_durable(),
                Durability::Interval { milliseconds } => {
                    let period_us = u64::from(milliseconds) * 1000;
                    if let Some(through_us) = now_us.checked_sub(period_us) {
                        history.durable_through_us(through_us);
                    }
                }
                Durability::Buffered | Durability::None => {}
            }
        })
    }

    fn any_family(&mut self) -> Option<usize> {
        let present: Vec<usize> =
            (0..FAMILIES.len()).filter(|index| self.families[*index].is_some()).collect();
        (!present.is_empty()).then(|| *self.random.pick(&present))
    }

    fn key(&mut self) -> Vec<u8> {
        let number = self.random.below(KEY_COUNT);
        let mut key = format!("key{:02}", number / 3).into_bytes();
        key.extend(std::iter::repeat_n(b'x', (number % 3) as usize));
        key
    }

    fn range(&mut self) -> (Vec<u8>, Vec<u8>) {
        let (one, other) = (self.key(), self.key());
        if one <= other { (one, other) } else { (other, one) }
    }

    fn value(&mut self) -> Vec<u8> {
        let length = match self.random.below(20) {
            0 => 0,
            1 => self.random.below(20_000),
            2..=5 => self.random.below(2_000),
            _ => self.random.below(80),
        };
        let seed = self.random.next();
        (0..length).map(|i| (seed >> (i % 56)) as u8).collect()
    }

    fn write_one(&mut self, family: usize, handle: &ColumnFamily, cut: &Cut) -> Result<()> {
        let change = match self.random.below(100) {
            0..=64 => Change::Put(self.key(), self.value()),
            65..=84 => Change::Remove(self.key()),
            85..=90 => {
                let (start, end) = self.range();
                Change::RemoveRange(start, end)
            }
            _ => self.single(family),
        };
        self.history.begin(Event::Write(vec![(family, change.clone())]));
        let result = match &change {
            Change::Put(key, value) => handle.put(key, value),
            Change::Remove(key) if is_single(key) => handle.single_delete(key),
            Change::Remove(key) => handle.delete(key),
            Change::RemoveRange(start, end) => handle.delete_range(start, end),
        };
        self.written(cut, result, self.durability)
    }

    /// Puts a key that is not there, or removes by single delete one that is.
    fn single(&mut self, family: usize) -> Change {
        let key = format!("single{:02}", self.random.below(SINGLE_KEY_COUNT)).into_bytes();
        let content = self.history.now.families[family].as_ref();
        if content.is_some_and(|content| content.rows.contains_key(&key)) {
            Change::Remove(key)
        } else {
            Change::Put(key, self.value())
        }
    }

    fn write_batch(&mut self, cut: &Cut) -> Result<()> {
        let mut changes = Vec::new();
        for _ in 0..=self.random.below(8) {
            let Some(family) = self.any_family() else { continue };
            let change = match self.random.below(10) {
                0 => {
                    let (start, end) = self.range();
                    Change::RemoveRange(start, end)
                }
                1..=3 => Change::Remove(self.key()),
                _ => Change::Put(self.key(), self.value()),
            };
            changes.push((family, change));
        }
        if let Some(family) = self.any_family() {
            changes.push((family, self.single(family)));
        }
        self.history.begin(Event::Write(changes.clone()));
        let db = self.db.as_ref().unwrap();
        let mut batch = db.batch();
        for (family, change) in &changes {
            let handle = self.families[*family].as_ref().unwrap();
            match change {
                Change::Put(key, value) => batch.put(handle, key, value),
                Change::Remove(key) if is_single(key) => batch.single_delete(handle, key),
                Change::Remove(key) => batch.delete(handle, key),
                Change::RemoveRange(start, end) => batch.delete_range(handle, start, end),
            };
        }
        let wants_sync = self.durability != Durability::None && self.random.one_in(6);
        let durability = if wants_sync { Durability::Sync } else { self.durability };
        let result = if wants_sync { batch.commit_with(Durability::Sync) } else { batch.commit() };
        self.written(cut, result, durability)
    }

    /// Ingests rows in key order, through the database or through a table file of their own.
    fn ingest(&mut self, family: usize, handle: &ColumnFamily, cut: &Cut) -> Result<()> {
        let count = 1 + self.random.below(30);
        let rows: BTreeMap<_, _> = (0..count).map(|_| (self.key(), self.value())).collect();
        let changes = rows.iter().map(|(k, v)| (family, Change::Put(k.clone(), v.clone())));
        self.history.begin(Event::Write(changes.collect()));
        let result = if self.random.one_in(3) {
            self.ingest_file(handle, &rows)
        } else {
            let ingest = handle.ingest();
            ingest.and_then(|mut ingest| {
                rows.iter().try_for_each(|(key, value)| ingest.put(key, value))?;
                ingest.commit().map(drop)
            })
        };
        // It comes behind everything that was logged, or without a log behind a flush of all.
        let result = self.written(cut, result, Durability::None);
        self.promised(cut, result, History::all_durable)
    }

    fn ingest_file(&mut self, handle: &ColumnFamily, rows: &Rows) -> Result<()> {
        let path = format!("/rows{}.table", self.random.next());
        let files = Arc::new(self.files.clone());
        let world = World { files, environment: Arc::new(self.environment.clone()) };
        let mut writer = TableWriter::create_in(&path, &handle.options(), world)?;
        rows.iter().try_for_each(|(key, value)| writer.put(key, value))?;
        writer.finish()?;
        let transfer =
            if self.random.one_in(2) { TableTransfer::Link } else { TableTransfer::Copy };
        handle.ingest_tables(&[&path], transfer)?;
        self.files.remove(Path::new(&path))
    }

    fn transact(&mut self, cut: &Cut) -> Result<()> {
        let mut transaction = self.db().transaction();
        let mut changes = Vec::new();
        for _ in 0..=self.random.below(4) {
            let Some(family) = self.any_family() else { continue };
            let (key, value) = (self.key(), self.value());
            let handle = self.families[family].as_ref().unwrap();
            transaction.get_for_update(handle, &key)?;
            if self.random.one_in(3) {
                transaction.delete(handle, &key)?;
                changes.push((family, Change::Remove(key)));
            } else {
                transaction.put(handle, &key, &value)?;
                changes.push((family, Change::Put(key, value)));
            }
        }
        if self.random.one_in(4) {
            transaction.rollback();
            return Ok(());
        }
        self.history.begin(Event::Write(changes));
        let result = transaction.commit();
        self.written(cut, result, self.durability)
    }

    /// Drops a family or makes one that is not there.
    fn create_or_drop(&mut self, cut: &Cut) -> Result<()> {
        let family = self.random.below(FAMILIES.len() as u64) as usize;
        let result = if self.families[family].take().is_some() {
            self.history.begin(Event::Drop(family));
            self.db().drop_column_family(FAMILIES[family])
        } else {
            self.history.begin(Event::Create(family));
            let options = family_options(self.random);
            self.db().column_family(FAMILIES[family], options).map(|handle| {
                self.families[family] = Some(handle);
            })
        };
        // With a log the edit of the families comes behind everything that was logged.
        let is_logless = self.durability == Durability::None;
        let durability = if is_logless { Durability::None } else { Durability::Sync };
        self.written(cut, result, durability)
    }

    /// Closes and opens again, perhaps in another mode.
    fn reopen(&mut self, cut: &Cut) -> Result<()> {
        self.families = Default::default();
        let Some(db) = self.db.take() else { return Ok(()) };
        let result = db.close();
        self.promised(cut, result, History::all_durable)?;
        if cut.has_happened() {
            return Ok(());
        }
        if self.random.one_in(4) {
            self.durability = durability(self.random);
        }
        let db = open(self.files, self.environment, self.durability)?;
        self.families = handles(&db);
        self.db = Some(db);
        if !cut.has_happened() {
            let state = self.history.now.clone();
            self.history.settle(state);
            self.history.is_logless = self.durability == Durability::None;
        }
        Ok(())
    }

    /// What is visible is what was written.
    fn check_visible(&mut self, family: usize, handle: &ColumnFamily) -> Result<()> {
        for _ in 0..4 {
            let key = self.key();
            let value = handle.get(&key)?;
            let content = self.history.now.families[family].as_ref();
            let expected = content.and_then(|content| content.rows.get(&key));
            assert_eq!(value.as_deref(), expected.map(Vec::as_slice), "a read of {key:?}");
        }
        Ok(())
    }
}

fn is_single(key: &[u8]) -> bool {
    key.starts_with(b"single")
}
