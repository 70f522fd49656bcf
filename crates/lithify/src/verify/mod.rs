//! Floor 9: whether a database is sound, to the last byte. Reads only.
//!
//! Owns: [`verify`] of a directory and [`crate::Db::verify`] of an open database, what they find,
//! and the pace at which they read.
//!
//! 1. `CURRENT` and the manifest are read edit by edit; they say which tables and log segments
//!    there have to be.
//! 2. Every table is read whole: every checksum, the order of entries in blocks, between blocks
//!    and between tables, index, filter, range tombstones, properties, and what the manifest says
//!    of the table. A column family's tables can be left out.
//! 3. Every needed log segment is read to its end: the chain of headers, every record's checksum,
//!    how far it must be whole, and the writes in it.
//! 4. Files that nothing refers to, and references to files that are not there.
//!
//! Promises: damage ends nothing. What is behind it is examined as far as it can be found, and
//! everything found is listed, with file, offset, structure and what to do. Memory is bounded by
//! one table's index and filter, one block and one log record, and the list of findings. Nothing
//! is written to the database. Any thread.
//!
//! It does not mend anything, and opens no database.

mod log;
mod manifest;
mod open;
mod pace;
mod report;
mod tables;

pub(crate) use log::{is_missing, named_end};
pub(crate) use manifest::{FoundManifest, find_manifest, read_header};
pub(crate) use pace::Pace;
pub use pace::Progress;
pub use report::{Examined, Finding, Structure, VerifyReport, Weight};
pub(crate) use tables::structure_of;

use crate::codec::ContextPool;
use crate::fs::{FileSystem, World};
use crate::inspect::context_pool;
use crate::manifest::{Current, DirectoryListing, FileMetadata, FileName, ManifestState};
use crate::options::CfOptions;
use crate::{Error, ErrorKind, Result};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// What is verified, and how fast.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyOptions {
    /// The names of the column families whose tables are read; all of them if empty. Manifest and
    /// log belong to all families and are read in any case.
    pub families: Vec<String>,
    /// Bytes that are read in a second at most; 0 is no bound.
    pub rate_bytes_per_s: u64,
}

/// Hears how far a verification or repair has come; `Break` ends it.
pub type OnProgress<'a> = dyn FnMut(&Progress) -> ControlFlow<()> + 'a;

/// Verifies the database in a directory. If a process has it open for writing, the state is
/// verified that was on disk at the time of the call, as by [`crate::Db::verify`] of a database
/// that was opened with [`crate::Db::open_read_only`].
///
/// # Errors
/// [`ErrorKind::NotFound`] for no directory, one without files of the engine, or no such column
/// family; [`ErrorKind::InvalidArgument`] for a file; [`ErrorKind::Locked`] if somebody
/// opened the database meanwhile, or has it open and its state cannot be read; what listing the
/// directory meets. Whatever is wrong with the database is no error but in the report.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// use lithify::verify::{VerifyOptions, verify};
/// use lithify::{Db, Options};
/// let db = Db::open(directory.path(), Options::default())?;
/// db.put("basalt", "igneous")?;
/// db.flush()?;
/// db.close()?;
/// let report = verify(directory.path(), &VerifyOptions::default())?;
/// assert!(report.is_sound());
/// assert_eq!((report.examined.tables, report.examined.entries), (1, 1));
/// # Ok::<(), lithify::Error>(())
/// ```
pub fn verify(directory: impl AsRef<Path>, options: &VerifyOptions) -> Result<VerifyReport> {
    verify_with(directory, options, &mut go_on)
}

/// [`verify`], and hears how far it has come.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// # lithify::Db::open(directory.path(), lithify::Options::default())?.close()?;
/// use lithify::verify::{VerifyOptions, verify_with};
/// use std::ops::ControlFlow;
/// let report = verify_with(directory.path(), &VerifyOptions::default(), &mut |progress| {
///     eprintln!("{} of {} bytes", progress.done_bytes, progress.total_bytes);
///     ControlFlow::Continue(())
/// })?;
/// # assert!(report.is_sound());
/// # Ok::<(), lithify::Error>(())
/// ```
///
/// # Errors
/// As [`verify`].
pub fn verify_with(
    directory: impl AsRef<Path>,
    options: &VerifyOptions,
    on_progress: &mut OnProgress<'_>,
) -> Result<VerifyReport> {
    verify_in(directory, options, &World::system(), on_progress)
}

/// The listener of who does not want to hear.
pub(crate) fn go_on(_: &Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// [`verify`] in a world of the caller's.
///
/// # Errors
/// As [`verify`].
pub fn verify_in(
    directory: impl AsRef<Path>,
    options: &VerifyOptions,
    world: &World,
    on_progress: &mut OnProgress<'_>,
) -> Result<VerifyReport> {
    let directory = directory.as_ref();
    let files = &*world.files;
    check_directory(files, directory)?;
    if files.is_directory_locked(&FileName::Lock.path(directory))? {
        return open::verify_beside_writer(directory, options, world, on_progress);
    }
    let before = Current::read(files, directory).ok();
    let listing = DirectoryListing::read(files, directory)?;
    let pace = Pace::new(world, options.rate_bytes_per_s, on_progress);
    let mut examination = Examination::new(world, directory, pace);
    let found = find_manifest(files, directory, &listing, &mut |weight, structure, error| {
        examination.report.add(weight, structure, None, error);
    });
    examination.check_names(options, &found.state, found.is_whole)?;
    let whole = found.is_whole.then_some(&found.state);
    let plan = Plan::new(&listing, whole, &found.state, options);
    examination.pace.announce(found.bytes + plan.bytes(files, directory));
    let ended = examination.run(&plan, &found, &listing);
    let report = examination.finish(ended)?;
    // A database that was opened meanwhile has changed under the examination.
    check_not_open(files, directory)?;
    if Current::read(files, directory).ok() != before {
        return Err(in_use("somebody opened the database while it was verified: run it again")
            .in_file(directory));
    }
    Ok(report)
}

/// Refuses what is no directory, or holds no files of the engine.
pub(crate) fn check_directory(files: &dyn FileSystem, directory: &Path) -> Result<()> {
    let nothing = |what: &str| Error::new(ErrorKind::NotFound, what).in_file(directory);
    if !files.exists(directory)? {
        return Err(nothing("there is no such directory"));
    }
    if !files.is_directory(directory)? {
        return Err(Error::invalid("a database is a directory, this is a file").in_file(directory));
    }
    let is_data = |name: &FileName| !matches!(name, FileName::Lock);
    match DirectoryListing::read(files, directory)?.names.iter().any(is_data) {
        true => Ok(()),
        false => Err(nothing("there is no database in this directory")),
    }
}

/// Refuses a database that a process has open for writing.
pub(crate) fn check_not_open(files: &dyn FileSystem, directory: &Path) -> Result<()> {
    let lock = FileName::Lock.path(directory);
    if files.is_directory_locked(&lock)? {
        let what = "a process has the database open: close it first";
        return Err(in_use(what).in_file(lock));
    }
    Ok(())
}

fn in_use(what: &str) -> Error {
    Error::new(ErrorKind::Locked, what)
}

/// A table to be read.
struct PlannedTable {
    family: Option<String>,
    /// What the manifest says of it; nothing if no manifest that is whole knows the file.
    metadata: Option<FileMetadata>,
    name: FileName,
}

/// The files to be read.
struct Plan {
    tables: Vec<PlannedTable>,
    /// Ascending.
    segments: Vec<u64>,
}

impl Plan {
    /// What a state refers to. Without one that is `whole` it may refer to too few files and to too
    /// many: then the directory counts.
    fn new(
        listing: &DirectoryListing,
        whole: Option<&ManifestState>,
        state: &ManifestState,
        options: &VerifyOptions,
    ) -> Plan {
        let is_wanted = |name: &str| {
            options.families.is_empty() || options.families.iter().any(|wanted| wanted == name)
        };
        let mut tables = Vec::new();
        for family in state.families.values().filter(|family| is_wanted(&family.name)) {
            tables.extend(family.version.tables().map(|(_, table)| PlannedTable {
                family: Some(family.name.to_string()),
                metadata: Some(table.metadata.clone()),
                name: FileName::Table(table.metadata.number),
            }));
        }
        if whole.is_some() {
            return Plan { tables, segments: listing.needed_segments(state) };
        }
        tables.retain(|table| listing.names.binary_search(&table.name).is_ok());
        let named: Vec<u64> = state.table_numbers().collect();
        let mut segments = Vec::new();
        for name in &listing.names {
            match *name {
                FileName::Table(number) if !named.contains(&number) => {
                    tables.push(PlannedTable { family: None, metadata: None, name: *name });
                }
                FileName::Wal(number) => segments.push(number),
                _ => {}
            }
        }
        Plan { tables, segments }
    }

    /// How long the files are together.
    fn bytes(&self, files: &dyn FileSystem, directory: &Path) -> u64 {
        let segments = self.segments.iter().map(|number| FileName::Wal(*number));
        let names = self.tables.iter().map(|table| table.name).chain(segments);
        names.map(|name| files.length(&name.path(directory)).unwrap_or(0)).sum()
    }
}

/// What all parts of a verification share.
struct Examination<'a> {
    world: &'a World,
    directory: &'a Path,
    pool: Arc<ContextPool>,
    pace: Pace<'a>,
    report: VerifyReport,
}

impl<'a> Examination<'a> {
    fn new(world: &'a World, directory: &'a Path, pace: Pace<'a>) -> Self {
        let pool = context_pool();
        Examination { world, directory, pool, pace, report: VerifyReport::default() }
    }

    /// Refuses the name of a column family that there is not.
    fn check_names(
        &self,
        options: &VerifyOptions,
        state: &ManifestState,
        is_whole: bool,
    ) -> Result<()> {
        let unknown = options.families.iter().find(|name| state.family_by_name(name).is_none());
        match unknown.filter(|_| is_whole) {
            Some(name) => {
                let what = format!("there is no column family {name:?}");
                Err(Error::new(ErrorKind::NotFound, what).in_file(self.directory))
            }
            None => Ok(()),
        }
    }

    /// Reads everything that is planned. An error is the end that the caller asked for.
    fn run(
        &mut self,
        plan: &Plan,
        found: &FoundManifest,
        listing: &DirectoryListing,
    ) -> Result<()> {
        self.begin(found)?;
        for table in &plan.tables {
            self.table(table)?;
        }
        self.log(&plan.segments, found)?;
        if found.is_whole {
            self.check_references(found, listing);
        }
        Ok(())
    }

    /// Counts what was read of the manifest.
    fn begin(&mut self, found: &FoundManifest) -> Result<()> {
        self.report.database_id = found.database_id;
        self.report.examined.manifest_edits = found.edits;
        self.report.examined.manifest_bytes = found.bytes;
        self.report.examined.families = found.state.families.len() as u64;
        self.check_options(&found.state);
        self.pace.advance(found.bytes)
    }

    /// Whether the options of every column family can be read.
    fn check_options(&mut self, state: &ManifestState) {
        for family in state.families.values() {
            if let Err(error) = CfOptions::of_family(family) {
                let name = Some(family.name.to_string());
                self.report.add(Weight::Damage, Structure::Manifest, name, error);
            }
        }
    }

    /// Files without a reference. References without a file were found when the file was to be
    /// read.
    fn check_references(&mut self, found: &FoundManifest, listing: &DirectoryListing) {
        let mut orphans = listing.orphans(&found.state, found.number.unwrap_or_default());
        // Segments that are no longer needed are kept to be used again.
        orphans.retain(|orphan| !matches!(orphan, FileName::Wal(_)));
        if listing.names.contains(&FileName::CurrentTemporary) {
            orphans.push(FileName::CurrentTemporary);
        }
        for orphan in orphans {
            let error = Error::new(ErrorKind::AlreadyExists, "nothing refers to this file")
                .in_file(orphan.path(self.directory));
            self.report.add(Weight::Notice, Structure::Directory, None, error);
        }
    }

    /// The report, if the end was reached or asked for.
    fn finish(mut self, ended: Result<()>) -> Result<VerifyReport> {
        match ended {
            Err(_) if self.pace.is_cancelled() => self.report.is_cancelled = true,
            ended => ended?,
        }
        Ok(self.report)
    }
}
