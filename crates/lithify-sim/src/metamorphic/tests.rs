use super::*;
use crate::check::run_case;

/// Fingerprints of the calls to the file system, in order, and of the files at the end.
fn history(number: u64) -> (u64, u64) {
    let case = Case::new(number);
    let record = CallRecord::default();
    let files = case.run(&case.script, Some(record.clone()), &mut Tally::default()).unwrap();
    (record.digest(), files)
}

#[test]
fn a_case_without_threads_happens_the_same_way_every_time() {
    let histories = || (0..24).filter(|case| case % THREADED_CASES != 15).map(history);
    let first: Vec<_> = histories().collect();
    let second: Vec<_> = histories().collect();
    assert_eq!(first, second);
    let distinct: std::collections::BTreeSet<_> = first.into_iter().collect();
    assert_eq!(distinct.len(), 23, "cases differ");
}

#[test]
fn every_answer_is_that_of_the_model() {
    let Goal::Count(counter, enough) = Metamorphic.goal(Length::Short) else { unreachable!() };
    let mut tally = Tally::default();
    let mut case = 0;
    while tally.get(counter) < enough {
        if let Err(finding) = run_case(&Metamorphic, case, &mut tally) {
            panic!("{}", Metamorphic.shrink(finding));
        }
        case += 1;
    }
    for (name, count) in tally.figures() {
        println!("{name:<32} {count:>12}");
    }
    // A run that never did these would not mean much.
    for name in [
        "refusals",
        "reopenings",
        "databases of 3 levels and more",
        "rows compared",
        "optimistic commits",
        "optimistic conflicts",
        "rows filtered",
        "families filtered as a whole",
        "filters that failed",
    ] {
        assert!(tally.get(name) > 20, "{name}: {}", tally.get(name));
    }
    assert_eq!(tally.get("single delete misuses"), 0, "the model keeps the contract");
}
