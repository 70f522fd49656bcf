//! How many bytes the rows of a source take that knows their number.

use std::ops::ControlFlow;

use super::Source;
use crate::error::Result;

/// Places whose rows tell how long rows are.
const TRIED_PLACES: u64 = 16;
/// What is read of each.
const TRIED_BYTES: u64 = 16 << 10;
/// Up to so many bytes all rows are read.
const SMALL_BYTES: u64 = 32 << 20;

/// What the rows of a source take that are about so many: exact for few bytes; else as many as there
/// are rows, as long as some are on average.
///
/// # Errors
/// Those of the source.
pub fn user_bytes(source: &mut dyn Source, rows: u64) -> Result<u64> {
    let (mut tried, mut bytes) = (0, 0);
    for number in 0..TRIED_PLACES {
        let place = source.place(number as f64 / TRIED_PLACES as f64, TRIED_BYTES)?;
        tried += place.len() as u64;
        bytes += place.data_bytes();
    }
    let estimate = (bytes as f64 / tried.max(1) as f64 * rows as f64) as u64;
    if estimate > SMALL_BYTES {
        return Ok(estimate);
    }
    let mut exact = 0;
    source.scan(&mut |row, _| {
        exact += row.data_bytes;
        ControlFlow::Continue(())
    })?;
    Ok(exact)
}

/// Whole numbers that rows are found by, some of which may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) first: i64,
    pub(super) last: i64,
}

impl Range {
    /// How many numbers there are.
    fn span(self) -> f64 {
        self.last as f64 - self.first as f64 + 1.0
    }

    /// The number at a share of the range.
    pub(super) fn at(self, share: f64) -> i64 {
        let offset = (share.clamp(0.0, 1.0) * self.span()) as i128;
        let number = i128::from(self.first) + offset;
        number.min(i128::from(self.last)).max(i128::from(self.first)) as i64
    }
}

/// Rows whose numbers tell how dense they are.
const DENSITY_ROWS: u64 = 256;
/// Up to so many numbers all rows are counted.
const FEW_NUMBERS: f64 = 65_536.0;

/// Reads from a number on and tells those of the rows there.
pub(super) type NumbersFrom<'a, E> =
    &'a mut dyn FnMut(i64, &mut dyn FnMut(i64) -> ControlFlow<()>) -> std::result::Result<(), E>;

/// About how many rows have numbers of a range: by how dense they are at evenly spaced places. `None`
/// if hardly any row is behind one of them: places by number would then miss most rows.
pub(super) fn rows_of_range<E>(
    range: Range,
    read: NumbersFrom<'_, E>,
) -> std::result::Result<Option<u64>, E> {
    let mut count_from = |from: i64, limit: u64| -> std::result::Result<(u64, f64), E> {
        let (mut rows, mut last) = (0, from);
        read(from, &mut |number| {
            rows += 1;
            last = number;
            if rows >= limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        // Numbers up to the last row, or to the end of the range.
        let end = if rows >= limit { last } else { range.last };
        Ok((rows, end as f64 - from as f64 + 1.0))
    };
    if range.span() <= FEW_NUMBERS {
        return Ok(Some(count_from(range.first, u64::MAX)?.0));
    }
    let mut density = 0.0;
    for place in 0..TRIED_PLACES {
        let share = (place as f64 + 0.5) / TRIED_PLACES as f64;
        let (rows, numbers) = count_from(range.at(share), DENSITY_ROWS)?;
        if rows < DENSITY_ROWS {
            return Ok(None);
        }
        density += rows as f64 / numbers / TRIED_PLACES as f64;
    }
    Ok(Some((density * range.span()).round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_or_estimated_by_their_density() {
        let every = |step: i64, last: i64| {
            move |from: i64, each: &mut dyn FnMut(i64) -> ControlFlow<()>| {
                let mut number = (from + step - 1).div_euclid(step) * step;
                while number <= last && each(number).is_continue() {
                    number += step;
                }
                Ok::<(), ()>(())
            }
        };
        let few = Range { first: 0, last: 900 };
        assert_eq!(rows_of_range(few, &mut every(3, 900)), Ok(Some(301)));
        let many = Range { first: -3_000_000, last: 3_000_000 };
        let rows = rows_of_range(many, &mut every(3, 3_000_000)).expect("is read");
        let rows = rows.expect("is even");
        assert!((1_990_000..2_010_000).contains(&rows), "{rows}");
        let far = Range { first: 0, last: 1 << 50 };
        assert_eq!(rows_of_range(far, &mut every(3, 900)), Ok(None), "all rows are at one end");
        let all = Range { first: i64::MIN, last: i64::MAX };
        assert_eq!((all.at(0.0), all.at(1.0)), (i64::MIN, i64::MAX));
    }
}
