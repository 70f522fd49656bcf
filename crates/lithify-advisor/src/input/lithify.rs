//! A database of Lithify: the rows of one column family, read beside whoever writes it.
//!
//! Places are spread over the rows of all levels and of the log together (`starts`).

use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;

use lithify::fs::World;
use lithify::inspect::{FamilyLevels, LevelsOptions, TableLine, read_levels};
use lithify::{ColumnFamily, CompressionPolicy, Db, Options};

use super::size::user_bytes;
use super::starts::{PASS_BYTES, Starts, by_tables, is_passed};
use super::{Facts, OWN_KEYS, Present, Source, Stored};
use crate::error::{AdviseError, Result};
use crate::rows::{Row, Rows};
use crate::watch::{Silent, Watch};

/// The file that every database has.
const CURRENT: &str = "CURRENT";
/// The size of blocks where a family names none.
const BLOCK_SIZE_BYTES: usize = 16 << 10;
/// What tells how long rows are before any place is read.
const FIRST_BYTES: u64 = 64 << 10;
/// How it begins (`docs/format/manifest.md`).
const CURRENT_MAGIC: &[u8; 8] = b"LITHCUR\n";

/// A column family.
pub struct Database {
    // Dropped before the database that it is of.
    family: ColumnFamily,
    _db: Db,
    levels: FamilyLevels,
    /// Found once places are asked for.
    starts: Option<Starts>,
    facts: Facts,
    present: Present,
    pass_bytes_max: u64,
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
        let Some(found) = found.cloned() else {
            let names: Vec<&str> =
                levels.families.iter().map(|family| family.name.as_str()).collect();
            let (path, names) = (path.display(), names.join(", "));
            let what = format!("{path} has no such column family; there are: {names}");
            return Err(AdviseError::usage(what));
        };
        let name = found.name.clone();
        let db = Db::open_read_only(path, Options::default())?;
        let family = db.existing_column_family(&name)?.ok_or_else(|| {
            AdviseError::data(format_args!("{}: {name} was dropped meanwhile", path.display()))
        })?;
        let facts = Facts {
            format: format!("Lithify database, column family {name}"),
            files: found.tables.len() as u64,
            has_rows: true,
            has_bytes: false,
            native: &["lithify"],
            key: OWN_KEYS.to_owned(),
            data_bytes: 0,
        };
        let present = present(&family, &found)?;
        let starts = None;
        let mut database = Database {
            family,
            _db: db,
            levels: found,
            starts,
            facts,
            present,
            pass_bytes_max: PASS_BYTES,
        };
        database.facts.data_bytes = database.about_bytes()?;
        match database.facts.data_bytes {
            0 => Err(AdviseError::data(format_args!("{}: {name} has no row", path.display()))),
            _ => Ok(database),
        }
    }

    /// The same, where all rows are read only up to so many bytes of tables: for an answer soon. Of more,
    /// the tables tell where places are.
    pub fn with_short_pass(self, bytes_max: u64) -> Database {
        Database { pass_bytes_max: bytes_max, ..self }
    }

    /// The levels of the column family.
    pub fn levels(&self) -> &FamilyLevels {
        &self.levels
    }

    /// About how many bytes keys and values have: as many rows as there are, as long as the first ones.
    fn about_bytes(&self) -> Result<u64> {
        // Those in the log are among them.
        let rows = self.family.approximate(..)?.rows;
        let mut first = Rows::default();
        self.read(&[], 0, &mut |row, _| first.push_up_to(row, FIRST_BYTES))?;
        let (count, bytes) = (first.len() as u64, first.data_bytes());
        Ok((rows.max(count) as f64 * bytes as f64 / count.max(1) as f64) as u64)
    }

    /// Finds where places begin, and how many bytes there are.
    fn spread(&mut self, watch: &dyn Watch) -> Result<()> {
        if is_passed(&self.levels, self.pass_bytes_max) {
            let starts = Starts::by_pass(self, watch)?;
            self.facts.data_bytes = starts.total();
            self.starts = Some(starts);
            return Ok(());
        }
        self.starts = Some(by_tables(&self.family, &self.levels)?);
        let rows = self.family.approximate(..)?.rows;
        self.facts.data_bytes = user_bytes(self, rows)?;
        Ok(())
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
            let row = Row { key, partition_bytes: key.len(), value, data_bytes, file_bytes: 0 };
            if each(row, done).is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// What a family is set to, and what its tables and its log have.
fn present(family: &ColumnFamily, levels: &FamilyLevels) -> Result<Present> {
    let options = family.options();
    let mut settings = format!("compression={}", options.compression);
    if options.block_size_bytes > 0 {
        settings.push_str(&format!(" block_size_bytes={}", options.block_size_bytes));
    }
    let lowest = levels.tables.iter().map(|table| table.level).max();
    let of_lowest = levels.tables.iter().filter(|table| Some(table.level) == lowest);
    let of_lowest = stored(of_lowest).first().copied();
    let bottom = match options.compression {
        CompressionPolicy::Decided(_) => of_lowest,
        CompressionPolicy::Levels(codecs) => Some(Stored {
            compression: codecs.bottom,
            block_size_bytes: match options.block_size_bytes {
                0 => BLOCK_SIZE_BYTES,
                bytes => bytes,
            },
            has_dictionary: of_lowest.is_some_and(|stored| stored.has_dictionary),
        }),
    };
    let metadata = || levels.tables.iter().map(|table| &table.metadata);
    let rows: u64 = metadata().map(|one| one.entries.saturating_sub(2 * one.tombstones)).sum();
    Ok(Present {
        target: "lithify",
        settings,
        bottom,
        upper: match options.compression {
            CompressionPolicy::Decided(_) => None,
            CompressionPolicy::Levels(codecs) => Some([codecs.middle, codecs.small]),
        },
        is_set: matches!(options.compression, CompressionPolicy::Levels(_)),
        found: stored(levels.tables.iter()),
        stored_bytes: metadata().map(|one| one.size_bytes).sum(),
        tables: levels.tables.len() as u64,
        rows_in_log: family.approximate(..)?.rows.saturating_sub(rows),
    })
}

/// What tables are stored with, the one of most bytes first.
fn stored<'a>(tables: impl Iterator<Item = &'a TableLine>) -> Vec<Stored> {
    let mut sums: Vec<(Stored, u64)> = Vec::new();
    for metadata in tables.map(|table| &table.metadata) {
        let of_table = Stored {
            compression: metadata.compression,
            block_size_bytes: metadata.block_size_bytes as usize,
            has_dictionary: metadata.dictionary.is_some(),
        };
        match sums.iter_mut().find(|(one, _)| *one == of_table) {
            Some((_, raw_bytes)) => *raw_bytes += metadata.raw_bytes,
            None => sums.push((of_table, metadata.raw_bytes)),
        }
    }
    sums.sort_by_key(|(_, raw_bytes)| std::cmp::Reverse(*raw_bytes));
    sums.into_iter().map(|(stored, _)| stored).collect()
}

impl Source for Database {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn prepare(&mut self, watch: &dyn Watch) -> Result<()> {
        self.spread(watch)
    }

    fn present(&self) -> Option<Present> {
        Some(self.present.clone())
    }

    fn place(&mut self, share: f64, wanted_bytes: u64) -> Result<Rows> {
        if self.starts.is_none() {
            self.spread(&Silent)?;
        }
        let (key, skipped_bytes) = self.starts.as_ref().map_or((&[][..], 0), |all| all.at(share));
        let mut rows = Rows::default();
        self.read(key, skipped_bytes, &mut |row, _| rows.push_up_to(row, wanted_bytes))?;
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
