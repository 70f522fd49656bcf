//! Opening for reading only, beside a writer or without one.
//!
//! A reader is a database whose state never changes: families, tables and memtables are what was on
//! disk at one moment. Moving on makes another one, which takes over the block cache, the memory
//! budget and the tables that are open already. The protocol with the writer is described in
//! docs/format/readers.md.

use crate::db::Db;
use crate::db::inner::DbInner;
use crate::db::lifecycle::open;
use crate::db::lifecycle::open::{Access, assemble, open_families, recover_log};
use crate::fs::World;
use crate::manifest::{
    Change, DirectoryListing, FileName, LoadedManifest, Manifest, ManifestPosition,
    READERS_DIRECTORY, ReaderRegistration, VersionEdit,
};
use crate::options::Options;
use crate::{Error, ErrorKind, Result};
use std::path::Path;
use std::sync::Arc;

/// A writer can replace and remove what is being read. So often is the state read again before
/// what looks like damage counts as damage.
const ATTEMPTS: usize = 20;

/// Between two attempts.
const PAUSE_US: u64 = 500;

impl Db {
    /// Opens a database for reading only, also while a writer has it open, in this process or in
    /// another one: in the state that is on disk now, with what is in the log. Later writes are seen
    /// after [`Db::refresh`]. No lock is taken and nothing is written but a registration that keeps
    /// the writer from removing the files of this state; on a read-only medium not even that, see
    /// docs/format/readers.md. Any number of readers may be open.
    ///
    /// Of the options those for reading count: memory budget, direct reads. Every call that would
    /// write gives an error of kind [`ErrorKind::ReadOnly`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// use lithify::{CfOptions, Db, ErrorKind, Options};
    /// let db = Db::open(directory.path(), Options::default())?;
    /// let rocks = db.column_family("rocks", CfOptions::default())?;
    /// rocks.put(b"basalt", b"igneous")?;
    ///
    /// let mut reader = Db::open_read_only(directory.path(), Options::default())?;
    /// let seen = reader.existing_column_family("rocks")?.expect("it is there");
    /// assert_eq!(seen.get(b"basalt")?.as_deref(), Some(&b"igneous"[..]));
    /// assert_eq!(seen.delete(b"basalt").unwrap_err().kind(), ErrorKind::ReadOnly);
    ///
    /// rocks.put(b"chalk", b"sedimentary")?;
    /// assert_eq!(seen.get(b"chalk")?, None);
    /// reader.refresh()?;
    /// let seen = reader.existing_column_family("rocks")?.expect("it is there");
    /// assert!(seen.contains(b"chalk")?);
    /// # Ok::<(), lithify::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if there is no database; [`ErrorKind::Corruption`] with file and
    /// offset; [`ErrorKind::Unsupported`]; [`ErrorKind::InvalidArgument`] for options out of range;
    /// [`ErrorKind::Io`].
    pub fn open_read_only(path: impl AsRef<Path>, options: Options) -> Result<Db> {
        Db::open_read_only_in(path, options, World::system())
    }

    /// [`Db::open_read_only`] in a world of the caller's.
    ///
    /// # Errors
    /// As [`Db::open_read_only`].
    pub fn open_read_only_in(path: impl AsRef<Path>, options: Options, world: World) -> Result<Db> {
        let path = world.files.absolute(path.as_ref())?;
        open_read_only(&path, options, world, None).map(Db::of)
    }

    /// Moves a database that was opened for reading on to the state that is on disk now. Column
    /// families, snapshots and cursors that were taken before stay at the state that they had, and
    /// keep its files; take new ones to see the new state. The log that is not yet in tables is
    /// read anew.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] if it was opened for writing; else as
    /// [`Db::open_read_only`]. After an error the state is the one before.
    pub fn refresh(&mut self) -> Result<()> {
        let before = &self.inner;
        before.lifecycle.check_open()?;
        if !before.lifecycle.is_read_only() {
            return Err(Error::invalid("a database that is open for writing is always up to date"));
        }
        let (options, world) = (before.options.clone(), before.world.clone());
        let inner = open_read_only(&before.path, options, world, Some(before))?;
        self.move_to(inner);
        Ok(())
    }

    /// Whether it was opened for reading only.
    pub fn is_read_only(&self) -> bool {
        self.inner.lifecycle.is_read_only()
    }
}

/// Merge operators that were given before are there after a refresh.
fn adopt_operators(inner: &DbInner, before: Option<&DbInner>) {
    for known in before.map(|before| before.tree.all_families()).unwrap_or_default() {
        if let Some(family) = inner.tree.family(known.id) {
            family.rows.set_operator((*known.rows.operator()).clone());
        }
    }
}

fn open_read_only(
    path: &Path,
    options: Options,
    world: World,
    before: Option<&DbInner>,
) -> Result<Arc<DbInner>> {
    // Nothing is done in the background.
    let options = Options { background_threads: 0, create_if_missing: false, ..options };
    options.validate()?;
    open::check_complete(path, &world)?;
    open::prepare_directory(path, &options, &world).map_err(|error| match error.kind() {
        ErrorKind::NotFound => nothing_to_read(path),
        _ => error,
    })?;
    let mut registration = ReaderRegistration::join(&world, path)?;
    let mut attempt = 1;
    loop {
        match read_state(path, &options, &world, before) {
            Ok((inner, position)) => {
                adopt_operators(&inner, before);
                if let Some(registration) = &mut registration {
                    registration.hold(position)?;
                }
                inner.lifecycle.set_registration(registration);
                return Ok(inner);
            }
            Err(error) if attempt == ATTEMPTS || !may_pass(&error) => {
                if error.kind() == ErrorKind::InvalidArgument {
                    // Perhaps another engine's: nothing is left in its directory.
                    drop(registration);
                    let _ = world.files.remove_directory(&path.join(READERS_DIRECTORY));
                }
                return Err(error);
            }
            Err(_) => attempt += 1,
        }
        let pause = world.environment.new_event();
        pause.wait(pause.generation(), Some(PAUSE_US));
    }
}

/// Whether an error may come of a writer at work.
fn may_pass(error: &Error) -> bool {
    use ErrorKind as K;
    matches!(error.kind(), K::Corruption | K::NotFound | K::TryAgain)
}

/// Reads one state, and how far the manifest had been read.
fn read_state(
    path: &Path,
    options: &Options,
    world: &World,
    before: Option<&DbInner>,
) -> Result<(Arc<DbInner>, ManifestPosition)> {
    let files = &world.files;
    if !files.exists(&FileName::Current.path(path))? {
        return Err(nothing_to_read(path));
    }
    let loaded = LoadedManifest::read(&**files, path, &mut |_, _| {})?;
    let mut listing = DirectoryListing::read(&**files, path)?;
    if planted!(ReaderPassesOverLog) {
        listing = DirectoryListing::default();
    }
    let manifest = Manifest::read_only(Arc::clone(files), path, &loaded);
    let inner = assemble(path, options.clone(), world.clone(), manifest, Access::Read(before))?;
    let read = open_families(&inner, &loaded.state, before)
        .and_then(|()| recover_log(&inner, &loaded.state, &listing))
        .and_then(|recovery| check_still_a_prefix(path, world, &loaded).map(|()| recovery));
    match read {
        Ok(recovery) => {
            inner.lifecycle.set_recovery(recovery.reports);
            Ok((inner, loaded.position()))
        }
        Err(error) => {
            // Without a registration of its own there is nothing else to give up.
            let _ = inner.close();
            let now = LoadedManifest::read(&**files, path, &mut |_, _| {});
            match now.is_ok_and(|now| now.position() != loaded.position()) && may_pass(&error) {
                true => Err(moves_on(path).because(error)),
                false => Err(error),
            }
        }
    }
}

/// What is in the log may be later than an ingest, or a family made or dropped, that came behind
/// what was read of the manifest. A flush or compaction behind it changes nothing that is seen.
fn check_still_a_prefix(path: &Path, world: &World, read: &LoadedManifest) -> Result<()> {
    let position = read.position();
    let mut has_moved_on = false;
    let now = LoadedManifest::read(&*world.files, path, &mut |offset, edit| {
        has_moved_on |= offset >= position.offset && changes_what_is_seen(edit);
    })?;
    if has_moved_on || now.number != position.number {
        return Err(moves_on(path));
    }
    Ok(())
}

fn nothing_to_read(path: &Path) -> Error {
    Error::new(ErrorKind::NotFound, "there is no database to read").in_file(path)
}

fn moves_on(path: &Path) -> Error {
    let what = "the writer moves on faster than the state can be read: try again";
    Error::new(ErrorKind::TryAgain, what).in_file(path)
}

fn changes_what_is_seen(edit: &VersionEdit) -> bool {
    edit.changes.iter().any(|change| match change {
        Change::AddFile { metadata, .. } => metadata.ingested,
        Change::CreateFamily { .. } | Change::DropFamily { .. } => true,
        _ => false,
    })
}
