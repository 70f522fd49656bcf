use super::*;
use std::collections::BTreeSet;

fn empty() -> (Arc<Announced>, DeadRanges) {
    let announced = Arc::default();
    let ranges = DeadRanges::new(&announced);
    (announced, ranges)
}

/// Two scans at sequence number 1 that found nothing from `lower` to `upper`.
fn prove(ranges: &DeadRanges, lower: &[u8], upper: &[u8]) {
    ranges.note((lower, upper), (1, 1));
    ranges.note((lower, upper), (1, 1));
}

impl DeadRanges {
    /// Whether `key` is in a proven range, without a use of it.
    fn are_known(&self, key: &[u8]) -> bool {
        self.ranges.load().proven.iter().any(|range| range.is_hit_by(key, key))
    }
}

#[test]
fn one_scan_proves_nothing_and_a_second_does() {
    let (_, ranges) = empty();
    ranges.note((b"a", b"m"), (1, 1));
    assert!(ranges.is_watched());
    assert_eq!(ranges.end_behind(b"b", 9), None);
    ranges.note((b"a", b"k"), (2, 2));
    assert_eq!(ranges.end_behind(b"b", 9).as_deref(), Some(&b"k"[..]), "what both have seen");
    assert_eq!(ranges.end_behind(b"k", 9), None);
    assert_eq!(ranges.end_behind(b"b", 1), None, "a read older than the proof");
}

#[test]
fn a_scan_that_has_not_seen_what_is_under_way_proves_nothing() {
    let (announced, ranges) = empty();
    announced.announce(5);
    ranges.note((b"a", b"m"), (4, 4));
    ranges.note((b"a", b"m"), (4, 4));
    assert_eq!(ranges.end_behind(b"b", 9), None);
    ranges.note((b"a", b"m"), (7, 4));
    assert_eq!(ranges.end_behind(b"b", 9), None, "what counts is its horizon");
    ranges.note((b"a", b"m"), (7, 5));
    assert!(ranges.end_behind(b"b", 7).is_some());
}

#[test]
fn a_row_cuts_a_range_in_two() {
    let (_, ranges) = empty();
    prove(&ranges, b"a", b"m");
    ranges.cut(b"f", b"f");
    assert_eq!(ranges.end_behind(b"a", 9).as_deref(), Some(&b"f"[..]));
    assert_eq!(ranges.end_behind(b"f", 9), None);
    assert_eq!(ranges.end_behind(b"f\0", 9).as_deref(), Some(&b"m"[..]));
    assert_eq!(ranges.start_before(b"m", 9).as_deref(), Some(&b"f\0"[..]));
    assert_eq!(ranges.start_before(b"f", 9).as_deref(), Some(&b"a"[..]));
    assert_eq!(ranges.start_before(b"f\0", 9), None);
    ranges.cut(b"b", b"k");
    assert_eq!(ranges.end_behind(b"a", 9).as_deref(), Some(&b"b"[..]));
    assert_eq!(ranges.end_behind(b"c", 9), None);
    assert_eq!(ranges.end_behind(b"l", 9).as_deref(), Some(&b"m"[..]));
}

#[test]
fn ranges_that_touch_become_one() {
    let (_, ranges) = empty();
    prove(&ranges, b"a", b"c");
    prove(&ranges, b"e", b"g");
    prove(&ranges, b"c", b"e");
    assert_eq!(ranges.end_behind(b"a", 9).as_deref(), Some(&b"g"[..]));
}

#[test]
fn a_range_that_nobody_uses_is_forgotten() {
    let (_, ranges) = empty();
    prove(&ranges, b"a", b"m");
    for _ in 0..3 {
        assert!(ranges.end_behind(b"a", 9).is_some());
        ranges.forget_unused();
    }
    ranges.forget_unused();
    assert!(!ranges.is_watched());

    prove(&ranges, b"a", b"m");
    for key in b'b'..=b'b' + CUTS_MAX as u8 {
        assert!(ranges.are_known(b"l"));
        ranges.cut(&[key], &[key]);
    }
    assert!(!ranges.are_known(b"l"), "cut in vain");
}

/// Scans that meet one range after the other, more than are kept, still jump over most of them.
#[test]
fn of_too_many_ranges_most_are_known() {
    let (_, ranges) = empty();
    let numbers = 0..(PROVEN_MAX + PROVEN_MAX / 8) as u16;
    let mut known = 0;
    for _ in 0..4 {
        known = 0;
        for number in numbers.clone() {
            let key = number.to_be_bytes();
            match ranges.end_behind(&key, 9) {
                Some(_) => known += 1,
                None => prove(&ranges, &key, &[&key[..], &[0]].concat()),
            }
        }
        assert!(ranges.ranges.load().proven.len() <= PROVEN_MAX);
    }
    assert!(known > PROVEN_MAX / 2, "{known} of {}", numbers.len());
}

/// What rows there are after each commit.
struct History(Vec<BTreeSet<u8>>);

impl History {
    fn last(&self) -> u64 {
        self.0.len() as u64 - 1
    }

    fn rows_between(&self, at: u64, lower: u8, upper: u8) -> usize {
        self.0[at as usize].range(lower..upper).count()
    }
}

#[test]
fn no_jump_passes_a_row() {
    let mut random = 7_u64;
    let mut below = |limit: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % limit
    };
    let mut jumps = 0;
    for _ in 0..200 {
        let (announced, ranges) = empty();
        let mut history = History(vec![BTreeSet::new()]);
        for _ in 0..300 {
            let (key, at) = (below(64) as u8, history.last() - below(4).min(history.last()));
            match below(8) {
                0 => {
                    announced.announce(history.last() + 1);
                    ranges.cut(&[key], &[key]);
                    let mut rows = history.0.last().unwrap().clone();
                    rows.insert(key);
                    history.0.push(rows);
                }
                1..=3 => {
                    announced.announce(history.last() + 1);
                    let mut rows = history.0.last().unwrap().clone();
                    rows.remove(&key);
                    history.0.push(rows);
                }
                _ => {
                    let next = history.0[at as usize].range(key..).next().copied().unwrap_or(64);
                    ranges.note((&[key], &[next]), (at, at));
                }
            }
            for at in at..=history.last() {
                let end = ranges.end_behind(&[key], at);
                // Keys of more than one byte are those behind a row.
                let end = end.map(|end| end[0] + u8::from(end.len() > 1));
                let start = ranges.start_before(&[key], at);
                let start = start.map(|start| start[0] + u8::from(start.len() > 1));
                jumps += usize::from(end.is_some()) + usize::from(start.is_some());
                assert_eq!(end.map_or(0, |end| history.rows_between(at, key, end)), 0);
                assert_eq!(start.map_or(0, |start| history.rows_between(at, start, key)), 0);
            }
        }
    }
    assert!(jumps > 10_000, "{jumps} jumps are no test");
}
