//! Kinds of operations that a store can be slow at when there are many.

use super::history::{Run, family_options};
use crate::random::Random;
use lithify::Result;

/// Bytes of an ordinary value.
const VALUE_BYTES: usize = 100;

/// Bytes of a long key.
const LONG_KEY_BYTES: usize = 4_000;

/// Operations of which one takes a snapshot, opens a cursor, or makes a family.
const HELD_PERIOD: u64 = 16;

/// Keys that get many versions.
const HOT_KEYS: u64 = 4;

/// Keys in all where they come by chance.
const KEYS: u64 = 1 << 20;

/// One kind.
pub(super) struct Kind {
    pub(super) name: &'static str,
    /// The operations of the shorter history in the short form.
    pub(super) operations: u64,
    /// Makes the operation of that number.
    pub(super) step: fn(&mut Run, u64) -> Result<()>,
    /// The key that is read after it.
    pub(super) read_key: fn(&mut Random, u64) -> Vec<u8>,
}

pub(super) const KINDS: &[Kind] = &[
    Kind { name: "puts", operations: 4_000, step: put, read_key: chance },
    Kind {
        name: "a queue trimmed by range deletes",
        operations: 400,
        step: trim,
        read_key: newest,
    },
    Kind { name: "nested range deletes", operations: 400, step: nest, read_key: newest },
    Kind { name: "crossing range deletes", operations: 400, step: cross, read_key: chance },
    Kind { name: "range deletes side by side", operations: 1_000, step: tile, read_key: chance },
    Kind {
        name: "range deletes under snapshots",
        operations: 200,
        step: trim_held,
        read_key: newest,
    },
    Kind { name: "a queue trimmed by deletes", operations: 2_000, step: pass_on, read_key: newest },
    Kind { name: "versions of a few keys", operations: 4_000, step: version, read_key: hot },
    Kind { name: "versions under snapshots", operations: 2_000, step: version_held, read_key: hot },
    Kind { name: "cursors that are held", operations: 1_000, step: hold, read_key: chance },
    Kind { name: "long keys", operations: 500, step: put_long, read_key: long_chance },
    Kind { name: "a batch of all", operations: 2_000, step: batch_all, read_key: chance },
    Kind { name: "a transaction of all", operations: 2_000, step: transact_all, read_key: chance },
    Kind { name: "ingests in order", operations: 100, step: ingest, read_key: newest },
    Kind { name: "ingests that overlap", operations: 100, step: ingest_over, read_key: chance },
    Kind { name: "families", operations: 500, step: make_family, read_key: chance },
];

fn key(number: u64) -> Vec<u8> {
    format!("key{number:012}").into_bytes()
}

fn newest(_: &mut Random, number: u64) -> Vec<u8> {
    key(number)
}

fn chance(random: &mut Random, _: u64) -> Vec<u8> {
    key(random.below(KEYS))
}

fn hot(random: &mut Random, _: u64) -> Vec<u8> {
    key(random.below(HOT_KEYS))
}

fn long_chance(random: &mut Random, _: u64) -> Vec<u8> {
    long(random.below(KEYS))
}

/// A long key that differs from others at its end.
fn long(number: u64) -> Vec<u8> {
    let mut long = vec![b'k'; LONG_KEY_BYTES];
    long.extend(key(number));
    long
}

fn value(run: &mut Run) -> Vec<u8> {
    let mut value = Vec::with_capacity(VALUE_BYTES + 8);
    while value.len() < VALUE_BYTES {
        value.extend(run.random.next().to_le_bytes());
    }
    value
}

fn put_at(run: &mut Run, key: &[u8]) -> Result<()> {
    let value = value(run);
    run.family.put(key, &value)
}

fn put(run: &mut Run, number: u64) -> Result<()> {
    let key = chance(&mut run.random, number);
    put_at(run, &key)
}

fn trim(run: &mut Run, number: u64) -> Result<()> {
    put_at(run, &key(number))?;
    run.family.delete_range(b"", key(number))
}

/// Each within the one before.
fn nest(run: &mut Run, number: u64) -> Result<()> {
    put_at(run, &key(KEYS + number))?;
    run.family.delete_range(key(number), key(2 * KEYS - number))
}

fn cross(run: &mut Run, number: u64) -> Result<()> {
    put(run, number)?;
    let (one, other) = (run.random.below(KEYS), run.random.below(KEYS));
    run.family.delete_range(key(one.min(other)), key(one.max(other)))
}

fn tile(run: &mut Run, number: u64) -> Result<()> {
    put_at(run, &key(3 * number))?;
    run.family.delete_range(key(3 * number), key(3 * number + 2))
}

/// With a few snapshots over the whole history, however long it is.
fn trim_held(run: &mut Run, number: u64) -> Result<()> {
    if number.is_multiple_of(run.operations / 8 + 1) {
        run.snapshots.push(run.db.snapshot());
    }
    trim(run, number)
}

fn pass_on(run: &mut Run, number: u64) -> Result<()> {
    put_at(run, &key(number + 1))?;
    run.family.delete(key(number))
}

fn version(run: &mut Run, number: u64) -> Result<()> {
    put_at(run, &key(number % HOT_KEYS))
}

fn version_held(run: &mut Run, number: u64) -> Result<()> {
    if number.is_multiple_of(HELD_PERIOD) {
        run.snapshots.push(run.db.snapshot());
    }
    version(run, number)
}

fn hold(run: &mut Run, number: u64) -> Result<()> {
    if number.is_multiple_of(HELD_PERIOD) {
        let mut cursor = run.family.cursor(..)?;
        cursor.next()?;
        run.cursors.push(cursor);
    }
    put(run, number)
}

fn put_long(run: &mut Run, number: u64) -> Result<()> {
    put_at(run, &long(number))
}

/// All at once, at the last operation.
fn batch_all(run: &mut Run, number: u64) -> Result<()> {
    if number + 1 < run.operations {
        return Ok(());
    }
    let rows: Vec<_> = (0..run.operations).map(|number| (key(number), value(run))).collect();
    let mut batch = run.db.batch();
    for (key, value) in &rows {
        batch.put(&run.family, key, value);
    }
    batch.commit()
}

fn transact_all(run: &mut Run, number: u64) -> Result<()> {
    if number + 1 < run.operations {
        return Ok(());
    }
    let mut transaction = run.db.transaction();
    for number in 0..run.operations {
        let value = value(run);
        transaction.get_for_update(&run.family, key(number))?;
        transaction.put(&run.family, key(number), &value)?;
    }
    transaction.commit()
}

fn ingest_rows(run: &mut Run, keys: impl Iterator<Item = u64>) -> Result<()> {
    let mut ingest = run.family.ingest()?;
    for number in keys {
        let value = value(run);
        ingest.put(key(number), &value)?;
    }
    ingest.commit().map(drop)
}

fn ingest(run: &mut Run, number: u64) -> Result<()> {
    ingest_rows(run, number * 20..number * 20 + 20)
}

fn ingest_over(run: &mut Run, _: u64) -> Result<()> {
    let start = run.random.below(KEYS / 2);
    ingest_rows(run, (0..20).map(|row| start + row * 10_000))
}

/// One more family now and then; all of them are written to in turn.
fn make_family(run: &mut Run, number: u64) -> Result<()> {
    if number.is_multiple_of(HELD_PERIOD) {
        let name = format!("family{number}");
        run.families.push(run.db.column_family(&name, family_options())?);
    }
    let family = run.families[number as usize % run.families.len()].clone();
    let value = value(run);
    family.put(key(number), &value)
}
