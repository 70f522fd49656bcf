//! Who reads beside the writers, and what must be true of it.

use super::WRITERS;
use super::bench::{Bench, GROUPS, ROWS, key, number, text};
use crate::random::Random;
use lithify::{ColumnFamily, Cursor, Slice};
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Reads in all ways until the writers are done; gives how many moments were looked at.
pub(super) fn read(bench: &Bench, random: Random) -> Result<u64, String> {
    let mut reader = Reader { bench, random, shown: [0; GROUPS as usize] };
    let mut moments = 0;
    while !bench.is_over() {
        match reader.random.below(4) {
            0 => reader.gets()?,
            1 => reader.multi_get()?,
            2 => reader.cursor()?,
            _ => reader.snapshot()?,
        }
        bench.queues.look(reader.random.below(WRITERS), reader.random.one_in(2))?;
        bench.filtered.look(bench, reader.random.below(WRITERS))?;
        bench.ingested.look(reader.random.one_in(2))?;
        moments += 5;
    }
    Ok(moments)
}

struct Reader<'b> {
    bench: &'b Bench,
    random: Random,
    /// The newest number of each group that this reader was shown.
    shown: [u64; GROUPS as usize],
}

/// The number of a row, which is always there.
fn found(value: Option<Slice>, group: u64, row: u64, how: &str) -> Result<u64, String> {
    match value {
        Some(value) => Ok(number(&value)),
        None => Err(format!("{how}: row {row} of group {group} is missing")),
    }
}

/// One number for all rows of a group.
fn same(numbers: &[u64], group: u64, how: &str) -> Result<u64, String> {
    let first = numbers.first().copied().unwrap_or_default();
    match numbers.iter().position(|number| *number != first) {
        None => Ok(first),
        Some(row) => Err(format!(
            "{how}: group {group} has number {first}, and {} in its row {row}",
            numbers[row]
        )),
    }
}

/// The numbers of all rows of groups, which follow each other without a gap.
fn numbers_of(cursor: &mut Cursor, groups: Range<u64>) -> Result<Vec<u64>, String> {
    let mut numbers = Vec::new();
    for (group, row) in groups.flat_map(|group| (0..ROWS).map(move |row| (group, row))) {
        if !cursor.next().map_err(text)? || cursor.key() != key(group, row) {
            return Err(format!("a cursor: row {row} of group {group} is missing"));
        }
        numbers.push(number(cursor.value()));
    }
    Ok(numbers)
}

impl<'b> Reader<'b> {
    fn family(&mut self) -> &'b ColumnFamily {
        let bench = self.bench;
        &bench.families[self.random.below(bench.families.len() as u64) as usize]
    }

    /// The oldest numbers that a read which begins now may show.
    fn floors(&self) -> Vec<u64> {
        let done = self.bench.groups.iter().map(|group| group.done.load(Ordering::SeqCst));
        done.zip(self.shown).map(|(done, shown)| done.max(shown)).collect()
    }

    /// Takes note of what a read that is over has shown of a group.
    fn show(&mut self, group: u64, floors: &[u64], shown: u64, how: &str) -> Result<(), String> {
        let (place, floor) = (group as usize, floors[group as usize]);
        let begun = self.bench.groups[place].begun.load(Ordering::SeqCst);
        if !(floor..=begun).contains(&shown) {
            return Err(format!(
                "{how}: number {shown} of group {group}, which was to be {floor} to {begun}"
            ));
        }
        self.shown[place] = self.shown[place].max(shown);
        Ok(())
    }

    /// Takes note of the numbers of all rows of all groups, read at one moment.
    fn show_all(&mut self, numbers: &[u64], floors: &[u64], how: &str) -> Result<(), String> {
        for (group, numbers) in (0..).zip(numbers.chunks(ROWS as usize)) {
            self.show(group, floors, same(numbers, group, how)?, how)?;
        }
        Ok(())
    }

    /// Each get is a moment of its own.
    fn gets(&mut self) -> Result<(), String> {
        let group = self.random.below(GROUPS);
        for row in 0..ROWS {
            let floors = self.floors();
            let value = self.family().get(key(group, row)).map_err(text)?;
            let shown = found(value, group, row, "a get")?;
            self.show(group, &floors, shown, "a get")?;
        }
        Ok(())
    }

    fn multi_get(&mut self) -> Result<(), String> {
        let group = self.random.below(GROUPS);
        let keys: Vec<_> = (0..ROWS).map(|row| key(group, row)).collect();
        let floors = self.floors();
        let values = self.family().multi_get(&keys).map_err(text)?;
        let numbers = (0..).zip(values).map(|(row, value)| found(value, group, row, "a multi-get"));
        let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
        self.show(group, &floors, same(&numbers, group, "a multi-get")?, "a multi-get")
    }

    /// All groups by one cursor, which rests halfway.
    fn cursor(&mut self) -> Result<(), String> {
        let floors = self.floors();
        let mut cursor = self.family().cursor(&b"group"[..]..).map_err(text)?;
        let mut numbers = numbers_of(&mut cursor, 0..GROUPS / 2)?;
        self.gets()?;
        numbers.extend(numbers_of(&mut cursor, GROUPS / 2..GROUPS)?);
        self.show_all(&numbers, &floors, "a cursor")
    }

    /// All groups in both families at one snapshot, twice.
    fn snapshot(&mut self) -> Result<(), String> {
        let (bench, floors) = (self.bench, self.floors());
        let snapshot = bench.db.snapshot();
        let mut before = None;
        for _ in 0..2 {
            let mut shown = Vec::new();
            for family in &bench.families {
                let mut numbers = Vec::new();
                for (group, row) in (0..GROUPS).flat_map(|g| (0..ROWS).map(move |row| (g, row))) {
                    let value = family.get_at(key(group, row), &snapshot).map_err(text)?;
                    numbers.push(found(value, group, row, "a snapshot")?);
                }
                self.show_all(&numbers, &floors, "a snapshot")?;
                shown.push(numbers);
            }
            if shown[0] != shown[1] {
                return Err("a snapshot: a batch in one column family alone".to_string());
            }
            if before.is_some_and(|before| before != shown) {
                return Err("a snapshot: other rows when read again".to_string());
            }
            before = Some(shown);
            std::thread::yield_now();
        }
        Ok(())
    }
}
