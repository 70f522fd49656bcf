//! Tests the tests: defects are put into the engine on purpose, one at a time, and the checks have
//! to catch every one of them.
//!
//! 1. Each defect is tried in a process of its own, see [`trial`]: a panic, a hang, or memory
//!    without end then harms nobody else. See [`watch`] for how a hang is told.
//! 2. First of all a process without any defect runs the whole budget, and must find nothing.
//! 3. A defect that no check catches is a missing check.
//!
//! Only in a build with the feature `planted-defects`.

mod report;
mod trial;
mod watch;

use crate::check::Check;
use lithify::planted::Defect;
use report::Outcome;
use std::collections::VecDeque;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use trial::Verdict;

/// What `lithify-sim defects` is told.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Only the defects whose name contains this.
    #[arg(long)]
    only: Option<String>,
    /// Rounds over all checks at most: every round is one case of each, or some of small ones.
    #[arg(long, default_value_t = 40)]
    budget_rounds: u64,
    /// Defects tried at once; by default one per processor.
    #[arg(long)]
    jobs: Option<usize>,
    /// Also writes the outcome here, as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Tries one defect in this process ("none" for none), for the process that watches it.
    #[arg(long, hide = true)]
    trial: Option<String>,
}

/// Tries all defects and prints which check caught which; success if all were caught.
pub fn run(arguments: &Arguments, checks: &[&dyn Check]) -> ExitCode {
    if let Some(name) = &arguments.trial {
        return run_trial(name, arguments.budget_rounds, checks);
    }
    let only = arguments.only.as_deref().unwrap_or_default();
    let chosen: Vec<Defect> =
        Defect::ALL.iter().copied().filter(|defect| defect.name().contains(only)).collect();
    if chosen.is_empty() {
        eprintln!("error: no defect has a name with {only:?} in it");
        return ExitCode::from(2);
    }
    println!("{}", report::HEAD);
    let none = try_one(None, arguments.budget_rounds);
    println!("{none}");
    let mut outcomes = vec![none];
    if outcomes[0].is_as_it_should_be() {
        outcomes.extend(try_all(&chosen, arguments));
    }
    println!("\n{}", report::summary(&outcomes));
    if let Some(path) = &arguments.json
        && let Err(error) = std::fs::write(path, report::json(&outcomes))
    {
        eprintln!("error: {}: {error}", path.display());
        return ExitCode::FAILURE;
    }
    match outcomes.iter().all(Outcome::is_as_it_should_be) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn run_trial(name: &str, budget_rounds: u64, checks: &[&dyn Check]) -> ExitCode {
    let defect = Defect::ALL.iter().copied().find(|defect| defect.name() == name);
    if defect.is_none() && name != trial::NO_DEFECT {
        eprintln!("error: there is no defect {name}");
        return ExitCode::from(2);
    }
    // What a panic says comes with the finding.
    std::panic::set_hook(Box::new(|_| {}));
    lithify::planted::select(defect);
    let mut report = |line: String| {
        let mut out = std::io::stdout().lock();
        // Who cannot write to the process that watches it is killed soon.
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    };
    trial::run(checks, budget_rounds, &mut report);
    // Without waiting for threads that a defect may have left behind.
    std::process::exit(0)
}

fn try_one(defect: Option<Defect>, budget_rounds: u64) -> Outcome {
    let name = defect.map_or(trial::NO_DEFECT, Defect::name);
    let verdict = watch::try_in_process(name, budget_rounds)
        .unwrap_or_else(|error| Verdict::Failed { what: error.to_string() });
    Outcome { defect, verdict }
}

/// Tries defects side by side; prints each in its turn.
fn try_all(chosen: &[Defect], arguments: &Arguments) -> Vec<Outcome> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = arguments.jobs.unwrap_or(processors).clamp(1, chosen.len());
    let todo: Mutex<VecDeque<usize>> = Mutex::new((0..chosen.len()).collect());
    let done: Mutex<Vec<Option<Outcome>>> = Mutex::new(chosen.iter().map(|_| None).collect());
    let printed = Mutex::new(0);
    let next = || todo.lock().ok()?.pop_front();
    let work = || {
        while let Some(index) = next() {
            let outcome = try_one(Some(chosen[index]), arguments.budget_rounds);
            let (Ok(mut done), Ok(mut printed)) = (done.lock(), printed.lock()) else { return };
            done[index] = Some(outcome);
            while let Some(Some(outcome)) = done.get(*printed) {
                println!("{outcome}");
                *printed += 1;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(work);
        }
    });
    done.into_inner().unwrap_or_default().into_iter().flatten().collect()
}
