//! Point reads of several keys at one point in time.
//!
//! The keys are sorted once and then go through the runs together, newest run first: each
//! memtable and each table is asked for all keys that are still open, and a key that a run
//! decides is asked for no more. A table so sees its keys in order, and fetches each of its
//! blocks once.

use crate::Result;
use crate::base::{SequenceNumber, Slice, ValueKind};
use crate::db::inner::DbInner;
use crate::db::reading::snapshot::Moment;
use crate::db::tree::family::{Family, Memory, View};
use crate::iter::TombstoneSet;
use crate::manifest::TableFile;
use crate::stats::{Cause, Counter, WorkMeter};
use crate::table::{HashedKey, ReadContext};

/// The keys of one call and what is known of them so far.
struct Batch<'k> {
    sequence: SequenceNumber,
    /// The range tombstones of the memtables.
    tombstones: TombstoneSet,
    /// Those that no run has decided, ascending, with their places in the answers.
    keys: Vec<HashedKey<'k>>,
    places: Vec<usize>,
    answers: Vec<Option<Slice>>,
    /// Keys whose newest entry is a merge operand, with their places in the answers.
    operands: Vec<(usize, &'k [u8])>,
    /// By place in `keys`: decided since the last [`Batch::drop_decided`].
    is_decided: Vec<bool>,
    /// By place in `keys`: the sequence number of the newest range tombstone of a run; scratch.
    covering: Vec<SequenceNumber>,
}

impl DbInner {
    pub(crate) fn multi_get<'k>(
        &self,
        family: &Family,
        keys: impl ExactSizeIterator<Item = &'k [u8]>,
        at: Option<&Moment>,
    ) -> Result<Vec<Option<Slice>>> {
        self.lifecycle.check_open()?;
        family.check_alive()?;
        let clock = &*self.world.environment;
        family.ledger.count(Counter::MultiGetKeys, keys.len() as u64);
        let number = family.ledger.count(Counter::MultiGets, 1);
        let sample = self.ledger.sample(number, Cause::UserLookup, clock);
        let mut meter = WorkMeter::default();
        let (view, (sequence, tombstones)) = self.read_point(family, at.map(|at| at.sequence));
        let mut batch = Batch::new(keys, sequence, tombstones);
        let read = batch
            .read(&view, &mut ReadContext { clock, meter: Some(&mut meter), fill_cache: true });
        let read = read.and_then(|()| {
            for (place, key) in std::mem::take(&mut batch.operands) {
                let read_point = (sequence, batch.tombstones.clone());
                batch.answers[place] =
                    self.get_folded(family, &view, key, read_point, &mut meter)?;
            }
            if family.rows.have_write_times() {
                for answer in &mut batch.answers {
                    *answer = self.unless_expired(family, Ok(answer.take()), at)?;
                }
            }
            Ok(())
        });
        if read.is_ok() {
            family.ledger.count_filters(&meter.filters);
        }
        self.ledger.end_user_call(sample, Cause::UserLookup, 0, clock, &mut meter);
        read.map(|()| batch.answers)
    }
}

impl<'k> Batch<'k> {
    fn new(
        keys: impl ExactSizeIterator<Item = &'k [u8]>,
        sequence: SequenceNumber,
        tombstones: TombstoneSet,
    ) -> Self {
        let count = keys.len();
        let mut sorted: Vec<_> = keys.map(HashedKey::new).zip(0..).collect();
        sorted.sort_unstable_by(|(a, _), (b, _)| a.bytes.cmp(b.bytes));
        let (keys, mut places): (_, Vec<usize>) = sorted.into_iter().unzip();
        if planted!(MultiGetMisplaced) {
            places.sort_unstable();
        }
        Batch {
            sequence,
            tombstones,
            keys,
            places,
            answers: vec![None; count],
            operands: Vec::new(),
            is_decided: vec![false; count],
            covering: Vec::new(),
        }
    }

    fn read(&mut self, view: &View, context: &mut ReadContext<'_>) -> Result<()> {
        for memory in view.memories() {
            self.read_memory(memory);
            self.drop_decided();
        }
        self.read_deleted();
        for table in view.version.level(0) {
            let range = &table.metadata.range;
            let start = self.keys.partition_point(|key| key.bytes < &range.smallest[..]);
            let end = self.keys.partition_point(|key| !range.ends_before(key.bytes));
            if start < end {
                self.read_table(table, start, end, context)?;
                self.drop_decided();
            }
        }
        for level in 1..view.version.level_count() {
            let mut start = 0;
            while let Some(key) = self.keys.get(start) {
                let Some(table) = view.version.table_for_key(level, key.bytes) else {
                    start += 1;
                    continue;
                };
                let range = &table.metadata.range;
                let rest = &self.keys[start..];
                let end = start + rest.partition_point(|key| !range.ends_before(key.bytes));
                self.read_table(table, start, end, context)?;
                start = end;
            }
            self.drop_decided();
        }
        Ok(())
    }

    fn decide(&mut self, place: usize, answer: Option<Slice>) {
        self.is_decided[place] = true;
        self.answers[self.places[place]] = answer;
    }

    fn read_memory(&mut self, memory: &Memory) {
        for place in 0..self.keys.len() {
            let key = self.keys[place].bytes;
            if let Some((kind, trailer, value)) = memory.table.get(key, self.sequence) {
                let covered = self.tombstones.covers(key, trailer.sequence(), self.sequence);
                if kind == ValueKind::Merge && !covered {
                    self.operands.push((self.places[place], key));
                }
                let live = kind == ValueKind::Put && !covered;
                self.decide(place, live.then(|| Slice::copy_from(value)));
            }
        }
    }

    /// Decides what is in no memtable but deleted by one.
    fn read_deleted(&mut self) {
        if self.tombstones.is_empty() {
            return;
        }
        for place in 0..self.keys.len() {
            if self.tombstones.covers(self.keys[place].bytes, 0, self.sequence) {
                self.decide(place, None);
            }
        }
        self.drop_decided();
    }

    /// Asks a table for the keys from `start` to before `end`, all within its range or behind it.
    fn read_table(
        &mut self,
        table: &TableFile,
        start: usize,
        end: usize,
        context: &mut ReadContext<'_>,
    ) -> Result<()> {
        let reader = table.reader()?;
        self.covering.clear();
        self.covering.resize(end - start, 0);
        if table.metadata.range_tombstones > 0 {
            let tombstones = reader.range_tombstones(context)?;
            for (key, covering) in self.keys[start..end].iter().zip(&mut self.covering) {
                *covering = tombstones.covering_sequence(key.bytes, self.sequence);
            }
        }
        let Batch { keys, places, answers, operands, is_decided, covering, sequence, .. } = self;
        reader.get_many(&keys[start..end], *sequence, context, &mut |place, trailer, value| {
            let is_covered = trailer.sequence() < covering[place];
            let answer = places[start + place];
            if trailer.kind() == Some(ValueKind::Merge) && !is_covered {
                operands.push((answer, keys[start + place].bytes));
            }
            let live = trailer.kind() == Some(ValueKind::Put) && !is_covered;
            is_decided[start + place] = true;
            answers[answer] = live.then_some(value);
        })?;
        for (is_decided, covering) in is_decided[start..end].iter_mut().zip(covering) {
            *is_decided |= *covering > 0;
        }
        Ok(())
    }

    /// Takes decided keys out.
    fn drop_decided(&mut self) {
        let mut is_open = self.is_decided.iter().map(|is_decided| !is_decided);
        self.keys.retain(|_| is_open.next().unwrap_or(false));
        let mut is_open = self.is_decided.iter().map(|is_decided| !is_decided);
        self.places.retain(|_| is_open.next().unwrap_or(false));
        self.is_decided.clear();
        self.is_decided.resize(self.keys.len(), false);
    }
}
