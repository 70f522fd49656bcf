//! What the worker reported, and what follows from it: which states of the database may be there
//! after a power cut at a stamp, and which are promised.
//!
//! The promises are those of `docs/durability.md`; each floor here names the one it is.

use super::journal::{Event, Journal};
use super::plan::{Counts, FAMILIES, Life, RowChange, Step};
use super::worker::kind;
use super::{DATABASE, WRITERS};
use crate::digest;
use lithify::Durability;
use std::collections::BTreeMap;

/// The sum of the fingerprints of a writer's rows, by column family. Families without rows are not
/// in it.
pub(super) type Digests = BTreeMap<String, u64>;

/// The rows of a writer, by column family and key.
type Rows = BTreeMap<(String, Vec<u8>), Vec<u8>>;

/// A step with its times; [`NEVER`] where it has not come so far.
#[derive(Clone, Debug)]
struct Record {
    k: u64,
    step: Step,
    began: u64,
    done: u64,
    flushed: u64,
}

const NEVER: u64 = u64::MAX;

/// One writer in one life.
#[derive(Clone, Debug, Default)]
struct Writer {
    records: Vec<Record>,
    /// After the start, and after each step.
    digests: Vec<Digests>,
    rows: Rows,
}

struct LifeRecord {
    life: Life,
    opened: u64,
    writers: Vec<Writer>,
    /// When which counter of which writer was seen.
    seen: Vec<(u64, usize, u64)>,
    closing: u64,
    closed: u64,
}

/// What a database shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Shown {
    /// The highest counter of each writer.
    pub(super) counts: Counts,
    pub(super) digests: Vec<Digests>,
    pub(super) families: Vec<String>,
}

/// What ended what was under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Crash {
    /// The process: what was written is there.
    Process,
    /// The power: only what was synced is certain.
    Power,
}

/// See the module.
pub(super) struct History {
    durability: Durability,
    lives: Vec<LifeRecord>,
}

impl Writer {
    /// The writer as the next life finds it: with its first steps of this one.
    fn continued(&self, count: u64) -> Writer {
        let mut rows = self.start_rows();
        for record in self.records.iter().filter(|record| record.k <= count) {
            apply(&record.step, &mut rows);
        }
        Writer::begin(rows)
    }

    fn begin(rows: Rows) -> Writer {
        let digests = vec![digests(&rows)];
        let start = Record { k: 0, step: Step::Sync, began: 0, done: 0, flushed: 0 };
        let mut writer = Writer { records: Vec::new(), digests, rows };
        // The rows of the start are kept as a step of their own, which is before all others.
        let changes = writer.rows.iter().map(|((family, key), value)| {
            (family.clone(), RowChange::Put(key.clone(), value.clone()))
        });
        let step = Step::Write {
            changes: changes.collect(),
            is_transaction: false,
            durability: None,
            flush: None,
        };
        writer.records.push(Record { step, ..start });
        writer
    }

    fn start_rows(&self) -> Rows {
        let mut rows = Rows::new();
        self.records.iter().take(1).for_each(|record| apply(&record.step, &mut rows));
        rows
    }

    fn steps(&self) -> &[Record] {
        self.records.get(1..).unwrap_or_default()
    }

    fn record(&self, k: u64) -> Option<&Record> {
        self.steps().iter().find(|record| record.k == k)
    }

    fn record_mut(&mut self, k: u64) -> Option<&mut Record> {
        self.records.iter_mut().skip(1).find(|record| record.k == k)
    }
}

fn apply(step: &Step, rows: &mut Rows) {
    match step {
        Step::Write { changes, .. } => {
            for (family, change) in changes {
                match change {
                    RowChange::Put(key, value) => {
                        rows.insert((family.clone(), key.clone()), value.clone());
                    }
                    RowChange::Delete(key) => {
                        rows.remove(&(family.clone(), key.clone()));
                    }
                    RowChange::DeleteRange(start, end) => {
                        rows.retain(|(other, key), _| other != family || key < start || key >= end)
                    }
                }
            }
        }
        Step::Ingest { family, rows: new, .. } => {
            for (key, value) in new {
                rows.insert((family.to_string(), key.clone()), value.clone());
            }
        }
        _ => {}
    }
}

fn digests(rows: &Rows) -> Digests {
    let mut digests = Digests::new();
    for ((family, key), value) in rows {
        let sum = digests.entry(family.clone()).or_default();
        *sum = sum.wrapping_add(digest::of_row(key, value));
    }
    digests
}

impl History {
    /// What the reports of a journal say.
    pub(super) fn read(
        journal: &Journal,
        seed: u64,
        durability: Durability,
    ) -> Result<History, String> {
        let mut history = History { durability, lives: Vec::new() };
        for entry in &journal.entries {
            if let Event::Report(words) = &entry.event {
                history
                    .hear(words, entry.began, seed)
                    .ok_or_else(|| format!("the report {words:?} means nothing"))?;
            }
        }
        Ok(history)
    }

    fn hear(&mut self, words: &[u64], now: u64, seed: u64) -> Option<()> {
        let writer = || words.get(1).map(|writer| *writer as usize).filter(|w| *w < WRITERS);
        let k = words.get(2).copied();
        match words.first().copied()? {
            kind::OPENED => {
                let start: Counts = words.get(2..)?.try_into().ok()?;
                self.open(Life { seed, number: words[1], start }, now);
                return Some(());
            }
            kind::BEGUN => {
                let durability = self.durability;
                let (life, writer, k) = (self.lives.last_mut()?, writer()?, k?);
                let step = life.life.step(durability, writer, k);
                let of_writer = &mut life.writers[writer];
                apply(&step, &mut of_writer.rows);
                of_writer.digests.push(digests(&of_writer.rows));
                let record = Record { k, step, began: now, done: NEVER, flushed: NEVER };
                of_writer.records.push(record);
            }
            kind::DONE => self.lives.last_mut()?.writers[writer()?].record_mut(k?)?.done = now,
            kind::FLUSHED => {
                self.lives.last_mut()?.writers[writer()?].record_mut(k?)?.flushed = now;
            }
            kind::SEEN => self.lives.last_mut()?.seen.push((now, writer()?, k?)),
            kind::CLOSING => self.lives.last_mut()?.closing = now,
            kind::CLOSED => self.lives.last_mut()?.closed = now,
            _ => return None,
        }
        Some(())
    }

    fn open(&mut self, life: Life, opened: u64) {
        let writers = (0..WRITERS).map(|writer| match self.lives.last() {
            Some(last) => last.writers[writer].continued(life.start[writer]),
            None => Writer::begin(Rows::new()),
        });
        let record = LifeRecord {
            writers: writers.collect(),
            life,
            opened,
            seen: Vec::new(),
            closing: NEVER,
            closed: NEVER,
        };
        self.lives.push(record);
    }

    /// Steps that were acknowledged.
    pub(super) fn acknowledged(&self) -> u64 {
        let writers = self.lives.iter().flat_map(|life| &life.writers);
        let steps = writers.flat_map(|writer| writer.steps());
        steps.filter(|record| record.done != NEVER).count() as u64
    }

    /// Whether each opening showed what the crash before it may have left.
    pub(super) fn check_openings(&self) -> Result<(), String> {
        for (before, after) in self.lives.iter().zip(self.lives.iter().skip(1)) {
            let floor = before.floor(after.opened, self.durability, Crash::Process);
            for (writer, (found, least)) in after.life.start.iter().zip(floor).enumerate() {
                if *found < least {
                    return Err(format!(
                        "life {} was opened with step {found} of writer {writer}, of which \
                         {least} was promised to survive a kill",
                        after.life.number
                    ));
                }
            }
        }
        Ok(())
    }

    /// The life that a stamp is in: the last one that had opened the database.
    fn life_at(&self, stamp: u64) -> Option<&LifeRecord> {
        self.lives.iter().rev().find(|life| life.opened < stamp)
    }

    /// Whether a state may be there after a crash at a stamp. Until an opening is reported, nothing
    /// but recovery has written.
    pub(super) fn check(&self, shown: &Shown, stamp: u64, crash: Crash) -> Result<(), String> {
        let Some(life) = self.life_at(stamp) else {
            let has_rows = shown.digests.iter().any(|digests| digests.values().any(|d| *d != 0));
            return if has_rows { Err("rows that nobody wrote".to_string()) } else { Ok(()) };
        };
        let floor = life.floor(stamp, self.durability, crash);
        for (writer, least) in floor.iter().enumerate() {
            if shown.counts[writer] < *least {
                return Err(format!(
                    "of writer {writer} step {} is the last that is there, {least} was promised \
                     (life {}, {:?})",
                    shown.counts[writer], life.life.number, self.durability
                ));
            }
        }
        life.check_rows(shown)?;
        life.check_order(shown)?;
        self.check_families(shown, stamp)
    }

    /// Column families that were made are there, those that were dropped are not.
    fn check_families(&self, shown: &Shown, stamp: u64) -> Result<(), String> {
        let has = |name: &str| shown.families.iter().any(|family| family == name);
        if let Some(missing) = FAMILIES.iter().find(|name| !has(name)) {
            return Err(format!("the column family {missing} is missing"));
        }
        for record in self.steps().filter(|record| record.began < stamp) {
            match &record.step {
                Step::DropFamily(name) if record.done < stamp && has(name) => {
                    return Err(format!("the dropped column family {name} is back"));
                }
                Step::MakeFamily(name) if record.done < stamp && !has(name) => {
                    let is_dropped = self.steps().any(|other| {
                        other.began < stamp && other.step == Step::DropFamily(name.clone())
                    });
                    if !is_dropped {
                        return Err(format!("the column family {name} is missing"));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn steps(&self) -> impl Iterator<Item = &Record> {
        self.lives.iter().flat_map(|life| &life.writers).flat_map(Writer::steps)
    }

    /// The checkpoints that had been made before a stamp: they are durable.
    pub(super) fn checkpoints(&self, stamp: u64) -> Vec<String> {
        let done = self.steps().filter(|record| record.done < stamp);
        done.filter_map(|record| match &record.step {
            Step::Checkpoint(name) => Some(name.clone()),
            _ => None,
        })
        .collect()
    }

    /// Whether a checkpoint shows a moment while it was made. Every commit that had returned before
    /// it began is in it.
    pub(super) fn check_checkpoint(&self, name: &str, shown: &Shown) -> Result<(), String> {
        let is_it = |record: &&Record| record.step == Step::Checkpoint(name.to_string());
        let found = self.lives.iter().find_map(|life| {
            let steps = life.writers.iter().flat_map(Writer::steps);
            steps.into_iter().find(is_it).map(|record| (life, record))
        });
        let (life, made) = found.ok_or("nobody made the checkpoint")?;
        for (writer, of_writer) in life.writers.iter().enumerate() {
            let commits = of_writer.steps().iter().filter(|record| record.step.changes_rows());
            let least = commits.filter(|r| r.done < made.began).map(|r| r.k).max().unwrap_or(0);
            if shown.counts[writer] < least {
                return Err(format!(
                    "the checkpoint has step {} of writer {writer}, {least} had returned before",
                    shown.counts[writer]
                ));
            }
        }
        life.check_rows(shown)?;
        life.check_order(shown)
    }

    /// Where in the history a stamp is, for people.
    pub(super) fn describe(&self, stamp: u64) -> String {
        match self.life_at(stamp) {
            Some(life) => format!("in life {} of {DATABASE}", life.life.number),
            None => format!("before {DATABASE} was opened first"),
        }
    }
}

impl LifeRecord {
    /// The last step of each writer that must be there after a crash at a stamp.
    fn floor(&self, stamp: u64, mode: Durability, crash: Crash) -> Counts {
        // What a database shows after it was opened is durable.
        let mut floor = self.life.start;
        // Everything that had returned before this is durable: commits survive as a prefix.
        let mut through = 0;
        for (writer, of_writer) in self.writers.iter().enumerate() {
            for record in of_writer.steps().iter().filter(|record| record.began < stamp) {
                if record.is_durable(stamp, mode) {
                    through = through.max(record.began);
                    if record.step.changes_rows() {
                        floor[writer] = floor[writer].max(record.k);
                    }
                }
            }
        }
        // What was seen is durable where it may not be seen before.
        for (_, writer, k) in self.seen.iter().filter(|(when, ..)| *when < stamp) {
            if let Some(record) = self.writers[*writer].record(*k)
                && record.is_durable_when_seen(mode)
            {
                through = through.max(record.began);
                floor[*writer] = floor[*writer].max(*k);
            }
        }
        // A clean close makes everything durable.
        if self.closed < stamp {
            through = through.max(self.closing);
        }
        // The end of the process loses nothing that was logged.
        if crash == Crash::Process && mode != Durability::None {
            through = stamp;
        }
        for (writer, of_writer) in self.writers.iter().enumerate() {
            let commits = of_writer.steps().iter().filter(|record| record.step.changes_rows());
            let last = commits.filter(|record| record.done < through).map(|record| record.k).max();
            floor[writer] = floor[writer].max(last.unwrap_or(0));
        }
        floor
    }

    /// All rows of each writer are those after its first so many steps.
    fn check_rows(&self, shown: &Shown) -> Result<(), String> {
        for (writer, of_writer) in self.writers.iter().enumerate() {
            let count = shown.counts[writer];
            let start = self.life.start[writer];
            let place = match count.checked_sub(start) {
                Some(0) => 0,
                Some(_) => {
                    let place = of_writer.records.iter().position(|record| record.k == count);
                    place.filter(|place| *place > 0).ok_or_else(|| {
                        format!("the counter {count} of writer {writer}, who never began it")
                    })?
                }
                None => return Err(format!("writer {writer} is back at step {count}")),
            };
            let expected = &of_writer.digests[place];
            for family in &shown.families {
                let get = |digests: &Digests| digests.get(family).copied().unwrap_or(0);
                if get(expected) != get(&shown.digests[writer]) {
                    return Err(format!(
                        "the rows of writer {writer} in {family} are not those after its step \
                         {count}, which set its counter"
                    ));
                }
            }
        }
        Ok(())
    }

    /// No step is there that began after a lost one had returned.
    fn check_order(&self, shown: &Shown) -> Result<(), String> {
        let lost = (0..WRITERS).filter_map(|writer| {
            let commits = self.writers[writer].steps().iter();
            let mut lost = commits
                .filter(|record| record.step.changes_rows() && record.k > shown.counts[writer]);
            lost.next().filter(|record| record.done != NEVER).map(|record| (writer, record))
        });
        for (writer, lost) in lost {
            for other in 0..WRITERS {
                let last = self.writers[other].record(shown.counts[other]);
                if let Some(last) = last.filter(|last| last.began > lost.done) {
                    return Err(format!(
                        "step {} of writer {writer} is lost, which had returned before step {} \
                         of writer {other} began, which is there",
                        lost.k, last.k
                    ));
                }
            }
        }
        Ok(())
    }
}

impl Record {
    /// Whether it makes itself, and all before it, durable by having returned before a stamp.
    fn is_durable(&self, stamp: u64, mode: Durability) -> bool {
        match &self.step {
            Step::Write { .. } if self.flushed < stamp => true,
            Step::Write { durability, .. } => {
                self.done < stamp && durability.unwrap_or(mode) == Durability::Sync
            }
            Step::Ingest { .. } | Step::Flush(_) | Step::Sync => self.done < stamp,
            // Without a log, unflushed writes before it may go.
            Step::MakeFamily(_) | Step::DropFamily(_) => {
                self.done < stamp && mode != Durability::None
            }
            Step::Compact(_) | Step::Checkpoint(_) => false,
        }
    }

    fn is_durable_when_seen(&self, mode: Durability) -> bool {
        match &self.step {
            Step::Write { durability, .. } => durability.unwrap_or(mode) == Durability::Sync,
            Step::Ingest { .. } => true,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A history in which each writer has begun and done its first so many steps, one by one.
    fn history(durability: Durability, steps: u64) -> (History, u64) {
        let mut journal = Journal::default();
        let mut tell = |words: &[u64]| {
            let place = journal.begin(Event::Report(words.to_vec()));
            journal.end(place);
        };
        tell(&[&[kind::OPENED, 1][..], &[0; WRITERS]].concat());
        for (k, writer) in (1..=steps).flat_map(|k| (0..WRITERS as u64).map(move |w| (k, w))) {
            tell(&[kind::BEGUN, writer, k]);
            tell(&[kind::DONE, writer, k]);
        }
        let now = journal.now() + 1;
        (History::read(&journal, 3, durability).unwrap(), now)
    }

    /// What a database shows after so many steps of each writer.
    fn shown(history: &History, counts: Counts) -> Shown {
        let life = &history.lives[0];
        let digests = (0..WRITERS).map(|writer| {
            let records = &life.writers[writer].records;
            let place = records.iter().rposition(|record| record.k <= counts[writer]);
            life.writers[writer].digests[place.unwrap_or(0)].clone()
        });
        let families = FAMILIES.map(str::to_string).to_vec();
        Shown { counts, digests: digests.collect(), families }
    }

    #[test]
    fn what_is_lost_made_up_or_out_of_order_is_found() {
        let (buffered, now) = history(Durability::Buffered, 4);
        let power = |shown: &Shown| buffered.check(shown, now, Crash::Power);
        let nothing = shown(&buffered, [0; WRITERS]);
        let floor = buffered.lives[0].floor(now, Durability::Buffered, Crash::Power);
        assert_eq!(power(&nothing).is_ok(), floor == [0; WRITERS]);
        power(&shown(&buffered, [4; WRITERS])).unwrap();
        let missing = buffered.check(&nothing, now, Crash::Process).unwrap_err();
        assert!(missing.contains("was promised"), "{missing}");
        let gap = power(&shown(&buffered, [4, 4, 2, 4])).unwrap_err();
        assert!(gap.contains("is lost") || gap.contains("was promised"), "{gap}");
        let mut wrong = shown(&buffered, [4; WRITERS]);
        wrong.digests[1].insert("a".to_string(), 7);
        assert!(power(&wrong).unwrap_err().contains("rows of writer 1"));
        let mut unknown = shown(&buffered, [4; WRITERS]);
        unknown.counts[0] = 9;
        assert!(power(&unknown).unwrap_err().contains("never began"));
        let mut missing = shown(&buffered, [4; WRITERS]);
        missing.families.pop();
        assert!(power(&missing).unwrap_err().contains("column family c is missing"));
    }

    #[test]
    fn modes_promise_what_they_say() {
        let (sync, now) = history(Durability::Sync, 9);
        let nothing = shown(&sync, [0; WRITERS]);
        assert!(sync.check(&nothing, now, Crash::Power).is_err());
        let (none, now) = history(Durability::None, 1);
        let floor = |crash| none.lives[0].floor(now, Durability::None, crash);
        assert_eq!(floor(Crash::Power), floor(Crash::Process));
    }
}
