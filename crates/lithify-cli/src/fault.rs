//! What went wrong, as an exit code and one line.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use lithify::inspect::wrapped;
use lithify_report::printable;

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
        let text = engine_text(&error);
        match error.kind() {
            InvalidArgument | NotFound | AlreadyExists => Fault::usage(text),
            Cancelled => Fault::interrupted(text),
            _ => Fault::failure(text),
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
            let line = format!("error: {}", line.join(" "));
            match io::stderr().is_terminal() {
                true => say(&wrapped("", line.split(' '), INDENT, columns().min(COLUMNS_MAX))),
                false => say(&line),
            }
        }
        ExitCode::from(self.code)
    }
}

/// What is wrong, with the place at its end. That an argument is wrong needs no word of its own: the
/// rest says which, and why.
pub fn engine_text(error: &lithify::Error) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("invalid argument: ").unwrap_or(&text);
    let Some(path) = error.path() else { return text.to_owned() };
    let offset = error.offset().map_or_else(String::new, |offset| format!(" at offset {offset}"));
    let place = format!(", in {}{offset}", path.display());
    match text.split_once(&place) {
        Some((before, "")) => format!("{before}{place}"),
        Some((before, behind)) => format!("{before}{behind}{place}"),
        None => text.to_owned(),
    }
}

/// An error has at most so many columns of a terminal.
const COLUMNS_MAX: usize = 100;
/// Its further lines begin below its text.
const INDENT: usize = "error: ".len();

/// Columns of the terminal that shows errors.
fn columns() -> usize {
    let size = terminal_size::terminal_size_of(io::stderr());
    size.map_or(COLUMNS_MAX, |(columns, _)| usize::from(columns.0)).max(40)
}

/// Refuses an option's list that names something twice. `hint` continues the sentence.
pub fn refuse_repetition<T: Display>(option: &str, list: &[T], hint: &str) -> Result<(), Fault> {
    let names: Vec<String> = list.iter().map(ToString::to_string).collect();
    match names.iter().enumerate().find(|(index, name)| names[..*index].contains(name)) {
        Some((_, name)) => Err(Fault::usage(format!("{option} names {name} twice{hint}"))),
        None => Ok(()),
    }
}

/// Prints a line to standard error; what it quotes of data and names cannot move the cursor. Where nobody reads it, the exit code says enough.
pub fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{}", printable(line));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_stands_at_the_end_and_nothing_is_said_twice() {
        let error = lithify::Error::corruption("checksum").at("7.sst", 4096).expected(1, 2);
        assert_eq!(
            engine_text(&error),
            "corruption: checksum: expected 1, found 2, in 7.sst at offset 4096"
        );
        let error = lithify::Error::invalid("compression").expected("a codec", "zip");
        assert_eq!(engine_text(&error), "compression: expected a codec, found zip");
        let source = std::io::Error::other("no");
        let error = lithify::Error::io("cannot read", "db", source);
        assert_eq!(engine_text(&error), "input/output error: cannot read: no, in db");
    }

    #[test]
    fn a_name_that_stands_twice_is_refused() {
        assert!(refuse_repetition("--data", &["a", "b"], "").is_ok());
        let fault = refuse_repetition("--data", &["a", "b", "a"], "; once will do").unwrap_err();
        assert_eq!((fault.text(), fault.code), ("--data names a twice; once will do", USAGE));
    }
}
