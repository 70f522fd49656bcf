//! A directory in place of a database's own, for libraries that write where they read.
//!
//! Owns: making it, in the system's directory for temporary files. Promises: nothing is written into the
//! directory that it stands for, whatever the library does: it finds links to files that never change, which it
//! may remove, and copies of the others.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

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
/// path. It is removed with what is returned.
///
/// # Errors
/// Something cannot be read or made.
pub fn stand_in(path: &Path, becomes: &dyn Fn(&Path) -> Becomes) -> io::Result<TempDir> {
    let made = tempfile::tempdir()?;
    fill(&path.canonicalize()?, made.path(), becomes)?;
    Ok(made)
}

fn fill(from: &Path, to: &Path, becomes: &dyn Fn(&Path) -> Becomes) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        match becomes(&path) {
            Becomes::Nothing => {}
            _ if entry.file_type()?.is_dir() => {
                fs::create_dir(&to)?;
                fill(&path, &to, becomes)?;
            }
            Becomes::Link => symlink(&path, &to)?,
            Becomes::Copy => {
                fs::copy(&path, &to)?;
            }
        }
    }
    Ok(())
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
        let becomes = |path: &Path| match path.file_name().and_then(|name| name.to_str()) {
            Some("lock") => Becomes::Nothing,
            Some("7") => Becomes::Link,
            _ => Becomes::Copy,
        };
        let made = stand_in(own.path(), &becomes).unwrap();
        assert_eq!(fs::read_to_string(made.path().join("1/tables/7")).unwrap(), "rows");
        assert!(!made.path().join("lock").exists());
        fs::write(made.path().join("log"), "changed").unwrap();
        fs::remove_file(made.path().join("1/tables/7")).unwrap();
        assert_eq!(fs::read_to_string(own.path().join("log")).unwrap(), "as it was");
        assert!(own.path().join("1/tables/7").exists());
        let path = made.path().to_owned();
        drop(made);
        assert!(!path.exists());
    }
}
