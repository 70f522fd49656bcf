//! Pairs of one arm with several arms of another engine: figure by figure against the better one.

use crate::adapter::EngineName;
use crate::experiment::{Experiment, Pair};
use crate::linkbench::report::judged::Judgements;
use crate::linkbench::report::pairs::Line;
use crate::report::better_of::{against, engine_of};
use crate::report::figures::figure;
use crate::report::tables::{Align, Grid};

/// A pair that was measured, figure by figure.
type Measured<'a> = (&'a Pair, Vec<Line>);

/// An arm with its pairs with one engine's arms.
struct Rivals<'a> {
    arm: &'a str,
    pairs: Vec<&'a Measured<'a>>,
}

/// The tables, each with its heading; none where no arm is paired with two arms of one engine.
pub(crate) fn grids(experiment: &Experiment, judged: &Judgements<'_>) -> Vec<(String, Grid)> {
    let table = |rivals: Rivals<'_>| {
        let bases: Vec<&str> = rivals.pairs.iter().map(|(pair, _)| pair.base.as_str()).collect();
        let heading = format!("{} : better of {}", rivals.arm, bases.join(" and "));
        (heading, grid(rivals.arm, &rivals.pairs))
    };
    rivals(experiment, &judged.pairs).into_iter().map(table).collect()
}

fn rivals<'a>(experiment: &Experiment, pairs: &'a [Measured<'a>]) -> Vec<Rivals<'a>> {
    let engine_of_arm = |name: &str| {
        let arm = experiment.arms.iter().find(|arm| arm.name == name)?;
        arm.engine.as_ref().map(EngineName::name)
    };
    let mut found: Vec<(&str, Vec<&str>, Rivals<'a>)> = Vec::new();
    for measured in pairs {
        let (pair, _) = measured;
        let Some(name) = engine_of_arm(&pair.base) else { continue };
        let engine = engine_of(name);
        let same = |(known, _, rivals): &&mut (&str, Vec<&str>, Rivals<'_>)| {
            *known == engine && rivals.arm == pair.arm
        };
        match found.iter_mut().find(same) {
            // Two bases on one engine differ by something else, their codecs for one.
            Some((_, names, _)) if names.contains(&name) => {}
            Some((_, names, rivals)) => {
                names.push(name);
                rivals.pairs.push(measured);
            }
            None => {
                let rivals = Rivals { arm: &pair.arm, pairs: vec![measured] };
                found.push((engine, vec![name], rivals));
            }
        }
    }
    let rivals = found.into_iter().map(|(_, _, rivals)| rivals);
    rivals.filter(|rivals| rivals.pairs.len() >= 2).collect()
}

fn grid(arm: &str, measured: &[&Measured<'_>]) -> Grid {
    let columns = [
        ("phase", Align::Left),
        ("figure", Align::Left),
        (arm, Align::Right),
        ("better base", Align::Right),
        ("which base", Align::Left),
        ("ratio [95 %]", Align::Right),
        ("verdict", Align::Left),
    ];
    let Some((_, first)) = measured.first() else { return Grid::new(&columns, Vec::new()) };
    let row = |wanted: &Line| {
        let is_wanted = |line: &&Line| line.phase == wanted.phase && line.name == wanted.name;
        let arms = measured
            .iter()
            .map(|(pair, lines)| (pair, lines.iter().find(is_wanted).map(|line| &line.comparison)));
        let found = against(arms, wanted.better)?;
        Some(vec![
            wanted.phase.to_string(),
            wanted.name.clone(),
            figure(found.comparison.first.median),
            figure(found.comparison.other.median),
            found.arm.base.clone(),
            found.comparison.ratio(),
            found.outcome.word().to_owned(),
        ])
    };
    Grid::new(&columns, first.iter().filter_map(row).collect())
}
