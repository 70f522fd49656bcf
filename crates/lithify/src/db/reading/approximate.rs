//! How much there is, from what the manifest and memtables know: nothing is read.

use crate::db::tree::family::ColumnFamily;
use crate::manifest::KeyRange;

/// Estimates that read nothing.
impl ColumnFamily {
    /// About how many rows there are: entries of tables and memtables without those that delete. Older
    /// versions of rows count until a compaction drops them, and so do rows that a delete removes.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = lithify::Db::open(directory.path(), lithify::Options::default())?;
    /// let rocks = db.column_family("rocks", lithify::CfOptions::default())?;
    /// rocks.put("basalt", "igneous")?;
    /// rocks.put("chalk", "sedimentary")?;
    /// assert_eq!(rocks.approximate_rows(), 2);
    /// # Ok::<(), lithify::Error>(())
    /// ```
    pub fn approximate_rows(&self) -> u64 {
        let view = self.family.view();
        let in_tables = view.version.tables().map(|(_, table)| {
            // A delete takes itself and one older entry with it.
            table.metadata.entries.saturating_sub(2 * table.metadata.tombstones)
        });
        let in_memory = view.memories().map(|memory| memory.table.entries());
        in_tables.chain(in_memory).sum()
    }

    /// About how many stored bytes the rows from `start` on, up to but without `end`, take in tables.
    /// `None` is an open end. A table that reaches out of the range counts half; memtables do not count.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = lithify::Db::open(directory.path(), lithify::Options::default())?;
    /// let rocks = db.column_family("rocks", lithify::CfOptions::default())?;
    /// rocks.put("basalt", "igneous")?;
    /// rocks.flush()?;
    /// assert!(rocks.approximate_size_bytes(None, None) > 0);
    /// assert_eq!(rocks.approximate_size_bytes(Some(b"c"), None), 0);
    /// # Ok::<(), lithify::Error>(())
    /// ```
    pub fn approximate_size_bytes(&self, start: Option<&[u8]>, end: Option<&[u8]>) -> u64 {
        let view = self.family.view();
        let share = |range: &KeyRange, bytes: u64| match place(range, start, end) {
            Place::Inside => bytes,
            Place::Across => bytes / 2,
            Place::Outside => 0,
        };
        let tables = view.version.tables();
        tables.map(|(_, table)| share(&table.metadata.range, table.metadata.size_bytes)).sum()
    }
}

/// Where the keys of a table are, seen from a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Inside,
    Across,
    Outside,
}

fn place(range: &KeyRange, start: Option<&[u8]>, end: Option<&[u8]>) -> Place {
    let (smallest, largest) = (&range.smallest[..], &range.largest[..]);
    let begins_behind = end.is_some_and(|end| smallest >= end);
    let ends_before =
        start.is_some_and(|start| largest < start || (range.largest_exclusive && largest == start));
    if begins_behind || ends_before {
        return Place::Outside;
    }
    let begins_inside = start.is_none_or(|start| start <= smallest);
    let ends_inside =
        end.is_none_or(|end| largest < end || (range.largest_exclusive && largest == end));
    if begins_inside && ends_inside { Place::Inside } else { Place::Across }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_inside_across_or_outside() {
        let range = KeyRange::inclusive(b"c", b"f");
        let at = |start: Option<&[u8]>, end: Option<&[u8]>| place(&range, start, end);
        assert_eq!(at(None, None), Place::Inside);
        assert_eq!(at(Some(b"c"), Some(b"g")), Place::Inside);
        assert_eq!(at(Some(b"d"), None), Place::Across);
        assert_eq!(at(None, Some(b"f")), Place::Across);
        assert_eq!(at(Some(b"g"), None), Place::Outside);
        assert_eq!(at(None, Some(b"c")), Place::Outside);
        let open = KeyRange { largest_exclusive: true, ..range };
        assert_eq!(place(&open, None, Some(b"f")), Place::Inside);
        assert_eq!(place(&open, Some(b"f"), None), Place::Outside);
    }
}
