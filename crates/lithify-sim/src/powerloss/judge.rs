//! Opens what a crash left, as its user would, and reads all of it.

use super::history::{Digests, Shown};
use super::image::Tree;
use super::plan::{count_of, owner};
use super::{DATABASE, WRITERS};
use crate::digest;
use crate::references::check_opened;
use lithify::fs::SystemFileSystem;
use lithify::verify::{VerifyOptions, verify};
use lithify::{CfOptions, Db, Options};
use std::path::{Path, PathBuf};

/// A directory that one image after the other is put into.
pub(super) struct Table {
    path: PathBuf,
}

impl Table {
    pub(super) fn new(path: PathBuf) -> Table {
        Table { path }
    }

    /// Puts a database's files there; gives the path of the database.
    pub(super) fn put(&self, tree: &Tree) -> Result<PathBuf, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.path.display());
        if self.path.exists() {
            std::fs::remove_dir_all(&self.path).map_err(failed)?;
        }
        tree.put(&self.path).map_err(failed)?;
        Ok(self.path.clone())
    }
}

/// The database's part of a disk; an empty directory where it is not there.
pub(super) fn database_of(disk: &Tree) -> Tree {
    disk.get(DATABASE).cloned().unwrap_or_else(|| Tree::Directory(Default::default()))
}

/// Opens a database and gives it with what it shows. Nothing may be there that its manifest does not
/// name.
///
/// # Errors
/// What is wrong with it.
pub(super) fn open(path: &Path, options: &Options) -> Result<(Db, Shown), String> {
    let db = Db::open(path, options.clone()).map_err(|e| format!("it does not open: {e}"))?;
    let shown = read(&db).map_err(|error| format!("it cannot be read: {error}"))?;
    if options.background_threads == 0 {
        check_opened(&db, &SystemFileSystem, path)?;
    }
    Ok((db, shown))
}

fn read(db: &Db) -> lithify::Result<Shown> {
    let mut shown = Shown { digests: vec![Digests::new(); WRITERS], ..Shown::default() };
    for name in db.column_family_names() {
        let Some(family) = db.existing_column_family(&name)? else { continue };
        let mut rows = family.cursor(..)?;
        while rows.next()? {
            // A row that no writer has is counted for all, and fits none.
            let (writer, is_counter) = owner(rows.key()).unwrap_or((0, false));
            let sum = shown.digests[writer].entry(name.clone()).or_default();
            *sum = sum.wrapping_add(digest::of_row(rows.key(), rows.value()));
            if is_counter {
                let count = &mut shown.counts[writer];
                *count = count_of(rows.value()).max(*count);
            }
        }
        shown.families.push(name);
    }
    Ok(shown)
}

/// Verifies a database that is closed, works with it, closes it and opens it again.
///
/// # Errors
/// What goes wrong.
pub(super) fn work_on(path: &Path, options: &Options, shown: &Shown) -> Result<(), String> {
    let failed = |error: lithify::Error| format!("it does not go on: {error}");
    let report = verify(path, &VerifyOptions::default()).map_err(failed)?;
    if !report.is_sound() {
        return Err(format!("verification finds it damaged: {report:?}"));
    }
    let (db, again) = open(path, options)?;
    if again != *shown {
        return Err(format!("opened again it shows {:?}, not {:?}", again.counts, shown.counts));
    }
    let family = db.column_family("after the crash", CfOptions::default()).map_err(failed)?;
    family.put(b"key", b"value").map_err(failed)?;
    family.flush().map_err(failed)?;
    drop(family);
    db.drop_column_family("after the crash").map_err(failed)?;
    db.close().map_err(failed)?;
    let (_, again) = open(path, options)?;
    if again != *shown {
        return Err("after one more row it shows other ones".to_string());
    }
    Ok(())
}
