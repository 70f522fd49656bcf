//! A database of Lithify: the rows of one column family, read beside whoever writes it.

use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;

use lithify::fs::World;
use lithify::inspect::{FamilyLevels, LevelsOptions, read_levels};
use lithify::{ColumnFamily, Db, Options};

use super::size::user_bytes;
use super::{Facts, Source};
use crate::error::{AdviseError, Result};
use crate::rows::{Row, Rows};

/// The file that every database has.
const CURRENT: &str = "CURRENT";
/// How it begins (`docs/format/manifest.md`).
const CURRENT_MAGIC: &[u8; 8] = b"LITHCUR\n";

/// A table by its first key, with the bytes of those before it.
#[derive(Debug)]
struct Start {
    key: Vec<u8>,
    before: u64,
    bytes: u64,
}

/// A column family.
pub struct Database {
    // Dropped before the database that it is of.
    family: ColumnFamily,
    _db: Db,
    starts: Vec<Start>,
    facts: Facts,
}

/// Whether a directory is a database: its `CURRENT` begins as Lithify's do.
pub fn is_database(path: &Path) -> bool {
    let mut magic = [0; CURRENT_MAGIC.len()];
    let read = File::open(path.join(CURRENT)).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == *CURRENT_MAGIC
}

impl Database {
    /// The column family of that name; the largest one without a name.
    ///
    /// # Errors
    /// Those of the engine; there is no such family, or no row in it.
    pub fn open(path: &Path, name: Option<&str>) -> Result<Database> {
        let levels = read_levels(&*World::system().files, path, &LevelsOptions::default())?;
        let bytes = |family: &FamilyLevels| -> u64 {
            family.tables.iter().map(|table| table.metadata.raw_bytes).sum()
        };
        let found = match name {
            Some(name) => levels.families.iter().find(|family| family.name == name),
            None => levels.families.iter().max_by_key(|family| bytes(family)),
        };
        let Some(levels_of_family) = found else {
            let names: Vec<&str> =
                levels.families.iter().map(|family| family.name.as_str()).collect();
            let (path, names) = (path.display(), names.join(", "));
            let what = format!("{path} has no such column family; there are: {names}");
            return Err(AdviseError::usage(what));
        };
        let name = levels_of_family.name.clone();
        let db = Db::open_read_only(path, Options::default())?;
        let family = db.existing_column_family(&name)?.ok_or_else(|| {
            AdviseError::data(format_args!("{}: {name} was dropped meanwhile", path.display()))
        })?;
        let facts = Facts {
            format: format!("Lithify database, column family {name}"),
            files: levels_of_family.tables.len() as u64,
            has_rows: true,
            has_bytes: false,
            native: &["lithify"],
            key: "its keys".to_owned(),
            data_bytes: 0,
        };
        let starts = starts(levels_of_family);
        let mut database = Database { family, _db: db, starts, facts };
        database.facts.data_bytes = database.user_bytes(levels_of_family)?;
        match database.facts.data_bytes {
            0 => Err(AdviseError::data(format_args!("{}: {name} has no row", path.display()))),
            _ => Ok(database),
        }
    }

    /// Bytes of keys and values: as many rows as tables have, as long as some are on average.
    fn user_bytes(&mut self, levels: &FamilyLevels) -> Result<u64> {
        let entries: u64 = (levels.tables.iter())
            .map(|table| table.metadata.entries.saturating_sub(table.metadata.tombstones))
            .sum();
        // Without tables all of it is in the log, which is read whole.
        user_bytes(self, entries)
    }

    /// Rows from a key on, after so many bytes of them.
    fn read(
        &self,
        from: &[u8],
        skipped_bytes: u64,
        each: &mut dyn FnMut(Row<'_>, u64) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut cursor = self.family.cursor(from..)?;
        let mut done = 0;
        while cursor.next()? {
            let (key, value) = (cursor.key(), cursor.value());
            let data_bytes = (key.len() + value.len()) as u64;
            done += data_bytes;
            if done <= skipped_bytes {
                continue;
            }
            let row = Row { key, partition_bytes: key.len(), value, data_bytes };
            if each(row, done).is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// The tables of the level that has most bytes, by key.
fn starts(levels: &FamilyLevels) -> Vec<Start> {
    let largest = levels.levels.iter().max_by_key(|level| level.raw_bytes);
    let mut starts: Vec<Start> = (levels.tables.iter())
        .filter(|table| largest.is_some_and(|level| level.level == table.level))
        .map(|table| Start {
            key: table.metadata.range.smallest.to_vec(),
            before: 0,
            bytes: table.metadata.raw_bytes,
        })
        .collect();
    starts.sort_by(|a, b| a.key.cmp(&b.key));
    let mut before = 0;
    for start in &mut starts {
        start.before = before;
        before += start.bytes;
    }
    starts
}

impl Source for Database {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn place(&mut self, share: f64, wanted_bytes: u64) -> Result<Rows> {
        let total = self.starts.last().map_or(0, |last| last.before + last.bytes);
        let offset = (share.clamp(0.0, 1.0) * total as f64) as u64;
        let at = self.starts.partition_point(|start| start.before <= offset).checked_sub(1);
        let start = at.and_then(|at| self.starts.get(at));
        let (key, skipped) = match start {
            // Before the first key of the level may be rows of others.
            Some(start) if start.before == 0 => (Vec::new(), offset),
            Some(start) => (start.key.clone(), offset - start.before),
            None => (Vec::new(), 0),
        };
        let mut rows = Rows::default();
        self.read(&key, skipped, &mut |row, _| rows.push_up_to(row, wanted_bytes))?;
        Ok(rows)
    }

    fn scan(&mut self, each: &mut dyn FnMut(Row<'_>, u64) -> ControlFlow<()>) -> Result<()> {
        self.read(&[], 0, each)
    }

    fn check_unchanged(&self) -> Result<()> {
        // A reader keeps the state that it was opened at.
        Ok(())
    }
}
