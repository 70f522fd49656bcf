//! Floor 8: backups, and databases made of them again.
//!
//! Owns: the backup store, a directory of its own format (docs/format/backup.md), and what can be
//! done with it: make a backup of an open database, list, verify, delete, restore.
//!
//! Promises: a backup is there as a whole or not at all, whatever call fails and wherever a crash
//! comes; it is every commit up to one sequence number. Table files are kept once for all backups
//! that need them, and go with the last one. Every byte that is restored was compared with its
//! checksum. The database is not changed, but for a flush where there is no log. Memory is one
//! piece of a file, and what the manifest says of the tables.
//!
//! One store is changed by one process at a time, which holds its lock; listing, verifying and
//! restoring need none ([`BackupStore::open_read_only`]). It does not go over a network, and does
//! not encrypt.

mod create;
mod meta;
mod names;
mod restore;
#[cfg(test)]
mod tests;
mod verify;

pub use crate::fs::{TransferListener, TransferOptions, TransferProgress};
pub use create::{BackupOptions, BackupReport};
pub use restore::{RestoreOptions, Restored};
pub use verify::{BackupVerdict, StoreVerification};

use crate::base::SequenceNumber;
use crate::format::Features;
use crate::fs::{FileLock, FileSystem, OpenMode, World, make_directory, read_exact_at};
use crate::{Error, ErrorKind, Result};
use meta::{BackupMeta, META_SIZE_MAX, StoreIdentity};
use names::StoreName;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::IoSlice;
use std::path::{Path, PathBuf};

/// The number of a backup in its store; 1 is the first. Never given out twice.
pub type BackupId = u64;

/// What a store says of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupInfo {
    /// Its number.
    pub id: BackupId,
    /// When it was made, in seconds since 1970.
    pub unix_time_s: u64,
    /// It holds every commit up to this sequence number.
    pub sequence: SequenceNumber,
    /// It can be restored to this sequence number and every later one up to `sequence`.
    pub oldest_sequence: SequenceNumber,
    /// The identity of the database.
    pub database_id: u128,
    /// What its maker wrote on it.
    pub note: String,
    /// Files that it needs.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of log segments among them.
    pub log_bytes: u64,
    /// Bytes that were copied when it was made; the others were there.
    pub copied_bytes: u64,
    /// Bytes that no other backup needs: what deleting it would free.
    pub own_bytes: u64,
}

/// The backups of a store.
#[derive(Clone, Debug, Default)]
pub struct BackupList {
    /// Those that can be read, oldest first.
    pub backups: Vec<BackupInfo>,
    /// Those whose description is damaged or of a later version.
    pub unreadable: Vec<(BackupId, Error)>,
}

/// A directory of backups.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = |name: &str| directory.path().join(name);
/// use lithify::backup::{BackupOptions, BackupStore, RestoreOptions};
/// use lithify::{CfOptions, Db, Options};
/// let db = Db::open(path("rocks"), Options::default())?;
/// let rocks = db.column_family("rocks", CfOptions::default())?;
/// rocks.put(b"basalt", b"igneous")?;
///
/// let mut store = BackupStore::open(path("store"))?;
/// let monday = store.create(&db, &BackupOptions::default())?.backup.id;
/// rocks.put(b"slate", b"metamorphic")?;
/// store.create(&db, &BackupOptions::default())?;
/// assert!(store.verify(None, &Default::default())?.is_whole());
///
/// store.restore(monday, path("restored"), &RestoreOptions::default())?;
/// let restored = Db::open(path("restored"), Options::default())?;
/// let rocks = restored.column_family("rocks", CfOptions::default())?;
/// assert!(rocks.contains(b"basalt")? && !rocks.contains(b"slate")?);
/// # Ok::<(), lithify::Error>(())
/// ```
pub struct BackupStore {
    world: World,
    path: PathBuf,
    identity: StoreIdentity,
    backups: BTreeSet<BackupId>,
    /// None if it was opened for reading.
    lock: Option<Box<dyn FileLock>>,
}

impl BackupStore {
    /// Opens the store in a directory, or makes it there, and removes what a crash left in it.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] for a file and for a directory of something else;
    /// [`ErrorKind::Locked`] while somebody else has it open for writing;
    /// [`ErrorKind::Corruption`], [`ErrorKind::Unsupported`]; what the disk refuses.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        BackupStore::open_in(path, World::system())
    }

    /// Opens a store in a world of the caller's.
    ///
    /// # Errors
    /// As [`BackupStore::open`].
    pub fn open_in(path: impl AsRef<Path>, world: World) -> Result<Self> {
        let path = &*world.files.absolute(path.as_ref())?;
        make_directory(path, &*world.files)?;
        check_place(path, &*world.files)?;
        let lock = world.files.lock_directory(&StoreName::Lock.path(path))?;
        let identity = match read_identity(&*world.files, path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let store_id = world.environment.random_u128();
                let identity = StoreIdentity { store_id, next_backup: 1, features: Features::NONE };
                write_durably(&*world.files, path, StoreName::Store, &identity.encode())?;
                identity
            }
            found => found?,
        };
        let at_store = |error: Error| error.in_file(StoreName::Store.path(path));
        identity.features.check_writable(Features::NONE, "backup store").map_err(at_store)?;
        let backups = list_backups(&*world.files, path)?;
        let store =
            BackupStore { world, path: path.to_path_buf(), identity, backups, lock: Some(lock) };
        store.sweep()?;
        Ok(store)
    }

    /// Opens a store for listing, verifying and restoring. Nothing in it is changed, no lock is
    /// taken: it may be on a medium that cannot be written.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] where there is no store; else as [`BackupStore::open`].
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self> {
        BackupStore::open_read_only_in(path, World::system())
    }

    /// Opens a store for reading in a world of the caller's.
    ///
    /// # Errors
    /// As [`BackupStore::open_read_only`].
    pub fn open_read_only_in(path: impl AsRef<Path>, world: World) -> Result<Self> {
        let path = &*world.files.absolute(path.as_ref())?;
        let identity = read_identity(&*world.files, path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                Error::new(ErrorKind::NotFound, "there is no backup store").in_file(path)
            }
            _ => error,
        })?;
        let backups = list_backups(&*world.files, path)?;
        Ok(BackupStore { world, path: path.to_path_buf(), identity, backups, lock: None })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The numbers of its backups, oldest first.
    pub fn ids(&self) -> Vec<BackupId> {
        self.backups.iter().copied().collect()
    }

    /// The number of the newest backup.
    pub fn latest(&self) -> Option<BackupId> {
        self.backups.last().copied()
    }

    /// What is known of every backup.
    ///
    /// # Errors
    /// None of a single backup: those are in [`BackupList::unreadable`].
    pub fn list(&self) -> Result<BackupList> {
        let mut list = BackupList::default();
        let mut users: HashMap<StoreName, u32> = HashMap::new();
        let mut files = Vec::new();
        for backup in &self.backups {
            match self.meta(*backup) {
                Ok(meta) => {
                    let needed = meta.files();
                    let own: Vec<_> =
                        needed.iter().map(|file| (file.name, file.pieces.size_bytes)).collect();
                    own.iter().for_each(|(name, _)| *users.entry(*name).or_default() += 1);
                    files.push(own);
                    list.backups.push(info_of(&meta));
                }
                Err(error) => list.unreadable.push((*backup, error)),
            }
        }
        for (info, files) in list.backups.iter_mut().zip(files) {
            let own = files.iter().filter(|(name, _)| users.get(name) == Some(&1));
            info.own_bytes = own.map(|(_, bytes)| bytes).sum();
        }
        Ok(list)
    }

    /// Deletes a backup, and the files that no other one needs. A crash in the middle leaves the
    /// backup, or files that the next opening removes. While another backup is unreadable, files
    /// stay.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; [`ErrorKind::ReadOnly`] for a store opened for reading; what the
    /// disk refuses.
    pub fn delete(&mut self, id: BackupId) -> Result<()> {
        self.check_writable()?;
        self.check_there(id)?;
        self.forget(id)?;
        self.sweep()
    }

    /// Deletes all backups but the newest `keep`; gives the numbers of the deleted ones.
    ///
    /// # Errors
    /// As [`BackupStore::delete`].
    pub fn purge(&mut self, keep: usize) -> Result<Vec<BackupId>> {
        self.check_writable()?;
        let old: Vec<_> = self.backups.iter().rev().skip(keep).copied().collect();
        // The newest of them first would leave holes where a crash comes.
        let old: Vec<_> = old.into_iter().rev().collect();
        for id in &old {
            self.forget(*id)?;
        }
        if !old.is_empty() {
            self.sweep()?;
        }
        Ok(old)
    }

    /// Removes a backup's description, durably; its files are nobody's then.
    fn forget(&mut self, id: BackupId) -> Result<()> {
        let files = &*self.world.files;
        if self.next_backup() == id + 1 && self.identity.next_backup <= id {
            // Nothing that is there would tell any more that the number was given out.
            let next = StoreIdentity { next_backup: id + 1, ..self.identity };
            write_durably(files, &self.path, StoreName::Store, &next.encode())?;
            self.identity = next;
        }
        files.remove(&StoreName::Backup(id).path(&self.path))?;
        self.backups.remove(&id);
        files.sync_directory(&self.path)
    }

    /// Removes what no backup needs: the rest of deleted ones, and what a crash left.
    fn sweep(&self) -> Result<()> {
        let mut needed: HashSet<StoreName> = HashSet::new();
        let mut all_are_readable = true;
        for backup in &self.backups {
            if planted!(SharedTablesSweptAway) && self.latest() == Some(*backup) {
                continue;
            }
            match self.meta(*backup) {
                Ok(meta) => needed.extend(meta.files().iter().map(|file| file.name)),
                Err(_) => all_are_readable = false,
            }
        }
        let files = &*self.world.files;
        let mut removed = false;
        for path in files.list(&self.path)? {
            let is_garbage = match StoreName::of_path(&path) {
                Some((_, true)) => true,
                Some((name @ (StoreName::Table { .. } | StoreName::Wal { .. }), false)) => {
                    all_are_readable && !needed.contains(&name)
                }
                _ => false,
            };
            if is_garbage {
                files.remove(&self.path.join(path))?;
                removed = true;
            }
        }
        if removed { files.sync_directory(&self.path) } else { Ok(()) }
    }

    /// Reads what a backup consists of.
    fn meta(&self, id: BackupId) -> Result<BackupMeta> {
        let path = StoreName::Backup(id).path(&self.path);
        let bytes = read_small(&*self.world.files, &path, META_SIZE_MAX)?;
        BackupMeta::decode(&bytes, self.identity.store_id, id).map_err(|error| error.in_file(&path))
    }

    fn next_backup(&self) -> BackupId {
        self.identity.next_backup.max(self.latest().map_or(1, |latest| latest + 1))
    }

    fn check_there(&self, id: BackupId) -> Result<()> {
        if self.backups.contains(&id) {
            return Ok(());
        }
        let there = numbers(&self.ids());
        Err(Error::new(ErrorKind::NotFound, format!("there is no backup {id}; there are: {there}"))
            .in_file(&self.path))
    }

    fn check_writable(&self) -> Result<()> {
        match self.lock {
            Some(_) => Ok(()),
            None => {
                let what = "the backup store was opened for reading";
                Err(Error::new(ErrorKind::ReadOnly, what).in_file(&self.path))
            }
        }
    }
}

fn info_of(meta: &BackupMeta) -> BackupInfo {
    let files = meta.files();
    BackupInfo {
        id: meta.backup,
        unix_time_s: meta.unix_time_s,
        sequence: meta.sequence,
        oldest_sequence: meta.oldest_sequence,
        database_id: meta.database_id,
        note: meta.note.clone(),
        files: files.len() as u64,
        bytes: files.iter().map(|file| file.pieces.size_bytes).sum(),
        log_bytes: meta.segments.iter().map(|segment| segment.pieces.size_bytes).sum(),
        copied_bytes: meta.copied_bytes,
        own_bytes: 0,
    }
}

/// `1, 2, 5`, or `none`.
fn numbers(ids: &[BackupId]) -> String {
    match ids {
        [] => "none".to_string(),
        ids => ids.iter().map(BackupId::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// Refuses a directory of something else before anything is made in it.
fn check_place(path: &Path, files: &dyn FileSystem) -> Result<()> {
    if !files.is_directory(path)? {
        return Err(Error::invalid("a backup store is a directory, this is a file").in_file(path));
    }
    let names = files.list(path)?;
    let known: Vec<_> = names.iter().map(|name| StoreName::of_path(name)).collect();
    if known.contains(&Some((StoreName::Store, false))) {
        return Ok(());
    }
    let is_data = |name: &Option<(StoreName, bool)>| match name {
        Some((StoreName::Lock, _)) | None => false,
        Some((_, is_temporary)) => !is_temporary,
    };
    if known.iter().any(is_data) {
        return Err(Error::corruption("there are backups, but no STORE that says whose")
            .in_file(StoreName::Store.path(path)));
    }
    let stranger = names.iter().zip(&known).find(|(name, known)| {
        let name = name.file_name().unwrap_or_default().to_string_lossy();
        known.is_none() && !name.starts_with('.') && name != "lost+found"
    });
    match stranger {
        Some((name, _)) => Err(Error::other_files("backup store", path, name)),
        None => Ok(()),
    }
}

fn list_backups(files: &dyn FileSystem, path: &Path) -> Result<BTreeSet<BackupId>> {
    let names = files.list(path)?;
    let backup = |name: &PathBuf| match StoreName::of_path(name) {
        Some((StoreName::Backup(id), false)) => Some(id),
        _ => None,
    };
    Ok(names.iter().filter_map(backup).collect())
}

fn read_identity(files: &dyn FileSystem, path: &Path) -> Result<StoreIdentity> {
    let path = StoreName::Store.path(path);
    let bytes = read_small(files, &path, 1 << 10)?;
    StoreIdentity::decode(&bytes).map_err(|error| error.in_file(&path))
}

/// Reads a whole file of at most `size_max` bytes.
fn read_small(files: &dyn FileSystem, path: &Path, size_max: u64) -> Result<Vec<u8>> {
    let file = files.open(path, OpenMode::Read)?;
    let length = file.length()?;
    if length > size_max {
        return Err(Error::corruption("the file is too long")
            .in_file(path)
            .expected(format_args!("at most {size_max} bytes"), length));
    }
    read_exact_at(&*file, 0, length as usize)
}

/// Writes a file under its temporary name, its bytes durable.
fn write_temporary(
    files: &dyn FileSystem,
    directory: &Path,
    name: StoreName,
    bytes: &[u8],
) -> Result<()> {
    let file = files.open(&name.temporary_path(directory), OpenMode::CreateOrTruncate)?;
    file.write_at(&[IoSlice::new(bytes)], 0)?;
    file.sync_data()
}

/// Replaces a file as a whole, durably.
fn write_durably(
    files: &dyn FileSystem,
    directory: &Path,
    name: StoreName,
    bytes: &[u8],
) -> Result<()> {
    write_temporary(files, directory, name, bytes)?;
    files.rename(&name.temporary_path(directory), &name.path(directory))?;
    files.sync_directory(directory)
}
