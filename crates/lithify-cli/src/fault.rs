//! What went wrong, as an exit code and one line.

use std::io::{self, Write};
use std::process::ExitCode;

/// Exit code of a wrong command line, experiment file, or path.
pub const USAGE: u8 = 2;
const FAILURE: u8 = 1;
const INTERRUPTED: u8 = 130;

/// Why a command ends without success.
#[derive(Debug)]
pub struct Fault {
    code: u8,
    text: String,
}

impl Fault {
    /// The command line or an experiment file is wrong.
    pub fn usage(text: impl ToString) -> Fault {
        Fault { code: USAGE, text: text.to_string() }
    }

    /// Something failed.
    pub fn failure(text: impl ToString) -> Fault {
        Fault { code: FAILURE, text: text.to_string() }
    }

    /// The engine refused or failed. What is not there, or is no file of the engine, or is there
    /// already, was named wrongly; everything else is a failure.
    pub fn of_engine(error: lithify::Error) -> Fault {
        use lithify::ErrorKind::{AlreadyExists, Cancelled, InvalidArgument, NotFound};
        match error.kind() {
            InvalidArgument | NotFound | AlreadyExists => Fault::usage(error),
            Cancelled => Fault::interrupted(error),
            _ => Fault::failure(error),
        }
    }

    /// The user stopped it.
    pub fn interrupted(text: impl ToString) -> Fault {
        Fault { code: INTERRUPTED, text: text.to_string() }
    }

    /// True when the user stopped it.
    pub fn is_interrupted(&self) -> bool {
        self.code == INTERRUPTED
    }

    /// What went wrong.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Prints the line, if there is something to say, and gives the exit code.
    pub fn report(self) -> ExitCode {
        if !self.text.is_empty() {
            let line: Vec<&str> = self.text.lines().collect();
            say(&format!("error: {}", line.join(" ")));
        }
        ExitCode::from(self.code)
    }
}

/// Prints a line to standard error. Where nobody reads it, the exit code says enough.
pub fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Prints to standard output. A reader that has seen enough is no error.
pub fn print(text: &str) -> Result<(), Fault> {
    let mut output = io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Fault::failure(format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}
