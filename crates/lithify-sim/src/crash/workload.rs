//! Random operations for databases that are about to crash: much that changes files, little that
//! only reads.

use crate::model::State;
use crate::operation::{
    Change, Ending, FAMILY_COUNT, IngestWay, Key, Operation, Settings, TransactionCall, Value,
    Write, operators,
};
use crate::random::Random;
use lithify::{CfOptions, CompressionPolicy, Durability, Options};
use std::collections::BTreeMap;

const KEY_COUNT: u64 = 60;
const ONCE_KEY_COUNT: u64 = 12;

/// A mode of durability.
pub fn durability(random: &mut Random) -> Durability {
    match random.below(4) {
        0 => Durability::Sync,
        1 => Durability::Buffered,
        2 => Durability::Interval { milliseconds: random.between(1, 9) as u32 },
        _ => Durability::None,
    }
}

/// Options under which a little is much.
pub fn options(random: &mut Random, durability: Durability) -> Options {
    Options {
        memory_budget_bytes: 1 << 20,
        memtable_bytes: 64 << 10,
        wal_bytes_max: 128 << 10 << random.below(2),
        manifest_bytes_max: 1024 << random.below(6),
        background_threads: 0,
        durability,
        ..Options::default()
    }
}

/// The same with threads of the database's own. What an interval promises is by the virtual clock,
/// which threads do not know: such a database is buffered.
pub fn with_threads(options: Options, background_threads: usize) -> Options {
    let durability = match options.durability {
        Durability::Interval { .. } if background_threads > 0 => Durability::Buffered,
        same => same,
    };
    Options { background_threads, durability, ..options }
}

fn family_options(slot: usize, random: &mut Random) -> CfOptions {
    let mut codec = || *random.pick(&["none", "snappy", "lz4", "zstd-1"]);
    let policy = format!("{},{},{}", codec(), codec(), codec());
    let options = CfOptions {
        compression: policy.parse::<CompressionPolicy>().unwrap_or_default(),
        block_size_bytes: 512 << random.below(4),
        table_bytes: 64 << 10,
        base_level_bytes_max: 64 << 10,
        fanout: random.between(2, 4) as u32,
        ..CfOptions::default()
    };
    options_of(options, slot, random)
}

/// Options with what a slot has.
fn options_of(options: CfOptions, slot: usize, random: &mut Random) -> CfOptions {
    operators::with_operator(options, slot, random)
}

/// The next operations, one or those of a transaction, for a database that is in a state.
pub fn next(random: &mut Random, state: &State, durability: Durability) -> Vec<Operation> {
    let present: Vec<usize> =
        (0..FAMILY_COUNT).filter(|slot| state.family(*slot).is_some()).collect();
    if present.is_empty() {
        return vec![create_or_drop(random, state)];
    }
    let family = *random.pick(&present);
    let operation = match random.below(100) {
        0..=44 => Operation::Write(Write { family, change: change(random) }),
        45..=62 => {
            let count = random.between(1, 8);
            let one = |random: &mut Random| Write {
                family: *random.pick(&present),
                change: change(random),
            };
            let writes = (0..count).map(|_| one(random)).collect();
            Operation::Batch { writes, is_synced: random.one_in(6) }
        }
        63..=64 => ingest(random, family),
        65..=72 => return transaction(random, &present),
        73..=75 => Operation::Sync,
        76..=80 => Operation::Flush(Some(family)),
        81..=82 => Operation::Flush(None),
        83..=84 => {
            let range = random.one_in(2).then(|| range(random));
            Operation::Compact { family, range }
        }
        85..=87 => Operation::Settle,
        88..=91 => create_or_drop(random, state),
        92 => reopen(random, durability),
        93 => Operation::TakeSnapshot(random.below(2) as usize),
        94 => Operation::ReleaseSnapshot(random.below(2) as usize),
        95 => Operation::CompareAll,
        96 => return vec![Operation::Age, Operation::CompareAll],
        _ => Operation::Get { family, key: key(random), at: None },
    };
    vec![operation]
}

fn key(random: &mut Random) -> Key {
    let number = random.below(KEY_COUNT);
    let mut key = format!("key{:02}", number / 3).into_bytes();
    key.extend(std::iter::repeat_n(b'x', (number % 3) as usize));
    key
}

fn range(random: &mut Random) -> (Key, Key) {
    let (one, other) = (key(random), key(random));
    if one <= other { (one, other) } else { (other, one) }
}

fn value(random: &mut Random) -> Value {
    let length = match random.below(20) {
        0 => 0,
        1 => random.below(20_000),
        2..=5 => random.below(2_000),
        _ => random.below(80),
    };
    Value { seed: random.next(), length: length as u32 }
}

fn change(random: &mut Random) -> Change {
    match random.below(100) {
        0..=54 => Change::Put(key(random), value(random)),
        55..=64 => {
            let length = random.below(operators::OPERAND_BYTES_MAX) as u32;
            Change::Merge(key(random), Value { seed: random.next(), length })
        }
        65..=84 => Change::Delete(key(random)),
        85..=90 => {
            let (start, end) = range(random);
            Change::DeleteRange(start, end)
        }
        _ => {
            let key = format!("~{:02}", random.below(ONCE_KEY_COUNT)).into_bytes();
            Change::Once(key, value(random))
        }
    }
}

fn ingest(random: &mut Random, family: usize) -> Operation {
    let count = random.between(1, 30);
    let row = |random: &mut Random| {
        let value = (!random.one_in(8)).then(|| value(random));
        (key(random), value)
    };
    let rows: BTreeMap<Key, Option<Value>> = (0..count).map(|_| row(random)).collect();
    let ways = [
        IngestWay::Rows,
        IngestWay::Rows,
        IngestWay::LinkedTable,
        IngestWay::CopiedTable,
        IngestWay::GivenUp,
    ];
    Operation::Ingest { family, rows: rows.into_iter().collect(), way: *random.pick(&ways) }
}

fn transaction(random: &mut Random, present: &[usize]) -> Vec<Operation> {
    let has_snapshot = random.one_in(2);
    let mut calls = vec![TransactionCall::Begin {
        has_snapshot,
        reads_at_snapshot: false,
        is_optimistic: random.one_in(3),
    }];
    for _ in 0..random.between(1, 4) {
        let (family, key) = (*random.pick(present), key(random));
        calls.push(TransactionCall::GetForUpdate(family, key.clone()));
        let change = match random.one_in(3) {
            true => Change::Delete(key),
            false => Change::Put(key, value(random)),
        };
        calls.push(TransactionCall::Write(Write { family, change }));
    }
    calls.push(match random.one_in(4) {
        true => TransactionCall::Rollback,
        false => TransactionCall::Commit { is_synced: random.one_in(6) },
    });
    calls.into_iter().map(|call| Operation::Transaction { slot: 0, call }).collect()
}

fn create_or_drop(random: &mut Random, state: &State) -> Operation {
    let slot = random.below(FAMILY_COUNT as u64) as usize;
    match state.family(slot) {
        Some(_) => Operation::DropFamily(slot),
        None => Operation::CreateFamily(slot, Box::new(family_options(slot, random))),
    }
}

fn reopen(random: &mut Random, now: Durability) -> Operation {
    let durability = if random.one_in(4) { durability(random) } else { now };
    let families = std::array::from_fn(|slot| options_of(CfOptions::default(), slot, random));
    let settings = Settings { database: options(random, durability), families };
    Operation::Reopen(Ending::Close, Box::new(settings))
}
