//! Files and functions stay small. Tests do not count.

use super::Complaint;
use super::source::{Source, words};

/// Most lines of a file.
const FILE_LINES_MAX: usize = 800;

/// Most lines of a function, from its name to its closing brace.
const FUNCTION_LINES_MAX: usize = 70;

/// Functions that are longer for now: file, name, lines. It only ever gets shorter.
pub(super) const LONG_FUNCTIONS: &[(&str, &str, usize)] = &[];

/// Complains about what is too long.
pub fn check(source: &Source, complaints: &mut Vec<Complaint>) {
    let lines = source.test.iter().filter(|test| !**test).count();
    if lines > FILE_LINES_MAX {
        complaints.push(Complaint {
            path: source.path.clone(),
            line: 0,
            what: format!("{lines} lines that are no tests; at most {FILE_LINES_MAX}: split it"),
        });
    }
    let joined = source.joined();
    for offset in words(&joined, "fn") {
        let line = Source::line_at(&joined, offset);
        if source.is_test(line) {
            continue;
        }
        let Some((name, lines)) = function(&joined, offset) else { continue };
        let allowed = LONG_FUNCTIONS
            .iter()
            .find(|(path, long, _)| *path == source.path && *long == name)
            .map_or(FUNCTION_LINES_MAX, |(_, _, lines)| *lines);
        if lines > allowed {
            complaints.push(Complaint {
                path: source.path.clone(),
                line,
                what: format!("{name} has {lines} lines; at most {allowed}: split it"),
            });
        }
    }
}

/// Name and number of lines of the function whose `fn` is at `offset`; `None` without a body.
fn function(code: &str, offset: usize) -> Option<(String, usize)> {
    let rest = &code[offset + 2..];
    let name: String =
        rest.trim_start().chars().take_while(|c| super::source::is_identifier(*c)).collect();
    if name.is_empty() {
        return None;
    }
    let mut depth = 0;
    let mut brackets = 0;
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            b'(' | b'[' => brackets += 1,
            b')' | b']' => brackets -= 1,
            b';' if depth == 0 && brackets == 0 => return None,
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some((name, rest[..at].matches('\n').count() + 1));
                }
            }
            _ => {}
        }
    }
    None
}
