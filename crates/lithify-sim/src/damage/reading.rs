//! Everything that can be read of a database, and whether it is the truth.
//!
//! A row that is shown must be right, whatever else is damaged; what is not shown must be told of
//! by an error. Reading goes on after an error, for the other rows may still not be wrong.

use super::sample::{PATH, Rows, State, options, world};
use lithify::fs::{MemoryEnvironment, MemoryFileSystem, World};
use lithify::{ColumnFamily, Db, Error};
use std::sync::Arc;

/// What came of reading.
#[derive(Debug)]
pub enum Reading {
    /// Every answer is right.
    Right,
    /// The first error; every answer beside is right.
    Refused(Error),
    /// An answer that no state gives, or no end.
    Wrong(String),
}

/// Rows of one family as far as they could be read, and what ended each way of reading.
struct Seen {
    name: &'static str,
    is_there: bool,
    forwards: Vec<(Vec<u8>, Vec<u8>)>,
    backwards: Vec<(Vec<u8>, Vec<u8>)>,
    /// By key: the value, if that could be read.
    gets: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    is_whole: bool,
}

/// Opens the database and reads all of it in every way; compared with the states that it may have.
pub fn read_everything(files: &MemoryFileSystem, states: &[State]) -> Reading {
    let environment = MemoryEnvironment::new(1);
    let parts = World { environment: Arc::new(environment.clone()), ..world(files, 1) };
    let db = match Db::open_in(PATH, options(), parts) {
        Ok(db) => db,
        Err(error) => return Reading::Refused(error),
    };
    let mut first_error = None;
    let mut seen = Vec::new();
    for (name, rows) in states.iter().rev().flatten() {
        if seen.iter().any(|family: &Seen| family.name == *name) {
            continue;
        }
        seen.push(read_family(&db, name, rows, &mut first_error));
    }
    drop(db);
    if environment.endless_waits() > 0 {
        return Reading::Wrong("a wait without an end".to_string());
    }
    let fits = |state: &&State| seen.iter().all(|family| family.fits(state.get(family.name)));
    match (states.iter().find(fits), first_error) {
        (Some(_), None) => Reading::Right,
        (Some(_), Some(error)) => Reading::Refused(error),
        (None, error) => Reading::Wrong(differences(&seen, states.last(), error)),
    }
}

fn read_family(db: &Db, name: &'static str, rows: &Rows, error: &mut Option<Error>) -> Seen {
    let mut seen = Seen {
        name,
        is_there: false,
        forwards: Vec::new(),
        backwards: Vec::new(),
        gets: Vec::new(),
        is_whole: false,
    };
    let family = match db.existing_column_family(name) {
        Ok(Some(family)) => family,
        Ok(None) => return seen,
        Err(found) => {
            error.get_or_insert(found);
            return seen;
        }
    };
    seen.is_there = true;
    let forwards = walk(&family, true, &mut seen.forwards);
    let backwards = walk(&family, false, &mut seen.backwards);
    let keys = rows.keys().map(Vec::as_slice);
    let mut gets = Ok(());
    for key in keys.chain([&b"rock0006"[..], b"rock0034", b"once", b"zircon"]) {
        match family.get(key) {
            Ok(value) => seen.gets.push((key.to_vec(), value.map(|value| value.to_vec()))),
            Err(found) => gets = Err(found),
        }
    }
    let ended = forwards.and(backwards).and(gets);
    seen.is_whole = ended.is_ok();
    if let Err(found) = ended {
        error.get_or_insert(found);
    }
    seen
}

fn walk(
    family: &ColumnFamily,
    is_forward: bool,
    rows: &mut Vec<(Vec<u8>, Vec<u8>)>,
) -> Result<(), Error> {
    let mut cursor = family.cursor(..)?;
    while if is_forward { cursor.next()? } else { cursor.prev()? } {
        rows.push((cursor.key().to_vec(), cursor.value().to_vec()));
    }
    Ok(())
}

impl Seen {
    /// Whether everything that was shown is so in a state, and all of it if nothing was refused.
    fn fits(&self, state: Option<&Rows>) -> bool {
        let Some(rows) = state else { return !self.is_there };
        if !self.is_there {
            return false;
        }
        let is_row = |(key, value): &(Vec<u8>, Vec<u8>)| rows.get(key) == Some(value);
        let counts = [self.forwards.len(), self.backwards.len()];
        let is_complete = !self.is_whole || counts == [rows.len(); 2];
        // Rows in order from an end are right if there is no other one between them.
        let forwards = rows.iter().zip(&self.forwards).all(|(row, seen)| *row.0 == seen.0);
        let backwards = rows.iter().rev().zip(&self.backwards).all(|(row, seen)| *row.0 == seen.0);
        is_complete
            && forwards
            && backwards
            && self.forwards.iter().chain(&self.backwards).all(is_row)
            && self.gets.iter().all(|(key, value)| rows.get(key) == value.as_ref())
    }
}

/// The first thing that is not as in the last state.
fn differences(seen: &[Seen], state: Option<&State>, error: Option<Error>) -> String {
    let state = state.cloned().unwrap_or_default();
    let families = seen.iter().find(|family| !family.fits(state.get(family.name)));
    let what = families.map_or("no state fits all families".to_string(), |family| {
        let rows = state.get(family.name).cloned().unwrap_or_default();
        let get = family.gets.iter().find(|(key, value)| rows.get(key) != value.as_ref());
        format!(
            "family {} (there: {}): {} rows forwards, {} backwards of {}; wrong get: {:?}",
            family.name,
            family.is_there,
            family.forwards.len(),
            family.backwards.len(),
            rows.len(),
            get.map(|(key, value)| (key.escape_ascii().to_string(), value.is_some())),
        )
    });
    match error {
        Some(error) => format!("{what}; beside the error: {error}"),
        None => what,
    }
}
