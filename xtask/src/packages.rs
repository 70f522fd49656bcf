//! The gate of what is published: each crate that may be published can be built and used without the repository.
//!
//! `cargo run -p xtask -- packages` asks cargo which files a package would have, and complains where
//!
//! 1. the manifest lacks what a registry shows, or the package a licence or the page;
//! 2. code includes a file that the package would not have. In the repository such code builds.
//!
//! Whether all dependencies can be published cargo tells by itself: `cargo package --workspace --no-verify`. Needs
//! no network.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::command::run as run_command;
use crate::tidy::Tree;

/// Where the packages are.
const PACKAGES: &str = "crates";

/// What a manifest says, of its own or by the workspace.
const KEYS: &[&str] = &["description", "license", "readme", "keywords", "categories"];

/// What a package has.
const FILES: &[&str] = &["LICENSE-APACHE", "LICENSE-MIT", "README.md"];

/// Prints what is missing.
pub fn run(repository: &Path) -> ExitCode {
    match check(repository) {
        Ok((count, complaints)) if complaints.is_empty() => {
            println!("packages: {count}, each whole without the repository");
            ExitCode::SUCCESS
        }
        Ok((_, complaints)) => {
            complaints.iter().for_each(|complaint| println!("{complaint}"));
            eprintln!("error: {} places keep packages from being whole", complaints.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: packages: {error}");
            ExitCode::FAILURE
        }
    }
}

/// How many packages there are, and what they lack.
fn check(repository: &Path) -> Result<(usize, Vec<String>), String> {
    let tree = Tree::read(repository).map_err(|error| error.to_string())?;
    let sources = tree.sources();
    let (mut count, mut complaints) = (0, Vec::new());
    for file in &tree.files {
        let Some(name) = package_of(&file.path) else { continue };
        let manifest = String::from_utf8_lossy(&file.bytes);
        if manifest.lines().any(|line| line == "publish = false") {
            continue;
        }
        count += 1;
        let files = files_of(repository, name)?;
        complaints.extend(missing(name, &manifest, &files));
        for source in &sources {
            let Some(path) = source.path.strip_prefix(&format!("{PACKAGES}/{name}/")) else {
                continue;
            };
            for (index, line) in source.lines.iter().enumerate() {
                let included = included(path, line).filter(|_| !source.is_test(index + 1));
                if let Some(included) = included.filter(|path| !files.contains(path)) {
                    let place = format!("{}:{}", source.path, index + 1);
                    complaints.push(format!("{place}: {included} is not in the package"));
                }
            }
        }
    }
    Ok((count, complaints))
}

/// The package whose manifest has this path in the repository.
fn package_of(path: &str) -> Option<&str> {
    let name = path.strip_prefix(PACKAGES)?.strip_prefix('/')?.strip_suffix("/Cargo.toml")?;
    (!name.contains('/')).then_some(name)
}

/// The files that a package would have.
fn files_of(repository: &Path, name: &str) -> Result<BTreeSet<String>, String> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(repository).args(["package", "--list", "--allow-dirty", "--package", name]);
    let listed = run_command(&mut cargo)?;
    Ok(String::from_utf8_lossy(&listed.stdout).lines().map(str::to_owned).collect())
}

/// What of the manifest and of the files is missing.
fn missing(name: &str, manifest: &str, files: &BTreeSet<String>) -> Vec<String> {
    let is_said = |key: &str| {
        let rest = |line: &str| line.strip_prefix(key).map(str::to_owned);
        manifest.lines().filter_map(rest).any(|rest| rest.starts_with([' ', '.', '=']))
    };
    let keys = KEYS.iter().filter(|key| !is_said(key)).map(|key| format!("no {key}"));
    let files = FILES.iter().filter(|file| !files.contains(**file));
    let files = files.map(|file| format!("{file} is not in the package"));
    keys.chain(files).map(|what| format!("{PACKAGES}/{name}/Cargo.toml: {what}")).collect()
}

/// The file that a line of code in the file at `path` includes, in the package; with `..` in front where it is
/// outside.
fn included(path: &str, line: &str) -> Option<String> {
    let calls = ["include_str!(\"", "include_bytes!(\""];
    let (_, rest) = calls.iter().find_map(|call| line.split_once(call))?;
    let (included, _) = rest.split_once('"')?;
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in included.split('/') {
        match part {
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let manifest = "[package]\nname = \"x\"\ndescription = \"y\"\nlicense.workspace = true\n\
                        readme-not = 1\nkeywords = []\ncategories = []\n";
        let files = ["LICENSE-MIT", "README.md"].map(str::to_owned).into();
        let expected = [
            "crates/x/Cargo.toml: no readme",
            "crates/x/Cargo.toml: LICENSE-APACHE is not in the package",
        ];
        assert_eq!(missing("x", manifest, &files), expected);
        assert_eq!(package_of("crates/x/Cargo.toml"), Some("x"));
        assert_eq!(package_of("crates/x/tests/crate/Cargo.toml"), None);
    }

    #[test]
    fn an_included_file_is_found_from_the_file_that_includes_it() {
        let line = "const A: &str = include_str!(\"../../data/a.toml\");";
        assert_eq!(included("src/part/mod.rs", line).as_deref(), Some("data/a.toml"));
        assert_eq!(included("src/lib.rs", line).as_deref(), Some("../data/a.toml"));
        assert_eq!(included("src/lib.rs", "include_str!(name)"), None);
    }

    #[test]
    fn every_package_is_whole_without_the_repository() {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("has one");
        let (count, complaints) = check(repository).expect("can be read");
        assert!(count > 5 && complaints.is_empty(), "{complaints:#?}");
    }
}
