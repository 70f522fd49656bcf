//! The repository as a house: headers, names, sizes of files, scripts, and that it speaks of
//! itself alone.

use super::source::Source;
use super::{Complaint, Tree};

/// Most bytes of a file.
const FILE_BYTES_MAX: usize = 200 << 10;

/// Most bytes of a file under `results/`: the raw figures of one experiment.
const RESULT_BYTES_MAX: usize = 1792 << 10;

/// Names that say nothing.
const EMPTY_NAMES: &[&str] = &["utils", "util", "common", "helpers", "helper", "misc"];

/// Scripts that a reader starts.
const SCRIPTS: &[&str] = &["run", "test", ".ci/run"];

/// Words of places where the project was worked on. Put together here, so that this file passes.
const FOREIGN_WORDS: &[&str] = &[
    concat!("/wor", "k/"),
    concat!("this ses", "sion"),
    concat!("in this sit", "ting"),
    concat!("issue", " #"),
    concat!("the bri", "ef says"),
];

/// Complains about what a visitor would stumble over.
pub fn check(tree: &Tree, sources: &[Source], complaints: &mut Vec<Complaint>) {
    for source in sources {
        check_header(source, complaints);
    }
    for file in &tree.files {
        let mut complain = |line: usize, what: String| {
            complaints.push(Complaint { path: file.path.clone(), line, what });
        };
        let is_result = file.path.starts_with("results/");
        let bytes_max = if is_result { RESULT_BYTES_MAX } else { FILE_BYTES_MAX };
        if file.bytes.len() > bytes_max {
            complain(0, format!("{} bytes; at most {bytes_max}", file.bytes.len()));
        }
        for part in file.path.split('/') {
            let stem = part.split('.').next().unwrap_or_default();
            if EMPTY_NAMES.contains(&stem) {
                complain(0, format!("the name {stem} says nothing: name what it holds"));
            }
        }
        let Ok(text) = std::str::from_utf8(&file.bytes) else { continue };
        for (index, line) in text.lines().enumerate() {
            let lower = line.to_lowercase();
            for word in FOREIGN_WORDS.iter().filter(|word| lower.contains(**word)) {
                complain(index + 1, format!("\"{word}\" is about a workplace, not the project"));
            }
        }
    }
    for script in SCRIPTS {
        let what = match tree.files.iter().find(|file| file.path == *script) {
            None => "is missing",
            Some(file) if !file.executable => "cannot be executed",
            Some(_) => continue,
        };
        complaints.push(Complaint { path: (*script).to_owned(), line: 0, what: what.to_owned() });
    }
}

fn check_header(source: &Source, complaints: &mut Vec<Complaint>) {
    if source.test.iter().all(|test| *test) {
        return;
    }
    let first = source.lines.iter().find(|line| !line.trim().is_empty());
    if !first.is_some_and(|line| line.starts_with("//!")) {
        complaints.push(Complaint {
            path: source.path.clone(),
            line: 1,
            what: "begins without a //! header that says what the module is for".to_owned(),
        });
    }
}
