//! The check of growth, with the allocator that it asks.

use lithify_sim::check::{Tally, run_case};
use lithify_sim::fuzz::allocation::taken_by;
use lithify_sim::growth::Growth;

#[test]
fn what_is_asked_for_is_counted() {
    let (_, taken) = taken_by(|| (0..10).map(|_| vec![1_u8; 1 << 20].len()).sum::<usize>());
    assert!((10 << 20..11 << 20).contains(&taken.asked_bytes), "{taken:?}");
    assert!((1 << 20..2 << 20).contains(&taken.peak_bytes), "{taken:?}");
}

#[test]
fn histories_of_every_kind_grow_no_faster_than_their_length() {
    let mut tally = Tally::default();
    // Every kind, without reads and flushes in between.
    let kinds = 16;
    let findings: Vec<String> = (0..kinds)
        .filter_map(|case| run_case(&Growth, case, &mut tally).err())
        .map(|finding| finding.to_string())
        .collect();
    assert!(findings.is_empty(), "{}", findings.join("\n"));
    assert!(tally.get("bytes asked for") > 100 << 20, "{}", tally.get("bytes asked for"));
}
