//! Floor 10: what can be saved of a damaged database, in a new directory.
//!
//! Owns: [`repair`], what it reports, and the mark on a directory that is not finished.
//!
//! 1. `CURRENT` and the manifest are read as far as they are whole. Without them the tables'
//!    own properties tell which column family they belong to.
//! 2. Every table is examined. Of a damaged one the blocks that are whole are copied out.
//! 3. Per column family the newest version of every row is written into the new database, so that
//!    nothing of the old tree has to fit together.
//! 4. The log is replayed on top, group by group, up to the first damage, or beyond it if asked.
//! 5. The new database is verified, and its mark removed.
//!
//! Promises: the damaged directory is only read, and may be on a read-only medium. What is not
//! provably what was written is left out. Everything left out is reported, and so is where rows may
//! be older than the last write. A repair that did not end leaves a directory that does not open as
//! a database, and that the next repair clears. Memory is bounded by the options of the new
//! database and one table's index. Any thread.

mod families;
mod log;
mod report;
mod rows;
mod tables;

pub use report::{LostPart, RepairReport, RepairedFamily, RepairedLog};

use crate::db::Db;
use crate::fs::{FileSystem, OpenMode, World};
use crate::manifest::{Current, DirectoryListing, FileName, INCOMPLETE};
use crate::options::Options;
use crate::verify::{
    Finding, FoundManifest, OnProgress, Pace, VerifyOptions, Weight, check_directory,
    check_not_open, find_manifest, go_on, verify_in,
};
use crate::{Error, ErrorKind, Result};
use families::SourceFamily;
use std::io::IoSlice;
use std::path::Path;

/// How a name of a file ends that holds what was saved of a table.
const SALVAGED_SUFFIX: &str = ".salvaged";

/// What is repaired, and how.
#[derive(Clone, Debug, Default)]
pub struct RepairOptions {
    /// Whether what the log has behind damage is saved too. The result is then no longer what there
    /// was after some number of commits: of those behind the damage some are missing.
    pub beyond_damage: bool,
    /// Bytes that are read in a second at most; 0 is no bound.
    pub rate_bytes_per_s: u64,
    /// What the new database is written with: memory budget, threads.
    pub database: Options,
}

/// Saves what is whole of the damaged database in `source` into a new database in `target`, a
/// directory that is not there, is empty, or holds a repair that did not end.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// # let damaged = directory.path().join("damaged");
/// # let repaired = directory.path().join("repaired");
/// use lithify::repair::{RepairOptions, repair};
/// use lithify::{CfOptions, Db, Options};
/// let db = Db::open(&damaged, Options::default())?;
/// db.column_family("rocks", CfOptions::default())?.put(b"basalt", b"igneous")?;
/// db.close()?;
/// std::fs::remove_file(damaged.join("CURRENT")).unwrap();
///
/// let report = repair(&damaged, &repaired, &RepairOptions::default())?;
/// assert_eq!(report.families.len(), 1);
/// let db = Db::open(&repaired, Options::default())?;
/// let rocks = db.existing_column_family("rocks")?.expect("saved");
/// assert_eq!(rocks.get(b"basalt")?.as_deref(), Some(&b"igneous"[..]));
/// # Ok::<(), lithify::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::NotFound`] for no source, [`ErrorKind::Locked`] for one that somebody has open,
/// [`ErrorKind::AlreadyExists`] for a target that holds something, [`ErrorKind::InvalidArgument`]
/// for one inside of the source. What reading, other than damage, and writing meet. The target does
/// not open as a database then.
pub fn repair(
    source: impl AsRef<Path>,
    target: impl AsRef<Path>,
    options: &RepairOptions,
) -> Result<RepairReport> {
    repair_with(source, target, options, &mut go_on)
}

/// [`repair`], and hears how far it has come.
///
/// # Errors
/// As [`repair`].
pub fn repair_with(
    source: impl AsRef<Path>,
    target: impl AsRef<Path>,
    options: &RepairOptions,
    on_progress: &mut OnProgress<'_>,
) -> Result<RepairReport> {
    repair_in(source, target, options, &World::system(), on_progress)
}

/// [`repair`] in a world of the caller's.
///
/// # Errors
/// As [`repair`].
pub fn repair_in(
    source: impl AsRef<Path>,
    target: impl AsRef<Path>,
    options: &RepairOptions,
    world: &World,
    on_progress: &mut OnProgress<'_>,
) -> Result<RepairReport> {
    let (source, target) = (source.as_ref(), target.as_ref());
    let files = &*world.files;
    check_directory(files, source)?;
    check_not_open(files, source)?;
    if let Err(error) = Current::read(files, source)
        && error.kind() == ErrorKind::InvalidArgument
    {
        return Err(error);
    }
    if target.starts_with(source) {
        let what = "the repaired database needs a directory outside of the damaged one";
        return Err(Error::invalid(what).in_file(target));
    }
    begin_target(files, target)?;
    let pace = Pace::new(world, options.rate_bytes_per_s, on_progress);
    let mut repair =
        Repair { source, target, options, world, pace, report: RepairReport::default() };
    match repair.run() {
        Ok(()) => {}
        Err(_) if repair.pace.is_cancelled() => {
            repair.report.is_cancelled = true;
            return Ok(repair.report);
        }
        Err(error) => return Err(error),
    }
    end_target(files, target)?;
    Ok(repair.report)
}

/// Makes the target, empty but for the mark that it is not finished.
fn begin_target(files: &dyn FileSystem, target: &Path) -> Result<()> {
    let mark = target.join(INCOMPLETE);
    if files.exists(target)? {
        if !files.is_directory(target)? {
            return Err(Error::invalid("the target is a file").in_file(target));
        }
        let names = files.list(target)?;
        if !names.is_empty() && !files.exists(&mark)? {
            let what = "the target is not empty: name a new directory";
            return Err(Error::new(ErrorKind::AlreadyExists, what).in_file(target));
        }
        for name in names {
            let is_ours = FileName::of_path(&name).is_some()
                || name.to_string_lossy().ends_with(SALVAGED_SUFFIX);
            if is_ours {
                files.remove(&target.join(name))?;
            }
        }
    } else {
        crate::fs::make_directory(target, files)?;
    }
    let file = files.open(&mark, OpenMode::CreateOrTruncate)?;
    file.write_at(&[IoSlice::new(b"a repair into this directory has not ended\n")], 0)?;
    file.sync_data()?;
    files.sync_directory(target)
}

/// Takes the mark away, and what only the repair needed.
fn end_target(files: &dyn FileSystem, target: &Path) -> Result<()> {
    for name in files.list(target)? {
        if name.to_string_lossy().ends_with(SALVAGED_SUFFIX) {
            files.remove(&target.join(name))?;
        }
    }
    files.sync_directory(target)?;
    files.remove(&target.join(INCOMPLETE))?;
    files.sync_directory(target)
}

/// A repair under way.
struct Repair<'a> {
    source: &'a Path,
    target: &'a Path,
    options: &'a RepairOptions,
    world: &'a World,
    pace: Pace<'a>,
    report: RepairReport,
}

impl Repair<'_> {
    fn run(&mut self) -> Result<()> {
        let files = &*self.world.files;
        let listing = DirectoryListing::read(files, self.source)?;
        let report = &mut self.report;
        let found = find_manifest(files, self.source, &listing, &mut |weight, structure, error| {
            report.findings.push(Finding {
                weight,
                structure,
                family: None,
                error,
                lost_keys: None,
            });
        });
        self.report.has_manifest = found.is_whole;
        let families = self.families(&found, &listing);
        let segments = self.segments(&found, &listing);
        self.announce(&families, &segments);
        let options = Options { create_if_missing: true, ..self.options.database.clone() };
        let db = Db::open_unfinished(self.target, options, self.world.clone())?;
        let mut targets = log::Targets::new(&found);
        for family in &families {
            let handle = db.column_family(&family.name, family.options.clone())?;
            self.family(&db, family, &handle)?;
            targets.add(family, handle);
        }
        self.log(&db, &segments, &found, &mut targets)?;
        db.flush()?;
        db.close()?;
        self.check_result()
    }

    /// Every table is read twice, and every segment once.
    fn announce(&mut self, families: &[SourceFamily], segments: &[u64]) {
        let files = &*self.world.files;
        let length = |name: FileName| files.length(&name.path(self.source)).unwrap_or(0);
        let tables = families.iter().flat_map(|family| &family.tables);
        let table_bytes: u64 = tables.map(|table| length(FileName::Table(table.number))).sum();
        let log_bytes: u64 = segments.iter().map(|number| length(FileName::Wal(*number))).sum();
        self.pace.announce(2 * table_bytes + log_bytes);
    }

    /// The log segments to be replayed: those that the manifest needs, or all that there are.
    fn segments(&self, found: &FoundManifest, listing: &DirectoryListing) -> Vec<u64> {
        if found.is_whole {
            return listing.needed_segments(&found.state);
        }
        let number = |name: &FileName| match name {
            FileName::Wal(number) => Some(*number),
            _ => None,
        };
        listing.names.iter().filter_map(number).collect()
    }

    fn check_result(&mut self) -> Result<()> {
        let options = VerifyOptions::default();
        let verified = verify_in(self.target, &options, self.world, &mut go_on)?;
        if let Some(damage) = verified.damage().next() {
            let what = "the repaired database is not whole: see what the system says of the disk";
            return Err(Error::corruption(what).in_file(self.target).because(damage.error.clone()));
        }
        self.report.verified = verified.examined;
        Ok(())
    }

    fn found_damage(&mut self, finding: Finding) {
        debug_assert!(finding.weight == Weight::Damage);
        self.report.findings.push(finding);
    }
}
