//! From calls of codecs to advice: sizes with intervals, CPU, costs, the cheapest setting.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use lithify::chooser::{Behaviour, Conditions, HOURS_PER_MONTH, Terms, overhead_ratio, price};
use lithify::{Compression, Objective, Prices};

use crate::estimate::Estimate;
use crate::input::{Facts, Present};
use crate::measure::{Call, Cell};
use crate::sample::{Collected, ROW_BYTES_MAX};
use crate::targets::{Advised, Basis, OtherForms, Setting, Target};
use crate::tree::{self, Use};
use crate::unknown::too_little;

/// A call that takes longer stalls an event loop.
const LONG_CALL_NS: u64 = 1_000_000;

/// With fewer places a third of them says nothing of the others.
pub(crate) const TESTED_PLACES: usize = 9;

/// Costs up to this part of each other are within what two runs differ by.
pub(crate) const EQUAL_COST: f64 = 1.01;

/// What is known of how the data are used. Everything else is assumed and said.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Expectations {
    /// How often a row is read in its life.
    pub reads_per_row: Option<f64>,
    /// The share of reads that find their row in a cache.
    pub hot: Option<f64>,
    /// Months until a row is rewritten or deleted.
    pub months: Option<f64>,
    /// Bytes of the whole database, where the data are a part of it.
    pub database_bytes: Option<f64>,
}

/// Loads of each MiB in a month where nothing is known of reads: the engine's own assumption for a
/// level that it did not watch.
const ASSUMED_LOADS_PER_MIB_MONTH: f64 = 4_000.0;

/// Loads of each row in a month at most, where nothing is known of reads. Rows of up to 16 KiB have
/// fewer by the figure above; it would have rows of 1 MB read 4,000 times.
const ASSUMED_LOADS_PER_ROW_MONTH: f64 = 64.0;

/// The share of reads that a cache is taken to answer.
const ASSUMED_HOT: f64 = 0.5;

impl Expectations {
    /// How often a row may be read.
    pub const READS_PER_ROW: RangeInclusive<f64> = 0.0..=1e12;
    /// How many months a row may live.
    pub const MONTHS: RangeInclusive<f64> = 0.0001..=1200.0;
    /// How large a database may be.
    pub const DATABASE_BYTES: RangeInclusive<u64> = 1..=1 << 60;

    /// Months that a byte lives.
    pub fn lifetime_months(&self) -> f64 {
        self.months.unwrap_or(1.0)
    }

    /// Loads of each MiB of data in its life.
    pub fn loads_per_mib(&self, basis: &Basis) -> f64 {
        let rows_per_mib = 1_048_576.0 / basis.row_bytes.max(1.0);
        match self.reads_per_row {
            None if self.is_bound_by_rows(basis) => {
                ASSUMED_LOADS_PER_ROW_MONTH * rows_per_mib * self.lifetime_months()
            }
            None => ASSUMED_LOADS_PER_MIB_MONTH * self.lifetime_months(),
            Some(reads) => reads * (1.0 - self.hot.unwrap_or(ASSUMED_HOT)) * rows_per_mib,
        }
    }

    /// Whether reads are assumed by the row, because it is large. Pieces of bytes are no rows.
    pub(crate) fn is_bound_by_rows(&self, basis: &Basis) -> bool {
        let rows_per_mib = 1_048_576.0 / basis.row_bytes.max(1.0);
        let is_large = ASSUMED_LOADS_PER_ROW_MONTH * rows_per_mib < ASSUMED_LOADS_PER_MIB_MONTH;
        self.reads_per_row.is_none() && basis.has_rows && is_large
    }

    /// What the cost equation asks for, of bytes that live a part of the time.
    pub(crate) fn conditions(
        &self,
        target: &Target,
        basis: &Basis,
        lifetime_part: f64,
    ) -> Conditions {
        let lifetime_h = self.lifetime_months() * HOURS_PER_MONTH / lifetime_part;
        let loads_per_mib = self.loads_per_mib(basis) / lifetime_part;
        Conditions {
            lifetime_h,
            points_per_mib_h: loads_per_mib / lifetime_h,
            reads_known: self.reads_per_row.is_some(),
            device_share: 1.0,
            index_entry_bytes: (target.index_entry_bytes)(basis),
            ..Conditions::default()
        }
    }
}

/// What is expected of a setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The setting.
    pub setting: Setting,
    /// Its codecs above the bottom; its own where there are no levels.
    pub upper: [Compression; 2],
    /// Whether those are what the target comes with or the data are set to, and not the cheapest ones.
    pub has_set_upper: bool,
    /// Stored bytes per byte of the data, in all levels.
    pub ratio: Estimate,
    /// The same of the bottom level alone.
    pub bottom: Estimate,
    /// What the places that are not held out say of the others, and what those are.
    pub held_out: Option<[Estimate; 2]>,
    /// CPU time of encoding a byte of the data.
    pub encode_ns: f64,
    /// CPU time of decoding it.
    pub decode_ns: f64,
    /// CPU time of all writes of a byte of the data until it is where it stays, with what compactions
    /// decode of it; that of encoding it where there are no levels.
    pub write_ns: f64,
    /// CPU time of decoding one unit: what a read of one row takes when it is not cached.
    pub unit_decode_us: f64,
    /// Bytes of the data in a unit.
    pub unit_data_bytes: f64,
    /// The share of calls that encode for longer than a millisecond.
    pub long_calls: f64,
    /// Whether a call takes longer than the prices allow (`call_us`), where that holds something up, and
    /// longer than with what one has: where that breaks the limit, the limit chooses nothing.
    pub is_too_long: bool,
    /// What a GB of data costs in its life, in millionths of the currency.
    pub terms: Terms,
}

impl Outcome {
    /// "zstd-3 16k"; with the codecs of all levels, smallest first, where they are not the cheapest:
    /// "none,lz4,zstd-1 16k".
    pub fn name(&self) -> String {
        let [middle, small] = self.upper;
        match self.has_set_upper {
            true => format!("{small},{middle},{}", self.setting.name()),
            false => self.setting.name(),
        }
    }

    /// Whether both are the same setting of all levels.
    pub fn is(&self, other: &Outcome) -> bool {
        let has_same_upper = !self.has_set_upper || self.upper == other.upper;
        self.setting == other.setting && self.has_set_upper == other.has_set_upper && has_same_upper
    }

    /// What it costs.
    pub fn cost(&self) -> f64 {
        self.terms.total()
    }

    /// CPU time of encoding one unit: what a call of the codec takes.
    pub fn unit_encode_us(&self) -> f64 {
        self.encode_ns * self.unit_data_bytes / 1e3
    }

    /// What is advised first: cheap, and no call too long.
    pub(crate) fn rank(&self, other: &Outcome) -> std::cmp::Ordering {
        let by_cost = self.cost().total_cmp(&other.cost());
        self.is_too_long.cmp(&other.is_too_long).then(by_cost)
    }
}

/// What is advised for a target.
#[derive(Clone, Debug)]
pub struct TargetAdvice {
    /// For whom.
    pub target: Target,
    /// All settings that were measured: what is advised, then by cost.
    pub outcomes: Vec<Outcome>,
    /// Which of them it comes with; it may be that it was not measured.
    pub default: Option<usize>,
    /// Which of them the data have now, if they are in this database and have one of them.
    pub present: Option<usize>,
    /// What is said of that one; nothing if the data are not in this database.
    pub present_words: Option<&'static str>,
    /// How its rows were put in order.
    pub collected: Collected,
    /// What the cheapest stores of rows in the order of the input, where the database's own order is only
    /// that of the sampled rows.
    pub unsorted: Option<Estimate>,
    /// Settings that time did not allow.
    pub unmeasured: usize,
    /// Settings whose units do not hold such rows, by their names.
    pub unfit: Vec<String>,
}

impl TargetAdvice {
    /// What is advised: of those that cost the same within 1 % what one has, else what writes fastest.
    pub fn best(&self) -> &Outcome {
        &self.outcomes[0]
    }

    /// Whether at most two thirds of its settings were measured: the best may not be among them.
    pub fn is_provisional(&self) -> bool {
        self.unmeasured > 0 && 2 * self.unmeasured >= self.tried()
    }

    /// Settings that were measured.
    pub(crate) fn tried(&self) -> usize {
        // What it comes with may be there twice, with two choices of upper levels.
        let twice = self.outcomes.iter().filter(|one| one.has_set_upper).count();
        self.outcomes.len() + self.unfit.len() - twice
    }

    /// The cheapest of those that are not advised because their calls are too long, if it is cheaper.
    pub(crate) fn cheaper_but_too_long(&self) -> Option<&Outcome> {
        let too_long = self.outcomes.iter().filter(|one| one.is_too_long);
        let cheapest = too_long.min_by(|a, b| a.cost().total_cmp(&b.cost()))?;
        (cheapest.cost() * EQUAL_COST < self.best().cost()).then_some(cheapest)
    }

    /// What it comes with.
    pub fn default_outcome(&self) -> Option<&Outcome> {
        self.default.map(|at| &self.outcomes[at])
    }

    /// What advice is compared with: what the data have now, else what it comes with.
    pub fn before(&self) -> Option<&Outcome> {
        self.present.or(self.default).map(|at| &self.outcomes[at])
    }

    /// The same, knowing how the data are stored now. A ladder that they are set to has its price.
    pub(crate) fn beside(mut self, present: Option<&Present>, use_of: &Use<'_>) -> TargetAdvice {
        let of_target = present.filter(|present| present.target == self.target.name);
        let default = self.default_outcome().cloned();
        self.present_words = of_target.map(|present| match present.is_set {
            true => "it is set to this",
            false => "it has this now",
        });
        self.present = of_target.and_then(|present| present.bottom).and_then(|stored| {
            let upper = present.and_then(|present| present.upper);
            let is_stored = |one: &Outcome| stored.is(&one.setting);
            if let Some(upper) = upper.filter(|_| self.target.has_levels) {
                tree::add_ladder(&mut self.outcomes, is_stored, upper, use_of);
            }
            let has_upper = |one: &Outcome| Some(one.upper) == upper;
            let as_set = self.outcomes.iter().any(|one| is_stored(one) && has_upper(one));
            let is_present = |one: &Outcome| {
                is_stored(one) && if as_set { has_upper(one) } else { !one.has_set_upper }
            };
            allow_calls_as_of(&mut self.outcomes, is_present);
            self.outcomes.sort_by(Outcome::rank);
            advise_first(&mut self.outcomes, is_present);
            let is_default = |one: &Outcome| default.as_ref().is_some_and(|of| one.is(of));
            self.default = self.outcomes.iter().position(is_default);
            self.outcomes.iter().position(is_present)
        });
        self
    }

    /// The text to paste for an outcome.
    pub fn snippet(&self, outcome: &Outcome, basis: Basis) -> Vec<String> {
        let advised = Advised { setting: &outcome.setting, upper: outcome.upper, basis };
        (self.target.snippet)(&advised)
    }

    /// The same in other languages, each with its name.
    pub fn other_forms(&self, outcome: &Outcome, basis: Basis) -> OtherForms {
        let advised = Advised { setting: &outcome.setting, upper: outcome.upper, basis };
        (self.target.other_forms)(&advised)
    }

    /// What no other one beats in both size and CPU of loading and reading, smallest first.
    pub fn frontier(&self) -> Vec<&Outcome> {
        let mut all: Vec<&Outcome> = self.outcomes.iter().collect();
        all.sort_by(|a, b| a.ratio.value.total_cmp(&b.ratio.value));
        let mut least = f64::INFINITY;
        all.retain(|outcome| {
            let cpu = outcome.write_ns + outcome.decode_ns;
            let is_less = cpu < least;
            least = least.min(cpu);
            is_less
        });
        all
    }
}

/// What the data are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DataFacts {
    /// Where they are.
    pub path: String,
    /// Format, size, key.
    pub input: Facts,
    /// Rows in all, about.
    pub rows: u64,
    /// Sizes of rows and keys.
    pub basis: Basis,
    /// Places that were looked at.
    pub places: usize,
    /// Bytes of them.
    pub sampled_bytes: u64,
    /// Whether rows come in the order of the key.
    pub is_sorted: bool,
    /// How a database has them now.
    pub present: Option<Present>,
    /// What was noticed while they were read, each with its file and line.
    pub notes: Vec<String>,
    /// Bits a byte, by how often each of the 256 comes.
    pub entropy_bits: f64,
    /// The share of 4 KiB pieces that do not shrink by an eighth with zstd-3; `None` if time was too short.
    pub incompressible: Option<f64>,
    /// How much smaller zstd-3 makes 64 KiB than 4 KiB: what repeats within tens of rows and more.
    /// `None` if time was too short.
    pub far_repeats: Option<f64>,
}

/// How far the measuring came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Course {
    /// Whether it was stopped before its time.
    pub is_stopped: bool,
    /// Targets that were asked for, and that nothing is known of.
    pub missing: Vec<&'static str>,
    /// Whether it was another day: this is read from a profile, without the data.
    pub is_past: bool,
}

/// All of it.
#[derive(Clone, Debug)]
pub struct Advice {
    /// The data.
    pub data: DataFacts,
    /// For each target that was asked for.
    pub targets: Vec<TargetAdvice>,
    /// What was wanted.
    pub goal: String,
    /// What resources were worth.
    pub prices: Prices,
    /// What was known of the use.
    pub expectations: Expectations,
    /// How long it took.
    pub took: Duration,
    /// How far the measuring came.
    pub course: Course,
    /// What is not known, each with how to tell.
    pub unknown: Vec<String>,
    /// Rows of the data, where the request asks for them.
    pub samples: Vec<String>,
}

impl Advice {
    /// A cost in a year for a TB (10^12 bytes) of such data, in whole units of the currency.
    pub fn yearly(&self, cost: f64) -> f64 {
        let lives = 12.0 / self.expectations.lifetime_months();
        cost * 1e3 * lives / 1e6
    }

    /// Whether prices are those of a goal, which are of a dollar. Others are of any currency.
    pub fn is_in_dollars(&self) -> bool {
        Objective::NAMED.iter().any(|(goal, _)| goal.prices() == self.prices)
    }

    /// Why nothing is advised: the data are one or two rows, or less than 64 KiB. `None` if they are enough.
    pub fn too_little(&self) -> Option<String> {
        too_little(&self.data)
    }
}

/// The measured calls of cells in one order, and what share of the data their places hold.
pub(crate) struct Calls<'a> {
    pub(crate) by_cell: &'a BTreeMap<CellKey, Vec<Call>>,
    pub(crate) data_bytes: f64,
}

/// A cell as a key of a map.
pub(crate) type CellKey = (crate::units::Shape, usize, String, usize);

/// The key of a cell.
pub(crate) fn cell_key(cell: &Cell) -> CellKey {
    (cell.shape, cell.size_bytes, cell.compression.to_string(), cell.dictionary_bytes)
}

/// Sums over the calls of each place: the first figure and the second, in the order of the data.
fn by_place(calls: &[Call], second: impl Fn(&Call) -> f64) -> Vec<(f64, f64)> {
    let mut places: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
    for call in calls {
        let place = places.entry(call.place).or_default();
        place.0 += call.data_bytes;
        place.1 += second(call);
    }
    places.into_values().collect()
}

/// The calls of the cell that a setting comes to: the largest one that fits its size.
fn calls_of<'a>(setting: &Setting, calls: &'a Calls<'_>) -> Option<&'a [Call]> {
    let measured =
        |cell: &Cell| calls.by_cell.get(&cell_key(cell)).filter(|calls| !calls.is_empty());
    let mean = |calls: &[Call]| {
        calls.iter().map(|call| f64::from(call.encoded_bytes)).sum::<f64>() / calls.len() as f64
    };
    let fits = |calls: &&Vec<Call>| {
        setting.cells.len() == 1 || mean(calls) <= setting.size_bytes as f64 * 1.2
    };
    let found = setting.cells.iter().rev().filter_map(measured).find(fits);
    found.or_else(|| setting.cells.first().and_then(measured)).map(Vec::as_slice)
}

/// Whether at least half of the units fit what the target stores one in.
fn does_fit(target: &Target, setting: &Setting, calls: &[Call]) -> bool {
    2 * calls.iter().filter(|call| (target.fits)(setting, call)).count() >= calls.len()
}

/// Whether a setting was measured, and its units do not hold such rows.
pub(crate) fn is_unfit(target: &Target, setting: &Setting, calls: &Calls<'_>) -> bool {
    calls_of(setting, calls).is_some_and(|calls| !does_fit(target, setting, calls))
}

/// What was measured of a setting, without prices; `None` if nothing was, or it does not fit.
pub(crate) fn outcome(
    target: &Target,
    setting: &Setting,
    calls: &Calls<'_>,
    basis: &Basis,
) -> Option<Outcome> {
    let cell_calls = calls_of(setting, calls)?;
    if !does_fit(target, setting, cell_calls) {
        return None;
    }
    let stored = |call: &Call| (target.stored_bytes)(setting, call, basis);
    let sum = |figure: &dyn Fn(&Call) -> f64| cell_calls.iter().map(figure).sum::<f64>();
    let data_bytes = sum(&|call| call.data_bytes);
    let share = data_bytes / calls.data_bytes;
    let places = by_place(cell_calls, stored);
    let ratio = Estimate::of_places(&places, share);
    let is_tested = setting.dictionary_bytes == 0 && places.len() >= TESTED_PLACES;
    let held_out = is_tested.then(|| {
        let part = |is_held_out: bool| {
            let part: Vec<Call> = cell_calls
                .iter()
                .filter(|call| call.is_held_out() == is_held_out)
                .copied()
                .collect();
            Estimate::of_places(&by_place(&part, stored), 0.0)
        };
        [part(false), part(true)]
    });
    let timed: Vec<&Call> = cell_calls.iter().filter(|call| call.time.is_some()).collect();
    let timed_bytes: f64 = timed.iter().map(|call| call.data_bytes).sum();
    // A unit that is kept as it is was encoded for nothing, and is not decoded.
    let is_kept_raw =
        |call: &Call| stored(call) >= stored(&Call { encoded_bytes: call.unit_bytes, ..*call });
    let time = |at: usize| {
        let counts = |call: &&&Call| at == 0 || !is_kept_raw(call);
        let times = timed.iter().filter(counts).filter_map(|call| call.time);
        times.map(|time| time[at] as f64).sum::<f64>()
    };
    let [encode_ns, decode_ns] = match setting.compression == Compression::NONE {
        true => [0.0, 0.0],
        false => [time(0) / timed_bytes, time(1) / timed_bytes],
    };
    let is_long = |call: &&&Call| call.time.is_some_and(|time| time[0] > LONG_CALL_NS);
    let long_calls = timed.iter().filter(is_long).count() as f64 / timed.len().max(1) as f64;
    let mean_data_bytes = data_bytes / cell_calls.len() as f64;
    // Of a large row a part was measured. What holds whole rows holds one at least.
    let holds_part = basis.row_bytes > ROW_BYTES_MAX as f64
        && setting.cells.iter().all(|cell| cell.shape.holds_whole_rows());
    let unit_data_bytes = match holds_part {
        true => mean_data_bytes.max(basis.row_bytes),
        false => mean_data_bytes,
    };
    Some(Outcome {
        is_too_long: false,
        setting: setting.clone(),
        upper: [setting.compression; 2],
        has_set_upper: false,
        ratio,
        bottom: ratio,
        held_out,
        encode_ns,
        decode_ns,
        write_ns: encode_ns,
        unit_decode_us: decode_ns * unit_data_bytes / 1e3,
        unit_data_bytes,
        long_calls,
        terms: Terms::default(),
    })
}

/// The engine's cost equation for what is stored in all: that adds what blocks have beside their
/// payload, which is in the share already.
pub(crate) fn terms_of(
    stored_share: f64,
    [encode_ns, decode_ns]: [f64; 2],
    unit_data_bytes: usize,
    conditions: &Conditions,
    prices: &Prices,
) -> Terms {
    let behaviour = Behaviour {
        ratio: stored_share - overhead_ratio(unit_data_bytes, conditions),
        compress_ns: encode_ns,
        decompress_ns: decode_ns,
    };
    price(&behaviour, unit_data_bytes, conditions, prices)
}

/// What is advised of outcomes at prices: each gets its terms, its upper levels, its rank. `None` without
/// any.
pub fn reprice(
    target: &Target,
    mut outcomes: Vec<Outcome>,
    unmeasured: usize,
    collected: Collected,
    basis: &Basis,
    prices: &Prices,
    expectations: &Expectations,
) -> Option<TargetAdvice> {
    let conditions = expectations.conditions(target, basis, 1.0);
    for outcome in &mut outcomes {
        let costs = [outcome.encode_ns, outcome.decode_ns];
        let size = outcome.unit_data_bytes as usize;
        outcome.terms = terms_of(outcome.bottom.value, costs, size, &conditions, prices);
        outcome.is_too_long =
            target.has_short_calls && outcome.unit_encode_us() > f64::from(prices.call_us_max);
    }
    let default = (target.settings)().into_iter().next();
    // As the engine's chooser: large rows make every call long, and are not to be stored raw for that.
    allow_calls_as_of(&mut outcomes, |one| Some(&one.setting) == default.as_ref());
    if target.has_levels {
        let use_of = Use { target, basis, prices, expectations };
        tree::with_levels(&mut outcomes, default.as_ref(), &use_of);
    }
    outcomes.sort_by(Outcome::rank);
    let of_default = |one: &Outcome| Some(&one.setting) == default.as_ref();
    // Where the cheapest upper levels are those that it comes with there is one of it.
    let as_usual = outcomes.iter().any(|one| of_default(one) && one.has_set_upper);
    let is_default = |one: &Outcome| of_default(one) && one.has_set_upper == as_usual;
    advise_first(&mut outcomes, is_default);
    let default = outcomes.iter().position(is_default);
    let is_any = !outcomes.is_empty();
    is_any.then_some(TargetAdvice {
        target: *target,
        outcomes,
        default,
        present: None,
        present_words: None,
        collected,
        unsorted: None,
        unmeasured,
        unfit: Vec::new(),
    })
}

/// Lets calls take as long as those of what one has.
fn allow_calls_as_of(outcomes: &mut [Outcome], is_had: impl Fn(&Outcome) -> bool) {
    let had = outcomes.iter().find(|one| is_had(one)).map(Outcome::unit_encode_us);
    for outcome in outcomes {
        outcome.is_too_long &= had.is_none_or(|had_us| outcome.unit_encode_us() > had_us);
    }
}

/// Puts first what is advised of settings that cost the same: what one has anyway, else what takes the
/// least CPU to write. Otherwise two runs could advise different settings for no gain.
fn advise_first(outcomes: &mut [Outcome], is_had: impl Fn(&Outcome) -> bool) {
    let Some(cheapest) = outcomes.first() else { return };
    let limit = cheapest.cost() * EQUAL_COST;
    let is_too_long = cheapest.is_too_long;
    let is_equal = |one: &Outcome| one.cost() <= limit && one.is_too_long == is_too_long;
    let equal = || outcomes.iter().enumerate().filter(|(_, one)| is_equal(one));
    let had = equal().find(|(_, one)| is_had(one));
    let quickest = || equal().min_by(|a, b| a.1.write_ns.total_cmp(&b.1.write_ns));
    if let Some((at, _)) = had.or_else(quickest) {
        outcomes[..=at].rotate_right(1);
    }
}

#[cfg(test)]
mod tests {
    use lithify::chooser::{Chooser, METHODS, Measured, Sizes};

    use super::*;
    use crate::target;
    use crate::units::Part;

    /// How a codec behaves on made-up data: the share that is stored, nanoseconds a byte each way.
    fn behaviour(compression: Compression, shrinks: f64) -> Option<[f64; 3]> {
        let [gain, encode, decode] = match compression.to_string().as_str() {
            "none" => [0.0, 0.0, 0.0],
            "snappy" => [0.60, 2.3, 0.9],
            "lz4" => [0.62, 2.2, 0.4],
            "lz4-9" => [0.72, 14.0, 0.4],
            "zstd--3" => [0.75, 3.5, 0.9],
            "zstd-1" => [0.90, 4.6, 1.6],
            "zstd-3" => [0.92, 5.9, 1.7],
            "zstd-6" => [0.96, 14.0, 1.6],
            "zstd-12" => [1.0, 60.0, 1.6],
            _ => return None,
        };
        Some([1.0 - gain * shrinks, encode, decode])
    }

    /// What a bench would have measured of the settings of a size.
    fn calls(settings: &[Setting], shrinks: f64) -> BTreeMap<CellKey, Vec<Call>> {
        let calls = |setting: &Setting| {
            let [share, encode, decode] = behaviour(setting.compression, shrinks)?;
            let bytes = setting.size_bytes as f64;
            let call = |place| Call {
                place,
                unit_bytes: setting.size_bytes as u32,
                encoded_bytes: (share * bytes) as u32,
                data_bytes: bytes,
                rows: 0.0,
                part: Part::Inner,
                time: Some([(encode * bytes) as u64, (decode * bytes) as u64]),
            };
            Some((cell_key(&setting.cells[0]), (0..9).map(call).collect()))
        };
        settings.iter().filter(|one| one.dictionary_bytes == 0).filter_map(calls).collect()
    }

    #[test]
    fn assumed_reads_are_bound_by_the_row() {
        let loads = |row_bytes: f64, has_rows: bool, months: Option<f64>| {
            let basis = Basis { row_bytes, has_rows, ..Basis::default() };
            Expectations { months, ..Expectations::default() }.loads_per_mib(&basis)
        };
        assert_eq!(loads(100.0, true, None), 4_000.0);
        assert_eq!(loads(16_384.0, true, Some(2.0)), 8_000.0);
        assert_eq!(loads(1_048_576.0, true, None), 64.0);
        assert_eq!(loads(1_048_576.0, true, Some(0.5)), 32.0);
        assert_eq!(loads(131_072.0, false, None), 4_000.0, "pieces of files are no rows");
    }

    #[test]
    fn advisor_and_chooser_agree_on_the_same_measurements() {
        let lithify = target("lithify").expect("is there");
        let basis = Basis::of_a_gigabyte();
        let expectations = Expectations::default();
        let mut chosen = Vec::new();
        for (objective, _) in Objective::NAMED {
            for shrinks in [0.05, 0.4, 0.8] {
                for size_bytes in [4 << 10, 16 << 10, 64 << 10] {
                    let prices = objective.prices();
                    let settings: Vec<Setting> = (lithify.settings)()
                        .into_iter()
                        .filter(|one| one.size_bytes == size_bytes && one.dictionary_bytes == 0)
                        .collect();
                    let by_cell = calls(&settings, shrinks);
                    let all = Calls { by_cell: &by_cell, data_bytes: 1e9 };
                    let of = |setting: &Setting| outcome(&lithify, setting, &all, &basis);
                    let outcomes = settings.iter().filter_map(of).collect();
                    let collected = Collected::AsTheyAre;
                    let advice =
                        reprice(&lithify, outcomes, 0, collected, &basis, &prices, &expectations);
                    let advice = advice.expect("something was measured");
                    let best = advice.best();
                    let advised = best.setting.compression;

                    let mut chooser = Chooser::new(prices, Sizes::Fixed(size_bytes));
                    let specimen: Vec<Measured> = (METHODS.iter().enumerate())
                        .filter(|(_, method)| !method.has_dictionary)
                        .filter_map(|(method, of)| {
                            let [share, encode, decode] = behaviour(of.compression, shrinks)?;
                            let raw = 32_768.0;
                            // As the engine's own study: blocks over 7/8 stay raw.
                            let is_raw = share > 7.0 / 8.0;
                            let share = if is_raw { 1.0 } else { share };
                            let decode = if is_raw { 0.0 } else { decode };
                            Some(Measured {
                                method,
                                block_size_bytes: size_bytes,
                                raw_bytes: raw as u64,
                                stored_bytes: (share * raw) as u64,
                                compress_ns: encode * raw,
                                decompress_ns: decode * raw,
                            })
                        })
                        .collect();
                    for _ in 0..50 {
                        chooser.learn(6, &specimen);
                    }
                    let part = tree::parts(&basis)[0].lifetime_part();
                    let conditions = expectations.conditions(&lithify, &basis, part);
                    let decision = chooser.decide(6, &conditions);
                    let what = format!("{objective} {shrinks} {size_bytes}");
                    // Where several cost the same, advice is what one has or what writes fastest.
                    let chosen_there = decision.choice.method.compression;
                    let of_choice = advice
                        .outcomes
                        .iter()
                        .find(|one| one.setting.compression == chosen_there)
                        .expect("was measured");
                    let least = advice.outcomes.iter().map(Outcome::cost).fold(f64::MAX, f64::min);
                    for (name, cost) in [("advised", best.cost()), ("chosen", of_choice.cost())] {
                        assert!(
                            cost <= least * EQUAL_COST,
                            "{what}: {name} costs {cost}, not {least}"
                        );
                    }
                    chosen.push(advised.to_string());
                }
            }
        }
        chosen.sort();
        chosen.dedup();
        assert!(chosen.len() >= 4, "the cases differ: {chosen:?}");
    }
}
