//! What a tree of levels does to a byte: where it lies, how often it is written there, what all of it
//! costs, and the codecs of the levels above the bottom.
//!
//! A row that lives for `months` passes every level once. In a level ten times as large as the one above
//! it, it is rewritten each time that as much comes from above: (10 + 1) / 2 times in the mean. So a
//! written byte lives for the part of the row's life that the level holds of the bytes, over its writes.

use lithify::chooser::Terms;
use lithify::{Compression, Prices};

use crate::answer::{Expectations, Outcome, terms_of};
use crate::estimate::Estimate;
use crate::targets::{Basis, Setting, Target};

/// How often a byte is written in a level.
const WRITES_PER_LEVEL: f64 = 5.5;

/// Levels that have one codec.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Part {
    /// The share of the bytes that lie there.
    share: f64,
    /// How often a byte of the data is written there, on its way through.
    writes: f64,
}

/// The bottom, the level above it, and level 0 with all others. A tree of one level has no level between.
pub(crate) fn parts(basis: &Basis) -> [Part; 3] {
    let levels = basis.tenfold_steps() + 1.0;
    let part = |share, writes| Part { share, writes };
    match levels < 2.0 {
        true => [part(0.9, WRITES_PER_LEVEL), part(0.0, 0.0), part(0.1, 1.0)],
        false => [
            part(0.9, WRITES_PER_LEVEL),
            part(0.09, WRITES_PER_LEVEL),
            part(0.01, 1.0 + WRITES_PER_LEVEL * (levels - 2.0)),
        ],
    }
}

/// How often a byte is written on its way to where it stays: by the flush, and in each level.
pub fn rewrites(has_levels: bool, basis: &Basis) -> f64 {
    match has_levels {
        false => 1.0,
        true => parts(basis).iter().map(|part| part.writes).sum(),
    }
}

impl Part {
    /// How much shorter than the row a written byte lives.
    pub(crate) fn lifetime_part(&self) -> f64 {
        self.writes / self.share.max(1e-9)
    }

    /// The share of the bytes that lie there.
    pub(crate) fn share(&self) -> f64 {
        self.share
    }

    /// How often a byte of the data is written there; 0 where the tree has no such level.
    pub(crate) fn writes(&self) -> f64 {
        self.writes
    }

    /// What all writes of a byte there cost.
    pub(crate) fn all_terms(&self, of: &Outcome, use_of: &Use<'_>) -> Terms {
        let mut sum = Terms::default();
        add_times(&mut sum, self.writes, &self.terms(of, use_of));
        sum
    }

    /// What one write costs, until the next one.
    fn terms(&self, of: &Outcome, use_of: &Use<'_>) -> Terms {
        let conditions =
            use_of.expectations.conditions(use_of.target, use_of.basis, self.lifetime_part());
        let (costs, unit_bytes) = ([of.encode_ns, of.decode_ns], of.unit_data_bytes as usize);
        terms_of(of.bottom.value, costs, unit_bytes, &conditions, use_of.prices)
    }
}

/// For whom, of what, and at what prices.
pub(crate) struct Use<'a> {
    pub(crate) target: &'a Target,
    pub(crate) basis: &'a Basis,
    pub(crate) prices: &'a Prices,
    pub(crate) expectations: &'a Expectations,
}

/// Gives each outcome the codecs of the levels above its bottom: the cheapest ones of the same block size.
/// Its ratio, CPU and cost are then those of all levels together. What the target comes with is there a
/// second time, if the codecs above that it comes with are others.
pub(crate) fn with_levels(
    outcomes: &mut Vec<Outcome>,
    default: Option<&Setting>,
    use_of: &Use<'_>,
) {
    let measured = outcomes.clone();
    for outcome in outcomes.iter_mut() {
        with_upper(outcome, &measured, None, use_of);
    }
    let is_default = |one: &Outcome| Some(&one.setting) == default;
    add_ladder(outcomes, is_default, use_of.target.default_upper, use_of);
}

/// Adds a setting for a second time with these codecs above its bottom, unless it has them already.
pub(crate) fn add_ladder(
    outcomes: &mut Vec<Outcome>,
    is_bottom: impl Fn(&Outcome) -> bool,
    upper: [Compression; 2],
    use_of: &Use<'_>,
) {
    let bottoms = || outcomes.iter().filter(|one| is_bottom(one));
    if bottoms().any(|one| one.upper == upper) {
        return;
    }
    let Some(mut ladder) = bottoms().find(|one| !one.has_set_upper).cloned() else { return };
    ladder.has_set_upper = true;
    with_upper(&mut ladder, outcomes, Some(upper), use_of);
    outcomes.push(ladder);
}

/// Gives an outcome these codecs above its bottom, or the cheapest of those that were measured.
fn with_upper(
    outcome: &mut Outcome,
    measured: &[Outcome],
    upper: Option<[Compression; 2]>,
    use_of: &Use<'_>,
) {
    let [bottom, above, rest] = parts(use_of.basis);
    let size_bytes = outcome.setting.size_bytes;
    let cheapest = |part: &Part, may_be: &dyn Fn(Compression) -> bool| {
        let cost = |one: &&Outcome| part.terms(one, use_of).total();
        let is_one = |one: &&Outcome| {
            let Setting { compression, size_bytes: size, dictionary_bytes, .. } = one.setting;
            let is_allowed = upper.is_some() || !one.is_too_long;
            dictionary_bytes == 0 && size == size_bytes && may_be(compression) && is_allowed
        };
        measured.iter().filter(is_one).min_by(|a, b| cost(a).total_cmp(&cost(b)))
    };
    // Not measured: its own codec stands for it.
    let own = outcome.clone();
    let fits = |at: usize, codec| upper.is_none_or(|upper| upper[at] == codec);
    let is_there = above.writes > 0.0;
    let middle = is_there.then(|| cheapest(&above, &|codec| fits(0, codec)).unwrap_or(&own));
    let beside = |codec: Compression| {
        let may_be = use_of.target.may_be_above;
        middle.is_none_or(|middle| may_be(codec, middle.setting.compression))
    };
    let small = cheapest(&rest, &|codec| fits(1, codec) && beside(codec)).unwrap_or(&own);
    let mut sum = Sum::default();
    sum.add(&bottom, &own, use_of);
    sum.add(&rest, small, use_of);
    if let Some(middle) = middle {
        sum.add(&above, middle, use_of);
    }
    let small = small.setting.compression;
    let chosen = [middle.map_or(small, |middle| middle.setting.compression), small];
    sum.give(outcome, upper.unwrap_or(chosen));
}

/// What the levels of a tree come to.
#[derive(Default)]
struct Sum {
    ratio: f64,
    write_ns: f64,
    terms: Terms,
}

impl Sum {
    fn add(&mut self, part: &Part, of: &Outcome, use_of: &Use<'_>) {
        self.ratio += part.share * of.bottom.value;
        self.write_ns += part.writes * (of.encode_ns + of.decode_ns);
        add_times(&mut self.terms, 1.0, &part.all_terms(of, use_of));
    }

    fn give(self, outcome: &mut Outcome, upper: [Compression; 2]) {
        outcome.upper = upper;
        let widening = self.ratio / outcome.bottom.value.max(1e-9);
        let half_width = outcome.bottom.half_width * widening;
        outcome.ratio = Estimate { value: self.ratio, half_width };
        // No compaction decodes what stays.
        outcome.write_ns = self.write_ns - outcome.decode_ns;
        outcome.terms = self.terms;
    }
}

/// Adds the terms of so many writes.
pub(crate) fn add_times(sum: &mut Terms, writes: f64, of: &Terms) {
    sum.compress += writes * of.compress;
    sum.merge += writes * of.merge;
    sum.points += writes * of.points;
    sum.scans += writes * of.scans;
    sum.write += writes * of.write;
    sum.rewrites += writes * of.rewrites;
    sum.store += writes * of.store;
    sum.device += writes * of.device;
    sum.memory += writes * of.memory;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Expectations;
    use crate::target;

    const GIB: f64 = 1_073_741_824.0;

    fn basis(database_bytes: f64) -> Basis {
        Basis { key_bytes: 16.0, row_bytes: 100.0, database_bytes, ..Basis::default() }
    }

    fn outcome_of(setting: &Setting, share: f64, [encode_ns, decode_ns]: [f64; 2]) -> Outcome {
        let bottom = Estimate { value: share, half_width: 0.01 };
        Outcome {
            setting: setting.clone(),
            upper: [setting.compression; 2],
            has_set_upper: false,
            ratio: bottom,
            bottom,
            held_out: None,
            encode_ns,
            decode_ns,
            write_ns: 0.0,
            unit_decode_us: decode_ns * setting.size_bytes as f64 / 1e3,
            unit_data_bytes: setting.size_bytes as f64,
            long_calls: 0.0,
            is_too_long: false,
            terms: Terms::default(),
        }
    }

    #[test]
    fn a_byte_is_written_by_the_flush_and_five_and_a_half_times_in_each_level() {
        for (size, expected) in [(0.1 * GIB, 6.5), (1.0 * GIB, 12.0), (20.0 * GIB, 17.5)] {
            assert_eq!(rewrites(true, &basis(size)), expected, "{size}");
            let shares: f64 = parts(&basis(size)).iter().map(|part| part.share).sum();
            assert!((shares - 1.0).abs() < 1e-9);
        }
        assert_eq!(rewrites(false, &basis(20.0 * GIB)), 1.0);
    }

    #[test]
    fn every_write_of_every_level_is_paid_for() {
        let lithify = target("lithify").expect("is there");
        let (prices, expectations) = (Prices::BALANCED, Expectations::default());
        let settings = (lithify.settings)();
        let setting = |name: &str| {
            settings.iter().find(|setting| setting.name() == name).expect("is there").clone()
        };
        let basis = basis(20.0 * GIB);
        let use_of =
            Use { target: &lithify, basis: &basis, prices: &prices, expectations: &expectations };
        let mut alone = vec![outcome_of(&setting("zstd-3 16k"), 0.4, [6.0, 1.5])];
        with_levels(&mut alone, None, &use_of);
        let terms = alone[0].terms;
        // Nothing else was measured: one codec in all levels, 17.5 writes of 0.4 GB for a GB.
        assert!((terms.write / (150.0 * 0.4 * 17.5) - 1.0).abs() < 1e-6, "{terms:?}");
        let compress = 11.0 * 17.5 * (6.0 + 0.4 * 1.6 / 2.0);
        assert!((terms.compress / compress - 1.0).abs() < 0.02, "{terms:?}");
        // What is stored is stored once, for a month.
        assert!((terms.store / (3_300.0 * 0.4) - 1.0).abs() < 1e-6, "{terms:?}");
        assert!((alone[0].write_ns - (17.5 * 7.5 - 1.5)).abs() < 1e-6);
        // A cheaper codec above is part of CPU and cost.
        let mut both = vec![alone[0].clone(), outcome_of(&setting("lz4 16k"), 0.45, [2.0, 0.4])];
        with_levels(&mut both, None, &use_of);
        assert_eq!(both[0].upper.map(|codec| codec.to_string()), ["lz4", "lz4"]);
        let write_ns = 5.5 * 7.5 + 12.0 * 2.4 - 1.5;
        assert!((both[0].write_ns - write_ns).abs() < 1e-6, "{}", both[0].write_ns);
        assert!(both[0].cost() < terms.total());
        assert!((both[0].ratio.value - (0.9 * 0.4 + 0.1 * 0.45)).abs() < 1e-9);
    }

    #[test]
    fn one_option_for_the_effort_of_all_upper_levels_is_one_effort() {
        let rocksdb = target("rocksdb").expect("is there");
        let of = |text: &str| text.parse::<Compression>().expect("a codec");
        let may = |small: &str, above: &str| (rocksdb.may_be_above)(of(small), of(above));
        assert!(may("lz4", "zstd-3") && may("zstd-3", "lz4") && may("zstd-3", "zstd-3"));
        assert!(!may("zstd-1", "zstd-3") && !may("lz4-9", "zstd-3"));
        assert!((target("lithify").expect("is there").may_be_above)(of("zstd-1"), of("zstd-3")));
    }
}
