//! Measures candidates on a specimen of a table that is being written, one call pair of codecs at a
//! time, so that no step of a job grows by more than that.

use super::output::Workshop;
use crate::Result;
use crate::chooser::{DICTIONARY_BYTES, METHODS, Measured, Method, Trial};
use crate::codec::{CodecId, Compressor, Decompressor, Dictionary, train};
use crate::fs::CodecCall;
use crate::table::Specimen;
use std::collections::VecDeque;
use std::sync::Arc;

/// Raw bytes of a specimen.
pub(crate) const SPECIMEN_BYTES: usize = 32 << 10;

/// A specimen with what is to be measured on it, and what was.
pub(crate) struct Study {
    specimen: Specimen,
    restart_interval: u16,
    trials: VecDeque<Trial>,
    dictionary: Option<Arc<Dictionary>>,
    /// Its rows at the size of the last trial.
    cut: (usize, Vec<Vec<u8>>),
    measured: Vec<Measured>,
    spent_ns: u64,
}

impl Study {
    pub(crate) fn new(
        specimen: Specimen,
        restart_interval: u16,
        trials: Vec<Trial>,
        dictionary: Option<Arc<Dictionary>>,
    ) -> Self {
        Study {
            specimen,
            restart_interval,
            trials: trials.into(),
            dictionary,
            cut: (0, Vec::new()),
            measured: Vec::new(),
            spent_ns: 0,
        }
    }

    /// Bytes that it holds.
    pub(crate) fn memory_bytes(&self) -> usize {
        2 * self.specimen.raw_bytes()
    }

    /// Measures one candidate at one size; false if all are measured.
    pub(crate) fn advance(&mut self, workshop: &Workshop) -> Result<bool> {
        let Some(trial) = self.trials.pop_front() else { return Ok(false) };
        if self.cut.0 != trial.block_size_bytes {
            let clock = &*workshop.world.environment;
            let start_ns = clock.thread_cpu_ns();
            let blocks = self.specimen.cut(trial.block_size_bytes, self.restart_interval)?;
            self.spent_ns += clock.thread_cpu_ns().saturating_sub(start_ns);
            self.cut = (trial.block_size_bytes, blocks);
        }
        if let Some(method) = METHODS.get(trial.method) {
            let dictionary = self.dictionary.as_deref().filter(|_| method.has_dictionary);
            let (measured, spent_ns) = measure(workshop, &self.cut.1, trial, *method, dictionary)?;
            self.spent_ns += spent_ns;
            self.measured.push(measured);
        }
        Ok(true)
    }

    /// What was measured, the CPU time that it took, and the specimen.
    pub(crate) fn end(self) -> (Vec<Measured>, u64, Specimen) {
        (self.measured, self.spent_ns, self.specimen)
    }
}

fn decode(
    decompressor: &mut Decompressor,
    codec: CodecId,
    dictionary: Option<&Dictionary>,
    (payload, raw_len): (&[u8], usize),
    raw: &mut Vec<u8>,
) -> Result<()> {
    raw.clear();
    match dictionary {
        None => decompressor.decompress_into(codec, payload, raw_len, raw),
        Some(dictionary) => decompressor.decompress_with(codec, dictionary, payload, raw_len, raw),
    }
}

/// Room for encoded blocks. A job calls a codec thousands of times, with memory that it has used before:
/// first calls, in a new context and into new memory, would count two or three times as much.
fn warm(
    compressor: &mut Compressor,
    decompressor: &mut Decompressor,
    dictionary: Option<&Dictionary>,
    blocks: &[Vec<u8>],
    raw: &mut Vec<u8>,
) -> Result<Vec<Vec<u8>>> {
    let mut payloads: Vec<Vec<u8>> = blocks.iter().map(|block| vec![0; block.len() + 64]).collect();
    payloads.iter_mut().for_each(Vec::clear);
    if let (Some(block), Some(payload)) = (blocks.first(), payloads.first_mut()) {
        compressor.compress_with(dictionary, block, payload)?;
        let codec = compressor.compression().codec;
        decode(decompressor, codec, dictionary, (payload, block.len()), raw)?;
        payload.clear();
    }
    Ok(payloads)
}

/// Encodes all blocks, then decodes those that would be stored so. Also says what CPU time all of it took.
fn measure(
    workshop: &Workshop,
    blocks: &[Vec<u8>],
    trial: Trial,
    method: Method,
    dictionary: Option<&Dictionary>,
) -> Result<(Measured, u64)> {
    let environment = &*workshop.world.environment;
    let codec = method.compression.codec;
    let raw_bytes: u64 = blocks.iter().map(|block| block.len() as u64).sum();
    let call = |encodes, raw_bytes| CodecCall {
        codec: codec as u8,
        effort: method.compression.effort,
        has_dictionary: method.has_dictionary,
        encodes,
        raw_bytes,
    };
    if let Some(dictionary) = dictionary {
        // Digests are made once for many blocks.
        dictionary.prepare_encoding(method.compression)?;
        dictionary.prepare_decoding(codec);
    }
    // Most methods are measured and not used: their contexts would keep memory from the cache.
    let mut compressor = workshop.pool.compressor_for_once(method.compression)?;
    let start_ns = environment.thread_cpu_ns();
    let mut decompressor = workshop.pool.decompressor();
    let mut raw = Vec::new();
    let mut payloads = warm(&mut compressor, &mut decompressor, dictionary, blocks, &mut raw)?;
    let warming_ns = environment.thread_cpu_ns().saturating_sub(start_ns);
    let mut outcome = Ok(());
    let compress_ns = environment.codec_cpu_ns(&call(true, raw_bytes), &mut || {
        outcome = blocks
            .iter()
            .zip(&mut payloads)
            .try_for_each(|(block, payload)| compressor.compress_with(dictionary, block, payload));
    });
    outcome?;
    let shrinks = |block: &[u8], payload: &[u8]| payload.len() <= block.len() / 8 * 7;
    let stored: Vec<(&Vec<u8>, &Vec<u8>)> = blocks
        .iter()
        .zip(&payloads)
        .filter(|(block, payload)| codec != CodecId::None && shrinks(block, payload))
        .collect();
    let saved: u64 =
        stored.iter().map(|(block, payload)| (block.len() - payload.len()) as u64).sum();
    let decoded_bytes: u64 = stored.iter().map(|(block, _)| block.len() as u64).sum();
    let mut outcome = Ok(());
    let decompress_ns = environment.codec_cpu_ns(&call(false, decoded_bytes), &mut || {
        outcome = stored.iter().try_for_each(|(block, payload)| {
            decode(&mut decompressor, codec, dictionary, (payload, block.len()), &mut raw)
        });
    });
    outcome?;
    let measured = Measured {
        method: trial.method,
        block_size_bytes: trial.block_size_bytes,
        raw_bytes,
        stored_bytes: raw_bytes - saved,
        compress_ns: compress_ns as f64,
        decompress_ns: decompress_ns as f64,
    };
    Ok((measured, warming_ns + compress_ns + decompress_ns))
}

/// A dictionary made of samples, if they have something in common, and the CPU time that it took.
pub(crate) fn train_on(workshop: &Workshop, samples: &[Vec<u8>]) -> (Option<Arc<Dictionary>>, u64) {
    let samples: Vec<&[u8]> = samples.iter().map(Vec::as_slice).collect();
    let raw_bytes = samples.iter().map(|sample| sample.len() as u64).sum();
    // About what encoding at a high effort takes.
    let call = CodecCall {
        codec: CodecId::Zstd as u8,
        effort: 6,
        has_dictionary: true,
        encodes: true,
        raw_bytes,
    };
    let mut made = None;
    let spent_ns = workshop.world.environment.codec_cpu_ns(&call, &mut || {
        // Samples that nothing can be made of are no failure.
        made = train(&samples, DICTIONARY_BYTES as usize).ok().flatten();
    });
    (made, spent_ns)
}
