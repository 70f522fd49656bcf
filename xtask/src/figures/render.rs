//! Lets a program make every report of every record of a directory.
//!
//! Files of a record: NAME.txt (`bench show`), NAME.full.txt (`bench show --full`, where the program
//! knows that), NAME.csv (`bench show --format csv`), NAME.html (`bench report --out`). A record whose
//! kind has no such report has no such file; the refusal is printed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Ending of the report for people.
pub const TEXT: &str = ".txt";

/// Ending of the same in its longest form.
pub const FULL_TEXT: &str = ".full.txt";

/// Ending of the page.
pub const PAGE: &str = ".html";

/// Ending of the lines for programs.
pub const CSV: &str = ".csv";

/// Endings of records.
const RECORDS: [&str; 2] = [".json.zst", ".json"];

/// The names of the records that have reports in a directory.
pub fn records_of(directory: &Path) -> Result<BTreeSet<String>, String> {
    let endings = [FULL_TEXT, TEXT, PAGE, CSV];
    let name = |path: &PathBuf| stripped(path, &endings);
    Ok(files(directory)?.iter().filter_map(name).collect())
}

/// The name of a file without the first of the endings that it has.
fn stripped(path: &Path, endings: &[&str]) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    endings.iter().find_map(|ending| name.strip_suffix(ending)).map(str::to_owned)
}

fn files(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let entries =
        fs::read_dir(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

/// Makes the reports of all records of `records` with the program `lithify` in `out`.
pub fn render(lithify: &Path, records: &Path, out: &Path) -> ExitCode {
    match render_all(lithify, records, out) {
        Ok((reports, records)) => {
            println!("{reports} reports of {records} records in {}", out.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn render_all(lithify: &Path, records: &Path, out: &Path) -> Result<(usize, usize), String> {
    fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;
    if fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_some()) {
        // What an earlier program left there would pass for what this one makes.
        return Err(format!("{} is not empty", out.display()));
    }
    let has_full = run(lithify, &["show", "--help"])?.is_ok_and(|help| help.contains("--full"));
    let (mut reports, mut read) = (0, 0);
    for path in files(records)? {
        let Some(name) = stripped(&path, &RECORDS) else { continue };
        let record = path.to_string_lossy().into_owned();
        let page = out.join(format!("{name}{PAGE}")).to_string_lossy().into_owned();
        let mut wanted: Vec<(&str, Vec<&str>)> = vec![
            (TEXT, vec!["show", &record]),
            (CSV, vec!["show", &record, "--format", "csv"]),
            (PAGE, vec!["report", &record, "--out", &page]),
        ];
        if has_full {
            wanted.push((FULL_TEXT, vec!["show", &record, "--full"]));
        }
        read += 1;
        for (ending, arguments) in wanted {
            match run(lithify, &arguments)? {
                // The page is in its file already.
                Ok(_) if ending == PAGE => reports += 1,
                Ok(text) => {
                    let file = out.join(format!("{name}{ending}"));
                    fs::write(&file, text)
                        .map_err(|error| format!("{}: {error}", file.display()))?;
                    reports += 1;
                }
                Err(refusal) => eprintln!("{name}: no {ending}: {}", refusal.trim()),
            }
        }
    }
    if read == 0 {
        return Err(format!("{} holds no record", records.display()));
    }
    Ok((reports, read))
}

/// What `lithify bench` prints, or why it refuses.
fn run(lithify: &Path, arguments: &[&str]) -> Result<Result<String, String>, String> {
    let output = Command::new(lithify)
        .arg("bench")
        .args(arguments)
        .output()
        .map_err(|error| format!("{}: {error}", lithify.display()))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) })
}
