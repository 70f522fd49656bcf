//! The fault sweep in its short form, and that it sees what is wrong.

use super::*;
use crate::check::{Check, Tally};
use lithify::fs::FileCallKind;

#[test]
fn every_kind_of_call_may_fail_in_every_way() {
    let mut tally = Tally::default();
    let Goal::Cases(count) = Faults.goal(Length::Short) else { panic!("cases are numbered") };
    for case in 0..count {
        if let Err(finding) = Faults.run_case(case, &mut tally) {
            panic!("{finding}");
        }
    }
    println!("{}", Faults.table(&tally));
    assert!(tally.get(figures::FAULTS) > 500, "{} faults", tally.get(figures::FAULTS));
}

#[test]
fn an_error_that_says_something_else_than_what_failed_is_found() {
    let script = scripts::with_reads().swap_remove(0);
    let calls = sweep::calls(&script, Durability::Sync).unwrap();
    let at = calls.iter().position(|call| call.kind == FileCallKind::Exists).unwrap() as u64;
    let options = script.options(Durability::Sync);
    let run = |claimed: Failure| {
        let mut run = sweep::Run::new(&script, &options, &calls, (at, Failure::IoOnce));
        run.claim(claimed);
        run.run(&script)
    };
    assert_eq!(run(Failure::IoOnce), Ok(figures::Outcome::NotOpened));
    let found = run(Failure::FullOnce).unwrap_err();
    assert!(found.contains("another error"), "{found}");
}
