//! Tables: everything in them, and what the manifest says of them.

use super::report::{Finding, Structure, VerifyReport, Weight};
use super::{Examination, Pace, PlannedTable};
use crate::fs::OpenMode;
use crate::inspect::NoClock;
use crate::table::{ReadContext, TableExaminer, TableFinding, TablePart, examine_table};
use crate::{Error, ErrorKind, Result};

/// Puts what is found in a table on the list.
struct Listener<'a, 'p> {
    family: &'a Option<String>,
    report: &'a mut VerifyReport,
    pace: &'a mut Pace<'p>,
    has_properties: bool,
}

impl TableExaminer for Listener<'_, '_> {
    fn found(&mut self, TableFinding { part, error, lost }: TableFinding) -> Result<()> {
        self.has_properties &= part != TablePart::Properties;
        self.report.push(Finding {
            weight: Weight::Damage,
            structure: structure_of(part),
            family: self.family.clone(),
            error,
            lost_keys: lost,
        });
        Ok(())
    }

    fn went_through(&mut self, bytes: u64) -> Result<()> {
        self.report.examined.table_bytes += bytes;
        self.pace.advance(bytes)
    }
}

pub(crate) fn structure_of(part: TablePart) -> Structure {
    match part {
        TablePart::Footer => Structure::Footer,
        TablePart::Properties => Structure::Properties,
        TablePart::Dictionary => Structure::Dictionary,
        TablePart::Filter => Structure::Filter,
        TablePart::RangeTombstones => Structure::RangeTombstones,
        TablePart::Index => Structure::Index,
        TablePart::DataBlock => Structure::DataBlock,
    }
}

impl Examination<'_> {
    /// Examines one table. An error is the end that the caller asked for.
    pub(super) fn table(&mut self, planned: &PlannedTable) -> Result<()> {
        if planted!(VerifyPassesOverTables) {
            return Ok(());
        }
        let path = planned.name.path(self.directory);
        let damage = |error: Error| Finding {
            weight: Weight::Damage,
            structure: Structure::Table,
            family: planned.family.clone(),
            error,
            lost_keys: None,
        };
        let file = match self.world.files.open(&path, OpenMode::Read) {
            Ok(file) => file,
            Err(error) => {
                let error = match error.kind() {
                    ErrorKind::NotFound => {
                        Error::corruption("a live table is missing").in_file(&path).because(error)
                    }
                    _ => error,
                };
                let metadata = planned.metadata.as_ref();
                let range = metadata.map(|metadata| &metadata.range);
                let lost = range.map(|range| (range.smallest.to_vec(), range.largest.to_vec()));
                self.report.push(Finding { lost_keys: lost, ..damage(error) });
                return Ok(());
            }
        };
        self.report.examined.tables += 1;
        let metadata = planned.metadata.as_ref();
        let assigned = metadata.filter(|metadata| metadata.ingested);
        let assigned_sequence = assigned.map_or(0, |metadata| metadata.largest_sequence);
        let listener = &mut Listener {
            family: &planned.family,
            report: &mut self.report,
            pace: &mut self.pace,
            has_properties: true,
        };
        let context = &mut ReadContext::new(&NoClock);
        let pool = self.pool.clone();
        let examined = examine_table(file, pool, assigned_sequence, context, listener)?;
        let has_properties = listener.has_properties;
        let Some((table, found)) = examined else { return Ok(()) };
        self.report.examined.data_blocks += found.data_blocks;
        self.report.examined.entries += found.entries;
        if let Some(metadata) = metadata.filter(|_| has_properties) {
            for error in metadata.differences(&table) {
                self.report.push(damage(error.in_file(&path)));
            }
        }
        Ok(())
    }
}
