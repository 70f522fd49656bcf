//! How often the rule is wrong, and what it finds: on made-up reports whose truth is known.
//!
//! A report has 400 cells: 20 figures in 20 steps. Noise is lognormal; its size differs between
//! figures and between cells of one. A round has a drift that both sides share, a process a shock
//! that all of its figures share, and three values of a hundred are outliers of up to 2.5 times.
//! `cargo test -p lithify-lab --lib verdicts::simulation -- --nocapture` prints the rates.

use super::*;
use crate::random::Random;

const FIGURES: usize = 20;
const STEPS: usize = 20;

/// How a made-up report was measured.
#[derive(Clone, Copy)]
struct Setup {
    rounds: usize,
    /// Of how many sides, beginning with the first.
    controls: usize,
    /// Share of the values that are outliers.
    outliers: f64,
    /// Standard deviation of what a round does to one side and to its control alike, in units of
    /// the noise: the control does not see it.
    hidden: f64,
    /// Standard deviation of what a round does to both sides alike.
    drift: f64,
    /// The typical noise of a side.
    noise: f64,
    /// How much the noise differs between figures and cells: with 1 most have from half to twice
    /// of it, with 0 all have the same.
    uneven: f64,
    /// A true ratio, in every tenth cell.
    truth: f64,
}

const PLAIN: Setup = Setup {
    rounds: 3,
    controls: 2,
    outliers: 0.03,
    hidden: 0.0,
    drift: 0.1,
    noise: 0.04,
    uneven: 1.0,
    truth: 1.0,
};

fn is_different(index: usize) -> bool {
    index.is_multiple_of(10)
}

/// The cells of a report, step by step.
fn report(setup: Setup, random: &mut Random) -> Vec<Cell> {
    let of_figure: Vec<f64> = (0..FIGURES)
        .map(|_| setup.noise * (setup.uneven * random.gaussian() * 0.4).exp())
        .collect();
    let mut cells = Vec::new();
    for _ in 0..STEPS {
        let of_cell: Vec<f64> = of_figure
            .iter()
            .map(|noise| noise * (setup.uneven * random.gaussian() * 0.3).exp())
            .collect();
        let mut values = vec![[const { Vec::new() }; 4]; FIGURES];
        for round in 0..setup.rounds as u64 {
            let drift = random.gaussian() * setup.drift;
            let hidden: Vec<[f64; 2]> = (0..FIGURES)
                .map(|_| [random.gaussian(), random.gaussian()].map(|x| x * setup.hidden))
                .collect();
            for run in 0..4 {
                let shock = random.gaussian();
                for figure in 0..FIGURES {
                    let own = 0.8 * random.gaussian() + 0.6 * shock + hidden[figure][run % 2];
                    let mut log = drift + of_cell[figure] * own;
                    if random.chance(setup.outliers) {
                        log += random.unit() * 2.5f64.ln();
                    }
                    values[figure][run].push((round, log.exp()));
                }
            }
        }
        for (figure, [first, other, again, other_again]) in values.into_iter().enumerate() {
            let truth = if is_different(cells.len()) { setup.truth } else { 1.0 };
            let times = |values: Rounds| -> Rounds {
                values.into_iter().map(|(round, value)| (round, value * truth)).collect()
            };
            let controls = [times(again), other_again];
            cells.push(Cell {
                kind: format!("figure {figure}"),
                sides: [times(first), other],
                controls: [0, 1].map(|side| match side < setup.controls {
                    true => controls[side].clone(),
                    false => Vec::new(),
                }),
                scale: Scale::Ratio,
                layout: Layout::Paired,
                other_day: false,
            });
        }
    }
    cells
}

/// Verdicts without what would decide: that takes long, and nothing here asks for it.
fn judged(cells: &[Cell]) -> Vec<Judged> {
    let (tests, limit) = tested(cells, &[]);
    tests.iter().map(|test| test.judged(limit, None)).collect()
}

/// What a number of reports came to.
struct Rates {
    /// Share of the reports with a false finding.
    reports_with_false: f64,
    /// Mean over the reports of the share of false ones among the findings.
    false_discovery: f64,
    /// Share of the true differences that were found.
    power: f64,
    /// Median of the smallest ratio that could have been shown.
    could_have_shown: f64,
}

fn rates(setup: Setup, reports: u64) -> Rates {
    let (mut with_false, mut share, mut found, mut shown) = (0, 0.0, 0, Vec::new());
    for seed in 0..reports {
        let cells = report(setup, &mut Random::new(seed, 400));
        let judged = judged(&cells);
        let is_found = |index: usize| judged[index].verdict.is_significant();
        let is_true = |index: usize| setup.truth != 1.0 && is_different(index);
        let findings = (0..judged.len()).filter(|index| is_found(*index)).count();
        let hits = (0..judged.len()).filter(|index| is_found(*index) && is_true(*index)).count();
        with_false += u64::from(findings > hits);
        share += (findings - hits) as f64 / findings.max(1) as f64;
        found += hits;
        shown.extend(judged.iter().filter_map(|cell| cell.could_have_shown));
    }
    shown.sort_by(f64::total_cmp);
    Rates {
        reports_with_false: with_false as f64 / reports as f64,
        false_discovery: share / reports as f64,
        power: found as f64 / (reports as usize * FIGURES * STEPS / 10) as f64,
        could_have_shown: crate::statistics::median(&shown).unwrap_or(f64::NAN),
    }
}

const REPORTS: u64 = 200;

#[test]
fn of_equal_sides_at_most_one_report_in_twenty_has_a_finding() {
    println!("rounds controls outliers hidden noise: reports with a finding, could have shown");
    let mut worst: f64 = 0.0;
    for rounds in [2, 3, 5] {
        for controls in [0, 1, 2] {
            for (outliers, hidden) in [(0.0, 0.0), (0.03, 0.0), (0.03, 1.0)] {
                let setup = Setup { rounds, controls, outliers, hidden, ..PLAIN };
                let rates = rates(setup, REPORTS);
                println!(
                    "{rounds} {controls} {outliers} {hidden}: {:.3} {:.3}",
                    rates.reports_with_false, rates.could_have_shown
                );
                worst = worst.max(rates.reports_with_false);
                if rounds < ROUNDS_MIN {
                    assert_eq!(rates.reports_with_false, 0.0, "two rounds decide nothing");
                }
            }
        }
    }
    assert!(worst <= FALSE_DISCOVERY_RATE, "{worst}");
}

#[test]
fn true_differences_are_found_and_few_false_ones_beside_them() {
    println!("rounds controls truth outliers uneven: found, false among them, could have shown");
    for (rounds, controls, truth, outliers, uneven, least) in [
        (5, 2, 1.3, 0.0, 0.0, 0.99),
        (5, 2, 1.3, 0.0, 1.0, 0.95),
        (5, 0, 1.3, 0.0, 1.0, 0.8),
        (3, 2, 1.3, 0.0, 1.0, 0.7),
        (5, 2, 1.1, 0.0, 1.0, 0.2),
        (5, 2, 1.3, 0.03, 1.0, 0.7),
    ] {
        let setup = Setup { rounds, controls, truth, outliers, uneven, ..PLAIN };
        let rates = rates(setup, 50);
        println!(
            "{rounds} {controls} {truth} {outliers} {uneven}: {:.3} {:.3} {:.3}",
            rates.power, rates.false_discovery, rates.could_have_shown
        );
        assert!(rates.power >= least, "{rounds} {controls} {truth}: {}", rates.power);
        assert!(rates.false_discovery <= FALSE_DISCOVERY_RATE, "{}", rates.false_discovery);
    }
}

/// A report of shares in percent whose sides are equal: in half of the cells there is none of it,
/// in the others none in some rounds and much in others, more by far in some cells.
fn shares(rounds: usize, controls: usize, truth: f64, random: &mut Random) -> Vec<Cell> {
    let of_cell = |index: usize, random: &mut Random| {
        let level = match random.chance(0.5) {
            true => 0.0,
            false => (1.0 + random.gaussian()).exp(),
        };
        let mut side = |more: f64| -> Rounds {
            let value = |round| match random.chance(0.3) {
                true => (round, more),
                false => (round, level * (0.5 * random.gaussian()).exp() + more),
            };
            (0..rounds as u64).map(value).collect()
        };
        let more = if is_different(index) { truth } else { 0.0 };
        let sides = [side(more), side(0.0)];
        let again = [side(more), side(0.0)];
        Cell {
            kind: format!("share {}", index % FIGURES),
            scale: Scale::PERCENT,
            sides,
            controls: again.map(|values| if controls == 2 { values } else { Vec::new() }),
            layout: Layout::Paired,
            other_day: false,
        }
    };
    (0..FIGURES * STEPS).map(|index| of_cell(index, random)).collect()
}

#[test]
fn equal_shares_have_few_findings_and_others_are_found() {
    println!("rounds controls: reports with a finding; found of 30 % more, false among them");
    for (rounds, controls, least) in [(3, 2, 0.7), (5, 0, 0.6), (5, 2, 0.8)] {
        let mut with_finding = 0;
        let (mut found, mut false_share) = (0, 0.0);
        for seed in 0..REPORTS {
            let equal = judged(&shares(rounds, controls, 0.0, &mut Random::new(seed, 401)));
            with_finding += usize::from(equal.iter().any(|cell| cell.verdict.is_significant()));
            let other = judged(&shares(rounds, controls, 30.0, &mut Random::new(seed, 402)));
            let is_found = |index: &usize| other[*index].verdict.is_significant();
            let all = (0..other.len()).filter(is_found).count();
            let hits = (0..other.len()).filter(is_found).filter(|at| is_different(*at)).count();
            found += hits;
            false_share += (all - hits) as f64 / all.max(1) as f64;
        }
        let reports = REPORTS as f64;
        let (equal, power) =
            (with_finding as f64 / reports, found as f64 / reports / (FIGURES * STEPS / 10) as f64);
        println!("{rounds} {controls}: {equal:.3} {power:.3} {:.3}", false_share / reports);
        assert!(equal <= FALSE_DISCOVERY_RATE, "{rounds} {controls}: {equal}");
        assert!(false_share / reports <= FALSE_DISCOVERY_RATE, "{rounds} {controls}");
        assert!(power >= least, "{rounds} {controls}: {power}");
    }
}

/// The rule that this one replaced: ranges that do not overlap. It shows that the simulation can
/// find a rule wrong.
#[test]
fn ranges_that_do_not_overlap_fail_this_test() {
    let range = |values: &Rounds| {
        let values = values.iter().map(|(_, value)| *value);
        values.fold((f64::INFINITY, 0.0_f64), |(low, high), v| (low.min(v), high.max(v)))
    };
    let share = |rounds: usize| {
        let setup = Setup { rounds, drift: 0.0, ..PLAIN };
        let cells = report(setup, &mut Random::new(1, 400));
        let apart = cells.iter().filter(|cell| {
            let [first, other] = [0, 1].map(|side| range(&cell.sides[side]));
            first.0 > other.1 || other.0 > first.1
        });
        apart.count() as f64 / cells.len() as f64
    };
    let (two, three, five) = (share(2), share(3), share(5));
    println!("ranges apart of equal sides: {two:.3} {three:.3} {five:.3}");
    assert!(two > 0.25 && three > 0.05, "{two} {three}");
}
