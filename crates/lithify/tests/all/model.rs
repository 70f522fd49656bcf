//! Random operations against an ordered map on real files with background threads, with flushes,
//! compactions, ingests, snapshots and reopening. In a world in memory the simulator does more.

use lithify::fs::World;
use lithify::{
    CfOptions, ColumnFamily, CompressionPolicy, Db, Durability, ErrorKind, Options, Snapshot,
    TableTransfer, TableWriter,
};
use std::collections::BTreeMap;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A small reproducible generator (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn key(&mut self, keys: u64) -> Vec<u8> {
        let number = self.below(keys);
        // Keys that share prefixes, and some that are prefixes of others.
        let mut key = format!("key{:04}", number / 3).into_bytes();
        key.extend(std::iter::repeat_n(b'x', (number % 3) as usize));
        key
    }

    fn value(&mut self) -> Vec<u8> {
        let length = match self.below(10) {
            0 => 0,
            1..=7 => self.below(60),
            8 => self.below(600),
            _ => self.below(6000),
        };
        let seed = self.next();
        (0..length).map(|i| (seed >> (i % 7)) as u8 & 0x3f).collect()
    }
}

fn options(random: &mut Random, threads: usize) -> Options {
    Options {
        memory_budget_bytes: 4 << 20,
        memtable_bytes: 64 << 10 << random.below(3),
        wal_bytes_max: 1 << 20,
        background_threads: threads,
        durability: match random.below(3) {
            0 => Durability::Sync,
            1 => Durability::Buffered,
            _ => Durability::Interval { milliseconds: 5 },
        },
        ..Options::default()
    }
}

fn family_options(random: &mut Random) -> CfOptions {
    let codecs = ["none", "snappy", "lz4", "zlib-1", "zlib-6", "zstd-1", "zstd--3", "lz4-9"];
    let mut codec = || codecs[random.below(codecs.len() as u64) as usize];
    let policy = format!("{},{},{}", codec(), codec(), codec());
    CfOptions {
        compression: policy.parse::<CompressionPolicy>().unwrap(),
        block_size_bytes: 512 << random.below(6),
        table_bytes: 64 << 10 << random.below(3),
        base_level_bytes_max: 64 << 10 << random.below(3),
        fanout: 2 + random.below(7) as u32,
        filter_bits_per_key: 10,
        prefix_length_bytes: random.below(8) as usize,
        ..CfOptions::default()
    }
}

fn check_all(family: &ColumnFamily, model: &Model, snapshot: Option<&Snapshot>) {
    let open = || match snapshot {
        Some(snapshot) => family.cursor_at(.., snapshot).unwrap(),
        None => family.cursor(..).unwrap(),
    };
    let mut cursor = open();
    let mut expected = model.iter();
    while cursor.next().unwrap() {
        let (key, value) = expected.next().expect("the cursor shows a row too many");
        assert_eq!(String::from_utf8_lossy(cursor.key()), String::from_utf8_lossy(key));
        assert_eq!(cursor.value(), value);
    }
    assert_eq!(expected.next(), None);
    let mut cursor = open();
    let mut expected = model.iter().rev();
    while cursor.prev().unwrap() {
        let (key, value) = expected.next().expect("the cursor shows a row too many");
        assert_eq!((cursor.key(), cursor.value()), (&key[..], &value[..]));
    }
    assert_eq!(expected.next(), None);
}

fn check_some(random: &mut Random, family: &ColumnFamily, model: &Model, keys: u64) {
    for _ in 0..20 {
        let key = random.key(keys);
        assert_eq!(family.get(&key).unwrap().as_deref(), model.get(&key).map(Vec::as_slice));
    }
    let mut cursor = family.cursor(..).unwrap();
    for _ in 0..5 {
        let key = random.key(keys);
        let mut next = model.range(key.clone()..);
        let mut previous = model.range(..=key.clone()).rev();
        assert_eq!(cursor.seek(&key).unwrap(), model.range(key.clone()..).next().is_some());
        for _ in 0..4 {
            match next.next() {
                Some((key, value)) => {
                    assert_eq!((cursor.key(), cursor.value()), (&key[..], &value[..]));
                }
                None => assert!(!cursor.valid()),
            }
            cursor.next().unwrap();
        }
        cursor.seek_for_prev(&key).unwrap();
        for _ in 0..4 {
            match previous.next() {
                Some((key, value)) => {
                    assert_eq!((cursor.key(), cursor.value()), (&key[..], &value[..]));
                }
                None => assert!(!cursor.valid()),
            }
            cursor.prev().unwrap();
        }
    }
    let prefix = &random.key(keys)[..6];
    let mut cursor = family.prefix_cursor(prefix).unwrap();
    for (key, value) in model.range(prefix.to_vec()..).take_while(|(k, _)| k.starts_with(prefix)) {
        assert!(cursor.next().unwrap());
        assert_eq!((cursor.key(), cursor.value()), (&key[..], &value[..]));
    }
    assert!(!cursor.next().unwrap());
}

/// Rows and deletes in key order: everywhere, or densely in one place.
fn sorted_rows(random: &mut Random, keys: u64) -> BTreeMap<Vec<u8>, Option<Vec<u8>>> {
    let (count, is_dense) = (1 + random.below(40), random.below(2) == 0);
    let first = random.below(2 * keys);
    let mut rows = BTreeMap::new();
    for number in 0..count {
        let key = match is_dense {
            true => format!("key{:04}y", first + number).into_bytes(),
            false => random.key(keys),
        };
        let value = (random.below(8) > 0).then(|| random.value());
        rows.insert(key, value);
    }
    rows
}

/// Ingests rows through the database or through files of their own; sometimes gives up.
fn ingest(random: &mut Random, family: &ColumnFamily, model: &mut Model, keys: u64, world: &World) {
    let rows = sorted_rows(random, keys);
    if random.below(3) == 0 {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(format!("rows{}.table", random.next()));
        let mut writer = TableWriter::create_in(&path, &family.options(), world.clone()).unwrap();
        for (key, value) in &rows {
            match value {
                Some(value) => writer.put(key, value).unwrap(),
                None => writer.delete(key).unwrap(),
            }
        }
        writer.finish().unwrap();
        let how = if random.below(2) == 0 { TableTransfer::Link } else { TableTransfer::Copy };
        family.ingest_tables(&[&path], how).unwrap();
        world.files.remove(&path).unwrap();
    } else {
        let mut ingest = family.ingest().unwrap();
        for (key, value) in &rows {
            match value {
                Some(value) => ingest.put(key, value).unwrap(),
                None => ingest.delete(key).unwrap(),
            }
            if random.below(20) == 0 {
                let error = ingest.put(key, b"again").unwrap_err();
                assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            }
        }
        if random.below(5) == 0 {
            return;
        }
        ingest.commit().unwrap();
    }
    for (key, value) in rows {
        match value {
            Some(value) => drop(model.insert(key, value)),
            None => drop(model.remove(&key)),
        }
    }
}

/// One history: two families, everything at random, from one seed.
fn run(seed: u64, operations: usize, world: World, threads: usize) {
    let random = &mut Random(seed);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let keys = 30 << random.below(6);
    let mut database = options(random, threads);
    let mut shapes = [family_options(random), family_options(random)];
    let mut models: [Model; 2] = Default::default();
    let mut operation = 0;
    while operation < operations {
        let db = Db::open_in(path, database.clone(), world.clone()).unwrap();
        let names = ["a", "b"];
        let families: Vec<_> =
            (0..2).map(|i| db.column_family(names[i], shapes[i].clone()).unwrap()).collect();
        for i in 0..2 {
            check_all(&families[i], &models[i], None);
        }
        let mut snapshots: Vec<(Snapshot, [Model; 2])> = Vec::new();
        let end = operation + 1 + random.below(operations as u64) as usize;
        while operation < end {
            operation += 1;
            let i = random.below(2) as usize;
            let (family, model) = (&families[i], &mut models[i]);
            match random.below(200) {
                0..=99 => {
                    let (key, value) = (random.key(keys), random.value());
                    family.put(&key, &value).unwrap();
                    model.insert(key, value);
                }
                100..=101 => ingest(random, family, model, keys, &world),
                102..=129 => {
                    let key = random.key(keys);
                    family.delete(&key).unwrap();
                    model.remove(&key);
                }
                130..=134 => {
                    let (mut start, mut end) = (random.key(keys), random.key(keys));
                    if start > end {
                        std::mem::swap(&mut start, &mut end);
                    }
                    family.delete_range(&start, &end).unwrap();
                    let doomed: Vec<_> = model.range(start..end).map(|(k, _)| k.clone()).collect();
                    doomed.iter().for_each(|key| drop(model.remove(key)));
                }
                135..=149 => {
                    let mut batch = db.batch();
                    for _ in 0..random.below(20) {
                        let j = random.below(2) as usize;
                        let (key, value) = (random.key(keys), random.value());
                        if random.below(4) == 0 {
                            batch.delete(&families[j], &key);
                            models[j].remove(&key);
                        } else {
                            batch.put(&families[j], &key, &value);
                            models[j].insert(key, value);
                        }
                    }
                    batch.commit().unwrap();
                }
                150..=159 => {
                    let mut transaction = db.transaction();
                    let mut next = models.clone();
                    for _ in 0..random.below(6) {
                        let j = random.below(2) as usize;
                        let (key, value) = (random.key(keys), random.value());
                        let old = transaction.get_for_update(&families[j], &key).unwrap();
                        assert_eq!(old.as_deref(), next[j].get(&key).map(Vec::as_slice));
                        transaction.put(&families[j], &key, &value).unwrap();
                        next[j].insert(key, value);
                    }
                    let mut cursor = transaction.cursor(&families[0], ..).unwrap();
                    let mut expected = next[0].iter();
                    while cursor.next().unwrap() {
                        let (key, value) = expected.next().unwrap();
                        assert_eq!((cursor.key(), cursor.value()), (&key[..], &value[..]));
                    }
                    assert_eq!(expected.next(), None);
                    if random.below(3) > 0 {
                        transaction.commit().unwrap();
                        models = next;
                    }
                }
                160..=179 => check_some(random, family, model, keys),
                180..=185 => {
                    if snapshots.len() < 4 {
                        snapshots.push((db.snapshot(), models.clone()));
                    } else {
                        let index = random.below(4) as usize;
                        snapshots.swap_remove(index);
                    }
                }
                186..=190 => {
                    for (snapshot, models) in &snapshots {
                        check_all(family, &models[i], Some(snapshot));
                    }
                }
                191..=193 => family.flush().unwrap(),
                194..=195 => db.wait_for_compaction().unwrap(),
                196 => family.compact_range(..).unwrap(),
                197 => {
                    let (a, b) = (random.key(keys), random.key(keys));
                    let (a, b) = if a <= b { (a, b) } else { (b, a) };
                    family.compact_range(&a..&b).unwrap();
                }
                198 => check_all(family, model, None),
                _ => {
                    db.drop_column_family(names[1]).unwrap();
                    assert_eq!(
                        families[1].get(b"x").unwrap_err().kind(),
                        lithify::ErrorKind::Closed
                    );
                    models[1].clear();
                    break;
                }
            }
        }
        drop(snapshots);
        match random.below(3) {
            0 => drop(db),
            _ => db.close().unwrap(),
        }
        database = options(random, threads);
        shapes = [family_options(random), family_options(random)];
    }
}

#[test]
fn random_histories_with_threads() {
    for seed in 0..8 {
        run(seed, 3000, World::system(), 2);
    }
}
