//! The rows of a column family: of every key the newest version that was saved.

use super::Repair;
use super::families::SourceFamily;
use super::report::RepairedFamily;
use super::tables::Saved;
use crate::Result;
use crate::base::SEQUENCE_MAX;
use crate::db::{ColumnFamily, Db, LEVEL_COUNT};
use crate::iter::{Bounds, LevelCursor, MergingCursor, RowCursor, Source, TombstoneSet};
use crate::manifest::{FileName, KeyRange, TableFile, Version};
use crate::table::ReadContext;
use std::sync::Arc;

/// Rows are handed to the pace in lots of so many bytes.
const PACE_BYTES: u64 = 64 << 10;

impl Repair<'_> {
    /// Saves the tables of one column family.
    pub(super) fn family(
        &mut self,
        db: &Db,
        source: &SourceFamily,
        target: &ColumnFamily,
    ) -> Result<()> {
        let mut repaired = RepairedFamily {
            name: source.name.clone(),
            old_id: source.id,
            ..RepairedFamily::default()
        };
        let lost_before = self.report.lost.len();
        let deepest = source.tables.iter().map(|table| table.level).max().unwrap_or(0);
        let mut levels: Vec<Vec<Arc<TableFile>>> = vec![Vec::new(); LEVEL_COUNT.max(deepest + 1)];
        for table in &source.tables {
            let saved = match self.save_table(db, source, table)? {
                Saved::Whole(saved) => {
                    repaired.whole_tables += 1;
                    saved
                }
                Saved::Part(saved) => {
                    repaired.salvaged_tables += 1;
                    saved
                }
                Saved::Nothing => {
                    repaired.lost_tables += 1;
                    continue;
                }
            };
            if let Some(level) = levels.get_mut(table.level) {
                level.push(saved);
            }
        }
        let version = Arc::new(Version::new(levels));
        self.find_stale_ranges(lost_before, &version);
        let files = &*self.world.files;
        let lengths = source.tables.iter().map(|table| {
            files.length(&FileName::Table(table.number).path(self.source)).unwrap_or(0)
        });
        let expected_bytes = lengths.sum();
        repaired.rows = self.write_rows(&version, (db, target), expected_bytes)?;
        self.report.families.push(repaired);
        Ok(())
    }

    /// Where something is lost, rows of other tables come to light that it may have replaced or
    /// deleted.
    fn find_stale_ranges(&mut self, lost_before: usize, version: &Version) {
        for lost in self.report.lost.iter_mut().skip(lost_before) {
            let range = lost.keys.as_ref().map(|(first, last)| KeyRange::inclusive(first, last));
            lost.may_show_older_rows = version.tables().any(|(_, table)| {
                let own = FileName::Table(table.metadata.number).path(self.source) == lost.file;
                !own && range.as_ref().is_none_or(|range| table.metadata.range.overlaps(range))
            });
        }
    }

    fn write_rows(
        &mut self,
        version: &Arc<Version>,
        (db, target): (&Db, &ColumnFamily),
        expected_bytes: u64,
    ) -> Result<u64> {
        let mut rows = self.rows_of(version)?;
        let mut ingest = target.ingest()?;
        let (mut passed_bytes, mut pending_bytes) = (0, 0);
        let operator = target.family.rows.operator();
        let mut unfolded = Vec::new();
        while rows.next()? {
            match rows.unfolded() {
                None => ingest.put_stored(rows.key(), rows.value())?,
                Some((operands, has_base)) => {
                    let base = has_base.then(|| rows.value());
                    match operator.fold(rows.key(), base, operands) {
                        Ok(value) => ingest.put_stored(rows.key(), &value)?,
                        Err(_) => {
                            if let Some(base) = base {
                                ingest.put_stored(rows.key(), base)?;
                            }
                            let key: Box<[u8]> = rows.key().into();
                            let operands = operands.oldest_first().map(<[u8]>::to_vec);
                            unfolded.push((key, operands.collect::<Vec<_>>(), has_base));
                        }
                    }
                }
            }
            pending_bytes += (rows.key().len() + rows.value().len()) as u64;
            if pending_bytes >= PACE_BYTES {
                let bytes = std::mem::take(&mut pending_bytes).min(expected_bytes - passed_bytes);
                passed_bytes += bytes;
                self.pace.advance(bytes)?;
            }
        }
        self.pace.advance(expected_bytes - passed_bytes)?;
        let mut rows = ingest.commit()?.rows;
        // Above what was ingested: an operator of the user's is not here to fold them.
        for (key, operands, has_base) in unfolded {
            let mut batch = db.batch();
            for operand in operands {
                batch.merge_blindly(target, &key, &operand);
            }
            batch.commit()?;
            rows += u64::from(!has_base);
        }
        Ok(rows)
    }

    fn rows_of(&self, version: &Arc<Version>) -> Result<RowCursor> {
        let environment = &self.world.environment;
        let mut context = ReadContext::new(&**environment);
        let mut tombstones = TombstoneSet::default();
        let mut sources = Vec::new();
        for (_, table) in version.tables().filter(|(_, t)| t.metadata.range_tombstones > 0) {
            if planted!(RepairForgetsTombstones) {
                continue;
            }
            tombstones.push(table.reader()?.range_tombstones(&mut context)?);
        }
        for table in version.level(0) {
            sources.push(Source::Table(table.reader()?.cursor()));
        }
        for level in 1..version.level_count() {
            if !version.level(level).is_empty() {
                sources.push(Source::Level(LevelCursor::new(Arc::clone(version), level)));
            }
        }
        let merge = MergingCursor::new(sources);
        let environment = Arc::clone(environment);
        Ok(RowCursor::new(environment, merge, tombstones, SEQUENCE_MAX, Bounds::default()))
    }
}
