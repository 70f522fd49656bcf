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
/// Rows that are denser in one place than in another by more than this are not spread evenly.
const DENSITIES_RATIO: f64 = 3.0;
/// Up to so many numbers all rows are counted.
const FEW_NUMBERS: f64 = 65_536.0;

/// Reads from a number on and tells those of the rows there.
pub(super) type NumbersFrom<'a, E> =
    &'a mut dyn FnMut(i64, &mut dyn FnMut(i64) -> ControlFlow<()>) -> std::result::Result<(), E>;

/// About how many rows have numbers of a range: by how dense they are at evenly spaced places. `None`
/// if they are not spread evenly: places by number would then miss most rows, or meet some twice.
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
    let (mut density, mut least, mut most) = (0.0, f64::INFINITY, 0.0_f64);
    for place in 0..TRIED_PLACES {
        let from = |place: u64| range.at((place as f64 + 0.5) / TRIED_PLACES as f64);
        let (rows, numbers) = count_from(from(place), DENSITY_ROWS)?;
        // A gap leads to rows that are behind the next place too.
        let reaches_next = from(place) as f64 + numbers > from(place + 1) as f64;
        if rows < DENSITY_ROWS || reaches_next {
            return Ok(None);
        }
        let here = rows as f64 / numbers;
        (least, most) = (least.min(here), most.max(here));
        density += here / TRIED_PLACES as f64;
    }
    if most > least * DENSITIES_RATIO {
        return Ok(None);
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
        let halves = |from: i64, each: &mut dyn FnMut(i64) -> ControlFlow<()>| {
            let numbers = (0..100_000).chain(1 << 50..(1 << 50) + 100_000);
            let _ = numbers.filter(|number| *number >= from).try_for_each(each);
            Ok::<(), ()>(())
        };
        let range = Range { first: 0, last: (1 << 50) + 99_999 };
        assert_eq!(rows_of_range(range, &mut { halves }), Ok(None), "places are in the gap");
        let squares = |from: i64, each: &mut dyn FnMut(i64) -> ControlFlow<()>| {
            let numbers = (0..20_000_i64).map(|number| number * number);
            let _ = numbers.filter(|number| *number >= from).try_for_each(each);
            Ok::<(), ()>(())
        };
        let range = Range { first: 0, last: 19_999 * 19_999 };
        assert_eq!(rows_of_range(range, &mut { squares }), Ok(None), "rows get sparser");
        let all = Range { first: i64::MIN, last: i64::MAX };
        assert_eq!((all.at(0.0), all.at(1.0)), (i64::MIN, i64::MAX));
    }
}
