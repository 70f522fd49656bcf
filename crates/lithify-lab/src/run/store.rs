//! Results on disk: one directory per run, one JSON per cell, written whole or not at all.
//!
//! ```text
//! results/runs/NAME/plan.json     what is measured, and of which kind it is
//! results/runs/NAME/CELL.json     a finished cell
//! results/runs/NAME/CELL.log      what the process of the cell said
//! results/runs/NAME/seconds.json  how long cells took, for estimates
//! results/NAME.json .csv .txt .html    the report
//! ```

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RunError;

/// What is measured, in the directory of a run.
pub(crate) const PLAN_FILE: &str = "plan.json";

/// Held while a run writes.
const LOCK_FILE: &str = "lock";

/// What a plan asks for: without its head, and without the builds that were to measure it.
fn settings_of(mut plan: Value) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                ["record", "build"].iter().for_each(|name| drop(fields.remove(*name)));
                fields.values_mut().for_each(strip);
            }
            Value::Array(values) => values.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut plan);
    plan
}

/// What stands at the top of a record, and of the plan in the directory of its run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordHead {
    /// The name of its kind.
    pub kind: String,
    /// The version of its kind's JSON.
    pub schema: u32,
}

/// Something with its head.
#[derive(Serialize)]
pub(crate) struct Headed<'a, R> {
    /// Of which kind it is.
    pub(crate) record: &'a RecordHead,
    /// What it says.
    #[serde(flatten)]
    pub(crate) rest: &'a R,
}

/// The directory of a run, locked against a second one.
pub struct Store {
    directory: PathBuf,
    _lock: Flock<File>,
}

impl Store {
    /// Opens or creates the directory of a run and locks it.
    ///
    /// # Errors
    /// A path that is a file, a directory that cannot be written, a run in progress.
    pub fn open(results: &Path, run: &str) -> Result<Store, RunError> {
        let directory = results.join("runs").join(run);
        fs::create_dir_all(&directory).map_err(|error| RunError::io(&directory, error))?;
        let lock_path = directory.join(LOCK_FILE);
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock_path)
            .map_err(|error| RunError::io(&lock_path, error))?;
        let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|_| {
            RunError::new(format!("{}: another run is writing here", directory.display()))
        })?;
        Ok(Store { directory, _lock: lock })
    }

    /// Where the cells' files are.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The result of a cell.
    pub fn result_path(&self, id: &str) -> PathBuf {
        self.directory.join(format!("{id}.json"))
    }

    /// What the process of a cell said.
    pub fn log_path(&self, id: &str) -> PathBuf {
        self.directory.join(format!("{id}.log"))
    }

    /// Writes down what is measured, with its kind.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_plan(&self, head: &RecordHead, plan: &impl Serialize) -> Result<(), RunError> {
        write_json(&self.directory.join(PLAN_FILE), &Headed { record: head, rest: plan })
    }

    /// Whether a plan was kept here that asks for something else, be it measured by any build.
    pub(crate) fn has_other_plan(&self, plan: &impl Serialize) -> bool {
        let Ok(text) = fs::read_to_string(self.directory.join(PLAN_FILE)) else { return false };
        let kept = serde_json::from_str(&text).map(settings_of);
        let wanted = serde_json::to_value(plan).map(settings_of);
        matches!((kept, wanted), (Ok(kept), Ok(wanted)) if kept != wanted)
    }

    /// Moves the files of the run here into a directory of their own beside this one, which it gives.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn set_aside(&self) -> Result<PathBuf, RunError> {
        let name = self.directory.file_name().unwrap_or_default().to_string_lossy();
        let beside = |number| self.directory.with_file_name(format!("{name}-before-{number}"));
        let (mut number, mut to) = (1, beside(1));
        while to.exists() {
            number += 1;
            to = beside(number);
        }
        let moved = || -> io::Result<()> {
            fs::create_dir(&to)?;
            for entry in fs::read_dir(&self.directory)? {
                let entry = entry?;
                let name = entry.file_name();
                if entry.file_type()?.is_file() && name != LOCK_FILE {
                    fs::rename(entry.path(), to.join(name))?;
                }
            }
            Ok(())
        };
        moved().map_err(|error| RunError::io(&to, error))?;
        Ok(to)
    }

    /// Removes the results of the cells of these names.
    ///
    /// # Errors
    /// A file that cannot be removed.
    pub fn forget(&self, cells: impl Iterator<Item = String>) -> Result<(), RunError> {
        for id in cells {
            for path in [self.result_path(&id), self.log_path(&id)] {
                match fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(RunError::io(&path, error));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

/// How long cells took, beside their results.
const SECONDS_FILE: &str = "seconds.json";

/// How long the cells of the run in `directory` took, by their names; those of other builds too.
/// Nothing where that was not kept.
pub fn read_seconds(directory: &Path) -> BTreeMap<String, f64> {
    let text = fs::read_to_string(directory.join(SECONDS_FILE)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Keeps how long a cell took. Only estimates are made of it: one that cannot be kept is no error.
pub(crate) fn note_seconds(directory: &Path, id: &str, seconds: f64) {
    let mut all = read_seconds(directory);
    all.insert(id.to_owned(), seconds);
    let _ = write_json(&directory.join(SECONDS_FILE), &all);
}

/// A file of a report: its name beside the others, and what is in it.
pub type ReportFile = (String, String);

/// Writes the files of a report into `results`, in their order. Gives their paths.
///
/// # Errors
/// A file that cannot be written.
pub fn write_files(results: &Path, files: &[ReportFile]) -> Result<Vec<PathBuf>, RunError> {
    fs::create_dir_all(results).map_err(|error| RunError::io(results, error))?;
    let write = |(name, text): &ReportFile| {
        let path = results.join(name);
        write_atomically(&path, text.as_bytes())?;
        Ok(path)
    };
    files.iter().map(write).collect()
}

/// Writes a file so that it is there whole or not at all.
///
/// # Errors
/// The operating system's.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.new"));
    let write = || -> io::Result<()> {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    write().map_err(|error| {
        // The half-written file is of no use; the error that counts is the first one.
        let _ = fs::remove_file(&temporary);
        RunError::io(path, error)
    })
}

/// Writes a value as indented JSON, atomically.
///
/// # Errors
/// The operating system's.
pub fn write_json(path: &Path, value: &impl serde::Serialize) -> Result<(), RunError> {
    let mut text = serde_json::to_string_pretty(value)
        .map_err(|error| RunError::new(format!("{}: {error}", path.display())))?;
    text.push('\n');
    write_atomically(path, text.as_bytes())
}
