//! The repository as a house: headers, names, sizes of files, scripts, and that it speaks of
//! itself alone.

use super::source::Source;
use super::{Complaint, Tree};

/// Most bytes of a file.
const FILE_BYTES_MAX: usize = 200 << 10;

/// Where the records of experiments are kept, with their reports.
const RESULTS: &str = "results/";

/// Most bytes of a record: `bench pack` makes it that small.
const RECORD_BYTES_MAX: usize = 200 << 10;

/// Most bytes of a report or of its figures as lines.
const REPORT_BYTES_MAX: usize = 256 << 10;

/// Most bytes of all results together.
const RESULTS_BYTES_MAX: usize = 6_000_000;

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
        let (bytes_max, advice) = bytes_max(&file.path);
        if file.bytes.len() > bytes_max {
            complain(0, format!("{} bytes; at most {bytes_max}{advice}", file.bytes.len()));
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
    let results = tree.files.iter().filter(|file| file.path.starts_with(RESULTS));
    let results_bytes: usize = results.map(|file| file.bytes.len()).sum();
    if results_bytes > RESULTS_BYTES_MAX {
        complaints.push(Complaint {
            path: RESULTS.to_owned(),
            line: 0,
            what: format!(
                "{results_bytes} bytes in all; at most {RESULTS_BYTES_MAX}: keep what documents cite"
            ),
        });
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

/// Most bytes of a file, and what to do with a larger one.
fn bytes_max(path: &str) -> (usize, &'static str) {
    let is_record = path.ends_with(".json") || path.ends_with(".zst");
    match path.starts_with(RESULTS) {
        true if is_record => (RECORD_BYTES_MAX, ": `lithify bench pack` makes a record smaller"),
        true => (REPORT_BYTES_MAX, ""),
        false => (FILE_BYTES_MAX, ""),
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
