//! Calls of codecs on units, by thread CPU time.
//!
//! 1. All units of a cell are encoded one after another, then decoded, so that no call finds its own
//!    unit in the processor's caches and tables. The next round does it again.
//! 2. The shortest of the rounds counts: a thread that was interrupted is no slow codec.
//! 3. The context is warm, as in a database.
//!
//! A unit of every third place is held out: dictionaries and predictions are made without it.

use lithify::Compression;
use lithify::base::Clock;
use lithify::codec::{Compressor, Decompressor, Dictionary, train};
use lithify::fs::SystemEnvironment;
use std::sync::Arc;

use crate::error::Result;
use crate::units::{Part, Shape, Unit};

/// Of so many places one is held out.
const HELD_OUT_PERIOD: usize = 3;

/// Rounds of calls that take less than this.
const ROUNDS: &[(u64, usize)] = &[(200_000, 3), (2_000_000, 2), (u64::MAX, 1)];

/// Calls that time is measured on. Their sizes vary little by little, so that many are not needed.
const TIMED_CALLS: usize = 192;

/// What is to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cell {
    /// How units are laid out.
    pub shape: Shape,
    /// Their size.
    pub size_bytes: usize,
    /// Codec and effort.
    pub compression: Compression,
    /// Bytes of a dictionary; 0 without one.
    pub dictionary_bytes: usize,
}

/// One unit, encoded and decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Call {
    /// The place that it comes from, in the order of the data.
    pub place: usize,
    /// What the codec was given.
    pub unit_bytes: u32,
    /// What came out, whether that is less or more.
    pub encoded_bytes: u32,
    /// What the unit's rows take in the input.
    pub data_bytes: f64,
    /// Its rows.
    pub rows: f64,
    /// What the unit is of its file.
    pub part: Part,
    /// CPU time of encoding and of decoding; `None` where only the size was measured.
    pub time: Option<[u64; 2]>,
}

impl Call {
    /// Whether its place is held out.
    pub fn is_held_out(&self) -> bool {
        is_held_out(self.place)
    }
}

/// Whether a place is held out.
pub fn is_held_out(place: usize) -> bool {
    place % HELD_OUT_PERIOD == 1
}

/// Measures cells.
pub struct Bench {
    clock: SystemEnvironment,
    decompressor: Decompressor,
    /// What reading the clock adds to a call.
    overhead_ns: u64,
    encoded: Vec<u8>,
    decoded: Vec<u8>,
}

/// The calls of a cell, with what it took to make them.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// One for each unit.
    pub calls: Vec<Call>,
    /// CPU time of all rounds.
    pub spent_ns: u64,
}

impl Default for Bench {
    fn default() -> Self {
        Bench::new()
    }
}

impl Bench {
    /// A bench with a clock that is compared with itself.
    pub fn new() -> Self {
        let clock = SystemEnvironment;
        let pause = || {
            let before = clock.thread_cpu_ns();
            clock.thread_cpu_ns() - before
        };
        let overhead_ns = (0..200).map(|_| pause()).min().unwrap_or(0);
        let (encoded, decoded) = (Vec::new(), Vec::new());
        Bench { clock, decompressor: Decompressor::new(), overhead_ns, encoded, decoded }
    }

    /// Encodes and decodes units, each with the number of its place. `goes_on` is asked before each call:
    /// once it says no there is no result, because the units so far are of the start of the data.
    ///
    /// # Errors
    /// The codec has no such effort, there is no memory, or it does not give back what it was given.
    pub fn measure(
        &mut self,
        cell: &Cell,
        units: &[(usize, &Unit)],
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Option<Measured>> {
        let began = self.clock.thread_cpu_ns();
        let dictionary = self.dictionary(cell, units)?;
        let mut compressor = Compressor::new(cell.compression)?;
        let mut measured = Measured::default();
        // With a dictionary only what it was not made of is measured.
        let is_measured =
            |unit: &&(usize, &Unit)| cell.dictionary_bytes == 0 || is_held_out(unit.0);
        let units: Vec<(usize, &Unit)> = units.iter().filter(is_measured).copied().collect();
        if cell.dictionary_bytes > 0 && dictionary.is_none() {
            return Ok(Some(measured));
        }
        let dictionary = dictionary.as_deref();
        if let Some((_, unit)) = units.first() {
            self.call(&mut compressor, dictionary, unit)?;
        }
        let step = units.len().div_ceil(TIMED_CALLS).max(1);
        for (number, (place, unit)) in units.iter().enumerate() {
            if !goes_on() {
                return Ok(None);
            }
            let [encode_ns, decode_ns] = self.call(&mut compressor, dictionary, unit)?;
            let is_timed = number % step == 0;
            measured.calls.push(Call {
                place: *place,
                unit_bytes: unit.bytes.len() as u32,
                encoded_bytes: self.encoded.len() as u32,
                data_bytes: unit.data_bytes,
                rows: unit.rows,
                part: unit.part,
                time: is_timed.then_some([encode_ns, decode_ns]),
            });
        }
        self.repeat(&mut compressor, dictionary, &units, &mut measured.calls)?;
        measured.spent_ns = self.clock.thread_cpu_ns() - began;
        Ok(Some(measured))
    }

    /// More rounds of the calls that are timed; the shortest of each counts.
    fn repeat(
        &mut self,
        compressor: &mut Compressor,
        dictionary: Option<&Dictionary>,
        units: &[(usize, &Unit)],
        calls: &mut [Call],
    ) -> Result<()> {
        let longest = calls.iter().filter_map(|call| call.time).map(|[encode, _]| encode).max();
        let longest = longest.unwrap_or(0);
        let rounds = ROUNDS.iter().find(|(below_ns, _)| longest < *below_ns);
        for _ in 1..rounds.map_or(1, |(_, rounds)| *rounds) {
            for (call, (_, unit)) in calls.iter_mut().zip(units) {
                let Some(best) = &mut call.time else { continue };
                let again = self.call(compressor, dictionary, unit)?;
                *best = [best[0].min(again[0]), best[1].min(again[1])];
            }
        }
        Ok(())
    }

    /// Encodes and decodes one unit.
    fn call(
        &mut self,
        compressor: &mut Compressor,
        dictionary: Option<&Dictionary>,
        unit: &Unit,
    ) -> Result<[u64; 2]> {
        self.encoded.clear();
        self.decoded.clear();
        let (codec, raw_len) = (compressor.compression().codec, unit.bytes.len());
        let start = self.clock.thread_cpu_ns();
        compressor.compress_with(dictionary, &unit.bytes, &mut self.encoded)?;
        let middle = self.clock.thread_cpu_ns();
        let (encoded, decoded) = (&self.encoded, &mut self.decoded);
        match dictionary {
            None => self.decompressor.decompress_into(codec, encoded, raw_len, decoded)?,
            Some(dictionary) => {
                self.decompressor.decompress_with(codec, dictionary, encoded, raw_len, decoded)?;
            }
        }
        let end = self.clock.thread_cpu_ns();
        if self.decoded != unit.bytes {
            let what = format!("{} gave back other bytes", compressor.compression());
            return Err(crate::AdviseError::data(what));
        }
        let time = |from: u64, to: u64| (to - from).saturating_sub(self.overhead_ns);
        Ok([time(start, middle), time(middle, end)])
    }

    /// A dictionary of the places that are not held out.
    fn dictionary(&self, cell: &Cell, units: &[(usize, &Unit)]) -> Result<Option<Arc<Dictionary>>> {
        if cell.dictionary_bytes == 0 {
            return Ok(None);
        }
        let shown = units.iter().filter(|(place, _)| !is_held_out(*place));
        let samples: Vec<&[u8]> = shown.map(|(_, unit)| unit.bytes.as_slice()).collect();
        let dictionary = train(&samples, cell.dictionary_bytes)?;
        if let Some(dictionary) = &dictionary {
            dictionary.prepare_encoding(cell.compression)?;
            dictionary.prepare_decoding(cell.compression.codec);
        }
        Ok(dictionary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units() -> Vec<Unit> {
        let text = |number: usize| {
            let words = ["gneiss ", "schist ", "slate ", "marble "];
            let line = |at: usize| words[(at * 7 + number * 3 + at / 5) % 4];
            (0..600).map(line).collect::<String>().into_bytes()
        };
        let unit = |bytes: Vec<u8>| Unit {
            data_bytes: bytes.len() as f64,
            rows: 1.0,
            bytes,
            part: Part::Inner,
        };
        (0..30).map(|number| unit(text(number))).collect()
    }

    fn cell(compression: &str, dictionary_bytes: usize) -> Cell {
        let compression = compression.parse().expect("is a codec");
        Cell { shape: Shape::Bytes, size_bytes: 4096, compression, dictionary_bytes }
    }

    fn measured(bench: &mut Bench, cell: &Cell, units: &[(usize, &Unit)]) -> Measured {
        let measured = bench.measure(cell, units, &|| true).expect("is measured");
        measured.expect("has time")
    }

    #[test]
    fn calls_have_sizes_and_times() {
        let units = units();
        let numbered: Vec<(usize, &Unit)> = units.iter().enumerate().collect();
        let mut bench = Bench::new();
        for codec in ["none", "lz4", "snappy", "zstd-3", "zlib-6"] {
            let measured = measured(&mut bench, &cell(codec, 0), &numbered);
            assert_eq!(measured.calls.len(), units.len(), "{codec}");
            assert!(measured.calls.iter().all(|call| call.time.is_some()), "{codec}");
            let shrinks = measured.calls.iter().all(|call| call.encoded_bytes < call.unit_bytes);
            assert_eq!(shrinks, codec != "none", "{codec}");
        }
    }

    #[test]
    fn a_dictionary_is_judged_on_what_it_was_not_made_of() {
        let units = units();
        let numbered: Vec<(usize, &Unit)> = units.iter().enumerate().collect();
        let mut bench = Bench::new();
        let without = measured(&mut bench, &cell("zstd-1", 0), &numbered);
        let with = measured(&mut bench, &cell("zstd-1", 4096), &numbered);
        assert_eq!(with.calls.len(), 10);
        assert!(with.calls.iter().all(Call::is_held_out));
        let mean = |calls: &[Call]| {
            calls.iter().map(|call| f64::from(call.encoded_bytes)).sum::<f64>() / calls.len() as f64
        };
        assert!(mean(&with.calls) < mean(&without.calls));
        assert!(measured(&mut bench, &cell("zstd-1", 4096), &numbered[..1]).calls.is_empty());
        let refused = bench.measure(&cell("snappy", 4096), &numbered, &|| true);
        assert!(refused.is_err(), "it takes none");
    }

    /// However much one call takes, no other begins behind the end.
    #[test]
    fn time_is_asked_for_between_calls() {
        let units = units();
        let numbered: Vec<(usize, &Unit)> = units.iter().enumerate().collect();
        let asked = std::cell::Cell::new(0_u32);
        let goes_on = || asked.replace(asked.get() + 1) < 7;
        let stopped = Bench::new().measure(&cell("lz4", 0), &numbered, &goes_on);
        assert!(stopped.expect("is no error").is_none() && asked.get() == 8);
    }
}
