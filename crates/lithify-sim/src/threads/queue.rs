//! Rows that come and are deleted by range again and again.
//!
//! Each writer has rows of its own here. One of its steps puts them all, with the step's number; the
//! next ones delete them all by range, each over the one before. A newer range delete makes an older
//! one needless for all but readers that began before it: those must still see what is deleted.

use super::WRITERS;
use super::bench::{Bench, Group, ROWS, number, text, value};
use crate::random::Random;
use lithify::ColumnFamily;
use std::sync::atomic::Ordering;

/// The column family of these rows.
pub(super) const FAMILY: &str = "queue";

/// One step of so many puts the rows.
const ROUND: u64 = 6;

/// The rows of all writers.
pub(super) struct Queues {
    family: ColumnFamily,
    /// By writer; a step has a number, and writers make theirs in turn.
    steps: Vec<Group>,
}

fn key(writer: u64, row: u64) -> Vec<u8> {
    format!("queue{writer}-{row:04}").into_bytes()
}

/// What the rows have after a step: its number, or nothing.
fn content(step: u64) -> Option<u64> {
    (step % ROUND == 1).then_some(step)
}

impl Queues {
    pub(super) fn new(family: ColumnFamily) -> Queues {
        Queues { family, steps: (0..WRITERS).map(|_| Group::default()).collect() }
    }

    /// Makes the next step of a writer.
    pub(super) fn step(
        &self,
        bench: &Bench,
        writer: u64,
        random: &mut Random,
    ) -> Result<(), String> {
        let known = &self.steps[writer as usize];
        let next = known.begun.load(Ordering::SeqCst) + 1;
        known.begun.store(next, Ordering::SeqCst);
        let written = match content(next) {
            Some(_) => {
                let mut batch = bench.db.batch();
                for row in 0..ROWS {
                    batch.put(&self.family, key(writer, row), value(next, random));
                }
                batch.commit()
            }
            None => self.family.delete_range(key(writer, 0), key(writer, ROWS)),
        };
        written.map_err(text)?;
        known.done.store(next, Ordering::SeqCst);
        Ok(())
    }

    /// Reads all rows of a writer at one moment: what they have is what one of the steps left that
    /// may be the last one then.
    pub(super) fn look(&self, writer: u64, is_cursor: bool) -> Result<(), String> {
        let known = &self.steps[writer as usize];
        let first = known.done.load(Ordering::SeqCst);
        let found = if is_cursor { self.by_cursor(writer) } else { self.by_multi_get(writer) }?;
        let last = known.begun.load(Ordering::SeqCst);
        let is_one = found.windows(2).all(|pair| pair[0] == pair[1]);
        let shown = found.first().copied().flatten();
        match is_one && (first..=last).any(|step| content(step) == shown) {
            true => Ok(()),
            false => Err(format!(
                "the queue of writer {writer} shows {found:?} between its steps {first} and {last}"
            )),
        }
    }

    fn by_multi_get(&self, writer: u64) -> Result<Vec<Option<u64>>, String> {
        let keys: Vec<_> = (0..ROWS).map(|row| key(writer, row)).collect();
        let values = self.family.multi_get(&keys).map_err(text)?;
        Ok(values.iter().map(|value| value.as_deref().map(number)).collect())
    }

    fn by_cursor(&self, writer: u64) -> Result<Vec<Option<u64>>, String> {
        let mut cursor =
            self.family.prefix_cursor(format!("queue{writer}-").as_bytes()).map_err(text)?;
        let mut found = vec![None; ROWS as usize];
        let mut row = 0;
        while cursor.next().map_err(text)? {
            while row < ROWS && cursor.key() != key(writer, row) {
                row += 1;
            }
            let place = found.get_mut(row as usize).ok_or("the queue has an unknown row")?;
            *place = Some(number(cursor.value()));
        }
        Ok(found)
    }
}
