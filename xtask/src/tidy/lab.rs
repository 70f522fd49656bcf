//! Rooms of the laboratory import from lower floors, and no large circle of files is in it.
//!
//! Seen are `crate::` and `super::` paths and those that begin with a module's own child, in groups
//! too, outside of tests.

use std::collections::{BTreeMap, BTreeSet};

use super::Complaint;
use super::source::{Source, is_identifier};

const LAB: &str = "crates/lithify-lab/src/";

/// The table of floors that people read.
const TABLE: &str = "ARCHITECTURE.md";

/// The floor of every room.
pub(super) const FLOORS: &[(&str, u32)] = &[
    ("random", 0),
    ("statistics", 1),
    ("latency", 1),
    ("meter", 1),
    ("adapter", 2),
    ("keyvalue", 3),
    ("datasets", 3),
    ("experiment", 4),
    ("engines", 5),
    ("report", 5),
    ("run", 6),
    ("html", 6),
    ("comparison", 6),
    ("scalability", 6),
    ("kind", 7),
    ("linkbench", 8),
    ("dbbench", 8),
    ("loop_experiment", 9),
    ("tables", 9),
    ("chunks", 9),
    ("overwrite", 9),
    ("amplification", 9),
    ("durability", 9),
    ("page_store", 9),
    ("policies", 9),
    ("records", 10),
    ("conformance", 10),
];

/// Most files of a circle of imports.
pub(super) const CIRCLE_MAX: usize = 8;

/// A module by the names on its path.
type Module = Vec<String>;

/// Complains about imports from the same floor or from above, and about large circles.
pub fn check(sources: &[Source], complaints: &mut Vec<Complaint>) {
    let is_inside = |source: &&Source| {
        source.path.starts_with(LAB) && source.test.iter().any(|is_test| !is_test)
    };
    let inside: Vec<&Source> = sources.iter().filter(is_inside).collect();
    let modules: BTreeSet<Module> = inside.iter().map(|source| module_of(source)).collect();
    let mut graph: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for source in &inside {
        let own = module_of(source);
        let used = imports(source, &modules).into_iter().map(|path| known(&path, &modules));
        let used = used.filter(|used| !used.is_empty() && *used != own).collect();
        graph.insert(own, used);
    }
    rooms(&graph, complaints);
    for circle in circles(&graph).iter().filter(|circle| circle.len() > CIRCLE_MAX) {
        let names: Vec<String> = circle.iter().map(|module| module.join("/")).collect();
        let (size, names) = (names.len(), names.join(", "));
        let what = format!("{size} files import each other in a circle: {names}");
        complaints.push(complaint("lib.rs", what));
    }
}

fn complaint(file: &str, what: String) -> Complaint {
    Complaint { path: format!("{LAB}{file}"), line: 0, what }
}

/// Complains that the table of floors for people lacks a room.
pub fn check_table(path: &str, text: &str, complaints: &mut Vec<Complaint>) {
    if path != TABLE {
        return;
    }
    let has = |room: &str, floor: u32| {
        let begins = format!("| {floor} |");
        let mut rows = text.lines().filter(|line| line.starts_with(&begins));
        rows.any(|row| row.contains(&format!("`{room}`")))
    };
    for (room, floor) in FLOORS.iter().filter(|(room, floor)| !has(room, *floor)) {
        let what = format!("the table of the laboratory's floors lacks {room} on floor {floor}");
        complaints.push(Complaint { path: path.to_owned(), line: 0, what });
    }
}

fn rooms(graph: &BTreeMap<Module, BTreeSet<Module>>, complaints: &mut Vec<Complaint>) {
    let mut upward: BTreeMap<(&str, &str), BTreeSet<&Module>> = BTreeMap::new();
    for (own, used) in graph.iter().filter(|(own, _)| !own.is_empty()) {
        let Some(floor) = floor_of(&own[0]) else {
            complaints.push(complaint(&own[0], "this room has no floor: give it one".to_owned()));
            continue;
        };
        let above = used.iter().filter(|used| used[0] != own[0]);
        for used in above.filter(|used| floor_of(&used[0]).is_some_and(|other| other >= floor)) {
            upward.entry((&own[0], &used[0])).or_default().insert(own);
        }
    }
    for ((room, used), files) in &upward {
        let names: Vec<String> = files.iter().map(|module| module.join("/")).collect();
        let names = names.join(", ");
        let what = format!("{room} imports {used}, which is not below it: {names}");
        complaints.push(complaint(room, what));
    }
}

/// The module that a file is.
fn module_of(source: &Source) -> Module {
    let inside = source.path.trim_start_matches(LAB).trim_end_matches(".rs");
    let mut names: Module = inside.split('/').map(str::to_owned).collect();
    names.pop_if(|last| matches!(last.as_str(), "mod" | "lib"));
    names
}

fn floor_of(room: &str) -> Option<u32> {
    FLOORS.iter().find(|(name, _)| *name == room).map(|(_, floor)| *floor)
}

/// The longest beginning of a path that is a module, or a room.
fn known(path: &[String], modules: &BTreeSet<Module>) -> Module {
    let mut path = path.to_vec();
    let is_known = |path: &Module| match path.as_slice() {
        [] => true,
        [room] if floor_of(room).is_some() => true,
        _ => modules.contains(path),
    };
    while !is_known(&path) {
        path.pop();
    }
    path
}

/// The `crate::` and `super::` paths of a file, outside of tests, and those into its own children,
/// from the crate's root.
fn imports(source: &Source, modules: &BTreeSet<Module>) -> Vec<Module> {
    let lines = source.code.iter().enumerate();
    let code: Vec<&str> = lines
        .map(|(index, line)| if source.is_test(index + 1) { "" } else { line.as_str() })
        .collect();
    let code = code.join("\n");
    let own = module_of(source);
    let mut found = Vec::new();
    let begins = |offset: &usize| {
        let before = code[..*offset].chars().next_back();
        !before.is_some_and(|c| is_identifier(c) || c == ':')
    };
    for offset in code.match_indices("crate::").map(|(offset, _)| offset).filter(&begins) {
        paths(&code[offset + "crate::".len()..], &[], &mut found);
    }
    for offset in code.match_indices("super::").map(|(offset, _)| offset).filter(&begins) {
        let (mut rest, mut base) = (&code[offset..], own.as_slice());
        while let Some(next) = rest.strip_prefix("super::") {
            rest = next;
            base = base.split_last().map_or(&[][..], |(_, above)| above);
        }
        paths(rest, base, &mut found);
    }
    let children = modules.iter().filter(|module| module.len() == own.len() + 1);
    for child in children.filter(|module| !own.is_empty() && module.starts_with(&own)) {
        let used = format!("{}::", child[own.len()]);
        if code.match_indices(&used).any(|(offset, _)| begins(&offset)) {
            found.push(child.clone());
        }
    }
    found
}

/// Adds the paths at the start of `code` behind `prefix`; gives what follows them.
fn paths<'a>(code: &'a str, prefix: &[String], found: &mut Vec<Module>) -> &'a str {
    let code = code.trim_start();
    if let Some(mut rest) = code.strip_prefix('{') {
        loop {
            rest = paths(rest, prefix, found).trim_start();
            match rest.strip_prefix(',') {
                Some(next) => rest = next,
                None => return rest.strip_prefix('}').unwrap_or(rest),
            }
        }
    }
    let end = code.find(|c| !is_identifier(c)).unwrap_or(code.len());
    let mut path = prefix.to_vec();
    path.extend((end > 0).then(|| code[..end].to_owned()));
    match code[end..].strip_prefix("::") {
        Some(rest) => paths(rest, &path, found),
        None => {
            found.push(path);
            let rest = &code[end..];
            // `as` and the other name belong to the item.
            match rest.trim_start().strip_prefix("as ") {
                Some(name) => name.trim_start_matches(is_identifier),
                None => rest.trim_start_matches('*'),
            }
        }
    }
}

/// The circles of a graph, as sets of modules that all reach each other.
fn circles(graph: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<Vec<Module>> {
    let reach: BTreeMap<&Module, BTreeSet<&Module>> =
        graph.keys().map(|module| (module, reached(graph, module))).collect();
    let mut seen: BTreeSet<Module> = BTreeSet::new();
    let mut found = Vec::new();
    for (module, others) in &reach {
        if !others.contains(module) || seen.contains(*module) {
            continue;
        }
        let back = |other: &&&Module| reach.get(**other).is_some_and(|from| from.contains(module));
        let circle: Vec<Module> =
            others.iter().filter(back).map(|other| (**other).clone()).collect();
        seen.extend(circle.iter().cloned());
        found.push(circle);
    }
    found
}

/// What a module reaches by imports, itself only in a circle.
fn reached<'a>(
    graph: &'a BTreeMap<Module, BTreeSet<Module>>,
    from: &'a Module,
) -> BTreeSet<&'a Module> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        for used in graph.get(module).into_iter().flatten() {
            if found.insert(used) {
                open.push(used);
            }
        }
    }
    found
}
