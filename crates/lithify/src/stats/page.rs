//! The statistics page: the table of the levels in the columns that the field uses, then lines.

use super::LEVEL_SLOTS;
use super::family::FamilyStatistics;
use super::figures::Figures;
use super::jobs::{JobEnd, JobKind};
use super::names::{
    CODEC_NAMES, Cause, CodecFigure, Counter, CpuPart, DelayCause, Derived, JobFigure,
    TrafficFigure,
};
use super::snapshot::{LevelShape, StatisticsSnapshot, ratio, writes};
use crate::base::size;
use std::fmt::{self, Display, Formatter};

const MIB: f64 = (1 << 20) as f64;

/// Bytes that may be fewer than none.
fn signed_size(bytes: f64) -> String {
    let sign = if bytes < 0.0 { "-" } else { "" };
    format!("{sign}{}", size(bytes.abs() as u64))
}

fn quotient(dividend: f64, divisor: f64) -> f64 {
    if divisor > 0.0 { dividend / divisor } else { 0.0 }
}

/// One row of the table of the levels.
struct Row {
    name: String,
    shape: Option<LevelShape>,
    read_source: f64,
    read_target: f64,
    written: f64,
    written_raw: f64,
    moved: f64,
    /// Dividend and divisor of the write amplification. Flushes and ingests may write into any
    /// level: what they wrote was not amplified there, it entered the tree.
    amplified: (f64, f64),
    wall_s: f64,
    cpu_s: f64,
    jobs: u64,
    entries_in: u64,
    entries_dropped: u64,
}

impl Row {
    fn new(name: String, of: impl Fn(JobFigure) -> u64) -> Self {
        let bytes = |figure| of(figure) as f64;
        Row {
            name,
            shape: None,
            read_source: bytes(JobFigure::ReadSourceBytes),
            read_target: bytes(JobFigure::ReadTargetBytes),
            written: bytes(JobFigure::WrittenBytes),
            written_raw: bytes(JobFigure::WrittenRawBytes),
            moved: bytes(JobFigure::MovedBytes),
            amplified: (0.0, 0.0),
            wall_s: bytes(JobFigure::WallUs) / 1e6,
            cpu_s: bytes(JobFigure::CpuNs) / 1e9,
            jobs: of(JobFigure::Jobs),
            entries_in: of(JobFigure::EntriesIn),
            entries_dropped: of(JobFigure::EntriesDropped),
        }
    }

    /// A row over all levels. What was flushed and ingested is what entered the tree.
    fn sum(name: &str, figures: &Figures) -> Self {
        let mut row = Row::new(name.into(), |figure| figures.job_total(figure));
        let written = |cause| figures.traffic_of_cause(cause, TrafficFigure::WrittenBytes) as f64;
        let entered = written(Cause::Flush) + written(Cause::Ingest);
        row.amplified = (entered + written(Cause::Compaction), entered);
        row
    }

    fn level(level: usize, snapshot: &StatisticsSnapshot) -> Self {
        let figures = &snapshot.figures;
        let of = |figure| if level < LEVEL_SLOTS { figures.job(level, figure) } else { 0 };
        let mut row = Row::new(format!("L{level}"), of);
        row.amplified = match level {
            0 => (row.written, row.written),
            level => {
                let figure = TrafficFigure::WrittenBytes;
                let written = figures.traffic_of_level(Cause::Compaction, level, figure);
                (written as f64, row.read_source)
            }
        };
        row.shape = snapshot.levels.get(level).cloned();
        row
    }
}

/// A number in groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

fn scan_line(f: &mut Formatter<'_>, title: &str, counter: impl Fn(Counter) -> u64) -> fmt::Result {
    let (skipped, rows) = (counter(Counter::SkippedEntries), counter(Counter::Nexts));
    writeln!(
        f,
        "{title} scans: {} cursors, {} seeks; they passed {}",
        counter(Counter::Cursors),
        counter(Counter::Seeks),
        dead_for_rows(skipped, rows),
    )
}

/// Dead entries beside the rows that were found. Without a row there is no share: none is as bad as it gets.
fn dead_for_rows(skipped: u64, rows: u64) -> String {
    let both = format!("{} dead entries for {} rows", grouped(skipped), grouped(rows));
    match ratio(skipped, rows) {
        Some(per_row) => format!("{both}, {per_row:.2} per row"),
        None => both,
    }
}

/// More dead entries than so many per row are worth a line with the family's name.
const DEAD_PER_ROW_NOTABLE: u64 = 10;

fn dead_entries_line(f: &mut Formatter<'_>, family: &FamilyStatistics) -> fmt::Result {
    if let Some(pass) = &family.longest_pass {
        writeln!(
            f,
            "A cursor of {} passed {} dead entries at once, from \"{}\" to \"{}\"",
            family.name,
            grouped(pass.entries),
            pass.from.escape_ascii(),
            pass.to.escape_ascii(),
        )?;
    }
    let counter = |counter| family.figures.counter(counter);
    let (skipped, rows) = (counter(Counter::SkippedEntries), counter(Counter::Nexts));
    if skipped < rows.max(1).saturating_mul(DEAD_PER_ROW_NOTABLE) {
        return Ok(());
    }
    writeln!(f, "Cursors of {} passed {}", family.name, dead_for_rows(skipped, rows))
}

fn filter_line(
    f: &mut Formatter<'_>,
    title: &str,
    counter: impl Fn(Counter) -> u64,
) -> fmt::Result {
    let negatives = counter(Counter::FilterNegatives);
    let wrong = counter(Counter::FilterFalsePositives);
    writeln!(
        f,
        "{title} filters: {} asked, {} said no, {} wrong maybes, {:.2} % of absent keys; by prefix \
         {} asked, {} said no",
        counter(Counter::FilterChecks),
        negatives,
        wrong,
        100.0 * quotient(wrong as f64, (wrong + negatives) as f64),
        counter(Counter::PrefixFilterChecks),
        counter(Counter::PrefixFilterNegatives),
    )
}

/// Nothing where no transaction was ended and no lock or conflict was met.
fn transaction_line(
    f: &mut Formatter<'_>,
    title: &str,
    counter: impl Fn(Counter) -> u64,
) -> fmt::Result {
    let [commits, rollbacks, requests, waits, timeouts, deadlocks, conflicts] = [
        Counter::TransactionCommits,
        Counter::TransactionRollbacks,
        Counter::LockRequests,
        Counter::LockWaits,
        Counter::LockTimeouts,
        Counter::Deadlocks,
        Counter::Conflicts,
    ]
    .map(counter);
    if [commits, rollbacks, requests, waits, conflicts] == [0; 5] {
        return Ok(());
    }
    writeln!(
        f,
        "{title} transactions: {commits} committed, {rollbacks} rolled back, {conflicts} conflicts; \
         row locks: {requests} requested, {waits} waited for, {timeouts} timed out, {deadlocks} \
         deadlocks",
    )
}

const FAMILY_HEADER: &str = "Tables       Size   Raw(x)   Memtable       Gets       Puts     Merges    \
    Deletes RangeDel Cursors       Rows Dead/row W-Amp       Debt    Pending  Compression";

fn family_line(f: &mut Formatter<'_>, family: &FamilyStatistics, width: usize) -> fmt::Result {
    let counter = |counter| family.figures.counter(counter);
    let real = |derived, digits: usize| match family.derived(derived) {
        Some(value) => format!("{value:.digits$}"),
        None => "-".to_owned(),
    };
    let gets = counter(Counter::Gets) + counter(Counter::MultiGetKeys);
    let deletes = counter(Counter::Deletes) + counter(Counter::SingleDeletes);
    writeln!(
        f,
        "{:<width$} {:>6} {:>10} {:>8} {:>10} {gets:>10} {:>10} {:>10} {deletes:>10} {:>8} {:>7} \
         {:>10} {:>8} {:>5} {:>10} {:>10}  {}",
        family.name,
        family.tables,
        size(family.table_bytes),
        real(Derived::StoredToRaw, 3),
        size(family.memtable_bytes),
        counter(Counter::Puts),
        counter(Counter::Merges),
        counter(Counter::RangeDeletes),
        counter(Counter::Cursors),
        counter(Counter::Nexts),
        real(Derived::SkippedPerRow, 1),
        real(Derived::WriteAmplificationTables, 2),
        size(family.codec_debt_bytes + family.reclaim_debt_bytes),
        size(family.pending_compaction_bytes),
        family.compression,
    )
}

/// So many of the latest jobs are on the page; the JSON has all that are kept.
const JOBS_SHOWN: usize = 10;

const JOB_HEADER: &str = "Ended(s)   Took(s) CPU(sec)  Kind       Levels Tables         In        Out    \
    KeyIn  KeyDrop  Family, reason, outcome";

fn job_line(f: &mut Formatter<'_>, end: &JobEnd) -> fmt::Result {
    let job = &end.job;
    let level = |level: Option<usize>| level.map_or("-".to_owned(), |level| format!("L{level}"));
    let levels = format!("{}>{}", level(job.source_level), level(job.target_level));
    let tables = format!("{}>{}", job.tables_in, end.tables_out);
    let seconds = |us: u64| us as f64 / 1e6;
    write!(
        f,
        "{:>8.3} {:>9.3} {:>8.3}  {:<10} {:>6} {:>6} {:>10} {:>10} {:>8} {:>8}  ",
        seconds(end.ended_us),
        seconds(end.wall_us()),
        end.cpu_ns as f64 / 1e9,
        job.kind.name(),
        if job.kind == JobKind::WriteStop { "-" } else { &levels },
        if job.kind == JobKind::WriteStop { "-" } else { &tables },
        size(job.bytes_in),
        size(end.bytes_out),
        end.entries_in,
        end.entries_dropped,
    )?;
    let words = [&*job.family, job.reason].into_iter().filter(|word| !word.is_empty());
    let words = words.map(|word| format!("{word}, ")).collect::<String>();
    writeln!(f, "{words}{}", end.outcome)
}

const HEADER: &str = "Level   Files      Size Score     Input     In(n)   In(n+1)     Write  \
    WPreComp      Wnew     Moved  W-Amp In(MiB/s) Wr(MiB/s) Comp(sec) CompMergeCPU(sec) \
    Comp(cnt) Avg(sec)     KeyIn   KeyDrop  Codec";

impl Display for Row {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let shape = self.shape.clone().unwrap_or_default();
        let files = format!("{}/{}", shape.files, shape.files_busy);
        let stored = size(shape.size_bytes);
        write!(f, "{:>5} {files:>7} {stored:>9} {:>5.2} ", self.name, shape.score)?;
        let input = self.read_source + self.read_target;
        for bytes in [
            input,
            self.read_source,
            self.read_target,
            self.written,
            self.written_raw,
            self.written - self.read_target,
            self.moved,
        ] {
            write!(f, "{:>9} ", signed_size(bytes))?;
        }
        let amplification = quotient(self.amplified.0, self.amplified.1);
        let input_mib_s = quotient(input / MIB, self.wall_s);
        let written_mib_s = quotient(self.written / MIB, self.wall_s);
        let average_s = quotient(self.wall_s, self.jobs as f64);
        write!(f, "{amplification:>6.2} {input_mib_s:>9.1} {written_mib_s:>9.1} ")?;
        write!(f, "{:>9.2} {:>17.2} {:>9} ", self.wall_s, self.cpu_s, self.jobs)?;
        write!(f, "{average_s:>8.3} {:>9} {:>9}  ", self.entries_in, self.entries_dropped)?;
        if shape.codec_debt_files > 0 {
            write!(f, "{} ({} in debt)", shape.compression, shape.codec_debt_files)
        } else {
            write!(f, "{}", if shape.compression.is_empty() { "-" } else { &shape.compression })
        }
    }
}

impl Display for StatisticsSnapshot {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.table(f)?;
        self.lines(f, "Cumulative", &self.figures, self.uptime_us)?;
        self.families.iter().try_for_each(|family| dead_entries_line(f, family))?;
        if let Some(previous) = &self.previous {
            let interval_us = self.uptime_us.saturating_sub(previous.uptime_us);
            self.lines(f, "Interval", &self.figures.since(&previous.figures), interval_us)?;
        }
        self.family_lines(f)?;
        self.costs(f)?;
        self.codecs(f)?;
        self.stall_lines(f)?;
        self.job_lines(f)?;
        self.memory_lines(f)?;
        writeln!(f, "\n** Computed **")?;
        for derived in Derived::ALL {
            match self.derived(*derived) {
                Some(value) => writeln!(f, "{:<22} {value:.3} {}", derived.name(), derived.unit())?,
                None => writeln!(f, "{:<22} -", derived.name())?,
            }
        }
        Ok(())
    }
}

impl StatisticsSnapshot {
    fn table(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "** Levels (base level L{}) **", self.base_level)?;
        writeln!(f, "{HEADER}")?;
        for level in 0..self.levels.len() {
            let row = Row::level(level, self);
            let shape = &self.levels[level];
            if shape.files > 0 || row.jobs > 0 || row.moved > 0.0 {
                writeln!(f, "{row}")?;
            }
        }
        let mut sum = Row::sum("Sum", &self.figures);
        sum.shape = Some(LevelShape {
            files: self.levels.iter().map(|level| level.files).sum(),
            files_busy: self.levels.iter().map(|level| level.files_busy).sum(),
            size_bytes: self.table_bytes(),
            codec_debt_files: 0,
            ..LevelShape::default()
        });
        writeln!(f, "{sum}")?;
        if let Some(previous) = &self.previous {
            writeln!(f, "{}", Row::sum("Int", &self.figures.since(&previous.figures)))?;
        }
        writeln!(f, "\nUptime(secs): {:.1} total", self.uptime_us as f64 / 1e6)?;
        let pending = size(self.pending_compaction_bytes);
        writeln!(f, "Estimated pending compaction bytes: {pending}")?;
        writeln!(f, "Log that is needed: {}", size(self.wal_live_bytes))?;
        self.reason_lines(f)?;
        write!(f, "Blocks copied as stored:")?;
        let copied = |level, figure| self.figures.job(level, figure);
        let copies = |level: &usize| copied(*level, JobFigure::CopiedBlocks) > 0;
        let mut separator = "";
        for level in (0..LEVEL_SLOTS).filter(copies) {
            let blocks = copied(level, JobFigure::CopiedBlocks);
            let stored = size(copied(level, JobFigure::CopiedBytes));
            write!(f, "{separator} L{level} {blocks} of {stored}")?;
            separator = ",";
        }
        writeln!(f, "{}", if separator.is_empty() { " none" } else { "" })
    }

    /// Why compactions were picked, and what is left to do when nothing is due.
    fn reason_lines(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let count = |counter| self.figures.counter(counter);
        writeln!(
            f,
            "Compactions and moves by reason: {} level 0, {} level size, {} manual, {} tombstones, \
             {} dead entries, {} snapshot release, {} codec debt, {} expired",
            count(Counter::CompactionsLevel0),
            count(Counter::CompactionsLevelSize),
            count(Counter::CompactionsManual),
            count(Counter::CompactionsTombstones),
            count(Counter::CompactionsDeadEntries),
            count(Counter::CompactionsSnapshotRelease),
            count(Counter::CompactionsCodecDebt),
            count(Counter::CompactionsExpired),
        )?;
        let sum = |of: fn(&LevelShape) -> u64| self.levels.iter().map(of).sum::<u64>();
        writeln!(
            f,
            "Debt: {} tables ({}) in another codec; {} tables with entries kept for snapshots, {} of \
             them ({}) for released ones",
            sum(|level| level.codec_debt_files),
            size(sum(|level| level.codec_debt_bytes)),
            sum(|level| level.obsolete_files),
            sum(|level| level.reclaim_debt_files),
            size(sum(|level| level.reclaim_debt_bytes)),
        )?;
        writeln!(
            f,
            "Held: {} snapshots, the oldest for {:.1} s; {} row locks; {} readers beside this writer, \
             {} files kept for them",
            self.snapshots_held,
            self.oldest_snapshot_age_us as f64 / 1e6,
            self.row_locks_held,
            self.readers,
            self.files_held_for_readers,
        )?;
        writeln!(f, "Jobs: {} running, {} waiting", self.jobs_running, self.jobs_waiting)?;
        let refusals = self.figures.counter(Counter::BackgroundRefusals);
        if refusals > 0 {
            writeln!(
                f,
                "Refused: {refusals} flushes and compactions, to be tried again; the last one: {}",
                self.last_refusal,
            )?;
        }
        Ok(())
    }

    /// What was done in all, or since an earlier snapshot.
    fn lines(
        &self,
        f: &mut Formatter<'_>,
        title: &str,
        figures: &Figures,
        span_us: u64,
    ) -> fmt::Result {
        let counter = |counter| figures.counter(counter);
        let count = |wanted| counter(wanted) as f64;
        let rate = |bytes: u64| quotient(bytes as f64 / MIB, span_us as f64 / 1e6);
        let traffic = |cause, figure| figures.traffic_of_cause(cause, figure);
        let flushed = traffic(Cause::Flush, TrafficFigure::WrittenBytes);
        writeln!(f, "{title} flush: {}, {:.2} MiB/s", size(flushed), rate(flushed))?;
        let written = traffic(Cause::Compaction, TrafficFigure::WrittenBytes);
        let read = traffic(Cause::Compaction, TrafficFigure::ReadBytes);
        writeln!(
            f,
            "{title} compaction: {} write, {:.2} MiB/s write, {} read, {:.2} MiB/s read, \
             {:.1} CPU seconds",
            size(written),
            rate(written),
            size(read),
            rate(read),
            figures.cpu_ns_of_cause(Cause::Compaction) as f64 / 1e9,
        )?;
        let ingested = counter(Counter::IngestedBytes);
        let keys = writes(counter);
        writeln!(
            f,
            "{title} writes: {} writes, {keys} keys, {} commit groups, {:.1} writes per commit \
             group, ingest: {}, {:.2} MiB/s",
            counter(Counter::Commits),
            counter(Counter::CommitGroups),
            quotient(count(Counter::Commits), count(Counter::CommitGroups)),
            size(ingested),
            rate(ingested),
        )?;
        let logged = traffic(Cause::Wal, TrafficFigure::WrittenBytes);
        writeln!(
            f,
            "{title} WAL: {} writes, {} syncs, {:.2} writes per sync, written: {}, \
             {:.2} MiB/s",
            counter(Counter::WalWrites),
            counter(Counter::WalSyncs),
            quotient(count(Counter::WalWrites), count(Counter::WalSyncs)),
            size(logged),
            rate(logged),
        )?;
        writeln!(
            f,
            "{title} reads: {} gets, {} found, {} multi-get keys",
            counter(Counter::Gets),
            counter(Counter::GetHits),
            counter(Counter::MultiGetKeys),
        )?;
        scan_line(f, title, counter)?;
        filter_line(f, title, counter)?;
        transaction_line(f, title, counter)
    }

    /// One line for each column family.
    fn family_lines(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.families.is_empty() {
            return Ok(());
        }
        writeln!(f, "\n** Column families **")?;
        let names = self.families.iter().map(|family| family.name.chars().count());
        let width = names.max().unwrap_or(0).clamp(6, 24);
        writeln!(f, "{:<width$} {FAMILY_HEADER}", "Family")?;
        for family in &self.families {
            family_line(f, family, width)?;
        }
        Ok(())
    }

    fn costs(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n** Cost by cause **")?;
        write!(f, "{:<17} {:>10} {:>10} {:>10}", "Cause", "Write", "Read", "CPU(sec)")?;
        for part in CpuPart::ALL {
            write!(f, " {:>10}", part.name())?;
        }
        writeln!(f)?;
        let figures = &self.figures;
        for cause in Cause::ALL.iter().filter(|cause| **cause != Cause::WalPreallocation) {
            let traffic = |figure| figures.traffic_of_cause(*cause, figure);
            let cpu_ns = figures.cpu_ns_of_cause(*cause);
            let written = traffic(TrafficFigure::WrittenBytes);
            let read = traffic(TrafficFigure::ReadBytes);
            if cpu_ns == 0 && written + read == 0 {
                continue;
            }
            let cpu_s = cpu_ns as f64 / 1e9;
            let (written, read) = (size(written), size(read));
            write!(f, "{:<17} {written:>10} {read:>10} {cpu_s:>10.3}", cause.name())?;
            for part in CpuPart::ALL {
                write!(f, " {:>10.3}", figures.cpu_ns_of_part(*cause, *part) as f64 / 1e9)?;
            }
            writeln!(f)?;
        }
        let reserved =
            figures.traffic_of_cause(Cause::WalPreallocation, TrafficFigure::WrittenBytes);
        writeln!(f, "Log space reserved, not written: {}", size(reserved))
    }

    fn codecs(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n** Codecs **")?;
        writeln!(
            f,
            "{:<7} {:>9} {:>9} {:>7} {:>15} {:>9} {:>17}",
            "Codec", "Raw", "Stored", "Ratio", "Compress(MiB/s)", "Output", "Decompress(MiB/s)"
        )?;
        for (codec, name) in CODEC_NAMES.iter().enumerate() {
            let of = |figure| self.figures.codec_total(codec as u8, figure);
            let raw = of(CodecFigure::CompressedRawBytes);
            let stored = of(CodecFigure::CompressedStoredBytes);
            let output = of(CodecFigure::DecompressedRawBytes);
            if raw + output == 0 {
                continue;
            }
            let mib_s = |bytes: u64, ns| quotient(bytes as f64 / MIB, of(ns) as f64 / 1e9);
            writeln!(
                f,
                "{name:<7} {:>9} {:>9} {:>7.3} {:>15.1} {:>9} {:>17.1}",
                size(raw),
                size(stored),
                quotient(stored as f64, raw as f64),
                mib_s(raw, CodecFigure::CompressNs),
                size(output),
                mib_s(output, CodecFigure::DecompressNs),
            )?;
        }
        Ok(())
    }

    fn stall_lines(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n** Stalls **")?;
        for cause in DelayCause::ALL {
            let (delays, stops) = (self.figures.delays(*cause), self.figures.stops(*cause));
            writeln!(
                f,
                "{}: {} delays of {:.3} s, {} stops of {:.3} s",
                cause.name(),
                delays.count,
                delays.sum_us as f64 / 1e6,
                stops.count,
                stops.sum_us as f64 / 1e6,
            )?;
        }
        let stalls = &self.stalls;
        writeln!(
            f,
            "Writers slowed: {:.3} s; windows of 100 ms without a completion: {} of {}; longest \
             gap: {:.1} ms",
            stalls.slowed_us as f64 / 1e6,
            stalls.gap_windows,
            stalls.windows,
            stalls.longest_gap_us as f64 / 1e3,
        )?;
        for cause in Cause::ALL {
            let units = self.figures.units(*cause);
            if units.count > 0 {
                writeln!(
                    f,
                    "Units of 1 ms and more, {}: {} of {:.3} s, longest {:.1} ms",
                    cause.name(),
                    units.count,
                    units.sum_us as f64 / 1e6,
                    stalls.longest_unit_us[*cause as usize] as f64 / 1e3,
                )?;
            }
        }
        Ok(())
    }

    fn job_lines(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.jobs.is_empty() {
            return Ok(());
        }
        writeln!(f, "\n** Latest jobs **\n{JOB_HEADER}")?;
        let shown = self.jobs.len().saturating_sub(JOBS_SHOWN);
        self.jobs.iter().skip(shown).try_for_each(|job| job_line(f, job))
    }

    fn memory_lines(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n** Memory (limit {}) **", size(self.memory_limit_bytes))?;
        for figure in &self.memory {
            writeln!(f, "{:<11} {}", figure.memory_use.name(), size(figure.used_bytes))?;
        }
        let cache = &self.cache;
        writeln!(
            f,
            "Block cache: {} of {}, {} hits, {} misses ({} not taken in), {} evictions",
            size(cache.used_bytes),
            size(cache.capacity_bytes),
            cache.hits,
            cache.misses,
            cache.unwanted,
            cache.evictions,
        )
    }
}
