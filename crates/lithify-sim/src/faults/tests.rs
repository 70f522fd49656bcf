//! The fault sweep in its short form.

use super::*;
use crate::check::{Check, Tally};

#[test]
fn every_call_may_fail() {
    let mut tally = Tally::default();
    let Goal::Cases(count) = Faults.goal(Length::Short) else { return };
    let mut found = 0;
    for case in 0..count {
        let run = std::panic::AssertUnwindSafe(|| Faults.run_case(case, &mut tally));
        match std::panic::catch_unwind(run) {
            Ok(Ok(())) => {}
            Ok(Err(finding)) => { found += 1; println!("{case}: {}", finding.what) }
            Err(_) => { found += 1; println!("{case}: a panic") }
        }
    }
    println!("{}found {found}", figures::table(&tally));
}
