//! The fault sweep in its short form, and that it sees what is wrong.

use super::*;
use crate::check::{Check, Tally};

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
fn a_failure_that_no_error_tells_of_is_found() {
    let script = scripts::with_reads().swap_remove(0);
    let durability = Durability::Sync;
    let calls = sweep::calls(&script, durability).unwrap();
    let write = calls.iter().rposition(|call| *call == lithify::fs::FileCallKind::Write).unwrap();
    let options = script.options(durability);
    let run = |claimed: Failure| {
        let mut run = sweep::Run::new(&options, &calls, write as u64, Failure::IoOnce);
        run.claim(claimed);
        run.run(&script)
    };
    run(Failure::IoOnce).unwrap();
    let found = run(Failure::FullOnce).unwrap_err();
    assert!(found.contains("another error"), "{found}");
}
