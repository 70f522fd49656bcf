//! What a dictionary gains and takes: real rows in blocks of 2, 4 and 16 KiB, with and without.
//!
//! `cargo run --release -p lithify-lab --example dictionaries -- DATA ...`: names of data sets
//! (`lithify bench data`), files of lines, or a table of LinkBench: `linkbench-node`, `linkbench-link`,
//! `linkbench-link_secondary`, `linkbench-count`.
//!
//! Every fourth block is a sample if there is room for it among 256 KiB spread over all; the other
//! blocks are measured, so nothing is compressed that was trained on. Times are of thread CPU, the
//! best of three passes over the same blocks.

use std::error::Error;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use lithify::base::{MemoryBudget, MemoryUse};
use lithify::codec::{Compressor, ContextPool, Decompressor, Dictionary, train};
use lithify::fs::{FileSystem, MemoryEnvironment, MemoryFileSystem, OpenMode, World};
use lithify::{CfOptions, Compression, TableWriter};
use lithify_lab::adapter::graph::schema;
use lithify_lab::adapter::{Engine, ScanRange, SpaceId};
use lithify_lab::datasets::{TableData, TextData};
use lithify_lab::engines::model::ModelEngine;
use lithify_lab::linkbench::load::{self, LoadConfig};
use lithify_lab::linkbench::{Control, Graph, GraphConfig, Profile};

/// Bytes of rows that are read of a data set.
const BYTES: usize = 24 << 20;
/// Bytes of blocks that a dictionary is trained on.
const SAMPLE_BYTES: usize = 256 << 10;
/// Sizes of dictionaries.
const SIZES: [usize; 3] = [8 << 10, 32 << 10, 96 << 10];

/// Nodes of the graph: its smallest table, of counts, has 2 MB.
const GRAPH_NODES: u64 = 100_000;

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// A table of a graph after its load, as the key-value adapters store it.
fn rows_of_graph(table: &str) -> Result<Rows, Box<dyn Error>> {
    let space = schema::SPACES.iter().position(|space| space.name == table);
    let space = SpaceId(space.ok_or_else(|| format!("LinkBench has no table {table}"))? as u8);
    let graph = Graph::new(Profile::lb2013(), GraphConfig::with_nodes(GRAPH_NODES))?;
    let model = ModelEngine::new(&schema::SPACES);
    let engine: &dyn Engine = &model;
    let config = LoadConfig { loaders: 1, ..LoadConfig::default() };
    load::run(&graph, &engine, &config, &Control::silent())?;
    let (mut rows, mut bytes) = (Rows::new(), 0);
    engine.session()?.scan(space, &ScanRange::prefix(b""), &mut |key, value| {
        bytes += key.len() + value.len();
        rows.push((key.to_vec(), value.to_vec()));
        if bytes > BYTES { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(rows)
}

fn rows_of(name: &str) -> Result<Rows, Box<dyn Error>> {
    if let Some(table) = name.strip_prefix("linkbench-") {
        return rows_of_graph(table);
    }
    let mut rows = Rows::new();
    if let Ok(data) = name.parse::<TableData>() {
        let table = data.open(200_000, 1).map_err(|error| error.to_string())?;
        let (mut row, mut bytes) = (Vec::new(), 0);
        for index in 0..table.rows() {
            table.row(index, &mut row);
            let (mut key, mut value) = (Vec::new(), Vec::new());
            table.schema().encode_key(&row, &mut key);
            table.schema().encode_value(&row, &mut value);
            bytes += key.len() + value.len();
            rows.push((key, value));
            if bytes > BYTES {
                break;
            }
        }
        return Ok(rows);
    }
    let mut lines =
        TextData::from(name.to_owned()).open(BYTES as u64, 1).map_err(|error| error.to_string())?;
    let mut line = Vec::new();
    while lines.next(&mut line)? {
        let number = rows.len() as u64;
        rows.push((number.to_be_bytes().to_vec(), line.clone()));
    }
    Ok(rows)
}

/// Data blocks before compression, as the engine makes them.
fn blocks_of(rows: &Rows, block_size_bytes: usize) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let files = MemoryFileSystem::new();
    let environment = Arc::new(MemoryEnvironment::new(1));
    let world = World { files: Arc::new(files.clone()), environment };
    let options =
        CfOptions { compression: "none".parse()?, block_size_bytes, ..CfOptions::default() };
    let path = Path::new("/rows.sst");
    let mut writer = TableWriter::create_in(path, &options, world)?;
    for (key, value) in rows {
        writer.put(key, value)?;
    }
    writer.finish()?;
    let blocks = lithify::fuzzing::blocks(files.open(path, OpenMode::Read)?)?;
    Ok(blocks.into_iter().filter(|(name, _)| *name == "data_block").map(|(_, raw)| raw).collect())
}

struct Figures {
    stored_bytes: usize,
    compress_ns_per_byte: f64,
    decompress_ns_per_byte: f64,
}

fn measure(
    compression: Compression,
    dictionary: Option<&Dictionary>,
    blocks: &[&[u8]],
) -> Result<Figures, Box<dyn Error>> {
    let (mut compressor, mut decompressor) = (Compressor::new(compression)?, Decompressor::new());
    let mut stored: Vec<Vec<u8>> = vec![Vec::new(); blocks.len()];
    let raw_bytes: usize = blocks.iter().map(|block| block.len()).sum();
    let in_s = best_of_three(|| {
        for (raw, target) in blocks.iter().zip(&mut stored) {
            target.clear();
            compressor.compress_with(dictionary, raw, target)?;
        }
        Ok(())
    })?;
    let mut raw = Vec::new();
    let out_s = best_of_three(|| {
        for (stored, block) in stored.iter().zip(blocks) {
            raw.clear();
            let codec = compression.codec;
            match dictionary {
                None => decompressor.decompress_into(codec, stored, block.len(), &mut raw)?,
                Some(dictionary) => {
                    decompressor.decompress_with(
                        codec,
                        dictionary,
                        stored,
                        block.len(),
                        &mut raw,
                    )?;
                }
            }
            assert_eq!(raw.len(), block.len());
        }
        Ok(())
    })?;
    Ok(Figures {
        stored_bytes: stored.iter().map(Vec::len).sum(),
        compress_ns_per_byte: in_s * 1e9 / raw_bytes as f64,
        decompress_ns_per_byte: out_s * 1e9 / raw_bytes as f64,
    })
}

fn thread_cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn best_of_three(mut work: impl FnMut() -> lithify::Result<()>) -> lithify::Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let start = thread_cpu_seconds();
        work()?;
        best = best.min(thread_cpu_seconds() - start);
    }
    Ok(best)
}

/// Blocks to train on, and those to measure.
fn split(blocks: &[Vec<u8>]) -> (Vec<&[u8]>, Vec<&[u8]>) {
    let bytes: usize = blocks.iter().map(Vec::len).sum();
    let stride = (bytes / SAMPLE_BYTES).max(4);
    let (mut samples, mut rest) = (Vec::new(), Vec::new());
    for (number, block) in blocks.iter().enumerate() {
        if number % stride == 0 { &mut samples } else { &mut rest }.push(&block[..]);
    }
    (samples, rest)
}

fn print(name: &str, what: &str, raw_bytes: usize, figures: &Figures) {
    println!(
        "{name:8} {what:10} {:>10} {:>6.2} {:>9.2} {:>9.2}",
        figures.stored_bytes,
        raw_bytes as f64 / figures.stored_bytes as f64,
        figures.compress_ns_per_byte,
        figures.decompress_ns_per_byte,
    );
}

fn measure_blocks(rows: &Rows, block_size_bytes: usize) -> Result<(), Box<dyn Error>> {
    let blocks = blocks_of(rows, block_size_bytes)?;
    let (samples, rest) = split(&blocks);
    let raw_bytes: usize = rest.iter().map(|block| block.len()).sum();
    println!("\nblocks of {block_size_bytes}: {} of {raw_bytes} bytes raw", rest.len());
    println!(
        "{:8} {:10} {:>10} {:>6} {:>9} {:>9}",
        "codec", "dictionary", "stored", "ratio", "in ns/B", "out ns/B"
    );
    let mut dictionaries: Vec<(usize, Arc<Dictionary>)> = Vec::new();
    for size in SIZES {
        let started = thread_cpu_seconds();
        let trained = train(&samples, size)?;
        let ms = (thread_cpu_seconds() - started) * 1e3;
        match trained {
            Some(trained) => {
                let bytes: usize = samples.iter().map(|sample| sample.len()).sum();
                println!("trained {} bytes on {bytes} in {ms:.1} ms", trained.content().len());
                dictionaries.push((size, trained));
            }
            None => println!("nothing to train: {size} bytes"),
        }
    }
    for name in ["lz4", "lz4-9", "zstd-1", "zstd-3", "zstd-9"] {
        let compression: Compression = name.parse()?;
        print(name, "none", raw_bytes, &measure(compression, None, &rest)?);
        for (size, dictionary) in &dictionaries {
            let figures = measure(compression, Some(dictionary), &rest)?;
            print(name, &format!("{} KiB", size >> 10), raw_bytes, &figures);
        }
    }
    let budget = MemoryBudget::new(1 << 30);
    let pool = ContextPool::new(Arc::clone(&budget));
    for (size, dictionary) in &dictionaries {
        let before = budget.used_bytes(MemoryUse::Codec);
        let held = pool.hold(dictionary);
        let bytes = budget.used_bytes(MemoryUse::Codec) - before;
        println!("memory of {} KiB, digested for all of these: {bytes} bytes", size >> 10);
        drop(held);
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    if names.is_empty() {
        return Err("name data sets or files of lines".into());
    }
    for name in names {
        let rows = rows_of(&name)?;
        println!("\n== {name}: {} rows", rows.len());
        for block_size_bytes in [2 << 10, 4 << 10, 16 << 10] {
            measure_blocks(&rows, block_size_bytes)?;
        }
    }
    Ok(())
}
