//! What the worker does, as a function of numbers: worker and judge know it without telling each
//! other.
//!
//! Each writer has rows of its own, in all column families, and counts its steps: step `k` that
//! changes rows sets the writer's counter to `k` in the same commit. So a database shows by its
//! counters how far each writer had come, and all other rows of the writer must fit.

use super::WRITERS;
use crate::digest::mix;
use crate::operation::settings::family_options;
use crate::random::Random;
use lithify::{CfOptions, Durability, Options};

/// The column families that are there from the beginning to the end.
pub(super) const FAMILIES: [&str; 3] = ["a", "b", "c"];

/// Rows of a writer in a column family.
const ROWS: u64 = 40;

/// Steps after which a writer's round of special ones begins anew.
const ROUND: u64 = 40;

/// In each round: a column family is made, used, and dropped.
const MAKE_AT: u64 = 10;
const DROP_AT: u64 = 30;

/// The step of a round in which the first writer makes a checkpoint.
const COPY_AT: u64 = 20;

/// By how far each writer had come.
pub(super) type Counts = [u64; WRITERS];

/// One change of a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RowChange {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    DeleteRange(Vec<u8>, Vec<u8>),
}

/// One step of a writer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// Changes of rows by family, in one commit; then perhaps a flush of a family (`Some(None)`:
    /// of all).
    Write {
        changes: Vec<(String, RowChange)>,
        is_transaction: bool,
        durability: Option<Durability>,
        flush: Option<Option<&'static str>>,
    },
    /// Rows of one family, as rows or as a table file.
    Ingest {
        family: &'static str,
        rows: Vec<(Vec<u8>, Vec<u8>)>,
        is_table: bool,
    },
    Flush(Option<&'static str>),
    Sync,
    Compact(&'static str),
    MakeFamily(String),
    DropFamily(String),
    Checkpoint(String),
}

impl Step {
    /// Whether the step sets the writer's counter.
    pub(super) fn changes_rows(&self) -> bool {
        matches!(self, Step::Write { .. } | Step::Ingest { .. })
    }
}

/// One process that works on the database: from an opening to a kill or a close.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) seed: u64,
    pub(super) number: u64,
    /// What each writer's counter was when the database was opened.
    pub(super) start: Counts,
}

fn key(writer: usize, row: u64) -> Vec<u8> {
    format!("w{writer}-{row:03}").into_bytes()
}

/// The key of a writer's counter.
pub(super) fn counter_key(writer: usize) -> Vec<u8> {
    format!("w{writer}-count").into_bytes()
}

/// The writer whose row it is, and whether it is the counter.
pub(super) fn owner(key: &[u8]) -> Option<(usize, bool)> {
    let writer = usize::from(key.strip_prefix(b"w")?.first()?.wrapping_sub(b'0'));
    (writer < WRITERS).then(|| (writer, key.ends_with(b"-count")))
}

/// The step that a counter's value names.
pub(super) fn count_of(value: &[u8]) -> u64 {
    value.first_chunk().map_or(0, |count| u64::from_le_bytes(*count))
}

fn value(random: &mut Random, length: u64) -> Vec<u8> {
    let mut value = Vec::new();
    while (value.len() as u64) < length {
        value.extend(random.next().to_le_bytes());
    }
    value.truncate(length as usize);
    value
}

/// What the database of a case is opened with.
pub(super) fn options(seed: u64, durability: Durability, background_threads: usize) -> Options {
    let mut random = Random::new(mix(seed, 1));
    let memtable_bytes = (64 << 10) << random.below(2);
    Options {
        memory_budget_bytes: 4 << 20,
        memtable_bytes,
        wal_bytes_max: (memtable_bytes as u64) << random.below(4),
        manifest_bytes_max: 1024 << random.below(6),
        background_threads,
        durability,
        row_lock_timeout_ms: 20_000,
        ..Options::default()
    }
}

/// The settings of the column families.
pub(super) fn families(seed: u64) -> CfOptions {
    family_options(&mut Random::new(mix(seed, 2)))
}

/// The mode of a case: all of them in turn.
pub(super) fn durability(case: u64) -> Durability {
    match case % 4 {
        0 => Durability::Sync,
        1 => Durability::Buffered,
        2 => Durability::Interval { milliseconds: 5 },
        _ => Durability::None,
    }
}

impl Life {
    /// The step of a writer; numbers go on from life to life.
    pub(super) fn step(&self, durability: Durability, writer: usize, k: u64) -> Step {
        let made_at = k - k % ROUND + MAKE_AT;
        let name = format!("t{writer}-{}-{made_at}", self.number);
        let is_ours = made_at > self.start[writer];
        match k % ROUND {
            MAKE_AT => return Step::MakeFamily(name),
            DROP_AT if is_ours => return Step::DropFamily(name),
            COPY_AT if writer == 0 => {
                return Step::Checkpoint(format!("copy-{}-{k}", self.number));
            }
            _ => {}
        }
        let has_extra = (MAKE_AT + 1..DROP_AT).contains(&(k % ROUND)) && is_ours;
        let seed = mix(mix(mix(self.seed, self.number), writer as u64), k);
        let mut random = Random::new(seed);
        let family = *random.pick(&FAMILIES);
        match random.below(40) {
            0 | 1 => self.ingest(writer, k, family, &mut random),
            2 if durability != Durability::None => Step::Sync,
            3 => Step::Compact(family),
            4 => Step::Flush(random.one_in(2).then_some(family)),
            kind => {
                let extra = has_extra.then_some(name);
                let mut step = self.write(writer, k, durability, extra, &mut random);
                if let Step::Write { changes, flush, .. } = &mut step
                    && kind == 5
                {
                    let row = key(writer, random.below(ROWS));
                    changes.push((family.to_string(), RowChange::Put(row, value(&mut random, 30))));
                    *flush = Some(random.one_in(2).then_some(family));
                }
                step
            }
        }
    }

    fn counter(&self, writer: usize, k: u64, random: &mut Random) -> (Vec<u8>, Vec<u8>) {
        let mut count = k.to_le_bytes().to_vec();
        count.extend(self.number.to_le_bytes());
        let length = random.below(60);
        count.extend(value(random, length));
        (counter_key(writer), count)
    }

    fn ingest(&self, writer: usize, k: u64, family: &'static str, random: &mut Random) -> Step {
        let mut rows: Vec<_> = (0..ROWS)
            .filter(|_| random.one_in(4))
            .map(|row| (key(writer, row), 20 + row))
            .collect::<Vec<_>>()
            .into_iter()
            .map(|(key, length)| (key, value(random, length)))
            .collect();
        rows.push(self.counter(writer, k, random));
        Step::Ingest { family, rows, is_table: random.one_in(2) }
    }

    fn write(
        &self,
        writer: usize,
        k: u64,
        durability: Durability,
        extra: Option<String>,
        random: &mut Random,
    ) -> Step {
        let mut changes = Vec::new();
        let is_transaction = random.one_in(4);
        for _ in 0..random.between(2, 9) {
            let family = match &extra {
                Some(extra) if random.one_in(3) => extra.clone(),
                _ => random.pick(&FAMILIES).to_string(),
            };
            let row = random.below(ROWS);
            let change = match random.below(12) {
                0 | 1 => RowChange::Delete(key(writer, row)),
                2 if !is_transaction => {
                    let end = row + 1 + random.below(ROWS - row);
                    RowChange::DeleteRange(key(writer, row), key(writer, end))
                }
                kind => {
                    let length = if kind == 3 { 1500 } else { random.between(5, 250) };
                    RowChange::Put(key(writer, row), value(random, length))
                }
            };
            changes.push((family, change));
        }
        let (key, count) = self.counter(writer, k, random);
        let family = random.pick(&FAMILIES).to_string();
        changes.push((family, RowChange::Put(key, count)));
        let own = match durability {
            Durability::None => None,
            Durability::Sync if random.one_in(6) => Some(Durability::Buffered),
            Durability::Sync => None,
            _ => random.one_in(12).then_some(Durability::Sync),
        };
        Step::Write { changes, is_transaction, durability: own, flush: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_step_comes_up_and_comes_up_again() {
        let life = Life { seed: 5, number: 1, start: [0; WRITERS] };
        let mut kinds = std::collections::BTreeSet::new();
        for (writer, k) in (0..WRITERS).flat_map(|writer| (1..400).map(move |k| (writer, k))) {
            let step = life.step(Durability::Buffered, writer, k);
            assert_eq!(step, life.step(Durability::Buffered, writer, k));
            let text = format!("{step:?}");
            kinds.insert(text.split([' ', '(']).next().unwrap_or_default().to_string());
        }
        let expected = [
            "Checkpoint",
            "Compact",
            "DropFamily",
            "Flush",
            "Ingest",
            "MakeFamily",
            "Sync",
            "Write",
        ];
        assert_eq!(kinds.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn rows_have_owners() {
        assert_eq!(owner(&key(2, 39)), Some((2, false)));
        assert_eq!(owner(&counter_key(1)), Some((1, true)));
        assert_eq!(owner(b"x"), None);
        assert_eq!(owner(b"w9-000"), None);
    }
}
