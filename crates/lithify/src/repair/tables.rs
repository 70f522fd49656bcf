//! Tables: those that are whole are read where they are; of the others what is whole is copied out.

use super::families::{SourceFamily, SourceTable};
use super::report::LostPart;
use super::{Repair, SALVAGED_SUFFIX};
use crate::codec::Compression;
use crate::compaction::metadata_of;
use crate::db::Db;
use crate::fs::{Environment, File, OpenMode};
use crate::inspect::NoClock;
use crate::manifest::{FileMetadata, FileName, TableFile};
use crate::stats::WorkMeter;
use crate::table::{
    FragmentedTombstones, ReadContext, TableBuilder, TableExaminer, TableFinding, TableOptions,
    TablePart, TableReader, TableSummary, WRITE_BYTES, examine_table, visit_entries,
};
use crate::verify::{Finding, Weight, structure_of};
use crate::{Error, ErrorKind, Result};
use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;

/// What was saved of a table.
pub(super) enum Saved {
    Whole(Arc<TableFile>),
    Part(Arc<TableFile>),
    Nothing,
}

/// Takes note of what is wrong with a table.
struct Survey<'r, 'a> {
    repair: &'r mut Repair<'a>,
    family: &'r str,
    path: &'r Path,
    has_properties: bool,
    is_whole: bool,
}

impl TableExaminer for Survey<'_, '_> {
    fn found(&mut self, TableFinding { part, error, lost }: TableFinding) -> Result<()> {
        if part == TablePart::Properties {
            self.has_properties = false;
        }
        let what = match part {
            TablePart::Footer => Some("table"),
            TablePart::Index => Some("index, with the blocks below it"),
            TablePart::DataBlock => Some("data block"),
            TablePart::RangeTombstones => Some("range deletes"),
            TablePart::Properties | TablePart::Dictionary | TablePart::Filter => None,
        };
        if let Some(what) = what {
            self.is_whole = false;
            self.repair.report.lost.push(LostPart {
                family: self.family.to_string(),
                file: self.path.to_path_buf(),
                offset: error.offset(),
                what,
                keys: lost.clone(),
                may_show_older_rows: false,
            });
        }
        self.repair.found_damage(Finding {
            weight: Weight::Damage,
            structure: structure_of(part),
            family: Some(self.family.to_string()),
            error,
            lost_keys: lost,
        });
        Ok(())
    }

    fn went_through(&mut self, bytes: u64) -> Result<()> {
        self.repair.pace.advance(bytes)
    }
}

/// Copies out what is whole.
struct Salvager<'a> {
    builder: TableBuilder,
    file: Arc<dyn File>,
    offset: u64,
    meter: WorkMeter,
    environment: &'a dyn Environment,
}

impl Salvager<'_> {
    fn write(&mut self) -> Result<()> {
        let output = self.builder.take_output();
        self.file.write_at(&[IoSlice::new(&output)], self.offset)?;
        self.offset += output.len() as u64;
        self.builder.recycle(output);
        Ok(())
    }
}

impl TableExaminer for Salvager<'_> {
    fn found(&mut self, _: TableFinding) -> Result<()> {
        Ok(())
    }

    fn block(&mut self, raw: &[u8]) -> Result<()> {
        let (builder, meter, clock) = (&mut self.builder, &mut self.meter, self.environment);
        visit_entries(raw, &mut |key, trailer, value| {
            builder.add(key, trailer, value, meter, clock)
        })?;
        if self.builder.output_bytes() >= WRITE_BYTES { self.write() } else { Ok(()) }
    }

    fn tombstones(&mut self, tombstones: &FragmentedTombstones) -> Result<()> {
        for fragment in tombstones.fragments() {
            for sequence in fragment.sequences() {
                self.builder.add_range_tombstone(fragment.start, fragment.end, sequence)?;
            }
        }
        Ok(())
    }
}

impl Repair<'_> {
    /// Examines a table and makes what is whole of it readable.
    pub(super) fn save_table(
        &mut self,
        db: &Db,
        family: &SourceFamily,
        source: &SourceTable,
    ) -> Result<Saved> {
        let path = FileName::Table(source.number).path(self.source);
        let file = match self.world.files.open(&path, OpenMode::Read) {
            Ok(file) => file,
            Err(error) => {
                self.lose_table(family, source, &path, error);
                return Ok(Saved::Nothing);
            }
        };
        let ingested = source.metadata.as_ref().filter(|metadata| metadata.ingested);
        let assigned_sequence = ingested.map_or(0, |metadata| metadata.largest_sequence);
        let pool = Arc::clone(&db.inner.workshop.pool);
        let mut survey = Survey {
            repair: self,
            family: &family.name,
            path: &path,
            has_properties: true,
            is_whole: true,
        };
        let context = &mut ReadContext::new(&NoClock);
        let examined = examine_table(
            Arc::clone(&file),
            Arc::clone(&pool),
            assigned_sequence,
            context,
            &mut survey,
        )?;
        let is_readable = survey.is_whole && survey.has_properties;
        let Some((table, _)) = examined else { return Ok(Saved::Nothing) };
        if let Some(metadata) = &source.metadata
            && metadata.table_id != table.table_id()
        {
            let error = Error::corruption("this is another table than the manifest names");
            self.lose_table(family, source, &path, error.in_file(&path));
            return Ok(Saved::Nothing);
        }
        if is_readable {
            let cache = Some(Arc::clone(&db.inner.workshop.cache));
            let reader = TableReader::open(file, cache, pool)?;
            let metadata =
                source.metadata.clone().unwrap_or_else(|| metadata_by_table(source, &reader));
            let table = TableFile::new(metadata);
            table.set_reader(reader);
            return Ok(Saved::Whole(table));
        }
        drop(table);
        self.copy_out(db, source, file, assigned_sequence)
    }

    fn lose_table(
        &mut self,
        family: &SourceFamily,
        source: &SourceTable,
        path: &Path,
        error: Error,
    ) {
        let range = source.metadata.as_ref().map(|metadata| &metadata.range);
        let keys = range.map(|range| (range.smallest.to_vec(), range.largest.to_vec()));
        self.report.lost.push(LostPart {
            family: family.name.clone(),
            file: path.to_path_buf(),
            offset: None,
            what: "table",
            keys: keys.clone(),
            may_show_older_rows: false,
        });
        let error = match error.kind() {
            ErrorKind::NotFound => {
                Error::corruption("a live table is missing").in_file(path).because(error)
            }
            _ => error,
        };
        self.found_damage(Finding {
            weight: Weight::Damage,
            structure: crate::verify::Structure::Table,
            family: Some(family.name.clone()),
            error,
            lost_keys: keys,
        });
    }

    /// Writes the blocks and range deletes that are whole to a table of their own.
    fn copy_out(
        &mut self,
        db: &Db,
        source: &SourceTable,
        file: Arc<dyn File>,
        assigned_sequence: u64,
    ) -> Result<Saved> {
        let workshop = &db.inner.workshop;
        let path = self.target.join(format!("{:06}{SALVAGED_SUFFIX}", source.number));
        let compressor = workshop.pool.compressor(Compression::NONE)?;
        let table_id = self.world.environment.random_u128().to_le_bytes();
        let options = TableOptions { filter_bits_per_key: 0, ..TableOptions::default() };
        let mut salvager = Salvager {
            builder: TableBuilder::new(options, table_id, compressor),
            file: self.world.files.open(&path, OpenMode::CreateOrTruncate)?,
            offset: 0,
            meter: WorkMeter::default(),
            environment: &*self.world.environment,
        };
        let context = &mut ReadContext::new(&NoClock);
        let pool = Arc::clone(&workshop.pool);
        examine_table(file, pool, assigned_sequence, context, &mut salvager)?;
        if salvager.builder.is_empty() {
            return Ok(Saved::Nothing);
        }
        salvager.builder.finish(&mut salvager.meter, &*self.world.environment)?;
        salvager.write()?;
        let copy = self.world.files.open(&path, OpenMode::Read)?;
        let cache = Some(Arc::clone(&workshop.cache));
        let reader = TableReader::open(copy, cache, Arc::clone(&workshop.pool))?;
        let table = TableFile::new(metadata_by_table(source, &reader));
        table.set_reader(reader);
        Ok(Saved::Part(table))
    }
}

/// What a manifest would say of a table that is whole, by what the table says itself.
fn metadata_by_table(source: &SourceTable, table: &TableReader) -> FileMetadata {
    let summary = TableSummary {
        table_id: table.table_id(),
        size_bytes: table.size_bytes(),
        properties: table.properties().clone(),
    };
    metadata_of(source.number, &summary, Compression::NONE)
}
