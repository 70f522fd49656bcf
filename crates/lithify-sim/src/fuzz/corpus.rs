//! What mutation starts from: pieces of databases that the engine itself has made.

use crate::damage::sample::{End, PATH, sample};
use lithify::codec::Compressor;
use lithify::fs::{FileSystem, OpenMode};
use lithify::manifest::FileName;
use lithify::{Compression, Result};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

/// Inputs by the name of the target.
#[derive(Default)]
pub struct Corpus {
    seeds: BTreeMap<&'static str, Vec<Vec<u8>>>,
}

/// The corpus, made once.
pub fn corpus() -> &'static Corpus {
    static CORPUS: OnceLock<Corpus> = OnceLock::new();
    // INVARIANT: the sample is whole.
    CORPUS.get_or_init(|| Corpus::made().expect("pieces of an undamaged database"))
}

impl Corpus {
    /// The inputs of a target.
    pub fn seeds(&self, target: &str) -> &[Vec<u8>] {
        self.seeds.get(target).map_or(&[], Vec::as_slice)
    }

    fn add(&mut self, target: &'static str, bytes: Vec<u8>) {
        let seeds = self.seeds.entry(target).or_default();
        if !seeds.contains(&bytes) {
            seeds.push(bytes);
        }
    }

    fn made() -> Result<Self> {
        let mut corpus = Corpus::default();
        for end in [End::Closed, End::Killed] {
            let sample = sample(end);
            for (number, name) in sample.names().into_iter().enumerate() {
                let bytes = sample.content(&name);
                let path = Path::new(PATH).join(&name);
                corpus.add("database", [&[number as u8], &bytes[..]].concat());
                match FileName::parse(&name) {
                    Some(FileName::Table(_)) => {
                        let file = sample.files.open(&path, OpenMode::Read)?;
                        for (target, block) in lithify::fuzzing::blocks(file)? {
                            corpus.add(target, block);
                        }
                        corpus.add("footer", bytes.clone());
                        corpus.add("table", bytes.clone());
                    }
                    Some(FileName::Wal(_)) => corpus.log("log", "group", &bytes),
                    Some(FileName::Manifest(_)) => corpus.log("manifest", "edit", &bytes),
                    Some(FileName::Current) => corpus.add("current", bytes.clone()),
                    Some(FileName::Witness) => {
                        corpus.add("witness", bytes[..56].to_vec());
                        corpus.add("witness", bytes[512..].to_vec());
                    }
                    Some(FileName::Heat) => corpus.add("heat", bytes.clone()),
                    _ => {}
                }
                corpus.add("dump", bytes);
            }
        }
        for seed in 0..8_u32 {
            let order = (0..200_u32).map(|at| (at * (2 * seed + 1)) as u8);
            corpus.add("operations", seed.to_le_bytes().into_iter().chain(order).collect());
        }
        corpus.encoded()?;
        corpus.options();
        Ok(corpus)
    }

    /// A log without what is behind its end, and the payloads of its records.
    fn log(&mut self, target: &'static str, payload_target: &'static str, bytes: &[u8]) {
        let mut at = 72;
        while let Some(frame) = bytes.get(at..).and_then(<[u8]>::first_chunk::<32>) {
            let word = |from: usize| frame[from..from + 8].try_into().map_or(0, u64::from_le_bytes);
            let length = (word(0) >> 32) as usize;
            let is_of_log = frame[8..16] == bytes[40..48] && word(16) == at as u64;
            if !is_of_log || at + 32 + length > bytes.len() {
                break;
            }
            self.add(payload_target, bytes[at + 32..at + 32 + length].to_vec());
            at = (at + 32 + length).next_multiple_of(8);
        }
        self.add(target, bytes[..at.min(bytes.len())].to_vec());
    }

    /// Payloads of every codec, alone and in the envelope of a block.
    fn encoded(&mut self) -> Result<()> {
        let blocks: Vec<_> = self.seeds("data_block").iter().take(3).cloned().collect();
        let compressions = ["none", "snappy", "zlib-6", "lz4", "zstd-1"];
        for (number, compression) in compressions.into_iter().enumerate() {
            let mut compressor = Compressor::new(compression.parse::<Compression>()?)?;
            for raw in &blocks {
                let mut payload = Vec::new();
                compressor.compress(raw, &mut payload)?;
                let size = (raw.len() as u32).to_le_bytes();
                let head = [&[number as u8, 0], &size[..]].concat();
                self.add("codec", [&head[..], &payload].concat());
                let trailer = [&[1, number as u8, 0, 0, 0, 0, 0, 0], &size[..], &[0; 4]].concat();
                let mut block = [&[0], &payload[..], &trailer].concat();
                super::seal::stored_block(&mut block);
                self.add("stored_block", block);
            }
        }
        let content = b"a dictionary of some words that blocks have";
        let name = lithify::codec::DictionaryHash::of(content);
        let size = (16 + content.len() as u32).to_le_bytes();
        let trailer = [&[8, 0, 0, 0], &name.0[..4], &size, &[0; 4]].concat();
        let mut block = [&[7], &name.0[..], content, &trailer].concat();
        super::seal::stored_block(&mut block);
        self.add("stored_block", block);
        Ok(())
    }

    fn options(&mut self) {
        let texts = [
            "compression=none,lz4,zstd--5 block_size_bytes=16384 table_bytes=16777216 \
             base_level_bytes_max=67108864 fanout=8 filter_bits_per_key=10 prefix_length_bytes=0",
            "compression=none,snappy,lz4-9,libdeflate-6 fanout=5 prefix_length_bytes=20",
        ];
        for text in texts {
            self.add("options", text.as_bytes().to_vec());
        }
    }
}
