use crate::compaction::levels::*;

const MIB: u64 = 1 << 20;

fn shape(base_level_bytes_max: u64, fanout: u64) -> TreeShape {
    TreeShape { base_level_bytes_max, fanout, level0_trigger: 4 }
}

/// Sizes of a tree of seven levels of which only the last holds data.
fn bottom_only(bytes: u64) -> Vec<u64> {
    let mut sizes = vec![0; 7];
    sizes[6] = bytes;
    sizes
}

#[test]
fn an_empty_database_compacts_straight_to_the_bottom() {
    let targets = LevelTargets::of_sizes(&bottom_only(0), &shape(8 * MIB, 8));
    assert_eq!(targets.base_level, 6);
    assert_eq!(targets.target_bytes, [0, 0, 0, 0, 0, 0, 8 * MIB]);
    assert_eq!(targets.pending_compaction_bytes(&bottom_only(0)), 0);
}

#[test]
fn targets_follow_from_the_bottom_up() {
    let targets = LevelTargets::of_sizes(&bottom_only(700 * MIB), &shape(8 * MIB, 10));
    assert_eq!(targets.base_level, 4);
    let expected = [0, 0, 0, 0, 7 * MIB, 70 * MIB, 700 * MIB];
    assert_eq!(targets.target_bytes, expected);
    // A byte over the bound, and there is one level more.
    let at_bound = LevelTargets::of_sizes(&bottom_only(80 * MIB), &shape(8 * MIB, 10));
    assert_eq!(at_bound.base_level, 5);
    let over = LevelTargets::of_sizes(&bottom_only(80 * MIB + 10), &shape(8 * MIB, 10));
    assert_eq!(over.base_level, 4);
}

#[test]
fn a_graph_benchmark_has_three_levels_below_level_0() {
    // Raw and compressed sizes of its database at the scales "cached" and "smoke".
    for (bytes, base_max) in [(700, 8), (330, 8), (70, 1), (33, 1)] {
        let targets = LevelTargets::of_sizes(&bottom_only(bytes * MIB), &shape(base_max * MIB, 8));
        assert!(6 - targets.base_level >= 2, "{bytes} MiB: base level {}", targets.base_level);
    }
}

#[test]
fn data_above_the_base_level_is_not_overtaken() {
    let mut sizes = bottom_only(40 * MIB);
    let shape = shape(8 * MIB, 8);
    assert_eq!(LevelTargets::of_sizes(&sizes, &shape).base_level, 5);
    sizes[3] = MIB;
    let targets = LevelTargets::of_sizes(&sizes, &shape);
    assert_eq!(targets.base_level, 3);
    assert_eq!(targets.target_bytes[4], 5 * MIB / 8);
    assert_eq!(targets.target_bytes[3], 0, "one level less is clearly enough");
    let scores = targets.scores(0, &sizes);
    assert!(scores[3] > 1.0, "it is to be emptied");
    assert_eq!(scores[6], 0.0);
}

#[test]
fn the_largest_level_sets_the_targets_even_above_the_bottom() {
    let mut sizes = bottom_only(10 * MIB);
    sizes[5] = 400 * MIB;
    let targets = LevelTargets::of_sizes(&sizes, &shape(8 * MIB, 8));
    assert_eq!(targets.target_bytes[6], 400 * MIB);
    assert_eq!(targets.target_bytes[5], 50 * MIB);
    assert_eq!(targets.scores(0, &sizes)[5], 8.0);
}

#[test]
fn level_0_counts_by_runs_or_by_bytes() {
    let mut sizes = bottom_only(60 * MIB);
    let targets = LevelTargets::of_sizes(&sizes, &shape(8 * MIB, 8));
    assert_eq!(targets.target_bytes[5], 60 * MIB / 8);
    assert_eq!(targets.scores(2, &sizes)[0], 0.5);
    assert_eq!(targets.scores(8, &sizes)[0], 2.0);
    sizes[0] = 30 * MIB;
    assert_eq!(targets.scores(2, &sizes)[0], 3.75);
    assert_eq!(targets.scores(1, &sizes)[0], 0.25);
}

#[test]
fn what_level_0_holds_below_its_trigger_is_not_due() {
    let mut sizes = bottom_only(60 * MIB);
    sizes[0] = 2 * MIB;
    let targets = LevelTargets::of_sizes(&sizes, &shape(8 * MIB, 8));
    assert!(targets.pending_compaction_bytes(&sizes) > 0);
    assert!(!targets.is_due(3, &sizes) && targets.is_due(4, &sizes));
}

#[test]
fn debt_is_smooth_in_every_size() {
    let shape = shape(8 * MIB, 8);
    for varied in [0, 5, 6] {
        let mut sizes = [0, 0, 0, 0, 6 * MIB, 70 * MIB, 400 * MIB];
        let mut last = None;
        for step in 0..4_000 {
            sizes[varied] = step * (MIB / 64) + if varied == 6 { 400 * MIB } else { 0 };
            let targets = LevelTargets::of_sizes(&sizes, &shape);
            let pending = targets.pending_compaction_bytes(&sizes);
            if let Some(last) = last.replace(pending) {
                // A step of 16 KiB never costs or frees more than its way through the tree.
                let jump = pending.abs_diff(last);
                assert!(jump < 20 * (MIB / 64), "level {varied} at {}: {jump}", sizes[varied]);
            }
        }
    }
}

#[test]
fn debt_falls_as_the_work_is_done() {
    let shape = shape(8 * MIB, 8);
    let pending =
        |sizes: &[u64]| LevelTargets::of_sizes(sizes, &shape).pending_compaction_bytes(sizes);
    let before = [32 * MIB, 0, 0, 0, 6 * MIB, 70 * MIB, 400 * MIB];
    let after_level0 = [0, 0, 0, 0, 38 * MIB, 70 * MIB, 400 * MIB];
    let after_base = [0, 0, 0, 0, 6 * MIB, 102 * MIB, 400 * MIB];
    let after_all = [0, 0, 0, 0, 6 * MIB, 50 * MIB, 452 * MIB];
    let debts = [&before, &after_level0, &after_base, &after_all].map(|sizes| pending(sizes));
    assert!(debts.windows(2).all(|pair| pair[0] > pair[1]), "{debts:?}");
    assert_eq!(debts[3], 0);
}

#[test]
fn work_per_byte_grows_with_the_tree() {
    let shape = shape(8 * MIB, 8);
    let work = |sizes: &[u64]| LevelTargets::of_sizes(sizes, &shape).work_per_flushed_byte(sizes);
    let small = work(&bottom_only(4 * MIB));
    let large = work(&[0, 0, 0, 0, 6 * MIB, 50 * MIB, 400 * MIB]);
    assert_eq!(small, 1.5);
    assert!((18.0..22.0).contains(&large), "{large}");
}
