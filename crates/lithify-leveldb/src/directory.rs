//! Directories: whose they are, and what is done to whole databases.
//!
//! Promises: a directory of another engine is never touched. A repair puts its result into the place of
//! the damaged database in one step; the damaged one goes only if nothing of it is lost.

use crate::database::Database;
use crate::settings::Settings;
use crate::status::{Class, Status};
use lithify::fs::World;
use lithify::repair::{RepairOptions, repair};
use lithify::{DEFAULT_FAMILY, Db, Error, ErrorKind};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Whose directory it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// No database is in it, or it is not there.
    Nobody,
    /// Lithify's, be it damaged.
    Lithify,
    /// Another engine's, by its name.
    Other(&'static str),
}

impl Owner {
    /// Looks at the names of the files, and at the first bytes of `CURRENT`.
    ///
    /// # Errors
    /// The directory cannot be read, or is none.
    pub fn of(path: &Path) -> io::Result<Owner> {
        let names: Vec<String> = match fs::read_dir(path) {
            Ok(entries) => {
                entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect()
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Owner::Nobody),
            Err(error) => return Err(error),
        };
        let has = |is: fn(&str) -> bool| names.iter().any(|name| is(name));
        let begins_as_leveldb =
            || fs::read(path.join("CURRENT")).is_ok_and(|bytes| bytes.starts_with(b"MANIFEST-"));
        Ok(match has(|name| name == "CURRENT") {
            true if !begins_as_leveldb() => Owner::Lithify,
            true if has(|name| name == "IDENTITY" || name.starts_with("OPTIONS-")) => {
                Owner::Other("RocksDB")
            }
            true => Owner::Other("LevelDB"),
            false if has(|name| name.ends_with(".ldb")) => Owner::Other("LevelDB"),
            false if has(|name| name.ends_with(".wal") || name.ends_with(".sst")) => Owner::Lithify,
            false => Owner::Nobody,
        })
    }
}

/// Refuses another engine's directory.
pub fn foreign(path: &Path, engine: &str) -> Status {
    let path = path.display();
    Status::invalid(format!(
        "{path} is a {engine} database, which Lithify does not open; make a copy that it does: \
         lithify import NEW_DIRECTORY {path} --create"
    ))
}

/// Refuses a database that somebody has open.
///
/// # Errors
/// It is open; the lock cannot be asked for.
pub fn check_unlocked(path: &Path) -> Result<(), Status> {
    let lock = World::system().files.lock_directory(&path.join("LOCK"));
    lock.map(drop).map_err(|error| opening(path, error))
}

/// Refuses a place without a directory around it: LevelDB makes one directory, not several.
///
/// # Errors
/// There is none.
pub fn check_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    match parent.map_or(Ok(true), Path::try_exists)? {
        true => Ok(()),
        false => Err(rustix::io::Errno::NOENT.into()),
    }
}

/// A refusal of the system, in its words, about a file.
pub fn system_failure(path: &Path, error: &io::Error) -> Status {
    // Without the number that Rust puts behind the system's words.
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let text = format!("{}: {text}", path.display());
    match error.kind() {
        io::ErrorKind::NotFound => Status::new(Class::NotFound, text),
        _ => Status::io(text),
    }
}

/// What opening met; a lock has LevelDB's words.
pub fn opening(path: &Path, error: Error) -> Status {
    if error.kind() != ErrorKind::Locked {
        return error.into();
    }
    let lock = path.join("LOCK");
    let (lock, text) = (lock.display(), error.to_string());
    match text.contains("this process") {
        true => Status::io(format!("lock {lock}: already held by process")),
        false => Status::io(format!("lock {lock}: Resource temporarily unavailable ({text})")),
    }
}

/// Removes a database; nothing there is no failure.
///
/// # Errors
/// Somebody has it open; it is another engine's; what removing meets.
pub fn destroy(path: &Path) -> Result<(), Status> {
    let Ok(owner) = Owner::of(path) else {
        // It cannot be read as a directory: LevelDB says nothing either.
        return Ok(());
    };
    match owner {
        Owner::Lithify => Db::destroy(path).map_err(|error| opening(path, error)),
        Owner::Other(engine) => {
            let path = path.display();
            let what = format!("{path} is a {engine} database: Lithify removes its own alone");
            Err(Status::invalid(what))
        }
        Owner::Nobody => {
            // Goes if it is empty.
            let _ = fs::remove_dir(path);
            Ok(())
        }
    }
}

/// Puts what can be saved of a database into its place. Where nothing is, an empty one is made, as
/// LevelDB does.
///
/// # Errors
/// Somebody has it open; it is another engine's; what reading and writing meet. The database is as it
/// was then.
pub fn restore(path: &Path, settings: &Settings) -> Result<(), Status> {
    let refused = |error| system_failure(path, &error);
    match Owner::of(path).map_err(refused)? {
        Owner::Other(engine) => return Err(foreign(path, engine)),
        Owner::Nobody => {
            check_parent(path).map_err(refused)?;
            let settings = Settings { create_if_missing: true, ..settings.clone() };
            Database::open(path, &settings)?.close();
            return Ok(());
        }
        Owner::Lithify => check_unlocked(path)?,
    }
    // The directory itself: links to it stay.
    let path = &path.canonicalize().map_err(refused)?;
    let repaired = beside(path, "repaired");
    let options = RepairOptions { database: settings.database(), ..RepairOptions::default() };
    let report = repair(path, &repaired, &options).map_err(|error| opening(path, error))?;
    let families = &report.families;
    let is_nameless = families.iter().all(|family| family.name != DEFAULT_FAMILY);
    if is_nameless && families.iter().any(|family| family.rows > 0) {
        let what = "no file tells which rows are those of the database: see the column families of";
        let text = format!("{}: {what} {}", path.display(), repaired.display());
        return Err(Status::new(Class::Corruption, text));
    }
    exchange(path, &repaired)?;
    if report.is_lossless() {
        return Db::destroy(&repaired).map_err(Status::from);
    }
    let kept = (1..).map(|number| beside(path, &format!("damaged-{number}")));
    let kept = kept.into_iter().find(|kept| !kept.exists()).unwrap_or_default();
    fs::rename(&repaired, &kept).map_err(|error| system_failure(&kept, &error))
}

/// The name of a directory with a word behind it.
fn beside(path: &Path, word: &str) -> PathBuf {
    let mut name = OsString::from(path.file_name().unwrap_or_default());
    name.push(format!(".{word}"));
    path.with_file_name(name)
}

/// Exchanges two directories in one step, durably.
fn exchange(one: &Path, other: &Path) -> Result<(), Status> {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).map_err(|error| {
        let what = "cannot be put into its place; the repaired database is in";
        let shown = (one.display(), other.display());
        Status::io(format!("{}: {what} {}: {}", shown.0, shown.1, io::Error::from(error)))
    })?;
    let parent = one.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let synced = fs::File::open(parent).and_then(|directory| directory.sync_all());
    synced.map_err(|error| system_failure(parent, &error))
}

/// A directory for tests, which is there afterwards; nothing if it cannot be made.
pub fn for_tests() -> Option<PathBuf> {
    let given = std::env::var_os("TEST_TMPDIR").filter(|given| !given.is_empty());
    let user = rustix::process::geteuid().as_raw();
    let path = given.map_or_else(|| format!("/tmp/leveldbtest-{user}").into(), PathBuf::from);
    let made = fs::create_dir(&path);
    (made.is_ok() || path.is_dir()).then_some(path)
}
