//! Everything in one mode: commits, kills, power cuts. In a process of its own, which starts those that
//! are killed.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::kills::KillJob;
use super::plan::{ModeCell, ModeResult};
use super::{KIND, commits, cuts, kills};
use crate::meter::machine::Machine;
use crate::meter::unix_seconds;
use crate::run::RunError;
use crate::run::cells::Job;
use crate::run::process::{Program, end_with_parent};
use crate::run::progress::{Listener, ProgressLine};
use crate::run::store::write_json;

/// What a measuring process is told.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum DurabilityJob {
    /// To measure a mode.
    Mode(Box<Job<ModeCell>>),
    /// To commit until it is killed.
    Kill(KillJob),
}

/// Does a job.
///
/// # Errors
/// The engine's, the result cannot be written, or nobody killed a process that was to be.
pub fn run_job(job: &DurabilityJob, listener: Listener<'_>) -> Result<(), RunError> {
    match job {
        DurabilityJob::Kill(job) => kills::run_job(job, listener),
        DurabilityJob::Mode(job) => {
            end_with_parent(job.parent)?;
            write_json(&job.result_path, &measure(&job.cell, &job.data_directory, listener)?)
        }
    }
}

/// This program as it was started: the process that is killed is of the same kind.
fn this_program() -> Result<Program, RunError> {
    let path = std::env::current_exe()
        .map_err(|error| RunError::new(format!("this program cannot be found: {error}")))?;
    let arguments = std::env::args_os().skip(1).collect();
    Ok(Program { path, kind: KIND, arguments, environment: Vec::new() })
}

fn measure(
    cell: &ModeCell,
    directory: &Path,
    listener: Listener<'_>,
) -> Result<ModeResult, RunError> {
    let ModeCell { spec, mode } = cell;
    let started_unix_s = unix_seconds();
    let mut figures = Vec::new();
    for writers in &spec.writers {
        let stage = format!("commits of {writers}");
        listener(&ProgressLine::of_stage(&stage));
        let place = Place::make(directory.join(format!("commits-{writers}")))?;
        let tick = |seconds: u64| {
            let done = [seconds, spec.seconds as u64];
            listener(&ProgressLine::of_progress(&stage, done, "seconds", 0));
        };
        figures.push(commits::measure(spec, *mode, *writers, &place.0, &tick)?);
    }
    let place = Place::make(directory.join("kills"))?;
    let killed = kills::measure(spec, *mode, &this_program()?, &place.0, listener)?;
    drop(place);
    let cut = cuts::measure(spec, *mode, listener)?;
    Ok(ModeResult {
        spec: spec.clone(),
        started_unix_s,
        machine: Some(Machine::describe(directory)),
        commits: figures,
        losses: vec![killed, cut],
    })
}

/// The directory of a part, removed with what is in it.
struct Place(PathBuf);

impl Place {
    fn make(path: PathBuf) -> Result<Place, RunError> {
        fs::create_dir_all(&path).map_err(|error| RunError::io(&path, error))?;
        Ok(Place(path))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What cannot be removed now goes with the directory of the cell.
        let _ = fs::remove_dir_all(&self.0);
    }
}
