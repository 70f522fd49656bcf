//! What the rows of a worker must be.

use lithify::{ColumnFamily, Db};
use std::collections::BTreeMap;

/// The column families that stay.
pub(super) const FAMILIES: [&str; 2] = ["a", "b"];

/// The one that is dropped and made again.
pub(super) const SCRATCH: &str = "scratch";

/// What was acknowledged of a row: the number of the call, and what kind of call it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) number: u64,
    pub(super) by: &'static str,
}

/// Rows by key.
pub(super) type Rows = BTreeMap<Vec<u8>, Known>;

/// All rows of one worker.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    /// Those of the families that stay.
    pub(super) families: [Rows; FAMILIES.len()],
    /// Those of the other one, and which making of it they are of.
    pub(super) scratch: (u64, Rows),
}

/// The number in a value.
pub(super) fn number(value: &[u8]) -> u64 {
    value.first_chunk().map_or(0, |number| u64::from_le_bytes(*number))
}

/// A value with that number.
pub(super) fn value(number: u64, length: usize) -> Vec<u8> {
    let mut value = number.to_le_bytes().to_vec();
    let filler = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    while value.len() < length {
        value.extend(filler.map(|byte| byte.wrapping_add(value.len() as u8)));
    }
    value
}

pub(super) fn text(error: lithify::Error) -> String {
    error.to_string()
}

fn compare(family: &ColumnFamily, expected: &Rows) -> Result<u64, String> {
    let mut found = BTreeMap::new();
    let mut cursor = family.cursor(..).map_err(text)?;
    while cursor.next().map_err(text)? {
        found.insert(cursor.key().to_vec(), number(cursor.value()));
    }
    let number_of = |key: &Vec<u8>| expected.get(key).map(|known| known.number);
    let differs = |key: &&Vec<u8>| found.get(*key).copied() != number_of(key);
    let keys = || expected.keys().chain(found.keys().filter(|key| !expected.contains_key(*key)));
    let Some(first) = keys().find(differs) else { return Ok(found.len() as u64) };
    Err(format!(
        "{} rows of family {:?} differ; the first is {:?}: {:?} is there, {:?} was acknowledged",
        keys().filter(differs).count(),
        family.name(),
        String::from_utf8_lossy(first),
        found.get(first),
        expected.get(first),
    ))
}

/// Compares all rows of a database with what the workers know; gives how many there are.
pub(super) fn compare_all(db: &Db, ledgers: &[Ledger], making: u64) -> Result<u64, String> {
    let mut compared = 0;
    for (slot, name) in FAMILIES.iter().enumerate() {
        let family = db.existing_column_family(name).map_err(text)?;
        let family = family.ok_or_else(|| format!("column family {name:?} is gone"))?;
        let own = ledgers.iter().flat_map(|ledger| ledger.families[slot].clone());
        compared += compare(&family, &own.collect())?;
    }
    let scratch = db.existing_column_family(SCRATCH).map_err(text)?;
    let scratch = scratch.ok_or_else(|| format!("column family {SCRATCH:?} is gone"))?;
    let newest = ledgers.iter().filter(|ledger| ledger.scratch.0 == making);
    let own = newest.flat_map(|ledger| ledger.scratch.1.clone());
    Ok(compared + compare(&scratch, &own.collect())?)
}
