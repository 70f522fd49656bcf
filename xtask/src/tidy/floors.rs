//! A room of the engine imports only from lower floors; tests too.
//!
//! Seen are `crate::room`, groups (`crate::{room, ...}`), and `super` chains that lead out of a
//! room. The error type and the counted slice are everywhere; what else the crate's root exports
//! belongs to the top floor.

use super::source::{Source, is_identifier};
use super::{Complaint, Tree};

const ENGINE: &str = "crates/lithify/src/";

/// The page whose table of rooms repeats the floors.
const PAGE: &str = "ARCHITECTURE.md";

/// The floor of every room; headers and the page are compared with it. `options` is the public face of `db` and stands with it.
pub(super) const FLOORS: &[(&str, u32)] = &[
    ("base", 0),
    ("format", 0),
    ("planted", 0),
    ("fs", 1),
    ("codec", 1),
    ("operator", 1),
    ("retention", 1),
    ("stats", 1),
    ("cache", 2),
    ("chooser", 2),
    ("events", 2),
    ("memtable", 3),
    ("wal", 3),
    ("table", 3),
    ("manifest", 4),
    ("iter", 5),
    ("compaction", 6),
    ("db", TOP),
    ("options", TOP),
    ("inspect", TOP + 1),
    ("backup", TOP + 1),
    ("verify", TOP + 2),
    ("repair", TOP + 3),
    ("fuzzing", TOP + 4),
];

/// Of the engine itself; what looks at it from outside stands above.
const TOP: u32 = 7;

/// Below all floors: every room may use these. Defects are planted in all of them.
const EVERYWHERE: &[&str] = &["error", "planted", "Error", "ErrorKind", "Result"];

/// Rooms that import from one on their own floor.
const SIDE_PAIRS: &[(&str, &str)] = &[("format", "base"), ("stats", "codec")];

fn floor_of(room: &str) -> Option<u32> {
    FLOORS.iter().find(|(name, _)| *name == room).map(|(_, floor)| *floor)
}

/// Complains about imports from the same floor or from above.
pub fn check(source: &Source, complaints: &mut Vec<Complaint>) {
    let Some(inside) = source.path.strip_prefix(ENGINE) else { return };
    let room = inside.split('/').next().unwrap_or_default().trim_end_matches(".rs");
    if matches!(room, "lib" | "error") {
        return;
    }
    let Some(own) = floor_of(room) else {
        complaints.push(Complaint {
            path: source.path.clone(),
            line: 0,
            what: format!("the room {room} has no floor; give it one in the table of floors"),
        });
        return;
    };
    let joined = source.joined();
    let mut complain = |line: usize, used: &str| {
        let what = match verdict(room, own, used) {
            None => return,
            Some(what) => what,
        };
        complaints.push(Complaint { path: source.path.clone(), line, what });
    };
    for (offset, used) in imports(&joined, "crate::") {
        complain(Source::line_at(&joined, offset), &used);
    }
    let depth = inside.split('/').count() - usize::from(inside.ends_with("/mod.rs"));
    let chain = "super::".repeat(depth);
    for (offset, used) in imports(&joined, &chain) {
        let line = Source::line_at(&joined, offset);
        // Inside an inline test module the same chain ends one module lower.
        if !source.is_test(line) {
            complain(line, &used);
        }
    }
}

/// Complains about a room that does not exist, and about floors in headers and on the page that are
/// not those of the list.
pub fn check_lists(tree: &Tree, sources: &[Source], complaints: &mut Vec<Complaint>) {
    let mut complain = |path: &str, line: usize, what: String| {
        complaints.push(Complaint { path: path.to_owned(), line, what });
    };
    for source in sources {
        let Some(room) = room_of(&source.path) else { continue };
        let said = source.lines.first().and_then(|line| line.strip_prefix("//! Floor "));
        let said = said.and_then(|text| text.split(':').next()?.parse::<u32>().ok());
        if let (Some(said), Some(floor)) = (said, floor_of(room))
            && said != floor
        {
            complain(&source.path, 1, format!("the room {room} is on floor {floor}"));
        }
    }
    let Some(page) = tree.files.iter().find(|file| file.path == PAGE) else { return };
    let text = String::from_utf8_lossy(&page.bytes);
    let listed = listed_floors(&text);
    for (line, room, floor) in &listed {
        let is_right = room == "error" || floor_of(room) == Some(*floor);
        if !is_right {
            complain(PAGE, *line, format!("the room {room} is not on floor {floor}"));
        }
    }
    for (room, _) in FLOORS {
        if !listed.iter().any(|(_, listed, _)| listed == room) {
            complain(PAGE, 0, format!("the table of floors lacks the room {room}"));
        }
        if !sources.iter().any(|source| room_of(&source.path) == Some(room)) {
            complain(PAGE, 0, format!("xtask gives a floor to {room}, which does not exist"));
        }
    }
}

/// The room whose root that file is.
fn room_of(path: &str) -> Option<&str> {
    let inside = path.strip_prefix(ENGINE)?;
    let root = inside.strip_suffix("/mod.rs").or_else(|| inside.strip_suffix(".rs"))?;
    (!root.contains('/')).then_some(root)
}

/// The rooms of the page's table, with line and floor.
fn listed_floors(page: &str) -> Vec<(usize, String, u32)> {
    let lines = page.lines().enumerate();
    let table = lines.skip_while(|(_, line)| !line.starts_with("| floor | room |")).skip(2);
    let mut listed = Vec::new();
    for (index, line) in table.take_while(|(_, line)| line.starts_with('|')) {
        let cells: Vec<&str> = line.split('|').collect();
        let floor = cells.get(1).and_then(|cell| cell.trim().parse::<u32>().ok());
        if let (Some(floor), Some(rooms)) = (floor, cells.get(2)) {
            let names = rooms.split('`').skip(1).step_by(2);
            listed.extend(names.map(|room| (index + 1, room.to_owned(), floor)));
        }
    }
    listed
}

/// What is wrong with `room` on floor `own` using `used`.
fn verdict(room: &str, own: u32, used: &str) -> Option<String> {
    if used == room || EVERYWHERE.contains(&used) {
        return None;
    }
    let floor = match floor_of(used) {
        Some(floor) => floor,
        None if used == "Slice" => 0,
        None if used.starts_with(char::is_uppercase) => TOP,
        None => return None,
    };
    let public_pair = own == TOP && floor == TOP;
    let side_pair = SIDE_PAIRS.contains(&(room, used)) || used == "Slice";
    if floor < own || public_pair || side_pair {
        return None;
    }
    Some(format!("{room} (floor {own}) imports {used} (floor {floor}): only lower floors"))
}

/// The first names after every `prefix`: one, or those of a group.
fn imports(code: &str, prefix: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (offset, _) in code.match_indices(prefix) {
        let before = code[..offset].chars().next_back();
        if before.is_some_and(|c| is_identifier(c) || c == ':') {
            continue;
        }
        let rest = &code[offset + prefix.len()..];
        if let Some(group) = rest.strip_prefix('{') {
            found.extend(group_names(group).into_iter().map(|name| (offset, name)));
        } else {
            let name: String = rest.chars().take_while(|c| is_identifier(*c)).collect();
            found.push((offset, name));
        }
    }
    found
}

/// The names on the first level of a group, whose opening brace is gone.
fn group_names(group: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut depth = 0;
    let mut item = String::new();
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(std::mem::take(&mut item)),
            _ => {}
        }
        if c != ',' || depth > 0 {
            item.push(c);
        }
    }
    names.push(item);
    names
        .iter()
        .map(|item| item.trim().chars().take_while(|c| is_identifier(*c)).collect::<String>())
        .filter(|name| !name.is_empty())
        .collect()
}
