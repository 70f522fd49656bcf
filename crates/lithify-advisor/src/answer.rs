//! From calls of codecs to advice: sizes with intervals, CPU, costs, the cheapest setting.

use std::collections::BTreeMap;
use std::time::Duration;

use lithify::chooser::{Behaviour, Conditions, HOURS_PER_MONTH, Terms, price};
use lithify::{Compression, Prices};

use crate::estimate::Estimate;
use crate::input::Facts;
use crate::measure::{Call, Cell};
use crate::sample::Collected;
use crate::targets::{Advised, Basis, OtherForms, Setting, Target};

/// A call that takes longer stalls an event loop.
const LONG_CALL_NS: u64 = 1_000_000;

/// Shares of the bytes in a tree whose levels grow tenfold: the bottom, the level above, the rest.
pub const LEVEL_SHARES: [f64; 3] = [0.9, 0.09, 0.01];
/// Bytes of a level live so much shorter than those of the level below.
const LIFETIME_PARTS: [f64; 2] = [10.0, 100.0];

/// What is known of how the data are used. Everything else is assumed and said.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Expectations {
    /// How often a row is read in its life.
    pub reads_per_row: Option<f64>,
    /// The share of reads that find their row in a cache.
    pub hot: Option<f64>,
    /// Months until a row is rewritten or deleted.
    pub months: Option<f64>,
}

/// Loads of each MiB in a month where nothing is known of reads: the engine's own assumption for a
/// level that it did not watch.
const ASSUMED_LOADS_PER_MIB_MONTH: f64 = 4_000.0;

/// The share of reads that a cache is taken to answer.
const ASSUMED_HOT: f64 = 0.5;

impl Expectations {
    /// Months that a byte lives.
    pub fn lifetime_months(&self) -> f64 {
        self.months.unwrap_or(1.0)
    }

    /// Loads of each MiB of data in its life.
    pub fn loads_per_mib(&self, basis: &Basis) -> f64 {
        let rows_per_mib = 1_048_576.0 / basis.row_bytes.max(1.0);
        match self.reads_per_row {
            None => ASSUMED_LOADS_PER_MIB_MONTH * self.lifetime_months(),
            Some(reads) => reads * (1.0 - self.hot.unwrap_or(ASSUMED_HOT)) * rows_per_mib,
        }
    }

    /// What the cost equation asks for, of bytes that live a part of the time.
    fn conditions(&self, target: &Target, basis: &Basis, lifetime_part: f64) -> Conditions {
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
    /// CPU time of decoding one unit: what a read of one row takes when it is not cached.
    pub unit_decode_us: f64,
    /// Bytes of the data in a unit.
    pub unit_data_bytes: f64,
    /// The share of calls that encode for longer than a millisecond.
    pub long_calls: f64,
    /// What a GB of data costs in its life, in millionths of the currency.
    pub terms: Terms,
}

impl Outcome {
    /// What it costs.
    pub fn cost(&self) -> f64 {
        self.terms.total()
    }
}

/// What is advised for a target.
#[derive(Clone, Debug)]
pub struct TargetAdvice {
    /// For whom.
    pub target: Target,
    /// All settings that were measured, cheapest first.
    pub outcomes: Vec<Outcome>,
    /// Which of them it comes with; it may be that it was not measured.
    pub default: Option<usize>,
    /// How its rows were put in order.
    pub collected: Collected,
    /// The same at the other order, where the true one could not be had: its ratio.
    pub other_order: Option<f64>,
    /// Settings that time did not allow.
    pub unmeasured: usize,
}

impl TargetAdvice {
    /// The cheapest.
    pub fn best(&self) -> &Outcome {
        &self.outcomes[0]
    }

    /// What it comes with.
    pub fn default_outcome(&self) -> Option<&Outcome> {
        self.default.map(|at| &self.outcomes[at])
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
            let cpu = outcome.encode_ns + outcome.decode_ns;
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
    /// Bits a byte, by how often each of the 256 comes.
    pub entropy_bits: f64,
    /// The share of 4 KiB pieces that do not shrink by an eighth with zstd-3.
    pub incompressible: f64,
    /// How much smaller zstd-3 makes 64 KiB than 4 KiB: what repeats within tens of rows and more.
    pub far_repeats: f64,
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
    /// What is not known, each with how to tell.
    pub unknown: Vec<String>,
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

/// What a setting comes to; `None` if nothing of it was measured.
pub(crate) fn outcome(
    target: &Target,
    setting: &Setting,
    calls: &Calls<'_>,
    basis: &Basis,
    prices: &Prices,
    expectations: &Expectations,
) -> Option<Outcome> {
    let cell_calls = calls_of(setting, calls)?;
    let stored = |call: &Call| (target.stored_bytes)(setting, call, basis);
    let sum = |figure: &dyn Fn(&Call) -> f64| cell_calls.iter().map(figure).sum::<f64>();
    let data_bytes = sum(&|call| call.data_bytes);
    let share = data_bytes / calls.data_bytes;
    let ratio = Estimate::of_places(&by_place(cell_calls, stored), share);
    let held_out = (setting.dictionary_bytes == 0).then(|| {
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
    let time = |at: usize| {
        timed.iter().filter_map(|call| call.time).map(|time| time[at] as f64).sum::<f64>()
    };
    let [encode_ns, decode_ns] = match setting.compression == Compression::NONE {
        true => [0.0, 0.0],
        false => [time(0) / timed_bytes, time(1) / timed_bytes],
    };
    let is_long = |call: &&&Call| call.time.is_some_and(|time| time[0] > LONG_CALL_NS);
    let long_calls = timed.iter().filter(is_long).count() as f64 / timed.len().max(1) as f64;
    let unit_data_bytes = data_bytes / cell_calls.len() as f64;
    let behaviour =
        Behaviour { ratio: ratio.value, compress_ns: encode_ns, decompress_ns: decode_ns };
    let conditions = expectations.conditions(target, basis, 1.0);
    let terms = price(&behaviour, unit_data_bytes as usize, &conditions, prices);
    Some(Outcome {
        setting: setting.clone(),
        upper: [setting.compression; 2],
        ratio,
        bottom: ratio,
        held_out,
        encode_ns,
        decode_ns,
        unit_decode_us: decode_ns * unit_data_bytes / 1e3,
        unit_data_bytes,
        long_calls,
        terms,
    })
}

/// The codecs of the levels above the bottom: the cheapest of the same block size for bytes that live
/// a tenth and a hundredth as long, and the ratio of all levels together.
pub(crate) fn with_levels(
    target: &Target,
    outcomes: &mut [Outcome],
    basis: &Basis,
    prices: &Prices,
    expectations: &Expectations,
) {
    let plain: Vec<Outcome> =
        outcomes.iter().filter(|one| one.setting.dictionary_bytes == 0).cloned().collect();
    for outcome in outcomes {
        let size = outcome.setting.size_bytes;
        let mut ratio = outcome.bottom.value * LEVEL_SHARES[0];
        for (at, part) in LIFETIME_PARTS.iter().enumerate() {
            let conditions = expectations.conditions(target, basis, *part);
            let cost = |one: &&Outcome| {
                let behaviour = Behaviour {
                    ratio: one.ratio.value,
                    compress_ns: one.encode_ns,
                    decompress_ns: one.decode_ns,
                };
                price(&behaviour, one.unit_data_bytes as usize, &conditions, prices).total()
            };
            let same = plain.iter().filter(|one| one.setting.size_bytes == size);
            let Some(cheapest) = same.min_by(|a, b| cost(a).total_cmp(&cost(b))) else { continue };
            outcome.upper[at] = cheapest.setting.compression;
            ratio += cheapest.bottom.value * LEVEL_SHARES[at + 1];
        }
        let widening = ratio / outcome.bottom.value.max(1e-9);
        outcome.ratio = Estimate { value: ratio, half_width: outcome.bottom.half_width * widening };
    }
}

/// How often a byte is encoded on its way to the bottom of a tree of levels that grow tenfold: once
/// by the flush, and (10 + 1) / 2 times in each level.
pub fn rewrites(has_levels: bool, basis: &Basis) -> f64 {
    match has_levels {
        false => 1.0,
        true => {
            let levels = (basis.data_bytes / 268_435_456.0).max(1.0).log10().ceil() + 1.0;
            1.0 + 5.5 * levels
        }
    }
}
