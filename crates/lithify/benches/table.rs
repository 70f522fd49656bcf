//! What a row costs in a table: building it, reading it from the cache, scanning it.
//!
//! Rows are like LinkBench's: keys of 24 bytes, values of 176. Figures are nanoseconds of thread
//! CPU per row, the least of several rounds; beside a build stands what the codec alone took on
//! the same blocks in the same run. `cargo bench --bench table`.

use lithify::base::{Clock, MemoryBudget, SEQUENCE_MAX, Trailer, ValueKind};
use lithify::cache::BlockCache;
use lithify::codec::{CodecId, Compression, ContextPool};
use lithify::fs::{Advice, File};
use lithify::stats::{Part, WorkMeter};
use lithify::table::{ReadContext, ScanPoll, TableBuilder, TableOptions, TableReader};
use lithify::{Error, Result};
use std::hint::black_box;
use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

const ROWS: usize = 100_000;
const ROUNDS: usize = 7;

/// With `splits`, ticks are thread CPU time: dear, but not disturbed by others. Totals are taken
/// in rounds without, parts in rounds with it.
struct BenchClock {
    start: Instant,
    splits: bool,
}

impl Clock for BenchClock {
    fn now_us(&self) -> u64 {
        self.start.elapsed().as_micros() as u64
    }
    fn thread_cpu_ns(&self) -> u64 {
        lithify::fs::SystemEnvironment.thread_cpu_ns()
    }
    fn ticks(&self) -> u64 {
        if self.splits { self.thread_cpu_ns() } else { self.start.elapsed().as_nanos() as u64 }
    }
    fn unix_time_s(&self) -> u64 {
        0
    }
}

/// A file in memory, so that the figures are of the table and not of a disk.
struct MemoryFile(Vec<u8>);

impl File for MemoryFile {
    fn path(&self) -> &Path {
        Path::new("bench.sst")
    }
    fn length(&self) -> Result<u64> {
        Ok(self.0.len() as u64)
    }
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let rest = self.0.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
    fn write_at(&self, _: &[IoSlice<'_>], _: u64) -> Result<()> {
        Err(read_only())
    }
    fn append(&self, _: &[IoSlice<'_>]) -> Result<u64> {
        Err(read_only())
    }
    fn sync_data(&self) -> Result<()> {
        Ok(())
    }
    fn sync_range(&self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }
    fn preallocate(&self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }
    fn truncate(&self, _: u64) -> Result<()> {
        Err(read_only())
    }
    fn advise(&self, _: u64, _: u64, _: Advice) -> Result<()> {
        Ok(())
    }
    fn direct_io_alignment(&self) -> Option<usize> {
        None
    }
}

fn read_only() -> Error {
    Error::invalid("this file is only read")
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }
}

struct Row {
    key: [u8; 24],
    trailer: Trailer,
    value: Vec<u8>,
}

/// Links: lists of a few entries, ids that rise; payloads that zstd takes to a little under half.
fn rows(zero_sequences: bool) -> Vec<Row> {
    let mut random = Random(1);
    let (mut id1, mut id2) = (1_u64, 0_u64);
    (0..ROWS)
        .map(|index| {
            if random.next().is_multiple_of(5) {
                id1 += 1 + random.next() % 40;
                id2 = 0;
            }
            id2 += 1 + random.next() % 1_000_000;
            let mut key = [0; 24];
            key[..8].copy_from_slice(&123_456_789_u64.to_be_bytes());
            key[8..16].copy_from_slice(&id1.to_be_bytes());
            key[16..].copy_from_slice(&id2.to_be_bytes());
            let mut value = vec![1, 0, 0, 0, 0];
            value
                .extend_from_slice(&(1_400_000_000_000 + random.next() % 10_000_000).to_le_bytes());
            while value.len() < 176 {
                // Half of a payload is text of few letters, half repeats an earlier piece.
                if value.len() > 40 && random.next().is_multiple_of(2) {
                    let from = random.next() as usize % (value.len() - 8);
                    value.extend_from_within(from..from + 8);
                } else {
                    value.extend((0..8).map(|_| b' ' + (random.next() % 48) as u8));
                }
            }
            value.truncate(176);
            let sequence = if zero_sequences { 0 } else { 1_000_000 + index as u64 * 7919 % 9973 };
            Row { key, trailer: Trailer::new(sequence, ValueKind::Put), value }
        })
        .collect()
}

fn compression(codec: CodecId) -> Compression {
    Compression { codec, effort: i32::from(codec != CodecId::None), ..Compression::NONE }
}

struct Bench {
    clock: BenchClock,
    splitting_clock: BenchClock,
    pool: Arc<ContextPool>,
}

impl Bench {
    /// The least nanoseconds of thread CPU over the rounds.
    fn least_ns(&self, mut work: impl FnMut()) -> f64 {
        let measure = |_| {
            let start = self.clock.thread_cpu_ns();
            work();
            self.clock.thread_cpu_ns() - start
        };
        (0..ROUNDS).map(measure).min().unwrap_or(0) as f64
    }

    /// Builds a table and hands its bytes to `write` in pieces.
    fn build(
        &self,
        rows: &[Row],
        options: &TableOptions,
        codec: CodecId,
        clock: &BenchClock,
        mut write: impl FnMut(&[u8]),
    ) -> Result<Built> {
        let mut meter = WorkMeter::default();
        let compressor = self.pool.compressor(compression(codec))?;
        let mut table = TableBuilder::new(options.clone(), [7; 16], compressor);
        let start = self.clock.thread_cpu_ns();
        for row in rows {
            table.add(&row.key, row.trailer, &row.value, &mut meter, clock)?;
            if table.output_bytes() >= 128 << 10 {
                let piece = table.take_output();
                write(&piece);
                table.recycle(piece);
            }
        }
        let summary = table.finish(&mut meter, clock)?;
        write(&table.take_output());
        let cpu_ns = self.clock.thread_cpu_ns() - start;
        let data_bytes = summary.properties.data_stored_bytes;
        Ok(Built { size_bytes: summary.size_bytes, data_bytes, cpu_ns, meter })
    }

    fn print_build(&self, rows: &[Row], options: &TableOptions, codec: CodecId) -> Result<()> {
        let mut best = self.build(rows, options, codec, &self.splitting_clock, |_| ())?;
        for _ in 0..ROUNDS {
            let built = self.build(rows, options, codec, &self.clock, |_| ())?;
            best.cpu_ns = best.cpu_ns.min(built.cpu_ns);
            let split = self.build(rows, options, codec, &self.splitting_clock, |_| ())?;
            keep_least(&mut best.meter, &split.meter);
        }
        let per_row = |ns: u64| ns as f64 / rows.len() as f64;
        let ticks = |part: Part| per_row(best.meter.ticks[part as usize]);
        let total = per_row(best.cpu_ns);
        let parts = [Part::Compress, Part::Filter, Part::Checksum].map(ticks);
        println!(
            "build {:<7} {total:8.1} ns/row = codec {:7.1} + filter {:5.1} + checksum {:5.1} \
             + rest {:5.1}; {:.1} bytes/row, {:.1} in data blocks",
            codec.name(),
            parts[0],
            parts[1],
            parts[2],
            total - parts.iter().sum::<f64>(),
            per_row(best.size_bytes),
            per_row(best.data_bytes),
        );
        Ok(())
    }

    fn open(&self, bytes: Vec<u8>, cache_bytes: usize) -> Result<Arc<TableReader>> {
        let cache = BlockCache::new(MemoryBudget::new(cache_bytes), 0);
        TableReader::open(Arc::new(MemoryFile(bytes)), Some(cache), Arc::clone(&self.pool))
    }

    fn print_reads(&self, rows: &[Row], bytes: &[u8], codec: CodecId) -> Result<()> {
        let reader = self.open(bytes.to_vec(), 1 << 30)?;
        // The keys lie in the order of use: fetching them is not what is measured.
        let mut random = Random(9);
        let keys: Vec<[u8; 24]> =
            (0..ROWS).map(|_| rows[random.next() as usize % rows.len()].key).collect();
        let mut failed = None;
        let get = self.least_ns(|| {
            let mut context = ReadContext::new(&self.clock);
            for key in &keys {
                match reader.get(key, SEQUENCE_MAX, &mut context) {
                    Ok(found) => drop(black_box(found)),
                    Err(error) => failed = Some(error),
                }
            }
        });
        let absent = self.least_ns(|| {
            let mut context = ReadContext::new(&self.clock);
            for key in &keys {
                let mut key = *key;
                key[23] ^= 0x55;
                drop(black_box(reader.get(&key, SEQUENCE_MAX, &mut context)));
            }
        });
        let mut cursor = reader.cursor();
        let scan = self.least_ns(|| {
            let mut context = ReadContext::new(&self.clock);
            for key in &keys[..ROWS / 10] {
                let mut moved = cursor.seek(key, Trailer(u64::MAX), &mut context);
                for _ in 0..10 {
                    black_box((cursor.key(), cursor.value()));
                    moved = moved.and_then(|()| cursor.next(&mut context));
                }
                failed = moved.err().or(failed.take());
            }
        });
        // Index and filter are cached, data blocks are read and decoded for every get.
        let cold_reader = self.open(bytes.to_vec(), 1 << 30)?;
        let cold = self.least_ns(|| {
            let mut context = ReadContext { fill_cache: false, ..ReadContext::new(&self.clock) };
            for key in &keys[..ROWS / 20] {
                drop(black_box(cold_reader.get(key, SEQUENCE_MAX, &mut context)));
            }
        });
        let per = |ns: f64, count: usize| ns / count as f64;
        println!(
            "read  {:<7} cached get {:6.1} ns, absent {:6.1} ns, seek and 10 rows {:7.1} ns, \
             block not cached {:8.1} ns",
            codec.name(),
            per(get, ROWS),
            per(absent, ROWS),
            per(scan, ROWS / 10),
            per(cold, ROWS / 20),
        );
        failed.map_or(Ok(()), Err)
    }

    fn print_scan(&self, rows: &[Row], bytes: &[u8], codec: CodecId) -> Result<()> {
        let reader = self.open(bytes.to_vec(), 1 << 20)?;
        let mut least = WorkMeter { ticks: [u64::MAX; _], ..WorkMeter::default() };
        let mut result = Ok(0);
        let ns = self.least_ns(|| {
            result = scan(&reader, &mut WorkMeter::default(), &self.clock);
        });
        for _ in 0..ROUNDS {
            let mut meter = WorkMeter::default();
            scan(&reader, &mut meter, &self.splitting_clock)?;
            keep_least(&mut least, &meter);
        }
        if result? != rows.len() {
            return Err(Error::corruption("the scan lost rows"));
        }
        let per_row = |ns: f64| ns / rows.len() as f64;
        let part = |part: Part| per_row(least.ticks[part as usize] as f64);
        let parts = [part(Part::Decompress), part(Part::Checksum), part(Part::Io)];
        println!(
            "scan  {:<7} {:8.1} ns/row = codec {:7.1} + checksum {:5.1} + copy from file {:5.1} \
             + rest {:5.1}",
            codec.name(),
            per_row(ns),
            parts[0],
            parts[1],
            parts[2],
            per_row(ns) - parts.iter().sum::<f64>(),
        );
        Ok(())
    }
}

struct Built {
    size_bytes: u64,
    data_bytes: u64,
    cpu_ns: u64,
    meter: WorkMeter,
}

/// Keeps the least ticks of each part.
fn keep_least(least: &mut WorkMeter, meter: &WorkMeter) {
    for (least, ticks) in least.ticks.iter_mut().zip(meter.ticks) {
        *least = ticks.min(*least);
    }
}

fn scan(reader: &Arc<TableReader>, meter: &mut WorkMeter, clock: &BenchClock) -> Result<usize> {
    let mut scanner = reader.scanner(None, None);
    let mut count = 0;
    while let ScanPoll::Ready = scanner.poll(meter, clock)? {
        loop {
            black_box((scanner.key(), scanner.trailer(), scanner.value()));
            count += 1;
            if !scanner.advance()? {
                break;
            }
        }
    }
    Ok(count)
}

fn main() -> Result<()> {
    let bench = Bench {
        clock: BenchClock { start: Instant::now(), splits: false },
        splitting_clock: BenchClock { start: Instant::now(), splits: true },
        pool: ContextPool::new(MemoryBudget::new(256 << 20)),
    };
    for zero_sequences in [false, true] {
        let rows = rows(zero_sequences);
        println!(
            "{ROWS} rows of 24 + 176 bytes, blocks of 16 KiB, sequence numbers {}",
            if zero_sequences { "zero" } else { "of a flush" }
        );
        for codec in [CodecId::None, CodecId::Lz4, CodecId::Zstd] {
            let options = TableOptions::default();
            bench.print_build(&rows, &options, codec)?;
            let mut bytes = Vec::new();
            bench.build(&rows, &options, codec, &bench.clock, |piece| {
                bytes.extend_from_slice(piece)
            })?;
            bench.print_scan(&rows, &bytes, codec)?;
            bench.print_reads(&rows, &bytes, codec)?;
        }
    }
    Ok(())
}
