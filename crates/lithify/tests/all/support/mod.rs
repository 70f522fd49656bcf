//! A world in memory with its parts at hand, and a small reproducible generator.

#![allow(dead_code, reason = "each test crate uses a part of it")]

use lithify::fs::{FileSystem, MemoryEnvironment, MemoryFileSystem, World};
use lithify::{ColumnFamily, Options};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Where the database of a memory world lies.
pub const PATH: &str = "/db";

pub type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// The parts of a memory world.
#[derive(Clone)]
pub struct Parts {
    pub files: MemoryFileSystem,
    pub environment: MemoryEnvironment,
}

impl Parts {
    pub fn new(seed: u64) -> Parts {
        Parts { files: MemoryFileSystem::new(), environment: MemoryEnvironment::new(seed) }
    }

    pub fn world(&self) -> World {
        World {
            files: Arc::new(self.files.clone()),
            environment: Arc::new(self.environment.clone()),
        }
    }

    /// The names in the database's directory that end so.
    pub fn names_ending(&self, end: &str) -> Vec<String> {
        names_ending(&self.files, end)
    }

    /// Bytes of all files in the database's directory whose names end so.
    pub fn bytes_ending(&self, end: &str) -> u64 {
        let path = |name: &String| Path::new(PATH).join(name);
        self.names_ending(end).iter().map(|name| self.files.length(&path(name)).unwrap()).sum()
    }
}

pub fn names_ending(files: &dyn FileSystem, end: &str) -> Vec<String> {
    let paths = files.list(Path::new(PATH)).unwrap();
    let name = |path: &std::path::PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    paths.iter().map(name).filter(|name| name.ends_with(end)).collect()
}

/// Small memtables, no threads.
pub fn small_options() -> Options {
    Options {
        memory_budget_bytes: 2 << 20,
        memtable_bytes: 64 << 10,
        wal_bytes_max: 1 << 20,
        background_threads: 0,
        ..Options::default()
    }
}

/// A small reproducible generator (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Bytes that a codec can shrink to about a half.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(length + 8);
        while bytes.len() < length {
            let word = self.next() & 0x0f0f_0f0f_0f0f_0f0f;
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.truncate(length);
        bytes
    }
}

/// All rows that a family shows.
pub fn rows(family: &ColumnFamily) -> Model {
    let mut rows = Model::new();
    let mut cursor = family.cursor(..).unwrap();
    while cursor.next().unwrap() {
        rows.insert(cursor.key().to_vec(), cursor.value().to_vec());
    }
    rows
}

/// Runs `body` and ends the process if it takes longer than any machine should need: a hang must
/// not look like a slow test.
pub fn watched<T>(what: &str, body: impl FnOnce() -> T) -> T {
    let (done, watch) = std::sync::mpsc::channel::<()>();
    let what = what.to_string();
    let watcher = std::thread::spawn(move || {
        let limit = std::time::Duration::from_secs(300);
        if watch.recv_timeout(limit) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            eprintln!("{what}: hangs");
            std::process::abort();
        }
    });
    let result = body();
    drop(done);
    watcher.join().unwrap();
    result
}
