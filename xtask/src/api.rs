//! The gate of the public interface: what users of the library may have written against.
//!
//! `cargo run -p xtask -- api` has rustdoc list every public item of `lithify`, and compares the list with the
//! recorded one. Any difference fails and is printed: an item that is gone or has another type may break who uses
//! it. `api --accept` records the list; the change of the file is then read with the change of the code.
//! Whether a type may be sent and shared is in the list too.
//!
//! The list depends on the compiler, so the file names the one it was made with, and lists of another one are not
//! compared: a line says so.
//!
//! Not for `lithify-c` and `lithify-leveldb`: their headers are in the repository, and programs are built with them.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, ExitCode};

use public_api::tokens::Token;
use public_api::{Builder, PublicItem};

use crate::command::run as run_command;

/// Where the recorded list is.
const FILE: &str = "crates/lithify/api.txt";

/// How its first line begins; the compiler follows.
const HEAD: &str = "# Public items of lithify, by ";

/// Compares, or records; prints what it found.
pub fn run(repository: &Path, accept: bool) -> ExitCode {
    match api(repository, accept) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: api: {error}");
            ExitCode::FAILURE
        }
    }
}

fn api(repository: &Path, accept: bool) -> Result<bool, String> {
    let path = repository.join(FILE);
    let compiler = run_command(Command::new("rustc").arg("--version"))?;
    let compiler = String::from_utf8_lossy(&compiler.stdout);
    let head = format!("{HEAD}{}", compiler.trim());
    if accept {
        let text = format!("{head}\n{}\n", list(repository)?.join("\n"));
        return match std::fs::write(&path, text) {
            Ok(()) => Ok(true),
            Err(error) => Err(format!("{error}: {}", path.display())),
        };
    }
    let recorded = std::fs::read_to_string(&path);
    let recorded = recorded.map_err(|error| format!("{error}: {}", path.display()))?;
    let mut lines = recorded.lines();
    match lines.next() {
        Some(first) if first == head => {}
        Some(first) if first.starts_with(HEAD) => {
            println!("api: skipped: the recorded list is of another compiler");
            println!("  recorded  {}", &first[HEAD.len()..]);
            println!("  here      {}", compiler.trim());
            return Ok(true);
        }
        _ => return Err(format!("no list of public items: {}", path.display())),
    }
    let recorded: Vec<String> = lines.map(str::to_owned).collect();
    let found = list(repository)?;
    let differences = differences(&recorded, &found);
    if differences.is_empty() {
        println!("api: {} public items, as recorded", found.len());
        return Ok(true);
    }
    differences.iter().for_each(|line| println!("{line}"));
    eprintln!("error: the public interface has changed: a line with - may break who uses it");
    eprintln!("  to record it: cargo run -p xtask -- api --accept");
    Ok(false)
}

/// Every public item on a line of its own, in the order of names.
fn list(repository: &Path) -> Result<Vec<String>, String> {
    // Only an unstable flag has rustdoc write what programs can read.
    let mut rustdoc = Command::new(env!("CARGO"));
    rustdoc
        .args(["rustdoc", "--locked", "--quiet", "--package", "lithify", "--lib", "--"])
        .args(["-Z", "unstable-options", "--output-format", "json"])
        .env("RUSTC_BOOTSTRAP", "1")
        .current_dir(repository);
    run_command(&mut rustdoc)?;
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let json = repository.join(target).join("doc/lithify.json");
    let api = Builder::from_rustdoc_json(&json).omit_blanket_impls(true).build();
    let api = api.map_err(|error| format!("{error}: {}", json.display()))?;
    Ok(api.items().filter(|item| !is_noise(item)).map(ToString::to_string).collect())
}

/// Traits that compilers give types without their authors, but for those that decide about threads.
fn is_noise(item: &PublicItem) -> bool {
    const NOISE: [&str; 6] =
        ["Freeze", "RefUnwindSafe", "StructuralPartialEq", "Unpin", "UnsafeUnpin", "UnwindSafe"];
    item.tokens().any(|token| matches!(token, Token::Type(name) if NOISE.contains(&name.as_str())))
}

/// What is in one list only: `-` for what is gone, `+` for what is new.
fn differences(recorded: &[String], found: &[String]) -> Vec<String> {
    let (before, now): (BTreeSet<&String>, BTreeSet<&String>) =
        (recorded.iter().collect(), found.iter().collect());
    let gone = before.difference(&now).map(|line| format!("- {line}"));
    let new = now.difference(&before).map(|line| format!("+ {line}"));
    gone.chain(new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_and_what_is_new_is_told() {
        let list = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        let recorded =
            list(&["pub fn lithify::Db::close(self)", "pub fn lithify::Db::flush(&self)"]);
        let found = list(&["pub fn lithify::Db::close(&self)", "pub fn lithify::Db::flush(&self)"]);
        assert_eq!(
            differences(&recorded, &found),
            ["- pub fn lithify::Db::close(self)", "+ pub fn lithify::Db::close(&self)"]
        );
        assert!(differences(&found, &found).is_empty());
    }
}
