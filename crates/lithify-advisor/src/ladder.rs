//! What the ladder costs that a database is set to: each part of its tree, other codecs there, and the best
//! ladder.
//!
//! A ladder has a codec for each distance from the bottom. Costs are those of [`crate::tree`]: every write of
//! every level is paid for, so that the parts add up to what the ladder costs.

use lithify::Compression;
use lithify::chooser::Terms;

use crate::answer::{Advice, EQUAL_COST, Outcome, TargetAdvice};
use crate::input::{Present, Stored};
use crate::tree::{Part, Use, add_times, parts};

/// A place in a tree that has a codec of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Level 0 and all levels above the middle.
    Small,
    /// The level above the bottom.
    Middle,
    /// The last level, with most of the bytes.
    Bottom,
}

impl Place {
    /// As a codec policy calls it.
    pub fn name(self) -> &'static str {
        match self {
            Place::Small => "small",
            Place::Middle => "middle",
            Place::Bottom => "bottom",
        }
    }
}

/// Codecs of all places, with what they cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Ladder {
    /// As the option is written, with the size of blocks: "none,lz4,zstd-1 16k".
    pub name: String,
    /// What a GB of rows costs in its life, in millionths of the currency.
    pub terms: Terms,
    /// Stored bytes for each byte of the rows.
    pub ratio: f64,
}

impl Ladder {
    /// What it costs.
    pub fn cost(&self) -> f64 {
        self.terms.total()
    }
}

/// A codec at a place.
#[derive(Clone, Debug, PartialEq)]
pub struct CodecPrice {
    /// Codec, effort, and whether with a dictionary.
    pub name: String,
    /// Whether the ladder has it there.
    pub is_set: bool,
    /// What all writes of a GB of rows cost there, each until the next one.
    pub terms: Terms,
    /// Stored bytes for each byte of the rows.
    pub ratio: f64,
    /// CPU time of encoding a byte, in nanoseconds.
    pub encode_ns: f64,
    /// CPU time of decoding it.
    pub decode_ns: f64,
}

impl CodecPrice {
    /// What it costs.
    pub fn cost(&self) -> f64 {
        self.terms.total()
    }
}

/// A place with the codecs that were measured for it.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacePrices {
    /// Which.
    pub place: Place,
    /// The share of the rows' bytes that lie there.
    pub share: f64,
    /// How often a byte is written there on its way down.
    pub writes: f64,
    /// The one that is set and all others in blocks of the same size, the cheapest first.
    pub codecs: Vec<CodecPrice>,
}

impl PlacePrices {
    /// The codec that the ladder has there.
    pub fn set(&self) -> Option<&CodecPrice> {
        self.codecs.iter().find(|codec| codec.is_set)
    }

    /// The others, the cheapest first.
    pub fn others(&self) -> impl Iterator<Item = &CodecPrice> {
        self.codecs.iter().filter(|codec| !codec.is_set)
    }
}

/// What a ladder costs, beside the best one.
#[derive(Clone, Debug, PartialEq)]
pub struct LadderPrices {
    /// The ladder that is set.
    pub set: Ladder,
    /// The one that is advised; any size of blocks.
    pub best: Ladder,
    /// From the top down. A small tree has no middle.
    pub places: Vec<PlacePrices>,
}

impl LadderPrices {
    /// The part of the cost that the best ladder saves; `None` where it is within what two measurements
    /// differ by.
    pub fn saving(&self) -> Option<f64> {
        let (set, best) = (self.set.cost(), self.best.cost());
        (set > best * EQUAL_COST).then(|| 1.0 - best / set)
    }
}

/// The prices of the ladder that a database is set to, from what was measured of its rows. `None` if it is
/// set to none, or if time did not allow one of its codecs.
pub fn prices(advice: &Advice) -> Option<LadderPrices> {
    let present = advice.data.present.as_ref().filter(|present| present.is_set)?;
    let target = advice.targets.iter().find(|one| one.target.name == present.target)?;
    let use_of = Use {
        target: &target.target,
        basis: &advice.data.basis,
        prices: &advice.prices,
        expectations: &advice.expectations,
    };
    let stored = stored(present)?;
    let [bottom, middle, small] = parts(&advice.data.basis);
    let of_ladder = [(Place::Small, small), (Place::Middle, middle), (Place::Bottom, bottom)];
    let is_there = |(_, part): &(Place, Part)| part.writes() > 0.0;
    let places: Option<Vec<PlacePrices>> = of_ladder
        .into_iter()
        .zip(stored)
        .filter(|(of_place, _)| is_there(of_place))
        .map(|((place, part), set)| place_prices(place, &part, &set, target, &use_of))
        .collect();
    let places = places?;
    let set = set_ladder(&stored, &places)?;
    Some(LadderPrices { set, best: best_ladder(target), places })
}

/// What the small, the middle and the bottom levels are set to.
fn stored(present: &Present) -> Option<[Stored; 3]> {
    let (bottom, [middle, small]) = (present.bottom?, present.upper?);
    let upper = |compression| Stored { compression, has_dictionary: false, ..bottom };
    Some([upper(small), upper(middle), bottom])
}

fn place_prices(
    place: Place,
    part: &Part,
    set: &Stored,
    target: &TargetAdvice,
    use_of: &Use<'_>,
) -> Option<PlacePrices> {
    // The one with the usual upper levels stands there twice.
    let of_size = target
        .outcomes
        .iter()
        .filter(|one| !one.has_set_upper && one.setting.size_bytes == set.block_size_bytes);
    // Encoders of one format differ in what they cost.
    let is_set = |one: &Outcome| {
        set.is(&one.setting) && set.compression.encoder == one.setting.compression.encoder
    };
    let fits = |one: &&Outcome| {
        let has_dictionary = one.setting.dictionary_bytes > 0;
        is_set(one) || (!one.is_too_long && (!has_dictionary || place == Place::Bottom))
    };
    let price = |one: &Outcome| CodecPrice {
        name: codec_name(one.setting.compression, one.setting.dictionary_bytes > 0),
        is_set: is_set(one),
        terms: part.all_terms(one, use_of),
        ratio: one.bottom.value,
        encode_ns: one.encode_ns,
        decode_ns: one.decode_ns,
    };
    let mut codecs: Vec<CodecPrice> = of_size.filter(fits).map(price).collect();
    codecs.sort_by(|a, b| a.cost().total_cmp(&b.cost()));
    let prices = PlacePrices { place, share: part.share(), writes: part.writes(), codecs };
    prices.set().is_some().then_some(prices)
}

fn set_ladder([small, middle, bottom]: &[Stored; 3], places: &[PlacePrices]) -> Option<Ladder> {
    let mut ladder = Ladder {
        name: format!("{},{},{bottom}", small.compression, middle.compression),
        terms: Terms::default(),
        ratio: 0.0,
    };
    for place in places {
        let set = place.set()?;
        add_times(&mut ladder.terms, 1.0, &set.terms);
        ladder.ratio += place.share * set.ratio;
    }
    Some(ladder)
}

fn best_ladder(target: &TargetAdvice) -> Ladder {
    let best = target.best();
    let [middle, small] = best.upper;
    let name = format!("{small},{middle},{}", best.setting.name());
    Ladder { name, terms: best.terms, ratio: best.ratio.value }
}

fn codec_name(compression: Compression, has_dictionary: bool) -> String {
    format!("{compression}{}", if has_dictionary { "+dictionary" } else { "" })
}

#[cfg(test)]
mod tests {
    use lithify::Prices;

    use super::*;
    use crate::answer::{Course, DataFacts, Expectations, reprice};
    use crate::estimate::Estimate;
    use crate::sample::Collected;
    use crate::target;
    use crate::targets::Basis;

    /// Advice for 20 GiB of rows that are set to a ladder, from made-up measurements of four codecs.
    fn advice(ladder: [&str; 3]) -> Advice {
        let lithify = target("lithify").expect("is there");
        let codec = |name: &str| name.parse::<Compression>().expect("a codec");
        let [small, middle, bottom] = ladder.map(codec);
        let stored =
            Stored { compression: bottom, block_size_bytes: 16 << 10, has_dictionary: false };
        let present = Present {
            target: "lithify",
            settings: String::new(),
            bottom: Some(stored),
            upper: Some([middle, small]),
            is_set: true,
            found: Vec::new(),
            stored_bytes: 0,
            tables: 1,
            rows_in_log: 0,
        };
        let basis = Basis {
            key_bytes: 16.0,
            row_bytes: 100.0,
            data_bytes: 2e10,
            has_rows: true,
            database_bytes: 2e10,
        };
        let measured =
            [("none", 1.0, 0.0), ("lz4", 0.5, 2.0), ("zstd-1", 0.4, 5.0), ("zstd-3", 0.38, 6.0)];
        let outcome = |(name, share, encode_ns): (&str, f64, f64)| {
            let settings = (lithify.settings)();
            let is_it = |one: &&crate::targets::Setting| one.name() == format!("{name} 16k");
            let setting = settings.iter().find(is_it).expect("is there").clone();
            let bottom = Estimate { value: share, half_width: 0.0 };
            Outcome {
                upper: [setting.compression; 2],
                setting,
                has_set_upper: false,
                ratio: bottom,
                bottom,
                held_out: None,
                encode_ns,
                decode_ns: encode_ns / 4.0,
                write_ns: encode_ns,
                unit_decode_us: 0.0,
                unit_data_bytes: 16_384.0,
                long_calls: 0.0,
                is_too_long: false,
                terms: Terms::default(),
            }
        };
        let outcomes = measured.map(outcome).to_vec();
        let (prices, expectations) = (Prices::BALANCED, Expectations::default());
        let collected = Collected::AsTheyAre;
        let use_of =
            Use { target: &lithify, basis: &basis, prices: &prices, expectations: &expectations };
        let target = reprice(&lithify, outcomes, 0, collected, &basis, &prices, &expectations)
            .expect("is measured")
            .beside(Some(&present), &use_of);
        Advice {
            data: DataFacts { basis, present: Some(present), ..DataFacts::default() },
            targets: vec![target],
            goal: "balanced".to_owned(),
            prices,
            expectations,
            took: std::time::Duration::ZERO,
            course: Course::default(),
            unknown: Vec::new(),
            samples: Vec::new(),
        }
    }

    #[test]
    fn places_add_up_to_the_ladder_and_the_best_one_to_its_codecs() {
        let prices = prices(&advice(["none", "lz4", "zstd-1"])).expect("was measured");
        assert_eq!(prices.set.name, "none,lz4,zstd-1 16k");
        let names: Vec<&str> = prices.places.iter().map(|one| one.place.name()).collect();
        assert_eq!(names, ["small", "middle", "bottom"]);
        let sum = |cost: &dyn Fn(&PlacePrices) -> f64| prices.places.iter().map(cost).sum::<f64>();
        let set = sum(&|place| place.set().expect("is measured").cost());
        assert!((set / prices.set.cost() - 1.0).abs() < 1e-9);
        let shares = 0.01 + 0.09 * 0.5 + 0.9 * 0.4;
        assert!((prices.set.ratio - shares).abs() < 1e-9, "{}", prices.set.ratio);
        // All blocks have one size here: the best ladder has the cheapest codec of each place.
        let least = sum(&|place| place.codecs[0].cost());
        assert!((prices.best.cost() / least - 1.0).abs() < EQUAL_COST - 1.0, "{prices:?}");
        let saving = prices.saving().expect("is cheaper");
        assert!((saving - (1.0 - prices.best.cost() / set)).abs() < 1e-9);
    }

    #[test]
    fn advice_has_the_same_price_of_what_is_set() {
        let advice = advice(["none", "lz4", "zstd-3"]);
        let prices = prices(&advice).expect("was measured");
        let target = &advice.targets[0];
        let present = target.before().expect("is set");
        assert_eq!(present.name(), prices.set.name);
        assert!((present.cost() / prices.set.cost() - 1.0).abs() < 1e-9);
        assert!((present.ratio.value - prices.set.ratio).abs() < 1e-9);
        // What it comes with has another codec at the bottom.
        let default = target.default_outcome().expect("was measured");
        assert_eq!(default.name(), "none,lz4,zstd-1 16k");
    }

    #[test]
    fn the_best_ladder_saves_nothing() {
        let best = prices(&advice(["none", "lz4", "zstd-1"])).expect("was measured").best;
        let codecs: Vec<&str> = best.name.trim_end_matches(" 16k").split(',').collect();
        let again = prices(&advice([codecs[0], codecs[1], codecs[2]])).expect("was measured");
        assert_eq!((again.set.name.as_str(), again.saving()), (best.name.as_str(), None));
        assert!((again.set.cost() / best.cost() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn what_was_not_measured_has_no_price() {
        assert_eq!(prices(&advice(["none", "lz4", "zlib-6"])), None);
        assert_eq!(prices(&advice(["snappy", "lz4", "zstd-1"])), None);
    }
}
