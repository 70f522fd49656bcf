//! Several arms of one engine, as it is matched with others and as its experts set it: the better of
//! them, figure by figure.
//!
//! Owns: which engines are arms of one, and which of several values is better. Pure. Every report
//! that compares with the better arm asks here, so that all mean the same by it: in each cell (a
//! figure of a step or phase with its codecs) the arm with the better median over the repeats. That
//! choice can only favour the arms; the engine that is compared with them has one.

use super::paired::Better;
use crate::adapter::EngineName;

/// What ends the name of an engine that its experts have set.
const EXPERT: &str = "-expert";

/// The engine of which `name` is an arm: `rocksdb` for `rocksdb` and `rocksdb-expert`.
pub fn engine_of(name: &str) -> &str {
    name.strip_suffix(EXPERT).unwrap_or(name)
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

/// The candidate with the better value; the first of equals, none without candidates.
pub fn better<T>(candidates: impl IntoIterator<Item = (T, f64)>, better: Better) -> Option<T> {
    let mut best: Option<(T, f64)> = None;
    for (candidate, value) in candidates {
        let is_better = best.as_ref().is_none_or(|(_, best)| match better {
            Better::Higher => value > *best,
            Better::Lower => value < *best,
        });
        if is_better {
            best = Some((candidate, value));
        }
    }
    best.map(|(candidate, _)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }

    #[test]
    fn the_direction_of_a_figure_decides() {
        let rates = [("plain", 90.0), ("expert", 120.0), ("other", 120.0)];
        assert_eq!(better(rates, Better::Higher), Some("expert"));
        assert_eq!(better(rates, Better::Lower), Some("plain"));
        assert_eq!(better([("plain", f64::NAN)], Better::Lower), Some("plain"));
        assert_eq!(better(Vec::<((), f64)>::new(), Better::Lower), None);
    }
}
