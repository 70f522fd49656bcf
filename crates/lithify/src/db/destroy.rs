//! Removing a whole database.
//!
//! Owns nothing. Only what the engine itself made in a directory goes: a wrong path costs nobody a file.

use crate::db::Db;
use crate::fs::{FileSystem, OpenMode, World};
use crate::manifest::{CURRENT_MAGIC, DirectoryListing, FileName, READERS_DIRECTORY, Readers};
use crate::{Error, ErrorKind, Result};
use std::path::Path;

impl Db {
    /// Removes the database in a directory: its own files, and the directory if nothing else is in it.
    /// `CURRENT` goes last, so that a removal that was cut short can be done again.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("rocks");
    /// let db = lithify::Db::open(&path, lithify::Options::default())?;
    /// db.put("basalt", "igneous")?;
    /// db.close()?;
    /// lithify::Db::destroy(&path)?;
    /// assert!(!path.exists());
    /// # Ok::<(), lithify::Error>(())
    /// ```
    ///
    /// # Errors
    /// Nothing is removed then: [`ErrorKind::NotFound`] for no database, [`ErrorKind::InvalidArgument`]
    /// for one of another engine, [`ErrorKind::Locked`] for one that somebody has open. What removing
    /// meets: call again.
    pub fn destroy(path: impl AsRef<Path>) -> Result<()> {
        destroy(path.as_ref(), &*World::system().files)
    }
}

fn destroy(path: &Path, files: &dyn FileSystem) -> Result<()> {
    let current = FileName::Current.path(path);
    if !files.exists(&current)? {
        return Err(Error::new(ErrorKind::NotFound, "there is no database").in_file(path));
    }
    check_ours(&current, files)?;
    let lock = files.lock_directory(&FileName::Lock.path(path))?;
    if Readers::look(files, path)?.count > 0 {
        let what = "a process reads the database: close it there first";
        return Err(Error::new(ErrorKind::Locked, what).in_file(path));
    }
    let is_last = |name: &FileName| matches!(name, FileName::Current | FileName::Lock);
    for name in DirectoryListing::read(files, path)?.names.iter().filter(|name| !is_last(name)) {
        files.remove(&name.path(path))?;
    }
    let readers = path.join(READERS_DIRECTORY);
    if files.exists(&readers)? {
        // It stays where somebody else put something.
        let _ = files.remove_directory(&readers);
    }
    files.remove(&current)?;
    files.remove(&FileName::Lock.path(path))?;
    drop(lock);
    if files.list(path)?.is_empty() {
        files.remove_directory(path)?;
    }
    Ok(())
}

/// Refuses a `CURRENT` that the engine has not written.
fn check_ours(current: &Path, files: &dyn FileSystem) -> Result<()> {
    let mut magic = [0; CURRENT_MAGIC.len()];
    let read_bytes = files.open(current, OpenMode::Read)?.read_at(&mut magic, 0)?;
    if read_bytes == magic.len() && magic == *CURRENT_MAGIC {
        return Ok(());
    }
    Err(Error::invalid("this is not a database of Lithify").in_file(current))
}

#[cfg(test)]
mod tests {
    use crate::{Db, ErrorKind, Options};
    use std::fs;

    #[test]
    fn only_what_the_engine_made_goes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rocks");
        let kind = |path: &std::path::Path| Db::destroy(path).map_err(|error| error.kind());
        assert_eq!(kind(&path), Err(ErrorKind::NotFound));
        let db = Db::open(&path, Options::default()).unwrap();
        db.put("basalt", "igneous").unwrap();
        db.flush().unwrap();
        assert_eq!(kind(&path), Err(ErrorKind::Locked));
        let reader = Db::open_read_only(&path, Options::default()).unwrap();
        db.close().unwrap();
        assert_eq!(kind(&path), Err(ErrorKind::Locked), "a reader has it");
        assert!(path.join("CURRENT").exists());
        drop(reader);
        fs::write(path.join("letter"), "mine").unwrap();
        assert_eq!(kind(&path), Ok(()));
        let left: Vec<_> = fs::read_dir(&path).unwrap().flatten().map(|e| e.file_name()).collect();
        assert_eq!(left, ["letter"]);
        fs::write(path.join("CURRENT"), "MANIFEST-000001\n").unwrap();
        fs::write(path.join("000005.sst"), "a table of another engine").unwrap();
        assert_eq!(kind(&path), Err(ErrorKind::InvalidArgument));
        assert!(path.join("000005.sst").exists());
    }
}
