//! Several arms of one engine, as it is matched with others and as its experts set it: the better of
//! them, figure by figure.
//!
//! Owns: which engines are arms of one, and what a comparison with all of them comes to
//! ([`against`]). Pure. Every report that compares with the better arm asks here, so that all mean
//! the same by it: in each cell (a figure of a step or phase with its codecs) the arm whose ratio is
//! least favourable to the engine that is compared. To choose the better arm by the same values that
//! are then compared is a choice by noise, too. So the verdict is not that of the chosen arm: the
//! engine is better only where it is significantly better than every arm, and worse where it is
//! significantly worse than any.

use super::paired::{Better, Comparison, Outcome};
use crate::adapter::EngineName;
use crate::statistics::verdicts::{Judged, Why};

/// What ends the name of an engine that its experts have set.
const EXPERT: &str = "-expert";

/// The engine of which `name` is an arm: `rocksdb` for `rocksdb` and `rocksdb-expert`.
pub fn engine_of(name: &str) -> &str {
    name.strip_suffix(EXPERT).unwrap_or(name)
}

/// What distinguishes an arm from others of its engine, in short: `expert`, or the engine's own name.
pub fn setting_of(name: &str) -> &str {
    if name.ends_with(EXPERT) { EXPERT.trim_start_matches('-') } else { name }
}

/// Arms of one engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Their names with `and` between them.
    pub names: String,
    /// Their places in the list that they were found in.
    pub members: Vec<usize>,
}

impl Group {
    /// What a row or column of the better of them is called.
    pub fn title(&self) -> String {
        format!("better of {}", self.names)
    }
}

/// The engines of which a list has several arms, in the order of the list.
pub fn groups(engines: &[EngineName]) -> Vec<Group> {
    let mut groups: Vec<(&str, Vec<usize>)> = Vec::new();
    for (index, name) in engines.iter().enumerate() {
        let engine = engine_of(name.name());
        match groups.iter_mut().find(|(known, _)| *known == engine) {
            Some((_, members)) => members.push(index),
            None => groups.push((engine, vec![index])),
        }
    }
    groups.retain(|(_, members)| members.len() >= 2);
    let name = |index: &usize| engines.get(*index).map_or("", EngineName::name);
    groups
        .into_iter()
        .map(|(_, members)| {
            let names: Vec<&str> = members.iter().map(name).collect();
            Group { names: names.join(" and "), members }
        })
        .collect()
}

/// What a comparison with all arms of a group comes to.
pub struct Against<'a, T> {
    /// The arm that is hardest to beat.
    pub arm: T,
    /// With that arm.
    pub comparison: &'a Comparison,
    /// Over all arms.
    pub outcome: Outcome,
}

/// Compares with all arms of a group in one figure; `None` where no arm has it. An arm that does not
/// have what others have keeps the engine from being better.
pub fn against<'a, T>(
    arms: impl IntoIterator<Item = (T, Option<&'a Comparison>)>,
    better: Better,
) -> Option<Against<'a, T>> {
    let (mut found, mut is_whole) = (Vec::new(), true);
    for (arm, comparison) in arms {
        match comparison {
            Some(comparison) => found.push((arm, comparison)),
            None => is_whole = false,
        }
    }
    let outcomes = found.iter().map(|(_, comparison)| comparison.outcome(better));
    let outcome = match over_all(outcomes) {
        Outcome::Better if !is_whole => Outcome::DirectionOnly(Why::FewRounds),
        outcome => outcome,
    };
    let have_ratios = found.iter().all(|(_, comparison)| comparison.judged.ratio.is_some());
    let disadvantage = |comparison: &Comparison| {
        let Judged { ratio, difference, .. } = comparison.judged;
        let effect = if have_ratios { ratio } else { difference }.unwrap_or(f64::NAN);
        match better {
            Better::Higher => -effect,
            Better::Lower => effect,
        }
    };
    let hardest = found.into_iter().reduce(|hardest, other| {
        if disadvantage(other.1) > disadvantage(hardest.1) { other } else { hardest }
    });
    hardest.map(|(arm, comparison)| Against { arm, comparison, outcome })
}

/// Worse than any is worse; better than all is better; else not significant where that holds of any.
fn over_all(outcomes: impl Iterator<Item = Outcome>) -> Outcome {
    let weight = |outcome: &Outcome| match outcome {
        Outcome::Worse => 3,
        Outcome::NotSignificant => 2,
        Outcome::DirectionOnly(_) => 1,
        Outcome::Better => 0,
    };
    outcomes.max_by_key(weight).unwrap_or(Outcome::NotSignificant)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::paired::{Family, Sides};

    fn names(names: &[&str]) -> Vec<EngineName> {
        names.iter().map(|name| EngineName::new(*name)).collect()
    }

    #[test]
    fn arms_of_one_engine_are_found() {
        let engines = names(&["lithify", "rocksdb", "leveldb", "rocksdb-expert"]);
        let group = Group { names: "rocksdb and rocksdb-expert".to_owned(), members: vec![1, 3] };
        assert_eq!(group.title(), "better of rocksdb and rocksdb-expert");
        assert_eq!(groups(&engines), [group]);
        assert!(groups(&names(&["lithify", "rocksdb", "rocksdb-native"])).is_empty());
        assert!(groups(&names(&["rocksdb-expert"])).is_empty());
        assert_eq!(["rocksdb", "rocksdb-expert"].map(setting_of), ["rocksdb", "expert"]);
    }

    /// One engine against arms, each with a rate over three repeats and a noise.
    fn compared(own: f64, arms: &[(f64, f64)]) -> Vec<Comparison> {
        let rounds = |level: f64, noise: f64| -> Vec<(u64, f64)> {
            (0..).zip([0.0, noise, -noise].map(|by| level * (1.0 + by))).collect()
        };
        let mut family = Family::default();
        for (level, noise) in arms {
            family.add(Sides {
                kind: format!("{level} {noise}"),
                values: [rounds(own, 0.0), rounds(*level, *noise)],
                again: [rounds(own, 0.005), rounds(*level, -noise)],
                ..Sides::default()
            });
        }
        let findings = family.judge();
        (0..arms.len()).filter_map(|place| findings.get(place).cloned()).collect()
    }

    fn verdict(better: Better, own: f64, arms: &[(f64, f64)]) -> (usize, Outcome) {
        let all = compared(own, arms);
        let found = against(all.iter().map(Some).enumerate(), better).expect("has arms");
        (found.arm, found.outcome)
    }

    #[test]
    fn better_than_all_is_better_and_worse_than_any_is_worse() {
        let (higher, lower) = (Better::Higher, Better::Lower);
        let quiet = 0.005;
        assert_eq!(verdict(higher, 200.0, &[(90.0, quiet), (120.0, quiet)]), (1, Outcome::Better));
        assert_eq!(verdict(lower, 50.0, &[(90.0, quiet), (120.0, quiet)]), (0, Outcome::Better));
        assert_eq!(verdict(higher, 100.0, &[(90.0, quiet), (120.0, quiet)]), (1, Outcome::Worse));
        assert_eq!(verdict(lower, 100.0, &[(90.0, quiet), (120.0, quiet)]), (0, Outcome::Worse));
        // Significantly better than one arm, and not than the other.
        let mixed = verdict(higher, 100.0, &[(80.0, quiet), (99.5, quiet)]);
        assert_eq!(mixed, (1, Outcome::NotSignificant));
        // The arm that is hardest to beat is noisy: what is worse than the quiet one is still worse.
        let noisy = verdict(higher, 100.0, &[(130.0, 0.9), (120.0, quiet)]);
        assert_eq!(noisy.1, Outcome::Worse);
    }

    #[test]
    fn an_arm_without_a_value_keeps_from_better() {
        let all = compared(200.0, &[(90.0, 0.005)]);
        let with = |other| against([(0, Some(&all[0])), (1, other)], Better::Higher);
        let found = with(None).expect("has one");
        assert_eq!((found.arm, found.outcome.word()), (0, "direction only"));
        assert_eq!(with(Some(&all[0])).expect("has two").outcome, Outcome::Better);
        assert!(against([(0, None)], Better::Higher).is_none());
    }
}
