//! All that a report of arms judges, as one family: every figure of every pair, every published
//! claim, every time of a drop. The rate of false findings is over all of them together.

use crate::experiment::{Headline, Pair, PublishedDrop};
use crate::linkbench::record::LinkBenchRecord;
use crate::linkbench::report::figures::{Figures, pairs_with_results};
use crate::linkbench::report::headlines::Companion;
use crate::linkbench::report::pairs::Line;
use crate::linkbench::report::{dropping, headlines, pairs};
use crate::report::compare::{Comparison, claim};
use crate::report::paired::{Basis, Family};

/// A published ratio with what was measured of it.
pub(crate) struct Claimed<'a> {
    /// As published.
    pub(crate) item: &'a Headline,
    /// As measured; `None` where it was not.
    pub(crate) comparison: Option<Comparison>,
    /// The figures beside it.
    pub(crate) beside: Vec<(Companion, Comparison)>,
}

impl Claimed<'_> {
    /// The figures beside it that stand for it where other processes were at work.
    pub(crate) fn believable(&self) -> impl Iterator<Item = (Companion, &Comparison)> {
        let stands = |of: &&(Companion, Comparison)| of.0.stands_for_published();
        self.beside.iter().filter(stands).map(|(companion, measured)| (*companion, measured))
    }

    /// Whether a range of the repeats stands for an interval.
    pub(crate) fn has_range(&self) -> bool {
        let measured = self.comparison.iter().chain(self.beside.iter().map(|(_, of)| of));
        measured.into_iter().any(|of| of.judged.interval.is_none() && of.judged.range.is_some())
    }
}

/// A published ratio of times to drop with what was measured of it.
pub(crate) struct ClaimedDrop<'a> {
    /// As published.
    pub(crate) item: &'a PublishedDrop,
    /// As measured, by the time that is compared.
    pub(crate) times: Vec<(&'static str, Option<Comparison>)>,
}

/// What a report of arms judges.
#[derive(Default)]
pub(crate) struct Judgements<'a> {
    /// The pairs that were measured, figure by figure.
    pub(crate) pairs: Vec<(&'a Pair, Vec<Line>)>,
    /// The published claims.
    pub(crate) headlines: Vec<Claimed<'a>>,
    /// The published times of drops.
    pub(crate) drops: Vec<ClaimedDrop<'a>>,
    /// On what the verdicts rest.
    pub(crate) basis: Basis,
}

impl<'a> Judgements<'a> {
    /// Judges a run.
    pub(crate) fn of(record: &'a LinkBenchRecord, figures: &Figures<'a>) -> Judgements<'a> {
        let mut family = Family::default();
        let mut pairs: Vec<(&'a Pair, Vec<(usize, pairs::PairFigure)>)> = Vec::new();
        for pair in pairs_with_results(record, figures) {
            let all = pairs::figures_of(figures, pair).into_iter();
            let added = all.map(|mut figure| (family.add(figure.take_sides()), figure));
            pairs.push((pair, added.collect()));
        }
        let mut headlines = Vec::new();
        for item in headlines::headlines(record) {
            let place = family.add(headlines::sides(figures, item));
            let beside = headlines::companions(item).iter();
            let beside = beside.map(|of| (*of, family.add(of.sides(figures, item))));
            headlines.push((item, place, beside.collect::<Vec<_>>()));
        }
        let mut drops = Vec::new();
        for item in &record.plan.experiment.drops {
            let times = dropping::sides(figures, item);
            let times = times.map(|(name, sides)| (name, family.add(sides)));
            drops.push((item, times.collect::<Vec<_>>()));
        }
        add_noise(&mut family, record, figures);
        let findings = family.judge();
        let lines = |figures: Vec<(usize, pairs::PairFigure)>| {
            let line =
                |(place, figure): (usize, pairs::PairFigure)| figure.into_line(findings.get(place));
            figures.into_iter().filter_map(line).collect()
        };
        let of = |place: usize, published: f64| Some(claim(findings.get(place)?, published));
        Judgements {
            pairs: pairs.into_iter().map(|(pair, figures)| (pair, lines(figures))).collect(),
            headlines: headlines
                .into_iter()
                .map(|(item, place, beside)| Claimed {
                    item,
                    comparison: of(place, item.published),
                    beside: beside
                        .into_iter()
                        .filter_map(|(beside, place)| Some((beside, of(place, item.published)?)))
                        .collect(),
                })
                .collect(),
            drops: drops
                .into_iter()
                .map(|(item, times)| ClaimedDrop {
                    item,
                    times: times
                        .into_iter()
                        .map(|(name, place)| (name, of(place, item.published)))
                        .collect(),
                })
                .collect(),
            basis: findings.basis.clone(),
        }
    }
}

/// Neighbouring arms that are no pair say something of the noise, too.
fn add_noise(family: &mut Family, record: &LinkBenchRecord, figures: &Figures<'_>) {
    headlines::add_noise(family, record, figures);
    for arms in record.plan.arms.windows(2) {
        let is_pair = |pair: &Pair| arms.contains(&pair.arm) && arms.contains(&pair.base);
        if !record.plan.experiment.pairs.iter().any(is_pair) {
            for (kind, scale, sides) in pairs::noise(figures, [&arms[0], &arms[1]]) {
                family.add_noise(kind, scale, sides);
            }
        }
    }
}
