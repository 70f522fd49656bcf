//! Where a command writes: its directories are made, and refused, before anything is measured, so
//! that a wrong path costs no time.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use lithify_lab::records::{self, AnyRecord};

use crate::fault::Fault;

/// The directories of a run.
pub struct Places {
    /// Those that were made for the engines' data, the outermost first.
    made: Vec<PathBuf>,
}

impl Places {
    /// Makes the directories of results and of data. Those of data go again with this value where
    /// they are empty; results stay.
    ///
    /// # Errors
    /// A directory cannot be made or not be written to.
    pub fn make(results: &Path, data: Option<&Path>) -> Result<Places, Fault> {
        make_directory("--results", results)?;
        let Some(data) = data else { return Ok(Places { made: Vec::new() }) };
        let mut made: Vec<PathBuf> =
            data.ancestors().take_while(|place| !place.exists()).map(Path::to_owned).collect();
        made.reverse();
        let places = Places { made };
        make_directory("--data", data)?;
        Ok(places)
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        // One that is not empty is in use, and stays.
        self.made.iter().rev().for_each(|place| drop(fs::remove_dir(place)));
    }
}

fn make_directory(flag: &str, place: &Path) -> Result<(), Fault> {
    let probe = place.join(format!(".lithify-{}", std::process::id()));
    let tried = fs::create_dir_all(place).and_then(|()| File::create(&probe));
    tried
        .and_then(|_| fs::remove_file(&probe))
        .map_err(|error| Fault::usage(format!("{flag} {}: {error}", place.display())))
}

/// Refuses a file that cannot be written because its directory is not there or it is a directory
/// itself.
///
/// # Errors
/// Which of the two.
pub fn require_file_place(flag: &str, file: &Path) -> Result<(), Fault> {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    match parent.filter(|parent| !parent.is_dir()) {
        _ if file.is_dir() => {
            Err(Fault::usage(format!("{flag} {} is a directory", file.display())))
        }
        Some(parent) => Err(Fault::usage(format!(
            "{flag} {}: there is no directory {}",
            file.display(),
            parent.display()
        ))),
        None => Ok(()),
    }
}

/// Refuses directories for results and data that are something else.
pub fn refuse_files<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Result<(), Fault> {
    let is_other = |path: &&Path| match fs::metadata(path) {
        Ok(found) => !found.is_dir(),
        Err(error) => error.kind() == io::ErrorKind::NotADirectory,
    };
    match paths.into_iter().find(is_other) {
        Some(path) => Err(Fault::usage(format!("{} is no directory", path.display()))),
        None => Ok(()),
    }
}

/// Reads a record or the directory of a run. A directory of something else was named wrongly.
pub fn read_record(path: &Path) -> Result<AnyRecord, Fault> {
    AnyRecord::read(path).map_err(|error| match path.is_dir() && !records::is_run(path) {
        true => Fault::usage(error),
        false => Fault::failure(error),
    })
}
