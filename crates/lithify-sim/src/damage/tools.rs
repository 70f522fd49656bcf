//! What the user's tools make of damage: `verify` finds whatever opening and reading stumble over,
//! and `repair` brings nothing back that was never written, says when it may have lost something,
//! and leaves what it was given as it was.
//!
//! Both are slower than opening, so that they see a part of the cases.

use super::judge::{Outcome, is_typed};
use super::sample::{PATH, State, options, read, was_written, world};
use crate::check::Tally;
use crate::digest;
use lithify::fs::{FileSystem, MemoryFileSystem};
use lithify::repair::{RepairOptions, RepairReport, repair_in};
use lithify::verify::{Progress, VerifyOptions, verify_in};
use lithify::{Db, ErrorKind};
use std::ops::ControlFlow;
use std::path::Path;

/// One case in so many is verified.
const VERIFIED_CASES: u64 = 4;

/// One case in so many is repaired.
const REPAIRED_CASES: u64 = 32;

/// Where a database is repaired to.
const REPAIRED: &str = "/repaired";

/// Lets the tools see a damaged database that nobody has opened since.
///
/// # Errors
/// What they must not do.
pub fn attempt(
    case: u64,
    files: &MemoryFileSystem,
    states: &[State],
    outcome: &Outcome,
    tally: &mut Tally,
) -> Result<(), String> {
    // The places in the files that the cases visit have no period of their own.
    if case.is_multiple_of(VERIFIED_CASES) {
        verified(files, outcome)?;
        tally.count("verified", 1);
    }
    if case.is_multiple_of(REPAIRED_CASES) {
        let is_lossless = repaired(files, states)?;
        tally.count("repaired", 1);
        tally.count("repaired without a loss", u64::from(is_lossless));
    }
    Ok(())
}

fn go_on(_: &Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn verified(files: &MemoryFileSystem, outcome: &Outcome) -> Result<(), String> {
    let before = files.fingerprint();
    let report = verify_in(PATH, &VerifyOptions::default(), &world(files, 2), &mut go_on);
    if files.fingerprint() != before {
        return Err("verify changed the files".to_string());
    }
    let is_sound = match report {
        Ok(report) => report.is_sound(),
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        Err(error) => return Err(format!("verify gave up: {error}")),
    };
    match outcome {
        Outcome::Detected(error) if is_sound => {
            Err(format!("verify calls it sound, but opening and reading tell: {error}"))
        }
        _ => Ok(()),
    }
}

/// The names and bytes of the damaged database.
fn fingerprint(files: &MemoryFileSystem) -> Result<u64, String> {
    let directory = Path::new(PATH);
    let names = files.list(directory).map_err(|error| error.to_string())?;
    names.iter().try_fold(0, |sum, name| {
        let bytes = read(files, &directory.join(name)).map_err(|error| error.to_string())?;
        let name = digest::of_bytes(sum, name.as_os_str().as_encoded_bytes());
        Ok(digest::of_bytes(name, &bytes))
    })
}

/// Repairs; gives whether nothing is said to be lost.
fn repaired(files: &MemoryFileSystem, states: &[State]) -> Result<bool, String> {
    let before = fingerprint(files)?;
    let world = world(files, 3);
    let settings = RepairOptions { database: options(), ..RepairOptions::default() };
    let report = repair_in(PATH, REPAIRED, &settings, &world, &mut go_on);
    if fingerprint(files)? != before {
        return Err("repair changed the damaged database".to_string());
    }
    let report = match report {
        Ok(report) => report,
        Err(error) if is_typed(&error) || error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(format!("repair gave up: {error}")),
    };
    let db = Db::open_in(REPAIRED, options(), world)
        .map_err(|error| format!("what was repaired does not open: {error}"))?;
    let saved = rows(&db).map_err(|error| format!("what was repaired cannot be read: {error}"))?;
    judge(&report, &saved, states)
}

/// A column family by its name, and its rows in order.
type SavedFamily = (String, Vec<(Vec<u8>, Vec<u8>)>);

/// All rows of all families.
fn rows(db: &Db) -> lithify::Result<Vec<SavedFamily>> {
    let mut families = Vec::new();
    for name in db.column_family_names() {
        let Some(family) = db.existing_column_family(&name)? else { continue };
        let mut rows = Vec::new();
        let mut cursor = family.cursor(..)?;
        while cursor.next()? {
            rows.push((cursor.key().to_vec(), cursor.value().to_vec()));
        }
        families.push((name, rows));
    }
    Ok(families)
}

fn judge(report: &RepairReport, saved: &[SavedFamily], states: &[State]) -> Result<bool, String> {
    for (name, rows) in saved {
        if let Some((key, _)) = rows.iter().find(|(key, value)| !was_written(key, value)) {
            let key = key.escape_ascii();
            return Err(format!("repair gave {name} a row that nobody wrote: \"{key}\""));
        }
    }
    let is_same = |state: &State| {
        let is_same_family = |(name, rows): &SavedFamily| {
            let content = state.get(name.as_str());
            content.is_some_and(|content| rows.iter().map(|(k, v)| (k, v)).eq(content))
        };
        saved.len() == state.len() && saved.iter().all(is_same_family)
    };
    let is_lossless = report.is_lossless();
    match is_lossless && !states.iter().any(is_same) {
        true => Err("repair says that nothing was lost, and rows are missing or old".to_string()),
        false => Ok(is_lossless),
    }
}
