//! Checks of the repository's own rules, costs and reports, and the picture in its README.
//!
//! `cargo xtask tidy` (or `cargo run -p xtask -- tidy`) reads the repository and names every place
//! that breaks a rule which a program can check: floors, forbidden calls, sizes, names, headers,
//! prose, links.
//! `cargo run -p xtask -- counts` compares what stages cost in instructions with what is recorded.
//! `cargo run -p xtask -- api` compares the public items of the library with the recorded ones.
//! `cargo run -p xtask -- packages` checks that what is published is whole without the repository.
//! `cargo run -p xtask -- render LITHIFY RECORDS OUT` lets a program make all reports of all records;
//! `cargo run -p xtask -- same-figures BEFORE AFTER` finds the figures that two such directories do not
//! have in common.
//! Exit codes: 0 all is well, 1 complaints or the repository cannot be read, 2 wrong arguments.

mod api;
mod command;
mod counts;
mod figures;
mod packages;
mod picture;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "usage: xtask tidy [DIRECTORY] | counts [--accept STAGE|all REASON] | api [--accept] | packages | \
                     picture CSV SVG | render LITHIFY RECORDS OUT | \
                     same-figures BEFORE AFTER [--counts] [--all]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["tidy"] => tidy(&repository()),
        ["tidy", directory] => tidy(Path::new(directory)),
        ["counts"] => counts::run(&repository(), None),
        ["counts", "--accept", stage, reason] if !reason.trim().is_empty() => {
            counts::run(&repository(), Some(&counts::Accept { stage, reason }))
        }
        ["api"] => api::run(&repository(), false),
        ["api", "--accept"] => api::run(&repository(), true),
        ["packages"] => packages::run(&repository()),
        ["picture", csv, svg] => picture(Path::new(csv), Path::new(svg)),
        ["render", lithify, records, out] => {
            figures::render(Path::new(lithify), Path::new(records), Path::new(out))
        }
        ["same-figures", before, after, flags @ ..]
            if flags.iter().all(|flag| ["--counts", "--all"].contains(flag)) =>
        {
            let has = |flag: &str| flags.contains(&flag);
            let wishes = figures::Wishes { counts: has("--counts"), all: has("--all") };
            figures::same_figures(&repository(), Path::new(before), Path::new(after), wishes)
        }
        ["-h" | "--help"] => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("error: {USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Draws the README's picture from an experiment's CSV.
fn picture(csv: &Path, svg: &Path) -> ExitCode {
    let drawn = std::fs::read_to_string(csv)
        .map_err(|error| error.to_string())
        .and_then(|text| picture::draw(&text))
        .and_then(|text| std::fs::write(svg, text).map_err(|error| error.to_string()));
    match drawn {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {} to {}: {error}", csv.display(), svg.display());
            ExitCode::FAILURE
        }
    }
}

/// The repository that this program was built from.
fn repository() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

fn tidy(directory: &Path) -> ExitCode {
    let tree = match tidy::Tree::read(directory) {
        Ok(tree) => tree,
        Err(error) => {
            eprintln!("error: {}: {error}", directory.display());
            return ExitCode::FAILURE;
        }
    };
    let complaints = tidy::check(&tree);
    for complaint in &complaints {
        println!("{complaint}");
    }
    if complaints.is_empty() {
        println!("tidy: {} files, nothing to complain about", tree.files.len());
        return ExitCode::SUCCESS;
    }
    eprintln!("error: {} places break a rule of the repository", complaints.len());
    ExitCode::FAILURE
}
