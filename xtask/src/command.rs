//! Programs that checks run.

use std::process::{Command, Output};

/// Runs a program to its end.
///
/// # Errors
/// It cannot be started, or fails: what it wrote on standard error.
pub fn run(command: &mut Command) -> Result<Output, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    match output.status.success() {
        true => Ok(output),
        false => Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}
