//! What single cells come to, and what holds whatever the numbers are.

use super::*;
use crate::random::Random;

fn rounds(values: &[f64]) -> Rounds {
    (0..).zip(values.iter().copied()).collect()
}

fn cell(first: &[f64], other: &[f64], controls: [&[f64]; 2]) -> Cell {
    Cell {
        kind: "throughput".to_owned(),
        scale: Scale::Ratio,
        sides: [rounds(first), rounds(other)],
        controls: controls.map(rounds),
        layout: Layout::Paired,
        other_day: false,
    }
}

fn alone(cell: Cell) -> Judged {
    judge(&[cell], &[])[0]
}

/// Both sides measured again, with about 2 % of noise.
const AGAIN: [&[f64]; 2] = [&[10.2, 9.9, 10.1], &[20.3, 19.8, 20.1]];

#[test]
fn the_t_distribution_is_the_one_of_the_tables() {
    let quantiles = [(0.05, 2.0, 4.303), (0.05, 8.0, 2.306), (0.01, 10.0, 3.169)];
    for (p, freedom, t) in quantiles {
        assert!((t_quantile(p, freedom) - t).abs() < 5e-4, "{p} {freedom}");
        assert!((two_sided_p(-t, freedom) / p - 1.0).abs() < 1e-3, "{p} {freedom}");
    }
    for (p, freedom) in [(1e-4, 4.0), (1e-4, 30.0), (1.25e-4, 12.5), (1e-6, 8.0)] {
        let back = two_sided_p(t_quantile(p, freedom), freedom);
        assert!((back / p - 1.0).abs() < 1e-3, "{p} {freedom}: {back}");
    }
    assert_eq!(two_sided_p(f64::INFINITY, 3.0), 0.0);
}

#[test]
fn a_clear_difference_is_significant_in_its_direction() {
    let half = cell(&[10.0, 10.1, 9.9], &[20.0, 20.1, 19.9], AGAIN);
    let judged = alone(half);
    assert_eq!(judged.verdict, Verdict::Smaller);
    assert!((judged.ratio.expect("has one") - 0.5).abs() < 1e-3);
    let interval = judged.interval.expect("has one");
    assert!(interval.low < 0.5 && 0.5 < interval.high && interval.high < 0.6, "{interval:?}");
    assert!(judged.could_have_shown.expect("has one") < 1.2, "{judged:?}");
    let twice = cell(&[20.0, 20.1, 19.9], &[10.0, 10.1, 9.9], [AGAIN[1], AGAIN[0]]);
    assert_eq!(alone(twice).verdict, Verdict::Greater);
}

#[test]
fn ranges_that_do_not_overlap_are_not_enough() {
    // Two of two above, by less than twice the same side differs.
    let near =
        cell(&[10.3, 10.4, 10.5], &[10.2, 10.1, 10.0], [&[9.9, 10.9, 10.4], &[10.6, 9.8, 10.3]]);
    let judged = alone(near);
    assert_eq!(judged.verdict, Verdict::NotSignificant, "{judged:?}");
    assert!(judged.could_have_shown.expect("has one") > judged.ratio.expect("has one"));
    assert!(judged.rounds_to_decide.is_some_and(|rounds| rounds > 3), "{judged:?}");
}

#[test]
fn two_rounds_have_a_direction_and_what_would_decide() {
    let controls: [&[f64]; 2] = [&[10.2, 9.9], &[20.3, 19.8]];
    let judged = alone(cell(&[10.0, 10.1], &[20.0, 20.1], controls));
    assert_eq!(judged.verdict, Verdict::DirectionOnly(Why::FewRounds));
    assert_eq!((judged.p, judged.could_have_shown), (None, None));
    assert!(judged.interval.is_some() && judged.rounds_to_decide == Some(3), "{judged:?}");
    let judged = alone(cell(&[10.0, 10.1], &[20.0, 20.1], [&[], &[]]));
    assert_eq!(judged.verdict, Verdict::DirectionOnly(Why::FewRounds));
    assert_eq!((judged.interval, judged.rounds_to_decide), (None, None), "no variance to speak of");
    let Interval { low, high } = judged.range.expect("two rounds");
    assert!((low - 0.5).abs() < 1e-9 && (high - 10.1 / 20.1).abs() < 1e-9, "{low} {high}");
}

#[test]
fn three_rounds_alone_are_no_variance() {
    let judged = alone(cell(&[10.0, 10.1, 9.9], &[20.0, 20.1, 19.9], [&[], &[]]));
    assert_eq!(judged.verdict, Verdict::DirectionOnly(Why::NoVariance));
    assert!(judged.interval.is_some() && judged.could_have_shown.is_none(), "{judged:?}");
    assert!(judged.rounds_to_decide.is_some_and(|rounds| rounds > 3), "{judged:?}");
    // Others of the kind lend theirs; those of another kind do not.
    let noise = |kind: &str, index: usize| Noise {
        kind: kind.to_owned(),
        scale: Scale::Ratio,
        sides: [rounds(&[10.0, 10.1 + index as f64 / 50.0, 9.8]), rounds(&[10.0, 10.0, 10.1])],
    };
    let lent = |kind: &str| {
        let noise: Vec<Noise> = (0..8).map(|index| noise(kind, index)).collect();
        let cells = [cell(&[10.0, 10.1, 9.9], &[20.0, 20.1, 19.9], [&[], &[]])];
        judge(&cells, &noise)[0].verdict
    };
    assert_eq!(lent("throughput"), Verdict::Smaller);
    assert_eq!(lent("p99"), Verdict::DirectionOnly(Why::NoVariance));
}

#[test]
fn one_control_raises_the_variance_and_never_lowers_it() {
    let first: &[f64] = &[10.0, 10.2, 9.8, 10.1, 9.9];
    let other: &[f64] = &[11.0, 11.2, 10.7, 11.2, 10.8];
    let without = alone(cell(first, other, [&[], &[]]));
    let quiet = alone(cell(first, other, [&[10.0, 10.2, 9.8, 10.1, 9.9], &[]]));
    assert_eq!(without, quiet);
    let noisy = alone(cell(first, other, [&[12.0, 9.0, 11.5, 8.5, 12.0], &[]]));
    assert!(without.verdict.is_significant() && !noisy.verdict.is_significant(), "{noisy:?}");
}

#[test]
fn an_outlier_in_one_round_is_no_finding() {
    let judged =
        alone(cell(&[10.0, 10.1, 25.0], &[10.1, 10.0, 10.0], [&[10.0, 10.1, 10.1], &[10.0; 3]]));
    assert_eq!(judged.verdict, Verdict::NotSignificant, "{judged:?}");
}

#[test]
fn zeros_are_judged_by_signs() {
    let zeros = alone(cell(&[0.0; 3], &[0.0; 3], [&[], &[]]));
    assert_eq!((zeros.verdict, zeros.ratio), (Verdict::NotSignificant, Some(1.0)));
    let five = alone(cell(&[0.0; 5], &[1.0, 2.0, 1.0, 3.0, 1.0], [&[], &[]]));
    assert_eq!((five.verdict, five.ratio), (Verdict::DirectionOnly(Why::Zeros), None));
    let six = alone(cell(&[0.0; 6], &[1.0, 2.0, 1.0, 3.0, 1.0, 2.0], [&[], &[]]));
    assert_eq!((six.verdict, six.p), (Verdict::Smaller, Some(2.0 / 64.0)));
    let mixed = alone(cell(&[0.0; 6], &[1.0, 2.0, 1.0, 3.0, 1.0, -2.0], [&[], &[]]));
    assert_eq!(mixed.verdict, Verdict::NotSignificant);
    assert_eq!(
        alone(cell(&[0.0], &[1.0], [&[], &[]])).verdict,
        Verdict::DirectionOnly(Why::FewRounds)
    );
    assert_eq!(
        alone(cell(&[], &[1.0], [&[], &[]])).verdict,
        Verdict::DirectionOnly(Why::FewRounds)
    );
}

fn shares(first: &[f64], other: &[f64], controls: [&[f64]; 2]) -> Cell {
    Cell { scale: Scale::PERCENT, ..cell(first, other, controls) }
}

#[test]
fn shares_are_judged_by_differences() {
    let none: &[f64] = &[0.0; 3];
    let judged = alone(shares(none, &[30.0, 31.0, 33.0], [none, &[31.0, 30.0, 32.0]]));
    assert_eq!((judged.verdict, judged.ratio), (Verdict::Smaller, Some(0.0)), "{judged:?}");
    let Interval { low, high } = judged.interval.expect("has one");
    assert!(-37.0 < low && low < -31.4 && -31.3 < high && high < -25.0, "{low} {high}");
    let turned = alone(shares(&[30.0, 31.0, 33.0], none, [&[31.0, 30.0, 32.0], none]));
    assert_eq!((turned.verdict, turned.ratio), (Verdict::Greater, None));
    assert!((turned.difference.expect("has one") - 94.0 / 3.0).abs() < 1e-9);
    // Five repeats need no control; one zero among the values changes nothing.
    let five =
        alone(shares(&[31.7, 27.5, 34.9, 30.0, 33.0], &[0.0, 1.0, 0.0, 2.0, 1.0], [&[], &[]]));
    assert_eq!(five.verdict, Verdict::Greater, "{five:?}");
    // Nothing is no difference, and neither is less than the resolution.
    let nothing = alone(shares(none, none, [&[], &[]]));
    assert_eq!((nothing.verdict, nothing.p), (Verdict::NotSignificant, Some(1.0)));
    assert_eq!(nothing.rounds_to_decide, None);
    let little = alone(shares(none, &[0.01; 3], [none, &[0.01; 3]]));
    assert_eq!(little.verdict, Verdict::NotSignificant, "{little:?}");
    assert!(little.could_have_shown.expect("has one") > 0.05, "{little:?}");
}

#[test]
fn zeros_beside_zeros_lend_no_variance() {
    let none: &[f64] = &[0.0; 3];
    let noisy = || shares(&[1.0, 9.0, 5.0], &[0.0, 1.0, 0.0], [&[], &[]]);
    let mut cells = vec![noisy()];
    cells.extend((0..50).map(|_| shares(none, none, [none, none])));
    let judged = judge(&cells, &[]);
    assert_eq!(judged[0].verdict, Verdict::DirectionOnly(Why::NoVariance), "{:?}", judged[0]);
}

/// Two repeats of many equal cells beside one that may differ.
#[test]
fn what_would_decide_is_that_of_the_whole_report() {
    let odd = || {
        let controls: [&[f64]; 2] = [&[10.5, 9.6], &[12.9, 12.0]];
        cell(&[10.0, 10.1], &[12.0, 12.9], controls)
    };
    let own = alone(odd()).rounds_to_decide.expect("not many");
    let equal = || cell(&[10.0, 10.2], &[10.1, 10.1], [&[10.3, 9.9], &[10.0, 10.2]]);
    let family = |count: usize| {
        let mut cells = vec![Cell { kind: "its own".to_owned(), ..odd() }];
        cells.extend((0..count).map(|_| equal()));
        judge(&cells, &[])[0].rounds_to_decide.expect("not many")
    };
    let (few, many) = (family(10), family(400));
    assert!(own <= few && own < many, "{own} {few} {many}");
}

#[test]
fn what_would_decide_zeros_follows_from_the_number_of_cells() {
    let zeros = || cell(&[0.0; 5], &[1.0, 2.0, 1.0, 3.0, 1.0], [&[], &[]]);
    assert_eq!(alone(zeros()).rounds_to_decide, Some(6), "two of 2^6 are at most 0.05");
    let equal = |_| cell(&[0.0; 5], &[0.0; 5], [&[], &[]]);
    let cells: Vec<Cell> = std::iter::once(zeros()).chain((1..100).map(equal)).collect();
    // Two of 2^12 are at most 0.05 / 100.
    assert_eq!(judge(&cells, &[])[0].rounds_to_decide, Some(12));
    // One that goes the other way.
    let mixed = cell(&[0.0; 5], &[1.0, 2.0, 1.0, 3.0, -1.0], [&[], &[]]);
    assert_eq!(alone(mixed).rounds_to_decide, Some(15), "12 up, 3 down");
}

#[test]
fn other_days_have_no_verdict() {
    let clear = cell(&[10.0, 10.1, 9.9], &[20.0, 20.1, 19.9], AGAIN);
    let judged = alone(Cell { other_day: true, ..clear });
    assert_eq!(judged.verdict, Verdict::DirectionOnly(Why::OtherDay));
    assert_eq!((judged.p, judged.rounds_to_decide), (None, None), "no number of rounds helps");
}

#[test]
fn sessions_are_compared_without_pairs() {
    let first: &[f64] = &[10.0, 10.2, 9.8, 10.1, 9.9];
    let other: &[f64] = &[12.1, 11.9, 12.0, 12.2, 11.8];
    let judged = alone(Cell { layout: Layout::Unpaired, ..cell(first, other, [&[], &[]]) });
    assert_eq!(judged.verdict, Verdict::Smaller, "{judged:?}");
    // The order of the rounds means nothing.
    let turned: Vec<f64> = other.iter().rev().copied().collect();
    let again = alone(Cell { layout: Layout::Unpaired, ..cell(first, &turned, [&[], &[]]) });
    assert!((judged.p.expect("tested") - again.p.expect("tested")).abs() < 1e-12);
}

#[test]
fn findings_are_those_of_the_step_up_procedure() {
    let test = |p: f64| Test {
        scale: Scale::Ratio,
        effect: None,
        aside: None,
        range: None,
        error: None,
        growth: Growth::Unknown,
        rounds: 3,
        p: Some(p),
        is_above: true,
        why: None,
    };
    // The example of 15 values in the paper: four are found.
    let values = [
        0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
        0.5719, 0.6528, 0.7590, 1.0,
    ];
    let tests: Vec<Test> = values.into_iter().map(test).collect();
    let limit = Limit::of(values.into_iter());
    let found = tests.iter().filter(|t| t.verdict(limit).is_significant()).count();
    assert_eq!(found, 4);
    assert!((limit.next - 0.05 * 5.0 / 15.0).abs() < 1e-12);
    let none = Limit::of([0.3].into_iter());
    assert!(!test(0.3).verdict(none).is_significant());
    assert_eq!(Limit::of(std::iter::empty()).next, 0.05);
}

/// A cell of noise: sides and controls around any level, with any number of rounds.
fn any_cell(random: &mut Random) -> Cell {
    let count = 1 + random.below(6) as usize;
    let level = (random.gaussian() * 5.0).exp();
    let mut values = |has: bool| -> Rounds {
        let value = |round| (round as u64, level * (random.gaussian() * 0.1).exp());
        (0..if has { count } else { 0 }).map(value).collect()
    };
    let sides = [values(true), values(true)];
    let controls = [values(level > 1.0), values(level > 0.5)];
    let scale = Scale::Ratio;
    Cell {
        kind: "any".to_owned(),
        scale,
        sides,
        controls,
        layout: Layout::Paired,
        other_day: false,
    }
}

#[test]
fn units_and_sides_change_nothing_but_the_direction() {
    let mut random = Random::new(7, 1);
    for _ in 0..20 {
        let cells: Vec<Cell> = (0..30).map(|_| any_cell(&mut random)).collect();
        let judged = judge(&cells, &[]);
        let in_other_units = cells.iter().cloned().map(|mut cell| {
            let all = cell.sides.iter_mut().chain(&mut cell.controls).flatten();
            all.for_each(|(_, value)| *value *= 1024.0);
            cell
        });
        let scaled = judge(&in_other_units.collect::<Vec<_>>(), &[]);
        let swapped = cells.iter().cloned().map(|mut cell| {
            cell.sides.swap(0, 1);
            cell.controls.swap(0, 1);
            cell
        });
        let swapped = judge(&swapped.collect::<Vec<_>>(), &[]);
        for ((one, scaled), swapped) in judged.iter().zip(scaled).zip(swapped) {
            assert_eq!(one.verdict, scaled.verdict);
            let mirrored = match one.verdict {
                Verdict::Greater => Verdict::Smaller,
                Verdict::Smaller => Verdict::Greater,
                other => other,
            };
            assert_eq!(swapped.verdict, mirrored);
            let product = one.ratio.expect("no zeros") * swapped.ratio.expect("no zeros");
            assert!((product - 1.0).abs() < 1e-9);
            if let Some(Interval { low, high }) = one.interval {
                let ratio = one.ratio.expect("no zeros");
                assert!(low <= ratio && ratio <= high);
            }
            if let (true, Some(shown)) = (one.verdict.is_significant(), one.could_have_shown) {
                // A finding is at most at the limit of the next one.
                assert!(one.ratio.expect("no zeros").ln().abs() > shown.ln() * 0.5);
            }
        }
    }
}
