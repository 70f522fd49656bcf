//! What a fixed ladder costs: rows of its column family are sampled, and the advisor measures codecs on them.

use std::path::Path;
use std::time::{Duration, Instant};

use lithify::Explanation;
use lithify_advisor::input::Database;
use lithify_advisor::ladder::{self, LadderPrices, Place};
use lithify_advisor::{Advice, AdviseError, Request, Watch, advise_source, target};

use crate::commands::worth::WorthArguments;
use crate::fault::Fault;

/// Less time than this tells nothing of a ladder.
const TIME_MIN: Duration = Duration::from_millis(300);
/// Up to so many raw bytes all rows are read to find places that are spread evenly.
const PASS_BYTES_MAX: u64 = 64 << 20;

/// A ladder with its prices.
pub struct Priced {
    /// What was measured.
    pub advice: Advice,
    /// What it says of the ladder.
    pub prices: LadderPrices,
    /// What each place of the ladder has, from the top down.
    pub found: Vec<Found>,
}

/// Levels that have one codec of a ladder.
pub struct Found {
    /// Their place in it.
    pub place: Place,
    /// "L6", "L0-L4".
    pub levels: String,
    /// Bytes of their tables.
    pub stored_bytes: u64,
    /// Bytes of their data blocks before compression.
    pub raw_bytes: u64,
}

/// What is known of the cost of a family's compression.
pub enum Pricing {
    /// Decided by cost: the explanation has it. Or there is no table yet.
    None,
    /// A fixed ladder.
    Priced(Box<Priced>),
    /// A fixed ladder, and why it has no price.
    Unpriced(String),
}

/// Prices the fixed ladders of a database, at prices and within a time for all of them.
pub fn price_ladders(
    directory: &Path,
    explanations: &[Explanation],
    worth: &WorthArguments,
    time: Duration,
) -> Result<Vec<Pricing>, Fault> {
    let request = Request {
        targets: vec![target("lithify").map_err(Fault::failure)?],
        goal: worth.name(),
        prices: worth.prices()?,
        ..Request::new(directory)
    };
    let is_ladder = |one: &Explanation| one.prices.is_none() && !one.levels.is_empty();
    if time.is_zero() {
        let unpriced = |one| match is_ladder(one) {
            true => Pricing::Unpriced("--time is 0".to_owned()),
            false => Pricing::None,
        };
        return Ok(explanations.iter().map(unpriced).collect());
    }
    let mut waiting = explanations.iter().filter(|one| is_ladder(one)).count() as u32;
    let end = Instant::now() + time;
    let price = |one: &Explanation| {
        if !is_ladder(one) {
            return Pricing::None;
        }
        // Ladders that need less leave it to the others.
        let left = end.saturating_duration_since(Instant::now()) / waiting.max(1);
        waiting = waiting.saturating_sub(1);
        if left < TIME_MIN {
            return Pricing::Unpriced("no time was left; --time has more".to_owned());
        }
        let request = Request { time: left, ..request.clone() };
        match priced(directory, &one.family, &request) {
            Ok(priced) => Pricing::Priced(Box::new(priced)),
            Err(error) => Pricing::Unpriced(error.to_string()),
        }
    };
    Ok(explanations.iter().map(price).collect())
}

fn priced(directory: &Path, family: &str, request: &Request) -> Result<Priced, AdviseError> {
    let watch = Deadline(Instant::now() + 2 * request.time);
    let mut database = Database::open(directory, Some(family))?.with_short_pass(PASS_BYTES_MAX);
    let found = found(&database);
    let advice = advise_source(&mut database, request, &watch)?;
    if let Some(what) = advice.too_little() {
        return Err(AdviseError::data(what));
    }
    let prices = ladder::prices(&advice)
        .ok_or_else(|| AdviseError::data("its codecs were not all measured; --time has more"))?;
    Ok(Priced { advice, prices, found })
}

/// The levels of a family by their places in a ladder.
fn found(database: &Database) -> Vec<Found> {
    let levels = &database.levels().levels;
    let middle = levels.len().saturating_sub(2);
    let (small, lower) = levels.split_at(middle);
    let of = |place, levels: &[lithify::inspect::LevelSum]| {
        let (first, last) = (levels.first()?.level, levels.last()?.level);
        Some(Found {
            place,
            levels: if first == last { format!("L{first}") } else { format!("L{first}-L{last}") },
            stored_bytes: levels.iter().map(|level| level.size_bytes).sum(),
            raw_bytes: levels.iter().map(|level| level.raw_bytes).sum(),
        })
    };
    let (middle, bottom) = lower.split_at(lower.len().saturating_sub(1));
    let places = [(Place::Small, small), (Place::Middle, middle), (Place::Bottom, bottom)];
    places.into_iter().filter_map(|(place, levels)| of(place, levels)).collect()
}

/// Ends what takes much longer than it may, as reading all of a large level 0.
struct Deadline(Instant);

impl Watch for Deadline {
    fn hear(&self, stage: &str, _done: u64, _total: u64) -> Result<(), AdviseError> {
        // While codecs are measured something is known already.
        match self.is_hurried() && stage != "measuring codecs" {
            true => Err(AdviseError::data("its rows were not read in time; --time has more")),
            false => Ok(()),
        }
    }

    fn is_hurried(&self) -> bool {
        Instant::now() >= self.0
    }
}
