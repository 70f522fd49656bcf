//! What compression the families of a database on disk have, and why: from the manifest and from what
//! tables record of decisions.

use super::levels::{ATTEMPTS, check_directory};
use super::table::context_pool;
use crate::compaction::{ReadHeat, recall_decisions, warm_up};
use crate::db::Explanation;
use crate::fs::{FileSystem, OpenMode};
use crate::manifest::{FileName, LoadedManifest, TableFile};
use crate::options::CfOptions;
use crate::table::TableReader;
use crate::{ErrorKind, Result};
use std::path::Path;
use std::sync::Arc;

/// Explains every column family of a database, which may be open elsewhere. Reads are known up to ten
/// seconds ago; if the file `HEAT` is missing or not whole, decisions are as they were made for the
/// newest tables. A table that cannot be read is left out.
///
/// # Errors
/// As [`super::read_levels`].
pub fn read_explanations(files: &dyn FileSystem, directory: &Path) -> Result<Vec<Explanation>> {
    check_directory(files, directory)?;
    let mut attempt = 1;
    loop {
        let result = LoadedManifest::read(files, directory, &mut |_, _| {})
            .and_then(|loaded| explain(files, directory, &loaded));
        // A manifest that was replaced meanwhile is found at the next attempt.
        let may_have_moved = result.as_ref().is_err_and(|error| {
            matches!(error.kind(), ErrorKind::Corruption | ErrorKind::NotFound)
        });
        if !may_have_moved || attempt == ATTEMPTS {
            return result;
        }
        attempt += 1;
    }
}

fn explain(
    files: &dyn FileSystem,
    directory: &Path,
    loaded: &LoadedManifest,
) -> Result<Vec<Explanation>> {
    let pool = context_pool();
    let heat = ReadHeat::read(files, directory, loaded.database_id);
    let mut explanations = Vec::new();
    for (id, state) in &loaded.state.families {
        let options = CfOptions::of_family(state)
            .map_err(|error| error.in_file(FileName::Manifest(loaded.number).path(directory)))?;
        let formats = options.formats();
        let recorded = |table: &TableFile| {
            let path = FileName::Table(table.metadata.number).path(directory);
            let file = files.open(&path, OpenMode::Read).ok()?;
            let table = TableReader::open(file, None, Arc::clone(&pool)).ok()?;
            Some((table.properties().decision.clone(), table.own_dictionary()))
        };
        recall_decisions(&*formats, &state.version, recorded);
        let is_warm = warm_up(&*formats, *id, &state.version, &heat, 0);
        let mut explanation = Explanation::of(&state.name, &options, &state.version, &*formats, 0);
        explanation.forget_changes();
        if !is_warm {
            explanation.forget_reads();
        }
        explanations.push(explanation);
    }
    Ok(explanations)
}
