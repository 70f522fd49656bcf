//! Rows that the caller has in memory.

use std::ops::ControlFlow;

use super::{Facts, Source};
use crate::error::{AdviseError, Result};
use crate::rows::{Row, Rows};
use crate::sample::PLACE_BYTES;

/// Rows of a program that asks for advice, instead of a file's.
///
/// ```
/// use lithify_advisor::input::Memory;
/// use lithify_advisor::rows::{Row, Rows};
/// use lithify_advisor::{Request, Silent, advise_source};
/// let mut rows = Rows::default();
/// for number in 0..2_000_u32 {
///     let value = format!("{{\"number\":{number},\"rock\":\"basalt\"}}");
///     let (key, value) = (&number.to_be_bytes(), value.as_bytes());
///     let data_bytes = (key.len() + value.len()) as u64;
///     rows.push(Row { key, partition_bytes: key.len(), value, data_bytes, file_bytes: 0 });
/// }
/// let mut source = Memory::new(rows, "rows in memory", "number")?;
/// let mut request = Request::new("rows");
/// request.targets = vec![lithify_advisor::target("lithify")?];
/// let advice = advise_source(&mut source, &request, &Silent)?;
/// assert!(advice.targets[0].best().ratio.value < 1.0);
/// # Ok::<(), lithify_advisor::AdviseError>(())
/// ```
pub struct Memory {
    /// Neighbouring rows together, so that a place is found without all that is in front of it.
    pieces: Vec<Rows>,
    facts: Facts,
}

impl Memory {
    /// `format` says what the rows are, `key` what their keys are made of; it is empty where rows are only
    /// numbered.
    ///
    /// # Errors
    /// There is no row.
    pub fn new(rows: Rows, format: &str, key: &str) -> Result<Memory> {
        if rows.is_empty() {
            return Err(AdviseError::usage("there is no row to measure"));
        }
        let facts = Facts {
            format: format.to_owned(),
            data_bytes: rows.data_bytes(),
            files: 1,
            has_rows: true,
            has_bytes: false,
            key: key.to_owned(),
            native: &[],
        };
        Ok(Memory { pieces: rows.split(PLACE_BYTES), facts })
    }
}

impl Source for Memory {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn place(&mut self, share: f64, wanted_bytes: u64) -> Result<Rows> {
        let count = self.pieces.len();
        let first = ((share.clamp(0.0, 1.0) * count as f64) as usize).min(count - 1);
        let mut rows = Rows::default();
        for row in self.pieces[first..].iter().flat_map(Rows::iter) {
            if rows.push_up_to(row, wanted_bytes).is_break() {
                break;
            }
        }
        Ok(rows)
    }

    fn scan(&mut self, each: &mut dyn FnMut(Row<'_>, u64) -> ControlFlow<()>) -> Result<()> {
        let mut done = 0;
        for row in self.pieces.iter().flat_map(Rows::iter) {
            done += row.data_bytes;
            if each(row, done).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The rows are this object's own.
    fn check_unchanged(&self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(count: u64, value_bytes: usize) -> Rows {
        let (mut rows, value) = (Rows::default(), vec![0; value_bytes]);
        for number in 0..count {
            let key = number.to_be_bytes();
            let data_bytes = 8 + value_bytes as u64;
            rows.push(Row {
                key: &key,
                partition_bytes: 8,
                value: &value,
                data_bytes,
                file_bytes: 0,
            });
        }
        rows
    }

    fn first(rows: &Rows) -> u64 {
        let key = rows.iter().next().map_or([0; 8], |row| row.key.try_into().unwrap_or_default());
        u64::from_be_bytes(key)
    }

    #[test]
    fn places_are_spread_and_every_row_is_scanned() {
        let mut memory = Memory::new(rows(1_000, 10_000), "rows", "number").unwrap();
        assert_eq!(memory.facts().data_bytes, 1_000 * 10_008);
        assert_eq!(first(&memory.place(0.0, 1).unwrap()), 0);
        let middle = memory.place(0.5, 50_000).unwrap();
        assert!((460..540).contains(&first(&middle)), "{}", first(&middle));
        assert_eq!(middle.len(), 5);
        assert!(first(&memory.place(1.0, 1).unwrap()) > 900);
        let mut scanned = (0, 0);
        memory
            .scan(&mut |_, done| {
                scanned = (scanned.0 + 1, done);
                ControlFlow::Continue(())
            })
            .unwrap();
        assert_eq!(scanned, (1_000, 1_000 * 10_008));
        assert!(Memory::new(Rows::default(), "rows", "").is_err());
    }
}
