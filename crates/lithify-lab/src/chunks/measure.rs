//! The measuring process, seen from inside.
//!
//! 1. The text is loaded into an empty database and flushed, again and again; the flush alone is
//!    timed. The last database stays.
//! 2. It is read as a whole: after its files have left the page cache, and with them in it. Each
//!    time the database is opened anew first, which is not timed, so that the engine's own cache is
//!    empty; an engine without one may stay open instead.
//! 3. Rows all over the text are read one by one, files in the page cache.
//! 4. One more scan compares every row with what was loaded.
//! 5. The codec alone compresses the same rows, chunk by chunk.
//! 6. An engine that can do without threads of its own flushes once more on the caller's.

use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value as Json;

use super::codec_calls::{CallTimer, Chunks, CodecCalls};
use super::database::Database;
use super::row_reads::{RowReads, Sample};
use super::spec::{ChunkCell, ChunkOutcome, HeldThread};
use crate::adapter::settings::EngineSettings;
use crate::adapter::text::{TextEngine, TextRow, TextVisitor, key_of};
use crate::adapter::{EngineName, EngineStatistics, LevelStatistics};
use crate::engines::registry::find;
use crate::meter::machine::Machine;
use crate::meter::page_cache::drop_pages;
use crate::meter::space::{DirectorySize, directory_size};
use crate::meter::{Meter, PhaseUsage};
use crate::run::cells::Job;
use crate::run::process::end_with_parent;
use crate::run::progress::{Listener, ProgressLine};
use crate::run::store::write_json;
use crate::run::{RunError, failed};

/// One part in so many of the text may lie in tables before the flush: some engines count the files
/// that they have made for it. A flush that came too early wrote more.
const EARLY_PART: u64 = 32;

/// Does a job and writes its result. Asks the kernel to end this process with its parent.
///
/// # Errors
/// The engine's, or the result cannot be written.
pub fn run_job(job: &Job<ChunkCell>, listener: Listener<'_>) -> Result<(), RunError> {
    end_with_parent(job.parent)?;
    write_json(&job.result_path, &measure(&job.cell, &job.data_directory, listener)?)
}

/// All rows, in one figure for each thing that can be wrong with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Contents {
    rows: u64,
    line_bytes: u64,
    hash: u64,
}

impl Contents {
    fn add(&mut self, (partition, number, line): TextRow<'_>) {
        self.rows += 1;
        self.line_bytes += line.len() as u64;
        let key = key_of(partition, number);
        let seed = twox_hash::XxHash3_64::oneshot_with_seed(self.hash, &key);
        self.hash = twox_hash::XxHash3_64::oneshot_with_seed(seed, line);
    }
}

/// Measures one cell in this process, with the engine's data in `directory`, which exists.
///
/// # Errors
/// The engine's, or a text that cannot be read.
pub fn measure(
    cell: &ChunkCell,
    directory: &Path,
    listener: Listener<'_>,
) -> Result<ChunkOutcome, RunError> {
    let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let codec_library = find(&cell.engine)
        .and_then(|provider| provider.codec_library(cell.codec))
        .map_err(|error| failed("codec", &error))?;
    let bench = Bench { cell, directory, meter: Meter::new(directory), listener };
    let mut faults = Vec::new();
    let mut database = Database::new(cell, cell.settings.clone(), directory.join("database"));
    let flushes = bench.flushes(&mut database, &mut faults)?;
    let cold = bench.scans(&mut database, flushes.contents, true, &mut faults)?;
    let warm = bench.scans(&mut database, flushes.contents, false, &mut faults)?;
    let row_reads = bench.row_reads(&mut database, flushes.contents.rows, &mut faults)?;
    let rows_hash = bench.compare(&mut database, flushes.contents, &mut faults)?;
    database.close()?;
    bench.say("codec alone");
    let calls = bench.codec_calls()?;
    let held_thread = bench.held_thread()?;
    let usages = [&flushes.usage, &cold.usage, &warm.usage];
    let seconds: f64 = usages.iter().map(|usage| usage.seconds).sum();
    let foreign_us: u64 = usages.iter().map(|usage| usage.foreign_cpu_us).sum();
    let machine = Machine::describe(directory);
    Ok(ChunkOutcome {
        cell: cell.clone(),
        started_unix_s: started,
        engine_name: flushes.engine_name,
        capabilities: flushes.capabilities,
        codec_library,
        rows: flushes.contents.rows,
        text_bytes: flushes.contents.line_bytes,
        rows_hash,
        flush_ms: flushes.ms,
        flush_codec_us: flushes.codec_us,
        directory: flushes.size,
        table_bytes: flushes.table_bytes,
        table_codec: flushes.table_codec,
        cold_scan_ms: cold.ms,
        cold_read_device_bytes: cold.usage.process_io.read_device_bytes,
        warm_scan_ms: warm.ms,
        row_reads,
        calls,
        held_thread,
        foreign_percent: 100.0 * foreign_us as f64
            / (seconds * 1e6 * machine.cpus.max(1) as f64).max(1.0),
        flush_usage: flushes.usage,
        machine,
        faults,
    })
}

/// What the flushes left.
struct Flushes {
    ms: Vec<f64>,
    usage: PhaseUsage,
    codec_us: Option<u64>,
    contents: Contents,
    engine_name: String,
    capabilities: crate::adapter::Capabilities,
    size: DirectorySize,
    table_bytes: Option<u64>,
    table_codec: String,
}

/// What scans of one kind took.
struct Scans {
    ms: Vec<f64>,
    usage: PhaseUsage,
}

/// A cell under way.
struct Bench<'a> {
    cell: &'a ChunkCell,
    directory: &'a Path,
    meter: Meter,
    listener: Listener<'a>,
}

impl Bench<'_> {
    fn say(&self, stage: &str) {
        (self.listener)(&ProgressLine::of_stage(stage));
    }

    fn progress(&self, stage: &str, done: u64, total: u64) {
        (self.listener)(&ProgressLine::of_progress(stage, [done, total], "times", 0));
    }

    /// A meter of this process and of those in which the engine works.
    fn meter_of(&self, engine: &dyn TextEngine) -> Meter {
        let mut meter = self.meter.clone();
        meter.watch(engine.process_ids());
        meter
    }

    /// Gives every row of the text.
    fn rows(
        &self,
        row: &mut dyn FnMut(TextRow<'_>) -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        let cell = self.cell;
        let unreadable = |error: &dyn std::fmt::Display| RunError::new(format!("text: {error}"));
        let mut lines =
            cell.text.open(cell.text_bytes, cell.seed).map_err(|error| unreadable(&error))?;
        let (mut line, mut number, mut at) = (Vec::new(), 0u32, 0u64);
        while lines.next(&mut line).map_err(|error| unreadable(&error))? {
            let partition = at * cell.partitions / cell.text_bytes.max(1);
            row((partition.min(cell.partitions - 1) as u32, number, &line))?;
            at += line.len() as u64;
            number += 1;
        }
        Ok(())
    }

    fn load(&self, engine: &dyn TextEngine) -> Result<Contents, RunError> {
        let load_failed = |error| failed("load", &error);
        let mut session = engine.session().map_err(load_failed)?;
        let mut contents = Contents::default();
        self.rows(&mut |row| {
            contents.add(row);
            session.insert(row).map_err(load_failed)
        })?;
        session.finish().map_err(load_failed)?;
        Ok(contents)
    }

    fn flushes(
        &self,
        database: &mut Database<'_>,
        faults: &mut Vec<String>,
    ) -> Result<Flushes, RunError> {
        let cell = self.cell;
        let mut ms = Vec::new();
        let mut usage = PhaseUsage::default();
        let mut codec_us = None;
        for number in 0..cell.flushes {
            self.progress("flush", number, cell.flushes);
            database.empty()?;
            let engine = database.open()?;
            let contents = self.load(engine)?;
            let early_bytes = table_bytes(&statistics(engine)?).unwrap_or(0);
            if early_bytes > contents.line_bytes / EARLY_PART {
                faults.push(format!(
                    "flush {number}: tables were written before the flush; memtable_kib is too \
                     small for the text"
                ));
            }
            let meter = self.meter_of(engine);
            meter.sync();
            let before = meter.read();
            let began = Instant::now();
            engine.flush().map_err(|error| failed("flush", &error))?;
            ms.push(began.elapsed().as_secs_f64() * 1e3);
            add_usage(&mut usage, &meter.usage(&before, &meter.read()));
            if let Some(us) = codec_us_of_flushes(&statistics(engine)?.raw) {
                *codec_us.get_or_insert(0) += us;
            }
            settle(engine)?;
            let last = number + 1 == cell.flushes;
            let settled = statistics(engine)?;
            let (engine_name, capabilities) = (engine.name(), engine.capabilities());
            database.leave()?;
            if last {
                return Ok(Flushes {
                    ms,
                    usage,
                    codec_us,
                    contents,
                    engine_name,
                    capabilities,
                    size: directory_size(database.path()),
                    table_bytes: table_bytes(&settled),
                    table_codec: table_codec(&settled),
                });
            }
        }
        Err(RunError::new("a cell needs at least one flush"))
    }

    fn scans(
        &self,
        database: &mut Database<'_>,
        loaded: Contents,
        cold: bool,
        faults: &mut Vec<String>,
    ) -> Result<Scans, RunError> {
        let stage = if cold { "scan, caches empty" } else { "scan, files cached" };
        let mut scans = Scans { ms: Vec::new(), usage: PhaseUsage::default() };
        for number in 0..self.cell.scans {
            self.progress(stage, number, self.cell.scans);
            if cold {
                drop_pages(database.path());
            }
            let engine = database.open()?;
            let meter = self.meter_of(engine);
            let before = meter.read();
            let began = Instant::now();
            let mut seen = Contents::default();
            scan(engine, &mut |(_, _, line)| {
                seen.rows += 1;
                seen.line_bytes += line.len() as u64;
            })?;
            scans.ms.push(began.elapsed().as_secs_f64() * 1e3);
            add_usage(&mut scans.usage, &meter.usage(&before, &meter.read()));
            database.leave()?;
            if (seen.rows, seen.line_bytes) != (loaded.rows, loaded.line_bytes) {
                faults.push(format!(
                    "{stage}: {} rows of {} bytes were read, {} of {} were loaded",
                    seen.rows, seen.line_bytes, loaded.rows, loaded.line_bytes
                ));
            }
        }
        Ok(scans)
    }

    /// Reads rows one by one.
    fn row_reads(
        &self,
        database: &mut Database<'_>,
        rows: u64,
        faults: &mut Vec<String>,
    ) -> Result<RowReads, RunError> {
        self.say("single rows");
        let mut sample = Sample::of(rows);
        self.rows(&mut |row| {
            sample.offer(row);
            Ok(())
        })?;
        let engine = database.open()?;
        let mut session = engine.session().map_err(|error| failed("single rows", &error))?;
        let reads = sample.read(&mut *session).map_err(|error| failed("single rows", &error))?;
        drop(session);
        database.leave()?;
        if reads.wrong > 0 {
            faults.push(format!(
                "{} of {} rows that were read one by one are not those that were loaded",
                reads.wrong, reads.reads
            ));
        }
        Ok(reads)
    }

    /// Compares every row with what was loaded; gives the hash of what was read.
    fn compare(
        &self,
        database: &mut Database<'_>,
        loaded: Contents,
        faults: &mut Vec<String>,
    ) -> Result<u64, RunError> {
        self.say("compare");
        let mut seen = Contents::default();
        scan(database.open()?, &mut |row| seen.add(row))?;
        database.leave()?;
        if seen != loaded {
            faults.push("the rows that were read are not those that were loaded".to_owned());
        }
        Ok(seen.hash)
    }

    fn codec_calls(&self) -> Result<CodecCalls, RunError> {
        let mut timer = CallTimer::new(self.cell.codec, self.cell.codec_passes)?;
        let mut chunks = Chunks::new((self.cell.chunk_kib << 10) as usize);
        let mut call = |chunk: &[u8]| timer.call(chunk);
        self.rows(&mut |(partition, number, line)| {
            chunks.add(&key_of(partition, number), line, &mut call)
        })?;
        chunks.finish(&mut call)?;
        Ok(timer.finish())
    }

    /// Flushes on the caller's thread, where the engine can do that.
    fn held_thread(&self) -> Result<Option<HeldThread>, RunError> {
        if self.cell.engine != EngineName::lithify() {
            return Ok(None);
        }
        self.say("flush without threads");
        let settings = EngineSettings { background_threads: 0, ..self.cell.settings.clone() };
        let mut database = Database::new(self.cell, settings, self.directory.join("no-threads"));
        database.empty()?;
        let engine = database.open()?;
        self.load(engine)?;
        settle(engine)?;
        let held = units(&statistics(engine)?.raw);
        database.close()?;
        Ok(Some(held))
    }
}

/// Visits every row.
fn scan(engine: &dyn TextEngine, row: &mut TextVisitor<'_>) -> Result<(), RunError> {
    let mut session = engine.session().map_err(|error| failed("scan", &error))?;
    session.scan(row).map_err(|error| failed("scan", &error))
}

/// What an engine says about itself.
fn statistics(engine: &dyn TextEngine) -> Result<EngineStatistics, RunError> {
    engine.statistics().map_err(|error| failed("statistics", &error))
}

/// Writes everything to files and waits until nothing is due.
fn settle(engine: &dyn TextEngine) -> Result<(), RunError> {
    engine.flush().and_then(|()| engine.rest()).map_err(|error| failed("maintenance", &error))
}

/// Adds what matters of several phases of one kind.
fn add_usage(sum: &mut PhaseUsage, usage: &PhaseUsage) {
    sum.seconds += usage.seconds;
    sum.process_cpu.user_us += usage.process_cpu.user_us;
    sum.process_cpu.system_us += usage.process_cpu.system_us;
    sum.process_io.read_syscall_bytes += usage.process_io.read_syscall_bytes;
    sum.process_io.read_device_bytes += usage.process_io.read_device_bytes;
    sum.process_io.written_syscall_bytes += usage.process_io.written_syscall_bytes;
    sum.process_io.written_device_bytes += usage.process_io.written_device_bytes;
    sum.foreign_cpu_us += usage.foreign_cpu_us;
    sum.notes.clone_from(&usage.notes);
}

/// Stored bytes of live tables; `None` for an engine without levels.
fn table_bytes(statistics: &EngineStatistics) -> Option<u64> {
    let levels = &statistics.levels;
    (!levels.is_empty()).then(|| levels.iter().map(|level| level.stored_bytes).sum())
}

/// The codecs of the levels that have files.
fn table_codec(statistics: &EngineStatistics) -> String {
    let full = |level: &&LevelStatistics| level.files > 0;
    let codecs = statistics.levels.iter().filter(full).map(|level| level.codec.clone());
    codecs.collect::<Vec<_>>().join("; ")
}

/// CPU in the encoders, by the statistics of an engine that tells, microseconds.
fn codec_us_of_flushes(raw: &Json) -> Option<u64> {
    let codecs = raw.get("codecs")?.as_object()?;
    let ns = codecs.values().filter_map(|codec| codec.get("compress-cpu")?.as_u64());
    Some(ns.sum::<u64>() / 1000)
}

/// Units of flushes and compactions that held their thread.
fn units(raw: &Json) -> HeldThread {
    let mut held = HeldThread::default();
    for cause in ["flush", "compaction"] {
        let figure = |name: &str| {
            raw.pointer(&format!("/stalls/units/{cause}/{name}")).and_then(Json::as_u64)
        };
        held.units += figure("count").unwrap_or(0);
        held.sum_us += figure("sum_us").unwrap_or(0);
        held.longest_us = held.longest_us.max(figure("max_us").unwrap_or(0));
    }
    held
}
