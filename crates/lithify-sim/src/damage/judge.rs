//! What damage must lead to: a typed error that names the file and the place, or nothing at all
//! where there is a reason for that.

use super::reading::{Reading, read_everything};
use super::sample::{PATH, State};
use super::structure::{Kind, Structure};
use lithify::fs::MemoryFileSystem;
use lithify::inspect::{DumpOptions, dump};
use lithify::{Error, ErrorKind};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Most bytes that opening and reading a sample may take at once: a few times its memory budget.
const ALLOCATED_BYTES_MAX: usize = 64 << 20;

/// What came of damage.
#[derive(Debug)]
pub enum Outcome {
    /// It was told of.
    Detected(Error),
    /// It changed nothing.
    Harmless,
}

/// Opens and reads a damaged copy.
///
/// # Errors
/// What must not be: a wrong answer, a panic, a hang, an allocation out of bounds.
pub fn attempt(files: &MemoryFileSystem, states: &[State]) -> Result<Outcome, String> {
    let read = AssertUnwindSafe(|| read_everything(files, states));
    let (caught, peak_bytes) = crate::fuzz::allocation::peak_of(|| catch_unwind(read));
    let reading =
        caught.map_err(|panic| format!("a panic: {}", crate::check::panic_text(&*panic)))?;
    if peak_bytes > ALLOCATED_BYTES_MAX {
        return Err(format!("{peak_bytes} bytes allocated at once"));
    }
    match reading {
        Reading::Right => Ok(Outcome::Harmless),
        Reading::Refused(error) => Ok(Outcome::Detected(error)),
        Reading::Wrong(what) => Err(format!("a wrong answer: {what}")),
    }
}

/// The innermost error that names a file of the database.
pub fn named_place(error: &Error) -> Option<(&Error, &Path)> {
    let mut place = None;
    let mut current: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(this) = current {
        if let Some(error) = this.downcast_ref::<Error>()
            && let Some(path) = error.path().filter(|path| path.starts_with(PATH))
        {
            place = Some((error, path));
        }
        current = this.source();
    }
    place
}

/// Whether an error is of a kind that damage may have.
pub fn is_typed(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Unsupported)
}

/// Compares what came of damage to one structure of one file with what must.
///
/// # Errors
/// How they differ.
pub fn check_place(
    outcome: &Outcome,
    files: &MemoryFileSystem,
    name: &str,
    structure: &Structure,
) -> Result<(), String> {
    let kind: &Kind = structure.kind;
    match outcome {
        Outcome::Detected(error) => check_error(error, &[name], Some(&structure.place)),
        Outcome::Harmless if !kind.why_harmless.is_empty() => Ok(()),
        Outcome::Harmless => {
            let path = Path::new(PATH).join(name);
            let dumped = dump(files, &path, &DumpOptions::default(), &mut |_| Ok(()));
            let told = match dumped {
                Ok(()) => "nor does inspecting the file".to_string(),
                Err(error) => format!("inspecting the file tells: {error}"),
            };
            Err(format!("nothing noticed damage to: {}; {told}", kind.name))
        }
    }
}

/// Whether an error is typed and names one of these files, and an offset in the place.
///
/// # Errors
/// What it lacks.
pub fn check_error(
    error: &Error,
    names: &[&str],
    place: Option<&Range<u64>>,
) -> Result<(), String> {
    let told = format!("the error is: {error}");
    if !is_typed(error) {
        return Err(format!("it is not of the kind that damage has; {told}"));
    }
    let Some((inner, path)) = named_place(error) else {
        return Err(format!("no file is named; {told}"));
    };
    if !names.iter().any(|name| path.file_name() == Some(name.as_ref())) {
        return Err(format!("another file is named; {told}"));
    }
    match (inner.offset(), place) {
        (_, None) => Ok(()),
        (Some(offset), Some(place)) if place.contains(&offset) => Ok(()),
        (Some(_), Some(place)) => Err(format!("the offset is not within {place:?}; {told}")),
        (None, Some(_)) => Err(format!("no offset is named; {told}")),
    }
}
