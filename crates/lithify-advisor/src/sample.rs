//! Places: neighbouring rows from evenly spaced positions of the data, in the order in which a
//! database would have them.
//!
//! Heads are off by up to 12 % and neighbours tell little of the rest, so places are spread over all of
//! the data. Where the order of a database is not that of the input, one pass over the input collects
//! the rows that follow evenly spaced keys.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use crate::error::{AdviseError, Result};
use crate::gather::{Gathering, KeptRank, Rank};
use crate::input::Source;
use crate::rows::{Row, Rows};
use crate::watch::Watch;

/// Rows of a place: enough for a unit of 256 KiB.
pub const PLACE_BYTES: u64 = 272 << 10;

/// More of a row is not measured: its first MiB stands for all of it. So the dearest call of a codec takes
/// half a second, and 64 places take 64 MiB, however large rows are.
pub const ROW_BYTES_MAX: usize = 1 << 20;

/// Places that are looked at, however long that takes: with fewer there is none to hold out.
const PLACES_NEEDED: usize = 3;

/// Data that are not larger are read whole, and so is every order of them.
pub(crate) const WHOLE_BYTES: u64 = 64 * PLACE_BYTES;

/// Places of the first look.
pub const PLACES_MIN: usize = 64;
/// Places of the input at most: 68 MiB.
pub const PLACES_MAX: usize = 256;
/// Places of an order that a pass collects: 34 MiB.
const PASS_PLACES: usize = 128;

/// In which order a database has the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Order {
    /// As they come.
    Input,
    /// By their key.
    Key,
    /// By a hash of the key's first part, then by key.
    Hash,
}

/// How rows came to be in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collected {
    /// They are in it.
    AsTheyAre,
    /// All rows were looked at.
    ByFullPass,
    /// Rows of the places were put in order; true neighbours are more alike.
    OfSampledRows,
}

/// Places in one order.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The order.
    pub order: Order,
    /// The places, by their position.
    pub places: Vec<Rows>,
    /// How they were put in order.
    pub collected: Collected,
}

impl Sample {
    /// Bytes of the data in all places.
    pub fn data_bytes(&self) -> u64 {
        self.places.iter().map(Rows::data_bytes).sum()
    }
}

/// The sample of the input's own order, and whether that is the order of the key.
#[derive(Clone, Debug)]
pub struct InputSample {
    /// The places.
    pub sample: Sample,
    /// Rows in all, as far as the places tell.
    pub rows: u64,
    /// Bytes of a row in the input on average.
    pub row_bytes: f64,
    /// True if no row of the places is before one that it follows.
    pub is_sorted: bool,
    /// True if it has all of the data.
    pub is_whole: bool,
    /// True if time ended before all places were looked at.
    pub is_short: bool,
}

/// What is measured of a row: all of it, or its first part with what that takes in the input.
fn sampled(row: Row<'_>) -> Row<'_> {
    let Some(value) = row.value.get(..ROW_BYTES_MAX) else { return row };
    let part = ROW_BYTES_MAX as f64 / row.value.len() as f64;
    Row { value, data_bytes: (row.data_bytes as f64 * part).ceil() as u64, ..row }
}

/// Places that were looked at.
#[derive(Default)]
struct Looked {
    places: Vec<Rows>,
    rows: u64,
    /// What the rows take in the input, whether all of them is kept or not.
    data_bytes: u64,
    is_short: bool,
}

impl Looked {
    fn take(&mut self, row: Row<'_>, kept: &mut Rows) {
        self.rows += 1;
        self.data_bytes += row.data_bytes;
        kept.push(sampled(row));
    }
}

/// Looks at evenly spaced places of the input; at fewer of them if there is no time for all until `end`.
///
/// # Errors
/// Those of the source; what was looked at does not look like rows.
pub fn of_input(source: &mut dyn Source, end: Instant, watch: &dyn Watch) -> Result<InputSample> {
    let data_bytes = source.facts().data_bytes;
    let is_whole = data_bytes <= WHOLE_BYTES;
    let looked = match is_whole {
        true => whole(source)?,
        false => {
            let count = PLACES_MIN.min(source.places_max().max(1));
            spaced(source, count, 0.5, Some(end), watch)?
        }
    };
    let row_bytes = looked.data_bytes as f64 / looked.rows.max(1) as f64;
    let is_sorted = is_sorted(&looked.places);
    let (places, collected) = (looked.places, Collected::AsTheyAre);
    let rows = (data_bytes as f64 / row_bytes).round() as u64;
    Ok(InputSample {
        sample: Sample { order: Order::Input, places, collected },
        rows: if is_whole { looked.rows } else { rows },
        row_bytes,
        is_sorted,
        is_whole,
        is_short: looked.is_short,
    })
}

/// All rows.
fn whole(source: &mut dyn Source) -> Result<Looked> {
    let (mut looked, mut all) = (Looked::default(), Rows::default());
    source.scan(&mut |row, _| {
        looked.take(row, &mut all);
        ControlFlow::Continue(())
    })?;
    looked.places = all.split(PLACE_BYTES);
    Ok(looked)
}

/// Places between those that are there: twice as many, evenly spaced again.
///
/// # Errors
/// Those of the source.
pub fn double(source: &mut dyn Source, sample: &mut Sample, watch: &dyn Watch) -> Result<()> {
    let between = spaced(source, sample.places.len(), 0.0, None, watch)?.places;
    let old = std::mem::take(&mut sample.places);
    sample.places = between.into_iter().zip(old).flat_map(|(new, old)| [new, old]).collect();
    Ok(())
}

/// So many places; the first one is `offset` of a step behind the start. If there is an end, they are
/// fewer where it comes before the last one, and spread over all of the data.
fn spaced(
    source: &mut dyn Source,
    count: usize,
    offset: f64,
    end: Option<Instant>,
    watch: &dyn Watch,
) -> Result<Looked> {
    let mut looked = Looked::default();
    let mut places: Vec<(usize, Rows)> = Vec::with_capacity(count);
    for at in spread(count) {
        let is_late = end.is_some_and(|end| Instant::now() >= end);
        if is_late && places.len() >= PLACES_NEEDED {
            looked.is_short = true;
            break;
        }
        let share = (at as f64 + offset) / count as f64;
        let mut rows = source.place(share, PLACE_BYTES)?;
        if rows.data_bytes() < PLACE_BYTES / 2 {
            // The last rows are few: they stand for the end with some that come before them.
            rows = source.place(share - 0.5 / count as f64, PLACE_BYTES)?;
        }
        let mut kept = Rows::default();
        rows.iter().for_each(|row| looked.take(row, &mut kept));
        places.push((at, kept));
        watch.hear("reading places", places.len() as u64, count as u64)?;
    }
    places.sort_by_key(|(at, _)| *at);
    looked.places = places.into_iter().map(|(_, rows)| rows).collect();
    Ok(looked)
}

/// Numbers below `count`, such that however many of the first ones are spread over all of them.
fn spread(count: usize) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..count).collect();
    numbers.sort_by_key(|number| number.reverse_bits());
    numbers
}

/// Whether rows ascend in each place, and places by their first rows. Places may overlap.
fn is_sorted(places: &[Rows]) -> bool {
    let mut first_before: Option<Vec<u8>> = None;
    for rows in places {
        let mut last: Option<&[u8]> = first_before.as_deref();
        let mut first = None;
        for row in rows.iter() {
            if last.is_some_and(|last| last > row.key) {
                return false;
            }
            first = first.or(Some(row.key));
            last = Some(row.key);
        }
        first_before = first.map(<[u8]>::to_vec).or(first_before);
    }
    true
}

/// The rows of the places put in another order. Exact if the places are all of the data; otherwise
/// rows come to lie beside others than in the whole.
pub fn resorted(input: &InputSample, order: Order) -> Sample {
    let mut all = Rows::default();
    for row in input.sample.places.iter().flat_map(Rows::iter) {
        all.push(row);
    }
    let collected = match input.is_whole {
        true => Collected::ByFullPass,
        false => Collected::OfSampledRows,
    };
    let places = all.sorted_by(|row| Rank::of(order, row).keep()).split(PLACE_BYTES);
    Sample { order, places, collected }
}

/// Where the places of an order begin: at evenly spaced ones of the sampled rows.
fn starts(input: &InputSample, order: Order, count: usize) -> Vec<KeptRank> {
    let rows = input.sample.places.iter().flat_map(Rows::iter);
    let mut ranks: Vec<Rank<'_>> = rows.map(|row| Rank::of(order, &row)).collect();
    ranks.sort_unstable();
    let at = |number: usize| (2 * number + 1) * ranks.len() / (2 * count);
    let mut starts: Vec<KeptRank> =
        (0..count).filter_map(|number| ranks.get(at(number)).map(|rank| rank.keep())).collect();
    starts.dedup();
    starts
}

/// What a pass is timed by before it is said how long all of it takes.
const TIMED: Duration = Duration::from_millis(500);

/// Collects places of other orders in one pass over the input; `None` if that would take longer than
/// is allowed.
///
/// # Errors
/// Those of the source, and of `watch`, which may end the pass.
pub fn by_pass(
    source: &mut dyn Source,
    input: &InputSample,
    orders: &[Order],
    allowed: Duration,
    watch: &dyn Watch,
) -> Result<Option<Vec<Sample>>> {
    let (total, began) = (source.facts().data_bytes, Instant::now());
    let is_too_long = |done: u64| {
        let passed = began.elapsed();
        let all_s = passed.as_secs_f64() * total as f64 / done.max(1) as f64;
        passed > TIMED && all_s > allowed.as_secs_f64()
    };
    let (count, mut too_long) = (PASS_PLACES, false);
    let mut gathered: Vec<(Order, Vec<KeptRank>, Vec<Gathering>)> = Vec::new();
    for order in orders {
        let starts = starts(input, *order, count);
        let places = starts.iter().map(|_| Gathering::new(*order)).collect();
        gathered.push((*order, starts, places));
    }
    let (mut stopped, mut told): (Option<AdviseError>, u64) = (None, 0);
    source.scan(&mut |row, done| {
        for (order, starts, places) in &mut gathered {
            let rank = Rank::of(*order, &row);
            let at = starts.partition_point(|start| start.borrow() <= rank);
            if let Some(place) = at.checked_sub(1).and_then(|at| places.get_mut(at)) {
                place.take(rank, sampled(row));
            }
        }
        if done - told >= 1 << 20 {
            told = done;
            too_long = is_too_long(done);
            stopped = watch.hear("sorting by key", done / 1_000_000, total / 1_000_000).err();
        }
        if too_long || stopped.is_some() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    if let Some(error) = stopped {
        return Err(error);
    }
    if too_long {
        return Ok(None);
    }
    let finished = gathered.into_iter().map(|(order, _, places)| Sample {
        order,
        places: places
            .into_iter()
            .map(Gathering::into_rows)
            .filter(|rows| !rows.is_empty())
            .collect(),
        collected: Collected::ByFullPass,
    });
    Ok(Some(finished.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Memory;
    use crate::watch::Silent;

    /// So many rows of so many bytes, in memory.
    fn memory(count: u64, value_bytes: usize) -> Memory {
        let (mut rows, value) = (Rows::default(), vec![7; value_bytes]);
        for number in 0..count {
            let (key, data_bytes) = (number.to_be_bytes(), 8 + value.len() as u64);
            rows.push(Row {
                key: &key,
                partition_bytes: 8,
                value: &value,
                data_bytes,
                file_bytes: 0,
            });
        }
        Memory::new(rows, "rows", "number").expect("has rows")
    }

    #[test]
    fn a_large_row_is_measured_by_its_first_part_and_counted_as_a_whole() {
        const VALUE_BYTES: usize = 5 << 20;
        for count in [3, 8] {
            let mut source = memory(count, VALUE_BYTES);
            let end = Instant::now() + Duration::from_secs(60);
            let input = of_input(&mut source, end, &Silent).expect("is read");
            assert_eq!((input.rows, input.row_bytes), (count, 8.0 + VALUE_BYTES as f64));
            assert!(!input.is_short && input.is_whole == (count == 3));
            let places = &input.sample.places;
            let rows = || places.iter().flat_map(Rows::iter);
            assert!(rows().all(|row| row.value.len() == ROW_BYTES_MAX));
            // What is kept of the key's bytes is not much.
            assert!(rows().all(|row| row.data_bytes - (ROW_BYTES_MAX as u64) < 8));
        }
    }

    #[test]
    fn without_time_a_few_places_are_looked_at_all_over_the_data() {
        assert_eq!(spread(8), [0, 4, 2, 6, 1, 5, 3, 7]);
        let mut source = memory(200_000, 92);
        let input = of_input(&mut source, Instant::now(), &Silent).expect("is read");
        assert!(input.is_short && input.is_sorted);
        let first = |rows: &Rows| {
            let key = rows.iter().next().expect("has rows").key.to_vec();
            u64::from_be_bytes(key.try_into().expect("eight bytes")) / 50_000
        };
        let places: Vec<u64> = input.sample.places.iter().map(first).collect();
        assert_eq!(places, [0, 1, 2]);
    }
}
