//! Operations from a seed. Keys come from a small space of which a part is hot, so that they
//! collide; each case stresses some kinds of operations and leaves others out.

use super::operators;
use super::settings::{database_options, family_options};
use super::{
    CURSOR_SLOTS, Change, Condition, CopyWay, Ending, FAMILY_COUNT, IngestWay, Key, Move,
    Operation, Over, SNAPSHOT_SLOTS, Settings, Span, TRANSACTION_SLOTS, TransactionCall, Value,
    Write,
};
use crate::random::Random;
use lithify::{CfOptions, Options};
use std::collections::BTreeMap;

/// Keys that begin so are only written by [`Change::Once`], and no range delete covers them.
const ONCE_PREFIX: u8 = b'~';

/// A kind of operation, for weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Kind {
    /// A put by itself.
    Put,
    /// A merge operand by itself.
    Merge,
    /// A delete by itself.
    Delete,
    /// A range delete by itself.
    DeleteRange,
    /// A put that is there once, or its single delete.
    Once,
    /// A write that depends on what is there.
    WriteIf,
    /// A batch.
    Batch,
    /// An ingest.
    Ingest,
    /// A call of a transaction.
    Transaction,
    /// A snapshot taken or released.
    Snapshot,
    /// A get.
    Get,
    /// A get of several keys.
    MultiGet,
    /// A cursor that is opened, moved and dropped.
    Scan,
    /// A cursor that is held.
    Cursor,
    /// A family made, dropped or changed.
    Family,
    /// A flush.
    Flush,
    /// A manual compaction.
    Compact,
    /// A wait for everything in the background.
    Settle,
    /// A sync of the log.
    Sync,
    /// Time that passes.
    Advance,
    /// So much of it that rows expire.
    Age,
    /// A comparison of everything.
    CompareAll,
    /// The end of the database, and another opening.
    Reopen,
    /// A copy of the database, or a reader beside it.
    Copy,
}

/// How often each kind comes, of a thousand operations or so.
const WEIGHTS: [(Kind, u32); 24] = [
    (Kind::Put, 270),
    (Kind::Merge, 60),
    (Kind::Delete, 90),
    (Kind::DeleteRange, 10),
    (Kind::Once, 50),
    (Kind::WriteIf, 20),
    (Kind::Batch, 50),
    (Kind::Ingest, 6),
    (Kind::Transaction, 90),
    (Kind::Snapshot, 12),
    (Kind::Get, 160),
    (Kind::MultiGet, 30),
    (Kind::Scan, 80),
    (Kind::Cursor, 30),
    (Kind::Family, 3),
    (Kind::Flush, 4),
    (Kind::Compact, 2),
    (Kind::Settle, 3),
    (Kind::Sync, 4),
    (Kind::Advance, 20),
    (Kind::Age, 3),
    (Kind::CompareAll, 1),
    (Kind::Reopen, 2),
    (Kind::Copy, 1),
];

/// The keys of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySpace {
    /// How many there are.
    pub count: u64,
    /// How they look: 0 text, some of it the beginning of another; 1 binary; 2 with a long
    /// common beginning; 3 of any length from 0 on.
    pub shape: u64,
}

impl KeySpace {
    /// The key of a number, which is taken within the space.
    pub fn key(&self, number: u64) -> Key {
        let number = number % self.count;
        match self.shape {
            0 => {
                let mut key = format!("key{:04}", number / 3).into_bytes();
                key.extend(std::iter::repeat_n(b'x', (number % 3) as usize));
                key
            }
            1 => {
                let mut key = ((number as u32).wrapping_mul(0x9e37_79b1) | 0xff).to_be_bytes();
                key[0] |= u8::from(key[0] == ONCE_PREFIX);
                key.to_vec()
            }
            2 => format!("a/rather/long/beginning/that/all/keys/have/in/common/{number:05}").into(),
            _ => {
                let byte = (number % 7) as u8 * 37;
                let mut key = vec![byte; (number % 40) as usize];
                key.extend_from_slice(&(number as u16).to_be_bytes()[..(number > 0) as usize * 2]);
                key
            }
        }
    }

    /// A key that is only written by [`Change::Once`].
    fn once_key(&self, number: u64) -> Key {
        let mut key = vec![ONCE_PREFIX, b'/'];
        key.extend_from_slice(format!("{:03}", number % (1 + self.count / 4)).as_bytes());
        key
    }
}

/// What the operations of a case are like.
#[derive(Clone, Debug)]
pub struct Profile {
    /// The keys.
    pub keys: KeySpace,
    /// The usual length of a value, in bytes; a few are none, some much longer.
    pub value_bytes: u64,
    /// The longest value, in bytes.
    pub value_bytes_max: u64,
    /// Background threads of the settings that reopening brings.
    pub background_threads: usize,
    weights: [u32; WEIGHTS.len()],
}

impl Profile {
    /// A random one: every kind as often as usual, often, or not at all.
    pub fn random(random: &mut Random, background_threads: usize) -> Profile {
        let keys = KeySpace { count: 8 << random.below(10), shape: random.below(4) };
        let mut weights = WEIGHTS.map(|(_, weight)| weight);
        for weight in &mut weights[1..] {
            *weight *= random.pick(&[0, 1, 1, 1, 1, 1, 1, 3]);
        }
        Profile {
            keys,
            value_bytes: *random.pick(&[20, 80, 80, 400]),
            value_bytes_max: *random.pick(&[200, 3_000, 20_000]),
            background_threads,
            weights,
        }
    }

    /// The same without some kinds.
    #[must_use]
    pub fn without(mut self, kinds: &[Kind]) -> Profile {
        kinds.iter().for_each(|kind| self.weights[*kind as usize] = 0);
        self
    }

    /// The same with one kind so often.
    #[must_use]
    pub fn with_weight(mut self, kind: Kind, weight: u32) -> Profile {
        self.weights[kind as usize] = weight;
        self
    }
}

/// Options of a family in a slot.
fn options_of(slot: usize, random: &mut Random) -> CfOptions {
    let options = family_options(random);
    operators::with_operator(options, slot, random)
}

/// Makes operations one after the other, and remembers which slots are in use.
pub struct Generator {
    random: Random,
    profile: Profile,
    families: [bool; FAMILY_COUNT],
    snapshots: [bool; SNAPSHOT_SLOTS],
    cursors: [bool; CURSOR_SLOTS],
    transactions: [bool; TRANSACTION_SLOTS],
    /// Kinds by the running sum of their weights.
    sums: Vec<(u32, Kind)>,
}

impl Generator {
    /// Operations of a profile for a database without families.
    pub fn new(random: Random, profile: Profile) -> Generator {
        let mut sum = 0;
        let mut sums = Vec::new();
        for ((kind, _), weight) in WEIGHTS.iter().zip(profile.weights) {
            sum += weight;
            if weight > 0 {
                sums.push((sum, *kind));
            }
        }
        Generator {
            random,
            profile,
            families: Default::default(),
            snapshots: Default::default(),
            cursors: Default::default(),
            transactions: Default::default(),
            sums,
        }
    }

    /// So many operations, the first of which make families.
    pub fn script(&mut self, length: usize) -> Vec<Operation> {
        (0..length).map(|_| self.next_operation()).collect()
    }

    /// A family with a row for every key: a tree of several levels from the start.
    pub fn load(&mut self) -> [Operation; 2] {
        let family = 0;
        let keys = self.profile.keys;
        let rows: BTreeMap<Key, Option<Value>> =
            (0..keys.count).map(|number| (keys.key(number), Some(self.value()))).collect();
        let rows = rows.into_iter().collect();
        [self.create_family(family), Operation::Ingest { family, rows, way: IngestWay::Rows }]
    }

    /// Settings for an opening, some of them with direct reads: the file system must have these.
    pub fn settings(&mut self) -> Settings {
        let random = &mut self.random;
        let direct_reads = random.one_in(4);
        let options = database_options(random, self.profile.background_threads);
        Settings {
            database: Options { direct_reads, ..options },
            families: std::array::from_fn(|slot| options_of(slot, random)),
        }
    }

    /// The next operation.
    pub fn next_operation(&mut self) -> Operation {
        if self.families == [false; FAMILY_COUNT] {
            return self.create_family(0);
        }
        let (total, _) = self.sums[self.sums.len() - 1];
        let drawn = self.random.below(u64::from(total)) as u32;
        let at = self.sums.partition_point(|(sum, _)| *sum <= drawn);
        self.operation(self.sums[at].1)
    }

    fn operation(&mut self, kind: Kind) -> Operation {
        match kind {
            Kind::Put | Kind::Merge | Kind::Delete | Kind::DeleteRange | Kind::Once => {
                Operation::Write(self.write(kind))
            }
            Kind::WriteIf => self.write_if(),
            Kind::Batch => self.batch(),
            Kind::Ingest => self.ingest(),
            Kind::Transaction => self.transaction(),
            Kind::Snapshot => {
                let slot = self.random.below(SNAPSHOT_SLOTS as u64) as usize;
                self.snapshots[slot] = !self.snapshots[slot];
                match self.snapshots[slot] {
                    true => Operation::TakeSnapshot(slot),
                    false => Operation::ReleaseSnapshot(slot),
                }
            }
            Kind::Get => {
                Operation::Get { family: self.family(), key: self.any_key(), at: self.snapshot() }
            }
            Kind::MultiGet => {
                let most = *self.random.pick(&[4, 20, 60]);
                let count = self.random.below(most);
                let keys = (0..count).map(|_| self.any_key()).collect();
                Operation::MultiGet { family: self.family(), keys, at: self.snapshot() }
            }
            Kind::Scan => {
                let at = self.snapshot();
                Operation::Scan(self.over(at), self.moves())
            }
            Kind::Cursor => self.cursor(),
            Kind::Family => self.change_family(),
            Kind::Flush => Operation::Flush((!self.random.one_in(4)).then(|| self.family())),
            Kind::Compact => Operation::Compact {
                family: self.family(),
                range: (!self.random.one_in(3)).then(|| self.ordered_keys()),
            },
            Kind::Settle => Operation::Settle,
            Kind::Sync => Operation::Sync,
            Kind::Advance => {
                let most_us = *self.random.pick(&[100, 2_000, 1_000_000]);
                Operation::Advance(self.random.below(most_us))
            }
            Kind::Age => Operation::Age,
            Kind::CompareAll => Operation::CompareAll,
            Kind::Reopen => self.reopen(),
            Kind::Copy => self.copy(),
        }
    }

    /// The slot of a family that is there.
    fn family(&mut self) -> usize {
        let first = self.random.below(FAMILY_COUNT as u64) as usize;
        let slots = (first..first + FAMILY_COUNT).map(|slot| slot % FAMILY_COUNT);
        slots.into_iter().find(|slot| self.families[*slot]).unwrap_or(first)
    }

    /// Now and then a snapshot that is held.
    fn snapshot(&mut self) -> Option<usize> {
        let slot = self.random.below(2 * SNAPSHOT_SLOTS as u64) as usize;
        self.snapshots.get(slot).is_some_and(|held| *held).then_some(slot)
    }

    /// A key for any change; half of them are of the hot eighth.
    fn key(&mut self) -> Key {
        let keys = self.profile.keys;
        let hot = if self.random.one_in(2) { keys.count.div_ceil(8) } else { keys.count };
        keys.key(self.random.below(hot))
    }

    fn once_key(&mut self) -> Key {
        self.profile.keys.once_key(self.random.next() >> 32)
    }

    /// A key for reads: also those that are written once, and some that nobody writes.
    fn any_key(&mut self) -> Key {
        match self.random.below(16) {
            0 => self.once_key(),
            1 => {
                let mut key = self.key();
                key.push(self.random.below(256) as u8);
                key
            }
            _ => self.key(),
        }
    }

    fn ordered_keys(&mut self) -> (Key, Key) {
        let (one, other) = (self.any_key(), self.any_key());
        if one <= other { (one, other) } else { (other, one) }
    }

    fn value(&mut self) -> Value {
        let Profile { value_bytes, value_bytes_max, .. } = self.profile;
        let length = match self.random.below(32) {
            0 => 0,
            1 => self.random.below(value_bytes_max),
            2..=4 => self.random.below(value_bytes_max.min(8 * value_bytes)),
            _ => self.random.below(2 * value_bytes),
        };
        Value { seed: self.random.next(), length: length as u32 }
    }

    /// A change of a kind that is one.
    fn write(&mut self, kind: Kind) -> Write {
        let family = self.family();
        let change = match kind {
            Kind::Delete => Change::Delete(self.key()),
            Kind::Merge => {
                let length = self.random.below(operators::OPERAND_BYTES_MAX) as u32;
                Change::Merge(self.key(), Value { seed: self.random.next(), length })
            }
            Kind::DeleteRange => self.delete_range(),
            Kind::Once => Change::Once(self.once_key(), self.value()),
            _ => Change::Put(self.key(), self.value()),
        };
        Write { family, change }
    }

    /// Most ranges are short: few rows would be left otherwise.
    fn delete_range(&mut self) -> Change {
        let (start, end) = self.short_range();
        Change::DeleteRange(start, end)
    }

    fn short_range(&mut self) -> (Key, Key) {
        let keys = self.profile.keys;
        let first = self.random.below(keys.count);
        let width = match self.random.below(8) {
            0 => keys.count,
            _ => 1 + keys.count / 16,
        };
        let last = (first + self.random.below(width)).min(keys.count - 1);
        let (mut start, mut end) = (keys.key(first), keys.key(last));
        if end < start {
            std::mem::swap(&mut start, &mut end);
        }
        if start[..] < [ONCE_PREFIX][..] && end[..] > [ONCE_PREFIX][..] {
            end = vec![ONCE_PREFIX];
        }
        (start, end)
    }

    fn any_write(&mut self, has_ranges: bool) -> Write {
        let kind = match self.random.below(20) {
            0 if has_ranges => Kind::DeleteRange,
            0..=4 => Kind::Delete,
            5 | 6 => Kind::Once,
            7..=9 => Kind::Merge,
            _ => Kind::Put,
        };
        self.write(kind)
    }

    fn write_if(&mut self) -> Operation {
        let (family, key) = (self.family(), self.key());
        let value = (!self.random.one_in(3)).then(|| self.value());
        let condition = match self.random.below(3) {
            0 => {
                let is_disturbed = self.random.one_in(4);
                let meanwhile = is_disturbed.then(|| self.short_range());
                Condition::Always { value, meanwhile }
            }
            1 => Condition::IfAbsent(self.value()),
            _ => Condition::IfEqual { is_own: !self.random.one_in(3), value },
        };
        Operation::WriteIf { family, key, condition }
    }

    fn batch(&mut self) -> Operation {
        let most = *self.random.pick(&[2, 8, 8, 40]);
        let count = self.random.below(most);
        let writes = (0..count).map(|_| self.any_write(true)).collect();
        Operation::Batch { writes, is_synced: self.random.one_in(8) }
    }

    fn ingest(&mut self) -> Operation {
        let keys = self.profile.keys;
        let most = *self.random.pick(&[4, 40, 400]);
        let count = 1 + self.random.below(most);
        let is_dense = self.random.one_in(2);
        let first = self.random.below(keys.count);
        let mut rows = BTreeMap::new();
        for number in 0..count {
            let key = if is_dense { keys.key(first + number) } else { self.key() };
            let value = (!self.random.one_in(8)).then(|| self.value());
            rows.insert(key, value);
        }
        let ways = [
            IngestWay::Rows,
            IngestWay::Rows,
            IngestWay::GivenUp,
            IngestWay::SlowRows,
            IngestWay::LinkedTable,
            IngestWay::CopiedTable,
        ];
        let way = *self.random.pick(&ways);
        Operation::Ingest { family: self.family(), rows: rows.into_iter().collect(), way }
    }

    fn transaction(&mut self) -> Operation {
        let slot = self.random.below(TRANSACTION_SLOTS as u64) as usize;
        if !self.transactions[slot] {
            self.transactions[slot] = true;
            let has_snapshot = self.random.one_in(3);
            let reads_at_snapshot = has_snapshot && self.random.one_in(2);
            let is_optimistic = self.random.one_in(3);
            let call = TransactionCall::Begin { has_snapshot, reads_at_snapshot, is_optimistic };
            return Operation::Transaction { slot, call };
        }
        let call = match self.random.below(20) {
            0 | 1 => TransactionCall::Get(self.family(), self.any_key()),
            2..=4 => TransactionCall::GetForUpdate(self.family(), self.key()),
            5 => TransactionCall::LockFirst(self.family(), self.over(None).span),
            6..=11 => {
                let has_ranges = self.random.one_in(8);
                TransactionCall::Write(self.any_write(has_ranges))
            }
            12 | 13 => TransactionCall::Scan(self.over(None), self.moves()),
            14 => TransactionCall::SetSavepoint,
            15 => TransactionCall::RollbackToSavepoint,
            16 => {
                self.transactions[slot] = false;
                TransactionCall::Rollback
            }
            _ => {
                self.transactions[slot] = false;
                TransactionCall::Commit { is_synced: self.random.one_in(8) }
            }
        };
        Operation::Transaction { slot, call }
    }

    fn over(&mut self, at: Option<usize>) -> Over {
        let span = match self.random.below(8) {
            0 | 1 => Span::All,
            2 => Span::From(self.any_key()),
            3 => Span::To(self.any_key()),
            4 | 5 => {
                let (lower, upper) = self.ordered_keys();
                Span::Between(lower, upper)
            }
            6 => {
                let (lower, upper) = self.ordered_keys();
                Span::Through(lower, upper)
            }
            _ => {
                let mut key = self.any_key();
                key.truncate(self.random.below(9) as usize);
                Span::Prefix(key)
            }
        };
        Over { family: self.family(), span, at }
    }

    fn moves(&mut self) -> Vec<Move> {
        let count = 1 + self.random.below(4);
        (0..count).map(|_| self.cursor_move()).collect()
    }

    fn cursor_move(&mut self) -> Move {
        let most = *self.random.pick(&[1, 4, 4, 20]);
        match self.random.below(10) {
            0 => Move::First,
            1 => Move::Last,
            2..=4 => Move::Next(1 + self.random.below(most) as u32),
            5 | 6 => Move::Previous(1 + self.random.below(most) as u32),
            7 | 8 => Move::Seek(self.any_key()),
            _ => Move::SeekForPrevious(self.any_key()),
        }
    }

    fn cursor(&mut self) -> Operation {
        let slot = self.random.below(CURSOR_SLOTS as u64) as usize;
        if !self.cursors[slot] {
            self.cursors[slot] = true;
            let at = self.snapshot();
            return Operation::HoldCursor(slot, self.over(at));
        }
        if self.random.one_in(6) {
            self.cursors[slot] = false;
            return Operation::DropCursor(slot);
        }
        Operation::MoveCursor(slot, self.moves())
    }

    fn create_family(&mut self, slot: usize) -> Operation {
        self.families[slot] = true;
        Operation::CreateFamily(slot, Box::new(options_of(slot, &mut self.random)))
    }

    fn change_family(&mut self) -> Operation {
        let slot = self.random.below(FAMILY_COUNT as u64) as usize;
        if !self.families[slot] {
            return self.create_family(slot);
        }
        if self.random.one_in(3) {
            self.families[slot] = false;
            return Operation::DropFamily(slot);
        }
        Operation::ChangeFamily(slot, Box::new(options_of(slot, &mut self.random)))
    }

    fn copy(&mut self) -> Operation {
        let random = &mut self.random;
        let (flush, other) = (random.one_in(3), random.one_in(2));
        let ways = [
            CopyWay::Checkpoint { flush, is_linked: other },
            CopyWay::Backup { flush, check_shared: other },
            CopyWay::Backup { flush, check_shared: other },
            CopyWay::Restore(random.below(8) as usize),
            CopyWay::Reader,
            CopyWay::Verification,
        ];
        let way = *random.pick(&ways);
        // The world of others has no direct reads.
        let mut settings = self.settings();
        settings.database.direct_reads = false;
        Operation::Copy(way, Box::new(settings))
    }

    fn reopen(&mut self) -> Operation {
        self.snapshots = Default::default();
        self.cursors = Default::default();
        self.transactions = Default::default();
        let ending = *self.random.pick(&[Ending::Close, Ending::Drop, Ending::Kill, Ending::Kill]);
        Operation::Reopen(ending, Box::new(self.settings()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(seed: u64) -> Vec<Operation> {
        let mut random = Random::new(seed);
        let profile = Profile::random(&mut random, 0);
        Generator::new(random, profile).script(2000)
    }

    #[test]
    fn a_seed_gives_one_script() {
        assert_eq!(script(3), script(3));
        assert_ne!(script(3), script(4));
    }

    #[test]
    fn no_range_delete_covers_a_key_that_is_written_once() {
        for seed in 0..40 {
            for operation in script(seed) {
                if let Operation::Write(Write { change: Change::DeleteRange(start, end), .. }) =
                    operation
                {
                    assert!(start <= end);
                    assert!(end[..] <= [ONCE_PREFIX][..] || start[..] > [ONCE_PREFIX, 0xff][..]);
                }
            }
        }
    }

    #[test]
    fn keys_of_a_space_differ_but_for_the_shape_of_any_length() {
        for shape in 0..3 {
            let keys = KeySpace { count: 4096, shape };
            let distinct: std::collections::BTreeSet<Key> =
                (0..4096).map(|number| keys.key(number)).collect();
            // Of the binary shape some fall together.
            assert!(distinct.len() > if shape == 1 { 1000 } else { 4095 }, "{shape}");
        }
        assert!(KeySpace { count: 8, shape: 3 }.key(0).is_empty());
    }
}
