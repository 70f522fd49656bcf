//! The `lithify-sim` command.
//!
//! Owns: the command line, its help, the exit codes, and what is shown. The checks and their
//! runner are the library's. An error is one line on standard error that begins with `error: `.

#[cfg(feature = "planted-defects")]
mod defects;
mod display;
mod summary;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};
use display::{Display, print, say};
use lithify_sim::check::{Check, Goal, Length, Tally, note_panics, run_case};
use lithify_sim::checks;
use lithify_sim::fuzz::allocation::CountingAllocator;
#[cfg(target_os = "linux")]
use lithify_sim::powerloss;
use lithify_sim::runner::{Limit, Plan, Progress, run};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use summary::Summary;

/// Checks judge how much memory the engine asks for.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const FOUND: u8 = 1;
const USAGE: u8 = 2;
const INTERRUPTED: u8 = 130;

/// A case that runs so long hangs.
const HANG: Duration = Duration::from_secs(300);

/// A check that has found so much begins no case any more.
const FINDINGS_MAX: usize = 5;

const AFTER_HELP: &str = "\
Examples:
  lithify-sim list                              what there is to run
  lithify-sim run                               every check, in its short form
  lithify-sim run --check metamorphic --seconds 60
  lithify-sim run --long --json long.json       what is run before a release
  lithify-sim run --check metamorphic --cases 1000 --first-case 5000 --jobs 4
  lithify-sim replay metamorphic 4711           one case again, shrunk if it fails

Exit codes:
  0    nothing was found
  1    something was found: the summary says what, and how to see it again
  2    the command line is wrong; nothing was done
  130  stopped by Ctrl-C or SIGTERM, nothing was found; the summary says what was done and where to
       go on";

/// The machine that tries to make Lithify lose data: random operations, crashes, faults, damage.
///
/// A check is a way of trying it. It runs cases, and a case follows from its number alone: what is
/// found in one is found again in it, on every machine with the same version.
#[derive(Debug, Parser)]
#[command(name = "lithify-sim", version, after_help = AFTER_HELP, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the checks, with what their short and their long form come to
    List,
    /// Run checks, one after the other, and print a summary
    #[command(after_help = AFTER_HELP)]
    Run(RunArguments),
    /// Run one case again; if it finds something, shrink it and print the shortest script
    Replay {
        /// The check
        check: String,
        /// The number of the case
        case: u64,
    },
    /// Judge an image again that a finding of powerloss has kept
    #[cfg(target_os = "linux")]
    Journal {
        /// The directory that the finding names
        directory: PathBuf,
    },
    /// Be the process that works on a database until it is killed
    #[cfg(target_os = "linux")]
    #[command(name = powerloss::WORKER_COMMAND, hide = true)]
    PowerlossWorker(powerloss::WorkerArguments),
    /// Put defects into the engine, one at a time, and see which check catches each
    #[cfg(feature = "planted-defects")]
    Defects(defects::Arguments),
}

#[derive(Debug, Args)]
struct RunArguments {
    /// Run only these checks
    #[arg(long = "check", value_name = "NAMES", value_delimiter = ',')]
    checks: Vec<String>,
    /// So many cases of each check, instead of the short form
    #[arg(long, value_name = "N", conflicts_with_all = ["seconds", "long"])]
    cases: Option<u64>,
    /// So many seconds for each check, instead of the short form
    #[arg(long, value_name = "S", conflicts_with = "long")]
    seconds: Option<u64>,
    /// The long form of each check: what is run before a release
    #[arg(long)]
    long: bool,
    /// Begin with this case; a summary says where a run goes on
    #[arg(long, value_name = "N", default_value_t = 0)]
    first_case: u64,
    /// Run so many cases at once [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Also write the summary as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return refuse(&error),
    };
    #[cfg(target_os = "linux")]
    std::env::current_exe().iter().for_each(|program| powerloss::set_program(program.clone()));
    note_panics();
    let done = match arguments.command {
        Command::List => list(),
        Command::Run(arguments) => run_checks(&arguments),
        Command::Replay { check, case } => replay(&check, case),
        #[cfg(target_os = "linux")]
        Command::Journal { directory } => judge_again(&directory),
        #[cfg(target_os = "linux")]
        Command::PowerlossWorker(arguments) => powerloss::run_worker(&arguments).map(|()| 0),
        #[cfg(feature = "planted-defects")]
        Command::Defects(arguments) => {
            let all_caught = defects::run(&arguments, &checks(), &print);
            all_caught.map(|all_caught| if all_caught { 0 } else { FOUND })
        }
    };
    done.map_or_else(|error| fail(&error), ExitCode::from)
}

/// A wrong command line: one line.
fn fail(error: &str) -> ExitCode {
    say(&format!("error: {error}"));
    ExitCode::from(USAGE)
}

/// Help and version go where they belong; anything else is one line.
fn refuse(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            print(&error.render().to_string());
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            say(error.to_string().trim_end());
            ExitCode::from(USAGE)
        }
        _ => {
            let text = error.render().to_string();
            let paragraph = text.split("\n\n").next().unwrap_or_default();
            let words: Vec<&str> = paragraph.split_whitespace().collect();
            fail(words.join(" ").trim_start_matches("error: "))
        }
    }
}

fn list() -> Result<u8, String> {
    let goal = |goal| match goal {
        Goal::Cases(count) => format!("{} cases", summary::grouped(count)),
        Goal::Count(name, count) => format!("{} {name}", summary::grouped(count)),
    };
    for check in checks() {
        let (short, long) = (goal(check.goal(Length::Short)), goal(check.goal(Length::Long)));
        print(&format!("{:<14} {}\n", check.name(), check.about()));
        print(&format!("{:<14} short form: {short}; long form: {long}\n", ""));
    }
    Ok(0)
}

fn find(name: &str) -> Result<&'static dyn Check, String> {
    checks().into_iter().find(|check| check.name() == name).ok_or_else(|| {
        let names: Vec<&str> = checks().iter().map(|check| check.name()).collect();
        format!("there is no check \"{name}\"; there are: {}", names.join(", "))
    })
}

fn run_checks(arguments: &RunArguments) -> Result<u8, String> {
    let chosen = match arguments.checks.is_empty() {
        true => checks(),
        false => {
            arguments.checks.iter().map(|name| find(name)).collect::<Result<Vec<_>, String>>()?
        }
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = arguments.jobs.map_or(processors, usize::from);
    // A file that cannot be written is known before hours have gone by.
    if let Some(path) = &arguments.json {
        std::fs::write(path, "").map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let stop = watch_signals()?;
    let mut summary = Summary::new(jobs);
    for check in chosen {
        let limit = match (arguments.cases, arguments.seconds) {
            (Some(cases), _) => Limit::Goal(Goal::Cases(cases)),
            (_, Some(seconds)) => Limit::Seconds(seconds),
            _ if arguments.long => Limit::Goal(check.goal(Length::Long)),
            _ => Limit::Goal(check.goal(Length::Short)),
        };
        let plan =
            Plan { limit, first_case: arguments.first_case, jobs, findings_max: FINDINGS_MAX };
        let mut display = Display::new(check.name());
        let report = run(check, plan, &stop, &mut |progress| {
            end_if_hanging(check, &progress, &summary);
            display.show(&progress);
        });
        drop(display);
        summary.add(check, report);
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    print(&summary.to_string());
    if let Some(path) = &arguments.json {
        let text = format!("{:#}\n", summary.to_json());
        std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(match summary.has_findings() {
        true => FOUND,
        false if stop.load(Ordering::Relaxed) => INTERRUPTED,
        false => 0,
    })
}

/// A case that hangs can be neither ended nor waited for: what was done is printed, and the
/// process ends.
fn end_if_hanging(check: &dyn Check, progress: &Progress, summary: &Summary) {
    if let Some((case, elapsed)) = progress.oldest.filter(|(_, elapsed)| *elapsed > HANG) {
        print(&summary.to_string());
        say(&format!(
            "FOUND by {} in case {case}: it hangs, for {} s\n  again: lithify-sim replay {} {case}",
            check.name(),
            elapsed.as_secs(),
            check.name(),
        ));
        std::process::exit(FOUND.into());
    }
}

fn replay(name: &str, case: u64) -> Result<u8, String> {
    let check = find(name)?;
    if let Some(cases) = check.cases().filter(|cases| case >= *cases) {
        return Err(format!("{name} has the cases 0 to {}", cases.saturating_sub(1)));
    }
    let mut tally = Tally::default();
    let outcome = run_case(check, case, &mut tally);
    print(&summary::figures(name, &tally));
    match outcome {
        Ok(()) => {
            print(&format!("nothing was found in case {case} of {name}\n"));
            Ok(0)
        }
        Err(finding) => {
            print(&format!("{}\n", check.shrink(finding)));
            Ok(FOUND)
        }
    }
}

#[cfg(target_os = "linux")]
fn judge_again(directory: &std::path::Path) -> Result<u8, String> {
    Ok(match powerloss::replay(directory)? {
        None => {
            print("nothing is wrong with the image\n");
            0
        }
        Some(what) => {
            print(&format!("FOUND again: {what}\n"));
            FOUND
        }
    })
}

/// A flag that Ctrl-C and SIGTERM set; the second one ends the process at once.
fn watch_signals() -> Result<Arc<AtomicBool>, String> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(
            signal,
            INTERRUPTED.into(),
            Arc::clone(&stop),
        )
        .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
        .map_err(|error| format!("signals cannot be watched: {error}"))?;
    }
    Ok(stop)
}
