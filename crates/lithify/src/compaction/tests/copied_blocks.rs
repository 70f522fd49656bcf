//! Merges that copy blocks as they are stored, against the same merges that decode all of them.

use crate::base::{MemoryBudget, SequenceNumber, Trailer, ValueKind};
use crate::cache::BlockCache;
use crate::codec::{CodecId, Compression, ContextPool};
use crate::compaction::output::{CloseProgress, Copied, TableSink};
use crate::compaction::picker::SubRange;
use crate::compaction::rules::RangeTombstoneSpan;
use crate::compaction::scheduler::{Job, Spent, Step, StepContext, Urgency};
use crate::compaction::*;
use crate::fs::{IoOutcome, MemoryEnvironment, MemoryFileSystem, OpenMode, World};
use crate::manifest::{FileNumbers, TableFile, Version};
use crate::stats::{Cause, Ledger, WorkMeter};
use crate::table::{FragmentedTombstones, ReadContext, ScanPoll, TableOptions};
use crate::{Error, ErrorKind, Result};
use std::io::IoSlice;
use std::sync::{Arc, Mutex};

pub(super) type Entry = (Vec<u8>, Trailer, Vec<u8>);

/// A small generator (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// What one case is made of.
pub(super) struct Bench {
    workshop: Arc<Workshop>,
    table: TableOptions,
    /// Decides the format of outputs.
    formats: Arc<dyn FormatPolicy>,
    evidence: Evidence,
    /// Which rows go by themselves.
    retain: Option<RetainPlan>,
}

impl Bench {
    pub(super) fn new(seed: u64, compression: Compression, block_size_bytes: usize) -> Self {
        let environment = Arc::new(MemoryEnvironment::new(seed));
        let budget = MemoryBudget::new(64 << 20);
        let workshop = Arc::new(Workshop {
            world: World {
                files: Arc::new(MemoryFileSystem::new()),
                environment: environment.clone(),
            },
            directory: "/".into(),
            file_numbers: Arc::new(FileNumbers::starting_at(1)),
            budget: budget.clone(),
            pool: ContextPool::new(budget.clone()),
            cache: BlockCache::new(budget, 0),
            direct_reads: false,
            share: None,
            ledger: Ledger::new(&*environment),
        });
        let prefix_length = Some(6);
        let table = TableOptions { block_size_bytes, prefix_length, ..TableOptions::default() };
        let codecs = CodecPolicy::uniform(compression);
        let formats = Arc::new(LevelFormats { codecs, block_size_bytes });
        Bench { workshop, table, formats, evidence: Evidence::default(), retain: None }
    }

    /// The same bench with another policy.
    pub(super) fn with_formats(self, formats: Arc<dyn FormatPolicy>) -> Self {
        Bench { formats, ..self }
    }

    /// The same bench, whose merges let rows go.
    pub(super) fn with_retain(self, retain: RetainPlan) -> Self {
        Bench { retain: Some(retain), ..self }
    }

    /// The same bench with evidence of what it writes.
    pub(super) fn with_evidence(self, evidence: Evidence) -> Self {
        Bench { evidence, ..self }
    }

    fn plan(&self, table_bytes: u64) -> OutputPlan {
        OutputPlan {
            cause: Cause::Compaction,
            place: TablePlace { family: None, level: 1, level_count: 4 },
            formats: Arc::clone(&self.formats),
            evidence: self.evidence,
            table: self.table.clone(),
            table_bytes,
            boundaries: Vec::new(),
        }
    }

    /// Writes tables of these entries, in order, cut at `table_bytes`.
    pub(super) fn tables(
        &self,
        entries: &[Entry],
        tombstones: &[RangeTombstoneSpan],
        table_bytes: u64,
    ) -> Vec<Arc<TableFile>> {
        let mut meter = WorkMeter::default();
        let mut sink = TableSink::new(self.workshop.clone(), self.plan(table_bytes));
        let mut last: Option<&[u8]> = None;
        for (key, trailer, value) in entries {
            if last != Some(&key[..]) && sink.should_cut(key) {
                self.close(&mut sink, &[]);
            }
            sink.add(key, *trailer, value, &mut meter).unwrap();
            last = Some(key);
        }
        self.close(&mut sink, tombstones);
        sink.take_finished().into_iter().map(file).collect()
    }

    fn close(&self, sink: &mut TableSink, tombstones: &[RangeTombstoneSpan]) {
        let mut meter = WorkMeter::default();
        sink.begin_close(tombstones, 0, 0, &mut meter).unwrap();
        while !matches!(sink.poll_close(&mut meter).unwrap(), CloseProgress::Closed) {}
    }

    /// Merges the runs, newest first; blocks are offered for a copy if `copies`.
    pub(super) fn merge(&self, case: &Case, copies: bool) -> Result<(PartOutput, Vec<Entry>)> {
        let runs = case.runs.iter().map(|run| {
            let run = TableRun::new(run.clone(), case.range.clone());
            Input::Tables(if copies { run } else { run.without_offers() })
        });
        let mut context = ReadContext::new(&*self.workshop.world.environment);
        let tombstones: Vec<Arc<FragmentedTombstones>> = case
            .runs
            .iter()
            .flatten()
            .map(|table| table.reader().unwrap().range_tombstones(&mut context).unwrap())
            .collect();
        let (start, end) = (case.range.start.as_deref(), case.range.end.as_deref());
        let plan = MergePlan {
            retain: self.retain.clone(),
            name: String::from("test"),
            urgency: Urgency::Idle,
            merge: Merge::new(runs.collect()),
            snapshots: case.snapshots.clone(),
            tombstones: clipped_tombstones(
                tombstones.iter().map(|run| &**run),
                start,
                end,
                &case.snapshots,
            ),
            deeper: Deeper::levels(case.deeper.clone(), 2),
            operator: Arc::default(),
            ledger: Arc::default(),
            output: self.plan(case.table_bytes),
        };
        let receiver = Arc::new(Receiver::default());
        run(Box::new(MergeJob::new(self.workshop.clone(), receiver.clone(), plan)), self)?;
        let output = receiver.0.lock().unwrap().take().unwrap();
        let entries = output.tables.iter().flat_map(|table| self.checked(table)).collect();
        Ok((output, entries))
    }

    /// The entries of a table that is sound in all its parts.
    fn checked(&self, table: &NewTable) -> Vec<Entry> {
        let clock = &*self.workshop.world.environment;
        let mut context = ReadContext::new(clock);
        table.reader.verify(&mut context).unwrap();
        let mut meter = WorkMeter::default();
        let mut scanner = table.reader.scanner(None, None);
        let mut entries = Vec::new();
        while let ScanPoll::Ready = scanner.poll(&mut meter, clock).unwrap() {
            let (key, value) = (scanner.key().to_vec(), scanner.value().to_vec());
            let prefix = &key[..6.min(key.len())];
            assert!(table.reader.prefix_may_match(prefix, &mut context).unwrap());
            entries.push((key, scanner.trailer(), value));
            scanner.advance().unwrap();
        }
        if let (Some(first), Some(last)) = (entries.first(), entries.last()) {
            let range = &table.metadata.range;
            assert!(range.contains(&first.0) && range.contains(&last.0));
            let sum = |part: fn(&Entry) -> usize| entries.iter().map(part).sum::<usize>() as u64;
            let properties = table.reader.properties();
            assert_eq!(properties.key_bytes, sum(|entry| entry.0.len()));
            assert_eq!(properties.value_bytes, sum(|entry| entry.2.len()));
            assert_eq!(
                properties.newest_obsolete_sequence,
                table.metadata.newest_obsolete_sequence
            );
            if table.metadata.range_tombstones == 0 {
                assert_eq!(
                    (&properties.smallest_key, &properties.largest_key),
                    (&first.0, &last.0)
                );
            }
        }
        entries
    }
}

fn run(mut job: Box<MergeJob>, bench: &Bench) -> Result<()> {
    loop {
        let environment = &*bench.workshop.world.environment;
        let (ledger, meter) = (&*bench.workshop.ledger, &mut WorkMeter::default());
        let spent = Spent::default();
        match job.step(&mut StepContext { environment, ledger, meter, spent }) {
            Step::Done(result) => return result,
            Step::Progress => {}
            Step::Waiting(ticket) => {
                let buffer = Vec::new();
                ticket.complete(IoOutcome { buffer, result: Err(Error::invalid("never late")) });
            }
        }
    }
}

#[derive(Default)]
struct Receiver(Mutex<Option<PartOutput>>);

impl JobReceiver for Receiver {
    fn part_begins(&self) {}
    fn part_progressed(&self, _: u64) {}
    fn part_done(&self, output: PartOutput) -> Result<()> {
        *self.0.lock().unwrap() = Some(output);
        Ok(())
    }
    fn part_failed(&self, _: Option<Error>) {}
}

/// What is merged.
pub(super) struct Case {
    /// Newest first.
    pub(super) runs: Vec<Vec<Arc<TableFile>>>,
    pub(super) deeper: Arc<Version>,
    pub(super) snapshots: Vec<SequenceNumber>,
    pub(super) range: SubRange,
    pub(super) table_bytes: u64,
}

pub(super) const EVERYTHING: SubRange = SubRange { start: None, end: None };

fn file(table: NewTable) -> Arc<TableFile> {
    let file = TableFile::new(table.metadata);
    file.set_reader(table.reader);
    file
}

fn key(number: u64) -> Vec<u8> {
    format!("link{number:06}").into_bytes()
}

fn put(number: u64, sequence: SequenceNumber) -> Entry {
    let value = format!("stone {} of layer {}", number * 7919 % 1000, number % 13);
    (key(number), Trailer::new(sequence, ValueKind::Put), value.into_bytes())
}

/// Rows of all numbers in the range.
pub(super) fn rows(numbers: std::ops::Range<u64>, sequence: SequenceNumber) -> Vec<Entry> {
    numbers.map(|number| put(number, sequence)).collect()
}

pub(super) fn zstd() -> Compression {
    Compression { codec: CodecId::Zstd, effort: 1, ..Compression::NONE }
}

/// Entries in clusters, with sequences from `sequences`, some keys in several versions, some
/// deleted.
fn clusters(random: &mut Random, sequences: std::ops::Range<u64>) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut number = random.below(400);
    let (plain, is_zeroed) = (random.below(3) > 0, random.below(3) == 0 && sequences.start < 100);
    let mut next_sequence = sequences.start;
    while number < 4_000 {
        for _ in 0..random.below(700) {
            number += 1 + random.below(3) / 2;
            let versions = if plain || random.below(30) > 0 { 1 } else { 2 + random.below(2) };
            next_sequence = (next_sequence + 1).min(sequences.end - 4);
            for version in (0..versions).rev() {
                let kind = match random.below(if plain { 1 } else { 60 }) {
                    58 => ValueKind::Delete,
                    59 => ValueKind::SingleDelete,
                    _ => ValueKind::Put,
                };
                let sequence = if is_zeroed && versions == 1 { 0 } else { next_sequence + version };
                let (key, _, value) = put(number, 0);
                let value = if kind == ValueKind::Put { value } else { Vec::new() };
                let kind = if sequence == 0 { ValueKind::Put } else { kind };
                entries.push((key, Trailer::new(sequence, kind), value));
            }
            next_sequence += versions - 1;
        }
        number += random.below(900);
    }
    entries
}

fn span(random: &mut Random, sequence: SequenceNumber) -> RangeTombstoneSpan {
    let start = random.below(4_000);
    let end = start + 1 + random.below(500);
    RangeTombstoneSpan { start: key(start).into(), end: key(end).into(), sequence }
}

fn random_case(random: &mut Random, bench: &Bench) -> Case {
    let table_bytes = 2_000 + random.below(60_000);
    let mut runs = Vec::new();
    for age in 0..1 + random.below(3) {
        // One table if it has range tombstones, whose bounds are then its own.
        let base = 20_000 - age * 8_000;
        let entries = clusters(random, base..base + 7_000);
        let tombstones = match random.below(3) {
            0 => {
                let sequence = base + random.below(7_000);
                vec![span(random, sequence)]
            }
            _ => Vec::new(),
        };
        let bytes = if tombstones.is_empty() { table_bytes } else { u64::MAX };
        runs.push(bench.tables(&entries, &tombstones, bytes));
    }
    runs.push(bench.tables(&clusters(random, 1..3_000), &[], table_bytes));
    let mut levels = vec![Vec::new(); 4];
    for level in levels.iter_mut().skip(2) {
        let (start, count) = (random.below(3_000), random.below(2) * random.below(1_000));
        *level = bench.tables(&rows(start..start + count, 0), &[], table_bytes);
    }
    let mut snapshots: Vec<u64> = (0..random.below(3)).map(|_| random.below(30_000)).collect();
    snapshots.push(40_000);
    snapshots.sort_unstable();
    snapshots.dedup();
    let bound = |number: u64| Some(Box::from(key(number)));
    let range = match random.below(4) {
        0 => SubRange { start: bound(random.below(2_000)), end: None },
        1 => SubRange { start: None, end: bound(2_000 + random.below(2_000)) },
        _ => EVERYTHING,
    };
    let deeper = Arc::new(Version::new(levels));
    Case { runs, deeper, snapshots, range, table_bytes }
}

#[test]
fn copied_and_decoded_blocks_give_the_same_rows() {
    let (mut random, mut copied, mut copying) = (Random(7), 0, 0);
    for round in 0..90 {
        let compression = [Compression::NONE, Compression::LZ4, zstd()][round % 3];
        let block_size = [300, 1_000, 4_000][round / 3 % 3];
        let bench = Bench::new(round as u64, compression, block_size);
        let case = random_case(&mut random, &bench);
        let (decoded, expected) = bench.merge(&case, false).unwrap();
        let (output, entries) = bench.merge(&case, true).unwrap();
        assert_eq!(decoded.copied, Copied::default());
        assert_eq!(entries.len(), expected.len(), "round {round}");
        for (found, expected) in entries.iter().zip(&expected) {
            assert_eq!((&found.0, &found.2), (&expected.0, &expected.2), "round {round}");
            // Where only some keys of a block lie deeper, a copy leaves the others' sequences.
            let is_zeroed = expected.1 == Trailer::new(0, ValueKind::Put)
                && found.1.sequence() <= case.snapshots[0];
            assert!(found.1 == expected.1 || is_zeroed, "round {round}: {found:?} {expected:?}");
        }
        let counts = |output: &PartOutput| (output.entries_in, output.entries_out);
        assert_eq!(counts(&output), counts(&decoded));
        let obsolete = |output: &PartOutput| {
            let tables = output.tables.iter();
            tables.map(|table| table.metadata.newest_obsolete_sequence).max()
        };
        assert_eq!(obsolete(&output), obsolete(&decoded));
        let stored = |output: &PartOutput| -> u64 {
            output.tables.iter().map(|table| table.metadata.size_bytes).sum()
        };
        assert!(stored(&output) <= stored(&decoded) * 5 / 4 + 500, "round {round}");
        copied += output.copied.blocks;
        copying += u64::from(output.copied.blocks > 0);
    }
    assert!(copied > 500 && copying > 20, "{copied} blocks in {copying} merges");
}

/// The merge of one run of few rows with one of many.
fn few_over_many(bench: &Bench, few: &[Entry], many: &[Entry]) -> Case {
    Case {
        runs: vec![bench.tables(few, &[], u64::MAX), bench.tables(many, &[], 20_000)],
        deeper: Arc::new(Version::empty(4)),
        snapshots: vec![40_000],
        range: EVERYTHING,
        table_bytes: 20_000,
    }
}

fn copied(few: &[Entry], many: &[Entry], change: impl FnOnce(&Bench, &mut Case)) -> Copied {
    let bench = Bench::new(1, Compression::LZ4, 1_000);
    let mut case = few_over_many(&bench, few, many);
    change(&bench, &mut case);
    bench.merge(&case, true).unwrap().0.copied
}

#[test]
fn blocks_that_nothing_touches_are_copied_and_others_are_not() {
    let many = rows(0..4_000, 0);
    let few = rows(2_000..2_020, 9);
    let all = copied(&[], &many, |_, _| {}).blocks;
    assert!(all > 80, "{all}");
    let some = copied(&few, &many, |_, _| {}).blocks;
    assert!(some < all && some > all - 10, "{some} of {all}");
    // At the bottom sequence numbers are zeroed, once all readers see them.
    assert_eq!(copied(&[], &rows(0..4_000, 7), |_, _| {}).blocks, 0);
    let held = copied(&[], &rows(0..4_000, 7), |_, case| case.snapshots = vec![5, 40_000]);
    assert_eq!(held.blocks, all);
    let deeper = copied(&[], &rows(0..4_000, 7), |bench, case| {
        let levels = vec![vec![], vec![], bench.tables(&rows(0..5_000, 0), &[], u64::MAX)];
        case.deeper = Arc::new(Version::new(levels));
    });
    assert_eq!(deeper.blocks, all);
    let deleted = copied(&[], &many, |bench, case| {
        let (start, end) = (key(0).into(), key(2_000).into());
        let tombstone = RangeTombstoneSpan { start, end, sequence: 9 };
        case.runs[0] = bench.tables(&[], &[tombstone], u64::MAX);
    });
    assert!((all / 3..all * 3 / 5).contains(&deleted.blocks), "{}", deleted.blocks);
}

/// Found by random operations (case 6107 of the simulator's check `metamorphic`): the separator of
/// a block that was copied to the end of its table may lie behind the first key of a table that was
/// put between this and the next one later.
#[test]
fn the_last_block_of_a_table_is_not_copied_in_front_of_a_key_below_its_separator() {
    let bench = Bench::new(5, Compression::LZ4, 1);
    let case = |runs: Vec<Vec<Arc<TableFile>>>, end: Option<Vec<u8>>| Case {
        runs,
        deeper: Arc::new(Version::empty(4)),
        snapshots: vec![40_000],
        range: SubRange { start: None, end: end.map(Vec::into_boxed_slice) },
        table_bytes: u64::MAX,
    };
    // A block each: the separator of the first is link0003.
    let wide = bench.tables(&[put(296, 0), put(300, 0)], &[], u64::MAX);
    let (cut, _) = bench.merge(&case(vec![wide], Some(key(300))), true).unwrap();
    assert_eq!(cut.copied.blocks, 1);
    let mut run: Vec<_> = cut.tables.into_iter().map(file).collect();
    run.extend(bench.tables(&[put(298, 0), put(299, 0)], &[], u64::MAX));
    let (merged, entries) = bench.merge(&case(vec![run], None), true).unwrap();
    assert_eq!(entries, [put(296, 0), put(298, 0), put(299, 0)]);
    let mut context = ReadContext::new(&*bench.workshop.world.environment);
    let found = merged.tables[0].reader.get(&key(298), 1, &mut context).unwrap();
    assert!(found.is_some(), "a get looks into the block in front of the separator only");
}

#[test]
fn a_damaged_block_is_not_copied() {
    for at in [10, 600, 5_000] {
        let bench = Bench::new(3, zstd(), 1_000);
        let case = few_over_many(&bench, &[], &rows(0..4_000, 0));
        let path = bench.workshop.table_path(case.runs[1][0].metadata.number);
        let file = bench.workshop.world.files.open(&path, OpenMode::ReadWrite).unwrap();
        let mut byte = [0];
        file.read_at(&mut byte, at).unwrap();
        file.write_at(&[IoSlice::new(&[byte[0] ^ 0x10])], at).unwrap();
        let error = bench.merge(&case, true).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert!(error.to_string().contains("checksum"), "{error}");
    }
}

#[test]
fn copies_do_not_leave_a_level_in_splinters() {
    let bench = Bench::new(4, Compression::LZ4, 1_000);
    // One row is new in every second block or so.
    let few: Vec<Entry> = (0..50).map(|index| put(index * 80, 9)).collect();
    let case = few_over_many(&bench, &few, &rows(0..4_000, 0));
    let (output, _) = bench.merge(&case, true).unwrap();
    assert!(output.copied.blocks > 5, "{:?}", output.copied);
    let sum = |of: fn(&NewTable) -> u64| output.tables.iter().map(of).sum::<u64>();
    let raw_bytes = sum(|table| table.reader.properties().data_raw_bytes);
    let blocks = sum(|table| table.reader.properties().data_blocks);
    assert!(raw_bytes / blocks > 760, "{blocks} blocks of {raw_bytes} bytes");
}
