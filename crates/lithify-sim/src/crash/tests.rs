//! The crash checks themselves: they are deterministic, they find what is wrong, and the scripts do
//! what they are there for. The short forms are run here too.

use super::actor::DIRECTORY;
use super::choice::{Choice, plain};
use super::figures::{self, DISTINCT_IMAGES};
use super::history::CrashKind;
use super::points::record;
use super::scripts::{self, MODES, Script};
use super::trial::Trial;
use super::*;
use crate::check::{Check, Tally};
use lithify::Durability;

fn script(name: &str) -> Script {
    let found = scripts::with_reads().into_iter().find(|script| script.name == name);
    found.expect("there is such a script")
}

#[test]
fn scripts_run_in_every_mode_and_the_same_way_each_time() {
    for script in scripts::with_reads() {
        for durability in MODES {
            let digests = [0, 1].map(|_| {
                let (history, points) = record(&script, durability).unwrap();
                let digests: Vec<u64> =
                    points.iter().map(|point| point.files.fingerprint()).collect();
                (digests, history.moment(), points.last().map(|point| point.moment))
            });
            assert_eq!(digests[0], digests[1], "{}", script.name);
            println!("{} {durability:?}: {} points", script.name, digests[0].0.len());
        }
    }
}

#[test]
fn crash_points_of_every_script() {
    let mut tally = Tally::default();
    let count = scripts::all().len() as u64 * 8;
    for case in 0..count {
        let started = std::time::Instant::now();
        let before = (tally.get(figures::CRASH_STATES), tally.get(DISTINCT_IMAGES));
        let found = CrashPoints.run_case(case, &mut tally);
        println!("{case} {:?} states {} images {}", started.elapsed(), tally.get(figures::CRASH_STATES) - before.0, tally.get(DISTINCT_IMAGES) - before.1);
        if let Err(finding) = found {
            println!("{}", finding.what);
        }
    }
    println!("{}", figures::table(&tally));
}

#[test]
fn chains_of_crashes() {
    let mut tally = Tally::default();
    let started = std::time::Instant::now();
    for case in 0..100 {
        let run = std::panic::AssertUnwindSafe(|| Crashes.run_case(case, &mut tally));
        match std::panic::catch_unwind(run) {
            Ok(Ok(())) => {}
            Ok(Err(finding)) => println!("{case}: {}", finding.what),
            Err(_) => println!("{case}: a panic"),
        }
    }
    println!("{}{:?}", figures::table(&tally), started.elapsed());
}
