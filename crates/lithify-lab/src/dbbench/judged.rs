//! All that a run of several engines judges, as one family: every figure of every step with every
//! ladder of codecs, the first engine against each of the others.

use super::figures::{METRICS, Series};
use super::plan::DbRecord;
use crate::report::paired::{Basis, Comparison, Family, Findings};

/// The judged figures of a run.
pub struct Judgements {
    findings: Findings,
    /// Numbers of ladders, of other engines, of steps.
    ladders: usize,
    others: usize,
    steps: usize,
}

impl Judgements {
    /// Judges a run; nothing for one engine.
    pub fn of(record: &DbRecord) -> Judgements {
        let ladders = record.plan.ladders();
        let steps = record.reference().map_or(0, |reference| reference.loops().count());
        let others = record.plan.engines.len().saturating_sub(1);
        let mut family = Family::default();
        for ladder in &ladders {
            let series = Series::of(record, *ladder);
            for other in 1..=others {
                for step in 0..steps {
                    for metric in &METRICS {
                        family.add(series.sides(other, step, metric));
                    }
                }
            }
        }
        Judgements { findings: family.judge(), ladders: ladders.len(), others, steps }
    }

    /// A figure by its place in [`METRICS`]: the first engine against the one at `other`, from 1.
    pub fn get(
        &self,
        ladder: usize,
        other: usize,
        step: usize,
        metric: usize,
    ) -> Option<&Comparison> {
        let is_known = ladder < self.ladders && other <= self.others && step < self.steps;
        let other = other.checked_sub(1).filter(|_| is_known)?;
        let place = ((ladder * self.others + other) * self.steps + step) * METRICS.len() + metric;
        self.findings.get(place)
    }

    /// On what the verdicts rest.
    pub fn basis(&self) -> &Basis {
        &self.findings.basis
    }
}
