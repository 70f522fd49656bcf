//! What has been measured of the methods on the data of one column family.

use super::candidate::{METHODS, REFERENCE, Sizes};
use super::cost::Behaviour;
use super::estimate::Estimate;
use crate::base::Level;
use std::collections::BTreeMap;

/// So many specimens a method needs before it can be chosen, at every size it is measured at.
pub const EVIDENCE_SPECIMENS: u64 = 3;

/// What other levels say of the ratio of a level counts as so many of its own specimens.
const SHARED_SPECIMENS: f64 = 2.0;

/// Blocks that shrink less than this are stored as they are.
const STORED_RATIO_MAX: f64 = 7.0 / 8.0;

/// One method on one specimen, cut into blocks of one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// An index of [`METHODS`].
    pub method: usize,
    /// The size of blocks, in bytes.
    pub block_size_bytes: usize,
    /// Bytes of the specimen.
    pub raw_bytes: u64,
    /// Bytes that would be stored, blocks that stay raw among them.
    pub stored_bytes: u64,
    /// CPU time of encoding all of it.
    pub compress_ns: f64,
    /// CPU time of decoding all of it.
    pub decompress_ns: f64,
}

impl Measured {
    fn ratio(&self) -> f64 {
        (self.stored_bytes.max(1) as f64 / self.raw_bytes.max(1) as f64).min(1.0)
    }

    fn per_byte(&self, ns: f64) -> f64 {
        ns / self.raw_bytes.max(1) as f64
    }
}

/// One method at one size, for all levels.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cell {
    /// The logarithm of its ratio over the reference's, on the same specimen.
    pub(super) log_quotient: Estimate,
    pub(super) compress_ns: Estimate,
    pub(super) decompress_ns: Estimate,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Knowledge {
    /// By method and size.
    pub(super) cells: BTreeMap<(usize, usize), Cell>,
    /// The reference's ratio by size, over all levels.
    pub(super) shared_ratio: BTreeMap<usize, Estimate>,
    /// The same of each level.
    pub(super) level_ratio: BTreeMap<(Level, usize), Estimate>,
}

/// A behaviour and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Known {
    pub(super) behaviour: Behaviour,
    /// Standard error of the ratio relative to the reference's, as a share.
    pub(super) quotient_error: f64,
    /// Standard error of the reference's ratio, as a share: all methods have it together.
    pub(super) reference_error: f64,
    pub(super) compress_error_ns: f64,
    pub(super) decompress_error_ns: f64,
}

impl Knowledge {
    /// Takes in what was measured on one specimen of a level. What lacks the reference's measurement
    /// at the same size is left out.
    pub fn learn(&mut self, level: Level, specimen: &[Measured]) {
        for reference in specimen.iter().filter(|measured| measured.method == REFERENCE) {
            let (size, ratio) = (reference.block_size_bytes, reference.ratio());
            self.shared_ratio.entry(size).or_default().add(ratio);
            self.level_ratio.entry((level, size)).or_default().add(ratio);
            for measured in specimen.iter().filter(|other| other.block_size_bytes == size) {
                let cell = self.cells.entry((measured.method, size)).or_default();
                cell.log_quotient.add((measured.ratio() / ratio).ln());
                cell.compress_ns.add_time(measured.per_byte(measured.compress_ns));
                cell.decompress_ns.add_time(measured.per_byte(measured.decompress_ns));
            }
        }
    }

    /// Forgets the methods with a dictionary, as when there is another one.
    pub fn forget_dictionary(&mut self) {
        self.cells.retain(|(method, _), _| {
            METHODS.get(*method).is_some_and(|method| !method.has_dictionary)
        });
    }

    /// Specimens of a method at the size that has fewest of them.
    pub fn specimens(&self, method: usize, sizes: &Sizes) -> u64 {
        let of_size = |size: &usize| {
            self.cells.get(&(method, *size)).map_or(0, |cell| cell.log_quotient.samples())
        };
        sizes.anchors().iter().map(of_size).min().unwrap_or(0)
    }

    /// The ratio of a method over the reference's at a measured size; `None` if it is not known well.
    pub(super) fn quotient(&self, method: usize, size: usize) -> Option<f64> {
        let cell = self.cells.get(&(method, size))?;
        let quotient = &cell.log_quotient;
        (quotient.samples() >= EVIDENCE_SPECIMENS).then(|| quotient.mean().map(f64::exp)).flatten()
    }

    /// Specimens of a level.
    pub fn specimens_of_level(&self, level: Level) -> u64 {
        let of_level = self.level_ratio.range((level, 0)..=(level, usize::MAX));
        of_level.map(|(_, estimate)| estimate.samples()).max().unwrap_or(0)
    }

    /// Whether hardly a block shrinks enough to be stored compressed, at any level.
    pub fn is_incompressible(&self) -> bool {
        let ratios = self.shared_ratio.values();
        let is_seen = ratios.clone().any(|ratio| ratio.samples() >= EVIDENCE_SPECIMENS);
        let mut all = ratios.filter_map(Estimate::mean);
        is_seen && all.all(|ratio| ratio > 0.5 + STORED_RATIO_MAX / 2.0)
    }

    /// The reference's ratio at a measured size, and its error as a share.
    fn reference(&self, level: Level, size: usize) -> Option<(f64, f64)> {
        let shared = self.shared_ratio.get(&size)?;
        let shared_mean = shared.mean()?;
        let own = self.level_ratio.get(&(level, size));
        let count = own.map_or(0.0, |own| own.samples().min(64) as f64);
        let own_mean = own.and_then(Estimate::mean).unwrap_or(shared_mean);
        let ratio =
            (count * own_mean + SHARED_SPECIMENS * shared_mean) / (count + SHARED_SPECIMENS);
        Some((ratio, shared.standard_error() / ratio.max(1e-3)))
    }

    fn at_anchor(&self, level: Level, method: usize, size: usize) -> Option<Known> {
        let (reference, reference_error) = self.reference(level, size)?;
        let cell = self.cells.get(&(method, size))?;
        let ratio = reference * cell.log_quotient.mean()?.exp();
        Some(Known {
            behaviour: Behaviour {
                ratio: ratio.min(1.0),
                compress_ns: cell.compress_ns.mean()?,
                decompress_ns: cell.decompress_ns.mean()?,
            },
            quotient_error: cell.log_quotient.standard_error(),
            reference_error,
            compress_error_ns: cell.compress_ns.standard_error(),
            decompress_error_ns: cell.decompress_ns.standard_error(),
        })
    }

    /// A method at a level and a size, between measured sizes along their logarithm.
    pub(super) fn known(
        &self,
        level: Level,
        method: usize,
        size: usize,
        sizes: &Sizes,
    ) -> Option<Known> {
        let anchors = sizes.anchors();
        let above = anchors.iter().position(|anchor| *anchor >= size).unwrap_or(anchors.len());
        let upper = above.clamp(1, anchors.len().saturating_sub(1).max(1));
        let low_size = *anchors.get(upper - 1)?;
        let low = self.at_anchor(level, method, low_size)?;
        let Some(high_size) = anchors.get(upper) else { return Some(low) };
        let high = self.at_anchor(level, method, *high_size)?;
        let place = (size as f64 / low_size as f64).log2();
        let part = place / (*high_size as f64 / low_size as f64).log2();
        if part <= 1.0 {
            return Some(between(&low, &high, part));
        }
        // Gains of size die away: half the gain beyond what was measured, and no faster calls. By the
        // line, blocks of 64 KiB were expected to decode a third faster than they did.
        let beyond = between(&low, &high, 1.0 + (part - 1.0) / 2.0);
        let Behaviour { compress_ns, decompress_ns, .. } = high.behaviour;
        let behaviour = Behaviour { ratio: beyond.behaviour.ratio, compress_ns, decompress_ns };
        Some(Known { behaviour, ..beyond })
    }
}

/// On the line through two, at `part` of the way; also beyond its ends.
fn between(low: &Known, high: &Known, part: f64) -> Known {
    let mix = |low: f64, high: f64| low + (high - low) * part;
    // Beyond the ends a line may fall too far.
    let positive = |low: f64, high: f64| mix(low, high).max(low.min(high) / 2.0);
    let (a, b) = (&low.behaviour, &high.behaviour);
    Known {
        behaviour: Behaviour {
            ratio: positive(a.ratio, b.ratio).min(1.0),
            compress_ns: positive(a.compress_ns, b.compress_ns),
            decompress_ns: positive(a.decompress_ns, b.decompress_ns),
        },
        quotient_error: low.quotient_error.max(high.quotient_error),
        reference_error: low.reference_error.max(high.reference_error),
        compress_error_ns: low.compress_error_ns.max(high.compress_error_ns),
        decompress_error_ns: low.decompress_error_ns.max(high.decompress_error_ns),
    }
}
