//! The codec alone, on the chunks that an engine would give it: how long one call holds a thread.
//!
//! All codecs are called through Lithify's codec room, whatever the engine: engines that bundle
//! their own copies of the libraries differ by their versions.

use std::time::{Duration, Instant};

use lithify::Compression;
use lithify::codec::Compressor;
use serde::{Deserialize, Serialize};

use crate::adapter::codec::Codec;
use crate::run::RunError;

/// A call from this time on is a stall of an event loop.
const LONG: Duration = Duration::from_millis(1);

/// Calls of a codec, one per chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodecCalls {
    /// Chunks.
    pub calls: u64,
    /// What went in, bytes.
    pub raw_bytes: u64,
    /// What came out, bytes.
    pub stored_bytes: u64,
    /// All calls together, microseconds.
    pub sum_us: u64,
    /// The longest one, microseconds.
    pub longest_us: u64,
    /// Calls of a millisecond and more.
    pub long_calls: u64,
    /// Those together, microseconds.
    pub long_sum_us: u64,
}

/// Cuts rows into chunks, as a table file does: a chunk ends with the first row that fills it.
pub struct Chunks {
    chunk_bytes: usize,
    chunk: Vec<u8>,
}

impl Chunks {
    /// Chunks of about so many bytes.
    pub fn new(chunk_bytes: usize) -> Chunks {
        Chunks { chunk_bytes, chunk: Vec::new() }
    }

    /// Adds a row; gives a chunk to `full` when it is one.
    ///
    /// # Errors
    /// Those of `full`.
    pub fn add<E>(
        &mut self,
        key: &[u8],
        value: &[u8],
        full: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.chunk.extend_from_slice(key);
        self.chunk.extend_from_slice(value);
        if self.chunk.len() < self.chunk_bytes {
            return Ok(());
        }
        self.finish(full)
    }

    /// Gives the rest to `full`, if there is one.
    ///
    /// # Errors
    /// Those of `full`.
    pub fn finish<E>(&mut self, full: &mut dyn FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        if !self.chunk.is_empty() {
            full(&self.chunk)?;
            self.chunk.clear();
        }
        Ok(())
    }
}

/// Times the calls of one codec. A chunk is compressed several times and the shortest counts, so
/// that a thread that had to wait for a core is not taken for a slow codec.
pub struct CallTimer {
    compressor: Compressor,
    passes: u64,
    stored: Vec<u8>,
    calls: CodecCalls,
}

impl CallTimer {
    /// A timer of `codec`.
    ///
    /// # Errors
    /// The codec has no such effort, or no memory.
    pub fn new(codec: Codec, passes: u64) -> Result<CallTimer, RunError> {
        let compressor = Compressor::new(Compression::from(codec))
            .map_err(|error| RunError::new(format!("codec {codec}: {error}")))?;
        Ok(CallTimer { compressor, passes, stored: Vec::new(), calls: CodecCalls::default() })
    }

    /// Compresses a chunk.
    ///
    /// # Errors
    /// The codec's.
    pub fn call(&mut self, chunk: &[u8]) -> Result<(), RunError> {
        let mut shortest = Duration::MAX;
        for _ in 0..self.passes.max(1) {
            self.stored.clear();
            let began = Instant::now();
            let result = self.compressor.compress(chunk, &mut self.stored);
            shortest = shortest.min(began.elapsed());
            result.map_err(|error| RunError::new(format!("codec: {error}")))?;
        }
        self.calls.count(chunk.len() as u64, self.stored.len() as u64, shortest);
        Ok(())
    }

    /// What was seen.
    pub fn finish(self) -> CodecCalls {
        self.calls
    }
}

impl CodecCalls {
    fn count(&mut self, raw_bytes: u64, stored_bytes: u64, time: Duration) {
        let us = time.as_micros() as u64;
        self.calls += 1;
        self.raw_bytes += raw_bytes;
        self.stored_bytes += stored_bytes;
        self.sum_us += us;
        self.longest_us = self.longest_us.max(us);
        if time >= LONG {
            self.long_calls += 1;
            self.long_sum_us += us;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_cut_where_they_fill_a_chunk() {
        let mut lengths = Vec::new();
        let mut full = |chunk: &[u8]| -> Result<(), RunError> {
            lengths.push(chunk.len());
            Ok(())
        };
        let mut chunks = Chunks::new(10);
        for _ in 0..5 {
            chunks.add(b"key", b"val", &mut full).expect("is cut");
        }
        chunks.finish(&mut full).expect("is cut");
        chunks.finish(&mut full).expect("nothing is left");
        assert_eq!(lengths, [12, 12, 6]);
        let refused = Chunks::new(1).add(b"k", b"v", &mut |_| Err("full"));
        assert_eq!(refused, Err("full"));
    }

    #[test]
    fn calls_of_a_millisecond_are_long() {
        let mut calls = CodecCalls::default();
        for us in [999, 1_000, 2_500] {
            calls.count(100, 50, Duration::from_micros(us));
        }
        let expected = CodecCalls {
            calls: 3,
            raw_bytes: 300,
            stored_bytes: 150,
            sum_us: 4_499,
            longest_us: 2_500,
            long_calls: 2,
            long_sum_us: 3_500,
        };
        assert_eq!(calls, expected);
        let mut timer = CallTimer::new(Codec::LZ4, 2).expect("is made");
        timer.call(&[b'x'; 1000]).expect("compresses");
        let calls = timer.finish();
        assert_eq!((calls.calls, calls.raw_bytes), (1, 1000));
        assert!(calls.stored_bytes < 100, "{calls:?}");
    }
}
