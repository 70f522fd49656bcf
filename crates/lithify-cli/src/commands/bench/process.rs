//! What the commands share that measure in processes of their own: this program as such a process,
//! signals, where the report went; and, seen from inside, the job on standard input.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lithify_lab::records::kinds;
use lithify_lab::run::process::Program;
use lithify_lab::run::progress::ProgressLine;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::fault::{Fault, print, say};

/// This program with the arguments that make it the measuring process of runs of `kind`.
pub fn this_program(kind: &'static str) -> Result<Program, Fault> {
    let path = std::env::current_exe()
        .map_err(|error| Fault::failure(format!("this program cannot be found: {error}")))?;
    let arguments = ["bench", "cell"].map(Into::into).into();
    Ok(Program { path, kind, arguments, environment: vec![] })
}

/// A flag that Ctrl-C and SIGTERM set; the second one ends this process at once.
pub fn watch_signals() -> Result<Arc<AtomicBool>, Fault> {
    let interrupt = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, 130, Arc::clone(&interrupt))
            .and_then(|_| flag::register(signal, Arc::clone(&interrupt)))
            .map_err(|error| Fault::failure(format!("signals cannot be watched: {error}")))?;
    }
    Ok(interrupt)
}

/// What is about to be measured.
pub fn announcement(
    experiment: &str,
    place: &str,
    scale: &str,
    cells: usize,
    results: &Path,
) -> String {
    let results = results.display();
    format!("{experiment} from {place}, scale {scale}, {cells} cells, results in {results}")
}

/// Prints a report, and where it is.
pub fn print_report(text: &str, files: &[PathBuf]) -> Result<(), Fault> {
    print(text)?;
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    say(&format!("report: {}", names.join(", ")));
    Ok(())
}

/// The measuring process: reads its job from standard input and does it. Progress goes to standard
/// output as lines of JSON, the result to the file that the job names.
pub fn do_job() -> Result<(), Fault> {
    let mut text = String::new();
    io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| Fault::failure(format!("standard input: {error}")))?;
    kinds::measure(&text, &announce)
        .map_err(|error| Fault::usage(format!("standard input is no job: {error}")))?
        .map_err(Fault::failure)
}

/// A parent that does not listen is no error: the result counts.
fn announce(line: &ProgressLine) {
    if let Ok(text) = serde_json::to_string(line) {
        let mut output = io::stdout().lock();
        let _ = writeln!(output, "{text}").and_then(|()| output.flush());
    }
}
