//! How much a range of keys holds, about, from what tables and their indexes say of themselves.
//!
//! Reads two places of the index of each table that the range cuts, and no data.

use crate::Result;
use crate::db::family_handle::ColumnFamily;
use crate::db::reading::cursor::ScanRange;
use crate::db::tree::family::View;
use crate::fs::Environment;
use crate::manifest::TableFile;
use crate::table::ReadContext;

/// What [`ColumnFamily::approximate`] answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Approximation {
    /// Bytes of tables.
    pub bytes: u64,
    /// Rows: entries of tables, each removal taken off twice. Versions that no compaction has merged
    /// yet count as rows. Of the whole family, entries of memtables are in it.
    pub rows: u64,
}

impl ColumnFamily {
    /// About how much a range of keys takes and holds. What is not in a table yet takes nothing.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = lithify::Db::open(directory.path(), lithify::Options::default())?;
    /// let rocks = db.column_family("rocks", lithify::CfOptions::default())?;
    /// for number in 0..1000 {
    ///     rocks.put(format!("{number:04}"), "granite")?;
    /// }
    /// assert_eq!(rocks.approximate(..)?.rows, 1000);
    /// rocks.flush()?;
    /// assert!(rocks.approximate("0250".."0750")?.bytes < rocks.approximate(..)?.bytes);
    /// # Ok::<(), lithify::Error>(())
    /// ```
    ///
    /// # Errors
    /// A closed database, a dropped family; corruption or an I/O error, with file and offset.
    pub fn approximate(&self, range: impl Into<ScanRange>) -> Result<Approximation> {
        self.inner.lifecycle.check_open()?;
        self.family.check_alive()?;
        let (range, view) = (range.into(), self.family.view());
        let mut sum = Approximation::default();
        if range.start().is_none_or(<[u8]>::is_empty) && range.end().is_none() {
            sum.rows = entries_in_memory(&view);
        }
        let clock: &dyn Environment = &*self.inner.world.environment;
        for (_, table) in view.version.tables() {
            let part = part_of(table, &range, &mut ReadContext::new(clock))?;
            sum.bytes += part.bytes;
            sum.rows += part.rows;
        }
        Ok(sum)
    }
}

fn entries_in_memory(view: &View) -> u64 {
    view.memories().map(|memory| memory.table.entries()).sum()
}

/// The share of a table that the range has.
fn part_of(
    file: &TableFile,
    range: &ScanRange,
    context: &mut ReadContext<'_>,
) -> Result<Approximation> {
    let metadata = &file.metadata;
    let (smallest, largest) = (&metadata.range.smallest[..], &metadata.range.largest[..]);
    let starts_behind = range.start().is_some_and(|start| start > largest);
    if starts_behind || range.end().is_some_and(|end| end <= smallest) {
        return Ok(Approximation::default());
    }
    let table = file.reader()?;
    let from = match range.start().filter(|start| *start > smallest) {
        Some(start) => table.data_bytes_before(start, context)?,
        None => 0,
    };
    let all = table.properties().data_stored_bytes;
    let to = match range.end().filter(|end| *end <= largest) {
        Some(end) => table.data_bytes_before(end, context)?,
        None => all,
    };
    let share = |of: u64| {
        let part = u128::from(of) * u128::from(to.saturating_sub(from));
        u64::try_from(part / u128::from(all.max(1))).unwrap_or(of)
    };
    let rows = metadata.entries.saturating_sub(2 * metadata.tombstones);
    Ok(Approximation { bytes: share(metadata.size_bytes), rows: share(rows) })
}

#[cfg(test)]
mod tests {
    use crate::{CfOptions, Db, Options};

    #[test]
    fn parts_of_a_family_sum_up_to_it() {
        let directory = tempfile::tempdir().unwrap();
        let db = Db::open(directory.path(), Options::default()).unwrap();
        let options: CfOptions =
            "compression=none table_bytes=65536 block_size_bytes=1024".parse().unwrap();
        let family = db.column_family("rocks", options).unwrap();
        assert_eq!(family.approximate(..).unwrap(), Default::default());
        for number in 0..20_000_u32 {
            family.put(number.to_be_bytes(), number.to_le_bytes().repeat(5)).unwrap();
        }
        family.compact_range(..).unwrap();
        let all = family.approximate(..).unwrap();
        assert_eq!(all.rows, 20_000);
        assert!(all.bytes > 200_000 && all.bytes < 1_000_000, "{all:?}");
        let half = family.approximate(..10_000_u32.to_be_bytes()).unwrap();
        let rest = family.approximate(10_000_u32.to_be_bytes()..).unwrap();
        assert!(half.rows.abs_diff(10_000) < 200 && half.bytes < all.bytes, "{half:?}");
        assert!((half.rows + rest.rows).abs_diff(20_000) < 200, "{half:?} {rest:?}");
        let none = family.approximate(30_000_u32.to_be_bytes()..).unwrap();
        assert_eq!(none, Default::default());
        for number in 0..10_000_u32 {
            family.delete(number.to_be_bytes()).unwrap();
        }
        family.compact_range(..).unwrap();
        assert_eq!(family.approximate(..).unwrap().rows, 10_000);
        drop(family);
        let family = db.column_family("other", CfOptions::default()).unwrap();
        db.drop_column_family("other").unwrap();
        assert_eq!(family.approximate(..).unwrap_err().kind(), crate::ErrorKind::Closed);
    }
}
