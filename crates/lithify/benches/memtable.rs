//! What a row costs in the memtable: CPU time of the thread per row, the best of five runs, beside
//! the standard library's B-tree as a yardstick. `cargo bench -p lithify --bench memtable`.

use lithify::base::{SEQUENCE_MAX, Trailer, ValueKind};
use lithify::fs::{Clock, SystemEnvironment};
use lithify::memtable::{MemCursor, MemTable};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;

const ROWS: usize = 300_000;
const KEY_BYTES: usize = 24;
const VALUE: [u8; 176] = [0x5a; 176];
const RUNS: usize = 5;
const SCAN_ROWS: usize = 10;

fn thread_cpu_ns() -> u64 {
    SystemEnvironment.thread_cpu_ns()
}

/// Prints the best time per row; `run` returns what it measured on `rows` rows.
fn report(name: &str, rows: usize, mut run: impl FnMut() -> u64) {
    let best_ns = (0..RUNS).map(|_| run()).min().unwrap_or(0);
    println!("{name:<44} {:>8.0} ns/row", best_ns as f64 / rows as f64);
}

/// The time that `work` takes. What it returns is dropped after the clock was read.
fn timed<T>(work: impl FnOnce() -> T) -> u64 {
    let start_ns = thread_cpu_ns();
    let result = black_box(work());
    let elapsed_ns = thread_cpu_ns() - start_ns;
    drop(result);
    elapsed_ns
}

fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = *state;
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

fn random_keys() -> Vec<[u8; KEY_BYTES]> {
    let mut state = 7;
    let mut key = || {
        let mut key = [0; KEY_BYTES];
        key.chunks_mut(8).for_each(|c| c.copy_from_slice(&next_random(&mut state).to_be_bytes()));
        key
    };
    (0..ROWS).map(|_| key()).collect()
}

/// An index id, then two ids: the primary key of a link in a social graph, in random order.
fn graph_keys() -> Vec<[u8; KEY_BYTES]> {
    let mut state = 11;
    let mut key = || {
        let mut key = [0; KEY_BYTES];
        key[..4].copy_from_slice(&258_u32.to_be_bytes());
        key[4..12].copy_from_slice(&(next_random(&mut state) % 30_000).to_be_bytes());
        key[12..20].copy_from_slice(&(next_random(&mut state) % 100_000).to_be_bytes());
        key[20..].copy_from_slice(&123_456_u32.to_be_bytes());
        key
    };
    (0..ROWS).map(|_| key()).collect()
}

fn filled(keys: &[[u8; KEY_BYTES]]) -> MemTable {
    let table = MemTable::new();
    let mut writer = table.writer();
    for (index, key) in keys.iter().enumerate() {
        writer.insert(key, Trailer::new(index as u64 + 1, ValueKind::Put), &VALUE);
    }
    drop(writer);
    table
}

fn scan(cursor: &mut MemCursor, key: &[u8]) -> usize {
    let mut bytes = 0;
    cursor.seek(key, Trailer::seek(SEQUENCE_MAX));
    for _ in 0..SCAN_ROWS {
        if !cursor.valid() {
            break;
        }
        bytes += cursor.key().len() + usize::from(cursor.value()[0]);
        cursor.next();
    }
    bytes
}

fn bench(shape: &str, keys: &[[u8; KEY_BYTES]]) {
    let mut probes = keys.to_vec();
    let mut state = 3;
    for index in (1..probes.len()).rev() {
        probes.swap(index, (next_random(&mut state) % (index as u64 + 1)) as usize);
    }
    report(&format!("{shape}: insert"), ROWS, || timed(|| filled(keys)));
    let table = Arc::new(filled(keys));
    println!(
        "{:<44} {:>8.0} bytes/row",
        format!("{shape}: memory beside key and value"),
        (table.memory_bytes() - table.data_bytes()) as f64 / ROWS as f64
    );
    report(&format!("{shape}: get in random order"), ROWS, || {
        timed(|| {
            let get = |key: &[u8; KEY_BYTES]| table.get(key, SEQUENCE_MAX).map(|row| row.2[0]);
            probes.iter().filter_map(get).fold(0, |sum, byte| sum + u64::from(byte))
        })
    });
    let mut cursor = table.cursor();
    report(&format!("{shape}: scan of {SCAN_ROWS} rows, each"), ROWS, || {
        timed(|| probes.iter().map(|key| scan(&mut cursor, key)).sum::<usize>())
    });
    report(&format!("{shape}: walk over everything"), ROWS, || {
        timed(|| {
            let mut bytes = 0;
            cursor.seek_to_first();
            while cursor.valid() {
                bytes += cursor.key().len() + cursor.value().len();
                cursor.next();
            }
            bytes
        })
    });
}

/// The yardstick: keys in the tree, values appended to one buffer.
fn bench_standard(shape: &str, keys: &[[u8; KEY_BYTES]]) {
    let fill = || {
        let mut values = Vec::new();
        let mut tree = BTreeMap::new();
        for key in keys {
            tree.insert(Box::<[u8]>::from(&key[..]), values.len());
            values.extend_from_slice(&VALUE);
        }
        (tree, values)
    };
    report(&format!("BTreeMap, {shape}: insert"), ROWS, || timed(fill));
    let (tree, values) = fill();
    report(&format!("BTreeMap, {shape}: get in insert order"), ROWS, || {
        timed(|| {
            let get = |key: &[u8; KEY_BYTES]| tree.get(&key[..]).map(|at| values[*at]);
            keys.iter().filter_map(get).fold(0, |sum, byte| sum + u64::from(byte))
        })
    });
}

fn main() {
    let random = random_keys();
    let mut sequential = random.clone();
    sequential.sort_unstable();
    let graph = graph_keys();
    let mut graph_sequential = graph.clone();
    graph_sequential.sort_unstable();
    println!("{ROWS} rows of {KEY_BYTES} + {} bytes", VALUE.len());
    bench("random", &random);
    bench("sequential", &sequential);
    bench("graph, random", &graph);
    bench("graph, sequential", &graph_sequential);
    bench_standard("random", &random);
    bench_standard("sequential", &sequential);
}
