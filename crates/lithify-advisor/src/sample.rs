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
use crate::rows::Rows;
use crate::watch::Watch;

/// Rows of a place: enough for a unit of 256 KiB.
pub const PLACE_BYTES: u64 = 272 << 10;

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
    /// True if no row of the places is before one that it follows.
    pub is_sorted: bool,
    /// True if it has all of the data.
    pub is_whole: bool,
}

/// Looks at evenly spaced places of the input.
///
/// # Errors
/// Those of the source; what was looked at does not look like rows.
pub fn of_input(source: &mut dyn Source, watch: &dyn Watch) -> Result<InputSample> {
    let data_bytes = source.facts().data_bytes;
    let is_whole = data_bytes <= WHOLE_BYTES;
    let places = match is_whole {
        true => {
            let mut all = Rows::default();
            source.scan(&mut |row, _| {
                all.push(row);
                ControlFlow::Continue(())
            })?;
            all.split(PLACE_BYTES)
        }
        false => {
            let count = PLACES_MIN.min(source.places_max().max(1));
            spaced(source, count, 0.5, watch)?
        }
    };
    let read: u64 = places.iter().map(Rows::data_bytes).sum();
    let count: usize = places.iter().map(Rows::len).sum();
    let row_bytes = read as f64 / count.max(1) as f64;
    let is_sorted = is_sorted(&places);
    let sample = Sample { order: Order::Input, places, collected: Collected::AsTheyAre };
    let rows = (data_bytes as f64 / row_bytes).round() as u64;
    Ok(InputSample {
        sample,
        rows: if is_whole { count as u64 } else { rows },
        is_sorted,
        is_whole,
    })
}

/// Places between those that are there: twice as many, evenly spaced again.
///
/// # Errors
/// Those of the source.
pub fn double(source: &mut dyn Source, sample: &mut Sample, watch: &dyn Watch) -> Result<()> {
    let between = spaced(source, sample.places.len(), 0.0, watch)?;
    let old = std::mem::take(&mut sample.places);
    sample.places = between.into_iter().zip(old).flat_map(|(new, old)| [new, old]).collect();
    Ok(())
}

/// So many places; the first one is `offset` of a step behind the start.
fn spaced(
    source: &mut dyn Source,
    count: usize,
    offset: f64,
    watch: &dyn Watch,
) -> Result<Vec<Rows>> {
    let mut places = Vec::with_capacity(count);
    for at in 0..count {
        let mut rows = source.place((at as f64 + offset) / count as f64, PLACE_BYTES)?;
        if rows.data_bytes() < PLACE_BYTES / 2 {
            // The last rows are few: they stand for the end with some that come before them.
            rows = source
                .place((at as f64 + offset) / count as f64 - 0.5 / count as f64, PLACE_BYTES)?;
        }
        places.push(rows);
        watch.hear("reading places", at as u64 + 1, count as u64)?;
    }
    Ok(places)
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
                place.take(rank, row);
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
