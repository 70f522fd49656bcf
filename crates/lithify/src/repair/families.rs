//! Which column families there are, and which tables they have.

use super::Repair;
use crate::base::{ColumnFamilyId, FileNumber, Level, SequenceNumber};
use crate::fs::OpenMode;
use crate::inspect::context_pool;
use crate::manifest::{DirectoryListing, FamilyState, FileMetadata, FileName};
use crate::options::CfOptions;
use crate::table::{TableProperties, TableReader};
use crate::verify::FoundManifest;
use std::collections::BTreeMap;

/// The name of the family for tables of which nobody knows whose they are.
const UNKNOWN: &str = "recovered";

/// A table to be saved.
pub(super) struct SourceTable {
    pub(super) number: FileNumber,
    pub(super) level: Level,
    /// What a manifest says of it.
    pub(super) metadata: Option<FileMetadata>,
}

/// A column family to be saved.
pub(super) struct SourceFamily {
    /// `None` for the tables of which nobody knows whose they are.
    pub(super) id: Option<ColumnFamilyId>,
    pub(super) name: String,
    pub(super) options: CfOptions,
    /// The log holds nothing newer of it up to here.
    pub(super) flushed_through: SequenceNumber,
    pub(super) tables: Vec<SourceTable>,
}

/// The name of a family of which only the id is known.
pub(super) fn name_of_id(id: ColumnFamilyId) -> String {
    format!("{UNKNOWN}-{id}")
}

impl SourceFamily {
    fn of_state(id: ColumnFamilyId, state: &FamilyState) -> Self {
        SourceFamily {
            id: Some(id),
            name: state.name.to_string(),
            // Options only say how to go on; damage to them was found before.
            options: CfOptions::of_family(state).unwrap_or_default(),
            flushed_through: state.flushed_through,
            tables: Vec::new(),
        }
    }

    fn named(id: Option<ColumnFamilyId>, name: String) -> Self {
        SourceFamily {
            id,
            name,
            options: CfOptions::default(),
            flushed_through: 0,
            tables: Vec::new(),
        }
    }
}

impl Repair<'_> {
    /// The families of the manifest, or those that tables tell of.
    pub(super) fn families(
        &self,
        found: &FoundManifest,
        listing: &DirectoryListing,
    ) -> Vec<SourceFamily> {
        let mut families: BTreeMap<Option<ColumnFamilyId>, SourceFamily> = BTreeMap::new();
        let mut known: BTreeMap<FileNumber, (ColumnFamilyId, FileMetadata)> = BTreeMap::new();
        for (id, state) in &found.state.families {
            let family =
                families.entry(Some(*id)).or_insert_with(|| SourceFamily::of_state(*id, state));
            for (level, table) in state.version.tables() {
                let metadata = table.metadata.clone();
                if found.is_whole {
                    let number = metadata.number;
                    family.tables.push(SourceTable { number, level, metadata: Some(metadata) });
                } else {
                    known.insert(metadata.number, (*id, metadata));
                }
            }
        }
        if !found.is_whole {
            for name in &listing.names {
                if let FileName::Table(number) = *name {
                    self.place(number, known.remove(&number), &mut families);
                }
            }
        }
        families.into_values().collect()
    }

    /// Finds out whose a table is, by what is left of the manifest or by its properties. Levels
    /// mean nothing then: every table is a run of its own.
    fn place(
        &self,
        number: FileNumber,
        known: Option<(ColumnFamilyId, FileMetadata)>,
        families: &mut BTreeMap<Option<ColumnFamilyId>, SourceFamily>,
    ) {
        let properties = self.properties(number);
        let origin = properties.as_ref().filter(|properties| !properties.family_name.is_empty());
        let origin_id = origin.and_then(|properties| u32::try_from(properties.family_id).ok());
        let id = known.as_ref().map(|(id, _)| *id).or(origin_id);
        let family = families.entry(id).or_insert_with(|| match (id, origin) {
            (Some(_), Some(origin)) => {
                SourceFamily::named(id, String::from_utf8_lossy(&origin.family_name).into_owned())
            }
            (Some(id), None) => SourceFamily::named(Some(id), name_of_id(id)),
            (None, _) => SourceFamily::named(None, UNKNOWN.to_string()),
        });
        let flushed_through = properties.as_ref().map_or(0, flushed_through);
        family.flushed_through = family.flushed_through.max(flushed_through);
        if let Some(properties) = &properties {
            let time_to_live_s = &mut family.options.time_to_live_s;
            *time_to_live_s = (*time_to_live_s).max(properties.time_to_live_s);
        }
        let metadata = known.map(|(_, metadata)| metadata);
        family.tables.push(SourceTable { number, level: 0, metadata });
    }

    fn properties(&self, number: FileNumber) -> Option<TableProperties> {
        let path = FileName::Table(number).path(self.source);
        let file = self.world.files.open(&path, OpenMode::Read).ok()?;
        let table = TableReader::open(file, None, context_pool()).ok()?;
        Some(table.properties().clone())
    }
}

/// How far a family's writes are in tables, as one of them knows. One that does not say so was
/// written by an older version; for those that were flushed it is their newest entry.
fn flushed_through(properties: &TableProperties) -> SequenceNumber {
    match (properties.family_name.is_empty(), properties.level) {
        (true, 0) => properties.largest_sequence,
        _ => properties.flushed_through,
    }
}
