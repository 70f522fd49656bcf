//! The `lithify` command.
//!
//! Owns: the command line, its help, and the exit codes. Every command is a file in `commands`;
//! what it does is done by the libraries. An error is one line on standard error that begins with
//! `error: `.

mod commands;
mod fault;

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser};

use fault::Fault;

// What people run has no bugs on purpose, whatever else was built in the same call.
const _: () = assert!(!lithify::planted::IS_BUILT_IN);

/// Exit codes, for the help.
const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    something failed: the error says what and where
  2    the command line, an experiment file or a path is wrong; nothing was done
  130  stopped by Ctrl-C or SIGTERM; what was measured is kept, the same command goes on";

/// An embedded LSM key-value store whose compression is set per level, and its laboratory.
#[derive(Debug, Parser)]
#[command(name = "lithify", version, after_help = EXIT_CODES, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    lithify_lab_engines::register();
    #[cfg(feature = "embedded-engines")]
    lithify_lab_embedded::register();
    lithify_lab::engines::elsewhere::register();
    let parsed = flowing(Arguments::command()).try_get_matches();
    let arguments = match parsed.and_then(|mut found| Arguments::from_arg_matches_mut(&mut found)) {
        Ok(arguments) => arguments,
        Err(error) => return refuse(&error),
    };
    match commands::run(arguments.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => fault.report(),
    }
}

/// The same command with long texts whose paragraphs are one line each. In the source they are cut to its width,
/// and would be cut once more to that of the terminal.
fn flowing(command: clap::Command) -> clap::Command {
    let about = command.get_long_about().map(|about| joined(&about.to_string()));
    let command = match about {
        Some(about) => command.long_about(about),
        None => command,
    };
    command.mut_subcommands(flowing)
}

/// Joins the lines of each paragraph. Indented lines and those of lists stay lines.
fn joined(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for line in text.lines() {
        let begins_anew = line.is_empty() || line.starts_with([' ', '-']);
        match joined.chars().next_back() {
            None => {}
            Some('\n') => joined.push_str(if line.is_empty() { "\n" } else { "" }),
            Some(_) if line.is_empty() => joined.push_str("\n\n"),
            Some(_) if begins_anew => joined.push('\n'),
            Some(_) => joined.push(' '),
        }
        joined.push_str(line);
    }
    joined
}

/// Help and version go where they belong; anything else is one line.
fn refuse(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            fault::print(&error.render().to_string()).map_or_else(|f| f.report(), |()| 0.into())
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            fault::say(error.to_string().trim_end());
            ExitCode::from(fault::USAGE)
        }
        _ => {
            let text = error.render().to_string();
            let paragraph = text.split("\n\n").next().unwrap_or_default();
            let words: Vec<&str> = paragraph.split_whitespace().collect();
            let mut line = words.join(" ").trim_start_matches("error: ").to_owned();
            if let Some(similar) = similar(error) {
                line.push_str(&format!("; similar: {similar}"));
            }
            Fault::usage(line).report()
        }
    }
}

/// Commands of other tools (`ldb`, `redis-cli`, SQL), by what they are here.
const OF_OTHER_TOOLS: [(&str, &[&str]); 7] = [
    ("compact", &["optimize", "vacuum"]),
    ("count", &["approxsize", "cnt", "dbsize", "len", "size"]),
    ("levels", &["families", "list_column_families", "tables"]),
    ("put", &["insert", "upsert", "write"]),
    ("scan", &["cat", "find", "iter", "keys", "list", "ls", "query", "range", "select", "show"]),
    ("stats", &["info", "status"]),
    ("verify", &["check", "checkconsistency", "fsck"]),
];

/// What was likely meant, of commands and flags.
fn similar(error: &clap::Error) -> Option<String> {
    // Not of the commands below one, such as `bench`.
    if let Some(ContextValue::String(asked)) = error.get(ContextKind::InvalidSubcommand)
        && std::env::args().nth(1).as_ref() == Some(asked)
        && let Some((ours, _)) =
            OF_OTHER_TOOLS.iter().find(|(_, theirs)| theirs.contains(&asked.as_str()))
    {
        return Some((*ours).to_owned());
    }
    let kinds = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg];
    let found = kinds.into_iter().find_map(|kind| error.get(kind))?;
    match found {
        ContextValue::String(name) => Some(name.clone()),
        ContextValue::Strings(names) if !names.is_empty() => Some(names.join(", ")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_become_lines_and_lists_stay() {
        let text =
            "Rows in the\norder of keys.\n\nEach is\na line:\n- a key\n  of bytes\nand more.";
        let lines = "Rows in the order of keys.\n\nEach is a line:\n- a key\n  of bytes and more.";
        assert_eq!(joined(text), lines);
        assert_eq!(joined(""), "");
    }

    #[test]
    fn no_help_is_cut_twice() {
        fn check(command: &clap::Command) {
            let about = command.get_long_about().map(ToString::to_string).unwrap_or_default();
            let lines: Vec<&str> = about.lines().collect();
            for pair in lines.windows(2) {
                let is_cut = !pair[0].is_empty() && pair[1].starts_with(char::is_alphanumeric);
                assert!(!is_cut, "{}: {pair:?}", command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        let command = flowing(Arguments::command());
        assert!(command.get_subcommands().any(|command| command.get_long_about().is_some()));
        check(&command);
    }
}
