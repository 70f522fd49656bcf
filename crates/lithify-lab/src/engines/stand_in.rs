//! A directory in place of a database's own, for libraries that write where they read.
//!
//! Owns: making it, in the system's directory for temporary files. Promises: nothing is written into the
//! directory that it stands for, whatever the library does: it finds links to files that never change, which it
//! may remove, and copies of the others.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// What becomes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Becomes {
    /// A link to it: it never changes.
    Link,
    /// A copy.
    Copy,
    /// Nothing: it is left out, a directory with all that is in it.
    Nothing,
}

/// Makes a directory that stands for `path`, with its directories; `becomes` is asked for each entry by its
/// path below `path`. Copies may be written, whatever they are copies of. Links to directories are followed. It
/// is removed with what is returned.
///
/// # Errors
/// Something cannot be read or made.
pub fn stand_in(path: &Path, becomes: &dyn Fn(&Path) -> Becomes) -> io::Result<TempDir> {
    let made = tempfile::tempdir()?;
    fill(&path.canonicalize()?, made.path(), Path::new(""), becomes)?;
    Ok(made)
}

fn fill(
    from: &Path,
    to: &Path,
    below: &Path,
    becomes: &dyn Fn(&Path) -> Becomes,
) -> io::Result<()> {
    for entry in fs::read_dir(from.join(below))? {
        let below = below.join(entry?.file_name());
        let (path, to_path) = (from.join(&below), to.join(&below));
        let named = |error: io::Error| io::Error::new(error.kind(), Named(below.clone(), error));
        match becomes(&below) {
            Becomes::Nothing => {}
            _ if path.metadata().map_err(named)?.is_dir() => {
                fs::create_dir(&to_path).map_err(named)?;
                fill(from, to, &below, becomes)?;
            }
            Becomes::Link => symlink(&path, &to_path).map_err(named)?,
            Becomes::Copy => copy(&path, &to_path).map_err(named)?,
        }
    }
    Ok(())
}

/// An error with the file that it is of.
#[derive(Debug)]
struct Named(PathBuf, io::Error);

impl std::error::Error for Named {}

impl std::fmt::Display for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.0.display(), self.1)
    }
}

/// A copy that its owner may write, as a copy of a file that nobody may write is not.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    let mut permissions = to.metadata()?.permissions();
    permissions.set_mode(permissions.mode() | 0o600);
    fs::set_permissions(to, permissions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_into_it_stays_in_it() {
        let own = tempfile::tempdir().unwrap();
        fs::create_dir_all(own.path().join("1/tables")).unwrap();
        for (name, text) in [("1/tables/7", "rows"), ("log", "as it was"), ("lock", "")] {
            fs::write(own.path().join(name), text).unwrap();
        }
        let log = own.path().join("log");
        fs::set_permissions(&log, fs::Permissions::from_mode(0o444)).unwrap();
        symlink(own.path().join("1"), own.path().join("2")).unwrap();
        let becomes = |path: &Path| match path.to_str() {
            Some("lock") => Becomes::Nothing,
            Some("1/tables/7" | "2/tables/7") => Becomes::Link,
            _ => Becomes::Copy,
        };
        let made = stand_in(own.path(), &becomes).unwrap();
        assert_eq!(fs::read_to_string(made.path().join("1/tables/7")).unwrap(), "rows");
        assert_eq!(fs::read_to_string(made.path().join("2/tables/7")).unwrap(), "rows");
        assert!(!made.path().join("lock").exists());
        let mode = made.path().join("log").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644, "a copy may be written");
        fs::write(made.path().join("log"), "changed").unwrap();
        fs::remove_file(made.path().join("1/tables/7")).unwrap();
        assert_eq!(fs::read_to_string(own.path().join("log")).unwrap(), "as it was");
        assert!(own.path().join("1/tables/7").exists());
        let path = made.path().to_owned();
        drop(made);
        assert!(!path.exists());
    }
}
