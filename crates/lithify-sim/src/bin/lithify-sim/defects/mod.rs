//! Tests the tests: defects are put into the engine on purpose, one at a time, and the checks have
//! to catch every one of them.
//!
//! 1. Each defect is tried in a process of its own, see `trial`: a panic, a hang, or memory
//!    without end then harms nobody else. See `watch` for how a hang is told.
//! 2. The case that caught a defect last time is tried first, see `record`; then all checks are.
//!    A process without any defect runs the same cases, and must find nothing.
//! 3. A defect that no check catches is a missing check. Those that only models of threads can
//!    notice are not tried here, see `lithify::planted`.
//!
//! Only in a build with the feature `planted-defects`.

mod record;
mod report;
mod trial;
mod watch;

use lithify::planted::{Defect, Harness};
use lithify_sim::check::Check;
use report::Outcome;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;
use trial::Verdict;

/// What `lithify-sim defects` is told.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Only the defects whose name contains this
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Try only these checks
    #[arg(long = "check", value_name = "NAMES", value_delimiter = ',')]
    checks: Vec<String>,
    /// Rounds over all checks at most: every round is one case of each, or many of small ones
    #[arg(long, value_name = "N", default_value_t = 12)]
    budget_rounds: u64,
    /// Begin with the first round, not with the case that caught the defect last time
    #[arg(long)]
    afresh: bool,
    /// Try so many defects at once [default: one for each processor]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Also write the outcome as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Try one defect in this process ("none" for none), for the process that watches it
    #[arg(long, hide = true)]
    trial: Option<String>,
}

/// What a defect in the order of steps leaves to other threads, each time.
const PAUSE: Duration = Duration::from_micros(200);

/// Where text goes.
type Print<'p> = dyn Fn(&str) + Sync + 'p;

/// Tries all defects and prints which check caught which; whether all were caught.
///
/// # Errors
/// A wrong argument, or a file that cannot be written.
pub fn run(
    arguments: &Arguments,
    checks: &[&dyn Check],
    print: &Print<'_>,
) -> Result<bool, String> {
    let is_wanted = |check: &&&dyn Check| {
        arguments.checks.is_empty() || arguments.checks.iter().any(|name| name == check.name())
    };
    let checks: Vec<&dyn Check> = checks.iter().filter(is_wanted).copied().collect();
    if checks.is_empty() {
        return Err(format!("there is no check of {:?}", arguments.checks));
    }
    if let Some(name) = &arguments.trial {
        return run_trial(name, arguments, &checks, print);
    }
    let chosen = chosen(arguments, print)?;
    if chosen.is_empty() {
        return Ok(true);
    }
    print(&format!("{}\n", report::HEAD));
    let mut outcomes = try_all(&chosen, arguments, print);
    let deepest =
        outcomes.iter().filter_map(|outcome| rounds_of(outcome, arguments, &checks)).max();
    if let Some(rounds) = deepest {
        let control = try_one(None, rounds, arguments);
        print(&format!("{control}\n"));
        outcomes.push(control);
    }
    let is_of_models =
        |defect: &&Defect| !matches!(defect.harness(), Harness::Simulator | Harness::RealFiles);
    let of_models = Defect::ALL.iter().filter(is_of_models).count();
    print(&format!("\n{}\n", report::summary(&outcomes)));
    print(&format!("{of_models} more are for models of threads: docs/planted-defects.md\n"));
    if let Some(path) = &arguments.json {
        let text = report::json(&outcomes);
        std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(outcomes.iter().all(Outcome::is_as_it_should_be))
}

/// The defects to try. None are left where those of that name cannot be tried here.
fn chosen(arguments: &Arguments, print: &Print<'_>) -> Result<Vec<Defect>, String> {
    let only = arguments.only.as_deref().unwrap_or_default();
    let is_chosen = |defect: &Defect| defect.name().contains(only);
    let mut chosen: Vec<Defect> = Defect::of(Harness::Simulator).filter(is_chosen).collect();
    let of_real_files: Vec<Defect> = Defect::of(Harness::RealFiles).filter(is_chosen).collect();
    if chosen.is_empty() && of_real_files.is_empty() {
        return Err(format!("no defect of the simulator has a name with {only:?} in it"));
    }
    match why_no_real_files() {
        None => chosen.extend(of_real_files),
        Some(why) if !of_real_files.is_empty() => {
            print(&format!("skipped: {} defects of real files: {why}\n", of_real_files.len()));
        }
        Some(_) => {}
    }
    Ok(chosen)
}

/// The rounds that a trial has taken; none where the first case caught it, which is the one on
/// record, and which the process without a defect runs in any case.
fn rounds_of(outcome: &Outcome, arguments: &Arguments, checks: &[&dyn Check]) -> Option<u64> {
    let defect = outcome.defect?;
    match &outcome.verdict {
        Verdict::Caught { check, cases, all_cases, .. } => {
            let is_first = *all_cases == 1 && !arguments.afresh;
            let is_recorded = is_first && record::of(defect, checks).is_some();
            (!is_recorded).then(|| trial::rounds_until(check, *cases))
        }
        Verdict::Missed { .. } => Some(arguments.budget_rounds),
        Verdict::Failed { .. } => None,
    }
}

/// Why defects of real files cannot be tried here.
#[cfg(target_os = "linux")]
fn why_no_real_files() -> Option<&'static str> {
    lithify_sim::powerloss::missing()
}

/// Why defects of real files cannot be tried here.
#[cfg(not(target_os = "linux"))]
fn why_no_real_files() -> Option<&'static str> {
    Some("this is not Linux")
}

fn run_trial(
    name: &str,
    arguments: &Arguments,
    checks: &[&dyn Check],
    print: &Print<'_>,
) -> Result<bool, String> {
    let defect = Defect::ALL.iter().copied().find(|defect| defect.name() == name);
    if defect.is_none() && name != trial::NO_DEFECT {
        return Err(format!("there is no defect {name}"));
    }
    lithify::planted::set_pause(|| std::thread::sleep(PAUSE));
    lithify::planted::select(defect);
    let recorded = match defect {
        _ if arguments.afresh => Vec::new(),
        Some(defect) => record::of_all(&[defect], checks),
        None => record::of_all(Defect::ALL, checks),
    };
    let rounds = arguments.budget_rounds;
    trial::run(checks, &recorded, rounds, &mut |line| print(&format!("{line}\n")));
    // Without waiting for threads that a defect may have left behind.
    std::process::exit(0)
}

fn try_one(defect: Option<Defect>, rounds: u64, arguments: &Arguments) -> Outcome {
    let name = defect.map_or(trial::NO_DEFECT, Defect::name);
    let rounds = rounds.to_string();
    let mut words = vec!["defects", "--trial", name, "--budget-rounds", &rounds];
    arguments.checks.iter().for_each(|check| words.extend(["--check", check]));
    words.extend(arguments.afresh.then_some("--afresh"));
    let verdict = watch::try_in_process(&words)
        .unwrap_or_else(|error| Verdict::Failed { what: error.to_string() });
    Outcome { defect, verdict }
}

/// Tries the cases on record without a defect, and the defects, side by side; prints each in its
/// turn.
fn try_all(chosen: &[Defect], arguments: &Arguments, print: &Print<'_>) -> Vec<Outcome> {
    let control = (!arguments.afresh).then_some((None, 0));
    let of_defects = chosen.iter().map(|defect| (Some(*defect), arguments.budget_rounds));
    let trials: Vec<(Option<Defect>, u64)> = control.into_iter().chain(of_defects).collect();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = arguments.jobs.unwrap_or(processors).clamp(1, trials.len());
    let todo: Mutex<VecDeque<usize>> = Mutex::new((0..trials.len()).collect());
    let done: Mutex<Vec<Option<Outcome>>> = Mutex::new(trials.iter().map(|_| None).collect());
    let printed = Mutex::new(0);
    let next = || todo.lock().ok()?.pop_front();
    let work = || {
        while let Some(index) = next() {
            let (defect, rounds) = trials[index];
            let outcome = try_one(defect, rounds, arguments);
            let (Ok(mut done), Ok(mut printed)) = (done.lock(), printed.lock()) else { return };
            done[index] = Some(outcome);
            while let Some(Some(outcome)) = done.get(*printed) {
                print(&format!("{outcome}\n"));
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
