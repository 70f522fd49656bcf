//! Ratios step by step between any two subjects of a run: as plots, and counted.

use super::figures::METRICS;
use crate::comparison::results::ResultSet;
use crate::html::parts::{self, Ratio};
use crate::report::paired::{Better, Family};
use lithify_report::{Finding, Outcome, Plot};

/// The figures of a step that stand in the plots of ratios; all are in the tables.
const PLOTTED: [&str; 10] = [
    "throughput",
    "CPU per op until settled",
    "written per byte ingested",
    "directory settled",
    "p99",
    "p99.9",
    "resident",
    "wps",
    "w-amp",
    "cpu us/op",
];

/// The first engine of a set beside every other one, with the same codecs or arm.
fn sides(set: &ResultSet) -> Vec<[&str; 2]> {
    let engine = |name: &str| name.split(' ').next().unwrap_or_default().to_owned();
    let Some(first) = set.subjects.first().map(|subject| engine(&subject.name)) else {
        return Vec::new();
    };
    let mut sides = Vec::new();
    for one in set.subjects.iter().filter(|subject| engine(&subject.name) == first) {
        let codecs = &one.name[first.len()..];
        for other in set.subjects.iter().filter(|subject| engine(&subject.name) != first) {
            if &other.name[engine(&other.name).len()..] == codecs {
                sides.push([one.name.as_str(), other.name.as_str()]);
            }
        }
    }
    sides
}

/// The ratios of all sides, judged together.
fn ratios(set: &ResultSet) -> Vec<([&str; 2], Vec<Ratio>)> {
    let mut family = Family::default();
    let mut added = Vec::new();
    for sides in sides(set) {
        let mut of_sides = Vec::new();
        for test in set.tests() {
            for (figure, better) in set.figures(test) {
                let paired = set.paired(sides, test, figure).map(|sides| family.add(sides));
                of_sides.extend(paired.map(|place| (test, figure, better, place)));
            }
        }
        added.push((sides, of_sides));
    }
    let findings = family.judge();
    let ratio = |(test, figure, better, place): (&str, &str, Better, usize)| {
        Some(Ratio {
            group: test.to_owned(),
            name: figure.to_owned(),
            better,
            comparison: findings.get(place)?.clone(),
        })
    };
    let of_sides =
        |(sides, places): ([_; 2], Vec<_>)| (sides, places.into_iter().filter_map(ratio).collect());
    added.into_iter().map(of_sides).collect()
}

/// A plot of ratios for each two sides.
pub(crate) fn ratios_of_steps(set: &ResultSet) -> Vec<Plot> {
    let is_plotted = |ratio: &Ratio| {
        let heading = ratio.name.as_str();
        let metric = METRICS.iter().find(|metric| metric.heading() == heading);
        PLOTTED.contains(&metric.map_or(heading, |metric| metric.name))
    };
    let plot = |(sides, mut ratios): ([&str; 2], Vec<Ratio>)| {
        let title = format!("{} : {}", sides[0], sides[1]);
        ratios.retain(is_plotted);
        parts::ratios(&title, sides, &ratios)
    };
    ratios(set).into_iter().filter_map(plot).collect()
}

/// A sentence for each two sides: how often which was better.
pub(crate) fn tallies(set: &ResultSet) -> Vec<Finding> {
    let finding = |(sides, ratios): ([&str; 2], Vec<Ratio>)| {
        (!ratios.is_empty()).then(|| {
            Finding::new(
                Outcome::Note,
                "Pair",
                parts::tally(sides, &ratios, &["throughput ops/s", "wps"]),
            )
        })
    };
    ratios(set).into_iter().filter_map(finding).collect()
}
