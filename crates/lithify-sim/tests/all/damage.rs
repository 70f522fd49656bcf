//! Damage at rest and fuzzing, in the length that fits beside the other tests. With
//! `LITHIFY_CASES` so many cases of each check, with `LITHIFY_CASES=all` all that there are.

use lithify_sim::check::{Check, Goal, Length, Tally};
use lithify_sim::damage::{Files, Flips, report};
use lithify_sim::fuzz::Fuzz;
use lithify_sim::fuzz::allocation::peak_of;
use lithify_sim::runner::run_first;

fn run(check: &dyn Check) -> Tally {
    let asked = std::env::var("LITHIFY_CASES").ok();
    let length = if asked.as_deref() == Some("all") { Length::Long } else { Length::Short };
    let Goal::Cases(usual) = check.goal(length) else { panic!("these checks count cases") };
    let cases = asked.and_then(|count| count.parse().ok()).unwrap_or(usual);
    let report = run_first(check, cases.min(check.cases().unwrap_or(u64::MAX)), 20);
    let (tally, findings) = (report.tally, report.findings);
    for (name, figure) in tally.figures() {
        println!("{figure:>12} {name}");
    }
    let texts: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(texts.is_empty(), "{} findings:\n{}", texts.len(), texts.join("\n"));
    tally
}

#[test]
fn a_flipped_bit_is_told_of_or_cannot_matter() {
    println!("{}", report::flips(&run(&Flips)));
}

#[test]
fn a_changed_file_is_told_of_or_cannot_matter() {
    println!("{}", report::files(&run(&Files)));
}

#[test]
fn decoders_stand_changed_bytes() {
    let tally = run(&Fuzz);
    assert!(tally.get("executions") > 0);
}

#[test]
fn allocations_are_counted() {
    let (bytes, peak_bytes) = peak_of(|| vec![1_u8; 3 << 20].len());
    assert!(bytes <= peak_bytes && peak_bytes < 4 << 20, "{peak_bytes}");
}
