//! Reads the repository into memory and runs the rules over it.
//!
//! Owns: the [`Tree`] and the list of rules. Every rule is a pure function over the tree, so that a
//! test can hand it a tree with a fault in it: a checker that cannot fail checks nothing.

mod defects;
mod floors;
mod forbidden;
mod help;
mod house;
mod lab;
mod links;
mod prose;
mod size;
mod source;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use source::Source;

/// A place that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Complaint {
    /// Path in the repository.
    pub path: String,
    /// Line, from 1; 0 for the file as a whole.
    pub line: usize,
    /// What is wrong and what to do.
    pub what: String,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.what),
            line => write!(f, "{}:{line}: {}", self.path, self.what),
        }
    }
}

/// One file of the repository.
pub struct File {
    /// Path in the repository, with `/`.
    pub path: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Whether it may be executed.
    pub executable: bool,
}

/// The repository.
pub struct Tree {
    /// Its files, sorted by path.
    pub files: Vec<File>,
}

/// Directories that belong to tools or hold what is measured.
const SKIPPED: &[&str] = &[".git", "target", "results/runs"];

/// What Python's tools leave beside sources.
const LEFT_BY_PYTHON: &[&str] = &["__pycache__", ".hypothesis", ".mypy_cache", ".pytest_cache"];

/// Whether it is no source, by its name.
fn is_left_by_python(name: &str) -> bool {
    LEFT_BY_PYTHON.contains(&name) || name.ends_with(".so")
}

impl Tree {
    /// Reads everything below `directory`.
    pub fn read(directory: &Path) -> io::Result<Tree> {
        let mut files = Vec::new();
        read_directory(directory, "", &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Tree { files })
    }

    /// The Rust files, parsed as far as the rules need it.
    pub fn sources(&self) -> Vec<Source> {
        let parsed = self.files.iter().filter(|file| file.path.ends_with(".rs"));
        let mut sources: Vec<Source> = parsed
            .map(|file| Source::parse(&file.path, &String::from_utf8_lossy(&file.bytes)))
            .collect();
        source::mark_test_modules(&mut sources);
        sources
    }
}

fn read_directory(directory: &Path, prefix: &str, files: &mut Vec<File>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let path = format!("{prefix}{}", name.to_string_lossy());
        let kind = entry.file_type()?;
        if SKIPPED.contains(&path.as_str()) || is_left_by_python(&name.to_string_lossy()) {
            continue;
        }
        if kind.is_dir() {
            read_directory(&entry.path(), &format!("{path}/"), files)?;
        } else if kind.is_file() {
            let executable = entry.metadata()?.permissions().mode() & 0o111 != 0;
            files.push(File { path, bytes: fs::read(entry.path())?, executable });
        }
    }
    Ok(())
}

/// Everything that breaks a rule, by place.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    let sources = tree.sources();
    let mut complaints = Vec::new();
    for source in &sources {
        floors::check(source, &mut complaints);
        forbidden::check(source, &mut complaints);
        size::check(source, &mut complaints);
        defects::check_sites(source, &mut complaints);
    }
    floors::check_lists(tree, &sources, &mut complaints);
    lab::check(&sources, &mut complaints);
    for file in &tree.files {
        lab::check_table(&file.path, &String::from_utf8_lossy(&file.bytes), &mut complaints);
    }
    house::check(tree, &sources, &mut complaints);
    defects::check(tree, &mut complaints);
    links::check(tree, &mut complaints);
    prose::check(tree, &mut complaints);
    complaints.sort();
    complaints
}
