//! Where places of sorted rows begin: keys, each with the bytes of the rows in front of it.
//!
//! A store counts stored bytes. By these, rows that shrink well would be sampled too little. Of Lithify's own
//! databases tables of level 0 all span the space of keys, and rows of the log are in no table. So a pass over the
//! merged rows notes keys at even steps. That is exact. Only of a large tree, nearly all of whose bytes are in
//! sorted levels, the tables tell.

use std::ops::{Bound, ControlFlow};

use lithify::ColumnFamily;
use lithify::inspect::{FamilyLevels, TableLine};

use super::Source;
use crate::error::Result;
use crate::sample::PLACE_BYTES;
use crate::watch::Watch;

/// Up to so many bytes of tables all rows are read, unless somebody has less time.
pub(super) const PASS_BYTES: u64 = 1 << 30;
/// With more than this part of the bytes in level 0 as well: tables do not tell then.
const LEVEL0_PART: u64 = 4;
/// Keys that a pass keeps at most.
const KEPT_MAX: usize = 8_192;
/// Bytes between two reports of a pass.
const TOLD_BYTES: u64 = 1 << 20;

/// A key with the bytes in front of it.
#[derive(Debug)]
struct Start {
    key: Vec<u8>,
    before: u64,
}

/// Keys that are spread over the rows.
#[derive(Debug)]
pub struct Starts {
    /// By key; the first is the empty one.
    starts: Vec<Start>,
    total: u64,
    /// Bytes between two of them, at least.
    step: u64,
}

/// Whether all rows are read to find where places begin.
pub(super) fn is_passed(levels: &FamilyLevels, bytes_max: u64) -> bool {
    let bytes = |is_counted: fn(&TableLine) -> bool| -> u64 {
        let counted = levels.tables.iter().filter(|table| is_counted(table));
        counted.map(|table| table.metadata.raw_bytes).sum()
    };
    let (all, level0) = (bytes(|_| true), bytes(|table| table.level == 0));
    all <= bytes_max || level0 > all / LEVEL0_PART
}

impl Starts {
    /// Reads all rows of a source, which are sorted by key.
    ///
    /// # Errors
    /// Those of the source, and of `watch`.
    pub fn by_pass(source: &mut dyn Source, watch: &dyn Watch) -> Result<Self> {
        let expected = source.facts().data_bytes;
        let first = Start { key: Vec::new(), before: 0 };
        let mut starts = Starts { starts: vec![first], total: 0, step: PLACE_BYTES / 4 };
        let (mut told, mut heard) = (0, Ok(()));
        source.scan(&mut |row, done| {
            starts.pass(row.key, row.data_bytes);
            if done - told >= TOLD_BYTES {
                told = done;
                let all = expected.max(done) / 1_000_000;
                heard = watch.hear("reading rows", done / 1_000_000, all);
            }
            if heard.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        heard.map(|()| starts)
    }

    /// Takes in the next row, by key, of so many bytes. Of many rows every other start is let go again.
    fn pass(&mut self, key: &[u8], bytes: u64) {
        let last = self.starts.last().map_or(0, |start| start.before);
        if self.total >= last + self.step {
            self.starts.push(Start { key: key.to_vec(), before: self.total });
        }
        if self.starts.len() > KEPT_MAX {
            // The first one is among those that stay.
            let mut number = 0;
            self.starts.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.step *= 2;
        }
        self.total += bytes;
    }

    /// Bytes of all rows.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The key in front of a share of the bytes, and how many bytes are to be skipped from there on.
    pub fn at(&self, share: f64) -> (&[u8], u64) {
        let offset = (share.clamp(0.0, 1.0) * self.total as f64) as u64;
        let behind = self.starts.partition_point(|start| start.before <= offset);
        match behind.checked_sub(1).and_then(|at| self.starts.get(at)) {
            Some(start) => (&start.key, offset - start.before),
            None => (&[], 0),
        }
    }
}

/// The first keys of the tables of sorted levels; the indexes of all tables tell what is in front of
/// each.
///
/// # Errors
/// Those of the engine.
pub(super) fn by_tables(family: &ColumnFamily, levels: &FamilyLevels) -> Result<Starts> {
    let sorted = levels.tables.iter().filter(|table| table.level > 0);
    let mut keys: Vec<&[u8]> = sorted.map(|table| &table.metadata.range.smallest[..]).collect();
    keys.sort_unstable();
    keys.dedup();
    let mut starts = vec![Start { key: Vec::new(), before: 0 }];
    // Before the first of them may be rows of others.
    for key in keys.into_iter().skip(1) {
        let last = starts.last().map_or(0, |start| start.before);
        let before = raw_bytes_before(family, levels, key)?.max(last);
        starts.push(Start { key: key.to_vec(), before });
    }
    let total = levels.tables.iter().map(|table| table.metadata.raw_bytes).sum();
    Ok(Starts { starts, total, step: 0 })
}

/// Bytes before compression in front of a key: those of whole tables, and as much of those that it
/// cuts as their indexes say.
fn raw_bytes_before(family: &ColumnFamily, levels: &FamilyLevels, key: &[u8]) -> Result<u64> {
    let range = (Bound::Unbounded::<&[u8]>, Bound::Excluded(key));
    let rows_before = family.approximate(range)?.rows;
    let (mut whole, mut whole_rows, mut cut, mut cut_rows) = (0, 0, 0, 0);
    for metadata in levels.tables.iter().map(|table| &table.metadata) {
        // As the engine counts them.
        let rows = metadata.entries.saturating_sub(2 * metadata.tombstones);
        if metadata.range.largest[..] < *key {
            (whole, whole_rows) = (whole + metadata.raw_bytes, whole_rows + rows);
        } else if metadata.range.smallest[..] < *key {
            (cut, cut_rows) = (cut + metadata.raw_bytes, cut_rows + rows);
        }
    }
    let share = rows_before.saturating_sub(whole_rows) as f64 / cut_rows.max(1) as f64;
    Ok(whole + (share.min(1.0) * cut as f64) as u64)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use lithify::fs::World;
    use lithify::inspect::{LevelsOptions, read_levels};
    use lithify::{CfOptions, Db, Options};

    use super::*;
    use crate::input::Database;
    use crate::watch::Silent;

    const ROWS: u32 = 60_000;

    /// A family of rows that come in no order: half in sorted levels, a quarter in level 0, a quarter in
    /// the log. The values of the first quarter of keys are short.
    fn family(path: &Path) -> (Db, ColumnFamily, FamilyLevels) {
        let db = Db::open(path, Options::default()).unwrap();
        let options: CfOptions = "table_bytes=65536 compression=none".parse().unwrap();
        let family = db.column_family("rocks", options).unwrap();
        for number in 0..ROWS {
            let key = (u64::from(number) * 1_234_577 % u64::from(ROWS)) as u32;
            let length = if key < ROWS / 4 { 20 } else { 80 };
            family.put(key.to_be_bytes(), vec![b'x'; length]).unwrap();
            match number {
                30_000 => family.compact_range(..).unwrap(),
                45_000 => family.flush().unwrap(),
                _ => {}
            }
        }
        let levels = read_levels(&*World::system().files, path, &LevelsOptions::default()).unwrap();
        let of_family = levels.families.into_iter().find(|one| one.name == "rocks").unwrap();
        (db, family, of_family)
    }

    /// The number of the key at a share of the rows' bytes.
    fn number_at(family: &ColumnFamily, starts: &Starts, share: f64) -> u32 {
        let (key, mut skipped) = starts.at(share);
        let mut cursor = family.cursor(key..).unwrap();
        while cursor.next().unwrap() {
            let bytes = (cursor.key().len() + cursor.value().len()) as u64;
            match skipped.checked_sub(bytes) {
                Some(left) => skipped = left,
                None => return u32::from_be_bytes(cursor.key().try_into().unwrap()),
            }
        }
        ROWS
    }

    #[test]
    fn places_are_spread_over_the_rows_of_all_levels_and_the_log() {
        let directory = tempfile::tempdir().unwrap();
        let (_db, family, levels) = family(directory.path());
        assert!(levels.tables.iter().any(|table| table.level == 0));
        assert!(levels.tables.iter().filter(|table| table.level > 0).count() > 10);
        assert!(is_passed(&levels, PASS_BYTES), "it is small");
        let mut database = Database::open(directory.path(), Some("rocks")).unwrap();
        let passed = Starts::by_pass(&mut database, &Silent).unwrap();
        let quarter = u64::from(ROWS) / 4;
        assert_eq!(passed.total(), quarter * 24 + 3 * quarter * 84);
        let told = by_tables(&family, &levels).unwrap();
        for share in [0.0, 0.05, 0.2, 0.5, 0.8, 0.99] {
            let short = 24.0 / (24.0 + 3.0 * 84.0);
            let expected = match share < short {
                true => share / short / 4.0,
                false => 0.25 + (share - short) / (1.0 - short) * 0.75,
            };
            let expected = expected * f64::from(ROWS);
            for (starts, allowed) in [(&passed, 2.0), (&told, 0.03 * f64::from(ROWS))] {
                let found = f64::from(number_at(&family, starts, share));
                assert!((found - expected).abs() <= allowed, "{share}: {found}, not {expected}");
            }
        }
    }
}
