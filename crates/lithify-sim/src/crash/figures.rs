//! What the crashes came to, by mode of durability and kind of crash.

use super::history::{CrashKind, Moment};
use crate::check::Tally;
use lithify::Durability;
use std::fmt::Write;

/// Distinct surviving images, by the hash of all names and bytes.
pub const DISTINCT_IMAGES: &str = "distinct images";

/// Crash states: a point of a run, and what survived there.
pub const CRASH_STATES: &str = "crash states";

/// Those that came while a database recovered from another crash.
pub const SECOND_CRASHES: &str = "second crashes";

/// The names of the counters of one mode and kind.
struct Names {
    mode: &'static str,
    kind: &'static str,
    states: &'static str,
    acknowledged: &'static str,
    promised: &'static str,
    acknowledged_lost: &'static str,
    visible_lost: &'static str,
    recoveries: &'static str,
    recovery_calls: &'static str,
    recovery_us: &'static str,
}

macro_rules! names {
    ($mode:literal, $kind:literal) => {
        Names {
            mode: $mode,
            kind: $kind,
            states: concat!($mode, ", ", $kind, ": crash states"),
            acknowledged: concat!($mode, ", ", $kind, ": acknowledged"),
            promised: concat!($mode, ", ", $kind, ": promised"),
            acknowledged_lost: concat!($mode, ", ", $kind, ": acknowledged and lost"),
            visible_lost: concat!($mode, ", ", $kind, ": visible and lost"),
            recoveries: concat!($mode, ", ", $kind, ": recoveries"),
            recovery_calls: concat!($mode, ", ", $kind, ": calls of recoveries"),
            recovery_us: concat!($mode, ", ", $kind, ": us of recoveries on a disk"),
        }
    };
}

static NAMES: [Names; 8] = [
    names!("sync", "power cut"),
    names!("sync", "process end"),
    names!("interval", "power cut"),
    names!("interval", "process end"),
    names!("buffered", "power cut"),
    names!("buffered", "process end"),
    names!("none", "power cut"),
    names!("none", "process end"),
];

fn names(durability: Durability, kind: CrashKind) -> &'static Names {
    let mode = match durability {
        Durability::Sync => 0,
        Durability::Interval { .. } => 2,
        Durability::Buffered => 4,
        Durability::None => 6,
    };
    &NAMES[mode + usize::from(kind == CrashKind::ProcessEnd)]
}

/// Counts a crash that left so many events.
pub fn count_crash(
    tally: &mut Tally,
    durability: Durability,
    kind: CrashKind,
    moment: &Moment,
    survived: usize,
) {
    let names = names(durability, kind);
    let lost = |events: usize| events.saturating_sub(survived) as u64;
    tally.count(CRASH_STATES, 1);
    tally.count(names.states, 1);
    tally.count(names.acknowledged, moment.acknowledged as u64);
    tally.count(names.promised, *moment.may_survive(kind).start() as u64);
    tally.count(names.acknowledged_lost, lost(moment.acknowledged));
    tally.count(names.visible_lost, lost(moment.visible));
}

/// Counts what a recovery cost.
pub fn count_recovery(
    tally: &mut Tally,
    durability: Durability,
    kind: CrashKind,
    calls: u64,
    disk_us: u64,
) {
    let names = names(durability, kind);
    tally.count(names.recoveries, 1);
    tally.count(names.recovery_calls, calls);
    tally.count(names.recovery_us, disk_us);
}

/// The figures as a table in Markdown.
pub fn table(tally: &Tally) -> String {
    let mut text = String::from(
        "| mode | crash | crash states | acknowledged | promised | acknowledged and lost \
         | visible and lost | calls to recover | ms on a disk |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    for names in &NAMES {
        let recoveries = tally.get(names.recoveries).max(1) as f64;
        let mean = |name| tally.get(name) as f64 / recoveries;
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} | {} | {} | {} | {:.1} | {:.1} |",
            names.mode,
            names.kind,
            tally.get(names.states),
            tally.get(names.acknowledged),
            tally.get(names.promised),
            tally.get(names.acknowledged_lost),
            tally.get(names.visible_lost),
            mean(names.recovery_calls),
            mean(names.recovery_us) / 1000.0,
        );
    }
    text
}
