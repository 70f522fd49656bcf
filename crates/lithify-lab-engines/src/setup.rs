//! Getting the libraries of engines, and where they are kept.
//!
//! Owns: a directory outside of any build tree (`LITHIFY_ENGINES`, else
//! `$XDG_CACHE_HOME/lithify/engines`, else `~/.cache/lithify/engines`), and fetching into it with
//! the package manager that the engine is published for. Promises: a library that is there was
//! loaded and tried; it gets its name as the last step.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use lithify_lab::adapter::{EngineError, EngineResult};
use lithify_lab::run::cell::EngineSettings;

use crate::rocksdb;

/// The version of RocksDB that is fetched when none is named.
pub const ROCKSDB_DEFAULT_VERSION: &str = "11.8.1";

/// The versions that can be fetched, with their packages: newer ones hold the libraries of all
/// systems, older ones have a smaller package with one.
const ROCKSDB_PACKAGES: [(&str, &str); 2] = [
    ("11.8.1", "org.rocksdb:rocksdbjni:11.8.1"),
    ("10.4.2", "org.rocksdb:rocksdbjni:10.4.2:jar:linux64"),
];

/// The library in the package, for the processor that this program was built for.
const ROCKSDB_LIBRARY: &str = if cfg!(target_arch = "aarch64") {
    "librocksdbjni-linux-aarch64.so"
} else {
    "librocksdbjni-linux64.so"
};

/// A library is smaller than this.
const LIBRARY_BYTES_MAX: u64 = 256 << 20;

/// Where libraries are kept.
///
/// # Errors
/// Neither of the variables is set that lead there.
pub fn directory() -> EngineResult<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(directory) = variable("LITHIFY_ENGINES") {
        return Ok(directory.into());
    }
    let cache = variable("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".cache")));
    cache.map(|cache| cache.join("lithify").join("engines")).ok_or_else(|| {
        EngineError::fatal("set LITHIFY_ENGINES to a directory for the libraries of engines")
    })
}

/// Where the library of a version is, or will be.
///
/// # Errors
/// As [`directory`].
pub fn library_path(engine: &str, version: &str) -> EngineResult<PathBuf> {
    Ok(library_in(&directory()?, engine, version))
}

fn library_in(directory: &Path, engine: &str, version: &str) -> PathBuf {
    directory.join(format!("{engine}-{version}")).join(format!("lib{engine}.so"))
}

fn failed(path: &Path, error: impl std::fmt::Display) -> EngineError {
    EngineError::fatal(format!("{}: {error}", path.display()))
}

/// Fetches a version of RocksDB into `directory` and tries it; gives the library's path.
///
/// # Errors
/// A version that is not known, no Maven, no such package, a library that does not work.
pub fn fetch_rocksdb(directory: &Path, version: &str) -> EngineResult<PathBuf> {
    let Some((_, package)) = ROCKSDB_PACKAGES.iter().find(|(known, _)| *known == version) else {
        let known: Vec<&str> = ROCKSDB_PACKAGES.iter().map(|(known, _)| *known).collect();
        return Err(EngineError::fatal(format!(
            "version {version} of RocksDB is not known here; there are: {}",
            known.join(", ")
        )));
    };
    let library = library_in(directory, "rocksdb", version);
    let home = library.parent().unwrap_or(directory);
    let work = home.join("setup");
    let cleared = fs::remove_dir_all(&work);
    if let Err(error) = cleared
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(failed(&work, error));
    }
    fs::create_dir_all(&work).map_err(|error| failed(&work, error))?;
    let result = fetch_and_try(&work, package, version, &library);
    // What was left behind is removed by the next setup.
    let _ = fs::remove_dir_all(&work);
    result.map(|()| library)
}

fn fetch_and_try(work: &Path, package: &str, version: &str, library: &Path) -> EngineResult<()> {
    fetch_with_maven(work, package)?;
    let archive = the_jar(work)?;
    let fresh = work.join("library.so");
    extract(&archive, ROCKSDB_LIBRARY, &fresh)?;
    let found = rocksdb::try_library(&fresh, &work.join("trial"), &EngineSettings::small())?;
    if found != version {
        return Err(EngineError::fatal(format!(
            "the package {package} holds RocksDB {found}, not {version}"
        )));
    }
    fs::rename(&fresh, library).map_err(|error| failed(library, error))
}

/// Lets Maven copy a package into `directory`, by its name.
fn fetch_with_maven(directory: &Path, package: &str) -> EngineResult<()> {
    let output = Command::new("mvn")
        .args(["--batch-mode", "--quiet", "dependency:copy"])
        .arg(format!("-Dartifact={package}"))
        .arg(format!("-DoutputDirectory={}", directory.display()))
        .current_dir(directory)
        .output()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => EngineError::fatal(
                "Maven (mvn) is not installed; it fetches the package. With Debian: apt-get \
                 install maven",
            ),
            _ => EngineError::fatal(format!("mvn: {error}")),
        })?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let first = said.lines().find(|line| line.contains("ERROR")).unwrap_or("it gave no reason");
    Err(EngineError::fatal(format!("mvn could not fetch {package}: {}", first.trim())))
}

fn the_jar(directory: &Path) -> EngineResult<PathBuf> {
    let entries = fs::read_dir(directory).map_err(|error| failed(directory, error))?;
    let is_jar = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "jar");
    let jar = entries.flatten().map(|entry| entry.path()).find(is_jar);
    jar.ok_or_else(|| failed(directory, "mvn left no jar"))
}

/// Unpacks one file of an archive.
fn extract(archive: &Path, name: &str, target: &Path) -> EngineResult<()> {
    let file = File::open(archive).map_err(|error| failed(archive, error))?;
    let mut zip = zip::ZipArchive::new(file).map_err(|error| failed(archive, error))?;
    let entry = zip
        .by_name(name)
        .map_err(|error| failed(archive, format_args!("{name} in it: {error}")))?;
    let mut output = File::create(target).map_err(|error| failed(target, error))?;
    let copied = io::copy(&mut entry.take(LIBRARY_BYTES_MAX), &mut output)
        .map_err(|error| failed(target, error))?;
    if copied >= LIBRARY_BYTES_MAX {
        return Err(failed(archive, format_args!("{name} in it is larger than a library")));
    }
    output.sync_all().map_err(|error| failed(target, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_version_names_the_known_ones() {
        let directory = tempfile::tempdir().expect("a directory");
        let error = fetch_rocksdb(directory.path(), "1.0").expect_err("is unknown").to_string();
        assert_eq!(error, "version 1.0 of RocksDB is not known here; there are: 11.8.1, 10.4.2");
        assert_eq!(fs::read_dir(directory.path()).expect("is there").count(), 0);
    }

    #[test]
    fn one_file_of_an_archive_and_what_is_no_archive() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        fs::write(path("a.jar"), "no archive").expect("is written");
        assert_eq!(the_jar(directory.path()).expect("is there"), path("a.jar"));
        let error = extract(&path("a.jar"), "x", &path("x")).expect_err("is none");
        assert!(error.to_string().contains("a.jar"), "{error}");
        fs::remove_file(path("a.jar")).expect("is removed");
        assert!(the_jar(directory.path()).expect_err("is gone").to_string().contains("no jar"));
    }
}
