//! `lithify bench cell`: the process that measures one cell. The job comes on standard input,
//! progress goes to standard output as lines of JSON, the result to the file that the job names.

use std::io::{self, Read, Write};

use lithify_lab::run::cell::{CellJob, ProgressLine};
use lithify_lab::run::measure;
use serde::de::DeserializeOwned;

use crate::fault::Fault;

/// Does the job.
pub fn run() -> Result<(), Fault> {
    let job: CellJob = read_job()?;
    measure::run_job(&job, &announce).map_err(Fault::failure)
}

/// Reads a job from standard input.
pub fn read_job<J: DeserializeOwned>() -> Result<J, Fault> {
    let mut text = String::new();
    io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| Fault::failure(format!("standard input: {error}")))?;
    serde_json::from_str(&text)
        .map_err(|error| Fault::usage(format!("standard input is no job: {error}")))
}

/// A parent that does not listen is no error: the result counts.
pub fn announce(line: &ProgressLine) {
    if let Ok(text) = serde_json::to_string(line) {
        let mut output = io::stdout().lock();
        let _ = writeln!(output, "{text}").and_then(|()| output.flush());
    }
}
