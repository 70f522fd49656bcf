//! The gate of instruction counts: what a stage of the engine costs, where times would not repeat.
//!
//! `cargo run -p xtask -- counts` builds the bench `stages`, runs each of its counted stages under
//! `valgrind --tool=callgrind`, and compares instructions per operation with the recorded ones. A
//! stage that takes more than 3 % more fails. `counts --accept STAGE "reason"` records a stage
//! anew, with the reason in the file; `--accept all "reason"` records everything.
//!
//! Counts depend on the compiler, the C library, and the CPU features by which codecs choose their
//! code. These are recorded too, and counts of another environment are not compared. Without
//! valgrind nothing is compared either; a line says so.

mod baseline;
mod tool;

use baseline::{Baseline, Verdict};
use std::path::Path;
use std::process::ExitCode;
use tool::Measured;

/// Where the recorded counts are.
const FILE: &str = "crates/lithify/benches/counts.baseline";

/// Begins the name of a stage that is the ledger's part of another one. Its share is printed, and
/// neither recorded nor compared: the whole is.
const PART: &str = "ledger-of:";

/// What is to be recorded anew.
pub struct Accept<'a> {
    /// A stage, or `all`.
    pub stage: &'a str,
    /// Why.
    pub reason: &'a str,
}

/// Compares, or records; prints what it found.
pub fn run(repository: &Path, accept: Option<&Accept<'_>>) -> ExitCode {
    match counts(repository, accept) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: counts: {error}");
            ExitCode::FAILURE
        }
    }
}

fn counts(repository: &Path, accept: Option<&Accept<'_>>) -> Result<bool, String> {
    let Some(mut environment) = tool::environment() else {
        println!("counts: skipped: valgrind is not installed here");
        return Ok(true);
    };
    let path = repository.join(FILE);
    let baseline = Baseline::read(&path)?;
    let records_all = accept.is_some_and(|accept| accept.stage == "all");
    let differs = |environment: &str| {
        println!("counts: skipped: the recorded ones are of another environment");
        println!("  recorded  {}", baseline.environment);
        println!("  here      {environment}");
        Ok(accept.is_none())
    };
    if !records_all && !baseline.environment.starts_with(&environment) {
        return differs(&environment);
    }
    let program = tool::build(repository)?;
    let mut stages = tool::stages(&program)?;
    if let Some(accept) = accept.filter(|_| !records_all) {
        stages.retain(|stage| stage == accept.stage);
    }
    let mut measured = Vec::new();
    for stage in &stages {
        let Measured { count, features } = tool::count(repository, &program, stage)?;
        if measured.is_empty() {
            environment = format!("{environment}; {features}");
            if !records_all && baseline.environment != environment {
                return differs(&environment);
            }
        }
        measured.push((stage.clone(), count));
    }
    let shares = take_shares(&mut measured);
    if let Some(accept) = accept {
        return record(&path, baseline, environment, &measured, accept);
    }
    let verdicts = baseline.judge(&measured);
    verdicts.iter().for_each(|(line, _)| println!("{line}"));
    shares.iter().for_each(|line| println!("{line}"));
    let failed = verdicts.iter().filter(|(_, verdict)| *verdict == Verdict::Fails).count();
    if failed > 0 {
        eprintln!(
            "error: counts: {failed} stages; make them cheaper, or record why not: \
             cargo run -p xtask -- counts --accept STAGE \"reason\""
        );
    }
    Ok(failed == 0)
}

/// Takes the stages out that are parts of others; a line to print for each.
fn take_shares(measured: &mut Vec<(String, f64)>) -> Vec<String> {
    let parts: Vec<_> = measured.extract_if(.., |(stage, _)| stage.starts_with(PART)).collect();
    let share = |(part, count): &(String, f64)| {
        let whole = part.strip_prefix(PART)?;
        let (_, of) = measured.iter().find(|(stage, _)| stage == whole)?;
        let percent = 100.0 * count / of;
        Some(format!("{whole:<22} {count:>12.1}  of it the ledger's: {percent:.2} %"))
    };
    parts.iter().filter_map(share).collect()
}

fn record(
    path: &Path,
    mut baseline: Baseline,
    environment: String,
    measured: &[(String, f64)],
    accept: &Accept<'_>,
) -> Result<bool, String> {
    if measured.is_empty() {
        return Err(format!("there is no stage {:?}", accept.stage));
    }
    baseline.environment = environment;
    if accept.stage == "all" {
        baseline.lines.clear();
    }
    measured.iter().for_each(|(stage, count)| baseline.set(stage, *count, accept.reason));
    std::fs::write(path, baseline.to_string())
        .map_err(|error| format!("{}: {error}", path.display()))?;
    println!("counts: recorded {} stages: {}", measured.len(), accept.reason);
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_stages_become_shares_and_are_not_compared() {
        let mut measured: Vec<_> = [("get", 400.0), ("ledger-of:get", 3.0), ("ledger-of:no", 1.0)]
            .map(|(stage, count)| (stage.to_owned(), count))
            .into();
        let shares = take_shares(&mut measured);
        assert_eq!(measured, [("get".to_owned(), 400.0)]);
        assert_eq!(shares.len(), 1);
        assert!(shares[0].starts_with("get ") && shares[0].ends_with("0.75 %"), "{}", shares[0]);
    }
}
