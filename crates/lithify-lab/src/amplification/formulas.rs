//! What trees amplify by the formulas of their kind: pure arithmetic, with the published examples
//! as tests.
//!
//! Write amplification is bytes written per byte of users' rows, the log included; space
//! amplification is bytes stored per byte of users' rows; read amplification is reads of the device
//! per query when the cache holds all but the lowest blocks. `R` is a row, `P` a page, `T` the
//! fanout, in bytes where they are sizes.

/// Bytes a write engine merges per byte that enters a level, in practice, by the fanout: the
/// published 7 at a fanout of 10, because the level below is rarely full.
const PRACTICE_OF_FANOUT: f64 = 0.7;

/// A page of a B-tree is full so far after inserts in random order.
pub const FILL_RANDOM: f64 = 2.0 / 3.0;

/// Share of absent keys that a filter of about ten bits per key does not tell.
pub const FALSE_POSITIVES: f64 = 0.01;

/// Write amplification of a B-tree: each row goes to the log, and its page is written back once for
/// `rows_per_page_write` changed rows, `copies` times (twice with a doublewrite area).
pub fn btree_write(row_bytes: f64, page_bytes: f64, rows_per_page_write: f64, copies: f64) -> f64 {
    1.0 + copies * page_bytes / (row_bytes * rows_per_page_write)
}

/// The rows changed per write-back of a page that make [`btree_write`] what was measured; `None`
/// when less than the log was written.
pub fn btree_rows_per_page_write(row_bytes: f64, page_bytes: f64, measured: f64) -> Option<f64> {
    (measured > 1.0).then(|| page_bytes / (row_bytes * (measured - 1.0)))
}

/// Space amplification of a B-tree whose pages are full to `fill` and that keeps `metadata_bytes`
/// with each row.
pub fn btree_space(fill: f64, row_bytes: f64, metadata_bytes: f64) -> f64 {
    (row_bytes + metadata_bytes) / row_bytes / fill
}

/// Space amplification of pages of fixed size on disk: what a compressed page leaves of its slot.
pub fn slot_space(slot_bytes: f64, compressed_bytes: f64) -> f64 {
    slot_bytes / compressed_bytes
}

/// One step of a leveled tree: what enters a level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Bytes written into the level per byte that enters it, before compression.
    pub merged: f64,
    /// Compressed by raw bytes of the level.
    pub compressed: f64,
}

/// Write amplification of a leveled tree: the log, then flush and merges of each level.
pub fn leveled_write(steps: &[Step]) -> f64 {
    1.0 + steps.iter().map(|step| step.merged * step.compressed).sum::<f64>()
}

/// The steps into level 0, the base level, and the levels below it, with what each level's data
/// compress to, top first. In theory a byte is merged with `fanout` others in each level below the
/// base level, in practice with fewer.
pub fn leveled_steps(compressed: &[f64], fanout: f64, is_practice: bool) -> Vec<Step> {
    let deep = if is_practice { fanout * PRACTICE_OF_FANOUT } else { fanout };
    let merged = |level: usize| if level < 2 { 1.0 } else { deep };
    (0..).zip(compressed).map(|(level, c)| Step { merged: merged(level), compressed: *c }).collect()
}

/// Space amplification of a leveled tree before compression: each level but the lowest may hold
/// rows that the lowest holds too.
pub fn leveled_space(levels: usize, fanout: f64) -> f64 {
    (0..levels.max(1)).map(|above| fanout.powi(-i32::try_from(above).unwrap_or(i32::MAX))).sum()
}

/// Reads of the device for a key that a leveled tree does not have: a filter that errs, in each of
/// the sorted runs.
pub fn leveled_absent(sorted_runs: usize) -> f64 {
    sorted_runs as f64 * FALSE_POSITIVES
}

/// Comparisons of a search among sorted rows in memory.
pub fn comparisons(rows: f64) -> f64 {
    rows.log2().ceil()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_examples_of_b_trees() {
        assert_eq!(btree_write(128.0, 4096.0, 1.0, 1.0), 33.0);
        assert_eq!(btree_write(128.0, 4096.0, 1.0, 2.0), 65.0, "with doublewrite");
        assert_eq!(btree_write(128.0, 4096.0, 4.0, 1.0), 9.0);
        assert_eq!(btree_space(2.0 / 3.0, 128.0, 0.0), 1.5);
        assert_eq!(btree_space(0.5, 128.0, 0.0), 2.0);
        assert!((btree_space(2.0 / 3.0, 100.0, 20.0) - 1.8).abs() < 1e-12);
        assert_eq!(slot_space(8.0, 5.0), 8.0 / 5.0);
        assert_eq!(btree_rows_per_page_write(128.0, 4096.0, 33.0), Some(1.0));
        assert_eq!(btree_rows_per_page_write(128.0, 4096.0, 9.0), Some(4.0));
        assert_eq!(btree_rows_per_page_write(128.0, 4096.0, 1.0), None);
    }

    #[test]
    fn published_examples_of_leveled_trees() {
        // Log, flush, level 0 to level 1, then three levels at 7 in practice.
        let steps = leveled_steps(&[1.0; 5], 10.0, true);
        assert_eq!(leveled_write(&steps), 24.0);
        assert_eq!(leveled_write(&leveled_steps(&[1.0; 5], 10.0, false)), 33.0);
        // Half of it where the levels compress to half; the log does not.
        let halved = leveled_write(&leveled_steps(&[0.5; 5], 10.0, true));
        assert_eq!(halved, 1.0 + 23.0 / 2.0);
        assert_eq!(leveled_write(&leveled_steps(&[1.0, 1.0, 0.5], 10.0, false)), 8.0);
        assert_eq!(leveled_space(1, 10.0), 1.0);
        assert!((leveled_space(3, 10.0) - 1.11).abs() < 1e-12);
        assert_eq!(leveled_space(0, 10.0), 1.0);
        assert!((leveled_absent(5) - 0.05).abs() < 1e-12);
        assert_eq!(comparisons(1e6), 20.0);
    }
}
