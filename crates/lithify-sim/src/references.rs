//! Compares the files of a database's directory with those that its manifest names.

use lithify::Db;
use lithify::fs::FileSystem;
use lithify::manifest::{DirectoryListing, FileName, LoadedManifest};
use std::path::Path;
use std::time::{Duration, Instant};

/// An opening that finds so many log segments flushes what they hold.
const SEGMENTS_FLUSHED_FROM: usize = 9;

/// So many segments that a flush has let go wait to be used again.
const SEGMENTS_RECYCLED_MAX: usize = 2;

/// After such a flush, a database with threads has removed its files within this time.
const FILES_GO: Duration = Duration::from_secs(20);

/// The files of a database's directory that its manifest does not name.
///
/// # Errors
/// What listing them meets, and tables that are missing.
pub fn unnamed_files(files: &dyn FileSystem, directory: &Path) -> Result<Vec<FileName>, String> {
    let failed = |error: lithify::Error| format!("its files cannot be listed: {error}");
    let loaded = LoadedManifest::read(files, directory, &mut |_, _| {}).map_err(failed)?;
    let listing = DirectoryListing::read(files, directory).map_err(failed)?;
    let mut unnamed = listing.orphans(&loaded.state, loaded.number);
    unnamed.extend(listing.names.iter().filter(|name| **name == FileName::CurrentTemporary));
    match &listing.missing_tables(&loaded.state)[..] {
        [] => Ok(unnamed),
        missing => Err(format!("tables are missing: {missing:?}")),
    }
}

/// Every file in the directory of a database that was just opened is one that the manifest names, and
/// no named table is missing. One that was flushed by its opening settles first, and segments may
/// wait to be used again. One with a time to live settles too: its opening may have let expired tables go.
///
/// # Errors
/// What is too much or missing.
pub fn check_opened(db: &Db, files: &dyn FileSystem, directory: &Path) -> Result<(), String> {
    let recycled_max = match db.recovery().len() {
        0..SEGMENTS_FLUSHED_FROM => 0,
        _ => SEGMENTS_RECYCLED_MAX,
    };
    if recycled_max == 0 && !has_lifetimes(db)? {
        return check(files, directory, 0);
    }
    let has_threads = db.options().background_threads > 0;
    let begun = Instant::now();
    loop {
        db.wait_for_compaction().map_err(|error| format!("it does not settle: {error}"))?;
        match check(files, directory, recycled_max) {
            // A thread may begin a compaction when that flush has ended.
            Err(_) if has_threads && begun.elapsed() < FILES_GO => {
                std::thread::sleep(Duration::from_millis(1));
            }
            checked => return checked,
        }
    }
}

fn has_lifetimes(db: &Db) -> Result<bool, String> {
    let mut families = db.column_family_names().into_iter();
    let found = families.try_fold(false, |found, name| {
        let family = db.existing_column_family(&name)?;
        Ok(found || family.is_some_and(|family| family.options().time_to_live_s > 0))
    });
    found.map_err(|error: lithify::Error| format!("a family is not there: {error}"))
}

fn check(files: &dyn FileSystem, directory: &Path, recycled_max: usize) -> Result<(), String> {
    let unnamed = unnamed_files(files, directory)?;
    let are_segments = unnamed.iter().all(|name| matches!(name, FileName::Wal(_)));
    match unnamed.len() {
        0 => Ok(()),
        count if are_segments && count <= recycled_max => Ok(()),
        _ => Err(format!("files that nothing names: {unnamed:?}")),
    }
}
