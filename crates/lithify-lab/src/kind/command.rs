//! The command that measures what a record holds, as far as the record tells.
//!
//! Records keep what was measured, not what was typed: what is at its default, or chosen by what
//! happened to be on the machine, is left out or named.

use std::fmt::Display;

use crate::adapter::EngineName;

/// A command on its way.
pub struct Line(pub(crate) String);

impl Line {
    /// Of a command of `bench`.
    pub(crate) fn new(command: &str) -> Line {
        Line(format!("lithify bench {command}"))
    }

    /// Of an experiment at a scale.
    pub(crate) fn of_run(experiment: &str, scale: &str) -> Line {
        Line::new(&format!("run {experiment}")).with("--scale", scale)
    }

    /// With a value.
    pub(crate) fn with(mut self, flag: &str, value: impl Display) -> Line {
        self.0.push_str(&format!(" {flag} {value}"));
        self
    }

    /// With a value, unless it is what the command takes by itself.
    pub(crate) fn unless<T: Display + PartialEq>(
        self,
        default: Option<T>,
        flag: &str,
        value: T,
    ) -> Line {
        if default.as_ref() == Some(&value) { self } else { self.with(flag, value) }
    }

    /// With a flag.
    pub(crate) fn with_flag(mut self, flag: &str) -> Line {
        self.0.push_str(&format!(" {flag}"));
        self
    }

    /// With a list, unless it is all that there are.
    pub(crate) fn with_of<T: Display>(self, all: usize, flag: &str, values: &[T]) -> Line {
        if values.len() == all { self } else { self.with(flag, joined(values)) }
    }
}

/// Values with commas between them.
pub(crate) fn joined<T: Display>(values: &[T]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// The engine that a run was restricted to, which its name ends with then.
pub(crate) fn only_engine<'a>(name: &str, engines: &'a [EngineName]) -> Option<&'a EngineName> {
    match engines {
        [engine] if name.ends_with(&format!("-{engine}")) => Some(engine),
        _ => None,
    }
}
