//! The measuring process of a cell, seen from inside.
//!
//! 1. Rows are read into memory, and the driver's own work is measured without an engine.
//! 2. The rows are put in the order of their numbers, under scattered keys; what the engine owes is
//!    waited for. That is the first phase.
//! 3. What the mix says is done, and what the engine owes is waited for. That is the second one.
//!
//! The directory is measured at 64 points of each phase, which are spread over the time that the cell
//! stands for: an hour takes as long in each phase, if the engine keeps up. One client; the engine has
//! two threads of its own.

use std::path::Path;
use std::time::{Duration, Instant};

use lithify::compaction::Rule;
use lithify::stats::{JobFigure, LEVEL_SLOTS};
use lithify::{CfOptions, ColumnFamily, Db, Options, ScanRange};

use super::rows::key;
use super::{Mix, PhaseCost, PolicyCell, PolicyResult};
use crate::meter::machine::Machine;
use crate::meter::{Meter, unix_seconds};
use crate::random::Random;
use crate::run::RunError;
use crate::run::cells::Job;
use crate::run::process::end_with_parent;
use crate::run::progress::{Listener, ProgressLine};
use crate::run::store::write_json;

/// Points of a phase at which the directory is measured.
const POINTS: u64 = 64;

/// Lookups for each MB of rows; a twentieth as many scans of [`SCANNED_ROWS`].
const LOOKUPS_PER_MB: u64 = 8_000;
/// The same past the page cache: each is a read of the device.
const DEVICE_LOOKUPS_PER_MB: u64 = 2_000;
/// Rows that a scan visits.
const SCANNED_ROWS: usize = 10;

/// A memtable and a table take such a part of the rows, and the base level the other one: four levels
/// fill even if rows shrink to a quarter.
const TABLE_PART: u64 = 24;
const BASE_LEVEL_PART: u64 = 20;
const FANOUT: u32 = 4;
/// The block cache is what memtables leave of this part: less than a tenth of the rows.
const MEMORY_PART: u64 = 6;
/// Contexts of codecs and their dictionaries do not shrink with the rows: with a budget of rows alone
/// they would take half of it, and measure themselves.
const CONTEXT_BYTES: u64 = 3 << 20;

/// Reads of the device are as long; a longer one counts as more.
const DEVICE_READ_BYTES: f64 = 16_384.0;

const SEED: u64 = 20_261;

/// Does a job and writes its result. Asks the kernel to end this process with its parent.
///
/// # Errors
/// The engine's, or the result cannot be written.
pub fn run_job(job: &Job<PolicyCell>, listener: Listener<'_>) -> Result<(), RunError> {
    end_with_parent(job.parent)?;
    let result = measure(&job.cell, &job.data_directory, listener)?;
    write_json(&job.result_path, &result)
}

fn failed(what: &str) -> impl Fn(lithify::Error) -> RunError + '_ {
    move |error| RunError::new(format!("{what}: {error}"))
}

/// Measures in this process, with the engine's data in `directory`.
///
/// # Errors
/// The engine's, or rows that cannot be read.
pub fn measure(
    cell: &PolicyCell,
    directory: &Path,
    listener: Listener<'_>,
) -> Result<PolicyResult, RunError> {
    let started_unix_s = unix_seconds();
    let rows = cell.data.rows(cell.bytes).map_err(|error| RunError::new(error.to_string()))?;
    if rows.is_empty() {
        return Err(RunError::new(format!("{} has no rows", cell.data)));
    }
    let (options, rule) = settings(&cell.options()).map_err(failed("settings of the policy"))?;
    let options = CfOptions {
        table_bytes: part(cell, TABLE_PART),
        base_level_bytes_max: part(cell, BASE_LEVEL_PART),
        fanout: FANOUT,
        ..options
    };
    let path = directory.join("policies.db");
    let db = Db::open(&path, database_options(cell)).map_err(failed("open"))?;
    let family = db.column_family("rows", options).map_err(failed("open"))?;
    if let Some(rule) = rule {
        family.follow(rule);
    }
    let run = Run { cell, rows: &rows, meter: Meter::new(directory), listener };
    let load = run.phase(("load", cell.hours[0]), &db, &mut |point| run.load(&family, point))?;
    let mut digest = Digest::default();
    let driver_us = run.driver_us();
    let mut second =
        run.phase((cell.mix.name(), cell.hours[1]), &db, &mut |point| match cell.mix {
            Mix::Load => run.overwrite(&family, point),
            Mix::Cached | Mix::Device => run.read(&family, point, &mut digest),
        })?;
    second.cpu_s = (second.cpu_s - driver_us as f64 / 1e6).max(0.0);
    // Not part of the costs: all policies have the same rows.
    digest.add_all(&family)?;
    let figures = db.stats().figures;
    let is_written = |level: &usize| figures.job(*level, JobFigure::WrittenBytes) > 0;
    let levels = (0..LEVEL_SLOTS).filter(is_written).count() as u64;
    let explanation = format!("{:#}", family.explain());
    drop(family);
    db.close().map_err(failed("close"))?;
    Ok(PolicyResult {
        cell: cell.clone(),
        started_unix_s,
        machine: Machine::describe(directory),
        rows: rows.len() as u64,
        row_bytes: rows.iter().map(|row| row.len() as u64 + 8).sum(),
        phases: [load, second],
        checksum: format!("{:016x}", digest.0),
        levels,
        explanation,
    })
}

/// The settings of a family, and the rule of another engine that it is to follow, `rule=NAME`.
///
/// # Errors
/// Unknown settings, or an unknown rule.
pub fn settings(text: &str) -> lithify::Result<(CfOptions, Option<Rule>)> {
    let (rules, settings): (Vec<&str>, Vec<&str>) =
        text.split_whitespace().partition(|pair| pair.starts_with("rule="));
    let rule = rules.first().and_then(|pair| pair.strip_prefix("rule=")).map(str::parse);
    Ok((settings.join(" ").parse()?, rule.transpose()?))
}

/// A part of the rows' bytes; the engine takes no less than 64 KiB.
fn part(cell: &PolicyCell, of: u64) -> u64 {
    (cell.bytes / of).max(64 << 10)
}

fn database_options(cell: &PolicyCell) -> Options {
    Options {
        memory_budget_bytes: (part(cell, MEMORY_PART) + CONTEXT_BYTES) as usize,
        memtable_bytes: part(cell, TABLE_PART) as usize,
        direct_reads: cell.mix == Mix::Device,
        ..Options::default()
    }
}

/// Of everything that was read, in its order.
#[derive(Default)]
struct Digest(u64);

impl Digest {
    fn add(&mut self, bytes: &[u8]) {
        // The order matters, and nobody means harm: it is to cost little.
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            let mixed = (self.0 ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            self.0 = mixed ^ (mixed >> 29);
        }
        self.0 = self.0.rotate_left(7) ^ bytes.len() as u64;
    }

    fn add_all(&mut self, family: &ColumnFamily) -> Result<(), RunError> {
        let mut rows = family.cursor(ScanRange::default()).map_err(failed("check"))?;
        rows.seek_to_first().map_err(failed("check"))?;
        while rows.valid() {
            self.add(rows.key());
            self.add(rows.value());
            rows.next().map_err(failed("check"))?;
        }
        Ok(())
    }
}

struct Run<'a> {
    cell: &'a PolicyCell,
    rows: &'a [Vec<u8>],
    meter: Meter,
    listener: Listener<'a>,
}

impl Run<'_> {
    /// Does all points of a phase, and waits for what the engine owes.
    fn phase(
        &self,
        (name, hours): (&str, f64),
        db: &Db,
        point: &mut dyn FnMut(u64) -> Result<(), RunError>,
    ) -> Result<PhaseCost, RunError> {
        let mut stored_bytes = Vec::new();
        // What measuring takes is not the engine's.
        let mut own_us = 0;
        let before = self.meter.read();
        let start = Instant::now();
        for number in 0..POINTS {
            point(number)?;
            self.keep_pace(hours, number + 1, start);
            let measuring = self.meter.read();
            stored_bytes.push(self.stored_bytes());
            own_us += cpu_us(&self.meter.usage(&measuring, &self.meter.read()));
            if number % 8 == 7 {
                let points = [number + 1, POINTS];
                (self.listener)(&ProgressLine::of_progress(name, points, "points", 8));
            }
        }
        (self.listener)(&ProgressLine::of_stage("settle"));
        db.wait_for_compaction().map_err(failed("settle"))?;
        let seconds = start.elapsed().as_secs_f64();
        let usage = self.meter.usage(&before, &self.meter.read());
        // The state in which the engine comes to rest is the one that lasts.
        stored_bytes.extend(std::iter::repeat_n(self.stored_bytes(), POINTS as usize));
        let io = &usage.process_io;
        let device_reads = match self.cell.mix {
            Mix::Device => {
                io.read_syscalls as f64 + io.read_syscall_bytes as f64 / DEVICE_READ_BYTES
            }
            _ => 0.0,
        };
        Ok(PhaseCost {
            seconds,
            cpu_s: cpu_us(&usage).saturating_sub(own_us) as f64 / 1e6,
            written_bytes: io.written_syscall_bytes,
            device_reads,
            stored_bytes: stored_bytes.iter().sum::<f64>() / stored_bytes.len() as f64,
        })
    }

    /// Waits until so many points of a phase are due. A policy that decides by the clock expects of a
    /// month what it has seen in a part of it. The others wait too, so that all are measured alike.
    fn keep_pace(&self, hours: f64, points: u64, start: Instant) {
        let share = hours / self.cell.hours.iter().sum::<f64>() * points as f64 / POINTS as f64;
        let due = Duration::from_secs_f64(self.cell.expected_seconds * share);
        std::thread::sleep(due.saturating_sub(start.elapsed()));
    }

    /// CPU of what the driver does itself for the lookups and scans: keys, and the digest of values.
    fn driver_us(&self) -> u64 {
        let before = self.meter.read();
        let mut digest = Digest::default();
        if self.cell.mix != Mix::Load {
            for point in 0..POINTS {
                let mut random = Random::new(SEED, point);
                for number in 0..self.lookups() {
                    let wanted = random.below(self.rows.len() as u64);
                    let rows = if number % 20 == 0 { SCANNED_ROWS as u64 } else { 1 };
                    (0..rows).for_each(|next| digest.add(self.row(wanted + next)));
                    std::hint::black_box(key(wanted));
                }
            }
        }
        std::hint::black_box(digest.0);
        cpu_us(&self.meter.usage(&before, &self.meter.read()))
    }

    /// Lookups of a point, scans among them.
    fn lookups(&self) -> u64 {
        let per_mb = match self.cell.mix {
            Mix::Device => DEVICE_LOOKUPS_PER_MB,
            _ => LOOKUPS_PER_MB,
        };
        let bytes: u64 = self.rows.iter().map(|row| row.len() as u64).sum();
        (bytes * per_mb / 1_000_000 / POINTS).max(1)
    }

    fn stored_bytes(&self) -> f64 {
        self.meter.sizes().0.allocated_bytes as f64
    }

    /// The numbers of the rows of a point.
    fn part(&self, point: u64) -> std::ops::Range<u64> {
        let count = self.rows.len() as u64;
        count * point / POINTS..count * (point + 1) / POINTS
    }

    fn row(&self, number: u64) -> &[u8] {
        &self.rows[number as usize % self.rows.len()]
    }

    fn load(&self, family: &ColumnFamily, point: u64) -> Result<(), RunError> {
        for number in self.part(point) {
            family.put(key(number), self.row(number)).map_err(failed("load"))?;
        }
        Ok(())
    }

    /// Puts every second row anew, with what another one has.
    fn overwrite(&self, family: &ColumnFamily, point: u64) -> Result<(), RunError> {
        let count = self.rows.len() as u64;
        for number in self.part(point).filter(|number| number % 2 == 0) {
            let scattered = number.wrapping_mul(0x9e37_79b1) % count;
            let value = self.row(scattered + count / 2);
            family.put(key(scattered), value).map_err(failed("overwrite"))?;
        }
        Ok(())
    }

    fn read(&self, family: &ColumnFamily, point: u64, digest: &mut Digest) -> Result<(), RunError> {
        let mut random = Random::new(SEED, point);
        let count = self.rows.len() as u64;
        for number in 0..self.lookups() {
            let wanted = key(random.below(count));
            if number % 20 != 0 {
                let found = family.get(wanted).map_err(failed("read"))?;
                digest.add(found.as_deref().unwrap_or_default());
                continue;
            }
            let mut rows = family.cursor(ScanRange::default()).map_err(failed("scan"))?;
            rows.seek(wanted).map_err(failed("scan"))?;
            for _ in 0..SCANNED_ROWS {
                if !rows.valid() {
                    break;
                }
                digest.add(rows.value());
                rows.next().map_err(failed("scan"))?;
            }
        }
        Ok(())
    }
}

fn cpu_us(usage: &crate::meter::PhaseUsage) -> u64 {
    usage.process_cpu.user_us + usage.process_cpu.system_us
}
